//! All access to files goes through these traits: [`Disk`] names files, [`File`] reads and writes one. [`real`] is the
//! operating system; [`simulated`] keeps files in memory, loses what was not synced when told to crash, and fails on
//! a schedule. One conformance suite holds both to the same behaviour.
//!
//! Paths are relative to the environment's directory, with `/` between parts.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(test)]
mod conformance;
mod memory_map;
pub mod real;
pub mod simulated;

pub use real::RealDisk;
pub use simulated::SimulatedDisk;

/// The multiple that offset, length and address of a direct write must be of, in bytes: the largest block that a disk in use
/// asks for.
pub const DIRECT_ALIGNMENT: usize = 4096;

/// The file that is locked as long as the directory is in use; it holds the process id of the holder as text.
pub const LOCK_FILE: &str = "lock";

/// Whether a call failed for want of space: the disk is full, or the user's quota, or a file would be longer than the process may make it
/// (`ulimit -f`). Each passes when somebody makes room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// A directory that holds one environment.
pub trait Disk: Send + Sync + 'static {
    /// The directory's path for messages.
    fn path(&self) -> PathBuf;

    /// Takes the exclusive lock of the directory and records this process in it; `Err(pid)` names the holder (0 when unknown).
    /// Held until the returned guard is dropped.
    fn lock(&self) -> io::Result<Result<Box<dyn Send + Sync>, u32>>;

    /// Opens a file, and makes an empty one first when `create` is set and it does not exist.
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>>;

    /// Whether the file exists.
    fn exists(&self, name: &str) -> io::Result<bool>;

    /// The names (without the directory's) of the files in a directory below, sorted; empty when there is no such directory.
    fn list(&self, directory: &str) -> io::Result<Vec<String>>;

    /// Makes a directory below, and its parents (`""` is the environment's own); no error when it exists. Durable on return.
    fn create_directory(&self, directory: &str) -> io::Result<()>;

    /// Renames a file, replacing the target. Durable only after [`Disk::sync_directory`].
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. Durable only after [`Disk::sync_directory`].
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the creation, renaming and removal of files in a directory durable (`""` is the environment's own).
    fn sync_directory(&self, directory: &str) -> io::Result<()>;
}

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading; it must exist.
    Read,
    /// For reading and writing; it must exist.
    Write,
    /// For reading and writing; made empty when it does not exist.
    Create,
}

/// One open file. All offsets and lengths are in bytes. Methods may be called from several threads.
pub trait File: Send + Sync {
    /// The file's length.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buffer` from `offset`; an error of kind `UnexpectedEof` when the file ends before.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// As [`File::read_at`], bypassing the cache where the file system can (where `offset`, length and address are multiples of 4096).
    /// For what is read once.
    fn read_direct(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_at(offset, buffer)
    }

    /// Writes all of `bytes` at `offset`, through the operating system's cache; durable only after [`File::sync`]. Makes the
    /// file longer where needed.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`, bypassing the cache where the file system can (`offset`, length and address are
    /// multiples of 4096); durable only after [`File::sync`]. For long runs that are not read again soon.
    fn write_direct(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Writes all of `bytes` at `offset` and returns when they are durable: one `O_DIRECT|O_DSYNC` write where the file system
    /// can, otherwise a write and `fdatasync`. `offset`, length and address are multiples of 4096, and the range was
    /// written before (see [`File::prewrite`]).
    fn write_durable(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Whether [`File::write_durable`] and [`File::write_direct`] bypass the cache (found by probing when the file was opened).
    fn is_direct(&self) -> bool;

    /// Makes all earlier writes and the length durable (`fdatasync`).
    fn sync(&self) -> io::Result<()>;

    /// Makes the file `length` bytes long: its new part reads as zeros and has disk blocks (`fallocate`), so that writing it
    /// cannot run out of space where the file system can promise that. Never shortens. Durable only after [`File::sync`]. After an
    /// error the file may be longer than before; the new part reads as zeros.
    fn allocate(&self, length: u64) -> io::Result<()>;

    /// Cuts the file to `length` bytes; never makes it longer. The caller knows that nobody reads beyond. Durable only after
    /// [`File::sync`].
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Makes the file `length` bytes long by really writing zeros behind its end, and syncs it, so that later synchronous writes
    /// change no metadata. Never shortens, and writes nothing before the end. After an error the file may be longer than before; the
    /// new part reads as zeros.
    fn prewrite(&self, length: u64) -> io::Result<()>;

    /// A view of the file's first `reserve` bytes that later writes show through and that stays at its address when the file
    /// grows up to `reserve`. Bytes beyond the file's end must not be touched. Read-only; advised for random access.
    fn map(&self, reserve: usize) -> io::Result<Arc<dyn Mapping>>;
}

/// A file's bytes in memory; unmapped when dropped.
pub trait Mapping: Send + Sync {
    /// The address of the first byte. Valid for the length asked of [`File::map`], of which only the part inside the file may
    /// be read.
    fn base(&self) -> *const u8;

    /// Tells the system that a range will be read soon. A hint: errors are ignored.
    fn will_need(&self, offset: usize, length: usize);
}

/// Refuses a direct write whose offset, length or address is not a multiple of [`DIRECT_ALIGNMENT`].
fn check_alignment(offset: u64, bytes: &[u8]) -> io::Result<()> {
    let aligned = offset.is_multiple_of(DIRECT_ALIGNMENT as u64)
        && bytes.len().is_multiple_of(DIRECT_ALIGNMENT)
        && bytes.as_ptr().addr().is_multiple_of(DIRECT_ALIGNMENT);
    if aligned {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("a direct write of {} bytes at {offset} is not aligned to {DIRECT_ALIGNMENT}", bytes.len()),
    ))
}
