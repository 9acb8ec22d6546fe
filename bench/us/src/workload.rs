//! The workloads: what is written and read, in which order, how much of it.
//!
//! Item `i` of a workload always has the same key and the same value, so that a reader can check what it finds, in
//! another process too.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::engine::{Batch, KEY_SIZE_MAX};

/// Bytes of random data from which values are cut: beyond the processor's nearer caches, and no more memory than that.
const POOL_SIZE: usize = 4 << 20;

/// One row of the tables.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name, everywhere.
    pub name: &'static str,
    /// What happens.
    pub kind: Kind,
    /// What is in the store.
    shape: Shape,
    /// How many threads work at once.
    pub threads: usize,
    /// The workload whose store this one reads; itself when it makes its own.
    pub store: &'static str,
    /// When it runs without being named.
    pub when: When,
    /// What it is, for people.
    pub title: &'static str,
}

/// What a workload does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Puts all items, transaction by transaction; unit: items a second.
    Write,
    /// Reads items in random order; unit: items a second, all threads together.
    Get,
    /// Reads all items in order; unit: items a second, all threads together.
    Scan,
    /// Every thread commits transactions of one item; unit: commits a second, all threads together.
    Commit,
    /// Opens and ends read transactions; unit: nanoseconds for one.
    OpenReader,
    /// Kills the writer and opens the store again; unit: milliseconds until it is open.
    OpenAfterKill,
    /// As [`Kind::OpenAfterKill`] after much was written to the journal; unit: seconds per GiB of journal.
    Recover,
}

impl Kind {
    /// The unit of the workload's figure.
    pub fn unit(self) -> &'static str {
        match self {
            Kind::Write | Kind::Get | Kind::Scan | Kind::Commit => "ops/s",
            Kind::OpenReader => "ns",
            Kind::OpenAfterKill => "ms",
            Kind::Recover => "s/GiB",
        }
    }

    /// Whether a larger figure is the better one.
    pub fn more_is_better(self) -> bool {
        self.unit() == "ops/s"
    }
}

/// When a workload runs without being named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// In the full run.
    Full,
    /// Only when named.
    Named,
}

/// Sizes, counts and order of a workload's items.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// Items in one transaction.
    pub items_per_transaction: u64,
    /// Transactions.
    pub transactions: u64,
    /// Ascending keys, or uniformly random ones.
    pub sequential: bool,
    /// Values of 64 different characters, which a compressor can shorten by a quarter, or of random bytes.
    pub text: bool,
}

/// How much of a workload to do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// Items, as a part of the workload's own number.
    pub items: f64,
    /// Seconds of the workloads that run for a time.
    pub seconds: f64,
    /// Random reads per thread.
    pub reads: u64,
}

impl Scale {
    /// What the targets are stated for.
    pub const WHOLE: Scale = Scale { items: 1.0, seconds: 2.0, reads: 1_000_000 };
    /// A few minutes for all engines: to see that everything works, and large differences.
    pub const QUICK: Scale = Scale { items: 0.1, seconds: 0.5, reads: 300_000 };
}

const fn shape(key_size: usize, value_size: usize, items_per_transaction: u64, transactions: u64) -> Shape {
    Shape { key_size, value_size, items_per_transaction, transactions, sequential: true, text: false }
}

const W1: Shape = shape(16, 128, 100, 10_000);
const W2: Shape = Shape { sequential: false, ..W1 };
const W2_10M: Shape = Shape { transactions: 100_000, ..W2 };
const W3: Shape = shape(8, 8, 10_000, 500);
const W3_100M: Shape = Shape { transactions: 10_000, ..W3 };
const W3_1G: Shape = Shape { transactions: 100_000, ..W3 };
const W6: Shape = shape(16, 1 << 20, 10, 100);
const W7: Shape = Shape { sequential: false, text: true, ..shape(16, 1126, 100, 2_500) };
const W8: Shape = Shape { items_per_transaction: 1, ..W2 };

const fn workload(name: &'static str, kind: Kind, shape: Shape, title: &'static str) -> Workload {
    Workload { name, kind, shape, threads: 1, store: name, when: When::Always, title }
}

const fn threads(threads: usize, workload: Workload) -> Workload {
    Workload { threads, ..workload }
}

const fn on_w2(workload: Workload) -> Workload {
    Workload { store: "w2", ..workload }
}

