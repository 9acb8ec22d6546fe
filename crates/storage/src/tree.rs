//! Trees as users see them: a view for reading in either kind of transaction, and a handle for writing.

use std::ops::Bound;

use crate::btree::{self, Direction, InsertHint, TreeState};
use crate::error::Result;
use crate::pages::{Pages, RunSource};
use crate::transaction::catalog::{Kind, State, wrong_kind};
use crate::transaction::read::ReadTransaction;
use crate::transaction::write::WriteTransaction;

impl ReadTransaction {
    /// The tree of this name.
    ///
    /// Errors: [`crate::Error::TreeNotFound`], [`crate::Error::TreeKind`].
    pub fn tree(&self, name: &[u8]) -> Result<Tree<'_>> {
        Tree::open(self, name, self.state(name)?)
    }
}

impl WriteTransaction {
    /// The tree of this name as this transaction sees it, for reading.
    ///
    /// Errors: [`crate::Error::TreeNotFound`], [`crate::Error::TreeKind`].
    pub fn tree(&self, name: &[u8]) -> Result<Tree<'_, WriteTransaction>> {
        Tree::open(self, name, self.state(name)?)
    }

    /// The tree of this name for writing.
    ///
    /// Errors: [`crate::Error::TreeNotFound`], [`crate::Error::TreeKind`].
    pub fn tree_mut(&mut self, name: &[u8]) -> Result<TreeMut<'_>> {
        let at = self.open_existing(name, Kind::Tree)?;
        TreeMut::new(self, at)
    }

    /// The tree of this name for writing; an empty one is made when there is none.
    ///
    /// Errors: [`crate::Error::TreeKind`], and those of a key for the name.
    pub fn create_tree(&mut self, name: &[u8]) -> Result<TreeMut<'_>> {
        let at = self.open_or_create(name, State::Tree(TreeState::default()))?;
        TreeMut::new(self, at)
    }
}

/// A tree in one transaction, for reading: an ordered map from keys (1 to [`crate::format::KEY_SIZE_MAX`] bytes, in byte order) to values
/// (up to [`crate::format::VALUE_SIZE_MAX`] bytes). Values are slices of the transaction's memory and live as long as it.
pub struct Tree<'t, T = ReadTransaction> {
    tree: btree::Tree<'t, T>,
    entries: u64,
}

impl<T> Clone for Tree<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Tree<'_, T> {}

#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
impl<'t, T: Pages> Tree<'t, T> {
    fn open(pages: &'t T, name: &[u8], state: State) -> Result<Tree<'t, T>> {
        match state {
            State::Tree(state) => Ok(Tree { tree: btree::Tree::new(pages, &state), entries: state.entries }),
            other => Err(wrong_kind(name, other.kind(), Kind::Tree)),
        }
    }

    /// The value of a key, if there is one.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<&'t [u8]>> {
        self.tree.get(key)
    }

    /// Whether there is such a key.
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        self.tree.contains(key)
    }

    /// How many keys there are. Costs nothing.
    pub fn len(&self) -> u64 {
        self.entries
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The smallest key and its value.
    pub fn first(&self) -> Result<Option<(Vec<u8>, &'t [u8])>> {
        self.tree.first()
    }

    /// The greatest key and its value.
    pub fn last(&self) -> Result<Option<(Vec<u8>, &'t [u8])>> {
        self.tree.last()
    }

    /// A cursor, at no entry yet.
    pub fn cursor(&self) -> Cursor<'t, T> {
        Cursor(self.tree.cursor())
    }

    /// All entries in key order.
    pub fn iter(&self) -> Result<Range<'t, T>> {
        self.range(Bound::Unbounded, Bound::Unbounded, Order::Ascending)
    }

    /// The entries with keys within the bounds, in the given order.
    pub fn range(&self, low: Bound<&[u8]>, high: Bound<&[u8]>, order: Order) -> Result<Range<'t, T>> {
        Ok(Range(self.tree.range(low, high, order.direction())))
    }

    /// The entries whose keys begin with `prefix` (which may be empty), in the given order.
    pub fn prefix(&self, prefix: &[u8], order: Order) -> Result<Range<'t, T>> {
        Ok(Range(self.tree.prefix(prefix, order.direction())))
    }

    /// About how many entries have keys within the bounds, from the fan-out of the branches: exact for few, good to within some tens of
    /// percent for many. Reads one page a level for each bound.
    pub fn estimate_count(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Result<u64> {
        self.tree.estimate_count(low, high)
    }
}

/// In which order a range is walked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// From the smallest key on.
    #[default]
    Ascending,
    /// From the greatest key on.
    Descending,
}

impl Order {
    pub(crate) fn direction(self) -> Direction {
        match self {
            Order::Ascending => Direction::Ascending,
            Order::Descending => Direction::Descending,
        }
    }
}

/// A place in a tree that moves both ways. A new one is at no entry: `next` goes to the first, `prev` to the last.
pub struct Cursor<'t, T = ReadTransaction>(btree::Cursor<'t, T>);

#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
impl<'t, T: Pages> Cursor<'t, T> {
    /// Goes to the first entry; false when there is none.
    pub fn first(&mut self) -> Result<bool> {
        self.0.first()
    }

    /// Goes to the last entry; false when there is none.
    pub fn last(&mut self) -> Result<bool> {
        self.0.last()
    }

