//! A leaf of a variable-length-key tree: keys in order, each with its value.
//!
//! ```text
//!  0        32                lower           upper                  8192-p    8192
//!  ┌────────┬───────┬───────┬─┬───────────────┬──────┬───────┬───────┬─────────┐
//!  │ header │ slot 0│ slot 1│…│ free          │ cell │ cell  │ …     │ prefix  │
//!  └────────┴───────┴───────┴─┴───────────────┴──────┴───────┴───────┴─────────┘
//! ```
//! | offset | size | name | meaning |
//! |---|---|---|---|
//! | 18 | 2 | count | entries, at least one |
//! | 20 | 2 | lower | 32 + 6 × count |
//! | 22 | 2 | upper | where the lowest cell begins |
//! | 24 | 2 | prefix size | bytes that all keys of the page begin with (`p`); they lie at the page's end |
//! | 26 | 2 | fragmented | bytes between upper and the prefix that belong to no cell |
//! | 28 | 2 | last insert | 1 + the index of the entry inserted last, 0 when unknown: shows runs of ascending or descending inserts to the split |
//! | 30 | 2 | | zero |
//! | 32 + 6i | 4 | head | of entry `i`: the first four bytes of its key behind the prefix (see [`super::head`]) |
//! | 36 + 6i | 2 | cell | of entry `i`: offset of its cell |
//! | 8192 − p | p | prefix | |
//!
//! A cell, its numbers as [`head::write_number`] writes them:
//!
//! | size | name | meaning |
//! |---|---|---|
//! | 1-2 | key size | bytes of the key behind the prefix, the head included |
//! | 1-2 | value size | 0: the value is a reference into the heap; else 1 + its bytes |
//! | key size − 4 | rest | the key's bytes behind the head; none for shorter keys |
//! | value size − 1, or 8 | value | the value or the reference |
//!
//! Keys ascend strictly by (head, rest, key size). Slots come before cells in a search's path: a lookup touches the
//! header, some slots, one cell.

use std::cmp::Ordering;

use super::Page;
use super::head::{self, TakenBytes, number_size, read_number, rest_size};
use super::header::{BY_KIND_AT, COUNT_AT, KIND_AT, LOWER_AT, UPPER_AT};
use crate::format::{
    INLINE_VALUE_SIZE_MAX, KEY_SIZE_MAX, PAGE_BODY_SIZE, PAGE_HEADER_SIZE, PAGE_SIZE, read_u16, read_u64,
};
use crate::heap::ValueRef;
use crate::pages::PageMut;

const PREFIX_SIZE_AT: usize = BY_KIND_AT;
const FRAGMENTED_AT: usize = PREFIX_SIZE_AT + 2;
const LAST_INSERT_AT: usize = FRAGMENTED_AT + 2;
const SLOTS_AT: usize = PAGE_HEADER_SIZE;
const SLOT_SIZE: usize = 6;
/// The value size that says "a reference follows".
const LONG: usize = 0;
const REF_SIZE: usize = 8;

/// A value as it lies in a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LeafValue<'p> {
    /// The value itself.
    Inline(&'p [u8]),
    /// Where in the heap it is.
    Long(ValueRef),
}

impl LeafValue<'_> {
    #[inline(always)]
    fn stored_size(self) -> usize {
        match self {
            LeafValue::Inline(value) => number_size(value.len() + 1) + value.len(),
            LeafValue::Long(_) => number_size(LONG) + REF_SIZE,
        }
    }
}

/// One cell, taken apart.
#[derive(Clone, Copy)]
pub(crate) struct Cell<'p> {
    /// Bytes of the key behind the prefix.
    pub(crate) key_size: usize,
    /// The key's bytes behind the head.
    pub(crate) rest: &'p [u8],
    pub(crate) value: LeafValue<'p>,
    at: usize,
    value_at: usize,
    end: usize,
}

