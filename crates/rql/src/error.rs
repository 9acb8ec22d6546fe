//! Why and where a query was refused.

use std::fmt;

use crate::span::Span;

/// The result of the fallible calls of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Characters of the source line that a message shows, at most.
const SHOWN_MAX: usize = 120;

/// A query text that is not RQL, or exceeds a limit.
///
/// `Display` gives three lines: what is wrong and where (`line:column`), the source line, and a caret below the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Error(Box<Details>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Details {
    kind: ErrorKind,
    span: (u32, u32),
    line: u32,
    column: u32,
    /// The part of the source line around the place, with control characters as spaces.
    shown: String,
    /// Characters of `shown` before the place.
    indent: usize,
    carets: usize,
}

/// What is wrong with a query text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Something else stands where one of certain things must.
    Unexpected {
        /// What could stand there.
        expected: &'static str,
        /// What stands there: a piece of the text in quotes, or "the end of the query".
        found: String,
    },
    /// A quoted string, comment, block of braces or parenthesis is never closed; the place is where it opens.
    Unclosed {
        /// What is not closed, with the character that closes it.
        what: &'static str,
    },
    /// A backslash in a string is followed by what no escape begins with, or `\u` by other than four hexadecimal digits that make a character.
    Escape,
    /// A character that begins nothing in RQL, such as NUL or `#`.
    Character(char),
    /// A reserved word stands where a name must; as a name it is put in quotes.
    Reserved(String),
    /// A clause is there twice.
    Twice {
        /// Its keyword.
        clause: &'static str,
    },
    /// A clause stands after one that it must precede.
    Order {
        /// Its keyword.
        clause: &'static str,
        /// The keyword of the clause that it must precede.
        before: &'static str,
    },
    /// The construct is RQL of some server, but not ours.
    Unsupported {
        /// The construct.
        what: &'static str,
    },
    /// A limit was exceeded.
    Limit {
        /// Which one.
        what: &'static str,
        /// Its value.
        limit: usize,
    },
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::Unexpected { expected, found } => write!(f, "expected {expected}, found {found}"),
            ErrorKind::Unclosed { what } => write!(f, "unclosed {what}"),
            ErrorKind::Escape => f.write_str(
                "malformed escape; a string may have \\n \\r \\t \\b \\f \\v \\/ \\\\ \\' \\\" and \\uXXXX",
            ),
            ErrorKind::Character(c) => write!(f, "no part of a query begins with {c:?}"),
            ErrorKind::Reserved(word) => {
                write!(f, "{word:?} is a reserved word; as a name it must be in quotes: '{word}'")
            }
            ErrorKind::Twice { clause } => write!(f, "a second `{clause}`; a query has at most one"),
            ErrorKind::Order { clause, before } => write!(f, "`{clause}` must stand before `{before}`"),
            ErrorKind::Unsupported { what } => write!(f, "{what} are not supported"),
            ErrorKind::Limit { what, limit } => write!(f, "the {what} is limited to {limit}"),
        }
    }
}

impl Error {
    #[cold]
    pub(crate) fn new(text: &str, span: Span, kind: ErrorKind) -> Error {
        let start = floor_char(text, span.start as usize);
        let end = floor_char(text, span.end as usize).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let before = text[line_start..start].chars().count();
        // Of a long line, the place in its middle.
        let skipped = before.saturating_sub(SHOWN_MAX / 2);
        let shown: String = text[line_start..line_end]
            .chars()
            .skip(skipped)
            .take(SHOWN_MAX)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let carets = text[start..end.min(line_end).max(start)].chars().take(SHOWN_MAX / 2).count().max(1);
        Error(Box::new(Details {
            kind,
            span: (start as u32, end as u32),
            line: 1 + text[..start].bytes().filter(|byte| *byte == b'\n').count() as u32,
            column: 1 + before as u32,
            shown,
            indent: before - skipped,
            carets,
        }))
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The place, in bytes of the text.
    #[must_use]
    pub fn span(&self) -> Span {
        Span { start: self.0.span.0, end: self.0.span.1 }
    }

    /// The byte offset of the place in the text, from 0.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.0.span.0 as usize
    }

    /// The line of the place, from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.0.line
    }

    /// The column of the place in characters, from 1.
    #[must_use]
    pub fn column(&self) -> u32 {
        self.0.column
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { kind, line, column, shown, indent, carets, .. } = &*self.0;
        write!(f, "{line}:{column}: {kind}\n{shown}\n{:indent$}{:^<carets$}", "", "")
    }
}

/// The last boundary between characters not after `at`.
fn floor_char(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}
