//! Which values are equal, and which come first.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use jackdaw_document as document;

use super::numbers::Num;
use super::{Step, dates, fault, kind_of};
use crate::program::Comparison;
use crate::value::Value;

/// A comparison of the language. Null equals null, and is neither less nor greater than anything; what cannot be compared is an error, as it is in C#.
#[inline]
pub(super) fn compare(comparison: Comparison, left: Value<'_>, right: Value<'_>, line: u32) -> Step<bool> {
    if left.is_null() || right.is_null() {
        let both = left.is_null() && right.is_null();
        return Ok(match comparison {
            Comparison::Equal => both,
            Comparison::NotEqual => !both,
            _ => false,
        });
    }
    let order = match (Num::of(&left), Num::of(&right)) {
        (Some(left), Some(right)) => left.compare(right),
        _ => match ordered(&left, &right) {
            Some(order) => Some(order),
            None => match comparison {
                Comparison::Equal | Comparison::NotEqual => {
                    let both_plain = is_plain(&left) && is_plain(&right);
                    if both_plain {
                        return Err(not_comparable(comparison, &left, &right, line));
                    }
                    return Ok(same(&left, &right) == (comparison == Comparison::Equal));
                }
                _ => return Err(not_comparable(comparison, &left, &right, line)),
            },
        },
    };
    let Some(order) = order else { return Ok(comparison == Comparison::NotEqual) };
    Ok(match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    })
}

fn is_plain(value: &Value<'_>) -> bool {
    !matches!(
        value,
        Value::Array(_) | Value::Group(_) | Value::Object(_) | Value::Json(_) | Value::Document(_)
    )
}

#[cold]
fn not_comparable(comparison: Comparison, left: &Value<'_>, right: &Value<'_>, line: u32) -> super::Fault {
    let operator = match comparison {
        Comparison::Equal => "==",
        Comparison::NotEqual => "!=",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    };
    fault(
        format!("Operator '{operator}' cannot be applied to {} and {}", kind_of(left), kind_of(right)),
        line,
    )
}

/// The order of two values that are no numbers and not null, if they have one.
fn ordered(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    Some(match (left, right) {
        (Value::Text(a), Value::Text(b)) => ordinal(a, b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => dates::moment(*a).cmp(&dates::moment(*b)),
        (Value::Date(a), Value::Text(b)) => dates::moment(*a).cmp(&dates::moment(dates::parse_any(b)?)),
        (Value::Text(a), Value::Date(b)) => dates::moment(dates::parse_any(a)?).cmp(&dates::moment(*b)),
        (Value::TimeSpan(a), Value::TimeSpan(b)) => a.cmp(b),
        (Value::TimeSpan(a), Value::Text(b)) => a.cmp(&dates::parse_span(b)?),
        (Value::Text(a), Value::TimeSpan(b)) => dates::parse_span(a)?.cmp(b),
        _ => return None,
    })
}

/// By UTF-16 units, as .NET compares ordinally.
pub(super) fn ordinal(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

/// The order in which values are sorted: null first, then as they compare; values that do not compare are sorted by kind.
pub(super) fn sort_order(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    match (left.is_null(), right.is_null()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Less,
        (false, true) => return Ordering::Greater,
        _ => {}
    }
    if let (Some(a), Some(b)) = (Num::of(left), Num::of(right)) {
        return a.compare(b).unwrap_or_else(|| a.as_f64().total_cmp(&b.as_f64()));
    }
    ordered(left, right).unwrap_or_else(|| rank(left).cmp(&rank(right)))
}

fn rank(value: &Value<'_>) -> u8 {
    match value {
        Value::Missing | Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Long(_) | Value::Double(_) | Value::Decimal(_) | Value::Number(_) => 2,
        Value::Date(_) => 3,
        Value::TimeSpan(_) => 4,
        Value::Text(_) => 5,
        _ => 6,
    }
}

/// Values in values are compared this deep; computed ones could be deeper than the stack, and those are then not the same.
const DEPTH_MAX: u32 = 64;

/// Whether two values are the same, as `Distinct`, `GroupBy` and `Contains` ask: never an error.
pub(super) fn same(left: &Value<'_>, right: &Value<'_>) -> bool {
    same_at(left, right, DEPTH_MAX)
}

fn same_at(left: &Value<'_>, right: &Value<'_>, depth: u32) -> bool {
    if left.is_null() || right.is_null() {
        return left.is_null() && right.is_null();
    }
    if let (Some(a), Some(b)) = (Num::of(left), Num::of(right)) {
        return a.compare(b).is_some_and(Ordering::is_eq);
    }
    if let Some(order) = ordered(left, right) {
        return order.is_eq();
    }
    match (left, right) {
        (Value::Document(a), Value::Document(b)) => a.id.eq_ignore_ascii_case(b.id),
        (Value::Json(a), Value::Json(b)) => a == b,
        _ => depth > 0 && same_parts(left, right, depth - 1),
    }
}

/// Containers of which at least one was computed.
fn same_parts(left: &Value<'_>, right: &Value<'_>, depth: u32) -> bool {
    match (left, right) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(*b).all(|(a, b)| same_at(a, b, depth))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().zip(*b).all(|((name, a), (other, b))| name == other && same_at(a, b, depth))
        }
        (Value::Object(a), Value::Json(document::Value::Object(b)))
        | (Value::Json(document::Value::Object(b)), Value::Object(a)) => {
            a.len() == b.len()
                && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same_as_document(a, &b, depth)))
        }
        (Value::Array(a), Value::Json(document::Value::Array(b)))
        | (Value::Json(document::Value::Array(b)), Value::Array(a)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same_as_document(a, &b, depth))
        }
        _ => false,
    }
}

