//! Tables: rows of columns, found by a primary key and by any number of indexes.
//!
//! ```text
//!   primary key ──▶ tree ────────┐
//!   unique index ──▶ tree ───────┤
//!   non-unique index ──▶ multi ──┼──▶ place of the row ──▶ heap: row = column 0, column 1, ...
//!   etag index ──▶ fixed ────────┘
//! ```
//! Rows lie in the table's heap; every index leads straight to a row's place there. An update leaves the row where it is
//! when the new one fits into its page, and touches only the indexes whose key changed; a row that has to move is
//! noted in every index.
//!
//! What always holds:
//! - each row is in the primary tree under its primary key, and in each index under its key there, unless that is
//!   empty;
//! - no index has an entry beside these.
//!
//! Every operation first checks all that can be refused (sizes, duplicates) and then changes, so a refusal changes
//! nothing. When changing itself fails (no memory, no disk, damage), a row can be left half changed: after an error that
//! is not about the arguments, the transaction must be rolled back to before the call.

mod check;
mod copy;
mod cursor;
mod index;
mod row;
mod schema;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use check::check;
pub(crate) use copy::copy_rows;
pub use cursor::By;
pub(crate) use cursor::{RowCursor, RowRange};
pub use row::{ROW_COLUMNS_MAX, Row, RowBuilder};
pub use schema::{IndexKind, IndexSchema, Schema, TABLE_INDEXES_MAX};
pub(crate) use state::TableState;

use crate::btree::{Tree, TreeMut};
use crate::error::{Error, Result};
use crate::format::{KEY_SIZE_MAX, VALUE_SIZE_MAX};
use crate::heap::{self, ValueRef};
use crate::pages::{Pages, PagesMut};
use index::{IndexTree, place, place_bytes};
use schema::Columns;

/// What [`Error::DuplicateKey`] calls the primary key.
const PRIMARY: &str = "primary key";

/// Errors: the row is not one of this table, or a key of it cannot be one.
fn check_row(state: &TableState, row: &Row<'_>) -> Result<()> {
    let columns = state.schema().columns();
    if row.columns() != columns {
        let (name, found) = (state.name(), row.columns());
        return Err(Error::Invalid(format!(
            "a row of {found} columns for table {name:?}, whose rows have {columns}"
        )));
    }
    let size = row.as_bytes().len() as u64;
    if size > VALUE_SIZE_MAX {
        return Err(Error::ValueTooLong { size, max: VALUE_SIZE_MAX });
    }
    check_primary_key(primary_key(state, row))?;
    for index in &state.indexes {
        index.check_key(row.column_range(index.columns.range()))?;
    }
    Ok(())
}

#[inline]
fn check_primary_key(key: &[u8]) -> Result<()> {
    match key.len() {
        1..=KEY_SIZE_MAX => Ok(()),
        0 => Err(Error::KeyEmpty),
        size => Err(Error::KeyTooLong { size, max: KEY_SIZE_MAX }),
    }
}

#[inline]
fn primary_key<'p>(state: &TableState, row: &Row<'p>) -> &'p [u8] {
    row.column_range(state.schema().primary().range())
}

#[cold]
fn duplicate(state: &TableState, index: Option<usize>) -> Error {
    let index = index.map_or(PRIMARY, |i| state.schema().indexes()[i].name());
    Error::DuplicateKey { table: state.name().to_owned(), index: index.to_owned() }
}

/// Where the row with this primary key lies.
fn find(pages: &impl Pages, state: &TableState, key: &[u8]) -> Result<Option<ValueRef>> {
    check_primary_key(key)?;
    match Tree::new(pages, &state.primary).get(key)? {
        None => Ok(None),
        Some(bytes) => place(bytes).map(Some).ok_or_else(|| {
            Error::damaged(state.primary.root, "a primary key of the table of this root is of no row")
        }),
    }
}

/// The row at a place. Error: there is none, or none of this table.
#[inline]
fn row_at<'p>(pages: &'p impl Pages, columns: usize, r: ValueRef) -> Result<Row<'p>> {
    match Row::from_bytes(heap::get(pages, r)?) {
        Ok(row) if row.columns() == columns => Ok(row),
        _ => Err(Error::damaged(r.page(), format!("the value {r:?} is no row of {columns} columns"))),
    }
}

/// Copies the key that the row at `r` has in some columns, so that pages can be changed while it is used.
fn old_key<'b>(
    pages: &impl Pages,
    state: &TableState,
    r: ValueRef,
    columns: Columns,
    buffer: &'b mut [u8; KEY_SIZE_MAX],
) -> Result<&'b [u8]> {
    let key = row_at(pages, state.schema().columns(), r)?.column_range(columns.range());
    let too_long = || Error::damaged(r.page(), format!("the row {r:?} has a key of {} bytes", key.len()));
    let copy = buffer.get_mut(..key.len()).ok_or_else(too_long)?;
    copy.copy_from_slice(key);
    Ok(copy)
}

