//! Entries in the form that tantivy takes: many of them in three buffers, whatever the number of their fields, which come back when the entries
//! are written. (Made anew for each entry they would be allocated on one thread and freed on another, and both wait for the allocator's locks.)

use std::sync::Arc;

use parking_lot::Mutex;

use tantivy::schema::document::{Document, ReferenceValue, ReferenceValueLeaf, Value};
use tantivy::schema::{Field, OwnedValue};

/// The values of entries for tantivy's fields.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    /// Of all entries, one after the other.
    cells: Vec<(Field, Cell)>,
    /// Where the cells of each entry end.
    ends: Vec<usize>,
    /// All texts, one after the other.
    text: String,
    bytes: Vec<u8>,
}

/// Buffers that wait for their next entries.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    buffers: Vec<Cells>,
    size: usize,
}

impl Spare {
    /// Bytes of buffers kept, and of each of them.
    const SIZE_MAX: usize = 4 << 20;
    const ONE_SIZE_MAX: usize = 256 << 10;

    pub(crate) fn take(&self) -> Cells {
        let mut kept = self.0.lock();
        let cells = kept.buffers.pop().unwrap_or_default();
        kept.size -= cells.size();
        cells
    }

    fn give(&self, mut cells: Cells) {
        if cells.size() > Spare::ONE_SIZE_MAX {
            return;
        }
        cells.cells.clear();
        cells.ends.clear();
        cells.text.clear();
        cells.bytes.clear();
        let mut kept = self.0.lock();
        if kept.size + cells.size() <= Spare::SIZE_MAX {
            kept.size += cells.size();
            kept.buffers.push(cells);
        }
    }

    /// Lets go of all.
    pub(crate) fn free(&self) {
        let kept = std::mem::take(&mut *self.0.lock());
        drop(kept);
    }
}

#[derive(Debug, Clone, Copy)]
enum Cell {
    Text {
        from: u32,
        to: u32,
    },
    Bytes {
        from: u32,
        to: u32,
    },
    Unsigned(u64),
    Long(i64),
    Double(f64),
    /// A value of a column whose name is in `text` up to `name_to`.
    Column {
        name_from: u32,
        name_to: u32,
        value: ColumnCell,
    },
}

#[derive(Debug, Clone, Copy)]
enum ColumnCell {
    Text { to: u32 },
    Long(i64),
    Double(f64),
}

impl Cells {
    /// How many entries there are.
    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of the entries.
    pub(crate) fn bytes_used(&self) -> usize {
        self.text.len() + self.bytes.len() + self.cells.len() * std::mem::size_of::<(Field, Cell)>()
    }

    /// Bytes of memory.
    fn size(&self) -> usize {
        self.text.capacity()
            + self.bytes.capacity()
            + self.cells.capacity() * std::mem::size_of::<(Field, Cell)>()
            + self.ends.capacity() * std::mem::size_of::<usize>()
    }

    /// Ends the entry whose cells were added last.
    pub(crate) fn end(&mut self) {
        self.ends.push(self.cells.len());
    }

    /// Calls `each` for all entries, and gives the buffers back.
    pub(crate) fn each<E>(
        self,
        spare: &Spare,
        mut each: impl FnMut(EntryCells) -> Result<(), E>,
    ) -> Result<(), E> {
        let cells = Arc::new(self);
        let mut from = 0;
        for &to in &cells.ends {
            each(EntryCells { cells: Arc::clone(&cells), from, to })?;
            from = to;
        }
        if let Some(cells) = Arc::into_inner(cells) {
            spare.give(cells);
        }
        Ok(())
    }

    /// Adds the text that `write` appends, unless it says that it is none.
    pub(crate) fn text(&mut self, field: Field, write: impl FnOnce(&mut String) -> bool) {
        let from = self.text.len();
        if write(&mut self.text) {
            self.cells.push((field, Cell::Text { from: from as u32, to: self.text.len() as u32 }));
        } else {
            self.text.truncate(from);
        }
    }

    pub(crate) fn bytes(&mut self, field: Field, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.bytes.len();
        write(&mut self.bytes);
        self.cells.push((field, Cell::Bytes { from: from as u32, to: self.bytes.len() as u32 }));
    }

    pub(crate) fn unsigned(&mut self, field: Field, value: u64) {
        self.cells.push((field, Cell::Unsigned(value)));
    }

    pub(crate) fn long(&mut self, field: Field, value: i64) {
        self.cells.push((field, Cell::Long(value)));
    }

    pub(crate) fn double(&mut self, field: Field, value: f64) {
        self.cells.push((field, Cell::Double(value)));
    }

    pub(crate) fn column_long(&mut self, field: Field, name: &str, value: i64) {
        self.column(field, name, ColumnCell::Long(value));
    }

    pub(crate) fn column_double(&mut self, field: Field, name: &str, value: f64) {
        self.column(field, name, ColumnCell::Double(value));
    }

