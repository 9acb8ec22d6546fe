//! The fuzz targets' checks over their corpus, on the stable compiler: what fuzzing found stays found.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]

#[path = "../../../fuzz/smuggler/fuzz_targets/checks.rs"]
mod checks;

use jackdaw_testkit::replay_corpus;

/// As fuzzers do first: every input, every beginning of it, and each byte changed.
fn replay(target: &str, check: impl Fn(&[u8])) {
    replay_corpus("smuggler", target, |input| {
        check(input);
        for end in 0..input.len() {
            check(&input[..end]);
        }
        for at in 0..input.len().min(600) {
            let mut changed = input.to_vec();
            changed[at] ^= 1 << (at % 8);
            check(&changed);
        }
    });
}

#[test]
fn splitter() {
    replay("smuggler_splitter", checks::splitter);
}

#[test]
fn dump() {
    replay("smuggler_dump", checks::dump);
}

#[test]
fn bulk_insert() {
    replay("smuggler_bulk_insert", checks::bulk_insert);
}
