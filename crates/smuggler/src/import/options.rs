//! What an import does with what it reads.

use crate::compression::Expansion;
use crate::csv::CsvOptions;

/// What kind of input it is. How it is compressed is told by its first bytes, whatever the kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON document a line. A line that is none is refused, and the next one is read.
    Lines,
    /// One array of JSON documents, or documents one after another, over as many lines as they like. What is no JSON ends the reading, as nobody knows where
    /// the next document begins.
    Values,
    /// Comma-separated values: a row, a document.
    Csv(CsvOptions),
    /// A dump of a whole database.
    Dump(DumpOptions),
}

/// Which parts of a dump are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpOptions {
    /// What of the database record can be applied: custom analyzers.
    pub database_record: bool,
    /// Documents.
    pub documents: bool,
    /// Definitions of indexes.
    pub indexes: bool,
    /// Identities. One that is ahead of the dump's stays there.
    pub identities: bool,
    /// Compare-exchange values.
    pub compare_exchange: bool,
    /// Tombstones: what the dump says was deleted is deleted here too.
    pub tombstones: bool,
}

impl Default for DumpOptions {
    /// Everything but tombstones.
    fn default() -> DumpOptions {
        DumpOptions {
            database_record: true,
            documents: true,
            indexes: true,
            identities: true,
            compare_exchange: true,
            tombstones: false,
        }
    }
}

/// What happens to a document whose id is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It is written over.
    #[default]
    Overwrite,
    /// It is written over unless the content is the same; then it stays as it is, with its etag.
    SkipUnchanged,
    /// It stays as it is.
    Keep,
}

/// How an import goes about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOptions {
    /// The collection of documents that name none.
    pub collection: Option<String>,
    /// The property whose value is the id, as a path such as `Order.Number`; else the id is `@metadata.@id`, or is made by the database.
    pub id_property: Option<String>,
    /// What stands before the value of the id property in ids. For documents without an id it is the whole id as given, so that `users/` and `users|` are completed by the
    /// database. None is made from the collection's name.
    pub id_prefix: Option<String>,
    /// What happens to a document whose id is taken.
    pub existing: Existing,
    /// Only documents of these collections are taken; all if there are none.
    pub only_collections: Vec<String>,
    /// Threads that parse; 0 leaves it to us.
    pub threads: usize,
    /// The import fails when more records than this are refused.
    pub refused_max: u64,
    /// Bytes of a record at most.
    pub record_size_max: usize,
    /// How far a compressed input may expand.
    pub expansion: Expansion,
}

impl Default for ImportOptions {
    fn default() -> ImportOptions {
        ImportOptions {
            collection: None,
            id_property: None,
            id_prefix: None,
            existing: Existing::Overwrite,
            only_collections: Vec::new(),
            threads: 0,
            refused_max: u64::MAX,
            record_size_max: 256 << 20,
            expansion: Expansion::default(),
        }
    }
}

impl ImportOptions {
    /// The threads that parse: one less than the machine has, as the database writes with one.
    pub(crate) fn thread_count(&self) -> usize {
        let machine = || std::thread::available_parallelism().map_or(1, usize::from).saturating_sub(1);
        if self.threads > 0 { self.threads.min(64) } else { machine().clamp(1, 16) }
    }
}
