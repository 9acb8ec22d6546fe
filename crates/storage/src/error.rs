//! The crate's one error type: variants by what the caller can do about them.

use std::io;
use std::path::PathBuf;

use crate::format::PageNumber;

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong. No error leaves a change behind: a failed call changes nothing, and after any error inside a
/// write transaction the caller may go on with it, roll it back, or commit what succeeded, unless said otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // ---- the caller's input ----
    /// A key of no bytes; every key has at least one.
    #[error("a key must have at least one byte")]
    KeyEmpty,
    /// A key over [`crate::format::KEY_SIZE_MAX`].
    #[error("the key has {size} bytes; the longest allowed has {max}")]
    KeyTooLong {
        /// Bytes of the refused key.
        size: usize,
        /// Bytes of the longest key allowed here.
        max: usize,
    },
    /// A value over the limit of its kind of tree.
    #[error("the value has {size} bytes; the longest allowed here has {max}")]
    ValueTooLong {
        /// Bytes of the refused value.
        size: u64,
        /// Bytes of the longest value allowed here.
        max: u64,
    },
    /// The tree or table does not exist in this transaction's snapshot.
    #[error("there is no tree named {name:?}")]
    TreeNotFound {
        /// The name asked for (lossily decoded).
        name: String,
    },
    /// A tree of this name exists already.
    #[error("a tree named {name:?} exists already")]
    TreeExists {
        /// The name asked for (lossily decoded).
        name: String,
    },
    /// The tree exists, but is of another kind than the one it is used as.
    #[error("the tree {name:?} is a {found} and cannot be used as a {expected}")]
    TreeKind {
        /// The tree's name (lossily decoded).
        name: String,
        /// What it is.
        found: &'static str,
        /// What the caller took it for.
        expected: &'static str,
    },
    /// A unique index holds this key already for another row.
    #[error("the unique index {index:?} of table {table:?} holds this key already")]
    DuplicateKey {
        /// The table's name.
        table: String,
        /// The index's name.
        index: String,
    },
    /// A row, schema or argument that cannot be what its type says.
    #[error("{0}")]
    Invalid(String),

    // ---- the environment's state ----
    /// Another process (or another `Environment` of this one) has the directory open.
    #[error("{} is in use by process {pid}; close it there first", path.display())]
    Locked {
        /// The environment's directory.
        path: PathBuf,
        /// The process that holds the lock; 0 when it could not be read.
        pid: u32,
    },
    /// The directory holds no environment and none may be made (`Options::create` is off or it is read-only).
    #[error("{} holds no environment", path.display())]
    NotFound {
        /// The directory.
        path: PathBuf,
    },
    /// A write was asked of an environment opened read-only.
    #[error("the environment was opened read-only")]
    ReadOnly,
    /// The environment was closed.
    #[error("the environment is closed")]
    Closed,
    /// An earlier write or sync failed; nothing more is written until the environment is opened anew.
    #[error(
        "the environment takes no more writes since an earlier one failed ({cause}); close it and open it again"
    )]
    Failed {
        /// The first failure's text.
        cause: String,
    },
    /// The disk is full; the transaction did not commit and the environment stays usable.
    #[error("the disk is full: {what} needs {bytes} more bytes")]
    DiskFull {
        /// What was being made longer.
        what: String,
        /// By how much, in bytes.
        bytes: u64,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The transaction would change more pages than scratch memory can hold.
    #[error(
        "the transaction needs more than {max} bytes of scratch memory; commit in smaller steps or raise Options::scratch_size_max"
    )]
    TransactionTooLarge {
        /// The limit, in bytes.
        max: u64,
    },
    /// A job given to the transaction merger panicked; its changes were undone.
    #[error("the submitted job panicked: {0}")]
    JobPanicked(String),

    // ---- what is on disk ----
    /// A file is not what its name says: wrong magic number, or of another environment.
    #[error("{} is not part of this environment: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What was found and expected.
        reason: String,
    },
    /// A file of a format version that this build does not read.
    #[error("{} has format version {found}; this build reads version {supported}: {way_out}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The version this build reads.
        supported: u32,
        /// What the user can do.
        way_out: &'static str,
    },
    /// A page fails its checksum or its structure makes no sense.
    #[error("page {page} is damaged: {reason}; run `jackdaw storage check` and restore from a backup")]
    PageDamaged {
        /// The page.
        page: PageNumber,
        /// What is wrong with it.
        reason: String,
    },
    /// A file other than the data file's pages is damaged or too short.
    #[error("{} is damaged: {reason}", path.display())]
    FileDamaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, where, and what to do.
        reason: String,
    },
    /// The operating system refused an operation.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// The verb: "read", "write", "sync", ...
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// A damaged page, with the reason.
    #[cold]
    pub(crate) fn damaged(page: PageNumber, reason: impl Into<String>) -> Error {
        Error::PageDamaged { page, reason: reason.into() }
    }

    /// The environment has as many pages as the format allows and cannot get `pages` more.
    #[cold]
    pub(crate) fn environment_full(pages: u64) -> Error {
        Error::DiskFull {
            what: "the environment, as large as one can be,".to_owned(),
            bytes: pages * crate::format::PAGE_SIZE as u64,
            source: io::ErrorKind::StorageFull.into(),
        }
    }

    /// Wraps an I/O error with what was being done to which file.
    #[cold]
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Error {
        Error::Io { operation, path: path.into(), source }
    }
}
