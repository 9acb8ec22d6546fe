//! The body of a journal record: what a transaction changed, page by page.
//!
//! Each entry starts with eight bytes: page number (48 bits), operation (8 bits), number of pieces (8 bits).
//!
//! | operation | what follows | meaning |
//! |---|---|---|
//! | 1 `Patch` | pieces: offset `u16`, length `u16`, bytes | these bytes of the page changed |
//! | 2 `New` | pieces, as for `Patch` | the page is zero but for these bytes, whatever was there before |
//! | 3 `Run` | length `u32`, bytes | an overflow run, header and value |
//! | 4 `Free` | nothing | the page is free now |
//! | 5 `Direct` | pages `u32` | an overflow run whose bytes were written to the data file and synced before this record |
//! | 6 `Moved` | number of moves `u8`; moves: from, to, size, each `u16`; pieces | first bytes were moved inside the page, then these changed |
//! | 7 `Derived` | source page `u64`, length `u32`, an LZ4 block | the page is what the block decompresses to with the source page, as it is before this record, as dictionary |
//!
//! The pieces of 1 and 2 hold the new bytes at absolute places, so that applying an entry again, or to a page of which any part is
//! newer already, gives the same result: recovery may start from a data file into which a flush was under way. 6 and 7 are much
//! shorter for what trees do most (shifting slots, splitting and tidying up pages), but need the exact page before. They are used
//! only where recovery builds that page from the journal alone: where the page was made (`New`, `Derived`) since the last
//! *boundary*, a state that a flush was told to write (see `flush`).
//!
//! In a record, `Derived` entries of new pages come first, so that their sources are still as they were.

use crate::format::{PAGE_SIZE, PageNumber, read_u16, read_u32, read_u64};
use crate::page::Page;
use crate::pages::{DirtyLines, LINE_SIZE, Move};

use super::aligned::AlignedBuffer;

const PATCH: u8 = 1;
const NEW: u8 = 2;
const RUN: u8 = 3;
const FREE: u8 = 4;
const DIRECT: u8 = 5;
const MOVED: u8 = 6;
const DERIVED: u8 = 7;

/// Unchanged bytes between two pieces are written too when they are no more than this: a piece costs 4 bytes itself.
const GAP_MAX: usize = 4;

fn entry_head(page: PageNumber, operation: u8, pieces: usize) -> [u8; 8] {
    (page.0 | u64::from(operation) << 48 | (pieces as u64) << 56).to_le_bytes()
}

/// Adds what changed in a page from `old` to `new`; `None` stands for a page of zeros that is new. Looks only at `lines`. `moves` are
/// repeated first when `old` is exactly what recovery will have; else there must be none.
pub(crate) fn add_page(
    out: &mut AlignedBuffer,
    number: PageNumber,
    old: Option<&Page>,
    new: &Page,
    lines: DirtyLines,
    moves: &[Move],
) {
    const ZEROS: Page = [0; PAGE_SIZE];
    let head = out.len();
    out.extend(&[0; 8]);
    let mut moved;
    let old = match old {
        Some(old) if !moves.is_empty() => {
            moved = *old;
            out.extend(&[moves.len() as u8]);
            for &Move { from, to, size } in moves {
                for number in [from, to, size] {
                    out.extend(&number.to_le_bytes());
                }
                moved.copy_within(from as usize..from as usize + size as usize, to as usize);
            }
            Some(&moved)
        }
        other => other,
    };
    let pieces_at = out.len();
    let mut pieces = 0;
    let mut open: Option<(usize, usize)> = None;
    let base = old.unwrap_or(&ZEROS);
    let mut left = lines;
    while left != 0 {
        let first = left.trailing_zeros() as usize;
        let after = first + (left >> first).trailing_ones() as usize;
        left = if after == 128 { 0 } else { left & (u128::MAX << after) };
        let mut at = first * LINE_SIZE;
        let end = after * LINE_SIZE;
        while let Some((from, to)) = next_difference(base, new, at, end) {
            at = to;
            open = Some(match open {
                Some((start, stop)) if from - stop <= GAP_MAX => (start, to),
                Some(piece) => {
                    add_piece(out, new, piece);
                    pieces += 1;
                    (from, to)
                }
                None => (from, to),
            });
        }
    }
    if let Some(piece) = open {
        add_piece(out, new, piece);
        pieces += 1;
    }
    // A piece ends at a difference and the next begins more than GAP_MAX later, but there can be more than 255 of them.
    if pieces > 255 {
        out.set_len(pieces_at);
        add_piece(out, new, (0, PAGE_SIZE));
        pieces = 1;
    }
    let operation = match old {
        None => NEW,
        Some(_) if pieces_at > head + 8 => MOVED,
        Some(_) => PATCH,
    };
    if operation == PATCH && pieces == 0 {
        out.set_len(head); // marked, but the same as before
    } else {
        out.bytes_mut()[head..head + 8].copy_from_slice(&entry_head(number, operation, pieces));
    }
}

