//! The engine through its public verbs: transactions, snapshots, savepoints, large values, reopening, merging.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jackdaw_storage::disk::SimulatedDisk;
use jackdaw_storage::{Environment, Error, Options};

fn small() -> Options {
    Options::default().journal_file_sizes(64 << 10, 1 << 20).map_reserve(64 << 20)
}

fn key(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

fn value(i: u64, size: usize) -> Vec<u8> {
    (0..size).map(|j| (i as usize * 31 + j * 7) as u8).collect()
}

#[test]
fn committed_data_is_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..3_u64 {
        let env = Environment::open(dir.path(), small()).unwrap();
        for tx_number in 0..20 {
            let mut tx = env.write().unwrap();
            let mut tree = tx.create_tree(b"t").unwrap();
            for i in 0..50 {
                let n = round * 10_000 + tx_number * 100 + i;
                tree.put(&key(n * 7919 % 100_000), &value(n, (n % 700) as usize)).unwrap();
            }
            drop(tree);
            tx.commit().unwrap();
        }
        let snapshot = env.read().unwrap();
        let tree = snapshot.tree(b"t").unwrap();
        assert_eq!(tree.len(), (round + 1) * 1000);
        for n in (0..=round)
            .flat_map(|r| (0..20).flat_map(move |t| (0..50).map(move |i| r * 10_000 + t * 100 + i)))
        {
            assert_eq!(tree.get(&key(n * 7919 % 100_000)).unwrap(), Some(&value(n, (n % 700) as usize)[..]));
        }
        drop(snapshot);
        match round {
            0 => env.close().unwrap(),
            1 => drop(env),
            _ => {
                env.flush().unwrap();
                drop(env);
            }
        }
    }
}

/// What a transaction has opened stays open for the next one, with what it knows of the end of each tree.
#[test]
fn what_stays_open_between_transactions_is_what_was_committed() {
    let dir = tempfile::tempdir().unwrap();
    let env = Environment::open(dir.path(), small()).unwrap();
    let put = |keys: std::ops::Range<u64>, commits: bool| {
        let mut tx = env.write().unwrap();
        for i in keys {
            tx.create_tree(b"t").unwrap().put(&key(i), &value(i, 300)).unwrap();
            tx.create_fixed_tree(b"f", 8).unwrap().put(i as i64, &key(i)).unwrap();
        }
        if commits {
            tx.commit().unwrap();
        }
    };
    let mut expected = 0;
    for round in 0..30_u64 {
        put(expected..expected + 40, true);
        expected += 40;
        put(expected..expected + 100, false); // undone, with the pages that it added
        let mut tx = env.write().unwrap();
        let savepoint = tx.savepoint();
        tx.create_tree(b"t").unwrap().put(&key(u64::MAX), b"undone").unwrap();
        assert!(tx.drop_tree(b"f").unwrap());
        tx.rollback_to(savepoint).unwrap();
        tx.create_tree(b"t").unwrap().put(&key(expected / 2), &value(expected / 2, 300)).unwrap();
        tx.commit().unwrap();
        if round % 7 == 0 {
            env.flush().unwrap();
        }
    }
    let snapshot = env.read().unwrap();
    let (tree, fixed) = (snapshot.tree(b"t").unwrap(), snapshot.fixed_tree(b"f").unwrap());
    assert_eq!((tree.len(), fixed.len()), (expected, expected));
    for i in 0..expected {
        assert_eq!(tree.get(&key(i)).unwrap(), Some(&value(i, 300)[..]), "{i}");
        assert_eq!(fixed.get(i as i64).unwrap(), Some(&key(i)[..]), "{i}");
    }
    drop(snapshot);
    // Gone is gone, and another kind may take the name.
    let mut tx = env.write().unwrap();
    assert!(tx.drop_tree(b"t").unwrap());
    tx.rename_tree(b"f", b"g").unwrap();
    tx.commit().unwrap();
    let mut tx = env.write().unwrap();
    assert!(matches!(tx.tree_mut(b"t").map(drop), Err(Error::TreeNotFound { .. })));
    assert!(matches!(tx.tree_mut(b"g").map(drop), Err(Error::TreeKind { .. })));
    tx.create_multi_tree(b"t").unwrap().add(b"key", b"value").unwrap();
    tx.commit().unwrap();
    let report = env.read().unwrap().check().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn values_of_every_size_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let sizes =
        [0, 1, 511, 512, 513, 4000, 8151, 8152, 8153, 8160, 8161, 20_000, 262_143, 262_144, 300_000, 3 << 20];
    let env = Environment::open(dir.path(), small()).unwrap();
    for round in 0..3 {
        let mut tx = env.write().unwrap();
        let mut tree = tx.create_tree(b"t").unwrap();
        for (i, &size) in sizes.iter().enumerate() {
            tree.put(&key(i as u64), &value(i as u64 + round, size)).unwrap();
        }
        drop(tree);
        tx.commit().unwrap();
        let check = |env: &Environment| {
            let snapshot = env.read().unwrap();
            let tree = snapshot.tree(b"t").unwrap();
            for (i, &size) in sizes.iter().enumerate() {
                assert!(
                    tree.get(&key(i as u64)).unwrap() == Some(&value(i as u64 + round, size)[..]),
                    "{size}"
                );
            }
        };
        check(&env);
        env.flush().unwrap();
        check(&env);
    }
    drop(env);
    let env = Environment::open(dir.path(), small().read_only(true)).unwrap();
    let snapshot = env.read().unwrap();
    let tree = snapshot.tree(b"t").unwrap();
    for (i, &size) in sizes.iter().enumerate() {
        assert!(tree.get(&key(i as u64)).unwrap() == Some(&value(i as u64 + 2, size)[..]), "{size}");
    }
}

