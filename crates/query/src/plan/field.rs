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
    /// The path leads through an array: what it leads to in each element.
    Many(Vec<Found<'a>>),
}

impl<'a> Found<'a> {
    /// Gives each value, those in lists of lists too.
    pub(crate) fn each<E>(&self, take: &mut impl FnMut(&Value<'a>) -> Result<(), E>) -> Result<(), E> {
        match self {
            Found::Missing | Found::Computed(_) => Ok(()),
            Found::One(value) => take(value),
            Found::Many(all) => all.iter().try_for_each(|found| found.each(take)),
        }
    }
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

    /// Follows the path.
    ///
    /// A name below an array is looked up in each of its elements, and those without it are left out; lists of lists stay lists. `[]`
    /// tells each element, null for one without the rest of the path: what is a list there is taken apart, what is no object
    /// is told itself, and a single object counts as its own element.
    pub(crate) fn find<'a>(&self, root: Value<'a>) -> Found<'a> {
        follow(&self.steps, root)
    }
}

fn follow<'a>(steps: &[Step], value: Value<'a>) -> Found<'a> {
    let Some((step, rest)) = steps.split_first() else { return Found::One(value) };
    match step {
        Step::Name(name) => match (value.as_object(), value.as_array()) {
            (Some(object), _) => object.get(name).map_or(Found::Missing, |value| follow(rest, value)),
            (_, Some(array)) => {
                let each = array.iter().map(|element| follow(steps, element));
                Found::Many(each.filter(|found| !matches!(found, Found::Missing)).collect())
            }
            _ => Found::Missing,
        },
        Step::Each => match (value.as_object(), value.as_array()) {
            (Some(_), _) if !rest.is_empty() => follow(rest, value),
            (_, Some(array)) => {
                let mut all = Vec::new();
                array.iter().for_each(|element| gather(rest, element, &mut all));
                Found::Many(all)
            }
            _ => Found::Missing,
        },
        Step::Index(index) => match value.as_array().and_then(|array| array.get(*index)) {
            Some(value) => follow(rest, value),
            None => Found::Missing,
        },
    }
}

/// What an element behind `[]` tells.
fn gather<'a>(rest: &[Step], element: Value<'a>, all: &mut Vec<Found<'a>>) {
    if let Some(array) = element.as_array() {
        array.iter().for_each(|element| gather(rest, element, all));
        return;
    }
    let found = match element.as_object() {
        Some(_) => follow(rest, element),
        None => Found::One(element),
    };
    match found {
        Found::Missing => all.push(Found::One(Value::Null)),
        Found::One(Value::Array(array)) => all.extend(array.iter().map(Found::One)),
        Found::Many(each) => all.extend(each),
        found => all.push(found),
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

    fn tell(found: &Found<'_>, out: &mut String) {
        match found {
            Found::Missing | Found::Computed(_) => out.push('-'),
            Found::One(value) => out.push_str(&value.to_json(Style::Compact)),
            Found::Many(all) => {
                out.push('[');
                for (at, found) in all.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    tell(found, out);
                }
                out.push(']');
            }
        }
    }

    #[test]
    fn paths_lead_through_objects_and_arrays() {
        let context = Context::new();
        let document = context
            .parse(r#"{"n":1,"o":{"b":{"c":null},"d":[{"p":1},{"p":[2,3]},{"q":4}]},"a":["x","y"],"e":[],"f":[{"x":1},[{"x":2}],[3]]}"#)
            .unwrap();
        for (path, expected) in [
            ("n", "1"),
            ("n.x", "-"),
            ("nope", "-"),
            ("o.b", r#"{"c":null}"#),
            ("o.b.c", "null"),
            ("o.d.p", "[1,[2,3]]"),
            ("o.d[].p", "[1,2,3,null]"),
            ("o.d[].p[]", "[null,2,3,null]"),
            ("o.d[1].p", "[2,3]"),
            ("o.d[7].p", "-"),
            ("o.b[].c", "null"),
            ("o.b.c[].d", "-"),
            ("a", r#"["x","y"]"#),
            ("a[]", r#"["x","y"]"#),
            ("a.x", "[]"),
            ("a[].x", r#"["x","y"]"#),
            ("a[1]", r#""y""#),
            ("e[].x", "[]"),
            ("f.x", r#"[1,[2],[]]"#),
        ] {
            let found = FieldPath::new(&parse_path(path).unwrap()).find(document.root());
            let mut told = String::new();
            tell(&found, &mut told);
            assert_eq!(told, expected, "{path}");
        }
    }
}
