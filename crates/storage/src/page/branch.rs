//! A branch of a variable-length-key tree: children in order, with a separator between each two.
//!
//! ```text
//!  0        32                lower           upper                  8192-p    8192
//!  ┌────────┬───────┬───────┬─┬───────────────┬──────┬───────┬───────┬─────────┐
//!  │ header │ slot 0│ slot 1│…│ free          │ cell │ cell  │ …     │ prefix  │
//!  └────────┴───────┴───────┴─┴───────────────┴──────┴───────┴───────┴─────────┘
//! ```
//! | offset | size | name | meaning |
//! |---|---|---|---|
//! | 18 | 2 | count | children, at least one |
//! | 20 | 2 | lower | 32 + 12 × count |
//! | 22 | 2 | upper | where the lowest cell begins |
//! | 24 | 2 | prefix size | bytes that all separators of the page begin with (`p`); they lie at the page's end |
//! | 26 | 2 | fragmented | bytes between upper and the prefix that belong to no cell |
//! | 28 | 4 | | zero |
//! | 32 + 12i | 4 | head | of separator `i`: its first four bytes behind the prefix (see [`super::head`]) |
//! | 36 + 12i | 2 | cell | up to 4: the separator's size behind the prefix, which the head holds whole; else the offset of its cell |
//! | 38 + 12i | 6 | child | the page of child `i`, never 0 |
//! | 8192 − p | p | prefix | |
//!
//! A cell: its separator's size behind the prefix (more than 4), as [`head::write_number`] writes it; then the bytes behind
//! the head.
//!
//! Separator `i` stands before child `i`: all keys below it are at least that separator and less than separator `i + 1`.
//! Separator 0 does not exist: its slot has head 0 and cell 0, child 0 takes all smaller keys. Separators are as short as
//! they can be and still separate, so most need no cell; they ascend strictly by (head, rest, size).

use std::cmp::Ordering;

use super::Page;
use super::head::{self, HEAD_SIZE, TakenBytes, number_size, read_number, rest_size};
use super::header::{BY_KIND_AT, COUNT_AT, KIND_AT, LOWER_AT, UPPER_AT};
use crate::format::{KEY_SIZE_MAX, PAGE_BODY_SIZE, PAGE_HEADER_SIZE, PAGE_SIZE, PageNumber, read_u16};
use crate::pages::PageMut;

const PREFIX_SIZE_AT: usize = BY_KIND_AT;
const FRAGMENTED_AT: usize = PREFIX_SIZE_AT + 2;
const SLOTS_AT: usize = PAGE_HEADER_SIZE;
const SLOT_SIZE: usize = 12;
const SLOT_CELL_AT: usize = 4;
const SLOT_CHILD_AT: usize = 6;

type Slot = [u8; SLOT_SIZE];

#[inline(always)]
fn slot_cell(slot: &Slot) -> usize {
    u16::from_le_bytes([slot[4], slot[5]]) as usize
}

#[inline(always)]
fn slot_child(slot: &Slot) -> PageNumber {
    PageNumber(u64::from_le_bytes([slot[6], slot[7], slot[8], slot[9], slot[10], slot[11], 0, 0]))
}

fn slot_bytes(head: u32, cell: usize, child: PageNumber) -> Slot {
    debug_assert!(child.is_some() && child.0 < 1 << 48);
    let mut slot = [0; SLOT_SIZE];
    slot[..HEAD_SIZE].copy_from_slice(&head.to_le_bytes());
    slot[SLOT_CELL_AT..SLOT_CHILD_AT].copy_from_slice(&(cell as u16).to_le_bytes());
    slot[SLOT_CHILD_AT..].copy_from_slice(&child.0.to_le_bytes()[..6]);
    slot
}

/// Bytes of the cell of a separator with `size` bytes behind the prefix; 0 when it needs none.
#[inline(always)]
fn cell_size(size: usize) -> usize {
    if size <= HEAD_SIZE { 0 } else { number_size(size) + rest_size(size) }
}

/// One child and the separator before it, apart from its page's arithmetic: what splits, merges and rebuilds shuffle.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'p> {
    prefix: &'p [u8],
    head: u32,
    behind_size: usize,
    rest: &'p [u8],
    pub(crate) child: PageNumber,
}

