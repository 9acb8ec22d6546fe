//! Paths to fields.

use crate::span::Span;
use crate::tree::{Name, Text};

/// A path to a field: `Name`, `Lines[].Product`, `'spaced name'.x`, `@metadata.@collection`, `alias.Name`.
///
/// Whether the first name is an alias, the query decides, not the path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path<'a> {
    /// The first name. Apart from the rest, because most paths are one name and so need no memory of their own.
    pub first: Name<'a>,
    /// What follows.
    pub rest: Vec<Step<'a>>,
    /// The place.
    pub span: Span,
}

/// One step of a path after its first name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step<'a> {
    /// `.name`: a property.
    Name(Name<'a>),
    /// `[]`: each element of an array.
    Elements,
    /// `[n]`: one element; the number as it is written.
    Index(Text<'a>),
}

impl<'a> Path<'a> {
    /// The path of one name, standing nowhere.
    #[must_use]
    pub fn new(name: impl Into<Text<'a>>) -> Path<'a> {
        Path { first: Name::new(name), rest: Vec::new(), span: Span::default() }
    }

    /// The name, if the path is one name.
    #[must_use]
    pub fn as_name(&self) -> Option<&str> {
        self.rest.is_empty().then_some(&*self.first.text)
    }

    /// The names of the path from the first on; `[]` and `[n]` are left out.
    pub fn names(&self) -> impl Iterator<Item = &Name<'a>> {
        std::iter::once(&self.first).chain(self.rest.iter().filter_map(|step| match step {
            Step::Name(name) => Some(name),
            Step::Elements | Step::Index(_) => None,
        }))
    }

    /// The path below its first name, if that is `alias` and a name follows it: `Lines[].Product` for `o.Lines[].Product` and alias `o`.
    /// Aliases compare exactly.
    #[must_use]
    pub fn without_alias(&self, alias: &str) -> Option<Path<'a>> {
        match (&*self.first.text == alias, self.rest.split_first()) {
            (true, Some((Step::Name(first), rest))) => {
                Some(Path { first: first.clone(), rest: rest.to_vec(), span: self.span })
            }
            _ => None,
        }
    }
}
