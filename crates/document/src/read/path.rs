//! Paths into documents.
//!
//! ```text
//! path    = segment { "." segment | "[]" | "[" index "]" }
//! segment = name | "'" any text, ' doubled "'"
//! ```
//!
//! `Address.City` is the property `City` of the object `Address`; `Lines[].Product` is the property `Product` of every element of `Lines`; `Lines[0].Product` of the first one. A
//! name with a point or a bracket in it is quoted: `'a.b'.c`.

use super::value::Value;
use crate::error::{Error, Result};

/// A path, checked once and followed in many documents.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Name(Box<str>),
    Index(usize),
    Each,
}

impl Path {
    /// Reads a path. The empty path is the whole value.
    ///
    /// # Errors
    ///
    /// [`Error::Path`] with the offset.
    pub fn parse(path: &str) -> Result<Path> {
        let wrong = |offset, reason| Err(Error::Path { path: path.to_owned(), offset, reason });
        let bytes = path.as_bytes();
        let mut steps = Vec::new();
        let mut at = 0;
        // Whether a name may (after a point) or must stand here.
        let mut name_expected = !path.is_empty();
        while at < bytes.len() || name_expected {
            match bytes.get(at) {
                Some(b'[') if !name_expected || steps.is_empty() => {
                    let Some(len) = path[at..].find(']') else {
                        return wrong(at, "a closing bracket");
                    };
                    let inner = &path[at + 1..at + len];
                    steps.push(if inner.is_empty() {
                        Step::Each
                    } else {
                        match inner.parse() {
                            Ok(index) => Step::Index(index),
                            Err(_) => return wrong(at + 1, "an index or nothing between brackets"),
                        }
                    });
                    at += len + 1;
                    name_expected = false;
                }
                Some(b'.') if !name_expected => {
                    at += 1;
                    name_expected = true;
                }
                Some(b'\'') if name_expected => {
                    let mut name = String::new();
                    let mut rest = &path[at + 1..];
                    loop {
                        let Some(end) = rest.find('\'') else {
                            return wrong(at, "a closing quote");
                        };
                        name.push_str(&rest[..end]);
                        rest = &rest[end + 1..];
                        match rest.strip_prefix('\'') {
                            Some(after) => {
                                name.push('\'');
                                rest = after;
                            }
                            None => break,
                        }
                    }
                    at = path.len() - rest.len();
                    steps.push(Step::Name(name.into()));
                    name_expected = false;
                }
                Some(_) if name_expected => {
                    let len = path[at..].find(['.', '[']).unwrap_or(path.len() - at);
                    if len == 0 {
                        return wrong(at, "a name");
                    }
                    steps.push(Step::Name(path[at..at + len].into()));
                    at += len;
                    name_expected = false;
                }
                Some(_) => return wrong(at, "a point or a bracket"),
                None => return wrong(at, "a name"),
            }
        }
        Ok(Path { steps })
    }

    /// Whether the path leads to many values, by `[]`.
    #[must_use]
    pub fn is_many(&self) -> bool {
        self.steps.contains(&Step::Each)
    }

    /// The value at the path, the first one if there are many.
    #[must_use]
    pub fn first<'a>(&self, value: &Value<'a>) -> Option<Value<'a>> {
        let mut found = None;
        follow(&self.steps, *value, false, &mut |value| {
            found = Some(value);
            false
        });
        found
    }

    /// Gives each value at the path to `each`, in order, until it returns `false`. Allocates nothing.
    pub fn visit<'a>(&self, value: &Value<'a>, mut each: impl FnMut(Value<'a>) -> bool) {
        follow(&self.steps, *value, false, &mut each);
    }

    /// As [`Path::visit`], but goes through arrays also where the path has no `[]`: what includes and index fields mean by
    /// `Lines.Product` or by `Refs` when that is an array.
    pub fn visit_through_arrays<'a>(&self, value: &Value<'a>, mut each: impl FnMut(Value<'a>) -> bool) {
        follow(&self.steps, *value, true, &mut each);
    }

    /// Gives each value that a field of an automatic index holds. Arrays are gone through; what stands behind `[]` counts even
    /// where the rest of the path is missing: null for an object, the element itself for what is no object. A single object
    /// counts as its own element.
    pub fn visit_field<'a>(&self, value: &Value<'a>, mut each: impl FnMut(Value<'a>)) {
        follow_field(&self.steps, *value, &mut each);
    }
}

/// What fields of automatic indexes hold. Returns whether the path leads anywhere.
fn follow_field<'a>(steps: &[Step], value: Value<'a>, each: &mut impl FnMut(Value<'a>)) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        each(value);
        return true;
    };
    match (step, value.as_object(), value.as_array()) {
        (Step::Name(name), Some(object), _) => {
            object.get(name).is_some_and(|value| follow_field(rest, value, each))
        }
        (Step::Name(_), _, Some(array)) => {
            array.iter().for_each(|element| {
                follow_field(steps, element, each);
            });
            true
        }
        (Step::Each, Some(_), _) if !rest.is_empty() => follow_field(rest, value, each),
        (Step::Each, _, Some(array)) => {
            array.iter().for_each(|element| follow_element(rest, element, each));
            true
        }
        (Step::Index(index), _, Some(array)) => {
            array.get(*index).is_some_and(|value| follow_field(rest, value, each))
        }
        _ => false,
    }
}

fn follow_element<'a>(rest: &[Step], element: Value<'a>, each: &mut impl FnMut(Value<'a>)) {
    if let Some(array) = element.as_array() {
        array.iter().for_each(|element| follow_element(rest, element, each));
    } else if element.as_object().is_none() {
        each(element);
    } else if !follow_field(rest, element, each) {
        each(Value::Null);
    }
}

/// Returns whether to go on.
fn follow<'a>(
    steps: &[Step],
    value: Value<'a>,
    through: bool,
    each: &mut impl FnMut(Value<'a>) -> bool,
) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        if through && let Some(array) = value.as_array() {
            return array.iter().all(&mut *each);
        }
        return each(value);
    };
    match step {
        Step::Name(name) => match (value.as_object(), value.as_array()) {
            (Some(object), _) => match object.get(name) {
                Some(value) => follow(rest, value, through, each),
                None => true,
            },
            // One level: arrays of arrays need their brackets.
            (_, Some(array)) if through => array.iter().all(|value| match value.get(name) {
                Some(value) => follow(rest, value, through, each),
                None => true,
            }),
            _ => true,
        },
        Step::Index(index) => match value.as_array().and_then(|array| array.get(*index)) {
            Some(value) => follow(rest, value, through, each),
            None => true,
        },
        Step::Each => match value.as_array() {
            Some(array) => array.iter().all(|value| follow(rest, value, through, each)),
            None => true,
        },
    }
}

impl std::str::FromStr for Path {
    type Err = Error;

    fn from_str(path: &str) -> Result<Path> {
        Path::parse(path)
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, step) in self.steps.iter().enumerate() {
            match step {
                Step::Each => f.write_str("[]")?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Name(name) => {
                    if i > 0 {
                        f.write_str(".")?;
                    }
                    if name.is_empty() || name.contains(['.', '[']) || name.starts_with('\'') {
                        write!(f, "'{}'", name.replace('\'', "''"))?;
                    } else {
                        f.write_str(name)?;
                    }
                }
            }
        }
        Ok(())
    }
}
