//! The heap: where values lie that are too long for a leaf. A value of up to [`SECTION_VALUE_SIZE_MAX`] bytes shares a
//! section page with others, a longer one has an overflow run of its own.
//!
//! New values go to one of a few *open* pages, the one where they fit best. When none has room, the fullest open page is
//! closed and another opened: a page with room from the lists of partly free pages, or a new one. Pages come on those
//! lists when they are closed with room left and when values are removed from them; an emptied page is given back.
//!
//! What always holds:
//! - a section page holds at least one value;
//! - a page that is not open is in the list [`List::of_free`] says; an open page is in none;
//! - a value keeps its [`ValueRef`] until it is removed, or updated to a length for which its page has no room.
//!
//! A heap belongs to one tree or table, so that giving that up can give back all its pages, and values that came
//! together lie together.

mod check;
mod lists;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use check::check;
pub(crate) use state::{HEAP_STATE_SIZE, HeapState};

use crate::error::{Error, Result};
use crate::format::{PageNumber, SECTION_VALUE_SIZE_MAX, VALUE_SIZE_MAX};
use crate::page::header::{PageKind, run_pages};
use crate::page::section::{self, List, SLOT_SIZE, Section};
use crate::pages::{PageMut, Pages, PagesMut, RunSource};
use state::OpenPage;

/// Where a value lies: `page << 16 | slot` with slot 0xFFFF for an overflow run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ValueRef(u64);

const SLOT_RUN: u16 = u16::MAX;

impl ValueRef {
    fn new(page: PageNumber, slot: u16) -> ValueRef {
        debug_assert!(page.0 < 1 << 48);
        ValueRef(page.0 << 16 | slot as u64)
    }

    /// The page the value is in, or the first of its run.
    pub(crate) fn page(self) -> PageNumber {
        PageNumber(self.0 >> 16)
    }

    /// The slot of the page that the value is in; of no meaning for an overflow run.
    pub(crate) fn slot(self) -> u16 {
        self.0 as u16
    }

    /// Whether the value is an overflow run.
    pub(crate) fn is_run(self) -> bool {
        self.slot() == SLOT_RUN
    }

    /// The bytes to keep the reference as.
    #[inline]
    pub(crate) fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// The reference back from its bytes. Any bytes make one: it is checked where it is used.
    #[inline]
    pub(crate) fn from_bytes(bytes: [u8; 8]) -> ValueRef {
        ValueRef(u64::from_le_bytes(bytes))
    }
}

impl std::fmt::Debug for ValueRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.is_run() {
            true => write!(f, "{:?}.run", self.page()),
            false => write!(f, "{:?}.{}", self.page(), self.slot()),
        }
    }
}

#[cold]
fn dangling(r: ValueRef) -> Error {
    Error::damaged(r.page(), format!("a value is said to be in slot {}, which is unused", r.slot()))
}

fn too_long(size: u64) -> Error {
    Error::ValueTooLong { size, max: VALUE_SIZE_MAX }
}

/// Stores a value. Error: longer than [`VALUE_SIZE_MAX`].
#[inline]
pub(crate) fn insert(pages: &mut impl PagesMut, state: &mut HeapState, value: &[u8]) -> Result<ValueRef> {
    if value.len() > SECTION_VALUE_SIZE_MAX {
        let mut source = value;
        return insert_run(pages, state, value.len() as u64, &mut source);
    }
    let need = value.len() + SLOT_SIZE;
    let mut best: Option<usize> = None;
    for (i, open) in state.open.iter().enumerate() {
        if open.free as usize >= need && best.is_none_or(|best| open.free < state.open[best].free) {
            best = Some(i);
        }
    }
    let i = match best {
        Some(i) => i,
        None => open_page(pages, state, need)?,
    };
    let number = state.open[i].page;
    let mut page = section_mut(pages, number)?;
    if Section::new(page.bytes())?.free() < need {
        return Err(Error::damaged(number, "the section has less room than its heap's state says"));
    }
    let slot = section::insert(&mut page, value);
    state.open[i].free = Section::new(page.bytes())?.free() as u16;
    Ok(ValueRef::new(number, slot))
}

/// Stores a value of `length` bytes that comes in pieces. Errors: the source's own; longer than [`VALUE_SIZE_MAX`].
pub(crate) fn insert_stream(
    pages: &mut impl PagesMut,
    state: &mut HeapState,
    length: u64,
    source: &mut dyn RunSource,
) -> Result<ValueRef> {
    if length > SECTION_VALUE_SIZE_MAX as u64 {
        return insert_run(pages, state, length, source);
    }
    let mut buffer = [0; SECTION_VALUE_SIZE_MAX];
    let value = &mut buffer[..length as usize];
    source.fill(value)?;
    insert(pages, state, value)
}

