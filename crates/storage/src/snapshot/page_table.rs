//! The page table: from a page number to the versions of that page in scratch memory.
//!
//! ```text
//!  page number ─► entry ─► version t9 ─► version t7 ─► (nothing: the mapped file)
//! ```
//! A two-level array indexed by page number holds a link to the newest version; each version links to the one before. A
//! reader whose snapshot is `id` takes the first version whose transaction is not newer than `id`, and the mapped
//! file when there is none. Readers take no lock and write nothing.
//!
//! Who changes what:
//! - The one write transaction *pushes*: it puts a version of its own (id not yet visible) on top, by compare-and-swap on the entry.
//! - Under the `chains` lock, versions are *unlinked*: superseded ones once a commit is visible ([`PageTable::prune`]), those that the
//!   data file holds by now ([`PageTable::unlink_flushed`]), and the writer's own on rollback ([`PageTable::pop`]).
//!
//! Why a reader never sees a version's memory used for something else:
//! 1. *Superseded*: a version is recycled at once when no pinned id lies in `[its id, id of the next newer)`. A reader returns a version only
//!    when its id is not newer than the pin and no newer one qualifies, which is exactly a pin in that range. While *passing* a version
//!    a reader may find it recycled under its feet: then the version's transaction is newer than any pin (the writer stamped it before
//!    linking it) and the reader checks that the link it came by is unchanged (links carry the version's tag, which changes at each
//!    reuse); if not, it starts again from the entry.
//! 2. *Flushed*: readers with pins in range may hold the version while it is unlinked, so it is *retired*: recycled when everybody active at
//!    the unlinking has gone. Those who come later find the link gone and read the mapped file.

use std::ptr::NonNull;

use super::readers::{Active, Readers};
use super::scratch_memory::{CHUNK_FRAMES, ScratchMemory};
use super::sync::{AtomicPtr, AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering};
use crate::format::{PAGE_SIZE, PageNumber, TransactionId};
use crate::page::Page;

/// Entries in a segment of the table: 256 KiB of memory for 256 MiB of data file.
const SEGMENT_ENTRIES: usize = if cfg!(loom) { 4 } else { 32 << 10 };
/// Segments: 16 TiB of data file.
const SEGMENTS_MAX: usize = if cfg!(loom) { 2 } else { 64 << 10 };
/// Versions in a block.
const BLOCK_VERSIONS: usize = if cfg!(loom) { 8 } else { 4096 };
/// Blocks: 67 million versions, 512 GiB of scratch memory.
const BLOCKS_MAX: usize = if cfg!(loom) { 2 } else { 16 << 10 };

/// The first page number that the table cannot hold.
pub(crate) const PAGES_MAX: u64 = (SEGMENT_ENTRIES * SEGMENTS_MAX) as u64;

/// A link to a version: its index + 1 in the low half, its tag in the high half; 0 is no link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link(u64);

impl Link {
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The version's index: below how many versions were ever made.
    pub(crate) fn index(self) -> usize {
        (self.0 as u32 - 1) as usize
    }
}

/// One version of one page.
struct Version {
    /// The transaction that wrote it.
    transaction: AtomicU64,
    /// The link to the next older version of the page.
    previous: AtomicU64,
    /// The bytes: a frame of scratch memory, or a run's own allocation; dangling for a tombstone.
    address: AtomicPtr<u8>,
    /// How many bytes: a page, a whole run, or 0: the page was freed (a tombstone).
    size: AtomicU64,
    /// The transaction that made the page, when all its bytes come from records since then; 0 when some come from the data file.
    born: AtomicU64,
    /// Changes at each reuse.
    tag: AtomicU32,
}

/// What a version is, and so which free list it returns to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// One page in a frame of scratch memory; also a run that fits into one page.
    Page,
    /// An overflow run of this many bytes, header included: more than a page.
    Run(usize),
    /// Nothing: the page is free from this version on.
    Tombstone,
}

/// A version found for a reader.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(crate) link: Link,
    pub(crate) address: NonNull<u8>,
    /// Bytes at `address`; 0 for a tombstone.
    pub(crate) size: usize,
    pub(crate) transaction: TransactionId,
}

