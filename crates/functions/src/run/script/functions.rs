//! Functions that belong to no value: of documents, conversions, `Object`, `Math`.

use super::super::{Run, Step};
use super::arrays::Items;
use super::{List, declined, numbers, operators};
use crate::program::Expr;
use crate::program::script::Function;
use crate::value::Value;

/// Ticks of 100 nanoseconds from the year 1 to 1970.
const TICKS_OF_1970: i64 = 621_355_968_000_000_000;

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    pub(super) fn script_function(&mut self, function: Function, args: &'r [Expr]) -> Step<Value<'r>> {
        let values = self.arguments(args)?;
        let first = values.first().copied().unwrap_or(Value::Missing);
        Ok(match function {
            Function::Id => match first {
                Value::Document(input) => Value::Text(input.id),
                _ => Value::Null,
            },
            Function::LastModified => match first {
                Value::Document(input) if input.last_modified > 0 => {
                    Value::Double((input.last_modified - TICKS_OF_1970) as f64 / 10_000.0)
                }
                _ => Value::Missing,
            },
            Function::Metadata => self.metadata_of(&first)?,
            Function::Load | Function::LoadUntracked => {
                let collection = match values.get(1) {
                    Some(Value::Text(collection)) => Some(*collection),
                    _ => None,
                };
                let is_tracked = function == Function::Load;
                match Items::of(&first) {
                    None => self.load_one(first, collection, is_tracked)?,
                    Some(ids) => {
                        let mut list = List::with_room(self.arena, ids.len());
                        for at in 0..ids.len() {
                            self.step()?;
                            let id = self.item(&ids, at);
                            let loaded = self.load_one(id, collection, is_tracked)?;
                            list.push(loaded);
                        }
                        Value::Array(list.done())
                    }
                }
            }
            Function::CompareExchange => {
                let Value::Text(key) = first else { return Err(declined()) };
                match self.host.compare_exchange(key)? {
                    Some(value) => self.read(value),
                    None => Value::Null,
                }
            }
            Function::CreateField => {
                let options = match values.get(2) {
                    None | Some(Value::Missing | Value::Null) => Value::Object(&[]),
                    Some(options) => *options,
                };
                let value = values.get(1).copied().unwrap_or(Value::Missing);
                Value::Object(self.arena.alloc([("$name", first), ("$value", value), ("$options", options)]))
            }
            Function::CreateSpatialField => {
                let place = match (first, values.get(1)) {
                    (Value::Missing, None | Some(Value::Missing)) => Value::Null,
                    (first, None | Some(Value::Missing)) => first,
                    (first, Some(second)) => Value::Array(self.arena.alloc([first, *second])),
                };
                Value::Object(self.arena.alloc([("$spatial", place)]))
            }
            Function::Boost => {
                let by = values.get(1).copied().unwrap_or(Value::Missing);
                Value::Object(self.arena.alloc([("$value", first), ("$boost", by)]))
            }
            Function::ToText if values.is_empty() => Value::Text(""),
            Function::ToText => Value::Text(self.script_text(first)?),
            Function::ToNumber if values.is_empty() => Value::Double(0.0),
            Function::ToNumber => Value::Double(self.script_number(&first)?),
            Function::ToBool => Value::Bool(operators::is_truthy(&first)),
            Function::ParseInt => {
                let text = self.script_text(first)?;
                Value::Double(numbers::parse_integer(text).ok_or_else(declined)?)
            }
            Function::ParseFloat => {
                let text = self.script_text(first)?;
                Value::Double(numbers::parse_start(text).ok_or_else(declined)?)
            }
            Function::IsNan => Value::Bool(self.script_number(&first)?.is_nan()),
            Function::IsFinite => Value::Bool(self.script_number(&first)?.is_finite()),
            Function::NumberIsNan => Value::Bool(matches!(first, Value::Double(number) if number.is_nan())),
            Function::NumberIsFinite => {
                Value::Bool(matches!(first, Value::Double(number) if number.is_finite()))
            }
            Function::NumberIsInteger => {
                let is_whole = |number: f64| number.is_finite() && number.fract() == 0.0;
                Value::Bool(matches!(first, Value::Double(number) if is_whole(number)))
            }
            Function::IsArray => Value::Bool(Items::of(&first).is_some()),
            Function::Keys | Function::Values | Function::Entries => {
                let fields = self.properties_of(&first)?;
                let mut list = List::with_room(self.arena, fields.len());
                for (name, value) in fields {
                    self.step()?;
                    list.push(match function {
                        Function::Keys => Value::Text(name),
                        Function::Values => *value,
                        _ => Value::Array(self.arena.alloc([Value::Text(name), *value])),
                    });
                }
                Value::Array(list.done())
            }
            Function::Element(place) => {
                let items = Items::of(&first).ok_or_else(declined)?;
                self.item(&items, place as usize)
            }
            function => Value::Double(self.mathematics(function, values)?),
        })
    }

    fn load_one(&mut self, id: Value<'r>, collection: Option<&str>, is_tracked: bool) -> Step<Value<'r>> {
        let id = match id {
            Value::Missing | Value::Null => return Ok(Value::Null),
            Value::Text(id) => id,
            _ => return Err(declined()),
        };
        let found = match is_tracked {
            true => self.host.load_document(id, collection)?,
            false => self.host.load_untracked(id, collection)?,
        };
        Ok(match found {
            Some(input) if input.document.object().is_some() => Value::Document(self.arena.alloc(input)),
            Some(_) => return Err(declined()),
            None => Value::Missing,
        })
    }

    fn mathematics(&mut self, function: Function, values: &[Value<'r>]) -> Step<f64> {
        if matches!(function, Function::Min | Function::Max) {
            let is_min = function == Function::Min;
            let mut best = if is_min { f64::INFINITY } else { f64::NEG_INFINITY };
            let mut is_nan = false;
            for value in values {
                let number = self.script_number(value)?;
                is_nan |= number.is_nan();
                // Minus zero is less than zero.
                let is_better = match is_min {
                    true => number < best || number == 0.0 && best == 0.0 && number.is_sign_negative(),
                    false => number > best || number == 0.0 && best == 0.0 && number.is_sign_positive(),
                };
                if is_better {
                    best = number;
                }
            }
            return Ok(if is_nan { f64::NAN } else { best });
        }
        let number = match values.first() {
            Some(value) => self.script_number(value)?,
            None => f64::NAN,
        };
        Ok(match function {
            Function::Abs => number.abs(),
            Function::Floor => number.floor(),
            Function::Ceil => number.ceil(),
            Function::Round => numbers::round(number),
            Function::Trunc => number.trunc(),
            Function::Sign if number == 0.0 || number.is_nan() => number,
            Function::Sign => number.signum(),
            Function::Sqrt => number.sqrt(),
            Function::Pow => {
                let exponent = match values.get(1) {
                    Some(value) => self.script_number(value)?,
                    None => f64::NAN,
                };
                numbers::power(number, exponent)
            }
            _ => return Err(declined()),
        })
    }
}