    /// Goes to the first entry whose key is at least `key`; false when there is none.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek(key)
    }

    /// Goes to the entry of exactly this key; false when there is none (the cursor is then as after [`Cursor::seek`]).
    pub fn seek_exact(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek_exact(key)
    }

    /// Goes to the last entry whose key is at most `key`; false when there is none.
    pub fn seek_at_most(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek_at_most(key)
    }

    /// Goes to the next entry; false when there is none, after which `prev` goes to the last one.
    #[expect(
        clippy::should_implement_trait,
        reason = "moving can fail, and key and value borrow from the cursor"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<bool> {
        self.0.next()
    }

    /// Goes to the previous entry; false when there is none, after which `next` goes to the first one.
    pub fn prev(&mut self) -> Result<bool> {
        self.0.prev()
    }

    /// Whether the cursor is at an entry.
    pub fn is_at_entry(&self) -> bool {
        self.0.is_at_entry()
    }

    /// The key of the entry; empty when the cursor is at none.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.0.key()
    }

    /// The value of the entry; empty when the cursor is at none.
    #[inline]
    pub fn value(&self) -> Result<&'t [u8]> {
        self.0.value()
    }

    /// The value's size in bytes, without touching a long value itself.
    pub fn value_size(&self) -> Result<u64> {
        self.0.value_size()
    }
}

/// A walk over a range of keys.
pub struct Range<'t, T = ReadTransaction>(btree::Range<'t, T>);

#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
impl<'t, T: Pages> Range<'t, T> {
    /// The next entry of the walk, `None` at its end. The key is valid until the next call, the value as long as the transaction.
    #[expect(clippy::should_implement_trait, reason = "the key borrows from the walk")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<(&[u8], &'t [u8])>> {
        self.0.next()
    }
}

/// A tree in the write transaction, for changing. While it lives it keeps the tree's state; dropping it gives that back to the
/// transaction.
pub struct TreeMut<'t> {
    tx: &'t mut WriteTransaction,
    at: usize,
    state: TreeState,
    hint: InsertHint,
    changed: bool,
}

impl<'t> TreeMut<'t> {
    /// Takes the state at `at`, which is a tree's.
    fn new(tx: &'t mut WriteTransaction, at: usize) -> Result<TreeMut<'t>> {
        match tx.lend_state(at)? {
            (State::Tree(state), hint) => Ok(TreeMut { tx, at, state, hint, changed: false }),
            (other, _) => unreachable!("a {} opened as a tree", other.kind().name()),
        }
    }

    #[inline]
    fn tree(&mut self) -> btree::TreeMut<'_, WriteTransaction> {
        self.changed = true;
        btree::TreeMut::new(self.tx, &mut self.state, &mut self.hint)
    }

    /// The tree as it is now, for reading.
    pub fn read(&self) -> Tree<'_, WriteTransaction> {
        Tree { tree: btree::Tree::new(&*self.tx, &self.state), entries: self.state.entries }
    }

    /// The value of a key, if there is one.
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        btree::Tree::new(&*self.tx, &self.state).get(key)
    }

    /// How many keys there are.
    pub fn len(&self) -> u64 {
        self.state.entries
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.state.entries == 0
    }

    /// Stores the value under the key; whether there was one before, which is replaced. Keys in rising order are fastest: they
    /// are appended without a search and fill their pages.
    ///
    /// Errors: [`crate::Error::KeyEmpty`], [`crate::Error::KeyTooLong`], [`crate::Error::ValueTooLong`]; those of the disk.
    #[inline]
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let put = self.tree().put(key, value);
        put.map_err(|e| self.tx.break_with(e))
    }

    /// Stores the value only when there is none under the key; whether it did. Errors: as for [`TreeMut::put`].
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let inserted = self.tree().insert(key, value);
        inserted.map_err(|e| self.tx.break_with(e))
    }

    /// Stores a value of `length` bytes that `reader` yields, without having it in memory at once (a value of
    /// [`crate::format::DIRECT_VALUE_SIZE_MIN`] bytes or more goes to the data file piece by piece). Whether there was one before.
    ///
    /// Errors: as for [`TreeMut::put`], and those of the reader, a premature end among them; the transaction must then be rolled
    /// back.
    pub fn put_stream(&mut self, key: &[u8], length: u64, reader: &mut dyn std::io::Read) -> Result<bool> {
        let put = self.tree().put_stream(key, length, &mut FromReader(reader));
        put.map_err(|e| self.tx.break_with(e))
    }

    /// Removes a key with its value; whether there was one.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool> {
        let deleted = self.tree().delete(key);
        deleted.map_err(|e| self.tx.break_with(e))
    }

    /// Removes all keys within the bounds; how many there were.
    pub fn delete_range(&mut self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Result<u64> {
        let deleted = self.tree().delete_range(low, high);
        deleted.map_err(|e| self.tx.break_with(e))
    }

    /// Removes everything.
    pub fn clear(&mut self) -> Result<()> {
        let cleared = self.tree().clear();
        cleared.map_err(|e| self.tx.break_with(e))
    }
}

impl Drop for TreeMut<'_> {
    fn drop(&mut self) {
        self.tx.return_state(self.at, State::Tree(self.state), self.hint, self.changed);
    }
}

struct FromReader<'a>(&'a mut dyn std::io::Read);

impl RunSource for FromReader<'_> {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.0.read_exact(buffer).map_err(|e| crate::Error::io("read the value for", "its stream", e))
    }
}
