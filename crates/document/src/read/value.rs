//! One value of a document, and numbers.

use std::borrow::Cow;
use std::fmt;

use super::array::Array;
use super::document::Document;
use super::object::Object;
use super::text::Text;
use crate::format::kind;
use crate::text::number;

/// A value, borrowed from its document.
#[derive(Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, in the form that keeps its text.
    Number(Number<'a>),
    /// A string.
    Text(Text<'a>),
    /// An array.
    Array(Array<'a>),
    /// An object.
    Object(Object<'a>),
    /// A document inside the document; prints as its root.
    Document(Document<'a>),
    /// Bytes; print as a string in base64.
    Binary(&'a [u8]),
}

/// A number in the form that keeps its text.
#[derive(Clone, Copy, Debug)]
pub enum Number<'a> {
    /// An integer of 64 bits.
    Integer(i64),
    /// `mantissa / 10^scale`, printed with exactly `scale` (1 to 127) digits after the point.
    Decimal {
        /// All digits as one integer.
        mantissa: i64,
        /// How many of them stand after the point.
        scale: u32,
    },
    /// A double that came as one, not as text; finite.
    Double(f64),
    /// A number that neither holds, as its JSON text: with an exponent, beyond 64 bits, `-0`.
    Text(&'a str),
}

impl Number<'_> {
    /// The integer, if the number was written as one of 64 bits. `1.0` and `1e3` are not.
    #[inline]
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Number::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// The double nearest to the number; infinite when its text is beyond all doubles.
    #[inline]
    #[must_use]
    pub fn as_f64(&self) -> f64 {
        match self {
            Number::Integer(value) => *value as f64,
            Number::Decimal { mantissa, scale } => number::decimal_to_f64(*mantissa, *scale),
            Number::Double(value) => *value,
            Number::Text(text) => number::text_to_f64(text.as_bytes()),
        }
    }

    /// Appends the JSON text.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Number::Integer(value) => {
                out.extend_from_slice(number::integer_text(*value, &mut [0; number::INTEGER_TEXT_MAX]));
            }
            Number::Decimal { mantissa, scale } => {
                out.extend_from_slice(number::decimal_text(
                    *mantissa,
                    *scale,
                    &mut [0; number::DECIMAL_TEXT_MAX],
                ));
            }
            Number::Double(value) => crate::text::print::append_double(*value, out),
            Number::Text(text) => out.extend_from_slice(text.as_bytes()),
        }
    }
}

impl fmt::Display for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::new();
        self.append_to(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

impl PartialEq for Number<'_> {
    /// Equal when they print the same: `1.0` is not `1`.
    fn eq(&self, other: &Number<'_>) -> bool {
        match (self, other) {
            (Number::Integer(a), Number::Integer(b)) => a == b,
            (Number::Decimal { mantissa: a, scale: s }, Number::Decimal { mantissa: b, scale: t }) => {
                a == b && s == t
            }
            (Number::Text(a), Number::Text(b)) => a == b,
            (Number::Double(a), Number::Double(b)) => a.to_bits() == b.to_bits(),
            // An integer has no point, a decimal has one.
            (Number::Integer(_), Number::Decimal { .. }) | (Number::Decimal { .. }, Number::Integer(_)) => {
                false
            }
            _ => {
                let (mut left, mut right) = (Vec::new(), Vec::new());
                self.append_to(&mut left);
                other.append_to(&mut right);
                left == right
            }
        }
    }
}

impl<'a> Value<'a> {
    /// The value of a kind at its position, or with its inline payload.
    #[inline(always)]
    pub(crate) fn at(document: Document<'a>, kind: u8, payload: u32) -> Value<'a> {
        match kind {
            kind::NULL => Value::Null,
            kind::FALSE => Value::Bool(false),
            kind::TRUE => Value::Bool(true),
            kind::SMALL_INTEGER => Value::Number(Number::Integer(i64::from(payload))),
            0x40..=0x45 => Value::Text(Text::at(document, kind, payload)),
            kind::OBJECT => Value::Object(Object::at(document, payload)),
            kind::ARRAY => Value::Array(Array::at(document, payload)),
            _ => Value::at_rare(document, kind, payload),
        }
    }

    fn at_rare(document: Document<'a>, kind: u8, payload: u32) -> Value<'a> {
        let bytes = document.bytes;
        match kind {
            0x10..=0x17 => {
                Value::Number(Number::Integer(bytes.signed(payload, u32::from(kind - kind::INTEGER) + 1)))
            }
            0x20..=0x27 => {
                let width = u32::from(kind - kind::DECIMAL) + 1;
                let mantissa = bytes.signed(payload, width);
                Value::Number(Number::Decimal {
                    mantissa,
                    scale: u32::from(bytes.byte(payload.wrapping_add(width))),
                })
            }
            kind::DOUBLE => Value::Number(Number::Double(f64::from_bits(bytes.word(payload)))),
            kind::NUMBER_TEXT => {
                let (len, _) = bytes.varint(payload);
                Value::Number(Number::Text(std::str::from_utf8(bytes.before(payload, len)).unwrap_or("0")))
            }
            kind::EMPTY_STRING => Value::Text(Text::empty(document)),
            kind::EMPTY_ARRAY => Value::Array(Array::empty(document)),
            kind::EMPTY_OBJECT => Value::Object(Object::empty(document)),
            kind::EMBEDDED => {
                let (len, _) = bytes.varint(payload);
                match Document::embedded(bytes.before(payload, len)) {
                    Ok(embedded) => Value::Document(embedded.with_dictionary_of(&document)),
                    Err(_) => Value::Null,
                }
            }
            kind::BINARY => {
                let (len, _) = bytes.varint(payload);
                Value::Binary(bytes.before(payload, len))
            }
            // Only damaged bytes have other kinds.
            _ => Value::Null,
        }
    }

    /// Whether this is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The truth value, if this is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, if this is one.
    #[must_use]
    pub fn as_number(&self) -> Option<Number<'a>> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The integer, if this is a number written as one of 64 bits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    /// The double nearest to the number, if this is a number.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        Some(self.as_number()?.as_f64())
    }

    /// The string, if this is one.
    #[inline]
    #[must_use]
    pub fn as_text(&self) -> Option<Text<'a>> {
        match self {
            Value::Text(text) => Some(*text),
            _ => None,
        }
    }

    /// The string, if this is one: borrowed if plain, allocated if compressed. See [`Text`] for ways without allocation.
    #[must_use]
    pub fn as_str(&self) -> Option<Cow<'a, str>> {
        Some(self.as_text()?.to_str())
    }

    /// The array, if this is one.
    #[must_use]
    pub fn as_array(&self) -> Option<Array<'a>> {
        match self {
            Value::Array(array) => Some(*array),
            Value::Document(document) => document.root().as_array(),
            _ => None,
        }
    }

    /// The object, if this is one.
    #[inline]
    #[must_use]
    pub fn as_object(&self) -> Option<Object<'a>> {
        match self {
            Value::Object(object) => Some(*object),
            Value::Document(document) => document.object(),
            _ => None,
        }
    }

    /// The bytes, if these are some.
    #[must_use]
    pub fn as_binary(&self) -> Option<&'a [u8]> {
        match self {
            Value::Binary(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The value of a property, if this is an object that has it.
    #[inline]
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.as_object()?.get(name)
    }

    /// What this is, for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a truth value",
            Value::Number(Number::Integer(_)) => "an integer",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
            Value::Document(_) => "a document",
            Value::Binary(_) => "binary",
        }
    }
}

impl fmt::Debug for Value<'_> {
    /// Prints as JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Value<'_> {
    /// Prints as JSON, indented with `{:#}`. Lone surrogates print as their escapes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = if f.alternate() { crate::Style::Indented } else { crate::Style::Compact };
        f.write_str(&self.to_json(style))
    }
}
