//! What became of an import: counts, and what was refused and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::dump::Skipped;

/// Refused records that are kept word for word; the others are counted.
pub const REFUSALS_KEPT_MAX: usize = 100;

/// Where in the input a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Place {
    /// The line it begins on, from 1.
    Line(u64),
    /// The byte it begins at, from 0, in the decompressed input.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// A record that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Where it lies.
    pub place: Place,
    /// Why.
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

/// What became of an import. What an import that failed had stored by then stays stored, and is counted here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Documents stored.
    pub documents: u64,
    /// Documents left as they were: equal to what is there, or there already and not to be written over.
    pub unchanged: u64,
    /// Records that were refused.
    pub refused: u64,
    /// The first [`REFUSALS_KEPT_MAX`] of them, in their order.
    pub refusals: Vec<Refusal>,
    /// Documents deleted, as a dump's tombstones say.
    pub deleted: u64,
    /// Definitions of indexes.
    pub indexes: IndexReport,
    /// Identities taken over.
    pub identities: u64,
    /// Compare-exchange values taken over.
    pub compare_exchange: u64,
    /// Whether there was a database record. Only its custom analyzers are applied: databases have no other settings that it could change yet.
    pub database_record: bool,
    /// What a dump held that cannot be stored yet, by section.
    pub skipped: Skipped,
    /// Bytes of JSON or CSV text of the records.
    pub text_bytes: u64,
    /// The etag of the last document stored; 0 if none was.
    pub last_etag: i64,
    /// The id of the last document stored.
    pub last_id: String,
}

/// What became of the definitions of indexes that a dump held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexReport {
    /// Those taken: made, changed, or there already.
    pub taken: u64,
    /// Those of automatic indexes, which are passed over: queries make them.
    pub automatic: u64,
    /// Custom analyzers taken from the database record.
    pub analyzers: u64,
    /// Those refused, analyzers included.
    pub refused: u64,
    /// The first [`REFUSALS_KEPT_MAX`] of these: which, and why.
    pub refusals: Vec<String>,
}

impl Report {
    /// Counts a refused record, and keeps it if it is one of the first.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        self.refused += 1;
        if self.refusals.len() < REFUSALS_KEPT_MAX {
            self.refusals.push(refusal);
        }
    }

    /// Counts a refused definition of an index or analyzer, and keeps why if it is one of the first.
    pub(crate) fn refuse_index(&mut self, refusal: String) {
        self.indexes.refused += 1;
        if self.indexes.refusals.len() < REFUSALS_KEPT_MAX {
            self.indexes.refusals.push(refusal);
        }
    }
}

/// What an export wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportReport {
    /// Documents.
    pub documents: u64,
    /// Their JSON text in bytes.
    pub text_bytes: u64,
    /// Tombstones.
    pub tombstones: u64,
    /// Definitions of indexes.
    pub indexes: u64,
    /// Identities.
    pub identities: u64,
    /// Compare-exchange values.
    pub compare_exchange: u64,
    /// The last etag that the export includes.
    pub last_etag: i64,
}
