//! Which segments are merged: neighbours, so that entries stay in the order in which they were added and queries meet few segments.
//!
//! While entries come, neighbours of like size are merged, many at once, so that each entry is written again few times. When it is quiet, all
//! are merged that are not at most half as large as the one before them.

use std::collections::HashSet;

use tantivy::index::SegmentId;

/// Smaller segments count as this large while entries come, in entries, and when it is quiet.
const BUSY_FLOOR: f64 = 2000.0;
const QUIET_FLOOR: u64 = 1000;

/// So many neighbours of one level are merged while entries come; more where they are large.
const FACTOR: usize = 5;
const LARGE_FACTOR: usize = 10;

/// Neighbours are large when they have so many entries together.
const LARGE: u64 = 20_000;

/// A level is so many times as large as the one below it.
const STEP: f64 = FACTOR as f64;

/// A merged segment has at most so many entries: while entries come, and when it is quiet, where few new entries must not have many written again.
const BUSY_ENTRIES_MAX: u64 = 20_000_000;
const QUIET_ENTRIES_MAX: u64 = 2_000_000;

/// A segment as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) id: SegmentId,
    /// Entries that are not deleted.
    pub(crate) entries: u32,
    pub(crate) deleted: u32,
}

/// Whether entries come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    Busy,
    Quiet,
}

/// What is to be merged of an index's segments, the oldest first, while some are being merged already.
pub(crate) fn choose(segments: &[Size], taken: &HashSet<SegmentId>, pace: Pace) -> Vec<Vec<SegmentId>> {
    let mut chosen = Vec::new();
    // What is being merged lies between the others.
    for free in segments.split(|segment| taken.contains(&segment.id)) {
        match pace {
            Pace::Busy => busy(free, &mut chosen),
            Pace::Quiet => quiet(free, &mut chosen),
        }
    }
    // A segment of which much is deleted is written anew.
    for segment in segments {
        let is_taken = taken.contains(&segment.id) || chosen.iter().any(|run| run.contains(&segment.id));
        if !is_taken && segment.deleted > 1000 && segment.deleted > segment.entries {
            chosen.push(vec![segment.id]);
        }
    }
    chosen
}

fn ids(run: &[Size]) -> Vec<SegmentId> {
    run.iter().map(|segment| segment.id).collect()
}

fn entries(run: &[Size]) -> u64 {
    run.iter().map(|segment| u64::from(segment.entries)).sum()
}

fn busy(segments: &[Size], chosen: &mut Vec<Vec<SegmentId>>) {
    let mut rest = segments;
    // From the largest level downwards: a run begins at the left end and goes on to the last segment that is as large.
    while !rest.is_empty() {
        let top = rest.iter().map(level).fold(0.0, f64::max);
        let floor = (top - 0.75).max(0.0);
        let end =
            rest.iter().rposition(|segment| level(segment) >= floor).map_or(rest.len(), |last| last + 1);
        let (mut run, after) = rest.split_at(end);
        while run.len() >= FACTOR {
            let few = entries(&run[..FACTOR]) < LARGE;
            let count = if few { FACTOR } else { LARGE_FACTOR };
            if run.len() < count {
                break;
            }
            let (chunk, others) = run.split_at(count);
            if entries(chunk) <= BUSY_ENTRIES_MAX {
                chosen.push(ids(chunk));
            }
            run = others;
        }
        rest = after;
    }
}

fn level(segment: &Size) -> f64 {
    (f64::from(segment.entries).max(BUSY_FLOOR) / BUSY_FLOOR).ln() / STEP.ln()
}

