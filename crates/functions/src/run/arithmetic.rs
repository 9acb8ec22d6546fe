//! `+ - * / %` and unary minus.

use jackdaw_document::date::{Date, TICKS_MAX};

use super::numbers::Num;
use super::{Run, Step, dates, fault, kind_of};
use crate::error::RuntimeError;
use crate::program::Operator;
use crate::value::Value;

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    #[inline]
    pub(super) fn arithmetic(
        &mut self,
        operator: Operator,
        left: Value<'r>,
        right: Value<'r>,
        line: u32,
    ) -> Step<Value<'r>> {
        match (Num::of(&left), Num::of(&right)) {
            (Some(a), Some(b)) => match a.apply(operator, b) {
                Some(result) => Ok(result.value()),
                None => Err(Box::new(RuntimeError::DivisionByZero { line })),
            },
            _ => self.arithmetic_of_others(operator, left, right, line),
        }
    }

    #[inline(never)]
    fn arithmetic_of_others(
        &mut self,
        operator: Operator,
        left: Value<'r>,
        right: Value<'r>,
        line: u32,
    ) -> Step<Value<'r>> {
        let is_add = operator == Operator::Add;
        let result = match (left, right) {
            (Value::Text(_), _) | (_, Value::Text(_)) if is_add => return self.concatenate(left, right),
            // Null absorbs on the left. On the right it becomes what it is in the other's type: nothing, or not a number. So RavenDB has it.
            (Value::Null | Value::Missing, _) => Some(left),
            (_, Value::Null | Value::Missing) => match Num::of(&left) {
                Some(Num::Double(_)) => Some(Value::Double(f64::NAN)),
                Some(number) => match number.apply(operator, Num::Long(0)) {
                    Some(result) => Some(result.value()),
                    None => return Err(Box::new(RuntimeError::DivisionByZero { line })),
                },
                None if span_of(&left).is_some() => Some(left),
                None => Some(Value::Missing),
            },
            (Value::Date(a), Value::Date(b)) if operator == Operator::Subtract => {
                Some(Value::TimeSpan(a.ticks.wrapping_sub(b.ticks)))
            }
            (Value::Date(a), b) => match (operator, span_of(&b)) {
                (Operator::Add, Some(ticks)) => shifted(a, ticks),
                (Operator::Subtract, Some(ticks)) => shifted(a, ticks.wrapping_neg()),
                (Operator::Subtract, None) => match b {
                    Value::Text(text) => {
                        dates::parse_any(text).map(|b| Value::TimeSpan(a.ticks.wrapping_sub(b.ticks)))
                    }
                    _ => None,
                },
                _ => None,
            },
            (a, b) => match (span_of(&a), span_of(&b)) {
                (Some(a), Some(b)) => match operator {
                    Operator::Add => Some(Value::TimeSpan(a.wrapping_add(b))),
                    Operator::Subtract => Some(Value::TimeSpan(a.wrapping_sub(b))),
                    Operator::Divide if b != 0 => Some(Value::Double(a as f64 / b as f64)),
                    _ => None,
                },
                (Some(a), None) => Num::of(&b).and_then(|b| match operator {
                    Operator::Multiply => Some(Value::TimeSpan((a as f64 * b.as_f64()) as i64)),
                    Operator::Divide if !b.is_zero() => Some(Value::TimeSpan((a as f64 / b.as_f64()) as i64)),
                    _ => None,
                }),
                _ => None,
            },
        };
        result.ok_or_else(|| {
            let operator = match operator {
                Operator::Add => "+",
                Operator::Subtract => "-",
                Operator::Multiply => "*",
                Operator::Divide => "/",
                Operator::Remainder => "%",
            };
            fault(
                format!(
                    "Operator '{operator}' cannot be applied to {} and {}",
                    kind_of(&left),
                    kind_of(&right)
                ),
                line,
            )
        })
    }

    pub(super) fn concatenate(&mut self, left: Value<'r>, right: Value<'r>) -> Step<Value<'r>> {
        let (left, right) = (self.text_of(left)?, self.text_of(right)?);
        if left.is_empty() {
            return Ok(Value::Text(right));
        }
        if right.is_empty() {
            return Ok(Value::Text(left));
        }
        if left.len() + right.len() > 4096 {
            self.check_memory(left.len() + right.len())?;
        }
        let joined: &'r mut [u8] = self.arena.alloc_slice_fill_copy(left.len() + right.len(), 0);
        joined[..left.len()].copy_from_slice(left.as_bytes());
        joined[left.len()..].copy_from_slice(right.as_bytes());
        // Two texts make a text.
        Ok(Value::Text(std::str::from_utf8(joined).unwrap_or_default()))
    }

    pub(super) fn negate(&mut self, value: Value<'r>, line: u32) -> Step<Value<'r>> {
        match Num::of(&value) {
            Some(Num::Long(value)) => Ok(Value::Long(value.wrapping_neg())),
            Some(Num::Double(value)) => Ok(Value::Double(-value)),
            Some(Num::Decimal(value)) => Ok(Value::Decimal(-value)),
            None => match value {
                Value::Missing | Value::Null => Ok(Value::Long(0)),
                Value::TimeSpan(ticks) => Ok(Value::TimeSpan(ticks.wrapping_neg())),
                value => Err(fault(format!("Operator '-' cannot be applied to {}", kind_of(&value)), line)),
            },
        }
    }
}

/// The length of time that a value is.
pub(super) fn span_of(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::TimeSpan(ticks) => Some(*ticks),
        Value::Text(text) => dates::parse_span(text),
        _ => None,
    }
}

/// A date moved by ticks, unless that leads beyond all dates.
pub(super) fn shifted<'r>(date: Date, ticks: i64) -> Option<Value<'r>> {
    let moved = date.ticks.checked_add(ticks)?;
    (0..=TICKS_MAX).contains(&moved).then_some(Value::Date(Date { ticks: moved, zone: date.zone }))
}
