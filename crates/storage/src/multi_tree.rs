//! Multi-value trees as users see them: a view for reading in either kind of transaction, and a handle for writing.

use std::ops::Bound;

use crate::btree::{self, InsertHint};
use crate::error::Result;
use crate::multi::{self, MultiState};
use crate::pages::Pages;
use crate::transaction::catalog::{Kind, State, wrong_kind};
use crate::transaction::read::ReadTransaction;
use crate::transaction::write::WriteTransaction;
use crate::tree::Order;

impl ReadTransaction {
    /// The multi-value tree of this name.
    ///
    /// Errors: [`crate::Error::TreeNotFound`], [`crate::Error::TreeKind`].
    pub fn multi_tree(&self, name: &[u8]) -> Result<MultiTree<'_>> {
        MultiTree::open(self, name, self.state(name)?)
    }
}

impl WriteTransaction {
    /// The multi-value tree of this name as this transaction sees it, for reading.
    ///
    /// Errors: [`crate::Error::TreeNotFound`], [`crate::Error::TreeKind`].
    pub fn multi_tree(&self, name: &[u8]) -> Result<MultiTree<'_, WriteTransaction>> {
        MultiTree::open(self, name, self.state(name)?)
    }

    /// The multi-value tree of this name for writing.
    ///
    /// Errors: [`crate::Error::TreeNotFound`], [`crate::Error::TreeKind`].
    pub fn multi_tree_mut(&mut self, name: &[u8]) -> Result<MultiTreeMut<'_>> {
        let at = self.open_existing(name, Kind::MultiTree)?;
        MultiTreeMut::new(self, at)
    }

    /// The multi-value tree of this name for writing; an empty one is made when there is none.
    ///
    /// Errors: [`crate::Error::TreeKind`], and those of a key for the name.
    pub fn create_multi_tree(&mut self, name: &[u8]) -> Result<MultiTreeMut<'_>> {
        let at = self.open_or_create(name, State::MultiTree(MultiState::default()))?;
        MultiTreeMut::new(self, at)
    }
}

/// A multi-value tree in one transaction, for reading: an ordered map from keys to sorted sets of values. Keys and values have 1 to
/// [`crate::format::KEY_SIZE_MAX`] bytes and are in byte order; a key has at least one value.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let environment = jackdaw_storage::Environment::open(directory.path(), Default::default())?;
/// let mut transaction = environment.write()?;
/// let mut tags = transaction.create_multi_tree(b"tags")?;
/// tags.add(b"bird", b"jackdaw")?;
/// tags.add(b"bird", b"crow")?;
/// assert!(!tags.add(b"bird", b"crow")?);
/// drop(tags);
/// transaction.commit()?;
///
/// let snapshot = environment.read()?;
/// let tags = snapshot.multi_tree(b"tags")?;
/// assert_eq!(tags.count(b"bird")?, 2);
/// let mut values = tags.values(b"bird")?;
/// assert!(values.seek(b"d")?);
/// assert_eq!(values.value(), b"jackdaw");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MultiTree<'t, T = ReadTransaction>(multi::MultiTree<'t, T>);

impl<T> Clone for MultiTree<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for MultiTree<'_, T> {}

#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
impl<'t, T: Pages> MultiTree<'t, T> {
    fn open(pages: &'t T, name: &[u8], state: State) -> Result<MultiTree<'t, T>> {
        match state {
            State::MultiTree(state) => Ok(MultiTree(multi::MultiTree::new(pages, &state))),
            other => Err(wrong_kind(name, other.kind(), Kind::MultiTree)),
        }
    }

    /// Whether the key has this value.
    ///
    /// Errors: [`crate::Error::KeyEmpty`] (for an empty value, too), [`crate::Error::ValueTooLong`].
    pub fn contains(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.0.contains(key, value)
    }

    /// How many values the key has; 0 when there is no such key. Does not look at them.
    pub fn count(&self, key: &[u8]) -> Result<u64> {
        self.0.count(key)
    }

    /// How many keys there are. Costs nothing.
    pub fn keys(&self) -> u64 {
        self.0.state().tree.entries
    }

    /// How many values all keys have together. Costs nothing.
    pub fn len(&self) -> u64 {
        self.0.state().values
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A cursor over the values of a key, at no value yet; over none when there is no such key.
    pub fn values(&self, key: &[u8]) -> Result<ValueCursor<'t, T>> {
        self.0.values(key).map(ValueCursor)
    }

    /// A cursor over all values of all keys, at none yet.
    pub fn cursor(&self) -> MultiCursor<'t, T> {
        MultiCursor(self.0.cursor())
    }

