//! The bytes of leaves and branches.
//!
//! ```text
//! leaf:    | entry (first: itself, then: minus the one before) | pack's length | pack |  ...
//! branch:  | low (as above) | count | size | partial's length + 1, or 0 | partial |  ...
//! ```
//!
//! All numbers are of variable length (`bytes.rs`). `low` is the lowest entry number that belongs below the child (to the first belong all
//! lower ones, too), by which the child is found in the tree of nodes; `count` is how many results lie below it, `size` is the child's
//! own length in bytes. A partial's length of 0 marks a failed one.

use std::ops::Range;

use super::bytes::{Reader, number_size, put_number, put_slice};

/// A result in a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) number: u64,
    pub(super) pack: &'a [u8],
}

/// A node below a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Child<'a> {
    pub(super) low: u64,
    pub(super) count: u64,
    pub(super) size: u64,
    /// `None` when its reduce failed.
    pub(super) partial: Option<&'a [u8]>,
}

/// The entries of a leaf; `None` when the bytes are damaged.
pub(super) fn entries(leaf: &[u8]) -> Option<Vec<Entry<'_>>> {
    let mut reader = Reader(leaf);
    let mut entries = Vec::new();
    let mut number = 0u64;
    while !reader.is_empty() {
        number = number.checked_add(reader.number()?)?;
        entries.push(Entry { number, pack: reader.slice()? });
    }
    Some(entries)
}

/// The children of a branch; `None` when the bytes are damaged.
pub(super) fn children(branch: &[u8]) -> Option<Vec<Child<'_>>> {
    let mut reader = Reader(branch);
    let mut children = Vec::new();
    let mut low = 0u64;
    while !reader.is_empty() {
        low = low.checked_add(reader.number()?)?;
        let (count, size) = (reader.number()?, reader.number()?);
        let partial = match reader.number()? {
            0 => None,
            length => Some(reader.take(usize::try_from(length - 1).ok()?)?),
        };
        children.push(Child { low, count, size, partial });
    }
    Some(children)
}

/// Something of which nodes are made.
pub(super) trait Item {
    /// Its number: what the items of a node are sorted by.
    fn number(&self) -> u64;
    /// How many results it stands for.
    fn count(&self) -> u64;
    /// What is reduced for it; `None` when its reduce failed.
    fn pack(&self) -> Option<&[u8]>;
    /// Appends it; `before` is the number of the item before, 0 for the first.
    fn append(&self, before: u64, out: &mut Vec<u8>);
    /// An upper bound of what [`Item::append`] takes, in bytes.
    fn size(&self) -> usize;
}

impl Item for Entry<'_> {
    fn number(&self) -> u64 {
        self.number
    }

    fn count(&self) -> u64 {
        1
    }

    fn pack(&self) -> Option<&[u8]> {
        Some(self.pack)
    }

    fn append(&self, before: u64, out: &mut Vec<u8>) {
        put_number(out, self.number - before);
        put_slice(out, self.pack);
    }

    fn size(&self) -> usize {
        number_size(self.number) + number_size(self.pack.len() as u64) + self.pack.len()
    }
}

impl Item for Child<'_> {
    fn number(&self) -> u64 {
        self.low
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn pack(&self) -> Option<&[u8]> {
        self.partial
    }

    fn append(&self, before: u64, out: &mut Vec<u8>) {
        put_number(out, self.low - before);
        put_number(out, self.count);
        put_number(out, self.size);
        match self.partial {
            None => put_number(out, 0),
            Some(partial) => {
                put_number(out, partial.len() as u64 + 1);
                out.extend_from_slice(partial);
            }
        }
    }

    fn size(&self) -> usize {
        let partial = self.partial.map_or(0, <[u8]>::len);
        number_size(self.low)
            + number_size(self.count)
            + number_size(self.size)
            + number_size(partial as u64 + 1)
            + partial
    }
}