/// Adds a row.
///
/// Errors: [`DuplicateKey`](Error::DuplicateKey) when another row has its primary key, or its key in a unique or etag
/// index; [`Invalid`](Error::Invalid), [`KeyEmpty`](Error::KeyEmpty), [`KeyTooLong`](Error::KeyTooLong) and
/// [`ValueTooLong`](Error::ValueTooLong) when it cannot be a row of this table. These change nothing.
pub(crate) fn insert<P: PagesMut>(pages: &mut P, state: &mut TableState, row: Row<'_>) -> Result<()> {
    check_row(state, &row)?;
    for (i, index) in state.indexes.iter().enumerate() {
        if index.find(pages, row.column_range(index.columns.range()))?.is_some() {
            return Err(duplicate(state, Some(i)));
        }
    }
    let key = primary_key(state, &row);
    let r = heap::insert(pages, &mut state.heap, row.as_bytes())?;
    // One descent finds out whether the key is new and inserts it; sequential keys need not even that.
    if !TreeMut::new(pages, &mut state.primary, &mut state.primary_hint).insert(key, &place_bytes(r))? {
        heap::remove(pages, &mut state.heap, r)?;
        return Err(duplicate(state, None));
    }
    for index in &mut state.indexes {
        index.add(pages, row.column_range(index.columns.range()), r)?;
    }
    Ok(())
}

/// Replaces the row that has this row's primary key; false when there is none, then nothing is changed.
/// Errors: as for [`insert`].
pub(crate) fn update<P: PagesMut>(pages: &mut P, state: &mut TableState, row: Row<'_>) -> Result<bool> {
    check_row(state, &row)?;
    match find(pages, state, primary_key(state, &row))? {
        Some(r) => update_at(pages, state, r, row).map(|()| true),
        None => Ok(false),
    }
}

/// Replaces the row that has this row's primary key, or adds it; true when it was added. Errors: as for [`insert`].
pub(crate) fn upsert<P: PagesMut>(pages: &mut P, state: &mut TableState, row: Row<'_>) -> Result<bool> {
    Ok(!update(pages, state, row)? && insert(pages, state, row).map(|()| true)?)
}

fn update_at<P: PagesMut>(pages: &mut P, state: &mut TableState, r: ValueRef, row: Row<'_>) -> Result<()> {
    let old = row_at(pages, state.schema().columns(), r)?;
    for (i, index) in state.indexes.iter().enumerate() {
        let key = row.column_range(index.columns.range());
        if key != old.column_range(index.columns.range()) && index.find(pages, key)?.is_some() {
            return Err(duplicate(state, Some(i)));
        }
    }
    let mut buffer = [0; KEY_SIZE_MAX];
    for i in 0..state.indexes.len() {
        let columns = state.indexes[i].columns;
        let old = old_key(pages, state, r, columns, &mut buffer)?;
        let new = row.column_range(columns.range());
        if old != new {
            state.indexes[i].remove(pages, old, r)?;
            state.indexes[i].add(pages, new, r)?;
        }
    }
    let now = heap::update(pages, &mut state.heap, r, row.as_bytes())?;
    if now != r {
        let key = primary_key(state, &row);
        TreeMut::new(pages, &mut state.primary, &mut state.primary_hint).put(key, &place_bytes(now))?;
        for index in &mut state.indexes {
            index.relocate(pages, row.column_range(index.columns.range()), r, now)?;
        }
    }
    Ok(())
}

/// Deletes the row with this primary key; false when there is none.
/// Errors: [`KeyEmpty`](Error::KeyEmpty), [`KeyTooLong`](Error::KeyTooLong); these change nothing.
pub(crate) fn delete<P: PagesMut>(pages: &mut P, state: &mut TableState, key: &[u8]) -> Result<bool> {
    match find(pages, state, key)? {
        Some(r) => delete_at(pages, state, r).map(|()| true),
        None => Ok(false),
    }
}

fn delete_at<P: PagesMut>(pages: &mut P, state: &mut TableState, r: ValueRef) -> Result<()> {
    let mut buffer = [0; KEY_SIZE_MAX];
    for i in 0..state.indexes.len() {
        let key = old_key(pages, state, r, state.indexes[i].columns, &mut buffer)?;
        state.indexes[i].remove(pages, key, r)?;
    }
    let key = old_key(pages, state, r, state.schema().primary(), &mut buffer)?;
    if !TreeMut::new(pages, &mut state.primary, &mut state.primary_hint).delete(key)? {
        return Err(Error::damaged(r.page(), format!("the row {r:?} is not in the tree of its primary key")));
    }
    heap::remove(pages, &mut state.heap, r)
}

