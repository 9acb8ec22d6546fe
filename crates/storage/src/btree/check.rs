//! Walks a whole tree and reports every broken invariant.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::Tree;
use crate::error::{Error, Result};
use crate::format::{PAGE_BODY_SIZE, PageNumber};
use crate::heap::{self, ValueRef};
use crate::page::branch::Branch;
use crate::page::header::{self, PageKind};
use crate::page::leaf::{Leaf, LeafValue};
use crate::page::{self, Page};
use crate::pages::Pages;
use crate::visit::Visitor;

/// What a walk found.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct TreeStatistics {
    pub(crate) entries: u64,
    pub(crate) branch_pages: u64,
    pub(crate) leaf_pages: u64,
    /// Bytes of the branches' bodies that hold something.
    pub(crate) branch_bytes_used: u64,
    /// Bytes of the leaves' bodies that hold something.
    pub(crate) leaf_bytes_used: u64,
    /// Values that lie in the heap.
    pub(crate) long_values: u64,
}

struct Walk<'p, 'v, P> {
    pages: &'p P,
    visitor: &'v mut dyn Visitor,
    statistics: TreeStatistics,
    seen: HashSet<PageNumber>,
    refs: Vec<ValueRef>,
}

impl<P: Pages> Tree<'_, P> {
    /// Walks all pages of the tree and of its heap and reports each, and every broken invariant: pages that are damaged
    /// or in the tree twice, keys out of order or outside their separators, counts that differ from the state's.
    ///
    /// Error: only what is no damage, such as a failed read; damage goes to the visitor.
    pub(crate) fn check(&self, visitor: &mut dyn Visitor) -> Result<TreeStatistics> {
        let seen = HashSet::new();
        let statistics = TreeStatistics::default();
        let mut walk = Walk { pages: self.pages, visitor, statistics, seen, refs: Vec::new() };
        if self.state.root.is_some() != (self.state.depth != 0) {
            let text =
                format!("a tree of {} levels whose root is page {}", self.state.depth, self.state.root);
            walk.visitor.problem(self.state.root, text);
        } else if self.state.root.is_some() {
            walk.page(self.state.root, self.state.depth, None, None)?;
        }
        let Walk { statistics: found, mut refs, visitor, .. } = walk;
        for (name, said, found) in [
            ("entries", self.state.entries, found.entries),
            ("branch pages", self.state.branch_pages, found.branch_pages),
            ("leaf pages", self.state.leaf_pages, found.leaf_pages),
        ] {
            if said != found {
                visitor.problem(
                    self.state.root,
                    format!("the tree is said to have {said} {name} and has {found}"),
                );
            }
        }
        heap::check(self.pages, &self.state.heap, &mut refs, visitor)?;
        Ok(found)
    }
}

impl<P: Pages> Walk<'_, '_, P> {
    /// Walks the page, which is `depth` levels above nothing, and all below. Its keys must be at least `low` and less
    /// than `high`.
    fn page(
        &mut self,
        number: PageNumber,
        depth: usize,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Result<()> {
        let page = match self.pages.page(number).and_then(|page| page::validate(number, page).map(|()| page))
        {
            Ok(page) => page,
            Err(Error::PageDamaged { page, reason }) => {
                self.visitor.problem(page, reason);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let kind = if depth == 1 { PageKind::Leaf } else { PageKind::Branch };
        if header::kind(page) != Some(kind) {
            let found = page[header::KIND_AT];
            self.visitor
                .problem(number, format!("a tree expects a {kind:?} here and finds a page of kind {found}"));
            return Ok(());
        }
        let used = match kind {
            PageKind::Leaf => Leaf::new(page).used(),
            _ => Branch::new(page).used(),
        };
        self.visitor.page(number, kind, 1, (PAGE_BODY_SIZE - used) as u64);
        if !self.seen.insert(number) {
            self.visitor.problem(number, "the page is in the tree twice".to_owned());
            return Ok(());
        }
        if depth == 1 {
            self.statistics.leaf_pages += 1;
            self.statistics.leaf_bytes_used += used as u64;
            self.leaf(number, page, low, high);
            return Ok(());
        }
        self.statistics.branch_pages += 1;
        self.statistics.branch_bytes_used += used as u64;
        self.branch(number, Branch::new(page), depth, low, high)
    }

    fn leaf(&mut self, number: PageNumber, page: &Page, low: Option<&[u8]>, high: Option<&[u8]>) {
        let leaf = Leaf::new(page);
        let count = leaf.count();
        if low.is_some_and(|low| leaf.compare(0, low) == Ordering::Less) {
            self.visitor.problem(number, "its first key is less than the separator before it".to_owned());
        }
        if high.is_some_and(|high| leaf.compare(count - 1, high) != Ordering::Less) {
            self.visitor.problem(number, "its last key is not less than the separator behind it".to_owned());
        }
        self.statistics.entries += count as u64;
        for i in 0..count {
            if let LeafValue::Long(r) = leaf.cell(i).value {
                self.statistics.long_values += 1;
                self.refs.push(r);
            }
        }
    }

    fn branch(
        &mut self,
        number: PageNumber,
        branch: Branch<'_>,
        depth: usize,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Result<()> {
        let count = branch.count();
        if count > 1 && low.is_some_and(|low| branch.compare(1, low) != Ordering::Greater) {
            self.visitor
                .problem(number, "its first separator is not greater than the one before it".to_owned());
        }
        if count > 1 && high.is_some_and(|high| branch.compare(count - 1, high) != Ordering::Less) {
            self.visitor.problem(number, "its last separator is not less than the one behind it".to_owned());
        }
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        for i in 0..count {
            let low = if i == 0 { low } else { Some(before.as_slice()) };
            if i + 1 < count {
                branch.entry(i + 1).copy_separator(&mut behind);
            }
            let high = if i + 1 == count { high } else { Some(behind.as_slice()) };
            self.page(branch.child(i), depth - 1, low, high)?;
            std::mem::swap(&mut before, &mut behind);
        }
        Ok(())
    }
}
