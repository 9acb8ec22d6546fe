//! What a table's rows look like and how they are found. The schema is kept with the table, so that checking, compacting
//! and the command line's tools need nothing from the application.
//!
//! | offset | size | name | meaning |
//! |---|---|---|---|
//! | 0 | 1 | columns | how many a row has |
//! | 1 | 1 | primary first | the first column of the primary key |
//! | 2 | 1 | primary count | how many columns the primary key has |
//! | 3 | 1 | indexes | how many there are |
//! | 4 | 4 + name each | index | kind (0 unique, 1 non-unique, 2 etag), first column, column count, name size, name |

use std::fmt;
use std::ops::Range;

use super::row::ROW_COLUMNS_MAX;
use crate::error::{Error, Result};

/// The most indexes of a table beside its primary key.
pub const TABLE_INDEXES_MAX: usize = 64;

/// What an index holds of each row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum IndexKind {
    /// No two rows have the same key.
    Unique = 0,
    /// Any number of rows may have the same key.
    NonUnique = 1,
    /// No two rows have the same number: a column of eight bytes, big-endian and signed, such as an etag. Takes the least
    /// space and time of all, most of all for ascending numbers.
    Etag = 2,
}

/// Columns that follow each other: `first..first + count`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Columns {
    first: u8,
    count: u8,
}

impl Columns {
    fn new(range: Range<usize>) -> Columns {
        let count = range.end.saturating_sub(range.start);
        // What does not fit is refused by `Schema::check`: 255 columns from 255 on are never in a row.
        Columns { first: range.start.min(255) as u8, count: count.min(255) as u8 }
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.first as usize..self.first as usize + self.count as usize
    }
}

/// An index of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexSchema {
    pub(crate) name: String,
    pub(crate) kind: IndexKind,
    pub(crate) columns: Columns,
}

impl IndexSchema {
    /// The index's name, for messages and tools.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it holds of each row.
    pub fn kind(&self) -> IndexKind {
        self.kind
    }

    /// The columns that make its key.
    pub fn columns(&self) -> Range<usize> {
        self.columns.range()
    }
}

/// A table's schema: how many columns its rows have, and which make the primary key and the keys of the indexes.
///
/// A key is one column or several that follow each other. The bytes of several are put one behind the other as they
/// are, so `("ab", "c")` and `("a", "bc")` are the same key: give all but the last a fixed size, or an end that is not
/// in them. Keys have at most [`KEY_SIZE_MAX`](crate::format::KEY_SIZE_MAX) bytes and are ordered by their bytes. The
/// primary key is unique and not empty; a row whose key for a unique or non-unique index is empty is not in that index.
///
/// ```
/// use jackdaw_storage::Schema;
///
/// // id, etag, collection, document
/// let documents = Schema::new(4, 0..1).etag("by_etag", 1).non_unique("by_collection", 2..3);
/// assert_eq!(documents.index("by_collection"), Some(1));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schema {
    columns: usize,
    primary: Columns,
    indexes: Vec<IndexSchema>,
}

impl Schema {
    /// Rows of so many columns, of which `primary_key` is the primary key. Whether the schema makes sense is checked
    /// when a table is created or opened with it.
    pub fn new(columns: usize, primary_key: Range<usize>) -> Schema {
        Schema { columns, primary: Columns::new(primary_key), indexes: Vec::new() }
    }

    fn with(mut self, name: &str, kind: IndexKind, columns: Range<usize>) -> Schema {
        self.indexes.push(IndexSchema { name: name.to_owned(), kind, columns: Columns::new(columns) });
        self
    }

    /// With a further index in which each key has one row.
    pub fn unique(self, name: &str, columns: Range<usize>) -> Schema {
        self.with(name, IndexKind::Unique, columns)
    }

    /// With a further index in which a key has any number of rows.
    pub fn non_unique(self, name: &str, columns: Range<usize>) -> Schema {
        self.with(name, IndexKind::NonUnique, columns)
    }

    /// With a further index over a column of eight bytes, a big-endian signed number that no other row has.
    pub fn etag(self, name: &str, column: usize) -> Schema {
        self.with(name, IndexKind::Etag, column..column + 1)
    }

    /// How many columns a row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The columns that make the primary key.
    pub fn primary_key(&self) -> Range<usize> {
        self.primary.range()
    }

    pub(crate) fn primary(&self) -> Columns {
        self.primary
    }

    /// The indexes beside the primary key, in the order in which they were given.
    pub fn indexes(&self) -> &[IndexSchema] {
        &self.indexes
    }

    /// The place of an index among [`Schema::indexes`].
    pub fn index(&self, name: &str) -> Option<usize> {
        self.indexes.iter().position(|index| index.name == name)
    }