/// Adds a page as its difference from another one, which recovery has exactly; says whether that took at most `size_max` bytes, else
/// nothing was added.
pub(crate) fn add_derived(
    out: &mut AlignedBuffer,
    number: PageNumber,
    new: &Page,
    source: PageNumber,
    dictionary: &Page,
    size_max: usize,
) -> bool {
    let head = out.len();
    out.extend(&entry_head(number, DERIVED, 0));
    out.extend(&source.0.to_le_bytes());
    let at = out.len();
    out.set_len(at + 4 + lz4_flex::block::get_maximum_output_size(PAGE_SIZE));
    let block = &mut out.bytes_mut()[at + 4..];
    match lz4_flex::block::compress_into_with_dict(new, block, dictionary) {
        Ok(length) if length + 20 <= size_max => {
            out.bytes_mut()[at..at + 4].copy_from_slice(&(length as u32).to_le_bytes());
            out.set_len(at + 4 + length);
            true
        }
        _ => {
            out.set_len(head);
            false
        }
    }
}

fn add_piece(out: &mut AlignedBuffer, new: &Page, (from, to): (usize, usize)) {
    let at = out.len();
    out.set_len(at + 4 + to - from);
    let bytes = &mut out.bytes_mut()[at..];
    bytes[..2].copy_from_slice(&(from as u16).to_le_bytes());
    bytes[2..4].copy_from_slice(&((to - from) as u16).to_le_bytes());
    bytes[4..].copy_from_slice(&new[from..to]);
}

/// The next range of differing bytes in `at..end`: it ends where eight bytes in a row are equal, or at the end. Both are
/// multiples of eight at the first call.
fn next_difference(old: &Page, new: &Page, at: usize, end: usize) -> Option<(usize, usize)> {
    let difference = |at: usize| read_u64(old, at) ^ read_u64(new, at);
    let mut word = at.next_multiple_of(8);
    while word < end && difference(word) == 0 {
        word += 8;
    }
    if word >= end {
        return None;
    }
    let from = word + difference(word).trailing_zeros() as usize / 8;
    let mut last = word;
    while last + 8 < end && difference(last + 8) != 0 {
        last += 8;
    }
    Some((from, last + 8 - difference(last).leading_zeros() as usize / 8))
}

