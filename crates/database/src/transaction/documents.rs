//! Storing and deleting documents.

use std::borrow::Cow;
use std::sync::Arc;

use jackdaw_document::Document;

use crate::Etag;
use crate::change_vector::{self, ChangeVector};
use crate::error::{Error, Result};
use crate::ids::{self, IdKind};
use crate::incoming::IncomingDocument;
use crate::metadata::Flags;
use crate::notifications::{ChangeKind, DocumentChange, Event};
use crate::schema::{self, column};
use crate::snapshot::StoredDocument;
use crate::transaction::Transaction;

/// In which state a document must be for a write to happen.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Expected {
    /// Any.
    #[default]
    Any,
    /// There must be none.
    New,
    /// It must have this change vector.
    ChangeVector(String),
}

impl Expected {
    /// As clients say it: nothing for any, an empty text for none.
    pub fn from_text(text: Option<&str>) -> Expected {
        match text {
            None => Expected::Any,
            Some("") => Expected::New,
            Some(text) => Expected::ChangeVector(text.to_owned()),
        }
    }
}

/// How a document is stored.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PutOptions {
    /// In which state it must be.
    pub expected: Expected,
    /// Changes nothing when what is there has the same content.
    pub skip_if_unchanged: bool,
}

/// What was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutResult {
    /// The document's id: the given one, or what it stood for.
    pub id: String,
    /// The etag of the write.
    pub etag: Etag,
    /// The document's change vector now.
    pub change_vector: String,
    /// When it was written, in ticks.
    pub last_modified: i64,
    /// Its collection.
    pub collection: Arc<str>,
    /// What else there is to it.
    pub flags: Flags,
    /// Nothing was written since nothing would have changed.
    pub unchanged: bool,
}

/// What was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteResult {
    /// The etag of the deletion.
    pub etag: Etag,
    /// The change vector of the deletion.
    pub change_vector: String,
    /// The collection that the document was in.
    pub collection: Arc<str>,
}

/// What is known of a document before it is written over.
pub(super) struct Before {
    collection: u32,
    etag: Etag,
    last_modified: i64,
    flags: Flags,
    /// Its change vector when it is not just the database's own.
    pub(super) vector: Option<String>,
    id: String,
    unchanged: bool,
}

impl Before {
    pub(super) fn change_vector(&self, transaction: &Transaction<'_>) -> String {
        match &self.vector {
            Some(vector) => vector.clone(),
            None => own_vector(transaction, self.etag),
        }
    }
}

fn own_vector(transaction: &Transaction<'_>, etag: Etag) -> String {
    let shared = transaction.shared;
    ChangeVector::Own { tag: &shared.node_tag, etag, database: shared.id }.to_string()
}

