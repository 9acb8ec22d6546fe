//! What can go wrong in the map/reduce engine.

/// An error of the map/reduce engine. A reduce function that fails is none: its key is marked and the batch goes on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The environment could not be read or written.
    #[error(transparent)]
    Storage(#[from] jackdaw_storage::Error),
    /// Bytes of the environment are not what was written. Only a reset of the index helps.
    #[error("map/reduce environment: {place} is damaged: {found}; reset the index to build it anew")]
    Damaged {
        /// Which tree and which entry.
        place: String,
        /// What is wrong with it.
        found: &'static str,
    },
    /// The environment was written by another version.
    #[error(
        "map/reduce environment: it has version {found}, this build knows {known}; reset the index to build it anew"
    )]
    Version {
        /// In the environment.
        found: u32,
        /// Known here.
        known: u32,
    },
    /// A document was said to have no results yet, and has some.
    #[error("map/reduce environment: document `{0}` was said to be new and has results already")]
    NotFresh(String),
    /// The worker could not say how far it is; nothing of the batch was applied.
    #[error("{0}")]
    Position(String),
    /// A document could not be made or read.
    #[error("map/reduce results: {0}")]
    Document(#[from] jackdaw_document::Error),
}

/// What the engine's calls return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(super) fn damaged(place: impl Into<String>, found: &'static str) -> Error {
        Error::Damaged { place: place.into(), found }
    }
}
