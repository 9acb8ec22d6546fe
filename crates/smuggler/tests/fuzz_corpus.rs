//! The fuzz targets' checks over their corpus, on the stable compiler: what fuzzing found stays found.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]

#[path = "../../../fuzz/smuggler/fuzz_targets/checks.rs"]
mod checks;

fn replay(target: &str, check: impl Fn(&[u8])) {
    let corpus =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/smuggler/corpus").join(target);
    let mut count = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        let input = std::fs::read(path).unwrap();
        check(&input);
        // As fuzzers do first: every beginning of it, and each byte changed.
        for end in 0..input.len() {
            check(&input[..end]);
        }
        for at in 0..input.len().min(600) {
            let mut changed = input.clone();
            changed[at] ^= 1 << (at % 8);
            check(&changed);
        }
        count += 1;
    }
    assert!(count > 0, "the corpus of {target} is empty");
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
