//! Random histories on a simulated disk, against a plain model. `SEED=n` replays one and tells each step; `SEEDS=n` runs more.

mod engine;
mod history;
mod stand_in;

use jackdaw_testkit::{Seeds, StructureKind};

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