#[test]
fn snapshots_keep_what_they_saw() {
    let dir = tempfile::tempdir().unwrap();
    let env = Environment::open(dir.path(), small()).unwrap();
    let mut snapshots = Vec::new();
    for round in 0..30_u64 {
        let mut tx = env.write().unwrap();
        let mut tree = tx.create_tree(b"t").unwrap();
        for i in 0..300 {
            tree.put(&key(i * 13 % 300), &value(round + i, 100)).unwrap();
        }
        drop(tree);
        tx.commit().unwrap();
        snapshots.push((round, env.read().unwrap()));
        if round % 5 == 4 {
            env.flush().unwrap();
        }
        if round % 7 == 6 {
            snapshots.remove(snapshots.len() / 2);
        }
        for (then, snapshot) in &snapshots {
            let tree = snapshot.tree(b"t").unwrap();
            for i in 0..300 {
                assert_eq!(tree.get(&key(i * 13 % 300)).unwrap(), Some(&value(then + i, 100)[..]));
            }
        }
    }
}

#[test]
fn savepoints_undo_their_part_alone() {
    let dir = tempfile::tempdir().unwrap();
    let env = Environment::open(dir.path(), small()).unwrap();
    let mut tx = env.write().unwrap();
    tx.create_tree(b"t").unwrap().put(b"a", b"1").unwrap();
    let outer = tx.savepoint();
    tx.tree_mut(b"t").unwrap().put(b"b", b"2").unwrap();
    let inner = tx.savepoint();
    tx.tree_mut(b"t").unwrap().put(b"a", &[3; 5000]).unwrap();
    tx.create_tree(b"u").unwrap().put(b"x", b"y").unwrap();
    tx.rollback_to(inner).unwrap();
    assert!(matches!(tx.tree(b"u"), Err(Error::TreeNotFound { .. })));
    assert_eq!(tx.tree(b"t").unwrap().get(b"a").unwrap(), Some(&b"1"[..]));
    assert_eq!(tx.tree(b"t").unwrap().get(b"b").unwrap(), Some(&b"2"[..]));
    tx.release(outer).unwrap();
    let again = tx.savepoint();
    for i in 0..10_000 {
        tx.tree_mut(b"t").unwrap().put(&key(i), &[7; 100]).unwrap();
    }
    tx.rollback_to(again).unwrap();
    assert_eq!(tx.tree(b"t").unwrap().len(), 2);
    tx.commit().unwrap();
    let mut tx = env.write().unwrap();
    assert!(tx.drop_tree(b"t").unwrap());
    tx.rollback();
    let snapshot = env.read().unwrap();
    assert_eq!(snapshot.tree(b"t").unwrap().len(), 2);
    assert_eq!(snapshot.trees().unwrap().len(), 1);
}

