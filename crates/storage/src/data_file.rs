//! The data file: where flushed pages live, mapped for reading and written page by page.
//!
//! The map is made larger than the file, so that the file grows underneath it; when the file outgrows it, a larger map is added
//! and the old one stays until the environment is gone, because slices may point into it.
//!
//! Pages come from disk unproven: the first access to each verifies number, checksum and structure and marks it in a
//! bitmap. Pages that this process wrote need no proof.
//!
//! Callers may rely on: [`DataFile::page`] returns bytes that do not change while a snapshot that resolves the page to the
//! file is pinned, because the flusher writes a page only when no pinned snapshot sees its older state.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::disk::{Disk, File, Mapping, OpenMode, is_full};
use crate::error::{Error, Result};
use crate::format::{PAGE_HEADER_SIZE, PAGE_SIZE, PageNumber, read_u64};
use crate::page::header::{self, PageKind};
use crate::page::{self, Page};

/// The file's name.
pub(crate) const NAME: &str = "data";

/// The file grows by half, but by at least this many bytes …
const GROWTH_MIN: u64 = 256 << 10;
/// … and at most this many.
const GROWTH_MAX: u64 = 64 << 20;

/// Pages in a block of the verified bitmap.
const BLOCK_PAGES: usize = 1 << 20;
const BLOCK_WORDS: usize = BLOCK_PAGES / 64;
const BLOCKS_MAX: usize = (crate::snapshot::page_table::PAGES_MAX as usize).div_ceil(BLOCK_PAGES);

/// A value longer than this is announced to the system before its first reading: the map has no read-ahead of its own.
const WILL_NEED_MIN: usize = 64 << 10;

/// See the module's header.
pub(crate) struct DataFile {
    file: Arc<dyn File>,
    path: PathBuf,
    base: AtomicPtr<u8>,
    reserve: AtomicUsize,
    maps: Mutex<Vec<Arc<dyn Mapping>>>,
    /// Bytes of the file.
    length: AtomicU64,
    verified: Box<[AtomicPtr<[AtomicU64; BLOCK_WORDS]>]>,
}

impl DataFile {
    /// Opens the file and maps it.
    pub(crate) fn open(disk: &Arc<dyn Disk>, mode: OpenMode, reserve: u64) -> Result<DataFile> {
        let path = disk.path().join(NAME);
        let file = disk.open(NAME, mode).map_err(|e| Error::io("open", &path, e))?;
        let length = file.len().map_err(|e| Error::io("read the length of", &path, e))?;
        let data = DataFile {
            file,
            path,
            base: AtomicPtr::new(std::ptr::null_mut()),
            reserve: AtomicUsize::new(0),
            maps: Mutex::default(),
            length: AtomicU64::new(length),
            verified: (0..BLOCKS_MAX).map(|_| AtomicPtr::default()).collect(),
        };
        data.map(reserve.max(length) as usize)?;
        Ok(data)
    }

