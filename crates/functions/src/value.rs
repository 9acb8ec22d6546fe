//! The values that functions compute with and return.
//!
//! A [`Value`] is three words and is copied freely. What it refers to lies in the document it was read from or in the memory of the run, so a value lives until
//! the callback that was given it returns.

use std::fmt::Write as _;

use jackdaw_document::date::{DATE_TEXT_MAX, Date};
use jackdaw_document::{self as document, Builder, Number};
use rust_decimal::Decimal;

use crate::input::Input;

/// A value of a function: read from a document, computed, or both.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A property that is not there, or what was computed from one. Such a field is not indexed, unless the index says that missing fields are null.
    Missing,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer of 64 bits.
    Long(i64),
    /// A double; may be infinite or not a number.
    Double(f64),
    /// An exact decimal of up to 28 digits.
    Decimal(Decimal),
    /// A number of a document that is no integer of 64 bits, as it was written: `1.10`, `1e400`.
    Number(&'a Number<'a>),
    /// A string. Those that look like dates or times are still strings until something takes them for such.
    Text(&'a str),
    /// A date that was computed, or that was converted from text.
    Date(Date),
    /// A length of time in ticks of 100 nanoseconds.
    TimeSpan(i64),
    /// An array that was computed.
    Array(&'a [Value<'a>]),
    /// The elements that a key has in common; an array to who does not ask for the key.
    Group(&'a Group<'a>),
    /// An object that was computed: names and values in order.
    Object(&'a [(&'a str, Value<'a>)]),
    /// An array or object in place in a document; also binary.
    Json(&'a document::Value<'a>),
    /// A whole document with its id: the one being mapped, or one that was loaded.
    Document(&'a Input<'a>),
    /// The result of `CreateField`: a field whose name was computed.
    Field(&'a DynamicField<'a>),
    /// The result of `CreateSpatialField`.
    Spatial(&'a SpatialField<'a>),
    /// A value with a boost.
    Boosted(&'a Boosted<'a>),
}

/// The elements that a key has in common, as `group by` gives them.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The key.
    pub key: Value<'a>,
    /// The elements in the order in which they came.
    pub elements: &'a [Value<'a>],
}

/// A field whose name was computed: `CreateField(name, value, options)`.
#[derive(Clone, Copy, Debug)]
pub struct DynamicField<'a> {
    /// The field's name.
    pub name: &'a str,
    /// Its value.
    pub value: Value<'a>,
    /// Whether the value is stored in the index; `None`: as the index says.
    pub stored: Option<bool>,
    /// How it is indexed; `None`: as the index says.
    pub indexing: Option<FieldIndexing>,
    /// Which term vector is kept, by the name that field options have for it; `None`: as the index says.
    pub term_vector: Option<&'a str>,
}

/// How a field is indexed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldIndexing {
    /// Not at all.
    No,
    /// Through the analyzer for full text.
    Search,
    /// As it is.
    Exact,
    /// As one term in lower case.
    Default,
}

/// What `CreateSpatialField` was given.
#[derive(Clone, Copy, Debug)]
pub enum SpatialField<'a> {
    /// A point, in degrees unless the field says otherwise.
    Point {
        /// North-south.
        latitude: f64,
        /// East-west.
        longitude: f64,
    },
    /// A shape as well-known text, or whatever else the text was: it is read by who indexes it.
    Shape(&'a str),
}

/// A value that weighs more, or less, when results are scored.
#[derive(Clone, Copy, Debug)]
pub struct Boosted<'a> {
    /// The value.
    pub value: Value<'a>,
    /// 1 is no boost.
    pub boost: f32,
}

impl<'a> Value<'a> {
    /// Whether this is null or missing.
    #[inline]
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null | Value::Missing)
    }

    /// The text, if this is text.
    #[inline]
    #[must_use]
    pub fn as_text(&self) -> Option<&'a str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Writes the value into a document that is being built. What JSON does not have becomes what RavenDB makes of it: a missing value, an infinity and a
    /// NaN `null`, a date its text of seven digits of fraction, a time span its text, a dynamic field an object of its name and value, a point its well-known text.
    ///
    /// # Errors
    ///
    /// Those of the builder: its limits, and a value where none may stand.
    pub fn append_to(&self, builder: &mut Builder<'_>) -> document::Result<()> {
        match *self {
            Value::Missing | Value::Null => builder.null(),
            Value::Bool(value) => builder.bool(value),
            Value::Long(value) => builder.i64(value),
            Value::Double(value) if value.is_finite() => builder.f64(value),
            Value::Double(_) => builder.null(),
            Value::Decimal(value) => builder.number_text(&value.to_string()),
            Value::Number(number) => builder.number(number),
            Value::Text(text) => builder.str(text),
            Value::Date(date) => builder.str(text_of(date.format(&mut [0; DATE_TEXT_MAX]))),
            Value::TimeSpan(ticks) => builder.str(&time_span_text(ticks)),
            Value::Array(values) | Value::Group(&Group { elements: values, .. }) => {
                builder.begin_array()?;
                for value in values {
                    value.append_to(builder)?;
                }
                builder.end()
            }
            Value::Object(fields) => append_fields(fields, builder),
            Value::Json(value) => builder.value(value),
            Value::Document(input) => builder.value(&input.document.root()),
            Value::Field(field) => {
                builder.begin_object()?;
                builder.name("Name")?;
                builder.str(field.name)?;
                builder.name("Value")?;
                field.value.append_to(builder)?;
                builder.end()
            }
            Value::Spatial(SpatialField::Point { latitude, longitude }) => {
                builder.str(&format!("POINT ({longitude} {latitude})"))
            }
            Value::Spatial(SpatialField::Shape(text)) => builder.str(text),
            Value::Boosted(boosted) => boosted.value.append_to(builder),
        }
    }
}

