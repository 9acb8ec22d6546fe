//! Definitions and errors of indexes, kept in the database's own environment: what is answered is durable, and a dump, a backup or a crash finds
//! documents and definitions of one moment (`docs/format/indexes.md`).

use std::ops::Bound;

use jackdaw_database::{Database, Snapshot, Transaction};
use jackdaw_storage::Order;
use serde::{Deserialize, Serialize};

use crate::auto::AutoDefinition;
use crate::definition::{IndexDefinition, LockMode, Priority, State};
use crate::error::{Error, Result};

/// Records of indexes: a tree from the index's number, eight bytes, big-endian, to [`Record`] as JSON.
const RECORDS: &[u8] = b"indexes";
/// Errors of indexes: a tree from the index's number and a document's etag, eight bytes each, big-endian, to [`IndexingError`] as JSON.
const ERRORS: &[u8] = b"index-errors";

/// Errors kept of one index at most.
pub(crate) const ERRORS_KEPT: usize = 500;

/// An index's number: never given twice in a database as long as its files may be there.
pub(crate) type IndexId = u64;

/// What is known of an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: IndexId,
    /// The index of the cluster at which the definition was last changed.
    pub(crate) raft_index: i64,
    /// When it was made, in ticks.
    pub(crate) created: i64,
    /// It is being built to take the place of the index of the same name.
    pub(crate) is_replacement: bool,
    /// What it may do; [`State::Error`] when its functions failed too often.
    pub(crate) state: State,
    pub(crate) lock_mode: LockMode,
    pub(crate) priority: Priority,
    pub(crate) content: Content,
}

/// What is indexed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Content {
    Static(Box<IndexDefinition>),
    Auto(AutoDefinition),
}

impl Record {
    /// The name without the mark of a replacement.
    pub(crate) fn base_name(&self) -> String {
        match &self.content {
            Content::Static(definition) => definition.name.clone(),
            Content::Auto(definition) => definition.name(),
        }
    }
}

/// Something that went wrong while documents were indexed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexingError {
    /// When, in ticks.
    pub timestamp: i64,
    /// The document's id, or the key of a group; `None` when it was neither.
    pub document: Option<String>,
    /// What was done: `Map`, `Reduce` and the like.
    pub action: String,
    /// What went wrong.
    pub error: String,
}

pub(crate) fn records(snapshot: &Snapshot) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    let Some(tree) = snapshot.tree(RECORDS)? else { return Ok(records) };
    let mut range = tree.iter()?;
    while let Some((key, record)) = range.next()? {
        let record = serde_json::from_slice(record)
            .map_err(|error| Error::Damaged(format!("the definition under {key:02x?}: {error}")))?;
        records.push(record);
    }
    Ok(records)
}

pub(crate) fn put(transaction: &mut Transaction<'_>, record: &Record) -> jackdaw_database::Result<()> {
    let bytes = serde_json::to_vec(record).map_err(|error| {
        jackdaw_database::Error::InvalidArgument(format!("the definition cannot be written: {error}"))
    })?;
    transaction.tree(RECORDS)?.put(&record.id.to_be_bytes(), &bytes)?;
    Ok(())
}

/// Forgets an index and its errors.
pub(crate) fn delete(transaction: &mut Transaction<'_>, id: IndexId) -> jackdaw_database::Result<()> {
    transaction.tree(RECORDS)?.delete(&id.to_be_bytes())?;
    delete_errors(transaction, id)
}

pub(crate) fn delete_errors(transaction: &mut Transaction<'_>, id: IndexId) -> jackdaw_database::Result<()> {
    let (low, high) = (id.to_be_bytes(), (id + 1).to_be_bytes());
    transaction.tree(ERRORS)?.delete_range(Bound::Included(&low), Bound::Excluded(&high))?;
    Ok(())
}

/// Adds errors under the etags of their documents, over those of the same etags, and drops the oldest when there are too many. Blocks
/// until that is durable; how many there are then.
///
/// A batch that is run again after a crash meets the same documents and writes the same keys, so that nothing is told twice.
pub(crate) fn add_errors(
    database: &Database,
    id: IndexId,
    errors: Vec<(i64, IndexingError)>,
) -> Result<usize> {
    let job = move |transaction: &mut Transaction<'_>| {
        let mut tree = transaction.tree(ERRORS)?;
        for (etag, error) in &errors {
            let bytes = serde_json::to_vec(error)
                .map_err(|error| jackdaw_database::Error::InvalidArgument(format!("an error: {error}")))?;
            tree.put(&error_key(id, *etag), &bytes)?;
        }
        let mut keys = Vec::new();
        {
            let tree = tree.read();
            let mut range = tree.prefix(&id.to_be_bytes(), Order::Descending)?;
            while let Some((key, _)) = range.next()? {
                keys.push(key.to_vec());
            }
        }
        for key in keys.iter().skip(ERRORS_KEPT) {
            tree.delete(key)?;
        }
        Ok(keys.len().min(ERRORS_KEPT))
    };
    Ok(database.submit(job).wait()?)
}

/// The errors of an index, the oldest first.
pub(crate) fn errors(snapshot: &Snapshot, id: IndexId) -> Result<Vec<IndexingError>> {
    let mut errors = Vec::new();
    let Some(tree) = snapshot.tree(ERRORS)? else { return Ok(errors) };
    let prefix = id.to_be_bytes();
    let mut range = tree.prefix(&prefix, Order::Ascending)?;
    while let Some((_, error)) = range.next()? {
        errors.push(
            serde_json::from_slice(error).map_err(|error| Error::Damaged(format!("an error: {error}")))?,
        );
    }
    Ok(errors)
}

pub(crate) fn count_errors(snapshot: &Snapshot, id: IndexId) -> Result<usize> {
    let Some(tree) = snapshot.tree(ERRORS)? else { return Ok(0) };
    let prefix = id.to_be_bytes();
    let mut range = tree.prefix(&prefix, Order::Ascending)?;
    let mut count = 0;
    while range.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

fn error_key(id: IndexId, etag: i64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&id.to_be_bytes());
    key[8..].copy_from_slice(&etag.to_be_bytes());
    key
}