#[derive(Default)]
struct Free {
    /// Versions with a frame, last freed last.
    pages: Vec<u32>,
    /// Versions with a frame whose memory was given back.
    cold: Vec<u32>,
    /// Versions without memory: for runs and tombstones.
    bare: Vec<u32>,
    /// Versions made so far.
    count: u32,
}

struct Retired {
    active: Active,
    links: Vec<Link>,
}

/// See the module's header.
pub(crate) struct PageTable {
    segments: Box<[AtomicPtr<Segment>]>,
    blocks: Box<[AtomicPtr<Block>]>,
    memory: ScratchMemory,
    free: Mutex<Free>,
    /// Held by whoever unlinks versions.
    chains: Mutex<()>,
    retired: Mutex<Vec<Retired>>,
    /// Bytes of page frames in use.
    pages_used: AtomicU64,
    /// Bytes of runs in use.
    runs_used: AtomicU64,
}

type Segment = [AtomicU64; SEGMENT_ENTRIES];
type Block = [Version; BLOCK_VERSIONS];

/// Proof that the `chains` lock is held.
pub(crate) struct Chains<'a>(#[expect(dead_code, reason = "held, not used")] MutexGuard<'a, ()>);

/// Arrays of atomics that start as zeros; the system hands out their memory as it is touched.
#[cfg(not(loom))]
mod zeroed {
    use super::{AtomicPtr, AtomicU64};

    pub(super) fn pointers<T>(count: usize) -> Box<[AtomicPtr<T>]> {
        // SAFETY: zero bytes are a null pointer in an `AtomicPtr`.
        unsafe { Box::new_zeroed_slice(count).assume_init() }
    }

    pub(super) fn numbers(count: usize) -> Box<[AtomicU64]> {
        // SAFETY: zero bytes are a zero in an `AtomicU64`.
        unsafe { Box::new_zeroed_slice(count).assume_init() }
    }
}

/// The same where a model checker's atomics are more than their bytes.
#[cfg(loom)]
mod zeroed {
    use super::{AtomicPtr, AtomicU64};

    pub(super) fn pointers<T>(count: usize) -> Box<[AtomicPtr<T>]> {
        (0..count).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect()
    }

    pub(super) fn numbers(count: usize) -> Box<[AtomicU64]> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }
}

impl PageTable {
    /// A table of no versions.
    pub(crate) fn new() -> PageTable {
        PageTable {
            segments: zeroed::pointers(SEGMENTS_MAX),
            blocks: zeroed::pointers(BLOCKS_MAX),
            memory: ScratchMemory::default(),
            free: Mutex::default(),
            chains: Mutex::new(()),
            retired: Mutex::default(),
            pages_used: AtomicU64::new(0),
            runs_used: AtomicU64::new(0),
        }
    }

    /// The version of the page that a snapshot of `id` sees; `None`: the mapped file has it. The caller has `id` pinned.
    #[inline]
    pub(crate) fn find(&self, page: PageNumber, id: TransactionId) -> Option<Found> {
        let entry = self.entry_if_any(page)?;
        let head = Link(entry.load(Ordering::Acquire));
        if head.is_none() {
            return None;
        }
        let version = self.version(head);
        let transaction = version.transaction.load(Ordering::Acquire);
        if transaction <= id.0 {
            return Some(self.found(head, version, transaction)); // rule 1 of the header: needed by this pin, so not recycled
        }
        self.find_older(entry, id)
    }

