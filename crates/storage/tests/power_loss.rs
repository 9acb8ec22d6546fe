//! Power losses while several threads are at work on one simulated disk: a writer commits, others flush without pause, as the background
//! does. What the simulation does in one thread, so that it repeats exactly, happens here between the steps of a flush.
//!
//! A seed chooses the changes and the call at which the power goes off, but the threads run as they like: a failing seed may have to
//! be run some times. Timing decides which moments are tried, never what counts as right: everything acknowledged is there, and the
//! commit under way wholly or not at all.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use jackdaw_storage::disk::SimulatedDisk;
use jackdaw_storage::disk::simulated::Fault;
use jackdaw_storage::{Environment, Error, Options};
use jackdaw_testkit::{Random, Seeds};

const TREE: &[u8] = b"documents";
const COUNT: &[u8] = b"count";
/// Lives of one environment: what a power loss leaves is gone on with.
const LIVES: usize = 6;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// What transaction `number` does: keys with their new values, or `None` where the key is deleted. Keys come in no order, so that entries
/// are moved about inside pages; few pages, so that each is changed again and again between two flushes.
fn changes(seed: u64, number: u64) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let mut random = Random::new(seed << 32 ^ number);
    let count = 1 + random.skewed(4);
    let one = |random: &mut Random| {
        let key = format!("{:05}", random.below(2000)).into_bytes();
        let size = if random.one_in(200) { 300 << 10 } else { random.skewed(9) };
        (key, (!random.one_in(4)).then(|| random.bytes(size)))
    };
    (0..count).map(|_| one(&mut random)).collect()
}

fn apply(entries: &mut Entries, changes: Vec<(Vec<u8>, Option<Vec<u8>>)>) {
    for (key, value) in changes {
        match value {
            Some(value) => drop(entries.insert(key, value)),
            None => drop(entries.remove(&key)),
        }
    }
}

fn commit(environment: &Environment, seed: u64, number: u64) -> Result<(), Error> {
    let mut transaction = environment.write()?;
    let mut tree = transaction.create_tree(TREE)?;
    for (key, value) in changes(seed, number) {
        match value {
            Some(value) => drop(tree.put(&key, &value)?),
            None => drop(tree.delete(&key)?),
        }
    }
    drop(tree);
    transaction.create_tree(COUNT)?.put(b"count", &number.to_le_bytes())?;
    transaction.commit().map(|_| ())
}

/// How many transactions the environment holds, and what they made.
fn held(environment: &Environment) -> Result<(u64, Entries), Error> {
    let mut contents = support::contents(&environment.read()?)?;
    let count = contents.get(COUNT).and_then(|tree| tree.get(&b"count"[..]));
    let count = count.map_or(0, |bytes| u64::from_le_bytes(bytes[..].try_into().unwrap()));
    Ok((count, contents.remove(TREE).unwrap_or_default()))
}

struct WhenDropped<F: FnMut()>(F);

impl<F: FnMut()> Drop for WhenDropped<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Commits until the power goes off, while others flush. Returns the last acknowledged number.
fn work(environment: &Environment, disk: &SimulatedDisk, seed: u64, first: u64) -> u64 {
    let done = AtomicBool::new(false);
    let mut acknowledged = first;
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let _ = environment.flush();
                thread::yield_now();
            }
        });
        // Also when something panics, so that the other thread ends.
        let _done = WhenDropped(|| done.store(true, Ordering::Release));
        while commit(environment, seed, acknowledged + 1).is_ok() {
            acknowledged += 1;
        }
    });
    assert!(disk.has_crashed(), "a commit failed though the power was on");
    acknowledged
}

fn live_and_die(seed: u64) -> Result<u64, String> {
    let mut random = Random::new(seed);
    let mut disk = SimulatedDisk::new(seed);
    let mut entries = Entries::new();
    let mut count = 0;
    for life in 0..LIVES {
        let options = Options::default()
            .background(random.one_in(2))
            .journal_file_sizes(32 << 10, 128 << 10)
            .journal_size_before_flush(32 << 10);
        let bits = 6 + random.below(7);
        disk.fail_at(disk.calls() + 1 + random.skewed(bits) as u64, Fault::Crash);
        let mut acknowledged = count;
        if let Ok(environment) = Environment::open_on(Arc::new(disk.clone()), options.clone()) {
            acknowledged = work(&environment, &disk, seed, count);
        }
        disk = disk.crash(random.next_u64()).map_err(|error| error.to_string())?;
        let place = format!("life {life}, {acknowledged} acknowledged");
        let environment = Environment::open_on(Arc::new(disk.clone()), options.background(false))
            .map_err(|error| format!("{place}: does not open: {error}"))?;
        let (found, held) = held(&environment).map_err(|error| format!("{place}: {error}"))?;
        if found != acknowledged && found != acknowledged + 1 {
            return Err(format!("{place}: {found} are there"));
        }
        for number in count + 1..=found {
            apply(&mut entries, changes(seed, number));
        }
        count = found;
        if held != entries {
            let wrong = entries.iter().find(|(key, value)| held.get(*key) != Some(value));
            let wrong = wrong.map(|(key, _)| key.escape_ascii().to_string());
            return Err(format!("{place}: the entries differ, first at {wrong:?}"));
        }
        let report = environment.check().map_err(|error| format!("{place}: {error}"))?;
        if !report.is_clean() {
            return Err(format!("{place}: check finds {:?}", report.problems));
        }
        // What the process that looked did goes as well.
        drop(environment);
        if random.one_in(2) {
            disk = disk.crash(random.next_u64()).map_err(|error| error.to_string())?;
        }
    }
    Ok(count)
}

#[test]
fn nothing_acknowledged_is_lost_between_the_steps_of_a_flush() {
    let replay = "SEED={seed} cargo test -p jackdaw-storage --test power_loss";
    let counts = Seeds::from_environment(150).check(replay, live_and_die);
    println!("{} commits, 0 acknowledged commits lost", counts.iter().sum::<u64>());
    assert!(counts.len() < 100 || counts.iter().sum::<u64>() > 1000, "hardly anything was committed");
}
