//! Putting entries in: the append path, replacing, inserting where there is room. Where there is none, `split.rs` goes on.

use super::search::{self, leaf_for, leaf_mut};
use super::split::Place;
use super::{TreeMut, check_key, check_value_size, is_inline};
use crate::error::Result;
use crate::format::{INLINE_VALUE_SIZE_MAX, PageNumber};
use crate::heap::{self, ValueRef};
use crate::page::header::PageKind;
use crate::page::leaf::{self, Appended, Entry, Leaf, LeafValue};
use crate::pages::{PagesMut, RunSource};

impl<P: PagesMut> TreeMut<'_, P> {
    /// Sets a key's value and returns whether the key was there already.
    ///
    /// Errors: [`KeyEmpty`](crate::Error::KeyEmpty), [`KeyTooLong`](crate::Error::KeyTooLong),
    /// [`ValueTooLong`](crate::Error::ValueTooLong); damage; what allocating pages returns.
    #[inline]
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        check_key(key)?;
        if !is_inline(value.len()) {
            return self.put_long(key, value);
        }
        let value = LeafValue::Inline(value);
        if self.append(key, value)? {
            return Ok(false);
        }
        self.put_searched(key, value)
    }

    /// Sets a key's value, of `length` bytes that come in pieces, and returns whether the key was there already.
    /// Errors: as for [`TreeMut::put`], and the source's own.
    pub(crate) fn put_stream(&mut self, key: &[u8], length: u64, source: &mut dyn RunSource) -> Result<bool> {
        check_key(key)?;
        check_value_size(length)?;
        if length <= INLINE_VALUE_SIZE_MAX as u64 {
            let mut buffer = [0; INLINE_VALUE_SIZE_MAX];
            let value = &mut buffer[..length as usize];
            source.fill(value)?;
            return self.put(key, value);
        }
        let r = heap::insert_stream(self.pages, &mut self.state.heap, length, source)?;
        self.put_stored(key, r)
    }

    /// Inserts a key with its value unless it is there already; returns whether it was inserted.
    /// Errors: as for [`TreeMut::put`].
    pub(crate) fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        check_key(key)?;
        check_value_size(value.len() as u64)?;
        if is_inline(value.len()) && self.append(key, LeafValue::Inline(value))? {
            return Ok(true);
        }
        let mut found = None;
        if self.state.root.is_some() {
            let (number, rightmost) = leaf_for(self.pages, self.state, key)?;
            match search::leaf(self.pages, number)?.search(key) {
                Ok(_) => return Ok(false),
                Err(i) => found = Some((number, rightmost, i)),
            }
        }
        let (value, stored) = if is_inline(value.len()) {
            (LeafValue::Inline(value), None)
        } else {
            let r = heap::insert(self.pages, &mut self.state.heap, value)?;
            (LeafValue::Long(r), Some(r))
        };
        let done = match found {
            Some((number, rightmost, i)) => self.insert_at(number, rightmost, i, key, value),
            None => self.plant(key, value),
        };
        if let (Err(_), Some(r)) = (&done, stored) {
            heap::remove(self.pages, &mut self.state.heap, r)?;
        }
        done.map(|()| true)
    }

    /// Lets `change` change the value of a key in its place, when the key is there and its value lies in the leaf; returns
    /// whether it was called. The value's size stays.
    #[cfg_attr(not(test), expect(dead_code, reason = "counters and the like will want it"))]
    pub(crate) fn change_in_place(&mut self, key: &[u8], change: impl FnOnce(&mut [u8])) -> Result<bool> {
        check_key(key)?;
        if !self.state.root.is_some() {
            return Ok(false);
        }
        let (number, _) = leaf_for(self.pages, self.state, key)?;
        let leaf = search::leaf(self.pages, number)?;
        let Ok(i) = leaf.search(key) else { return Ok(false) };
        let mut page = leaf_mut(self.pages, number)?;
        match leaf::inline_value_at(page.bytes(), i) {
            Some((at, size)) => {
                change(page.slice_mut(at, size));
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Tries to insert behind the last key of the tree, which the hint knows.
    #[inline(always)]
    fn append(&mut self, key: &[u8], value: LeafValue<'_>) -> Result<bool> {
        if !self.hint.rightmost.is_some() {
            return Ok(false);
        }
        // Looked at before it is made ready for changing: the hint may be of an earlier transaction, with other keys.
        if !leaf::is_behind_all(search::leaf(self.pages, self.hint.rightmost)?, key) {
            self.hint.rightmost = PageNumber::NONE;
            return Ok(false);
        }
        match leaf::append(&mut leaf_mut(self.pages, self.hint.rightmost)?, key, value) {
            Appended::Done => {
                self.state.entries += 1;
                Ok(true)
            }
            Appended::NoRoom => Ok(false),
            Appended::NotLast => {
                self.hint.rightmost = PageNumber::NONE;
                Ok(false)
            }
        }
    }

    /// Sets the value of a key that may be anywhere.
    #[inline]
    fn put_searched(&mut self, key: &[u8], value: LeafValue<'_>) -> Result<bool> {
        if !self.state.root.is_some() {
            self.plant(key, value)?;
            return Ok(false);
        }
        let (number, rightmost) = leaf_for(self.pages, self.state, key)?;
        let mut page = leaf_mut(self.pages, number)?;
        let leaf = Leaf::new(page.bytes());
        match leaf.search(key) {
            Ok(i) => {
                let old = match leaf.cell(i).value {
                    LeafValue::Long(r) => Some(r),
                    LeafValue::Inline(_) => None,
                };
                if !leaf::replace(&mut page, i, value) {
                    self.make_room(number, Place::Replace(i), key, value)?;
                }
                if let Some(r) = old
                    && value != LeafValue::Long(r)
                {
                    heap::remove(self.pages, &mut self.state.heap, r)?;
                }
                Ok(true)
            }
            Err(i) => {
                self.insert_at(number, rightmost, i, key, value)?;
                Ok(false)
            }
        }
    }

    /// Inserts an entry that belongs into a leaf, at an index. `rightmost`: it is the last leaf of all.
    #[inline]
    fn insert_at(
        &mut self,
        number: PageNumber,
        rightmost: bool,
        index: usize,
        key: &[u8],
        value: LeafValue<'_>,
    ) -> Result<()> {
        let mut page = leaf_mut(self.pages, number)?;
        let leaf = Leaf::new(page.bytes());
        let last = rightmost && index == leaf.count();
        let fits = match key.strip_prefix(leaf.prefix()) {
            Some(behind) => leaf::insert(&mut page, index, behind, value),
            None => false,
        };
        let mut taker = number;
        if !fits {
            taker = self.make_room(number, Place::Insert(index), key, value)?;
        }
        self.state.entries += 1;
        if last {
            self.hint.rightmost = taker;
        }
        Ok(())
    }

    /// Sets the value of a key to one that is too long for a leaf.
    fn put_long(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        check_value_size(value.len() as u64)?;
        if self.state.root.is_some() {
            let (number, _) = leaf_for(self.pages, self.state, key)?;
            let leaf = search::leaf(self.pages, number)?;
            if let Ok(i) = leaf.search(key)
                && let LeafValue::Long(old) = leaf.cell(i).value
            {
                self.pages.page_mut(number)?; // what fails, fails before the heap changes
                let new = heap::update(self.pages, &mut self.state.heap, old, value)?;
                leaf::replace(&mut leaf_mut(self.pages, number)?, i, LeafValue::Long(new));
                return Ok(true);
            }
        }
        let r = heap::insert(self.pages, &mut self.state.heap, value)?;
        self.put_stored(key, r)
    }

    /// Sets the value of a key to one that was just put into the heap; takes it out again when that fails.
    fn put_stored(&mut self, key: &[u8], r: ValueRef) -> Result<bool> {
        self.put_searched(key, LeafValue::Long(r)).or_else(|error| {
            heap::remove(self.pages, &mut self.state.heap, r)?;
            Err(error)
        })
    }

    /// The first entry of an empty tree.
    fn plant(&mut self, key: &[u8], value: LeafValue<'_>) -> Result<()> {
        let number = self.pages.allocate(PageKind::Leaf)?;
        leaf::build(&mut self.pages.page_mut(number)?, &[], &[Entry::new(key, value)], 1);
        self.state.root = number;
        self.state.depth = 1;
        self.state.leaf_pages = 1;
        self.state.entries += 1;
        self.hint.rightmost = number;
        Ok(())
    }
}