    /// Follows the chain past versions that are too new. Each step reads the link onward and only then the tag of the version it
    /// stood in: an unchanged tag means that the link was this page's (reuse changes the tag before the link).
    #[cold]
    fn find_older(&self, entry: &AtomicU64, id: TransactionId) -> Option<Found> {
        'again: loop {
            let mut link = Link(entry.load(Ordering::Acquire));
            while !link.is_none() {
                let version = self.version(link);
                let transaction = version.transaction.load(Ordering::Acquire);
                if transaction <= id.0 {
                    return Some(self.found(link, version, transaction));
                }
                let onward = Link(version.previous.load(Ordering::Acquire));
                if version.tag.load(Ordering::Acquire) != link.tag() {
                    continue 'again;
                }
                link = onward;
            }
            return None;
        }
    }

    /// The newest version of the page, for the writer; `None`: the mapped file has it.
    #[inline]
    pub(crate) fn newest(&self, page: PageNumber) -> Option<Found> {
        self.find(page, TransactionId(u64::MAX - 1))
    }

    /// The version that a link stands for, for the writer (who has pushed it).
    pub(crate) fn at(&self, link: Link) -> Found {
        let version = self.version(link);
        self.found(link, version, version.transaction.load(Ordering::Acquire))
    }

    /// The version below `link`, if any, for the writer (who has pushed `link`).
    pub(crate) fn below(&self, link: Link) -> Option<Found> {
        let below = Link(self.version(link).previous.load(Ordering::Acquire));
        if below.is_none() {
            return None;
        }
        Some(self.at(below))
    }

    #[inline]
    fn found(&self, link: Link, version: &Version, transaction: u64) -> Found {
        let address = version.address.load(Ordering::Acquire);
        let size = version.size.load(Ordering::Acquire) as usize;
        let address = NonNull::new(address).unwrap_or(NonNull::dangling());
        Found { link, address, size, transaction: TransactionId(transaction) }
    }

    /// Sets when the page of a version was made: see [`PageTable::born`].
    pub(crate) fn set_born(&self, link: Link, born: TransactionId) {
        self.version(link).born.store(born.0, Ordering::Relaxed);
    }

    /// The transaction that made the version's page, when recovery can build the page from records since then alone; 0 otherwise.
    pub(crate) fn born(&self, link: Link) -> TransactionId {
        TransactionId(self.version(link).born.load(Ordering::Relaxed))
    }

    /// Takes a version from the free lists (or makes one), stamped with the writer's id and not yet linked.
    pub(crate) fn allocate(&self, content: Content, id: TransactionId) -> std::io::Result<Found> {
        let index = {
            let mut free = self.free.lock();
            match content {
                Content::Page => {
                    if free.pages.is_empty() {
                        if let Some(cold) = free.cold.pop() {
                            free.pages.push(cold);
                        } else {
                            self.add_page_versions(&mut free)?;
                        }
                    }
                    free.pages.pop()
                }
                Content::Run(_) | Content::Tombstone => match free.bare.pop() {
                    Some(index) => Some(index),
                    None => Some(self.add_versions(&mut free, 1)?),
                },
            }
        };
        let Some(index) = index else { return Err(std::io::ErrorKind::OutOfMemory.into()) };
        let version = self.version_at(index as usize);
        let tag = version.tag.load(Ordering::Relaxed).wrapping_add(1);
        version.transaction.store(id.0, Ordering::Release);
        version.tag.store(tag, Ordering::Release);
        version.previous.store(0, Ordering::Release);
        version.born.store(0, Ordering::Relaxed);
        let size = match content {
            Content::Page => {
                self.pages_used.fetch_add(PAGE_SIZE as u64, Ordering::Relaxed);
                PAGE_SIZE
            }
            Content::Run(size) => {
                version.address.store(run_memory::allocate(size)?.as_ptr(), Ordering::Release);
                self.runs_used.fetch_add(size as u64, Ordering::Relaxed);
                size
            }
            Content::Tombstone => 0,
        };
        version.size.store(size as u64, Ordering::Release);
        let link = Link(u64::from(tag) << 32 | u64::from(index + 1));
        Ok(self.found(link, version, id.0))
    }

    fn add_page_versions(&self, free: &mut Free) -> std::io::Result<()> {
        let base = self.memory.grow()?;
        self.add_frames(free, base)
    }

    fn add_frames(&self, free: &mut Free, base: NonNull<u8>) -> std::io::Result<()> {
        let first = self.add_versions(free, CHUNK_FRAMES as u32)?;
        // Backwards, so that the frames are handed out by rising address.
        for i in (0..CHUNK_FRAMES).rev() {
            let address = base.as_ptr().wrapping_add(i * PAGE_SIZE);
            self.version_at(first as usize + i).address.store(address, Ordering::Release);
            free.pages.push(first + i as u32);
        }
        Ok(())
    }

    fn add_versions(&self, free: &mut Free, count: u32) -> std::io::Result<u32> {
        let first = free.count;
        let last = (first + count - 1) as usize;
        if last / BLOCK_VERSIONS >= BLOCKS_MAX {
            return Err(std::io::ErrorKind::OutOfMemory.into());
        }
        for block in first as usize / BLOCK_VERSIONS..=last / BLOCK_VERSIONS {
            if self.blocks[block].load(Ordering::Acquire).is_null() {
                let versions: Vec<Version> = (0..BLOCK_VERSIONS)
                    .map(|_| Version {
                        transaction: AtomicU64::new(u64::MAX),
                        previous: AtomicU64::new(0),
                        address: AtomicPtr::new(std::ptr::null_mut()),
                        size: AtomicU64::new(0),
                        born: AtomicU64::new(0),
                        tag: AtomicU32::new(0),
                    })
                    .collect();
                let boxed: Box<[Version]> = versions.into_boxed_slice();
                self.blocks[block].store(Box::into_raw(boxed).cast::<Block>(), Ordering::Release);
            }
        }
        free.count += count;
        Ok(first)
    }

    /// Puts a version on top of the page's chain; whether the chain was empty. Only the write transaction does this.
    pub(crate) fn push(&self, page: PageNumber, link: Link) -> bool {
        let entry = self.entry(page);
        let mut head = entry.load(Ordering::Acquire);
        loop {
            self.version(link).previous.store(head, Ordering::Release);
            // The head changes under us only when the flusher unlinks it.
            match entry.compare_exchange(head, link.0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return head == 0,
                Err(now) => head = now,
            }
        }
    }

    /// Takes the `chains` lock.
    pub(crate) fn chains(&self) -> Chains<'_> {
        Chains(self.chains.lock())
    }

    /// Undoes the newest [`PageTable::push`] of the page and recycles the version, which no reader could see.
    pub(crate) fn pop(&self, page: PageNumber, link: Link, _: &Chains<'_>) {
        let previous = self.version(link).previous.load(Ordering::Acquire);
        self.entry(page).store(previous, Ordering::Release);
        self.recycle([link]);
    }

    /// Unlinks and recycles the page's versions that no snapshot needs, given the pinned ids (ascending) and the newest visible id.
    pub(crate) fn prune(
        &self,
        page: PageNumber,
        pinned: &[u64],
        visible: TransactionId,
        _: &Chains<'_>,
        gone: &mut Vec<Link>,
    ) {
        let mut came_by = self.entry(page);
        let mut newer: Option<u64> = None;
        loop {
            let link = Link(came_by.load(Ordering::Acquire));
            if link.is_none() {
                return;
            }
            let version = self.version(link);
            let transaction = version.transaction.load(Ordering::Acquire);
            // The ids in [transaction, newer) see this version. Is one of them pinned, visible or still to come?
            let needed = match newer {
                None => true,
                Some(newer) if newer > visible.0 => true,
                Some(newer) => {
                    let at = pinned.partition_point(|&p| p < transaction);
                    pinned.get(at).is_some_and(|&p| p < newer)
                }
            };
            if needed {
                newer = Some(transaction);
                came_by = &version.previous;
            } else {
                // The writer may push onto the entry meanwhile, but what is unlinked here is never the head.
                came_by.store(version.previous.load(Ordering::Acquire), Ordering::Release);
                gone.push(link);
            }
        }
    }

    /// Unlinks the version (which the data file holds now) and all older ones; they are added to `gone`, to be retired. Says whether
    /// the chain is empty afterwards.
    pub(crate) fn unlink_flushed(
        &self,
        page: PageNumber,
        link: Link,
        _: &Chains<'_>,
        gone: &mut Vec<Link>,
    ) -> bool {
        let entry = self.entry(page);
        let mut empty = true;
        let mut came_by = entry;
        loop {
            let here = Link(came_by.load(Ordering::Acquire));
            if here.is_none() {
                break; // unlinked already, by a prune since
            }
            if here == link {
                // A push by the writer may come in between when this is the head; then it hangs below the new head.
                if came_by.compare_exchange(link.0, 0, Ordering::AcqRel, Ordering::Acquire).is_err() {
                    came_by = entry;
                    empty = true;
                    continue;
                }
                let mut next = link;
                while !next.is_none() {
                    gone.push(next);
                    next = Link(self.version(next).previous.load(Ordering::Acquire));
                }
                break;
            }
            empty = false;
            came_by = &self.version(here).previous;
        }
        empty && entry.load(Ordering::Acquire) == 0
    }

    /// Whether the page has any version in scratch memory.
    pub(crate) fn is_empty(&self, page: PageNumber) -> bool {
        self.entry_if_any(page).is_none_or(|e| e.load(Ordering::Acquire) == 0)
    }

    /// Recycles versions that nobody can reach.
    pub(crate) fn recycle(&self, links: impl IntoIterator<Item = Link>) {
        let mut free = self.free.lock();
        for link in links {
            let version = self.version(link);
            version.transaction.store(u64::MAX, Ordering::Release);
            match version.size.load(Ordering::Acquire) as usize {
                PAGE_SIZE => {
                    self.pages_used.fetch_sub(PAGE_SIZE as u64, Ordering::Relaxed);
                    free.pages.push(link.index() as u32);
                }
                0 => free.bare.push(link.index() as u32),
                // Runs with an allocation of their own are longer than a page.
                size => {
                    let address = version.address.swap(std::ptr::null_mut(), Ordering::AcqRel);
                    run_memory::free(address, size);
                    self.runs_used.fetch_sub(size as u64, Ordering::Relaxed);
                    free.bare.push(link.index() as u32);
                }
            }
        }
    }

    /// Recycles flushed versions once everyone active now has gone.
    pub(crate) fn retire(&self, links: Vec<Link>, readers: &Readers) {
        if !links.is_empty() {
            self.retired.lock().push(Retired { active: readers.active(), links });
        }
        self.reclaim(readers);
    }

    /// Recycles what was retired and whose readers have gone.
    pub(crate) fn reclaim(&self, readers: &Readers) {
        let mut retired = self.retired.lock();
        retired.retain_mut(|r| {
            let gone = readers.all_gone(&mut r.active);
            if gone {
                self.recycle(r.links.drain(..));
            }
            !gone
        });
    }

    /// Bytes of scratch memory in use: pages and runs.
    pub(crate) fn used(&self) -> u64 {
        self.pages_used.load(Ordering::Relaxed) + self.runs_used.load(Ordering::Relaxed)
    }

    /// Bytes of scratch memory mapped from the system for pages, in use or not.
    pub(crate) fn mapped(&self) -> u64 {
        self.memory.size()
    }

    /// Whether [`PageTable::prepare_memory`] has work to do.
    pub(crate) fn wants_memory(&self) -> bool {
        self.memory.wants_preparing()
    }

    /// Gets memory ready ahead of use, while there is more and more of it in use. For the background.
    pub(crate) fn prepare_memory(&self) -> std::io::Result<()> {
        self.memory.prepare()
    }

    /// Gives the memory of free frames beyond `keep` bytes back to the system.
    pub(crate) fn trim(&self, keep: u64) {
        self.memory.forget_ready();
        let mut free = self.free.lock();
        let keep = (keep / PAGE_SIZE as u64) as usize;
        if free.pages.len() > keep {
            let warm = free.pages.len() - keep;
            // The coldest were freed first.
            let cold: Vec<u32> = free.pages.drain(..warm).collect();
            for &index in &cold {
                if let Some(frame) =
                    NonNull::new(self.version_at(index as usize).address.load(Ordering::Acquire))
                {
                    self.memory.release(frame);
                }
            }
            free.cold.extend(cold);
        }
    }

    fn entry_if_any(&self, page: PageNumber) -> Option<&AtomicU64> {
        let segment = self.segments.get(page.0 as usize / SEGMENT_ENTRIES)?.load(Ordering::Acquire);
        // SAFETY: a segment is set once, from `Box::into_raw`, and freed with `self`.
        unsafe { segment.as_ref() }.map(|s| &s[page.0 as usize % SEGMENT_ENTRIES])
    }

    /// The page's entry; its segment is made when missing. `page` is below [`PAGES_MAX`].
    fn entry(&self, page: PageNumber) -> &AtomicU64 {
        if let Some(entry) = self.entry_if_any(page) {
            return entry;
        }
        let fresh = Box::into_raw(zeroed::numbers(SEGMENT_ENTRIES)).cast::<Segment>();
        let slot = &self.segments[page.0 as usize / SEGMENT_ENTRIES];
        match slot.compare_exchange(std::ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: just made from a box of exactly this length; from now on it belongs to the table.
            Ok(_) => unsafe { &(*fresh)[page.0 as usize % SEGMENT_ENTRIES] },
            Err(other) => {
                // SAFETY: `fresh` lost the race and is known to nobody; `other` is a segment of the table.
                unsafe {
                    drop(Box::from_raw(fresh));
                    &(*other)[page.0 as usize % SEGMENT_ENTRIES]
                }
            }
        }
    }

    fn version(&self, link: Link) -> &Version {
        self.version_at(link.index())
    }

    #[inline]
    fn version_at(&self, index: usize) -> &Version {
        let block = self.blocks[index / BLOCK_VERSIONS].load(Ordering::Acquire);
        // SAFETY: links are made only for versions that exist, whose block is set once and freed with `self`.
        unsafe { &(*block)[index % BLOCK_VERSIONS] }
    }
}

