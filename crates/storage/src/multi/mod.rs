//! Multi-value trees: each key has a sorted set of values, byte strings like keys.
//!
//! Most keys have few values, and those are packed, sorted, in the leaf beside their key. When they become too many for
//! that, they move to a nested tree of their own, whose keys they are, and the leaf keeps that tree's state; when few
//! remain, they move back.
//!
//! What always holds:
//! - a key has at least one value; a key whose last value is removed is gone;
//! - no nested tree has a nested tree or a long value, so it needs no heap;
//! - `values` counts the values of all keys, and the nested page counts are the sums over all nested trees.
//!
//! Adding and removing touch two trees. When the second fails (out of memory or disk, damage), the first has changed
//! already: after an error other than for a refused key or value, the transaction must be rolled back to before the call.

mod check;
mod cursor;
mod entry;
mod range;
#[cfg(test)]
mod tests;

pub(crate) use check::or_problem;
pub(crate) use cursor::{MultiCursor, ValueCursor};
pub(crate) use range::MultiRange;

use crate::btree::{InsertHint, TREE_STATE_SIZE, Tree, TreeMut, TreeState};
use crate::error::{Error, Result};
use crate::format::{KEY_SIZE_MAX, PageNumber, read_u64};
use crate::pages::{Pages, PagesMut};
use entry::{Entry, PACKED_SIZE_MAX, PackedBuffer};

/// Bytes of an encoded [`MultiState`].
pub(crate) const MULTI_STATE_SIZE: usize = TREE_STATE_SIZE + 24;

/// A multi-value tree's state: it changes with every change of the tree and belongs to the same transaction.
///
/// | offset | size | name | meaning |
/// |---|---|---|---|
/// | 0 | TREE_STATE_SIZE | tree | the tree of the keys |
/// | +0 | 8 | values | values of all keys |
/// | +8 | 8 | nested branch pages | branch pages of all nested trees |
/// | +16 | 8 | nested leaf pages | leaf pages of all nested trees |
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct MultiState {
    /// The tree from keys to [`Entry`]s.
    pub(crate) tree: TreeState,
    /// Values of all keys.
    pub(crate) values: u64,
    /// Branch pages of all nested trees.
    pub(crate) nested_branch_pages: u64,
    /// Leaf pages of all nested trees.
    pub(crate) nested_leaf_pages: u64,
}

impl MultiState {
    /// The bytes to keep the state as.
    pub(crate) fn encode(&self) -> [u8; MULTI_STATE_SIZE] {
        let mut bytes = [0; MULTI_STATE_SIZE];
        bytes[..TREE_STATE_SIZE].copy_from_slice(&self.tree.encode());
        for (i, number) in [self.values, self.nested_branch_pages, self.nested_leaf_pages].iter().enumerate()
        {
            let at = TREE_STATE_SIZE + i * 8;
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// The state back from its bytes, `None` when they are no state.
    pub(crate) fn decode(bytes: &[u8; MULTI_STATE_SIZE]) -> Option<MultiState> {
        let mut tree = [0; TREE_STATE_SIZE];
        tree.copy_from_slice(&bytes[..TREE_STATE_SIZE]);
        Some(MultiState {
            tree: TreeState::decode(&tree)?,
            values: read_u64(bytes, TREE_STATE_SIZE),
            nested_branch_pages: read_u64(bytes, TREE_STATE_SIZE + 8),
            nested_leaf_pages: read_u64(bytes, TREE_STATE_SIZE + 16),
        })
    }

    /// Replaces what a nested tree adds to the counts.
    fn recount(&mut self, before: &TreeState, after: &TreeState) {
        let replace =
            |sum: &mut u64, before: u64, after: u64| *sum = sum.saturating_sub(before).saturating_add(after);
        replace(&mut self.nested_branch_pages, before.branch_pages, after.branch_pages);
        replace(&mut self.nested_leaf_pages, before.leaf_pages, after.leaf_pages);
    }
}

/// Errors: empty or too long; values are keys of nested trees.
fn check_value(value: &[u8]) -> Result<()> {
    match value.len() {
        1..=KEY_SIZE_MAX => Ok(()),
        0 => Err(Error::KeyEmpty),
        size => Err(Error::ValueTooLong { size: size as u64, max: KEY_SIZE_MAX as u64 }),
    }
}

/// A multi-value tree for reading. It has a copy of the state, so that what it returns borrows from the pages alone.
pub(crate) struct MultiTree<'p, P> {
    pages: &'p P,
    state: MultiState,
}

impl<P> Clone for MultiTree<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for MultiTree<'_, P> {}

impl<'p, P: Pages> MultiTree<'p, P> {
    pub(crate) fn new(pages: &'p P, state: &MultiState) -> MultiTree<'p, P> {
        MultiTree { pages, state: *state }
    }

    /// The state it was made with.
    pub(crate) fn state(&self) -> &MultiState {
        &self.state
    }

    fn entry(&self, key: &[u8]) -> Result<Option<Entry<'p>>> {
        match Tree::new(self.pages, &self.state.tree).get(key)? {
            Some(bytes) => Entry::decode(bytes, self.state.tree.root).map(Some),
            None => Ok(None),
        }
    }

