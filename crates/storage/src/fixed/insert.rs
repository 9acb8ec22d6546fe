//! Putting entries, and splitting what is full.

use super::{DEPTH_MAX, FixedState, Path, Target, descend, root_path};
use crate::error::{Error, Result};
use crate::format::PageNumber;
use crate::page::fixed::{self, BRANCH_CAPACITY, Branch, Entries, leaf_capacity};
use crate::page::header::PageKind;
use crate::pages::PagesMut;

/// Sets the value of a key; true when the key is new.
///
/// Error: the value is not of the tree's size. No error changes anything.
#[inline]
pub(crate) fn put(pages: &mut impl PagesMut, state: &mut FixedState, key: i64, value: &[u8]) -> Result<bool> {
    if value.len() != state.value_size() {
        return Err(wrong_size(state, value));
    }
    if state.last_leaf.is_some() && key > state.last_key {
        let mut page = pages.page_mut(state.last_leaf)?;
        let count = Entries::of_leaf(page.bytes(), value.len())?.count();
        if count < leaf_capacity(value.len()) {
            fixed::leaf_insert(&mut page, count, key, value);
            state.last_key = key;
            state.entries += 1;
            return Ok(true);
        }
    }
    put_searching(pages, state, key, value)
}

#[cold]
fn wrong_size(state: &FixedState, value: &[u8]) -> Error {
    Error::Invalid(format!(
        "a value of {} bytes for a fixed-size tree whose values have {} bytes",
        value.len(),
        state.value_size()
    ))
}

fn put_searching(pages: &mut impl PagesMut, state: &mut FixedState, key: i64, value: &[u8]) -> Result<bool> {
    if state.depth == 0 {
        match put_embedded(state, key, value) {
            Some(new) => return Ok(new),
            None => spill(pages, state)?,
        }
    }
    // A tree that just spilled may have no entries yet: its leaf is searched like any other.
    let mut path = root_path(state);
    let entries = descend(pages, state, &mut path, 0, Target::Key(key))?;
    let (count, found) = (entries.count(), entries.search(key));
    let last_key = if count > 0 { entries.key(count - 1).max(key) } else { key };
    let leaf = path.leaf();
    match found {
        Ok(i) => {
            if entries.value(i) != value {
                fixed::leaf_set_value(&mut pages.page_mut(leaf)?, i, value);
            }
            return Ok(false);
        }
        Err(i) if count < leaf_capacity(value.len()) => {
            fixed::leaf_insert(&mut pages.page_mut(leaf)?, i, key, value);
            state.entries += 1;
            if is_last(pages, &path, path.depth - 1)? {
                (state.last_leaf, state.last_key) = (leaf, last_key);
            }
        }
        Err(i) => {
            let last = is_last(pages, &path, path.depth - 1)?;
            let right = split(pages, state, &path, i, key, value)?;
            state.entries += 1;
            if last {
                (state.last_leaf, state.last_key) = (right, last_key);
            }
        }
    }
    Ok(true)
}

/// Puts into the state itself; `None` when there is no room.
fn put_embedded(state: &mut FixedState, key: i64, value: &[u8]) -> Option<bool> {
    let (count, size, values) = (state.entries as usize, value.len(), state.embedded_values_at());
    let found = state.embedded_entries().search(key);
    let (Ok(i) | Err(i)) = found;
    if found.is_err() {
        if count == state.embedded_capacity() {
            return None;
        }
        state.embedded.copy_within(i * 8..count * 8, (i + 1) * 8);
        state.embedded.copy_within(values + i * size..values + count * size, values + (i + 1) * size);
        state.embedded[i * 8..i * 8 + 8].copy_from_slice(&key.to_le_bytes());
        state.entries += 1;
    }
    state.embedded[values + i * size..values + (i + 1) * size].copy_from_slice(value);
    Some(found.is_err())
}

/// Moves the embedded entries to a first leaf.
fn spill(pages: &mut impl PagesMut, state: &mut FixedState) -> Result<()> {
    let number = pages.allocate(PageKind::FixedLeaf)?;
    let mut page = pages.page_mut(number)?;
    fixed::init_leaf(&mut page, state.value_size());
    fixed::leaf_append(&mut page, state.embedded_entries());
    state.root = number;
    state.depth = 1;
    state.leaf_pages = 1;
    state.embedded.fill(0);
    Ok(())
}

