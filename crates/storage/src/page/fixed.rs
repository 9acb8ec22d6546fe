//! Pages of fixed-size trees: sorted arrays of `i64` keys, and beside them values of one size (leaf) or page numbers
//! (branch). Nothing in them is ever moved but by insertion and removal, so an append changes a line or two.
//!
//! A leaf whose values have `V` bytes holds at most `C = 8160 / (8 + V)` entries:
//! ```text
//!  0        16     17           18      20       32              32+8·C            32+8·C+V·C
//!  ┌────────┬──────┬────────────┬───────┬────────┬───────────────┬─────────────────┬──────────┐
//!  │ common │ kind │ value size │ count │ unused │ C × i64 key   │ C × V value     │ (unused) │
//!  └────────┴──────┴────────────┴───────┴────────┴───────────────┴─────────────────┴──────────┘
//! ```
//! A branch holds at most 510 children:
//! ```text
//!  0        16     17       18      20       32              4112             8192
//!  ┌────────┬──────┬────────┬───────┬────────┬───────────────┬────────────────┐
//!  │ common │ kind │ unused │ count │ unused │ 510 × i64 key │ 510 × u64 page │
//!  └────────┴──────┴────────┴───────┴────────┴───────────────┴────────────────┘
//! ```
//! Keys are little-endian and ordered as signed numbers. Child `i` of a branch holds the keys from key `i` on and below
//! key `i + 1`; key 0 has no meaning (the bound is the parent's). No page is without entries.

use super::Page;
use super::header::{self, COUNT_AT, FLAGS_AT, PageKind};
use crate::error::{Error, Result};
use crate::format::{FIXED_VALUE_SIZE_MAX, PAGE_BODY_SIZE, PAGE_HEADER_SIZE, PageNumber, read_u16, read_u64};
use crate::pages::PageMut;

/// The most children of a branch.
pub(crate) const BRANCH_CAPACITY: usize = PAGE_BODY_SIZE / (KEY_SIZE + CHILD_SIZE);

const VALUE_SIZE_AT: usize = FLAGS_AT;
const KEYS_AT: usize = PAGE_HEADER_SIZE;
const KEY_SIZE: usize = 8;
const CHILD_SIZE: usize = 8;
const CHILDREN_AT: usize = KEYS_AT + BRANCH_CAPACITY * KEY_SIZE;

/// The most entries of a leaf with values of this size.
#[inline]
pub(crate) const fn leaf_capacity(value_size: usize) -> usize {
    PAGE_BODY_SIZE / (KEY_SIZE + value_size)
}

#[inline]
const fn values_at(value_size: usize) -> usize {
    KEYS_AT + leaf_capacity(value_size) * KEY_SIZE
}

#[inline(always)]
fn key_in(keys: &[u8], i: usize) -> i64 {
    read_u64(keys, i * KEY_SIZE) as i64
}

/// Finds a key among sorted keys: `Ok` where it is, `Err` where it would be.
#[inline]
pub(crate) fn search(keys: &[u8], key: i64) -> Result<usize, usize> {
    let count = keys.len() / KEY_SIZE;
    if count == 0 || key < key_in(keys, 0) {
        return Err(0);
    }
    if key > key_in(keys, count - 1) {
        return Err(count);
    }
    // Keys without gaps, such as etags, are where their distance to the first says.
    let guess = key.wrapping_sub(key_in(keys, 0)) as u64;
    if guess < count as u64 && key_in(keys, guess as usize) == key {
        return Ok(guess as usize);
    }
    let (mut base, mut size) = (0, count);
    while size > 1 {
        let half = size / 2;
        base = if key_in(keys, base + half) <= key { base + half } else { base };
        size -= half;
    }
    if key_in(keys, base) == key { Ok(base) } else { Err(base + 1) }
}

/// The entries of a leaf, or of a tree that is embedded in its state, for reading.
#[derive(Clone, Copy)]
pub(crate) struct Entries<'p> {
    keys: &'p [u8],
    values: &'p [u8],
    value_size: usize,
}

