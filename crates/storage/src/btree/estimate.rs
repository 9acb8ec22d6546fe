//! Estimates how many entries a range has, from two ways down.

use std::ops::Bound;

use super::search::{branch, leaf};
use super::{Tree, check_key};
use crate::error::Result;
use crate::pages::Pages;

/// Where a bound is in the tree.
struct Rank {
    /// The part of the tree that is before it, as seen from the fan-outs on the way down: 0 to 1.
    share: f64,
    leaf: crate::format::PageNumber,
    index: usize,
}

impl<P: Pages> Tree<'_, P> {
    /// About how many entries have keys within the bounds. Exact when the range is within one leaf; otherwise as good
    /// as the branches on both ways are evenly full. Reads two pages a level.
    pub(crate) fn estimate_count(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Result<u64> {
        if self.state.entries == 0 || !self.state.root.is_some() {
            return Ok(0);
        }
        let entries = self.state.entries;
        let low = match low {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(self.rank(key, false)?),
            Bound::Excluded(key) => Some(self.rank(key, true)?),
        };
        let high = match high {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(self.rank(key, true)?),
            Bound::Excluded(key) => Some(self.rank(key, false)?),
        };
        if let (Some(low), Some(high)) = (&low, &high)
            && low.leaf == high.leaf
        {
            return Ok(high.index.saturating_sub(low.index) as u64);
        }
        let share = high.map_or(1.0, |rank| rank.share) - low.map_or(0.0, |rank| rank.share);
        Ok(((share * entries as f64).round().max(0.0) as u64).min(entries))
    }

    /// Where a key is, or would be; behind it when `behind`.
    fn rank(&self, key: &[u8], behind: bool) -> Result<Rank> {
        check_key(key)?;
        let mut number = self.state.root;
        let (mut share, mut width) = (0.0, 1.0);
        for _ in 1..self.state.depth {
            let branch = branch(self.pages, number)?;
            let index = branch.search(key);
            width /= branch.count() as f64;
            share += width * index as f64;
            number = branch.child(index);
        }
        let leaf = leaf(self.pages, number)?;
        let index = match leaf.search(key) {
            Ok(i) => i + usize::from(behind),
            Err(i) => i,
        };
        Ok(Rank { share: share + width * index as f64 / leaf.count() as f64, leaf: number, index })
    }
}
