//! The syntax tree: what a query says, one type for each construct, with the place of each node.
//!
//! - Text is borrowed from the query text where it stands there as it is (`Cow::Borrowed`); only strings with escapes are copied.
//!   [`Query::into_owned`] copies the rest, for a tree that outlives its text.
//! - `==` and hashing compare meaning: places do not count, neither do quotes, comments, the case of keywords or which of several spellings was used.
//!   Names and strings compare exactly, names of functions too.
//! - A tree from the parser keeps the rules that the types do not: they stand at the fields. A tree that keeps them prints as a text that parses to
//!   an equal tree.

mod clause;
mod expression;
mod owned;
mod path;

use std::borrow::Cow;

pub use clause::{
    Code, CodeLanguage, Declaration, Direction, GroupKey, Load, Nulls, OrderKey, OrderType, Paging,
    Projection, Query, Select, SelectItem, Source, SourceKind,
};
pub use expression::{
    Argument, Between, Call, Comparison, ComparisonOperator, Expression, In, Junction, Literal, Not,
    Parameter, Value,
};
pub use path::{Path, Step};

use crate::span::Span;

/// Text of a query: borrowed from it where it stands there unescaped.
pub type Text<'a> = Cow<'a, str>;

/// A name without its quotes: of a collection, an index, an alias, a property, a function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name<'a> {
    /// The name. It may hold any characters, and be empty.
    pub text: Text<'a>,
    /// Its place, quotes included.
    pub span: Span,
}

impl<'a> Name<'a> {
    /// A name that stands nowhere.
    #[must_use]
    pub fn new(text: impl Into<Text<'a>>) -> Name<'a> {
        Name { text: text.into(), span: Span::default() }
    }
}
