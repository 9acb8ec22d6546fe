//! A fixed sequence of transactions, in which each call to the disk fails once: with `EIO`, then with `ENOSPC`.
//!
//! Whatever fails: the caller gets an error that says what happened, or the call was not needed; what was acknowledged is there after
//! a restart and after a power loss; what was not is there wholly or not at all. After a failed write or sync the
//! environment takes no more writes; after a full disk it goes on, and the same transaction succeeds.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use jackdaw_storage::disk::SimulatedDisk;
use jackdaw_storage::disk::simulated::{Call, Fault};
use jackdaw_storage::{Environment, Error, Options, Result, WriteTransaction};
use jackdaw_testkit::Random;

use self::support::{Contents, contents};

fn options() -> Options {
    Options::default()
        .background(false)
        .journal_file_sizes(64 << 10, 128 << 10)
        .journal_size_before_flush(256 << 10)
}

/// Tree, key, and value; no value deletes the key.
type Change = (&'static str, Vec<u8>, Option<Vec<u8>>);

/// One step of the sequence.
enum Step {
    /// A transaction of these changes.
    Commit(Vec<Change>),
    DropTree(&'static str),
    Flush,
}

fn steps() -> Vec<Step> {
    let mut random = Random::new(1);
    let mut put = |tree, key: &str, size| (tree, key.as_bytes().to_vec(), Some(random.bytes(size)));
    let many = |range: std::ops::Range<usize>, size: usize| -> Vec<_> {
        range
            .map(|i| ("documents", format!("users/{i:05}").into_bytes(), Some(vec![i as u8; size])))
            .collect()
    };
    vec![
        Step::Commit(vec![put("documents", "users/1", 100)]),
        Step::Commit(many(0..300, 60)),
        Step::Commit(vec![
            put("values", "section", 3000),
            put("values", "run", 20_000),
            put("documents", "x", 9),
        ]),
        Step::Flush,
        Step::Commit(vec![put("values", "direct", 300 << 10)]),
        Step::Commit(many(100..200, 700)),
        Step::Commit(vec![put("values", "run", 40_000), ("values", b"direct".to_vec(), None)]),
        // Larger than what a journal file has left.
        Step::Commit((0..10).map(|i| put("values", &format!("large/{i}"), 15_000)).collect()),
        Step::Commit((0..300).map(|i| ("documents", format!("users/{i:05}").into_bytes(), None)).collect()),
        Step::DropTree("documents"),
        Step::Commit(vec![put("others", "a", 10), put("values", "direct", 400 << 10)]),
        Step::Flush,
        Step::Commit(vec![put("others", "b", 5000)]),
    ]
}

fn apply(transaction: &mut WriteTransaction, step: &Step) -> Result<()> {
    match step {
        Step::Commit(changes) => {
            for (tree, key, value) in changes {
                let mut tree = support::tree_mut(transaction, tree.as_bytes())?;
                match value {
                    Some(value) => drop(tree.put(key, value)?),
                    None => drop(tree.delete(key)?),
                }
            }
            Ok(())
        }
        Step::DropTree(name) => transaction.drop_tree(name.as_bytes()).map(|_| ()),
        Step::Flush => Ok(()),
    }
}

/// What the environment holds after a step.
fn after(before: &Contents, step: &Step) -> Contents {
    let mut state = before.clone();
    match step {
        Step::Commit(changes) => {
            for (tree, key, value) in changes {
                let tree = state.entry(tree.as_bytes().to_vec()).or_default();
                match value {
                    Some(value) => drop(tree.insert(key.clone(), value.clone())),
                    None => drop(tree.remove(key)),
                }
            }
        }
        Step::DropTree(name) => drop(state.remove(name.as_bytes())),
        Step::Flush => {}
    }
    state
}

fn perform(environment: &Environment, step: &Step) -> Result<()> {
    if let Step::Flush = step {
        return environment.flush().map(|_| ());
    }
    let mut transaction = environment.write()?;
    apply(&mut transaction, step)?;
    transaction.commit().map(|_| ())
}

/// What is known after a run.
struct Known {
    acknowledged: Contents,
    /// What a commit without an answer would have made of it.
    pending: Option<Contents>,
}

/// Whether the fault must show as an error that ends writing.
fn is_fatal(call: Call, fault: Fault) -> bool {
    match fault {
        Fault::Eio => matches!(call, Call::WriteAt | Call::WriteDirect | Call::WriteDurable | Call::Sync),
        _ => call == Call::Sync,
    }
}

/// Runs the sequence on a disk whose call `number` fails, and checks what can be checked before a restart.
fn run(disk: &SimulatedDisk, number: u64, fault: Fault) -> Known {
    let mut known = Known { acknowledged: BTreeMap::new(), pending: None };
    disk.start_trace();
    disk.fail_at(number, fault);
    let struck = |disk: &SimulatedDisk| disk.faults_struck() > 0;
    let environment = match Environment::open_on(Arc::new(disk.clone()), options()) {
        Ok(environment) => environment,
        Err(error) => {
            assert!(struck(disk), "opening failed by itself: {error}");
            tell(&error, fault);
            return known;
        }
    };
    let mut failed = false;
    for (index, step) in steps().iter().enumerate() {
        let place = format!("call {number} {fault:?}, step {index}");
        let state = after(&known.acknowledged, step);
        let struck_before = struck(disk);
        match perform(&environment, step) {
            Ok(()) => known.acknowledged = state,
            // The flush after the commit before failed, which that commit did not answer for.
            Err(Error::Failed { .. }) if struck_before => failed = true,
            Err(error) if struck_before => {
                panic!("{place}: {error}: the fault struck in an earlier step");
            }
            Err(error) => {
                assert!(struck(disk), "{place}: failed by itself: {error}");
                tell(&error, fault);
                match perform(&environment, step) {
                    Ok(()) => known.acknowledged = state,
                    Err(Error::Failed { .. }) => {
                        if !matches!(step, Step::Flush) {
                            known.pending = Some(state);
                        }
                        failed = true;
                    }
                    Err(again) => panic!("{place}: {error}, and then {again}"),
                }
            }
        }
        assert_eq!(
            contents(&environment.read().unwrap()).unwrap(),
            known.acknowledged,
            "{place}: what readers see"
        );
        if failed {
            break;
        }
    }
    let traced = disk.take_trace();
    if let Some(call) = traced.iter().find(|call| call.fault.is_some()) {
        assert!(
            failed || !is_fatal(call.call, fault),
            "{fault:?} at {number} ({:?} of {}) is fatal",
            call.call,
            call.name
        );
        // Space is taken before a record is written, so a journal write that finds none is no ordinary full disk: what was queued behind
        // it is built on a commit that did not happen.
        if fault == Fault::Enospc && !call.call.is_sync() && call.call != Call::WriteDurable {
            assert!(!failed, "a full disk at {number} ({:?} of {}) is not fatal", call.call, call.name);
        }
    }
    // Closing may fail as well; the restart tells whether it did harm.
    if let Err(error) = environment.close() {
        assert!(struck(disk), "closing failed by itself: {error}");
    }
    known
}

/// The error says what happened.
fn tell(error: &Error, fault: Fault) {
    let expected = matches!(
        (error, fault),
        (Error::DiskFull { .. }, Fault::Enospc) | (Error::Io { .. } | Error::Failed { .. }, _)
    );
    assert!(expected, "{fault:?} became {error:?}");
    assert!(!error.to_string().is_empty());
}

/// Opens what is left and holds it against what is known; then goes on writing.
fn verify(disk: &SimulatedDisk, known: &Known, place: &str) {
    let environment = Environment::open_on(Arc::new(disk.clone()), options())
        .unwrap_or_else(|error| panic!("{place}: does not open: {error}"));
    let found = contents(&environment.read().unwrap()).unwrap();
    let whole = found == known.acknowledged || known.pending.as_ref() == Some(&found);
    assert!(whole, "{place}: an acknowledged commit is missing, or another half there");
    support::assert_checked(&environment, place);
    let step = Step::Commit(vec![("after", b"key".to_vec(), Some(vec![7; 1000]))]);
    let expected = after(&found, &step);
    perform(&environment, &step).unwrap_or_else(|error| panic!("{place}: does not go on: {error}"));
    drop(environment);
    let lost_power = disk.crash(99).unwrap();
    let environment = Environment::open_on(Arc::new(lost_power), options())
        .unwrap_or_else(|error| panic!("{place}: does not open again: {error}"));
    assert_eq!(
        contents(&environment.read().unwrap()).unwrap(),
        expected,
        "{place}: after going on and a power loss"
    );
}

fn every_call_fails(fault: Fault) {
    let disk = SimulatedDisk::new(0);
    let known = run(&disk, u64::MAX, fault);
    assert!(known.pending.is_none());
    let calls = disk.calls();
    assert!(calls > 50, "the sequence makes {calls} calls");
    println!("{calls} calls");
    for number in 1..=calls {
        let disk = SimulatedDisk::new(number);
        let known = run(&disk, number, fault);
        disk.clear_faults();
        for seed in 0..3 {
            let after = disk.crash(seed ^ number << 8).unwrap();
            verify(&after, &known, &format!("{fault:?} at call {number}, power loss {seed}"));
        }
        verify(&disk, &known, &format!("{fault:?} at call {number}, restart"));
    }
}

#[test]
fn every_call_fails_with_eio() {
    every_call_fails(Fault::Eio);
}

#[test]
fn every_call_fails_with_enospc() {
    every_call_fails(Fault::Enospc);
}

#[test]
fn the_power_goes_off_at_every_call() {
    let disk = SimulatedDisk::new(0);
    run(&disk, u64::MAX, Fault::Eio);
    for number in 1..=disk.calls() {
        let disk = SimulatedDisk::new(number);
        let known = run_until_power_loss(&disk, number);
        for seed in 0..4 {
            let after = disk.crash(seed ^ number << 8).unwrap();
            verify(&after, &known, &format!("power loss at call {number}, seed {seed}"));
        }
    }
}

fn run_until_power_loss(disk: &SimulatedDisk, number: u64) -> Known {
    let mut known = Known { acknowledged: BTreeMap::new(), pending: None };
    disk.fail_at(number, Fault::Crash);
    let Ok(environment) = Environment::open_on(Arc::new(disk.clone()), options()) else { return known };
    for step in &steps() {
        let state = after(&known.acknowledged, step);
        match perform(&environment, step) {
            Ok(()) => known.acknowledged = state,
            Err(_) => {
                assert!(disk.has_crashed());
                if !matches!(step, Step::Flush) {
                    known.pending = Some(state);
                }
                break;
            }
        }
    }
    known
}

#[test]
fn a_disk_that_stays_full_refuses_each_commit_until_there_is_room() {
    let disk = SimulatedDisk::new(5);
    let environment = Environment::open_on(Arc::new(disk.clone()), options()).unwrap();
    let mut expected = BTreeMap::new();
    for step in &steps()[..3] {
        perform(&environment, step).unwrap();
        expected = after(&expected, step);
    }
    disk.set_capacity(Some(disk.used()));
    let large = Step::Commit((0..40).map(|i| ("values", vec![b'l', i], Some(vec![i; 100_000]))).collect());
    for _ in 0..5 {
        let error = perform(&environment, &large).unwrap_err();
        assert!(matches!(error, Error::DiskFull { .. }), "{error:?}");
        assert_eq!(contents(&environment.read().unwrap()).unwrap(), expected);
    }
    disk.set_capacity(None);
    perform(&environment, &large).unwrap();
    expected = after(&expected, &large);
    let lost_power = disk.crash(1).unwrap();
    let environment = Environment::open_on(Arc::new(lost_power), options()).unwrap();
    assert_eq!(contents(&environment.read().unwrap()).unwrap(), expected);
    support::assert_checked(&environment, "after the full disk");
}
