//! Walks over the entries of a range of keys, in either direction.

use std::ops::Bound;

use super::{Cursor, Tree};
use crate::error::Result;
use crate::pages::Pages;

/// Which way a walk goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Ascending,
    Descending,
}

impl Direction {
    /// Whether a walk this way has not passed its end at this key.
    #[inline]
    pub(crate) fn is_within(self, key: &[u8], end: &Bound<Vec<u8>>) -> bool {
        match (end, self) {
            (Bound::Unbounded, _) => true,
            (Bound::Included(end), Direction::Ascending) => key <= end.as_slice(),
            (Bound::Excluded(end), Direction::Ascending) => key < end.as_slice(),
            (Bound::Included(end), Direction::Descending) => key >= end.as_slice(),
            (Bound::Excluded(end), Direction::Descending) => key > end.as_slice(),
        }
    }

    /// The bounds as where a walk this way begins and where it ends.
    pub(crate) fn begin_and_end(
        self,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let (low, high) = (low.map(<[u8]>::to_vec), high.map(<[u8]>::to_vec));
        match self {
            Direction::Ascending => (low, high),
            Direction::Descending => (high, low),
        }
    }
}

/// A walk over a range of keys.
pub(crate) struct Range<'p, P> {
    cursor: Cursor<'p, P>,
    direction: Direction,
    /// Where the walk begins; taken by the first step.
    begin: Option<Bound<Vec<u8>>>,
    end: Bound<Vec<u8>>,
    /// Whether the walk has come to its end.
    done: bool,
}

impl<'p, P: Pages> Tree<'p, P> {
    /// The entries whose keys are within the bounds, walked in the direction given.
    pub(crate) fn range(&self, low: Bound<&[u8]>, high: Bound<&[u8]>, direction: Direction) -> Range<'p, P> {
        let (begin, end) = direction.begin_and_end(low, high);
        Range { cursor: self.cursor(), direction, begin: Some(begin), end, done: false }
    }

    /// The entries whose keys begin with `prefix`.
    pub(crate) fn prefix(&self, prefix: &[u8], direction: Direction) -> Range<'p, P> {
        let end = prefix_end(prefix);
        let high = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let low = if prefix.is_empty() { Bound::Unbounded } else { Bound::Included(prefix) };
        self.range(low, high, direction)
    }
}

impl<'p, P: Pages> Range<'p, P> {
    /// The next entry of the walk. After an error the walk is over.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], &'p [u8])>> {
        if self.done {
            return Ok(None);
        }
        self.done = true; // unless all goes well
        let found = match (self.begin.take(), self.direction) {
            (None, Direction::Ascending) => self.cursor.next()?,
            (None, Direction::Descending) => self.cursor.prev()?,
            (Some(begin), _) => self.begin(begin)?,
        };
        if !found {
            return Ok(None);
        }
        if !self.direction.is_within(self.cursor.key(), &self.end) {
            return Ok(None);
        }
        let value = self.cursor.value()?;
        self.done = false;
        Ok(Some((self.cursor.key(), value)))
    }

    #[cold]
    fn begin(&mut self, begin: Bound<Vec<u8>>) -> Result<bool> {
        match (begin, self.direction) {
            (Bound::Unbounded, Direction::Ascending) => self.cursor.first(),
            (Bound::Unbounded, Direction::Descending) => self.cursor.last(),
            (Bound::Included(key), Direction::Ascending) => self.cursor.seek(&key),
            (Bound::Included(key), Direction::Descending) => self.cursor.seek_at_most(&key),
            (Bound::Excluded(key), Direction::Ascending) => {
                Ok(self.cursor.seek(&key)? && (self.cursor.key() != key || self.cursor.next()?))
            }
            (Bound::Excluded(key), Direction::Descending) => {
                Ok(self.cursor.seek_at_most(&key)? && (self.cursor.key() != key || self.cursor.prev()?))
            }
        }
    }
}

/// The least key that is greater than all keys that begin with `prefix`; `None` when there is none.
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}
