//! Tables as users see them: a view for reading in either kind of transaction, and a handle for writing.

use std::ops::Bound;
use std::sync::Arc;

use crate::btree::InsertHint;
use crate::error::Result;
use crate::pages::Pages;
use crate::table::{self, By, Row, Schema, TableState};
use crate::transaction::catalog::{Kind, State, lossy, wrong_kind};
use crate::transaction::read::ReadTransaction;
use crate::transaction::write::WriteTransaction;
use crate::tree::Order;

impl ReadTransaction {
    /// The table of this name.
    ///
    /// Errors: [`crate::Error::TreeNotFound`], [`crate::Error::TreeKind`].
    pub fn table(&self, name: &[u8]) -> Result<Table<'_>> {
        Table::open(self, name, self.state(name)?)
    }
}

impl WriteTransaction {
    /// The table of this name as this transaction sees it, for reading.
    ///
    /// Errors: [`crate::Error::TreeNotFound`], [`crate::Error::TreeKind`].
    pub fn table(&self, name: &[u8]) -> Result<Table<'_, WriteTransaction>> {
        Table::open(self, name, self.state(name)?)
    }

    /// The table of this name for writing.
    ///
    /// Errors: [`crate::Error::TreeNotFound`], [`crate::Error::TreeKind`].
    pub fn table_mut(&mut self, name: &[u8]) -> Result<TableMut<'_>> {
        let at = self.open_existing(name, Kind::Table)?;
        TableMut::new(self, at)
    }

    /// The table of this name for writing; an empty one is made when there is none.
    ///
    /// Errors: [`crate::Error::Invalid`] for a schema that makes no sense or is not the one that the table was made with,
    /// [`crate::Error::TreeKind`], and those of a key for the name.
    pub fn create_table(&mut self, name: &[u8], schema: &Schema) -> Result<TableMut<'_>> {
        let fresh = TableState::new(&lossy(name), schema.clone())?;
        let at = self.open_or_create(name, State::Table(Arc::new(fresh)))?;
        TableMut::new(self, at)
    }
}

/// A table in one transaction, for reading: [rows](Row) found by their primary key and by the indexes of the table's [`Schema`].
/// An index is named by its place in the schema (see [`Schema::index`]). Rows live as long as the transaction; cursors and ranges
/// borrow the view as well.
///
/// ```
/// use jackdaw_storage::{By, Order, RowBuilder, Schema};
/// # let directory = tempfile::tempdir()?;
/// # let environment = jackdaw_storage::Environment::open(directory.path(), Default::default())?;
/// // id, etag, collection
/// let schema = Schema::new(3, 0..1).etag("by_etag", 1).non_unique("by_collection", 2..3);
/// let mut builder = RowBuilder::new();
/// let mut transaction = environment.write()?;
/// let mut documents = transaction.create_table(b"documents", &schema)?;
/// documents.insert(builder.push(b"users/1").push_i64(7).push(b"Users").finish()?)?;
/// documents.insert(builder.push(b"users/2").push_i64(8).push(b"Users").finish()?)?;
/// drop(documents);
/// transaction.commit()?;
///
/// let snapshot = environment.read()?;
/// let documents = snapshot.table(b"documents")?;
/// assert_eq!(documents.count_by(1, b"Users")?, 2);
/// let mut since = documents.from_etag(0, 8, Order::Ascending)?;
/// assert_eq!(since.next()?.map(|row| row.column(0)), Some(&b"users/2"[..]));
/// assert!(since.next()?.is_none());
/// let mut users = documents.exact(By::Index(1), b"Users", Order::Ascending)?;
/// assert!(users.next()?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Table<'t, T = ReadTransaction> {
    pages: &'t T,
    state: Arc<TableState>,
}

impl<T> Clone for Table<'_, T> {
    fn clone(&self) -> Self {
        Table { pages: self.pages, state: Arc::clone(&self.state) }
    }
}

#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
impl<'t, T: Pages> Table<'t, T> {
    fn open(pages: &'t T, name: &[u8], state: State) -> Result<Table<'t, T>> {
        match state {
            State::Table(state) => Ok(Table { pages, state }),
            other => Err(wrong_kind(name, other.kind(), Kind::Table)),
        }
    }

    /// What the rows look like and how they are found.
    pub fn schema(&self) -> &Schema {
        self.state.schema()
    }

    /// How many rows there are. Costs nothing.
    pub fn len(&self) -> u64 {
        self.state.rows()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row with this primary key, if there is one.
    ///
    /// Errors: [`crate::Error::KeyEmpty`], [`crate::Error::KeyTooLong`].
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Row<'t>>> {
        table::get(self.pages, &self.state, key)
    }

    /// The row with this key in a unique or etag index (an etag as eight bytes, big-endian), if there is one.
    ///
    /// Errors: [`crate::Error::Invalid`] when the table has no such index, or it is non-unique, or the key is no etag for an etag
    /// index; [`crate::Error::KeyTooLong`].
    pub fn get_by(&self, index: usize, key: &[u8]) -> Result<Option<Row<'t>>> {
        table::get_by(self.pages, &self.state, index, key)
    }

