//! A database with indexes in a temporary folder.
#![allow(dead_code, reason = "each test uses some of it")]

use std::sync::Arc;
use std::time::Duration;

use jackdaw_database::{Database, DatabaseOptions, Expected, IncomingDocument};
use jackdaw_document::Context;
use jackdaw_indexing::{Cutoff, Index, IndexDefinition, Indexes, Options, View, Workers};
use jackdaw_search::{Query, Value};

/// Longer than anything here takes; a test that needs it fails.
pub const LONG: Duration = Duration::from_secs(60);

pub struct Shop {
    pub directory: Arc<tempfile::TempDir>,
    pub database: Database,
    pub indexes: Indexes,
    pub workers: Arc<Workers>,
}

impl Shop {
    pub fn new() -> Shop {
        Shop::open(Arc::new(tempfile::tempdir().unwrap()))
    }

    pub fn open(directory: Arc<tempfile::TempDir>) -> Shop {
        let database = Database::open(directory.path(), "shop", DatabaseOptions::default()).unwrap();
        let workers = Workers::new(2);
        let indexes = Indexes::open(database.clone(), workers.clone(), Options::default()).unwrap();
        Shop { directory, database, indexes, workers }
    }

    /// Closes everything and opens it again.
    pub fn reopen(self) -> Shop {
        let directory = self.directory.clone();
        drop(self);
        Shop::open(directory)
    }

    pub fn put(&self, id: &str, json: &str) -> i64 {
        let context = Context::new();
        let document = context.parse(json).unwrap();
        let document = IncomingDocument::new(&document, &context, &self.database).unwrap();
        let id = id.to_owned();
        let stored =
            self.database.submit(move |transaction| transaction.put(&id, &document, Default::default()));
        stored.wait().unwrap().etag
    }

    pub fn delete(&self, id: &str) -> i64 {
        let id = id.to_owned();
        let deleted = self.database.submit(move |transaction| transaction.delete(&id, &Expected::Any));
        deleted.wait().unwrap().unwrap().etag
    }

    pub fn define(&self, json: serde_json::Value) -> Arc<Index> {
        let definition = IndexDefinition::from_json(&json).unwrap();
        let name = definition.name.clone();
        self.indexes.put(vec![definition]).unwrap();
        self.indexes.get(&name).unwrap()
    }

    pub fn map(&self, name: &str, map: &str) -> Arc<Index> {
        self.define(serde_json::json!({ "Name": name, "Maps": [map] }))
    }

    /// The index, once it has all there is now.
    pub fn caught_up(&self, name: &str) -> Arc<View> {
        let index = self.indexes.get(name).unwrap();
        let view = index.wait_for_blocking(Cutoff::Now, LONG).unwrap().expect("in time");
        view
    }

    /// Keys of the entries that have a term, in order.
    pub fn find(&self, name: &str, field: &str, value: impl Into<Term>) -> Vec<String> {
        let query = Query::Term { field: field.to_owned(), value: value.into().0, exact: false };
        keys(&self.caught_up(name), &query)
    }

    /// Keys of all entries, in order.
    pub fn all(&self, name: &str) -> Vec<String> {
        keys(&self.caught_up(name), &Query::All)
    }

    /// Terms of a field.
    pub fn terms(&self, name: &str, field: &str) -> Vec<String> {
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

pub struct Term(Value);

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

pub fn keys(view: &View, query: &Query) -> Vec<String> {
    let page = view.searcher().search(query, &[], 0, usize::MAX, false).unwrap();
    let mut keys: Vec<String> = page.hits.into_iter().map(|hit| hit.key).collect();
    keys.sort();
    keys
}
