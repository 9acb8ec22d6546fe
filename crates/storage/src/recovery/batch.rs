//! A batch: the entries of some records that follow each other, sorted into groups that have nothing to do with one another.
//!
//! Entries of the same page belong to one group, and so do the pages that an entry couples: a derived page and its source, the pages
//! of a run. Inside a group entries keep the journal's order. So groups may be applied in any order, by several threads, with the same result;
//! and all that happened to a page in this batch is done while the page is in the processor's cache.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::format::{PAGE_HEADER_SIZE, PageNumber, TransactionId, VALUE_SIZE_MAX};
use crate::journal::aligned::AlignedBuffer;
use crate::journal::changes::{self, Entries, Entry};
use crate::page::header;
use crate::snapshot::page_table::PAGES_MAX;

/// Of each entry so many of the processor's cache lines are fetched ahead.
const LINES_TOUCHED: usize = 3;

/// See the module's header.
#[derive(Default)]
pub(super) struct Batch {
    /// Journal bytes as they were read.
    pub(super) windows: Vec<AlignedBuffer>,
    records: Vec<Record>,
    items: Vec<Item>,
    slots: HashMap<u64, u32, BuildHasherDefault<PageHasher>>,
    /// For each slot another one of its group; itself when it stands for the group.
    parents: Vec<u32>,
    /// Bytes of all bodies.
    size: usize,
    /// The items, group by group, and where each group ends.
    sorted: Vec<Item>,
    ends: Vec<u32>,
}

/// One record of a batch.
pub(super) struct Record {
    pub(super) transaction: TransactionId,
    /// Its journal file and its offset there.
    pub(super) path: Arc<Path>,
    pub(super) offset: u64,
    pub(super) body: Body,
}

impl Record {
    /// Says what is wrong with the record.
    pub(super) fn damaged(&self, reason: String) -> Error {
        let reason = format!("record {} at {}: {reason}", self.transaction, self.offset);
        Error::FileDamaged { path: self.path.to_path_buf(), reason }
    }
}

/// Where a record's body is.
pub(super) enum Body {
    /// In one of the windows, at these bytes.
    Stored { window: usize, from: usize, to: usize },
    /// Decompressed.
    Made(Vec<u8>),
}

/// One entry: the record it is of, where it starts in the body, the slot of its page.
#[derive(Clone, Copy, Default)]
struct Item {
    record: u32,
    at: u32,
    slot: u32,
}

impl Batch {
    /// Bytes of the bodies so far.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Entries so far.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Adds the entries of a body; [`Batch::add_record`] tells next whose they are. An error says what is wrong with the body.
    pub(super) fn add_entries(&mut self, body: &[u8]) -> Result<(), String> {
        let index = self.records.len() as u32;
        let mut entries = Entries::new(body);
        loop {
            let at = entries.offset() as u32;
            let Some(entry) = entries.next() else { break };
            let entry = entry?;
            let (number, pages) = match &entry {
                Entry::Page { number, .. } | Entry::Moved { number, .. } | Entry::Free { number } => {
                    (*number, 1)
                }
                Entry::Derived { number, .. } => (*number, 1),
                Entry::Run { number, bytes } => {
                    (*number, header::run_pages((bytes.len() as u64).saturating_sub(PAGE_HEADER_SIZE as u64)))
                }
                Entry::Direct { number, pages } => (*number, *pages),
            };
            if number.0.checked_add(pages).is_none_or(|end| end > PAGES_MAX) {
                return Err(format!("no environment has a page {number}"));
            }
            if pages > header::run_pages(VALUE_SIZE_MAX) {
                return Err(format!("the run at page {number} has {pages} pages"));
            }
            let slot = self.slot(number);
            for other in 1..pages {
                let other = self.slot(PageNumber(number.0 + other));
                self.join(slot, other);
            }
            if let Entry::Derived { source, .. } = entry {
                if source.0 >= PAGES_MAX {
                    return Err(format!("no environment has a page {source}"));
                }
                let source = self.slot(source);
                self.join(source, slot);
            }
            self.items.push(Item { record: index, at, slot });
        }
        self.size += body.len();
        Ok(())
    }

