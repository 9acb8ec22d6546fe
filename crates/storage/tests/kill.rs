//! Real processes on real files, killed with SIGKILL at a random moment: whatever was acknowledged is there afterwards.
//!
//! The child is this test binary again. Four of its threads commit transactions, each with keys of its own, and write a line after each
//! commit that returned. What transaction `n` of a thread changes follows from `n` alone, so the parent knows what the environment must
//! hold when it finds `n` transactions of a thread in it: at least those it read a line about, and at most one more.
//!
//! `SEED=n` chooses other moments and other changes; `ROUNDS=n` kills more often. Neither makes a run repeat another exactly: the
//! moment of death belongs to the system.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jackdaw_storage::{Environment, Error, Options};
use jackdaw_testkit::{Random, Seeds, temporary_directory};

const DIRECTORY: &str = "JACKDAW_TEST_KILL_DIRECTORY";
const CHILD_SEED: &str = "JACKDAW_TEST_KILL_SEED";
const THREADS: u64 = 4;
const TREE: &[u8] = b"documents";
const COUNTS: &[u8] = b"counts";

/// Small, so that journals are rotated and the data file is flushed all the time.
fn options() -> Options {
    Options::default().journal_file_sizes(64 << 10, 256 << 10).journal_size_before_flush(1 << 20)
}

/// What transaction `number` of a thread does: keys with their new values, or `None` where the key is deleted.
fn changes(seed: u64, thread: u64, number: u64) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let mut random = Random::new(seed ^ thread << 56 ^ number);
    let count = 1 + random.skewed(5);
    let one = |random: &mut Random| {
        let key = format!("{thread}/users/{}", random.below(3000)).into_bytes();
        if random.one_in(4) {
            return (key, None);
        }
        // Once in a while a value that takes the way past the journal.
        let size = if random.one_in(400) { 300 << 10 } else { random.skewed(14) };
        (key, Some(random.bytes(size)))
    };
    (0..count).map(|_| one(&mut random)).collect()
}

/// Applies a transaction to a model; later changes of the same key win, as in the environment.
fn apply(model: &mut BTreeMap<Vec<u8>, Vec<u8>>, changes: Vec<(Vec<u8>, Option<Vec<u8>>)>) {
    for (key, value) in changes {
        match value {
            Some(value) => drop(model.insert(key, value)),
            None => drop(model.remove(&key)),
        }
    }
}

fn count_of(environment: &Environment, thread: u64) -> u64 {
    let snapshot = environment.read().unwrap();
    let count = match snapshot.tree(COUNTS) {
        Ok(counts) => counts
            .get(&thread.to_be_bytes())
            .unwrap()
            .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())),
        Err(Error::TreeNotFound { .. }) => None,
        Err(error) => panic!("{error}"),
    };
    count.unwrap_or(0)
}

