//! Compaction: an environment written anew into another directory, without holes and with full pages.

use std::path::Path;

use crate::error::{Error, Result};
use crate::transaction::catalog::{Kind, entries};
use crate::transaction::read::ReadTransaction;
use crate::{Environment, Options, TransactionId};

/// Bytes copied in one transaction.
const BATCH_BYTES: usize = 16 << 20;

impl Environment {
    /// Copies the newest durable state, tree by tree in key order, into a new environment in `directory`, which must be empty or
    /// not exist. The copy has no free pages and full leaves. Writers go on meanwhile; what they commit is not in the copy.
    ///
    /// Errors: [`Error::Invalid`] when there is an environment already; damage in the source; I/O. The copy is complete only when
    /// this returns without error.
    pub fn compact(&self, directory: impl AsRef<Path>) -> Result<TransactionId> {
        self.read()?.compact(directory)
    }
}

impl ReadTransaction {
    /// As [`Environment::compact`], of this snapshot.
    pub fn compact(&self, directory: impl AsRef<Path>) -> Result<TransactionId> {
        let directory = directory.as_ref();
        let not_empty = |e: std::io::Error| e.kind() != std::io::ErrorKind::NotFound;
        match std::fs::read_dir(directory) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(Error::Invalid(format!("{} is not empty", directory.display())));
                }
            }
            Err(e) if not_empty(std::io::Error::from(e.kind())) => {
                return Err(Error::io("list", directory, e));
            }
            Err(_) => {}
        }
        let target = Environment::open(directory, Options::default())?;
        for (name, state) in entries(self, &self.root()?.catalog)? {
            match state.kind() {
                Kind::Tree => self.copy_tree(&name, &target)?,
                other => return Err(Error::Invalid(format!("a {} cannot be compacted", other.name()))),
            }
        }
        let last = target.last_transaction();
        target.close()?;
        Ok(last)
    }

    fn copy_tree(&self, name: &[u8], target: &Environment) -> Result<()> {
        let mut cursor = self.tree(name)?.cursor();
        let mut more = cursor.first()?;
        loop {
            let mut tx = target.write()?;
            let mut tree = tx.create_tree(name)?;
            let mut copied = 0;
            while more && copied < BATCH_BYTES {
                let (key, value) = (cursor.key(), cursor.value()?);
                copied += key.len() + value.len();
                tree.put(key, value)?;
                more = cursor.next()?;
            }
            drop(tree);
            tx.commit()?;
            if !more {
                return Ok(());
            }
        }
    }
}
