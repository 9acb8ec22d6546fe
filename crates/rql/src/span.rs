//! Places in a query text.

use std::hash::{Hash, Hasher};

/// The bytes `start..end` of the query text that a node was parsed from.
///
/// Where a node stands is not what it says: any two spans are equal and hash alike, so that `==` and hashing of syntax trees compare meaning.
/// Compare [`Span::start`] and [`Span::end`] to compare places.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    /// The offset of the first byte.
    pub start: u32,
    /// The offset after the last byte.
    pub end: u32,
}

impl Span {
    /// The text of this span in the query it was parsed from; empty when it is not of this text.
    #[must_use]
    pub fn of<'a>(&self, text: &'a str) -> &'a str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// From the start of this span to the end of a later one.
    #[must_use]
    pub(crate) fn to(self, end: Span) -> Span {
        Span { start: self.start, end: end.end }
    }
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Eq for Span {}

impl Hash for Span {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
