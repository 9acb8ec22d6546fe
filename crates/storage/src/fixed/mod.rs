//! Fixed-size trees: `i64` keys, ordered as signed numbers, to values that all have the same size of 0 to 128 bytes.
//!
//! A small tree lies in its own state (so in the page of whoever keeps that: the catalog, a table), a larger one in
//! pages of its own: sorted arrays that need no slots and are searched without comparing bytes. Appending ascending
//! keys is what it does best: the last leaf is remembered, and a full last leaf is left full when the next begins.
//!
//! What always holds:
//! - the tree is embedded exactly when `depth` is 0, and then `root` is no page;
//! - no page is without entries; a branch that is the root has two children or more;
//! - all leaves lie `depth` levels down, and `entries` counts what is in them.

mod check;
mod cursor;
mod delete;
mod insert;
#[cfg(test)]
mod tests;

pub(crate) use check::visit;
pub(crate) use cursor::FixedCursor;
pub(crate) use delete::{clear, delete, delete_range};
pub(crate) use insert::put;

use crate::error::{Error, Result};
use crate::format::{FIXED_VALUE_SIZE_MAX, PageNumber, read_u16, read_u64};
use crate::page::fixed::{Branch, Entries};
use crate::pages::Pages;

/// Bytes of entries that are kept in the state instead of in pages.
const EMBEDDED_SIZE_MAX: usize = 128;

/// The deepest tree that is followed, in levels. One of this depth cannot come about: a root has split, so had 510
/// children, each time a level was added.
const DEPTH_MAX: usize = 10;

const EMBEDDED_AT: usize = 4;
const PAGED_SIZE: usize = 36;

/// A fixed-size tree's state: it changes with every change of the tree and belongs to the same transaction.
///
/// Encoded, in 132 bytes at most:
///
/// | offset | size | name | meaning |
/// |---|---|---|---|
/// | 0 | 1 | value size | bytes of each value |
/// | 1 | 1 | depth | levels of pages; 0: embedded |
/// | 2 | 2 | count | embedded entries, 0 when there are pages |
/// | 4 | count × 8 | keys | (embedded) the keys, ascending |
/// | 4 + count × 8 | count × value size | values | (embedded) the values |
/// | 4 | 8 | root | (pages) the root's number |
/// | 12 | 8 | entries | (pages) how many there are |
/// | 20 | 8 | branch pages | (pages) how many there are |
/// | 28 | 8 | leaf pages | (pages) how many there are |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FixedState {
    value_size: u8,
    depth: u8,
    root: PageNumber,
    entries: u64,
    branch_pages: u64,
    leaf_pages: u64,
    /// Keys from 0 on, values from `capacity * 8` on; zeros behind.
    embedded: [u8; EMBEDDED_SIZE_MAX],
    /// The last leaf and the last key in it, when known: only a saving of work, not part of the state on disk.
    last_leaf: PageNumber,
    last_key: i64,
}

impl FixedState {
    /// An empty tree for values of `value_size` bytes. Error: over [`FIXED_VALUE_SIZE_MAX`].
    pub(crate) fn new(value_size: usize) -> Result<FixedState> {
        if value_size > FIXED_VALUE_SIZE_MAX {
            return Err(Error::ValueTooLong { size: value_size as u64, max: FIXED_VALUE_SIZE_MAX as u64 });
        }
        Ok(FixedState {
            value_size: value_size as u8,
            depth: 0,
            root: PageNumber::NONE,
            entries: 0,
            branch_pages: 0,
            leaf_pages: 0,
            embedded: [0; EMBEDDED_SIZE_MAX],
            last_leaf: PageNumber::NONE,
            last_key: 0,
        })
    }

    /// Bytes of each value.
    #[inline]
    pub(crate) fn value_size(&self) -> usize {
        self.value_size as usize
    }

    /// How many entries there are.
    #[inline]
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// The root page; none while the tree is embedded.
    pub(crate) fn root(&self) -> PageNumber {
        self.root
    }

    /// Levels of pages; 0 when the tree is embedded.
    pub(crate) fn depth(&self) -> usize {
        self.depth as usize
    }

    /// Forgets what saves work but is only good for the pages as they are now: for going back to a savepoint.
    pub(crate) fn forget_hints(&mut self) {
        self.last_leaf = PageNumber::NONE;
    }

