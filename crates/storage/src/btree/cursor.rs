//! A cursor: a place in a tree, to be moved both ways.

use std::cmp::Ordering;
use std::time::Instant;

use super::read_ahead::ReadAhead;
use super::search::{branch, leaf};
use super::{Direction, TreeState, check_key};
use crate::error::{Error, Result};
use crate::format::{PageNumber, TREE_DEPTH_MAX};
use crate::heap;
use crate::page::branch::Branch;
use crate::page::head;
use crate::page::leaf::{Leaf, LeafValue};
use crate::pages::Pages;

/// Where a cursor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Nowhere yet: `next` goes to the first entry, `prev` to the last.
    Unset,
    /// Before the first entry.
    Before,
    /// At the entry `index` of the leaf.
    At,
    /// Behind the last entry.
    After,
}

/// A place in a tree. Moving inside a leaf looks at nothing but the leaf; the key is put together in a buffer of the
/// cursor's own, the value is borrowed from the page.
///
/// Every walk ends, on damaged trees too: on entering a leaf the cursor makes sure that its keys go on where the last
/// leaf's ended.
pub(crate) struct Cursor<'p, P> {
    pages: &'p P,
    root: PageNumber,
    depth: usize,
    place: Place,
    /// The leaf the cursor is in and its number; set when the place is `At`.
    leaf: Option<(Leaf<'p>, PageNumber)>,
    index: usize,
    count: usize,
    /// The branches above the leaf and the child taken in each, from the root on: the first `depth - 1`.
    path: [(Option<Branch<'p>>, usize); TREE_DEPTH_MAX],
    /// The current key; its first `prefix_size` bytes are the leaf's prefix.
    key: Vec<u8>,
    prefix_size: usize,
    /// The key from which the cursor goes to another leaf: the other side of `key`.
    from: Vec<u8>,
    value: LeafValue<'p>,
    /// Whether the cursor has gone from leaf to leaf since it was last put somewhere: it is on a walk.
    walks: bool,
    ahead: ReadAhead,
}

impl<'p, P: Pages> Cursor<'p, P> {
    pub(crate) fn new(pages: &'p P, state: &TreeState) -> Cursor<'p, P> {
        Cursor {
            pages,
            root: state.root,
            depth: state.depth.min(TREE_DEPTH_MAX),
            place: Place::Unset,
            leaf: None,
            index: 0,
            count: 0,
            path: [(None, 0); TREE_DEPTH_MAX],
            key: Vec::new(),
            prefix_size: 0,
            from: Vec::new(),
            value: LeafValue::Inline(&[]),
            walks: false,
            ahead: ReadAhead::default(),
        }
    }

    /// Whether the cursor is at an entry. Only then there are a key and a value.
    #[inline]
    pub(crate) fn is_at_entry(&self) -> bool {
        self.place == Place::At
    }

    /// The key of the entry the cursor is at; empty when it is at none.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        if self.place == Place::At { &self.key } else { &[] }
    }

    /// The value of the entry the cursor is at; empty when it is at none. Error: damage in the heap.
    #[inline]
    pub(crate) fn value(&self) -> Result<&'p [u8]> {
        match self.value {
            LeafValue::Inline(value) => Ok(value),
            LeafValue::Long(r) => heap::get(self.pages, r),
        }
    }

    /// Bytes of the value of the entry the cursor is at. Error: damage in the heap.
    #[inline]
    pub(crate) fn value_size(&self) -> Result<u64> {
        match self.value {
            LeafValue::Inline(value) => Ok(value.len() as u64),
            LeafValue::Long(r) => heap::size(self.pages, r),
        }
    }

    /// Goes to the first entry; false when there is none.
    pub(crate) fn first(&mut self) -> Result<bool> {
        self.walks = false;
        self.leaf = None;
        if !self.root.is_some() {
            return Ok(self.leave(Place::After));
        }
        self.down_from(0, self.root, |_| 0)?;
        self.stand(0)
    }

    /// Goes to the last entry; false when there is none.
    pub(crate) fn last(&mut self) -> Result<bool> {
        self.walks = false;
        self.leaf = None;
        if !self.root.is_some() {
            return Ok(self.leave(Place::Before));
        }
        self.down_from(0, self.root, |branch| branch.count() - 1)?;
        self.stand(self.count - 1)
    }

    /// Goes to the first entry whose key is at least `key`; false when there is none.
    /// Errors: [`KeyEmpty`](Error::KeyEmpty), [`KeyTooLong`](Error::KeyTooLong); damage.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        match self.search(key)? {
            None => Ok(false),
            Some(Ok(_)) => Ok(true),
            Some(Err(i)) if i < self.count => self.stand(i),
            Some(Err(_)) => {
                self.from.clear();
                self.from.extend_from_slice(key);
                self.next_leaf()
            }
        }
    }

    /// Goes to the entry with this key; when there is none, the cursor is as after [`Cursor::seek`], and the result
    /// false. Errors: as for [`Cursor::seek`].
    pub(crate) fn seek_exact(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.seek(key)? && self.key == key)
    }

    /// Goes to the last entry whose key is at most `key`; false when there is none. Errors: as for [`Cursor::seek`].
    pub(crate) fn seek_at_most(&mut self, key: &[u8]) -> Result<bool> {
        match self.search(key)? {
            None => Ok(self.leave(Place::Before)),
            Some(Ok(_)) => Ok(true),
            Some(Err(i)) if i > 0 => self.stand(i - 1),
            Some(Err(_)) => {
                self.from.clear();
                self.from.extend_from_slice(key);
                self.previous_leaf()
            }
        }
    }

    /// Goes to the next entry; false when there is none, then `prev` goes to the last one.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<bool> {
        match self.place {
            Place::At if self.index + 1 < self.count => self.stand(self.index + 1),
            Place::At => {
                std::mem::swap(&mut self.key, &mut self.from);
                self.next_leaf()
            }
            Place::Unset | Place::Before => self.first(),
            Place::After => Ok(false),
        }
    }

    /// Goes to the previous entry; false when there is none, then `next` goes to the first one.
    #[inline]
    pub(crate) fn prev(&mut self) -> Result<bool> {
        match self.place {
            Place::At if self.index > 0 => self.stand(self.index - 1),
            Place::At => {
                std::mem::swap(&mut self.key, &mut self.from);
                self.previous_leaf()
            }
            Place::Unset | Place::After => self.last(),
            Place::Before => Ok(false),
        }
    }

    /// Goes to the leaf that has the key or would take it. When it has it, the cursor is there. `None` for an empty tree.
    fn search(&mut self, key: &[u8]) -> Result<Option<Result<usize, usize>>> {
        check_key(key)?;
        self.walks = false;
        self.place = Place::Unset;
        self.leaf = None;
        if !self.root.is_some() {
            self.leave(Place::After);
            return Ok(None);
        }
        let leaf = self.down_from(0, self.root, |branch| branch.search(key))?;
        let found = leaf.search(key);
        if let Ok(i) = found {
            self.stand(i)?;
        }
        Ok(Some(found))
    }

    /// Notes that the cursor came to a leaf from its neighbour; `since` is when it left that.
    fn cross(&mut self, leaf: Leaf<'p>, since: Option<Instant>, direction: Direction) {
        if self.walks {
            leaf.fetch();
        }
        self.walks = true;
        if let Some(since) = since
            && let Some((Some(branch), index)) = self.path[..self.depth - 1].last()
        {
            self.ahead.came(since);
            self.ahead.ask(self.pages, *branch, *index, direction);
        }
    }

    fn leave(&mut self, place: Place) -> bool {
        self.place = place;
        self.value = LeafValue::Inline(&[]);
        false
    }

    /// Goes down from a page on `level` to a leaf.
    fn down_from(
        &mut self,
        level: usize,
        mut number: PageNumber,
        child: impl Fn(Branch<'p>) -> usize,
    ) -> Result<Leaf<'p>> {
        self.place = Place::Unset;
        for step in &mut self.path[level..self.depth - 1] {
            let branch = branch(self.pages, number)?;
            let index = child(branch);
            number = branch.child(index);
            *step = (Some(branch), index);
        }
        let leaf = leaf(self.pages, number)?;
        self.leaf = Some((leaf, number));
        self.count = leaf.count();
        let prefix = leaf.prefix();
        self.key.clear();
        self.key.extend_from_slice(prefix);
        self.prefix_size = prefix.len();
        Ok(leaf)
    }

    /// Is at an entry of the current leaf from now on.
    #[inline(always)]
    fn stand(&mut self, index: usize) -> Result<bool> {
        let Some((leaf, number)) = self.leaf else { return Ok(false) };
        if index >= self.count {
            return Err(Error::damaged(number, "a leaf without entries"));
        }
        let cell = leaf.cell(index);
        self.key.truncate(self.prefix_size);
        head::extend_key(&mut self.key, leaf.head(index), cell.key_size, cell.rest);
        self.value = cell.value;
        self.index = index;
        self.place = Place::At;
        Ok(true)
    }

    /// Goes to the first entry of the next leaf, whose key must be greater than `from`.
    #[cold]
    fn next_leaf(&mut self) -> Result<bool> {
        for level in (0..self.depth - 1).rev() {
            let (Some(branch), index) = &mut self.path[level] else { break };
            if *index + 1 < branch.count() {
                *index += 1;
                let child = branch.child(*index);
                let since = self.walks.then(Instant::now);
                let leaf = self.down_from(level + 1, child, |_| 0)?;
                self.cross(leaf, since, Direction::Ascending);
                if leaf.compare(0, &self.from) != Ordering::Greater {
                    return Err(out_of_order(self.leaf));
                }
                return self.stand(0);
            }
        }
        Ok(self.leave(Place::After))
    }

    /// Goes to the last entry of the previous leaf, whose key must be less than `from`.
    #[cold]
    fn previous_leaf(&mut self) -> Result<bool> {
        for level in (0..self.depth - 1).rev() {
            let (Some(branch), index) = &mut self.path[level] else { break };
            if *index > 0 {
                *index -= 1;
                let child = branch.child(*index);
                let since = self.walks.then(Instant::now);
                let leaf = self.down_from(level + 1, child, |branch| branch.count() - 1)?;
                self.cross(leaf, since, Direction::Descending);
                if leaf.compare(leaf.count() - 1, &self.from) != Ordering::Less {
                    return Err(out_of_order(self.leaf));
                }
                return self.stand(self.count - 1);
            }
        }
        Ok(self.leave(Place::Before))
    }
}

#[cold]
fn out_of_order(leaf: Option<(Leaf<'_>, PageNumber)>) -> Error {
    let number = leaf.map_or(PageNumber::NONE, |(_, number)| number);
    Error::damaged(number, "the leaf's keys do not follow those of its neighbour")
}

impl<P> Clone for Cursor<'_, P> {
    fn clone(&self) -> Self {
        Cursor { key: self.key.clone(), from: Vec::new(), ..*self }
    }
}
