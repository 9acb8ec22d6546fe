//! Edits laid over a document.
//!
//! An [`Overlay`] holds only what changes, as a tree beside the document; untouched parts are copied over when the result is written, so editing one property of a large document
//! parses and prints nothing. New values are documents themselves, made in a context.

use crate::build::{Builder, Mode};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::read::path::Step;
use crate::read::{Array, Document, Object, Path, Value};

/// Edits of one document, in order: a later edit sees the earlier ones.
///
/// Paths are those of [`Path`] without `[]`. A property that is set keeps its place if it was there, else it comes last; objects missing on the way to it are made. An
/// element is set only where there is one; [`Overlay::append`] adds behind the last.
pub struct Overlay<'a> {
    root: Node<'a>,
}

/// A part of the edited document.
enum Node<'a> {
    /// As it is in some document.
    Kept(Value<'a>),
    Object(Vec<(NameOf<'a>, Node<'a>)>),
    Array(Vec<Node<'a>>),
}

type NameOf<'a> = std::borrow::Cow<'a, str>;

impl<'a> Overlay<'a> {
    /// No edits yet.
    #[must_use]
    pub fn new(document: Document<'a>) -> Overlay<'a> {
        Overlay { root: Node::Kept(document.root()) }
    }

    /// Sets the value at a path; the empty path replaces everything.
    ///
    /// # Errors
    ///
    /// [`Error::Edit`] where the path leads through something that is neither object nor array as it says, to an element that is not there, or to many places.
    pub fn set(&mut self, path: &Path, value: Value<'a>) -> Result<()> {
        *self.place(path, true)? = Node::Kept(value);
        Ok(())
    }

    /// Removes the property or element at a path; later elements move up. Returns whether it was there.
    ///
    /// # Errors
    ///
    /// [`Error::Edit`] for the empty path and for a path to many places.
    pub fn remove(&mut self, path: &Path) -> Result<bool> {
        let Some((last, above)) = path.steps.split_last() else {
            return Err(wrong(path, "the root cannot be removed"));
        };
        let Some(parent) = find(&mut self.root, above, path)? else {
            return Ok(false);
        };
        parent.open();
        match (last, parent) {
            (Step::Name(name), Node::Object(properties)) => {
                match properties.iter().position(|(other, _)| **other == **name) {
                    Some(index) => {
                        properties.remove(index);
                        Ok(true)
                    }
                    None => Ok(false),
                }
            }
            (Step::Index(index), Node::Array(elements)) => {
                if *index < elements.len() {
                    elements.remove(*index);
                    Ok(true)
                } else {
                    Ok(false)
                }
            }
            (Step::Each, _) => Err(wrong(path, "an edit has one place, so its path has no []")),
            _ => Ok(false),
        }
    }

    /// Appends a value to the array at a path. A property that is not there becomes an array of that one value.
    ///
    /// # Errors
    ///
    /// As [`Overlay::set`]; [`Error::Edit`] if something else than an array is there.
    pub fn append(&mut self, path: &Path, value: Value<'a>) -> Result<()> {
        let node = self.place(path, true)?;
        node.open();
        match node {
            Node::Array(elements) => elements.push(Node::Kept(value)),
            // What was made on the way, or an explicit null that nothing was ever put into.
            Node::Kept(Value::Null) => *node = Node::Array(vec![Node::Kept(value)]),
            _ => return Err(wrong(path, "what is there is no array")),
        }
        Ok(())
    }

    /// Inserts a value into an array before the element at a path, or behind the last one if the index is the array's length.
    ///
    /// # Errors
    ///
    /// [`Error::Edit`] if the path does not end in an index or leads to no array that has it.
    pub fn insert(&mut self, path: &Path, value: Value<'a>) -> Result<()> {
        let Some((Step::Index(index), above)) = path.steps.split_last() else {
            return Err(wrong(path, "the path does not end in an index"));
        };
        let Some(parent) = find(&mut self.root, above, path)? else {
            return Err(wrong(path, "there is no such array"));
        };
        parent.open();
        match parent {
            Node::Array(elements) if *index <= elements.len() => {
                elements.insert(*index, Node::Kept(value));
                Ok(())
            }
            Node::Array(_) => Err(wrong(path, "the index lies beyond the array's end")),
            _ => Err(wrong(path, "there is no such array")),
        }
    }

    /// Whether anything was looked into for an edit. An overlay that was not edited writes its document's content.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        matches!(self.root, Node::Kept(_))
    }

    /// Writes the edited document into a context.
    ///
    /// # Errors
    ///
    /// The errors of building: limits of size, depth and names.
    pub fn write<'c>(&self, context: &'c Context, mode: Mode) -> Result<Document<'c>> {
        context.build(mode, |builder| write(&self.root, builder))
    }

    /// The node at a path; missing properties on the way are made if `make`.
    fn place(&mut self, path: &Path, make: bool) -> Result<&mut Node<'a>> {
        let mut node = &mut self.root;
        for step in &path.steps {
            node.open();
            node = match (step, node) {
                (Step::Name(name), Node::Object(properties)) => {
                    let index = match properties.iter().position(|(other, _)| **other == **name) {
                        Some(index) => index,
                        None if make => {
                            properties.push((NameOf::Owned(name.to_string()), Node::Kept(Value::Null)));
                            properties.len() - 1
                        }
                        None => return Err(wrong(path, "a property on the way is missing")),
                    };
                    &mut properties[index].1
                }
                (Step::Name(name), node @ Node::Kept(Value::Null)) if make => {
                    *node = Node::Object(vec![(NameOf::Owned(name.to_string()), Node::Kept(Value::Null))]);
                    match node {
                        Node::Object(properties) => &mut properties[0].1,
                        _ => unreachable!("it was just made"),
                    }
                }
                (Step::Index(index), Node::Array(elements)) => match elements.get_mut(*index) {
                    Some(element) => element,
                    None => return Err(wrong(path, "the array has no such element")),
                },
                (Step::Each, _) => return Err(wrong(path, "an edit has one place, so its path has no []")),
                (Step::Name(_), _) => {
                    return Err(wrong(path, "a name leads into something that is no object"));
                }
                (Step::Index(_), _) => {
                    return Err(wrong(path, "an index leads into something that is no array"));
                }
            };
        }
        Ok(node)
    }
}

