//! What an index tells about itself and its batches.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;

/// Batches of which the figures are kept.
const KEPT: usize = 25;

/// Figures of one batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchStatistics {
    /// The batch's number since the index was opened.
    pub id: u64,
    /// When it began, in ticks.
    pub started: i64,
    /// When it ended, in ticks.
    pub completed: i64,
    /// Documents and tombstones that it took.
    pub inputs: u64,
    /// Entries that it made.
    pub outputs: u64,
    /// Documents whose maps failed.
    pub failed: u64,
    /// Bytes of the documents.
    pub bytes: u64,
    /// Milliseconds for reading and mapping documents.
    pub map_ms: f64,
    /// Milliseconds for the commit.
    pub commit_ms: f64,
    /// Milliseconds in all.
    pub duration_ms: f64,
    /// Why it ended.
    pub reason: &'static str,
}

/// The last batches.
#[derive(Default)]
pub(crate) struct Batches(Mutex<VecDeque<BatchStatistics>>);

impl Batches {
    /// Adds one, and gives it its number.
    pub(crate) fn add(&self, mut batch: BatchStatistics) {
        let mut all = self.0.lock();
        batch.id = all.back().map_or(1, |last| last.id + 1);
        if all.len() == KEPT {
            all.pop_front();
        }
        all.push_back(batch);
    }

    pub(crate) fn all(&self) -> Vec<BatchStatistics> {
        self.0.lock().iter().cloned().collect()
    }

    pub(crate) fn last(&self) -> Option<BatchStatistics> {
        self.0.lock().back().cloned()
    }

    /// Documents a second in the batches of the last minute.
    pub(crate) fn rate(&self, now: i64) -> f64 {
        const MINUTE: i64 = 60 * 10_000_000;
        let all = self.0.lock();
        let recent = all.iter().filter(|batch| now - batch.completed < MINUTE);
        let (inputs, ms) =
            recent.fold((0, 0.0), |(inputs, ms), batch| (inputs + batch.inputs, ms + batch.duration_ms));
        if inputs == 0 { 0.0 } else { inputs as f64 * 1000.0 / ms.max(1.0) }
    }
}

/// How far behind an index is in one collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectionStatistics {
    /// The last document that was seen.
    pub last_processed_document: i64,
    /// The last tombstone that was seen.
    pub last_processed_tombstone: i64,
    /// Documents that were not seen, counted up to a bound.
    pub document_lag: u64,
    /// Tombstones that were not seen, counted up to a bound.
    pub tombstone_lag: u64,
    /// Documents of the collection.
    pub documents: u64,
}

/// By collection.
pub type Lags = BTreeMap<String, CollectionStatistics>;
