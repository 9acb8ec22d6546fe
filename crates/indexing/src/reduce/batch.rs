//! What the maps of one batch made: documents with their results, and the distinct keys among these, each stored once.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::key::{STORED_SIZE_MAX, stored};

/// Collects what the maps of a batch make. Documents may come in any order; when one comes again, only what it made last counts.
///
/// Made by several threads, batches are joined with [`Batch::absorb`]. [`Batch::clear`] keeps the memory.
#[derive(Clone, Default)]
pub struct Batch {
    /// Ids, packs and keys.
    arena: Vec<u8>,
    sources: Vec<Source>,
    results: Vec<Mapped>,
    keys: Keys,
}

/// A document.
#[derive(Clone)]
struct Source {
    id: Range<usize>,
    /// In `results`.
    results: Range<usize>,
    fresh: bool,
}

/// A result of a map.
#[derive(Clone)]
pub(super) struct Mapped {
    /// The number of its key.
    pub(super) key: u32,
    pub(super) pack: Range<usize>,
    pub(super) hash: u64,
}

impl Batch {
    /// A batch of nothing.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Begins a document, whose results follow; with none, what it had is removed. `fresh` promises that it has no results yet, which saves
    /// looking; applying the batch fails when it has.
    pub fn begin(&mut self, id: &[u8], fresh: bool) {
        let id = self.put(id);
        let at = self.results.len();
        self.sources.push(Source { id, results: at..at, fresh });
    }

    /// Adds a result to the document begun last: its key and its pack. Without a document it is ignored.
    pub fn emit(&mut self, key: &[u8], pack: &[u8]) {
        if self.sources.is_empty() {
            return;
        }
        let mut short = [0; STORED_SIZE_MAX];
        let stored = stored(key, &mut short);
        let full = (key.len() > STORED_SIZE_MAX).then_some(key);
        let number = self.keys.intern(&mut self.arena, stored, full);
        let hash = xxh3_64(pack);
        let pack = self.put(pack);
        self.results.push(Mapped { key: number, pack, hash });
        if let Some(source) = self.sources.last_mut() {
            source.results.end = self.results.len();
        }
    }

    /// Takes back the results of the document begun last: its map failed.
    pub fn take_back(&mut self) {
        if let Some(source) = self.sources.last_mut() {
            self.results.truncate(source.results.start);
            source.results.end = source.results.start;
        }
    }

    /// Adds all of another batch behind this one's.
    pub fn absorb(&mut self, other: &Batch) {
        for source in &other.sources {
            self.begin(&other.arena[source.id.clone()], source.fresh);
            for result in &other.results[source.results.clone()] {
                let slot = &other.keys.slots[result.key as usize];
                let full = slot.full.clone().map(|full| &other.arena[full]);
                let key = self.keys.intern(&mut self.arena, &other.arena[slot.stored.clone()], full);
                let pack = self.put(&other.arena[result.pack.clone()]);
                self.results.push(Mapped { key, pack, hash: result.hash });
            }
            if let Some(source) = self.sources.last_mut() {
                source.results.end = self.results.len();
            }
        }
    }