fn insert_run(
    pages: &mut impl PagesMut,
    state: &mut HeapState,
    length: u64,
    source: &mut dyn RunSource,
) -> Result<ValueRef> {
    if length > VALUE_SIZE_MAX {
        return Err(too_long(length));
    }
    let number = pages.write_run(length, source)?;
    state.runs += 1;
    state.run_pages += run_pages(length);
    Ok(ValueRef::new(number, SLOT_RUN))
}

/// The value's bytes, in place.
#[inline]
pub(crate) fn get(pages: &impl Pages, r: ValueRef) -> Result<&[u8]> {
    match r.is_run() {
        true => pages.run(r.page()),
        false => Section::new(pages.page(r.page())?)?.get(r.slot()).ok_or_else(|| dangling(r)),
    }
}

/// The value's length in bytes.
pub(crate) fn size(pages: &impl Pages, r: ValueRef) -> Result<u64> {
    Ok(get(pages, r)?.len() as u64)
}

/// Replaces a value, where it lies when the new one fits there, and returns where it is now.
/// Errors: longer than [`VALUE_SIZE_MAX`]; then the old value is still there.
pub(crate) fn update(
    pages: &mut impl PagesMut,
    state: &mut HeapState,
    r: ValueRef,
    value: &[u8],
) -> Result<ValueRef> {
    let old = get(pages, r)?;
    if old == value {
        return Ok(r);
    }
    let old_size = old.len();
    let free = match r.is_run() {
        true => 0,
        false => Section::new(pages.page(r.page())?)?.free(),
    };
    if r.is_run() || value.len() > old_size + free {
        let moved = insert(pages, state, value)?;
        remove(pages, state, r)?;
        return Ok(moved);
    }
    let free_then = free + old_size - value.len();
    note_free(pages, state, r.page(), free_then)?;
    section::replace(&mut section_mut(pages, r.page())?, r.slot(), value);
    Ok(r)
}

/// Removes a value and gives back what is empty then.
pub(crate) fn remove(pages: &mut impl PagesMut, state: &mut HeapState, r: ValueRef) -> Result<()> {
    let number = r.page();
    if r.is_run() {
        let length = pages.run(number)?.len() as u64;
        pages.free_run(number)?;
        state.runs = state.runs.saturating_sub(1);
        state.run_pages = state.run_pages.saturating_sub(run_pages(length));
        return Ok(());
    }
    let section = Section::new(pages.page(number)?)?;
    let size = section.get(r.slot()).ok_or_else(|| dangling(r))?.len();
    if section.is_last(r.slot()) {
        lists::relist(pages, state, number, None)?;
        pages.free(number)?;
        state.section_pages = state.section_pages.saturating_sub(1);
        if let Some(open) = state.open_mut(number) {
            *open = OpenPage::default();
        }
        return Ok(());
    }
    let free_then = section.free_without(r.slot(), size);
    note_free(pages, state, number, free_then)?;
    section::remove(&mut section_mut(pages, number)?, r.slot());
    Ok(())
}

/// Gets the page ready for changing and puts it where a page with `free` bytes belongs. Call it before the change that
/// makes it so: that change cannot fail any more.
fn note_free(
    pages: &mut impl PagesMut,
    state: &mut HeapState,
    number: PageNumber,
    free: usize,
) -> Result<()> {
    pages.page_mut(number)?;
    match state.open_mut(number) {
        Some(open) => open.free = free as u16,
        None => lists::relist(pages, state, number, List::of_free(free))?,
    }
    Ok(())
}

fn section_mut(pages: &mut impl PagesMut, number: PageNumber) -> Result<PageMut<'_>> {
    let page = pages.page_mut(number)?;
    Section::new(page.bytes())?;
    Ok(page)
}

/// Opens a page with at least `need` free bytes in place of the fullest open one, and returns its index.
#[cold]
fn open_page(pages: &mut impl PagesMut, state: &mut HeapState, need: usize) -> Result<usize> {
    let mut fullest = 0;
    for (i, open) in state.open.iter().enumerate() {
        // An unused place has no free bytes and is taken first.
        if open.free < state.open[fullest].free || !open.page.is_some() {
            fullest = i;
        }
        if !open.page.is_some() {
            break;
        }
    }
    let closed = state.open[fullest];
    if closed.page.is_some() {
        lists::relist(pages, state, closed.page, List::of_free(closed.free as usize))?;
        state.open[fullest] = OpenPage::default();
    }
    let number = match lists::find(pages, state, need)? {
        Some(number) => {
            lists::relist(pages, state, number, None)?;
            number
        }
        None => {
            let number = pages.allocate(PageKind::Section)?;
            section::init(&mut pages.page_mut(number)?);
            state.section_pages += 1;
            number
        }
    };
    let free = Section::new(pages.page(number)?)?.free() as u16;
    state.open[fullest] = OpenPage { page: number, free };
    Ok(fullest)
}
