//! Packs of indexes whose reduce does nothing but add up: a row of numbers, without names and without the key.
//!
//! What is added up, and what a sum of different kinds of number is, follows the functions crate: integers stay integers (and wrap), with a
//! decimal the sum is an exact decimal, with a double a double; null counts as nothing; anything else makes the reduce fail.
//!
//! A row is one value for each summed field, in order:
//!
//! | first byte | value | then |
//! | --- | --- | --- |
//! | 0 to 127 | that integer | |
//! | 128 | null | |
//! | 129 | integer | a number of variable length: twice the value, or for a negative one, twice its opposite less one |
//! | 130 | double | 8 bytes |
//! | 131 | decimal | 16 bytes, as `rust_decimal` serializes it |
//! | 132 | no number | the name of what it is, behind its length |

use jackdaw_document::{Builder, Number as DocumentNumber};
use jackdaw_functions::Value;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::bytes::{Reader, put_number, put_slice};
use super::error::{Error, Result};
use super::key::KeyReader;
use super::reduction::{ReduceError, Reduction};

const NULL: u8 = 128;
const INTEGER: u8 = 129;
const DOUBLE: u8 = 130;
const DECIMAL: u8 = 131;
const OTHER: u8 = 132;

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnValue<'a> {
    /// Counts as nothing.
    Null,
    /// An integer.
    Long(i64),
    /// An exact decimal.
    Decimal(Decimal),
    /// A double.
    Double(f64),
    /// Something that cannot be added up, by the name of its kind.
    Other(&'a str),
}

