//! Reduce keys as bytes.
//!
//! A key is the values of all fields that are grouped by, one behind the other, each behind a tag. Two keys are equal when their bytes are, and
//! the order of the bytes is the order of the values where that means something, so that related keys lie together. The values can be read back.
//!
//! What is equal is what RavenDB groups together: missing and null; numbers of one value, however many digits they are written with, but an
//! integer and a number with a point or an exponent are two (`1`, `1.0`), as are a number and its text; texts of the same bytes; objects whatever
//! the order of their properties. Dates are text here, as they are in the documents that maps make.
//!
//! | tag | value | then |
//! | --- | --- | --- |
//! | 1 | null | |
//! | 2, 3 | false, true | |
//! | 4 | integer | 8 bytes, the highest first, the sign turned |
//! | 5 | other number | the double in 8 bytes, the highest first; all bits turned when negative, else the sign |
//! | 6 | integer of more than 64 bits | its digits, as text |
//! | 7 | text | its bytes, each 0 followed by 255, then 0 |
//! | 8 | binary | as text |
//! | 9 | array | its values, then 0 |
//! | 10 | object | name (as text) and value of each property, by name, then 0 |

use jackdaw_document::{Builder, Number, Value};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::bytes::Reader;
use super::error::{Error, Result};

/// The longest key that is stored as it is, in bytes; of longer ones the beginning and a hash of everything.
pub(super) const STORED_SIZE_MAX: usize = 256;
const BEGINNING: usize = STORED_SIZE_MAX - 16;

/// The deepest value in a key, in levels of arrays and objects. Documents end before.
const DEPTH_MAX: usize = 256;

const END: u8 = 0;
const NULL: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const INTEGER: u8 = 4;
const DOUBLE: u8 = 5;
const LONG_INTEGER: u8 = 6;
const TEXT: u8 = 7;
const BINARY: u8 = 8;
const ARRAY: u8 = 9;
const OBJECT: u8 = 10;

/// A value to group by, where it is no document's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyValue<'a> {
    /// Null or missing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Integer(i64),
    /// A number with a point.
    Double(f64),
    /// Text.
    Text(&'a str),
    /// A value of a document.
    Document(&'a Value<'a>),
}

/// A reduce key being written, or written. Reuse it: [`Key::clear`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key(Vec<u8>);

impl Key {
    /// A key of no fields.
    pub fn new() -> Key {
        Key::default()
    }

    /// The key of one value; more can be added.
    pub fn of(value: KeyValue<'_>) -> Key {
        let mut key = Key::new();
        key.push(value);
        key
    }

    /// Takes all fields away.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a field.
    pub fn push(&mut self, value: KeyValue<'_>) -> &mut Key {
        let out = &mut self.0;
        match value {
            KeyValue::Null => out.push(NULL),
            KeyValue::Bool(value) => out.push(if value { TRUE } else { FALSE }),
            KeyValue::Integer(value) => put_integer(out, value),
            KeyValue::Double(value) => put_double(out, value),
            KeyValue::Text(value) => put_text(out, TEXT, value.as_bytes()),
            KeyValue::Document(value) => put_value(out, value),
        }
        self
    }

    /// Begins an array: the values pushed up to [`Key::end`] are its own.
    pub fn begin_array(&mut self) -> &mut Key {
        self.0.push(ARRAY);
        self
    }