    /// Adds the record whose entries were added last.
    pub(super) fn add_record(&mut self, record: Record) {
        self.records.push(record);
    }

    fn slot(&mut self, number: PageNumber) -> u32 {
        let fresh = self.parents.len() as u32;
        let slot = *self.slots.entry(number.0).or_insert(fresh);
        if slot == fresh {
            self.parents.push(fresh);
        }
        slot
    }

    fn root(&mut self, mut slot: u32) -> u32 {
        while self.parents[slot as usize] != slot {
            let parent = self.parents[slot as usize];
            self.parents[slot as usize] = self.parents[parent as usize];
            slot = parent;
        }
        slot
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.root(one), self.root(other));
        self.parents[one.max(other) as usize] = one.min(other);
    }

    /// Sorts the entries into groups, once all are there: groups in the order of their first pages, which is the journal's.
    pub(super) fn sort(&mut self) {
        let slots = self.parents.len();
        self.ends.clear();
        self.ends.resize(slots, 0);
        for at in 0..self.items.len() {
            let root = self.root(self.items[at].slot);
            self.items[at].slot = root;
            self.ends[root as usize] += 1;
        }
        // From counts to starts; placing the entries makes them ends.
        let mut start = 0;
        for count in &mut self.ends {
            start += std::mem::replace(count, start);
        }
        self.sorted.clear();
        self.sorted.resize(self.items.len(), Item::default());
        for item in &self.items {
            let at = &mut self.ends[item.slot as usize];
            self.sorted[*at as usize] = *item;
            *at += 1;
        }
    }

    /// How many groups there are; some are empty.
    pub(super) fn groups(&self) -> usize {
        self.ends.len()
    }

    /// The entries of a group, in the journal's order, each with its record.
    pub(super) fn group(&self, group: usize) -> impl Iterator<Item = (&Record, Result<Entry<'_>, String>)> {
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.sorted[start as usize..self.ends[group] as usize].iter().filter_map(|item| {
            let record = &self.records[item.record as usize];
            let entry = Entries::at(self.body(&record.body), item.at as usize).next();
            entry.map(|entry| (record, entry))
        })
    }

    /// Reads where the entries of these groups start: one after the other each would wait for memory, together they wait once.
    pub(super) fn touch(&self, groups: std::ops::Range<usize>) {
        let start = groups.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        let end = groups.end.checked_sub(1).map_or(0, |last| self.ends[last]);
        let mut sum = 0_u8;
        for item in &self.sorted[start as usize..end as usize] {
            let body = self.body(&self.records[item.record as usize].body);
            for line in 0..LINES_TOUCHED {
                sum = sum.wrapping_add(body.get(item.at as usize + line * 64).copied().unwrap_or_default());
            }
        }
        std::hint::black_box(sum);
    }

    /// The pages that the entries of these groups are of, each once in a row.
    pub(super) fn pages(&self, groups: std::ops::Range<usize>) -> impl Iterator<Item = PageNumber> {
        let start = groups.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        let end = groups.end.checked_sub(1).map_or(0, |last| self.ends[last]);
        let mut last = None;
        self.sorted[start as usize..end as usize].iter().filter_map(move |item| {
            let body = self.body(&self.records[item.record as usize].body);
            let number = changes::entry_page(body, item.at as usize);
            (last.replace(number) != Some(number)).then_some(number)
        })
    }

    fn body<'a>(&'a self, body: &'a Body) -> &'a [u8] {
        match body {
            Body::Stored { window, from, to } => &self.windows[*window].bytes()[*from..*to],
            Body::Made(bytes) => bytes,
        }
    }

    /// Makes the batch empty for other records, and hands back its windows.
    pub(super) fn reset(&mut self) -> Vec<AlignedBuffer> {
        self.records.clear();
        self.items.clear();
        self.slots.clear();
        self.parents.clear();
        self.size = 0;
        self.sorted.clear();
        self.ends.clear();
        std::mem::take(&mut self.windows)
    }
}