#[test]
fn many_threads_submit_and_each_has_its_own_error() {
    let dir = tempfile::tempdir().unwrap();
    let env = Environment::open(dir.path(), small()).unwrap();
    let (done, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|s| {
        for thread in 0..16_u64 {
            let (env, done, refused) = (env.clone(), &done, &refused);
            s.spawn(move || {
                for i in 0..200_u64 {
                    let n = thread << 32 | i;
                    let result: Result<u64, Error> = env.submit(|tx| {
                        tx.create_tree(b"t")?.put(&key(n), &value(n, 50))?;
                        if i % 10 == 3 {
                            return Err(Error::Invalid("no".to_owned()));
                        }
                        assert!(i % 10 != 7, "panics belong to the job");
                        Ok(n)
                    });
                    match result {
                        Ok(got) => {
                            assert_eq!(got, n);
                            let snapshot = env.read().unwrap();
                            assert!(snapshot.tree(b"t").unwrap().contains(&key(n)).unwrap());
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(Error::Invalid(_) | Error::JobPanicked(_)) => {
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    assert_eq!((done.into_inner(), refused.into_inner()), (16 * 160, 16 * 40));
    assert_eq!(env.read().unwrap().tree(b"t").unwrap().len(), 16 * 160);
}

#[test]
fn tickets_become_durable_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let env = Environment::open(dir.path(), small()).unwrap();
    let mut tickets = Vec::new();
    for i in 0..100 {
        let mut tx = env.write().unwrap();
        tx.create_tree(b"t").unwrap().put(&key(i % 10), &value(i, 3000)).unwrap();
        tickets.push(tx.commit_later().unwrap());
    }
    for ticket in tickets.into_iter().rev() {
        let id = ticket.wait().unwrap();
        assert!(env.last_transaction() >= id);
    }
    let snapshot = env.read().unwrap();
    for i in 90..100 {
        assert_eq!(snapshot.tree(b"t").unwrap().get(&key(i % 10)).unwrap(), Some(&value(i, 3000)[..]));
    }
}

#[test]
fn a_crash_of_the_simulated_disk_loses_nothing_acknowledged() {
    for seed in 0..60 {
        let mut disk = SimulatedDisk::new(seed);
        let mut expected: std::collections::BTreeMap<[u8; 8], Vec<u8>> = std::collections::BTreeMap::new();
        let options =
            || small().background(false).scratch_size_max(1 << 20).journal_size_before_flush(200_000);
        for life in 0..4_u64 {
            let env = Environment::open_on(Arc::new(disk.clone()), options()).unwrap();
            if life > 0 {
                let snapshot = env.read().unwrap();
                let tree = snapshot.tree(b"t").unwrap();
                assert_eq!(tree.len(), expected.len() as u64, "seed {seed}");
                for (k, v) in &expected {
                    assert_eq!(tree.get(k).unwrap(), Some(&v[..]), "seed {seed}");
                }
            }
            for i in 0..30 + seed % 7 {
                let mut tx = env.write().unwrap();
                let mut tree = tx.create_tree(b"t").unwrap();
                for j in 0..10 {
                    let n = (life * 1000 + i * 10 + j) * 7919 % 500;
                    let (k, v) = (key(n), value(n + i, (n * 13 % 2000) as usize));
                    if n % 11 == 0 {
                        expected.remove(&k);
                        tree.delete(&k).unwrap();
                    } else {
                        tree.put(&k, &v).unwrap();
                        expected.insert(k, v);
                    }
                }
                drop(tree);
                tx.commit().unwrap();
            }
            let crashed = disk.crash(seed * 10 + life).unwrap();
            std::mem::forget(env); // its process is gone
            disk = crashed;
        }
    }
}

#[test]
fn bad_input_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let env = Environment::open(dir.path(), small()).unwrap();
    let mut tx = env.write().unwrap();
    assert!(matches!(tx.tree_mut(b"none"), Err(Error::TreeNotFound { .. })));
    assert!(matches!(tx.create_tree(b""), Err(Error::KeyEmpty)));
    let mut tree = tx.create_tree(b"t").unwrap();
    assert!(matches!(tree.put(b"", b"v"), Err(Error::KeyEmpty)));
    assert!(matches!(tree.put(&[1; 2049], b"v"), Err(Error::KeyTooLong { size: 2049, max: 2048 })));
    assert!(tree.is_empty());
    tree.put(&[1; 2048], b"v").unwrap();
    drop(tree);
    tx.commit().unwrap();
    assert!(
        matches!(Environment::open(dir.path(), small()), Err(Error::Locked { pid, .. }) if pid == std::process::id())
    );
    let held = env.read().unwrap();
    assert!(matches!(env.clone().close(), Err(Error::Invalid(_))));
    drop(held);
    let other = env.clone();
    env.close().unwrap();
    assert!(matches!(other.read(), Err(Error::Closed)));
    assert!(matches!(other.write(), Err(Error::Closed)));
    drop(other);
    let env = Environment::open(dir.path(), small().read_only(true)).unwrap();
    assert!(matches!(env.write(), Err(Error::ReadOnly)));
    assert_eq!(env.read().unwrap().tree(b"t").unwrap().len(), 1);
    drop(env);
    assert!(matches!(
        Environment::open(dir.path().join("nothing"), small().create(false)),
        Err(Error::NotFound { .. })
    ));
}

/// Puts, replaces and deletes values of many sizes in two trees, with flushes in between.
fn fill(env: &Environment) {
    for round in 0..6_u64 {
        let mut tx = env.write().unwrap();
        for name in [&b"a"[..], b"b"] {
            let mut tree = tx.create_tree(name).unwrap();
            for i in 0..400 {
                let n = (round * 400 + i) * 7919 % 1000;
                let size = *[10, 700, 5000, 9000, 70_000, 300_000].get((n % 41) as usize).unwrap_or(&100);
                if n % 5 == round % 5 {
                    tree.delete(&key(n)).unwrap();
                } else {
                    tree.put(&key(n), &value(n, size)).unwrap();
                }
            }
        }
        tx.commit().unwrap();
        if round % 2 == 1 {
            env.flush().unwrap();
        }
    }
}

fn contents(env: &Environment) -> Vec<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    let snapshot = env.read().unwrap();
    let mut all = Vec::new();
    for (name, _) in snapshot.trees().unwrap() {
        let mut entries = snapshot.tree(&name).unwrap().iter().unwrap();
        while let Some((key, value)) = entries.next().unwrap() {
            all.push((name.clone(), key.to_vec(), value.to_vec()));
        }
    }
    all
}

#[test]
fn check_is_clean_and_copies_are_equal() {
    let dir = tempfile::tempdir().unwrap();
    let env = Environment::open(dir.path().join("original"), small()).unwrap();
    fill(&env);
    let report = env.check().unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
    assert_eq!(report.trees.len(), 2);
    let expected = contents(&env);

    env.backup(dir.path().join("backup")).unwrap();
    let mut stream = Vec::new();
    env.backup_to(&mut stream).unwrap();
    jackdaw_storage::restore(&mut &stream[..], dir.path().join("restored")).unwrap();
    env.compact(dir.path().join("compact")).unwrap();
    // Changes after the backup are not in it.
    let mut tx = env.write().unwrap();
    tx.drop_tree(b"a").unwrap();
    tx.commit().unwrap();
    assert!(env.check().unwrap().is_clean());
    for name in ["backup", "restored", "compact"] {
        let copy = Environment::open(dir.path().join(name), small()).unwrap();
        assert!(contents(&copy) == expected, "{name}");
        let report = copy.check().unwrap();
        assert!(report.is_clean(), "{name}: {:#?}", report.problems);
        fill(&copy);
        assert!(copy.check().unwrap().is_clean());
    }
    assert!(matches!(env.backup(dir.path().join("backup")), Err(Error::Invalid(_))));
    for at in (0..stream.len()).step_by(stream.len() / 50) {
        let mut bad = stream.clone();
        bad[at] ^= 0x40;
        let target = dir.path().join(format!("bad{at}"));
        assert!(jackdaw_storage::restore(&mut &bad[..], &target).is_err(), "a flipped bit at {at}");
        assert!(Environment::open(&target, small().create(false)).is_err());
        assert!(jackdaw_storage::restore(&mut &stream[..at], dir.path().join(format!("cut{at}"))).is_err());
    }
}

#[test]
fn check_finds_damage_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let env = Environment::open(dir.path(), small()).unwrap();
    fill(&env);
    env.close().unwrap();
    let path = dir.path().join("data");
    let mut bytes = std::fs::read(&path).unwrap();
    let env = Environment::open(dir.path(), small()).unwrap();
    let snapshot = env.read().unwrap();
    let leaf = (1..bytes.len() as u64 / 8192)
        .find(|&n| snapshot.dump_page(jackdaw_storage::PageNumber(n)).unwrap().kind == "leaf")
        .unwrap() as usize;
    drop(snapshot);
    env.close().unwrap();
    bytes[leaf * 8192 + 5000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let env = Environment::open(dir.path(), small()).unwrap();
    let report = env.check().unwrap();
    assert!(
        report.problems.iter().any(|p| p.page.0 == leaf as u64 && p.text.contains("checksum")),
        "{report:#?}"
    );
}
