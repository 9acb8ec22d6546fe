//! Files that are not what they should be: cut, emptied, foreign, damaged in one bit or in many.
//!
//! An environment made of them opens or is refused with an error that names the file or the page; whatever it answers when it opens
//! is right; and nothing panics, hangs, or reads out of bounds. Files are damaged on a simulated disk, where each
//! variant costs a copy in memory.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::sync::Arc;

use jackdaw_storage::disk::SimulatedDisk;
use jackdaw_storage::{Environment, Error, Options, PAGE_SIZE};
use jackdaw_testkit::{Random, Seeds};

use self::support::{Contents, contents};

fn options() -> Options {
    Options::default().background(false).journal_file_sizes(64 << 10, 128 << 10)
}

/// A disk with an environment on it, and what it held after each of its commits.
struct Sample {
    disk: SimulatedDisk,
    history: Vec<Contents>,
}

impl Sample {
    fn last(&self) -> &Contents {
        self.history.last().unwrap()
    }

    fn open(&self, disk: &SimulatedDisk) -> Result<Environment, Error> {
        Environment::open_on(Arc::new(disk.clone()), options())
    }
}

/// An environment with all kinds of pages. Its data file is complete up to `flushed` transactions; the journal has the rest.
fn sample(seed: u64, transactions: usize, flush_at: usize, close: bool) -> Sample {
    let disk = SimulatedDisk::new(seed);
    let environment = Environment::open_on(Arc::new(disk.clone()), options()).unwrap();
    let mut random = Random::new(seed);
    let mut state = Contents::new();
    let mut history = vec![state.clone()];
    for number in 0..transactions {
        let mut transaction = environment.write().unwrap();
        for name in [&b"documents"[..], b"values"] {
            let mut tree = support::tree_mut(&mut transaction, name).unwrap();
            let entries = state.entry(name.to_vec()).or_default();
            for i in 0..60 {
                let key = format!("users/{:04}", random.below(300)).into_bytes();
                let size = if i == 0 && number % 5 == 1 { 300 << 10 } else { random.skewed(13) };
                if random.one_in(5) {
                    assert_eq!(tree.delete(&key).unwrap(), entries.remove(&key).is_some());
                } else {
                    let value = random.bytes(size);
                    tree.put(&key, &value).unwrap();
                    entries.insert(key, value);
                }
            }
        }
        transaction.commit().unwrap();
        history.push(state.clone());
        if number + 1 == flush_at {
            environment.flush().unwrap();
        }
    }
    if close {
        environment.close().unwrap();
    } else {
        // As after the death of the process: a copy, so that dropping the environment does not tidy up.
        let left = disk.snapshot().unwrap();
        return Sample { disk: left, history };
    }
    Sample { disk, history }
}

/// Reads everything in every way and writes a little. `Ok` is what was read; errors are those that damage may cause.
fn exercise(sample: &Sample, disk: &SimulatedDisk) -> Result<Contents, Error> {
    let environment = sample.open(disk)?;
    let found = contents(&environment.read()?);
    // Whatever reading says, the walk over everything ends, and finds what reading found.
    let report = environment.check()?;
    if found.is_err() {
        assert!(!report.is_clean(), "reading fails ({:?}), and check finds nothing", found.err());
        return found;
    }
    let mut transaction = environment.write()?;
    support::tree_mut(&mut transaction, b"documents")?.put(b"users/new", b"value")?;
    transaction.commit()?;
    environment.flush()?;
    found
}

/// The error says where the damage is.
fn assert_told(error: &Error, place: &str) {
    let text = error.to_string();
    match error {
        Error::PageDamaged { .. } => assert!(text.contains("page "), "{place}: {text}"),
        Error::FileDamaged { path, .. }
        | Error::Foreign { path, .. }
        | Error::Version { path, .. }
        | Error::NotFound { path } => {
            assert!(path.starts_with("/simulated"), "{place}: {text}");
            assert!(text.contains(&path.display().to_string()), "{place}: {text}");
        }
        Error::Io { path, .. } => assert!(path.starts_with("/simulated"), "{place}: {text}"),
        other => panic!("{place}: {other:?}"),
    }
}

/// Damage may be refused or found while reading; or it lies where nothing was, and all is right.
fn assert_right_or_told(sample: &Sample, disk: &SimulatedDisk, place: &str, allowed: &[Contents]) -> bool {
    match exercise(sample, disk) {
        Ok(found) => {
            assert!(allowed.contains(&found), "{place}: opened, and reads what was never there");
            true
        }
        Err(error) => {
            assert_told(&error, place);
            false
        }
    }
}

