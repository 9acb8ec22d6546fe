//! A database with indexes in a temporary folder.
#![allow(dead_code, reason = "each test uses some of it")]

use std::sync::Arc;
use std::time::Duration;

use jackdaw_database::{Database, DatabaseOptions, Expected, IncomingDocument};
use jackdaw_document::Context;
use jackdaw_indexing::{Cutoff, Index, IndexDefinition, Indexes, Options, View, Workers};
use jackdaw_search::{Query, Value};

/// Longer than anything here takes; a test that needs it fails.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) struct Shop {
    pub(crate) directory: Option<Arc<tempfile::TempDir>>,
    pub(crate) database: Database,
    pub(crate) indexes: Indexes,
    pub(crate) workers: Arc<Workers>,
}

impl Shop {
    pub(crate) fn new() -> Shop {
        Shop::open(Arc::new(tempfile::tempdir().unwrap()))
    }

    pub(crate) fn open(directory: Arc<tempfile::TempDir>) -> Shop {
        let mut shop = Shop::at(directory.path());
        shop.directory = Some(directory);
        shop
    }

    /// In a directory that is somebody else's.
    pub(crate) fn at(directory: &std::path::Path) -> Shop {
        let database = Database::open(directory, "shop", DatabaseOptions::default()).unwrap();
        let workers = Workers::new(2);
        let indexes = Indexes::open(database.clone(), workers.clone(), Options::default()).unwrap();
        Shop { directory: None, database, indexes, workers }
    }

    /// Closes everything and opens it again.
    pub(crate) fn reopen(self) -> Shop {
        let directory = self.directory.clone().expect("its own directory");
        drop(self);
        Shop::open(directory)
    }

    pub(crate) fn put(&self, id: &str, json: &str) -> i64 {
        let context = Context::new();
        let document = context.parse(json).unwrap();
        let document = IncomingDocument::new(&document, &context, &self.database).unwrap();
        let id = id.to_owned();
        let stored =
            self.database.submit(move |transaction| transaction.put(&id, &document, Default::default()));
        stored.wait().unwrap().etag
    }

    pub(crate) fn delete(&self, id: &str) -> i64 {
        self.try_delete(id).expect("there is one")
    }

    /// The deletion's etag, if there was something to delete.
    pub(crate) fn try_delete(&self, id: &str) -> Option<i64> {
        let id = id.to_owned();
        let deleted = self.database.submit(move |transaction| transaction.delete(&id, &Expected::Any));
        deleted.wait().unwrap().map(|deleted| deleted.etag)
    }

    pub(crate) fn define(&self, json: serde_json::Value) -> Arc<Index> {
        let definition = IndexDefinition::from_json(&json).unwrap();
        let name = definition.name.clone();
        self.indexes.put(vec![definition]).unwrap();
        self.indexes.get(&name).unwrap()
    }

    pub(crate) fn map(&self, name: &str, map: &str) -> Arc<Index> {
        self.define(serde_json::json!({ "Name": name, "Maps": [map] }))
    }

    /// The index, once it has all there is now.
    pub(crate) fn caught_up(&self, name: &str) -> Arc<View> {
        let index = self.indexes.get(name).unwrap();
        index.wait_for_blocking(Cutoff::Now, LONG).unwrap().expect("in time")
    }

    /// Keys of the entries that have a term, in order.
    pub(crate) fn find(&self, name: &str, field: &str, value: impl Into<Term>) -> Vec<String> {
        let query = Query::Term { field: field.to_owned(), value: value.into().0, exact: false };
        keys(&self.caught_up(name), &query)
    }

    /// Keys of all entries, in order.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        keys(&self.caught_up(name), &Query::All)
    }

    /// Terms of a field.
    pub(crate) fn terms(&self, name: &str, field: &str) -> Vec<String> {
        let view = self.caught_up(name);
        self.indexes.get(name).unwrap().terms(&view, field, None, usize::MAX).unwrap()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.indexes.close();
        self.workers.stop();
        if let Err(error) = self.database.close() {
            eprintln!("the database is not closed: {error}");
        }
    }
}

pub(crate) struct Term(Value);

impl From<&str> for Term {
    fn from(text: &str) -> Term {
        Term(Value::Text(text.to_owned()))
    }
}

impl From<i64> for Term {
    fn from(number: i64) -> Term {
        Term(Value::Long(number))
    }
}

pub(crate) fn keys(view: &View, query: &Query) -> Vec<String> {
    let page = view.searcher().search(query, &[], 0, usize::MAX, false).unwrap();
    let mut keys: Vec<String> = page.hits.into_iter().map(|hit| hit.key).collect();
    keys.sort();
    keys
}
