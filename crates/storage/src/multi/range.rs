//! Walks over the keys of a range with their values, in either direction.

use std::ops::Bound;

use super::MultiTree;
use super::cursor::MultiCursor;
use crate::btree::Direction;
use crate::error::Result;
use crate::pages::Pages;

/// A walk over the values of a range of keys.
pub(crate) struct MultiRange<'p, P> {
    cursor: MultiCursor<'p, P>,
    direction: Direction,
    /// Where the walk begins; taken by the first step.
    begin: Option<Bound<Vec<u8>>>,
    end: Bound<Vec<u8>>,
    /// Whether the walk has come to its end.
    done: bool,
}

impl<'p, P: Pages> MultiRange<'p, P> {
    pub(crate) fn new(
        tree: &MultiTree<'p, P>,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> MultiRange<'p, P> {
        let (begin, end) = direction.begin_and_end(low, high);
        MultiRange { cursor: tree.cursor(), direction, begin: Some(begin), end, done: false }
    }

    /// The next key and value of the walk. After an error the walk is over.
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.done {
            return Ok(None);
        }
        self.done = true; // unless all goes well
        let found = match (self.begin.take(), self.direction) {
            (None, Direction::Ascending) => self.cursor.next()?,
            (None, Direction::Descending) => self.cursor.prev()?,
            (Some(begin), _) => self.begin(begin)?,
        };
        let within = |(key, _): &(&[u8], &[u8])| self.direction.is_within(key, &self.end);
        self.done = !found || self.cursor.current().filter(within).is_none();
        Ok(if self.done { None } else { self.cursor.current() })
    }

    fn begin(&mut self, begin: Bound<Vec<u8>>) -> Result<bool> {
        match (begin, self.direction) {
            (Bound::Unbounded, Direction::Ascending) => self.cursor.first(),
            (Bound::Unbounded, Direction::Descending) => self.cursor.last(),
            (Bound::Included(key), Direction::Ascending) => self.cursor.seek(&key),
            (Bound::Included(key), Direction::Descending) => self.cursor.seek_at_most(&key),
            (Bound::Excluded(key), Direction::Ascending) => {
                Ok(self.cursor.seek(&key)? && (!self.is_at(&key) || self.cursor.next_key()?))
            }
            (Bound::Excluded(key), Direction::Descending) => {
                Ok(self.cursor.seek_at_most(&key)? && (!self.is_at(&key) || self.cursor.prev_key()?))
            }
        }
    }

    fn is_at(&self, key: &[u8]) -> bool {
        self.cursor.current().is_some_and(|(at, _)| at == key)
    }
}
