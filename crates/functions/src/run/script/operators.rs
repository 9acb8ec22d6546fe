//! JavaScript's operators, and what they make of values that are of another kind than they want.

use std::cmp::Ordering;

use jackdaw_document as document;

use super::super::{Run, Step};
use super::{declined, numbers, texts};
use crate::program::script::{Binary, Part, Unary};
use crate::value::Value;

/// Arrays and objects, wherever they lie.
#[inline]
pub(super) fn is_object(value: &Value<'_>) -> bool {
    !matches!(value, Value::Missing | Value::Null | Value::Bool(_) | Value::Double(_) | Value::Text(_))
}

/// Whether a condition of this value holds.
#[inline]
pub(super) fn is_truthy(value: &Value<'_>) -> bool {
    match value {
        Value::Missing | Value::Null => false,
        Value::Bool(value) => *value,
        Value::Double(value) => *value != 0.0 && !value.is_nan(),
        Value::Text(text) => !text.is_empty(),
        _ => true,
    }
}

/// `===`.
pub(super) fn is_same(left: &Value<'_>, right: &Value<'_>) -> Step<bool> {
    Ok(match (left, right) {
        (Value::Double(left), Value::Double(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => left == right,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Missing, Value::Missing) | (Value::Null, Value::Null) => true,
        // Whether two objects are the same one is not known here.
        (left, right) if is_object(left) && is_object(right) => return Err(declined()),
        _ => false,
    })
}

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    pub(super) fn unary(&mut self, operator: Unary, value: Value<'r>) -> Step<Value<'r>> {
        Ok(match operator {
            Unary::Not => Value::Bool(!is_truthy(&value)),
            Unary::Negate => Value::Double(-self.script_number(&value)?),
            Unary::Plus => Value::Double(self.script_number(&value)?),
            Unary::BitNot => Value::Double(f64::from(!numbers::to_int32(self.script_number(&value)?))),
            Unary::Void => Value::Missing,
            Unary::TypeOf => Value::Text(match value {
                Value::Missing => "undefined",
                Value::Bool(_) => "boolean",
                Value::Double(_) => "number",
                Value::Text(_) => "string",
                _ => "object",
            }),
        })
    }

    #[inline]
    pub(super) fn binary(&mut self, operator: Binary, left: Value<'r>, right: Value<'r>) -> Step<Value<'r>> {
        if let (Value::Double(left), Value::Double(right)) = (left, right) {
            return of_numbers(operator, left, right).ok_or_else(declined);
        }
        match operator {
            Binary::Add => self.add(left, right),
            Binary::Same => Ok(Value::Bool(is_same(&left, &right)?)),
            Binary::NotSame => Ok(Value::Bool(!is_same(&left, &right)?)),
            Binary::Equal => Ok(Value::Bool(self.is_equal(&left, &right)?)),
            Binary::NotEqual => Ok(Value::Bool(!self.is_equal(&left, &right)?)),
            Binary::Less | Binary::LessOrEqual | Binary::Greater | Binary::GreaterOrEqual => {
                if let (Value::Text(left), Value::Text(right)) = (left, right) {
                    let order = texts::compare(left, right);
                    return Ok(Value::Bool(match operator {
                        Binary::Less => order == Ordering::Less,
                        Binary::LessOrEqual => order != Ordering::Greater,
                        Binary::Greater => order == Ordering::Greater,
                        _ => order != Ordering::Less,
                    }));
                }
                if is_object(&left) || is_object(&right) {
                    return Err(declined());
                }
                let (left, right) = (self.script_number(&left)?, self.script_number(&right)?);
                of_numbers(operator, left, right).ok_or_else(declined)
            }
            Binary::In => self.is_in(left, right),
            operator => {
                let (left, right) = (self.script_number(&left)?, self.script_number(&right)?);
                of_numbers(operator, left, right).ok_or_else(declined)
            }
        }
    }

    fn add(&mut self, left: Value<'r>, right: Value<'r>) -> Step<Value<'r>> {
        let is_text = |value: &Value<'_>| matches!(value, Value::Text(_)) || is_object(value);
        if is_text(&left) || is_text(&right) {
            let (left, right) = (self.script_text(left)?, self.script_text(right)?);
            return self.concatenate(Value::Text(left), Value::Text(right));
        }
        Ok(Value::Double(self.script_number(&left)? + self.script_number(&right)?))
    }

    /// `==`.
    fn is_equal(&mut self, left: &Value<'r>, right: &Value<'r>) -> Step<bool> {
        Ok(match (left, right) {
            (Value::Missing | Value::Null, Value::Missing | Value::Null) => true,
            (Value::Missing | Value::Null, _) | (_, Value::Missing | Value::Null) => false,
            (Value::Text(left), Value::Text(right)) => left == right,
            (left, right) if is_object(left) || is_object(right) => return Err(declined()),
            (left, right) => self.script_number(left)? == self.script_number(right)?,
        })
    }

    /// The value as a number.
    #[inline]
    pub(super) fn script_number(&mut self, value: &Value<'r>) -> Step<f64> {
        Ok(match value {
            Value::Double(value) => *value,
            Value::Missing => f64::NAN,
            Value::Null => 0.0,
            Value::Bool(value) => f64::from(u8::from(*value)),
            Value::Text(text) => numbers::parse(text).ok_or_else(declined)?,
            Value::Array(_) | Value::Json(document::Value::Array(_)) => {
                let text = self.script_text(*value)?;
                numbers::parse(text).ok_or_else(declined)?
            }
            _ => return Err(declined()),
        })
    }

    /// The value as a whole number of a place or a count; what is none is 0.
    pub(super) fn script_integer(&mut self, value: &Value<'r>) -> Step<f64> {
        let number = self.script_number(value)?;
        Ok(if number.is_nan() { 0.0 } else { number.trunc() })
    }

    /// The value as text.
    pub(super) fn script_text(&mut self, value: Value<'r>) -> Step<&'r str> {
        Ok(match value {
            Value::Text(text) => text,
            Value::Missing => "undefined",
            Value::Null => "null",
            Value::Bool(true) => "true",
            Value::Bool(false) => "false",
            Value::Double(number) => self.arena.alloc_str(&numbers::text(number)),
            Value::Array(_) | Value::Json(document::Value::Array(_)) => self.join(&value, ",", 0)?,
            _ => return Err(declined()),
        })
    }

    pub(super) fn template(
        &mut self,
        texts: &'r [Box<str>],
        values: &'r [crate::program::Expr],
    ) -> Step<Value<'r>> {
        let mut out = String::new();
        for (at, text) in texts.iter().enumerate() {
            out.push_str(text);
            if let Some(value) = values.get(at) {
                let value = self.eval(value)?;
                out.push_str(self.script_text(value)?);
            }
        }
        Ok(Value::Text(self.keep(&out)?))
    }

    /// An object some of whose names are computed.
    pub(super) fn made_object(&mut self, parts: &'r [Part]) -> Step<Value<'r>> {
        let mut fields: Vec<(&'r str, Value<'r>)> = Vec::with_capacity(parts.len());
        let put = |fields: &mut Vec<(&'r str, Value<'r>)>, name: &'r str, value: Value<'r>| match fields
            .iter_mut()
            .find(|(known, _)| *known == name)
        {
            Some(field) => field.1 = value,
            None => fields.push((name, value)),
        };
        for part in parts {
            self.step()?;
            match part {
                Part::Named(name, value) => {
                    let value = self.eval(value)?;
                    put(&mut fields, name, value);
                }
                Part::Computed(name, value) => {
                    let name = self.eval(name)?;
                    let name = self.script_text(name)?;
                    let value = self.eval(value)?;
                    put(&mut fields, name, value);
                }
                Part::Spread(other) => match self.eval(other)? {
                    Value::Missing | Value::Null | Value::Bool(_) | Value::Double(_) => {}
                    other => {
                        let properties = self.properties_of(&other)?;
                        for (name, value) in properties {
                            self.step()?;
                            put(&mut fields, name, *value);
                        }
                    }
                },
            }
        }
        Ok(Value::Object(super::members::in_order(self.arena, fields)))
    }
}

