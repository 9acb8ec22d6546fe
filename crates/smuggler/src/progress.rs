//! How far an import or export is, seen from other threads, and the wish to stop it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::compression::ReadCount;

/// Shared by whoever works and whoever watches; a clone is the same one.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    read: ReadCount,
    documents: AtomicU64,
    unchanged: AtomicU64,
    refused: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Bytes of input read so far, as stored.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.0.read.bytes()
    }

    /// What counts the bytes of the input; for [`decompressed`](crate::decompressed).
    #[must_use]
    pub fn read_count(&self) -> &ReadCount {
        &self.0.read
    }

    /// Documents stored (or, by an export, written) so far.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.0.documents.load(Ordering::Relaxed)
    }

    /// Documents left as they were so far.
    #[must_use]
    pub fn unchanged(&self) -> u64 {
        self.0.unchanged.load(Ordering::Relaxed)
    }

    /// Records refused so far.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Asks for the work to stop soon. What is stored stays stored.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether [`Progress::cancel`] was called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn add_documents(&self, count: u64) {
        self.0.documents.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn add_unchanged(&self, count: u64) {
        self.0.unchanged.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn add_refused(&self, count: u64) {
        self.0.refused.fetch_add(count, Ordering::Relaxed);
    }
}
