//! Fields of documents: paths resolved against the query's aliases, followed in documents.

use jackdaw_document::Value;
use jackdaw_rql::tree::{Path, Step as PathStep};

use crate::error::{Error, Result};
use crate::plan::Aliases;

/// Whose field it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The document or index entry that was found.
    Result,
    /// The document or documents of a `load`, by its number.
    Loaded(usize),
}

/// A path below a document.
#[derive(Debug)]
pub(crate) struct FieldPath {
    steps: Vec<Step>,
    /// The path as it is written, without the alias: `Lines[].Product`.
    text: String,
}

#[derive(Debug)]
enum Step {
    Name(Box<str>),
    Each,
    Index(usize),
}

/// What a path leads to.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    Missing,
    One(Value<'a>),
    /// What is known about the document and not stored in it.
    Computed(String),
    /// The path leads through an array.
    Many(Vec<Value<'a>>),
}

impl FieldPath {
    pub(crate) fn new(path: &Path<'_>) -> FieldPath {
        FieldPath::from_parts(&path.first.text, &path.rest)
    }

    fn from_parts(first: &str, rest: &[PathStep<'_>]) -> FieldPath {
        let mut steps = vec![Step::Name(first.into())];
        let mut text = first.to_owned();
        for step in rest {
            match step {
                PathStep::Name(name) => {
                    text.push('.');
                    text.push_str(&name.text);
                    steps.push(Step::Name((*name.text).into()));
                }
                PathStep::Elements => {
                    text.push_str("[]");
                    steps.push(Step::Each);
                }
                PathStep::Index(index) => {
                    text.extend(["[", index, "]"]);
                    steps.push(Step::Index(index.parse().unwrap_or(usize::MAX)));
                }
            }
        }
        FieldPath { steps, text }
    }

    /// The whole document.
    pub(crate) fn root() -> FieldPath {
        FieldPath { steps: Vec::new(), text: String::new() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The first name, which tells what of the document is wanted.
    pub(crate) fn first(&self) -> Option<&str> {
        match self.steps.first() {
            Some(Step::Name(name)) => Some(name),
            _ => None,
        }
    }

    /// The names, if the path has nothing else and is two of them.
    pub(crate) fn two_names(&self) -> Option<(&str, &str)> {
        match &*self.steps {
            [Step::Name(first), Step::Name(second)] => Some((first, second)),
            _ => None,
        }
    }

    /// Follows the path. A name below an array is looked up in each of its elements.
    pub(crate) fn find<'a>(&self, root: Value<'a>) -> Found<'a> {
        let mut value = root;
        for (at, step) in self.steps.iter().enumerate() {
            value = match (step, value) {
                (Step::Name(name), value) => match value.as_object() {
                    Some(object) => match object.get(name) {
                        Some(value) => value,
                        None => return Found::Missing,
                    },
                    None if value.as_array().is_some() => return many(&self.steps[at..], value),
                    None => return Found::Missing,
                },
                (Step::Each, value) => return many(&self.steps[at..], value),
                (Step::Index(index), value) => match value.as_array().and_then(|array| array.get(*index)) {
                    Some(value) => value,
                    None => return Found::Missing,
                },
            };
        }
        Found::One(value)
    }
}

fn many<'a>(steps: &[Step], value: Value<'a>) -> Found<'a> {
    let mut found = Vec::new();
    gather(steps, value, &mut found);
    Found::Many(found)
}

fn gather<'a>(steps: &[Step], value: Value<'a>, found: &mut Vec<Value<'a>>) {
    let Some((step, rest)) = steps.split_first() else {
        found.push(value);
        return;
    };
    match step {
        Step::Name(name) => {
            if let Some(array) = value.as_array() {
                array.iter().for_each(|value| gather(steps, value, found));
            } else if let Some(value) = value.as_object().and_then(|object| object.get(name)) {
                gather(rest, value, found);
            }
        }
        Step::Each => match value.as_array() {
            Some(array) => array.iter().for_each(|value| gather(rest, value, found)),
            None => gather(rest, value, found),
        },
        Step::Index(index) => {
            if let Some(value) = value.as_array().and_then(|array| array.get(*index)) {
                gather(rest, value, found);
            }
        }
    }
}

/// Resolves a path: whose field it is, and the path below it. The alias alone means the whole document.
///
/// Error: the query has aliases, and the path begins with none of them.
pub(crate) fn resolve(path: &Path<'_>, aliases: &Aliases, text: &str) -> Result<(Origin, FieldPath)> {
    let origin = aliases.find(&path.first.text);
    match (origin, path.rest.split_first()) {
        (Some(origin), None) => Ok((origin, FieldPath::root())),
        (Some(origin), Some((PathStep::Name(first), rest))) => {
            Ok((origin, FieldPath::from_parts(&first.text, rest)))
        }
        // `alias[].name`: of each of the documents loaded.
        (Some(origin), Some((_, [PathStep::Name(first), rest @ ..]))) => {
            Ok((origin, FieldPath::from_parts(&first.text, rest)))
        }
        (Some(origin), Some(_)) => Ok((origin, FieldPath::root())),
        (None, Some((PathStep::Name(_), _))) if !aliases.is_empty() && !path.first.text.starts_with('@') => {
            Err(unknown_alias(path, aliases, text))
        }
        (None, _) => Ok((Origin::Result, FieldPath::new(path))),
    }
}

pub(crate) fn unknown_alias(path: &Path<'_>, aliases: &Aliases, text: &str) -> Error {
    let message = format!(
        "Unknown alias {}, but there are aliases specified in the query ({})",
        path.first.text,
        aliases.list()
    );
    Error::invalid(text, path.span, message)
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    use jackdaw_document::{Context, Style};
    use jackdaw_rql::parse_path;

    #[test]
    fn paths_lead_through_objects_and_arrays() {
        let context = Context::new();
        let document = context
            .parse(r#"{"n":1,"o":{"b":{"c":null},"d":[{"p":1},{"p":[2,3]},{"q":4}]},"a":["x","y"],"e":[]}"#)
            .unwrap();
        for (path, expected) in [
            ("n", "1"),
            ("n.x", "-"),
            ("nope", "-"),
            ("o.b", r#"{"c":null}"#),
            ("o.b.c", "null"),
            ("o.d.p", "[1,[2,3]]"),
            ("o.d[].p", "[1,[2,3]]"),
            ("o.d[].p[]", "[1,2,3]"),
            ("o.d[1].p", "[2,3]"),
            ("o.d[7].p", "-"),
            ("a", r#"["x","y"]"#),
            ("a[]", r#"["x","y"]"#),
            ("a.x", "[]"),
            ("a[1]", r#""y""#),
            ("e[].x", "[]"),
        ] {
            let found = FieldPath::new(&parse_path(path).unwrap()).find(document.root());
            let found = match found {
                Found::Missing | Found::Computed(_) => "-".to_owned(),
                Found::One(value) => value.to_json(Style::Compact),
                Found::Many(values) => {
                    let values: Vec<String> =
                        values.iter().map(|value| value.to_json(Style::Compact)).collect();
                    format!("[{}]", values.join(","))
                }
            };
            assert_eq!(found, expected, "{path}");
        }
    }
}