    /// How many rows have this key in an index. Does not look at them. Errors: as for [`Table::get_by`], for any kind of index.
    pub fn count_by(&self, index: usize, key: &[u8]) -> Result<u64> {
        table::count_by(self.pages, &self.state, index, key)
    }

    /// A cursor over the rows in the order of a key, at no row yet.
    ///
    /// Errors: [`crate::Error::Invalid`] when the table has no such index.
    pub fn cursor(&self, by: By) -> Result<RowCursor<'t, '_, T>> {
        table::cursor(self.pages, &self.state, by).map(RowCursor)
    }

    /// All rows in the order of their primary keys.
    pub fn iter(&self) -> Result<RowRange<'t, '_, T>> {
        self.range(By::Primary, Bound::Unbounded, Bound::Unbounded, Order::Ascending)
    }

    /// The rows whose key is within the bounds, in the given order of that key. Bounds of an etag index have eight bytes, big-endian.
    ///
    /// Errors: [`crate::Error::Invalid`] when the table has no such index. What cannot be a bound is refused by the first
    /// [`RowRange::next`].
    pub fn range(
        &self,
        by: By,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        order: Order,
    ) -> Result<RowRange<'t, '_, T>> {
        table::RowRange::new(self.pages, &self.state, by, (low, high), order.direction()).map(RowRange)
    }

    /// The rows whose key is `key`: one at most, except in a non-unique index. Errors: as for [`Table::range`].
    pub fn exact(&self, by: By, key: &[u8], order: Order) -> Result<RowRange<'t, '_, T>> {
        table::RowRange::exact(self.pages, &self.state, by, key, order.direction()).map(RowRange)
    }

    /// The rows whose key begins with `prefix` (which may be empty), in the given order of that key.
    ///
    /// Errors: [`crate::Error::Invalid`] when the table has no such index or it is an etag index.
    pub fn prefix(&self, by: By, prefix: &[u8], order: Order) -> Result<RowRange<'t, '_, T>> {
        table::RowRange::prefix(self.pages, &self.state, by, prefix, order.direction()).map(RowRange)
    }

    /// The rows of an etag index from a number on: upwards in ascending order, else downwards.
    ///
    /// Errors: [`crate::Error::Invalid`] when the table has no such index or it is no etag index.
    pub fn from_etag(&self, index: usize, from: i64, order: Order) -> Result<RowRange<'t, '_, T>> {
        table::RowRange::from_etag(self.pages, &self.state, index, from, order.direction()).map(RowRange)
    }
}

/// A place in a table's rows, in the order of one key, that moves both ways. A new one is at no row: `next` goes to the first,
/// `prev` to the last. Rows with the same key in a non-unique index come in no order to rely on, but in the same both ways.
#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
pub struct RowCursor<'t, 's, T: Pages = ReadTransaction>(table::RowCursor<'t, 's, T>);

#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
impl<'t: 's, 's, T: Pages> RowCursor<'t, 's, T> {
    /// Goes to the first row; false when there is none.
    pub fn first(&mut self) -> Result<bool> {
        self.0.first()
    }

    /// Goes to the last row; false when there is none.
    pub fn last(&mut self) -> Result<bool> {
        self.0.last()
    }

    /// Goes to the first row whose key is at least `key`; false when there is none.
    ///
    /// Errors: [`crate::Error::KeyEmpty`], [`crate::Error::KeyTooLong`]; [`crate::Error::Invalid`] for what is no etag, in an etag
    /// index.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek(key)
    }

    /// Goes to the last row whose key is at most `key`; false when there is none. Errors: as for [`RowCursor::seek`].
    pub fn seek_at_most(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek_at_most(key)
    }

    /// Goes to the first row whose number is at least `etag`; false when there is none.
    ///
    /// Errors: [`crate::Error::Invalid`] when the cursor walks no etag index.
    pub fn seek_etag(&mut self, etag: i64) -> Result<bool> {
        self.0.seek_etag(etag)
    }

    /// Goes to the next row; false when there is none, after which `prev` goes to the last one.
    #[expect(clippy::should_implement_trait, reason = "moving can fail, and the key borrows from the cursor")]
    pub fn next(&mut self) -> Result<bool> {
        self.0.next()
    }

    /// Goes to the previous row; false when there is none, after which `next` goes to the first one.
    pub fn prev(&mut self) -> Result<bool> {
        self.0.prev()
    }

    /// The key by which the cursor found the row, an etag as eight bytes, big-endian; empty when it is at none.
    pub fn key(&self) -> &[u8] {
        self.0.key()
    }

    /// The row's number, when the cursor walks an etag index and is at a row.
    pub fn etag(&self) -> Option<i64> {
        self.0.etag()
    }

    /// The row. Errors: [`crate::Error::Invalid`] when the cursor is at none.
    pub fn row(&self) -> Result<Row<'t>> {
        self.0.row()
    }
}

