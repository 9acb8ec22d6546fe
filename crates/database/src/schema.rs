//! The tables of a database's environment: names, columns, indexes (`docs/format/database.md`).

use jackdaw_storage::{Row, Schema};

use crate::Etag;
use crate::error::{Error, Result};

/// The version of this layout, in [`DATABASE`] under [`VERSION`].
pub(crate) const FORMAT_VERSION: u32 = 1;

/// What there is once: a tree.
pub(crate) const DATABASE: &[u8] = b"database";
pub(crate) const VERSION: &[u8] = b"format-version";
pub(crate) const DATABASE_ID: &[u8] = b"database-id";
pub(crate) const CLUSTER_TRANSACTION_ID: &[u8] = b"cluster-transaction-id";
/// The last etag given out, eight bytes, big-endian.
pub(crate) const LAST_ETAG: &[u8] = b"last-etag";
/// The last index of the cluster that wrote here, eight bytes, big-endian.
pub(crate) const LAST_CLUSTER_INDEX: &[u8] = b"last-cluster-index";
/// How many documents cluster-wide transactions have written, eight bytes, big-endian.
pub(crate) const CLUSTER_WRITES: &[u8] = b"cluster-writes";

/// Collections: a tree from the lower-case name to [`CollectionRecord`].
pub(crate) const COLLECTIONS: &[u8] = b"collections";
/// Identities: a tree from the lower-case name to eight bytes, big-endian.
pub(crate) const IDENTITIES: &[u8] = b"identities";

/// Documents: a table.
pub(crate) const DOCUMENTS: &[u8] = b"documents";
/// Tombstones: a table.
pub(crate) const TOMBSTONES: &[u8] = b"tombstones";
/// Compare-exchange values: a table.
pub(crate) const COMPARE_EXCHANGE: &[u8] = b"compare-exchange";
/// Requests that must not be executed twice, with their answers: a table.
pub(crate) const REQUESTS: &[u8] = b"requests";

/// The names of all of these: what other crates keep here has other names.
pub(crate) const OWN: [&[u8]; 7] =
    [DATABASE, COLLECTIONS, IDENTITIES, DOCUMENTS, TOMBSTONES, COMPARE_EXCHANGE, REQUESTS];

/// Columns of documents and of tombstones (which have no [`column::CONTENT`]).
pub(crate) mod column {
    /// Lower-case id.
    pub(crate) const KEY: usize = 0;
    /// The number of the collection, four bytes, big-endian.
    pub(crate) const COLLECTION: usize = 1;
    /// Eight bytes, big-endian.
    pub(crate) const ETAG: usize = 2;
    /// When it was written, in ticks: eight bytes; then the flags: four bytes; both big-endian.
    pub(crate) const HEAD: usize = 3;
    /// The change vector; empty when it is the database's own of this etag.
    pub(crate) const CHANGE_VECTOR: usize = 4;
    /// The id, when it differs from its lower case.
    pub(crate) const ID: usize = 5;
    /// The document.
    pub(crate) const CONTENT: usize = 6;
}

/// What the key of a tombstone begins with whose document came back in another collection: this, the number of the old one, the lower-case id.
pub(crate) const MOVED: u8 = 0;

/// The place of the index by etag in documents and tombstones.
pub(crate) const BY_ETAG: usize = 0;
/// The place of the index by collection and etag in documents and tombstones.
pub(crate) const BY_COLLECTION: usize = 1;

pub(crate) fn documents() -> Schema {
    Schema::new(7, 0..1)
        .etag("by-etag", column::ETAG)
        .unique("by-collection", column::COLLECTION..column::HEAD)
}

pub(crate) fn tombstones() -> Schema {
    Schema::new(6, 0..1)
        .etag("by-etag", column::ETAG)
        .unique("by-collection", column::COLLECTION..column::HEAD)
}

/// Columns of compare-exchange values.
pub(crate) mod exchange {
    /// Lower-case key.
    pub(crate) const KEY: usize = 0;
    /// The key as it was given.
    pub(crate) const NAME: usize = 1;
    /// Eight bytes, big-endian.
    pub(crate) const INDEX: usize = 2;
    /// A document: `{"Object":...}`, with `@metadata` when it has any.
    pub(crate) const CONTENT: usize = 3;
}

pub(crate) fn compare_exchange() -> Schema {
    Schema::new(4, 0..1)
}

/// Columns of requests.
pub(crate) mod request {
    // Column 0 is the request's id, as given.
    /// The number by which the oldest is found, eight bytes, big-endian.
    pub(crate) const NUMBER: usize = 1;
    /// The answer, in the encoding of whoever asks.
    pub(crate) const ANSWER: usize = 2;
}

pub(crate) fn requests() -> Schema {
    Schema::new(3, 0..1).etag("by-number", request::NUMBER)
}

/// How many answers of requests are kept.
pub(crate) const REQUESTS_KEPT: u64 = 10_000;

/// A collection's number, how many documents it has, and its name as first seen: four, eight, and all other bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CollectionRecord {
    pub(crate) number: u32,
    pub(crate) documents: u64,
    pub(crate) name: String,
}

impl CollectionRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(12 + self.name.len());
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.extend_from_slice(&self.documents.to_be_bytes());
        bytes.extend_from_slice(self.name.as_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<CollectionRecord> {
        let decoded = (|| {
            let (number, rest) = bytes.split_first_chunk()?;
            let (documents, name) = rest.split_first_chunk()?;
            Some(CollectionRecord {
                number: u32::from_be_bytes(*number),
                documents: u64::from_be_bytes(*documents),
                name: std::str::from_utf8(name).ok()?.to_owned(),
            })
        })();
        decoded.ok_or_else(|| Error::damaged(format!("a collection of {} bytes", bytes.len())))
    }
}

/// A column of text.
pub(crate) fn text<'p>(row: &Row<'p>, column: usize) -> Result<&'p str> {
    std::str::from_utf8(row.column(column))
        .map_err(|_| Error::damaged(format!("column {column} of a row is no text")))
}

/// A column of a number.
pub(crate) fn number(row: &Row<'_>, column: usize) -> Result<i64> {
    row.column_i64(column).ok_or_else(|| Error::damaged(format!("column {column} of a row is no number")))
}

/// Eight bytes, big-endian.
pub(crate) fn i64_of(bytes: &[u8]) -> Result<i64> {
    let bytes = bytes
        .try_into()
        .map_err(|_| Error::damaged(format!("{} bytes where eight should be", bytes.len())))?;
    Ok(i64::from_be_bytes(bytes))
}

/// The key of the index by collection, at an etag.
pub(crate) fn collection_key(number: u32, etag: Etag) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&number.to_be_bytes());
    key[4..].copy_from_slice(&etag.to_be_bytes());
    key
}