impl Found {
    /// Whether the page is free in this version.
    pub(crate) fn is_tombstone(&self) -> bool {
        self.size == 0
    }

    /// The page's bytes (the first page's, of a run).
    ///
    /// # Safety
    /// The version is no tombstone and stays linked, or its reader pinned, for `'a`.
    pub(crate) unsafe fn page<'a>(&self) -> &'a Page {
        // SAFETY: `address` points to `size` >= PAGE_SIZE bytes that are not written while readers may hold them.
        unsafe { self.address.cast::<Page>().as_ref() }
    }

    /// The page's bytes for writing.
    ///
    /// # Safety
    /// As for [`Found::bytes_mut`]; the version is a page.
    pub(crate) unsafe fn page_mut<'a>(&self) -> &'a mut Page {
        debug_assert_eq!(self.size, PAGE_SIZE);
        // SAFETY: `address` points to PAGE_SIZE bytes that, by the contract, nobody else reads or writes.
        unsafe { self.address.cast::<Page>().as_mut() }
    }

    /// All bytes: the page's, or the whole run's.
    ///
    /// # Safety
    /// As for [`Found::page`].
    pub(crate) unsafe fn bytes<'a>(&self) -> &'a [u8] {
        // SAFETY: see above.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.size) }
    }

    /// The bytes for writing.
    ///
    /// # Safety
    /// The version belongs to the running write transaction, nobody else reads it, and no other borrow of it exists for `'a`.
    pub(crate) unsafe fn bytes_mut<'a>(&self) -> &'a mut [u8] {
        // SAFETY: see above.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), self.size) }
    }
}

