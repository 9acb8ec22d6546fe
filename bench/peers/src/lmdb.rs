//! LMDB: synchronous commits, which are its default; no read-ahead, as all access is random or cached.
//!
//! `lmdb-tuned` also writes through the map (`MDB_WRITEMAP`) and tells it when keys ascend (`MDB_APPEND`).

use std::path::Path;

use anyhow::Result;
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RoTxn, WithTls};
use jackdaw_bench::engine::{Batch, Engine, Entry, Purpose, Reader};

/// LMDB as it comes.
pub(crate) const ENTRY: Entry =
    Entry { name: "lmdb", by_default: true, open: |path, _: Purpose| open(path, false) };

/// LMDB with what its manual offers to those who know their workload.
pub(crate) const ENTRY_TUNED: Entry =
    Entry { name: "lmdb-tuned", by_default: false, open: |path, _: Purpose| open(path, true) };

/// Address space for the file: more than any workload needs, as LMDB cannot grow its map while readers are open.
const MAP_SIZE: usize = 256 << 30;

struct Lmdb {
    env: Env,
    db: Database<Bytes, Bytes>,
    tuned: bool,
}

struct Snapshot<'a>(RoTxn<'a, WithTls>, Database<Bytes, Bytes>);

fn open(path: &Path, tuned: bool) -> Result<Box<dyn Engine>> {
    let mut flags = EnvFlags::NO_READ_AHEAD | EnvFlags::NO_MEM_INIT;
    if tuned {
        flags |= EnvFlags::WRITE_MAP;
    }
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_SIZE).max_readers(1024);
    // SAFETY: the process opens this directory once, and nothing else touches it; no flag drops durability.
    let env = unsafe { options.flags(flags).open(path) }?;
    let mut transaction = env.write_txn()?;
    let db = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok(Box::new(Lmdb { env, db, tuned }))
}

impl Engine for Lmdb {
    fn write(&self, batch: &Batch) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        let flags = if self.tuned && batch.sequential { PutFlags::APPEND } else { PutFlags::empty() };
        for (key, value) in batch.iter() {
            self.db.put_with_flags(&mut transaction, flags, key, value)?;
        }
        Ok(transaction.commit()?)
    }

    fn read(&self, f: &mut dyn FnMut(&mut dyn Reader) -> Result<()>) -> Result<()> {
        f(&mut Snapshot(self.env.read_txn()?, self.db))
    }

    fn open_readers(&self, count: u64) -> Result<()> {
        for _ in 0..count {
            drop(std::hint::black_box(self.env.read_txn()?));
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}

impl Reader for Snapshot<'_> {
    fn get(&mut self, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.1.get(&self.0, key)?.map(f).is_some())
    }

    fn scan(&mut self, f: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        for item in self.1.iter(&self.0)? {
            let (key, value) = item?;
            f(key, value);
        }
        Ok(())
    }
}
