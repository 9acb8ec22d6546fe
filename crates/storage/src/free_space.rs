//! Which pages are free: a bitmap over page numbers, itself kept in pages, so that it commits, rolls back and is
//! snapshotted with everything else.
//!
//! ```text
//!  root page ─► directory pages (1020 bitmap pages each) ─► bitmap pages (65,280 pages each)
//! ```
//! A set bit is a free page. Directory page: body of `u64` page numbers of bitmap pages, 0 where nothing in that range
//! was ever freed. Bitmap page: `count` in the header is the number of set bits; the body is the bits, page `n` being bit
//! `n % 8` of byte `n / 8`. Pages at and beyond the root's page count are not free but not there yet.
//!
//! Directory and bitmap pages are always made at the end of the file, never from free pages, and are never given
//! back: so this module does not call itself.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::{PAGE_BODY_SIZE, PAGE_HEADER_SIZE, PageNumber, ROOT_PAGE, read_u16, read_u64};
use crate::page::Page;
use crate::page::header::{COUNT_AT, PageKind, kind};
use crate::pages::{PageMut, Pages};
use crate::root;

/// Pages that one bitmap page speaks for.
pub(crate) const BITMAP_PAGES: u64 = PAGE_BODY_SIZE as u64 * 8;
/// Bitmap pages that one directory page lists.
const DIRECTORY_ENTRIES: u64 = PAGE_BODY_SIZE as u64 / 8;

/// What the free space needs of the write transaction.
pub(crate) trait SpacePages: Pages {
    /// A page for changing.
    fn space_page_mut(&mut self, number: PageNumber) -> Result<PageMut<'_>>;
    /// A new page at the end of the file.
    fn append_page(&mut self, kind: PageKind) -> Result<PageNumber>;
}

/// What the writer remembers between transactions to find free pages without searching. Only hints: a wrong one costs time
/// (too high) or leaves free pages unused for a while (too low), so a rollback resets them.
#[derive(Default, Debug)]
pub(crate) struct FreeHints {
    /// For each bitmap page, no run longer than this is free in it.
    longest: Vec<u32>,
    /// Where the last single page was found: bitmap page and byte.
    last: (u64, usize),
}

impl FreeHints {
    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        *self = FreeHints::default();
    }

    fn longest(&mut self, at: u64) -> &mut u32 {
        let at = at as usize;
        if self.longest.len() <= at {
            self.longest.resize(at + 1, u32::MAX);
        }
        &mut self.longest[at]
    }
}

fn expect_kind(page: &Page, number: PageNumber, expected: PageKind) -> Result<()> {
    if kind(page) == Some(expected) {
        return Ok(());
    }
    Err(Error::damaged(number, format!("a {expected:?} page is expected here, found {:?}", kind(page))))
}

/// The bitmap page for a range, if there is one.
fn bitmap_page(pages: &impl Pages, at: u64) -> Result<Option<PageNumber>> {
    let directory_at = (at / DIRECTORY_ENTRIES) as usize;
    if directory_at >= root::DIRECTORIES_MAX {
        return Ok(None);
    }
    let directory = root::directory(pages.page(ROOT_PAGE)?, directory_at);
    if !directory.is_some() {
        return Ok(None);
    }
    let page = pages.page(directory)?;
    expect_kind(page, directory, PageKind::FreeDirectory)?;
    let entry = PAGE_HEADER_SIZE + (at % DIRECTORY_ENTRIES) as usize * 8;
    let bitmap = PageNumber(read_u64(page, entry));
    if !bitmap.is_some() {
        return Ok(None);
    }
    expect_kind(pages.page(bitmap)?, bitmap, PageKind::FreeBitmap)?;
    Ok(Some(bitmap))
}

fn bitmap_page_or_new(pages: &mut impl SpacePages, at: u64) -> Result<PageNumber> {
    if let Some(bitmap) = bitmap_page(pages, at)? {
        return Ok(bitmap);
    }
    let directory_at = (at / DIRECTORY_ENTRIES) as usize;
    if directory_at >= root::DIRECTORIES_MAX {
        return Err(Error::environment_full(1));
    }
    let mut directory = root::directory(pages.page(ROOT_PAGE)?, directory_at);
    if !directory.is_some() {
        directory = pages.append_page(PageKind::FreeDirectory)?;
        root::set_directory(&mut pages.space_page_mut(ROOT_PAGE)?, directory_at, directory);
    }
    let bitmap = pages.append_page(PageKind::FreeBitmap)?;
    let entry = PAGE_HEADER_SIZE + (at % DIRECTORY_ENTRIES) as usize * 8;
    pages.space_page_mut(directory)?.write_u64(entry, bitmap.0);
    Ok(bitmap)
}

