//! Snapshots while others write, flush and recycle: what a reader saw once, it sees again, to the last byte.
//!
//! A writer churns a few trees in which every transaction keeps an invariant; threads flush; readers pin snapshots, check the invariant,
//! remember a checksum of all they see, and come back to the same snapshot again and again. The number of rounds ends the test, never
//! the time.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use jackdaw_storage::{Environment, Error, Options, ReadTransaction};
use jackdaw_testkit::{Random, Seeds, temporary_directory};
use xxhash_rust::xxh3::Xxh3;

const ACCOUNTS: u64 = 500;
const TOTAL: u64 = ACCOUNTS * 1000;

/// Little scratch memory and small journals, so that flushing, recycling and rotation happen all the time.
fn options() -> Options {
    Options::default()
        .journal_file_sizes(64 << 10, 256 << 10)
        .journal_size_before_flush(512 << 10)
        .scratch_size_max(32 << 20)
}

fn account(number: u64) -> Vec<u8> {
    format!("accounts/{number:06}").into_bytes()
}

/// A balance with padding that follows from it, so that a page mixed of two versions is noticed.
fn balance_value(balance: u64, size: usize) -> Vec<u8> {
    let mut value = balance.to_le_bytes().to_vec();
    value.extend((0..size).map(|i| (balance as usize).wrapping_mul(31).wrapping_add(i) as u8));
    value
}

/// Reads everything in a snapshot: the checksum of all names, keys and values. Checks what every transaction keeps.
fn checksum(snapshot: &ReadTransaction) -> u64 {
    let contents = support::contents(snapshot).unwrap();
    let mut hash = Xxh3::new();
    for (name, entries) in &contents {
        hash.update(name);
        for (key, value) in entries {
            hash.update(key);
            hash.update(value);
        }
    }
    let balances = &contents[&b"accounts"[..]];
    let mut sum = 0;
    for value in balances.values() {
        let balance = u64::from_le_bytes(value[..8].try_into().unwrap());
        assert_eq!(*value, balance_value(balance, value.len() - 8), "a value of two versions");
        sum += balance;
    }
    assert_eq!(sum, TOTAL, "half of a transaction shows in snapshot {:?}", snapshot.id());
    // The log has an entry for each transaction up to the snapshot's, or up to where it was cut.
    let log = &contents[&b"log"[..]];
    let numbers: Vec<u64> = log.keys().map(|key| u64::from_be_bytes(key[..].try_into().unwrap())).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "a gap in {numbers:?}");
    assert_eq!(contents[&b"state"[..]][&b"last"[..]], numbers.last().unwrap().to_le_bytes());
    hash.digest()
}

fn begin(environment: &Environment) {
    let mut transaction = environment.write().unwrap();
    {
        let mut accounts = support::tree_mut(&mut transaction, b"accounts").unwrap();
        for number in 0..ACCOUNTS {
            accounts.put(&account(number), &balance_value(1000, 20)).unwrap();
        }
    }
    support::tree_mut(&mut transaction, b"log").unwrap().put(&0u64.to_be_bytes(), b"").unwrap();
    support::tree_mut(&mut transaction, b"state").unwrap().put(b"last", &0u64.to_le_bytes()).unwrap();
    transaction.commit().unwrap();
}

/// One transaction: moves money between accounts and keeps the log.
fn churn(environment: &Environment, random: &mut Random, number: u64) {
    let mut transaction = environment.write().unwrap();
    for _ in 0..1 + random.skewed(5) {
        let (from, to) = (
            account(random.below(ACCOUNTS as usize) as u64),
            account(random.below(ACCOUNTS as usize) as u64),
        );
        if from == to {
            continue;
        }
        let mut accounts = support::tree_mut(&mut transaction, b"accounts").unwrap();
        let balance =
            |key: &[u8]| u64::from_le_bytes(accounts.get(key).unwrap().unwrap()[..8].try_into().unwrap());
        let (a, b) = (balance(&from), balance(&to));
        let amount = random.below(a as usize + 1) as u64;
        // Sizes change, so that values move between leaf, section and run; one in a hundred passes by the journal.
        let size = |random: &mut Random| if random.one_in(100) { 300 << 10 } else { random.skewed(14) };
        let (one, two) = (size(random), size(random));
        accounts.put(&from, &balance_value(a - amount, one)).unwrap();
        accounts.put(&to, &balance_value(b + amount, two)).unwrap();
    }
    {
        let mut log = support::tree_mut(&mut transaction, b"log").unwrap();
        log.put(&number.to_be_bytes(), &random.bytes(100)).unwrap();
        if number >= 200 {
            assert!(log.delete(&(number - 200).to_be_bytes()).unwrap());
        }
    }
    support::tree_mut(&mut transaction, b"state").unwrap().put(b"last", &number.to_le_bytes()).unwrap();
    if random.one_in(8) {
        // Trees that come and go free many pages at once.
        let name = [b't', random.below(3) as u8];
        if !transaction.drop_tree(&name).unwrap() {
            let mut tree = support::tree_mut(&mut transaction, &name).unwrap();
            for key in 0..200u32 {
                tree.put(&key.to_be_bytes(), &[random.next_u64() as u8; 300]).unwrap();
            }
        }
    }
    if random.one_in(10) {
        transaction.rollback();
    } else {
        transaction.commit().unwrap();
    }
}

