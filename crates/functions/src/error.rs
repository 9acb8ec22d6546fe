//! What can be wrong with a function: its text, or a run of it.

/// Why a text is no function: where, and what it is that is not supported or not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct CompileError {
    /// What is wrong, as a sentence that names the construct.
    pub message: String,
    /// The line in the text, counted from 1.
    pub line: u32,
    /// The character in the line, counted from 1.
    pub column: u32,
    /// The construct that is refused, in the language's own words: `query into`, `String.Normalize`. Empty for errors of grammar.
    pub construct: String,
}

/// Why a run of a function failed. The function itself stays good for other documents.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// An integer or a decimal was divided by zero.
    #[error("Attempted to divide by zero. (line {line})")]
    DivisionByZero {
        /// Where in the function.
        line: u32,
    },
    /// An operation got a value it cannot work with: no number where one is needed, an index beyond the end of an array, and so on.
    #[error("{message} (line {line})")]
    Value {
        /// What was found and what was expected.
        message: String,
        /// Where in the function; 0 where that is not known.
        line: u32,
    },
    /// The run used up what it may use: steps, memory, time or outputs.
    #[error("the function exceeded its limit of {limit} {what}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// How much of it is allowed.
        limit: u64,
    },
    /// A script threw this.
    #[error("{message}")]
    Script {
        /// The thrown value as text, with its place where it has one.
        message: String,
    },
    /// The host could not give what was asked for.
    #[error("{0}")]
    Host(String),
}

impl RuntimeError {
    /// An error about a value.
    #[must_use]
    pub fn value(message: impl Into<String>, line: u32) -> RuntimeError {
        RuntimeError::Value { message: message.into(), line }
    }
}
