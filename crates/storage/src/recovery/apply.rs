//! Applies batches of journal entries to versions in scratch memory, and verifies what came out.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::batch::{Batch, Record};
use crate::data_file::DataFile;
use crate::error::{Error, Result};
use crate::format::{PAGE_HEADER_SIZE, PAGE_SIZE, PageNumber, TransactionId, read_u16};
use crate::journal::changes::{self, Entry};
use crate::page::header::{self, PageKind};
use crate::page::{self, Page};
use crate::snapshot::page_table::{Content, Found, PageTable};
use crate::transaction::write::run_length;

/// Groups that a thread takes at a time.
const GROUPS_TAKEN: usize = 64;
/// Pages validated by one thread at least.
const VALIDATE_SHARE_MIN: usize = 1024;

/// Bytes of the processor's cache lines.
const LINE: usize = 64;
/// Of each page so many bytes are fetched ahead: from its start, and before its cells.
const SLOTS_FETCHED: usize = 6 * LINE;
const CELLS_FETCHED: usize = 16 * LINE;

/// Where entries are applied.
pub(super) struct Applier<'a> {
    pub(super) data: &'a DataFile,
    pub(super) table: &'a PageTable,
}

/// What a page holds before its bytes are put into it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// What recovery has of it, else what the data file has.
    Old,
    Zeros,
    /// Everything will be overwritten.
    Any,
}

/// The work on one batch, which several threads share.
pub(super) struct Work<'a> {
    applier: &'a Applier<'a>,
    batch: &'a Batch,
    /// The first group that nobody has taken.
    next: AtomicUsize,
    failed: Mutex<Option<Error>>,
    /// The pages that got a version.
    pages: Mutex<Vec<PageNumber>>,
}

impl<'a> Work<'a> {
    pub(super) fn new(applier: &'a Applier<'a>, batch: &'a Batch) -> Work<'a> {
        let (failed, pages) = (Mutex::new(None), Mutex::new(Vec::new()));
        Work { applier, batch, next: AtomicUsize::new(0), failed, pages }
    }

    /// Applies groups until none is left.
    pub(super) fn share(&self) {
        let (mut pages, mut fetched) = (Vec::new(), Vec::new());
        loop {
            let first = self.next.fetch_add(GROUPS_TAKEN, Ordering::Relaxed);
            if first >= self.batch.groups() {
                break;
            }
            let taken = first..(first + GROUPS_TAKEN).min(self.batch.groups());
            self.batch.touch(taken.clone());
            self.applier.fetch(self.batch.pages(taken.clone()), &mut fetched);
            for group in taken {
                for (record, entry) in self.batch.group(group) {
                    if let Err(error) = self.applier.apply(record, entry, &mut pages) {
                        self.failed.lock().get_or_insert(error);
                        self.next.store(self.batch.groups(), Ordering::Relaxed);
                        return;
                    }
                }
            }
        }
        self.pages.lock().append(&mut pages);
    }

    /// When all shares are done: adds the pages that got a version to `pages`.
    pub(super) fn finish(self, pages: &mut Vec<PageNumber>) -> Result<()> {
        pages.append(&mut self.pages.into_inner());
        self.failed.into_inner().map_or(Ok(()), Err)
    }
}

impl<'a> Applier<'a> {
    /// Looks at what changes touch first of these pages, which no other thread may change: one after the other each change would wait
    /// for memory several times, together they wait once.
    fn fetch(&self, pages: impl Iterator<Item = PageNumber>, found: &mut Vec<Found>) {
        found.clear();
        found.extend(pages.filter_map(|number| self.table.newest(number)).filter(|v| v.size == PAGE_SIZE));
        let mut sum = 0_u8;
        for version in found.iter() {
            // SAFETY: only the thread that applies the page's group changes it, and that is this one.
            let page = unsafe { version.page() };
            // The header and the first slots, and where the last cells were put.
            let cells = (read_u16(page, header::UPPER_AT) as usize).saturating_sub(CELLS_FETCHED);
            let places = (0..SLOTS_FETCHED).step_by(LINE).chain((cells..cells + CELLS_FETCHED).step_by(LINE));
            sum = places.fold(sum, |sum, at| sum.wrapping_add(page.get(at).copied().unwrap_or_default()));
        }
        std::hint::black_box(sum);
    }

