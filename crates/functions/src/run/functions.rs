//! Functions that belong to no value: those of RavenDB, and those of .NET's static classes.

use jackdaw_document as document;
use jackdaw_document::date::{Date, Zone};
use rust_decimal::prelude::ToPrimitive;
use rust_decimal::{Decimal, RoundingStrategy};

use super::list::List;
use super::numbers::Num;
use super::{Run, Step, compare, convert, dates, fault, format, kind_of};
use crate::input::Input;
use crate::program::{Expr, Function, Type};
use crate::value::{DynamicField, FieldIndexing, SpatialField, Value};

/// `Enumerable.Range` and `Repeat` make at most so many elements.
const RANGE_MAX: i64 = 1_000_000;

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    pub(super) fn function(&mut self, function: Function, args: &'r [Expr], line: u32) -> Step<Value<'r>> {
        match function {
            Function::ConcatText => {
                let mut out = String::new();
                for arg in args {
                    let value = self.eval(arg)?;
                    if args.len() == 1 && Run::is_sequence(&value) {
                        for value in self.iterate(value, line)? {
                            out.push_str(self.text_of(value)?);
                        }
                    } else {
                        out.push_str(self.text_of(value)?);
                    }
                    self.check_memory(out.len())?;
                }
                Ok(Value::Text(self.keep(&out)?))
            }
            Function::Recurse => self.recurse(args, line),
            Function::JoinText => self.join_text(args, line),
            Function::Format => {
                let format = self.argument_text(&args[0], line)?;
                let mut values = Vec::with_capacity(args.len());
                for arg in &args[1..] {
                    values.push(self.eval(arg)?);
                }
                // An array as the one argument is the arguments.
                if let [Value::Array(inner)] = values[..] {
                    values = inner.to_vec();
                }
                let text = format::composite(format, &values).map_err(|message| fault(message, line))?;
                Ok(Value::Text(self.keep(&text)?))
            }
            Function::Round => self.round(args, line),
            Function::NewDate => self.new_date(args, line),
            Function::NewTimeSpan => self.new_span(args, line),
            Function::CreateField => self.create_field(args, line),
            Function::RegexIsMatch(_)
            | Function::RegexMatch(_)
            | Function::RegexMatches(_)
            | Function::RegexReplace(_)
            | Function::RegexSplit(_) => self.regex(function, args, line),
            _ => {
                let first = args.first().map_or(Ok(Value::Missing), |arg| self.eval(arg))?;
                let second = args.get(1).map_or(Ok(Value::Missing), |arg| self.eval(arg))?;
                self.function_of(function, first, second, args, line)
            }
        }
    }

    /// Functions of one or two values.
    fn function_of(
        &mut self,
        function: Function,
        first: Value<'r>,
        second: Value<'r>,
        args: &'r [Expr],
        line: u32,
    ) -> Step<Value<'r>> {
        match function {
            Function::Id => self.id(first),
            Function::Metadata => match first {
                Value::Document(input) => self.metadata(input),
                Value::Json(_) | Value::Object(_) => self.named(first, "@metadata", line),
                Value::Missing | Value::Null => Ok(Value::Missing),
                _ => Err(fault(format!("MetadataFor needs a document, not {}", kind_of(&first)), line)),
            },
            Function::AsJson => Ok(first),
            Function::LoadDocument | Function::LoadUntracked => {
                let tracked = function == Function::LoadDocument;
                self.load(first, second.as_text(), tracked, line)
            }
            Function::LoadCompareExchange => self.compare_exchange(first, line),
            Function::CreateSpatialField => self.spatial(first, second, args.len(), line),
            Function::AttachmentsFor => self.metadata_list(first, "@attachments"),
            Function::CounterNamesFor => self.metadata_list(first, "@counters"),
            Function::TimeSeriesNamesFor => self.metadata_list(first, "@timeseries"),
            Function::LoadAttachment => self.attachment(first, second, line),
            Function::LoadAttachments => self.attachments(first, line),
            Function::InCollections => {
                let Value::Document(input) = first else { return Ok(Value::Bool(false)) };
                for arg in &args[1..] {
                    let name = self.argument_text(arg, line)?;
                    if name.eq_ignore_ascii_case(input.collection) {
                        return Ok(first);
                    }
                }
                Ok(Value::Missing)
            }
            Function::IsNullOrEmpty => Ok(Value::Bool(match first {
                Value::Text(text) => text.is_empty(),
                value => value.is_null(),
            })),
            Function::IsNullOrWhiteSpace => Ok(Value::Bool(match first {
                Value::Text(text) => text.trim().is_empty(),
                value => value.is_null(),
            })),
            Function::CompareText | Function::CompareOrdinal => {
                let (a, b) = (self.text_of(first)?, self.text_of(second)?);
                let ignore_case = match args.get(2) {
                    Some(option) => match self.eval(option)? {
                        Value::Bool(ignore) => ignore,
                        Value::Text(option) => option.ends_with("IgnoreCase"),
                        _ => false,
                    },
                    None => false,
                };
                let (a, b) = if ignore_case { (self.lower(a), self.lower(b)) } else { (a, b) };
                Ok(Value::Long(compare::ordinal(a, b) as i64))
            }
            Function::EqualsStatic => {
                let ignore_case = match args.get(2) {
                    Some(option) => {
                        matches!(self.eval(option)?, Value::Text(option) if option.ends_with("IgnoreCase"))
                    }
                    None => false,
                };
                Ok(Value::Bool(match (first, second) {
                    (Value::Text(a), Value::Text(b)) if ignore_case => self.lower(a) == self.lower(b),
                    (a, b) => compare::same(&a, &b),
                }))
            }
            Function::ParseDate | Function::ParseTimeSpan => {
                if first.is_null() {
                    return Ok(first);
                }
                let to = if function == Function::ParseDate { Type::Date } else { Type::TimeSpan };
                self.cast(to, false, first, line)
            }
            Function::FromDays
            | Function::FromHours
            | Function::FromMinutes
            | Function::FromSeconds
            | Function::FromMilliseconds
            | Function::FromTicks => {
                let unit = match function {
                    Function::FromDays => dates::DAY,
                    Function::FromHours => dates::HOUR,
                    Function::FromMinutes => dates::MINUTE,
                    Function::FromSeconds => dates::SECOND,
                    Function::FromMilliseconds => 10_000,
                    _ => 1,
                };
                match self.number(first, line)? {
                    None => Ok(Value::Missing),
                    Some(Num::Long(count)) => Ok(Value::TimeSpan(count.saturating_mul(unit))),
                    Some(number) => Ok(Value::TimeSpan((number.as_f64() * unit as f64) as i64)),
                }
            }
            Function::DaysInMonth => match (self.number(first, line)?, self.number(second, line)?) {
                (Some(year), Some(month)) if (1..=12).contains(&month.as_i64()) => {
                    Ok(Value::Long(dates::days_in_month(year.as_i64(), month.as_i64())))
                }
                (Some(_), Some(_)) => Err(fault("Month must be between one and twelve.", line)),
                _ => Ok(Value::Missing),
            },
            Function::IsLeapYear => Ok(self
                .number(first, line)?
                .map_or(Value::Missing, |year| Value::Bool(dates::is_leap(year.as_i64())))),
            Function::GuidParse => match first {
                Value::Text(text) if convert::is_guid(text) => Ok(Value::Text(self.lower(text))),
                value if value.is_null() => Ok(value),
                _ => Err(fault("Unrecognized Guid format.", line)),
            },
            Function::Parse(of) => self.parse(of, first, line),
            Function::Convert(to) => self.convert(to, first, line),
            Function::IsDigit
            | Function::IsLetter
            | Function::IsLetterOrDigit
            | Function::IsUpper
            | Function::IsLower
            | Function::IsWhiteSpace => {
                let Some(character) = first.as_text().and_then(|text| text.chars().next()) else {
                    return Ok(Value::Bool(false));
                };
                Ok(Value::Bool(match function {
                    Function::IsDigit => character.is_numeric(),
                    Function::IsLetter => character.is_alphabetic(),
                    Function::IsLetterOrDigit => character.is_alphanumeric(),
                    Function::IsUpper => character.is_uppercase(),
                    Function::IsLower => character.is_lowercase(),
                    _ => character.is_whitespace(),
                }))
            }
            Function::Range | Function::Repeat => {
                let count = self.number(second, line)?.map_or(0, Num::as_i64);
                if !(0..=RANGE_MAX).contains(&count) {
                    return Err(fault(
                        format!("a sequence may be made of 0 to {RANGE_MAX} elements, not {count}"),
                        line,
                    ));
                }
                self.check_memory(count as usize * size_of::<Value<'_>>())?;
                let start = self.number(first, line).ok().flatten().map_or(0, Num::as_i64);
                let mut list = List::with_room(self.arena, count as usize);
                for at in 0..count {
                    self.step()?;
                    list.push(if function == Function::Range {
                        Value::Long(start.wrapping_add(at))
                    } else {
                        first
                    });
                }
                Ok(Value::Array(list.done()))
            }
            _ => self.math(function, first, second, args.len(), line),
        }
    }

    /// The number that an argument is; `None` for null.
    fn number(&self, value: Value<'r>, line: u32) -> Step<Option<Num>> {
        match Num::of(&value) {
            Some(number) => Ok(Some(number)),
            None if value.is_null() => Ok(None),
            None => Err(fault(format!("a number is expected, not {}", kind_of(&value)), line)),
        }
    }

    fn math(
        &mut self,
        function: Function,
        first: Value<'r>,
        second: Value<'r>,
        args: usize,
        line: u32,
    ) -> Step<Value<'r>> {
        let Some(number) = self.number(first, line)? else { return Ok(first) };
        let other = if args > 1 { self.number(second, line)? } else { None };
        let double = number.as_f64();
        let other_double = other.map_or(f64::NAN, Num::as_f64);
        Ok(match function {
            Function::Abs => match number {
                Num::Long(value) => Value::Long(value.wrapping_abs()),
                Num::Decimal(value) => Value::Decimal(value.abs()),
                Num::Double(value) => Value::Double(value.abs()),
            },
            Function::Floor | Function::Ceiling | Function::Truncate => match (number, function) {
                (Num::Long(value), _) => Value::Long(value),
                (Num::Decimal(value), Function::Floor) => Value::Decimal(value.floor()),
                (Num::Decimal(value), Function::Ceiling) => Value::Decimal(value.ceil()),
                (Num::Decimal(value), _) => Value::Decimal(value.trunc()),
                (Num::Double(value), Function::Floor) => Value::Double(value.floor()),
                (Num::Double(value), Function::Ceiling) => Value::Double(value.ceil()),
                (Num::Double(value), _) => Value::Double(value.trunc()),
            },
            Function::MathMin | Function::MathMax => match other {
                None => first,
                Some(other) => {
                    let first_wins = match function {
                        Function::MathMin => number.compare(other).is_none_or(std::cmp::Ordering::is_le),
                        _ => number.compare(other).is_none_or(std::cmp::Ordering::is_ge),
                    };
                    if first_wins { first } else { second }
                }
            },
            Function::Sign => Value::Long(match number {
                Num::Long(value) => value.signum(),
                number => i64::from(number.as_f64() > 0.0) - i64::from(number.as_f64() < 0.0),
            }),
            Function::Pow => Value::Double(double.powf(other_double)),
            Function::Sqrt => Value::Double(double.sqrt()),
            Function::Exp => Value::Double(double.exp()),
            Function::Log if args > 1 => Value::Double(double.log(other_double)),
            Function::Log => Value::Double(double.ln()),
            Function::Log10 => Value::Double(double.log10()),
            Function::Sin => Value::Double(double.sin()),
            Function::Cos => Value::Double(double.cos()),
            Function::Tan => Value::Double(double.tan()),
            Function::Asin => Value::Double(double.asin()),
            Function::Acos => Value::Double(double.acos()),
            Function::Atan => Value::Double(double.atan()),
            Function::Atan2 => Value::Double(double.atan2(other_double)),
            Function::IsNan => Value::Bool(double.is_nan()),
            Function::IsInfinity => Value::Bool(double.is_infinite()),
            _ => return Err(fault("this function is not known", line)),
        })
    }

    /// `Math.Round(value[, digits][, mode])`: to even unless the mode says otherwise.
    fn round(&mut self, args: &'r [Expr], line: u32) -> Step<Value<'r>> {
        let value = self.eval(&args[0])?;
        let Some(number) = self.number(value, line)? else { return Ok(value) };
        let (mut digits, mut strategy) = (0u32, RoundingStrategy::MidpointNearestEven);
        for arg in &args[1..] {
            match self.eval(arg)? {
                Value::Text("AwayFromZero") => strategy = RoundingStrategy::MidpointAwayFromZero,
                Value::Text("ToZero") => strategy = RoundingStrategy::ToZero,
                Value::Text("ToNegativeInfinity") => strategy = RoundingStrategy::ToNegativeInfinity,
                Value::Text("ToPositiveInfinity") => strategy = RoundingStrategy::ToPositiveInfinity,
                Value::Text(_) => {}
                value => {
                    let places = self.number(value, line)?.map_or(0, Num::as_i64);
                    digits = u32::try_from(places)
                        .ok()
                        .filter(|places| *places <= 28)
                        .ok_or_else(|| fault("Rounding digits must be between 0 and 28, inclusive.", line))?;
                }
            }
        }
        Ok(match number {
            Num::Long(value) => Value::Long(value),
            Num::Decimal(value) => Value::Decimal(value.round_dp_with_strategy(digits, strategy)),
            Num::Double(value) => {
                let rounded = value
                    .to_string()
                    .parse::<Decimal>()
                    .ok()
                    .and_then(|exact| exact.round_dp_with_strategy(digits, strategy).to_f64());
                Value::Double(rounded.unwrap_or(value))
            }
        })
    }

    fn new_date(&mut self, args: &'r [Expr], line: u32) -> Step<Value<'r>> {
        let mut parts = [0i64; 7];
        let mut zone = Zone::Unspecified;
        for (at, arg) in args.iter().enumerate() {
            match self.eval(arg)? {
                Value::Text("Utc") => zone = Zone::Utc,
                Value::Text(_) => {}
                Value::Date(date) if args.len() == 1 => {
                    return self.cast(Type::DateOffset, false, Value::Date(date), line);
                }
                value => match self.number(value, line)? {
                    Some(number) => parts[at.min(6)] = number.as_i64(),
                    None => return Ok(Value::Missing),
                },
            }
        }
        let [year, month, day, hour, minute, second, millisecond] = parts;
        let ticks = match args.len() {
            0 => Some(0),
            1 => Some(year).filter(|ticks| (0..=document::date::TICKS_MAX).contains(ticks)),
            _ => dates::ticks_of(year, month, day).filter(|_| {
                (0..24).contains(&hour)
                    && (0..60).contains(&minute)
                    && (0..60).contains(&second)
                    && (0..1000).contains(&millisecond)
            }),
        };
        let ticks = ticks.ok_or_else(|| {
            fault("Year, Month, and Day parameters describe an un-representable DateTime.", line)
        })?;
        let clock = if args.len() < 2 {
            0
        } else {
            hour * dates::HOUR + minute * dates::MINUTE + second * dates::SECOND + millisecond * 10_000
        };
        Ok(Value::Date(Date { ticks: ticks + clock, zone }))
    }

    fn new_span(&mut self, args: &'r [Expr], line: u32) -> Step<Value<'r>> {
        let mut parts = Vec::with_capacity(args.len());
        for arg in args {
            let value = self.eval(arg)?;
            match self.number(value, line)? {
                Some(number) => parts.push(number.as_i64()),
                None => return Ok(Value::Missing),
            }
        }
        let units: &[i64] = match parts.len() {
            1 => &[1],
            3 => &[dates::HOUR, dates::MINUTE, dates::SECOND],
            _ => &[dates::DAY, dates::HOUR, dates::MINUTE, dates::SECOND, 10_000],
        };
        let ticks = parts
            .iter()
            .zip(units)
            .fold(0i64, |ticks, (part, unit)| ticks.saturating_add(part.saturating_mul(*unit)));
        Ok(Value::TimeSpan(ticks))
    }

    fn join_text(&mut self, args: &'r [Expr], line: u32) -> Step<Value<'r>> {
        let separator = self.eval(&args[0])?;
        let separator = self.text_of(separator)?;
        let mut out = String::new();
        let mut first = true;
        for arg in &args[1..] {
            let value = self.eval(arg)?;
            let parts = if args.len() == 2 && (Run::is_sequence(&value) || value.is_null()) {
                self.iterate(value, line)?
            } else {
                vec![value].into_iter()
            };
            for part in parts {
                self.step()?;
                if !first {
                    out.push_str(separator);
                }
                first = false;
                out.push_str(self.text_of(part)?);
                if out.len() > 4096 {
                    self.check_memory(out.len())?;
                }
            }
        }
        Ok(Value::Text(self.keep(&out)?))
    }

    /// The value and what the lambda makes of it, and so on: arrays are gone into, null ends a way, nothing is visited twice.
    fn recurse(&mut self, args: &'r [Expr], line: u32) -> Step<Value<'r>> {
        let Some(lambda) = args.get(1).and_then(super::sequences::as_lambda) else {
            return Err(fault("Recurse needs a lambda", line));
        };
        let start = self.eval(&args[0])?;
        let mut list = List::new(self.arena);
        let mut seen = super::sequences::Keys::new();
        let mut waiting = vec![start];
        while let Some(value) = waiting.pop() {
            self.step()?;
            if matches!(value, Value::Array(_) | Value::Group(_) | Value::Json(document::Value::Array(_))) {
                let mut inner: Vec<Value<'r>> = self.iterate(value, line)?.collect();
                inner.reverse();
                waiting.extend(inner);
            } else if !value.is_null() && seen.place(value).1 {
                list.push(value);
                let next = self.apply(lambda, value)?;
                waiting.push(next);
            }
        }
        Ok(Value::Array(list.done()))
    }

    fn id(&self, value: Value<'r>) -> Step<Value<'r>> {
        Ok(match value {
            Value::Document(input) => Value::Text(input.id),
            Value::Json(json) => json
                .get("@metadata")
                .and_then(|metadata| metadata.get("@id"))
                .map_or(Value::Missing, |id| self.value_of(id)),
            _ => Value::Missing,
        })
    }

    fn load(&mut self, id: Value<'r>, collection: Option<&str>, tracked: bool, line: u32) -> Step<Value<'r>> {
        match id {
            Value::Missing | Value::Null => Ok(Value::Missing),
            Value::Text("") => Ok(Value::Missing),
            Value::Text(id) => {
                let found = if tracked {
                    self.host.load_document(id, collection)
                } else {
                    self.host.load_untracked(id, collection)
                };
                Ok(match found.map_err(Box::new)? {
                    Some(input) => Value::Document(self.arena.alloc::<Input<'r>>(input)),
                    None => Value::Missing,
                })
            }
            Value::Array(_) | Value::Group(_) | Value::Json(document::Value::Array(_)) => {
                let mut list = List::new(self.arena);
                for id in self.iterate(id, line)? {
                    self.step()?;
                    if Run::is_sequence(&id) {
                        return Err(fault(
                            "LoadDocument may only be called with a string or an enumerable of them",
                            line,
                        ));
                    }
                    let loaded = self.load(id, collection, tracked, line)?;
                    list.push(loaded);
                }
                Ok(Value::Array(list.done()))
            }
            value => Err(fault(
                format!(
                    "LoadDocument may only be called with a string or an enumerable, but was called with {}",
                    kind_of(&value)
                ),
                line,
            )),
        }
    }

    fn compare_exchange(&mut self, key: Value<'r>, line: u32) -> Step<Value<'r>> {
        match key {
            Value::Missing | Value::Null => Ok(Value::Missing),
            Value::Text(key) => Ok(match self.host.compare_exchange(key).map_err(Box::new)? {
                Some(value) => self.value_of(value),
                None => Value::Missing,
            }),
            value if Run::is_sequence(&value) => {
                let mut list = List::new(self.arena);
                for key in self.iterate(value, line)? {
                    self.step()?;
                    let found = match key {
                        Value::Text(_) => self.compare_exchange(key, line)?,
                        _ => Value::Missing,
                    };
                    list.push(found);
                }
                Ok(Value::Array(list.done()))
            }
            value => {
                Err(fault(format!("LoadCompareExchangeValue needs a key, not {}", kind_of(&value)), line))
            }
        }
    }

    /// `CreateField(name, value[, stored[, analyzed]])` or with options.
    fn create_field(&mut self, args: &'r [Expr], line: u32) -> Step<Value<'r>> {
        let name = self.eval(&args[0])?;
        let name = self.text_of(name)?;
        let value = self.eval(&args[1])?;
        if name.is_empty() {
            return Ok(Value::Missing);
        }
        let mut field = DynamicField { name, value, stored: None, indexing: None, term_vector: None };
        for (place, arg) in args[2..].iter().enumerate() {
            match self.eval(arg)? {
                Value::Bool(stored) if place == 0 => field.stored = Some(stored),
                Value::Bool(analyzed) => {
                    field.indexing =
                        Some(if analyzed { FieldIndexing::Search } else { FieldIndexing::Default });
                }
                Value::Object(options) => {
                    for (option, value) in options {
                        match (*option, value.as_text()) {
                            ("Storage", Some(storage)) => field.stored = Some(storage == "Yes"),
                            ("Indexing", Some(indexing)) => {
                                field.indexing = Some(match indexing {
                                    "No" => FieldIndexing::No,
                                    "Search" => FieldIndexing::Search,
                                    "Exact" => FieldIndexing::Exact,
                                    _ => FieldIndexing::Default,
                                });
                            }
                            ("TermVector", Some(term_vector)) => field.term_vector = Some(term_vector),
                            _ => {}
                        }
                    }
                }
                Value::Missing | Value::Null => {}
                value => {
                    return Err(fault(format!("CreateField takes options, not {}", kind_of(&value)), line));
                }
            }
        }
        Ok(Value::Field(self.arena.alloc(field)))
    }

    fn spatial(&mut self, first: Value<'r>, second: Value<'r>, args: usize, line: u32) -> Step<Value<'r>> {
        let made = if args == 1 {
            match first {
                Value::Missing | Value::Null => return Ok(Value::Missing),
                value if Run::is_sequence(&value) => {
                    let mut list = List::new(self.arena);
                    for value in self.iterate(value, line)? {
                        let shape = self.spatial(value, Value::Missing, 1, line)?;
                        list.push(shape);
                    }
                    return Ok(Value::Array(list.done()));
                }
                value => SpatialField::Shape(self.text_of(value)?),
            }
        } else {
            let part = |value: Value<'r>| match value {
                Value::Text(text) => text.trim().parse::<f64>().ok().map(Num::Double),
                value => Num::of(&value),
            };
            match (part(first), part(second)) {
                (Some(latitude), Some(longitude)) => {
                    SpatialField::Point { latitude: latitude.as_f64(), longitude: longitude.as_f64() }
                }
                _ if first.is_null() || second.is_null() => return Ok(Value::Missing),
                _ => {
                    return Err(fault(
                        "CreateSpatialField needs a latitude and a longitude as numbers",
                        line,
                    ));
                }
            }
        };
        Ok(Value::Spatial(self.arena.alloc(made)))
    }

    /// A list in a document's metadata, such as the names of its counters.
    fn metadata_list(&mut self, document: Value<'r>, name: &str) -> Step<Value<'r>> {
        let Value::Document(input) = document else { return Ok(Value::Array(&[])) };
        let list = input.document.get("@metadata").and_then(|metadata| metadata.get(name));
        Ok(list.map_or(Value::Array(&[]), |list| self.value_of(list)))
    }

    fn attachment(&mut self, document: Value<'r>, name: Value<'r>, line: u32) -> Step<Value<'r>> {
        let (Value::Document(input), Value::Text(name)) = (document, name) else {
            if document.is_null() || name.is_null() {
                return Ok(Value::Missing);
            }
            return Err(fault("LoadAttachment needs a document and a name", line));
        };
        let Some(found) = self.host.attachment(input.id, name).map_err(Box::new)? else {
            return Ok(Value::Missing);
        };
        let fields = [
            ("Name", Value::Text(self.keep(found.name)?)),
            ("ContentType", Value::Text(self.keep(found.content_type)?)),
            ("Hash", Value::Text(self.keep(found.hash)?)),
            ("Size", Value::Long(found.content.len() as i64)),
        ];
        Ok(Value::Object(self.arena.alloc_slice_copy(&fields)))
    }

    fn attachments(&mut self, document: Value<'r>, line: u32) -> Step<Value<'r>> {
        let listed = self.metadata_list(document, "@attachments")?;
        let mut list = List::new(self.arena);
        for listed in self.iterate(listed, line)? {
            let name = self.named(listed, "Name", line)?;
            let found = self.attachment(document, name, line)?;
            list.push(found);
        }
        Ok(Value::Array(list.done()))
    }

    fn regex(&mut self, function: Function, args: &'r [Expr], line: u32) -> Step<Value<'r>> {
        let value = self.eval(&args[0])?;
        if value.is_null() {
            return Ok(Value::Missing);
        }
        let text = self.text_of(value)?;
        let number = match function {
            Function::RegexIsMatch(number)
            | Function::RegexMatch(number)
            | Function::RegexMatches(number)
            | Function::RegexReplace(number)
            | Function::RegexSplit(number) => number,
            _ => return Err(fault("this function is not known", line)),
        };
        let program = self.program;
        let Some(pattern) = program.patterns.get(number as usize) else {
            return Err(fault("this pattern is not known", line));
        };
        Ok(match function {
            Function::RegexIsMatch(_) => Value::Bool(pattern.is_match(text)),
            Function::RegexMatch(_) => self.captures(pattern.captures(text)),
            Function::RegexMatches(_) => {
                let mut list = List::new(self.arena);
                for captures in pattern.captures_iter(text) {
                    self.step()?;
                    let made = self.captures(Some(captures));
                    list.push(made);
                }
                Value::Array(list.done())
            }
            Function::RegexReplace(_) => {
                let by = self.eval(&args[1])?;
                let by = self.text_of(by)?;
                Value::Text(self.keep(&pattern.replace_all(text, by))?)
            }
            _ => {
                let mut list = List::new(self.arena);
                for part in pattern.split(text) {
                    self.step()?;
                    list.push(Value::Text(part));
                }
                Value::Array(list.done())
            }
        })
    }

    /// A match: whether there is one, its text and place, and its groups.
    fn captures(&self, captures: Option<regex::Captures<'r>>) -> Value<'r> {
        let fields = |found: Option<regex::Match<'r>>| {
            [
                ("Success", Value::Bool(found.is_some())),
                ("Value", Value::Text(found.map_or("", |found| found.as_str()))),
                ("Index", Value::Long(found.map_or(0, |found| found.start() as i64))),
                ("Length", Value::Long(found.map_or(0, |found| found.len() as i64))),
            ]
        };
        let mut groups = List::new(self.arena);
        for group in captures.iter().flat_map(|captures| captures.iter()) {
            groups.push(Value::Object(self.arena.alloc_slice_copy(&fields(group))));
        }
        let groups = Value::Array(groups.done());
        let whole = fields(captures.and_then(|captures| captures.get(0)));
        let mut all = whole.to_vec();
        all.push(("Groups", groups));
        Value::Object(self.arena.alloc_slice_copy(&all))
    }
}
