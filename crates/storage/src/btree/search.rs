//! The way from the root to a leaf.

use super::TreeState;
use crate::error::{Error, Result};
use crate::format::PageNumber;
use crate::page::Page;
use crate::page::branch::Branch;
use crate::page::header::{KIND_AT, PageKind};
use crate::page::leaf::{Leaf, LeafValue};
use crate::pages::{PageMut, Pages, PagesMut};

/// A branch on the way to a leaf, and which of its children the way took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) number: PageNumber,
    pub(super) index: usize,
}

#[inline(always)]
fn check_kind(number: PageNumber, page: &Page, kind: PageKind) -> Result<()> {
    if page[KIND_AT] == kind as u8 { Ok(()) } else { Err(other_kind(number, page[KIND_AT], kind)) }
}

#[cold]
#[inline(never)]
fn other_kind(number: PageNumber, found: u8, kind: PageKind) -> Error {
    Error::damaged(number, format!("a tree expects a {kind:?} here and finds a page of kind {found}"))
}

/// The page as a branch. Errors: damage; another kind of page.
#[inline(always)]
pub(super) fn branch<P: Pages>(pages: &P, number: PageNumber) -> Result<Branch<'_>> {
    let page = pages.page(number)?;
    check_kind(number, page, PageKind::Branch)?;
    Ok(Branch::new(page))
}

/// The page as a leaf. Errors: damage; another kind of page.
#[inline(always)]
pub(super) fn leaf<P: Pages>(pages: &P, number: PageNumber) -> Result<Leaf<'_>> {
    let page = pages.page(number)?;
    check_kind(number, page, PageKind::Leaf)?;
    Ok(Leaf::new(page))
}

/// The page as a leaf to be changed. Errors: damage; another kind of page.
#[inline(always)]
pub(super) fn leaf_mut<P: PagesMut>(pages: &mut P, number: PageNumber) -> Result<PageMut<'_>> {
    let page = pages.page_mut(number)?;
    check_kind(number, page.bytes(), PageKind::Leaf)?;
    Ok(page)
}

/// What the leaves say of a key.
#[inline]
pub(super) fn find<'p, P: Pages>(
    pages: &'p P,
    state: &TreeState,
    key: &[u8],
) -> Result<Option<LeafValue<'p>>> {
    let mut number = state.root;
    if !number.is_some() {
        return Ok(None);
    }
    for _ in 1..state.depth {
        let branch = branch(pages, number)?;
        number = branch.child(branch.search(key));
    }
    let leaf = leaf(pages, number)?;
    Ok(match leaf.search(key) {
        Ok(i) => Some(leaf.cell(i).value),
        Err(_) => None,
    })
}

/// The leaf that has the key or would take it, and whether it is the last leaf of all. The tree is not empty.
#[inline]
pub(super) fn leaf_for<P: Pages>(pages: &P, state: &TreeState, key: &[u8]) -> Result<(PageNumber, bool)> {
    let mut number = state.root;
    let mut rightmost = true;
    for _ in 1..state.depth {
        let branch = branch(pages, number)?;
        let index = branch.search(key);
        rightmost &= index + 1 == branch.count();
        number = branch.child(index);
    }
    Ok((number, rightmost))
}

/// As [`leaf_for`], with the way there, from the root on.
pub(super) fn path_for<P: Pages>(
    pages: &P,
    state: &TreeState,
    key: &[u8],
) -> Result<(Vec<Step>, PageNumber)> {
    let mut number = state.root;
    let mut path = Vec::with_capacity(state.depth);
    for _ in 1..state.depth {
        let branch = branch(pages, number)?;
        let index = branch.search(key);
        path.push(Step { number, index });
        number = branch.child(index);
    }
    Ok((path, number))
}