    /// Whether a key has a value.
    pub(crate) fn contains(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        check_value(value)?;
        match self.entry(key)? {
            None => Ok(false),
            Some(Entry::Packed(packed)) => Ok(packed.search(value).is_ok()),
            Some(Entry::Nested(nested)) => Tree::new(self.pages, &nested).contains(value),
        }
    }

    /// How many values a key has, without looking at them.
    pub(crate) fn count(&self, key: &[u8]) -> Result<u64> {
        Ok(self.entry(key)?.map_or(0, |entry| entry.count()))
    }

    /// The values of a key, ascending; before the first one. No values when there is no such key.
    pub(crate) fn values(&self, key: &[u8]) -> Result<ValueCursor<'p, P>> {
        Ok(match self.entry(key)? {
            Some(entry) => ValueCursor::new(self.pages, entry),
            None => ValueCursor::empty(self.pages),
        })
    }

    /// A cursor over all keys and values; before the first.
    pub(crate) fn cursor(&self) -> MultiCursor<'p, P> {
        MultiCursor::new(self.pages, &self.state)
    }
}

/// A multi-value tree for changing, in the one write transaction.
pub(crate) struct MultiTreeMut<'a, P> {
    pages: &'a mut P,
    state: &'a mut MultiState,
    hint: &'a mut InsertHint,
}

