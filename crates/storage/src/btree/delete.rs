//! Taking entries out, and merging pages that have become too empty.
//!
//! Merging is an improvement, not a part of the change: where it cannot be had (a neighbour is damaged, no scratch memory
//! is left) the page stays as it is.

use std::cmp::Ordering;
use std::ops::Bound;

use super::search::{self, Step, leaf_for, leaf_mut, path_for};
use super::split::{
    branch_prefix, branch_size, choose_middle, common_with_next, leaf_prefix, leaf_size, separator_between,
};
use super::{TreeMut, TreeState, check_key};
use crate::error::{Error, Result};
use crate::format::{PAGE_BODY_SIZE, PageNumber};
use crate::heap::{self, ValueRef};
use crate::page::Page;
use crate::page::branch::{self, Branch};
use crate::page::leaf::{self, Leaf, LeafValue};
use crate::pages::PagesMut;

/// A page with less in it is merged with a neighbour if it can be.
const MERGE_BELOW_SIZE: usize = PAGE_BODY_SIZE / 3;

/// A leaf with less in it that cannot be merged takes entries over from a neighbour.
const BORROW_BELOW_SIZE: usize = PAGE_BODY_SIZE / 4;

/// The most that two pages merged may hold: the next insert should not split them again.
const MERGED_SIZE_MAX: usize = PAGE_BODY_SIZE - PAGE_BODY_SIZE / 8;