/// Deletes the rows whose number in an etag index is `from` to `to`, both included, and returns how many there were.
/// Error: [`Invalid`](Error::Invalid) when `index` is no etag index of the table.
pub(crate) fn delete_etag_range<P: PagesMut>(
    pages: &mut P,
    state: &mut TableState,
    index: usize,
    from: i64,
    to: i64,
) -> Result<u64> {
    let mut count = 0;
    while let Some(r) = {
        let mut cursor = cursor(&*pages, state, By::Index(index))?;
        let found = cursor.seek_etag(from)? && cursor.etag().is_some_and(|etag| etag <= to);
        if found { Some(cursor.place()?) } else { None }
    } {
        delete_at(pages, state, r)?;
        count += 1;
    }
    Ok(count)
}

/// Deletes all rows and gives back all pages. Stops at the first error.
pub(crate) fn clear<P: PagesMut>(pages: &mut P, state: &mut TableState) -> Result<()> {
    // The places are collected some at a time: the walk borrows the pages that removing changes.
    const BATCH: usize = 4096;
    let mut batch = Vec::new();
    let mut last: Option<Vec<u8>> = None;
    loop {
        let mut cursor = cursor(&*pages, state, By::Primary)?;
        let mut found = match &last {
            None => cursor.first()?,
            Some(key) => cursor.seek(key)? && (cursor.key() != key || cursor.next()?),
        };
        while found && batch.len() < BATCH {
            batch.push(cursor.place()?);
            if batch.len() == BATCH {
                last = Some(cursor.key().to_vec());
            }
            found = cursor.next()?;
        }
        drop(cursor);
        for r in batch.drain(..) {
            heap::remove(pages, &mut state.heap, r)?;
        }
        if !found {
            break;
        }
    }
    TreeMut::new(pages, &mut state.primary, &mut state.primary_hint).clear()?;
    for index in &mut state.indexes {
        index.clear(pages)?;
    }
    Ok(())
}

/// The row with this primary key. Errors: [`KeyEmpty`](Error::KeyEmpty), [`KeyTooLong`](Error::KeyTooLong).
#[inline]
pub(crate) fn get<'p>(pages: &'p impl Pages, state: &TableState, key: &[u8]) -> Result<Option<Row<'p>>> {
    match find(pages, state, key)? {
        Some(r) => row_at(pages, state.schema().columns(), r).map(Some),
        None => Ok(None),
    }
}

/// The row with this key in a unique or etag index (an etag as eight bytes, big-endian).
/// Error: [`Invalid`](Error::Invalid) when `index` is none of the table's, or non-unique.
pub(crate) fn get_by<'p>(
    pages: &'p impl Pages,
    state: &TableState,
    index: usize,
    key: &[u8],
) -> Result<Option<Row<'p>>> {
    let index = index_of(state, index)?;
    if let IndexTree::NonUnique(_) = index.tree {
        return Err(Error::Invalid("a single row was asked of a non-unique index".to_owned()));
    }
    index.check_key(key)?;
    match index.find(pages, key)? {
        Some(r) => row_at(pages, state.schema().columns(), r).map(Some),
        None => Ok(None),
    }
}

/// How many rows have this key in an index, without looking at them. Error: `index` is none of the table's.
pub(crate) fn count_by(pages: &impl Pages, state: &TableState, index: usize, key: &[u8]) -> Result<u64> {
    let index = index_of(state, index)?;
    index.check_key(key)?;
    match &index.tree {
        _ if !index.takes(key) => Ok(0),
        IndexTree::NonUnique(multi) => crate::multi::MultiTree::new(pages, multi).count(key),
        _ => Ok(index.find(pages, key)?.is_some() as u64),
    }
}

/// A cursor over the rows in the order of a key; at no row yet. Error: the table has no such index.
pub(crate) fn cursor<'p: 's, 's, P: Pages>(
    pages: &'p P,
    state: &'s TableState,
    by: By,
) -> Result<RowCursor<'p, 's, P>> {
    RowCursor::new(pages, state, by)
}

fn index_of(state: &TableState, index: usize) -> Result<&index::Index> {
    state.indexes.get(index).ok_or_else(|| {
        let (name, count) = (state.name(), state.indexes.len());
        Error::Invalid(format!("index {index} of table {name:?}, which has {count}"))
    })
}
