//! What a function is given, what it may ask for, and what it returns.

use jackdaw_document::{self as document, Builder, Document};

use crate::error::RuntimeError;
use crate::value::{self, Value};

/// A stored document: the one a map is run over, or one that it loads.
#[derive(Clone, Copy, Debug)]
pub struct Input<'d> {
    /// The document as it is stored, `@metadata` included.
    pub document: Document<'d>,
    /// Its id, spelled as it was when it was stored.
    pub id: &'d str,
    /// Its collection, spelled as it is in its metadata. Empty for none.
    pub collection: &'d str,
    /// When it was last changed, in ticks of universal time; `@last-modified` of its metadata.
    pub last_modified: i64,
    /// Its change vector; `@change-vector` of its metadata.
    pub change_vector: &'d str,
}

impl<'d> Input<'d> {
    /// A document of which only the id is known, beside what is in it.
    #[must_use]
    pub fn new(document: Document<'d>, id: &'d str) -> Input<'d> {
        Input { document, id, collection: "", last_modified: 0, change_vector: "" }
    }
}

/// An attachment as `LoadAttachment` gives it.
#[derive(Clone, Copy, Debug)]
pub struct Attachment<'d> {
    /// Its name.
    pub name: &'d str,
    /// Its content type; may be empty.
    pub content_type: &'d str,
    /// The hash of its content, as text.
    pub hash: &'d str,
    /// Its content.
    pub content: &'d [u8],
}

/// What a running function may ask for. `'d` is how long what it gets stays: that of the snapshot that the indexing batch reads.
///
/// Who implements this notes each reference asked for, found or not, so that a change of the referenced document runs the function again.
pub trait Host<'d> {
    /// The document with this id. `collection` is the one that the function names; documents of other collections are given too.
    ///
    /// # Errors
    ///
    /// When reading fails; the run then ends with that error.
    fn load_document(
        &mut self,
        id: &str,
        collection: Option<&str>,
    ) -> Result<Option<Input<'d>>, RuntimeError>;

    /// As [`Host::load_document`], but a change of the document does not run the function again (`NoTracking.LoadDocument`).
    ///
    /// # Errors
    ///
    /// As [`Host::load_document`].
    fn load_untracked(
        &mut self,
        id: &str,
        collection: Option<&str>,
    ) -> Result<Option<Input<'d>>, RuntimeError> {
        self.load_document(id, collection)
    }

    /// The value under a compare-exchange key: what stands under `Object` in it.
    ///
    /// # Errors
    ///
    /// As [`Host::load_document`].
    fn compare_exchange(&mut self, key: &str) -> Result<Option<document::Value<'d>>, RuntimeError>;

    /// An attachment of a document. The default has none.
    ///
    /// # Errors
    ///
    /// As [`Host::load_document`].
    fn attachment(&mut self, _id: &str, _name: &str) -> Result<Option<Attachment<'d>>, RuntimeError> {
        Ok(None)
    }
}

/// A host that knows nothing: for functions that load nothing, and for tests.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoHost;

impl<'d> Host<'d> for NoHost {
    fn load_document(&mut self, _: &str, _: Option<&str>) -> Result<Option<Input<'d>>, RuntimeError> {
        Ok(None)
    }

    fn compare_exchange(&mut self, _: &str) -> Result<Option<document::Value<'d>>, RuntimeError> {
        Ok(None)
    }
}

/// What a map or reduce function returns for one entry: fields in order, each name once.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Names and values. When the function's field names are known beforehand, these are all of them in that order.
    pub fields: &'a [(&'a str, Value<'a>)],
    /// The boost of the whole entry; 1 is none.
    pub boost: f32,
}

impl<'a> Entry<'a> {
    /// An entry of these fields without a boost.
    #[must_use]
    pub fn new(fields: &'a [(&'a str, Value<'a>)]) -> Entry<'a> {
        Entry { fields, boost: 1.0 }
    }

    /// The value of a field, if there is one of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| *value)
    }

    /// Writes the entry as an object into a document that is being built, as [`Value::append_to`] writes values.
    ///
    /// # Errors
    ///
    /// Those of the builder.
    pub fn append_to(&self, builder: &mut Builder<'_>) -> document::Result<()> {
        value::append_fields(self.fields, builder)
    }
}

/// Where a run's entries go. An error ends the run and is its result.
pub type Each<'e> = dyn FnMut(&Entry<'_>) -> Result<(), RuntimeError> + 'e;
