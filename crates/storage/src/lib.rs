//! A transactional storage engine: memory-mapped, copy-on-write, multi-version B+trees behind a compressed journal.
//!
//! An [`Environment`](environment) is one directory. One write transaction at a time changes it; any number of readers see
//! snapshots, and neither ever waits for the other. A commit returns when it is durable.

mod btree;
pub mod disk;
mod error;
mod fixed;
pub mod format;
mod heap;
mod multi;
mod page;
mod pages;
#[cfg(test)]
mod pages_in_memory;
mod table;
mod visit;

pub use error::{Error, Result};
pub use format::{PAGE_SIZE, PageNumber, TransactionId};
pub use table::{
    By, Direction, IndexKind, IndexSchema, ROW_COLUMNS_MAX, Row, RowBuilder, Schema, TABLE_INDEXES_MAX,
};