fn quiet(segments: &[Size], chosen: &mut Vec<Vec<SegmentId>>) {
    // Groups of neighbours, and how large each will be.
    let mut groups: Vec<(usize, u64)> = Vec::new();
    for segment in segments {
        groups.push((1, u64::from(segment.entries)));
        while let [.., (before, left), (last, right)] = groups.as_mut_slice() {
            let is_small = 2 * (*right).max(QUIET_FLOOR) > (*left).max(QUIET_FLOOR);
            if !is_small || *left + *right > QUIET_ENTRIES_MAX {
                break;
            }
            *before += *last;
            *left += *right;
            groups.pop();
        }
    }
    let mut rest = segments;
    for (count, _) in groups {
        let (group, after) = rest.split_at(count);
        if count > 1 {
            chosen.push(ids(group));
        }
        rest = after;
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn sizes(entries: &[u32]) -> Vec<Size> {
        let mut number = 0u128;
        entries
            .iter()
            .map(|&entries| {
                number += 1;
                let text = format!("{number:032x}");
                let id = SegmentId::from_uuid_string(&text).expect("32 digits are an id");
                Size { id, entries, deleted: 0 }
            })
            .collect()
    }

    /// Merges until nothing is to be merged any more; the sizes then.
    fn settle(mut entries: Vec<u32>, pace: Pace) -> Vec<u32> {
        loop {
            let segments = sizes(&entries);
            let runs = choose(&segments, &HashSet::new(), pace);
            if runs.is_empty() {
                return entries;
            }
            for run in runs {
                let at = segments.iter().position(|segment| segment.id == run[0]).unwrap_or(0);
                let of = &segments[at..at + run.len()];
                assert_eq!(ids(of), run, "neighbours, in their order");
                // The others keep their places: none is as large as nothing.
                entries[at] = of.iter().map(|segment| segment.entries).sum();
                entries[at + 1..at + run.len()].fill(0);
            }
            entries.retain(|&entries| entries > 0);
        }
    }

    #[test]
    fn quiet_indexes_have_segments_that_fall_by_half() {
        assert_eq!(settle(vec![40_000; 7], Pace::Quiet), [160_000, 80_000, 40_000]);
        assert_eq!(settle(vec![40_000, 40_000, 30_000], Pace::Quiet), [80_000, 30_000]);
        assert_eq!(settle(vec![100_000, 30_000, 10_000, 1], Pace::Quiet), [100_000, 30_000, 10_000, 1]);
        assert_eq!(settle(vec![100_000, 1, 1, 1], Pace::Quiet), [100_000, 3]);
        assert_eq!(settle(vec![10, 100_000], Pace::Quiet), [100_010]);
        // Those that are large stay as they are.
        assert_eq!(settle(vec![1_900_000, 1_800_000, 300_000], Pace::Quiet), [1_900_000, 1_800_000, 300_000]);
        for seed in 0..50u32 {
            let made: Vec<u32> = (0..40u32).map(|at| 1 + (at * 7919 + seed * 104_729) % 30_011).collect();
            let settled = settle(made.clone(), Pace::Quiet);
            assert_eq!(settled.iter().sum::<u32>(), made.iter().sum::<u32>());
            for pair in settled.windows(2) {
                assert!(2 * pair[1].max(1000) <= pair[0], "{settled:?}");
            }
        }
    }

    #[test]
    fn while_entries_come_segments_stay_few() {
        let mut entries = Vec::new();
        for _ in 0..2000 {
            entries.push(300);
            entries = settle(entries, Pace::Busy);
            assert!(entries.len() <= 30, "{entries:?}");
        }
        assert_eq!(settle(vec![40_000; 9], Pace::Busy), [40_000; 9], "large ones wait for more of them");
    }

    #[test]
    fn what_is_being_merged_is_left_alone() {
        let segments = sizes(&[10, 10, 10, 10, 10]);
        let taken = HashSet::from([segments[2].id]);
        let chosen = choose(&segments, &taken, Pace::Quiet);
        assert_eq!(chosen, [ids(&segments[..2]), ids(&segments[3..])]);
        let mut segments = sizes(&[5000, 2000]);
        segments[0].deleted = 5001;
        assert_eq!(choose(&segments, &HashSet::new(), Pace::Quiet), [ids(&segments[..1])]);
    }
}
