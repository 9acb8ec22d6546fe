//! Where the objects of a script came from, so that what a script leaves alone goes back as it was: numbers to the digit, properties in their order.
//!
//! An object made from a document carries the number of a [`Node`] under a symbol that scripts do not have. A node knows its parent and its place there, and the
//! root its document, of which a copy is kept while the script runs.

use std::cell::RefCell;
use std::rc::Rc;

use jackdaw_document::{Document, Value};

/// A document that a script holds.
pub(super) struct Source {
    pub(super) bytes: Box<[u8]>,
    pub(super) id: String,
    pub(super) change_vector: String,
    pub(super) last_modified: i64,
}

/// An object or array of a source.
#[derive(Clone)]
struct Node {
    source: Rc<Source>,
    /// The node that holds it, and its place there. The root is its own parent.
    parent: u32,
    place: u32,
}

thread_local! {
    static NODES: RefCell<Vec<Node>> = const { RefCell::new(Vec::new()) };
}

/// Forgets all: another script runs.
pub(super) fn clear() {
    NODES.with_borrow_mut(Vec::clear);
}

/// Adds a document; the number of its root.
pub(super) fn add_root(source: Rc<Source>) -> u32 {
    NODES.with_borrow_mut(|nodes| {
        let number = nodes.len() as u32;
        nodes.push(Node { source, parent: number, place: 0 });
        number
    })
}

/// Adds the object or array at a place of another.
pub(super) fn add_child(parent: u32, place: usize) -> u32 {
    NODES.with_borrow_mut(|nodes| {
        let number = nodes.len() as u32;
        let source = nodes[parent as usize].source.clone();
        nodes.push(Node { source, parent, place: place as u32 });
        number
    })
}

/// The document whose root has this number.
pub(super) fn document(number: u32) -> Option<Rc<Source>> {
    NODES.with_borrow(|nodes| {
        let node = nodes.get(number as usize)?;
        (node.parent == number).then(|| node.source.clone())
    })
}

/// Calls `read` with the value that a number stands for; with `None` for a number that stands for none.
pub(super) fn with<R>(number: u32, read: impl FnOnce(Option<Value<'_>>) -> R) -> R {
    let mut path = Vec::new();
    let source = NODES.with_borrow(|nodes| {
        let (mut at, mut node) = (number, nodes.get(number as usize)?);
        while node.parent != at {
            path.push(node.place as usize);
            at = node.parent;
            node = nodes.get(at as usize)?;
        }
        Some(node.source.clone())
    });
    let Some(source) = source else { return read(None) };
    let Ok(document) = Document::open(&source.bytes) else { return read(None) };
    let mut value = Some(document.root());
    for place in path.into_iter().rev() {
        value = match value {
            Some(Value::Object(object)) => object.at_index(place).map(|(_, value)| value),
            Some(Value::Array(array)) => array.get(place),
            Some(Value::Document(inner)) => {
                inner.object().and_then(|object| object.at_index(place)).map(|(_, value)| value)
            }
            _ => None,
        };
    }
    read(value)
}
