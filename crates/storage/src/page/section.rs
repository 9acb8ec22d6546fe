//! Section pages: many values that are too long for a leaf, in one slotted page. A slot keeps its number for life, so
//! that a reference to a value (page number and slot) stays good while other values come and go; the cells move when
//! the page is compacted.
//!
//! ```text
//!  0        16     17      18      20     22      24     30     36
//!  ┌────────┬──────┬───────┬───────┬──────┬───────┬──────┬──────┬───────────────┬──────────┬─────────────────┐
//!  │ common │ kind │ flags │ count │ free │ upper │ prev │ next │ slots →       │ (unused) │         ← cells │
//!  └────────┴──────┴───────┴───────┴──────┴───────┴──────┴──────┴───────────────┴──────────┴─────────────────┘
//!                                                                               36+4·count upper          8192
//! ```
//! | offset | size | name | meaning |
//! |---|---|---|---|
//! | 17 | 1 | flags | bit 0: there may be unused slots below `count`; bits 1-2: the list the page is linked into (0 none, else a [`List`]) |
//! | 18 | 2 | count | slots, used or not; the last one is used |
//! | 20 | 2 | free | bytes behind the header that are neither slot nor value: between slots and cells, and in gaps between cells |
//! | 22 | 2 | upper | where the cells begin |
//! | 24 | 6 | prev | the page before this one in its list, 0 when it is the first or in no list |
//! | 30 | 6 | next | the page after this one in its list, 0 when it is the last or in no list |
//! | 36 | 4 each | slot | `u16` offset of the value in the page (0: unused slot; 8192 for an empty value), `u16` its size |

use super::Page;
use super::header::{self, BY_KIND_AT, COUNT_AT, FLAGS_AT, LOWER_AT, PageKind, UPPER_AT};
use crate::error::{Error, Result};
use crate::format::{PAGE_SIZE, PageNumber, SECTION_VALUE_SIZE_MAX, read_u16};
use crate::pages::PageMut;

const FREE_AT: usize = LOWER_AT;
const PREV_AT: usize = BY_KIND_AT;
const NEXT_AT: usize = PREV_AT + 6;
const SLOTS_AT: usize = NEXT_AT + 6;

/// Bytes of a slot. A value that comes new to a page may need one beside its own bytes.
pub(crate) const SLOT_SIZE: usize = 4;
/// The `free` of a page without values.
pub(crate) const FREE_MAX: usize = PAGE_SIZE - SLOTS_AT;
const SLOT_COUNT_MAX: usize = FREE_MAX / SLOT_SIZE;

const _: () = assert!(FREE_MAX == SECTION_VALUE_SIZE_MAX + SLOT_SIZE);

const FLAG_UNUSED_SLOTS: u8 = 1;
const FLAG_LIST_SHIFT: u8 = 1;

/// The lists of pages with room in them; a page is in one of them or in none. The numbers are on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum List {
    /// A quarter of the page or more is free.
    Quarter = 1,
    /// Half of the page or more is free.
    Half = 2,
}

impl List {
    /// The list where a page with so many free bytes belongs, `None` when it is too full to be worth listing.
    #[inline]
    pub(crate) fn of_free(free: usize) -> Option<List> {
        match free {
            _ if free >= PAGE_SIZE / 2 => Some(List::Half),
            _ if free >= PAGE_SIZE / 4 => Some(List::Quarter),
            _ => None,
        }
    }
}

/// A section page for reading.
#[derive(Clone, Copy)]
pub(crate) struct Section<'p>(&'p Page);

impl<'p> Section<'p> {
    /// Takes the page for a section. Error: it is of another kind, so whatever refers to it is damaged.
    #[inline]
    pub(crate) fn new(page: &'p Page) -> Result<Section<'p>> {
        match header::kind(page) {
            Some(PageKind::Section) => Ok(Section(page)),
            found => Err(Error::damaged(
                header::number(page),
                format!("a value is said to be in it, but it is {found:?} and no section"),
            )),
        }
    }

    /// Slots, used or not.
    #[inline]
    pub(crate) fn count(self) -> usize {
        read_u16(self.0, COUNT_AT) as usize
    }

    /// Bytes that are neither slot nor value. A new value of `size` bytes fits when `size + SLOT_SIZE` is not more.
    #[inline]
    pub(crate) fn free(self) -> usize {
        read_u16(self.0, FREE_AT) as usize
    }

    #[inline]
    fn upper(self) -> usize {
        read_u16(self.0, UPPER_AT) as usize
    }

    #[inline]
    fn cell(self, slot: usize) -> (usize, usize) {
        let at = SLOTS_AT + slot * SLOT_SIZE;
        (read_u16(self.0, at) as usize, read_u16(self.0, at + 2) as usize)
    }

    /// The value in a slot; `None` when there is no such slot or it is unused.
    #[inline]
    pub(crate) fn get(self, slot: u16) -> Option<&'p [u8]> {
        if slot as usize >= self.count() {
            return None;
        }
        match self.cell(slot as usize) {
            (0, _) => None,
            (offset, size) => Some(&self.0[offset..offset + size]),
        }
    }

