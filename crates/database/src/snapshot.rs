//! Reading: one state of the database, as of the last durable write when it was opened.

use std::borrow::Cow;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use jackdaw_document::Document;
use jackdaw_storage::{By, Order, ReadTransaction, Row, Table};

use crate::Etag;
use crate::change_vector::ChangeVector;
use crate::database::Shared;
use crate::error::{Error, Result};
use crate::ids;
use crate::metadata::Flags;
use crate::schema::{self, BY_COLLECTION, BY_ETAG, CollectionRecord, collection_key, column, exchange};

/// One state of a database. Cheap to open, never waits, and stays as it is while others write. Close it soon: while it is open, what
/// is written over stays on disk.
pub struct Snapshot {
    transaction: ReadTransaction,
    pub(crate) shared: Arc<Shared>,
}

/// A document in place: its parts are borrowed from the mapped file.
#[derive(Clone, Debug)]
pub struct StoredDocument<'a> {
    /// The id, as it was first given.
    pub id: &'a str,
    /// The number of its last write.
    pub etag: Etag,
    /// What its state includes.
    pub change_vector: ChangeVector<'a>,
    /// When it was last written, in ticks.
    pub last_modified: i64,
    /// What else there is to it.
    pub flags: Flags,
    /// The number of its collection.
    pub(crate) collection: u32,
    /// Its content, with the stored part of `@metadata`.
    pub document: Document<'a>,
}

/// What is left of a deleted document.
#[derive(Clone, Debug)]
pub struct Tombstone<'a> {
    /// The id that the document had.
    pub id: &'a str,
    /// The number of the deletion.
    pub etag: Etag,
    /// The change vector of the deletion.
    pub change_vector: ChangeVector<'a>,
    /// When it was deleted, in ticks.
    pub last_modified: i64,
    /// What there was to the document.
    pub flags: Flags,
    /// The number of its collection.
    pub(crate) collection: u32,
}

/// A collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Its name, as first seen.
    pub name: String,
    /// How many documents it has.
    pub documents: u64,
}

/// A compare-exchange value in place.
#[derive(Clone, Debug)]
pub struct CompareExchange<'a> {
    /// Its key, as first given.
    pub key: &'a str,
    /// The index of the cluster at which it was written.
    pub index: i64,
    /// `{"Object":...}`, with `@metadata` when it has any.
    pub value: Document<'a>,
}

impl Snapshot {
    pub(crate) fn new(transaction: ReadTransaction, shared: Arc<Shared>) -> Snapshot {
        Snapshot { transaction, shared }
    }

