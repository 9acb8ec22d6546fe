//! The only unsafe code of this folder: memory that the system maps. [`FileMap`] shows a file, [`AnonymousMemory`] is lazily
//! committed memory of a fixed size, [`ZeroPages`] a long run of zeros that costs no memory.
//!
//! What callers may rely on: an address handed out stays valid until the value that handed it out is dropped, and the safe methods
//! check their bounds. What callers must see to when they read through a raw address: that the bytes lie inside the file (else the
//! system kills the process with SIGBUS) and that nobody writes them at that moment.

use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};

use parking_lot::Mutex;
use rustix::mm::{self, Advice, MapFlags, ProtFlags};

/// The hardware's page size that ranges given to `madvise` are aligned to. Larger hardware pages make hints fail, which
/// they may.
const HARDWARE_PAGE_SIZE: usize = 4096;

/// A mapped range of addresses, unmapped when dropped.
struct Range {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: a `Range` only owns addresses; it reads and writes nothing by itself.
unsafe impl Send for Range {}
// SAFETY: as above; its methods take `&self` and only compute.
unsafe impl Sync for Range {}

impl Range {
    /// Takes over a fresh mapping of `size` bytes.
    fn new(base: *mut c_void, size: usize) -> io::Result<Range> {
        let base =
            NonNull::new(base.cast::<u8>()).ok_or_else(|| io::Error::other("mmap returned address 0"))?;
        Ok(Range { base, size })
    }

    fn anonymous(size: usize, protection: ProtFlags) -> io::Result<Range> {
        if size == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a mapping must have at least one byte"));
        }
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the system chooses the address (the hint is null), so no existing memory is replaced.
        let base = unsafe { mm::mmap_anonymous(ptr::null_mut(), size, protection, flags) }?;
        Range::new(base, size)
    }

    fn check(&self, offset: usize, size: usize) {
        let fits = offset.checked_add(size).is_some_and(|end| end <= self.size);
        assert!(fits, "bytes {offset}..+{size} lie outside a mapping of {} bytes", self.size);
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: this value owns the range, it was mapped with this size, and whoever borrowed from it is gone by now. Failing
        // would only leak addresses.
        let _ = unsafe { mm::munmap(self.base.as_ptr().cast(), self.size) };
    }
}

/// A file shown in memory, read-only and shared: writes to the file show through.
pub(super) struct FileMap {
    range: Range,
}

impl FileMap {
    /// Maps the first `reserve` bytes of `file`, of which those beyond its end become readable when the file grows. Advised for random
    /// access: read-ahead around a fault only wastes the cache of a tree's scattered pages.
    pub(super) fn new(file: impl AsFd, reserve: usize) -> io::Result<FileMap> {
        if reserve == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a mapping must have at least one byte"));
        }
        // SAFETY: the system chooses the address (the hint is null), so no existing memory is replaced; the mapping is
        // read-only, and reading it through the raw address is the caller's own unsafe act.
        let base = unsafe { mm::mmap(ptr::null_mut(), reserve, ProtFlags::READ, MapFlags::SHARED, file, 0) }?;
        let range = Range::new(base, reserve)?;
        // SAFETY: the range was just mapped with this size; this advice changes no bytes.
        unsafe { mm::madvise(range.base.as_ptr().cast(), reserve, Advice::Random) }?;
        Ok(FileMap { range })
    }

    /// The address of the file's first byte.
    pub(super) fn base(&self) -> *const u8 {
        self.range.base.as_ptr()
    }

    /// Asks the system to read a range ahead. What lies outside the mapping is left out.
    pub(super) fn will_need(&self, offset: usize, length: usize) {
        let start = offset / HARDWARE_PAGE_SIZE * HARDWARE_PAGE_SIZE;
        let end = offset.saturating_add(length).min(self.range.size);
        if start < end {
            // SAFETY: `start..end` lies inside the mapping, and this advice changes no bytes.
            let _ = unsafe {
                mm::madvise(self.range.base.as_ptr().add(start).cast(), end - start, Advice::WillNeed)
            };
        }
    }
}