/// The child process; as a test of its own it does nothing.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let seed: u64 = std::env::var(CHILD_SEED).unwrap().parse().unwrap();
    let environment = Environment::open(directory, options()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let environment = &environment;
            scope.spawn(move || {
                for number in count_of(environment, thread) + 1.. {
                    let work = |transaction: &mut jackdaw_storage::WriteTransaction| -> Result<(), Error> {
                        let mut tree = transaction.create_tree(TREE)?;
                        for (key, value) in changes(seed, thread, number) {
                            match value {
                                Some(value) => drop(tree.put(&key, &value)?),
                                None => drop(tree.delete(&key)?),
                            }
                        }
                        drop(tree);
                        let mut counts = transaction.create_tree(COUNTS)?;
                        counts.put(&thread.to_be_bytes(), &number.to_le_bytes())?;
                        Ok(())
                    };
                    // Half of the threads on their own, half together with others.
                    if thread % 2 == 0 {
                        let mut transaction = environment.write().unwrap();
                        work(&mut transaction).unwrap();
                        transaction.commit().unwrap();
                    } else {
                        environment.submit(work).unwrap();
                    }
                    // One write of one line: the pipe takes it whole or not at all.
                    let line = format!("acknowledged {thread} {number}\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

/// Starts the child, kills it after `delay`, and returns the last acknowledged number of each thread, if it had one in this life.
fn life_and_death(directory: &Path, seed: u64, delay: Duration) -> Vec<Option<u64>> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(CHILD_SEED, seed.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut acknowledged = vec![None; THREADS as usize];
        let mut lines = BufReader::new(output);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).unwrap() > 0 {
            // A line that death cut off acknowledges nothing.
            let text = String::from_utf8_lossy(&line);
            // The first one stands behind what the test harness says about itself.
            let told = text.strip_suffix('\n').and_then(|text| text.split_once("acknowledged "));
            if let Some((_, told)) = told {
                let (thread, number) = told.split_once(' ').unwrap();
                acknowledged[thread.parse::<usize>().unwrap()] = Some(number.parse().unwrap());
            }
            line.clear();
        }
        acknowledged
    });
    std::thread::sleep(delay);
    // Nobody but us may end the child.
    let early = child.try_wait().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let acknowledged = reader.join().unwrap();
    if let Some(status) = early {
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        panic!("the child ended by itself with {status}:\n{errors}");
    }
    acknowledged
}

#[test]
fn nothing_acknowledged_is_lost_by_sigkill() {
    let seed = Seeds::from_environment(1).first;
    let rounds: u64 = std::env::var("ROUNDS").map_or(50, |text| text.parse().unwrap());
    println!("SEED={seed} cargo test -p jackdaw-storage --test kill -- --nocapture");
    let mut random = Random::new(seed);
    let directory = temporary_directory();
    let path = directory.path().join("environment");
    let mut models: Vec<BTreeMap<Vec<u8>, Vec<u8>>> = vec![BTreeMap::new(); THREADS as usize];
    let mut counts = vec![0; THREADS as usize];
    let commits = AtomicU64::new(0);
    for round in 0..rounds {
        // Some die while they recover, most at work.
        let longest_us = if random.one_in(5) { 5_000 } else { 80_000 };
        let delay = Duration::from_micros(random.below(longest_us) as u64);
        let acknowledged = life_and_death(&path, seed, delay);
        let environment = Environment::open(&path, options()).unwrap();
        support::assert_checked(&environment, &format!("round {round}"));
        for thread in 0..THREADS {
            let (found, at) = (count_of(&environment, thread), thread as usize);
            let least = acknowledged[at].unwrap_or(counts[at]).max(counts[at]);
            assert!(
                found == least || found == least + 1,
                "round {round}, seed {seed}: thread {thread} was told of {least} commits, and {found} are there"
            );
            for number in counts[at] + 1..=found {
                apply(&mut models[at], changes(seed, thread, number));
            }
            commits.fetch_add(found - counts[at], Ordering::Relaxed);
            counts[at] = found;
        }
        verify(&environment, &models, round);
        // Some are closed in good order in between, some are left as they are.
        if random.one_in(3) {
            environment.close().unwrap();
        }
    }
    println!("{rounds} kills, {} commits, 0 acknowledged commits lost", commits.load(Ordering::Relaxed));
    assert!(commits.load(Ordering::Relaxed) > 0, "the children never came to commit anything");
}

/// The environment holds the models of all threads and nothing else.
fn verify(environment: &Environment, models: &[BTreeMap<Vec<u8>, Vec<u8>>], round: u64) {
    let snapshot = environment.read().unwrap();
    let expected: usize = models.iter().map(BTreeMap::len).sum();
    let tree = match snapshot.tree(TREE) {
        Ok(tree) => tree,
        Err(Error::TreeNotFound { .. }) if expected == 0 => return,
        Err(error) => panic!("round {round}: {error}"),
    };
    let mut found = 0;
    let mut walk = tree.iter().unwrap();
    while let Some((key, value)) = walk.next().unwrap() {
        let thread = usize::from(key[0] - b'0');
        assert_eq!(
            models[thread].get(key).map(Vec::as_slice),
            Some(value),
            "round {round}: {}",
            key.escape_ascii()
        );
        found += 1;
    }
    assert_eq!(found, expected, "round {round}: keys are missing");
}
