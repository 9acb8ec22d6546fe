//! Rows: a sequence of columns, each a string of bytes, with where each ends in front of them.
//!
//! ```text
//!  0       1       2                    2 + count·width
//!  ┌───────┬───────┬────────────────────┬──────────┬──────────┬─────┐
//!  │ count │ width │ count × end        │ column 0 │ column 1 │ ... │
//!  └───────┴───────┴────────────────────┴──────────┴──────────┴─────┘
//! ```
//! | offset | size | name | meaning |
//! |---|---|---|---|
//! | 0 | 1 | count | columns, 1 to 255 |
//! | 1 | 1 | width | bytes of each end: 1, 2 or 4 |
//! | 2 | count × width | ends | where each column ends, counted from the first column's begin |
//! | 2 + count × width | | columns | one behind the other; the last ends with the row |
//!
//! Columns that follow each other in the schema lie side by side, so a key of several columns is one slice.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::{VALUE_SIZE_MAX, read_u16, read_u32};

/// The most columns of a row.
pub const ROW_COLUMNS_MAX: usize = 255;

const ENDS_AT: usize = 2;

/// A row for reading, borrowed: from the page it lies in or from a [`RowBuilder`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Row<'p> {
    bytes: &'p [u8],
    data_at: usize,
    count: u8,
    width: u8,
}

impl<'p> Row<'p> {
    /// Takes encoded bytes for a row, after checking that they are one. Takes time by the number of columns.
    ///
    /// Error: [`Error::Invalid`] when the columns do not exactly fill the bytes.
    #[inline]
    pub fn from_bytes(bytes: &'p [u8]) -> Result<Row<'p>> {
        Row::decode(bytes)
            .ok_or_else(|| Error::Invalid(format!("{} bytes that are no table row", bytes.len())))
    }

    #[inline]
    fn decode(bytes: &'p [u8]) -> Option<Row<'p>> {
        let &[count, width, ..] = bytes else { return None };
        let data_at = ENDS_AT + count as usize * width as usize;
        if count == 0 || !matches!(width, 1 | 2 | 4) || data_at > bytes.len() {
            return None;
        }
        let row = Row { bytes, data_at, count, width };
        let mut start = 0;
        for i in 0..row.columns() {
            let end = row.end(i);
            if end < start {
                return None;
            }
            start = end;
        }
        (start == bytes.len() - data_at).then_some(row)
    }

    #[inline]
    fn end(&self, i: usize) -> usize {
        match self.width {
            1 => self.bytes[ENDS_AT + i] as usize,
            2 => read_u16(self.bytes, ENDS_AT + 2 * i) as usize,
            _ => read_u32(self.bytes, ENDS_AT + 4 * i) as usize,
        }
    }

    /// How many columns there are.
    #[inline]
    pub fn columns(&self) -> usize {
        self.count as usize
    }

    /// The bytes of a column.
    ///
    /// # Panics
    /// When there is no such column. Every row in a table has exactly as many as its schema says.
    #[inline]
    pub fn column(&self, i: usize) -> &'p [u8] {
        self.column_range(i..i + 1)
    }

    /// The bytes of several columns that follow each other, one behind the other.
    ///
    /// # Panics
    /// When there are no such columns.
    #[inline]
    pub fn column_range(&self, columns: Range<usize>) -> &'p [u8] {
        assert!(columns.end <= self.columns(), "columns {columns:?} of a row of {}", self.columns());
        let edge = |i: usize| self.data_at + if i == 0 { 0 } else { self.end(i - 1) };
        &self.bytes[edge(columns.start)..edge(columns.end)]
    }

    /// A column of eight bytes as a big-endian signed number, such as an etag; `None` when it is of another size.
    ///
    /// # Panics
    /// When there is no such column.
    #[inline]
    pub fn column_i64(&self, i: usize) -> Option<i64> {
        self.column(i).try_into().ok().map(i64::from_be_bytes)
    }

    /// The whole row, encoded: what [`Row::from_bytes`] takes.
    #[inline]
    pub fn as_bytes(&self) -> &'p [u8] {
        self.bytes
    }
}

impl std::fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |i| String::from_utf8_lossy(self.column(i));
        f.debug_list().entries((0..self.columns()).map(text)).finish()
    }
}