    /// Ends the array begun last.
    pub fn end(&mut self) -> &mut Key {
        self.0.push(END);
        self
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// What a key is stored under: itself, or when it is long, its beginning and a hash of all of it, in `short`.
pub(super) fn stored<'k>(key: &'k [u8], short: &'k mut [u8; STORED_SIZE_MAX]) -> &'k [u8] {
    if key.len() <= STORED_SIZE_MAX {
        return key;
    }
    short[..BEGINNING].copy_from_slice(&key[..BEGINNING]);
    short[BEGINNING..].copy_from_slice(&xxh3_128(key).to_be_bytes());
    short
}

/// The hash by which results of a key are named outside: in the ids of output documents and of search entries.
pub fn hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

fn put_integer(out: &mut Vec<u8>, value: i64) {
    out.push(INTEGER);
    out.extend((value as u64 ^ 1 << 63).to_be_bytes());
}

fn put_double(out: &mut Vec<u8>, value: f64) {
    out.push(DOUBLE);
    // No two zeros, and one NaN.
    let bits = if value == 0.0 {
        0
    } else if value.is_nan() {
        f64::NAN.to_bits()
    } else {
        value.to_bits()
    };
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    out.extend(ordered.to_be_bytes());
}

fn put_text(out: &mut Vec<u8>, tag: u8, text: &[u8]) {
    out.push(tag);
    put_escaped(out, text);
}

fn put_escaped(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        out.extend_from_slice(&rest[..=zero]);
        out.push(u8::MAX);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.push(END);
}

fn put_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Null => out.push(NULL),
        Value::Bool(value) => out.push(if *value { TRUE } else { FALSE }),
        Value::Number(Number::Integer(value)) => put_integer(out, *value),
        Value::Number(Number::Text(text)) if !text.contains(['.', 'e', 'E']) && *text != "-0" => {
            put_text(out, LONG_INTEGER, text.as_bytes());
        }
        Value::Number(number) => put_double(out, number.as_f64()),
        Value::Text(text) => match text.as_str() {
            Some(text) => put_text(out, TEXT, text.as_bytes()),
            None => put_text(out, TEXT, &text.to_bytes()),
        },
        Value::Binary(bytes) => put_text(out, BINARY, bytes),
        Value::Document(document) => put_value(out, &document.root()),
        Value::Array(array) => {
            out.push(ARRAY);
            for item in array.iter() {
                put_value(out, &item);
            }
            out.push(END);
        }
        Value::Object(object) => {
            out.push(OBJECT);
            let mut fields: Vec<_> = (0..object.len())
                .filter_map(|at| object.at_index(at))
                .map(|(name, value)| (name.to_str(), value))
                .collect();
            fields.sort_by(|(left, _), (right, _)| left.as_bytes().cmp(right.as_bytes()));
            for (name, value) in fields {
                put_text(out, TEXT, name.as_bytes());
                put_value(out, &value);
            }
            out.push(END);
        }
    }
}

/// Reads a key back.
pub(super) struct KeyReader<'a>(Reader<'a>);

