//! Power losses at any call: what is there afterwards is a whole number of batches, not fewer than were acknowledged, with the position that
//! says which; and whoever follows the results ends up with all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jackdaw_indexing::reduce::{Batch, Engine, Error, Mark};
use jackdaw_storage::disk::SimulatedDisk;
use jackdaw_storage::disk::simulated::Fault;
use jackdaw_storage::{Environment, Options as StorageOptions};
use jackdaw_testkit::{Random, Seeds};

use crate::history::Shape;
use crate::model::{Model, Sums};

const LIVES: usize = 5;

type Followed = BTreeMap<Vec<u8>, Option<Sums>>;

/// Something outside that follows the results, as a search index does: what it has survives a crash only when it was committed.
#[derive(Clone, Default)]
struct Follower {
    committed: Followed,
    /// Up to where it has followed in this life of the engine; from a start on, all that is listed is followed again.
    mark: Option<Mark>,
}

impl Follower {
    /// Follows what changed, commits it and returns what to acknowledge; or loses everything half way.
    fn follow(&mut self, engine: &Engine, random: &mut Random) -> Result<Option<Mark>, Error> {
        let snapshot = engine.read()?;
        let changed = snapshot.changed(self.mark.unwrap_or_default())?;
        let mut working = self.committed.clone();
        let give_up = random.one_in(6).then(|| random.below(changed.len() + 1));
        let mut at = 0;
        changed.each(|key| {
            if give_up != Some(at) {
                let had = working.remove(key.stored).is_some();
                assert!(
                    !(had && key.is_new && self.mark.is_some()),
                    "a key that was followed is said to be new"
                );
                if let Some(result) = key.result {
                    working.insert(key.stored.to_vec(), result.pack.map(Sums::from_pack));
                }
            }
            at += 1;
            Ok::<(), Error>(())
        })?;
        if give_up.is_some() {
            return Ok(None);
        }
        self.committed = working;
        self.mark = Some(changed.mark());
        Ok(Some(changed.mark()))
    }

    fn compare(&self, engine: &Engine) -> Result<(), String> {
        let mut held = Followed::new();
        let snapshot = engine.read().map_err(|error| error.to_string())?;
        let walked = snapshot.each_result(|result| {
            held.insert(result.stored.to_vec(), result.pack.map(Sums::from_pack));
            Ok::<(), Error>(())
        });
        walked.map_err(|error| error.to_string())?;
        if held == self.committed {
            Ok(())
        } else {
            Err("the follower has other results than the engine".into())
        }
    }
}

fn live_and_die(seed: u64) -> Result<usize, String> {
    let mut random = Random::new(seed);
    let shape = Shape::of(&mut random);
    let storage = StorageOptions::default()
        .background(false)
        .journal_file_sizes(32 << 10, 128 << 10)
        .journal_size_before_flush(64 << 10);
    let mut disk = SimulatedDisk::new(seed);
    // The state after each batch, and what the batches were.
    let mut states = vec![Model::default()];
    let mut follower = Follower::default();
    let mut crashes = 0;
    for life in 0..LIVES {
        let bits = 5 + random.below(6);
        disk.fail_at(disk.calls() + 1 + random.skewed(bits) as u64, Fault::Crash);
        let mut acknowledged = states.len() - 1;
        if let Ok(environment) = Environment::open_on(Arc::new(disk.clone()), storage.clone())
            && let Ok(engine) = Engine::open(environment, &shape.options)
        {
            for _ in 0..random.below(12) {
                let mut next = states[states.len() - 1].clone();
                let mut batch = Batch::new();
                shape.fill(&mut random, &mut next, &mut batch);
                let position = (states.len() as u64).to_le_bytes();
                states.push(next);
                if shape.apply(&engine, &mut batch, &position).is_err() {
                    break;
                }
                acknowledged += 1;
                if random.one_in(2)
                    && let Ok(Some(mark)) = follower.follow(&engine, &mut random)
                {
                    // Not always: what is not acknowledged is told again after a crash.
                    if random.one_in(2) {
                        engine.acknowledge(mark);
                    }
                    if random.one_in(3) {
                        let _ = engine.settle();
                    }
                }
            }
        }
        follower.mark = None;
        crashes += usize::from(disk.has_crashed());
        disk = disk.crash(random.next_u64()).map_err(|error| error.to_string())?;

        let environment = Environment::open_on(Arc::new(disk.clone()), storage.clone())
            .map_err(|error| format!("life {life}: {error}"))?;
        let engine =
            Engine::open(environment, &shape.options).map_err(|error| format!("life {life}: {error}"))?;
        let position = engine.position().map_err(|error| error.to_string())?;
        let reached = if position.is_empty() {
            0
        } else {
            u64::from_le_bytes(position[..].try_into().unwrap()) as usize
        };
        if reached < acknowledged || reached >= states.len() {
            return Err(format!(
                "life {life}: {acknowledged} batches were acknowledged, {reached} are there"
            ));
        }
        states.truncate(reached + 1);
        let snapshot = engine.read().map_err(|error| error.to_string())?;
        states[reached].compare(&snapshot).map_err(|problem| format!("life {life}: {problem}"))?;
        drop(snapshot);
        loop {
            let mark = follower.follow(&engine, &mut random).map_err(|error| error.to_string())?;
            if let Some(mark) = mark {
                engine.acknowledge(mark);
                engine.settle().map_err(|error| error.to_string())?;
                break;
            }
        }
        follower.compare(&engine).map_err(|problem| format!("life {life}: {problem}"))?;
        let snapshot = engine.read().map_err(|error| error.to_string())?;
        follower.mark = None;
        if !snapshot.changed(Mark::default()).map_err(|error| error.to_string())?.is_empty() {
            return Err(format!("life {life}: what was settled is still listed"));
        }
    }
    Ok(crashes)
}

#[test]
fn power_losses_lose_and_repeat_nothing() {
    let crashes = Seeds::from_environment(1000)
        .check("SEED={seed} cargo test -p jackdaw-indexing --test reduce power_losses", live_and_die);
    let crashes: usize = crashes.into_iter().sum();
    println!("{crashes} power losses while at work");
    assert!(crashes > 0 || std::env::var_os("SEED").is_some(), "the power never went off in time");
}
