//! Patches as lists of operations: RFC 6902.

use jackdaw_document::{Builder, Context, Document, Object, Value};

use crate::error::{Error, Result};
use crate::incoming::IncomingDocument;
use crate::transaction::Transaction;
use crate::transaction::documents::PutOptions;
use crate::transaction::patch::{PatchResult, PatchStatus, StoredPatch};

/// Operations on a document, all of them or none.
#[derive(Clone, Debug)]
pub struct JsonPatch {
    operations: Vec<Operation>,
}

#[derive(Clone, Debug)]
struct Operation {
    kind: Kind,
    path: Vec<String>,
    /// The place that is moved or copied from.
    from: Vec<String>,
    value: Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
}

/// A value that can be changed.
#[derive(Clone, Debug)]
enum Node {
    /// The bytes of a document of which it is the root: it is not looked into.
    Whole(Vec<u8>),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl JsonPatch {
    /// Reads a list of operations: `{"op", "path", "value", "from"}`.
    ///
    /// Errors: [`Error::InvalidArgument`] that says which operation is wrong and how.
    pub fn new(operations: &Value<'_>, context: &Context) -> Result<JsonPatch> {
        let Some(operations) = operations.as_array() else {
            return Err(Error::InvalidArgument("the operations of a JSON patch must be an array".to_owned()));
        };
        let read = |(place, value): (usize, Value<'_>)| match value.as_object() {
            Some(operation) => Operation::new(place, &operation, context),
            None => Err(Error::InvalidArgument(format!(
                "Operations[{place}] must be an object, not {}",
                value.type_name()
            ))),
        };
        let operations = operations.iter().enumerate().map(read).collect::<Result<_>>()?;
        Ok(JsonPatch { operations })
    }

    fn apply(&self, document: &Document<'_>, id: &str) -> Result<Node> {
        let mut root = Node::of(&document.root())?;
        for (place, operation) in self.operations.iter().enumerate() {
            operation.apply(&mut root).map_err(|what| {
                Error::InvalidOperation(format!(
                    "An error occurred while trying to apply json patch operation to document {id}: Operations[{place}]: {what}"
                ))
            })?;
        }
        Ok(root)
    }
}

impl Operation {
    fn new(place: usize, operation: &Object<'_>, context: &Context) -> Result<Operation> {
        let wrong = |what: String| Error::InvalidArgument(format!("Operations[{place}]: {what}"));
        let text =
            |name: &str| operation.get(name).and_then(|value| value.as_str().map(|text| text.into_owned()));
        let name = text("op").ok_or_else(|| wrong("'op' is missing".to_owned()))?;
        let kind = match &*name {
            "add" => Kind::Add,
            "remove" => Kind::Remove,
            "replace" => Kind::Replace,
            "move" => Kind::Move,
            "copy" => Kind::Copy,
            "test" => Kind::Test,
            _ => return Err(wrong(format!("unable to understand 'op' {name}"))),
        };
        let pointer = |name: &str| -> Result<Vec<String>> {
            let text = text(name).ok_or_else(|| wrong(format!("'{name}' is missing")))?;
            match text.strip_prefix('/') {
                Some(rest) => {
                    Ok(rest.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect())
                }
                None if text.is_empty() => Ok(Vec::new()),
                None => Err(wrong(format!("'{text}' is no path: it must be empty or begin with '/'"))),
            }
        };
        let value = match (kind, operation.get("value")) {
            (Kind::Add | Kind::Replace | Kind::Test, None) => {
                return Err(wrong("'value' is missing".to_owned()));
            }
            (Kind::Add | Kind::Replace | Kind::Test, Some(value)) => Node::whole(&value, context)?,
            _ => Node::Array(Vec::new()),
        };
        let from = if matches!(kind, Kind::Move | Kind::Copy) { pointer("from")? } else { Vec::new() };
        Ok(Operation { kind, path: pointer("path")?, from, value })
    }

    fn apply(&self, root: &mut Node) -> Result<(), String> {
        match self.kind {
            Kind::Add => root.add(&self.path, self.value.clone()),
            Kind::Remove => root.remove(&self.path).map(|_| ()),
            Kind::Replace => {
                *root.find(&self.path)? = self.value.clone();
                Ok(())
            }
            Kind::Move if self.path.len() > self.from.len() && self.path.starts_with(&self.from) => {
                Err("a value cannot be moved into itself".to_owned())
            }
            Kind::Move => {
                let value = root.remove(&self.from)?;
                root.add(&self.path, value)
            }
            Kind::Copy => {
                let value = root.find(&self.from)?.clone();
                root.add(&self.path, value)
            }
            Kind::Test => {
                let found = root.find(&self.path)?.clone();
                let context = Context::new();
                let built = |node: &Node| {
                    context
                        .build(jackdaw_document::Mode::Memory, |builder| node.append_to(builder))
                        .map_err(|error| error.to_string())
                };
                let (found, expected) = (built(&found)?, built(&self.value)?);
                match found.root().same_content(&expected.root()) {
                    true => Ok(()),
                    false => Err(format!(
                        "the value at '/{}' is another one than the test expects",
                        self.path.join("/")
                    )),
                }
            }
        }
    }
}

impl Node {
    /// A value that is not looked into until something in it is changed.
    fn whole(value: &Value<'_>, context: &Context) -> Result<Node> {
        let document = context.build(jackdaw_document::Mode::Memory, |builder| builder.value(value))?;
        Ok(Node::Whole(document.as_bytes().to_vec()))
    }