impl<'p> Entry<'p> {
    /// A child that is in no page yet.
    pub(crate) fn new(separator: &'p [u8], child: PageNumber) -> Entry<'p> {
        Entry {
            prefix: &[],
            head: head::head(separator),
            behind_size: separator.len(),
            rest: head::rest(separator),
            child,
        }
    }

    /// Bytes of the whole separator.
    pub(crate) fn separator_size(&self) -> usize {
        self.prefix.len() + self.behind_size
    }

    /// Replaces `separator` by the entry's whole separator.
    pub(crate) fn copy_separator(&self, separator: &mut Vec<u8>) {
        separator.clear();
        separator.extend_from_slice(self.prefix);
        head::extend_key(separator, self.head, self.behind_size, self.rest);
    }

    /// Bytes the entry takes, slot and cell, in a page with a prefix of `prefix_size`, unless it is the first.
    pub(crate) fn size(&self, prefix_size: usize) -> usize {
        SLOT_SIZE + cell_size(self.separator_size() - prefix_size)
    }
}

/// Bytes the first entry of a branch takes: its separator does not count.
pub(crate) const FIRST_ENTRY_SIZE: usize = SLOT_SIZE;

/// A branch for reading. The page has been validated, or written by this module.
#[derive(Clone, Copy)]
pub(crate) struct Branch<'p> {
    page: &'p Page,
}

impl<'p> Branch<'p> {
    #[inline(always)]
    pub(crate) fn new(page: &'p Page) -> Branch<'p> {
        Branch { page }
    }

    /// How many children there are.
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        read_u16(self.page, COUNT_AT) as usize
    }

    /// What all separators begin with.
    #[inline(always)]
    pub(crate) fn prefix(self) -> &'p [u8] {
        &self.page[PAGE_SIZE - read_u16(self.page, PREFIX_SIZE_AT) as usize..]
    }

    #[inline(always)]
    fn slots(self) -> &'p [Slot] {
        self.page[SLOTS_AT..SLOTS_AT + SLOT_SIZE * self.count()].as_chunks().0
    }

    /// Child `i`.
    #[inline(always)]
    pub(crate) fn child(self, i: usize) -> PageNumber {
        slot_child(&self.slots()[i])
    }

    /// The size behind the prefix and the rest of separator `i`.
    #[inline(always)]
    fn separator(self, i: usize) -> (usize, &'p [u8]) {
        let at = slot_cell(&self.slots()[i]);
        if at <= HEAD_SIZE {
            return (at, &[]);
        }
        let (size, rest_at) = read_number(self.page, at);
        (size, &self.page[rest_at..rest_at + rest_size(size)])
    }

    /// Entry `i` for moving elsewhere; the first one's separator is empty.
    pub(crate) fn entry(self, i: usize) -> Entry<'p> {
        let (behind_size, rest) = self.separator(i);
        let slot = &self.slots()[i];
        let prefix = if i == 0 { &[] } else { self.prefix() };
        Entry { prefix, head: head::of_slot(slot), behind_size, rest, child: slot_child(slot) }
    }

    /// The index of the child whose keys the key is among.
    #[inline]
    pub(crate) fn search(self, key: &[u8]) -> usize {
        let Some(behind) = key.strip_prefix(self.prefix()) else {
            return if key < self.prefix() { 0 } else { self.count() - 1 };
        };
        let separators = &self.slots()[1..];
        let wanted = head::head(behind);
        // `low` separators are known to be at most the key.
        let mut low = head::first_not_less(separators, wanted);
        if low == separators.len() || head::of_slot(&separators[low]) != wanted {
            return low;
        }
        let mut high = low + separators[low..].partition_point(|slot| head::of_slot(slot) == wanted);
        while low < high {
            let middle = low.midpoint(high);
            let (size, rest) = self.separator(1 + middle);
            match head::compare_behind_head(rest, size, head::rest(behind), behind.len()) {
                Ordering::Greater => high = middle,
                Ordering::Less | Ordering::Equal => low = middle + 1,
            }
        }
        low
    }

    /// Orders separator `i` (not 0) against another.
    pub(crate) fn compare(self, i: usize, separator: &[u8]) -> Ordering {
        let Some(behind) = separator.strip_prefix(self.prefix()) else { return self.prefix().cmp(separator) };
        head::of_slot(&self.slots()[i]).cmp(&head::head(behind)).then_with(|| {
            let (size, rest) = self.separator(i);
            head::compare_behind_head(rest, size, head::rest(behind), behind.len())
        })
    }

    /// Whether a separator lies behind separator `low` and before separator `high`, where there are such: always so
    /// in a sound tree.
    pub(crate) fn separates(self, low: usize, high: usize, separator: &[u8]) -> bool {
        (low == 0 || self.compare(low, separator) == Ordering::Less)
            && (high >= self.count() || self.compare(high, separator) == Ordering::Greater)
    }

    /// Free bytes between slots and cells.
    #[inline(always)]
    fn room(self) -> usize {
        (read_u16(self.page, UPPER_AT) - read_u16(self.page, LOWER_AT)) as usize
    }

    /// Bytes of the body that hold something.
    pub(crate) fn used(self) -> usize {
        PAGE_BODY_SIZE - self.room() - read_u16(self.page, FRAGMENTED_AT) as usize
    }

    /// Whether a child with this separator can be inserted without shuffling the page.
    pub(crate) fn takes(self, separator: &[u8]) -> bool {
        match separator.strip_prefix(self.prefix()) {
            Some(behind) => self.room() >= SLOT_SIZE + cell_size(behind.len()),
            None => false,
        }
    }
}