impl<'a, P: PagesMut> MultiTreeMut<'a, P> {
    pub(crate) fn new(
        pages: &'a mut P,
        state: &'a mut MultiState,
        hint: &'a mut InsertHint,
    ) -> MultiTreeMut<'a, P> {
        MultiTreeMut { pages, state, hint }
    }

    /// The tree as it is now, for reading.
    pub(crate) fn read(&self) -> MultiTree<'_, P> {
        MultiTree { pages: self.pages, state: *self.state }
    }

    fn keys(&mut self) -> TreeMut<'_, P> {
        TreeMut::new(self.pages, &mut self.state.tree, self.hint)
    }

    /// Adds a value to those of a key; false when it is there already.
    ///
    /// Errors: [`KeyEmpty`](Error::KeyEmpty) (for an empty value, too), [`KeyTooLong`](Error::KeyTooLong),
    /// [`ValueTooLong`](Error::ValueTooLong) over [`KEY_SIZE_MAX`].
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        check_value(value)?;
        let nested = match self.read().entry(key)? {
            Some(Entry::Nested(nested)) => nested,
            packed => {
                let mut buffer = PackedBuffer::new();
                if let Some(Entry::Packed(packed)) = packed {
                    buffer.copy_from(packed);
                }
                let Err(at) = buffer.packed().search(value) else { return Ok(false) };
                if buffer.insert(at, value) {
                    self.keys().put(key, buffer.bytes())?;
                    self.state.values += 1;
                    return Ok(true);
                }
                self.nest(buffer.packed())?
            }
        };
        let mut changed = nested;
        if !TreeMut::new(self.pages, &mut changed, &mut InsertHint::default()).insert(value, &[])? {
            return Ok(false);
        }
        self.keys().put(key, &entry::encode_nested(&changed))?;
        self.state.recount(&TreeState::default(), &changed);
        self.state.recount(&nested, &TreeState::default());
        self.state.values += 1;
        Ok(true)
    }

    /// Makes a nested tree of packed values.
    fn nest(&mut self, packed: entry::Packed<'_>) -> Result<TreeState> {
        let mut nested = TreeState::default();
        let mut hint = InsertHint::default();
        for value in packed.iter() {
            TreeMut::new(self.pages, &mut nested, &mut hint).insert(value, &[])?;
        }
        self.state.recount(&TreeState::default(), &nested);
        Ok(nested)
    }

    /// Removes a value from those of a key, and the key with the last one; false when it is not there.
    pub(crate) fn remove(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        check_value(value)?;
        match self.read().entry(key)? {
            None => return Ok(false),
            Some(Entry::Packed(packed)) => {
                let Ok(at) = packed.search(value) else { return Ok(false) };
                let mut buffer = PackedBuffer::new();
                buffer.copy_from(packed);
                buffer.remove(at);
                self.put_packed(key, &buffer)?;
            }
            Some(Entry::Nested(nested)) => {
                let mut changed = nested;
                let mut hint = InsertHint::default();
                if !TreeMut::new(self.pages, &mut changed, &mut hint).delete(value)? {
                    return Ok(false);
                }
                match entry::pack(self.pages, &changed, PACKED_SIZE_MAX / 2)? {
                    Some(buffer) => {
                        TreeMut::new(self.pages, &mut changed, &mut hint).clear()?;
                        self.put_packed(key, &buffer)?;
                        self.state.recount(&nested, &TreeState::default());
                    }
                    None => {
                        self.keys().put(key, &entry::encode_nested(&changed))?;
                        self.state.recount(&nested, &changed);
                    }
                }
            }
        }
        self.state.values = self.state.values.saturating_sub(1);
        Ok(true)
    }

    fn put_packed(&mut self, key: &[u8], buffer: &PackedBuffer) -> Result<()> {
        match buffer.packed().count() {
            0 => self.keys().delete(key)?,
            _ => self.keys().put(key, buffer.bytes())?,
        };
        Ok(())
    }

    /// Removes a key with all its values and returns how many there were.
    pub(crate) fn delete(&mut self, key: &[u8]) -> Result<u64> {
        let Some(entry) = self.read().entry(key)? else { return Ok(0) };
        let count = entry.count();
        if let Entry::Nested(mut nested) = entry {
            self.state.recount(&nested, &TreeState::default());
            TreeMut::new(self.pages, &mut nested, &mut InsertHint::default()).clear()?;
        }
        self.keys().delete(key)?;
        self.state.values = self.state.values.saturating_sub(count);
        Ok(count)
    }

    /// Removes everything and gives back all pages. Stops at the first error.
    pub(crate) fn clear(&mut self) -> Result<()> {
        // The nested trees' states are collected some at a time: the walk borrows the pages that clearing changes.
        const BATCH: usize = 1024;
        let mut last: Option<Vec<u8>> = None;
        loop {
            let mut nested: Vec<TreeState> = Vec::new();
            let tree = Tree::new(&*self.pages, &self.state.tree);
            let mut cursor = tree.cursor();
            let mut found = match &last {
                None => cursor.first()?,
                Some(key) => cursor.seek(key)? && (cursor.key() != key || cursor.next()?),
            };
            while found && nested.len() < BATCH {
                if let Entry::Nested(state) = Entry::decode(cursor.value()?, PageNumber::NONE)? {
                    nested.push(state);
                }
                last = (nested.len() == BATCH).then(|| cursor.key().to_vec());
                found = cursor.next()?;
            }
            drop(cursor);
            for mut state in nested {
                TreeMut::new(self.pages, &mut state, &mut InsertHint::default()).clear()?;
            }
            if !found {
                break;
            }
        }
        self.keys().clear()?;
        *self.state = MultiState { tree: self.state.tree, ..MultiState::default() };
        *self.hint = InsertHint::default();
        Ok(())
    }
}
