//! Trees that other crates keep in a database's environment, so that what they write is as durable as documents and never apart from them.

use jackdaw_storage::TreeMut;

use crate::error::{Error, Result};
use crate::schema;
use crate::transaction::Transaction;

impl Transaction<'_> {
    /// The tree of this name, made when there is none.
    ///
    /// Errors: [`Error::InvalidOperation`] when the name is that of one of the database's own; those of storage.
    pub fn tree(&mut self, name: &[u8]) -> Result<TreeMut<'_>> {
        if schema::OWN.contains(&name) {
            let name = String::from_utf8_lossy(name);
            return Err(Error::InvalidOperation(format!("the tree '{name}' belongs to the database itself")));
        }
        Ok(self.storage.create_tree(name)?)
    }

    /// The next index of the cluster, for something that this job stores.
    pub fn next_index(&mut self) -> i64 {
        self.next_cluster_index()
    }
}
