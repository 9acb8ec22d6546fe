//! What maps may ask for while they run: other documents and compare-exchange values, as of the batch's snapshot. Each that is asked for is
//! noted, found or not, so that a change of it runs the map again.

use bumpalo::Bump;
use jackdaw_database::{Snapshot, ids};
use jackdaw_document::Value;
use jackdaw_functions::{Host, Input, RuntimeError};

/// What one document asked for.
#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Lower-case ids of documents, each once.
    pub(crate) documents: Vec<String>,
    /// Lower-case keys of compare-exchange values, each once.
    pub(crate) compare_exchange: Vec<String>,
}

/// The host of one batch.
pub(crate) struct BatchHost<'s> {
    snapshot: &'s Snapshot,
    /// Names that the snapshot does not hold as text of their own.
    names: &'s Bump,
    last_name: &'s str,
    pub(crate) asked: Asked,
}

impl<'s> BatchHost<'s> {
    pub(crate) fn new(snapshot: &'s Snapshot, names: &'s Bump) -> BatchHost<'s> {
        BatchHost { snapshot, names, last_name: "", asked: Asked::default() }
    }

    /// A collection's name, as long as the snapshot lives.
    pub(crate) fn name(&mut self, name: &str) -> &'s str {
        // Neighbours are mostly of one collection.
        if self.last_name != name {
            self.last_name = self.names.alloc_str(name);
        }
        self.last_name
    }

    fn load(&self, id: &str) -> Result<Option<Input<'s>>, RuntimeError> {
        let found = self.snapshot.document(id).map_err(failed)?;
        Ok(found.map(|document| Input {
            document: document.document,
            id: document.id,
            collection: self.names.alloc_str(&self.snapshot.collection_of(&document)),
            last_modified: document.last_modified,
            change_vector: self.names.alloc_str(&document.change_vector.to_string()),
        }))
    }
}

fn failed(error: jackdaw_database::Error) -> RuntimeError {
    RuntimeError::Host(error.to_string())
}

fn note(list: &mut Vec<String>, key: &str) {
    let key = ids::lower(key);
    if !list.iter().any(|noted| *noted == *key) {
        list.push(key.into_owned());
    }
}

impl<'s> Host<'s> for BatchHost<'s> {
    fn load_document(
        &mut self,
        id: &str,
        _collection: Option<&str>,
    ) -> Result<Option<Input<'s>>, RuntimeError> {
        if id.is_empty() {
            return Ok(None);
        }
        note(&mut self.asked.documents, id);
        self.load(id)
    }

    fn load_untracked(
        &mut self,
        id: &str,
        _collection: Option<&str>,
    ) -> Result<Option<Input<'s>>, RuntimeError> {
        self.load(id)
    }

    fn compare_exchange(&mut self, key: &str) -> Result<Option<Value<'s>>, RuntimeError> {
        if key.is_empty() {
            return Ok(None);
        }
        note(&mut self.asked.compare_exchange, key);
        let found = self.snapshot.compare_exchange(key).map_err(failed)?;
        Ok(found.and_then(|found| found.value.get("Object")))
    }
}
