//! Methods of text. Places count UTF-16 units, as .NET counts them; for ASCII text, which most is, these are bytes.

use jackdaw_document as document;

use super::list::List;
use super::numbers::Num;
use super::{Run, Step, compare, fault, kind_of};
use crate::program::{Expr, Method};
use crate::value::Value;

/// A computed text may be padded to this many characters.
const PAD_MAX: i64 = 100_000;

/// The length in UTF-16 units.
pub(super) fn length(text: &str) -> i64 {
    if text.is_ascii() { text.len() as i64 } else { text.encode_utf16().count() as i64 }
}

/// The character at a place.
pub(super) fn char_at(text: &str, place: i64) -> Option<char> {
    let at = byte_of(text, place)?;
    text[at..].chars().next()
}

/// The byte at which the UTF-16 unit `place` starts; in the middle of a pair, where the pair ends.
fn byte_of(text: &str, place: i64) -> Option<usize> {
    let place = usize::try_from(place).ok()?;
    if text.is_ascii() {
        return (place <= text.len()).then_some(place);
    }
    let mut units = 0;
    for (at, character) in text.char_indices() {
        if units >= place {
            return Some(at);
        }
        units += character.len_utf16();
    }
    (units >= place).then_some(text.len())
}

fn place_of(text: &str, byte: usize) -> i64 {
    length(&text[..byte])
}

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    /// Calls a method on a text. `None`: text has no such method.
    pub(super) fn text_method(
        &mut self,
        method: Method,
        text: &'r str,
        args: &'r [Expr],
        line: u32,
    ) -> Step<Option<Value<'r>>> {
        Ok(Some(match method {
            Method::ToLower | Method::ToLowerInvariant => Value::Text(self.lower(text)),
            Method::ToUpper | Method::ToUpperInvariant => {
                if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_lowercase()) {
                    Value::Text(text)
                } else {
                    Value::Text(self.keep(&text.to_uppercase())?)
                }
            }
            Method::Trim | Method::TrimStart | Method::TrimEnd => {
                let mut set = String::new();
                for arg in &args[1..] {
                    let value = self.eval(arg)?;
                    set.push_str(&self.characters(value)?);
                }
                let inside = |c: char| if set.is_empty() { c.is_whitespace() } else { set.contains(c) };
                Value::Text(match method {
                    Method::Trim => text.trim_matches(inside),
                    Method::TrimStart => text.trim_start_matches(inside),
                    _ => text.trim_end_matches(inside),
                })
            }
            Method::Substring => {
                let start = self.whole(&args[1], line)?;
                let beyond = || {
                    fault("startIndex cannot be larger than length of string. (Parameter 'startIndex')", line)
                };
                let from = byte_of(text, start).ok_or_else(beyond)?;
                let to = match args.get(2) {
                    None => text.len(),
                    Some(length) => {
                        let length = self.whole(length, line)?;
                        let beyond = || {
                            fault(
                                "Index and length must refer to a location within the string. (Parameter 'length')",
                                line,
                            )
                        };
                        byte_of(text, start.saturating_add(length))
                            .filter(|to| *to >= from)
                            .ok_or_else(beyond)?
                    }
                };
                Value::Text(&text[from..to])
            }
            Method::IndexOf | Method::LastIndexOf => {
                let sought = self.argument_text(&args[1], line)?;
                let (mut from, mut ignore_case) = (0, false);
                for arg in &args[2..] {
                    match self.eval(arg)? {
                        Value::Text(option) => ignore_case = option.ends_with("IgnoreCase"),
                        Value::Long(start) => from = start,
                        _ => {}
                    }
                }
                let start = byte_of(text, from)
                    .ok_or_else(|| fault("Index was out of range. (Parameter 'startIndex')", line))?;
                if ignore_case {
                    let (text, sought) = (self.lower(text), self.lower(sought));
                    let found = if method == Method::IndexOf {
                        text.get(start..).and_then(|rest| rest.find(sought)).map(|at| at + start)
                    } else {
                        text.rfind(sought)
                    };
                    Value::Long(found.map_or(-1, |at| place_of(text, at)))
                } else if method == Method::IndexOf {
                    Value::Long(text[start..].find(sought).map_or(-1, |at| place_of(text, at + start)))
                } else {
                    Value::Long(text.rfind(sought).map_or(-1, |at| place_of(text, at)))
                }
            }
            Method::Contains | Method::StartsWith | Method::EndsWith => {
                let sought = self.argument_text(&args[1], line)?;
                let ignore_case = match args.get(2) {
                    Some(option) => {
                        matches!(self.eval(option)?, Value::Text(option) if option.ends_with("IgnoreCase"))
                    }
                    None => false,
                };
                let (text, sought) =
                    if ignore_case { (self.lower(text), self.lower(sought)) } else { (text, sought) };
                Value::Bool(match method {
                    Method::Contains => text.contains(sought),
                    Method::StartsWith => text.starts_with(sought),
                    _ => text.ends_with(sought),
                })
            }
            Method::Replace => {
                let sought = self.argument_text(&args[1], line)?;
                let by = self.eval(&args[2])?;
                let by = self.text_of(by)?;
                if sought.is_empty() {
                    return Err(fault("String cannot be of zero length. (Parameter 'oldValue')", line));
                }
                let times = text.matches(sought).count();
                self.check_memory(text.len().saturating_add(times.saturating_mul(by.len())))?;
                if times == 0 {
                    Value::Text(text)
                } else {
                    Value::Text(self.keep(&text.replace(sought, by))?)
                }
            }
            Method::Split => self.split(text, args)?,
            Method::PadLeft | Method::PadRight => {
                let width = self.whole(&args[1], line)?.clamp(0, PAD_MAX);
                let filler = match args.get(2) {
                    Some(filler) => {
                        let value = self.eval(filler)?;
                        self.characters(value)?.chars().next().unwrap_or(' ')
                    }
                    None => ' ',
                };
                let missing = (width - length(text)).max(0) as usize;
                let padding: String = std::iter::repeat_n(filler, missing).collect();
                Value::Text(self.keep(&if method == Method::PadLeft {
                    padding + text
                } else {
                    format!("{text}{padding}")
                })?)
            }
            Method::Insert => {
                let place = self.whole(&args[1], line)?;
                let more = self.argument_text(&args[2], line)?;
                let at = byte_of(text, place)
                    .ok_or_else(|| fault("Index was out of range. (Parameter 'startIndex')", line))?;
                Value::Text(self.keep(&format!("{}{more}{}", &text[..at], &text[at..]))?)
            }
            Method::Remove => {
                let start = self.whole(&args[1], line)?;
                let beyond = || fault("Index was out of range. (Parameter 'startIndex')", line);
                let from = byte_of(text, start).ok_or_else(beyond)?;
                let to = match args.get(2) {
                    None => text.len(),
                    Some(count) => {
                        let count = self.whole(count, line)?;
                        byte_of(text, start.saturating_add(count))
                            .filter(|to| *to >= from)
                            .ok_or_else(beyond)?
                    }
                };
                Value::Text(self.keep(&format!("{}{}", &text[..from], &text[to..]))?)
            }
            Method::ToCharArray => Value::Array(self.chars(text)),
            Method::CompareTo => {
                let other = self.argument_text(&args[1], line)?;
                Value::Long(compare::ordinal(text, other) as i64)
            }
            Method::Equals => {
                let other = self.eval(&args[1])?;
                let ignore_case = match args.get(2) {
                    Some(option) => {
                        matches!(self.eval(option)?, Value::Text(option) if option.ends_with("IgnoreCase"))
                    }
                    None => false,
                };
                Value::Bool(match other {
                    Value::Text(other) if ignore_case => self.lower(text) == self.lower(other),
                    other => compare::same(&Value::Text(text), &other),
                })
            }
            _ => return Ok(None),
        }))
    }

    pub(super) fn lower(&self, text: &'r str) -> &'r str {
        if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
            text
        } else if text.is_ascii() {
            let copy = self.arena.alloc_str(text);
            copy.make_ascii_lowercase();
            copy
        } else {
            self.arena.alloc_str(&text.to_lowercase())
        }
    }

    /// The text's characters, each a text.
    pub(super) fn chars(&self, text: &'r str) -> &'r [Value<'r>] {
        let mut list = List::with_room(self.arena, text.len());
        for (at, character) in text.char_indices() {
            list.push(Value::Text(&text[at..at + character.len_utf8()]));
        }
        list.done()
    }

    /// Characters given as a text or as an array of such.
    fn characters(&mut self, value: Value<'r>) -> Step<String> {
        let mut out = String::new();
        if let Value::Array(values) = value {
            for value in values {
                out.push_str(self.text_of(*value)?);
            }
        } else {
            out.push_str(self.text_of(value)?);
        }
        Ok(out)
    }

    fn split(&mut self, text: &'r str, args: &'r [Expr]) -> Step<Value<'r>> {
        let mut separators: Vec<&'r str> = Vec::new();
        let (mut drop_empty, mut trim, mut most) = (false, false, usize::MAX);
        for arg in &args[1..] {
            match self.eval(arg)? {
                Value::Text("RemoveEmptyEntries") => drop_empty = true,
                Value::Text("TrimEntries") => trim = true,
                Value::Text("None") if args.len() > 2 => {}
                Value::Text(separator) => separators.push(separator),
                Value::Long(count) => most = usize::try_from(count).unwrap_or(0).max(1),
                value => {
                    for value in self.iterate(value, 0)? {
                        separators.push(self.text_of(value)?);
                    }
                }
            }
        }
        separators.retain(|separator| !separator.is_empty());
        let mut list = List::new(self.arena);
        let mut rest = text;
        loop {
            let found = if list.len() + 1 >= most {
                None
            } else if separators.is_empty() {
                rest.char_indices().find(|(_, c)| c.is_whitespace()).map(|(at, c)| (at, c.len_utf8()))
            } else {
                // The first separator in the text; of those at one place the first that was given.
                separators
                    .iter()
                    .filter_map(|separator| rest.find(separator).map(|at| (at, separator.len())))
                    .min_by_key(|(at, _)| *at)
            };
            let part = found.map_or(rest, |(at, _)| &rest[..at]);
            let part = if trim { part.trim() } else { part };
            if !(drop_empty && part.is_empty()) {
                self.step()?;
                list.push(Value::Text(part));
            }
            match found {
                Some((at, len)) => rest = &rest[at + len..],
                None => return Ok(Value::Array(list.done())),
            }
        }
    }

    /// An argument that is a whole number.
    pub(super) fn whole(&mut self, arg: &'r Expr, line: u32) -> Step<i64> {
        let value = self.eval(arg)?;
        match Num::of(&value) {
            Some(number) => Ok(number.as_i64()),
            None if value.is_null() => Ok(0),
            None => Err(fault(format!("a number is expected, not {}", kind_of(&value)), line)),
        }
    }

    /// An argument that is text.
    pub(super) fn argument_text(&mut self, arg: &'r Expr, line: u32) -> Step<&'r str> {
        match self.eval(arg)? {
            Value::Text(text) => Ok(text),
            value @ (Value::Missing | Value::Null) => self.text_of(value),
            value @ (Value::Date(_) | Value::TimeSpan(_)) => self.text_of(value),
            Value::Json(document::Value::Text(text)) => Ok(self.text_in(text)),
            value => Err(fault(format!("a string is expected, not {}", kind_of(&value)), line)),
        }
    }
}
