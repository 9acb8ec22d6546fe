//! How the structures (trees, sections, free space) see pages: two small traits, so that they run over transactions,
//! over plain memory in tests and under Miri alike.
//!
//! A page keeps its number for life: changing a page does not move it, so a change touches no parent. The snapshot
//! machinery below keeps the versions apart.

use crate::error::Result;
use crate::format::{PAGE_SIZE, PageNumber};
use crate::page::Page;
use crate::page::header::PageKind;

/// Read access to the pages of one snapshot.
pub(crate) trait Pages {
    /// The page's bytes. Its number, checksum and structure have been verified (once per open environment).
    ///
    /// Errors: damage, or a page outside the environment.
    fn page(&self, number: PageNumber) -> Result<&Page>;

    /// The value bytes of the overflow run that starts at `number`, without the header; contiguous.
    ///
    /// Errors: damage, or no run starts there.
    fn run(&self, number: PageNumber) -> Result<&[u8]>;

    /// Says that these pages, ascending, are about to be read. Only a hint.
    fn will_need(&self, _numbers: &[PageNumber]) {}
}

/// Write access to the pages of the one write transaction.
pub(crate) trait PagesMut: Pages {
    /// The page for changing. Copies it into scratch memory the first time in a transaction.
    fn page_mut(&mut self, number: PageNumber) -> Result<PageMut<'_>>;

    /// A new page of zeros behind its header, which is set.
    fn allocate(&mut self, kind: PageKind) -> Result<PageNumber>;

    /// Gives a page back. Older snapshots still see it.
    fn free(&mut self, number: PageNumber) -> Result<()>;

    /// Stores a value in an overflow run of its own. The bytes are taken from `value`, in pieces in order; their
    /// lengths add up to `length`.
    fn write_run(&mut self, length: u64, value: &mut dyn RunSource) -> Result<PageNumber>;

    /// Gives back the overflow run that starts at `number`.
    fn free_run(&mut self, number: PageNumber) -> Result<()>;

    /// Says that the new page `target` is about to get much of what `source` held when the transaction began, so that the
    /// journal may store it as a difference. Only a hint.
    fn derives(&mut self, _target: PageNumber, _source: PageNumber) {}
}

/// Where a run's bytes come from.
pub(crate) trait RunSource {
    /// Fills `buffer` with the next bytes.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<()>;
}

impl RunSource for &[u8] {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        let (now, rest) = self.split_at_checked(buffer.len()).ok_or_else(|| {
            crate::error::Error::Invalid("the value ended before its announced length".to_owned())
        })?;
        buffer.copy_from_slice(now);
        *self = rest;
        Ok(())
    }
}

/// Bytes of a page that one bit of [`DirtyLines`] stands for.
pub(crate) const LINE_SIZE: usize = PAGE_SIZE / 128;

/// Which lines of a page were changed in this transaction: bit `i` is bytes `i * LINE_SIZE ..`. The journal compares only
/// these lines with the page's previous version. Marking too much is harmless, too little loses data at recovery,
/// so debug builds compare whole pages at commit.
pub(crate) type DirtyLines = u128;

/// A move of bytes inside a page: `size` bytes from `from` to `to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Move {
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) size: u16,
}

/// The first moves inside a page in this transaction, so that the journal can repeat them instead of storing what they moved.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Moves {
    count: u8,
    moves: [Move; Moves::MAX],
}

impl Moves {
    /// Later moves are not recorded; their effect is stored as changed bytes.
    const MAX: usize = 8;
    /// Moves of fewer bytes are not worth recording.
    const SIZE_MIN: usize = 12;

    fn push(&mut self, from: usize, to: usize, size: usize) {
        if size >= Self::SIZE_MIN && (self.count as usize) < Self::MAX {
            self.moves[self.count as usize] = Move { from: from as u16, to: to as u16, size: size as u16 };
            self.count += 1;
        }
    }

    /// The recorded moves in order.
    pub(crate) fn as_slice(&self) -> &[Move] {
        &self.moves[..self.count as usize]
    }
}

/// A page of the current write transaction, changed only through methods that mark what they change.
pub(crate) struct PageMut<'a> {
    bytes: &'a mut Page,
    lines: &'a mut DirtyLines,
    moves: Option<&'a mut Moves>,
}

impl<'a> PageMut<'a> {
    /// Wraps a page and its record of changed lines.
    pub(crate) fn new(bytes: &'a mut Page, lines: &'a mut DirtyLines) -> PageMut<'a> {
        PageMut { bytes, lines, moves: None }
    }

    /// As [`PageMut::new`], recording moves too.
    pub(crate) fn with_moves(
        bytes: &'a mut Page,
        lines: &'a mut DirtyLines,
        moves: &'a mut Moves,
    ) -> PageMut<'a> {
        PageMut { bytes, lines, moves: Some(moves) }
    }

    /// The bytes for reading.
    #[inline]
    pub(crate) fn bytes(&self) -> &Page {
        self.bytes
    }

    /// Marks the bytes `at..at + size` as changed. `size` may be 0.
    #[inline]
    pub(crate) fn mark(&mut self, at: usize, size: usize) {
        debug_assert!(at + size <= PAGE_SIZE);
        if size != 0 {
            let (first, last) = (at / LINE_SIZE, (at + size - 1) / LINE_SIZE);
            *self.lines |= (u128::MAX >> (127 - (last - first))) << first;
        }
    }

    /// The bytes `at..at + size`, marked as changed.
    #[inline]
    pub(crate) fn slice_mut(&mut self, at: usize, size: usize) -> &mut [u8] {
        self.mark(at, size);
        &mut self.bytes[at..at + size]
    }

    /// Overwrites bytes from `at` on.
    #[inline]
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        self.slice_mut(at, bytes.len()).copy_from_slice(bytes);
    }

    /// Writes a little-endian `u16` at `at`.
    #[inline]
    pub(crate) fn write_u16(&mut self, at: usize, value: u16) {
        self.write(at, &value.to_le_bytes());
    }

    /// Writes a little-endian `u64` at `at`.
    #[inline]
    pub(crate) fn write_u64(&mut self, at: usize, value: u64) {
        self.write(at, &value.to_le_bytes());
    }

    /// Moves `size` bytes inside the page, from `from` to `to`; the ranges may overlap.
    #[inline]
    pub(crate) fn move_within(&mut self, from: usize, to: usize, size: usize) {
        self.mark(to, size);
        if let Some(moves) = &mut self.moves {
            moves.push(from, to, size);
        }
        self.bytes.copy_within(from..from + size, to);
    }

    /// The whole page, all of it marked as changed.
    #[inline]
    pub(crate) fn all_mut(&mut self) -> &mut Page {
        *self.lines = u128::MAX;
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_cover_what_was_written() {
        let mut bytes = [0; PAGE_SIZE];
        let mut lines = 0;
        let mut page = PageMut::new(&mut bytes, &mut lines);
        page.write(63, &[1, 2]);
        page.write(PAGE_SIZE - 1, &[9]);
        page.mark(200, 0);
        assert_eq!(lines, 1 << 127 | 0b11);
        PageMut::new(&mut bytes, &mut lines).mark(0, PAGE_SIZE);
        assert_eq!(lines, u128::MAX);
    }
}