fn file_names(disk: &SimulatedDisk) -> Vec<String> {
    disk.names().into_iter().filter(|name| name != "lock").collect()
}

#[test]
fn each_file_cut_at_many_places() {
    for (close, flush_at) in [(true, 0), (false, 0), (false, 6)] {
        let sample = sample(1, 10, flush_at, close);
        for name in file_names(&sample.disk) {
            let bytes = sample.disk.contents(&name).unwrap();
            let mut random = Random::new(1);
            let mut lengths: Vec<usize> =
                vec![0, 1, 8, 511, 512, 4095, 4096, PAGE_SIZE - 1, PAGE_SIZE, bytes.len().saturating_sub(1)];
            lengths.extend((0..30).map(|_| random.below(bytes.len().max(1))));
            lengths.retain(|&length| length < bytes.len());
            for length in lengths {
                let disk = sample.disk.snapshot().unwrap();
                disk.set_contents(&name, &bytes[..length]).unwrap();
                let place = format!("{name} cut to {length} of {} bytes, closed: {close}", bytes.len());
                // A journal that ends early ends the history early.
                let allowed = if name.contains("journal") {
                    &sample.history[..]
                } else {
                    std::slice::from_ref(sample.last())
                };
                assert_right_or_told(&sample, &disk, &place, allowed);
            }
        }
    }
}

#[test]
fn each_file_missing_or_of_zeros() {
    for (close, flush_at) in [(true, 0), (false, 0), (false, 6)] {
        let sample = sample(2, 10, flush_at, close);
        for name in file_names(&sample.disk) {
            let length = sample.disk.contents(&name).unwrap().len();
            let disk = sample.disk.snapshot().unwrap();
            disk.set_contents(&name, &vec![0; length]).unwrap();
            let allowed = if name.contains("journal") {
                &sample.history[..]
            } else {
                std::slice::from_ref(sample.last())
            };
            let place = format!("{name} of zeros, closed: {close}");
            assert_right_or_told(&sample, &disk, &place, allowed);
            let disk = sample.disk.snapshot().unwrap();
            jackdaw_storage::disk::Disk::remove(&disk, &name).unwrap();
            let place = format!("{name} missing, closed: {close}");
            assert_right_or_told(&sample, &disk, &place, allowed);
        }
    }
}

#[test]
fn a_data_file_of_zeros_is_never_taken_for_an_empty_environment() {
    let sample = sample(3, 10, 10, true);
    let length = sample.disk.contents("data").unwrap().len();
    let disk = sample.disk.snapshot().unwrap();
    disk.set_contents("data", &vec![0; length]).unwrap();
    let error = exercise(&sample, &disk).unwrap_err();
    assert_told(&error, "data of zeros");
    for header in ["header-0", "header-1"] {
        let length = sample.disk.contents(header).unwrap().len();
        disk.set_contents(header, &vec![0; length]).unwrap();
    }
    let error = exercise(&sample, &disk).unwrap_err();
    assert_told(&error, "headers and data of zeros");
}

#[test]
fn files_of_another_environment_are_refused() {
    for close in [true, false] {
        let ours = sample(4, 8, 4, close);
        let theirs = sample(5, 8, 4, close);
        for name in file_names(&ours.disk) {
            let Some(bytes) = theirs.disk.contents(&name) else { continue };
            let disk = ours.disk.snapshot().unwrap();
            disk.set_contents(&name, &bytes).unwrap();
            let place = format!("{name} of another environment, closed: {close}");
            // One foreign header leaves the other; foreign journals end the history.
            assert_right_or_told(&ours, &disk, &place, &ours.history);
        }
    }
}

#[test]
fn files_that_are_no_ones_are_refused() {
    let sample = sample(6, 5, 3, false);
    for (text, bytes) in [
        ("text", b"SQLite format 3\0 and so on".repeat(1000)),
        ("ones", vec![0xFF; 100_000]),
        ("noise", Random::new(1).bytes(100_000)),
    ] {
        for name in file_names(&sample.disk) {
            let disk = sample.disk.snapshot().unwrap();
            disk.set_contents(&name, &bytes).unwrap();
            assert_right_or_told(&sample, &disk, &format!("{name} is {text}"), &sample.history);
        }
        let disk = SimulatedDisk::new(1);
        for name in file_names(&sample.disk) {
            disk.set_contents(&name, &bytes).unwrap();
        }
        let error = exercise(&sample, &disk).unwrap_err();
        assert_told(&error, &format!("all files are {text}"));
    }
}