    /// Appends the bytes to keep the state as.
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        let embedded = if self.depth == 0 { self.entries as usize } else { 0 };
        to.extend_from_slice(&[self.value_size, self.depth]);
        to.extend_from_slice(&(embedded as u16).to_le_bytes());
        if self.depth == 0 {
            let values = self.embedded_values_at();
            to.extend_from_slice(&self.embedded[..embedded * 8]);
            to.extend_from_slice(&self.embedded[values..values + embedded * self.value_size()]);
        } else {
            for value in [self.root.0, self.entries, self.branch_pages, self.leaf_pages] {
                to.extend_from_slice(&value.to_le_bytes());
            }
        }
    }

    /// The state back from the front of `bytes`, and how many bytes it took; `None` when they are no state.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(FixedState, usize)> {
        let (&value_size, &depth) = (bytes.first()?, bytes.get(1)?);
        let mut state = FixedState::new(value_size as usize).ok()?;
        if depth as usize > DEPTH_MAX || bytes.len() < EMBEDDED_AT {
            return None;
        }
        let count = read_u16(bytes, 2) as usize;
        if depth > 0 {
            if bytes.len() < PAGED_SIZE || count != 0 {
                return None;
            }
            state.depth = depth;
            state.root = PageNumber(read_u64(bytes, 4));
            state.entries = read_u64(bytes, 12);
            state.branch_pages = read_u64(bytes, 20);
            state.leaf_pages = read_u64(bytes, 28);
            return Some((state, PAGED_SIZE));
        }
        if count > state.embedded_capacity() {
            return None;
        }
        let (keys_size, values_size) = (count * 8, count * state.value_size());
        let rest = bytes.get(EMBEDDED_AT..EMBEDDED_AT + keys_size + values_size)?;
        let values = state.embedded_values_at();
        state.embedded[..keys_size].copy_from_slice(&rest[..keys_size]);
        state.embedded[values..values + values_size].copy_from_slice(&rest[keys_size..]);
        state.entries = count as u64;
        let entries = state.embedded_entries();
        let ascending = (1..count).all(|i| entries.key(i - 1) < entries.key(i));
        ascending.then_some((state, EMBEDDED_AT + keys_size + values_size))
    }

    fn embedded_capacity(&self) -> usize {
        EMBEDDED_SIZE_MAX / (8 + self.value_size())
    }

    fn embedded_values_at(&self) -> usize {
        self.embedded_capacity() * 8
    }

    /// The entries of an embedded tree.
    fn embedded_entries(&self) -> Entries<'_> {
        debug_assert_eq!(self.depth, 0);
        let (count, values) = (self.entries as usize, self.embedded_values_at());
        let values = &self.embedded[values..values + count * self.value_size()];
        Entries::new(&self.embedded[..count * 8], values, self.value_size())
    }
}

/// The way from the root to a leaf: each page with the index taken in it.
#[derive(Clone, Copy)]
struct Path {
    steps: [(PageNumber, usize); DEPTH_MAX],
    depth: usize,
}

impl Path {
    const EMPTY: Path = Path { steps: [(PageNumber::NONE, 0); DEPTH_MAX], depth: 0 };

    fn leaf(&self) -> PageNumber {
        self.steps[self.depth - 1].0
    }
}

/// Where a descent is to end.
#[derive(Clone, Copy)]
enum Target {
    First,
    Last,
    Key(i64),
}

/// Goes from the page at `path.steps[level]` down to the leaf of `target` and returns it. Sets the steps of the branches,
/// and the leaf's with index 0.
fn descend<'p>(
    pages: &'p impl Pages,
    state: &FixedState,
    path: &mut Path,
    level: usize,
    target: Target,
) -> Result<Entries<'p>> {
    for level in level..path.depth - 1 {
        let branch = Branch::new(pages.page(path.steps[level].0)?)?;
        let i = match target {
            Target::First => 0,
            Target::Last => branch.count() - 1,
            Target::Key(key) => branch.search(key),
        };
        path.steps[level].1 = i;
        path.steps[level + 1] = (branch.child(i), 0);
    }
    Entries::of_leaf(pages.page(path.leaf())?, state.value_size())
}

/// The path with only its root set. The tree must have pages.
fn root_path(state: &FixedState) -> Path {
    debug_assert!(state.depth > 0);
    let mut path = Path { depth: state.depth as usize, ..Path::EMPTY };
    path.steps[0].0 = state.root;
    path
}

/// The value of a key. The slice borrows the state, too: a small tree lies in it.
#[inline]
pub(crate) fn get<'p>(pages: &'p impl Pages, state: &'p FixedState, key: i64) -> Result<Option<&'p [u8]>> {
    if state.depth == 0 {
        let entries = state.embedded_entries();
        return Ok(entries.search(key).ok().map(|i| entries.value(i)));
    }
    let mut number = state.root;
    for _ in 1..state.depth {
        let branch = Branch::new(pages.page(number)?)?;
        number = branch.child(branch.search(key));
    }
    let entries = Entries::of_leaf(pages.page(number)?, state.value_size())?;
    Ok(entries.search(key).ok().map(|i| entries.value(i)))
}