/// Marks the pages `first .. first + count` free. It is an error (damage) when one of them is free already.
pub(crate) fn give_back(
    pages: &mut impl SpacePages,
    hints: &mut FreeHints,
    first: PageNumber,
    count: u64,
) -> Result<()> {
    let mut range = first.0..first.0 + count;
    while !range.is_empty() {
        let at = range.start / BITMAP_PAGES;
        let end = range.end.min((at + 1) * BITMAP_PAGES);
        let number = bitmap_page_or_new(pages, at)?;
        let bits = range.start - at * BITMAP_PAGES..end - at * BITMAP_PAGES;
        set_bits(&mut pages.space_page_mut(number)?, bits, true)?;
        *hints.longest(at) = u32::MAX;
        if at < hints.last.0 {
            hints.last = (at, 0);
        } else if at == hints.last.0 {
            hints.last.1 = hints.last.1.min(((range.start - at * BITMAP_PAGES) / 8) as usize);
        }
        range.start = end;
    }
    Ok(())
}

fn set_bits(page: &mut PageMut<'_>, bits: Range<u64>, free: bool) -> Result<()> {
    let number = crate::page::header::number(page.bytes());
    let changed = bits.end - bits.start;
    for (byte, mask) in masks(bits) {
        let old = page.bytes()[PAGE_HEADER_SIZE + byte];
        if old & mask != if free { 0 } else { mask } {
            let what = if free { "freed twice" } else { "taken twice" };
            return Err(Error::damaged(number, format!("a page described here would be {what}")));
        }
        page.slice_mut(PAGE_HEADER_SIZE + byte, 1)[0] = old ^ mask;
    }
    let count = u64::from(read_u16(page.bytes(), COUNT_AT));
    let count = if free { count + changed } else { count.wrapping_sub(changed) };
    page.write_u16(COUNT_AT, count as u16);
    Ok(())
}

/// The bytes that a range of bits touches, with the bits of each.
fn masks(bits: Range<u64>) -> impl Iterator<Item = (usize, u8)> {
    let mut at = bits.start;
    std::iter::from_fn(move || {
        if at >= bits.end {
            return None;
        }
        let byte = at / 8;
        let end = bits.end.min((byte + 1) * 8);
        let mask = (0xFF_u8 << (at % 8)) & (0xFF_u8 >> (8 - (end - byte * 8)));
        at = end;
        Some((byte as usize, mask))
    })
}

/// Takes `count` consecutive free pages, the first that fit; `None` when there are none. `usable` tells for a candidate range how
/// far it cannot be used: the first page number after which the search may go on, or `None` when all of it is fine.
pub(crate) fn take(
    pages: &mut impl SpacePages,
    hints: &mut FreeHints,
    page_count: u64,
    count: u64,
    blocked_until: &dyn Fn(Range<u64>) -> Option<u64>,
) -> Result<Option<PageNumber>> {
    if count > BITMAP_PAGES {
        return Ok(None); // longer than one bitmap page describes: only the end of the file holds such a run
    }
    let bitmaps = page_count.div_ceil(BITMAP_PAGES);
    let start = if count == 1 { hints.last.0.min(bitmaps) } else { 0 };
    for at in (start..bitmaps).chain(0..start) {
        if u64::from(*hints.longest(at)) < count {
            continue;
        }
        let Some(number) = bitmap_page(pages, at)? else { continue };
        let page = pages.page(number)?;
        let from = if count == 1 && at == hints.last.0 { hints.last.1 as u64 * 8 } else { 0 };
        let (found, blocked) = find(page, from, count, &|bits| {
            blocked_until(at * BITMAP_PAGES + bits.start..at * BITMAP_PAGES + bits.end)
                .map(|p| p - at * BITMAP_PAGES)
        });
        let Some(bit) = found else {
            if from == 0 && !blocked {
                *hints.longest(at) = (count - 1) as u32;
            } else if from != 0 {
                hints.last.1 = 0;
                // Bits before the hint may be free: look again from the start.
                if let (Some(bit), _) = find(page, 0, 1, &|_| None) {
                    return claim(pages, hints, at, number, bit, 1).map(Some);
                }
                *hints.longest(at) = 0;
            }
            continue;
        };
        return claim(pages, hints, at, number, bit, count).map(Some);
    }
    Ok(None)
}

