//! What the simulated disk loses, tears and refuses, and that it replays from its seed.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::super::conformance::{Aligned, conformance_tests, read};
use super::*;

conformance_tests!((SimulatedDisk::new(1), ()));

fn with_data() -> (SimulatedDisk, Arc<dyn File>) {
    let disk = SimulatedDisk::new(7);
    disk.create_directory("journal").unwrap();
    let file = disk.open("data", OpenMode::Create).unwrap();
    file.prewrite(16 << 10).unwrap();
    disk.sync_directory("").unwrap();
    (disk, file)
}

/// What 100 seeds leave of `data`.
fn survivors(disk: &SimulatedDisk) -> BTreeSet<Option<Vec<u8>>> {
    (0..100).map(|seed| disk.crash(seed).unwrap().contents("data")).collect()
}

#[test]
fn a_crash_keeps_what_was_durable_and_some_of_the_rest() {
    let (disk, file) = with_data();
    file.write_durable(0, Aligned::new(&[1; 4096]).get()).unwrap();
    file.write_at(4096, &[2; 8192]).unwrap();
    let lock = disk.lock().unwrap().ok().unwrap();
    let seen = survivors(&disk);
    assert!(seen.len() > 10);
    for bytes in &seen {
        let bytes = bytes.as_ref().unwrap();
        assert_eq!(bytes[..4096], [1; 4096]);
        assert!(bytes[4096..].chunks(512).all(|sector| sector == [0; 512] || sector == [2; 512]));
    }
    file.sync().unwrap();
    assert_eq!(survivors(&disk).len(), 1);
    // The survivor is a disk of its own, not locked.
    let after = disk.crash(3).unwrap();
    let _lock_after = after.lock().unwrap().ok().unwrap();
    drop(lock);
    after.open("data", OpenMode::Write).unwrap().write_at(0, b"apart").unwrap();
    assert_eq!(read(&*file, 0, 5), [1; 5]);
}

#[test]
fn one_seed_leaves_one_disk() {
    let (disk, file) = with_data();
    file.write_at(0, &[3; 16 << 10]).unwrap();
    for seed in 0..20 {
        assert_eq!(disk.crash(seed).unwrap().contents("data"), disk.crash(seed).unwrap().contents("data"));
    }
}

#[test]
fn names_are_durable_after_their_directory_is_synced() {
    let (disk, file) = with_data();
    let journal = disk.open("journal/1", OpenMode::Create).unwrap();
    journal.prewrite(8192).unwrap();
    let names = |disk: &SimulatedDisk| -> BTreeSet<Vec<String>> {
        (0..50).map(|seed| disk.crash(seed).unwrap().names()).collect()
    };
    assert_eq!(names(&disk).len(), 2, "a synced file in a directory that is not may be gone");
    disk.sync_directory("").unwrap();
    assert_eq!(names(&disk).len(), 2, "another directory does not help");
    disk.sync_directory("journal").unwrap();
    assert_eq!(names(&disk).len(), 1);
    disk.remove("data").unwrap();
    drop(file);
    let found: BTreeSet<_> = survivors(&disk);
    assert_eq!(found, BTreeSet::from([None, Some(vec![0; 16 << 10])]), "a removed file may come back whole");
    disk.sync_directory("").unwrap();
    assert_eq!(survivors(&disk), BTreeSet::from([None]));
    assert_eq!(disk.used(), 8192, "nothing is kept of it");
}

