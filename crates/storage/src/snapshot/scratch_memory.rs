//! Memory for page versions, straight from the operating system, in chunks that live as long as the environment.
//!
//! The first touch of anonymous memory costs a fault for every 4 KiB, so freed frames are used again (last freed first,
//! while they are still in the cache), later chunks ask for huge pages, and only an idle environment gives memory back.
//!
//! Callers may rely on: a frame's address stays valid until the `ScratchMemory` is dropped.

use std::ptr::NonNull;

use parking_lot::Mutex;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::format::PAGE_SIZE;

/// Frames in a chunk: 2 MiB, the size of a huge page.
pub(crate) const CHUNK_FRAMES: usize = if cfg!(loom) { 4 } else { (2 << 20) / PAGE_SIZE };
const CHUNK_SIZE: usize = CHUNK_FRAMES * PAGE_SIZE;
/// The first chunks stay without huge pages, so that a small environment stays small.
const SMALL_CHUNKS: usize = 4;

/// The chunks mapped so far.
#[derive(Default)]
pub(crate) struct ScratchMemory {
    chunks: Mutex<Vec<Chunk>>,
}

struct Chunk(NonNull<u8>);

// SAFETY: a chunk is plain memory that belongs to its `ScratchMemory`; who may write where is decided by the page table.
unsafe impl Send for Chunk {}

impl ScratchMemory {
    /// Maps one more chunk and returns the addresses of its [`CHUNK_FRAMES`] frames' first.
    pub(crate) fn grow(&self) -> std::io::Result<NonNull<u8>> {
        let mut chunks = self.chunks.lock();
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
            if chunks.len() >= SMALL_CHUNKS {
                // A hint; a kernel without huge pages refuses it.
                let _ = rustix::mm::madvise(base.cast(), CHUNK_SIZE, Advice::LinuxHugepage);
            }
            NonNull::new_unchecked(base)
        };
        chunks.push(Chunk(base));
        Ok(base)
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

impl Drop for ScratchMemory {
    fn drop(&mut self) {
        for chunk in self.chunks.get_mut() {
            // SAFETY: the chunk was mapped by `grow` with this size, and whoever used it is gone with the environment.
            let _ = unsafe { rustix::mm::munmap(chunk.0.as_ptr().cast(), CHUNK_SIZE) };
        }
    }
}
