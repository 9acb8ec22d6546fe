//! Walking a fixed-size tree in both directions.

use super::delete::next_leaf;
use super::{FixedState, Path, Target, descend, root_path};
use crate::error::Result;
use crate::page::fixed::{Branch, Entries};
use crate::pages::Pages;

/// An entry: a key and its value.
pub(crate) type Entry<'p> = (i64, &'p [u8]);

/// A position in a fixed-size tree: at an entry, before the first or after the last. The tree cannot change meanwhile.
pub(crate) struct FixedCursor<'p, P: Pages> {
    pages: &'p P,
    state: &'p FixedState,
    path: Path,
    /// The leaf (or embedded entries) of the position, and the index there.
    entries: Entries<'p>,
    at: usize,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    BeforeFirst,
    AtEntry,
    AfterLast,
}

impl<'p, P: Pages> FixedCursor<'p, P> {
    /// A cursor before the first entry.
    pub(crate) fn new(pages: &'p P, state: &'p FixedState) -> FixedCursor<'p, P> {
        FixedCursor {
            pages,
            state,
            path: Path::EMPTY,
            entries: Entries::new(&[], &[], state.value_size()),
            at: 0,
            place: Place::BeforeFirst,
        }
    }

    fn descend(&mut self, target: Target) -> Result<()> {
        self.entries = if self.state.depth == 0 {
            self.state.embedded_entries()
        } else {
            self.path = root_path(self.state);
            descend(self.pages, self.state, &mut self.path, 0, target)?
        };
        Ok(())
    }

    /// The entry of the position.
    #[inline]
    pub(crate) fn current(&self) -> Option<Entry<'p>> {
        match self.place {
            Place::AtEntry => Some((self.entries.key(self.at), self.entries.value(self.at))),
            _ => None,
        }
    }

    fn settle(&mut self, at: Option<usize>, otherwise: Place) -> Option<Entry<'p>> {
        self.at = at.unwrap_or(0);
        self.place = if at.is_some() { Place::AtEntry } else { otherwise };
        self.current()
    }

    /// Goes to the first entry.
    pub(crate) fn first(&mut self) -> Result<Option<Entry<'p>>> {
        self.descend(Target::First)?;
        Ok(self.settle((self.entries.count() > 0).then_some(0), Place::AfterLast))
    }

    /// Goes to the last entry.
    pub(crate) fn last(&mut self) -> Result<Option<Entry<'p>>> {
        self.descend(Target::Last)?;
        Ok(self.settle(self.entries.count().checked_sub(1), Place::BeforeFirst))
    }

    /// Goes to the first entry whose key is `key` or more, else after the last.
    pub(crate) fn seek(&mut self, key: i64) -> Result<Option<Entry<'p>>> {
        self.descend(Target::Key(key))?;
        let (Ok(at) | Err(at)) = self.entries.search(key);
        if at < self.entries.count() {
            return Ok(self.settle(Some(at), Place::AfterLast));
        }
        self.next_leaf()
    }

    /// Goes to the last entry whose key is `key` or less, else before the first.
    pub(crate) fn seek_back(&mut self, key: i64) -> Result<Option<Entry<'p>>> {
        self.descend(Target::Key(key))?;
        match self.entries.search(key) {
            Ok(at) => Ok(self.settle(Some(at), Place::BeforeFirst)),
            Err(0) => self.previous_leaf(),
            Err(at) => Ok(self.settle(Some(at - 1), Place::BeforeFirst)),
        }
    }

    /// Goes to the next entry: the first when the position is before it.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Entry<'p>>> {
        match self.place {
            Place::AtEntry if self.at + 1 < self.entries.count() => {
                self.at += 1;
                Ok(self.current())
            }
            Place::AtEntry => self.next_leaf(),
            Place::BeforeFirst => self.first(),
            Place::AfterLast => Ok(None),
        }
    }

    /// Goes to the entry before: the last when the position is after it.
    #[inline]
    pub(crate) fn previous(&mut self) -> Result<Option<Entry<'p>>> {
        match self.place {
            Place::AtEntry if self.at > 0 => {
                self.at -= 1;
                Ok(self.current())
            }
            Place::AtEntry => self.previous_leaf(),
            Place::AfterLast => self.last(),
            Place::BeforeFirst => Ok(None),
        }
    }

    fn next_leaf(&mut self) -> Result<Option<Entry<'p>>> {
        if self.state.depth > 0
            && let Some(entries) = next_leaf(self.pages, self.state, &mut self.path)?
        {
            self.entries = entries;
            return Ok(self.settle((entries.count() > 0).then_some(0), Place::AfterLast));
        }
        Ok(self.settle(None, Place::AfterLast))
    }

    fn previous_leaf(&mut self) -> Result<Option<Entry<'p>>> {
        for level in (0..self.path.depth.saturating_sub(1)).rev() {
            let (number, i) = self.path.steps[level];
            if i > 0 {
                let branch = Branch::new(self.pages.page(number)?)?;
                self.path.steps[level].1 = i - 1;
                self.path.steps[level + 1] = (branch.child(i - 1), 0);
                self.entries = descend(self.pages, self.state, &mut self.path, level + 1, Target::Last)?;
                return Ok(self.settle(self.entries.count().checked_sub(1), Place::BeforeFirst));
            }
        }
        Ok(self.settle(None, Place::BeforeFirst))
    }
}