    /// The used slots, ascending.
    pub(crate) fn slots(self) -> impl Iterator<Item = u16> + use<'p> {
        (0..self.count()).filter(move |&slot| self.cell(slot).0 != 0).map(|slot| slot as u16)
    }

    /// Whether no slot but this one is used.
    pub(crate) fn is_last(self, slot: u16) -> bool {
        self.slots().all(|other| other == slot)
    }

    /// What `free` will be when the value of `size` bytes in `slot`, which is not the last value, is removed.
    pub(crate) fn free_without(self, slot: u16, size: usize) -> usize {
        let slots_given_back = match slot as usize + 1 == self.count() {
            true => 1 + (0..slot as usize).rev().take_while(|&slot| self.cell(slot).0 == 0).count(),
            false => 0,
        };
        self.free() + size + slots_given_back * SLOT_SIZE
    }

    /// The list the page is linked into.
    #[inline]
    pub(crate) fn list(self) -> Option<List> {
        match self.0[FLAGS_AT] >> FLAG_LIST_SHIFT {
            1 => Some(List::Quarter),
            2 => Some(List::Half),
            _ => None,
        }
    }

    /// The page before this one in its list.
    pub(crate) fn prev(self) -> PageNumber {
        read_link(self.0, PREV_AT)
    }

    /// The page after this one in its list.
    pub(crate) fn next(self) -> PageNumber {
        read_link(self.0, NEXT_AT)
    }
}

fn read_link(page: &Page, at: usize) -> PageNumber {
    let mut bytes = [0; 8];
    bytes[..6].copy_from_slice(&page[at..at + 6]);
    PageNumber(u64::from_le_bytes(bytes))
}

/// Makes a fresh page of zeros an empty section.
pub(crate) fn init(page: &mut PageMut<'_>) {
    page.write_u16(FREE_AT, FREE_MAX as u16);
    page.write_u16(UPPER_AT, PAGE_SIZE as u16);
}

/// Adds a value and returns its slot. The caller has made sure that `free` is at least the value's size and a slot's.
pub(crate) fn insert(page: &mut PageMut<'_>, value: &[u8]) -> u16 {
    let section = Section(page.bytes());
    let count = section.count();
    debug_assert!(value.len() + SLOT_SIZE <= section.free());
    let slot = if page.bytes()[FLAGS_AT] & FLAG_UNUSED_SLOTS == 0 {
        count
    } else {
        let unused = (0..count).find(|&slot| section.cell(slot).0 == 0);
        if unused.is_none() {
            let flags = page.bytes()[FLAGS_AT] & !FLAG_UNUSED_SLOTS;
            page.write(FLAGS_AT, &[flags]);
        }
        unused.unwrap_or(count)
    };
    if slot == count {
        let free = Section(page.bytes()).free();
        // The new slot may lie where a cell still is.
        if Section(page.bytes()).upper() < SLOTS_AT + (count + 1) * SLOT_SIZE {
            compact(page);
        }
        page.write_u16(SLOTS_AT + slot * SLOT_SIZE, 0);
        page.write_u16(COUNT_AT, (count + 1) as u16);
        page.write_u16(FREE_AT, (free - SLOT_SIZE) as u16);
    }
    place(page, slot, value.len()).copy_from_slice(value);
    slot as u16
}

/// Gives an unused slot so many bytes and returns them. `free` must suffice.
fn place<'a>(page: &'a mut PageMut<'_>, slot: usize, size: usize) -> &'a mut [u8] {
    if Section(page.bytes()).upper() < SLOTS_AT + Section(page.bytes()).count() * SLOT_SIZE + size {
        compact(page);
    }
    let section = Section(page.bytes());
    // An empty value has no place among the cells that the cells' moving could get wrong.
    let offset = if size == 0 { PAGE_SIZE } else { section.upper() - size };
    let (upper, free) = (section.upper() - size, section.free() - size);
    page.write_u16(UPPER_AT, upper as u16);
    page.write_u16(FREE_AT, free as u16);
    let at = SLOTS_AT + slot * SLOT_SIZE;
    page.write_u16(at, offset as u16);
    page.write_u16(at + 2, size as u16);
    page.slice_mut(offset, size)
}

/// Takes a used slot's bytes from it: the slot is unused afterwards.
fn displace(page: &mut PageMut<'_>, slot: usize) {
    let section = Section(page.bytes());
    let (offset, size) = section.cell(slot);
    let (free, upper) = (section.free() + size, section.upper());
    page.write(SLOTS_AT + slot * SLOT_SIZE, &[0; SLOT_SIZE]);
    page.write_u16(FREE_AT, free as u16);
    if offset == upper {
        page.write_u16(UPPER_AT, (offset + size) as u16);
    }
}