#[test]
fn snapshots_never_change() {
    let seed = Seeds::from_environment(1).first;
    println!("SEED={seed} cargo test -p jackdaw-storage --test concurrency");
    let directory = temporary_directory();
    let environment = Environment::open(directory.path(), options()).unwrap();
    begin(&environment);
    const READERS: u64 = 3;
    const ROUNDS: u64 = 40;
    let readers_left = AtomicU64::new(READERS);
    let committed = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for reader in 0..READERS {
            let (environment, readers_left, committed) = (&environment, &readers_left, &committed);
            scope.spawn(move || {
                // Also counts down when an assertion fails, so that the writer ends.
                let _gone = scopeguard(|| _ = readers_left.fetch_sub(1, Ordering::AcqRel));
                let mut random = Random::new(seed ^ (reader + 1) << 32);
                let mut pinned: Vec<(ReadTransaction, u64)> = Vec::new();
                for _ in 0..ROUNDS {
                    let snapshot = environment.read().unwrap();
                    let sum = checksum(&snapshot);
                    pinned.push((snapshot, sum));
                    if pinned.len() > 3 {
                        drop(pinned.swap_remove(random.below(3)));
                    }
                    // Let the writer get ahead, by commits and not by time.
                    let ahead = committed.load(Ordering::Acquire) + random.below(20) as u64;
                    while committed.load(Ordering::Acquire) < ahead {
                        thread::yield_now();
                    }
                    for (snapshot, sum) in &pinned {
                        assert_eq!(checksum(snapshot), *sum, "snapshot {:?} has changed", snapshot.id());
                    }
                }
            });
        }
        let (environment_, done_) = (&environment, &done);
        scope.spawn(move || {
            while !done_.load(Ordering::Acquire) {
                environment_.flush().unwrap();
                thread::yield_now();
            }
        });
        let _done = scopeguard(|| done.store(true, Ordering::Release));
        let mut random = Random::new(seed);
        let mut number = 1;
        while readers_left.load(Ordering::Acquire) > 0 {
            let before = environment.last_transaction();
            churn(&environment, &mut random, number);
            if environment.last_transaction() != before {
                number += 1;
            }
            // Counted even when rolled back, so that a reader never waits in vain.
            committed.fetch_add(1, Ordering::Release);
        }
    });
    support::assert_checked(&environment, "after the churn");
    let sum = checksum(&environment.read().unwrap());
    environment.close().unwrap();
    let environment = Environment::open(directory.path(), options()).unwrap();
    assert_eq!(checksum(&environment.read().unwrap()), sum, "closing and opening changed something");
    support::assert_checked(&environment, "after opening again");
}

#[test]
fn many_threads_submit_and_each_sees_its_own() {
    let directory = temporary_directory();
    let environment = Environment::open(directory.path(), options()).unwrap();
    const THREADS: u64 = 16;
    const EACH: u64 = 100;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let environment = &environment;
            scope.spawn(move || {
                for number in 0..EACH {
                    let key = [thread.to_be_bytes(), number.to_be_bytes()].concat();
                    // Every tenth fails, and takes back what it did.
                    let result = environment.submit(|transaction| -> Result<(), Error> {
                        support::tree_mut(transaction, b"submitted")?.put(&key, b"value")?;
                        if number % 10 == 9 { Err(Error::Invalid("on purpose".to_owned())) } else { Ok(()) }
                    });
                    assert_eq!(result.is_err(), number % 10 == 9);
                    let snapshot = environment.read().unwrap();
                    let found = snapshot.tree(b"submitted").unwrap().get(&key).unwrap().is_some();
                    assert_eq!(found, number % 10 != 9, "thread {thread}, number {number}");
                }
            });
        }
    });
    let contents = support::contents(&environment.read().unwrap()).unwrap();
    assert_eq!(contents[&b"submitted"[..]].len() as u64, THREADS * EACH * 9 / 10);
    support::assert_checked(&environment, "after the submissions");
}

/// Calls the function when dropped, a panic included.
fn scopeguard(act: impl FnMut()) -> impl Drop {
    struct Guard<F: FnMut()>(F);
    impl<F: FnMut()> Drop for Guard<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    Guard(act)
}