impl Drop for PageTable {
    fn drop(&mut self) {
        for block in &self.blocks {
            let block = block.load(Ordering::Acquire);
            if block.is_null() {
                continue;
            }
            // SAFETY: set once from a box of this length; `&mut self` means that no version is in use.
            let versions = unsafe { Box::from_raw(block) };
            for version in versions.iter() {
                let size = version.size.load(Ordering::Acquire) as usize;
                if size > PAGE_SIZE {
                    run_memory::free(version.address.load(Ordering::Acquire), size);
                }
            }
        }
        for segment in &self.segments {
            let segment = segment.load(Ordering::Acquire);
            if !segment.is_null() {
                // SAFETY: as above.
                drop(unsafe { Box::from_raw(segment) });
            }
        }
    }
}

/// Memory of runs: each has an allocation of its own.
mod run_memory {
    use std::alloc::{Layout, alloc, dealloc};
    use std::ptr::NonNull;

    fn layout(size: usize) -> Option<Layout> {
        Layout::from_size_align(size, 64).ok().filter(|l| l.size() != 0)
    }

    /// `size` bytes of memory of any content.
    pub(super) fn allocate(size: usize) -> std::io::Result<NonNull<u8>> {
        let out_of_memory = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        let layout = layout(size).ok_or_else(out_of_memory)?;
        // SAFETY: the layout's size is not zero.
        NonNull::new(unsafe { alloc(layout) }).ok_or_else(out_of_memory)
    }

    /// Frees what `allocate` gave for the same size.
    pub(super) fn free(address: *mut u8, size: usize) {
        if let (Some(layout), false) = (layout(size), address.is_null()) {
            // SAFETY: only called with an address from `allocate` and its size.
            unsafe { dealloc(address, layout) }
        }
    }
}
