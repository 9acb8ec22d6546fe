//! fjall: every batch persisted with `fdatasync` (`PersistMode::SyncData`), a cache that holds the data, and otherwise its
//! defaults.

use std::path::Path;

use anyhow::Result;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable};
use jackdaw_bench::engine::{Batch, CACHE_SIZE, Engine, Entry, Purpose, Reader};

/// The entry for the harness.
pub(crate) const ENTRY: Entry = Entry { name: "fjall", by_default: true, open };

struct Fjall {
    db: Database,
    keyspace: Keyspace,
}

struct Snapshot<'a>(fjall::Snapshot, &'a Keyspace);

fn open(path: &Path, _: Purpose) -> Result<Box<dyn Engine>> {
    let db = Database::builder(path).cache_size(CACHE_SIZE as u64).open()?;
    let keyspace = db.keyspace("t", KeyspaceCreateOptions::default)?;
    Ok(Box::new(Fjall { db, keyspace }))
}

impl Engine for Fjall {
    fn write(&self, batch: &Batch) -> Result<()> {
        let mut write = self.db.batch().durability(Some(PersistMode::SyncData));
        for (key, value) in batch.iter() {
            write.insert(&self.keyspace, key, value);
        }
        Ok(write.commit()?)
    }

    fn read(&self, f: &mut dyn FnMut(&mut dyn Reader) -> Result<()>) -> Result<()> {
        f(&mut Snapshot(self.db.snapshot(), &self.keyspace))
    }

    fn open_readers(&self, count: u64) -> Result<()> {
        for _ in 0..count {
            drop(std::hint::black_box(self.db.snapshot()));
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Reader for Snapshot<'_> {
    fn get(&mut self, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.0.get(self.1, key)?.map(|value| f(&value)).is_some())
    }

    fn scan(&mut self, f: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        for item in self.0.iter(self.1) {
            let (key, value) = item.into_inner()?;
            f(&key, &value);
        }
        Ok(())
    }
}