    fn apply(
        &self,
        record: &Record,
        entry: Result<Entry<'_>, String>,
        pages: &mut Vec<PageNumber>,
    ) -> Result<()> {
        let id = record.transaction;
        // In what follows a page is borrowed for one entry, and only by the thread that applies its group.
        match entry.map_err(|reason| record.damaged(reason))? {
            Entry::Page { number, new, pieces } => {
                let start = if new { Start::Zeros } else { Start::Old };
                // SAFETY: the entry's only page.
                pieces.apply(unsafe { self.page(number, start, id, pages) }?);
            }
            Entry::Moved { number, moves, pieces } => {
                // SAFETY: the entry's only page.
                let page = unsafe { self.exact_page(number, record) }?;
                moves.apply(page);
                pieces.apply(page);
            }
            Entry::Derived { number, source, block } => {
                let copy;
                // SAFETY: two pages, or the borrow ends with the copy.
                let mut dictionary = &*unsafe { self.exact_page(source, record) }?;
                fetch_whole(dictionary);
                if source == number {
                    copy = *dictionary;
                    dictionary = &copy;
                }
                // SAFETY: see above.
                let page = unsafe { self.page(number, Start::Any, id, pages) }?;
                let derived = changes::derive(block, dictionary, page);
                derived.map_err(|reason| record.damaged(reason))?;
            }
            Entry::Run { number, bytes } => {
                let length = (bytes.len() as u64).saturating_sub(PAGE_HEADER_SIZE as u64);
                let sound = bytes.len() > PAGE_HEADER_SIZE
                    && header::kind(bytes) == Some(PageKind::Overflow)
                    && run_length(bytes) == length
                    && header::number(bytes) == number;
                if !sound {
                    return Err(record.damaged(format!("the run at page {number} is none")));
                }
                self.forget(number, header::run_pages(length));
                let content =
                    if bytes.len() <= PAGE_SIZE { Content::Page } else { Content::Run(bytes.len()) };
                let version = self.table.allocate(content, id).map_err(out_of_memory)?;
                // SAFETY: just made, and no reader exists yet.
                let memory = unsafe { version.bytes_mut() };
                memory[..bytes.len()].copy_from_slice(bytes);
                memory[bytes.len()..].fill(0);
                self.table.push(number, version.link);
                pages.push(number);
            }
            Entry::Free { number } => self.forget(number, 1),
            Entry::Direct { number, pages } => self.forget(number, pages),
        }
        Ok(())
    }

    /// The page's version for changing, beginning with `start`.
    ///
    /// # Safety
    /// No other borrow of the page exists, in this thread or another.
    unsafe fn page(
        &self,
        number: PageNumber,
        start: Start,
        id: TransactionId,
        pages: &mut Vec<PageNumber>,
    ) -> Result<&'a mut Page> {
        if let Some(version) = self.table.newest(number).filter(|version| version.size == PAGE_SIZE) {
            // SAFETY: by the contract.
            let page = unsafe { version.page_mut() };
            if start == Start::Zeros {
                page.fill(0);
            }
            return Ok(page);
        }
        self.forget(number, 1);
        let version = self.table.allocate(Content::Page, id).map_err(out_of_memory)?;
        // SAFETY: just made.
        let page = unsafe { version.page_mut() };
        // The base may be torn or newer than the record: all that differs is in the records that follow.
        match self.data.page_unverified(number) {
            Ok(base) if start == Start::Old => page.copy_from_slice(base),
            _ if start == Start::Any => {}
            _ => page.fill(0),
        }
        self.table.push(number, version.link);
        pages.push(number);
        Ok(page)
    }

    /// A page that earlier records made.
    ///
    /// # Safety
    /// As for [`Applier::page`].
    unsafe fn exact_page(&self, number: PageNumber, record: &Record) -> Result<&'a mut Page> {
        match self.table.newest(number) {
            // SAFETY: by the contract.
            Some(version) if version.size == PAGE_SIZE => Ok(unsafe { version.page_mut() }),
            _ => Err(record.damaged(format!("it builds on page {number}, which no record has made"))),
        }
    }

    /// Drops what recovery has of these pages.
    fn forget(&self, number: PageNumber, count: u64) {
        for page in (number.0..number.0 + count).map(PageNumber) {
            if let Some(version) = self.table.newest(page) {
                self.table.pop(page, version.link, &self.table.chains());
            }
        }
    }

    /// Verifies the recovered pages, in `threads` threads: they are built on bytes that nobody has verified.
    pub(super) fn validate(&self, pages: &[PageNumber], threads: usize) -> Result<()> {
        let share = pages.len().div_ceil(threads).max(VALIDATE_SHARE_MIN);
        std::thread::scope(|scope| {
            let shares: Vec<_> = pages.chunks(share).collect();
            let (last, others) =
                shares.split_last().map_or((&[][..], &[][..]), |(last, others)| (*last, others));
            let others: Vec<_> =
                others.iter().map(|share| scope.spawn(|| self.validate_all(share))).collect();
            let mut result = self.validate_all(last);
            for other in others {
                let other = other
                    .join()
                    .unwrap_or_else(|_| Err(Error::Invalid("validating pages failed".to_owned())));
                result = result.and(other);
            }
            result
        })
    }

    fn validate_all(&self, pages: &[PageNumber]) -> Result<()> {
        for &number in pages {
            if let Some(version) = self.table.newest(number) {
                // SAFETY: recovery alone uses the table, and nothing changes any more.
                let bytes = unsafe { version.page() };
                fetch_whole(bytes);
                let found = header::number(bytes);
                if found != number {
                    return Err(Error::damaged(
                        number,
                        format!("after recovery it carries the number {found}"),
                    ));
                }
                page::validate(number, bytes)?;
            }
        }
        Ok(())
    }
}

/// Looks at a byte of each of the page's cache lines, so that they are fetched side by side and not in the order of what is in it.
fn fetch_whole(page: &Page) {
    std::hint::black_box(page.iter().step_by(LINE).fold(0_u8, |sum, byte| sum.wrapping_add(*byte)));
}

fn out_of_memory(source: std::io::Error) -> Error {
    Error::io("take scratch memory for", "recovery", source)
}
