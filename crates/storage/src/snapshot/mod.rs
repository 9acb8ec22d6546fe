//! Which version of a page a transaction sees: scratch memory for changed pages, the page table that finds them
//! without locks, and the readers whose snapshots must stay whole.

pub(crate) mod page_table;
pub(crate) mod readers;
pub(crate) mod scratch_memory;
pub(crate) mod sync;

#[cfg(all(test, loom))]
mod loom_tests;
