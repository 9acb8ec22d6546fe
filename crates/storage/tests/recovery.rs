//! Recovery of a journal so long that several threads share the work, on real files: the same as by one thread, and as it should be.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use jackdaw_storage::disk::{DIRECT_ALIGNMENT, Disk, OpenMode, RealDisk};
use jackdaw_storage::{Environment, Options, WriteTransaction};
use jackdaw_testkit::{Random, Seeds};

/// More than recovery leaves to one thread, and several batches.
const JOURNAL_SIZE_MIN: u64 = 9 << 20;

fn options() -> Options {
    Options::default()
        .scratch_size_max(1 << 30)
        .journal_size_before_flush(1 << 30)
        .flush_after_idle(Duration::from_secs(3600))
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// One transaction: entries at random places, so that pages split and merge, some of them long ones.
fn change(random: &mut Random, transaction: &mut WriteTransaction, model: &mut Model) {
    let mut tree = transaction.create_tree(b"tree").unwrap();
    for _ in 0..100 {
        let key = format!("{:06}", random.below(20_000)).into_bytes();
        if random.one_in(3) {
            assert_eq!(tree.delete(&key).unwrap(), model.remove(&key).is_some());
        } else {
            let size = match random.below(200) {
                0 => 20_000,
                1 => 200 << 10,
                2 => 300 << 10,
                3..20 => 2_000,
                _ => 100,
            };
            let value = random.bytes(size);
            tree.put(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
}

fn copy(from: &Path, to: &Path) {
    for directory in [from.to_owned(), from.join("journal")] {
        let target = to.join(directory.strip_prefix(from).unwrap());
        fs::create_dir_all(&target).unwrap();
        for entry in fs::read_dir(&directory).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() && entry.file_name() != "lock" {
                fs::copy(entry.path(), target.join(entry.file_name())).unwrap();
            }
        }
    }
}

fn several_threads_recover_the_same(seed: u64) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let mut random = Random::new(seed);
    let mut model = Model::new();
    let environment = Environment::open(path("made"), options()).unwrap();
    let flushed = random.below(300);
    let mut before = 0;
    for count in 0.. {
        let mut transaction = environment.write().unwrap();
        change(&mut random, &mut transaction, &mut model);
        transaction.commit().unwrap();
        if count % 50 == 7 {
            // A record longer than what is read at a time.
            let mut transaction = environment.write().unwrap();
            let mut tree = transaction.create_tree(b"tree").unwrap();
            for i in 0..random.below(16) {
                let (key, value) = (format!("long{i}").into_bytes(), random.bytes(250 << 10));
                tree.put(&key, &value).unwrap();
                model.insert(key, value);
            }
            drop(tree);
            transaction.commit().unwrap();
        }
        if count == flushed {
            environment.flush().unwrap(); // What follows changes pages that the data file has.
            before = environment.stats().journal_bytes;
        }
        if count > flushed && environment.stats().journal_bytes > before + JOURNAL_SIZE_MIN {
            break;
        }
    }
    for background in [false, true] {
        let place = format!("background {background}");
        let name = format!("background-{background}");
        copy(&path("made"), &path(&name));
        let recovered =
            Environment::open(path(&name), options().background(background)).map_err(|e| e.to_string())?;
        if recovered.stats().recovered_bytes < JOURNAL_SIZE_MIN {
            return Err(format!("{place}: recovered {} bytes", recovered.stats().recovered_bytes));
        }
        let contents = support::contents(&recovered.read().unwrap()).map_err(|e| e.to_string())?;
        if contents[&b"tree"[..]] != model {
            return Err(format!("{place}: the entries differ"));
        }
        support::assert_checked(&recovered, &place);
    }
    Ok(())
}

#[test]
fn reading_past_the_cache_reads_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let disk = RealDisk::open(directory.path()).unwrap();
    let content = Random::new(7).bytes(3 << 20);
    fs::write(directory.path().join("file"), &content).unwrap();
    for mode in [OpenMode::Read, OpenMode::Write] {
        let file = disk.open("file", mode).unwrap();
        let mut memory = vec![0; (2 << 20) + DIRECT_ALIGNMENT];
        let aligned = memory.as_ptr().align_offset(DIRECT_ALIGNMENT);
        for (offset, at, size) in
            [(4096, 0, 2 << 20), (1 << 20, 0, 4096), (100, 0, 8192), (8192, 1, 4096), (0, 0, 777)]
        {
            let buffer = &mut memory[aligned + at..aligned + at + size];
            file.read_direct(offset as u64, buffer).unwrap();
            assert!(*buffer == content[offset..offset + size], "{size} bytes at {offset}");
        }
        let error = file.read_direct(2 << 20, &mut memory[aligned..aligned + (2 << 20)]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn several_threads_recover_what_one_does() {
    let replay = "SEED={seed} cargo test -p jackdaw-storage --test recovery";
    Seeds::from_environment(2).check(replay, several_threads_recover_the_same);
}
