//! Documents on their way in: cleaned of what the database says itself, in the form in which they are stored.

use jackdaw_document::{Builder, Context, Document, Object, Value};

use crate::database::{Database, Shared};
use crate::error::{Error, Result};
use crate::metadata::{COLLECTION, EMPTY_COLLECTION, METADATA, is_output_only};

/// A document ready to be stored: its bytes, which can go to the writer's thread, and its collection.
#[derive(Clone, Debug)]
pub struct IncomingDocument {
    bytes: Vec<u8>,
    collection: String,
}

impl IncomingDocument {
    /// Takes a document as a client sends it. Properties of `@metadata` that are the database's own are dropped; the collection is named in
    /// the casing in which it was first seen.
    ///
    /// Errors: [`Error::InvalidArgument`] when the root, or `@metadata`, is no object, or `@collection` no text; those of building.
    pub fn new(document: &Document<'_>, context: &Context, database: &Database) -> Result<IncomingDocument> {
        IncomingDocument::from_value(&document.root(), context, database)
    }

    /// As [`IncomingDocument::new`], for a document of `collection` if it names none itself: then its metadata says so from now on. One that was parsed in
    /// the database's mode and has nothing to be cleaned of is not built again.
    pub fn in_collection(
        document: &Document<'_>,
        collection: &str,
        context: &Context,
        database: &Database,
    ) -> Result<IncomingDocument> {
        if let Some(collection) = clean_collection(document, collection, database)? {
            return Ok(IncomingDocument { bytes: document.as_bytes().to_vec(), collection });
        }
        let object = object_of(&document.root())?;
        IncomingDocument::from_object_in(&object, collection, context, database.shared())
    }

