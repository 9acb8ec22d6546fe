//! redb: `Durability::Immediate`, its default, and a cache that holds the data.

use std::path::Path;

use anyhow::Result;
use jackdaw_bench::engine::{Batch, CACHE_SIZE, Engine, Entry, Purpose, Reader};
use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition};

/// The entry for the harness.
pub(crate) const ENTRY: Entry = Entry { name: "redb", by_default: true, open };

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("t");

struct Redb(Database);

struct Snapshot(ReadOnlyTable<&'static [u8], &'static [u8]>);

fn open(path: &Path, _: Purpose) -> Result<Box<dyn Engine>> {
    Ok(Box::new(Redb(Database::builder().set_cache_size(CACHE_SIZE).create(path.join("db.redb"))?)))
}

impl Engine for Redb {
    fn write(&self, batch: &Batch) -> Result<()> {
        let transaction = self.0.begin_write()?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for (key, value) in batch.iter() {
                table.insert(key, value)?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&self, f: &mut dyn FnMut(&mut dyn Reader) -> Result<()>) -> Result<()> {
        f(&mut Snapshot(self.0.begin_read()?.open_table(TABLE)?))
    }

    fn open_readers(&self, count: u64) -> Result<()> {
        for _ in 0..count {
            drop(std::hint::black_box(self.0.begin_read()?));
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Reader for Snapshot {
    fn get(&mut self, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.0.get(key)?.map(|value| f(value.value())).is_some())
    }

    fn scan(&mut self, f: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        for item in self.0.iter()? {
            let (key, value) = item?;
            f(key.value(), value.value());
        }
        Ok(())
    }
}
