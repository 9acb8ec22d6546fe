//! One entry in the form that tantivy takes: in three buffers, whatever the number of its fields, which come back when it is written. (Made anew for each
//! entry they would be allocated on one thread and freed on another, and both wait for the allocator's locks.)

use std::sync::Arc;

use parking_lot::Mutex;

use tantivy::schema::document::{Document, ReferenceValue, ReferenceValueLeaf, Value};
use tantivy::schema::{Field, OwnedValue};

use crate::writer::Gauge;

/// The values of an entry for tantivy's fields.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    buffers: Buffers,
    /// Where this entry is counted, and with how many bytes.
    gauge: Option<(Arc<Gauge>, usize)>,
}

/// What an entry is kept in.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    cells: Vec<(Field, Cell)>,
    /// All texts, one after the other.
    text: String,
    bytes: Vec<u8>,
}

impl Buffers {
    fn size(&self) -> usize {
        self.text.capacity()
            + self.bytes.capacity()
            + self.cells.capacity() * std::mem::size_of::<(Field, Cell)>()
    }
}

/// Buffers that wait for their next entry.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Vec<Buffers>>);

impl Spare {
    /// Buffers kept, and the bytes of each at most: 4 MiB in all.
    const KEPT_MAX: usize = 256;
    const SIZE_MAX: usize = 16 << 10;

    pub(crate) fn take(&self) -> Cells {
        Cells { buffers: self.0.lock().pop().unwrap_or_default(), gauge: None }
    }

    fn give(&self, mut buffers: Buffers) {
        if buffers.size() > Spare::SIZE_MAX {
            return;
        }
        buffers.cells.clear();
        buffers.text.clear();
        buffers.bytes.clear();
        let mut kept = self.0.lock();
        if kept.len() < Spare::KEPT_MAX {
            kept.push(buffers);
        }
    }

    /// Lets go of all.
    pub(crate) fn free(&self) {
        let kept = std::mem::take(&mut *self.0.lock());
        drop(kept);
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        if let Some((gauge, weight)) = &self.gauge {
            gauge.remove(*weight);
            gauge.spare.give(std::mem::take(&mut self.buffers));
        }
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
    /// Counts the entry's bytes until it is dropped.
    pub(crate) fn weigh(&mut self, gauge: &Arc<Gauge>) {
        let weight = self.buffers.size() + std::mem::size_of::<Cells>();
        gauge.add(weight);
        self.gauge = Some((Arc::clone(gauge), weight));
    }

    /// Adds the text that `write` appends, unless it says that it is none.
    pub(crate) fn text(&mut self, field: Field, write: impl FnOnce(&mut String) -> bool) {
        let from = self.buffers.text.len();
        if write(&mut self.buffers.text) {
            self.buffers
                .cells
                .push((field, Cell::Text { from: from as u32, to: self.buffers.text.len() as u32 }));
        } else {
            self.buffers.text.truncate(from);
        }
    }

    pub(crate) fn bytes(&mut self, field: Field, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.buffers.bytes.len();
        write(&mut self.buffers.bytes);
        self.buffers
            .cells
            .push((field, Cell::Bytes { from: from as u32, to: self.buffers.bytes.len() as u32 }));
    }

    pub(crate) fn unsigned(&mut self, field: Field, value: u64) {
        self.buffers.cells.push((field, Cell::Unsigned(value)));
    }

    pub(crate) fn long(&mut self, field: Field, value: i64) {
        self.buffers.cells.push((field, Cell::Long(value)));
    }

    pub(crate) fn double(&mut self, field: Field, value: f64) {
        self.buffers.cells.push((field, Cell::Double(value)));
    }

    pub(crate) fn column_long(&mut self, field: Field, name: &str, value: i64) {
        self.column(field, name, ColumnCell::Long(value));
    }

    pub(crate) fn column_double(&mut self, field: Field, name: &str, value: f64) {
        self.column(field, name, ColumnCell::Double(value));
    }

    pub(crate) fn column_text(&mut self, field: Field, name: &str, value: &str) {
        let to = self.buffers.text.len() + name.len() + value.len();
        self.column(field, name, ColumnCell::Text { to: to as u32 });
        self.buffers.text.push_str(value);
    }

    fn column(&mut self, field: Field, name: &str, value: ColumnCell) {
        let name_from = self.buffers.text.len() as u32;
        self.buffers.text.push_str(name);
        self.buffers
            .cells
            .push((field, Cell::Column { name_from, name_to: self.buffers.text.len() as u32, value }));
    }

    fn value(&self, cell: Cell) -> CellValue<'_> {
        match cell {
            Cell::Text { from, to } => CellValue::Text(&self.buffers.text[from as usize..to as usize]),
            Cell::Bytes { from, to } => CellValue::Bytes(&self.buffers.bytes[from as usize..to as usize]),
            Cell::Unsigned(value) => CellValue::Unsigned(value),
            Cell::Long(value) => CellValue::Long(value),
            Cell::Double(value) => CellValue::Double(value),
            Cell::Column { name_from, name_to, value } => CellValue::Column {
                name: &self.buffers.text[name_from as usize..name_to as usize],
                value: match value {
                    ColumnCell::Long(value) => ColumnValue::Long(value),
                    ColumnCell::Double(value) => ColumnValue::Double(value),
                    ColumnCell::Text { to } => {
                        ColumnValue::Text(&self.buffers.text[name_to as usize..to as usize])
                    }
                },
            },
        }
    }
}

impl Document for Cells {
    type Value<'a> = CellValue<'a>;
    type FieldsValuesIter<'a> = CellIterator<'a>;

    fn iter_fields_and_values(&self) -> CellIterator<'_> {
        CellIterator { cells: self, at: 0 }
    }
}

/// The fields and values of an entry.
pub(crate) struct CellIterator<'a> {
    cells: &'a Cells,
    at: usize,
}

impl<'a> Iterator for CellIterator<'a> {
    type Item = (Field, CellValue<'a>);

    fn next(&mut self) -> Option<(Field, CellValue<'a>)> {
        let &(field, cell) = self.cells.buffers.cells.get(self.at)?;
        self.at += 1;
        Some((field, self.cells.value(cell)))
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
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let (key, stored) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        Some((std::str::from_utf8(key).ok()?.to_owned(), stored.to_vec()))
    }
}
