//! Calls of methods: what one does depends on the value it is called on.

use jackdaw_document as document;
use jackdaw_document::date::{Date, Zone};

use super::arithmetic::{shifted, span_of};
use super::numbers::Num;
use super::{Run, Step, compare, convert, dates, fault, format, kind_of};
use crate::program::{Expr, Method, Operator, Type};
use crate::value::{Boosted, Value};

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    pub(super) fn call(&mut self, method: Method, args: &'r [Expr], line: u32) -> Step<Value<'r>> {
        let Some((target, rest)) = args.split_first() else {
            return Err(fault("a method needs a target", line));
        };
        let target = self.eval(target)?;
        if target.is_null() {
            return self.null_method(method, target, rest);
        }
        match method {
            Method::ToString => return self.as_string(target, rest, line),
            Method::Boost => {
                let boost = self.eval(&rest[0])?;
                let boost = Num::of(&boost).map_or(1.0, Num::as_f64) as f32;
                return Ok(Value::Boosted(self.arena.alloc(Boosted { value: target, boost })));
            }
            Method::GetValueOrDefault => return Ok(target),
            Method::ParseInt | Method::ParseLong | Method::ParseDouble | Method::ParseDecimal => {
                return self.parse_or_default(method, target, rest, line);
            }
            _ => {}
        }
        match target {
            Value::Text(text) => {
                if let Some(value) = self.text_method(method, text, args, line)? {
                    return Ok(value);
                }
                if let Some(ticks) = dates::parse_span(text)
                    && let Some(value) = self.span_method(method, ticks, rest, line)?
                {
                    return Ok(value);
                }
                // As a sequence of characters, where no lambda would take them for something else.
                let of_characters = matches!(
                    method,
                    Method::Reverse
                        | Method::Distinct
                        | Method::ToArray
                        | Method::ToList
                        | Method::Take
                        | Method::Skip
                        | Method::Any
                        | Method::Count
                        | Method::First
                        | Method::FirstOrDefault
                        | Method::Last
                        | Method::LastOrDefault
                );
                if of_characters && !matches!(rest.first(), Some(Expr::Lambda(_))) {
                    return self.sequence_method(method, target, rest, line);
                }
                Err(self.no_method(method, &target, line))
            }
            Value::Date(date) => match self.date_method(method, date, rest, line)? {
                Some(value) => Ok(value),
                None => {
                    // Text that looks like a date is still text to who calls a method of text.
                    let mut buffer = [0; document::date::DATE_TEXT_MAX];
                    let text = self.keep(crate::value::text_of(date.format(&mut buffer)))?;
                    match self.text_method(method, text, args, line)? {
                        Some(value) => Ok(value),
                        None => Err(self.no_method(method, &target, line)),
                    }
                }
            },
            Value::TimeSpan(ticks) => match self.span_method(method, ticks, rest, line)? {
                Some(value) => Ok(value),
                None => Err(self.no_method(method, &target, line)),
            },
            Value::Boosted(boosted) => Err(self.no_method(method, &boosted.value, line)),
            _ if matches!(method, Method::ContainsKey | Method::Value) => {
                let name = self.argument_text(&rest[0], line)?;
                let found = self.named(target, name, line)?;
                Ok(match method {
                    Method::Value => found,
                    _ => Value::Bool(!matches!(found, Value::Missing)),
                })
            }
            _ if matches!(method, Method::Equals | Method::CompareTo) => {
                let other = self.eval(&rest[0])?;
                Ok(match method {
                    Method::Equals => Value::Bool(compare::same(&target, &other)),
                    _ => Value::Long(compare::sort_order(&target, &other) as i64),
                })
            }
            _ if Run::is_sequence(&target) => self.sequence_method(method, target, rest, line),
            _ => Err(self.no_method(method, &target, line)),
        }
    }

    #[cold]
    fn no_method(&self, method: Method, target: &Value<'r>, line: u32) -> super::Fault {
        fault(format!("{} does not contain a definition for '{}'", kind_of(target), method.name()), line)
    }

    /// Methods of what is not there give what is not there, but for some that RavenDB finds for null.
    fn null_method(&mut self, method: Method, target: Value<'r>, args: &'r [Expr]) -> Step<Value<'r>> {
        Ok(match method {
            Method::Count | Method::LongCount => Value::Long(0),
            Method::Select
            | Method::SelectMany
            | Method::GroupBy
            | Method::ToArray
            | Method::ToList
            | Method::ToHashSet
            | Method::Cast
            | Method::AsEnumerable => Value::Array(&[]),
            Method::Concat | Method::Union | Method::Append | Method::Prepend => {
                return self.sequence_method(method, Value::Array(&[]), args, 0);
            }
            Method::DefaultIfEmpty => return self.sequence_method(method, Value::Array(&[]), args, 0),
            Method::ToString if args.is_empty() => Value::Text(""),
            Method::GetValueOrDefault
            | Method::ParseInt
            | Method::ParseLong
            | Method::ParseDouble
            | Method::ParseDecimal => match args.first() {
                Some(default) => return self.eval(default),
                None if method == Method::GetValueOrDefault => target,
                None => Value::Long(0),
            },
            Method::Equals => {
                let other = self.eval(&args[0])?;
                Value::Bool(other.is_null())
            }
            Method::Boost => {
                let boost = self.eval(&args[0])?;
                let boost = Num::of(&boost).map_or(1.0, Num::as_f64) as f32;
                Value::Boosted(self.arena.alloc(Boosted { value: target, boost }))
            }
            _ => Value::Missing,
        })
    }

    fn as_string(&mut self, target: Value<'r>, args: &'r [Expr], line: u32) -> Step<Value<'r>> {
        let format = match args.first() {
            Some(format) => match self.eval(format)? {
                // A culture is no format.
                Value::Text("Invariant") | Value::Null | Value::Missing => "",
                Value::Text(format) => format,
                value => return Err(fault(format!("a format is text, not {}", kind_of(&value)), line)),
            },
            None => "",
        };
        if format.is_empty() {
            return self.text_of(target).map(Value::Text);
        }
        let text = format::with_format(&target, format).map_err(|message| fault(message, line))?;
        Ok(Value::Text(self.keep(&text)?))
    }

    fn parse_or_default(
        &mut self,
        method: Method,
        target: Value<'r>,
        args: &'r [Expr],
        line: u32,
    ) -> Step<Value<'r>> {
        let of = match method {
            Method::ParseInt => Type::Int,
            Method::ParseLong => Type::Long,
            Method::ParseDouble => Type::Double,
            _ => Type::Decimal,
        };
        let parsed = match target {
            Value::Text(text) => convert::parse_text(of, text.trim()),
            value if Num::of(&value).is_some() => Some(self.cast(of, false, value, line)?),
            _ => None,
        };
        match (parsed, args.first()) {
            (Some(value), _) => Ok(value),
            (None, Some(default)) => self.eval(default),
            (None, None) => self.cast(of, false, Value::Long(0), line),
        }
    }

    fn date_method(
        &mut self,
        method: Method,
        date: Date,
        args: &'r [Expr],
        line: u32,
    ) -> Step<Option<Value<'r>>> {
        let unit = match method {
            Method::AddDays => dates::DAY,
            Method::AddHours => dates::HOUR,
            Method::AddMinutes => dates::MINUTE,
            Method::AddSeconds => dates::SECOND,
            Method::AddMilliseconds => 10_000,
            Method::AddTicks => 1,
            Method::AddMonths | Method::AddYears => {
                let count = self.whole(&args[0], line)?;
                let months = if method == Method::AddYears { count.saturating_mul(12) } else { count };
                let moved = dates::add_months(date, months);
                return moved.map(|date| Some(Value::Date(date))).ok_or_else(|| out_of_range(line));
            }
            Method::Add | Method::Subtract => {
                let other = self.eval(&args[0])?;
                let operator = if method == Method::Add { Operator::Add } else { Operator::Subtract };
                return self.arithmetic(operator, Value::Date(date), other, line).map(Some);
            }
            Method::ToUniversalTime => {
                return Ok(Some(Value::Date(Date { ticks: date.utc_ticks(), zone: Zone::Utc })));
            }
            Method::ToLocalTime => return Ok(Some(Value::Date(date))),
            Method::Equals | Method::CompareTo => {
                let other = self.eval(&args[0])?;
                return Ok(Some(match method {
                    Method::Equals => Value::Bool(compare::same(&Value::Date(date), &other)),
                    _ => Value::Long(compare::sort_order(&Value::Date(date), &other) as i64),
                }));
            }
            _ => return Ok(None),
        };
        let count = self.eval(&args[0])?;
        let ticks = match Num::of(&count) {
            Some(Num::Long(count)) => count.checked_mul(unit),
            Some(number) => Some((number.as_f64() * unit as f64).round() as i64),
            None if count.is_null() => Some(0),
            None => {
                return Err(fault(
                    format!("'{}' needs a number, not {}", method.name(), kind_of(&count)),
                    line,
                ));
            }
        };
        ticks.and_then(|ticks| shifted(date, ticks)).map(Some).ok_or_else(|| out_of_range(line))
    }

    fn span_method(
        &mut self,
        method: Method,
        ticks: i64,
        args: &'r [Expr],
        line: u32,
    ) -> Step<Option<Value<'r>>> {
        Ok(Some(match method {
            Method::Add | Method::Subtract => {
                let other = self.eval(&args[0])?;
                let Some(other) = span_of(&other) else {
                    return Err(fault(
                        format!("'{}' needs a length of time, not {}", method.name(), kind_of(&other)),
                        line,
                    ));
                };
                Value::TimeSpan(if method == Method::Add {
                    ticks.wrapping_add(other)
                } else {
                    ticks.wrapping_sub(other)
                })
            }
            Method::Negate => Value::TimeSpan(ticks.wrapping_neg()),
            Method::Duration => Value::TimeSpan(ticks.wrapping_abs()),
            Method::Equals | Method::CompareTo => {
                let other = self.eval(&args[0])?;
                let other = span_of(&other);
                match method {
                    Method::Equals => Value::Bool(other == Some(ticks)),
                    _ => Value::Long(ticks.cmp(&other.unwrap_or(i64::MIN)) as i64),
                }
            }
            _ => return Ok(None),
        }))
    }
}

#[cold]
fn out_of_range(line: u32) -> super::Fault {
    fault("The added or subtracted value results in an un-representable DateTime.", line)
}
