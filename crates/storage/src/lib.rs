//! A transactional storage engine: memory-mapped, copy-on-write, multi-version B+trees behind a compressed journal.
//!
//! An [`Environment`] is one directory. One write transaction at a time changes it; any number of readers see
//! snapshots, and neither ever waits for the other. A commit returns when it is durable.
//!
//! What an environment holds goes by names, each of one [`Kind`]: a [`Tree`] (keys to values of any length), a [`MultiTree`] (keys
//! to sorted sets of values), a [`FixedTree`] (`i64` to values of one size) or a [`Table`] (rows with indexes). Each is opened in a
//! transaction, for reading or (`...Mut`) for writing.

mod backup;
mod btree;
mod check;
mod compact;
mod data_file;
pub mod disk;
mod environment;
mod error;
mod fixed;
mod fixed_tree;
mod flush;
pub mod format;
mod free_space;
mod header_file;
mod heap;
mod inspect;
mod journal;
mod memory;
mod merger;
mod multi;
mod multi_tree;
mod options;
mod page;
mod pages;
#[cfg(test)]
mod pages_in_memory;
mod recovery;
mod root;
mod snapshot;
mod stats;
mod table;
mod table_handle;
mod transaction;
mod tree;
mod visit;

pub use backup::restore;
pub use check::{CheckReport, PageDump, Problem, TreeReport};
pub use environment::Environment;
pub use error::{Error, Result};
pub use fixed_tree::{FixedCursor, FixedRange, FixedTree, FixedTreeMut};
pub use format::{PAGE_SIZE, PageNumber, TransactionId};
pub use inspect::{PageImage, PageItem, PageItemContent, inspect_page};
pub use memory::give_back_freed_memory;
pub use multi_tree::{MultiCursor, MultiRange, MultiTree, MultiTreeMut, ValueCursor};
pub use options::Options;
pub use stats::Stats;
pub use table::{By, IndexKind, IndexSchema, ROW_COLUMNS_MAX, Row, RowBuilder, Schema, TABLE_INDEXES_MAX};
pub use table_handle::{RowCursor, RowRange, Table, TableMut};
pub use transaction::catalog::{Kind, NAME_SIZE_MAX};
pub use transaction::commit::CommitTicket;
pub use transaction::read::ReadTransaction;
pub use transaction::write::{Savepoint, WriteTransaction};
pub use tree::{Cursor, Order, Range, Tree, TreeMut};
