//! RocksDB: synchronous writes, LZ4, a block cache that holds the data, bloom filters of ten bits, background work on two threads.

use std::path::Path;

use anyhow::Result;
use jackdaw_bench::engine::{Batch, CACHE_SIZE, Engine, Entry, Purpose, Reader};
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Options, ReadOptions, SnapshotWithThreadMode,
    WriteBatch, WriteOptions,
};

/// The entry for the harness.
pub(crate) const ENTRY: Entry = Entry { name: "rocksdb", by_default: true, open };

struct RocksDb(DB);

struct Snapshot<'a>(SnapshotWithThreadMode<'a, DB>, &'a DB);

fn open(path: &Path, _: Purpose) -> Result<Box<dyn Engine>> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.increase_parallelism(2);
    options.set_compression_type(DBCompressionType::Lz4);
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(CACHE_SIZE));
    blocks.set_bloom_filter(10.0, false);
    options.set_block_based_table_factory(&blocks);
    Ok(Box::new(RocksDb(DB::open(&options, path)?)))
}

impl Engine for RocksDb {
    fn write(&self, batch: &Batch) -> Result<()> {
        let mut write = WriteBatch::default();
        for (key, value) in batch.iter() {
            write.put(key, value);
        }
        let mut options = WriteOptions::default();
        options.set_sync(true);
        Ok(self.0.write_opt(write, &options)?)
    }

    fn read(&self, f: &mut dyn FnMut(&mut dyn Reader) -> Result<()>) -> Result<()> {
        f(&mut Snapshot(self.0.snapshot(), &self.0))
    }

    fn open_readers(&self, count: u64) -> Result<()> {
        for _ in 0..count {
            drop(std::hint::black_box(self.0.snapshot()));
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Reader for Snapshot<'_> {
    fn get(&mut self, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let mut options = ReadOptions::default();
        options.set_snapshot(&self.0);
        Ok(self.1.get_pinned_opt(key, &options)?.map(|value| f(&value)).is_some())
    }

    fn scan(&mut self, f: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut items = self.0.raw_iterator();
        items.seek_to_first();
        while let Some((key, value)) = items.item() {
            f(key, value);
            items.next();
        }
        Ok(items.status()?)
    }
}