/// A walk over the rows whose key is in a range.
#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
pub struct RowRange<'t, 's, T: Pages = ReadTransaction>(table::RowRange<'t, 's, T>);

#[expect(private_bounds, reason = "the transactions are the only sources of pages")]
impl<'t: 's, 's, T: Pages> RowRange<'t, 's, T> {
    /// The next row of the walk, `None` at its end. After an error the walk is over.
    #[expect(clippy::should_implement_trait, reason = "like the other walks, so that errors end it")]
    pub fn next(&mut self) -> Result<Option<Row<'t>>> {
        self.0.next()
    }

    /// The key by which the row was found that [`RowRange::next`] returned last.
    pub fn key(&self) -> &[u8] {
        self.0.key()
    }
}

/// A table in the write transaction, for changing. While it lives it keeps the table's state; dropping it gives that back to the
/// transaction.
pub struct TableMut<'t> {
    tx: &'t mut WriteTransaction,
    at: usize,
    state: Arc<TableState>,
    changed: bool,
}

impl<'t> TableMut<'t> {
    /// Takes the state at `at`, which is a table's.
    fn new(tx: &'t mut WriteTransaction, at: usize) -> Result<TableMut<'t>> {
        match tx.lend_state(at)? {
            (State::Table(state), _) => Ok(TableMut { tx, at, state, changed: false }),
            (other, _) => unreachable!("a {} opened as a table", other.kind().name()),
        }
    }

    fn change<R>(
        &mut self,
        f: impl FnOnce(&mut WriteTransaction, &mut TableState) -> Result<R>,
    ) -> Result<R> {
        self.changed = true;
        f(self.tx, Arc::make_mut(&mut self.state)).map_err(|e| self.tx.break_with(e))
    }

    /// The table as it is now, for reading.
    pub fn read(&self) -> Table<'_, WriteTransaction> {
        Table { pages: &*self.tx, state: Arc::clone(&self.state) }
    }

    /// What the rows look like and how they are found.
    pub fn schema(&self) -> &Schema {
        self.state.schema()
    }

    /// How many rows there are.
    pub fn len(&self) -> u64 {
        self.state.rows()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row with this primary key, if there is one. Errors: as for [`Table::get`].
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Row<'_>>> {
        table::get(&*self.tx, &self.state, key)
    }

    /// Adds a row.
    ///
    /// Errors: [`crate::Error::DuplicateKey`] when another row has its primary key, or its key in a unique or etag index;
    /// [`crate::Error::Invalid`], [`crate::Error::KeyEmpty`], [`crate::Error::KeyTooLong`], [`crate::Error::ValueTooLong`] when it
    /// cannot be a row of this table. These change nothing. Further those of the disk.
    pub fn insert(&mut self, row: Row<'_>) -> Result<()> {
        self.change(|tx, state| table::insert(tx, state, row))
    }

    /// Replaces the row that has this row's primary key; false when there is none, then nothing is changed. Errors: as for
    /// [`TableMut::insert`].
    pub fn update(&mut self, row: Row<'_>) -> Result<bool> {
        self.change(|tx, state| table::update(tx, state, row))
    }

    /// Replaces the row that has this row's primary key, or adds it; whether there was one before. Errors: as for
    /// [`TableMut::insert`].
    pub fn upsert(&mut self, row: Row<'_>) -> Result<bool> {
        self.change(|tx, state| table::upsert(tx, state, row)).map(|added| !added)
    }

    /// Removes the row with this primary key; whether there was one.
    ///
    /// Errors: [`crate::Error::KeyEmpty`], [`crate::Error::KeyTooLong`]; those of the disk.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.change(|tx, state| table::delete(tx, state, key))
    }

    /// Removes the rows whose number in an etag index is `from` to `to`, both included; how many there were.
    ///
    /// Errors: [`crate::Error::Invalid`] when the table has no such index or it is no etag index; those of the disk.
    pub fn delete_etag_range(&mut self, index: usize, from: i64, to: i64) -> Result<u64> {
        self.change(|tx, state| table::delete_etag_range(tx, state, index, from, to))
    }

    /// Removes all rows.
    pub fn clear(&mut self) -> Result<()> {
        self.change(table::clear)
    }

    /// Adds about `size_max` bytes of another table's rows, those after the primary key `after`. Returns the last key copied;
    /// `None` when all are copied.
    pub(crate) fn copy_rows(
        &mut self,
        source: &Table<'_>,
        after: Option<&[u8]>,
        size_max: u64,
    ) -> Result<Option<Vec<u8>>> {
        self.change(|tx, state| table::copy_rows(source.pages, &source.state, tx, state, after, size_max))
    }
}

impl Drop for TableMut<'_> {
    fn drop(&mut self) {
        let state = Arc::clone(&self.state);
        self.tx.return_state(self.at, State::Table(state), InsertHint::default(), self.changed);
    }
}
