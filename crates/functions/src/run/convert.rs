//! Casts, and what is of which type.

use jackdaw_document as document;
use jackdaw_document::date::{Date, Zone};
use rust_decimal::prelude::ToPrimitive;

use super::numbers::Num;
use super::{Run, Step, dates, fault, kind_of};
use crate::program::Type;
use crate::value::Value;

/// Whether a value is of a type, as documents have types: their integers are `long`.
pub(super) fn is_of(of: Type, value: &Value<'_>) -> bool {
    match of {
        Type::Object => !value.is_null(),
        Type::Byte | Type::Short | Type::Float => false,
        Type::Int | Type::Long => matches!(value, Value::Long(_)),
        Type::Double => matches!(value, Value::Double(_) | Value::Number(_)),
        Type::Decimal => matches!(value, Value::Decimal(_)),
        Type::Bool => matches!(value, Value::Bool(_)),
        Type::Text => matches!(value, Value::Text(_)),
        Type::Char => matches!(value, Value::Text(text) if text.chars().count() == 1),
        Type::Date => matches!(value, Value::Date(date) if !matches!(date.zone, Zone::Offset(_))),
        Type::DateOffset => matches!(value, Value::Date(date) if matches!(date.zone, Zone::Offset(_))),
        Type::TimeSpan => match value {
            Value::TimeSpan(_) => true,
            Value::Text(text) => dates::parse_span(text).is_some(),
            _ => false,
        },
        Type::Guid => matches!(value, Value::Text(text) if is_guid(text)),
        Type::Sequence => {
            matches!(value, Value::Array(_) | Value::Group(_) | Value::Json(document::Value::Array(_)))
        }
    }
}

