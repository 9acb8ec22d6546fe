//! What can be wrong with a query, by what the asker can do about it.

use jackdaw_rql::Span;

/// The result of the fallible calls of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Bytes of a query's text that a message shows at most.
const SHOWN_MAX: usize = 4096;

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not RQL. The message has line and column, and the text.
    #[error("{0}")]
    Parse(String),
    /// The text is RQL, but makes no sense: an unknown alias or function, a parameter that was not given, a wrong number of arguments.
    #[error("{0}")]
    Invalid(String),
    /// There is no index of this name.
    #[error("there is no index '{0}'")]
    NoIndex(String),
    /// An argument that cannot be: a field that the index does not have.
    #[error("{0}")]
    Argument(String),
    /// It cannot be done in the present state.
    #[error("{0}")]
    InvalidOperation(String),
    /// The construct exists, but not here.
    #[error("{0}")]
    NotSupported(String),
    /// It took longer than it may.
    #[error("{0}")]
    TimedOut(String),
    /// A function in JavaScript failed.
    #[error("{0}")]
    JavaScript(String),
    /// The request's JSON is not what it must be.
    #[error(transparent)]
    Document(#[from] jackdaw_document::Error),
    /// There is no document that the query names.
    #[error("{0}")]
    NoDocument(String),
    /// There is no sorter of this name.
    #[error("There is no sorter with '{0}' name.")]
    NoSorter(String),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] jackdaw_database::Error),
    /// An index failed.
    #[error(transparent)]
    Indexing(jackdaw_indexing::Error),
    /// The search index failed.
    #[error(transparent)]
    Search(jackdaw_search::Error),
}

impl From<jackdaw_indexing::Error> for Error {
    fn from(error: jackdaw_indexing::Error) -> Error {
        match error {
            jackdaw_indexing::Error::NotFound(name) => Error::NoIndex(name),
            jackdaw_indexing::Error::Database(error) => Error::Database(error),
            jackdaw_indexing::Error::Errored(message) => Error::InvalidOperation(message),
            jackdaw_indexing::Error::NotSupported(message) => Error::NotSupported(message),
            error => Error::Indexing(error),
        }
    }
}

impl From<jackdaw_search::Error> for Error {
    fn from(error: jackdaw_search::Error) -> Error {
        match error {
            jackdaw_search::Error::InvalidQuery(message) => Error::Invalid(message),
            error => Error::Search(error),
        }
    }
}

impl Error {
    /// A semantic error of the query `text` at `span`.
    #[cold]
    pub(crate) fn invalid(text: &str, span: Span, message: impl AsRef<str>) -> Error {
        let start = text.floor_char_boundary((span.start as usize).min(text.len()));
        let before = &text[..start];
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        let column = 1 + before[before.rfind('\n').map_or(0, |at| at + 1)..].chars().count();
        Error::Invalid(format!("{}\n{line}:{column} of the query: {}", message.as_ref(), shown(text)))
    }

    #[cold]
    pub(crate) fn parse(error: &jackdaw_rql::Error, text: &str) -> Error {
        Error::Parse(format!("{error}\nQuery: {}", shown(text)))
    }
}

/// A query's text as a message shows it.
fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN_MAX)]
}
