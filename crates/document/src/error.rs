//! What can go wrong, by what the caller can do about it.

use std::fmt;

/// The result of the fallible calls of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The JSON text is not JSON, or exceeds a limit.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The bytes are not a binary document.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// A limit was exceeded while building.
    #[error("the {what} is limited to {limit}")]
    Limit {
        /// Which limit.
        what: &'static str,
        /// Its value.
        limit: usize,
    },
    /// Calls of a builder came in an order that builds nothing, such as a value without a name inside an object.
    #[error("the document cannot be built so: {0}")]
    Build(&'static str),
    /// A path such as `Lines[].Product` is not well formed.
    #[error("the path {path:?} is wrong at byte {offset}: {reason}")]
    Path {
        /// The path as given.
        path: String,
        /// Where in it.
        offset: usize,
        /// What was expected there.
        reason: &'static str,
    },
    /// An edit names a place that the document does not have.
    #[error("there is nothing to edit at {path:?}: {reason}")]
    Edit {
        /// The path as given.
        path: String,
        /// What is there instead.
        reason: &'static str,
    },
    /// The value has another type than the one asked for.
    #[error("expected {expected}, found {found}")]
    Type {
        /// What the caller asked for.
        expected: &'static str,
        /// What the document holds.
        found: &'static str,
    },
    /// The object has no such property.
    #[error("there is no property {name:?}")]
    Missing {
        /// The name asked for.
        name: String,
    },
    /// A `serde` type could not be written as, or read from, a document.
    #[error("{0}")]
    Serde(String),
    /// The document was written with a dictionary that is not at hand.
    #[error("the document needs dictionary {needed}, but dictionary {given} was given")]
    Dictionary {
        /// The id in the document.
        needed: u32,
        /// The id of the dictionary at hand; 0 is the built-in one.
        given: u32,
    },
    /// The bytes offered as a trained dictionary are none.
    #[error("the bytes are not a dictionary: {0}")]
    DictionaryBytes(&'static str),
}

/// Where and why a JSON text was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    /// What is wrong there.
    pub kind: TextErrorKind,
    /// The byte offset in the text, from 0.
    pub offset: usize,
    /// The line, from 1.
    pub line: usize,
    /// The column in bytes, from 1.
    pub column: usize,
}

impl std::error::Error for TextError {}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at line {}, column {} (byte {})", self.kind, self.line, self.column, self.offset)
    }
}

impl TextError {
    /// Finds the line and column of `offset` in `text`.
    #[cold]
    pub(crate) fn at(text: &[u8], offset: usize, kind: TextErrorKind) -> TextError {
        let before = &text[..offset.min(text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|byte| **byte != b'\n').count();
        TextError { kind, offset, line, column }
    }
}

/// What is wrong with a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextErrorKind {
    /// The text ends inside a value, or holds none.
    UnexpectedEnd,
    /// This byte cannot stand here; the text says what can.
    Unexpected {
        /// The byte found.
        found: u8,
        /// What could stand there.
        expected: &'static str,
    },
    /// Something other than white space follows the value.
    Trailing,
    /// A number is malformed: a leading zero, a bare point, an exponent without digits.
    Number,
    /// A control character (below 0x20) stands unescaped in a string.
    ControlCharacter(u8),
    /// A backslash is followed by what no escape begins with, or `\u` by other than four hexadecimal digits.
    Escape,
    /// The text is not UTF-8.
    Utf8,
    /// The text starts with a byte order mark.
    ByteOrderMark,
    /// A lone surrogate stands in a property name; in strings they are kept.
    SurrogateInName,
    /// A limit was exceeded.
    Limit {
        /// Which limit.
        what: &'static str,
        /// Its value.
        limit: usize,
    },
}

impl fmt::Display for TextErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextErrorKind::UnexpectedEnd => f.write_str("the text ends too early"),
            TextErrorKind::Unexpected { found, expected } => {
                write!(f, "expected {expected}, found {:?}", char::from(*found))
            }
            TextErrorKind::Trailing => f.write_str("nothing may follow the value"),
            TextErrorKind::Number => f.write_str("malformed number"),
            TextErrorKind::ControlCharacter(byte) => {
                write!(f, "control character 0x{byte:02X} in a string; it must be escaped")
            }
            TextErrorKind::Escape => f.write_str("malformed escape"),
            TextErrorKind::Utf8 => f.write_str("the text is not UTF-8"),
            TextErrorKind::ByteOrderMark => f.write_str("the text starts with a byte order mark; remove it"),
            TextErrorKind::SurrogateInName => f.write_str("lone surrogate in a property name"),
            TextErrorKind::Limit { what, limit } => write!(f, "the {what} is limited to {limit}"),
        }
    }
}

/// Where and why bytes were refused as a binary document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The byte offset in the document at which the fault was found.
    pub offset: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

impl std::error::Error for Damage {}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a valid document: {} at byte {}", self.reason, self.offset)
    }
}
