//! Properties of documents, objects, arrays and texts.

use bumpalo::Bump;
use jackdaw_document as document;

use super::super::{Run, Step};
use super::{arrays, declined, operators, texts};
use crate::value::Value;

/// A document's metadata.
const METADATA: &str = "@metadata";

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    /// A value of a document as scripts see it: a number is a double.
    #[inline]
    pub(super) fn read(&self, value: document::Value<'r>) -> Value<'r> {
        match value {
            document::Value::Text(text) => Value::Text(self.text_in(&text)),
            document::Value::Number(number) => Value::Double(number.as_f64()),
            document::Value::Null => Value::Null,
            document::Value::Bool(value) => Value::Bool(value),
            document::Value::Document(inner) => self.read(inner.root()),
            document::Value::Binary(_) => {
                Value::Text(self.arena.alloc_str(&value.as_str().unwrap_or_default()))
            }
            value => Value::Json(self.arena.alloc(value)),
        }
    }

    /// A property by a name of the program.
    #[inline]
    pub(super) fn property(&mut self, target: Value<'r>, name: u32) -> Step<Value<'r>> {
        let found = match target {
            Value::Document(input) => match input.document.object() {
                Some(object) => self.properties[name as usize].get(&object),
                None => return Err(declined()),
            },
            Value::Json(document::Value::Object(object)) => self.properties[name as usize].get(object),
            Value::Object(fields) => {
                let name: &str = &self.program.names[name as usize];
                let found = fields.iter().find(|(field, _)| *field == name);
                return Ok(found.map_or(Value::Missing, |(_, value)| *value));
            }
            target => {
                let name: &str = &self.program.names[name as usize];
                return length_of(&target).filter(|_| name == "length").ok_or_else(declined);
            }
        };
        Ok(found.map_or(Value::Missing, |value| self.read(value)))
    }

    /// A property by a name that was computed.
    pub(super) fn computed_property(&mut self, target: Value<'r>, key: Value<'r>) -> Step<Value<'r>> {
        if operators::is_object(&key) {
            return Err(declined());
        }
        if let Some(items) = arrays::Items::of(&target) {
            return match place_of(&key)? {
                Some(place) => Ok(self.item_at(&items, place)),
                None if matches!(key, Value::Text("length")) => Ok(Value::Double(items.len() as f64)),
                None => Err(declined()),
            };
        }
        if let Value::Text(text) = target {
            return match place_of(&key)? {
                Some(place) => Ok(texts::unit(text, place)?.map_or(Value::Missing, Value::Text)),
                None if matches!(key, Value::Text("length")) => Ok(Value::Double(texts::length(text) as f64)),
                None => Err(declined()),
            };
        }
        let name = self.script_text(key)?;
        match self.own_property(&target, name)? {
            Some(value) => Ok(value),
            None if texts::is_object_name(name) => Err(declined()),
            None => Ok(Value::Missing),
        }
    }

    /// A property that an object has itself.
    fn own_property(&mut self, target: &Value<'r>, name: &str) -> Step<Option<Value<'r>>> {
        let found = match target {
            // What is in it depends on whether the script asked for it.
            Value::Document(_) if name == METADATA => return Err(declined()),
            Value::Document(input) => input.document.object().ok_or_else(declined)?.get(name),
            Value::Json(document::Value::Object(object)) => object.get(name),
            Value::Object(fields) => {
                return Ok(fields.iter().find(|(field, _)| *field == name).map(|(_, value)| *value));
            }
            _ => return Err(declined()),
        };
        Ok(found.map(|value| self.read(value)))
    }

    /// Whether an object has a property itself.
    pub(super) fn has_own(&mut self, target: &Value<'r>, key: Value<'r>) -> Step<bool> {
        let name = self.script_text(key)?;
        Ok(self.own_property(target, name)?.is_some())
    }

    /// `key in target`.
    pub(super) fn is_in(&mut self, key: Value<'r>, target: Value<'r>) -> Step<Value<'r>> {
        let name = self.script_text(key)?;
        let has = self.own_property(&target, name)?.is_some();
        if !has && texts::is_object_name(name) {
            return Err(declined());
        }
        Ok(Value::Bool(has))
    }

    /// The properties of an object or document in the order in which scripts see them: those whose names are places first.
    pub(super) fn properties_of(&mut self, value: &Value<'r>) -> Step<&'r [(&'r str, Value<'r>)]> {
        let object = match value {
            Value::Object(fields) => return Ok(fields),
            // With metadata that was asked for, it has more than is stored.
            Value::Document(_) if self.program.reads_metadata => return Err(declined()),
            Value::Document(input) => input.document.object(),
            Value::Json(document::Value::Object(object)) => Some(*object),
            _ => None,
        };
        let object = object.ok_or_else(declined)?;
        self.charge(object.len())?;
        let mut fields: Vec<(&'r str, Value<'r>)> = Vec::with_capacity(object.len());
        for (name, value) in object.iter() {
            fields.push((self.text_in(&name), self.read(value)));
        }
        Ok(in_order(self.arena, fields))
    }

    /// Reads from a document whose metadata is told.
    pub(super) fn metadata_of(&mut self, value: &Value<'r>) -> Step<Value<'r>> {
        let Value::Document(input) = value else { return Err(declined()) };
        let stored = match input.document.get(METADATA) {
            None | Some(document::Value::Null) => Value::Missing,
            Some(value @ document::Value::Object(_)) => self.read(value),
            Some(_) => return Err(declined()),
        };
        let mut fields = match stored {
            Value::Missing => Vec::new(),
            stored => self.properties_of(&stored)?.to_vec(),
        };
        let mut add = |name: &'r str, text: &'r str| {
            if !fields.iter().any(|(known, _)| *known == name) {
                fields.push((name, Value::Text(text)));
            }
        };
        if !input.change_vector.is_empty() {
            add("@change-vector", input.change_vector);
        }
        add("@id", input.id);
        if input.last_modified > 0 {
            let text = crate::javascript::date_text(input.last_modified);
            add("@last-modified", self.arena.alloc_str(&text));
        }
        Ok(Value::Object(self.arena.alloc_slice_copy(&fields)))
    }
}

fn length_of<'r>(value: &Value<'r>) -> Option<Value<'r>> {
    match value {
        Value::Text(text) => Some(Value::Double(texts::length(text) as f64)),
        value => arrays::Items::of(value).map(|items| Value::Double(items.len() as f64)),
    }
}

