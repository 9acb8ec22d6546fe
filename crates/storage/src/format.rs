//! Sizes, magic numbers and versions of everything this crate writes: the bottom file, used by all others.
//!
//! All integers on disk are little-endian, whatever the machine.

use std::fmt;

/// Bytes in a page, in the data file and in memory.
pub const PAGE_SIZE: usize = 8192;

/// Bytes of the header with which every page starts (see `page::header`).
pub const PAGE_HEADER_SIZE: usize = 32;

/// Bytes of a page that are not header.
pub const PAGE_BODY_SIZE: usize = PAGE_SIZE - PAGE_HEADER_SIZE;

/// The longest key any tree takes, in bytes.
pub const KEY_SIZE_MAX: usize = 2048;

/// The longest value any tree takes, in bytes (2 GiB).
pub const VALUE_SIZE_MAX: u64 = 2 << 30;

/// The longest value of a fixed-size tree, in bytes.
pub const FIXED_VALUE_SIZE_MAX: usize = 128;

/// A value longer than this many bytes does not lie in the leaf beside its key but in a section page (many values
/// a page) or, when longer than [`SECTION_VALUE_SIZE_MAX`], in an overflow run. Small enough that a leaf always
/// holds many entries, large enough that index entries and small rows need no second page.
pub const INLINE_VALUE_SIZE_MAX: usize = 512;

/// The longest value kept in a section page, in bytes: what one page holds beside its header and one slot.
pub const SECTION_VALUE_SIZE_MAX: usize = PAGE_BODY_SIZE - 8;

/// A value longer than this many bytes is written straight to free pages of the data file before its transaction
/// commits, so that it passes through neither scratch memory nor the journal. Below it one journal write is cheaper
/// than the extra synchronisation of the data file.
pub const DIRECT_VALUE_SIZE_MIN: u64 = 256 << 10;

/// The deepest tree that is followed, in levels. A tree of this depth cannot exist (fan-out is at least 3 and page
/// numbers have 48 bits); a deeper one on disk is damage.
pub const TREE_DEPTH_MAX: usize = 32;

/// The page that holds the environment's root state.
pub const ROOT_PAGE: PageNumber = PageNumber(0);

/// The number of a page: its offset in the data file divided by [`PAGE_SIZE`]. On disk, 48 bits suffice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PageNumber(pub u64);

impl PageNumber {
    /// Stands for "no page" where a link may be absent; the root page is never linked to.
    pub const NONE: PageNumber = PageNumber(0);

    /// Whether this is a page and not [`PageNumber::NONE`].
    pub fn is_some(self) -> bool {
        self.0 != 0
    }

    /// The byte offset of the page in the data file.
    pub fn offset(self) -> u64 {
        self.0 * PAGE_SIZE as u64
    }
}

impl fmt::Display for PageNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for PageNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

/// The number of a write transaction; they are numbered from 1 without gaps in the order of their commits. 0 is the
/// empty environment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TransactionId(pub u64);

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

/// Reads a little-endian `u16` at `at`. Panics when out of bounds: for offsets already validated.
#[inline(always)]
pub fn read_u16(bytes: &[u8], at: usize) -> u16 {
    let mut b = [0; 2];
    b.copy_from_slice(&bytes[at..at + 2]);
    u16::from_le_bytes(b)
}

/// Reads a little-endian `u32` at `at`. Panics when out of bounds: for offsets already validated.
#[inline(always)]
pub fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let mut b = [0; 4];
    b.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(b)
}

/// Reads a little-endian `u64` at `at`. Panics when out of bounds: for offsets already validated.
#[inline(always)]
pub fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let mut b = [0; 8];
    b.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(b)
}
