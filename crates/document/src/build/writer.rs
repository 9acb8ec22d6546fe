//! Writes the binary document: values bottom-up, then names, then the footer (`docs/format/document.md`).
//!
//! What every source of documents drives: the JSON parser, the builder, `serde`, an edit. A value is written as soon as it is known, and an
//! [`Entry`] for it waits on a stack until its container closes; closing writes the container's head and drops its
//! entries. The callers keep the stack of open containers and call in a legal order.

use std::cell::OnceCell;
use std::sync::Arc;

use super::buffer::{Buffer, Entry};
use super::names::{NameCache, NameIndex};
use crate::dictionary::Dictionary;
use crate::error::Error;
use crate::format::{self, flags, head, kind};

/// Slots of the table that finds repeated text within a document; 16 KiB, so that it stays in the first-level cache.
const SHARED_SLOTS: usize = 4096;

/// Repeated text of at least this many bytes (length included) is always shared.
const SHARED_ALWAYS_MIN: usize = 12;

/// Shorter repeated text is shared only when so near that its distance still fits one byte in most containers.
const SHARED_NEAR_MAX: usize = 200;

/// The shortest text worth a look.
const SHARED_MIN: usize = 4;

/// Slots of the table of short texts lately compressed, and the longest of them.
const COMPRESSED_SLOTS: usize = 2048;
const COMPRESSED_TEXT_MAX: usize = 56;

/// A text of this document that was compressed, to find it again without compressing it again.
#[derive(Clone, Copy, Default)]
struct Repeated {
    /// The document it is of; of no document if 0.
    epoch: u32,
    /// Where its text lies in `Writer::texts`.
    text: u32,
    size: u32,
    /// Where and as what it was written.
    position: u32,
    kind: u8,
}

/// A short text, of any document, with its compressed form; an empty one if no shorter.
#[derive(Clone, Copy)]
struct Compressed {
    text: [u8; COMPRESSED_TEXT_MAX],
    codes: [u8; COMPRESSED_TEXT_MAX],
    text_size: u8,
    codes_size: u8,
}

/// What compressing costs is saved for texts met before: in this document, and short ones in any.
struct CompressionCache {
    epoch: u32,
    texts: Vec<u8>,
    repeated: Box<[Repeated]>,
    short: Box<[Compressed]>,
}

impl CompressionCache {
    fn new() -> CompressionCache {
        let unused = Compressed {
            text: [0; COMPRESSED_TEXT_MAX],
            codes: [0; COMPRESSED_TEXT_MAX],
            text_size: 0,
            codes_size: 0,
        };
        CompressionCache {
            epoch: 0,
            texts: Vec::new(),
            repeated: vec![Repeated::default(); SHARED_SLOTS].into_boxed_slice(),
            short: vec![unused; COMPRESSED_SLOTS].into_boxed_slice(),
        }
    }

    fn begin(&mut self) {
        self.texts.clear();
        if self.epoch == u32::MAX {
            self.repeated.fill(Repeated::default());
            self.epoch = 0;
        }
        self.epoch += 1;
    }

    fn forget_codes(&mut self) {
        for short in &mut self.short {
            short.text_size = 0;
        }
    }

    fn allocated(&self) -> usize {
        self.texts.capacity() + size_of_val(&*self.repeated) + size_of_val(&*self.short)
    }
}

/// A writer's dictionary.
#[inline]
fn ready(dictionary: &OnceCell<Arc<Dictionary>>) -> &Dictionary {
    dictionary.get_or_init(Dictionary::built_in)
}

/// A hash of some of a text's bytes: equal texts have equal ones, and it is cheap.
#[inline(always)]
fn quick_hash(text: &[u8]) -> u64 {
    let size = text.len();
    let (first, last) = if size >= 8 {
        (crate::simd::word(text), crate::simd::word(&text[size - 8..]))
    } else if size >= 4 {
        let half = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&text[at..at + 4]);
            u64::from(u32::from_le_bytes(word))
        };
        (half(0), half(size - 4))
    } else {
        (text.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0)
    };
    let middle = if size >= 24 { crate::simd::word(&text[size / 2..]) } else { 0 };
    (first ^ last.rotate_left(29) ^ middle.rotate_left(13) ^ size as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Whether a document is written for use in memory or for keeping.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Plain text: fastest to write and to read.
    #[default]
    Memory,
    /// Names and strings compressed where that is shorter.
    Disk,
}

