//! Savepoints after savepoints: undoing a page's changes without copying the page for each.
//!
//! A page that was changed before a savepoint and is changed after it is pushed again, a whole copy (see `write`). A merger makes a savepoint
//! for each of many jobs, and most jobs change the same few pages. So a copy that no savepoint needs any more stays below the page's
//! newest version and is used again: the lines in which the two differ are copied down, which makes it what the savepoint needs, and
//! the newest version is changed in place. Undoing copies lines up.
//!
//! Only for savepoints that are not inside another: a nested one makes whole copies, on top.

use super::write::{VersionState, WriteTransaction};
use crate::format::PAGE_SIZE;
use crate::page::Page;
use crate::pages::{DirtyLines, LINE_SIZE};
use crate::snapshot::page_table::{Found, Link};

/// A version that was changed in place after the savepoint.
pub(super) struct Undo {
    link: Link,
    /// What the writer knew of it at the savepoint.
    state: VersionState,
}

impl WriteTransaction {
    /// Sees to it that an own version below `found` has what `found`, an own version from before the savepoint, held at the savepoint. False
    /// when there is no version for that, or savepoints are nested.
    pub(super) fn keep_below(&mut self, found: &Found) -> bool {
        let &[savepoint] = self.writer.savepoints.as_slice() else { return false };
        if self.writer.versions[found.link.index()].kept_for == savepoint {
            return true;
        }
        let Some(below) = self.own_below(found) else { return false };
        let state = &mut self.writer.versions[found.link.index()];
        // SAFETY: two versions of this transaction, at which no reader looks; `&mut self` excludes other borrows.
        let (newest, kept) = unsafe { (found.page(), below.page_mut()) };
        copy_lines(newest, kept, state.lines);
        state.earlier |= state.lines;
        state.lines = 0;
        state.kept_for = savepoint;
        let state = *state;
        self.writer.undo.push(Undo { link: found.link, state });
        true
    }

    /// Undoes all changes in place beyond the first `length`.
    pub(super) fn undo_to(&mut self, length: usize) {
        if self.writer.undo.len() > length {
            self.writer.hints.reset();
        }
        while self.writer.undo.len() > length {
            let Some(Undo { link, state: before }) = self.writer.undo.pop() else { break };
            let found = self.inner.table.at(link);
            let state = &mut self.writer.versions[link.index()];
            if let Some(below) = self.inner.table.below(link) {
                // SAFETY: as in `keep_below`; both versions are still linked, for they were pushed before the savepoint.
                let (newest, kept) = unsafe { (found.page_mut(), below.page()) };
                copy_lines(kept, newest, state.lines);
            }
            *state = before;
        }
    }

    /// The version right below, when it is one of this transaction's too.
    fn own_below(&self, found: &Found) -> Option<Found> {
        let below = self.inner.table.below(found.link)?;
        (below.transaction == self.id && !below.is_tombstone() && below.size == PAGE_SIZE).then_some(below)
    }
}

fn copy_lines(from: &Page, to: &mut Page, lines: DirtyLines) {
    let mut left = lines;
    while left != 0 {
        let first = left.trailing_zeros() as usize;
        let after = first + (left >> first).trailing_ones() as usize;
        left = if after == 128 { 0 } else { left & (u128::MAX << after) };
        let bytes = first * LINE_SIZE..after * LINE_SIZE;
        to[bytes.clone()].copy_from_slice(&from[bytes]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_copied_and_nothing_else() {
        let from = [7; PAGE_SIZE];
        for lines in [0, 1, 1 << 127, 0b1011, u128::MAX, u128::MAX << 64] {
            let mut to = [0; PAGE_SIZE];
            copy_lines(&from, &mut to, lines);
            for (at, byte) in to.iter().enumerate() {
                let expected = if lines >> (at / LINE_SIZE) & 1 == 1 { 7 } else { 0 };
                assert_eq!(*byte, expected, "byte {at} of lines {lines:b}");
            }
        }
    }
}
