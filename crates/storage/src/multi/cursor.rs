//! Walking the values of one key, and all keys with their values, in both directions.

use super::MultiState;
use super::entry::{Entry, PACKED_COUNT_MAX, Packed};
use crate::btree::Cursor;
use crate::error::Result;
use crate::format::PageNumber;
use crate::pages::Pages;

/// A place among the values of one key: at a value, before the first or after the last.
pub(crate) struct ValueCursor<'p, P> {
    values: Values<'p, P>,
}

#[expect(clippy::large_enum_variant, reason = "a cursor lives on the stack and is not copied about")]
enum Values<'p, P> {
    Packed { packed: Option<Packed<'p>>, offsets: [u16; PACKED_COUNT_MAX], count: usize, place: usize },
    Nested(Cursor<'p, P>),
}

impl<'p, P: Pages> ValueCursor<'p, P> {
    pub(super) fn new(pages: &'p P, entry: Entry<'p>) -> ValueCursor<'p, P> {
        let values = match entry {
            Entry::Packed(packed) => {
                let mut offsets = [0; PACKED_COUNT_MAX];
                for (to, at) in offsets.iter_mut().zip(packed.offsets()) {
                    *to = at as u16;
                }
                Values::Packed { packed: Some(packed), offsets, count: packed.count(), place: 0 }
            }
            Entry::Nested(nested) => Values::Nested(Cursor::new(pages, &nested)),
        };
        ValueCursor { values }
    }

    pub(super) fn empty(_: &'p P) -> ValueCursor<'p, P> {
        ValueCursor {
            values: Values::Packed { packed: None, offsets: [0; PACKED_COUNT_MAX], count: 0, place: 0 },
        }
    }

    /// The value the cursor is at; `None` before the first and after the last.
    pub(crate) fn value(&self) -> Option<&[u8]> {
        match &self.values {
            // Place 0 is before the first value, place `count + 1` after the last.
            Values::Packed { packed: Some(packed), offsets, count, place }
                if (1..=*count).contains(place) =>
            {
                Some(packed.value_at(offsets[*place - 1] as usize).0)
            }
            Values::Packed { .. } => None,
            Values::Nested(cursor) => cursor.is_at_entry().then(|| cursor.key()),
        }
    }

    fn go(
        &mut self,
        packed: impl FnOnce(usize, usize) -> usize,
        nested: impl FnOnce(&mut Cursor<'p, P>) -> Result<bool>,
    ) -> Result<Option<&[u8]>> {
        match &mut self.values {
            Values::Packed { count, place, .. } => *place = packed(*place, *count),
            Values::Nested(cursor) => {
                nested(cursor)?;
            }
        }
        Ok(self.value())
    }

    /// Goes to the first value.
    pub(crate) fn first(&mut self) -> Result<Option<&[u8]>> {
        self.go(|_, _| 1, Cursor::first)
    }

    /// Goes to the last value.
    pub(crate) fn last(&mut self) -> Result<Option<&[u8]>> {
        self.go(|_, count| count, Cursor::last)
    }

    /// Goes to the next value: the first from before it.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>> {
        self.go(|place, count| place.min(count) + 1, Cursor::next)
    }

    /// Goes to the value before: the last from after it.
    pub(crate) fn prev(&mut self) -> Result<Option<&[u8]>> {
        self.go(|place, _| place.saturating_sub(1), Cursor::prev)
    }

    /// Goes to the first value that is `value` or greater, else after the last.
    /// Errors: [`KeyEmpty`](crate::Error::KeyEmpty), [`KeyTooLong`](crate::Error::KeyTooLong).
    pub(crate) fn seek(&mut self, value: &[u8]) -> Result<Option<&[u8]>> {
        super::check_value(value)?;
        if let Values::Packed { packed: Some(packed), place, .. } = &mut self.values {
            *place = 1 + packed.iter().take_while(|other| *other < value).count();
            return Ok(self.value());
        }
        self.go(|_, _| 1, |cursor| cursor.seek(value))
    }

    /// Goes to the last value that is `value` or less, else before the first. Errors: as for [`ValueCursor::seek`].
    pub(crate) fn seek_at_most(&mut self, value: &[u8]) -> Result<Option<&[u8]>> {
        super::check_value(value)?;
        if let Values::Packed { packed: Some(packed), place, .. } = &mut self.values {
            *place = packed.iter().take_while(|other| *other <= value).count();
            return Ok(self.value());
        }
        self.go(|_, _| 0, |cursor| cursor.seek_at_most(value))
    }
}

/// A place among all keys and their values: at a value of a key, before the first or after the last.
pub(crate) struct MultiCursor<'p, P> {
    pages: &'p P,
    root: PageNumber,
    keys: Cursor<'p, P>,
    values: ValueCursor<'p, P>,
}

impl<'p, P: Pages> MultiCursor<'p, P> {
    pub(crate) fn new(pages: &'p P, state: &MultiState) -> MultiCursor<'p, P> {
        let keys = Cursor::new(pages, &state.tree);
        MultiCursor { pages, root: state.tree.root, keys, values: ValueCursor::empty(pages) }
    }

    /// The key and the value the cursor is at; `None` before the first and after the last.
    pub(crate) fn current(&self) -> Option<(&[u8], &[u8])> {
        self.values.value().map(|value| (self.keys.key(), value))
    }

    /// Takes up the values of the key where the key cursor went.
    fn enter(&mut self, found: bool, last: bool) -> Result<bool> {
        self.values = match found {
            true => ValueCursor::new(self.pages, Entry::decode(self.keys.value()?, self.root)?),
            false => ValueCursor::empty(self.pages),
        };
        match last {
            true => self.values.last()?,
            false => self.values.first()?,
        };
        Ok(found)
    }

    /// Goes to the first value of the first key; false when there is none.
    pub(crate) fn first(&mut self) -> Result<bool> {
        let found = self.keys.first()?;
        self.enter(found, false)
    }

    /// Goes to the last value of the last key; false when there is none.
    pub(crate) fn last(&mut self) -> Result<bool> {
        let found = self.keys.last()?;
        self.enter(found, true)
    }

    /// Goes to the first value of the first key that is `key` or greater; false when there is none.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let found = self.keys.seek(key)?;
        self.enter(found, false)
    }

    /// Goes to the last value of the last key that is `key` or less; false when there is none.
    pub(crate) fn seek_at_most(&mut self, key: &[u8]) -> Result<bool> {
        let found = self.keys.seek_at_most(key)?;
        self.enter(found, true)
    }

    /// Goes to the next value, of this key or the next; false when there is none.
    pub(crate) fn next(&mut self) -> Result<bool> {
        if self.keys.is_at_entry() && self.values.next()?.is_some() {
            return Ok(true);
        }
        let found = self.keys.next()?;
        self.enter(found, false)
    }

    /// Goes to the value before, of this key or the one before; false when there is none.
    pub(crate) fn prev(&mut self) -> Result<bool> {
        if self.keys.is_at_entry() && self.values.prev()?.is_some() {
            return Ok(true);
        }
        let found = self.keys.prev()?;
        self.enter(found, true)
    }

    /// Goes to the first value of the next key; false when there is none.
    pub(crate) fn next_key(&mut self) -> Result<bool> {
        let found = self.keys.next()?;
        self.enter(found, false)
    }

    /// Goes to the last value of the key before; false when there is none.
    pub(crate) fn prev_key(&mut self) -> Result<bool> {
        let found = self.keys.prev()?;
        self.enter(found, true)
    }
}
