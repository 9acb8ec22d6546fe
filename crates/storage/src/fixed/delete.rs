//! Deleting entries, ranges and whole trees; merging what has become sparse.

use super::{FixedState, Path, Target, descend, root_path};
use crate::error::Result;
use crate::format::PageNumber;
use crate::page::fixed::{self, BRANCH_CAPACITY, Branch, Entries, leaf_capacity};
use crate::pages::{Pages, PagesMut};

/// Deletes a key; false when there is none.
pub(crate) fn delete(pages: &mut impl PagesMut, state: &mut FixedState, key: i64) -> Result<bool> {
    if state.depth == 0 {
        let found = state.embedded_entries().search(key);
        if let Ok(i) = found {
            remove_embedded(state, i, i + 1);
        }
        return Ok(found.is_ok());
    }
    let mut path = root_path(state);
    match descend(pages, state, &mut path, 0, Target::Key(key))?.search(key) {
        Ok(i) => remove(pages, state, &path, i, i + 1).map(|()| true),
        Err(_) => Ok(false),
    }
}

/// Deletes all keys from `from` to `to`, both included, and returns how many there were.
///
/// An error from below, such as a damaged page, can leave the lower part of the range deleted.
pub(crate) fn delete_range(
    pages: &mut impl PagesMut,
    state: &mut FixedState,
    from: i64,
    to: i64,
) -> Result<u64> {
    let entries_before = state.entries;
    while state.depth > 0 && from <= to {
        let mut path = root_path(state);
        let mut entries = descend(pages, state, &mut path, 0, Target::Key(from))?;
        let (Ok(mut start) | Err(mut start)) = entries.search(from);
        if start == entries.count() {
            // All keys of this leaf are below the range: it can begin with the next leaf.
            match next_leaf(pages, state, &mut path)? {
                Some(next) => (entries, start) = (next, 0),
                None => break,
            }
        }
        let end = match entries.search(to) {
            Ok(i) => i + 1,
            Err(i) => i,
        };
        if start >= end {
            break;
        }
        remove(pages, state, &path, start, end)?;
    }
    if state.depth == 0 && from <= to {
        let entries = state.embedded_entries();
        let (Ok(start) | Err(start)) = entries.search(from);
        let end = match entries.search(to) {
            Ok(i) => i + 1,
            Err(i) => i,
        };
        remove_embedded(state, start, end);
    }
    Ok(entries_before.saturating_sub(state.entries))
}

/// Deletes everything and gives back all pages.
pub(crate) fn clear(pages: &mut impl PagesMut, state: &mut FixedState) -> Result<()> {
    if state.depth > 0 {
        free_below(pages, state.root, state.depth as usize - 1)?;
    }
    *state = FixedState::new(state.value_size())?;
    Ok(())
}

/// Gives back a page and what is below it: `height` levels of it.
fn free_below(pages: &mut impl PagesMut, number: PageNumber, height: usize) -> Result<()> {
    if height > 0 {
        let copy = *pages.page(number)?;
        let branch = Branch::new(&copy)?;
        for i in 0..branch.count() {
            free_below(pages, branch.child(i), height - 1)?;
        }
    }
    pages.free(number)
}

/// Moves the path to the next leaf; `None` when there is none.
pub(super) fn next_leaf<'p>(
    pages: &'p impl Pages,
    state: &FixedState,
    path: &mut Path,
) -> Result<Option<Entries<'p>>> {
    for level in (0..path.depth - 1).rev() {
        let (number, i) = path.steps[level];
        let branch = Branch::new(pages.page(number)?)?;
        if i + 1 < branch.count() {
            path.steps[level].1 = i + 1;
            path.steps[level + 1] = (branch.child(i + 1), 0);
            return descend(pages, state, path, level + 1, Target::First).map(Some);
        }
    }
    Ok(None)
}

fn remove_embedded(state: &mut FixedState, from: usize, to: usize) {
    let (count, size, values) = (state.entries as usize, state.value_size(), state.embedded_values_at());
    let kept = count - (to - from);
    state.embedded.copy_within(to * 8..count * 8, from * 8);
    state.embedded.copy_within(values + to * size..values + count * size, values + from * size);
    state.embedded[kept * 8..count * 8].fill(0);
    state.embedded[values + kept * size..values + count * size].fill(0);
    state.entries = kept as u64;
}

