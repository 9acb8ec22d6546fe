//! Names inside documents that mean something to the database.

use std::fmt;

/// The object in a document that holds what is known about it.
pub const METADATA: &str = "@metadata";
/// The document's collection.
pub const COLLECTION: &str = "@collection";
/// The document's id; not stored in it.
pub const ID: &str = "@id";
/// The document's change vector; not stored in it.
pub const CHANGE_VECTOR: &str = "@change-vector";
/// When it was last written; not stored in it.
pub const LAST_MODIFIED: &str = "@last-modified";
/// What else there is to a document; not stored in it.
pub const FLAGS: &str = "@flags";

/// The collection of documents that name none.
pub const EMPTY_COLLECTION: &str = "@empty";
/// The collection of the documents that hand out ranges of ids.
pub const HILO_COLLECTION: &str = "@hilo";

/// What belongs to the database: clients send old copies back, which are dropped.
const OUTPUT_ONLY: [&str; 15] = [
    ID,
    CHANGE_VECTOR,
    LAST_MODIFIED,
    FLAGS,
    "@attachments",
    "@counters",
    "@counters-snapshot",
    "@timeseries",
    "@timeseries-snapshot",
    "@timeseries-named-values",
    "@index-score",
    "@projection",
    "@spatial",
    "@etag",
    "@query-type",
];

/// Whether a name in `@metadata` is the database's own, made when a document is read.
pub fn is_output_only(name: &str) -> bool {
    name.starts_with('@') && OUTPUT_ONLY.contains(&name)
}

/// What else there is to a document.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags(pub(crate) u32);

impl Flags {
    /// Nothing.
    pub const NONE: Flags = Flags(0);
    /// The last write was by a cluster-wide transaction.
    pub const FROM_CLUSTER_TRANSACTION: Flags = Flags(1);
    /// No client wrote it.
    pub const ARTIFICIAL: Flags = Flags(2);
    /// An index wrote it.
    pub const FROM_INDEX: Flags = Flags(4);

    const NAMES: [(Flags, &'static str); 3] = [
        (Flags::FROM_CLUSTER_TRANSACTION, "FromClusterTransaction"),
        (Flags::ARTIFICIAL, "Artificial"),
        (Flags::FROM_INDEX, "FromIndex"),
    ];

    /// These and those.
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether nothing is set.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `other` is set.
    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// As in `@flags`: names joined by a comma and a blank.
impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (_, name) in Flags::NAMES.iter().filter(|(flag, _)| self.contains(*flag)) {
            if !std::mem::take(&mut first) {
                f.write_str(", ")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}