/// Spreads page numbers: they are not chosen to collide, the journal is our own.
#[derive(Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ 0x9E37_79B9_7F4A_7C15) * 0xD6E8_FEB8_6659_FD93_u128;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::format::PAGE_SIZE;

    /// The pages that an entry concerns.
    fn pages(entry: &Entry<'_>) -> Vec<u64> {
        match entry {
            Entry::Page { number, .. } | Entry::Moved { number, .. } | Entry::Free { number } => {
                vec![number.0]
            }
            Entry::Derived { number, source, .. } => vec![number.0, source.0],
            Entry::Direct { number, pages } => (number.0..number.0 + pages).collect(),
            Entry::Run { .. } => panic!("none was added"),
        }
    }

    fn body(entries: &[(u8, u64, u64)]) -> AlignedBuffer {
        let mut out = AlignedBuffer::default();
        for &(operation, page, other) in entries {
            let (number, other_number) = (PageNumber(page), PageNumber(other));
            match operation {
                0 => changes::add_page(&mut out, number, None, &[page as u8; PAGE_SIZE], 1, &[]),
                1 => changes::add_free(&mut out, number),
                2 => changes::add_direct(&mut out, number, 1 + other % 3),
                _ => {
                    let (new, dictionary) = ([7; PAGE_SIZE], [7; PAGE_SIZE]);
                    assert!(changes::add_derived(
                        &mut out,
                        number,
                        &new,
                        other_number,
                        &dictionary,
                        PAGE_SIZE
                    ));
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn groups_share_no_page_and_keep_the_order(
            bodies in proptest::collection::vec(proptest::collection::vec((0..4_u8, 0..60_u64, 0..60_u64), 0..12), 1..6),
        ) {
            let mut batch = Batch::default();
            // Twice, so that what a reset forgets to clear shows.
            for _ in 0..2 {
                batch.reset();
                let mut expected = 0;
                for (index, entries) in bodies.iter().enumerate() {
                    let body = body(entries);
                    expected += entries.len();
                    batch.add_entries(body.bytes()).unwrap();
                    batch.add_record(Record {
                        transaction: TransactionId(index as u64),
                        path: Path::new("journal").into(),
                        offset: 0,
                        body: Body::Made(body.bytes().to_vec()),
                    });
                }
                batch.sort();
                let (mut count, mut taken) = (0, BTreeSet::new());
                for group in 0..batch.groups() {
                    let start = group.checked_sub(1).map_or(0, |before| batch.ends[before]);
                    let items = &batch.sorted[start as usize..batch.ends[group] as usize];
                    prop_assert!(items.is_sorted_by(|a, b| (a.record, a.at) < (b.record, b.at)));
                    let mut own = BTreeSet::new();
                    for (_, entry) in batch.group(group) {
                        own.extend(pages(&entry.unwrap()));
                        count += 1;
                    }
                    prop_assert!(own.is_disjoint(&taken), "group {group} has a page of another group");
                    taken.append(&mut own);
                }
                prop_assert_eq!(count, expected);
            }
        }
    }

    #[test]
    fn an_entry_beyond_what_an_environment_can_hold_is_refused() {
        for entries in [(1, PAGES_MAX, 0), (3, 1, PAGES_MAX), (3, PAGES_MAX, 1), (2, PAGES_MAX - 1, 1)] {
            let reason = Batch::default().add_entries(body(&[entries]).bytes()).unwrap_err();
            assert!(reason.starts_with("no environment has a page"), "{reason}");
        }
    }
}
