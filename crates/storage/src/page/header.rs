//! The header with which every page starts.
//!
//! ```text
//!  0        8          16     17      18      20      22      24                32
//!  ┌────────┬──────────┬──────┬───────┬───────┬───────┬───────┬─────────────────┐
//!  │ number │ checksum │ kind │ flags │ count │ lower │ upper │ by kind         │
//!  └────────┴──────────┴──────┴───────┴───────┴───────┴───────┴─────────────────┘
//! ```
//! | offset | size | name | meaning |
//! |---|---|---|---|
//! | 0 | 8 | number | the page's own number: a page read from the wrong place is noticed |
//! | 8 | 8 | checksum | xxh3-64 of the bytes from 16 to the end (of the run, for an overflow run), seeded with the number; set when the page is written to the data file, of no meaning in scratch memory |
//! | 16 | 1 | kind | a [`PageKind`] |
//! | 17 | 1 | flags | by kind |
//! | 18 | 2 | count | entries, slots or children |
//! | 20 | 2 | lower | where the slots end (slotted pages) |
//! | 22 | 2 | upper | where the cells begin (slotted pages) |
//! | 24 | 8 | by kind | an overflow run's length in bytes; a leaf's or branch's prefix and fragmented bytes; a section's links |

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use super::Page;
use crate::format::{PAGE_SIZE, PageNumber, read_u64};

pub(crate) const NUMBER_AT: usize = 0;
pub(crate) const CHECKSUM_AT: usize = NUMBER_AT + 8;
pub(crate) const KIND_AT: usize = CHECKSUM_AT + 8;
pub(crate) const FLAGS_AT: usize = KIND_AT + 1;
pub(crate) const COUNT_AT: usize = FLAGS_AT + 1;
pub(crate) const LOWER_AT: usize = COUNT_AT + 2;
pub(crate) const UPPER_AT: usize = LOWER_AT + 2;
/// The first of eight bytes whose meaning each kind of page defines.
pub(crate) const BY_KIND_AT: usize = UPPER_AT + 2;
/// An overflow run's length in bytes (`u64`), its header not counted.
pub(crate) const RUN_LENGTH_AT: usize = BY_KIND_AT;

/// What a page holds. The numbers are on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum PageKind {
    /// Page 0: the environment's root state.
    Root = 1,
    /// A list of the free bitmap's pages.
    FreeDirectory = 2,
    /// A piece of the free bitmap.
    FreeBitmap = 3,
    /// An inner node of a variable-length-key tree.
    Branch = 4,
    /// A leaf of a variable-length-key tree.
    Leaf = 5,
    /// The first page of an overflow run: one long value.
    Overflow = 6,
    /// Many values that are too long for a leaf and too short for a run.
    Section = 7,
    /// An inner node of a fixed-size tree.
    FixedBranch = 8,
    /// A leaf of a fixed-size tree.
    FixedLeaf = 9,
}

/// The page's kind, `None` when the byte is no kind at all.
#[inline]
pub(crate) fn kind(page: &[u8]) -> Option<PageKind> {
    use PageKind::*;
    Some(match page[KIND_AT] {
        1 => Root,
        2 => FreeDirectory,
        3 => FreeBitmap,
        4 => Branch,
        5 => Leaf,
        6 => Overflow,
        7 => Section,
        8 => FixedBranch,
        9 => FixedLeaf,
        _ => return None,
    })
}

/// The number the page says it has.
#[inline]
pub(crate) fn number(page: &[u8]) -> PageNumber {
    PageNumber(read_u64(page, NUMBER_AT))
}

/// The checksum stored in the page.
#[inline]
pub(crate) fn stored_checksum(page: &[u8]) -> u64 {
    read_u64(page, CHECKSUM_AT)
}

/// The checksum the page (or whole run) should carry.
#[inline]
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(&bytes[KIND_AT..], read_u64(bytes, NUMBER_AT))
}

/// Computes the checksum of a run piece by piece: begins with its first bytes, at least the header's.
pub(crate) fn begin_checksum(bytes: &[u8]) -> Xxh3 {
    let mut hash = Xxh3::with_seed(read_u64(bytes, NUMBER_AT));
    hash.update(&bytes[KIND_AT..]);
    hash
}

/// Stores a checksum in a header.
pub(crate) fn store_checksum(header: &mut [u8], sum: u64) {
    header[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&sum.to_le_bytes());
}

/// Computes the checksum of the page (or whole run) and stores it.
#[inline]
pub(crate) fn seal(bytes: &mut [u8]) {
    store_checksum(bytes, checksum(bytes));
}

/// Writes the header of a fresh page whose bytes are all zero.
pub(crate) fn init(page: &mut Page, number: PageNumber, kind: PageKind) {
    page[NUMBER_AT..NUMBER_AT + 8].copy_from_slice(&number.0.to_le_bytes());
    page[KIND_AT] = kind as u8;
}

/// How many pages an overflow run of `length` value bytes takes.
pub(crate) fn run_pages(length: u64) -> u64 {
    (crate::format::PAGE_HEADER_SIZE as u64 + length).div_ceil(PAGE_SIZE as u64)
}
