//! Texts as JavaScript sees them: in units of UTF-16. Where a method would cut a pair of units in two, the run is declined.

use std::cmp::Ordering;

use super::super::{Run, Step};
use super::{declined, numbers};
use crate::program::script::Method;
use crate::value::Value;

/// What every object inherits: such a name is not read from here when an object has no property of its own by it.
pub(crate) fn is_object_name(name: &str) -> bool {
    matches!(
        name,
        "constructor"
            | "toString"
            | "toLocaleString"
            | "valueOf"
            | "hasOwnProperty"
            | "isPrototypeOf"
            | "propertyIsEnumerable"
            | "__defineGetter__"
            | "__defineSetter__"
            | "__lookupGetter__"
            | "__lookupSetter__"
            | "__proto__"
    )
}

/// What `trim` takes away, and what may stand around a number.
pub(super) fn is_space(letter: char) -> bool {
    matches!(
        letter,
        '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{feff}'
    )
}

/// How texts are ordered: by their units.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    if left.is_ascii() || right.is_ascii() {
        // A unit of ASCII is less than any other, as its byte is.
        return left.as_bytes().cmp(right.as_bytes());
    }
    left.encode_utf16().cmp(right.encode_utf16())
}

/// How many units a text has.
pub(super) fn length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// The byte at which a unit begins. `None`: within a pair.
fn byte_of(text: &str, unit: usize) -> Option<usize> {
    let mut units = 0;
    for (byte, letter) in text.char_indices() {
        if units == unit {
            return Some(byte);
        }
        units += letter.len_utf16();
    }
    (units <= unit).then_some(text.len())
}

/// The units from one place to another.
pub(super) fn units(text: &str, from: usize, to: usize) -> Step<&str> {
    if from >= to {
        return Ok("");
    }
    if text.is_ascii() {
        return Ok(text.get(from.min(text.len())..to.min(text.len())).unwrap_or_default());
    }
    match (byte_of(text, from), byte_of(text, to)) {
        (Some(from), Some(to)) => Ok(&text[from..to]),
        _ => Err(declined()),
    }
}

/// The unit at a place, as text; `None` beyond the text.
pub(super) fn unit(text: &str, at: f64) -> Step<Option<&str>> {
    if at < 0.0 || at >= text.len() as f64 {
        return Ok(None);
    }
    let at = at as usize;
    let found = units(text, at, at + 1)?;
    Ok(Some(found).filter(|found| !found.is_empty()))
}

/// A place of a text counted in bytes as one counted in units.
fn unit_of(text: &str, byte: usize) -> f64 {
    length(&text[..byte]) as f64
}

/// Letters whose other case is the same everywhere: the differential test compares each with QuickJS.
fn is_plain_letter(letter: char) -> bool {
    // The final sigma depends on what stands around it.
    (letter as u32) < 0x250 && !matches!(letter, '\u{130}' | '\u{131}')
        || matches!(letter as u32, 0x400..=0x45f | 0x2000..=0x206f | 0x3040..=0x30ff | 0x4e00..=0x9fff | 0xac00..=0xd7a3)
}

