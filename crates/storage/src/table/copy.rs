//! Copying a table to other pages, densely: what compaction does.

use super::{By, TableState, cursor, insert};
use crate::error::Result;
use crate::pages::{Pages, PagesMut};

/// Copies rows in the order of their primary keys, those after the key `after` or else from the first on, until about
/// `size_max` bytes are copied. Returns the last key copied, to go on after it; `None` when all rows are copied.
/// In steps, so that the destination can commit between them.
pub(crate) fn copy_rows<S: Pages, D: PagesMut>(
    source: &S,
    state: &TableState,
    destination: &mut D,
    destination_state: &mut TableState,
    after: Option<&[u8]>,
    size_max: u64,
) -> Result<Option<Vec<u8>>> {
    let mut cursor = cursor(source, state, By::Primary)?;
    let mut found = match after {
        None => cursor.first()?,
        Some(key) => cursor.seek(key)? && (cursor.key() != key || cursor.next()?),
    };
    let mut size = 0;
    while found {
        let row = cursor.row()?;
        insert(destination, destination_state, row)?;
        size += row.as_bytes().len() as u64;
        if size >= size_max {
            return Ok(Some(cursor.key().to_vec()));
        }
        found = cursor.next()?;
    }
    Ok(None)
}
