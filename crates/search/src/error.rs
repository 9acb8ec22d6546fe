//! What can go wrong, by what the caller can do about it.

use std::path::PathBuf;

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory holds something that is not a whole index of this version: delete it and index again.
    #[error("the index in {path} is damaged and must be built anew: {reason}")]
    Damaged {
        /// The directory of the index.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The directory holds an index with other fields or options: delete it and index again.
    #[error("the index in {path} was built with other fields or options and must be built anew")]
    OtherSchema {
        /// The directory of the index.
        path: PathBuf,
    },
    /// A definition names an analyzer that does not exist.
    #[error("Cannot find analyzer type '{name}' for field '{field}'")]
    UnknownAnalyzer {
        /// The field.
        field: String,
        /// What was asked for.
        name: String,
    },
    /// A query that cannot be understood: bad syntax, a bad pattern, a shape that is none.
    #[error("{0}")]
    InvalidQuery(String),
    /// The index has a writer already.
    #[error("the index in {path} has a writer already")]
    Busy {
        /// The directory of the index.
        path: PathBuf,
    },
    /// The disk failed, or the directory cannot be used.
    #[error("the index in {path}: {source}")]
    Io {
        /// The directory of the index.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The search library failed in a way that has no better name here.
    #[error("search: {0}")]
    Library(#[from] tantivy::TantivyError),
}
