//! What the harness asks of a storage engine: atomic, durable batches of puts; point reads and scans on a snapshot.
//!
//! Every adapter must make [`Engine::write`] durable before it returns: what was acknowledged survives the loss of
//! the process and of power.

use std::path::Path;

use anyhow::Result;

/// The bytes of the longest key of any workload.
pub const KEY_SIZE_MAX: usize = 16;

/// The cache that engines with a cache of their own get, in bytes: more than the data of all but the largest workloads, as
/// engines that map their file have the whole page cache.
pub const CACHE_SIZE: usize = 2 << 30;

/// One write transaction: items to put, in the order in which they were made.
pub struct Batch {
    /// How many bytes of each key count.
    pub key_size: usize,
    /// Whether keys ascend, in this batch and from batch to batch.
    pub sequential: bool,
    /// The keys, each padded to the longest.
    pub keys: Vec<[u8; KEY_SIZE_MAX]>,
    /// The values, one per key.
    pub values: Vec<&'static [u8]>,
}

impl Batch {
    /// Key and value of each item.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &'static [u8])> + '_ {
        self.keys.iter().zip(&self.values).map(|(key, value)| (&key[..self.key_size], *value))
    }
}

/// An open store of one engine.
pub trait Engine: Send + Sync {
    /// Puts all items in one transaction; returns when it is durable.
    fn write(&self, batch: &Batch) -> Result<()>;

    /// As [`Engine::write`], called by many threads at once, each with few items: an engine with a way to merge such
    /// transactions uses it.
    fn write_merged(&self, batch: &Batch) -> Result<()> {
        self.write(batch)
    }

    /// Calls `f` with a reader on a snapshot taken now; each thread that reads has its own.
    fn read(&self, f: &mut dyn FnMut(&mut dyn Reader) -> Result<()>) -> Result<()>;

    /// Opens and ends a read transaction `count` times, one after the other, as a server does per request.
    fn open_readers(&self, count: u64) -> Result<()>;

    /// What opening this store had to recover, for engines that tell.
    fn recovered(&self) -> Option<Recovered> {
        None
    }

    /// Closes the store; returns when everything it still had to write is written.
    fn close(self: Box<Self>) -> Result<()>;
}

/// A snapshot.
pub trait Reader {
    /// Calls `f` with the value of a key; returns false when there is none.
    fn get(&mut self, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Calls `f` with every key and value, in the order of keys.
    fn scan(&mut self, f: &mut dyn FnMut(&[u8], &[u8])) -> Result<()>;
}

/// What opening a store had to recover.
#[derive(Clone, Copy, Debug)]
pub struct Recovered {
    /// Bytes of journal that were read.
    pub bytes: u64,
    /// How long the whole opening took, in seconds.
    pub seconds: f64,
}

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Its ordinary settings.
    Ordinary,
    /// Let the journal grow as long as it may, so that the next opening has much to recover. Peers ignore it.
    LongJournal,
}

/// An engine by name.
pub struct Entry {
    /// The name in tables and on the command line.
    pub name: &'static str,
    /// Whether it takes part when no engines are named.
    pub by_default: bool,
    /// Opens or makes the store in a directory that exists.
    pub open: fn(&Path, Purpose) -> Result<Box<dyn Engine>>,
}

/// The name of our engine; all others are peers.
pub const OURS: &str = "jackdaw";
