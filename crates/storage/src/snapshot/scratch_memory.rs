//! Memory for page versions, straight from the operating system, in chunks that live as long as the environment.
//!
//! The first touch of anonymous memory costs a fault for every 4 KiB, so freed frames are used again (last freed first,
//! while they are still in the cache), later chunks ask for huge pages, and only an idle environment gives memory back. While an environment grows, its
//! background touches the next chunks ahead: on a virtual machine the system takes a millisecond or two for each.
//!
//! Callers may rely on: a frame's address stays valid until the `ScratchMemory` is dropped.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::format::PAGE_SIZE;

/// Frames in a chunk: 2 MiB, the size of a huge page.
pub(crate) const CHUNK_FRAMES: usize = if cfg!(loom) { 4 } else { (2 << 20) / PAGE_SIZE };
const CHUNK_SIZE: usize = CHUNK_FRAMES * PAGE_SIZE;
/// The first chunks stay without huge pages, so that a small environment stays small.
const SMALL_CHUNKS: usize = 4;
/// Chunks touched ahead at most, and for how many new ones each.
const READY_MAX: usize = 4;
const GROWN_FOR_READY: usize = 4;

/// The chunks mapped so far.
#[derive(Default)]
pub(crate) struct ScratchMemory {
    chunks: Mutex<Vec<Chunk>>,
    /// Touched ahead, for [`ScratchMemory::grow`] to hand out.
    ready: Mutex<Vec<Chunk>>,
    ready_count: AtomicUsize,
    /// Chunks handed out, and those of them since memory was last given back.
    used_count: AtomicUsize,
    grown: AtomicUsize,
}

struct Chunk(NonNull<u8>);

// SAFETY: a chunk is plain memory that belongs to its `ScratchMemory`; who may write where is decided by the page table.
unsafe impl Send for Chunk {}

impl ScratchMemory {
    /// Adds a chunk and returns the address of the first of its [`CHUNK_FRAMES`] frames.
    pub(crate) fn grow(&self) -> std::io::Result<NonNull<u8>> {
        let ready = self.ready.lock().pop();
        let chunk = match ready {
            Some(chunk) => {
                self.ready_count.fetch_sub(1, Ordering::Relaxed);
                chunk
            }
            None => map_chunk(self.used_count.load(Ordering::Relaxed) >= SMALL_CHUNKS)?,
        };
        let base = chunk.0;
        self.chunks.lock().push(chunk);
        self.used_count.fetch_add(1, Ordering::Relaxed);
        self.grown.fetch_add(1, Ordering::Relaxed);
        Ok(base)
    }

    /// Whether [`ScratchMemory::prepare`] has work to do.
    pub(crate) fn wants_preparing(&self) -> bool {
        let wanted = (self.grown.load(Ordering::Relaxed) / GROWN_FOR_READY).min(READY_MAX);
        self.ready_count.load(Ordering::Relaxed) < wanted
    }

    /// Maps and touches chunks ahead of use. For the background.
    pub(crate) fn prepare(&self) -> std::io::Result<()> {
        while self.wants_preparing() {
            let chunk = map_chunk(true)?;
            // SAFETY: nobody else knows the chunk yet. A hint; a kernel that does not know it refuses.
            let _ = unsafe {
                rustix::mm::madvise(chunk.0.as_ptr().cast(), CHUNK_SIZE, Advice::LinuxPopulateWrite)
            };
            self.ready.lock().push(chunk);
            self.ready_count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives chunks back that were touched ahead.
    pub(crate) fn forget_ready(&self) {
        self.grown.store(0, Ordering::Relaxed);
        let mut ready = self.ready.lock();
        self.ready_count.fetch_sub(ready.len(), Ordering::Relaxed);
        ready.clear();
    }

    /// Bytes mapped so far.
    pub(crate) fn size(&self) -> u64 {
        (self.chunks.lock().len() * CHUNK_SIZE) as u64
    }

    /// Gives a free frame's memory back to the system; it reads as zeros when used again.
    pub(crate) fn release(&self, frame: NonNull<u8>) {
        // SAFETY: the caller holds the frame on its free list, so nobody reads or writes it; the range is one frame of a chunk.
        let _ = unsafe { rustix::mm::madvise(frame.as_ptr().cast(), PAGE_SIZE, Advice::LinuxDontNeed) };
    }
}

/// Maps a chunk at a multiple of its size.
fn map_chunk(is_huge: bool) -> std::io::Result<Chunk> {
    // Twice the size, so that an aligned chunk is inside; the rest is given back.
    // SAFETY: a fresh private anonymous mapping at an address the kernel chooses touches nobody's memory.
    let whole = unsafe {
        rustix::mm::mmap_anonymous(
            std::ptr::null_mut(),
            2 * CHUNK_SIZE,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )
    }?
    .cast::<u8>();
    let skip = whole.align_offset(CHUNK_SIZE);
    // SAFETY: both ranges lie inside the mapping made above, outside the chunk that is kept, and nobody knows them yet.
    let base = unsafe {
        let base = whole.add(skip);
        if skip != 0 {
            rustix::mm::munmap(whole.cast(), skip)?;
        }
        rustix::mm::munmap(base.add(CHUNK_SIZE).cast(), CHUNK_SIZE - skip)?;
        if is_huge {
            // A hint; a kernel without huge pages refuses it.
            let _ = rustix::mm::madvise(base.cast(), CHUNK_SIZE, Advice::LinuxHugepage);
        }
        NonNull::new_unchecked(base)
    };
    Ok(Chunk(base))
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `map_chunk` with this size. Chunks in use are dropped with the environment, with which whoever used them
        // is gone; of those that are ready nobody knows.
        let _ = unsafe { rustix::mm::munmap(self.0.as_ptr().cast(), CHUNK_SIZE) };
    }
}
