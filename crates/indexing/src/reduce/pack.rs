//! A *pack*: results of one key as bytes, of a map as well as of a reduce. To the engine packs are opaque; there are two forms, and all packs
//! of an index are of one: *documents*, each behind its length, for any reduce function; and *columns* (`columns.rs`) where the reduce is
//! nothing but sums, counts, least and greatest values.

use jackdaw_document::Document;

use super::bytes::{Reader, put_slice};
use super::error::{Error, Result};

/// Appends a document to a pack of documents.
pub fn append_document(pack: &mut Vec<u8>, document: &[u8]) {
    put_slice(pack, document);
}

/// The documents of a pack.
pub fn documents(pack: &[u8]) -> impl Iterator<Item = Result<Document<'_>>> {
    let mut reader = Reader(pack);
    std::iter::from_fn(move || {
        if reader.is_empty() {
            return None;
        }
        let Some(bytes) = reader.slice() else {
            reader = Reader(&[]);
            return Some(Err(Error::damaged("a result", "it ends within a document")));
        };
        Some(Document::open(bytes).map_err(Error::from))
    })
}