/// One flipped bit anywhere in the data file is found when its page is read, or lies where nothing is; it never changes an answer.
#[test]
fn single_bits_of_the_data_file() {
    let sample = sample(7, 8, 0, true);
    let length = sample.disk.contents("data").unwrap().len();
    let seeds = Seeds::from_environment(400);
    let told: Vec<bool> = seeds.check(
        "SEED={seed} cargo test -p jackdaw-storage --test hostile_files single_bits_of_the_data",
        |seed| {
            let mut random = Random::new(seed);
            let (at, bit) = (random.below(length), random.below(8));
            let disk = sample.disk.snapshot().map_err(|error| error.to_string())?;
            let byte = sample.disk.contents("data").ok_or("no data file")?[at] ^ 1 << bit;
            disk.damage("data", at as u64, &[byte]).map_err(|error| error.to_string())?;
            let place = format!("bit {bit} of byte {at} (page {}) of data", at / PAGE_SIZE);
            match exercise(&sample, &disk) {
                Ok(found) if found == *sample.last() => Ok(false),
                Ok(_) => Err(format!("{place}: a wrong answer")),
                Err(Error::PageDamaged { .. }) => Ok(true),
                Err(error) => Err(format!("{place}: {error}")),
            }
        },
    );
    if told.len() > 100 {
        assert!(
            told.iter().filter(|&&told| told).count() * 2 > told.len(),
            "most pages are in use, so most damage is found"
        );
    }
}

/// Damage to the journal shortens the history at most, and never changes an answer.
#[test]
fn single_bits_of_journal_and_headers() {
    let sample = sample(8, 12, 4, false);
    let names: Vec<String> = file_names(&sample.disk).into_iter().filter(|name| name != "data").collect();
    Seeds::from_environment(400).check(
        "SEED={seed} cargo test -p jackdaw-storage --test hostile_files single_bits_of_journal",
        |seed| {
            let mut random = Random::new(seed);
            let name = random.pick(&names).ok_or("no files")?.clone();
            let bytes = sample.disk.contents(&name).ok_or("no such file")?;
            if bytes.is_empty() {
                return Ok(());
            }
            let disk = sample.disk.snapshot().map_err(|error| error.to_string())?;
            for _ in 0..1 + random.below(3) {
                // Near the front, where the structure is, more often than behind.
                let at = if random.one_in(2) {
                    random.below(bytes.len())
                } else {
                    random.below(bytes.len().min(256))
                };
                disk.damage(&name, at as u64, &[bytes[at] ^ 1 << random.below(8)])
                    .map_err(|error| error.to_string())?;
            }
            match exercise(&sample, &disk) {
                Ok(found) if sample.history.contains(&found) => Ok(()),
                Ok(_) => Err(format!("{name}: a wrong answer")),
                Err(error) => {
                    assert_told(&error, &name);
                    Ok(())
                }
            }
        },
    );
}

#[test]
fn an_unknown_version_is_refused_with_both_versions_named() {
    let sample = sample(9, 3, 3, true);
    let disk = sample.disk.snapshot().unwrap();
    for name in ["header-0", "header-1"] {
        let mut bytes = disk.contents(name).unwrap();
        if bytes.len() < 80 {
            continue;
        }
        // The offsets of docs/format: version at 8, checksum of the 64 bytes before at 64.
        let right = xxhash_rust::xxh3::xxh3_64(&bytes[..64]);
        assert_eq!(bytes[64..72], right.to_le_bytes());
        bytes[8..12].copy_from_slice(&77u32.to_le_bytes());
        let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..64]);
        bytes[64..72].copy_from_slice(&sum.to_le_bytes());
        disk.set_contents(name, &bytes).unwrap();
    }
    match exercise(&sample, &disk) {
        Err(error @ Error::Version { found: 77, .. }) => {
            let text = error.to_string();
            assert!(text.contains("77") && text.contains("version 1"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_damaged_lock_file_does_no_harm() {
    let sample = sample(10, 3, 0, true);
    let disk = sample.disk.snapshot().unwrap();
    disk.set_contents("lock", b"\xFF\0 no number").unwrap();
    assert_eq!(exercise(&sample, &disk).unwrap(), *sample.last());
}
