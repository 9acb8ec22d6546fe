//! Dumps: whole databases in one file, `.ravendbdump`.
//!
//! A dump is one JSON object, compressed or not. Its properties are *sections*: most are arrays, with raw bytes behind those items that announce
//! them (attachments, time-series segments). [`reader`] takes sections in any order; [`writer`] writes them in the order in which
//! official servers do.

pub(crate) mod reader;
pub(crate) mod writer;

use std::collections::BTreeMap;
use std::fmt;

/// A part of a dump.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// The build that wrote it.
    BuildVersion,
    /// Settings of the database.
    DatabaseRecord,
    /// Documents, each behind its attachments.
    Documents,
    /// Deleted documents.
    Tombstones,
    /// Definitions of indexes.
    Indexes,
    /// Identities and their values.
    Identities,
    /// Compare-exchange values.
    CompareExchange,
    /// Any other, by its name: passed over.
    Other(String),
}

impl Section {
    /// The section of this name.
    #[must_use]
    pub fn of(name: &str) -> Section {
        match name {
            "BuildVersion" => Section::BuildVersion,
            "DatabaseRecord" => Section::DatabaseRecord,
            "Docs" => Section::Documents,
            "Tombstones" => Section::Tombstones,
            "Indexes" => Section::Indexes,
            "Identities" => Section::Identities,
            "CompareExchange" => Section::CompareExchange,
            other => Section::Other(other.to_owned()),
        }
    }

    /// Its name in a dump.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Section::BuildVersion => "BuildVersion",
            Section::DatabaseRecord => "DatabaseRecord",
            Section::Documents => "Docs",
            Section::Tombstones => "Tombstones",
            Section::Indexes => "Indexes",
            Section::Identities => "Identities",
            Section::CompareExchange => "CompareExchange",
            Section::Other(name) => name,
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a dump held that was passed over: how many items of which section. Attachments are counted as `Attachments`.
pub type Skipped = BTreeMap<String, u64>;