impl<'p> Entries<'p> {
    /// Entries from an array of keys and one of values, equally many.
    #[inline]
    pub(crate) fn new(keys: &'p [u8], values: &'p [u8], value_size: usize) -> Entries<'p> {
        debug_assert_eq!(keys.len() / KEY_SIZE * value_size, values.len());
        Entries { keys, values, value_size }
    }

    /// The entries of a leaf. Error: the page is no leaf of a tree with values of this size.
    #[inline]
    pub(crate) fn of_leaf(page: &'p Page, value_size: usize) -> Result<Entries<'p>> {
        if header::kind(page) != Some(PageKind::FixedLeaf) || page[VALUE_SIZE_AT] as usize != value_size {
            return Err(unexpected(page, "leaf"));
        }
        let count = read_u16(page, COUNT_AT) as usize;
        let values = values_at(value_size);
        Ok(Entries {
            keys: &page[KEYS_AT..KEYS_AT + count * KEY_SIZE],
            values: &page[values..values + count * value_size],
            value_size,
        })
    }

    #[inline]
    pub(crate) fn count(self) -> usize {
        self.keys.len() / KEY_SIZE
    }

    #[inline]
    pub(crate) fn key(self, i: usize) -> i64 {
        key_in(self.keys, i)
    }

    #[inline]
    pub(crate) fn value(self, i: usize) -> &'p [u8] {
        &self.values[i * self.value_size..(i + 1) * self.value_size]
    }

    #[inline]
    pub(crate) fn search(self, key: i64) -> Result<usize, usize> {
        search(self.keys, key)
    }

    /// The entries `from..to`.
    #[inline]
    pub(crate) fn slice(self, from: usize, to: usize) -> Entries<'p> {
        Entries {
            keys: &self.keys[from * KEY_SIZE..to * KEY_SIZE],
            values: &self.values[from * self.value_size..to * self.value_size],
            value_size: self.value_size,
        }
    }
}

#[cold]
fn unexpected(page: &Page, expected: &str) -> Error {
    let found = header::kind(page);
    Error::damaged(
        header::number(page),
        format!(
            "a fixed-size tree has it as a {expected}, but it is {found:?} with parameter {}",
            page[FLAGS_AT]
        ),
    )
}

/// Makes a fresh page of zeros a leaf for values of this size, with no entries yet.
pub(crate) fn init_leaf(page: &mut PageMut<'_>, value_size: usize) {
    page.write(VALUE_SIZE_AT, &[value_size as u8]);
}

fn count_of(page: &PageMut<'_>) -> usize {
    read_u16(page.bytes(), COUNT_AT) as usize
}

/// Inserts an entry at `i`. There must be room.
#[inline]
pub(crate) fn leaf_insert(page: &mut PageMut<'_>, i: usize, key: i64, value: &[u8]) {
    let (count, size) = (count_of(page), value.len());
    debug_assert!(count < leaf_capacity(size) && size == page.bytes()[VALUE_SIZE_AT] as usize);
    let (keys, values) = (KEYS_AT + i * KEY_SIZE, values_at(size) + i * size);
    if i < count {
        page.move_within(keys, keys + KEY_SIZE, (count - i) * KEY_SIZE);
        page.move_within(values, values + size, (count - i) * size);
    }
    page.write(keys, &key.to_le_bytes());
    page.write(values, value);
    page.write_u16(COUNT_AT, (count + 1) as u16);
}

/// Appends many entries. There must be room.
pub(crate) fn leaf_append(page: &mut PageMut<'_>, entries: Entries<'_>) {
    let (count, size) = (count_of(page), entries.value_size);
    page.write(KEYS_AT + count * KEY_SIZE, entries.keys);
    page.write(values_at(size) + count * size, entries.values);
    page.write_u16(COUNT_AT, (count + entries.count()) as u16);
}

/// Overwrites the value at `i`.
#[inline]
pub(crate) fn leaf_set_value(page: &mut PageMut<'_>, i: usize, value: &[u8]) {
    page.write(values_at(value.len()) + i * value.len(), value);
}

/// Removes the entries `from..to`.
pub(crate) fn leaf_remove(page: &mut PageMut<'_>, from: usize, to: usize) {
    let (count, size) = (count_of(page), page.bytes()[VALUE_SIZE_AT] as usize);
    let values = values_at(size);
    page.move_within(KEYS_AT + to * KEY_SIZE, KEYS_AT + from * KEY_SIZE, (count - to) * KEY_SIZE);
    page.move_within(values + to * size, values + from * size, (count - to) * size);
    page.write_u16(COUNT_AT, (count - (to - from)) as u16);
}

/// A branch for reading.
#[derive(Clone, Copy)]
pub(crate) struct Branch<'p> {
    page: &'p Page,
    count: usize,
}

