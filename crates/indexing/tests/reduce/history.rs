//! Random histories of puts, updates and deletes: the engine's state equals recomputation from scratch after every batch.

use jackdaw_indexing::reduce::{Applied, Batch, Engine, Error, Options};
use jackdaw_storage::disk::SimulatedDisk;
use jackdaw_storage::{Environment, Options as StorageOptions};
use jackdaw_testkit::{Random, Seeds};
use std::sync::Arc;

use crate::model::{AddUp, Mapped, Model, POISON};

/// How a seed's history looks.
pub(crate) struct Shape {
    documents: usize,
    keys: usize,
    results_max: usize,
    padding_max: usize,
    batch: usize,
    poison: bool,
    threads: usize,
    incremental: bool,
    pub(crate) options: Options,
}

impl Shape {
    pub(crate) fn of(random: &mut Random) -> Shape {
        Shape {
            documents: 1 + random.skewed(9),
            keys: 1 + random.skewed(7),
            results_max: 1 + random.skewed(4),
            padding_max: 1 + random.skewed(8),
            batch: 1 + random.skewed(8),
            poison: random.one_in(4),
            threads: 1 + random.below(3),
            incremental: random.one_in(2),
            options: Options { node_bytes_max: 64 + random.skewed(10), node_items_max: 4 + random.skewed(6) },
        }
    }

    /// Applies a batch as this seed does.
    pub(crate) fn apply(
        &self,
        engine: &Engine,
        batch: &mut Batch,
        position: &[u8],
    ) -> Result<Applied, Error> {
        let incremental = self.incremental;
        engine.apply(batch, &mut |_| Ok(position.to_vec()), &|| AddUp(incremental), self.threads)
    }

    fn result(&self, random: &mut Random) -> Mapped {
        let number = if self.poison && random.one_in(50) { POISON } else { random.below(1000) as i64 - 300 };
        // Some keys are much more frequent than others.
        let key = random.below(self.keys).min(random.below(self.keys)) as u32;
        Mapped { key, number, padding: random.below(self.padding_max) }
    }

    /// Fills a batch with random changes, and makes them in the model.
    pub(crate) fn fill(&self, random: &mut Random, model: &mut Model, batch: &mut Batch) {
        let deleting = random.one_in(5);
        let promise = random.one_in(2);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1 + random.below(self.batch) {
            let id = format!("documents/{}", random.below(self.documents));
            let old = model.documents.get(&id).cloned();
            // A promise that a document is new is about the environment, so not for one that the batch has already.
            let promise = promise && seen.insert(id.clone());
            let results = match old {
                Some(_) if random.one_in(if deleting { 2 } else { 8 }) => Vec::new(),
                // The same again.
                Some(old) if random.one_in(4) => old,
                // One of several changes, one goes, one comes.
                Some(mut old) if random.one_in(2) => {
                    let at = random.below(old.len());
                    if random.one_in(3) {
                        old.remove(at);
                    } else if random.one_in(2) {
                        old[at] = self.result(random);
                    } else {
                        old.insert(at, self.result(random));
                    }
                    old
                }
                _ => (0..random.below(self.results_max + 1)).map(|_| self.result(random)).collect(),
            };
            model.put(batch, &id, results, promise);
        }
    }
}

fn history(seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let shape = Shape::of(&mut random);
    let disk = SimulatedDisk::new(seed);
    let storage = StorageOptions::default().background(false).journal_file_sizes(32 << 10, 128 << 10);
    let open =
        || Environment::open_on(Arc::new(disk.clone()), storage.clone()).map_err(|error| error.to_string());
    let mut engine = Engine::open(open()?, &shape.options).map_err(|error| error.to_string())?;
    let mut model = Model::default();
    let mut batch = Batch::new();
    for number in 0..random.within(2..30) {
        batch.clear();
        shape.fill(&mut random, &mut model, &mut batch);
        let position = number.to_le_bytes();
        let applied = shape.apply(&engine, &mut batch, &position);
        let applied = applied.map_err(|error| format!("batch {number}: {error}"))?;
        let results: u64 = model.documents.values().map(|results| results.len() as u64).sum();
        let snapshot = engine.read().map_err(|error| error.to_string())?;
        model.compare(&snapshot).map_err(|problem| format!("after batch {number}: {problem}"))?;
        if snapshot.position().map_err(|error| error.to_string())? != position {
            return Err(format!("after batch {number} the position is another"));
        }
        if applied.keys_changed > applied.keys || snapshot.statistics().unwrap().results != results {
            return Err(format!("batch {number} was counted wrongly: {applied:?}"));
        }
        drop(snapshot);

        // The same again changes nothing.
        let again = shape.apply(&engine, &mut batch.clone(), &position);
        match again {
            Err(Error::NotFresh(_)) => {}
            Err(error) => return Err(error.to_string()),
            Ok(again) => {
                let changed =
                    again.results_added + again.results_removed + again.results_replaced + again.keys;
                if changed > 0 || again.cost.reductions > 0 {
                    return Err(format!("batch {number} changed something when it came again: {again:?}"));
                }
            }
        }
        if random.one_in(6) {
            drop(engine);
            engine = Engine::open(open()?, &shape.options).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

#[test]
fn random_histories_equal_recomputation() {
    Seeds::from_environment(300)
        .check("SEED={seed} cargo test -p jackdaw-indexing --test reduce random_histories", history);
}