    /// Error: [`Error::Invalid`] when there can be no such table.
    pub fn check(&self) -> Result<()> {
        let invalid = |text: String| Err(Error::Invalid(format!("a table schema {text}")));
        if self.columns == 0 || self.columns > ROW_COLUMNS_MAX {
            return invalid(format!("of {} columns; 1 to {ROW_COLUMNS_MAX} are possible", self.columns));
        }
        if self.indexes.len() > TABLE_INDEXES_MAX {
            return invalid(format!("of {} indexes; {TABLE_INDEXES_MAX} are possible", self.indexes.len()));
        }
        let outside = |columns: Columns| columns.count == 0 || columns.range().end > self.columns;
        if outside(self.primary) {
            let (primary, columns) = (self.primary.range(), self.columns);
            return invalid(format!("of {columns} columns whose primary key is the columns {primary:?}"));
        }
        for (i, index) in self.indexes.iter().enumerate() {
            let name = &index.name;
            if outside(index.columns) {
                let (key, columns) = (index.columns.range(), self.columns);
                return invalid(format!(
                    "of {columns} columns whose index {name:?} is over the columns {key:?}"
                ));
            }
            if index.kind == IndexKind::Etag && index.columns.count != 1 {
                return invalid(format!("whose etag index {name:?} is over more than one column"));
            }
            if name.is_empty() || name.len() > 255 {
                return invalid(format!("with an index name of {} bytes; 1 to 255 are possible", name.len()));
            }
            if self.indexes[..i].iter().any(|other| other.name == *name) {
                return invalid(format!("with two indexes named {name:?}"));
            }
        }
        Ok(())
    }

    /// How many bytes [`Schema::encode`] appends.
    pub(crate) fn encoded_size(&self) -> usize {
        4 + self.indexes.iter().map(|index| 4 + index.name.len()).sum::<usize>()
    }

    /// Appends the bytes to keep the schema as. It has been checked.
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&[
            self.columns as u8,
            self.primary.first,
            self.primary.count,
            self.indexes.len() as u8,
        ]);
        for index in &self.indexes {
            let Columns { first, count } = index.columns;
            to.extend_from_slice(&[index.kind as u8, first, count, index.name.len() as u8]);
            to.extend_from_slice(index.name.as_bytes());
        }
    }

    /// The schema back from the front of `bytes`, and the bytes behind; `None` when it is none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Schema, &[u8])> {
        let (&[columns, first, count, indexes], mut rest) = bytes.split_first_chunk()?;
        let primary = Columns { first, count };
        let mut schema = Schema { columns: columns as usize, primary, indexes: Vec::new() };
        for _ in 0..indexes {
            let (&[kind, first, count, name_size], behind) = rest.split_first_chunk()?;
            let (name, behind) = behind.split_at_checked(name_size as usize)?;
            let kind = match kind {
                0 => IndexKind::Unique,
                1 => IndexKind::NonUnique,
                2 => IndexKind::Etag,
                _ => return None,
            };
            let (name, columns) = (std::str::from_utf8(name).ok()?.to_owned(), Columns { first, count });
            schema.indexes.push(IndexSchema { name, kind, columns });
            rest = behind;
        }
        schema.check().is_ok().then_some((schema, rest))
    }
}

/// For messages: `4 columns, primary key 0..1, etag index "by_etag" over 1..2`.
impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} columns, primary key {:?}", self.columns, self.primary.range())?;
        for index in &self.indexes {
            let kind = match index.kind {
                IndexKind::Unique => "unique",
                IndexKind::NonUnique => "non-unique",
                IndexKind::Etag => "etag",
            };
            write!(f, ", {kind} index {:?} over {:?}", index.name, index.columns.range())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn schemas_survive_encoding() {
        let plain = Schema::new(1, 0..1);
        let full = Schema::new(255, 1..255).unique("a", 0..1).non_unique("ä", 3..9).etag("e", 254);
        for schema in [plain, full] {
            schema.check().unwrap();
            let mut bytes = Vec::new();
            schema.encode(&mut bytes);
            let size = bytes.len();
            assert_eq!(size, schema.encoded_size());
            bytes.push(99);
            assert_eq!(Schema::decode(&bytes), Some((schema, &[99][..])));
            assert!((0..size).all(|cut| Schema::decode(&bytes[..cut]).is_none()));
        }
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        let many = (0..=TABLE_INDEXES_MAX).fold(Schema::new(1, 0..1), |s, i| s.unique(&i.to_string(), 0..1));
        let bad = [
            Schema::new(0, 0..0),
            Schema::new(256, 0..1),
            Schema::new(3, 0..0),
            Schema::new(3, 2..4),
            Schema::new(3, 300..301),
            Schema::new(255, 0..1).unique("i", 254..1000),
            Schema::new(3, 0..1).unique("", 0..1),
            Schema::new(3, 0..1).unique("i", 1..1),
            Schema::new(3, 0..1).unique("i", 3..4),
            Schema::new(3, 0..1).unique("i", 1..2).etag("i", 2),
            Schema::new(3, 0..1).with("e", IndexKind::Etag, 1..3),
            many,
        ];
        for schema in bad {
            assert!(matches!(schema.check(), Err(Error::Invalid(_))), "{schema}");
        }
    }
}