    fn documents(&self) -> Result<Table<'_>> {
        Ok(self.transaction.table(schema::DOCUMENTS)?)
    }

    /// The document of this id, if there is one. An id that cannot be one has none.
    pub fn document(&self, id: &str) -> Result<Option<StoredDocument<'_>>> {
        let key = ids::lower(id);
        if key.is_empty() || key.len() > ids::ID_SIZE_MAX {
            return Ok(None);
        }
        let row = self.documents()?.get(key.as_bytes())?;
        row.map(|row| self.shared.document(row)).transpose()
    }

    /// Visits the documents whose ids begin with `prefix`, in the order of their lower-case ids, from the first after `after` on (which
    /// may be any text), until `visit` breaks.
    pub fn documents_by_prefix<'s>(
        &'s self,
        prefix: &str,
        after: Option<&str>,
        mut visit: impl FnMut(StoredDocument<'s>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let prefix = ids::lower(prefix);
        let documents = self.documents()?;
        let after = after.map(ids::lower).filter(|after| **after >= *prefix);
        let mut range = match &after {
            Some(after) if !after.is_empty() => documents.range(
                By::Primary,
                Bound::Excluded(clip(after.as_bytes())),
                Bound::Unbounded,
                Order::Ascending,
            )?,
            _ => documents.prefix(By::Primary, clip(prefix.as_bytes()), Order::Ascending)?,
        };
        while let Some(row) = range.next()? {
            if !row.column(column::KEY).starts_with(prefix.as_bytes()) {
                break;
            }
            if visit(self.shared.document(row)?)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Visits the documents in the order of their etags, from `from` on (included), up or down, until `visit` breaks.
    pub fn documents_by_etag<'s>(
        &'s self,
        from: Etag,
        order: Order,
        mut visit: impl FnMut(StoredDocument<'s>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let documents = self.documents()?;
        let mut range = documents.from_etag(BY_ETAG, from, order)?;
        while let Some(row) = range.next()? {
            if visit(self.shared.document(row)?)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Visits the documents of a collection in the order of their etags, from `from` on (included), up or down, until `visit` breaks.
    pub fn documents_of_collection<'s>(
        &'s self,
        collection: &str,
        from: Etag,
        order: Order,
        mut visit: impl FnMut(StoredDocument<'s>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let Some(record) = self.collection_record(collection)? else { return Ok(()) };
        let (low, high) = match order {
            Order::Ascending => {
                (collection_key(record.number, from), collection_key(record.number, i64::MAX))
            }
            Order::Descending => (collection_key(record.number, 0), collection_key(record.number, from)),
        };
        let documents = self.documents()?;
        let by = By::Index(BY_COLLECTION);
        let mut range = documents.range(by, Bound::Included(&low), Bound::Included(&high), order)?;
        while let Some(row) = range.next()? {
            if visit(self.shared.document(row)?)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// How many documents have etags from `from` on, of a collection or (`None`) of all; counts to `max`. Reads no document.
    pub fn documents_since(&self, collection: Option<&str>, from: Etag, max: u64) -> Result<u64> {
        let documents = self.documents()?;
        let (mut cursor, high) = match collection {
            None => {
                let mut cursor = documents.cursor(By::Index(BY_ETAG))?;
                if !cursor.seek_etag(from)? {
                    return Ok(0);
                }
                (cursor, None)
            }
            Some(name) => {
                let Some(record) = self.collection_record(name)? else { return Ok(0) };
                let mut cursor = documents.cursor(By::Index(BY_COLLECTION))?;
                if !cursor.seek(&collection_key(record.number, from))? {
                    return Ok(0);
                }
                (cursor, Some(collection_key(record.number, i64::MAX)))
            }
        };
        let mut count = 0;
        while count < max && high.as_ref().is_none_or(|high| cursor.key() <= &high[..]) {
            count += 1;
            if !cursor.next()? {
                break;
            }
        }
        Ok(count)
    }

    /// Visits the tombstones in the order of their etags, from `from` on (included), until `visit` breaks: those of ids that have no document.
    pub fn tombstones_by_etag<'s>(
        &'s self,
        from: Etag,
        mut visit: impl FnMut(Tombstone<'s>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let tombstones = self.transaction.table(schema::TOMBSTONES)?;
        let mut range = tombstones.from_etag(BY_ETAG, from, Order::Ascending)?;
        while let Some(row) = range.next()? {
            if !is_moved(&row) && visit(self.shared.tombstone(row)?)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Visits the tombstones of documents of a collection in the order of their etags, from `from` on (included), until `visit` breaks; also of those
    /// that came back in another collection.
    pub fn tombstones_of_collection<'s>(
        &'s self,
        collection: &str,
        from: Etag,
        mut visit: impl FnMut(Tombstone<'s>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let Some(record) = self.collection_record(collection)? else { return Ok(()) };
        let (low, high) = (collection_key(record.number, from), collection_key(record.number, i64::MAX));
        let tombstones = self.transaction.table(schema::TOMBSTONES)?;
        let by = By::Index(BY_COLLECTION);
        let mut range =
            tombstones.range(by, Bound::Included(&low), Bound::Included(&high), Order::Ascending)?;
        while let Some(row) = range.next()? {
            if visit(self.shared.tombstone(row)?)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The etag of the last tombstone of a document of a collection, or of any without one; 0 when there is none.
    pub fn last_tombstone_etag(&self, collection: Option<&str>) -> Result<Etag> {
        let tombstones = self.transaction.table(schema::TOMBSTONES)?;
        if tombstones.is_empty() {
            return Ok(0);
        }
        let row = match collection {
            None => {
                let mut range = tombstones.from_etag(BY_ETAG, i64::MAX, Order::Descending)?;
                loop {
                    match range.next()? {
                        Some(row) if is_moved(&row) => {}
                        row => break row,
                    }
                }
            }
            Some(name) => {
                let Some(record) = self.collection_record(name)? else { return Ok(0) };
                let (low, high) = (collection_key(record.number, 0), collection_key(record.number, i64::MAX));
                let by = By::Index(BY_COLLECTION);
                tombstones
                    .range(by, Bound::Included(&low), Bound::Included(&high), Order::Descending)?
                    .next()?
            }
        };
        row.map_or(Ok(0), |row| schema::number(&row, column::ETAG))
    }

    /// The etag of the last document, of whatever collection; 0 when there is none.
    pub fn last_document_etag(&self) -> Result<Etag> {
        let row = self.documents()?.from_etag(BY_ETAG, i64::MAX, Order::Descending)?.next()?;
        row.map_or(Ok(0), |row| schema::number(&row, column::ETAG))
    }

    /// A tree that another crate keeps in the database's environment; `None` when there is none of this name.
    pub fn tree(&self, name: &[u8]) -> Result<Option<jackdaw_storage::Tree<'_>>> {
        match self.transaction.tree(name) {
            Ok(tree) => Ok(Some(tree)),
            Err(jackdaw_storage::Error::TreeNotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// How many documents there are. Costs nothing.
    pub fn document_count(&self) -> Result<u64> {
        Ok(self.documents()?.len())
    }

    /// How many tombstones there are. Costs nothing.
    pub fn tombstone_count(&self) -> Result<u64> {
        Ok(self.transaction.table(schema::TOMBSTONES)?.len())
    }

    pub(crate) fn collection_record(&self, name: &str) -> Result<Option<CollectionRecord>> {
        let key = ids::lower(name);
        if key.is_empty() {
            return Ok(None);
        }
        let found = self.transaction.tree(schema::COLLECTIONS)?.get(clip(key.as_bytes()))?;
        found.map(CollectionRecord::decode).transpose()
    }

    /// The collection of this name, if it ever had a document.
    pub fn collection(&self, name: &str) -> Result<Option<Collection>> {
        let record = self.collection_record(name)?;
        Ok(record.map(|record| Collection { name: record.name, documents: record.documents }))
    }

    /// The collections that ever had a document, in the order of their lower-case names.
    pub fn collections(&self) -> Result<Vec<Collection>> {
        let mut collections = Vec::new();
        let mut range = self.transaction.tree(schema::COLLECTIONS)?.iter()?;
        while let Some((_, record)) = range.next()? {
            let record = CollectionRecord::decode(record)?;
            collections.push(Collection { name: record.name, documents: record.documents });
        }
        Ok(collections)
    }

    /// The name of the collection that a document is in.
    pub fn collection_of(&self, document: &StoredDocument<'_>) -> Arc<str> {
        self.shared.collections.name(document.collection)
    }

    /// The name of the collection that a deleted document was in.
    pub fn collection_of_tombstone(&self, tombstone: &Tombstone<'_>) -> Arc<str> {
        self.shared.collections.name(tombstone.collection)
    }

    /// The last etag given out.
    pub fn last_etag(&self) -> Result<Etag> {
        let found = self.transaction.tree(schema::DATABASE)?.get(schema::LAST_ETAG)?;
        found.map_or(Ok(0), schema::i64_of)
    }

    /// The last index of the cluster at which something was written here; 0 when nothing was.
    pub fn last_cluster_index(&self) -> Result<i64> {
        let found = self.transaction.tree(schema::DATABASE)?.get(schema::LAST_CLUSTER_INDEX)?;
        found.map_or(Ok(0), schema::i64_of)
    }

    /// The etag of the last document of a collection; 0 when there is none.
    pub fn last_etag_of_collection(&self, collection: &str) -> Result<Etag> {
        let mut last = 0;
        self.documents_of_collection(collection, i64::MAX, Order::Descending, |document| {
            last = document.etag;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(last)
    }

    /// About how many bytes the documents of a collection take: exact for up to a thousand, else from the last thousand written.
    pub fn estimate_size_of_collection(&self, collection: &str) -> Result<u64> {
        const SAMPLE: u64 = 1000;
        let Some(record) = self.collection_record(collection)? else { return Ok(0) };
        let (mut count, mut bytes) = (0, 0);
        self.documents_of_collection(collection, i64::MAX, Order::Descending, |document| {
            count += 1;
            bytes += document.document.as_bytes().len() as u64;
            Ok(if count == SAMPLE { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(match count {
            0 => 0,
            count => (u128::from(bytes) * u128::from(record.documents) / u128::from(count)) as u64,
        })
    }

    /// How many tombstones there are of documents of a collection. Takes time by their number.
    pub fn tombstone_count_of_collection(&self, collection: &str) -> Result<u64> {
        let Some(record) = self.collection_record(collection)? else { return Ok(0) };
        let (low, high) = (collection_key(record.number, 0), collection_key(record.number, i64::MAX));
        let tombstones = self.transaction.table(schema::TOMBSTONES)?;
        let by = By::Index(BY_COLLECTION);
        let mut range =
            tombstones.range(by, Bound::Included(&low), Bound::Included(&high), Order::Ascending)?;
        let mut count = 0;
        while range.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// The change vector of the whole database: that of its last write; empty when there was none.
    pub fn change_vector(&self) -> Result<String> {
        Ok(match self.last_etag()? {
            0 => String::new(),
            etag => {
                ChangeVector::Own { tag: &self.shared.node_tag, etag, database: self.shared.id }.to_string()
            }
        })
    }

    /// Lets a document's change vector name the last cluster-wide transaction that wrote it, as far as its guard tells: what a cluster-wide
    /// session sends back.
    pub fn mark_with_guard(&self, document: &mut StoredDocument<'_>) -> Result<()> {
        let guard = format!("{}{}", crate::transaction::compare_exchange::GUARD_PREFIX, document.id);
        if let Some(guard) = self.compare_exchange(&guard)? {
            let (text, id) = (document.change_vector.to_string(), &self.shared.cluster_transaction_id);
            if crate::change_vector::transaction_index(&text) == Some(guard.index) {
                return Ok(());
            }
            let marked = crate::change_vector::with_transaction(&text, guard.index, id);
            document.change_vector = ChangeVector::Text(Cow::Owned(marked));
        }
        Ok(())
    }

    /// The identities: names (ending in `|`) and values.
    pub fn identities(&self) -> Result<Vec<(String, i64)>> {
        let mut identities = Vec::new();
        let mut range = self.transaction.tree(schema::IDENTITIES)?.iter()?;
        while let Some((name, value)) = range.next()? {
            identities.push((String::from_utf8_lossy(name).into_owned(), schema::i64_of(value)?));
        }
        Ok(identities)
    }

    /// How many identities there are.
    pub fn identity_count(&self) -> Result<u64> {
        Ok(self.transaction.tree(schema::IDENTITIES)?.len())
    }

    /// The compare-exchange value of this key, if there is one.
    pub fn compare_exchange(&self, key: &str) -> Result<Option<CompareExchange<'_>>> {
        let key = ids::lower(key);
        if key.is_empty() {
            return Ok(None);
        }
        let table = self.transaction.table(schema::COMPARE_EXCHANGE)?;
        table.get(clip(key.as_bytes()))?.map(compare_exchange).transpose()
    }

    /// Visits the compare-exchange values whose keys begin with `prefix`, in the order of their lower-case keys, until `visit` breaks.
    pub fn compare_exchange_by_prefix<'s>(
        &'s self,
        prefix: &str,
        mut visit: impl FnMut(CompareExchange<'s>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let prefix = ids::lower(prefix);
        let table = self.transaction.table(schema::COMPARE_EXCHANGE)?;
        let mut range = table.prefix(By::Primary, clip(prefix.as_bytes()), Order::Ascending)?;
        while let Some(row) = range.next()? {
            if row.column(exchange::KEY).starts_with(prefix.as_bytes())
                && visit(compare_exchange(row)?)?.is_break()
            {
                break;
            }
        }
        Ok(())
    }

    /// How many compare-exchange values there are.
    pub fn compare_exchange_count(&self) -> Result<u64> {
        Ok(self.transaction.table(schema::COMPARE_EXCHANGE)?.len())
    }
}

/// Whether a tombstone is of a document that came back in another collection.
fn is_moved(row: &Row<'_>) -> bool {
    row.column(column::KEY).first() == Some(&schema::MOVED)
}

/// No key of ours is longer than storage takes; one that is finds nothing, in any spelling.
fn clip(key: &[u8]) -> &[u8] {
    &key[..key.len().min(jackdaw_storage::format::KEY_SIZE_MAX)]
}

pub(crate) fn compare_exchange(row: Row<'_>) -> Result<CompareExchange<'_>> {
    Ok(CompareExchange {
        key: schema::text(&row, exchange::NAME)?,
        index: schema::number(&row, exchange::INDEX)?,
        value: Document::open(row.column(exchange::CONTENT))?,
    })
}

/// The columns that documents and tombstones share.
pub(crate) struct Head<'a> {
    pub(crate) id: &'a str,
    pub(crate) collection: u32,
    pub(crate) etag: Etag,
    pub(crate) change_vector: ChangeVector<'a>,
    pub(crate) last_modified: i64,
    pub(crate) flags: Flags,
}

impl Shared {
    pub(crate) fn head<'a>(&'a self, row: &Row<'a>) -> Result<Head<'a>> {
        let damaged = || Error::damaged("a document's row whose columns have other sizes than they should");
        let collection = row.column(column::COLLECTION).try_into().map_err(|_| damaged())?;
        let (ticks, flags) = row.column(column::HEAD).split_first_chunk().ok_or_else(damaged)?;
        let etag = schema::number(row, column::ETAG)?;
        let own = row.column(column::ID).is_empty();
        let change_vector = match schema::text(row, column::CHANGE_VECTOR)? {
            "" => ChangeVector::Own { tag: &self.node_tag, etag, database: self.id },
            text => ChangeVector::Text(Cow::Borrowed(text)),
        };
        Ok(Head {
            id: schema::text(row, if own { column::KEY } else { column::ID })?,
            collection: u32::from_be_bytes(collection),
            etag,
            change_vector,
            last_modified: i64::from_be_bytes(*ticks),
            flags: Flags(u32::from_be_bytes(flags.try_into().map_err(|_| damaged())?)),
        })
    }

    pub(crate) fn document<'a>(&'a self, row: Row<'a>) -> Result<StoredDocument<'a>> {
        let Head { id, collection, etag, change_vector, last_modified, flags } = self.head(&row)?;
        let document = Document::open(row.column(column::CONTENT))?;
        Ok(StoredDocument { id, etag, change_vector, last_modified, flags, collection, document })
    }

    fn tombstone<'a>(&'a self, row: Row<'a>) -> Result<Tombstone<'a>> {
        let Head { id, collection, etag, change_vector, last_modified, flags } = self.head(&row)?;
        Ok(Tombstone { id, etag, change_vector, last_modified, flags, collection })
    }
}