/// Writes an object of these fields.
pub(crate) fn append_fields(fields: &[(&str, Value<'_>)], builder: &mut Builder<'_>) -> document::Result<()> {
    builder.begin_object()?;
    for (name, value) in fields {
        builder.name(name)?;
        value.append_to(builder)?;
    }
    builder.end()
}

/// Digits and separators are ASCII.
pub(crate) fn text_of(ascii: &[u8]) -> &str {
    std::str::from_utf8(ascii).unwrap_or_default()
}

/// A value as text in a format of .NET: what `ToString("yyyy-MM-dd")` gives, and without a format what `ToString()` gives.
///
/// # Errors
///
/// A format that is none, in words.
pub fn format_value(value: &Value<'_>, format: &str) -> Result<String, String> {
    crate::run::format::with_format(value, format)
}

/// A time span's text: `[-][d.]hh:mm:ss[.fffffff]`.
#[must_use]
pub fn time_span_text(ticks: i64) -> String {
    let mut out = String::new();
    if ticks < 0 {
        out.push('-');
    }
    let ticks = ticks.unsigned_abs();
    let (seconds, fraction) = (ticks / 10_000_000, ticks % 10_000_000);
    let (days, in_day) = (seconds / 86_400, seconds % 86_400);
    if days > 0 {
        // Writing into a string cannot fail.
        let _ = write!(out, "{days}.");
    }
    let _ = write!(out, "{:02}:{:02}:{:02}", in_day / 3600, in_day / 60 % 60, in_day % 60);
    if fraction > 0 {
        let _ = write!(out, ".{fraction:07}");
    }
    out
}

#[cfg(test)]
mod tests {
    use jackdaw_document::Context;

    use super::*;

    #[test]
    fn values_become_documents() {
        let context = Context::new();
        let source = context.parse(r#"{"A":[1,2.50],"D":"x"}"#).unwrap();
        let array = source.get("A").unwrap();
        let number = Number::Decimal { mantissa: 110, scale: 2 };
        let date = Date::parse(b"2020-01-02T03:04:05Z").unwrap();
        let field = DynamicField {
            name: "dyn",
            value: Value::Long(3),
            stored: None,
            indexing: None,
            term_vector: None,
        };
        let point = SpatialField::Point { latitude: 1.5, longitude: 2.0 };
        let boosted = Boosted { value: Value::Text("b"), boost: 2.0 };
        let inner = [Value::Missing, Value::Bool(true), Value::Double(f64::NAN), Value::Double(0.5)];
        let fields = [
            ("long", Value::Long(-7)),
            ("decimal", Value::Decimal(Decimal::new(4250, 3))),
            ("number", Value::Number(&number)),
            ("array", Value::Array(&inner)),
            ("date", Value::Date(date)),
            ("span", Value::TimeSpan(86_400 * 10_000_000 + 15_000_000)),
            ("json", Value::Json(&array)),
            ("field", Value::Field(&field)),
            ("spatial", Value::Spatial(&point)),
            ("boosted", Value::Boosted(&boosted)),
        ];
        let built =
            context.build(document::Mode::Memory, |builder| Value::Object(&fields).append_to(builder));
        assert_eq!(
            built.unwrap().to_json(document::Style::Compact),
            concat!(
                r#"{"long":-7,"decimal":4.250,"number":1.10,"array":[null,true,null,0.5],"#,
                r#""date":"2020-01-02T03:04:05.0000000Z","span":"1.00:00:01.5000000","json":[1,2.50],"#,
                r#""field":{"Name":"dyn","Value":3},"spatial":"POINT (2 1.5)","boosted":"b"}"#
            )
        );
    }

    #[test]
    fn time_spans_as_text() {
        for (ticks, text) in [
            (0, "00:00:00"),
            (1, "00:00:00.0000001"),
            (-36_000_000_000, "-01:00:00"),
            (863_999_999_999, "23:59:59.9999999"),
            (i64::MIN, "-10675199.02:48:05.4775808"),
        ] {
            assert_eq!(time_span_text(ticks), text);
        }
    }
}
