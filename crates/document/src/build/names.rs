//! Property names as a context remembers them from document to document.
//!
//! Documents of one collection share their shape, so each name remembers which name followed it last time, and which came first in
//! the object that was its value. A parser asks for that **predicted** name, compares it with the text in one step,
//! and only on a miss looks for the name's end, hashes it and searches.

use crate::dictionary::Dictionary;
use crate::format::name_hash;
use crate::simd::Simd;

/// Bytes of a name that the prediction compares at once, the closing quote included.
const PREDICTED_SIZE: usize = 32;

/// More names than this are forgotten when the next document begins.
const CACHED_NAMES_MAX: usize = 16 << 10;

/// More bytes of names than this are forgotten when the next document begins.
const CACHED_BYTES_MAX: usize = 1 << 20;

/// More names than this in a row of the hash table do not come about by chance (it is at most half full).
const PROBES_MAX: usize = 512;

/// The number of a name in a [`NameCache`].
pub(crate) type NameIndex = u32;

/// No name: what a document's root lies under, and the prediction where nothing is known.
pub(crate) const NO_NAME: NameIndex = 0;

pub(crate) struct Name {
    /// The name and a closing quote, zero-filled; bytes no text can match if the name cannot be compared so.
    text: [u8; PREDICTED_SIZE],
    /// The bytes of `text` that must match.
    mask: u32,
    /// Bytes of the name.
    len: u32,
    /// The name that came after this one in the same object.
    pub(crate) next: NameIndex,
    /// The first name of the object (or of the objects of the array) that was this property's value.
    pub(crate) first: NameIndex,
    /// The document in which `id` holds.
    epoch: u32,
    /// The name id in that document.
    id: u32,
    /// Where in `raw` the name starts.
    raw: u32,
    /// Where in `stored` its stored bytes start, and how many they are.
    stored: (u32, u32),
    /// The format's hash of the raw name.
    hash: u32,
    /// The name needs escaping in JSON.
    escaped: bool,
}

/// All names seen lately, and those of the document being written.
pub(crate) struct NameCache {
    names: Vec<Name>,
    /// The bytes of all names, one after the other.
    raw: Vec<u8>,
    /// Their stored form, when a dictionary compresses it.
    stored: Vec<u8>,
    /// Open addressing; holds name indexes, 0 for empty.
    slots: Vec<NameIndex>,
    epoch: u32,
    /// The names of the document being written; the position is the name id.
    of_document: Vec<NameIndex>,
    /// The names of the document before, and its whole name section: the same names make the same bytes.
    of_last: Vec<NameIndex>,
    last_section: Vec<u8>,
    last_facts: SectionFacts,
    has_last: bool,
    /// How often [`NameCache::section`] could be copied.
    pub(crate) sections_reused: u64,
    scratch: Vec<u8>,
}

/// What the footer says about the names.
#[derive(Clone, Copy, Default)]
pub(crate) struct SectionFacts {
    pub(crate) ends_width: usize,
    pub(crate) escaped: bool,
}

impl NameCache {
    pub(crate) fn new() -> NameCache {
        let mut cache = NameCache {
            names: Vec::new(),
            raw: Vec::new(),
            stored: Vec::new(),
            slots: Vec::new(),
            epoch: 0,
            of_document: Vec::new(),
            of_last: Vec::new(),
            last_section: Vec::new(),
            last_facts: SectionFacts::default(),
            has_last: false,
            sections_reused: 0,
            scratch: Vec::new(),
        };
        cache.forget();
        cache
    }

    /// Forgets all names, which also frees their ids for another dictionary.
    pub(crate) fn forget(&mut self) {
        self.names.clear();
        self.raw.clear();
        self.stored.clear();
        self.slots.clear();
        self.slots.resize(256, 0);
        self.of_document.clear();
        self.of_last.clear();
        self.has_last = false;
        self.epoch = 0;
        // Stands for NO_NAME. 0xFF is never part of UTF-8, so no text matches it.
        self.names.push(Name {
            text: [0xFF; PREDICTED_SIZE],
            mask: u32::MAX,
            len: 0,
            next: 0,
            first: 0,
            epoch: 0,
            id: 0,
            raw: 0,
            stored: (0, 0),
            hash: 0,
            escaped: false,
        });
    }

