//! The B+tree with keys of variable length, in the order of their bytes.
//!
//! ```text
//!   root ─▶ branch   [ ·  "d"  "m" ]               depth counts levels: here 3, with the leaves
//!                      │   │    └──────────┐
//!             branch [· "b"] …       branch [· "p" "t"]
//!                     │                      │
//!             leaf [a1 a2 a3]  …     leaf [m n o]      all leaves are on the last level
//! ```
//!
//! What always holds:
//! - [`TreeState::root`] is [`PageNumber::NONE`] exactly when the tree is empty and `depth` is 0;
//! - each path from the root to a leaf has `depth` pages, branches and last a leaf, each with at least one child or entry;
//! - the keys below a branch's child are at least the separator before it and less than the one behind it;
//! - a page keeps its number when it changes, so a change touches its parent only when pages are split, merged or freed.
//!
//! Values up to [`INLINE_VALUE_SIZE_MAX`] bytes lie beside their key in the leaf, longer ones in the tree's heap.
//!
//! How full pages are: a split moves half, except that a run of ascending inserts leaves full pages behind it (and moves
//! nothing), and one of descending inserts likewise. A page under a third full is merged with a neighbour when both
//! together leave some room, and under a quarter full takes entries over from one. Being fuller than that is an aim, not an invariant.
//!
//! A change that fails has changed nothing: pages are allocated, and made ready for writing, before the first byte is
//! written. The exceptions are [`TreeMut::delete_range`] and [`TreeMut::clear`], which stop where they are, and failures
//! to give pages back, which lose those pages.

mod check;
mod cursor;
mod delete;
mod estimate;
mod insert;
#[cfg(test)]
mod measure;
mod range;
mod read_ahead;
mod search;
mod split;
#[cfg(test)]
mod tests;

pub(crate) use cursor::Cursor;
pub(crate) use range::{Direction, Range, prefix_end};

use crate::error::{Error, Result};
use crate::format::{
    INLINE_VALUE_SIZE_MAX, KEY_SIZE_MAX, PAGE_BODY_SIZE, PageNumber, TREE_DEPTH_MAX, VALUE_SIZE_MAX, read_u64,
};
use crate::heap::{self, HEAP_STATE_SIZE, HeapState};
use crate::page::leaf::LeafValue;
use crate::pages::{Pages, PagesMut};

/// Bytes of an encoded [`TreeState`].
pub(crate) const TREE_STATE_SIZE: usize = HEAP_AT + HEAP_STATE_SIZE;

const ROOT_AT: usize = 0;
const ENTRIES_AT: usize = ROOT_AT + 8;
const BRANCH_PAGES_AT: usize = ENTRIES_AT + 8;
const LEAF_PAGES_AT: usize = BRANCH_PAGES_AT + 8;
const DEPTH_AT: usize = LEAF_PAGES_AT + 8;
const HEAP_AT: usize = DEPTH_AT + 8;

/// A page fuller than this is split rather than tidied up to take an entry: it would be full again soon.
const TIDY_SIZE_MAX: usize = PAGE_BODY_SIZE - PAGE_BODY_SIZE / 16;

/// What a tree is besides its pages. It changes with every change of the tree and belongs to the same transaction.
///
/// | offset | size | name | meaning |
/// |---|---|---|---|
/// | 0 | 8 | root | the root page, 0 for an empty tree |
/// | 8 | 8 | entries | |
/// | 16 | 8 | branch pages | |
/// | 24 | 8 | leaf pages | |
/// | 32 | 1 | depth | levels, 0 for an empty tree |
/// | 33 | 7 | | zero |
/// | 40 | 64 | heap | a [`HeapState`] |
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct TreeState {
    /// The root page; [`PageNumber::NONE`] when the tree is empty.
    pub(crate) root: PageNumber,
    /// How many levels there are; 0 when the tree is empty, 1 when the root is a leaf.
    pub(crate) depth: usize,
    /// How many keys there are.
    pub(crate) entries: u64,
    /// How many pages are branches.
    pub(crate) branch_pages: u64,
    /// How many pages are leaves.
    pub(crate) leaf_pages: u64,
    /// Where the long values are.
    pub(crate) heap: HeapState,
}

impl TreeState {
    /// The bytes to keep the state as.
    pub(crate) fn encode(&self) -> [u8; TREE_STATE_SIZE] {
        let mut bytes = [0; TREE_STATE_SIZE];
        let numbers = [self.root.0, self.entries, self.branch_pages, self.leaf_pages, self.depth as u64];
        for (i, number) in numbers.iter().enumerate() {
            bytes[ROOT_AT + 8 * i..ROOT_AT + 8 * i + 8].copy_from_slice(&number.to_le_bytes());
        }
        bytes[HEAP_AT..].copy_from_slice(&self.heap.encode());
        bytes
    }

