//! Our engine and its peers on the same work in the same run. One file per peer; each says how it is set up and why that is fair.

mod fjall;
mod lmdb;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sqlite;

use std::process::ExitCode;

use jackdaw_bench::{engine::Entry, jackdaw, memory};

const ENGINES: &[Entry] = &[
    jackdaw::ENTRY,
    lmdb::ENTRY,
    lmdb::ENTRY_TUNED,
    redb::ENTRY,
    fjall::ENTRY,
    #[cfg(feature = "rocksdb")]
    rocksdb::ENTRY,
    sqlite::ENTRY,
    memory::ENTRY,
];

fn main() -> ExitCode {
    jackdaw_bench::run(ENGINES)
}
