//! Values of functions and of documents as the search index takes them.
//!
//! What is not just borrowed is made in an arena that lives as long as one document is mapped.

use jackdaw_document::{self as document, Context, Mode, Style};
use jackdaw_functions::{self as functions, RuntimeError, SpatialField};
use jackdaw_search::{FieldValue, Shape};

use super::arena::Arena;

/// A value of a function. `None`: it is missing, or nothing that can be indexed.
pub(super) fn of_function<'a>(
    value: &functions::Value<'a>,
    is_spatial: bool,
    arena: &'a Arena,
) -> Result<Option<FieldValue<'a>>, RuntimeError> {
    use functions::Value;
    Ok(Some(match *value {
        Value::Missing => return Ok(None),
        Value::Null => FieldValue::Null,
        Value::Bool(value) => FieldValue::Bool(value),
        Value::Long(value) => FieldValue::Long(value),
        Value::Double(value) => double(value, arena),
        Value::Decimal(value) => {
            let text = arena.bump.alloc_str(&value.to_string());
            match text.parse::<i64>() {
                Ok(whole) => FieldValue::Long(whole),
                Err(_) => FieldValue::Double { value: text.parse().unwrap_or(f64::NAN), text },
            }
        }
        Value::Number(number) => of_number(number, arena),
        Value::Text(text) if is_spatial => shape(text, arena),
        Value::Text(text) => FieldValue::Text(text),
        // One with an offset is found as the time that it is.
        Value::Date(date) => FieldValue::Date(match date.zone {
            document::date::Zone::Offset(_) => {
                document::date::Date { ticks: date.utc_ticks(), zone: document::date::Zone::Utc }
            }
            _ => date,
        }),
        // A length of time is found by its text and by its ticks.
        Value::TimeSpan(ticks) => FieldValue::Double {
            value: ticks as f64,
            text: arena.bump.alloc_str(&functions::time_span_text(ticks)),
        },
        Value::Array(values) => {
            let mut all = bumpalo::collections::Vec::with_capacity_in(values.len(), &arena.bump);
            for value in values {
                all.extend(of_function(value, is_spatial, arena)?);
            }
            FieldValue::Array(all.into_bump_slice())
        }
        Value::Json(value) => of_document(value, arena),
        Value::Document(input) => json(&input.document.root(), arena),
        // Groups are there only while a reduce function runs.
        Value::Object(_) | Value::Group(_) => object(value, arena)?,
        Value::Field(field) => return of_function(&field.value, is_spatial, arena),
        Value::Boosted(boosted) => match of_function(&boosted.value, is_spatial, arena)? {
            None => return Ok(None),
            Some(value) => FieldValue::Boosted { value: arena.bump.alloc(value), boost: boosted.boost },
        },
        Value::Spatial(SpatialField::Point { latitude, longitude }) => {
            FieldValue::Point { latitude: *latitude, longitude: *longitude }
        }
        Value::Spatial(SpatialField::Shape(text)) => shape(text, arena),
    }))
}

fn double(value: f64, arena: &Arena) -> FieldValue<'_> {
    let mut text = Vec::new();
    if value.is_finite() {
        document::Number::Double(value).append_to(&mut text);
    } else {
        text.extend_from_slice(if value.is_nan() {
            b"NaN"
        } else if value > 0.0 {
            b"Infinity"
        } else {
            b"-Infinity"
        });
    }
    FieldValue::Double { value, text: arena.bump.alloc_str(&String::from_utf8_lossy(&text)) }
}

fn of_number<'a>(number: &document::Number<'_>, arena: &'a Arena) -> FieldValue<'a> {
    if let Some(whole) = number.as_i64() {
        return FieldValue::Long(whole);
    }
    let mut text = Vec::new();
    number.append_to(&mut text);
    FieldValue::Double { value: number.as_f64(), text: arena.bump.alloc_str(&String::from_utf8_lossy(&text)) }
}

/// A shape as text; what it says is found out when it is indexed.
fn shape<'a>(text: &str, arena: &'a Arena) -> FieldValue<'a> {
    FieldValue::Shape(arena.shape(Shape::Wkt { text: text.to_owned(), units: None }))
}

/// A value in place in a document, of a field of places.
pub(crate) fn place<'a>(value: &document::Value<'a>, arena: &'a Arena) -> FieldValue<'a> {
    match value {
        document::Value::Text(text) => shape(text_of(text, arena), arena),
        other => of_document(other, arena),
    }
}

/// A value in place in a document.
pub(crate) fn of_document<'a>(value: &document::Value<'a>, arena: &'a Arena) -> FieldValue<'a> {
    match value {
        document::Value::Null => FieldValue::Null,
        document::Value::Bool(value) => FieldValue::Bool(*value),
        document::Value::Number(number) => of_number(number, arena),
        document::Value::Text(text) => FieldValue::Text(text_of(text, arena)),
        document::Value::Array(array) => FieldValue::Array(
            arena.bump.alloc_slice_fill_iter(array.iter().map(|value| of_document(&value, arena))),
        ),
        document::Value::Object(_) | document::Value::Document(_) | document::Value::Binary(_) => {
            json(value, arena)
        }
    }
}

pub(crate) fn text_of<'a>(text: &document::Text<'a>, arena: &'a Arena) -> &'a str {
    match text.to_str() {
        std::borrow::Cow::Borrowed(text) => text,
        std::borrow::Cow::Owned(text) => arena.bump.alloc_str(&text),
    }
}

/// An object as JSON text.
fn json<'a>(value: &document::Value<'_>, arena: &'a Arena) -> FieldValue<'a> {
    FieldValue::Json(arena.bump.alloc_str(&value.to_json(Style::Compact)))
}

fn object<'a>(value: &functions::Value<'_>, arena: &'a Arena) -> Result<FieldValue<'a>, RuntimeError> {
    let context = Context::new();
    let built = context.build(Mode::Memory, |builder| value.append_to(builder));
    let built = built.map_err(|error| RuntimeError::value(error.to_string(), 0))?;
    Ok(FieldValue::Json(arena.bump.alloc_str(&built.to_json(Style::Compact))))
}