fn claim(
    pages: &mut impl SpacePages,
    hints: &mut FreeHints,
    at: u64,
    bitmap: PageNumber,
    bit: u64,
    count: u64,
) -> Result<PageNumber> {
    set_bits(&mut pages.space_page_mut(bitmap)?, bit..bit + count, false)?;
    if count == 1 {
        hints.last = (at, (bit / 8) as usize);
    }
    Ok(PageNumber(at * BITMAP_PAGES + bit))
}

/// The first run of `count` set bits from `from` on, and whether any run long enough was blocked.
fn find(
    page: &Page,
    from: u64,
    count: u64,
    blocked_until: &dyn Fn(Range<u64>) -> Option<u64>,
) -> (Option<u64>, bool) {
    let mut blocked = false;
    let mut at = from;
    while let Some(start) = next_bit(page, at, true) {
        let end = next_bit(page, start, false).unwrap_or(BITMAP_PAGES);
        let mut candidate = start;
        while end - candidate >= count {
            match blocked_until(candidate..candidate + count) {
                None => return (Some(candidate), blocked),
                Some(next) => {
                    blocked = true;
                    candidate = next.max(candidate + 1);
                    if candidate > end {
                        break;
                    }
                }
            }
        }
        at = end;
    }
    (None, blocked)
}

/// The first bit with this value from `from` on.
fn next_bit(page: &Page, from: u64, value: bool) -> Option<u64> {
    let mut at = from;
    while at < BITMAP_PAGES {
        let word = read_u64(page, PAGE_HEADER_SIZE + (at / 64) as usize * 8);
        let word = if value { word } else { !word } & (u64::MAX << (at % 64));
        if word != 0 {
            let bit = at / 64 * 64 + u64::from(word.trailing_zeros());
            return (bit < BITMAP_PAGES).then_some(bit);
        }
        at = (at / 64 + 1) * 64;
    }
    None
}

/// Whether the page is free.
pub(crate) fn is_free(pages: &impl Pages, number: PageNumber) -> Result<bool> {
    let Some(bitmap) = bitmap_page(pages, number.0 / BITMAP_PAGES)? else { return Ok(false) };
    let bit = number.0 % BITMAP_PAGES;
    Ok(pages.page(bitmap)?[PAGE_HEADER_SIZE + (bit / 8) as usize] >> (bit % 8) & 1 == 1)
}

/// Calls `f` with each range of free pages, ascending (a range ends where a bitmap page does).
pub(crate) fn each_free(pages: &impl Pages, page_count: u64, mut f: impl FnMut(Range<u64>)) -> Result<()> {
    for at in 0..page_count.div_ceil(BITMAP_PAGES) {
        let Some(bitmap) = bitmap_page(pages, at)? else { continue };
        let page = pages.page(bitmap)?;
        let mut from = 0;
        while let Some(start) = next_bit(page, from, true) {
            from = next_bit(page, start, false).unwrap_or(BITMAP_PAGES);
            f(at * BITMAP_PAGES + start..at * BITMAP_PAGES + from);
        }
    }
    Ok(())
}

