//! Equality and hash by content.
//!
//! Two values are equal when they print the same once the properties of every object are sorted: the order of properties does not count, the spelling
//! of numbers does (`1.0` is not `1`), and neither mode, dictionary nor layout matter.

use std::hash::{Hash, Hasher};

use super::array::Array;
use super::document::Document;
use super::object::Object;
use super::value::{Number, Value};
use crate::format::DEPTH_MAX;
use crate::text::number;

impl PartialEq for Document<'_> {
    fn eq(&self, other: &Document<'_>) -> bool {
        // The same bytes need no walk, unless a dictionary is missing to one of them.
        (self.dictionary_id() == other.dictionary_id() && self.as_bytes() == other.as_bytes())
            || self.root() == other.root()
    }
}

impl PartialEq for Array<'_> {
    fn eq(&self, other: &Array<'_>) -> bool {
        self.len() == other.len()
            && self.iter().zip(other.iter()).all(|(left, right)| content_eq(&left, &right, 0))
    }
}

impl PartialEq for Object<'_> {
    fn eq(&self, other: &Object<'_>) -> bool {
        objects_eq(self, other, 0)
    }
}

fn content_eq(left: &Value<'_>, right: &Value<'_>, depth: u32) -> bool {
    if depth > DEPTH_MAX {
        // Damaged bytes only.
        return false;
    }
    let (left, right) = (unwrapped(left), unwrapped(right));
    match (&left, &right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Number(a), Value::Number(b)) => a == b,
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::Binary(a), Value::Binary(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len()
                && a.iter().zip(b.iter()).all(|(left, right)| content_eq(&left, &right, depth + 1))
        }
        (Value::Object(a), Value::Object(b)) => objects_eq(a, b, depth),
        _ => false,
    }
}

fn objects_eq(left: &Object<'_>, right: &Object<'_>, depth: u32) -> bool {
    if left.len() != right.len() {
        return false;
    }
    left.iter().enumerate().all(|(index, (name, value))| {
        // Most often the same name is in the same place.
        let other = match right.at_index(index) {
            Some((other, found)) if other == name => Some(found),
            _ => match name.as_str() {
                Some(name) => right.get(name),
                None => right.get(&name.to_str()),
            },
        };
        other.is_some_and(|other| content_eq(&value, &other, depth + 1))
    })
}

/// An embedded document counts as its root.
fn unwrapped<'a>(value: &Value<'a>) -> Value<'a> {
    match value {
        Value::Document(document) => document.root(),
        other => *other,
    }
}

impl Value<'_> {
    /// Whether the two have the same content, embedded documents counting as their roots.
    #[must_use]
    pub fn same_content(&self, other: &Value<'_>) -> bool {
        content_eq(self, other, 0)
    }

    /// A hash by content: equal content has equal hashes, whatever the order of properties.
    #[must_use]
    pub fn content_hash(&self) -> u64 {
        hash_value(self, 0)
    }
}

impl Document<'_> {
    /// A hash by content; see [`Value::content_hash`].
    #[must_use]
    pub fn content_hash(&self) -> u64 {
        self.root().content_hash()
    }
}

impl Hash for Document<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.content_hash());
    }
}

const K: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash.rotate_left(23) ^ word).wrapping_mul(K);
    hash ^ hash >> 32
}

fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let mut hash = mix(seed, bytes.len() as u64);
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        hash = mix(hash, crate::simd::word(chunk));
    }
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    mix(hash, u64::from_le_bytes(last))
}

fn hash_value(value: &Value<'_>, depth: u32) -> u64 {
    if depth > DEPTH_MAX {
        return 0;
    }
    match unwrapped(value) {
        Value::Null => mix(1, 0),
        Value::Bool(value) => mix(2, u64::from(value)),
        Value::Number(number) => hash_number(&number),
        Value::Text(text) => hash_bytes(4, &text.to_bytes()),
        Value::Binary(bytes) => hash_bytes(5, bytes),
        Value::Array(array) => array
            .iter()
            .fold(mix(6, array.len() as u64), |hash, value| mix(hash, hash_value(&value, depth + 1))),
        // A sum, so that the order does not count.
        Value::Object(object) => {
            let sum = object.iter().fold(0u64, |sum, (name, value)| {
                sum.wrapping_add(mix(hash_bytes(7, &name.to_bytes()), hash_value(&value, depth + 1)))
            });
            mix(mix(8, object.len() as u64), sum)
        }
        // `unwrapped` leaves none.
        Value::Document(_) => 0,
    }
}

fn hash_number(number: &Number<'_>) -> u64 {
    let mut text = Vec::new();
    match number {
        Number::Integer(value) => return mix(3, *value as u64),
        Number::Text(text) => {
            // As an integer, should it be one after all: equal numbers have equal hashes.
            return match number::parse_whole(text.as_bytes()) {
                Some(number::Parsed::Integer(value)) => mix(3, value as u64),
                _ => hash_bytes(3, text.as_bytes()),
            };
        }
        _ => number.append_to(&mut text),
    }
    hash_bytes(3, &text)
}
