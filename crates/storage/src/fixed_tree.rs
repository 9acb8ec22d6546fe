//! Fixed-size trees as users see them: a view for reading in either kind of transaction, and a handle for writing.

use std::ops::Bound;

use crate::btree::InsertHint;
use crate::error::Result;
use crate::fixed::{self, FixedState};
use crate::pages::Pages;
use crate::transaction::catalog::{Kind, State, wrong_kind};
use crate::transaction::read::ReadTransaction;
use crate::transaction::write::WriteTransaction;
use crate::tree::Order;

impl ReadTransaction {
    /// The fixed-size tree of this name.
    ///
    /// Errors: [`crate::Error::TreeNotFound`], [`crate::Error::TreeKind`].
    pub fn fixed_tree(&self, name: &[u8]) -> Result<FixedTree<'_>> {
        FixedTree::open(self, name, self.state(name)?)
    }
}

impl WriteTransaction {
    /// The fixed-size tree of this name as this transaction sees it, for reading.
    ///
    /// Errors: [`crate::Error::TreeNotFound`], [`crate::Error::TreeKind`].
    pub fn fixed_tree(&self, name: &[u8]) -> Result<FixedTree<'_, WriteTransaction>> {
        FixedTree::open(self, name, self.state(name)?)
    }

    /// The fixed-size tree of this name for writing.
    ///
    /// Errors: [`crate::Error::TreeNotFound`], [`crate::Error::TreeKind`].
    pub fn fixed_tree_mut(&mut self, name: &[u8]) -> Result<FixedTreeMut<'_>> {
        let at = self.open_existing(name, Kind::FixedTree)?;
        FixedTreeMut::new(self, at)
    }

    /// The fixed-size tree of this name for writing; an empty one, for values of `value_size` bytes, is made when there is none.
    ///
    /// Errors: [`crate::Error::Invalid`] when there is one with another size of values, [`crate::Error::ValueTooLong`] for a size
    /// over [`crate::format::FIXED_VALUE_SIZE_MAX`], [`crate::Error::TreeKind`], and those of a key for the name.
    pub fn create_fixed_tree(&mut self, name: &[u8], value_size: usize) -> Result<FixedTreeMut<'_>> {
        let at = self.open_or_create(name, State::FixedTree(FixedState::new(value_size)?))?;
        FixedTreeMut::new(self, at)
    }
}

/// A fixed-size tree in one transaction, for reading: an ordered map from `i64` to values that all have the same size of 0 to
/// [`crate::format::FIXED_VALUE_SIZE_MAX`] bytes. Values are borrowed from the view: a small tree lies in it.
///
/// ```
/// use std::ops::Bound;
/// # use jackdaw_storage::Order;
/// # let directory = tempfile::tempdir()?;
/// # let environment = jackdaw_storage::Environment::open(directory.path(), Default::default())?;
/// let mut transaction = environment.write()?;
/// let mut counts = transaction.create_fixed_tree(b"counts", 4)?;
/// for day in -2..=2_i64 {
///     counts.put(day, &(day as i32).to_le_bytes())?;
/// }
/// assert!(counts.put(7, b"not four bytes").is_err());
/// drop(counts);
/// transaction.commit()?;
///
/// let snapshot = environment.read()?;
/// let counts = snapshot.fixed_tree(b"counts")?;
/// assert_eq!(counts.get(-2)?, Some(&(-2_i32).to_le_bytes()[..]));
/// let mut below_zero = counts.range(Bound::Unbounded, Bound::Excluded(0), Order::Descending);
/// assert_eq!(below_zero.next()?.map(|(key, _)| key), Some(-1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FixedTree<'t, T = ReadTransaction> {
    pages: &'t T,
    state: FixedState,
}

impl<T> Clone for FixedTree<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for FixedTree<'_, T> {}