/// Puts rows together, column by column. Use one for many rows: it keeps its memory.
///
/// ```
/// use jackdaw_storage::RowBuilder;
///
/// let mut builder = RowBuilder::new();
/// let row = builder.push(b"users/1").push_i64(42).push(b"{}").finish()?;
/// assert_eq!(row.column(0), b"users/1");
/// assert_eq!(row.column_i64(1), Some(42));
/// # Ok::<(), jackdaw_storage::Error>(())
/// ```
#[derive(Default, Debug)]
pub struct RowBuilder {
    ends: Vec<usize>,
    data: Vec<u8>,
    row: Vec<u8>,
}

impl RowBuilder {
    /// A builder with no columns yet.
    pub fn new() -> RowBuilder {
        RowBuilder::default()
    }

    /// Adds a column.
    pub fn push(&mut self, column: &[u8]) -> &mut RowBuilder {
        self.data.extend_from_slice(column);
        self.ends.push(self.data.len());
        self
    }

    /// Adds a column of eight bytes: a number, big-endian, as an etag index needs it.
    pub fn push_i64(&mut self, number: i64) -> &mut RowBuilder {
        self.push(&number.to_be_bytes())
    }

    /// Forgets the columns added so far.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.data.clear();
    }

    /// The row of the columns added, which are forgotten with this: the next `push` begins another row.
    ///
    /// Errors: [`Error::Invalid`] without columns or with more than [`ROW_COLUMNS_MAX`];
    /// [`Error::ValueTooLong`] when the row is longer than [`VALUE_SIZE_MAX`].
    pub fn finish(&mut self) -> Result<Row<'_>> {
        let result = self.assemble();
        self.clear();
        result?;
        Row::from_bytes(&self.row)
    }

    fn assemble(&mut self) -> Result<()> {
        let count = self.ends.len();
        if count == 0 || count > ROW_COLUMNS_MAX {
            return Err(Error::Invalid(format!(
                "a row of {count} columns; 1 to {ROW_COLUMNS_MAX} are possible"
            )));
        }
        let size = ENDS_AT + count * 4 + self.data.len();
        if size as u64 > VALUE_SIZE_MAX {
            return Err(Error::ValueTooLong { size: size as u64, max: VALUE_SIZE_MAX });
        }
        let width: usize = match self.data.len() {
            0..=0xff => 1,
            0x100..=0xffff => 2,
            _ => 4,
        };
        self.row.clear();
        self.row.reserve(size);
        self.row.extend_from_slice(&[count as u8, width as u8]);
        for end in &self.ends {
            self.row.extend_from_slice(&(*end as u32).to_le_bytes()[..width]);
        }
        self.row.extend_from_slice(&self.data);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rows_come_back_column_by_column() {
        let mut builder = RowBuilder::new();
        let sizes: &[usize] =
            if cfg!(miri) { &[0, 200, 256] } else { &[0, 1, 200, 255, 256, 65_535, 65_536, 100_000] };
        for &size in sizes {
            let long = vec![7; size];
            let row = builder.push(b"a").push(b"").push(&long).push_i64(-2).finish().unwrap();
            assert_eq!(row.columns(), 4);
            assert_eq!((row.column(0), row.column(1), row.column(2)), (&b"a"[..], &b""[..], &long[..]));
            assert_eq!(row.column_i64(3), Some(-2));
            assert_eq!(row.column_i64(0), None);
            assert_eq!(row.column_range(0..2), b"a");
            assert_eq!(row.column_range(1..1), b"");
            assert_eq!(row.column_range(2..4).len(), size + 8);
            let bytes = row.as_bytes();
            for cut in 0..bytes.len().min(300) {
                assert!(Row::from_bytes(&bytes[..cut]).is_err());
            }
        }
        let row = builder.push(b"123").push(b"4567").finish().unwrap();
        assert_eq!(row.as_bytes(), b"\x02\x01\x03\x071234567");
    }

    #[test]
    fn what_is_no_row_is_refused() {
        assert!(RowBuilder::new().finish().is_err());
        let mut builder = RowBuilder::new();
        for _ in 0..ROW_COLUMNS_MAX + 1 {
            builder.push(b"x");
        }
        assert!(builder.finish().is_err());
        assert_eq!(builder.push(b"y").finish().unwrap().columns(), 1);
        for bad in [
            &b""[..],
            b"\x01",
            b"\0\x01",
            b"\x01\x03\0\0\0",
            b"\x02\x01\x02\x01ab",
            b"\x01\x01\x03ab",
            b"\x01\x01\x01ab",
        ] {
            assert!(Row::from_bytes(bad).is_err(), "{bad:?}");
        }
    }
}
