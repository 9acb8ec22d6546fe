//! The fuzz targets' checks over their corpus, on the stable compiler: what fuzzing found stays found.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]

#[path = "../../../fuzz/document/fuzz_targets/checks.rs"]
mod checks;

use jackdaw_testkit::replay_corpus;

#[test]
fn text() {
    replay_corpus("document", "document_text", checks::text);
}

#[test]
fn binary() {
    replay_corpus("document", "document_binary", checks::binary);
}

#[test]
fn dictionary() {
    replay_corpus("document", "document_dictionary", checks::dictionary);
}

/// Rewrites the seeds of the binary corpus from those of the text corpus; run by hand when the format changes.
#[test]
#[ignore = "writes to the corpus"]
fn write_seeds() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/document/corpus");
    let context = jackdaw_document::Context::new();
    for entry in std::fs::read_dir(corpus.join("document_text")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for mode in [jackdaw_document::Mode::Memory, jackdaw_document::Mode::Disk] {
            if let Ok(document) = context.parse_with(&std::fs::read(&path).unwrap(), mode) {
                std::fs::write(corpus.join(format!("document_binary/{name}-{mode:?}")), document.as_bytes())
                    .unwrap();
            }
        }
    }
    let trained =
        jackdaw_document::Dictionary::train(3, [b"abcabcabcabc words and words".as_slice(); 8]).unwrap();
    let bytes = trained.to_bytes();
    let mut seed = (bytes.len() as u16).to_le_bytes().to_vec();
    seed.extend_from_slice(&bytes);
    seed.extend_from_slice(b"abc words");
    std::fs::write(corpus.join("document_dictionary/trained"), seed).unwrap();
}
