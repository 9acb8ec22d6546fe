//! Arrays: those of documents, in place, and those that were computed. A text's methods are in `texts`.

use jackdaw_document as document;

use super::super::{Run, Step};
use super::{List, declined, numbers, operators, texts};
use crate::program::script::Method;
use crate::program::{Expr, Lambda};
use crate::value::Value;

/// How deep arrays may lie in each other to be joined.
const JOIN_DEPTH_MAX: u32 = 32;

/// The elements of an array.
#[derive(Clone, Copy)]
pub(super) enum Items<'r> {
    Slice(&'r [Value<'r>]),
    Array(&'r document::Array<'r>),
}

impl<'r> Items<'r> {
    /// Those of a value that is an array.
    #[inline]
    pub(super) fn of(value: &Value<'r>) -> Option<Items<'r>> {
        match value {
            Value::Array(values) => Some(Items::Slice(values)),
            Value::Json(document::Value::Array(array)) => Some(Items::Array(array)),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Items::Slice(values) => values.len(),
            Items::Array(array) => array.len(),
        }
    }
}

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    /// An element; undefined beyond the last.
    #[inline]
    pub(super) fn item(&self, items: &Items<'r>, at: usize) -> Value<'r> {
        match items {
            Items::Slice(values) => values.get(at).copied().unwrap_or(Value::Missing),
            Items::Array(array) => array.get(at).map_or(Value::Missing, |value| self.read(value)),
        }
    }

    /// An element by a place that was computed.
    pub(super) fn item_at(&self, items: &Items<'r>, at: f64) -> Value<'r> {
        if at >= 0.0 && at < items.len() as f64 { self.item(items, at as usize) } else { Value::Missing }
    }

    /// `target.method(args)`.
    pub(super) fn method(&mut self, target: Value<'r>, method: Method, args: &'r [Expr]) -> Step<Value<'r>> {
        if method.callback() > 0 {
            let items = Items::of(&target).ok_or_else(declined)?;
            let Some(Expr::Lambda(lambda)) = args.first() else { return Err(declined()) };
            return self.method_with_callback(items, method, lambda, args.get(1));
        }
        let values = self.arguments(args)?;
        match target {
            Value::Text(text) => self.method_of_text(text, method, values),
            Value::Double(number) => self.method_of_number(number, method, values),
            Value::Bool(value) if method == Method::ToString => {
                Ok(Value::Text(if value { "true" } else { "false" }))
            }
            target => match Items::of(&target) {
                Some(items) => self.method_of_array(target, items, method, values),
                None if method == Method::HasOwnProperty
                    && !self.has_own(&target, Value::Text("hasOwnProperty"))? =>
                {
                    let key = values.first().copied().unwrap_or(Value::Missing);
                    Ok(Value::Bool(self.has_own(&target, key)?))
                }
                None => Err(declined()),
            },
        }
    }

    /// The values of arguments.
    pub(super) fn arguments(&mut self, args: &'r [Expr]) -> Step<&'r [Value<'r>]> {
        let values = self.arena.alloc_slice_fill_copy(args.len(), Value::Missing);
        for (value, arg) in values.iter_mut().zip(args) {
            *value = self.eval(arg)?;
        }
        Ok(values)
    }

    /// A method of null or undefined.
    pub(super) fn method_of_nothing(&mut self, method: Method, args: &'r [Expr]) -> Step<Value<'r>> {
        let has_callback = method.callback() > 0;
        let values = self.arguments(if has_callback { args.get(1..).unwrap_or_default() } else { args })?;
        Ok(match method {
            Method::Map | Method::Filter => Value::Array(&[]),
            Method::Concat => {
                let mut list = List::new(self.arena);
                for value in values {
                    self.append_flat(&mut list, *value)?;
                }
                Value::Array(list.done())
            }
            Method::Some | Method::Includes => Value::Bool(false),
            Method::Every => Value::Bool(true),
            Method::Reduce => match values.first() {
                None | Some(Value::Missing) => Value::Null,
                Some(value) => *value,
            },
            _ => Value::Missing,
        })
    }

    fn append_flat(&mut self, list: &mut List<'r>, value: Value<'r>) -> Step<()> {
        match Items::of(&value) {
            Some(items) => {
                for at in 0..items.len() {
                    self.step()?;
                    list.push(self.item(&items, at));
                }
            }
            None => list.push(value),
        }
        Ok(())
    }

    fn method_with_callback(
        &mut self,
        items: Items<'r>,
        method: Method,
        lambda: &'r Lambda,
        start: Option<&'r Expr>,
    ) -> Step<Value<'r>> {
        if method == Method::Reduce {
            return self.reduce(items, lambda, start);
        }
        let mut list = match method {
            Method::Map => List::with_room(self.arena, items.len()),
            _ => List::new(self.arena),
        };
        for count in 0..items.len() {
            let at = if method == Method::FindLast { items.len() - 1 - count } else { count };
            let item = self.item(&items, at);
            let result = self.call_back(lambda, &[item, Value::Double(at as f64)])?;
            match method {
                Method::Map => list.push(result),
                Method::FlatMap => self.append_flat(&mut list, result)?,
                Method::ForEach => {}
                method => match (method, operators::is_truthy(&result)) {
                    (Method::Filter, true) => list.push(item),
                    (Method::Some, true) => return Ok(Value::Bool(true)),
                    (Method::Every, false) => return Ok(Value::Bool(false)),
                    (Method::Find | Method::FindLast, true) => return Ok(item),
                    (Method::FindIndex, true) => return Ok(Value::Double(at as f64)),
                    _ => {}
                },
            }
        }
        Ok(match method {
            Method::Map | Method::FlatMap | Method::Filter => Value::Array(list.done()),
            Method::Some => Value::Bool(false),
            Method::Every => Value::Bool(true),
            Method::FindIndex => Value::Double(-1.0),
            _ => Value::Missing,
        })
    }

    fn reduce(&mut self, items: Items<'r>, lambda: &'r Lambda, start: Option<&'r Expr>) -> Step<Value<'r>> {
        let (mut gathered, from) = match start {
            Some(start) => (self.eval(start)?, 0),
            // Without a first value an empty array has no result.
            None if items.len() == 0 => return Err(declined()),
            None => (self.item(&items, 0), 1),
        };
        for at in from..items.len() {
            let item = self.item(&items, at);
            gathered = self.call_back(lambda, &[gathered, item, Value::Double(at as f64)])?;
        }
        Ok(gathered)
    }

    fn method_of_array(
        &mut self,
        target: Value<'r>,
        items: Items<'r>,
        method: Method,
        args: &'r [Value<'r>],
    ) -> Step<Value<'r>> {
        let first = args.first().copied().unwrap_or(Value::Missing);
        let length = items.len();
        Ok(match method {
            Method::Includes => {
                let is_nan = |value: &Value<'_>| matches!(value, Value::Double(number) if number.is_nan());
                for at in 0..length {
                    self.step()?;
                    let item = self.item(&items, at);
                    if operators::is_same(&item, &first)? || is_nan(&item) && is_nan(&first) {
                        return Ok(Value::Bool(true));
                    }
                }
                Value::Bool(false)
            }
            Method::IndexOf | Method::LastIndexOf => {
                for count in 0..length {
                    self.step()?;
                    let at = if method == Method::IndexOf { count } else { length - 1 - count };
                    if operators::is_same(&self.item(&items, at), &first)? {
                        return Ok(Value::Double(at as f64));
                    }
                }
                Value::Double(-1.0)
            }
            Method::Slice => {
                let from = texts::relative(self.script_integer(&first)?, length);
                let end = args.get(1).copied().unwrap_or(Value::Missing);
                let to = self.end_of(&end, length)?;
                let mut list = List::new(self.arena);
                for at in from..to {
                    self.step()?;
                    list.push(self.item(&items, at));
                }
                Value::Array(list.done())
            }
            Method::Concat => {
                let mut list = List::new(self.arena);
                self.append_flat(&mut list, target)?;
                for value in args {
                    self.append_flat(&mut list, *value)?;
                }
                Value::Array(list.done())
            }
            Method::Flat => {
                let mut list = List::new(self.arena);
                for at in 0..length {
                    self.step()?;
                    let item = self.item(&items, at);
                    self.append_flat(&mut list, item)?;
                }
                Value::Array(list.done())
            }
            Method::At => {
                let at = self.script_integer(&first)?;
                self.item_at(&items, if at < 0.0 { length as f64 + at } else { at })
            }
            Method::Join => {
                let separator = match first {
                    Value::Missing => ",",
                    first => self.script_text(first)?,
                };
                Value::Text(self.join(&target, separator, 0)?)
            }
            Method::ToString => Value::Text(self.join(&target, ",", 0)?),
            _ => return Err(declined()),
        })
    }

    /// The elements of an array as one text.
    pub(super) fn join(&mut self, array: &Value<'r>, separator: &str, depth: u32) -> Step<&'r str> {
        if depth > JOIN_DEPTH_MAX {
            return Err(declined());
        }
        let items = Items::of(array).ok_or_else(declined)?;
        let mut out = String::new();
        for at in 0..items.len() {
            self.step()?;
            if at > 0 {
                out.push_str(separator);
            }
            match self.item(&items, at) {
                Value::Missing | Value::Null => {}
                Value::Text(text) => out.push_str(text),
                Value::Double(number) => out.push_str(&numbers::text(number)),
                item @ (Value::Array(_) | Value::Json(document::Value::Array(_))) => {
                    out.push_str(self.join(&item, ",", depth + 1)?);
                }
                item => out.push_str(self.script_text(item)?),
            }
            if out.len() > 4096 {
                self.check_memory(out.len())?;
            }
        }
        self.keep(&out)
    }

    /// `[a, ...b]`; whether an element is spread stands beside it.
    pub(super) fn spread(&mut self, elements: &'r [(Expr, bool)]) -> Step<Value<'r>> {
        let mut list = List::new(self.arena);
        for (element, is_spread) in elements {
            let value = self.eval(element)?;
            match (is_spread, value) {
                (false, value) => list.push(value),
                (true, Value::Text(text)) => {
                    for (at, letter) in text.char_indices() {
                        self.step()?;
                        list.push(Value::Text(&text[at..at + letter.len_utf8()]));
                    }
                }
                (true, value) if Items::of(&value).is_some() => self.append_flat(&mut list, value)?,
                _ => return Err(declined()),
            }
        }
        Ok(Value::Array(list.done()))
    }

    /// `groupBy(key).aggregate(result)`: the groups in the order of their first entries.
    pub(super) fn group_and_aggregate(&mut self, key: &'r Lambda, result: &'r Lambda) -> Step<Value<'r>> {
        let entries = Items::of(&self.source).ok_or_else(declined)?;
        let mut names: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
        let mut groups: Vec<(Value<'r>, List<'r>)> = Vec::new();
        let (mut name, mut last) = (String::new(), (String::new(), 0));
        for at in 0..entries.len() {
            let entry = self.item(&entries, at);
            let of_entry = self.call_back(key, &[entry])?;
            name.clear();
            self.write_key(&mut name, &of_entry, 0)?;
            // Mostly all entries are of one key.
            let place = if at > 0 && last.0 == name {
                last.1
            } else {
                let place = *names.entry(name.clone()).or_insert(groups.len());
                if place == groups.len() {
                    groups.push((of_entry, List::new(self.arena)));
                }
                last = (name.clone(), place);
                place
            };
            groups[place].1.push(entry);
        }
        let mut results = List::with_room(self.arena, groups.len());
        for (key, values) in groups {
            let group: &'r [(&'r str, Value<'r>)] =
                self.arena.alloc([("key", key), ("values", Value::Array(values.done()))]);
            let made = self.call_back(result, &[Value::Object(group)])?;
            results.push(made);
        }
        Ok(Value::Array(results.done()))
    }

    /// A key as text that is the same for the same keys, as that of `JSON.stringify` is.
    fn write_key(&mut self, out: &mut String, key: &Value<'r>, depth: u32) -> Step<()> {
        use std::fmt::Write as _;
        if depth > JOIN_DEPTH_MAX {
            return Err(declined());
        }
        self.step()?;
        match key {
            Value::Missing if depth == 0 => out.push_str("undefined"),
            Value::Missing | Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Double(number) if number.is_finite() => out.push_str(&numbers::text(*number)),
            Value::Double(_) => out.push_str("null"),
            // Quoted in another way than JSON does, which makes the same texts differ.
            Value::Text(text) => {
                let _ = write!(out, "{text:?}");
            }
            key => match Items::of(key) {
                Some(items) => {
                    out.push('[');
                    for at in 0..items.len() {
                        let item = self.item(&items, at);
                        self.write_key(out, &item, depth + 1)?;
                        out.push(',');
                    }
                    out.push(']');
                }
                None => {
                    out.push('{');
                    let fields = self.properties_of(key)?;
                    for (name, value) in fields {
                        if !matches!(value, Value::Missing) {
                            let _ = write!(out, "{name:?}:");
                            self.write_key(out, value, depth + 1)?;
                            out.push(',');
                        }
                    }
                    out.push('}');
                }
            },
        }
        Ok(())
    }
}