pub(crate) struct Writer {
    pub(crate) out: Buffer,
    pub(crate) entries: Vec<Entry>,
    pub(crate) names: NameCache,
    mode: Mode,
    /// The one for [`Mode::Disk`]; the built-in one, which takes milliseconds to make, when the first such document begins.
    dictionary: OnceCell<Arc<Dictionary>>,
    /// Which dictionary the cached names are compressed with; `None` for none.
    names_dictionary: Option<u32>,
    /// `base + 1 + start` of the text last seen with a slot's hash; at most `base` when of an earlier document.
    shared: Box<[u32; SHARED_SLOTS]>,
    shared_base: u32,
    /// The places to escape in the string being written, as offsets in its text.
    pub(crate) escapes: Vec<u32>,
    compressed: Vec<u8>,
    /// Made when the first document is written in [`Mode::Disk`].
    cache: Option<Box<CompressionCache>>,
    seen: Vec<u64>,
    document_size_max: usize,
}

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer {
            out: Buffer::default(),
            entries: Vec::new(),
            names: NameCache::new(),
            mode: Mode::Memory,
            dictionary: OnceCell::new(),
            names_dictionary: None,
            shared: Box::new([0; SHARED_SLOTS]),
            shared_base: 0,
            escapes: Vec::new(),
            compressed: Vec::new(),
            cache: None,
            seen: Vec::new(),
            document_size_max: format::SIZE_MAX,
        }
    }

    /// Bytes held in buffers and caches.
    pub(crate) fn allocated(&self) -> usize {
        self.out.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.names.allocated()
            + size_of_val(&*self.shared)
            + self.escapes.capacity() * 4
            + self.compressed.capacity()
            + self.cache.as_ref().map_or(0, |cache| cache.allocated())
            + self.seen.capacity() * 8
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// The id of the dictionary that [`Mode::Disk`] compresses with.
    pub(crate) fn dictionary_id(&self) -> u32 {
        // The built-in one has 0.
        self.dictionary.get().map_or(0, |dictionary| dictionary.id())
    }

    pub(crate) fn set_dictionary(&mut self, dictionary: Arc<Dictionary>) {
        if let Some(cache) = &mut self.cache {
            cache.forget_codes();
        }
        // Another dictionary may have the id of the one before.
        self.names.forget();
        self.dictionary = OnceCell::from(dictionary);
    }

    /// Starts a document of at most `document_size_max` bytes.
    pub(crate) fn begin(&mut self, mode: Mode, document_size_max: usize) {
        self.mode = mode;
        self.document_size_max = document_size_max.min(format::SIZE_MAX);
        let names_dictionary = (mode == Mode::Disk).then(|| ready(&self.dictionary).id());
        if names_dictionary != self.names_dictionary {
            self.names.forget();
            self.names_dictionary = names_dictionary;
        }
        if mode == Mode::Disk {
            let cache = self.cache.get_or_insert_with(|| Box::new(CompressionCache::new()));
            cache.begin();
        }
        // Places of the document before lie at or below the base from here on.
        match self.shared_base.checked_add(self.out.len() as u32 + 1) {
            Some(base) if base < u32::MAX / 2 => self.shared_base = base,
            _ => {
                self.shared.fill(0);
                self.shared_base = 0;
            }
        }
        self.out.truncate(0);
        self.entries.clear();
        self.escapes.clear();
        self.names.begin();
    }

    /// Whether the document has outgrown its limit; asked at each container's end.
    #[inline(always)]
    pub(crate) fn too_large(&self) -> bool {
        self.out.len() > self.document_size_max
    }

    #[cold]
    pub(crate) fn size_error(&self) -> Error {
        Error::Limit { what: "document's size in bytes", limit: self.document_size_max }
    }

    /// Finds or adds a name in the cache.
    pub(crate) fn intern(&mut self, name: &[u8]) -> Result<NameIndex, Error> {
        let dictionary = (self.mode == Mode::Disk).then(|| ready(&self.dictionary));
        self.names
            .intern(name, dictionary)
            .ok_or(Error::Limit { what: "number of property names with one hash", limit: 512 })
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, kind: u8, name_id: u32, position: usize) {
        self.entries.push(Entry::new(kind, name_id, position as u32));
    }

    #[inline(always)]
    pub(crate) fn push_integer(&mut self, name_id: u32, value: i64) {
        if (0..=255).contains(&value) {
            self.push(kind::SMALL_INTEGER, name_id, value as usize);
            return;
        }
        let position = self.out.len();
        let width = format::width_of_integer(value);
        self.out.put_word(value as u64, width);
        self.push(kind::INTEGER + (width - 1) as u8, name_id, position);
    }

    /// A number `mantissa / 10^scale`; the scale is 1 to [`format::SCALE_MAX`].
    #[inline(always)]
    pub(crate) fn push_decimal(&mut self, name_id: u32, mantissa: i64, scale: u32) {
        debug_assert!((1..=format::SCALE_MAX).contains(&scale));
        let position = self.out.len();
        let width = format::width_of_integer(mantissa);
        self.out.put_word(mantissa as u64, width);
        self.out.put_word(u64::from(scale), 1);
        self.push(kind::DECIMAL + (width - 1) as u8, name_id, position);
    }

    pub(crate) fn push_double(&mut self, name_id: u32, value: f64) {
        debug_assert!(value.is_finite());
        let position = self.out.len();
        self.out.put_word(value.to_bits(), 8);
        self.push(kind::DOUBLE, name_id, position);
    }

    pub(crate) fn push_number_text(&mut self, name_id: u32, text: &[u8]) {
        self.out.put(text);
        let position = self.out.len();
        self.out.put_varint(text.len() as u32);
        self.push(kind::NUMBER_TEXT, name_id, position);
    }

    pub(crate) fn push_binary(&mut self, name_id: u32, bytes: &[u8]) {
        self.out.put(bytes);
        let position = self.out.len();
        self.out.put_varint(bytes.len() as u32);
        self.push(kind::BINARY, name_id, position);
    }

    pub(crate) fn push_embedded(&mut self, name_id: u32, document: &[u8]) {
        self.out.put(document);
        let position = self.out.len();
        self.out.put_varint(document.len() as u32);
        self.push(kind::EMBEDDED, name_id, position);
    }

    /// Writes a whole string; finds what it must escape.
    pub(crate) fn push_string(&mut self, name_id: u32, text: &[u8], surrogates: bool) {
        let start = self.out.len();
        self.out.put(text);
        self.escapes.clear();
        for (i, byte) in text.iter().enumerate() {
            let surrogate = surrogates && *byte == 0xED && text.get(i + 1).is_some_and(|next| *next >= 0xA0);
            if *byte < 0x20 || *byte == b'"' || *byte == b'\\' || surrogate {
                self.escapes.push(i as u32);
            }
        }
        self.finish_string(name_id, start, surrogates);
    }

    /// Ends the string whose text lies in `out` from `start` on and whose places to escape are in `escapes`.
    #[inline(always)]
    pub(crate) fn finish_string(&mut self, name_id: u32, start: usize, surrogates: bool) {
        if self.out.len() == start {
            self.push(kind::EMPTY_STRING, name_id, 0);
            return;
        }
        if self.mode == Mode::Disk && !surrogates {
            self.finish_compressed(name_id, start);
            return;
        }
        let mut kind = kind::STRING;
        let position = self.out.len();
        self.out.put_varint((position - start) as u32);
        if !self.escapes.is_empty() {
            kind |= kind::STRING_ESCAPES;
            self.put_escapes();
        }
        if surrogates {
            kind |= kind::STRING_SURROGATES;
        }
        let position = match self.share(start) {
            Some(earlier) => earlier + (position - start),
            None => position,
        };
        self.push(kind, name_id, position);
    }

    #[cold]
    #[inline(never)]
    fn put_escapes(&mut self) {
        self.out.put_varint(self.escapes.len() as u32);
        let mut after_last = 0;
        for place in &self.escapes {
            self.out.put_varint(place - after_last);
            after_last = place + 1;
        }
        self.escapes.clear();
    }

    /// Ends a string as [`Writer::finish_string`] does, compressed if that is shorter.
    #[inline(never)]
    fn finish_compressed(&mut self, name_id: u32, start: usize) {
        let Some(cache) = &mut self.cache else {
            return;
        };
        let text = &self.out.bytes()[start..];
        let size = text.len();
        let hash = quick_hash(text);
        let repeated = &mut cache.repeated[(hash >> 52) as usize % SHARED_SLOTS];
        if repeated.epoch == cache.epoch
            && repeated.size as usize == size
            && (size >= SHARED_ALWAYS_MIN || start - repeated.position as usize <= SHARED_NEAR_MAX)
            && cache.texts.get(repeated.text as usize..repeated.text as usize + size) == Some(text)
        {
            let (kind, position) = (repeated.kind, repeated.position as usize);
            self.escapes.clear();
            self.out.truncate(start);
            self.push(kind, name_id, position);
            return;
        }
        let text_at = cache.texts.len();
        cache.texts.extend_from_slice(text);
        let shorter = if size <= COMPRESSED_TEXT_MAX {
            let short = &mut cache.short[(hash >> 32) as usize % COMPRESSED_SLOTS];
            if short.text_size as usize != size || short.text[..size] != *text {
                short.text[..size].copy_from_slice(text);
                short.text_size = size as u8;
                let codes_size = ready(&self.dictionary).compress_into(text, &mut self.compressed);
                short.codes_size = if codes_size < size { codes_size as u8 } else { 0 };
                let kept = usize::from(short.codes_size);
                short.codes[..kept].copy_from_slice(&self.compressed[..kept]);
            }
            &short.codes[..usize::from(short.codes_size)]
        } else {
            let codes_size = ready(&self.dictionary).compress_into(text, &mut self.compressed);
            if codes_size < size { &self.compressed[..codes_size] } else { &[] }
        };
        let mut kind = kind::STRING;
        if !shorter.is_empty() {
            kind |= kind::STRING_COMPRESSED;
            self.escapes.clear();
            self.out.truncate(start);
            self.out.put(shorter);
        }
        let position = self.out.len();
        self.out.put_varint((position - start) as u32);
        if !self.escapes.is_empty() {
            kind |= kind::STRING_ESCAPES;
            self.put_escapes();
        }
        if let Some(cache) = &mut self.cache {
            cache.repeated[(hash >> 52) as usize % SHARED_SLOTS] = Repeated {
                epoch: cache.epoch,
                text: text_at as u32,
                size: size as u32,
                position: position as u32,
                kind,
            };
        }
        self.push(kind, name_id, position);
    }

    /// Looks for the bytes from `start` to the end earlier in the document; if they are there, drops them and says where.
    #[inline(always)]
    fn share(&mut self, start: usize) -> Option<usize> {
        let bytes = self.out.bytes();
        let text = &bytes[start..];
        let size = text.len();
        if size < SHARED_MIN || start >= (u32::MAX / 2) as usize {
            return None;
        }
        let hash = quick_hash(text);
        let slot = (hash >> 52) as usize % SHARED_SLOTS;
        let found = std::mem::replace(&mut self.shared[slot], self.shared_base + 1 + start as u32);
        if found <= self.shared_base {
            return None;
        }
        let earlier = (found - self.shared_base - 1) as usize;
        if size < SHARED_ALWAYS_MIN && start - earlier > SHARED_NEAR_MAX {
            return None;
        }
        if bytes.get(earlier..earlier + size).is_some_and(|other| earlier + size <= start && other == text) {
            self.shared[slot] = found;
            self.out.truncate(start);
            return Some(earlier);
        }
        None
    }

    /// Closes an object whose entries lie from `first` on: writes it, drops its entries, returns its kind and position.
    #[inline(always)]
    pub(crate) fn close_object(&mut self, first: usize) -> (u8, usize) {
        let mut count = self.entries.len() - first;
        if count == 0 {
            return (kind::EMPTY_OBJECT, 0);
        }
        let position = self.out.len();
        let mut seen = 0u64;
        let mut id_max = 0;
        let mut lowest = position as u32;
        for entry in &self.entries[first..] {
            let id = entry.name_id();
            seen |= 1 << (id & 63);
            id_max = id_max.max(id);
            let place = if entry.kind() >= kind::FIRST_WITH_POSITION { entry.position() } else { u32::MAX };
            lowest = lowest.min(place);
        }
        if seen.count_ones() as usize != count && self.drop_repeated(first, id_max) {
            count = self.entries.len() - first;
        }
        let first_id = self.entries[first].name_id();
        // Ids are given in the order of first use, so most often they run. The last one says so to all but few objects that differ in between.
        let runs = count > 1
            && id_max == first_id + count as u32 - 1
            && self.entries[first..].iter().zip(first_id..).all(|(entry, id)| entry.name_id() == id);
        let name_width = format::width_of(id_max);
        let width = format::width_of(position as u32 - lowest);
        let ids = if runs { head::NAME_IDS_RUN } else { name_width as u8 - 1 };
        self.put_head((width - 1) as u8 | ids << head::NAME_WIDTH_SHIFT, count);
        if runs {
            self.out.put_varint(first_id);
        }
        let entries = &self.entries[first..];
        if !runs {
            self.out.put_name_ids(entries, name_width);
        }
        self.out.put_kinds(entries);
        self.out.put_payloads(entries, width, position as u32);
        self.entries.truncate(first);
        (kind::OBJECT, position)
    }

    /// Closes an array, as [`Writer::close_object`] does an object.
    #[inline(always)]
    pub(crate) fn close_array(&mut self, first: usize) -> (u8, usize) {
        let count = self.entries.len() - first;
        if count == 0 {
            return (kind::EMPTY_ARRAY, 0);
        }
        let position = self.out.len();
        let mut lowest = position as u32;
        let kind = self.entries[first].kind();
        let mut different = 0;
        for entry in &self.entries[first..] {
            different |= entry.kind() ^ kind;
            let place = if entry.kind() >= kind::FIRST_WITH_POSITION { entry.position() } else { u32::MAX };
            lowest = lowest.min(place);
        }
        let width = format::width_of(position as u32 - lowest);
        let mut head = (width - 1) as u8;
        if different == 0 {
            head |= head::UNIFORM;
            if let Some(size) = kind::fixed_size(kind) {
                // Numbers are written one after the other and never shared, so they are where a packed array wants them.
                debug_assert_eq!(lowest as usize + count * size, position);
                head = head::UNIFORM | head::PACKED;
            }
        }
        self.put_head(head, count);
        let entries = &self.entries[first..];
        if different == 0 {
            self.out.put_word(u64::from(kind), 1);
        } else {
            self.out.put_kinds(entries);
        }
        if head & head::PACKED == 0 {
            self.out.put_payloads(entries, width, position as u32);
        }
        self.entries.truncate(first);
        (kind::ARRAY, position)
    }

    #[inline(always)]
    fn put_head(&mut self, head: u8, count: usize) {
        if count < head::COUNT_FOLLOWS {
            self.out.put_word(u64::from(head | (count as u8) << head::COUNT_SHIFT), 1);
        } else {
            self.out.put_word(u64::from(head | (head::COUNT_FOLLOWS as u8) << head::COUNT_SHIFT), 1);
            self.out.put_varint(count as u32);
        }
    }

    /// Keeps only the last entry of each name; returns whether there was anything to drop.
    #[cold]
    #[inline(never)]
    fn drop_repeated(&mut self, first: usize, id_max: u32) -> bool {
        // All zero before and after, so that an object pays for its own entries and not for all names of the document.
        if self.seen.len() <= id_max as usize / 64 {
            self.seen.resize(id_max as usize / 64 + 1, 0);
        }
        // From the end: the last one stays, and takes its own place in the order.
        let mut kept = self.entries.len();
        for i in (first..self.entries.len()).rev() {
            let entry = self.entries[i];
            let id = entry.name_id();
            let word = &mut self.seen[id as usize / 64];
            if *word >> (id % 64) & 1 == 0 {
                *word |= 1 << (id % 64);
                kept -= 1;
                self.entries[kept] = entry;
            }
        }
        for entry in &self.entries[kept..] {
            self.seen[entry.name_id() as usize / 64] = 0;
        }
        if kept == first {
            return false;
        }
        self.entries.drain(first..kept);
        true
    }

    /// Ends the document, whose root is the only entry left.
    pub(crate) fn finish(&mut self) -> Result<&[u8], Error> {
        let Some(root) = self.entries.pop() else {
            return Err(Error::Build("a document needs a value"));
        };
        debug_assert!(self.entries.is_empty());
        if root.kind() != kind::OBJECT && root.kind() != kind::ARRAY {
            self.out.put(&[0; format::BYTES_AFTER_VALUE_MIN]);
        }
        let compressed = self.mode == Mode::Disk;
        let facts = self.names.section(self.out.vec(), compressed && self.names.count() > 0);
        let footer = self.out.len();
        let distance = if root.kind() >= kind::FIRST_WITH_POSITION {
            footer as u32 - root.position()
        } else {
            root.position()
        };
        let width = format::width_of(distance.max(self.names.count() as u32));
        let mut bits = (width - 1) as u8 | (facts.ends_width.max(1) as u8 - 1) << 2;
        if facts.escaped {
            bits |= flags::NAMES_ESCAPED;
        }
        if compressed {
            bits |= flags::NAMES_COMPRESSED;
            let dictionary_id = self.dictionary_id();
            if dictionary_id != 0 {
                bits |= flags::DICTIONARY;
                self.out.put_word(u64::from(dictionary_id), 4);
            }
        }
        // The distance is measured from the footer's first byte, the dictionary id's if there is one.
        self.out.put_word(u64::from(root.kind()), 1);
        self.out.put_word(u64::from(distance), width);
        self.out.put_word(self.names.count() as u64, width);
        self.out.put_word(u64::from(bits), 1);
        self.out.put_word(u64::from(format::VERSION), 1);
        if self.too_large() {
            return Err(self.size_error());
        }
        Ok(self.out.bytes())
    }
}