    /// All keys with their values, ascending.
    pub fn iter(&self) -> MultiRange<'t, T> {
        self.range(Bound::Unbounded, Bound::Unbounded, Order::Ascending)
    }

    /// The keys within the bounds with their values, in the given order of keys and of each key's values. What cannot be a key is refused
    /// as a bound by the first [`MultiRange::next`].
    pub fn range(&self, low: Bound<&[u8]>, high: Bound<&[u8]>, order: Order) -> MultiRange<'t, T> {
        MultiRange(multi::MultiRange::new(&self.0, (low, high), order.direction()))
    }

    /// The keys that begin with `prefix` (which may be empty) with their values, in the given order.
    pub fn prefix(&self, prefix: &[u8], order: Order) -> MultiRange<'t, T> {
        let end = btree::prefix_end(prefix);
        let high = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.range(if prefix.is_empty() { Bound::Unbounded } else { Bound::Included(prefix) }, high, order)
    }
}

/// A walk over a range of keys with their values.
pub struct MultiRange<'t, T = ReadTransaction>(multi::MultiRange<'t, T>);

#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
impl<T: Pages> MultiRange<'_, T> {
    /// The next key and value of the walk, `None` at its end. Both are valid until the next call.
    ///
    /// Errors: [`crate::Error::KeyEmpty`], [`crate::Error::KeyTooLong`] for a bound; those of the disk.
    #[expect(clippy::should_implement_trait, reason = "key and value borrow from the walk")]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.0.next()
    }
}

/// A place among the values of one key that moves both ways. A new one is at no value: `next` goes to the first, `prev` to the last.
pub struct ValueCursor<'t, T = ReadTransaction>(multi::ValueCursor<'t, T>);

#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
impl<T: Pages> ValueCursor<'_, T> {
    /// Goes to the first value; false when there is none.
    pub fn first(&mut self) -> Result<bool> {
        Ok(self.0.first()?.is_some())
    }

    /// Goes to the last value; false when there is none.
    pub fn last(&mut self) -> Result<bool> {
        Ok(self.0.last()?.is_some())
    }

    /// Goes to the first value that is at least `value`; false when there is none.
    ///
    /// Errors: [`crate::Error::KeyEmpty`] and [`crate::Error::ValueTooLong`] for what cannot be a value.
    pub fn seek(&mut self, value: &[u8]) -> Result<bool> {
        Ok(self.0.seek(value)?.is_some())
    }

    /// Goes to the last value that is at most `value`; false when there is none. Errors: as for [`ValueCursor::seek`].
    pub fn seek_at_most(&mut self, value: &[u8]) -> Result<bool> {
        Ok(self.0.seek_at_most(value)?.is_some())
    }

    /// Goes to the next value; false when there is none, after which `prev` goes to the last one.
    #[expect(
        clippy::should_implement_trait,
        reason = "moving can fail, and the value borrows from the cursor"
    )]
    pub fn next(&mut self) -> Result<bool> {
        Ok(self.0.next()?.is_some())
    }

    /// Goes to the previous value; false when there is none, after which `next` goes to the first one.
    pub fn prev(&mut self) -> Result<bool> {
        Ok(self.0.prev()?.is_some())
    }

    /// Whether the cursor is at a value.
    pub fn is_at_entry(&self) -> bool {
        self.0.value().is_some()
    }

    /// The value; empty when the cursor is at none.
    pub fn value(&self) -> &[u8] {
        self.0.value().unwrap_or_default()
    }
}

/// A place among all keys and their values that moves both ways, by key and then by value. A new one is at none: `next` goes to the
/// first, `prev` to the last.
pub struct MultiCursor<'t, T = ReadTransaction>(multi::MultiCursor<'t, T>);