/// However large its items, a node is cut only behind so many: branches must get narrower from level to level.
const ITEMS_MIN: usize = 4;

/// How large nodes get.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes; a node with few large items may be larger.
    pub(super) bytes_max: usize,
    /// Items.
    pub(super) items_max: usize,
}

impl Limits {
    /// Cuts items into runs that each fit a node: as full as possible where more will come behind (`packed`), else of about one size.
    pub(super) fn cut<I: Item>(&self, items: &[I], packed: bool) -> Vec<Range<usize>> {
        let total: usize = items.iter().map(Item::size).sum();
        let nodes = total.div_ceil(self.bytes_max).max(items.len().div_ceil(self.items_max));
        let (bytes, count) = if packed || nodes <= 1 {
            (self.bytes_max, self.items_max)
        } else {
            (
                total.div_ceil(nodes).max(self.bytes_max / 2),
                items.len().div_ceil(nodes).max(self.items_max / 2),
            )
        };
        let mut runs = Vec::with_capacity(nodes);
        let (mut start, mut taken) = (0, 0);
        for (at, item) in items.iter().enumerate() {
            let size = item.size();
            let held = at - start;
            if held >= ITEMS_MIN && (taken + size > bytes || held >= count) {
                runs.push(start..at);
                (start, taken) = (at, 0);
            }
            taken += size;
        }
        if start < items.len() {
            runs.push(start..items.len());
        }
        runs
    }

    /// Whether a node is so small that it should be joined with a neighbour.
    pub(super) fn is_small(&self, size: u64) -> bool {
        size < self.bytes_max as u64 / 4
    }

    /// Whether two neighbours may become one node: with room left, so that the next result does not cut it again.
    pub(super) fn fit_together(&self, left: u64, right: u64) -> bool {
        left + right <= self.bytes_max as u64 * 3 / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_and_branches_come_back() {
        let packs = [&b""[..], b"a", &[7; 300]];
        let written = [3, 4, 1 << 40].map(|number| Entry { number, pack: packs[number as usize % 3] });
        let mut leaf = Vec::new();
        let mut before = 0;
        for entry in &written {
            entry.append(before, &mut leaf);
            before = entry.number;
        }
        assert_eq!(entries(&leaf), Some(written.to_vec()));

        let written = [
            Child { low: 0, count: 9, size: 4000, partial: Some(b"") },
            Child { low: 70, count: 1 << 33, size: 1, partial: None },
            Child { low: 71, count: 1, size: 0, partial: Some(&[1; 200]) },
        ];
        let mut branch = Vec::new();
        let mut before = 0;
        for child in &written {
            child.append(before, &mut branch);
            before = child.low;
        }
        assert_eq!(children(&branch), Some(written.to_vec()));
        for cut in 1..branch.len() {
            // Where a child ends, so may the branch; anywhere else it is damage. Never more than was written.
            assert!(children(&branch[..cut]).is_none_or(|read| read.len() < written.len()));
        }
    }

    #[test]
    fn runs_hold_everything_once_and_fit() {
        let limits = Limits { bytes_max: 100, items_max: 10 };
        let pack = [0; 250];
        for count in 0..80usize {
            for packed in [true, false] {
                let items: Vec<_> = (0..count)
                    .map(|at| Entry {
                        number: at as u64,
                        pack: &pack[..(at * 37) % (if at % 11 == 5 { 250 } else { 30 })],
                    })
                    .collect();
                let runs = limits.cut(&items, packed);
                let covered: Vec<_> = runs.iter().cloned().flatten().collect();
                assert_eq!(covered, (0..count).collect::<Vec<_>>());
                for run in runs {
                    let bytes: usize = items[run.clone()].iter().map(Item::size).sum();
                    assert!(
                        run.len() <= ITEMS_MIN || (bytes <= 100 && run.len() <= 10),
                        "{run:?} has {bytes} bytes"
                    );
                }
            }
        }
    }
}