    /// Removes everything and keeps the memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.sources.clear();
        self.results.clear();
        self.keys.clear();
    }

    /// How many documents there are.
    pub fn documents(&self) -> usize {
        self.sources.len()
    }

    /// How many results there are.
    pub fn results(&self) -> usize {
        self.results.len()
    }

    /// How many distinct keys there are: what bounds the pages that applying the batch changes.
    pub fn keys(&self) -> usize {
        self.keys.slots.len()
    }

    /// About the memory in use, in bytes.
    pub fn bytes(&self) -> usize {
        self.arena.len()
            + size_of::<Source>() * self.sources.len()
            + size_of::<Mapped>() * self.results.len()
            + 2 * (size_of::<Slot>() + size_of::<(u64, u32)>()) * self.keys.slots.len()
    }

    fn put(&mut self, bytes: &[u8]) -> Range<usize> {
        put(&mut self.arena, bytes)
    }

    /// The numbers of the documents in the order of their ids; of those with one id only the last.
    pub(super) fn sources_in_order(&self) -> Vec<u32> {
        let id = |at: u32| &self.arena[self.sources[at as usize].id.clone()];
        let mut order: Vec<u32> = (0..self.sources.len() as u32).collect();
        order.sort_by_key(|at| id(*at));
        let last = |at: usize| order.get(at + 1).is_none_or(|next| id(*next) != id(order[at]));
        (0..order.len()).filter(|at| last(*at)).map(|at| order[at]).collect()
    }

    /// A document: its id, the numbers of its results, and whether it is new.
    pub(super) fn source(&self, at: u32) -> (&[u8], Range<usize>, bool) {
        let source = &self.sources[at as usize];
        (&self.arena[source.id.clone()], source.results.clone(), source.fresh)
    }

    /// The number of a key in its stored form, which is added when the batch does not have it.
    pub(super) fn intern(&mut self, stored: &[u8]) -> u32 {
        self.keys.intern(&mut self.arena, stored, None)
    }

    pub(super) fn arena(&self) -> &[u8] {
        &self.arena
    }

    pub(super) fn mapped(&self) -> &[Mapped] {
        &self.results
    }

    pub(super) fn key_table(&self) -> &Keys {
        &self.keys
    }
}

fn put(arena: &mut Vec<u8>, bytes: &[u8]) -> Range<usize> {
    let start = arena.len();
    arena.extend_from_slice(bytes);
    start..arena.len()
}

/// Distinct keys with their numbers: the first is 0, the next 1. Their bytes lie in an arena of the owner.
#[derive(Default, Clone)]
pub(super) struct Keys {
    slots: Vec<Slot>,
    /// From the hash of a stored key to the newest of the slots that have it, which form a chain.
    by_hash: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
}

#[derive(Clone)]
pub(super) struct Slot {
    pub(super) stored: Range<usize>,
    pub(super) full: Option<Range<usize>>,
    /// Another slot with the same hash.
    next: Option<u32>,
}

impl Keys {
    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The number of a key, which is added when it is new.
    pub(super) fn intern(&mut self, arena: &mut Vec<u8>, stored: &[u8], full: Option<&[u8]>) -> u32 {
        let hash = xxh3_64(stored);
        let newest = self.by_hash.get(&hash).copied();
        let mut at = newest;
        while let Some(number) = at {
            let slot = &self.slots[number as usize];
            if arena[slot.stored.clone()] == *stored {
                return number;
            }
            at = slot.next;
        }
        // A batch ends long before four billion keys.
        let number = self.slots.len() as u32;
        let stored = put(arena, stored);
        let full = full.map(|full| put(arena, full));
        self.slots.push(Slot { stored, full, next: newest });
        self.by_hash.insert(hash, number);
        number
    }

    fn clear(&mut self) {
        self.slots.clear();
        self.by_hash.clear();
    }
}

/// A hash as it is.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_stored_once_and_batches_joined() {
        let mut one = Batch::new();
        one.begin(b"a", true);
        one.emit(b"k1", b"1");
        one.emit(b"k2", b"2");
        one.begin(b"b", false);
        one.emit(b"k1", b"3");
        let long = vec![b'x'; 1000];
        one.emit(&long, b"4");
        assert_eq!((one.documents(), one.results(), one.keys()), (2, 4, 3));
        one.take_back();
        assert_eq!((one.documents(), one.results()), (2, 2));

        let mut two = Batch::new();
        two.begin(b"c", false);
        two.emit(&long, b"5");
        two.absorb(&one);
        assert_eq!((two.documents(), two.results(), two.keys()), (3, 3, 3));
        let slot = &two.key_table().slots()[0];
        assert_eq!(&two.arena()[slot.full.clone().unwrap_or_default()], &long[..]);
        assert_eq!(slot.stored.len(), STORED_SIZE_MAX);
        two.clear();
        assert_eq!((two.documents(), two.results(), two.keys(), two.bytes()), (0, 0, 0, 0));
    }
}