    /// Starts a document: no name has an id.
    pub(crate) fn begin(&mut self) {
        if self.names.len() > CACHED_NAMES_MAX || self.raw.len() > CACHED_BYTES_MAX || self.epoch == u32::MAX
        {
            self.forget();
        }
        self.epoch += 1;
        self.of_document.clear();
    }

    /// Bytes held.
    pub(crate) fn allocated(&self) -> usize {
        self.names.capacity() * size_of::<Name>()
            + self.raw.capacity()
            + self.stored.capacity()
            + self.slots.capacity() * 4
            + self.of_document.capacity() * 4
            + self.of_last.capacity() * 4
            + self.last_section.capacity()
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: NameIndex) -> &Name {
        &self.names[index as usize]
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, index: NameIndex) -> &mut Name {
        &mut self.names[index as usize]
    }

    /// Whether `text`, which begins after an opening quote and has at least 32 bytes, begins with the name `index` and a closing
    /// quote; returns the length of both.
    #[inline(always)]
    pub(crate) fn matches<S: Simd>(&self, index: NameIndex, text: &[u8]) -> Option<usize> {
        debug_assert!(text.len() >= PREDICTED_SIZE);
        let name = &self.names[index as usize];
        // SAFETY: both sides have 32 bytes, and the caller chose an instruction set that is present.
        let equal = unsafe { S::equal_32(name.text.as_ptr(), text.as_ptr()) };
        if equal & name.mask != name.mask {
            return None;
        }
        let len = name.len as usize;
        if len < PREDICTED_SIZE {
            return Some(len + 1);
        }
        self.matches_long(index, text)
    }

    #[cold]
    fn matches_long(&self, index: NameIndex, text: &[u8]) -> Option<usize> {
        let raw = self.raw(index);
        (text.starts_with(raw) && text.get(raw.len()) == Some(&b'"')).then_some(raw.len() + 1)
    }

    /// The name's own bytes.
    pub(crate) fn raw(&self, index: NameIndex) -> &[u8] {
        let name = &self.names[index as usize];
        &self.raw[name.raw as usize..][..name.len as usize]
    }

    /// Finds or adds a name. `None` if so many names of one hash are there already that somebody chose them to be.
    pub(crate) fn intern(&mut self, name: &[u8], dictionary: Option<&Dictionary>) -> Option<NameIndex> {
        let hash = name_hash(name);
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        for _ in 0..PROBES_MAX {
            let index = self.slots[slot];
            if index == NO_NAME {
                return Some(self.add(name, hash, dictionary));
            }
            if self.names[index as usize].hash == hash && self.raw(index) == name {
                return Some(index);
            }
            slot = (slot + 1) & mask;
        }
        None
    }

    #[cold]
    fn add(&mut self, name: &[u8], hash: u32, dictionary: Option<&Dictionary>) -> NameIndex {
        let escaped = name.iter().any(|byte| *byte < 0x20 || *byte == b'"' || *byte == b'\\');
        let mut text = [0; PREDICTED_SIZE];
        let mut mask = u32::MAX;
        if escaped {
            // In text it is spelt with a backslash, so comparing it as it is would match wrong text.
            text = [0xFF; PREDICTED_SIZE];
        } else if name.len() < PREDICTED_SIZE {
            text[..name.len()].copy_from_slice(name);
            text[name.len()] = b'"';
            mask = u32::MAX >> (PREDICTED_SIZE - 1 - name.len());
        } else {
            text.copy_from_slice(&name[..PREDICTED_SIZE]);
        }
        let raw = self.raw.len() as u32;
        self.raw.extend_from_slice(name);
        let stored = match dictionary {
            None => (raw, name.len() as u32),
            Some(dictionary) => {
                let start = self.stored.len();
                dictionary.compress(name, &mut self.stored);
                (start as u32, (self.stored.len() - start) as u32)
            }
        };
        let index = self.names.len() as NameIndex;
        self.names.push(Name {
            text,
            mask,
            len: name.len() as u32,
            next: NO_NAME,
            first: NO_NAME,
            epoch: 0,
            id: 0,
            raw,
            stored,
            hash,
            escaped,
        });
        if self.names.len() * 2 > self.slots.len() {
            self.rehash();
        } else {
            self.place(index);
        }
        index
    }