#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
impl<T: Pages> MultiCursor<'_, T> {
    /// Goes to the first value of the first key; false when there is none.
    pub fn first(&mut self) -> Result<bool> {
        self.0.first()
    }

    /// Goes to the last value of the last key; false when there is none.
    pub fn last(&mut self) -> Result<bool> {
        self.0.last()
    }

    /// Goes to the first value of the first key that is at least `key`; false when there is none.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek(key)
    }

    /// Goes to the last value of the last key that is at most `key`; false when there is none.
    pub fn seek_at_most(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek_at_most(key)
    }

    /// Goes to the next value, of this key or of the next; false when there is none, after which `prev` goes to the last one.
    #[expect(
        clippy::should_implement_trait,
        reason = "moving can fail, and key and value borrow from the cursor"
    )]
    pub fn next(&mut self) -> Result<bool> {
        self.0.next()
    }

    /// Goes to the previous value, of this key or of the one before; false when there is none, after which `next` goes to the first
    /// one.
    pub fn prev(&mut self) -> Result<bool> {
        self.0.prev()
    }

    /// Goes to the first value of the next key; false when there is none. From before the first, to the first key.
    pub fn next_key(&mut self) -> Result<bool> {
        self.0.next_key()
    }

    /// Whether the cursor is at a value.
    pub fn is_at_entry(&self) -> bool {
        self.0.current().is_some()
    }

    /// The key that the cursor is at; empty when it is at none.
    pub fn key(&self) -> &[u8] {
        self.0.current().map_or(&[], |(key, _)| key)
    }

    /// The value that the cursor is at; empty when it is at none.
    pub fn value(&self) -> &[u8] {
        self.0.current().map_or(&[], |(_, value)| value)
    }
}

/// A multi-value tree in the write transaction, for changing. While it lives it keeps the tree's state; dropping it gives that back
/// to the transaction.
pub struct MultiTreeMut<'t> {
    tx: &'t mut WriteTransaction,
    at: usize,
    state: MultiState,
    hint: InsertHint,
    changed: bool,
}

impl<'t> MultiTreeMut<'t> {
    /// Takes the state at `at`, which is a multi-value tree's.
    fn new(tx: &'t mut WriteTransaction, at: usize) -> Result<MultiTreeMut<'t>> {
        match tx.lend_state(at)? {
            (State::MultiTree(state), hint) => Ok(MultiTreeMut { tx, at, state, hint, changed: false }),
            (other, _) => unreachable!("a {} opened as a multi-value tree", other.kind().name()),
        }
    }

    fn tree(&mut self) -> multi::MultiTreeMut<'_, WriteTransaction> {
        self.changed = true;
        multi::MultiTreeMut::new(self.tx, &mut self.state, &mut self.hint)
    }

    /// The tree as it is now, for reading.
    pub fn read(&self) -> MultiTree<'_, WriteTransaction> {
        MultiTree(multi::MultiTree::new(&*self.tx, &self.state))
    }

    /// Whether the key has this value. Errors: as for [`MultiTree::contains`].
    pub fn contains(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.read().contains(key, value)
    }

    /// How many values the key has; 0 when there is no such key.
    pub fn count(&self, key: &[u8]) -> Result<u64> {
        self.read().count(key)
    }

    /// How many keys there are.
    pub fn keys(&self) -> u64 {
        self.state.tree.entries
    }

    /// How many values all keys have together.
    pub fn len(&self) -> u64 {
        self.state.values
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.state.values == 0
    }

    /// Adds a value to those of the key; false when it is there already.
    ///
    /// Errors: [`crate::Error::KeyEmpty`] (for an empty value, too), [`crate::Error::KeyTooLong`],
    /// [`crate::Error::ValueTooLong`] over [`crate::format::KEY_SIZE_MAX`]; those of the disk.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let added = self.tree().add(key, value);
        added.map_err(|e| self.tx.break_with(e))
    }

    /// Removes a value from those of the key, and the key with its last value; whether it was there. Errors: as for
    /// [`MultiTreeMut::add`].
    pub fn remove(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let removed = self.tree().remove(key, value);
        removed.map_err(|e| self.tx.break_with(e))
    }

    /// Removes the key with all its values; how many there were.
    ///
    /// Errors: [`crate::Error::KeyEmpty`], [`crate::Error::KeyTooLong`]; those of the disk.
    pub fn delete(&mut self, key: &[u8]) -> Result<u64> {
        let deleted = self.tree().delete(key);
        deleted.map_err(|e| self.tx.break_with(e))
    }

    /// Removes everything.
    pub fn clear(&mut self) -> Result<()> {
        let cleared = self.tree().clear();
        cleared.map_err(|e| self.tx.break_with(e))
    }
}

impl Drop for MultiTreeMut<'_> {
    fn drop(&mut self) {
        self.tx.return_state(self.at, State::MultiTree(self.state), self.hint, self.changed);
    }
}