#[cold]
fn wrong(path: &Path, reason: &'static str) -> Error {
    Error::Edit { path: path.to_string(), reason }
}

/// The node at the end of `steps`, if all of them lead somewhere.
fn find<'n, 'a>(root: &'n mut Node<'a>, steps: &[Step], path: &Path) -> Result<Option<&'n mut Node<'a>>> {
    let mut node = root;
    for step in steps {
        node.open();
        let next = match (step, node) {
            (Step::Name(name), Node::Object(properties)) => {
                properties.iter_mut().find(|(other, _)| **other == **name).map(|(_, node)| node)
            }
            (Step::Index(index), Node::Array(elements)) => elements.get_mut(*index),
            (Step::Each, _) => return Err(wrong(path, "an edit has one place, so its path has no []")),
            _ => None,
        };
        match next {
            Some(next) => node = next,
            None => return Ok(None),
        }
    }
    Ok(Some(node))
}

impl<'a> Node<'a> {
    /// Makes a kept container's entries nodes of their own, so that they can change.
    fn open(&mut self) {
        let Node::Kept(value) = self else {
            return;
        };
        if let Some(object) = value.as_object() {
            *self = Node::of_object(&object);
        } else if let Some(array) = value.as_array() {
            *self = Node::of_array(&array);
        }
    }

    fn of_object(object: &Object<'a>) -> Node<'a> {
        Node::Object(object.iter().map(|(name, value)| (name.to_str(), Node::Kept(value))).collect())
    }

    fn of_array(array: &Array<'a>) -> Node<'a> {
        Node::Array(array.iter().map(Node::Kept).collect())
    }
}

fn write(node: &Node<'_>, builder: &mut Builder<'_>) -> Result<()> {
    match node {
        Node::Kept(value) => builder.value(value),
        Node::Object(properties) => {
            builder.begin_object()?;
            for (name, node) in properties {
                builder.name(name)?;
                write(node, builder)?;
            }
            builder.end()
        }
        Node::Array(elements) => {
            builder.begin_array()?;
            for node in elements {
                write(node, builder)?;
            }
            builder.end()
        }
    }
}