    fn rehash(&mut self) {
        let len = self.slots.len() * 2;
        self.slots.clear();
        self.slots.resize(len, NO_NAME);
        for index in 1..self.names.len() as NameIndex {
            self.place(index);
        }
    }

    fn place(&mut self, index: NameIndex) {
        let mask = self.slots.len() - 1;
        let mut slot = self.names[index as usize].hash as usize & mask;
        while self.slots[slot] != NO_NAME {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = index;
    }

    /// The id of a name in the document being written, given on first use.
    #[inline(always)]
    pub(crate) fn id(&mut self, index: NameIndex) -> u32 {
        let name = &mut self.names[index as usize];
        if name.epoch != self.epoch {
            name.epoch = self.epoch;
            name.id = self.of_document.len() as u32;
            self.of_document.push(index);
        }
        name.id
    }

    /// The number of names of the document being written.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.of_document.len()
    }

    /// Appends the document's name section (name bytes, ends, index) to `out`.
    pub(crate) fn section(&mut self, out: &mut Vec<u8>, compressed: bool) -> SectionFacts {
        if self.has_last && self.of_last == self.of_document {
            self.sections_reused += 1;
            out.extend_from_slice(&self.last_section);
            return self.last_facts;
        }
        let start = out.len();
        let mut facts = SectionFacts::default();
        let mut size = 0;
        let source = if compressed { &self.stored } else { &self.raw };
        for index in &self.of_document {
            let name = &self.names[*index as usize];
            out.extend_from_slice(&source[name.stored.0 as usize..][..name.stored.1 as usize]);
            facts.escaped |= name.escaped;
            size += name.stored.1;
        }
        facts.ends_width = crate::format::width_of(size);
        let mut end = 0u32;
        for index in &self.of_document {
            end += self.names[*index as usize].stored.1;
            out.extend_from_slice(&end.to_le_bytes()[..facts.ends_width]);
        }
        if self.of_document.len() > crate::format::NAMES_WITHOUT_INDEX_MAX {
            self.put_index(out, compressed);
        }
        self.last_section.clear();
        self.last_section.extend_from_slice(&out[start..]);
        self.last_facts = facts;
        self.of_last.clone_from(&self.of_document);
        self.has_last = true;
        facts
    }

    fn put_index(&mut self, out: &mut Vec<u8>, compressed: bool) {
        let count = self.of_document.len();
        let slots = crate::format::name_index_slots(count);
        let width = crate::format::name_index_slot_width(count);
        let start = out.len();
        out.resize(start + slots * width, 0);
        for (id, index) in self.of_document.iter().enumerate() {
            let name = &self.names[*index as usize];
            let hash = if compressed {
                name_hash(&self.stored[name.stored.0 as usize..][..name.stored.1 as usize])
            } else {
                name.hash
            };
            let mut slot = hash as usize & (slots - 1);
            for _ in 0..crate::format::NAME_INDEX_PROBES_MAX {
                let place = &mut out[start + slot * width..][..width];
                if place.iter().all(|byte| *byte == 0) {
                    place.copy_from_slice(&(id as u32 + 1).to_le_bytes()[..width]);
                    break;
                }
                slot = (slot + 1) & (slots - 1);
            }
        }
    }

    /// A buffer for names that must be unescaped before they are looked up.
    pub(crate) fn take_scratch(&mut self) -> Vec<u8> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch
    }

    /// Gives the buffer back.
    pub(crate) fn return_scratch(&mut self, scratch: Vec<u8>) {
        self.scratch = scratch;
    }
}
