//! What distinguishes two documents, place by place.

use std::fmt::Write as _;

use crate::format::DEPTH_MAX;
use crate::read::{Array, Document, Object, Value};

/// One place at which two documents differ.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference<'a> {
    /// Only the new document has it.
    Added {
        /// The place, as [`Path`](crate::Path) writes it.
        path: String,
        /// What is there now.
        value: Value<'a>,
    },
    /// Only the old document has it.
    Removed {
        /// The place.
        path: String,
        /// What was there.
        value: Value<'a>,
    },
    /// Both have it, with different content. Two objects or two arrays are compared inside instead.
    Changed {
        /// The place.
        path: String,
        /// What was there.
        old: Value<'a>,
        /// What is there now.
        new: Value<'a>,
    },
}

impl Difference<'_> {
    /// The place.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Difference::Added { path, .. }
            | Difference::Removed { path, .. }
            | Difference::Changed { path, .. } => path,
        }
    }
}

/// Lists what distinguishes `new` from `old`, in the old one's order, additions after. The order of properties is no difference; elements of arrays are compared by
/// their places. Empty exactly when the documents are equal.
#[must_use]
pub fn differences<'a>(old: &Document<'a>, new: &Document<'a>) -> Vec<Difference<'a>> {
    let mut found = Vec::new();
    if old.as_bytes() != new.as_bytes() || old.dictionary_id() != new.dictionary_id() {
        compare(&old.root(), &new.root(), &mut String::new(), 0, &mut found);
    }
    found
}

fn compare<'a>(
    old: &Value<'a>,
    new: &Value<'a>,
    path: &mut String,
    depth: u32,
    found: &mut Vec<Difference<'a>>,
) {
    if depth > DEPTH_MAX {
        // Damaged bytes only.
        return;
    }
    match (old.as_object(), new.as_object(), old.as_array(), new.as_array()) {
        (Some(old), Some(new), ..) => compare_objects(&old, &new, path, depth, found),
        (.., Some(old), Some(new)) => compare_arrays(&old, &new, path, depth, found),
        _ => {
            if !old.same_content(new) {
                found.push(Difference::Changed { path: path.clone(), old: *old, new: *new });
            }
        }
    }
}

fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    if name.is_empty() || name.contains(['.', '[']) || name.starts_with('\'') {
        path.push('\'');
        path.push_str(&name.replace('\'', "''"));
        path.push('\'');
    } else {
        path.push_str(name);
    }
}

fn compare_objects<'a>(
    old: &Object<'a>,
    new: &Object<'a>,
    path: &mut String,
    depth: u32,
    found: &mut Vec<Difference<'a>>,
) {
    let len = path.len();
    for (name, value) in old.iter() {
        let name = name.to_str();
        push_name(path, &name);
        match new.get(&name) {
            Some(other) => compare(&value, &other, path, depth + 1, found),
            None => found.push(Difference::Removed { path: path.clone(), value }),
        }
        path.truncate(len);
    }
    for (name, value) in new.iter() {
        let name = name.to_str();
        if !old.contains(&name) {
            push_name(path, &name);
            found.push(Difference::Added { path: path.clone(), value });
            path.truncate(len);
        }
    }
}

fn compare_arrays<'a>(
    old: &Array<'a>,
    new: &Array<'a>,
    path: &mut String,
    depth: u32,
    found: &mut Vec<Difference<'a>>,
) {
    let len = path.len();
    for index in 0..old.len().max(new.len()) {
        // Writing to a string does not fail.
        let _ = write!(path, "[{index}]");
        match (old.get(index), new.get(index)) {
            (Some(old), Some(new)) => compare(&old, &new, path, depth + 1, found),
            (Some(value), None) => found.push(Difference::Removed { path: path.clone(), value }),
            (None, Some(value)) => found.push(Difference::Added { path: path.clone(), value }),
            (None, None) => {}
        }
        path.truncate(len);
    }
}