/// Removes the entries `from..to`, at least one, of the path's leaf; merges or frees pages, and embeds the tree again
/// when it has become small.
fn remove(
    pages: &mut impl PagesMut,
    state: &mut FixedState,
    path: &Path,
    from: usize,
    to: usize,
) -> Result<()> {
    for &(number, _) in &path.steps[..path.depth] {
        pages.page_mut(number)?;
    }
    state.last_leaf = PageNumber::NONE;
    let (size, leaf) = (state.value_size(), path.leaf());
    let count = Entries::of_leaf(pages.page(leaf)?, size)?.count();
    let kept = count - (to - from);
    state.entries = state.entries.saturating_sub((to - from) as u64);
    if kept > 0 {
        fixed::leaf_remove(&mut pages.page_mut(leaf)?, from, to);
        if path.depth == 1 {
            return embed_if_small(pages, state);
        }
        if kept >= leaf_capacity(size) / 4 {
            return Ok(());
        }
        let Some((left, right, right_at)) = sibling(pages, path, path.depth - 1)? else { return Ok(()) };
        let left_count = Entries::of_leaf(pages.page(left)?, size)?.count();
        let moved = *pages.page(right)?;
        let moved = Entries::of_leaf(&moved, size)?;
        if left_count + moved.count() > leaf_capacity(size) / 4 * 3 {
            return Ok(());
        }
        fixed::leaf_append(&mut pages.page_mut(left)?, moved);
        free_leaf(pages, state, right)?;
        return remove_child(pages, state, path, path.depth - 2, right_at);
    }
    free_leaf(pages, state, leaf)?;
    if path.depth == 1 {
        *state = FixedState::new(size)?;
        return Ok(());
    }
    remove_child(pages, state, path, path.depth - 2, path.steps[path.depth - 2].1)
}

fn free_leaf(pages: &mut impl PagesMut, state: &mut FixedState, leaf: PageNumber) -> Result<()> {
    pages.free(leaf)?;
    state.leaf_pages = state.leaf_pages.saturating_sub(1);
    Ok(())
}

fn free_branch(pages: &mut impl PagesMut, state: &mut FixedState, branch: PageNumber) -> Result<()> {
    pages.free(branch)?;
    state.branch_pages = state.branch_pages.saturating_sub(1);
    Ok(())
}

/// The path's page at `level` and a neighbour under the same parent, in their order, and the index of the right one in
/// the parent. `None` when it has no neighbour there. Level 0 has no parent and must not be asked for.
fn sibling(pages: &impl Pages, path: &Path, level: usize) -> Result<Option<(PageNumber, PageNumber, usize)>> {
    let (parent, i) = path.steps[level - 1];
    let branch = Branch::new(pages.page(parent)?)?;
    Ok(match i {
        _ if i > 0 => Some((branch.child(i - 1), branch.child(i), i)),
        _ if branch.count() > 1 => Some((branch.child(0), branch.child(1), 1)),
        _ => None,
    })
}

/// Takes child `i` out of the path's branch at `level`, and the branch out of its parent when nothing is left.
fn remove_child(
    pages: &mut impl PagesMut,
    state: &mut FixedState,
    path: &Path,
    mut level: usize,
    mut i: usize,
) -> Result<()> {
    loop {
        let number = path.steps[level].0;
        let kept = Branch::new(pages.page(number)?)?.count() - 1;
        if kept == 0 {
            free_branch(pages, state, number)?;
            if level == 0 {
                // Only a damaged tree: a root has two children.
                *state = FixedState::new(state.value_size())?;
                return Ok(());
            }
            (level, i) = (level - 1, path.steps[level - 1].1);
            continue;
        }
        fixed::branch_remove(&mut pages.page_mut(number)?, i, i + 1);
        if level == 0 {
            return lower_root(pages, state);
        }
        if kept >= BRANCH_CAPACITY / 4 {
            return Ok(());
        }
        let Some((left, right, right_at)) = sibling(pages, path, level)? else { return Ok(()) };
        let left_count = Branch::new(pages.page(left)?)?.count();
        let moved = *pages.page(right)?;
        if left_count + Branch::new(&moved)?.count() > BRANCH_CAPACITY / 4 * 3 {
            return Ok(());
        }
        let bound = Branch::new(pages.page(path.steps[level - 1].0)?)?.key(right_at);
        fixed::branch_append(&mut pages.page_mut(left)?, &moved, 0, bound);
        free_branch(pages, state, right)?;
        (level, i) = (level - 1, right_at);
    }
}

/// While the root has a single child, that becomes the root.
fn lower_root(pages: &mut impl PagesMut, state: &mut FixedState) -> Result<()> {
    while state.depth > 1 {
        let branch = Branch::new(pages.page(state.root)?)?;
        if branch.count() > 1 {
            return Ok(());
        }
        let child = branch.child(0);
        free_branch(pages, state, state.root)?;
        state.root = child;
        state.depth -= 1;
    }
    embed_if_small(pages, state)
}

/// Moves the entries of a single leaf into the state when they take no more than half of the room there: a little
/// more than is needed, so that a tree on the edge does not go to and fro.
fn embed_if_small(pages: &mut impl PagesMut, state: &mut FixedState) -> Result<()> {
    let size = state.value_size();
    let leaf = *pages.page(state.root)?;
    let entries = Entries::of_leaf(&leaf, size)?;
    let mut embedded = FixedState::new(size)?;
    if entries.count() > embedded.embedded_capacity() / 2 {
        return Ok(());
    }
    let values = embedded.embedded_values_at();
    for i in 0..entries.count() {
        embedded.embedded[i * 8..i * 8 + 8].copy_from_slice(&entries.key(i).to_le_bytes());
        embedded.embedded[values + i * size..values + (i + 1) * size].copy_from_slice(entries.value(i));
    }
    embedded.entries = entries.count() as u64;
    pages.free(state.root)?;
    *state = embedded;
    Ok(())
}