impl Transaction<'_> {
    /// The document of this id as this job sees it.
    pub fn get(&self, id: &str) -> Result<Option<StoredDocument<'_>>> {
        let key = ids::lower(id);
        if key.is_empty() || key.len() > ids::ID_SIZE_MAX {
            return Ok(None);
        }
        let row = self.storage.table(schema::DOCUMENTS)?.get(key.as_bytes())?;
        row.map(|row| self.shared.document(row)).transpose()
    }

    /// Stores a document under an id, over what is there. An id that ends in `/` gets the etag appended, one that ends in `|` the
    /// next identity of that name, and an empty one becomes a UUID.
    ///
    /// Errors: [`Error::Concurrency`] when the document is not as expected; [`Error::InvalidId`]; those of storage.
    pub fn put(&mut self, id: &str, document: &IncomingDocument, options: PutOptions) -> Result<PutResult> {
        self.put_flagged(id, document, options, Flags::NONE)
    }

    /// As [`Transaction::put`], with flags that the document's metadata shows.
    pub fn put_flagged(
        &mut self,
        id: &str,
        document: &IncomingDocument,
        options: PutOptions,
        flags: Flags,
    ) -> Result<PutResult> {
        let id = match IdKind::of(id) {
            IdKind::Given(id) => Cow::Borrowed(id),
            IdKind::Unique => Cow::Owned(ids::unique()),
            IdKind::Sequential(prefix) => {
                let etag = self.last_etag() + 1;
                Cow::Owned(format!("{prefix}{etag:019}-{}", self.shared.node_tag))
            }
            IdKind::Identity(name) => {
                let value = self.next_identity(name)?;
                Cow::Owned(format!("{}/{value}", name.trim_end_matches('|')))
            }
        };
        let key = ids::key(&id)?;
        let before =
            self.before(&key, options.skip_if_unchanged.then(|| document.document()).transpose()?)?;
        self.check(&id, before.as_ref(), &options.expected, "Put")?;
        if let Some(before) = before.as_ref().filter(|before| before.unchanged) {
            return Ok(PutResult {
                id: before.id.clone(),
                etag: before.etag,
                change_vector: before.change_vector(self),
                last_modified: before.last_modified,
                collection: self.collection_name(before.collection),
                flags: before.flags,
                unchanged: true,
            });
        }
        let etag = self.next_etag();
        let vector = before
            .as_ref()
            .and_then(|before| before.vector.as_deref())
            .map(|vector| change_vector::after_write(vector, &self.shared.node_tag, etag, &self.shared.id));
        self.write(&id, &key, document, before, etag, vector, flags)
    }

    /// Writes a document's row, whatever is there.
    #[expect(clippy::too_many_arguments, reason = "the parts of a row")]
    pub(super) fn write(
        &mut self,
        id: &str,
        key: &str,
        document: &IncomingDocument,
        before: Option<Before>,
        etag: Etag,
        vector: Option<String>,
        flags: Flags,
    ) -> Result<PutResult> {
        let collection = self.collection_number(document.collection())?;
        let last_modified = self.now();
        if let Some(before) = before.as_ref().filter(|before| before.collection != collection) {
            return Err(Error::CollectionMismatch {
                id: id.to_owned(),
                actual: self.collection_name(before.collection).to_string(),
                given: self.collection_name(collection).to_string(),
            });
        }
        let mut head = [0; 12];
        head[..8].copy_from_slice(&last_modified.to_be_bytes());
        head[8..].copy_from_slice(&flags.0.to_be_bytes());
        let row = self
            .state
            .row
            .push(key.as_bytes())
            .push(&collection.to_be_bytes())
            .push_i64(etag)
            .push(&head)
            .push(vector.as_deref().unwrap_or_default().as_bytes())
            .push(if id == key { b"" } else { id.as_bytes() })
            .push(document.as_bytes())
            .finish()?;
        let mut documents = self.storage.table_mut(schema::DOCUMENTS)?;
        match &before {
            Some(_) => {
                documents.update(row)?;
            }
            None => documents.insert(row)?,
        }
        drop(documents);
        if before.is_none() {
            self.count(collection, 1);
            self.forget_tombstone(key, collection)?;
        }
        let collection = self.collection_name(collection);
        let change_vector = vector.unwrap_or_else(|| own_vector(self, etag));
        self.tell(ChangeKind::Put, id, &collection, &change_vector);
        Ok(PutResult {
            id: id.to_owned(),
            etag,
            change_vector,
            last_modified,
            collection,
            flags,
            unchanged: false,
        })
    }

    /// Deletes a document. `None` when there is none, which is no error unless it was expected.
    ///
    /// Errors: [`Error::Concurrency`] when the document is not as expected; [`Error::InvalidId`]; those of storage.
    pub fn delete(&mut self, id: &str, expected: &Expected) -> Result<Option<DeleteResult>> {
        let key = ids::key(id)?;
        let before = self.before(&key, None)?;
        self.check(id, before.as_ref(), expected, "Delete")?;
        let Some(before) = before else { return Ok(None) };
        let etag = self.next_etag();
        let vector = before
            .vector
            .as_deref()
            .map(|vector| change_vector::after_write(vector, &self.shared.node_tag, etag, &self.shared.id));
        self.remove(&key, before, etag, vector).map(Some)
    }

    /// Removes a document's row and leaves a tombstone.
    pub(super) fn remove(
        &mut self,
        key: &str,
        before: Before,
        etag: Etag,
        vector: Option<String>,
    ) -> Result<DeleteResult> {
        self.storage.table_mut(schema::DOCUMENTS)?.delete(key.as_bytes())?;
        let mut head = [0; 12];
        head[..8].copy_from_slice(&self.now().to_be_bytes());
        head[8..].copy_from_slice(&before.flags.0.to_be_bytes());
        let row = self
            .state
            .row
            .push(key.as_bytes())
            .push(&before.collection.to_be_bytes())
            .push_i64(etag)
            .push(&head)
            .push(vector.as_deref().unwrap_or_default().as_bytes())
            .push(if before.id == key { b"" } else { before.id.as_bytes() })
            .finish()?;
        self.storage.table_mut(schema::TOMBSTONES)?.upsert(row)?;
        self.count(before.collection, -1);
        let collection = self.collection_name(before.collection);
        let change_vector = vector.unwrap_or_else(|| own_vector(self, etag));
        self.tell(ChangeKind::Delete, &before.id, &collection, &change_vector);
        Ok(DeleteResult { etag, change_vector, collection })
    }

    /// What is there under a key; compared with what is to come when that is given.
    pub(super) fn before(&self, key: &str, new: Option<Document<'_>>) -> Result<Option<Before>> {
        let documents = self.storage.table(schema::DOCUMENTS)?;
        let Some(row) = documents.get(key.as_bytes())? else { return Ok(None) };
        let head = self.shared.head(&row)?;
        let unchanged = match new {
            Some(new) => Document::open(row.column(column::CONTENT))?.root().same_content(&new.root()),
            None => false,
        };
        Ok(Some(Before {
            collection: head.collection,
            etag: head.etag,
            last_modified: head.last_modified,
            flags: head.flags,
            vector: match head.change_vector {
                ChangeVector::Own { .. } => None,
                ChangeVector::Text(text) => Some(text.into_owned()),
            },
            id: head.id.to_owned(),
            unchanged,
        }))
    }

    fn check(&self, id: &str, before: Option<&Before>, expected: &Expected, verb: &str) -> Result<()> {
        let end = "Optimistic concurrency violation, transaction will be aborted.";
        let (message, wanted, actual) = match (expected, before) {
            (Expected::Any, _) | (Expected::New, None) => return Ok(()),
            (Expected::New, Some(before)) => {
                let actual = before.change_vector(self);
                let what = format!(
                    "Document {id} has change vector {actual}, but {verb} was called with expecting new document. {end}"
                );
                (what, "", Some(actual))
            }
            (Expected::ChangeVector(wanted), None) => {
                let what = format!(
                    "Document {id} does not exist, but {verb} was called with change vector: {wanted}. {end}"
                );
                (what, wanted.as_str(), None)
            }
            (Expected::ChangeVector(wanted), Some(before)) => {
                let actual = before.change_vector(self);
                if ChangeVector::Text(Cow::Borrowed(&actual)).is(wanted) {
                    return Ok(());
                }
                let what = format!(
                    "Document {id} has change vector {actual}, but {verb} was called with change vector {wanted}. {end}"
                );
                (what, wanted.as_str(), Some(actual))
            }
        };
        Err(Error::Concurrency { message, id: id.to_owned(), expected: wanted.to_owned(), actual })
    }

    /// Remembers what will be told once it is durable. Whether anybody listens is asked then: who begins to listen between now and then would
    /// otherwise neither see the change nor hear of it.
    fn tell(&mut self, kind: ChangeKind, id: &str, collection: &Arc<str>, change_vector: &str) {
        let (id, change_vector) = (id.to_owned(), change_vector.to_owned());
        let collection = collection.clone();
        self.state.changed.add_collection(&collection);
        self.state.events.push(Event::Document(DocumentChange { kind, id, collection, change_vector }));
    }
}