/// Adds a whole overflow run, header included.
pub(crate) fn add_run(out: &mut AlignedBuffer, number: PageNumber, bytes: &[u8]) {
    out.extend(&entry_head(number, RUN, 0));
    out.extend(&(bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

/// Adds that a page was freed.
pub(crate) fn add_free(out: &mut AlignedBuffer, number: PageNumber) {
    out.extend(&entry_head(number, FREE, 0));
}

/// Adds that a run of this many pages lies in the data file.
pub(crate) fn add_direct(out: &mut AlignedBuffer, number: PageNumber, pages: u64) {
    out.extend(&entry_head(number, DIRECT, 0));
    out.extend(&(pages as u32).to_le_bytes());
}

/// The page that the entry at `at` is of; the entry was read before.
pub(crate) fn entry_page(body: &[u8], at: usize) -> PageNumber {
    PageNumber(read_u64(body, at) & PAGE_MASK)
}

/// The page number in an entry's head.
const PAGE_MASK: u64 = 0xFFFF_FFFF_FFFF;

/// One entry, read back.
#[derive(Debug, PartialEq)]
pub(crate) enum Entry<'a> {
    /// Bytes of a page changed; when `new`, everything else in it is zero.
    Page { number: PageNumber, new: bool, pieces: Pieces<'a> },
    /// Bytes of a page were moved, then some changed; the page is exactly what it was before.
    Moved { number: PageNumber, moves: MovesRead<'a>, pieces: Pieces<'a> },
    /// A page made from another one.
    Derived { number: PageNumber, source: PageNumber, block: &'a [u8] },
    /// A whole run.
    Run { number: PageNumber, bytes: &'a [u8] },
    /// The page is free.
    Free { number: PageNumber },
    /// A run in the data file.
    Direct { number: PageNumber, pages: u64 },
}

/// The changed pieces of a page; every one lies inside the page (checked when the entry was read).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pieces<'a>(&'a [u8]);

impl Pieces<'_> {
    /// Writes the pieces into the page.
    pub(crate) fn apply(&self, page: &mut Page) {
        let mut rest = self.0;
        while rest.len() >= 4 {
            let (at, length) = (read_u16(rest, 0) as usize, read_u16(rest, 2) as usize);
            page[at..at + length].copy_from_slice(&rest[4..4 + length]);
            rest = &rest[4 + length..];
        }
    }
}

/// Moves read back; all lie inside the page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MovesRead<'a>(&'a [u8]);

impl MovesRead<'_> {
    /// Repeats the moves.
    pub(crate) fn apply(&self, page: &mut Page) {
        for entry in self.0.chunks_exact(6) {
            let [from, to, size] = [0, 2, 4].map(|at| read_u16(entry, at) as usize);
            page.copy_within(from..from + size, to);
        }
    }
}

/// Makes a derived page into `page`. An error says why it cannot be.
pub(crate) fn derive(block: &[u8], dictionary: &Page, page: &mut Page) -> Result<(), String> {
    match decompress(block, dictionary, page) {
        Some(PAGE_SIZE) => Ok(()),
        Some(length) => Err(format!("a derived page has {length} bytes")),
        None => Err("a derived page cannot be made: its block is no LZ4".to_owned()),
    }
}

/// Decompresses an LZ4 block and returns how many bytes came out; `None` when it is none, or more than a page comes out. Our own because
/// half of a page that was just split repeats one byte, which `lz4_flex` copies byte by byte: that was a seventh of recovery.
fn decompress(block: &[u8], dictionary: &Page, page: &mut Page) -> Option<usize> {
    let (mut from, mut to) = (0, 0);
    loop {
        let token = *block.get(from)? as usize;
        from += 1;
        let literals = length(block, &mut from, token >> 4)?;
        page.get_mut(to..to + literals)?.copy_from_slice(block.get(from..from + literals)?);
        (from, to) = (from + literals, to + literals);
        if from == block.len() {
            return Some(to);
        }
        let offset = read_u16(block.get(from..from + 2)?, 0) as usize;
        from += 2;
        let end = to + length(block, &mut from, token & 15)? + MATCH_MIN;
        if offset == 0 || end > PAGE_SIZE {
            return None;
        }
        if offset > to {
            let at = PAGE_SIZE.checked_sub(offset - to)?;
            let size = (end - to).min(offset - to);
            page[to..to + size].copy_from_slice(&dictionary[at..at + size]);
            to += size;
        }
        // What is shorter than what it becomes is repeated: twice as many bytes can be copied each time.
        let start = to.saturating_sub(offset);
        while to < end {
            let size = (end - to).min(to - start);
            page.copy_within(start..start + size, to);
            to += size;
        }
    }
}

/// LZ4 repeats at least so many bytes.
const MATCH_MIN: usize = 4;

/// A length of LZ4: four bits of the token, and bytes that follow when they are all set.
fn length(block: &[u8], from: &mut usize, bits: usize) -> Option<usize> {
    let mut length = bits;
    let mut more = bits == 15;
    while more {
        let byte = *block.get(*from)?;
        *from += 1;
        length += byte as usize;
        more = byte == u8::MAX;
    }
    Some(length)
}

/// Reads a record's body entry by entry. An error says what is wrong, with the offset in the body.
pub(crate) struct Entries<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Entries<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Entries<'a> {
        Entries { body, at: 0 }
    }

    /// Goes on at an offset that [`Entries::offset`] told.
    pub(crate) fn at(body: &'a [u8], at: usize) -> Entries<'a> {
        Entries { body, at }
    }

    /// Where the next entry starts in the body.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let bytes = self.at.checked_add(count).and_then(|end| self.body.get(self.at..end));
        let bytes = bytes.ok_or_else(|| format!("an entry at {} runs over the end", self.at))?;
        self.at += count;
        Ok(bytes)
    }

    fn pieces(&mut self, number: PageNumber, count: u64) -> Result<Pieces<'a>, String> {
        let from = self.at;
        for _ in 0..count {
            let piece = self.take(4)?;
            let (at, length) = (read_u16(piece, 0) as usize, read_u16(piece, 2) as usize);
            if at + length > PAGE_SIZE {
                return Err(format!("a piece of page {number} at {} ends beyond the page", self.at));
            }
            self.take(length)?;
        }
        Ok(Pieces(&self.body[from..self.at]))
    }

    fn entry(&mut self) -> Result<Entry<'a>, String> {
        let start = self.at;
        let head = read_u64(self.take(8)?, 0);
        let number = PageNumber(head & PAGE_MASK);
        Ok(match (head >> 48) as u8 {
            operation @ (PATCH | NEW) => {
                Entry::Page { number, new: operation == NEW, pieces: self.pieces(number, head >> 56)? }
            }
            MOVED => {
                let count = self.take(1)?[0] as usize;
                let moves = self.take(count * 6)?;
                for entry in moves.chunks_exact(6) {
                    let [from, to, size] = [0, 2, 4].map(|at| read_u16(entry, at) as usize);
                    if from + size > PAGE_SIZE || to + size > PAGE_SIZE {
                        return Err(format!("a move in page {number} at {} ends beyond the page", self.at));
                    }
                }
                Entry::Moved { number, moves: MovesRead(moves), pieces: self.pieces(number, head >> 56)? }
            }
            DERIVED => {
                let source = PageNumber(read_u64(self.take(8)?, 0));
                let length = read_u32(self.take(4)?, 0) as usize;
                Entry::Derived { number, source, block: self.take(length)? }
            }
            RUN => {
                let length = read_u32(self.take(4)?, 0) as usize;
                Entry::Run { number, bytes: self.take(length)? }
            }
            FREE => Entry::Free { number },
            DIRECT => Entry::Direct { number, pages: u64::from(read_u32(self.take(4)?, 0)) },
            other => return Err(format!("an entry at {start} has the unknown operation {other}")),
        })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.body.len() {
            return None;
        }
        let entry = self.entry();
        if entry.is_err() {
            self.at = self.body.len();
        }
        Some(entry)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn apply(body: &[u8], page: &mut Page) {
        for entry in Entries::new(body) {
            match entry.unwrap() {
                Entry::Page { new, pieces, .. } => {
                    if new {
                        page.fill(0);
                    }
                    pieces.apply(page);
                }
                Entry::Moved { moves, pieces, .. } => {
                    moves.apply(page);
                    pieces.apply(page);
                }
                Entry::Derived { block, .. } => {
                    let dictionary = *page;
                    derive(block, &dictionary, page).unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]
        #[test]
        fn patches_turn_the_old_page_into_the_new(
            seed in any::<u8>(),
            edits in proptest::collection::vec((0..PAGE_SIZE, 1..300_usize, any::<u8>()), 0..40),
            is_new in any::<bool>(),
        ) {
            let mut old = [0; PAGE_SIZE];
            if !is_new {
                old.iter_mut().enumerate().for_each(|(i, b)| *b = seed.wrapping_mul(i as u8));
            }
            let (mut new, mut lines) = (old, 0);
            {
                let mut page = crate::pages::PageMut::new(&mut new, &mut lines);
                for &(at, length, byte) in &edits {
                    page.slice_mut(at, length.min(PAGE_SIZE - at)).fill(byte);
                }
            }
            let mut out = AlignedBuffer::default();
            add_page(&mut out, PageNumber(7), (!is_new).then_some(&old), &new, lines, &[]);
            // The base may be torn: any mixture of old and new, cut at any sector.
            let mut torn = old;
            torn[..512 * (seed as usize % 16)].copy_from_slice(&new[..512 * (seed as usize % 16)]);
            apply(out.bytes(), &mut torn);
            prop_assert_eq!(&torn[..], &new[..]);
            apply(out.bytes(), &mut torn);
            prop_assert_eq!(&torn[..], &new[..]);
        }

        #[test]
        fn moves_and_pieces_turn_the_old_page_into_the_new(
            seed in any::<u64>(),
            edits in proptest::collection::vec((any::<bool>(), 0..PAGE_SIZE, 0..PAGE_SIZE, 1..400_usize), 0..20),
        ) {
            let mut old = [0; PAGE_SIZE];
            old.iter_mut().enumerate().for_each(|(i, b)| *b = (seed.rotate_left(i as u32) >> (i / 64 % 8)) as u8);
            let (mut new, mut lines, mut moves) = (old, 0, crate::pages::Moves::default());
            {
                let mut page = crate::pages::PageMut::with_moves(&mut new, &mut lines, &mut moves);
                for &(is_move, from, to, length) in &edits {
                    let length = length.min(PAGE_SIZE - from).min(PAGE_SIZE - to);
                    if is_move {
                        page.move_within(from, to, length);
                    } else {
                        page.slice_mut(to, length).fill(from as u8);
                    }
                }
            }
            let mut out = AlignedBuffer::default();
            add_page(&mut out, PageNumber(7), Some(&old), &new, lines, moves.as_slice());
            let mut page = old;
            apply(out.bytes(), &mut page);
            prop_assert_eq!(&page[..], &new[..]);
            let mut out = AlignedBuffer::default();
            if add_derived(&mut out, PageNumber(7), &new, PageNumber(7), &old, PAGE_SIZE) {
                let mut page = old;
                apply(out.bytes(), &mut page);
                prop_assert_eq!(&page[..], &new[..]);
            }
        }

        #[test]
        fn blocks_decompress_as_by_any_other(
            seed in any::<u64>(),
            spans in proptest::collection::vec((0..4_u8, 0..PAGE_SIZE, 0..PAGE_SIZE, 1..1500_usize), 0..20),
            damage in proptest::option::of((any::<usize>(), any::<u8>())),
        ) {
            let mut dictionary = [0; PAGE_SIZE];
            dictionary.iter_mut().enumerate().for_each(|(i, b)| *b = (seed.rotate_left(i as u32) >> (i / 64 % 8)) as u8);
            let mut new = [7; PAGE_SIZE];
            for &(kind, from, to, length) in &spans {
                let length = length.min(PAGE_SIZE - from).min(PAGE_SIZE - to);
                match kind {
                    0 => new[to..to + length].copy_from_slice(&dictionary[from..from + length]),
                    1 => new.copy_within(from..from + length, to),
                    2 => new[to..to + length].fill(from as u8),
                    _ => new[to..to + length].iter_mut().enumerate().for_each(|(i, b)| *b = (i % (1 + from % 9)) as u8),
                }
            }
            let mut block = lz4_flex::block::compress_with_dict(&new, &dictionary);
            if let Some((at, byte)) = damage {
                let at = at % block.len();
                block[at] = byte;
            }
            let (mut ours, mut theirs) = ([0; PAGE_SIZE], [0; PAGE_SIZE]);
            let expected = lz4_flex::block::decompress_into_with_dict(&block, &mut theirs, &dictionary);
            let got = decompress(&block, &dictionary, &mut ours);
            if damage.is_none() {
                prop_assert_eq!(got, Some(PAGE_SIZE));
                prop_assert_eq!(&ours[..], &new[..]);
            }
            if let (Some(got), Ok(expected)) = (got, expected) {
                prop_assert_eq!(got, expected);
                prop_assert_eq!(&ours[..got], &theirs[..got]);
            }
        }

        #[test]
        fn any_bytes_are_read_without_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            for entry in Entries::new(&body).flatten() {
                match entry {
                    Entry::Page { pieces, .. } => pieces.apply(&mut [0; PAGE_SIZE]),
                    Entry::Moved { moves, pieces, .. } => {
                        moves.apply(&mut [0; PAGE_SIZE]);
                        pieces.apply(&mut [0; PAGE_SIZE]);
                    }
                    Entry::Derived { block, .. } => {
                        let _ = derive(block, &[0; PAGE_SIZE], &mut [0; PAGE_SIZE]);
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn every_other_byte_changed_is_one_piece_or_falls_back_to_the_whole_page() {
        let (old, mut new) = ([0; PAGE_SIZE], [0; PAGE_SIZE]);
        new.iter_mut().step_by(16).for_each(|b| *b = 1);
        let mut out = AlignedBuffer::default();
        add_page(&mut out, PageNumber(7), Some(&old), &new, u128::MAX, &[]);
        let mut page = old;
        apply(out.bytes(), &mut page);
        assert_eq!(page, new);
    }

    #[test]
    fn other_entries_round_trip() {
        let mut out = AlignedBuffer::default();
        add_run(&mut out, PageNumber(9), &[1, 2, 3]);
        add_free(&mut out, PageNumber(10));
        add_direct(&mut out, PageNumber(11), 130);
        let entries: Vec<_> = Entries::new(out.bytes()).map(Result::unwrap).collect();
        assert_eq!(
            entries,
            [
                Entry::Run { number: PageNumber(9), bytes: &[1, 2, 3] },
                Entry::Free { number: PageNumber(10) },
                Entry::Direct { number: PageNumber(11), pages: 130 }
            ]
        );
    }
}
