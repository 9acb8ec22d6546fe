//! The crate's one error type: variants by what the caller can do about them.

use std::sync::Arc;

/// What the operations of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no index of this name.
    #[error("There is no index with '{0}' name.")]
    NotFound(String),
    /// The definition makes no sense: no maps, a name that cannot be one.
    #[error("{0}")]
    InvalidDefinition(String),
    /// A function of the definition cannot be compiled, or asks for what does not exist.
    #[error("{message}")]
    Compilation {
        /// What is wrong, and where.
        message: String,
        /// `Maps`, `Reduce`, `Fields`, `AdditionalSources` or `AdditionalAssemblies`; `None` when it is the definition as a whole.
        property: Option<&'static str>,
        /// The text that is wrong.
        text: Option<String>,
    },
    /// A custom analyzer cannot be compiled: its code is wrong, or does what is not understood.
    #[error("{0}")]
    AnalyzerCompilation(String),
    /// The index is locked against changes.
    #[error("Cannot edit existing index {0} with lock mode LockedError")]
    Locked(String),
    /// Too many automatic or static indexes, or the like: what was asked for cannot be done in the present state.
    #[error("{0}")]
    InvalidOperation(String),
    /// The index failed too often and takes no queries; it must be reset or changed.
    #[error("{0}")]
    Errored(String),
    /// The protocol has it and this engine does not.
    #[error("{0}")]
    NotSupported(String),
    /// The index is closed, deleted or being replaced: look it up anew.
    #[error("the index '{0}' is closed")]
    Closed(String),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] jackdaw_database::Error),
    /// The search index failed.
    #[error("the search index of '{index}' failed: {source}")]
    Search {
        /// The index.
        index: String,
        /// Why.
        #[source]
        source: Arc<jackdaw_search::Error>,
    },
    /// A directory or file of an index could not be used.
    #[error("cannot {operation} '{path}': {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// Of what.
        path: std::path::PathBuf,
        /// Why not.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// What is stored of an index cannot be read.
    #[error("what is stored of the index is damaged: {0}; reset the index")]
    Damaged(String),
}

impl Error {
    pub(crate) fn io(operation: &'static str, path: &std::path::Path, source: std::io::Error) -> Error {
        Error::Io { operation, path: path.to_owned(), source: Arc::new(source) }
    }
}

impl From<jackdaw_storage::Error> for Error {
    fn from(error: jackdaw_storage::Error) -> Error {
        Error::Database(error.into())
    }
}

impl From<crate::reduce::Error> for Error {
    fn from(error: crate::reduce::Error) -> Error {
        match error {
            crate::reduce::Error::Storage(error) => error.into(),
            other => Error::Damaged(other.to_string()),
        }
    }
}
