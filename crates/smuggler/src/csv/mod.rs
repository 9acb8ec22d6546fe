//! CSV into documents: one row, one document.
//!
//! [`infer`] says what a field's text is; [`layout`] lays the columns out as properties, nested where a header has dots.

pub(crate) mod infer;
pub(crate) mod layout;

/// How a CSV file is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvOptions {
    /// What stands between fields.
    pub delimiter: u8,
    /// What stands around fields that hold a delimiter, a quote or a line feed; inside them it is doubled.
    pub quote: u8,
    /// The names of the columns, when the file has no header.
    pub headers: Option<Vec<String>>,
    /// What becomes of single columns; the others keep their name and [`CsvOptions::types`].
    pub columns: Vec<ColumnOptions>,
    /// What fields become where nothing else is said.
    pub types: FieldType,
    /// Texts that mean that there is no value, besides the empty one.
    pub nulls: Vec<String>,
    /// Whether a dot in a column's name leads into a nested object.
    pub nested: bool,
}

impl Default for CsvOptions {
    fn default() -> CsvOptions {
        CsvOptions {
            delimiter: b',',
            quote: b'"',
            headers: None,
            columns: Vec::new(),
            types: FieldType::Inferred,
            nulls: Vec::new(),
            nested: true,
        }
    }
}

/// What becomes of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnOptions {
    /// Its name in the file.
    pub column: String,
    /// Its name in the documents; none leaves it out.
    pub property: Option<String>,
    /// What its fields become; none is what [`CsvOptions::types`] says.
    pub types: Option<FieldType>,
}

/// What a field becomes. An empty field, and one that is a null text, is `null` in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// What it looks like: a number as JSON writes it (`42`, `-1.50`, `2e6`, but neither `007` nor `+1`), `true` or `false` in any of the usual cases, or
    /// else a text. Each field by itself: a column may hold numbers and texts.
    Inferred,
    /// A text.
    Text,
    /// A number; a row with something else is refused.
    Number,
    /// `true` or `false`; a row with something else is refused.
    Boolean,
    /// The JSON value that it holds; a row with something else is refused.
    Json,
}
