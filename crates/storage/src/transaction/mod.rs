//! Transactions: snapshots for reading, the one for writing, and what a commit does.

pub(crate) mod catalog;
pub(crate) mod commit;
pub(crate) mod read;
pub(crate) mod table_cache;
mod undo;
pub(crate) mod write;