/// One entry apart from its page's arithmetic: what splits, merges and rebuilds shuffle.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'p> {
    prefix: &'p [u8],
    head: u32,
    behind_size: usize,
    rest: &'p [u8],
    pub(crate) value: LeafValue<'p>,
}

impl<'p> Entry<'p> {
    /// An entry that is in no page yet.
    pub(crate) fn new(key: &'p [u8], value: LeafValue<'p>) -> Entry<'p> {
        Entry { prefix: &[], head: head::head(key), behind_size: key.len(), rest: head::rest(key), value }
    }

    /// Bytes of the whole key.
    pub(crate) fn key_size(&self) -> usize {
        self.prefix.len() + self.behind_size
    }

    /// Replaces `key` by the entry's whole key.
    pub(crate) fn copy_key(&self, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.prefix);
        head::extend_key(key, self.head, self.behind_size, self.rest);
    }

    /// How many bytes its key and that of another entry of the same page have in common at the front, when their heads
    /// tell.
    pub(crate) fn common_in_page(&self, other: &Entry<'_>) -> Option<usize> {
        let differ = self.head ^ other.head;
        let same_page = self.prefix.len() == other.prefix.len();
        (same_page && differ != 0).then(|| self.prefix.len() + (differ.leading_zeros() / 8) as usize)
    }

    /// Bytes the entry takes, slot and cell, in a page with a prefix of `prefix_size`.
    pub(crate) fn size(&self, prefix_size: usize) -> usize {
        SLOT_SIZE + cell_size(self.key_size() - prefix_size, self.value)
    }
}

/// A leaf for reading. The page has been validated, or written by this module.
#[derive(Clone, Copy)]
pub(crate) struct Leaf<'p> {
    page: &'p Page,
}

impl<'p> Leaf<'p> {
    #[inline(always)]
    pub(crate) fn new(page: &'p Page) -> Leaf<'p> {
        Leaf { page }
    }

    /// How many entries there are.
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        read_u16(self.page, COUNT_AT) as usize
    }

