//! Random histories on a simulated disk, against a plain model. `SEED=n` replays one and tells each step; `SEEDS=n` runs more.

#![allow(unreachable_pub, reason = "modules shared with an example")]
#![allow(clippy::panic)]

mod engine;
mod history;
mod jackdaw;
mod stand_in;

use jackdaw_testkit::{Seeds, StructureKind};

use self::history::Tally;
use self::jackdaw::{Jackdaw, KINDS};
use self::stand_in::{Mistake, StandIn};

const REPLAY: &str = "SEED={seed} cargo test -p jackdaw-storage --test simulation -- --nocapture";

#[test]
fn the_simulation_finds_nothing_wrong_with_a_simple_engine() {
    let seeds = Seeds { first: 0, count: 300 };
    seeds.check(REPLAY, |seed| history::run(&StandIn::new(Mistake::None), seed, &StructureKind::ALL, false));
}

#[test]
fn the_simulation_notices_each_mistake() {
    for mistake in Mistake::ALL {
        let seeds = Seeds { first: 0, count: 2000 };
        let result =
            seeds.run(REPLAY, |seed| history::run(&StandIn::new(mistake), seed, &StructureKind::ALL, false));
        match result {
            Ok(_) => panic!("2000 histories did not notice {mistake:?}"),
            Err(found) => println!("{mistake:?}: {found}"),
        }
    }
}

/// The proof itself: nothing acknowledged is lost, nothing is half there, whatever fails.
#[test]
fn acknowledged_commits_survive_everything() {
    let seeds = Seeds::from_environment(2000);
    let verbose = seeds.count == 1;
    let tallies = seeds.check(REPLAY, |seed| history::run(&Jackdaw, seed, KINDS, verbose));
    let mut total = Tally::default();
    tallies.iter().for_each(|tally| total.add(tally));
    println!("{total}");
}