#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
impl<'t, T: Pages> FixedTree<'t, T> {
    fn open(pages: &'t T, name: &[u8], state: State) -> Result<FixedTree<'t, T>> {
        match state {
            State::FixedTree(state) => Ok(FixedTree { pages, state }),
            other => Err(wrong_kind(name, other.kind(), Kind::FixedTree)),
        }
    }

    /// The value of a key, if there is one.
    #[inline]
    pub fn get(&self, key: i64) -> Result<Option<&[u8]>> {
        fixed::get(self.pages, &self.state, key)
    }

    /// Whether there is such a key.
    pub fn contains(&self, key: i64) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Bytes of each value.
    pub fn value_size(&self) -> usize {
        self.state.value_size()
    }

    /// How many keys there are. Costs nothing.
    pub fn len(&self) -> u64 {
        self.state.entries()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The smallest key and its value.
    pub fn first(&self) -> Result<Option<(i64, &[u8])>> {
        self.cursor().first()
    }

    /// The greatest key and its value.
    pub fn last(&self) -> Result<Option<(i64, &[u8])>> {
        self.cursor().last()
    }

    /// A cursor, at no entry yet.
    pub fn cursor(&self) -> FixedCursor<'_, T> {
        FixedCursor(fixed::FixedCursor::new(self.pages, &self.state))
    }

    /// All entries in key order.
    pub fn iter(&self) -> FixedRange<'_, T> {
        self.range(Bound::Unbounded, Bound::Unbounded, Order::Ascending)
    }

    /// The entries with keys within the bounds, in the given order.
    pub fn range(&self, low: Bound<i64>, high: Bound<i64>, order: Order) -> FixedRange<'_, T> {
        let within = inclusive(low, high);
        FixedRange {
            cursor: self.cursor(),
            order,
            begun: false,
            done: within.is_none(),
            within: within.unwrap_or_default(),
        }
    }
}

/// The first and the last key of the bounds; `None` when no key is within.
fn inclusive(low: Bound<i64>, high: Bound<i64>) -> Option<(i64, i64)> {
    let low = match low {
        Bound::Included(key) => key,
        Bound::Excluded(key) => key.checked_add(1)?,
        Bound::Unbounded => i64::MIN,
    };
    let high = match high {
        Bound::Included(key) => key,
        Bound::Excluded(key) => key.checked_sub(1)?,
        Bound::Unbounded => i64::MAX,
    };
    (low <= high).then_some((low, high))
}

/// A place in a fixed-size tree that moves both ways and returns the key and the value where it goes. A new one is at no entry:
/// `next` goes to the first, `prev` to the last.
#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
pub struct FixedCursor<'s, T: Pages = ReadTransaction>(fixed::FixedCursor<'s, T>);

#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
impl<'s, T: Pages> FixedCursor<'s, T> {
    /// Goes to the first entry.
    pub fn first(&mut self) -> Result<Option<(i64, &'s [u8])>> {
        self.0.first()
    }

    /// Goes to the last entry.
    pub fn last(&mut self) -> Result<Option<(i64, &'s [u8])>> {
        self.0.last()
    }

    /// Goes to the first entry whose key is at least `key`.
    pub fn seek(&mut self, key: i64) -> Result<Option<(i64, &'s [u8])>> {
        self.0.seek(key)
    }

    /// Goes to the last entry whose key is at most `key`.
    pub fn seek_at_most(&mut self, key: i64) -> Result<Option<(i64, &'s [u8])>> {
        self.0.seek_back(key)
    }

    /// Goes to the next entry; `None` when there is none, after which `prev` goes to the last one.
    #[expect(clippy::should_implement_trait, reason = "moving can fail, and goes both ways")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<(i64, &'s [u8])>> {
        self.0.next()
    }

    /// Goes to the previous entry; `None` when there is none, after which `next` goes to the first one.
    #[inline]
    pub fn prev(&mut self) -> Result<Option<(i64, &'s [u8])>> {
        self.0.previous()
    }

    /// The entry where the cursor is.
    #[inline]
    pub fn current(&self) -> Option<(i64, &'s [u8])> {
        self.0.current()
    }
}