    pub(crate) fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Bytes of the file.
    pub(crate) fn len(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    fn map(&self, reserve: usize) -> Result<()> {
        let mut maps = self.maps.lock();
        if reserve <= self.reserve.load(Ordering::Acquire) {
            return Ok(());
        }
        let reserve = reserve.next_multiple_of(PAGE_SIZE);
        let map = self.file.map(reserve).map_err(|e| Error::io("map", &self.path, e))?;
        self.base.store(map.base().cast_mut(), Ordering::Release);
        self.reserve.store(reserve, Ordering::Release);
        maps.push(map);
        Ok(())
    }

    /// Makes the file at least `pages` long, with blocks, and mapped.
    ///
    /// Errors: the disk is full; nothing has changed then.
    pub(crate) fn ensure_pages(&self, pages: u64) -> Result<()> {
        let needed = pages * PAGE_SIZE as u64;
        let length = self.len();
        if needed <= length {
            return Ok(());
        }
        let generous = (length + (length / 2).clamp(GROWTH_MIN, GROWTH_MAX)).max(needed);
        let mut grown = generous;
        let mut result = self.file.allocate(grown);
        if result.as_ref().is_err_and(is_full) && needed < generous {
            grown = needed; // perhaps just what is needed still fits
            result = self.file.allocate(grown);
        }
        result.map_err(|source| {
            if is_full(&source) {
                let what = self.path.display().to_string();
                return Error::DiskFull { what, bytes: needed - length, source };
            }
            Error::io("grow", &self.path, source)
        })?;
        if grown as usize > self.reserve.load(Ordering::Acquire) {
            self.map((grown as usize).saturating_mul(4))?;
        }
        self.length.store(grown, Ordering::Release);
        Ok(())
    }

    /// Cuts the file to this many pages. The caller knows that nobody reads beyond.
    pub(crate) fn truncate_pages(&self, pages: u64) -> Result<()> {
        let length = pages * PAGE_SIZE as u64;
        if length < self.len() {
            self.file.truncate(length).map_err(|e| Error::io("shorten", &self.path, e))?;
            self.length.store(length, Ordering::Release);
        }
        Ok(())
    }

    /// Whether the page lies inside the file.
    fn holds(&self, number: PageNumber, size: usize) -> bool {
        number.0 < crate::snapshot::page_table::PAGES_MAX && number.offset() + size as u64 <= self.len()
    }

    fn bytes(&self, number: PageNumber, size: usize) -> &[u8] {
        debug_assert!(self.holds(number, size));
        // The length was read before (`holds`): a map that covers it is in `base` by now.
        let base = self.base.load(Ordering::Acquire);
        // SAFETY: the range lies inside the file and the map, which live as long as `self`; the flusher does not write what a
        // pinned snapshot resolves to the file (see the module's header).
        unsafe { std::slice::from_raw_parts(base.add(number.offset() as usize), size) }
    }

    fn raw_page(&self, number: PageNumber) -> Result<&Page> {
        if !self.holds(number, PAGE_SIZE) {
            let reason = format!("it lies beyond the end of {} ({} bytes)", self.path.display(), self.len());
            return Err(Error::damaged(number, reason));
        }
        let bytes = self.bytes(number, PAGE_SIZE);
        bytes.try_into().map_err(|_| Error::damaged(number, "short"))
    }

    /// The page, verified at its first access.
    #[inline]
    pub(crate) fn page(&self, number: PageNumber) -> Result<&Page> {
        let page = self.raw_page(number)?;
        if !self.is_verified(number) {
            self.verify(number, page)?;
        }
        Ok(page)
    }

    /// The page's bytes as they are: the base of a recovery, or an inner page of a run.
    pub(crate) fn page_unverified(&self, number: PageNumber) -> Result<&Page> {
        self.raw_page(number)
    }

    /// The value of the run that starts at `number`, verified at its first access.
    pub(crate) fn run(&self, number: PageNumber) -> Result<&[u8]> {
        let page = self.page(number)?;
        if header::kind(page) != Some(PageKind::Overflow) {
            return Err(Error::damaged(number, "a value's run is expected to start here"));
        }
        let length = read_u64(page, header::RUN_LENGTH_AT) as usize; // inside the file: checked by `verify`
        Ok(&self.bytes(number, PAGE_HEADER_SIZE + length)[PAGE_HEADER_SIZE..])
    }

    /// The map of the whole file. Hints are given through it without the lock, because they may wait for the system.
    fn newest_map(&self) -> Option<Arc<dyn Mapping>> {
        self.maps.lock().last().cloned()
    }

    /// Asks the system to read these pages, which ascend, ahead. Those of them that live in memory alone do no harm.
    pub(crate) fn will_need(&self, numbers: &[PageNumber]) {
        let Some(map) = self.newest_map() else { return };
        for run in numbers.chunk_by(|left, right| left.0 + 1 == right.0) {
            if let Some(first) = run.first().filter(|first| self.holds(**first, PAGE_SIZE)) {
                map.will_need(first.offset() as usize, run.len() * PAGE_SIZE);
            }
        }
    }

    #[cold]
    fn verify(&self, number: PageNumber, page: &Page) -> Result<()> {
        let found = header::number(page);
        if found != number {
            return Err(Error::damaged(number, format!("it carries the number {found}")));
        }
        let mut bytes: &[u8] = page;
        if header::kind(page) == Some(PageKind::Overflow) {
            let length = read_u64(page, header::RUN_LENGTH_AT);
            let size = length.saturating_add(PAGE_HEADER_SIZE as u64);
            if length > crate::format::VALUE_SIZE_MAX || !self.holds(number, size as usize) {
                return Err(Error::damaged(
                    number,
                    format!("its run of {length} bytes ends beyond the file"),
                ));
            }
            if size as usize > WILL_NEED_MIN
                && let Some(map) = self.newest_map()
            {
                map.will_need(number.offset() as usize, size as usize);
            }
            bytes = self.bytes(number, size as usize);
        }
        let (stored, computed) = (header::stored_checksum(bytes), header::checksum(bytes));
        if stored != computed {
            return Err(Error::damaged(
                number,
                format!("its checksum is {stored:016x}, its bytes give {computed:016x}"),
            ));
        }
        page::validate(number, page)?;
        self.set_verified(number);
        Ok(())
    }

    /// Verifies the page (or whole run) as it is now, also when it was before.
    pub(crate) fn verify_again(&self, number: PageNumber) -> Result<()> {
        let page = self.raw_page(number)?;
        self.verify(number, page)
    }

    fn is_verified(&self, number: PageNumber) -> bool {
        let at = number.0 as usize;
        let block = self.verified[at / BLOCK_PAGES].load(Ordering::Acquire);
        // SAFETY: a block is set once, from `Box::into_raw`, and freed with `self`.
        unsafe { block.as_ref() }
            .is_some_and(|b| b[at % BLOCK_PAGES / 64].load(Ordering::Relaxed) >> (at % 64) & 1 == 1)
    }

    /// The page needs no verification (any more).
    pub(crate) fn set_verified(&self, number: PageNumber) {
        let at = number.0 as usize;
        let slot = &self.verified[at / BLOCK_PAGES];
        let mut block = slot.load(Ordering::Acquire);
        if block.is_null() {
            // SAFETY: zero bytes are a zero in an `AtomicU64`.
            let fresh = Box::into_raw(unsafe { Box::<[AtomicU64; BLOCK_WORDS]>::new_zeroed().assume_init() });
            block =
                match slot.compare_exchange(std::ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire)
                {
                    Ok(_) => fresh,
                    Err(other) => {
                        // SAFETY: `fresh` lost the race; nobody else knows it.
                        drop(unsafe { Box::from_raw(fresh) });
                        other
                    }
                };
        }
        // SAFETY: see `is_verified`.
        let block = unsafe { &*block };
        block[at % BLOCK_PAGES / 64].fetch_or(1 << (at % 64), Ordering::Relaxed);
    }

    /// Writes bytes of pages; durable after [`DataFile::sync`].
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_at(offset, bytes)
    }

    /// Writes whole aligned blocks around the cache; durable after [`DataFile::sync`].
    pub(crate) fn write_direct(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_direct(offset, bytes)
    }

    pub(crate) fn sync(&self) -> std::io::Result<()> {
        self.file.sync()
    }

    /// Whether writes can bypass the cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.file.is_direct()
    }
}

impl Drop for DataFile {
    fn drop(&mut self) {
        for block in &self.verified {
            let block = block.load(Ordering::Acquire);
            if !block.is_null() {
                // SAFETY: set once from `Box::into_raw`; `&mut self` means that nobody uses it any more.
                drop(unsafe { Box::from_raw(block) });
            }
        }
    }
}
