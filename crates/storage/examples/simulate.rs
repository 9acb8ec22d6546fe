//! Runs random histories on a simulated disk, as many as asked for, and says which seed fails first.
//!
//! ```text
//! cargo run --release -p jackdaw-storage --example simulate -- --seeds 1000000
//! cargo run --release -p jackdaw-storage --example simulate -- --seed 4711
//! ```
//! `--first N` begins elsewhere. One seed alone is told step by step. Exits with 1 when something acknowledged was lost, or anything
//! else was wrong.

#![allow(unreachable_pub, dead_code, reason = "modules shared with the test")]

use std::process::ExitCode;
use std::time::Instant;

use jackdaw_testkit::Seeds;

#[path = "../tests/simulation/engine.rs"]
mod engine;
#[path = "../tests/simulation/history.rs"]
mod history;
#[path = "../tests/simulation/jackdaw.rs"]
mod jackdaw;

/// After so many seeds it says how far it has come.
const REPORT_EVERY: u64 = 10_000;
const REPLAY: &str = "cargo run --release -p jackdaw-storage --example simulate -- --seed {seed}";

fn main() -> ExitCode {
    let seeds = match arguments(std::env::args().skip(1)) {
        Ok(seeds) => seeds,
        Err(wrong) => {
            eprintln!("{wrong}\nusage: simulate [--seeds COUNT] [--first SEED] [--seed SEED]");
            return ExitCode::from(2);
        }
    };
    let start = Instant::now();
    let mut total = history::Tally::default();
    let mut done = 0;
    while done < seeds.count {
        let part = Seeds { first: seeds.first + done, count: REPORT_EVERY.min(seeds.count - done) };
        let run = |seed| history::run(&jackdaw::Jackdaw, seed, jackdaw::KINDS, seeds.count == 1);
        match part.run(REPLAY, run) {
            Ok(tallies) => tallies.iter().for_each(|tally| total.add(tally)),
            Err(failure) => {
                eprintln!("{failure}");
                return ExitCode::FAILURE;
            }
        }
        done += part.count;
        println!("{done} seeds in {:.0} s: {total}", start.elapsed().as_secs_f64());
    }
    ExitCode::SUCCESS
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<Seeds, String> {
    let mut seeds = Seeds::from_environment(REPORT_EVERY);
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word} needs a number"))?;
        let value: u64 = value.parse().map_err(|_| format!("{word} needs a number, not {value:?}"))?;
        match word.as_str() {
            "--seeds" => seeds.count = value,
            "--first" => seeds.first = value,
            "--seed" => seeds = Seeds { first: value, count: 1 },
            _ => return Err(format!("there is no option {word}")),
        }
    }
    Ok(seeds)
}
