//! The crate's one error type: variants by what the caller can do about them.

use std::sync::Arc;

/// What the operations of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The document is not in the state that the caller knows.
    #[error("{message}")]
    Concurrency {
        /// What was found and what was expected, in words.
        message: String,
        /// The document.
        id: String,
        /// The change vector that the caller gave; empty for "must not exist".
        expected: String,
        /// The document's change vector; `None` when there is no such document.
        actual: Option<String>,
    },
    /// A cluster-wide transaction met documents or compare-exchange values in other states than its caller knows.
    #[error("{message}")]
    ClusterConcurrency {
        /// All violations, in words.
        message: String,
        /// Each of them.
        violations: Vec<ClusterViolation>,
    },
    /// A document belongs to one collection for as long as it exists.
    #[error(
        "the document '{id}' is in the collection '{actual}' and cannot be stored in '{given}': delete it first"
    )]
    CollectionMismatch {
        /// The document.
        id: String,
        /// Its collection.
        actual: String,
        /// The collection that it was to be stored in.
        given: String,
    },
    /// The id of a document cannot be one.
    #[error("{0}")]
    InvalidId(String),
    /// What was given makes no sense: a document without an object at its root, metadata that is no object, and the like.
    #[error("{0}")]
    InvalidArgument(String),
    /// What was asked for cannot be done in the present state.
    #[error("{0}")]
    InvalidOperation(String),
    /// The operation exists, but not here.
    #[error("{0}")]
    NotSupported(String),
    /// A cluster-wide transaction asks for what the cluster cannot agree on.
    #[error("{0}")]
    NotInCluster(String),
    /// The key of a compare-exchange value is too long.
    #[error("the compare-exchange key has {size} bytes; the longest allowed has {max}")]
    CompareExchangeKeyTooBig {
        /// Its bytes.
        size: usize,
        /// The most bytes it may have.
        max: usize,
    },
    /// The key of a compare-exchange value is reserved.
    #[error("{0}")]
    CompareExchangeKeyInvalid(String),
    /// A script failed: it threw, or exceeded its limits.
    #[error("{0}")]
    Script(String),
    /// A script is none.
    #[error("{message}")]
    ScriptSyntax {
        /// What is wrong with it and where, and the script.
        message: String,
    },
    /// A job panicked; its changes are undone.
    #[error("the operation failed unexpectedly: {0}")]
    Panicked(String),
    /// The database is closed or closing.
    #[error("the database '{0}' is closed")]
    Closed(String),
    /// A document could not be built or read.
    #[error(transparent)]
    Document(#[from] jackdaw_document::Error),
    /// The storage engine failed; the same error may be that of several writes, which were in one storage transaction.
    #[error("{0}")]
    Storage(Arc<jackdaw_storage::Error>),
    /// What the storage holds cannot be of this database.
    #[error("the database is damaged: {0}; run `jackdaw storage check` and restore from a backup")]
    Damaged(String),
}

impl From<jackdaw_storage::Error> for Error {
    fn from(error: jackdaw_storage::Error) -> Error {
        Error::Storage(Arc::new(error))
    }
}

impl Error {
    #[cold]
    pub(crate) fn damaged(what: impl Into<String>) -> Error {
        Error::Damaged(what.into())
    }
}

/// Something that was not as a cluster-wide transaction expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterViolation {
    /// What it is.
    pub kind: ViolationKind,
    /// The document's id or the key.
    pub id: String,
    /// The expected index.
    pub expected: i64,
    /// The index found; -1 when there was nothing.
    pub actual: i64,
}

/// What a [`ClusterViolation`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViolationKind {
    /// A document.
    Document,
    /// A compare-exchange value.
    CompareExchange,
}