impl<P: PagesMut> TreeMut<'_, P> {
    /// Removes a key and its value; returns whether it was there.
    ///
    /// Errors: [`KeyEmpty`](Error::KeyEmpty), [`KeyTooLong`](Error::KeyTooLong); damage.
    pub(crate) fn delete(&mut self, key: &[u8]) -> Result<bool> {
        check_key(key)?;
        if !self.state.root.is_some() {
            return Ok(false);
        }
        let (number, _) = leaf_for(self.pages, self.state, key)?;
        let leaf = search::leaf(self.pages, number)?;
        let Ok(i) = leaf.search(key) else { return Ok(false) };
        let value = leaf.cell(i).value;
        let long = match value {
            LeafValue::Long(r) => Some(r),
            LeafValue::Inline(_) => None,
        };
        self.delete_from_leaf(key, number, i, i + 1, long.as_slice())?;
        Ok(true)
    }

    /// Removes all keys in a range with their values and returns how many there were. Stops at the first error, with
    /// what was removed until then gone.
    pub(crate) fn delete_range(&mut self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Result<u64> {
        let mut removed = 0;
        let mut from: Bound<Vec<u8>> = start.map(<[u8]>::to_vec);
        loop {
            // The first key of the range that is left, and its leaf.
            let mut cursor = self.read().cursor();
            let found = match &from {
                Bound::Unbounded => cursor.first()?,
                Bound::Included(key) => cursor.seek(key)?,
                Bound::Excluded(key) => cursor.seek(key)? && (cursor.key() != key || cursor.next()?),
            };
            if !found {
                return Ok(removed);
            }
            let key = cursor.key().to_vec();
            let within = match end {
                Bound::Unbounded => true,
                Bound::Included(end) => key.as_slice() <= end,
                Bound::Excluded(end) => key.as_slice() < end,
            };
            if !within {
                return Ok(removed);
            }
            let (number, _) = leaf_for(self.pages, self.state, &key)?;
            let leaf = search::leaf(self.pages, number)?;
            let Ok(first) = leaf.search(&key) else {
                return Err(Error::damaged(number, "a search misses a key that a walk finds"));
            };
            let last = match end {
                Bound::Unbounded => leaf.count(),
                Bound::Included(end) => leaf.search(end).map_or_else(|i| i, |i| i + 1),
                Bound::Excluded(end) => leaf.search(end).unwrap_or_else(|i| i),
            };
            let long: Vec<ValueRef> = (first..last)
                .filter_map(|i| match leaf.cell(i).value {
                    LeafValue::Long(r) => Some(r),
                    LeafValue::Inline(_) => None,
                })
                .collect();
            self.delete_from_leaf(&key, number, first, last, &long)?;
            removed += (last - first) as u64;
            from = Bound::Included(key);
        }
    }

    /// Removes everything and gives back all pages. Stops at the first error.
    pub(crate) fn clear(&mut self) -> Result<()> {
        if self.state.root.is_some() {
            let (root, depth) = (self.state.root, self.state.depth);
            self.hint.rightmost = PageNumber::NONE;
            self.free_below(root, depth)?;
        }
        let heap = self.state.heap;
        *self.state = TreeState { heap, ..TreeState::default() };
        Ok(())
    }

    fn free_below(&mut self, number: PageNumber, depth: usize) -> Result<()> {
        if depth > 1 {
            let branch = search::branch(self.pages, number)?;
            let children: Vec<PageNumber> = (0..branch.count()).map(|i| branch.child(i)).collect();
            for child in children {
                self.free_below(child, depth - 1)?;
            }
        } else {
            let leaf = search::leaf(self.pages, number)?;
            let long: Vec<ValueRef> = (0..leaf.count())
                .filter_map(|i| match leaf.cell(i).value {
                    LeafValue::Long(r) => Some(r),
                    LeafValue::Inline(_) => None,
                })
                .collect();
            for r in long {
                heap::remove(self.pages, &mut self.state.heap, r)?;
            }
        }
        self.pages.free(number)
    }

    /// Removes the entries `from..to` of a leaf, to which `key` leads, and their values in the heap.
    fn delete_from_leaf(
        &mut self,
        key: &[u8],
        number: PageNumber,
        from: usize,
        to: usize,
        long: &[ValueRef],
    ) -> Result<()> {
        let leaf = search::leaf(self.pages, number)?;
        let all = to - from == leaf.count();
        let path = if all { Some(self.path_to(key, number)?) } else { None };
        match &path {
            Some(path) => self.acquire_emptied(path)?,
            None => {
                leaf_mut(self.pages, number)?;
            }
        }
        for r in long {
            heap::remove(self.pages, &mut self.state.heap, *r)?;
        }
        self.state.entries = self.state.entries.saturating_sub((to - from) as u64);
        if let Some(path) = path {
            return self.prune(path, number);
        }
        let mut page = leaf_mut(self.pages, number)?;
        leaf::remove(&mut page, from, to);
        if Leaf::new(page.bytes()).used() < MERGE_BELOW_SIZE && self.state.depth > 1 {
            let path = self.path_to(key, number)?;
            self.merge_leaf(path)?;
        }
        Ok(())
    }

    fn path_to(&self, key: &[u8], number: PageNumber) -> Result<Vec<Step>> {
        let (path, found) = path_for(self.pages, self.state, key)?;
        if found != number {
            return Err(Error::damaged(number, "a search ends here or elsewhere"));
        }
        Ok(path)
    }

    /// Gets the branch ready that will lose a child when the leaf at the end of the path is gone.
    fn acquire_emptied(&mut self, path: &[Step]) -> Result<()> {
        for step in path.iter().rev() {
            if search::branch(self.pages, step.number)?.count() > 1 {
                self.pages.page_mut(step.number)?;
                break;
            }
        }
        Ok(())
    }

    /// Gives back a leaf that has become empty, and the branches that had no other child.
    fn prune(&mut self, mut path: Vec<Step>, leaf: PageNumber) -> Result<()> {
        self.hint.rightmost = PageNumber::NONE;
        self.state.leaf_pages = self.state.leaf_pages.saturating_sub(1);
        let mut emptied = vec![leaf];
        loop {
            let Some(step) = path.pop() else {
                self.state.root = PageNumber::NONE;
                self.state.depth = 0;
                break;
            };
            let mut page = self.pages.page_mut(step.number)?;
            if Branch::new(page.bytes()).count() > 1 {
                branch::remove(&mut page, step.index, step.index + 1);
                break;
            }
            emptied.push(step.number);
            self.state.branch_pages = self.state.branch_pages.saturating_sub(1);
        }
        for number in emptied {
            self.pages.free(number)?;
        }
        self.settle_branches(path)
    }

    /// After a branch lost a child: merges it, and then those above it, with neighbours where that is due. The path ends
    /// before that branch; it is the child the last step took.
    fn settle_branches(&mut self, mut path: Vec<Step>) -> Result<()> {
        while let Some(&step) = path.last() {
            let Ok(parent) = search::branch(self.pages, step.number) else { break };
            let Ok(lean) = search::branch(self.pages, parent.child(step.index)) else { break };
            if lean.used() >= MERGE_BELOW_SIZE || !self.merge_branch(step)? {
                break;
            }
            path.pop();
        }
        while self.state.depth > 1 {
            let root = self.state.root;
            let Ok(branch) = search::branch(self.pages, root) else { break };
            if branch.count() != 1 {
                break;
            }
            self.state.root = branch.child(0);
            self.state.depth -= 1;
            self.state.branch_pages = self.state.branch_pages.saturating_sub(1);
            self.pages.free(root)?;
        }
        Ok(())
    }

    /// Merges the leaf at the end of the path with a neighbour, or levels them, where that is due.
    #[cold]
    fn merge_leaf(&mut self, mut path: Vec<Step>) -> Result<()> {
        let Some(step) = path.pop() else { return Ok(()) };
        let copy: Page = *self.pages.page(step.number)?;
        let parent = Branch::new(&copy);
        let lean = search::leaf(self.pages, parent.child(step.index))?;
        let (lean_used, lean_prefix_size) = (lean.used(), lean.prefix().len());
        let mut level = None;
        for low in neighbours(step.index, parent.count()) {
            let numbers = (parent.child(low), parent.child(low + 1));
            let (Ok(left), Ok(right)) =
                (search::leaf(self.pages, numbers.0), search::leaf(self.pages, numbers.1))
            else {
                continue;
            };
            if left.used() + right.used() <= MERGED_SIZE_MAX + lean_prefix_size {
                let (left_page, right_page): (Page, Page) =
                    (*self.pages.page(numbers.0)?, *self.pages.page(numbers.1)?);
                if self.merge_leaves(step.number, low, numbers, &left_page, &right_page)? {
                    return self.settle_branches(path);
                }
            } else if lean_used < BORROW_BELOW_SIZE {
                level = level.or(Some((low, numbers)));
            }
        }
        match level {
            Some((low, numbers)) => self.level_leaves(step.number, low, numbers),
            None => Ok(()),
        }
    }

    /// Merges two leaves, children `low` and `low + 1` of the branch, into the fuller one; false when they do not fit or
    /// the pages cannot be had.
    fn merge_leaves(
        &mut self,
        parent: PageNumber,
        low: usize,
        numbers: (PageNumber, PageNumber),
        left: &Page,
        right: &Page,
    ) -> Result<bool> {
        let (left, right) = (Leaf::new(left), Leaf::new(right));
        let Some(entries) = joined(left, right) else { return Ok(false) };
        let prefix = leaf_prefix(&entries);
        if leaf_size(&entries, prefix.len()) > MERGED_SIZE_MAX {
            return Ok(false);
        }
        let into_left = left.used() >= right.used();
        let (kept, gone) = if into_left { numbers } else { (numbers.1, numbers.0) };
        if self.pages.page_mut(kept).is_err() || self.pages.page_mut(parent).is_err() {
            return Ok(false);
        }
        let base = if into_left { left } else { right };
        let mut page = self.pages.page_mut(kept)?;
        let added = if into_left { &entries[left.count()..] } else { &entries[..left.count()] };
        let added_size = added.iter().map(|entry| entry.size(base.prefix().len().min(prefix.len()))).sum();
        if prefix.len() >= base.prefix().len() && base.room() >= added_size {
            let mut key = Vec::new();
            for (i, entry) in added.iter().enumerate() {
                entry.copy_key(&mut key);
                let at = if into_left { left.count() + i } else { i };
                let done = leaf::insert(&mut page, at, &key[base.prefix().len()..], entry.value);
                debug_assert!(done, "the sizes were added up");
            }
        } else {
            leaf::build(&mut page, &prefix, &entries, 0);
        }
        let mut page = self.pages.page_mut(parent)?;
        if !into_left {
            branch::set_child(&mut page, low, kept);
        }
        branch::remove(&mut page, low + 1, low + 2);
        self.hint.rightmost = PageNumber::NONE;
        self.state.leaf_pages = self.state.leaf_pages.saturating_sub(1);
        self.pages.free(gone)?;
        Ok(true)
    }

    /// Moves entries between two leaves, children `low` and `low + 1` of the branch, so that both are equally full;
    /// nothing happens when the branch has no room for the new separator.
    fn level_leaves(
        &mut self,
        parent: PageNumber,
        low: usize,
        numbers: (PageNumber, PageNumber),
    ) -> Result<()> {
        let (left, right): (Page, Page) = (*self.pages.page(numbers.0)?, *self.pages.page(numbers.1)?);
        let (left, right) = (Leaf::new(&left), Leaf::new(&right));
        let Some(entries) = joined(left, right) else { return Ok(()) };
        let prefix_size = leaf_prefix(&entries).len();
        let sizes = || entries.iter().map(|entry| entry.size(prefix_size));
        let cost = |at: usize| common_with_next(&entries[at - 1], &entries[at]);
        let fits = |part: &[leaf::Entry<'_>]| leaf_size(part, leaf_prefix(part).len()) <= PAGE_BODY_SIZE;
        let Some(at) =
            choose_middle(entries.len(), sizes, cost, |at| fits(&entries[..at]) && fits(&entries[at..]))
        else {
            return Ok(());
        };
        let separator = separator_between(&entries[at - 1], &entries[at]);
        let copy: Page = *self.pages.page(parent)?;
        let branch = Branch::new(&copy);
        if !branch.separates(low, low + 2, &separator) {
            return Ok(());
        }
        let mut children: Vec<branch::Entry<'_>> = (0..branch.count()).map(|i| branch.entry(i)).collect();
        children[low + 1] = branch::Entry::new(&separator, numbers.1);
        let prefix = branch_prefix(&children);
        if branch_size(&children, prefix.len()) > PAGE_BODY_SIZE
            || [parent, numbers.0, numbers.1].iter().any(|&number| self.pages.page_mut(number).is_err())
        {
            return Ok(());
        }
        let (to_left, to_right) = entries.split_at(at);
        leaf::build(&mut self.pages.page_mut(numbers.0)?, &leaf_prefix(to_left), to_left, 0);
        leaf::build(&mut self.pages.page_mut(numbers.1)?, &leaf_prefix(to_right), to_right, 0);
        let mut page = self.pages.page_mut(parent)?;
        branch::remove(&mut page, low + 1, low + 2);
        if Branch::new(page.bytes()).takes(&separator) {
            branch::insert(&mut page, low + 1, &separator, numbers.1);
        } else {
            branch::build(&mut page, &prefix, &children);
        }
        Ok(())
    }

    /// Merges the branch that is the step's child with a neighbour; false when none fits or the pages cannot be had.
    fn merge_branch(&mut self, step: Step) -> Result<bool> {
        let copy: Page = *self.pages.page(step.number)?;
        let parent = Branch::new(&copy);
        for low in neighbours(step.index, parent.count()) {
            let (left_number, right_number) = (parent.child(low), parent.child(low + 1));
            let (Ok(left), Ok(right)) =
                (search::branch(self.pages, left_number), search::branch(self.pages, right_number))
            else {
                continue;
            };
            if left.used() + right.used() > MERGED_SIZE_MAX {
                continue;
            }
            let (left_page, right_page): (Page, Page) =
                (*self.pages.page(left_number)?, *self.pages.page(right_number)?);
            let (left, right) = (Branch::new(&left_page), Branch::new(&right_page));
            let mut separator = Vec::new();
            parent.entry(low + 1).copy_separator(&mut separator);
            if !left.separates(left.count() - 1, left.count(), &separator)
                || !right.separates(0, 1, &separator)
            {
                continue;
            }
            let mut children: Vec<branch::Entry<'_>> = (0..left.count()).map(|i| left.entry(i)).collect();
            children.push(branch::Entry::new(&separator, right.child(0)));
            children.extend((1..right.count()).map(|i| right.entry(i)));
            let prefix = branch_prefix(&children);
            if branch_size(&children, prefix.len()) > MERGED_SIZE_MAX
                || self.pages.page_mut(left_number).is_err()
                || self.pages.page_mut(step.number).is_err()
            {
                continue;
            }
            branch::build(&mut self.pages.page_mut(left_number)?, &prefix, &children);
            branch::remove(&mut self.pages.page_mut(step.number)?, low + 1, low + 2);
            self.state.branch_pages = self.state.branch_pages.saturating_sub(1);
            self.pages.free(right_number)?;
            return Ok(true);
        }
        Ok(false)
    }
}

/// The entries of two neighbours; `None` when their keys do not follow each other, which is damage.
fn joined<'e>(left: Leaf<'e>, right: Leaf<'e>) -> Option<Vec<leaf::Entry<'e>>> {
    let mut first = Vec::new();
    right.entry(0).copy_key(&mut first);
    if left.compare(left.count() - 1, &first) != Ordering::Less {
        return None;
    }
    let mut entries = Vec::with_capacity(left.count() + right.count());
    entries.extend((0..left.count()).map(|i| left.entry(i)));
    entries.extend((0..right.count()).map(|i| right.entry(i)));
    Some(entries)
}

/// The lower ones of the pairs of children that child `index` is in, the pair with its right neighbour first.
fn neighbours(index: usize, count: usize) -> impl Iterator<Item = usize> {
    let right = (index + 1 < count).then_some(index);
    right.into_iter().chain(index.checked_sub(1))
}