    /// Builds a document of a collection call by call: `build` writes the properties of the open root, but for `@metadata`.
    ///
    /// Errors: what `build` returns, and those of building.
    pub fn build(
        collection: &str,
        context: &Context,
        database: &Database,
        build: impl FnOnce(&mut Builder<'_>) -> jackdaw_document::Result<()>,
    ) -> Result<IncomingDocument> {
        let collection = if collection.is_empty() { EMPTY_COLLECTION } else { collection };
        let collection = database.collection_name(collection);
        let document = context.build(database.document_mode(), |builder| {
            builder.begin_object()?;
            build(builder)?;
            builder.name(METADATA)?;
            builder.begin_object()?;
            builder.name(COLLECTION)?;
            builder.str(&collection)?;
            builder.end()?;
            builder.end()
        })?;
        Ok(IncomingDocument { bytes: document.as_bytes().to_vec(), collection: collection.into_owned() })
    }

    /// As [`IncomingDocument::new`], from a part of another document.
    pub fn from_value(value: &Value<'_>, context: &Context, database: &Database) -> Result<IncomingDocument> {
        let object = object_of(value)?;
        IncomingDocument::from_object(&object, context, database)
    }

    /// As [`IncomingDocument::new`], from a part of another document that is an object.
    pub fn from_object(
        object: &Object<'_>,
        context: &Context,
        database: &Database,
    ) -> Result<IncomingDocument> {
        IncomingDocument::from_object_in(object, EMPTY_COLLECTION, context, database.shared())
    }

    /// As [`IncomingDocument::new`], for the writer.
    pub(crate) fn within(
        document: &Document<'_>,
        context: &Context,
        shared: &Shared,
    ) -> Result<IncomingDocument> {
        IncomingDocument::from_object_in(&object_of(&document.root())?, EMPTY_COLLECTION, context, shared)
    }

    fn from_object_in(
        object: &Object<'_>,
        default: &str,
        context: &Context,
        database: &Shared,
    ) -> Result<IncomingDocument> {
        let metadata = metadata_of(object)?;
        let named = match metadata.and_then(|metadata| metadata.get(COLLECTION)) {
            None | Some(Value::Null) => None,
            Some(name) => match name.as_str() {
                Some(name) => Some(name).filter(|name| !name.is_empty()),
                None => {
                    let found = name.type_name();
                    return Err(Error::InvalidArgument(format!(
                        "{METADATA}.{COLLECTION} must be a string, not {found}"
                    )));
                }
            },
        };
        // A document that nobody gives a collection says nothing of one.
        let is_silent = named.is_none() && is_no_collection(default);
        let name = match &named {
            Some(name) => name,
            None if is_silent => EMPTY_COLLECTION,
            None => default,
        };
        let collection = database.collection_name(name).into_owned();
        let document = context.build(database.document_mode, |builder| {
            builder.begin_object()?;
            for (name, value) in object.iter() {
                let name = name.to_str();
                if name != METADATA {
                    builder.name(&name)?;
                    builder.value(&value)?;
                }
            }
            builder.name(METADATA)?;
            builder.begin_object()?;
            let mut is_said = is_silent;
            for (name, value) in metadata.iter().flat_map(Object::iter) {
                let name = name.to_str();
                if is_output_only(&name) {
                    continue;
                }
                builder.name(&name)?;
                if name == COLLECTION && !is_silent {
                    builder.str(&collection)?;
                    is_said = true;
                } else {
                    builder.value(&value)?;
                }
            }
            if !is_said {
                builder.name(COLLECTION)?;
                builder.str(&collection)?;
            }
            builder.end()?;
            builder.end()
        })?;
        Ok(IncomingDocument { bytes: document.as_bytes().to_vec(), collection })
    }

    /// Parses JSON text and takes it; see [`IncomingDocument::new`]. Text that has nothing to be cleaned of is built once and not twice.
    pub fn parse(text: &[u8], context: &Context, database: &Database) -> Result<IncomingDocument> {
        let document = context.parse_with(text, database.document_mode())?;
        if let Some(collection) = clean_collection(&document, EMPTY_COLLECTION, database)? {
            return Ok(IncomingDocument { bytes: document.as_bytes().to_vec(), collection });
        }
        IncomingDocument::new(&document, context, database)
    }

    /// One that the database built itself.
    pub(crate) fn built(bytes: Vec<u8>, collection: String) -> IncomingDocument {
        IncomingDocument { bytes, collection }
    }

    /// The collection's name.
    pub fn collection(&self) -> &str {
        &self.collection
    }

    /// The document's bytes, as [`Document::open`] takes them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The document.
    pub fn document(&self) -> Result<Document<'_>> {
        Ok(Document::open(&self.bytes)?)
    }
}

/// A document's root. Error: it is no object.
fn object_of<'a>(value: &Value<'a>) -> Result<Object<'a>> {
    value.as_object().ok_or_else(|| {
        Error::InvalidArgument(format!("a document must be an object, not {}", value.type_name()))
    })
}

fn is_no_collection(name: &str) -> bool {
    name.is_empty() || name == EMPTY_COLLECTION
}

/// The collection of a document that can be stored as it is; one that names none belongs to `default`.
fn clean_collection(document: &Document<'_>, default: &str, database: &Database) -> Result<Option<String>> {
    let Some(object) = document.object() else { return Ok(None) };
    let Some(metadata) = metadata_of(&object)? else { return Ok(None) };
    let name = match metadata.get(COLLECTION) {
        None if is_no_collection(default) => std::borrow::Cow::Borrowed(EMPTY_COLLECTION),
        None => return Ok(None),
        Some(name) => match name.as_str().filter(|name| !name.is_empty()) {
            Some(name) => name,
            None => return Ok(None),
        },
    };
    let is_clean = metadata.iter().all(|(name, _)| !is_output_only(&name.to_str()));
    Ok((is_clean && database.collection_name(&name) == name).then(|| name.into_owned()))
}

/// A document's metadata. Error: it is no object.
fn metadata_of<'a>(object: &Object<'a>) -> Result<Option<Object<'a>>> {
    match object.get(METADATA) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_object() {
            Some(metadata) => Ok(Some(metadata)),
            None => Err(Error::InvalidArgument(format!(
                "{METADATA} must be an object, not {}",
                value.type_name()
            ))),
        },
    }
}