/// A place counted from the end when it is negative, within the length.
pub(super) fn relative(place: f64, length: usize) -> usize {
    let length = length as f64;
    if place < 0.0 { (length + place).max(0.0) as usize } else { place.min(length) as usize }
}

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    /// A method of a text.
    pub(super) fn method_of_text(
        &mut self,
        text: &'r str,
        method: Method,
        args: &[Value<'r>],
    ) -> Step<Value<'r>> {
        self.charge(text.len() / 64)?;
        let first = args.first().copied().unwrap_or(Value::Missing);
        let second = args.get(1).copied().unwrap_or(Value::Missing);
        Ok(match method {
            Method::ToString => Value::Text(text),
            Method::ToLowerCase | Method::ToUpperCase => {
                if !text.is_ascii() && !text.chars().all(is_plain_letter) {
                    return Err(declined());
                }
                let is_lower = method == Method::ToLowerCase;
                if text.is_ascii()
                    && !text.bytes().any(|byte| match is_lower {
                        true => byte.is_ascii_uppercase(),
                        false => byte.is_ascii_lowercase(),
                    })
                {
                    return Ok(Value::Text(text));
                }
                let other = if is_lower { text.to_lowercase() } else { text.to_uppercase() };
                Value::Text(self.keep(&other)?)
            }
            Method::Trim => Value::Text(text.trim_matches(is_space)),
            Method::TrimStart => Value::Text(text.trim_start_matches(is_space)),
            Method::TrimEnd => Value::Text(text.trim_end_matches(is_space)),
            Method::Includes => Value::Bool(text.contains(self.script_text(first)?)),
            Method::StartsWith => Value::Bool(text.starts_with(self.script_text(first)?)),
            Method::EndsWith => Value::Bool(text.ends_with(self.script_text(first)?)),
            Method::IndexOf => {
                let found = text.find(self.script_text(first)?);
                Value::Double(found.map_or(-1.0, |byte| unit_of(text, byte)))
            }
            Method::LastIndexOf => {
                let found = text.rfind(self.script_text(first)?);
                Value::Double(found.map_or(-1.0, |byte| unit_of(text, byte)))
            }
            Method::Slice => {
                let length = length(text);
                let from = relative(self.script_integer(&first)?, length);
                let to = self.end_of(&second, length)?;
                Value::Text(units(text, from, to)?)
            }
            Method::Substring => {
                let length = length(text) as f64;
                let from = self.script_integer(&first)?.clamp(0.0, length);
                let to = match second {
                    Value::Missing => length,
                    second => self.script_integer(&second)?.clamp(0.0, length),
                };
                Value::Text(units(text, from.min(to) as usize, from.max(to) as usize)?)
            }
            Method::Substr => {
                let length = length(text);
                let from = relative(self.script_integer(&first)?, length);
                let count = match second {
                    Value::Missing => length as f64,
                    second => self.script_integer(&second)?.max(0.0),
                };
                let to = (from as f64 + count).min(length as f64) as usize;
                Value::Text(units(text, from, to)?)
            }
            Method::CharAt => {
                let at = self.script_integer(&first)?;
                Value::Text(unit(text, at)?.unwrap_or(""))
            }
            Method::At => {
                let at = self.script_integer(&first)?;
                let at = if at < 0.0 { length(text) as f64 + at } else { at };
                unit(text, at)?.map_or(Value::Missing, Value::Text)
            }
            Method::CharCodeAt => {
                let at = self.script_integer(&first)?;
                if at < 0.0 || at >= text.len() as f64 {
                    return Ok(Value::Double(f64::NAN));
                }
                let unit = match text.is_ascii() {
                    true => text.as_bytes().get(at as usize).map(|byte| u16::from(*byte)),
                    false => text.encode_utf16().nth(at as usize),
                };
                Value::Double(unit.map_or(f64::NAN, f64::from))
            }
            Method::Concat => {
                let mut joined = Value::Text(text);
                for other in args {
                    let other = self.script_text(*other)?;
                    joined = self.concatenate(joined, Value::Text(other))?;
                }
                joined
            }
            Method::Repeat => {
                let count = self.script_integer(&first)?;
                if !(0.0..=1e6).contains(&count) {
                    return Err(declined());
                }
                self.check_memory(text.len().saturating_mul(count as usize))?;
                Value::Text(self.keep(&text.repeat(count as usize))?)
            }
            Method::PadStart | Method::PadEnd => self.padded(text, method, first, second)?,
            Method::Replace | Method::ReplaceAll => {
                let (Value::Text(from), Value::Text(to)) = (first, second) else { return Err(declined()) };
                if to.contains('$') {
                    return Err(declined());
                }
                if from.is_empty() && !text.is_ascii() {
                    return Err(declined());
                }
                if method == Method::ReplaceAll {
                    self.check_memory((text.len() + 1).saturating_mul(to.len()))?;
                    Value::Text(self.keep(&text.replace(from, to))?)
                } else {
                    Value::Text(self.keep(&text.replacen(from, to, 1))?)
                }
            }
            Method::Split => self.split_text(text, first)?,
            _ => return Err(declined()),
        })
    }

    fn padded(
        &mut self,
        text: &'r str,
        method: Method,
        width: Value<'r>,
        filler: Value<'r>,
    ) -> Step<Value<'r>> {
        let width = self.script_integer(&width)?;
        let filler = match filler {
            Value::Missing => " ",
            filler => self.script_text(filler)?,
        };
        let missing = width - length(text) as f64;
        if missing <= 0.0 || filler.is_empty() {
            return Ok(Value::Text(text));
        }
        if missing > 1e6 || !filler.is_ascii() {
            return Err(declined());
        }
        let filling: String = filler.chars().cycle().take(missing as usize).collect();
        let padded =
            if method == Method::PadStart { format!("{filling}{text}") } else { format!("{text}{filling}") };
        Ok(Value::Text(self.keep(&padded)?))
    }

    fn split_text(&mut self, text: &'r str, separator: Value<'r>) -> Step<Value<'r>> {
        let separator = match separator {
            Value::Missing => return Ok(Value::Array(self.arena.alloc_slice_copy(&[Value::Text(text)]))),
            separator => self.script_text(separator)?,
        };
        let mut list = super::List::new(self.arena);
        if separator.is_empty() {
            if !text.is_ascii() {
                return Err(declined());
            }
            for at in 0..text.len() {
                self.step()?;
                list.push(Value::Text(&text[at..=at]));
            }
        } else {
            for part in text.split(separator) {
                self.step()?;
                list.push(Value::Text(part));
            }
        }
        Ok(Value::Array(list.done()))
    }

    /// The end of a slice.
    pub(super) fn end_of(&mut self, end: &Value<'r>, length: usize) -> Step<usize> {
        Ok(match end {
            Value::Missing => length,
            end => relative(self.script_integer(end)?, length),
        })
    }

    /// A method of a number.
    pub(super) fn method_of_number(
        &mut self,
        number: f64,
        method: Method,
        args: &[Value<'r>],
    ) -> Step<Value<'r>> {
        let text = match method {
            Method::ToString => numbers::text(number),
            Method::ToFixed => {
                let digits = match args.first() {
                    Some(digits) => self.script_integer(digits)?,
                    None => 0.0,
                };
                if !(0.0..=20.0).contains(&digits) {
                    return Err(declined());
                }
                numbers::fixed(number, digits as usize).ok_or_else(declined)?
            }
            _ => return Err(declined()),
        };
        Ok(Value::Text(self.keep(&text)?))
    }

    /// Counts steps of work that is done at once.
    pub(super) fn charge(&mut self, steps: usize) -> Step<()> {
        for _ in 0..steps.min(64) {
            self.step()?;
        }
        self.steps_left = self.steps_left.saturating_sub(steps.saturating_sub(64) as u64);
        Ok(())
    }
}