fn write_counts(page: &mut PageMut<'_>, count: usize, upper: usize) {
    let counts = page.slice_mut(COUNT_AT, 6);
    counts[..2].copy_from_slice(&(count as u16).to_le_bytes());
    counts[2..4].copy_from_slice(&((SLOTS_AT + SLOT_SIZE * count) as u16).to_le_bytes());
    counts[4..].copy_from_slice(&(upper as u16).to_le_bytes());
}

fn write_cell(cell: &mut [u8], size: usize, rest: &[u8]) {
    let rest_at = head::write_number(cell, size);
    cell[rest_at..].copy_from_slice(rest);
}

/// Inserts a child at `index` (not 0) with the separator before it. The page must take it, see [`Branch::takes`].
pub(crate) fn insert(page: &mut PageMut<'_>, index: usize, separator: &[u8], child: PageNumber) {
    let branch = Branch::new(page.bytes());
    debug_assert!(index != 0 && branch.takes(separator));
    let (count, behind) = (branch.count(), &separator[branch.prefix().len()..]);
    let mut upper = read_u16(page.bytes(), UPPER_AT) as usize;
    let mut cell = behind.len();
    let size = cell_size(behind.len());
    if size != 0 {
        upper -= size;
        write_cell(page.slice_mut(upper, size), behind.len(), head::rest(behind));
        cell = upper;
    }
    let slot_at = SLOTS_AT + SLOT_SIZE * index;
    if index != count {
        page.move_within(slot_at, slot_at + SLOT_SIZE, SLOT_SIZE * (count - index));
    }
    page.write(slot_at, &slot_bytes(head::head(behind), cell, child));
    write_counts(page, count + 1, upper);
}

/// Puts another page in the place of child `index`.
pub(crate) fn set_child(page: &mut PageMut<'_>, index: usize, child: PageNumber) {
    page.write(SLOTS_AT + SLOT_SIZE * index + SLOT_CHILD_AT, &child.0.to_le_bytes()[..6]);
}

/// Removes the children `from..to` and the separators before them; when the first child goes, the separator before the
/// one that becomes the first goes too.
pub(crate) fn remove(page: &mut PageMut<'_>, from: usize, to: usize) {
    let branch = Branch::new(page.bytes());
    let count = branch.count();
    let mut fragmented = read_u16(page.bytes(), FRAGMENTED_AT) as usize;
    let upper = read_u16(page.bytes(), UPPER_AT) as usize;
    let separators = if from == 0 { 1..(to + 1).min(count) } else { from..to };
    for i in separators {
        fragmented += cell_size(branch.separator(i).0);
    }
    if to != count {
        page.move_within(SLOTS_AT + SLOT_SIZE * to, SLOTS_AT + SLOT_SIZE * from, SLOT_SIZE * (count - to));
    }
    if from == 0 && to != count {
        page.write(SLOTS_AT, &[0; SLOT_CHILD_AT]);
    }
    write_counts(page, count - (to - from), upper);
    page.write_u16(FRAGMENTED_AT, fragmented as u16);
}

