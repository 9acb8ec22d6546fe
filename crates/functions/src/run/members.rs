//! Members of values: properties of objects, parts of dates, lengths; and indexing.

use jackdaw_document::{self as document, Number};

use super::{Run, Step, convert, dates, fault, kind_of};
use crate::input::Input;
use crate::program::Member;
use crate::value::Value;

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    /// `target.Name`. What has no members gives an error, what is missing or null gives missing.
    #[inline]
    pub(super) fn member(
        &mut self,
        target: Value<'r>,
        name: u32,
        known: Option<Member>,
        line: u32,
    ) -> Step<Value<'r>> {
        match target {
            Value::Document(input) => {
                let property = &self.properties[name as usize];
                if let Some(object) = input.document.object()
                    && let Some(value) = property.get(&object)
                {
                    if property.name() == "@metadata" {
                        return self.metadata(input);
                    }
                    return Ok(self.value_of(value));
                }
                self.absent_of_document(input, name)
            }
            Value::Json(document::Value::Object(object)) => {
                match self.properties[name as usize].get(object) {
                    Some(value) => Ok(self.value_of(value)),
                    None => Ok(self.absent(object.len(), known)),
                }
            }
            Value::Object(fields) => {
                let name: &str = &self.program.names[name as usize];
                match fields.iter().find(|(field, _)| *field == name) {
                    Some((_, value)) => Ok(*value),
                    None => Ok(self.absent(fields.len(), known)),
                }
            }
            Value::Group(group) => match known {
                Some(Member::Key) => Ok(group.key),
                Some(Member::Count | Member::Length) => Ok(Value::Long(group.elements.len() as i64)),
                _ => Err(self.no_member(&target, name, line)),
            },
            Value::Missing | Value::Null => Ok(match known {
                Some(Member::HasValue) => Value::Bool(false),
                _ => Value::Missing,
            }),
            _ => self.member_of_plain(target, name, known, line),
        }
    }

    /// A property that an object lacks; `Count` is how many it has.
    fn absent(&self, len: usize, known: Option<Member>) -> Value<'r> {
        match known {
            Some(Member::Count) => Value::Long(len as i64),
            _ => Value::Missing,
        }
    }

    #[cold]
    fn absent_of_document(&mut self, input: &'r Input<'r>, name: u32) -> Step<Value<'r>> {
        Ok(match &*self.program.names[name as usize] {
            "@metadata" => return self.metadata(input),
            "Id" => Value::Text(input.id),
            _ => Value::Missing,
        })
    }

    fn no_member(&self, target: &Value<'r>, name: u32, line: u32) -> super::Fault {
        let name = &self.program.names[name as usize];
        fault(format!("{} does not contain a definition for '{name}'", kind_of(target)), line)
    }

    #[inline(never)]
    fn member_of_plain(
        &mut self,
        target: Value<'r>,
        name: u32,
        known: Option<Member>,
        line: u32,
    ) -> Step<Value<'r>> {
        let Some(known) = known else { return Err(self.no_member(&target, name, line)) };
        let value = match (&target, known) {
            (Value::Date(date), known) => dates::part_of_date(*date, known),
            (Value::TimeSpan(ticks), known) => dates::part_of_span(*ticks, known),
            (Value::Text(text), Member::Length) => Some(Value::Long(super::texts::length(text))),
            (Value::Text(text), known) => match dates::parse_span(text) {
                Some(ticks) => dates::part_of_span(ticks, known),
                None => None,
            },
            (Value::Array(values), Member::Length | Member::Count) => Some(Value::Long(values.len() as i64)),
            (Value::Json(document::Value::Array(array)), Member::Length | Member::Count) => {
                Some(Value::Long(array.len() as i64))
            }
            (Value::Json(document::Value::Document(inner)), _) => {
                let root = self.arena.alloc(inner.root());
                return self.member(Value::Json(root), name, Some(known), line);
            }
            (_, Member::HasValue) => Some(Value::Bool(true)),
            _ => None,
        };
        match (value, known) {
            (Some(value), _) => Ok(value),
            // `((int?)x.A).Value`
            (None, Member::Value) => Ok(target),
            (None, Member::HasValue) => Ok(Value::Bool(true)),
            (None, _) => Err(self.no_member(&target, name, line)),
        }
    }

    /// `target[index]`.
    pub(super) fn index(&mut self, target: Value<'r>, index: Value<'r>, line: u32) -> Step<Value<'r>> {
        if target.is_null() {
            return Ok(Value::Missing);
        }
        let place = match index {
            Value::Long(place) => place,
            Value::Text(name) => return self.named(target, name, line),
            Value::Double(_) | Value::Decimal(_) | Value::Number(_) => convert::to_long(&index).unwrap_or(-1),
            Value::Null | Value::Missing => return Ok(Value::Missing),
            _ => return Err(fault(format!("{} is no index", kind_of(&index)), line)),
        };
        let found = match target {
            Value::Array(values) => usize::try_from(place).ok().and_then(|place| values.get(place)).copied(),
            Value::Group(group) => {
                usize::try_from(place).ok().and_then(|place| group.elements.get(place)).copied()
            }
            Value::Json(document::Value::Array(array)) => usize::try_from(place)
                .ok()
                .and_then(|place| array.get(place))
                .map(|value| self.value_of(value)),
            Value::Text(text) => super::texts::char_at(text, place)
                .map(|character| Value::Text(self.arena.alloc_str(character.encode_utf8(&mut [0; 4])))),
            // The keys of dictionaries are text in JSON.
            Value::Json(_) | Value::Object(_) | Value::Document(_) => {
                return self.named(target, self.keep(&place.to_string())?, line);
            }
            _ => return Err(fault(format!("{} cannot be indexed", kind_of(&target)), line)),
        };
        found.ok_or_else(|| {
            fault(
                format!(
                    "Specified argument was out of the range of valid values. (Parameter 'index'): {place}"
                ),
                line,
            )
        })
    }

    /// The value of a property whose name was computed.
    pub(super) fn named(&mut self, target: Value<'r>, name: &str, line: u32) -> Step<Value<'r>> {
        Ok(match target {
            Value::Document(input) => match (input.document.get(name), name) {
                (_, "@metadata") => return self.metadata(input),
                (Some(value), _) => self.value_of(value),
                (None, "Id") => Value::Text(input.id),
                (None, _) => Value::Missing,
            },
            Value::Json(value) => match (value.as_object(), value.get(name)) {
                (_, Some(value)) => self.value_of(value),
                (Some(_), None) => Value::Missing,
                _ => return Err(fault(format!("{} cannot be indexed by name", kind_of(&target)), line)),
            },
            Value::Object(fields) => {
                fields.iter().find(|(field, _)| *field == name).map_or(Value::Missing, |(_, value)| *value)
            }
            Value::Missing | Value::Null => Value::Missing,
            _ => return Err(fault(format!("{} cannot be indexed by name", kind_of(&target)), line)),
        })
    }

    /// A document's metadata with what is not stored in it: `@id`, `@last-modified`, `@change-vector`.
    pub(super) fn metadata(&mut self, input: &'r Input<'r>) -> Step<Value<'r>> {
        let mut fields: Vec<(&'r str, Value<'r>)> = Vec::new();
        if let Some(metadata) = input.document.get("@metadata").and_then(|value| value.as_object()) {
            for (name, value) in metadata.iter() {
                fields.push((self.text_in(&name), self.value_of(value)));
            }
        }
        let mut add = |name: &'r str, value: Value<'r>| {
            if !fields.iter().any(|(known, _)| *known == name) {
                fields.push((name, value));
            }
        };
        if !input.collection.is_empty() {
            add("@collection", Value::Text(input.collection));
        }
        add("@id", Value::Text(input.id));
        if !input.change_vector.is_empty() {
            add("@change-vector", Value::Text(input.change_vector));
        }
        if input.last_modified > 0 {
            let zone = document::date::Zone::Utc;
            add("@last-modified", Value::Date(document::date::Date { ticks: input.last_modified, zone }));
        }
        Ok(Value::Object(self.arena.alloc_slice_copy(&fields)))
    }

    /// A text of a document, in the arena if it is not in the document as it is.
    pub(super) fn text_in(&self, text: &document::Text<'r>) -> &'r str {
        match text.as_str() {
            Some(text) => text,
            None => self.arena.alloc_str(&text.to_str()),
        }
    }

    /// A value of a document. Text that is a whole date or length of time is one.
    #[inline]
    pub(super) fn value_of(&self, value: document::Value<'r>) -> Value<'r> {
        match value {
            document::Value::Text(text) => {
                let text = self.text_in(&text);
                match text.as_bytes().first() {
                    Some(b'0'..=b'9' | b'-') => self.value_of_time(text),
                    _ => Value::Text(text),
                }
            }
            document::Value::Number(Number::Integer(value)) => Value::Long(value),
            document::Value::Number(number) => Value::Number(self.arena.alloc(number)),
            document::Value::Null => Value::Null,
            document::Value::Bool(value) => Value::Bool(value),
            document::Value::Document(inner) => self.value_of_embedded(inner),
            value => Value::Json(self.arena.alloc(value)),
        }
    }

    fn value_of_time(&self, text: &'r str) -> Value<'r> {
        if let Some(date) = dates::date_of(text) {
            return Value::Date(date);
        }
        match dates::span_of(text) {
            Some(ticks) => Value::TimeSpan(ticks),
            None => Value::Text(text),
        }
    }

    #[cold]
    fn value_of_embedded(&self, inner: document::Document<'r>) -> Value<'r> {
        match inner.root() {
            value @ document::Value::Document(_) => Value::Json(self.arena.alloc(value)),
            value => self.value_of(value),
        }
    }
}
