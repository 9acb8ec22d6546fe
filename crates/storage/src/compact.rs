//! Compaction: an environment written anew into another directory, without holes and with full pages.

use std::path::Path;

use crate::disk::RealDisk;
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
        let disk = RealDisk::open(directory).map_err(|e| Error::io("open", directory, e))?;
        if !disk.is_empty().map_err(|e| Error::io("list", directory, e))? {
            return Err(Error::Invalid(format!("{} is not empty", directory.display())));
        }
        let target = Environment::open(directory, Options::default())?;
        for (name, state) in entries(self, &self.root()?.catalog)? {
            match state.kind() {
                Kind::Tree => self.copy_tree(&name, &target)?,
                Kind::MultiTree => self.copy_multi_tree(&name, &target)?,
                Kind::FixedTree => self.copy_fixed_tree(&name, &target)?,
                Kind::Table => self.copy_table(&name, &target)?,
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

    fn copy_multi_tree(&self, name: &[u8], target: &Environment) -> Result<()> {
        let mut cursor = self.multi_tree(name)?.cursor();
        let mut more = cursor.first()?;
        loop {
            let mut tx = target.write()?;
            let mut tree = tx.create_multi_tree(name)?;
            let mut copied = 0;
            while more && copied < BATCH_BYTES {
                let (key, value) = (cursor.key(), cursor.value());
                copied += key.len() + value.len();
                tree.add(key, value)?;
                more = cursor.next()?;
            }
            drop(tree);
            tx.commit()?;
            if !more {
                return Ok(());
            }
        }
    }

    fn copy_fixed_tree(&self, name: &[u8], target: &Environment) -> Result<()> {
        let source = self.fixed_tree(name)?;
        let mut cursor = source.cursor();
        let mut entry = cursor.first()?;
        loop {
            let mut tx = target.write()?;
            let mut tree = tx.create_fixed_tree(name, source.value_size())?;
            let mut copied = 0;
            while let Some((key, value)) = entry
                && copied < BATCH_BYTES
            {
                copied += size_of_val(&key) + value.len();
                tree.put(key, value)?;
                entry = cursor.next()?;
            }
            drop(tree);
            tx.commit()?;
            if entry.is_none() {
                return Ok(());
            }
        }
    }

    fn copy_table(&self, name: &[u8], target: &Environment) -> Result<()> {
        let source = self.table(name)?;
        let mut last = None;
        loop {
            let mut tx = target.write()?;
            let mut table = tx.create_table(name, source.schema())?;
            last = table.copy_rows(&source, last.as_deref(), BATCH_BYTES as u64)?;
            drop(table);
            tx.commit()?;
            if last.is_none() {
                return Ok(());
            }
        }
    }
}