pub(super) fn is_guid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// The integer that a number is, towards zero.
pub(super) fn to_long(value: &Value<'_>) -> Option<i64> {
    Some(Num::of(value)?.as_i64())
}

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    /// `(Type)value`. Null becomes the type's default, or stays null where the type may be.
    pub(super) fn cast(&mut self, to: Type, nullable: bool, value: Value<'r>, line: u32) -> Step<Value<'r>> {
        if value.is_null() {
            if nullable {
                return Ok(Value::Null);
            }
            return Ok(match to {
                Type::Byte | Type::Short | Type::Int | Type::Long => Value::Long(0),
                // RavenDB's null becomes what is not a number.
                Type::Float | Type::Double => Value::Double(f64::NAN),
                Type::Decimal => Value::Decimal(rust_decimal::Decimal::ZERO),
                Type::Bool => Value::Bool(false),
                Type::Date | Type::DateOffset => Value::Date(Date::default()),
                Type::TimeSpan => Value::TimeSpan(0),
                _ => value,
            });
        }
        let wrong = |found: &str| fault(format!("Cannot convert {} to {found}", kind_of(&value)), line);
        match to {
            Type::Byte | Type::Short | Type::Int | Type::Long => {
                let whole = match (&value, Num::of(&value)) {
                    (_, Some(number)) => number.as_i64(),
                    (Value::Text(text), None) => match (dates::day_of_week_named(text), text.chars().count())
                    {
                        (Some(day), _) => day,
                        (None, 1) => {
                            text.chars().next().map_or(0, |character| i64::from(u32::from(character)))
                        }
                        _ => return Err(wrong("an integer")),
                    },
                    _ => return Err(wrong("an integer")),
                };
                Ok(Value::Long(match to {
                    Type::Byte => i64::from(whole as u8),
                    Type::Short => i64::from(whole as i16),
                    Type::Int => i64::from(whole as i32),
                    _ => whole,
                }))
            }
            Type::Double => match Num::of(&value) {
                Some(number) => Ok(Value::Double(number.as_f64())),
                None => Err(wrong("a double")),
            },
            Type::Float => match Num::of(&value) {
                Some(number) => Ok(Value::Double(f64::from(number.as_f64() as f32))),
                None => Err(wrong("a float")),
            },
            Type::Decimal => match Num::of(&value) {
                Some(number) => match number.as_decimal() {
                    Some(decimal) => Ok(Value::Decimal(decimal)),
                    None => Err(fault("Value was either too large or too small for a Decimal.", line)),
                },
                None => Err(wrong("a decimal")),
            },
            Type::Bool => match value {
                Value::Bool(_) => Ok(value),
                _ => Err(wrong("a truth value")),
            },
            Type::Text => match value {
                Value::Text(_) => Ok(value),
                // Text that looks like a date is one here, and text to who casts it.
                Value::Date(_) | Value::TimeSpan(_) => self.text_of(value).map(Value::Text),
                _ => Err(wrong("a string")),
            },
            Type::Char => match value {
                Value::Text(text) if text.chars().count() == 1 => Ok(value),
                Value::Long(code) => match u32::try_from(code).ok().and_then(char::from_u32) {
                    Some(character) => {
                        Ok(Value::Text(self.arena.alloc_str(character.encode_utf8(&mut [0; 4]))))
                    }
                    None => Err(wrong("a character")),
                },
                _ => Err(wrong("a character")),
            },
            Type::Date | Type::DateOffset => match value {
                Value::Date(date) if to == Type::DateOffset && date.zone == Zone::Unspecified => {
                    Ok(Value::Date(Date { ticks: date.ticks, zone: Zone::Offset(0) }))
                }
                Value::Date(_) => Ok(value),
                Value::Text(text) => match dates::parse_any(text) {
                    Some(date) => Ok(Value::Date(date)),
                    None => Err(wrong("a date")),
                },
                _ => Err(wrong("a date")),
            },
            Type::TimeSpan => match value {
                Value::TimeSpan(_) => Ok(value),
                Value::Text(text) => match dates::parse_span(text) {
                    Some(ticks) => Ok(Value::TimeSpan(ticks)),
                    None => Err(wrong("a length of time")),
                },
                _ => Err(wrong("a length of time")),
            },
            Type::Guid => match value {
                Value::Text(text) if is_guid(text) => Ok(value),
                _ => Err(wrong("a GUID")),
            },
            Type::Object | Type::Sequence => Ok(value),
        }
    }

    /// `int.Parse(text)` and its like.
    pub(super) fn parse(&mut self, of: Type, value: Value<'r>, line: u32) -> Step<Value<'r>> {
        let Value::Text(text) = value else {
            return if value.is_null() { Ok(value) } else { self.cast(of, false, value, line) };
        };
        parse_text(of, text.trim()).ok_or_else(|| {
            let few: String = text.chars().take(40).collect();
            fault(format!("The input string '{few}' was not in a correct format."), line)
        })
    }

    /// `Convert.ToInt32(value)` and its like: rounds where casts cut off.
    pub(super) fn convert(&mut self, to: Type, value: Value<'r>, line: u32) -> Step<Value<'r>> {
        match (to, value) {
            (_, Value::Missing | Value::Null) if to != Type::Text => match to {
                Type::Double | Type::Float => Ok(Value::Double(0.0)),
                _ => self.cast(to, false, value, line),
            },
            (Type::Text, value) => self.text_of(value).map(Value::Text),
            (_, Value::Text(_)) if to == Type::Date => self.cast(to, false, value, line),
            (_, Value::Text(_)) => self.parse(to, value, line),
            (Type::Bool, value) => match Num::of(&value) {
                Some(number) => Ok(Value::Bool(!number.is_zero())),
                None => self.cast(to, false, value, line),
            },
            (_, Value::Bool(truth)) => self.cast(to, false, Value::Long(i64::from(truth)), line),
            (Type::Byte | Type::Short | Type::Int | Type::Long, value) => match Num::of(&value) {
                Some(Num::Double(double)) => Ok(Value::Long(double.round_ties_even() as i64)),
                Some(Num::Decimal(decimal)) => Ok(Value::Long(decimal.round().to_i64().unwrap_or(i64::MAX))),
                _ => self.cast(to, false, value, line),
            },
            (to, value) => self.cast(to, false, value, line),
        }
    }
}

/// The value that a text is in a type.
pub(super) fn parse_text<'r>(of: Type, text: &str) -> Option<Value<'r>> {
    Some(match of {
        Type::Byte | Type::Short | Type::Int | Type::Long => {
            let whole: i64 = text.parse().ok()?;
            let fits = match of {
                Type::Byte => u8::try_from(whole).is_ok(),
                Type::Short => i16::try_from(whole).is_ok(),
                Type::Int => i32::try_from(whole).is_ok(),
                _ => true,
            };
            return fits.then_some(Value::Long(whole));
        }
        Type::Float | Type::Double => Value::Double(text.replace(',', "").parse().ok()?),
        Type::Decimal => Value::Decimal(text.replace(',', "").parse().ok()?),
        Type::Bool => Value::Bool(if text.eq_ignore_ascii_case("true") {
            true
        } else if text.eq_ignore_ascii_case("false") {
            false
        } else {
            return None;
        }),
        _ => return None,
    })
}