/// Removes the value in a used slot.
pub(crate) fn remove(page: &mut PageMut<'_>, slot: u16) {
    displace(page, slot as usize);
    let section = Section(page.bytes());
    let (count, free) = (section.count(), section.free());
    let kept = (0..count).rev().find(|&slot| section.cell(slot).0 != 0).map_or(0, |last| last + 1);
    if kept < count {
        page.write_u16(COUNT_AT, kept as u16);
        page.write_u16(FREE_AT, (free + (count - kept) * SLOT_SIZE) as u16);
    }
    if (slot as usize) < kept {
        let flags = page.bytes()[FLAGS_AT] | FLAG_UNUSED_SLOTS;
        page.write(FLAGS_AT, &[flags]);
    }
}

/// Replaces the value in a used slot. The caller has made sure that the new value is not longer than the old one and
/// `free` together.
pub(crate) fn replace(page: &mut PageMut<'_>, slot: u16, value: &[u8]) {
    let section = Section(page.bytes());
    let (offset, size) = section.cell(slot as usize);
    let free = section.free();
    debug_assert!(value.len() <= size + free);
    if value.len() > size || value.is_empty() {
        displace(page, slot as usize);
        place(page, slot as usize, value.len()).copy_from_slice(value);
        return;
    }
    if value.len() < size {
        page.write_u16(SLOTS_AT + slot as usize * SLOT_SIZE + 2, value.len() as u16);
        page.write_u16(FREE_AT, (free + size - value.len()) as u16);
    }
    page.write(offset, value);
}

/// Moves the cells together at the page's end, in the order they lie in, so that all free bytes are in one piece.
#[cold]
fn compact(page: &mut PageMut<'_>) {
    let section = Section(page.bytes());
    let mut order = [0u16; SLOT_COUNT_MAX];
    let mut used = 0;
    for slot in section.slots() {
        order[used] = slot;
        used += 1;
    }
    order[..used].sort_unstable_by_key(|&slot| std::cmp::Reverse(section.cell(slot as usize)));
    let mut upper = PAGE_SIZE;
    for &slot in &order[..used] {
        let (offset, size) = Section(page.bytes()).cell(slot as usize);
        upper -= size;
        if offset != upper {
            page.move_within(offset, upper, size);
            page.write_u16(SLOTS_AT + slot as usize * SLOT_SIZE, upper as u16);
        }
    }
    page.write_u16(UPPER_AT, upper as u16);
}

/// Records the list the page is in and its neighbours there.
pub(crate) fn set_links(page: &mut PageMut<'_>, list: Option<List>, prev: PageNumber, next: PageNumber) {
    let flags =
        page.bytes()[FLAGS_AT] & FLAG_UNUSED_SLOTS | list.map_or(0, |list| list as u8) << FLAG_LIST_SHIFT;
    page.write(FLAGS_AT, &[flags]);
    set_prev(page, prev);
    set_next(page, next);
}

/// Changes the link to the page before.
pub(crate) fn set_prev(page: &mut PageMut<'_>, prev: PageNumber) {
    page.write(PREV_AT, &prev.0.to_le_bytes()[..6]);
}

/// Changes the link to the page after.
pub(crate) fn set_next(page: &mut PageMut<'_>, next: PageNumber) {
    page.write(NEXT_AT, &next.0.to_le_bytes()[..6]);
}

/// Checks slots, cells and the free bytes. Returns what is wrong.
pub(crate) fn validate(page: &Page) -> Result<(), String> {
    let section = Section(page);
    let (count, upper, free) = (section.count(), section.upper(), section.free());
    if count > SLOT_COUNT_MAX || SLOTS_AT + count * SLOT_SIZE > upper || upper > PAGE_SIZE {
        return Err(format!("a section with {count} slots and cells from {upper} on"));
    }
    if page[FLAGS_AT] >> FLAG_LIST_SHIFT > List::Half as u8 {
        return Err(format!("a section with unknown flags {:#x}", page[FLAGS_AT]));
    }
    if count > 0 && section.cell(count - 1).0 == 0 {
        return Err("a section whose last slot is unused".to_owned());
    }
    let mut cells = [(0u16, 0u16); SLOT_COUNT_MAX];
    let mut used = 0;
    for slot in 0..count {
        match section.cell(slot) {
            (0, 0) => {}
            (0, size) => return Err(format!("unused slot {slot} has a size of {size}")),
            (offset, size) if offset < upper || offset + size > PAGE_SIZE => {
                return Err(format!("slot {slot} points to {size} bytes at {offset}, outside the cells"));
            }
            (offset, size) => {
                cells[used] = (offset as u16, size as u16);
                used += 1;
            }
        }
    }
    let cells = &mut cells[..used];
    cells.sort_unstable();
    if let Some(pair) =
        cells.windows(2).find(|pair| pair[0].0 as usize + pair[0].1 as usize > pair[1].0 as usize)
    {
        return Err(format!("the values at {} and {} overlap", pair[0].0, pair[1].0));
    }
    let value_bytes: usize = cells.iter().map(|cell| cell.1 as usize).sum();
    let expected = FREE_MAX - count * SLOT_SIZE - value_bytes;
    if free != expected {
        return Err(format!("a section that counts {free} free bytes and has {expected}"));
    }
    Ok(())
}