fn same_as_document(value: &Value<'_>, other: &document::Value<'_>, depth: u32) -> bool {
    match other {
        document::Value::Null => value.is_null(),
        document::Value::Bool(b) => matches!(value, Value::Bool(a) if a == b),
        document::Value::Number(number) => same_at(value, &Value::Number(number), depth),
        document::Value::Text(text) => same_at(value, &Value::Text(&text.to_str()), depth),
        other => same_at(value, &Value::Json(other), depth),
    }
}

/// Hashes a value so that those that are the same hash the same.
pub(super) fn hash(value: &Value<'_>, state: &mut impl Hasher) {
    if hash_plain(value, state) {
        return;
    }
    match value {
        // Of what is inside only the plain values count; equality decides the rest.
        Value::Object(fields) => {
            for (_, value) in *fields {
                hash_plain(value, state);
            }
        }
        Value::Json(document::Value::Object(object)) => {
            for (_, value) in object.iter() {
                match value {
                    document::Value::Null => hash_plain(&Value::Null, state),
                    document::Value::Bool(value) => hash_plain(&Value::Bool(value), state),
                    document::Value::Number(number) => hash_plain(&Value::Number(&number), state),
                    document::Value::Text(text) => hash_plain(&Value::Text(&text.to_str()), state),
                    _ => false,
                };
            }
        }
        Value::Array(values) => values.len().hash(state),
        Value::Json(document::Value::Array(array)) => array.len().hash(state),
        _ => 2u8.hash(state),
    }
}

/// Hashes a value that has no others in it; whether it is one.
fn hash_plain(value: &Value<'_>, state: &mut impl Hasher) -> bool {
    if let Some(number) = Num::of(value) {
        // Zero has one hash, whatever its sign.
        let double = number.as_f64();
        if double == 0.0 {
            0u64.hash(state)
        } else {
            double.to_bits().hash(state)
        }
        return true;
    }
    match value {
        Value::Missing | Value::Null => 1u8.hash(state),
        Value::Bool(value) => value.hash(state),
        Value::Text(text) => match dates::date_of(text) {
            Some(date) => dates::moment(date).hash(state),
            None => match dates::span_of(text) {
                Some(ticks) => ticks.hash(state),
                None => text.hash(state),
            },
        },
        Value::Date(date) => dates::moment(*date).hash(state),
        Value::TimeSpan(ticks) => ticks.hash(state),
        _ => return false,
    }
    true
}