    pub(crate) fn column_text(&mut self, field: Field, name: &str, value: &str) {
        let to = self.text.len() + name.len() + value.len();
        self.column(field, name, ColumnCell::Text { to: to as u32 });
        self.text.push_str(value);
    }

    fn column(&mut self, field: Field, name: &str, value: ColumnCell) {
        let name_from = self.text.len() as u32;
        self.text.push_str(name);
        self.cells.push((field, Cell::Column { name_from, name_to: self.text.len() as u32, value }));
    }

    fn value(&self, cell: Cell) -> CellValue<'_> {
        match cell {
            Cell::Text { from, to } => CellValue::Text(&self.text[from as usize..to as usize]),
            Cell::Bytes { from, to } => CellValue::Bytes(&self.bytes[from as usize..to as usize]),
            Cell::Unsigned(value) => CellValue::Unsigned(value),
            Cell::Long(value) => CellValue::Long(value),
            Cell::Double(value) => CellValue::Double(value),
            Cell::Column { name_from, name_to, value } => CellValue::Column {
                name: &self.text[name_from as usize..name_to as usize],
                value: match value {
                    ColumnCell::Long(value) => ColumnValue::Long(value),
                    ColumnCell::Double(value) => ColumnValue::Double(value),
                    ColumnCell::Text { to } => ColumnValue::Text(&self.text[name_to as usize..to as usize]),
                },
            },
        }
    }
}

/// One entry of many.
#[derive(Debug)]
pub(crate) struct EntryCells {
    cells: Arc<Cells>,
    from: usize,
    to: usize,
}

impl Document for EntryCells {
    type Value<'a> = CellValue<'a>;
    type FieldsValuesIter<'a> = CellIterator<'a>;

    fn iter_fields_and_values(&self) -> CellIterator<'_> {
        CellIterator { all: &self.cells, cells: self.cells.cells[self.from..self.to].iter() }
    }
}

/// The fields and values of an entry.
pub(crate) struct CellIterator<'a> {
    all: &'a Cells,
    cells: std::slice::Iter<'a, (Field, Cell)>,
}

impl<'a> Iterator for CellIterator<'a> {
    type Item = (Field, CellValue<'a>);

    fn next(&mut self) -> Option<(Field, CellValue<'a>)> {
        self.cells.next().map(|&(field, cell)| (field, self.all.value(cell)))
    }
}

/// A value as tantivy looks at it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CellValue<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
    Unsigned(u64),
    Long(i64),
    Double(f64),
    Column { name: &'a str, value: ColumnValue<'a> },
}

/// A value of a shared column.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ColumnValue<'a> {
    Text(&'a str),
    Long(i64),
    Double(f64),
}

impl<'a> Value<'a> for CellValue<'a> {
    type ArrayIter = std::iter::Empty<CellValue<'a>>;
    type ObjectIter = std::iter::Once<(&'a str, CellValue<'a>)>;

    fn as_value(&self) -> ReferenceValue<'a, CellValue<'a>> {
        ReferenceValue::Leaf(match *self {
            CellValue::Text(text) => ReferenceValueLeaf::Str(text),
            CellValue::Bytes(bytes) => ReferenceValueLeaf::Bytes(bytes),
            CellValue::Unsigned(value) => ReferenceValueLeaf::U64(value),
            CellValue::Long(value) => ReferenceValueLeaf::I64(value),
            CellValue::Double(value) => ReferenceValueLeaf::F64(value),
            CellValue::Column { name, value } => {
                let value = match value {
                    ColumnValue::Text(text) => CellValue::Text(text),
                    ColumnValue::Long(value) => CellValue::Long(value),
                    ColumnValue::Double(value) => CellValue::Double(value),
                };
                return ReferenceValue::Object(std::iter::once((name, value)));
            }
        })
    }
}

/// What is read back of an entry: its key and the caller's bytes.
#[derive(Debug, Default)]
pub(crate) struct Stored(pub(crate) Vec<u8>);

impl tantivy::schema::document::DocumentDeserialize for Stored {
    fn deserialize<'de, D>(mut deserializer: D) -> Result<Stored, tantivy::schema::document::DeserializeError>
    where
        D: tantivy::schema::document::DocumentDeserializer<'de>,
    {
        let mut stored = Stored::default();
        while let Some((_, value)) = deserializer.next_field::<OwnedValue>()? {
            if let OwnedValue::Bytes(bytes) = value {
                stored.0 = bytes;
            }
        }
        Ok(stored)
    }
}

impl Stored {
    /// Writes a key and the caller's bytes.
    pub(crate) fn write(key: &str, stored: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&(key.len() as u32).to_le_bytes());
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(stored);
    }

    /// The key and the caller's bytes; `None` when they are damaged.
    pub(crate) fn read(self) -> Option<(String, Vec<u8>)> {
        let mut bytes = self.0;
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        let stored = rest.get(length..)?.to_vec();
        // What was read becomes the key: most entries have nothing else.
        bytes.truncate(4 + length);
        bytes.drain(..4);
        Some((String::from_utf8(bytes).ok()?, stored))
    }
}
