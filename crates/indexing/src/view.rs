//! What a query sees of an index: a searcher, and how far the index was when it was made.

use std::sync::Arc;

use jackdaw_database::Snapshot;
use jackdaw_search::Searcher;

use crate::error::Result;
use crate::progress::{self, Cutoff, Progress};
use crate::store::IndexId;

/// One state of an index. Stays as it is while the index goes on.
///
/// To know whether answers are stale, take the view first and the documents' snapshot after it: then what the snapshot has and the view lacks is told.
#[derive(Clone)]
pub struct View {
    pub(crate) id: IndexId,
    pub(crate) searcher: Searcher,
    pub(crate) progress: Arc<Progress>,
}

impl View {
    /// The searcher.
    pub fn searcher(&self) -> &Searcher {
        &self.searcher
    }

    /// How far it is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Whether something in the snapshot, up to the cut-off, is not in the view.
    ///
    /// Errors: those of reading.
    pub fn is_stale(&self, snapshot: &Snapshot, cutoff: Cutoff) -> Result<bool> {
        progress::staleness(&self.progress, snapshot, cutoff, |_| {})
    }

    /// As [`View::is_stale`], with the reasons in words.
    ///
    /// Errors: those of reading.
    pub fn staleness(&self, snapshot: &Snapshot, cutoff: Cutoff) -> Result<Vec<String>> {
        let mut reasons = Vec::new();
        progress::staleness(&self.progress, snapshot, cutoff, |reason| reasons.push(reason()))?;
        Ok(reasons)
    }

    /// A number that changes whenever answers may: with each batch, with what is stale, and from one index to the next of the same name.
    pub fn result_etag(&self, is_stale: bool) -> i64 {
        let numbers =
            [self.id, self.progress.batches, self.progress.last_indexed as u64, u64::from(is_stale)];
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        xxhash_rust::xxh3::xxh3_64(&bytes) as i64
    }
}