/// Whether the path's page at `level` is the last of its level.
fn is_last(pages: &impl PagesMut, path: &Path, level: usize) -> Result<bool> {
    for &(number, i) in path.steps[..level].iter().rev() {
        if i + 1 < Branch::new(pages.page(number)?)?.count() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Splits the path's full leaf, and the full branches above it, and inserts the entry at `i`. Returns the new leaf.
///
/// First allocates all pages and gets all others ready for changing, which can fail; the rest cannot.
fn split(
    pages: &mut impl PagesMut,
    state: &mut FixedState,
    path: &Path,
    i: usize,
    key: i64,
    value: &[u8],
) -> Result<PageNumber> {
    let mut full = 0; // branches, from the lowest up
    for &(number, _) in path.steps[..path.depth - 1].iter().rev() {
        pages.page_mut(number)?;
        if Branch::new(pages.page(number)?)?.count() < BRANCH_CAPACITY {
            break;
        }
        full += 1;
    }
    let grows = full == path.depth - 1;
    if grows && path.depth == DEPTH_MAX {
        return Err(Error::damaged(state.root, "a fixed-size tree deeper than one can be"));
    }
    pages.page_mut(path.leaf())?;
    let mut fresh = [PageNumber::NONE; DEPTH_MAX + 1];
    for at in 0..1 + full + grows as usize {
        let kind = if at == 0 { PageKind::FixedLeaf } else { PageKind::FixedBranch };
        match pages.allocate(kind) {
            Ok(number) => fresh[at] = number,
            Err(error) => {
                for &number in &fresh[..at] {
                    pages.free(number)?;
                }
                return Err(error);
            }
        }
    }

    let new_leaf = fresh[0];
    let mut carried_key = split_leaf(pages, state, path, new_leaf, i, key, value)?;
    let mut carried = new_leaf;
    state.leaf_pages += 1;
    for (height, level) in (0..path.depth - 1).rev().enumerate() {
        let (number, at) = (path.steps[level].0, path.steps[level].1 + 1);
        if height == full {
            fixed::branch_insert(&mut pages.page_mut(number)?, at, carried_key, carried);
            return Ok(new_leaf);
        }
        let right = fresh[height + 1];
        let last = at == BRANCH_CAPACITY && is_last(pages, path, level)?;
        carried_key = split_branch(pages, number, right, at, carried_key, carried, last)?;
        carried = right;
        state.branch_pages += 1;
    }
    let root = fresh[full + 1];
    let mut page = pages.page_mut(root)?;
    fixed::branch_insert(&mut page, 0, i64::MIN, state.root);
    fixed::branch_insert(&mut page, 1, carried_key, carried);
    state.root = root;
    state.depth += 1;
    state.branch_pages += 1;
    Ok(new_leaf)
}

/// Moves the upper half of a full leaf to a fresh one and inserts the entry into the proper one. At the right edge
/// nothing is moved: ascending keys leave full leaves behind. Returns the fresh leaf's first key.
fn split_leaf(
    pages: &mut impl PagesMut,
    state: &FixedState,
    path: &Path,
    right: PageNumber,
    i: usize,
    key: i64,
    value: &[u8],
) -> Result<i64> {
    let left = path.leaf();
    let old = *pages.page(left)?;
    let old = Entries::of_leaf(&old, state.value_size())?;
    let append = i == old.count() && is_last(pages, path, path.depth - 1)?;
    let middle = if append { old.count() } else { old.count() / 2 };
    if !append {
        let mut page = pages.page_mut(left)?;
        fixed::leaf_remove(&mut page, middle, old.count());
        if i <= middle {
            fixed::leaf_insert(&mut page, i, key, value);
        }
    }
    let mut page = pages.page_mut(right)?;
    fixed::init_leaf(&mut page, state.value_size());
    fixed::leaf_append(&mut page, old.slice(middle, old.count()));
    if append || i > middle {
        fixed::leaf_insert(&mut page, i - middle, key, value);
    }
    Ok(if append { key } else { old.key(middle) })
}

/// The same for a branch, where child `at` is new. Returns the fresh branch's lower bound.
fn split_branch(
    pages: &mut impl PagesMut,
    left: PageNumber,
    right: PageNumber,
    at: usize,
    key: i64,
    child: PageNumber,
    append: bool,
) -> Result<i64> {
    if append {
        fixed::branch_insert(&mut pages.page_mut(right)?, 0, key, child);
        return Ok(key);
    }
    let old = *pages.page(left)?;
    let branch = Branch::new(&old)?;
    let middle = branch.count() / 2;
    let bound = branch.key(middle);
    let mut page = pages.page_mut(left)?;
    fixed::branch_remove(&mut page, middle, branch.count());
    if at <= middle {
        fixed::branch_insert(&mut page, at, key, child);
    }
    let mut page = pages.page_mut(right)?;
    fixed::branch_append(&mut page, &old, middle, bound);
    if at > middle {
        fixed::branch_insert(&mut page, at - middle, key, child);
    }
    Ok(bound)
}
