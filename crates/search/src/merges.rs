//! Which segments are merged: neighbours of like size, so that entries stay in the order in which they were added and
//! queries meet few segments.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tantivy::index::{SegmentId, SegmentMeta};
use tantivy::indexer::{MergeCandidate, MergePolicy};

/// Smaller segments count as this large, in entries.
const FLOOR: f64 = 2000.0;

/// So many neighbours of one level are merged.
const FACTOR: usize = 5;

/// A level is so many times as large as the one below it.
const STEP: f64 = FACTOR as f64;

/// A merged segment has at most so many entries.
const ENTRIES_MAX: u32 = 20_000_000;

/// The number of the first entry of each segment, as far as it is known.
pub(crate) type Ages = Arc<Mutex<HashMap<SegmentId, u64>>>;

/// Merges in rounds: what a merge made has no known age, and so no neighbours, before a searcher has seen it.
#[derive(Debug)]
pub(crate) struct Neighbours {
    ages: Ages,
    /// The segments of each merge of this round.
    round: Mutex<Vec<Vec<SegmentId>>>,
}

impl Neighbours {
    pub(crate) fn new(ages: Ages) -> Neighbours {
        Neighbours { ages, round: Mutex::default() }
    }
}

impl MergePolicy for Neighbours {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let mut round = self.round.lock();
        let mut ordered: Vec<(u64, &SegmentMeta)> = {
            let ages = self.ages.lock();
            let is_given_up =
                |merged: &[SegmentId]| segments.iter().any(|segment| merged.contains(&segment.id()));
            // A searcher has segments until it has what became of them.
            round.retain(|merged| merged.iter().any(|id| ages.contains_key(id)) && !is_given_up(merged));
            if !round.is_empty() {
                return Vec::new();
            }
            segments.iter().filter_map(|segment| Some((*ages.get(&segment.id())?, segment))).collect()
        };
        ordered.sort_by_key(|(age, _)| *age);
        let ordered: Vec<&SegmentMeta> = ordered.into_iter().map(|(_, segment)| segment).collect();
        let mut candidates = Vec::new();
        let mut rest = ordered.as_slice();
        // From the largest level downwards: a run begins at the left end and goes on to the last segment that is as large.
        while !rest.is_empty() {
            let top = rest.iter().map(|segment| level(segment)).fold(0.0, f64::max);
            let floor = (top - 0.75).max(0.0);
            let end =
                rest.iter().rposition(|segment| level(segment) >= floor).map_or(rest.len(), |last| last + 1);
            let (run, after) = rest.split_at(end);
            for chunk in run.chunks_exact(FACTOR) {
                let entries: u64 = chunk.iter().map(|segment| u64::from(segment.num_docs())).sum();
                if entries <= u64::from(ENTRIES_MAX) {
                    candidates.push(MergeCandidate(chunk.iter().map(|segment| segment.id()).collect()));
                }
            }
            rest = after;
        }
        // A segment of which much is deleted is written anew.
        for segment in &ordered {
            let is_taken = candidates.iter().any(|candidate| candidate.0.contains(&segment.id()));
            if !is_taken
                && segment.num_deleted_docs() > 1000
                && segment.num_deleted_docs() * 2 > segment.max_doc()
            {
                candidates.push(MergeCandidate(vec![segment.id()]));
            }
        }
        round.extend(candidates.iter().map(|candidate| candidate.0.clone()));
        candidates
    }
}

fn level(segment: &SegmentMeta) -> f64 {
    (f64::from(segment.num_docs()).max(FLOOR) / FLOOR).ln() / STEP.ln()
}