impl<'a> KeyReader<'a> {
    pub(super) fn new(key: &'a [u8]) -> KeyReader<'a> {
        KeyReader(Reader(key))
    }

    /// The bytes of each value of a key.
    pub(super) fn split(key: &'a [u8]) -> Result<Vec<&'a [u8]>> {
        let mut reader = KeyReader::new(key);
        let mut values = Vec::new();
        while !reader.is_empty() {
            let before = reader.0.0;
            reader.skip(DEPTH_MAX)?;
            values.push(&before[..before.len() - reader.0.0.len()]);
        }
        Ok(values)
    }

    fn skip(&mut self, depth: usize) -> Result<()> {
        if depth == 0 {
            return Err(damaged());
        }
        match self.0.byte().ok_or_else(damaged)? {
            NULL | FALSE | TRUE => {}
            INTEGER | DOUBLE => {
                self.eight()?;
            }
            LONG_INTEGER | TEXT | BINARY => {
                self.escaped()?;
            }
            // The names of an object are texts, so that they are skipped as values are.
            ARRAY | OBJECT => {
                while self.0.0.first().is_some_and(|tag| *tag != END) {
                    self.skip(depth - 1)?;
                }
                self.end()?;
            }
            _ => return Err(damaged()),
        }
        Ok(())
    }

    /// Whether all values were read.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes the next value of the key into a document that is being built.
    pub(super) fn value(&mut self, builder: &mut Builder<'_>) -> Result<()> {
        self.value_within(builder, DEPTH_MAX)
    }

    fn value_within(&mut self, builder: &mut Builder<'_>, depth: usize) -> Result<()> {
        if depth == 0 {
            return Err(damaged());
        }
        match self.0.byte().ok_or_else(damaged)? {
            NULL => builder.null()?,
            FALSE => builder.bool(false)?,
            TRUE => builder.bool(true)?,
            INTEGER => builder.i64((self.eight()? ^ 1 << 63) as i64)?,
            DOUBLE => {
                let ordered = self.eight()?;
                let bits = if ordered >> 63 == 1 { ordered ^ 1 << 63 } else { !ordered };
                let value = f64::from_bits(bits);
                if value.is_finite() { builder.f64(value)? } else { builder.null()? }
            }
            LONG_INTEGER => builder.number_text(&self.text()?)?,
            TEXT => builder.str(&self.text()?)?,
            BINARY => builder.binary(&self.escaped()?)?,
            ARRAY => {
                builder.begin_array()?;
                while self.0.0.first().is_some_and(|tag| *tag != END) {
                    self.value_within(builder, depth - 1)?;
                }
                self.end()?;
                builder.end()?;
            }
            OBJECT => {
                builder.begin_object()?;
                while self.0.0.first().is_some_and(|tag| *tag != END) {
                    if self.0.byte() != Some(TEXT) {
                        return Err(damaged());
                    }
                    builder.name(&self.text()?)?;
                    self.value_within(builder, depth - 1)?;
                }
                self.end()?;
                builder.end()?;
            }
            _ => return Err(damaged()),
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        if self.0.byte() == Some(END) { Ok(()) } else { Err(damaged()) }
    }

    fn eight(&mut self) -> Result<u64> {
        let bytes = self.0.take(8).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u64::from_be_bytes).ok_or_else(damaged)
    }

    fn text(&mut self) -> Result<String> {
        // Lone surrogates, which JSON may hold and UTF-8 may not, show as replacement characters.
        Ok(String::from_utf8(self.escaped()?)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    fn escaped(&mut self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            let zero = self.0.0.iter().position(|byte| *byte == 0).ok_or_else(damaged)?;
            text.extend_from_slice(self.0.take(zero).ok_or_else(damaged)?);
            self.0.take(1).ok_or_else(damaged)?;
            if self.0.0.first() != Some(&u8::MAX) {
                return Ok(text);
            }
            self.0.take(1).ok_or_else(damaged)?;
            text.push(0);
        }
    }
}

fn damaged() -> Error {
    Error::damaged("a reduce key", "its values do not read")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use jackdaw_document::{Context, Mode, Style};

    use super::*;

    fn key(json: &str) -> Key {
        let context = Context::new();
        let document = context.parse(format!("{{\"k\":{json}}}")).unwrap();
        Key::of(KeyValue::Document(&document.get("k").unwrap()))
    }

    fn back(key: &Key) -> String {
        let context = Context::new();
        let document = context
            .build(Mode::Memory, |builder| {
                builder.begin_array()?;
                let mut reader = KeyReader::new(key.as_bytes());
                while !reader.is_empty() {
                    reader.value(builder).unwrap();
                }
                builder.end()
            })
            .unwrap();
        document.to_json(Style::Compact).to_string()
    }

    #[test]
    fn equal_is_what_ravendb_groups_together() {
        for (left, right) in [
            ("1.10", "1.1"),
            ("1e3", "1000.0"),
            ("1.0", "1.00"),
            (r#"{"a":1,"b":[2]}"#, r#"{"b":[2],"a":1}"#),
            (r#""\u0041""#, r#""A""#),
        ] {
            assert_eq!(key(left), key(right), "{left} {right}");
        }
        let all = [
            "null",
            "true",
            "false",
            "0",
            "1",
            "1.0",
            "1.5",
            "\"1\"",
            "\"a\"",
            "\"A\"",
            "\"\"",
            "[1,2]",
            "[1.0,2]",
            "[[1],2]",
            "[1,[2]]",
            "[]",
            "[null]",
            "{}",
            r#"{"a":1}"#,
            r#"{"a":1.0}"#,
            "100000000000000000000",
            "1e20",
            "9007199254740993",
            "9007199254740992.0",
            "0.30000000000000004",
            "0.3",
            r#""a\u0000""#,
            r#""a\u0000b""#,
        ];
        for (at, left) in all.iter().enumerate() {
            for right in &all[..at] {
                assert_ne!(key(left), key(right), "{left} {right}");
            }
        }
        assert_eq!(key("null"), Key::of(KeyValue::Null));
        assert_eq!(key("1"), Key::of(KeyValue::Integer(1)));
        assert_eq!(key("2.5"), Key::of(KeyValue::Double(2.5)));
        assert_eq!(key("\"x\""), Key::of(KeyValue::Text("x")));
        assert_eq!(
            key("[1,true]"),
            *Key::new().begin_array().push(KeyValue::Integer(1)).push(KeyValue::Bool(true)).end()
        );
    }

    #[test]
    fn values_come_back() {
        for json in [
            "null",
            "true",
            "-7",
            "9223372036854775807",
            "1.5",
            "-2.25",
            "\"\"",
            r#""a\u0000b""#,
            r#"[1,[2,null],"x"]"#,
            r#"{"a":{"b":[]},"c":1}"#,
            "100000000000000000000",
        ] {
            assert_eq!(back(&key(json)), format!("[{json}]"));
        }
        let mut two = key("1");
        two.push(KeyValue::Text("x")).push(KeyValue::Double(1.0));
        assert_eq!(back(&two), r#"[1,"x",1.0]"#);
        two.push(KeyValue::Null);
        let nested = key(r#"{"a":["\u0000",{}],"b":null}"#);
        let bytes = [two.as_bytes(), nested.as_bytes()].concat();
        let split = KeyReader::split(&bytes).unwrap();
        assert_eq!(split.len(), 5);
        assert_eq!((split[4], split.concat()), (nested.as_bytes(), bytes.clone()));
    }

    #[test]
    fn bytes_sort_as_values_do() {
        let sorted = [
            "null", "false", "true", "-5", "-1", "0", "3", "700", "-2.5", "-0.5", "0.0", "0.5", "1e300",
            "\"\"", "\"a\"", "\"aa\"", "\"b\"",
        ];
        for pair in sorted.windows(2) {
            assert!(key(pair[0]).as_bytes() < key(pair[1]).as_bytes(), "{pair:?}");
        }
    }

    #[test]
    fn long_keys_are_shortened_and_stay_apart() {
        let long = |end: char| format!("\"{}{end}\"", "x".repeat(1000));
        let mut shorts = [[0; STORED_SIZE_MAX]; 2];
        let (a, b) = (key(&long('a')), key(&long('b')));
        let [first, second] = &mut shorts;
        assert_ne!(stored(a.as_bytes(), first), stored(b.as_bytes(), second));
        assert_eq!(stored(a.as_bytes(), first).len(), STORED_SIZE_MAX);
        assert_eq!(stored(b"short", first), b"short");
    }

    #[test]
    fn damaged_keys_are_errors() {
        let context = Context::new();
        for bytes in
            [&[99][..], &[INTEGER, 1], &[TEXT, b'a'], &[ARRAY, NULL], &[OBJECT, NULL, END], &[ARRAY; 1000]]
        {
            let built = context.build(Mode::Memory, |builder| {
                assert!(KeyReader::new(bytes).value(builder).is_err(), "{bytes:?}");
                builder.null()
            });
            // What was begun is never ended; that the document is refused does not matter here.
            drop(built);
        }
    }
}