impl<'a> ColumnValue<'a> {
    /// A number of a document.
    pub fn of_number(number: &DocumentNumber<'_>) -> ColumnValue<'a> {
        match number {
            DocumentNumber::Integer(value) => ColumnValue::Long(*value),
            DocumentNumber::Decimal { mantissa, scale } => {
                match Decimal::try_from_i128_with_scale(i128::from(*mantissa), *scale) {
                    Ok(value) => ColumnValue::Decimal(value),
                    Err(_) => ColumnValue::Double(number.as_f64()),
                }
            }
            DocumentNumber::Double(_) | DocumentNumber::Text(_) => ColumnValue::Double(number.as_f64()),
        }
    }

    /// A value of a document.
    pub fn of_document(value: &jackdaw_document::Value<'_>) -> ColumnValue<'a> {
        match value {
            jackdaw_document::Value::Null => ColumnValue::Null,
            jackdaw_document::Value::Number(number) => ColumnValue::of_number(number),
            other => ColumnValue::Other(other.type_name()),
        }
    }

    /// A value of a function.
    pub fn of_function(value: &Value<'_>) -> ColumnValue<'a> {
        match value {
            Value::Missing | Value::Null => ColumnValue::Null,
            Value::Long(value) => ColumnValue::Long(*value),
            Value::Double(value) => ColumnValue::Double(*value),
            Value::Decimal(value) => ColumnValue::Decimal(*value),
            Value::Number(number) => ColumnValue::of_number(number),
            Value::Json(value) => ColumnValue::of_document(value),
            Value::Boosted(boosted) => ColumnValue::of_function(&boosted.value),
            Value::Bool(_) => ColumnValue::Other("a boolean"),
            Value::Text(_) => ColumnValue::Other("text"),
            Value::Date(_) => ColumnValue::Other("a date"),
            Value::TimeSpan(_) => ColumnValue::Other("a time span"),
            Value::Array(_) => ColumnValue::Other("an array"),
            _ => ColumnValue::Other("an object"),
        }
    }

    /// The sum, as the functions crate adds. `None` when one of the two cannot be added up.
    pub fn plus(self, other: ColumnValue<'a>) -> Option<ColumnValue<'a>> {
        use ColumnValue::{Decimal, Double, Long, Null, Other};
        Some(match (self, other) {
            (Other(_), _) | (_, Other(_)) => return None,
            (Null, value) | (value, Null) => value,
            (Long(left), Long(right)) => Long(left.wrapping_add(right)),
            (Double(left), right) => Double(left + right.as_f64()),
            (left, Double(right)) => Double(left.as_f64() + right),
            (left, right) => {
                let exact = left
                    .as_decimal()
                    .zip(right.as_decimal())
                    .and_then(|(left, right)| left.checked_add(right));
                // Beyond 28 digits a double is the nearest that there is.
                exact.map_or_else(|| Double(left.as_f64() + right.as_f64()), Decimal)
            }
        })
    }

    fn as_f64(self) -> f64 {
        match self {
            ColumnValue::Long(value) => value as f64,
            ColumnValue::Decimal(value) => value.to_f64().unwrap_or(f64::NAN),
            ColumnValue::Double(value) => value,
            ColumnValue::Null | ColumnValue::Other(_) => 0.0,
        }
    }

    fn as_decimal(self) -> Option<Decimal> {
        match self {
            ColumnValue::Long(value) => Some(Decimal::from(value)),
            ColumnValue::Decimal(value) => Some(value),
            _ => None,
        }
    }

    /// Appends it to a row.
    pub fn append_to(self, row: &mut Vec<u8>) {
        match self {
            ColumnValue::Null => row.push(NULL),
            ColumnValue::Long(value @ 0..=127) => row.push(value as u8),
            ColumnValue::Long(value) => {
                row.push(INTEGER);
                put_number(row, (value << 1 ^ value >> 63) as u64);
            }
            ColumnValue::Double(value) => {
                row.push(DOUBLE);
                row.extend(value.to_le_bytes());
            }
            ColumnValue::Decimal(value) => {
                row.push(DECIMAL);
                row.extend(value.serialize());
            }
            ColumnValue::Other(kind) => {
                row.push(OTHER);
                put_slice(row, kind.as_bytes());
            }
        }
    }

    #[inline]
    fn read(reader: &mut Reader<'a>) -> Option<ColumnValue<'a>> {
        Some(match reader.byte()? {
            value @ 0..NULL => ColumnValue::Long(i64::from(value)),
            NULL => ColumnValue::Null,
            INTEGER => {
                let folded = reader.number()?;
                ColumnValue::Long((folded >> 1) as i64 ^ -((folded & 1) as i64))
            }
            DOUBLE => ColumnValue::Double(f64::from_bits(reader.u64()?)),
            DECIMAL => ColumnValue::Decimal(Decimal::deserialize(reader.take(16)?.try_into().ok()?)),
            OTHER => ColumnValue::Other(std::str::from_utf8(reader.slice()?).ok()?),
            _ => return None,
        })
    }

    fn write(self, builder: &mut Builder<'_>) -> jackdaw_document::Result<()> {
        match self {
            ColumnValue::Null | ColumnValue::Other(_) => builder.null(),
            ColumnValue::Long(value) => builder.i64(value),
            ColumnValue::Double(value) if value.is_finite() => builder.f64(value),
            ColumnValue::Double(_) => builder.null(),
            ColumnValue::Decimal(value) => builder.number_text(&value.to_string()),
        }
    }
}

/// A field of the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnField {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ColumnKind,
}

/// What a field of the results is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// The value of the key with this number.
    Key(usize),
    /// The sum of the field; rows have sums and counts in the order of the fields.
    Sum,
    /// How many entries there are: a sum to which each gives 1.
    Count,
}

/// The fields of an index whose reduce only adds up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The fields in the order in which results have them.
    pub fields: Vec<ColumnField>,
}

impl Columns {
    /// The fields whose values are in the rows, in their order.
    pub fn rows(&self) -> impl Iterator<Item = &ColumnField> {
        self.fields.iter().filter(|field| !matches!(field.kind, ColumnKind::Key(_)))
    }

    /// The reduction of rows.
    pub fn reduction(&self) -> ColumnsReduction {
        let names: Vec<_> = self.rows().map(|field| field.name.clone()).collect();
        ColumnsReduction { names }
    }

    /// Writes the result of a key, as an object, into a document that is being built.
    pub fn write(&self, key: &[u8], row: &[u8], builder: &mut Builder<'_>) -> Result<()> {
        let keys = KeyReader::split(key)?;
        let mut row = Reader(row);
        builder.begin_object()?;
        for field in &self.fields {
            builder.name(&field.name)?;
            match field.kind {
                ColumnKind::Key(at) => match keys.get(at) {
                    Some(value) => KeyReader::new(value).value(builder)?,
                    None => builder.null()?,
                },
                ColumnKind::Sum | ColumnKind::Count => {
                    ColumnValue::read(&mut row).ok_or_else(damaged)?.write(builder)?
                }
            }
        }
        builder.end()?;
        Ok(())
    }
}

fn damaged() -> Error {
    Error::damaged("a row of sums", "it does not read")
}

/// Adds rows up, field by field.
#[derive(Clone, Debug)]
pub struct ColumnsReduction {
    names: Vec<String>,
}

impl Reduction for ColumnsReduction {
    fn reduce(&mut self, _key: &[u8], packs: &[&[u8]], out: &mut Vec<u8>) -> Result<(), ReduceError> {
        let mut readers: Vec<Reader<'_>> = packs.iter().map(|pack| Reader(pack)).collect();
        for name in &self.names {
            // The sum of nothing is 0.
            let mut sum = ColumnValue::Long(0);
            for reader in &mut readers {
                let value = ColumnValue::read(reader).ok_or_else(damaged)?;
                sum = match (sum, value) {
                    (ColumnValue::Long(left), ColumnValue::Long(right)) => {
                        ColumnValue::Long(left.wrapping_add(right))
                    }
                    (_, ColumnValue::Other(kind)) => {
                        return Err(ReduceError(format!("Sum of {name} needs numbers, not {kind}")));
                    }
                    (sum, value) => sum.plus(value).unwrap_or(sum),
                };
            }
            sum.append_to(out);
        }
        Ok(())
    }

    fn is_incremental(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use jackdaw_document::{Context, Mode, Style};

    use super::super::key::{Key, KeyValue};
    use super::*;

    fn row(json: &str) -> Vec<u8> {
        let context = Context::new();
        let document = context.parse(format!("{{\"v\":{json}}}")).unwrap();
        let mut row = Vec::new();
        for value in document.get("v").unwrap().as_array().unwrap().iter() {
            ColumnValue::of_document(&value).append_to(&mut row);
        }
        row
    }

    fn columns(sums: usize) -> Columns {
        let mut fields = vec![ColumnField { name: "K".into(), kind: ColumnKind::Key(0) }];
        fields.extend((0..sums).map(|at| ColumnField { name: format!("S{at}"), kind: ColumnKind::Sum }));
        fields.push(ColumnField { name: "L".into(), kind: ColumnKind::Key(1) });
        Columns { fields }
    }

    fn sum(rows: &[&str]) -> Result<String, ReduceError> {
        let rows: Vec<_> = rows.iter().map(|json| row(json)).collect();
        let count = Context::new().parse(format!("{{\"v\":{}}}", "[]")).map(|_| rows.len()).unwrap();
        assert!(count > 0);
        let mut fields = 0;
        let mut reader = Reader(&rows[0]);
        while ColumnValue::read(&mut reader).is_some() {
            fields += 1;
        }
        let columns = columns(fields);
        let packs: Vec<_> = rows.iter().map(Vec::as_slice).collect();
        let mut out = Vec::new();
        columns.reduction().reduce(b"", &packs, &mut out)?;
        // Reducing parts and their reductions gives the same.
        let mut again = Vec::new();
        let (first, rest) = packs.split_at(1);
        columns.reduction().reduce(b"", first, &mut again)?;
        let mut whole = Vec::new();
        let parts: Vec<_> = std::iter::once(again.as_slice()).chain(rest.iter().copied()).collect();
        columns.reduction().reduce(b"", &parts, &mut whole)?;
        assert_eq!(out, whole);

        let mut key = Key::of(KeyValue::Text("k"));
        key.push(KeyValue::Integer(7));
        let context = Context::new();
        let document = context.build(Mode::Memory, |builder| {
            columns.write(key.as_bytes(), &out, builder).unwrap();
            Ok(())
        });
        Ok(document.unwrap().to_json(Style::Compact).to_string())
    }

    #[test]
    fn sums_are_those_of_functions() {
        for (rows, expected) in [
            (&["[1,5]", "[1,-9]", "[1,1000000]"][..], r#"{"K":"k","S0":3,"S1":999996,"L":7}"#),
            (&["[1.10]", "[2.20]"], r#"{"K":"k","S0":3.30,"L":7}"#),
            (&["[0.1]", "[0.2]", "[3]"], r#"{"K":"k","S0":3.3,"L":7}"#),
            (&["[null]", "[null]"], r#"{"K":"k","S0":0,"L":7}"#),
            (&["[null]", "[2.5]"], r#"{"K":"k","S0":2.5,"L":7}"#),
            (&["[1e3]", "[1]"], r#"{"K":"k","S0":1001.0,"L":7}"#),
            (&["[9223372036854775807]", "[1]"], r#"{"K":"k","S0":-9223372036854775808,"L":7}"#),
            (&["[42.833333333333336]", "[0.000000000000004]"], r#"{"K":"k","S0":42.833333333333340,"L":7}"#),
        ] {
            assert_eq!(sum(rows).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_no_number_is_an_error() {
        let error = sum(&["[1,\"7\"]", "[1,2]"]).unwrap_err();
        assert!(error.0.contains("S1") && error.0.contains("numbers"), "{error:?}");
        assert!(columns(1).reduction().reduce(b"", &[&[200]], &mut Vec::new()).is_err());
    }
}