    /// What all keys begin with.
    #[inline(always)]
    pub(crate) fn prefix(self) -> &'p [u8] {
        &self.page[PAGE_SIZE - read_u16(self.page, PREFIX_SIZE_AT) as usize..]
    }

    #[inline(always)]
    fn slots(self) -> &'p [[u8; SLOT_SIZE]] {
        self.page[SLOTS_AT..SLOTS_AT + SLOT_SIZE * self.count()].as_chunks().0
    }

    /// The head of entry `i`'s key.
    #[inline(always)]
    pub(crate) fn head(self, i: usize) -> u32 {
        head::of_slot(&self.slots()[i])
    }

    /// Entry `i`'s cell.
    #[inline(always)]
    pub(crate) fn cell(self, i: usize) -> Cell<'p> {
        let slot = self.slots()[i];
        self.cell_at(u16::from_le_bytes([slot[4], slot[5]]) as usize)
    }

    #[inline(always)]
    fn cell_at(self, at: usize) -> Cell<'p> {
        let (key_size, next) = read_number(self.page, at);
        let (value_size, rest_at) = read_number(self.page, next);
        let value_at = rest_at + rest_size(key_size);
        let rest = &self.page[rest_at..value_at];
        if value_size != LONG {
            let end = value_at + value_size - 1;
            let value = LeafValue::Inline(&self.page[value_at..end]);
            Cell { key_size, rest, value, at, value_at, end }
        } else {
            let value = LeafValue::Long(ValueRef::from_bytes(read_u64(self.page, value_at).to_le_bytes()));
            Cell { key_size, rest, value, at, value_at, end: value_at + REF_SIZE }
        }
    }

    /// Entry `i` for moving elsewhere.
    pub(crate) fn entry(self, i: usize) -> Entry<'p> {
        let cell = self.cell(i);
        let (rest, value) = (cell.rest, cell.value);
        Entry { prefix: self.prefix(), head: self.head(i), behind_size: cell.key_size, rest, value }
    }

    /// Orders entry `i`'s key against what remains of another behind the prefix.
    #[inline(always)]
    fn compare_behind(self, i: usize, behind: &[u8]) -> Ordering {
        self.head(i).cmp(&head::head(behind)).then_with(|| {
            let cell = self.cell(i);
            head::compare_behind_head(cell.rest, cell.key_size, head::rest(behind), behind.len())
        })
    }

    /// Orders entry `i`'s key against another.
    #[inline]
    pub(crate) fn compare(self, i: usize, key: &[u8]) -> Ordering {
        match key.strip_prefix(self.prefix()) {
            Some(behind) => self.compare_behind(i, behind),
            None => self.prefix().cmp(key),
        }
    }

    /// The index of the key, or where it would be inserted.
    #[inline]
    pub(crate) fn search(self, key: &[u8]) -> Result<usize, usize> {
        match key.strip_prefix(self.prefix()) {
            Some(behind) => self.search_behind(behind),
            None => Err(if key < self.prefix() { 0 } else { self.count() }),
        }
    }

    #[inline]
    fn search_behind(self, behind: &[u8]) -> Result<usize, usize> {
        let slots = self.slots();
        let wanted = head::head(behind);
        let first = head::first_not_less(slots, wanted);
        if first == slots.len() || head::of_slot(&slots[first]) != wanted {
            return Err(first);
        }
        match self.compare_behind(first, behind) {
            Ordering::Equal => return Ok(first),
            Ordering::Greater => return Err(first),
            Ordering::Less => {}
        }
        let mut low = first + 1;
        let mut high = low + slots[low..].partition_point(|slot| head::of_slot(slot) == wanted);
        while low < high {
            let middle = low.midpoint(high);
            match self.compare_behind(middle, behind) {
                Ordering::Equal => return Ok(middle),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Looks at a byte of each cache line that holds something, so that the lines are fetched side by side and not one
    /// after the other, as the entries are: for walks over leaves that are likely not in the cache. Makes a walk over a
    /// tree filled in random order 1.5 times as fast.
    pub(crate) fn fetch(self) {
        let (lower, upper) = (read_u16(self.page, LOWER_AT) as usize, read_u16(self.page, UPPER_AT) as usize);
        let lines = |bytes: &[u8]| bytes.iter().step_by(64).fold(0, |sum, byte| sum ^ byte);
        std::hint::black_box(lines(&self.page[..lower]) ^ lines(&self.page[upper..]));
    }

    /// Free bytes between slots and cells.
    #[inline(always)]
    pub(crate) fn room(self) -> usize {
        (read_u16(self.page, UPPER_AT) - read_u16(self.page, LOWER_AT)) as usize
    }

    /// Bytes of the body that hold something.
    pub(crate) fn used(self) -> usize {
        PAGE_BODY_SIZE - self.room() - read_u16(self.page, FRAGMENTED_AT) as usize
    }

    /// The index after that of the last insert, 0 when unknown.
    pub(crate) fn after_last_insert(self) -> usize {
        read_u16(self.page, LAST_INSERT_AT) as usize
    }
}

/// Bytes of a cell whose key has `key_size` bytes behind the prefix.
#[inline(always)]
fn cell_size(key_size: usize, value: LeafValue<'_>) -> usize {
    number_size(key_size) + rest_size(key_size) + value.stored_size()
}

/// Fills a cell of exactly the right size.
#[inline(always)]
fn write_cell(cell: &mut [u8], behind_size: usize, rest: &[u8], value: LeafValue<'_>) {
    let mut at = head::write_number(cell, behind_size);
    match value {
        LeafValue::Inline(value) => {
            at += head::write_number(&mut cell[at..], value.len() + 1);
            cell[at..at + rest.len()].copy_from_slice(rest);
            cell[at + rest.len()..].copy_from_slice(value);
        }
        LeafValue::Long(r) => {
            at += head::write_number(&mut cell[at..], LONG);
            cell[at..at + rest.len()].copy_from_slice(rest);
            cell[at + rest.len()..].copy_from_slice(&r.to_bytes());
        }
    }
}

#[inline(always)]
fn slot_bytes(head: u32, at: usize) -> [u8; SLOT_SIZE] {
    let [a, b, c, d] = head.to_le_bytes();
    let [e, f] = (at as u16).to_le_bytes();
    [a, b, c, d, e, f]
}

#[inline(always)]
fn write_counts(page: &mut PageMut<'_>, count: usize, upper: usize) {
    let counts = page.slice_mut(COUNT_AT, 6);
    counts[..2].copy_from_slice(&(count as u16).to_le_bytes());
    counts[2..4].copy_from_slice(&((SLOTS_AT + SLOT_SIZE * count) as u16).to_le_bytes());
    counts[4..].copy_from_slice(&(upper as u16).to_le_bytes());
}

/// Inserts an entry whose key continues the prefix with `behind`. False, and nothing changed, when there is no room
/// between slots and cells.
#[inline]
pub(crate) fn insert(page: &mut PageMut<'_>, index: usize, behind: &[u8], value: LeafValue<'_>) -> bool {
    let leaf = Leaf::new(page.bytes());
    let (count, room) = (leaf.count(), leaf.room());
    let size = cell_size(behind.len(), value);
    if room < size + SLOT_SIZE {
        return false;
    }
    let at = read_u16(page.bytes(), UPPER_AT) as usize - size;
    write_cell(page.slice_mut(at, size), behind.len(), head::rest(behind), value);
    let slot_at = SLOTS_AT + SLOT_SIZE * index;
    if index != count {
        page.move_within(slot_at, slot_at + SLOT_SIZE, SLOT_SIZE * (count - index));
    }
    page.write(slot_at, &slot_bytes(head::head(behind), at));
    write_counts(page, count + 1, at);
    page.write_u16(LAST_INSERT_AT, index as u16 + 1);
    true
}

/// What came of an [`append`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Appended {
    Done,
    /// The key is not greater than all others.
    NotLast,
    /// The page has no room, or the key does not begin with its prefix.
    NoRoom,
}

/// Whether the key is greater than all of the page's.
#[inline]
pub(crate) fn is_behind_all(leaf: Leaf<'_>, key: &[u8]) -> bool {
    leaf.count().checked_sub(1).is_none_or(|last| leaf.compare(last, key) == Ordering::Less)
}

/// Inserts an entry behind all others, without a search.
#[inline]
pub(crate) fn append(page: &mut PageMut<'_>, key: &[u8], value: LeafValue<'_>) -> Appended {
    let leaf = Leaf::new(page.bytes());
    let count = leaf.count();
    let Some(behind) = key.strip_prefix(leaf.prefix()) else {
        return if key > leaf.prefix() { Appended::NoRoom } else { Appended::NotLast };
    };
    if count != 0 && leaf.compare_behind(count - 1, behind) != Ordering::Less {
        return Appended::NotLast;
    }
    if insert(page, count, behind, value) { Appended::Done } else { Appended::NoRoom }
}

/// Replaces entry `index`'s value. A value of the same size is written over the old one. False, and nothing changed,
/// when there is no room for the new cell.
#[inline]
pub(crate) fn replace(page: &mut PageMut<'_>, index: usize, value: LeafValue<'_>) -> bool {
    let leaf = Leaf::new(page.bytes());
    let cell = leaf.cell(index);
    match (cell.value, value) {
        (LeafValue::Inline(old), LeafValue::Inline(new)) if old.len() == new.len() => {
            let at = cell.value_at;
            page.write(at, new);
            return true;
        }
        (LeafValue::Long(old), LeafValue::Long(new)) => {
            let at = cell.value_at;
            if old != new {
                page.write(at, &new.to_bytes());
            }
            return true;
        }
        _ => {}
    }
    let (old_size, key_size) = (cell.end - cell.at, cell.key_size);
    let size = cell_size(key_size, value);
    let upper = read_u16(page.bytes(), UPPER_AT) as usize;
    let (at, lost) = if size <= old_size {
        (cell.at, old_size - size)
    } else if leaf.room() >= size {
        (upper - size, old_size)
    } else {
        return false;
    };
    let mut rest = [0; KEY_SIZE_MAX];
    let rest = &mut rest[..cell.rest.len()];
    rest.copy_from_slice(cell.rest);
    write_cell(page.slice_mut(at, size), key_size, rest, value);
    if size > old_size {
        page.write_u16(SLOTS_AT + SLOT_SIZE * index + head::HEAD_SIZE, at as u16);
        page.write_u16(UPPER_AT, at as u16);
    }
    let fragmented = read_u16(page.bytes(), FRAGMENTED_AT) as usize + lost;
    page.write_u16(FRAGMENTED_AT, fragmented as u16);
    true
}

/// Where entry `index`'s value lies in the page, when it is not in the heap: for changing it in place.
pub(crate) fn inline_value_at(page: &Page, index: usize) -> Option<(usize, usize)> {
    let cell = Leaf::new(page).cell(index);
    match cell.value {
        LeafValue::Inline(value) => Some((cell.value_at, value.len())),
        LeafValue::Long(_) => None,
    }
}

/// Removes the entries `from..to`. Their values are the caller's business.
pub(crate) fn remove(page: &mut PageMut<'_>, from: usize, to: usize) {
    let leaf = Leaf::new(page.bytes());
    let count = leaf.count();
    let mut upper = read_u16(page.bytes(), UPPER_AT) as usize;
    let mut fragmented = read_u16(page.bytes(), FRAGMENTED_AT) as usize;
    if to - from == count {
        (upper, fragmented) = (PAGE_SIZE - leaf.prefix().len(), 0);
    } else {
        for i in from..to {
            let cell = leaf.cell(i);
            fragmented += cell.end - cell.at;
        }
        if to - from == 1 {
            let cell = leaf.cell(from);
            if cell.at == upper {
                upper = cell.end;
                fragmented -= cell.end - cell.at;
            }
        }
    }
    let (from_at, to_at) = (SLOTS_AT + SLOT_SIZE * from, SLOTS_AT + SLOT_SIZE * to);
    if to != count {
        page.move_within(to_at, from_at, SLOT_SIZE * (count - to));
    }
    write_counts(page, count - (to - from), upper);
    page.write_u16(FRAGMENTED_AT, fragmented as u16);
    if Leaf::new(page.bytes()).after_last_insert() != 0 {
        page.write_u16(LAST_INSERT_AT, 0);
    }
}

/// Makes the page a leaf with these entries, which fit, and this prefix, which all their keys begin with.
/// `after_last_insert` is as in the header. Leaves what is free as it was.
pub(crate) fn build(page: &mut PageMut<'_>, prefix: &[u8], entries: &[Entry<'_>], after_last_insert: usize) {
    let bytes = page.all_mut();
    let prefix_at = PAGE_SIZE - prefix.len();
    bytes[prefix_at..].copy_from_slice(prefix);
    let mut upper = prefix_at;
    let mut key = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        let (head, behind_size, rest);
        if entry.prefix.len() == prefix.len() {
            (head, behind_size, rest) = (entry.head, entry.behind_size, entry.rest);
        } else {
            entry.copy_key(&mut key);
            let behind = &key[prefix.len()..];
            (head, behind_size, rest) = (head::head(behind), behind.len(), head::rest(behind));
        }
        let size = cell_size(behind_size, entry.value);
        upper -= size;
        write_cell(&mut bytes[upper..upper + size], behind_size, rest, entry.value);
        let slot_at = SLOTS_AT + SLOT_SIZE * i;
        bytes[slot_at..slot_at + SLOT_SIZE].copy_from_slice(&slot_bytes(head, upper));
    }
    write_counts(page, entries.len(), upper);
    page.write_u16(PREFIX_SIZE_AT, prefix.len() as u16);
    page.write_u16(FRAGMENTED_AT, 0);
    page.write_u16(LAST_INSERT_AT, after_last_insert as u16);
    page.write_u16(LAST_INSERT_AT + 2, 0);
}