/// All workloads, in the order in which they run. Those that read a store come right after the one that makes it.
pub const WORKLOADS: &[Workload] = &[
    workload("w1", Kind::Write, W1, "sequential writes, 128 B, 100 a transaction"),
    workload("w2", Kind::Write, W2, "random writes, 128 B, 100 a transaction"),
    on_w2(workload("w4", Kind::Get, W2, "random reads")),
    on_w2(threads(2, workload("w4-2", Kind::Get, W2, "random reads, 2 threads"))),
    on_w2(workload("w5", Kind::Scan, W2, "full scan")),
    on_w2(threads(2, workload("w5-2", Kind::Scan, W2, "full scan, 2 threads"))),
    on_w2(workload("read-tx", Kind::OpenReader, W2, "open a read transaction")),
    workload("w3", Kind::Write, W3, "tiny sequential writes, 8 B, 10,000 a transaction"),
    workload("w6", Kind::Write, W6, "1 MiB values, 10 a transaction"),
    workload("w7", Kind::Write, W7, "1.1 KB documents, random, 100 a transaction"),
    threads(1, workload("w8-1", Kind::Commit, W8, "one item a commit, 1 thread")),
    threads(8, workload("w8-8", Kind::Commit, W8, "one item a commit, 8 threads")),
    threads(64, workload("w8-64", Kind::Commit, W8, "one item a commit, 64 threads")),
    threads(256, workload("w8-256", Kind::Commit, W8, "one item a commit, 256 threads")),
    workload("w9", Kind::OpenAfterKill, W2, "open after kill -9"),
    workload("recovery", Kind::Recover, W2, "recovery per GiB of journal"),
    Workload {
        when: When::Full,
        ..workload("w2-10m", Kind::Write, W2_10M, "random writes, 10 million items")
    },
    Workload {
        when: When::Full,
        ..workload("w3-100m", Kind::Write, W3_100M, "tiny writes, 100 million items")
    },
    Workload { when: When::Named, ..workload("w3-1g", Kind::Write, W3_1G, "tiny writes, a billion items") },
];

/// The workload of a name.
pub fn find(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.name == name)
}

impl Workload {
    /// Its items at a scale.
    pub fn shape(&self, scale: &Scale) -> Shape {
        let transactions = (self.shape.transactions as f64 * scale.items) as u64;
        Shape { transactions: transactions.max(1), ..self.shape }
    }

    /// Whether it only reads what another workload wrote.
    pub fn reads_store(&self) -> bool {
        self.store != self.name
    }
}

/// Spreads a number over all 64 bits (the finaliser of SplitMix64); the harness's only source of chance.
pub fn mix(i: u64) -> u64 {
    let mut z = i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Shape {
    /// How many items there are.
    pub fn items(&self) -> u64 {
        self.transactions * self.items_per_transaction
    }

    /// Bytes of key and value of one item.
    pub fn item_size(&self) -> u64 {
        (self.key_size + self.value_size) as u64
    }

    /// The key of item `i`, padded to the longest.
    pub fn key(&self, i: u64) -> [u8; KEY_SIZE_MAX] {
        let mut key = [0; KEY_SIZE_MAX];
        match (self.sequential, self.key_size) {
            (true, 8) => key[..8].copy_from_slice(&i.to_be_bytes()),
            (true, _) => key[8..].copy_from_slice(&i.to_be_bytes()),
            (false, _) => {
                key[..8].copy_from_slice(&mix(i).to_be_bytes());
                key[8..].copy_from_slice(&mix(!i).to_be_bytes());
            }
        }
        key
    }

    /// The value of item `i`.
    pub fn value(&self, i: u64) -> &'static [u8] {
        let pool = if self.text { text_pool() } else { random_pool() };
        let at = mix(i ^ 0xABCD_EF01) as usize % (pool.len() - self.value_size);
        &pool[at..at + self.value_size]
    }

    /// An empty batch for this shape.
    pub fn batch(&self) -> Batch {
        Batch { key_size: self.key_size, sequential: self.sequential, keys: Vec::new(), values: Vec::new() }
    }

    /// Fills a batch with the items of one transaction, from item `first` on.
    pub fn fill(&self, batch: &mut Batch, first: u64) {
        batch.keys.clear();
        batch.values.clear();
        for i in first..first + self.items_per_transaction {
            batch.keys.push(self.key(i));
            batch.values.push(self.value(i));
        }
    }
}

fn random_pool() -> &'static [u8] {
    static POOL: OnceLock<Vec<u8>> = OnceLock::new();
    POOL.get_or_init(|| (0..POOL_SIZE as u64).map(|i| mix(i ^ 0x5EED) as u8).collect())
}

fn text_pool() -> &'static [u8] {
    static POOL: OnceLock<Vec<u8>> = OnceLock::new();
    POOL.get_or_init(|| (0..POOL_SIZE as u64).map(|i| b' ' + mix(i ^ 0x5EED) as u8 % 64).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_stores_come_before_their_readers() {
        let mut seen = HashSet::new();
        for workload in WORKLOADS {
            assert!(seen.insert(workload.name), "{} twice", workload.name);
            assert!(seen.contains(workload.store), "{} before its store", workload.name);
        }
    }

    #[test]
    fn random_keys_do_not_repeat_and_sequential_ones_ascend() {
        let keys: HashSet<_> = (0..100_000).map(|i| W2.key(i)).collect();
        assert_eq!(keys.len(), 100_000);
        for shape in [W1, W3] {
            assert!((0..1000).all(|i| shape.key(i)[..shape.key_size] < shape.key(i + 1)[..shape.key_size]));
        }
    }

    #[test]
    fn values_have_their_size_and_differ() {
        for workload in WORKLOADS {
            let shape = workload.shape(&Scale::QUICK);
            assert_eq!(shape.value(7).len(), shape.value_size);
            assert_ne!(shape.value(7), shape.value(8));
        }
        assert!(W7.value(3).iter().all(|byte| (b' '..b' ' + 64).contains(byte)));
    }

    #[test]
    fn a_scale_leaves_at_least_one_transaction() {
        for workload in WORKLOADS {
            assert!(workload.shape(&Scale { items: 1e-9, ..Scale::QUICK }).transactions == 1);
        }
    }
}
