//! Walking the rows of a table by any of its keys, in both directions.

use std::cmp::Ordering;
use std::ops::Bound;

use super::index::{IndexTree, etag, place};
use super::row::Row;
use super::{TableState, index_of, row_at};
use crate::btree::{Cursor, Direction, prefix_end};
use crate::error::{Error, Result};
use crate::fixed::FixedCursor;
use crate::format::PageNumber;
use crate::heap::ValueRef;
use crate::multi::MultiCursor;
use crate::pages::Pages;

/// By which key rows are looked up or walked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// The primary key.
    Primary,
    /// The index at this place among [`Schema::indexes`](super::Schema::indexes).
    Index(usize),
}

/// A place in a table's rows in the order of one key: at a row, before the first or after the last. Borrows the pages for `'p`, like
/// the rows, and the state for `'s`: an etag index can lie in it.
///
/// Rows with the same key in a non-unique index come in no order to rely on, but in the same both ways.
pub(crate) struct RowCursor<'p, 's, P: Pages> {
    pages: &'p P,
    columns: usize,
    root: PageNumber,
    entries: Entries<'p, 's, P>,
    /// The key of an etag index at the current row, as bytes.
    etag_key: [u8; 8],
}

#[expect(clippy::large_enum_variant, reason = "a cursor lives on the stack and is not copied about")]
enum Entries<'p, 's, P: Pages> {
    Tree(Cursor<'p, P>),
    Multi(MultiCursor<'p, P>),
    Etag(FixedCursor<'s, P>),
}

impl<'p: 's, 's, P: Pages> RowCursor<'p, 's, P> {
    pub(super) fn new(pages: &'p P, state: &'s TableState, by: By) -> Result<RowCursor<'p, 's, P>> {
        let (entries, root) = match by {
            By::Primary => (Entries::Tree(Cursor::new(pages, &state.primary)), state.primary.root),
            By::Index(i) => match &index_of(state, i)?.tree {
                IndexTree::Unique(tree) => (Entries::Tree(Cursor::new(pages, tree)), tree.root),
                IndexTree::NonUnique(multi) => {
                    (Entries::Multi(MultiCursor::new(pages, multi)), multi.tree.root)
                }
                IndexTree::Etag(fixed) => (Entries::Etag(FixedCursor::new(pages, fixed)), fixed.root()),
            },
        };
        Ok(RowCursor { pages, columns: state.schema().columns(), root, entries, etag_key: [0; 8] })
    }

    fn is_etag(&self) -> bool {
        matches!(self.entries, Entries::Etag(_))
    }

    /// The key of the row the cursor is at; empty when it is at none. An etag as eight bytes, big-endian.
    pub(crate) fn key(&self) -> &[u8] {
        match &self.entries {
            Entries::Tree(cursor) => cursor.key(),
            Entries::Multi(cursor) => cursor.current().map_or(&[], |(key, _)| key),
            Entries::Etag(cursor) if cursor.current().is_some() => &self.etag_key,
            Entries::Etag(_) => &[],
        }
    }

    /// The number of the row the cursor is at, when it walks an etag index.
    pub(crate) fn etag(&self) -> Option<i64> {
        match &self.entries {
            Entries::Etag(cursor) => cursor.current().map(|(etag, _)| etag),
            _ => None,
        }
    }

    /// Where the row the cursor is at lies. Error: it is at none.
    pub(crate) fn place(&self) -> Result<ValueRef> {
        let bytes = match &self.entries {
            Entries::Tree(cursor) if cursor.is_at_entry() => Some(cursor.value()?),
            Entries::Tree(_) => None,
            Entries::Multi(cursor) => cursor.current().map(|(_, place)| place),
            Entries::Etag(cursor) => cursor.current().map(|(_, place)| place),
        };
        let bytes = bytes.ok_or_else(|| Error::Invalid("the cursor is at no row".to_owned()))?;
        place(bytes)
            .ok_or_else(|| Error::damaged(self.root, "a key of the table index of this root is of no row"))
    }

    /// The row the cursor is at. Errors: it is at none; damage.
    pub(crate) fn row(&self) -> Result<Row<'p>> {
        row_at(self.pages, self.columns, self.place()?)
    }

    fn went(&mut self, to: impl FnOnce(&mut Entries<'p, 's, P>) -> Result<bool>) -> Result<bool> {
        let found = to(&mut self.entries)?;
        if let Entries::Etag(cursor) = &self.entries
            && let Some((etag, _)) = cursor.current()
        {
            self.etag_key = etag.to_be_bytes();
        }
        Ok(found)
    }

    /// Goes to the first row; false when there is none.
    pub(crate) fn first(&mut self) -> Result<bool> {
        self.went(|entries| match entries {
            Entries::Tree(cursor) => cursor.first(),
            Entries::Multi(cursor) => cursor.first(),
            Entries::Etag(cursor) => Ok(cursor.first()?.is_some()),
        })
    }

    /// Goes to the last row; false when there is none.
    pub(crate) fn last(&mut self) -> Result<bool> {
        self.went(|entries| match entries {
            Entries::Tree(cursor) => cursor.last(),
            Entries::Multi(cursor) => cursor.last(),
            Entries::Etag(cursor) => Ok(cursor.last()?.is_some()),
        })
    }

    /// Goes to the next row: the first from before it; false when there is none.
    pub(crate) fn next(&mut self) -> Result<bool> {
        self.went(|entries| match entries {
            Entries::Tree(cursor) => cursor.next(),
            Entries::Multi(cursor) => cursor.next(),
            Entries::Etag(cursor) => Ok(cursor.next()?.is_some()),
        })
    }

    /// Goes to the row before: the last from after it; false when there is none.
    pub(crate) fn prev(&mut self) -> Result<bool> {
        self.went(|entries| match entries {
            Entries::Tree(cursor) => cursor.prev(),
            Entries::Multi(cursor) => cursor.prev(),
            Entries::Etag(cursor) => Ok(cursor.previous()?.is_some()),
        })
    }

    /// Goes to the first row whose key is `key` or greater; false when there is none.
    /// Errors: [`KeyEmpty`](Error::KeyEmpty), [`KeyTooLong`](Error::KeyTooLong); no etag for an etag index.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.went(|entries| match entries {
            Entries::Tree(cursor) => cursor.seek(key),
            Entries::Multi(cursor) => cursor.seek(key),
            Entries::Etag(cursor) => Ok(cursor.seek(etag(key)?)?.is_some()),
        })
    }

    /// Goes to the last row whose key is `key` or less; false when there is none. Errors: as for [`RowCursor::seek`].
    pub(crate) fn seek_at_most(&mut self, key: &[u8]) -> Result<bool> {
        self.went(|entries| match entries {
            Entries::Tree(cursor) => cursor.seek_at_most(key),
            Entries::Multi(cursor) => cursor.seek_at_most(key),
            Entries::Etag(cursor) => Ok(cursor.seek_back(etag(key)?)?.is_some()),
        })
    }

    /// Goes to the first row whose number is `etag` or greater; false when there is none.
    /// Error: [`Invalid`](Error::Invalid) when the cursor walks no etag index.
    pub(crate) fn seek_etag(&mut self, etag: i64) -> Result<bool> {
        if !self.is_etag() {
            return Err(Error::Invalid("an etag was looked up in an index that is no etag index".to_owned()));
        }
        self.seek(&etag.to_be_bytes())
    }

    /// How the key the cursor is at compares with another, in the order of the walk's index.
    fn compare(&self, key: &[u8]) -> Result<Ordering> {
        match self.etag() {
            Some(etag_here) => Ok(etag_here.cmp(&etag(key)?)),
            None => Ok(self.key().cmp(key)),
        }
    }
}