    /// The state back from its bytes, `None` when they are no tree's.
    pub(crate) fn decode(bytes: &[u8; TREE_STATE_SIZE]) -> Option<TreeState> {
        let mut heap = [0; HEAP_STATE_SIZE];
        heap.copy_from_slice(&bytes[HEAP_AT..]);
        let (root, depth) = (PageNumber(read_u64(bytes, ROOT_AT)), bytes[DEPTH_AT] as usize);
        if depth > TREE_DEPTH_MAX || root.is_some() != (depth != 0) || root.0 >= 1 << 48 {
            return None;
        }
        Some(TreeState {
            root,
            depth,
            entries: read_u64(bytes, ENTRIES_AT),
            branch_pages: read_u64(bytes, BRANCH_PAGES_AT),
            leaf_pages: read_u64(bytes, LEAF_PAGES_AT),
            heap: HeapState::decode(&heap),
        })
    }
}

/// What a write transaction remembers of a tree to insert faster. Good for one transaction; to be dropped
/// (`InsertHint::default()`) when a part of it is undone.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct InsertHint {
    /// The last leaf of the tree, when the last insert went to its end.
    rightmost: PageNumber,
}

/// A tree for reading. It has a copy of the state, so that what it returns borrows from the pages alone.
pub(crate) struct Tree<'p, P> {
    pages: &'p P,
    state: TreeState,
}

impl<P> Clone for Tree<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Tree<'_, P> {}

impl<'p, P: Pages> Tree<'p, P> {
    pub(crate) fn new(pages: &'p P, state: &TreeState) -> Tree<'p, P> {
        Tree { pages, state: *state }
    }

    /// The value of a key.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<&'p [u8]>> {
        match search::find(self.pages, &self.state, key)? {
            Some(LeafValue::Inline(value)) => Ok(Some(value)),
            Some(LeafValue::Long(r)) => heap::get(self.pages, r).map(Some),
            None => Ok(None),
        }
    }

    /// Whether there is such a key.
    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(search::find(self.pages, &self.state, key)?.is_some())
    }

    /// The smallest key and its value.
    pub(crate) fn first(&self) -> Result<Option<(Vec<u8>, &'p [u8])>> {
        let mut cursor = self.cursor();
        if !cursor.first()? {
            return Ok(None);
        }
        Ok(Some((cursor.key().to_vec(), cursor.value()?)))
    }

    /// The greatest key and its value.
    pub(crate) fn last(&self) -> Result<Option<(Vec<u8>, &'p [u8])>> {
        let mut cursor = self.cursor();
        if !cursor.last()? {
            return Ok(None);
        }
        Ok(Some((cursor.key().to_vec(), cursor.value()?)))
    }

    /// A cursor that is at no entry yet.
    pub(crate) fn cursor(&self) -> Cursor<'p, P> {
        Cursor::new(self.pages, &self.state)
    }
}

/// A tree for changing, in the one write transaction.
pub(crate) struct TreeMut<'a, P> {
    pages: &'a mut P,
    state: &'a mut TreeState,
    hint: &'a mut InsertHint,
}

impl<'a, P: PagesMut> TreeMut<'a, P> {
    pub(crate) fn new(
        pages: &'a mut P,
        state: &'a mut TreeState,
        hint: &'a mut InsertHint,
    ) -> TreeMut<'a, P> {
        TreeMut { pages, state, hint }
    }

    /// The tree as it is now, for reading.
    pub(crate) fn read(&self) -> Tree<'_, P> {
        Tree { pages: self.pages, state: *self.state }
    }
}

/// Errors: empty or too long.
#[inline(always)]
fn check_key(key: &[u8]) -> Result<()> {
    match key.len() {
        1..=KEY_SIZE_MAX => Ok(()),
        size => Err(refused_key(size)),
    }
}

#[cold]
fn refused_key(size: usize) -> Error {
    if size == 0 { Error::KeyEmpty } else { Error::KeyTooLong { size, max: KEY_SIZE_MAX } }
}

/// Error: too long.
fn check_value_size(size: u64) -> Result<()> {
    if size > VALUE_SIZE_MAX { Err(Error::ValueTooLong { size, max: VALUE_SIZE_MAX }) } else { Ok(()) }
}

/// Whether a value of this size lies in the leaf.
#[inline(always)]
fn is_inline(size: usize) -> bool {
    size <= INLINE_VALUE_SIZE_MAX
}
