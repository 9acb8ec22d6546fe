//! What can go wrong, by what the caller can do about it.

use std::fmt;
use std::io;

/// The result of the fallible calls of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is not cut as it should be: it is no JSON array, no dump, or ends too early. Nothing behind that place can be read.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// A single item is wrong. What came before it stands.
    #[error("{what} at byte {offset}: {reason}")]
    Item {
        /// What was being read, such as `bulk insert command`.
        what: &'static str,
        /// Where in the (decompressed) input it begins.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The input holds what is recognised and cannot be stored yet.
    #[error("{what} are not supported yet (byte {offset})")]
    NotSupported {
        /// What it is, in the plural.
        what: &'static str,
        /// Where in the (decompressed) input it begins.
        offset: u64,
    },
    /// A record of a table cannot end where it should.
    #[error("the record that begins on line {line} {reason}")]
    Record {
        /// The line on which it begins, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// Reading, writing or decompressing failed.
    #[error("{action}: {source}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// A bound on what the input may be was exceeded.
    #[error("the {what} is limited to {limit}")]
    Limit {
        /// Which bound.
        what: &'static str,
        /// Its value.
        limit: u64,
    },
    /// More records were refused than was allowed.
    #[error("{refused} records were refused; the last: {last}")]
    TooManyRefused {
        /// How many.
        refused: u64,
        /// The last one, and why.
        last: String,
    },
    /// What was asked for makes no sense, such as a column that the file does not have.
    #[error("{0}")]
    Options(String),
    /// The database did not take what it was given, and would not take anything else.
    #[error(transparent)]
    Database(#[from] jackdaw_database::Error),
    /// The work was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// A thread of the work ended in a panic; a bug of ours.
    #[error("a thread of the import failed: {0}")]
    Thread(String),
}

impl Error {
    /// Wraps an error of reading or writing.
    pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { action, source }
    }
}

/// Where and why the cutting of an input into values failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct SplitError {
    /// The byte in the (decompressed) input, from 0.
    pub offset: u64,
    /// What is wrong there.
    pub kind: SplitErrorKind,
}

/// What is wrong with an input that is to be cut into values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SplitErrorKind {
    /// The input ends inside an array, object or value.
    UnexpectedEnd,
    /// This byte cannot stand there.
    Unexpected {
        /// The byte found.
        found: u8,
        /// What could stand there.
        expected: &'static str,
    },
    /// The value that begins there is too long.
    TooLong {
        /// Bytes that a value may have.
        limit: usize,
    },
}

impl fmt::Display for SplitErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SplitErrorKind::UnexpectedEnd => f.write_str("the input ends too early"),
            SplitErrorKind::Unexpected { found, expected } => {
                write!(f, "expected {expected}, found {:?}", char::from(*found))
            }
            SplitErrorKind::TooLong { limit } => write!(f, "a value is longer than {limit} bytes"),
        }
    }
}