/// Checks a page that says it is a leaf; the reason when it is none. After it, no reader or writer of this module
/// panics on the page.
pub(crate) fn validate(page: &Page) -> Result<(), String> {
    debug_assert_eq!(page[KIND_AT], super::header::PageKind::Leaf as u8);
    let [count, lower, upper, prefix_size, fragmented] =
        [COUNT_AT, LOWER_AT, UPPER_AT, PREFIX_SIZE_AT, FRAGMENTED_AT].map(|at| read_u16(page, at) as usize);
    if count == 0 {
        return Err("a leaf without entries".to_owned());
    }
    if prefix_size > KEY_SIZE_MAX {
        return Err(format!("a prefix of {prefix_size} bytes"));
    }
    let cells_end = PAGE_SIZE - prefix_size;
    if lower != SLOTS_AT + SLOT_SIZE * count || lower > upper || upper > cells_end {
        return Err(format!("{count} slots end at {lower}, cells are from {upper} to {cells_end}"));
    }
    if read_u16(page, LAST_INSERT_AT) as usize > count {
        return Err("its last insert was behind its last entry".to_owned());
    }
    let leaf = Leaf::new(page);
    let mut taken = TakenBytes::new();
    let mut cells_size = 0;
    let mut before: Option<(u32, Cell<'_>)> = None;
    for (i, slot) in leaf.slots().iter().enumerate() {
        let at = u16::from_le_bytes([slot[4], slot[5]]) as usize;
        let Some(end) = cell_end(page, at, upper, cells_end, prefix_size) else {
            return Err(format!("entry {i}'s cell at {at} is no cell"));
        };
        if !taken.take(at, end) {
            return Err(format!("entry {i}'s cell at {at} lies over another"));
        }
        cells_size += end - at;
        let (head, cell) = (head::of_slot(slot), leaf.cell_at(at));
        if cell.key_size < head::HEAD_SIZE && head << (8 * cell.key_size) != 0 {
            return Err(format!("entry {i}'s head is longer than its key"));
        }
        if let Some((head_before, cell_before)) = before {
            let order = head_before.cmp(&head).then_with(|| {
                head::compare_behind_head(cell_before.rest, cell_before.key_size, cell.rest, cell.key_size)
            });
            if order != Ordering::Less {
                return Err(format!("entry {i}'s key is not greater than the one before"));
            }
        }
        before = Some((head, cell));
    }
    if cells_size + fragmented != cells_end - upper {
        return Err(format!(
            "{cells_size} bytes in cells and {fragmented} lost in {} bytes",
            cells_end - upper
        ));
    }
    Ok(())
}

/// Where the cell at `at` ends, `None` when it is not within `from..to` or its numbers make no sense.
fn cell_end(page: &Page, at: usize, from: usize, to: usize, prefix_size: usize) -> Option<usize> {
    if at < from || at >= to {
        return None;
    }
    let (key_size, next) = head::read_number_checked(page, at)?;
    let (value_size, rest_at) = head::read_number_checked(page, next)?;
    let whole = prefix_size + key_size;
    if whole == 0 || whole > KEY_SIZE_MAX || value_size > INLINE_VALUE_SIZE_MAX + 1 {
        return None;
    }
    let value_size = if value_size == LONG { REF_SIZE } else { value_size - 1 };
    let end = rest_at + rest_size(key_size) + value_size;
    (end <= to).then_some(end)
}
