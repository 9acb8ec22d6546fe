//! Walks a fixed-size tree and checks what must hold between its pages.

use super::FixedState;
use crate::error::{Error, Result};
use crate::format::{PAGE_BODY_SIZE, PageNumber};
use crate::page::fixed::{Branch, Entries};
use crate::page::header::PageKind;
use crate::pages::Pages;
use crate::visit::Visitor;

struct Walk<'a> {
    state: &'a FixedState,
    visitor: &'a mut dyn Visitor,
    on_entry: &'a mut dyn FnMut(i64, &[u8]),
    entries: u64,
    branch_pages: u64,
    leaf_pages: u64,
}

/// Walks the tree, tells the visitor of its pages and of every broken invariant, and calls `on_entry` for each entry.
///
/// Error: only what is no damage, such as a failed read; damage goes to the visitor.
pub(crate) fn visit(
    pages: &impl Pages,
    state: &FixedState,
    on_entry: &mut dyn FnMut(i64, &[u8]),
    visitor: &mut dyn Visitor,
) -> Result<()> {
    if state.depth == 0 {
        let entries = state.embedded_entries();
        for i in 0..entries.count() {
            on_entry(entries.key(i), entries.value(i));
        }
        return Ok(());
    }
    let mut walk = Walk { state, visitor, on_entry, entries: 0, branch_pages: 0, leaf_pages: 0 };
    walk.page(pages, state.root, state.depth as usize - 1, i64::MIN, i64::MAX)?;
    for (what, found, said) in [
        ("entries", walk.entries, state.entries),
        ("branch pages", walk.branch_pages, state.branch_pages),
        ("leaf pages", walk.leaf_pages, state.leaf_pages),
    ] {
        if found != said {
            let text = format!("a fixed-size tree of {found} {what} whose state says {said}");
            visitor.problem(state.root, text);
        }
    }
    Ok(())
}

impl Walk<'_> {
    /// Walks a page whose keys must be in `low..=high`.
    fn page(
        &mut self,
        pages: &impl Pages,
        number: PageNumber,
        height: usize,
        low: i64,
        high: i64,
    ) -> Result<()> {
        let result = pages.page(number).and_then(|page| match height {
            0 => self.leaf(number, Entries::of_leaf(page, self.state.value_size())?, low, high),
            _ => self.branch(pages, number, Branch::new(page)?, height, low, high),
        });
        match result {
            Err(Error::PageDamaged { page, reason }) => self.visitor.problem(page, reason),
            other => return other,
        }
        Ok(())
    }

    fn leaf(&mut self, number: PageNumber, entries: Entries<'_>, low: i64, high: i64) -> Result<()> {
        let count = entries.count();
        let used = count * (8 + self.state.value_size());
        self.visitor.page(number, PageKind::FixedLeaf, 1, (PAGE_BODY_SIZE - used) as u64);
        self.leaf_pages += 1;
        self.entries += count as u64;
        if count > 0 && (entries.key(0) < low || entries.key(count - 1) > high) {
            let (first, last) = (entries.key(0), entries.key(count - 1));
            let text = format!("a leaf with the keys {first} to {last} where its parent has {low} to {high}");
            self.visitor.problem(number, text);
        }
        for i in 0..count {
            (self.on_entry)(entries.key(i), entries.value(i));
        }
        Ok(())
    }

    fn branch(
        &mut self,
        pages: &impl Pages,
        number: PageNumber,
        branch: Branch<'_>,
        height: usize,
        low: i64,
        high: i64,
    ) -> Result<()> {
        let count = branch.count();
        self.visitor.page(number, PageKind::FixedBranch, 1, (PAGE_BODY_SIZE - count * 16) as u64);
        self.branch_pages += 1;
        if number == self.state.root && count < 2 {
            self.visitor.problem(number, "a root with a single child".to_owned());
        }
        for i in 0..count {
            let from = if i == 0 { low } else { branch.key(i) };
            let to = if i + 1 == count { high } else { branch.key(i + 1).wrapping_sub(1) };
            if from < low || to > high || from > to {
                self.visitor
                    .problem(number, format!("child {i} has the keys {from} to {to} of {low} to {high}"));
            }
            self.page(pages, branch.child(i), height - 1, from, to)?;
        }
        Ok(())
    }
}