impl<'p> Branch<'p> {
    /// Error: the page is no branch of a fixed-size tree.
    #[inline]
    pub(crate) fn new(page: &'p Page) -> Result<Branch<'p>> {
        match header::kind(page) {
            Some(PageKind::FixedBranch) => Ok(Branch { page, count: read_u16(page, COUNT_AT) as usize }),
            _ => Err(unexpected(page, "branch")),
        }
    }

    #[inline]
    pub(crate) fn count(self) -> usize {
        self.count
    }

    /// The lower bound of child `i`; of no meaning for child 0.
    #[inline]
    pub(crate) fn key(self, i: usize) -> i64 {
        key_in(&self.page[KEYS_AT..CHILDREN_AT], i)
    }

    #[inline]
    pub(crate) fn child(self, i: usize) -> PageNumber {
        PageNumber(read_u64(&self.page[CHILDREN_AT..], i * CHILD_SIZE))
    }

    /// Which child holds a key, if any does.
    #[inline]
    pub(crate) fn search(self, key: i64) -> usize {
        match search(&self.page[KEYS_AT + KEY_SIZE..KEYS_AT + self.count * KEY_SIZE], key) {
            Ok(i) => i + 1,
            Err(i) => i,
        }
    }
}

/// Inserts a child at `i`. There must be room.
pub(crate) fn branch_insert(page: &mut PageMut<'_>, i: usize, key: i64, child: PageNumber) {
    let count = count_of(page);
    debug_assert!(count < BRANCH_CAPACITY);
    let (keys, children) = (KEYS_AT + i * KEY_SIZE, CHILDREN_AT + i * CHILD_SIZE);
    page.move_within(keys, keys + KEY_SIZE, (count - i) * KEY_SIZE);
    page.move_within(children, children + CHILD_SIZE, (count - i) * CHILD_SIZE);
    page.write(keys, &key.to_le_bytes());
    page.write_u64(children, child.0);
    page.write_u16(COUNT_AT, (count + 1) as u16);
}

/// Appends the children of another branch from `from` on, the first of them with the lower bound `key`.
pub(crate) fn branch_append(page: &mut PageMut<'_>, other: &Page, from: usize, key: i64) {
    let (count, more) = (count_of(page), read_u16(other, COUNT_AT) as usize - from);
    let (keys, children) = (KEYS_AT + from * KEY_SIZE, CHILDREN_AT + from * CHILD_SIZE);
    page.write(KEYS_AT + count * KEY_SIZE, &other[keys..keys + more * KEY_SIZE]);
    page.write(CHILDREN_AT + count * CHILD_SIZE, &other[children..children + more * CHILD_SIZE]);
    page.write(KEYS_AT + count * KEY_SIZE, &key.to_le_bytes());
    page.write_u16(COUNT_AT, (count + more) as u16);
}

/// Removes the children `from..to`.
pub(crate) fn branch_remove(page: &mut PageMut<'_>, from: usize, to: usize) {
    let count = count_of(page);
    page.move_within(KEYS_AT + to * KEY_SIZE, KEYS_AT + from * KEY_SIZE, (count - to) * KEY_SIZE);
    page.move_within(
        CHILDREN_AT + to * CHILD_SIZE,
        CHILDREN_AT + from * CHILD_SIZE,
        (count - to) * CHILD_SIZE,
    );
    page.write_u16(COUNT_AT, (count - (to - from)) as u16);
}

/// Checks the count and the keys' order. Returns what is wrong.
pub(crate) fn validate_leaf(page: &Page) -> Result<(), String> {
    let (count, value_size) = (read_u16(page, COUNT_AT) as usize, page[VALUE_SIZE_AT] as usize);
    if value_size > FIXED_VALUE_SIZE_MAX || count == 0 || count > leaf_capacity(value_size) {
        return Err(format!("a fixed-size leaf with {count} entries with values of {value_size} bytes"));
    }
    validate_order(&page[KEYS_AT..KEYS_AT + count * KEY_SIZE])
}

/// Checks the count, the keys' order and that the children can be pages. Returns what is wrong.
pub(crate) fn validate_branch(page: &Page) -> Result<(), String> {
    let count = read_u16(page, COUNT_AT) as usize;
    if count == 0 || count > BRANCH_CAPACITY {
        return Err(format!("a fixed-size branch with {count} children"));
    }
    for i in 0..count {
        let child = read_u64(page, CHILDREN_AT + i * CHILD_SIZE);
        if child == 0 || child >= 1 << 48 {
            return Err(format!("a fixed-size branch whose child {i} is page {child}"));
        }
    }
    validate_order(&page[KEYS_AT + KEY_SIZE..KEYS_AT + count * KEY_SIZE])
}

fn validate_order(keys: &[u8]) -> Result<(), String> {
    match (1..keys.len() / KEY_SIZE).find(|&i| key_in(keys, i - 1) >= key_in(keys, i)) {
        Some(i) => Err(format!("key {} is not above key {}", key_in(keys, i), key_in(keys, i - 1))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "too slow")]
    fn search_finds_every_key_and_every_gap() {
        for step in [1i64, 2, 3, 1000] {
            for count in [0usize, 1, 2, 3, 7, 8, 100] {
                let keys: Vec<i64> = (0..count as i64).map(|i| -50 + i * step).collect();
                let bytes: Vec<u8> = keys.iter().flat_map(|key| key.to_le_bytes()).collect();
                for key in -60..-50 + count as i64 * step + 10 {
                    assert_eq!(search(&bytes, key), keys.binary_search(&key), "{key} in {keys:?}");
                }
                for key in [i64::MIN, i64::MAX] {
                    assert_eq!(search(&bytes, key), keys.binary_search(&key));
                }
            }
        }
    }
}