/// A walk over a range of keys.
#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
pub struct FixedRange<'s, T: Pages = ReadTransaction> {
    cursor: FixedCursor<'s, T>,
    /// The first and the last key that belong to it.
    within: (i64, i64),
    order: Order,
    begun: bool,
    done: bool,
}

#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
impl<'s, T: Pages> FixedRange<'s, T> {
    /// The next entry of the walk, `None` at its end. After an error the walk is over.
    #[expect(clippy::should_implement_trait, reason = "like the other walks, so that errors end it")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<(i64, &'s [u8])>> {
        if self.done {
            return Ok(None);
        }
        self.done = true; // unless all goes well
        let found = match (std::mem::replace(&mut self.begun, true), self.order) {
            (false, Order::Ascending) => self.cursor.seek(self.within.0)?,
            (false, Order::Descending) => self.cursor.seek_at_most(self.within.1)?,
            (true, Order::Ascending) => self.cursor.next()?,
            (true, Order::Descending) => self.cursor.prev()?,
        };
        let found = found.filter(|(key, _)| (self.within.0..=self.within.1).contains(key));
        self.done = found.is_none();
        Ok(found)
    }
}

/// A fixed-size tree in the write transaction, for changing. While it lives it keeps the tree's state; dropping it gives that back
/// to the transaction.
pub struct FixedTreeMut<'t> {
    tx: &'t mut WriteTransaction,
    at: usize,
    state: FixedState,
    changed: bool,
}

impl<'t> FixedTreeMut<'t> {
    /// Takes the state at `at`, which is a fixed-size tree's.
    fn new(tx: &'t mut WriteTransaction, at: usize) -> Result<FixedTreeMut<'t>> {
        match tx.lend_state(at)? {
            (State::FixedTree(state), _) => Ok(FixedTreeMut { tx, at, state, changed: false }),
            (other, _) => unreachable!("a {} opened as a fixed-size tree", other.kind().name()),
        }
    }

    /// The tree as it is now, for reading.
    pub fn read(&self) -> FixedTree<'_, WriteTransaction> {
        FixedTree { pages: &*self.tx, state: self.state }
    }

    /// The value of a key, if there is one.
    #[inline]
    pub fn get(&self, key: i64) -> Result<Option<&[u8]>> {
        fixed::get(&*self.tx, &self.state, key)
    }

    /// Bytes of each value.
    pub fn value_size(&self) -> usize {
        self.state.value_size()
    }

    /// How many keys there are.
    pub fn len(&self) -> u64 {
        self.state.entries()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stores the value under the key; whether there was one before, which is replaced. Keys in rising order are fastest: they
    /// are appended without a search and fill their pages.
    ///
    /// Errors: [`crate::Error::Invalid`] when the value is not of the tree's size; those of the disk.
    #[inline]
    pub fn put(&mut self, key: i64, value: &[u8]) -> Result<bool> {
        self.changed = true;
        match fixed::put(self.tx, &mut self.state, key, value) {
            Ok(new) => Ok(!new),
            Err(error) => Err(self.tx.break_with(error)),
        }
    }

    /// Removes a key with its value; whether there was one.
    pub fn delete(&mut self, key: i64) -> Result<bool> {
        self.changed = true;
        fixed::delete(self.tx, &mut self.state, key).map_err(|e| self.tx.break_with(e))
    }

    /// Removes all keys within the bounds; how many there were.
    pub fn delete_range(&mut self, low: Bound<i64>, high: Bound<i64>) -> Result<u64> {
        let Some((low, high)) = inclusive(low, high) else { return Ok(0) };
        self.changed = true;
        fixed::delete_range(self.tx, &mut self.state, low, high).map_err(|e| self.tx.break_with(e))
    }

    /// Removes everything.
    pub fn clear(&mut self) -> Result<()> {
        self.changed = true;
        fixed::clear(self.tx, &mut self.state).map_err(|e| self.tx.break_with(e))
    }
}

impl Drop for FixedTreeMut<'_> {
    fn drop(&mut self) {
        self.tx.return_state(self.at, State::FixedTree(self.state), InsertHint::default(), self.changed);
    }
}