    /// One level of a value.
    fn of(value: &Value<'_>) -> Result<Node> {
        let context = Context::new();
        Ok(match value {
            Value::Object(object) => Node::Object(
                object
                    .iter()
                    .map(|(name, value)| Ok((name.to_str().into_owned(), Node::whole(&value, &context)?)))
                    .collect::<Result<_>>()?,
            ),
            Value::Array(array) => {
                Node::Array(array.iter().map(|value| Node::whole(&value, &context)).collect::<Result<_>>()?)
            }
            other => Node::whole(other, &context)?,
        })
    }

    fn open(&mut self) -> Result<(), String> {
        if let Node::Whole(bytes) = self {
            let opened =
                Document::open(bytes).map_err(Error::from).and_then(|document| Node::of(&document.root()));
            *self = opened.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn find(&mut self, path: &[String]) -> Result<&mut Node, String> {
        let Some((first, rest)) = path.split_first() else { return Ok(self) };
        self.open()?;
        let next = match self {
            Node::Object(fields) => fields.iter_mut().find(|(name, _)| name == first).map(|(_, value)| value),
            Node::Array(values) => index_of(first, values.len()).and_then(|at| values.get_mut(at)),
            Node::Whole(_) => None,
        };
        next.ok_or_else(|| format!("there is no '{first}'"))?.find(rest)
    }

    fn add(&mut self, path: &[String], value: Node) -> Result<(), String> {
        let Some((last, parents)) = path.split_last() else {
            *self = value;
            return Ok(());
        };
        let parent = self.find(parents)?;
        parent.open()?;
        match parent {
            Node::Object(fields) => match fields.iter_mut().find(|(name, _)| name == last) {
                Some((_, old)) => *old = value,
                None => fields.push((last.clone(), value)),
            },
            Node::Array(values) => {
                let at = if last == "-" { Some(values.len()) } else { index_of(last, values.len() + 1) };
                values.insert(
                    at.ok_or_else(|| format!("'{last}' is no place in an array of {}", values.len()))?,
                    value,
                );
            }
            Node::Whole(_) => {
                return Err(format!("'{last}' is to be added to what is neither an object nor an array"));
            }
        }
        Ok(())
    }

    fn remove(&mut self, path: &[String]) -> Result<Node, String> {
        let Some((last, parents)) = path.split_last() else {
            return Err("a document cannot be removed from itself".to_owned());
        };
        let parent = self.find(parents)?;
        parent.open()?;
        let missing = || format!("there is no '{last}'");
        match parent {
            Node::Object(fields) => {
                let at = fields.iter().position(|(name, _)| name == last).ok_or_else(missing)?;
                Ok(fields.remove(at).1)
            }
            Node::Array(values) => Ok(values.remove(index_of(last, values.len()).ok_or_else(missing)?)),
            Node::Whole(_) => Err(missing()),
        }
    }

    fn append_to(&self, builder: &mut Builder<'_>) -> jackdaw_document::Result<()> {
        match self {
            Node::Whole(bytes) => builder.value(&Document::open(bytes)?.root()),
            Node::Array(values) => {
                builder.begin_array()?;
                values.iter().try_for_each(|value| value.append_to(builder))?;
                builder.end()
            }
            Node::Object(fields) => {
                builder.begin_object()?;
                for (name, value) in fields {
                    builder.name(name)?;
                    value.append_to(builder)?;
                }
                builder.end()
            }
        }
    }
}

/// A place in an array of `length`: digits without a leading zero.
fn index_of(text: &str, length: usize) -> Option<usize> {
    let is_plain = text == "0" || !text.starts_with(['0', '+']);
    text.parse().ok().filter(|at| is_plain && *at < length)
}

impl Transaction<'_> {
    /// Applies a JSON patch to the document of an id.
    ///
    /// Errors: [`Error::InvalidOperation`] when there is no such document, or an operation cannot be done; those of storing.
    pub fn json_patch(&mut self, id: &str, patch: &JsonPatch) -> Result<PatchResult> {
        let Some(before) = self.get(id)? else {
            let message = format!("Cannot apply json patch because the document {id} does not exist");
            return Err(Error::InvalidOperation(message));
        };
        let patched = patch.apply(&before.document, id)?;
        let memory = Context::new();
        let patched = memory.build(self.shared.document_mode, |builder| patched.append_to(builder))?;
        let modified = IncomingDocument::within(&patched, &memory, self.shared)?;
        let is_same = before.document.root().same_content(&modified.document()?.root());
        let mut result = PatchResult {
            status: PatchStatus::NotModified,
            stored: None,
            modified: None,
            original: None,
            debug: None,
        };
        if !is_same {
            let id = before.id.to_owned();
            let stored = self.put(&id, &modified, PutOptions::default())?;
            result.status = PatchStatus::Patched;
            result.stored = Some(StoredPatch {
                etag: stored.etag,
                change_vector: stored.change_vector,
                last_modified: stored.last_modified,
                collection: stored.collection,
            });
        }
        result.modified = Some(modified);
        Ok(result)
    }
}
