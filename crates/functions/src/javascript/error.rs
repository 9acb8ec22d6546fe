//! What can go wrong with a script.

use crate::RuntimeError;

/// An error of whoever answers a script's calls; given back as it is.
pub type HostError = Box<dyn std::error::Error + Send + Sync>;

/// Why a script failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// It threw, or exceeded a limit.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// It calls what does not exist here yet.
    #[error("{function}: {feature} are not supported by this version of the server.")]
    NotSupported {
        /// The function.
        function: String,
        /// What it belongs to.
        feature: String,
    },
    /// The database could not do what it asked for.
    #[error("{0}")]
    Host(HostError),
    /// What it made is no document.
    #[error(transparent)]
    Document(#[from] jackdaw_document::Error),
    /// The engine has no memory left. Outside of the engine this is [`RuntimeError::Limit`].
    #[doc(hidden)]
    #[error("out of memory")]
    OutOfMemory,
    /// It threw null, which is also what the engine throws when it has not even the memory for an error. Not seen outside of the engine.
    #[doc(hidden)]
    #[error("null")]
    NullOrOutOfMemory,
}

impl ScriptError {
    #[cold]
    pub(super) fn thrown(message: impl Into<String>) -> ScriptError {
        RuntimeError::Script { message: message.into() }.into()
    }

    #[cold]
    pub(super) fn internal(message: impl Into<String>) -> ScriptError {
        RuntimeError::Host(message.into()).into()
    }

    /// For who knows only errors of functions.
    #[must_use]
    pub fn into_runtime(self) -> RuntimeError {
        match self {
            ScriptError::Runtime(error) => error,
            ScriptError::Host(error) => match error.downcast::<RuntimeError>() {
                Ok(error) => *error,
                Err(error) => RuntimeError::Host(error.to_string()),
            },
            other => RuntimeError::Host(other.to_string()),
        }
    }
}
