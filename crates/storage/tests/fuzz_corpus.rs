//! The fuzz targets of `fuzz/storage` on stable: every input of the corpus, and random inputs from seeds. `SEEDS=1000000` makes a long run of it,
//! `SEED=n` replays one.

#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(unreachable_pub, reason = "a module shared with the fuzz crate")]

#[path = "../../../fuzz/storage/src/storage_files.rs"]
mod storage_files;

use jackdaw_testkit::{Random, Seeds, replay_corpus};

use self::storage_files::{CORRECT, READ_ONLY, Target, WHOLE, check_samples, run};

#[test]
fn the_samples_are_good() {
    check_samples().unwrap();
}

#[test]
fn every_input_of_the_corpus() {
    for target in Target::ALL {
        replay_corpus("storage", target.name(), |input| run(target, input));
    }
}

/// An input that does what a fuzzer would come to do: few changes, mostly where structure is, with checksums corrected.
fn input(random: &mut Random) -> Vec<u8> {
    let mut input = vec![0];
    if random.one_in(20) {
        input[0] |= WHOLE;
        let size = random.skewed(14);
        input.extend(random.bytes(size));
    } else {
        for _ in 0..1 + random.skewed(3) {
            // Around the headers of pages and records more often than anywhere.
            let anywhere = random.below(1 << 20);
            let offset = match random.below(4) {
                0 => anywhere,
                1 => anywhere / 4096 * 4096 + random.below(128),
                2 => random.below(1 << 15),
                _ => anywhere / 4096 * 4096 + 16 + random.below(20),
            };
            let count = [1, 1, 2, 4, 8][random.below(5)];
            input.extend(&(offset as u32).to_le_bytes()[..3]);
            input.push(count - 1);
            match random.below(4) {
                0 => input.extend(vec![0; usize::from(count)]),
                1 => input.extend(vec![0xFF; usize::from(count)]),
                // Small numbers, which are plausible.
                2 => input.extend(&u64::to_le_bytes(random.skewed(14) as u64)[..usize::from(count)]),
                _ => input.extend(random.bytes(usize::from(count))),
            }
        }
    }
    if !random.one_in(8) {
        input[0] |= CORRECT;
    }
    if random.one_in(4) {
        input[0] |= READ_ONLY;
    }
    input
}

#[test]
fn random_inputs() {
    let replay = "SEED={seed} cargo test -p jackdaw-storage --test fuzz_corpus random_inputs -- --nocapture";
    Seeds::from_environment(1500).check(replay, |seed| {
        let mut random = Random::new(seed);
        let target = Target::ALL[random.below(3)];
        let input = input(&mut random);
        run(target, &input);
        Ok(())
    });
}
