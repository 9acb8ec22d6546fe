//! The three kinds of number and how they meet: integers stay integers among themselves; with a decimal, or with a number that a document has with a point, the
//! result is an exact decimal; with a double it is a double.

use std::cmp::Ordering;

use jackdaw_document::Number;
use rust_decimal::Decimal;
use rust_decimal::prelude::{FromPrimitive, ToPrimitive};

use crate::program::Operator;
use crate::value::Value;

#[derive(Clone, Copy, Debug)]
pub(super) enum Num {
    Long(i64),
    Decimal(Decimal),
    Double(f64),
}

impl Num {
    /// The number that a value is.
    #[inline]
    pub(super) fn of(value: &Value<'_>) -> Option<Num> {
        match value {
            Value::Long(value) => Some(Num::Long(*value)),
            Value::Double(value) => Some(Num::Double(*value)),
            Value::Decimal(value) => Some(Num::Decimal(*value)),
            Value::Number(number) => Some(Num::of_document(number)),
            Value::Boosted(boosted) => Num::of(&boosted.value),
            _ => None,
        }
    }

    fn of_document(number: &Number<'_>) -> Num {
        match number {
            Number::Integer(value) => Num::Long(*value),
            Number::Decimal { mantissa, scale } => {
                match Decimal::try_from_i128_with_scale(i128::from(*mantissa), *scale) {
                    Ok(value) => Num::Decimal(value),
                    Err(_) => Num::Double(number.as_f64()),
                }
            }
            Number::Double(value) => Num::Double(*value),
            Number::Text(_) => Num::Double(number.as_f64()),
        }
    }

    pub(super) fn value<'r>(self) -> Value<'r> {
        match self {
            Num::Long(value) => Value::Long(value),
            Num::Decimal(value) => Value::Decimal(value),
            Num::Double(value) => Value::Double(value),
        }
    }

    pub(super) fn as_f64(self) -> f64 {
        match self {
            Num::Long(value) => value as f64,
            Num::Decimal(value) => value.to_f64().unwrap_or(f64::NAN),
            Num::Double(value) => value,
        }
    }

    pub(super) fn is_zero(self) -> bool {
        match self {
            Num::Long(value) => value == 0,
            Num::Decimal(value) => value.is_zero(),
            Num::Double(value) => value == 0.0,
        }
    }

    /// `None`: division by zero.
    #[inline]
    pub(super) fn apply(self, operator: Operator, other: Num) -> Option<Num> {
        Some(match (self, other) {
            (Num::Long(a), Num::Long(b)) => Num::Long(match operator {
                Operator::Add => a.wrapping_add(b),
                Operator::Subtract => a.wrapping_sub(b),
                Operator::Multiply => a.wrapping_mul(b),
                Operator::Divide if b == 0 => return None,
                Operator::Divide => a.wrapping_div(b),
                Operator::Remainder if b == 0 => return None,
                Operator::Remainder => a.wrapping_rem(b),
            }),
            (Num::Double(a), b) => Num::Double(double(operator, a, b.as_f64())),
            (a, Num::Double(b)) => Num::Double(double(operator, a.as_f64(), b)),
            (a, b) => {
                let (Some(x), Some(y)) = (a.as_decimal(), b.as_decimal()) else {
                    return Some(Num::Double(double(operator, a.as_f64(), b.as_f64())));
                };
                let exact = match operator {
                    Operator::Add => x.checked_add(y),
                    Operator::Subtract => x.checked_sub(y),
                    Operator::Multiply => x.checked_mul(y),
                    Operator::Divide | Operator::Remainder if y.is_zero() => return None,
                    Operator::Divide => x.checked_div(y).map(|quotient| quotient.normalize()),
                    Operator::Remainder => x.checked_rem(y),
                };
                // Beyond 28 digits a double is the nearest that there is.
                exact.map_or_else(|| Num::Double(double(operator, a.as_f64(), b.as_f64())), Num::Decimal)
            }
        })
    }

    pub(super) fn as_decimal(self) -> Option<Decimal> {
        match self {
            Num::Long(value) => Some(Decimal::from(value)),
            Num::Decimal(value) => Some(value),
            Num::Double(value) => Decimal::from_f64(value),
        }
    }

    /// `None` for what is not a number.
    #[inline]
    pub(super) fn compare(self, other: Num) -> Option<Ordering> {
        match (self, other) {
            (Num::Long(a), Num::Long(b)) => Some(a.cmp(&b)),
            (Num::Double(a), b) => a.partial_cmp(&b.as_f64()),
            (a, Num::Double(b)) => a.as_f64().partial_cmp(&b),
            (a, b) => Some(a.as_decimal()?.cmp(&b.as_decimal()?)),
        }
    }

    /// Towards zero; what is beyond all integers becomes the outermost.
    pub(super) fn as_i64(self) -> i64 {
        match self {
            Num::Long(value) => value,
            Num::Double(value) => value as i64,
            Num::Decimal(value) => {
                value.trunc().to_i64().unwrap_or(if value.is_sign_negative() { i64::MIN } else { i64::MAX })
            }
        }
    }
}

#[inline]
fn double(operator: Operator, a: f64, b: f64) -> f64 {
    match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::Remainder => a % b,
    }
}

/// Adds numbers as `Sum` does.
#[derive(Clone, Copy)]
pub(super) struct Sum(Num);

impl Sum {
    pub(super) fn new() -> Sum {
        Sum(Num::Long(0))
    }

    #[inline]
    pub(super) fn add(&mut self, number: Num) {
        if let Some(sum) = self.0.apply(Operator::Add, number) {
            self.0 = sum;
        }
    }

    pub(super) fn number(self) -> Num {
        self.0
    }
}
