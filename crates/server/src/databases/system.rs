//! The server's own storage environment: the records of all databases, and what the server must remember.
//!
//! Each change is one transaction, durable when the call returns. Calls block on the disk for as long as that takes.

use std::path::Path;

use jackdaw_database::ClusterIndex;
use jackdaw_storage::{Environment, Options};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{ErrorKind, Result};
use crate::wire::database_record::DatabaseRecord;

/// Lower-cased name to record, as JSON.
const RECORDS: &[u8] = b"records";
/// Name to value, as JSON.
const STATE: &[u8] = b"state";
/// In [`STATE`]: the last index that was given out.
const LAST_INDEX: &str = "last-index";

/// The system store.
pub(crate) struct SystemStore {
    environment: Environment,
    cluster_index: ClusterIndex,
}

impl SystemStore {
    /// Opens the store in a directory, making it when there is none.
    pub(crate) fn open(path: &Path) -> Result<SystemStore> {
        // It holds little and is written rarely.
        let options = Options::default().scratch_size_max(64 << 20).journal_zeroed_max(1 << 20);
        let environment = Environment::open(path, options)?;
        let mut transaction = environment.write()?;
        transaction.create_tree(RECORDS)?;
        transaction.create_tree(STATE)?;
        transaction.commit()?;
        let store = SystemStore { environment, cluster_index: ClusterIndex::default() };
        store.cluster_index.raise_to(store.get(LAST_INDEX)?.unwrap_or_default());
        Ok(store)
    }

    /// What counts changes of records, compare-exchange values and cluster-wide transactions.
    pub(crate) fn cluster_index(&self) -> &ClusterIndex {
        &self.cluster_index
    }

    /// All records.
    pub(crate) fn records(&self) -> Result<Vec<DatabaseRecord>> {
        let snapshot = self.environment.read()?;
        let mut records = Vec::new();
        let mut range = snapshot.tree(RECORDS)?.iter()?;
        while let Some((key, record)) = range.next()? {
            let record = serde_json::from_slice(record).map_err(|error| {
                ErrorKind::Internal.error(format!(
                    "the record of database '{}' cannot be read: {error}",
                    String::from_utf8_lossy(key)
                ))
            })?;
            records.push(record);
        }
        Ok(records)
    }

    /// Stores a record under its lower-cased name.
    pub(crate) fn put_record(&self, key: &str, record: &DatabaseRecord) -> Result<()> {
        self.put_in(RECORDS, key, record)
    }

    /// Forgets a record.
    pub(crate) fn delete_record(&self, key: &str) -> Result<()> {
        let mut transaction = self.environment.write()?;
        transaction.tree_mut(RECORDS)?.delete(key.as_bytes())?;
        transaction.commit()?;
        Ok(())
    }

    /// A value that the server remembers.
    pub(crate) fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let snapshot = self.environment.read()?;
        let Some(value) = snapshot.tree(STATE)?.get(name.as_bytes())? else { return Ok(None) };
        let value = serde_json::from_slice(value).map_err(|error| {
            ErrorKind::Internal.error(format!("the server's '{name}' cannot be read: {error}"))
        })?;
        Ok(Some(value))
    }

    /// Remembers a value.
    pub(crate) fn put(&self, name: &str, value: &impl Serialize) -> Result<()> {
        self.put_in(STATE, name, value)
    }

    fn put_in(&self, tree: &[u8], key: &str, value: &impl Serialize) -> Result<()> {
        let value = serde_json::to_vec(value)?;
        let index = serde_json::to_vec(&self.cluster_index.last())?;
        let mut transaction = self.environment.write()?;
        transaction.tree_mut(tree)?.put(key.as_bytes(), &value)?;
        transaction.tree_mut(STATE)?.put(LAST_INDEX.as_bytes(), &index)?;
        transaction.commit()?;
        Ok(())
    }

    /// Remembers the last index, which databases advance too, and closes.
    pub(crate) fn close(&self) -> Result<()> {
        self.put(LAST_INDEX, &self.cluster_index.last())?;
        match self.environment.clone().close() {
            Ok(()) | Err(jackdaw_storage::Error::Closed | jackdaw_storage::Error::Invalid(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn records_and_values_are_there_after_a_restart() {
        let directory = tempfile::tempdir().expect("a directory");
        let sent = serde_json::json!({ "DatabaseName": "Shop", "Settings": { "a": "b" } });
        let record = DatabaseRecord::from_wire(sent.as_object().expect("an object")).expect("a record");
        {
            let store = SystemStore::open(directory.path()).expect("a new store");
            store.put_record("shop", &record).expect("stored");
            store.put_record("gone", &record).expect("stored");
            store.delete_record("gone").expect("deleted");
            store.put("server-id", &"x").expect("stored");
            store.cluster_index().raise_to(41);
            store.close().expect("closed");
        }
        let store = SystemStore::open(directory.path()).expect("the same store");
        assert_eq!(store.records().expect("readable"), [record]);
        assert_eq!(store.get::<String>("server-id").expect("readable").as_deref(), Some("x"));
        assert_eq!(store.get::<String>("other").expect("readable"), None);
        assert_eq!(store.cluster_index().advance(), 42);
    }
}
