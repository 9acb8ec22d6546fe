//! Costs in counts, which no machine changes.

use jackdaw_indexing::reduce::{Applied, Batch, Engine, Options};
use jackdaw_storage::{Environment, Options as StorageOptions};
use jackdaw_testkit::temporary_directory;

use crate::model::{AddUp, Mapped, Model, Sums, key_of};

fn result(key: u32, number: i64) -> Mapped {
    Mapped { key, number, padding: 0 }
}

fn apply(engine: &Engine, batch: &mut Batch) -> Applied {
    let applied = engine.apply(batch, &mut |_| Ok(Vec::new()), &|| AddUp(true), 1).unwrap();
    batch.clear();
    applied
}

/// 100,000 results of one key, and then one document changes, in many places of the tree.
#[test]
fn a_changed_document_costs_the_depth_and_not_the_key() {
    let directory = temporary_directory();
    let environment = Environment::open(directory.path(), StorageOptions::default()).unwrap();
    let engine = Engine::open(environment, &Options::default()).unwrap();
    let (mut model, mut batch) = (Model::default(), Batch::new());
    let total = 100_000;
    for start in (0..total).step_by(10_000) {
        for number in start..start + 10_000 {
            model.put(&mut batch, &format!("documents/{number:06}"), vec![result(0, number)], true);
        }
        let applied = apply(&engine, &mut batch);
        // Adding is a small multiple of what is added, however much is there already.
        assert!(applied.cost.packs_reduced < 40_000, "{applied:?}");
    }
    model.compare(&engine.read().unwrap()).unwrap();

    // 4000 bytes hold some 90 results of 41 bytes: three levels.
    for number in [0, 1, 77_777, 50_000, 99_999, 12_345] {
        model.put(&mut batch, &format!("documents/{number:06}"), vec![result(0, -number - 1)], false);
        let applied = apply(&engine, &mut batch);
        assert_eq!((applied.results_replaced, applied.keys, applied.keys_changed), (1, 1, 1));
        let cost = applied.cost;
        assert_eq!((cost.nodes_read, cost.nodes_written, cost.reductions), (2, 2, 3), "document {number}");
        assert!(cost.packs_reduced < 300, "{cost:?}");
    }
    // A document that goes, and one that comes.
    model.put(&mut batch, "documents/040000", Vec::new(), false);
    let cost = apply(&engine, &mut batch).cost;
    assert!(cost.reductions <= 4 && cost.nodes_read <= 3, "{cost:?}");
    model.put(&mut batch, "documents/new", vec![result(0, 5)], false);
    let cost = apply(&engine, &mut batch).cost;
    assert!(cost.reductions <= 4 && cost.packs_reduced < 300, "{cost:?}");
    model.compare(&engine.read().unwrap()).unwrap();
}

/// A key shrinks with its results: nodes are joined, and the last ones leave nothing behind.
#[test]
fn a_key_shrinks_to_nothing() {
    let directory = temporary_directory();
    let environment = Environment::open(directory.path(), StorageOptions::default()).unwrap();
    let engine = Engine::open(environment, &Options::default()).unwrap();
    let (mut model, mut batch) = (Model::default(), Batch::new());
    let total = 20_000;
    for number in 0..total {
        model.put(&mut batch, &format!("documents/{number}"), vec![result(0, number)], true);
    }
    apply(&engine, &mut batch);
    let full = engine.read().unwrap().statistics().unwrap().nodes;
    assert!(full > 200, "{full} nodes");
    // All but every hundredth, a stride at a time, so that all nodes empty evenly.
    for stride in 1..100 {
        for number in (stride..total).step_by(100) {
            model.put(&mut batch, &format!("documents/{number}"), Vec::new(), false);
        }
        apply(&engine, &mut batch);
    }
    let snapshot = engine.read().unwrap();
    model.compare(&snapshot).unwrap();
    let left = snapshot.statistics().unwrap().nodes;
    assert!(left < full / 20, "{left} of {full} nodes are left");
    drop(snapshot);
    for number in (0..total).step_by(100) {
        model.put(&mut batch, &format!("documents/{number}"), Vec::new(), false);
    }
    apply(&engine, &mut batch);
    let snapshot = engine.read().unwrap();
    model.compare(&snapshot).unwrap();
    let statistics = snapshot.statistics().unwrap();
    assert_eq!((statistics.documents, statistics.results, statistics.keys, statistics.nodes), (0, 0, 0, 0));
}

/// One document to many keys, all of them large: a batch touches each once, on several threads.
#[test]
fn scattered_keys_are_each_touched_once() {
    let directory = temporary_directory();
    let environment = Environment::open(directory.path(), StorageOptions::default()).unwrap();
    let engine = Engine::open(environment, &Options { node_bytes_max: 512, node_items_max: 512 }).unwrap();
    let (mut model, mut batch) = (Model::default(), Batch::new());
    let keys = 2000;
    for number in 0..1500u32 {
        let results = (0..30).map(|at| result((number * 7 + at * 67) % keys, i64::from(number))).collect();
        model.put(&mut batch, &format!("documents/{number}"), results, true);
        if batch.documents() == 300 {
            let applied = engine.apply(&mut batch, &mut |_| Ok(Vec::new()), &|| AddUp(true), 2).unwrap();
            assert_eq!(applied.keys, batch.keys() as u64);
            // Each key's leaf and what it takes to hold the new results, not one reduction for each result.
            assert!(applied.cost.reductions <= 4 * applied.keys, "{applied:?}");
            batch.clear();
        }
    }
    model.compare(&engine.read().unwrap()).unwrap();
    let snapshot = engine.read().unwrap();
    let reduced = snapshot.result(key_of(5).as_bytes()).unwrap().unwrap();
    assert_eq!(Sums::from_pack(reduced.pack.unwrap()).count as u64, reduced.count);
}

/// What a batch holds is told while it is filled, and is near the truth.
#[test]
fn a_batch_tells_its_size() {
    let mut batch = Batch::new();
    for number in 0..10_000 {
        batch.begin(format!("documents/{number}").as_bytes(), true);
        for tag in 0..4 {
            batch.emit(key_of(number * 3 + tag).as_bytes(), &[0; 40]);
        }
    }
    assert_eq!((batch.documents(), batch.results()), (10_000, 40_000));
    let payload = 40_000 * 40 + 10_000 * 14;
    assert!(batch.bytes() > payload && batch.bytes() < 8 * payload, "{} bytes", batch.bytes());
}