/// A walk over the rows whose key is in a range, in either direction.
pub(crate) struct RowRange<'p, 's, P: Pages> {
    cursor: RowCursor<'p, 's, P>,
    direction: Direction,
    /// Where the walk begins; taken by the first step.
    begin: Option<Bound<Vec<u8>>>,
    end: Bound<Vec<u8>>,
    done: bool,
}

impl<'p: 's, 's, P: Pages> RowRange<'p, 's, P> {
    /// The rows whose key is within the bounds. Bounds of an etag index have eight bytes, big-endian.
    /// Error: the table has no such index.
    pub(crate) fn new(
        pages: &'p P,
        state: &'s TableState,
        by: By,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<RowRange<'p, 's, P>> {
        let (low, high) = (low.map(<[u8]>::to_vec), high.map(<[u8]>::to_vec));
        let (begin, end) = match direction {
            Direction::Ascending => (low, high),
            Direction::Descending => (high, low),
        };
        let cursor = RowCursor::new(pages, state, by)?;
        Ok(RowRange { cursor, direction, begin: Some(begin), end, done: false })
    }

    /// The rows whose key is `key`: one at most, except in a non-unique index. Errors: as for [`RowRange::new`].
    pub(crate) fn exact(
        pages: &'p P,
        state: &'s TableState,
        by: By,
        key: &[u8],
        direction: Direction,
    ) -> Result<RowRange<'p, 's, P>> {
        RowRange::new(pages, state, by, (Bound::Included(key), Bound::Included(key)), direction)
    }

    /// The rows whose key begins with `prefix`. Errors: as for [`RowRange::new`]; it is an etag index.
    pub(crate) fn prefix(
        pages: &'p P,
        state: &'s TableState,
        by: By,
        prefix: &[u8],
        direction: Direction,
    ) -> Result<RowRange<'p, 's, P>> {
        let end = prefix_end(prefix);
        let high = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let low = if prefix.is_empty() { Bound::Unbounded } else { Bound::Included(prefix) };
        let range = RowRange::new(pages, state, by, (low, high), direction)?;
        if range.cursor.is_etag() {
            return Err(Error::Invalid("a prefix was looked up in an etag index".to_owned()));
        }
        Ok(range)
    }

    /// The rows of an etag index from a number on: upwards when ascending, else downwards.
    /// Error: it is no etag index.
    pub(crate) fn from_etag(
        pages: &'p P,
        state: &'s TableState,
        index: usize,
        from: i64,
        direction: Direction,
    ) -> Result<RowRange<'p, 's, P>> {
        let from = from.to_be_bytes();
        let bounds = match direction {
            Direction::Ascending => (Bound::Included(&from[..]), Bound::Unbounded),
            Direction::Descending => (Bound::Unbounded, Bound::Included(&from[..])),
        };
        let range = RowRange::new(pages, state, By::Index(index), bounds, direction)?;
        if !range.cursor.is_etag() {
            return Err(Error::Invalid("an etag was looked up in an index that is no etag index".to_owned()));
        }
        Ok(range)
    }

    /// The next row of the walk. After an error the walk is over.
    pub(crate) fn next(&mut self) -> Result<Option<Row<'p>>> {
        if self.done {
            return Ok(None);
        }
        self.done = true; // unless all goes well
        let found = match (self.begin.take(), self.direction) {
            (Some(begin), _) => self.begin(begin)?,
            (None, Direction::Ascending) => self.cursor.next()?,
            (None, Direction::Descending) => self.cursor.prev()?,
        };
        if !found {
            return Ok(None);
        }
        let within = match (&self.end, self.direction) {
            (Bound::Unbounded, _) => true,
            (Bound::Included(end), Direction::Ascending) => self.cursor.compare(end)? != Ordering::Greater,
            (Bound::Excluded(end), Direction::Ascending) => self.cursor.compare(end)? == Ordering::Less,
            (Bound::Included(end), Direction::Descending) => self.cursor.compare(end)? != Ordering::Less,
            (Bound::Excluded(end), Direction::Descending) => self.cursor.compare(end)? == Ordering::Greater,
        };
        if !within {
            return Ok(None);
        }
        let row = self.cursor.row()?;
        self.done = false;
        Ok(Some(row))
    }

    /// The key of the row that [`RowRange::next`] returned last.
    pub(crate) fn key(&self) -> &[u8] {
        self.cursor.key()
    }

    fn begin(&mut self, begin: Bound<Vec<u8>>) -> Result<bool> {
        let (key, included) = match &begin {
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
            Bound::Unbounded if self.direction == Direction::Ascending => return self.cursor.first(),
            Bound::Unbounded => return self.cursor.last(),
        };
        let mut found = match self.direction {
            Direction::Ascending => self.cursor.seek(key)?,
            Direction::Descending => self.cursor.seek_at_most(key)?,
        };
        while found && !included && self.cursor.compare(key)? == Ordering::Equal {
            found = match self.direction {
                Direction::Ascending => self.cursor.next()?,
                Direction::Descending => self.cursor.prev()?,
            };
        }
        Ok(found)
    }
}