/// Calls `f` with each page that the bitmap itself lies in.
pub(crate) fn each_own_page(pages: &impl Pages, mut f: impl FnMut(PageNumber, PageKind)) -> Result<()> {
    for at in 0..root::DIRECTORIES_MAX {
        let directory = root::directory(pages.page(ROOT_PAGE)?, at);
        if !directory.is_some() {
            continue;
        }
        let page = pages.page(directory)?;
        expect_kind(page, directory, PageKind::FreeDirectory)?;
        f(directory, PageKind::FreeDirectory);
        for entry in 0..DIRECTORY_ENTRIES as usize {
            let bitmap = PageNumber(read_u64(page, PAGE_HEADER_SIZE + entry * 8));
            if bitmap.is_some() {
                expect_kind(pages.page(bitmap)?, bitmap, PageKind::FreeBitmap)?;
                f(bitmap, PageKind::FreeBitmap);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::format::PAGE_SIZE;
    use crate::page::header;

    struct Plain(Vec<Box<Page>>, Vec<u128>);

    impl Plain {
        fn new() -> Plain {
            let mut root = Box::new([0; PAGE_SIZE]);
            header::init(&mut root, ROOT_PAGE, PageKind::Root);
            Plain(vec![root], vec![0])
        }
    }

    impl Pages for Plain {
        fn page(&self, number: PageNumber) -> Result<&Page> {
            Ok(&self.0[number.0 as usize])
        }
        fn run(&self, _: PageNumber) -> Result<&[u8]> {
            Ok(&[])
        }
    }

    impl SpacePages for Plain {
        fn space_page_mut(&mut self, number: PageNumber) -> Result<PageMut<'_>> {
            let at = number.0 as usize;
            Ok(PageMut::new(&mut self.0[at], &mut self.1[at]))
        }
        fn append_page(&mut self, kind: PageKind) -> Result<PageNumber> {
            let number = PageNumber(self.0.len() as u64);
            let mut page = Box::new([0; PAGE_SIZE]);
            header::init(&mut page, number, kind);
            self.0.push(page);
            self.1.push(0);
            Ok(number)
        }
    }

    fn free_of(p: &Plain, count: u64) -> Vec<Range<u64>> {
        let mut all = Vec::new();
        each_free(p, count, |r| all.push(r)).unwrap();
        all
    }

    #[test]
    fn runs_come_back_as_they_went() {
        let (mut p, mut h) = (Plain::new(), FreeHints::default());
        let count = 2 * BITMAP_PAGES;
        give_back(&mut p, &mut h, PageNumber(100), 50).unwrap();
        give_back(&mut p, &mut h, PageNumber(BITMAP_PAGES - 3), 6).unwrap();
        assert!(is_free(&p, PageNumber(149)).unwrap() && !is_free(&p, PageNumber(150)).unwrap());
        assert_eq!(take(&mut p, &mut h, count, 51, &|_| None).unwrap(), None);
        assert_eq!(take(&mut p, &mut h, count, 10, &|_| None).unwrap(), Some(PageNumber(100)));
        assert_eq!(take(&mut p, &mut h, count, 1, &|_| None).unwrap(), Some(PageNumber(110)));
        assert_eq!(take(&mut p, &mut h, count, 39, &|_| None).unwrap(), Some(PageNumber(111)));
        assert_eq!(take(&mut p, &mut h, count, 3, &|_| None).unwrap(), Some(PageNumber(BITMAP_PAGES - 3)));
        assert_eq!(take(&mut p, &mut h, count, 1, &|_| None).unwrap(), Some(PageNumber(BITMAP_PAGES)));
        assert_eq!(free_of(&p, count), std::slice::from_ref(&(BITMAP_PAGES + 1..BITMAP_PAGES + 3)));
        for page in &p.0[1..] {
            if kind(&page[..]) == Some(PageKind::FreeBitmap) {
                crate::page::bitmap::validate(page).unwrap();
            }
        }
        give_back(&mut p, &mut h, PageNumber(BITMAP_PAGES + 1), 1).unwrap_err();
    }

    #[test]
    fn blocked_pages_are_passed_over() {
        let (mut p, mut h) = (Plain::new(), FreeHints::default());
        give_back(&mut p, &mut h, PageNumber(10), 20).unwrap();
        let blocked = |r: Range<u64>| (r.start <= 15 && r.end > 15).then_some(16);
        assert_eq!(take(&mut p, &mut h, 100, 8, &blocked).unwrap(), Some(PageNumber(16)));
        assert_eq!(take(&mut p, &mut h, 100, 8, &blocked).unwrap(), None);
        assert_eq!(take(&mut p, &mut h, 100, 6, &|_| None).unwrap(), Some(PageNumber(10)));
    }

    #[test]
    fn singles_after_the_hint_and_before_it() {
        let (mut p, mut h) = (Plain::new(), FreeHints::default());
        give_back(&mut p, &mut h, PageNumber(800), 2).unwrap();
        assert_eq!(take(&mut p, &mut h, 1000, 1, &|_| None).unwrap(), Some(PageNumber(800)));
        assert_eq!(take(&mut p, &mut h, 1000, 1, &|_| None).unwrap(), Some(PageNumber(801)));
        assert_eq!(take(&mut p, &mut h, 1000, 1, &|_| None).unwrap(), None);
        give_back(&mut p, &mut h, PageNumber(3), 1).unwrap();
        assert_eq!(take(&mut p, &mut h, 1000, 1, &|_| None).unwrap(), Some(PageNumber(3)));
    }
}