/// Makes the page a branch with these entries, which fit, and this prefix, which all their separators but the first one's
/// begin with. Leaves what is free as it was.
pub(crate) fn build(page: &mut PageMut<'_>, prefix: &[u8], entries: &[Entry<'_>]) {
    let bytes = page.all_mut();
    let prefix_at = PAGE_SIZE - prefix.len();
    bytes[prefix_at..].copy_from_slice(prefix);
    let mut upper = prefix_at;
    let mut separator = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        let (head, behind_size, rest);
        if i == 0 {
            (head, behind_size, rest) = (0, 0, &[][..]);
        } else if entry.prefix.len() == prefix.len() {
            (head, behind_size, rest) = (entry.head, entry.behind_size, entry.rest);
        } else {
            entry.copy_separator(&mut separator);
            let behind = &separator[prefix.len()..];
            (head, behind_size, rest) = (head::head(behind), behind.len(), head::rest(behind));
        }
        let size = cell_size(behind_size);
        let mut cell = behind_size;
        if size != 0 {
            upper -= size;
            write_cell(&mut bytes[upper..upper + size], behind_size, rest);
            cell = upper;
        }
        let slot_at = SLOTS_AT + SLOT_SIZE * i;
        bytes[slot_at..slot_at + SLOT_SIZE].copy_from_slice(&slot_bytes(head, cell, entry.child));
    }
    write_counts(page, entries.len(), upper);
    page.write_u16(PREFIX_SIZE_AT, prefix.len() as u16);
    page.write_u16(FRAGMENTED_AT, 0);
    page.write(FRAGMENTED_AT + 2, &[0; 4]);
}

/// Checks a page that says it is a branch; the reason when it is none. After it, no reader or writer of this module
/// panics on the page.
pub(crate) fn validate(page: &Page) -> Result<(), String> {
    debug_assert_eq!(page[KIND_AT], super::header::PageKind::Branch as u8);
    let [count, lower, upper, prefix_size, fragmented] =
        [COUNT_AT, LOWER_AT, UPPER_AT, PREFIX_SIZE_AT, FRAGMENTED_AT].map(|at| read_u16(page, at) as usize);
    if count == 0 {
        return Err("a branch without children".to_owned());
    }
    if prefix_size > KEY_SIZE_MAX {
        return Err(format!("a prefix of {prefix_size} bytes"));
    }
    let cells_end = PAGE_SIZE - prefix_size;
    if lower != SLOTS_AT + SLOT_SIZE * count || lower > upper || upper > cells_end {
        return Err(format!("{count} slots end at {lower}, cells are from {upper} to {cells_end}"));
    }
    let branch = Branch::new(page);
    if branch.slots()[0][..SLOT_CHILD_AT] != [0; SLOT_CHILD_AT] {
        return Err("a separator before the first child".to_owned());
    }
    let mut taken = TakenBytes::new();
    let mut cells_size = 0;
    let mut before: Option<(u32, usize, &[u8])> = None;
    for (i, slot) in branch.slots().iter().enumerate() {
        if !slot_child(slot).is_some() {
            return Err(format!("child {i} is no page"));
        }
        if i == 0 {
            continue;
        }
        let (head, at) = (head::of_slot(slot), slot_cell(slot));
        if at <= HEAD_SIZE {
            if at < HEAD_SIZE && head << (8 * at) != 0 || prefix_size + at == 0 {
                return Err(format!("separator {i} is longer than it says, or empty"));
            }
        } else {
            let Some(end) = cell_end(page, at, upper, cells_end, prefix_size) else {
                return Err(format!("separator {i}'s cell at {at} is no cell"));
            };
            if !taken.take(at, end) {
                return Err(format!("separator {i}'s cell at {at} lies over another"));
            }
            cells_size += end - at;
        }
        let (size, rest) = branch.separator(i);
        if let Some((head_before, size_before, rest_before)) = before {
            let order = head_before
                .cmp(&head)
                .then_with(|| head::compare_behind_head(rest_before, size_before, rest, size));
            if order != Ordering::Less {
                return Err(format!("separator {i} is not greater than the one before"));
            }
        }
        before = Some((head, size, rest));
    }
    if cells_size + fragmented != cells_end - upper {
        return Err(format!(
            "{cells_size} bytes in cells and {fragmented} lost in {} bytes",
            cells_end - upper
        ));
    }
    Ok(())
}

/// Where the cell at `at` ends, `None` when it is not within `from..to` or its number makes no sense.
fn cell_end(page: &Page, at: usize, from: usize, to: usize, prefix_size: usize) -> Option<usize> {
    if at < from || at >= to {
        return None;
    }
    let (size, rest_at) = head::read_number_checked(page, at)?;
    if size <= HEAD_SIZE || prefix_size + size > KEY_SIZE_MAX {
        return None;
    }
    let end = rest_at + rest_size(size);
    (end <= to).then_some(end)
}