/// What an operator makes of two numbers; `None` for `in`.
#[inline]
fn of_numbers<'r>(operator: Binary, left: f64, right: f64) -> Option<Value<'r>> {
    use numbers::to_int32;
    Some(match operator {
        Binary::Add => Value::Double(left + right),
        Binary::Subtract => Value::Double(left - right),
        Binary::Multiply => Value::Double(left * right),
        Binary::Divide => Value::Double(left / right),
        Binary::Remainder => Value::Double(left % right),
        Binary::Power => Value::Double(numbers::power(left, right)),
        Binary::BitAnd => Value::Double(f64::from(to_int32(left) & to_int32(right))),
        Binary::BitOr => Value::Double(f64::from(to_int32(left) | to_int32(right))),
        Binary::BitXor => Value::Double(f64::from(to_int32(left) ^ to_int32(right))),
        Binary::ShiftLeft => Value::Double(f64::from(to_int32(left).wrapping_shl(to_int32(right) as u32))),
        Binary::ShiftRight => Value::Double(f64::from(to_int32(left).wrapping_shr(to_int32(right) as u32))),
        Binary::ShiftRightUnsigned => {
            Value::Double(f64::from((to_int32(left) as u32).wrapping_shr(to_int32(right) as u32)))
        }
        Binary::Equal | Binary::Same => Value::Bool(left == right),
        Binary::NotEqual | Binary::NotSame => Value::Bool(left != right),
        Binary::Less => Value::Bool(left < right),
        Binary::LessOrEqual => Value::Bool(left <= right),
        Binary::Greater => Value::Bool(left > right),
        Binary::GreaterOrEqual => Value::Bool(left >= right),
        Binary::In => return None,
    })
}