/// The place that a key of an array is; `None` for a name. Numbers that are no places name nothing: they are places beyond all.
fn place_of(key: &Value<'_>) -> Step<Option<f64>> {
    match key {
        Value::Double(place) if place.fract() == 0.0 && *place >= 0.0 => Ok(Some(*place)),
        Value::Double(_) => Ok(Some(f64::INFINITY)),
        Value::Text(text) => Ok(array_index(text).map(f64::from)),
        _ => Err(declined()),
    }
}

/// The place that a name is, as arrays have them: `0`, `17`, but not `017`.
fn array_index(name: &str) -> Option<u32> {
    let bytes = name.as_bytes();
    let plausible = matches!(bytes.first(), Some(b'0'..=b'9')) && (bytes.len() == 1 || bytes[0] != b'0');
    if !plausible || bytes.len() > 10 || !bytes.iter().all(u8::is_ascii_digit) {
        return None;
    }
    name.parse().ok().filter(|place| *place != u32::MAX)
}

/// Properties in the order of scripts.
pub(super) fn in_order<'r>(
    arena: &'r Bump,
    mut fields: Vec<(&'r str, Value<'r>)>,
) -> &'r [(&'r str, Value<'r>)] {
    if fields.iter().any(|(name, _)| array_index(name).is_some()) {
        fields.sort_by_key(|(name, _)| array_index(name).map_or(u64::MAX, u64::from));
    }
    arena.alloc_slice_copy(&fields)
}