#[test]
fn the_numbered_call_fails_once_or_for_good() {
    let (disk, file) = with_data();
    let next = disk.calls() + 1;
    disk.fail_at(next + 1, Fault::Eio);
    file.len().unwrap();
    assert_eq!(file.len().unwrap_err().raw_os_error(), Some(Errno::IO.raw_os_error()));
    file.len().unwrap();
    let mutating = disk.mutating_calls() + 1;
    disk.fail_from_mutating(mutating, Fault::Enospc);
    file.len().unwrap();
    for _ in 0..3 {
        assert_eq!(file.write_at(0, b"x").unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
    assert_eq!(read(&*file, 0, 1), [0], "nothing was written");
    disk.clear_faults();
    file.write_at(0, b"x").unwrap();
    disk.fail_at_mutating(disk.mutating_calls() + 1, Fault::Eio);
    disk.fail_from(disk.calls() + 3, Fault::Enospc);
    file.len().unwrap();
    assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(Errno::IO.raw_os_error()));
    assert!(file.len().is_err() && disk.exists("data").is_err());
}

#[test]
fn after_the_power_is_off_nothing_works() {
    let (disk, file) = with_data();
    disk.fail_at(disk.calls() + 1, Fault::Crash);
    file.write_durable(0, Aligned::new(&[1; 4096]).get()).unwrap_err();
    assert!(disk.has_crashed());
    disk.clear_faults();
    let calls = disk.calls();
    assert!(file.len().is_err() && file.sync().is_err() && disk.open("data", OpenMode::Read).is_err());
    assert!(disk.lock().is_err() && disk.list("").is_err());
    assert_eq!(disk.calls(), calls);
    // The write in flight is torn between sectors, lost, or there.
    let seen = survivors(&disk);
    let count = |byte| seen.iter().flatten().filter(|bytes| bytes[..4096] == [byte; 4096]).count();
    assert_eq!((count(0), count(1)), (1, 1));
    assert!(seen.len() > 10);
}

#[test]
fn a_crash_in_a_change_of_names_leaves_it_done_or_not() {
    for change in [
        |disk: &SimulatedDisk| disk.rename("data", "journal/data"),
        |disk: &SimulatedDisk| disk.remove("data"),
        |disk: &SimulatedDisk| disk.open("new", OpenMode::Create).map(|_| ()),
    ] {
        let (disk, _file) = with_data();
        disk.fail_at(disk.calls() + 1, Fault::Crash);
        change(&disk).unwrap_err();
        let seen: BTreeSet<_> = (0..50).map(|seed| disk.crash(seed).unwrap().names()).collect();
        assert_eq!(seen.len(), 2);
        assert!(seen.contains(&vec!["data".to_owned()]));
    }
}

#[test]
fn a_full_disk_says_so() {
    let (disk, file) = with_data();
    disk.set_capacity(Some(20 << 10));
    assert_eq!(file.allocate(21 << 10).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(file.prewrite(21 << 10).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(file.write_at(20 << 10, b"x").unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(file.len().unwrap(), 16 << 10);
    file.write_at(0, &[1; 16 << 10]).unwrap();
    file.allocate(20 << 10).unwrap();
    let other = disk.open("other", OpenMode::Create).unwrap();
    assert_eq!(other.write_at(0, b"x").unwrap_err().kind(), io::ErrorKind::StorageFull);
    file.truncate(0).unwrap();
    other.write_at(0, b"x").unwrap();
    assert_eq!(disk.used(), 1);
}

#[test]
fn random_faults_follow_their_seed() {
    let run = |seed| {
        let (disk, file) = with_data();
        disk.fail_randomly(seed, 100_000, &[Fault::Eio, Fault::Enospc]);
        (0..300).map(|_| file.len().map_err(|error| error.kind())).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    let failed = run(1).iter().filter(|result| result.is_err()).count();
    assert!((10..60).contains(&failed), "{failed} of 300");
}

#[test]
fn snapshots_keep_what_is_not_durable() {
    let (disk, file) = with_data();
    file.write_at(0, b"unsynced").unwrap();
    let _lock = disk.lock().unwrap().ok().unwrap();
    let snapshot = disk.snapshot().unwrap();
    assert!(snapshot.lock().unwrap().is_ok());
    assert_eq!(snapshot.contents("data"), disk.contents("data"));
    assert_eq!(survivors(&snapshot), survivors(&disk));
    file.write_at(0, b"later").unwrap();
    assert_eq!(&snapshot.contents("data").unwrap()[..8], b"unsynced");
}

#[test]
fn damage_is_durable_and_seen_through_maps() {
    let (disk, file) = with_data();
    let map = file.map(1 << 20).unwrap();
    disk.damage("data", 5, b"damaged").unwrap();
    // SAFETY: the bytes lie inside the file and nobody writes them now.
    assert_eq!(unsafe { std::slice::from_raw_parts(map.base().add(5), 7) }, b"damaged");
    assert_eq!(&disk.crash(1).unwrap().contents("data").unwrap()[5..12], b"damaged");
    assert!(disk.damage("nothing", 0, b"x").is_err());
    disk.set_contents("data", b"short").unwrap();
    disk.set_contents("made/up", b"new").unwrap();
    let after = disk.crash(1).unwrap();
    assert_eq!(after.contents("data").unwrap(), b"short");
    assert_eq!(after.contents("made/up").unwrap(), b"new");
}

#[test]
fn without_direct_writes_a_durable_write_syncs_the_file() {
    let (disk, file) = with_data();
    disk.set_direct(false);
    assert!(!file.is_direct());
    file.write_at(8192, &[1; 100]).unwrap();
    file.write_durable(0, Aligned::new(&[2; 4096]).get()).unwrap();
    assert_eq!(survivors(&disk).len(), 1);
}

#[test]
fn the_trace_tells_what_was_called() {
    let (disk, file) = with_data();
    disk.start_trace();
    disk.fail_at(disk.calls() + 2, Fault::Eio);
    file.write_at(0, b"x").unwrap();
    file.sync().unwrap_err();
    disk.open("new", OpenMode::Create).unwrap();
    let traced = |call, name: &str, fault| TracedCall { call, name: name.to_owned(), fault };
    let expected = [
        traced(Call::WriteAt, "data", None),
        traced(Call::Sync, "data", Some(Fault::Eio)),
        traced(Call::Create, "new", None),
    ];
    assert_eq!(disk.take_trace(), expected);
    assert!(disk.take_trace().is_empty());
}
