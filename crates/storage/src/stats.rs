//! Numbers about an open environment that cost nothing to get. What takes a walk over all pages is in `check`.

use std::sync::atomic::Ordering;

use crate::Environment;
use crate::format::{PAGE_SIZE, TransactionId};

/// What an environment is doing. Sizes are in bytes; counters run since it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The newest durable transaction.
    pub last_transaction: TransactionId,
    /// The transaction up to which the data file is complete and synced.
    pub synced_transaction: TransactionId,
    /// The oldest open snapshot's transaction, when there is one.
    pub oldest_reader: Option<TransactionId>,
    /// How many snapshots are open.
    pub readers: usize,
    /// An open snapshot is so old (see [`crate::Options::reader_lag_warning`]) that it keeps changed pages in memory.
    pub reader_lags: bool,
    /// Bytes of the data file.
    pub data_file_size: u64,
    /// Pages of the environment, free ones included, as of the newest transaction (durable or on its way).
    pub pages: u64,
    /// How many of them are free.
    pub free_pages: u64,
    /// Scratch memory in use: changed pages that are not in the data file yet, or that a snapshot needs.
    pub scratch_used: u64,
    /// Scratch memory mapped from the system for pages.
    pub scratch_mapped: u64,
    /// The limit of scratch memory.
    pub scratch_max: u64,
    /// Journal files that recovery would read, beside the one being written, and their bytes.
    pub journal_files: usize,
    /// Their bytes.
    pub journal_size: u64,
    /// Journal files kept ready for use.
    pub journal_spare_files: usize,
    /// Their bytes.
    pub journal_spare_size: u64,
    /// Whether journal writes bypass the system's cache (`O_DIRECT|O_DSYNC`) or are written and then synced.
    pub journal_is_direct: bool,
    /// Commits since opening.
    pub commits: u64,
    /// Writes to the journal; fewer than commits when commits were written together.
    pub journal_writes: u64,
    /// Bytes written to the journal.
    pub journal_bytes: u64,
    /// Bytes of the records' bodies before compression.
    pub journal_bytes_uncompressed: u64,
    /// Bytes of long values written to the data file directly.
    pub direct_bytes: u64,
    /// Flushes done.
    pub flushes: u64,
    /// Pages (and runs) that flushes dealt with.
    pub pages_flushed: u64,
    /// Bytes that flushes wrote to the data file.
    pub bytes_flushed: u64,
    /// How long write transactions were held back because scratch memory was filling, in microseconds.
    pub throttled_us: u64,
    /// Records that opening applied from the journal.
    pub recovered_records: u64,
    /// Their bytes.
    pub recovered_bytes: u64,
    /// How long opening took, in microseconds.
    pub open_us: u64,
    /// Why the environment takes no more writes, when it does not.
    pub failure: Option<String>,
}

impl Environment {
    /// The environment's numbers now. Waits for the write transaction, if one is open, only to read the page counts when it can do so
    /// at once; otherwise they are as of the newest snapshot.
    pub fn stats(&self) -> Stats {
        let inner = &self.inner;
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let (oldest, readers) = inner.readers.oldest();
        let oldest_reader = oldest.filter(|_| readers > 0); // else it is the flusher's own pin
        let last_transaction = self.last_transaction();
        let root = match inner.writer.try_lock() {
            Some(writer) => Some(writer.root),
            None => self.read().and_then(|snapshot| snapshot.root()).ok(),
        };
        let ((journal_files, journal_size), (journal_spare_files, journal_spare_size)) =
            inner.journal.sizes();
        let counters = &inner.counters;
        Stats {
            last_transaction,
            synced_transaction: inner.flusher.synced(),
            oldest_reader,
            readers,
            reader_lags: oldest_reader
                .is_some_and(|o| last_transaction.0 - o.0 > inner.options.reader_lag_warning),
            data_file_size: inner.data.len(),
            pages: root.map_or(0, |r| r.page_count),
            free_pages: root.map_or(0, |r| r.free_pages),
            scratch_used: inner.table.used(),
            scratch_mapped: inner.table.mapped(),
            scratch_max: inner.options.scratch_size_max,
            journal_files,
            journal_size,
            journal_spare_files,
            journal_spare_size,
            journal_is_direct: inner.data.is_direct(),
            commits: load(&counters.commits),
            journal_writes: load(&counters.journal_writes),
            journal_bytes: load(&counters.journal_bytes),
            journal_bytes_uncompressed: load(&counters.journal_bytes_uncompressed),
            direct_bytes: load(&counters.direct_bytes),
            flushes: load(&counters.flushes),
            pages_flushed: load(&counters.pages_flushed),
            bytes_flushed: load(&counters.bytes_flushed),
            throttled_us: load(&counters.throttled_us),
            recovered_records: load(&counters.recovered_records),
            recovered_bytes: load(&counters.recovered_bytes),
            open_us: load(&counters.recovery_us),
            failure: inner.failure().cloned(),
        }
    }
}

impl Stats {
    /// Bytes of the environment's pages that are not free.
    pub fn used_size(&self) -> u64 {
        (self.pages - self.free_pages) * PAGE_SIZE as u64
    }
}