/// A fixed number of bytes, zero at first, at a stable address; memory is taken only where they are written.
pub(super) struct AnonymousMemory {
    range: Range,
    /// Held while bytes are read or written through the safe methods, so that these never race with each other.
    access: Mutex<()>,
}

impl AnonymousMemory {
    /// Reserves `size` bytes.
    pub(super) fn new(size: usize) -> io::Result<AnonymousMemory> {
        Ok(AnonymousMemory {
            range: Range::anonymous(size, ProtFlags::READ | ProtFlags::WRITE)?,
            access: Mutex::new(()),
        })
    }

    /// The address of the first byte.
    pub(super) fn base(&self) -> *const u8 {
        self.range.base.as_ptr()
    }

    /// Copies `buffer.len()` bytes out. Panics when they lie outside.
    pub(super) fn read(&self, offset: usize, buffer: &mut [u8]) {
        self.range.check(offset, buffer.len());
        let _access = self.access.lock();
        // SAFETY: checked to lie inside the mapping, which is readable; `buffer` is the caller's own; no safe method writes
        // while the guard is held.
        unsafe { ptr::copy_nonoverlapping(self.base().add(offset), buffer.as_mut_ptr(), buffer.len()) }
    }

    /// Copies `bytes` in. Panics when they lie outside.
    pub(super) fn write(&self, offset: usize, bytes: &[u8]) {
        self.range.check(offset, bytes.len());
        let _access = self.access.lock();
        // SAFETY: checked to lie inside the mapping, which is writable; `bytes` cannot overlap it because no reference into the
        // mapping is ever handed out by safe code; no safe method reads or writes while the guard is held.
        unsafe { ptr::copy(bytes.as_ptr(), self.range.base.as_ptr().add(offset), bytes.len()) }
    }

    /// Sets `size` bytes to zero. Panics when they lie outside.
    pub(super) fn zero(&self, offset: usize, size: usize) {
        self.range.check(offset, size);
        let _access = self.access.lock();
        // SAFETY: checked to lie inside the mapping, which is writable; no safe method reads or writes while the guard is held.
        unsafe { ptr::write_bytes(self.range.base.as_ptr().add(offset), 0, size) }
    }
}

/// A run of zeros that starts at a hardware page, read-only; all of it is the system's one zero page.
pub(super) struct ZeroPages {
    range: Range,
}

impl ZeroPages {
    /// Maps `size` bytes of zeros.
    pub(super) fn new(size: usize) -> io::Result<ZeroPages> {
        Ok(ZeroPages { range: Range::anonymous(size, ProtFlags::READ)? })
    }

    /// The zeros.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the whole range is mapped and readable as long as `self` lives, and nobody can write it: it is mapped
        // read-only.
        unsafe { std::slice::from_raw_parts(self.range.base.as_ptr(), self.range.size) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn anonymous_memory_keeps_what_is_written() {
        let memory = AnonymousMemory::new(64 << 30).unwrap();
        memory.write((64 << 30) - 3, b"end");
        memory.write(10, b"start");
        memory.zero(11, 2);
        let mut buffer = [1; 6];
        memory.read(10, &mut buffer);
        assert_eq!(&buffer, b"s\0\0rt\0");
        memory.read((64 << 30) - 3, &mut buffer[..3]);
        assert_eq!(&buffer[..3], b"end");
    }

    #[test]
    #[should_panic(expected = "outside a mapping")]
    fn anonymous_memory_checks_its_bounds() {
        AnonymousMemory::new(4096).unwrap().write(4095, b"xy");
    }

    #[test]
    fn zero_pages_are_zero_and_aligned() {
        let zeros = ZeroPages::new(1 << 20).unwrap();
        assert_eq!(zeros.bytes().len(), 1 << 20);
        assert!(zeros.bytes().iter().all(|&b| b == 0));
        assert_eq!(zeros.bytes().as_ptr().addr() % HARDWARE_PAGE_SIZE, 0);
    }
}
