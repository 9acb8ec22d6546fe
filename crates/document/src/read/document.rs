//! A whole document: its footer, its names, its root.

use super::bytes::Bytes;
use super::object::Object;
use super::text::Text;
use super::value::Value;
use crate::dictionary::Dictionary;
use crate::error::{Damage, Error};
use crate::format::{self, flags, kind};
use crate::limits::Limits;
use crate::simd;

/// A binary document that is read in place. Copying it copies a few words.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    pub(crate) bytes: Bytes<'a>,
    /// The trained dictionary it was written with, if that was given.
    dictionary: Option<&'a Dictionary>,
    pub(crate) names_start: u32,
    ends_start: u32,
    name_count: u32,
    root_payload: u32,
    root_kind: u8,
    flags: u8,
}

/// What the footer says.
#[derive(Clone, Copy)]
struct Footer {
    /// Where it starts.
    position: u32,
    dictionary_id: u32,
    root_kind: u8,
    distance: u32,
    name_count: u32,
    flags: u8,
}

impl Footer {
    /// Most footers fit the document's last eight bytes: no dictionary, and places of one or two bytes.
    #[inline(always)]
    fn read(bytes: &[u8]) -> Result<Footer, Error> {
        if let Some(last) = bytes.last_chunk::<8>() {
            let last = u64::from_le_bytes(*last);
            let flags = (last >> 48) as u8;
            let shift = 8 * (u32::from(flags & 1) + 1);
            if (last >> 56) as u8 == format::VERSION
                && flags & (flags::DICTIONARY | 0b10) == 0
                && bytes.len() <= format::SIZE_MAX
            {
                let mask = (1u64 << shift) - 1;
                return Ok(Footer {
                    position: bytes.len() as u32 - 3 - shift / 4,
                    dictionary_id: 0,
                    root_kind: (last >> (40 - 2 * shift)) as u8,
                    distance: (last >> (48 - 2 * shift) & mask) as u32,
                    name_count: (last >> (48 - shift) & mask) as u32,
                    flags,
                });
            }
        }
        Footer::read_any(bytes)
    }

    #[inline(never)]
    fn read_any(bytes: &[u8]) -> Result<Footer, Error> {
        let len = bytes.len();
        if len < SIZE_MIN {
            return Err(damaged(0, "shorter than any document"));
        }
        if len > format::SIZE_MAX {
            return Err(damaged(0, "longer than any document"));
        }
        if bytes[len - 1] != format::VERSION {
            return Err(damaged(len as u32 - 1, "unknown version (this build reads version 1, 0xD1)"));
        }
        let flags = bytes[len - 2];
        let view = Bytes(bytes);
        let width = u32::from(flags & flags::FOOTER_WIDTH) + 1;
        let dictionary_size = if flags & flags::DICTIONARY != 0 { 4 } else { 0 };
        let Some(position) = (len as u32).checked_sub(3 + 2 * width + dictionary_size) else {
            return Err(damaged(0, "shorter than its footer"));
        };
        let at = position + dictionary_size;
        Ok(Footer {
            position,
            dictionary_id: if dictionary_size > 0 { view.unsigned(position, 4) } else { 0 },
            root_kind: view.byte(at),
            distance: view.unsigned(at + 1, width),
            name_count: view.unsigned(at + 1 + width, width),
            flags,
        })
    }
}

/// Cache lines that hold footer, names and the root object of most documents.
const PREFETCHED_LINES_AT_END: usize = 4;

/// Cache lines that hold the first values of most documents.
const PREFETCHED_LINES_AT_START: usize = 6;

/// The fewest bytes of a document: an array of one element, and the shortest footer.
const SIZE_MIN: usize = 8;

#[cold]
fn damaged(offset: u32, reason: &'static str) -> Error {
    Error::Damaged(Damage { offset: offset as usize, reason })
}

impl<'a> Document<'a> {
    /// Reads bytes from anywhere: checks all of them once, then opens the document.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] with the place and the reason; [`Error::Dictionary`] if they were written with a trained dictionary.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Document<'a>, Error> {
        let document = Document::open(bytes)?;
        document.validate(&Limits::default())?;
        Ok(document)
    }

    /// Opens bytes that this crate wrote, or that passed [`Document::validate`] before. Looks at the footer only.
    ///
    /// Other bytes do no harm (what reads them checks every place, and nothing panics), but what is read from them means nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if the footer is not one; [`Error::Dictionary`] if a trained dictionary is needed.
    #[inline]
    pub fn open(bytes: &'a [u8]) -> Result<Document<'a>, Error> {
        let (document, dictionary_id) = Document::open_footer(bytes)?;
        if dictionary_id != 0 {
            return Err(Error::Dictionary { needed: dictionary_id, given: 0 });
        }
        Ok(document)
    }

    /// As [`Document::open`], for documents that may have been written with `dictionary`.
    ///
    /// # Errors
    ///
    /// As [`Document::open`]; [`Error::Dictionary`] if another dictionary is needed.
    pub fn open_with(bytes: &'a [u8], dictionary: &'a Dictionary) -> Result<Document<'a>, Error> {
        let (mut document, dictionary_id) = Document::open_footer(bytes)?;
        if dictionary_id != 0 {
            if dictionary_id != dictionary.id() {
                return Err(Error::Dictionary { needed: dictionary_id, given: dictionary.id() });
            }
            document.dictionary = Some(dictionary);
        }
        Ok(document)
    }

    /// The document and the id of the dictionary it needs.
    #[inline(always)]
    fn open_footer(bytes: &'a [u8]) -> Result<(Document<'a>, u32), Error> {
        // The names and the root's own bytes are needed next, and the first values soon; one after the other they would be three waits for memory.
        Document::prefetch(bytes);
        let footer = Footer::read(bytes)?;
        let view = Bytes(bytes);
        let Footer { position, name_count, root_kind, .. } = footer;
        let damaged_here = |reason| Err(damaged(position, reason));
        if name_count as usize > format::NAME_COUNT_MAX {
            return damaged_here("too many names");
        }
        if root_kind == kind::EMBEDDED {
            // So that asking an embedded document for its root never recurses.
            return damaged_here("the root is an embedded document");
        }
        let ends_width = ends_width(footer.flags);
        let Some(index_start) = position.checked_sub(index_size(name_count)) else {
            return damaged_here("more names than it has bytes");
        };
        let Some(ends_start) = index_start.checked_sub(name_count * ends_width) else {
            return damaged_here("more names than it has bytes");
        };
        let names_size =
            if name_count == 0 { 0 } else { view.unsigned(index_start - ends_width, ends_width) };
        let Some(names_start) = ends_start.checked_sub(names_size) else {
            return damaged_here("names longer than the document");
        };
        let mut root_payload = footer.distance;
        if root_kind >= kind::FIRST_WITH_POSITION {
            // A distance beyond the start wraps to a place beyond the names.
            root_payload = position.wrapping_sub(root_payload);
            if root_payload >= names_start {
                return damaged_here("the root lies outside the values");
            }
        }
        let document = Document {
            bytes: view,
            dictionary: None,
            names_start,
            ends_start,
            name_count,
            root_payload,
            root_kind,
            flags: footer.flags,
        };
        Ok((document, footer.dictionary_id))
    }

    /// Asks the processor for what reading a few properties will touch: the end of the document, where names and root are, and its beginning, where the
    /// first values are. Opening does it too; who reads many documents in turn does better to call it one or two documents ahead.
    #[inline(always)]
    pub fn prefetch(bytes: &[u8]) {
        const LINE: usize = 64;
        for line in 1..=PREFETCHED_LINES_AT_END {
            // Beyond the start of a short document this asks for a line of its neighbour, which costs nothing that could be measured.
            simd::prefetch(bytes, bytes.len().wrapping_sub(line * LINE));
        }
        for line in 0..PREFETCHED_LINES_AT_START {
            simd::prefetch(bytes, line * LINE);
        }
    }

    /// The document's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes.0
    }

    /// The id of the trained dictionary it was written with; 0 if with the built-in one or none.
    #[must_use]
    pub fn dictionary_id(&self) -> u32 {
        if self.flags & flags::DICTIONARY == 0 { 0 } else { self.bytes.unsigned(self.footer(), 4) }
    }

    /// The value that is the whole document.
    #[inline]
    #[must_use]
    pub fn root(&self) -> Value<'a> {
        Value::at(*self, self.root_kind, self.root_payload)
    }

    /// The root, if it is an object.
    #[inline]
    #[must_use]
    pub fn object(&self) -> Option<Object<'a>> {
        match self.root_kind {
            kind::OBJECT => Some(Object::at(*self, self.root_payload)),
            kind::EMPTY_OBJECT => Some(Object::empty(*self)),
            _ => None,
        }
    }

    /// The value of a property of the root object; see [`Object::get`].
    #[inline]
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.object()?.get(name)
    }

    /// The number of distinct property names.
    #[must_use]
    pub fn name_count(&self) -> usize {
        self.name_count as usize
    }

    /// The distinct property names, in the order of first use.
    pub fn names(&self) -> impl ExactSizeIterator<Item = Text<'a>> + use<'a> {
        let document = *self;
        (0..self.name_count).map(move |id| document.name(id))
    }

    pub(crate) fn root_facts(&self) -> (u8, u32) {
        (self.root_kind, self.root_payload)
    }

    /// Where the ends of the names, the name index and the footer start.
    pub(crate) fn name_places(&self) -> (u32, u32, u32) {
        (self.ends_start, self.index_start(), self.footer())
    }

    #[inline]
    fn index_start(&self) -> u32 {
        self.ends_start + self.name_count * ends_width(self.flags)
    }

    #[inline]
    fn footer(&self) -> u32 {
        self.index_start() + index_size(self.name_count)
    }

    pub(crate) fn flags(&self) -> u8 {
        self.flags
    }

    #[inline]
    pub(crate) fn dictionary(&self) -> &'a Dictionary {
        match self.dictionary {
            Some(dictionary) => dictionary,
            None => Dictionary::built_in_ref(),
        }
    }

    /// The dictionary, if it is not the built-in one.
    #[inline(always)]
    pub(crate) fn trained_dictionary(&self) -> Option<&'a Dictionary> {
        self.dictionary
    }

    /// Takes another document's dictionary: an embedded document shares its host's.
    pub(crate) fn with_dictionary_of(mut self, other: &Document<'a>) -> Document<'a> {
        if self.dictionary_id() == other.dictionary_id() {
            self.dictionary = other.dictionary;
        }
        self
    }

    pub(crate) fn embedded(bytes: &'a [u8]) -> Result<Document<'a>, Error> {
        Ok(Document::open_footer(bytes)?.0)
    }

    #[inline]
    pub(crate) fn names_compressed(&self) -> bool {
        self.flags & flags::NAMES_COMPRESSED != 0
    }

    pub(crate) fn names_escaped(&self) -> bool {
        self.flags & flags::NAMES_ESCAPED != 0
    }

    /// Where the name ends, as an offset from the first name byte.
    #[inline(always)]
    pub(crate) fn name_end(&self, id: u32) -> u32 {
        let width = ends_width(self.flags);
        self.bytes.unsigned(self.ends_start.wrapping_add(id.wrapping_mul(width)), width)
    }

    /// From where to where a name is stored.
    #[inline(always)]
    pub(crate) fn name_range(&self, id: u32) -> (u32, u32) {
        if id >= self.name_count {
            return (0, 0);
        }
        let (start, end) = if self.flags & flags::ENDS_WIDTH == 0 {
            // Both ends in one load; before the first one is the last byte of the names.
            let ends = self.bytes.unsigned(self.ends_start.wrapping_add(id).wrapping_sub(1), 2);
            (if id == 0 { 0 } else { ends & 0xFF }, ends >> 8)
        } else {
            (if id == 0 { 0 } else { self.name_end(id - 1) }, self.name_end(id))
        };
        (self.names_start.wrapping_add(start), self.names_start.wrapping_add(end))
    }

    /// The bytes of a name as they are stored.
    #[inline(always)]
    pub(crate) fn stored_name(&self, id: u32) -> &'a [u8] {
        let (start, end) = self.name_range(id);
        self.bytes.range(start, end)
    }

    /// A name.
    #[inline]
    pub(crate) fn name(&self, id: u32) -> Text<'a> {
        Text::of_name(*self, self.name_range(id))
    }

    /// Finds the id of a name by its stored bytes.
    #[inline]
    pub(crate) fn find_stored_name(&self, stored: &[u8]) -> Option<u32> {
        if self.name_count as usize > format::NAMES_WITHOUT_INDEX_MAX {
            self.find_in_index(stored)
        } else if self.flags & flags::ENDS_WIDTH == 0 {
            self.find_by_short_ends(stored)
        } else {
            (0..self.name_count).find(|id| simd::same(self.stored_name(*id), stored))
        }
    }

    /// Looks at the lengths of eight names at a time, when their ends are bytes.
    #[inline(always)]
    fn find_by_short_ends(&self, stored: &[u8]) -> Option<u32> {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGHS: u64 = 0x8080_8080_8080_8080;
        let size = u8::try_from(stored.len()).ok()?;
        let mut id = 0;
        // The end of the name before, in the lowest byte.
        let mut before = 0;
        while id < self.name_count {
            let ends = self.bytes.word(self.ends_start.wrapping_add(id));
            let starts = ends << 8 | before;
            // Each byte of one less each byte of the other.
            let sizes = ((ends | HIGHS) - (starts & !HIGHS)) ^ ((ends ^ !starts) & HIGHS);
            let other = sizes ^ (ONES * u64::from(size));
            // The high bit of each byte that is zero, and of no other: a name of another length must not be compared, for its neighbour follows it.
            let mut found = !(((other & !HIGHS) + !HIGHS) | other | !HIGHS);
            while found != 0 {
                let place = found.trailing_zeros() / 8;
                found &= found - 1;
                if id + place >= self.name_count {
                    return None;
                }
                let start = self.names_start.wrapping_add((starts >> (8 * place)) as u8 as u32);
                if simd::same(self.bytes.range(start, start + u32::from(size)), stored) {
                    return Some(id + place);
                }
            }
            before = ends >> 56;
            id += 8;
        }
        None
    }

    fn find_in_index(&self, stored: &[u8]) -> Option<u32> {
        let count = self.name_count as usize;
        let slots = format::name_index_slots(count) as u32;
        let width = format::name_index_slot_width(count) as u32;
        let mut slot = format::name_hash(stored) & (slots - 1);
        for _ in 0..format::NAME_INDEX_PROBES_MAX {
            let id = self.bytes.unsigned(self.index_start() + slot * width, width).checked_sub(1)?;
            if self.stored_name(id) == stored {
                return Some(id);
            }
            slot = (slot + 1) & (slots - 1);
        }
        (0..self.name_count).find(|id| self.stored_name(*id) == stored)
    }

    /// Whether the name index leads to a name, or lets a reader look through all names.
    pub(crate) fn index_finds(&self, id: u32) -> bool {
        let count = self.name_count as usize;
        let slots = format::name_index_slots(count) as u32;
        let width = format::name_index_slot_width(count) as u32;
        let mut slot = format::name_hash(self.stored_name(id)) & (slots - 1);
        for _ in 0..format::NAME_INDEX_PROBES_MAX {
            let found = self.bytes.unsigned(self.index_start() + slot * width, width);
            if found == id + 1 {
                return true;
            }
            if found == 0 || found > self.name_count {
                return false;
            }
            slot = (slot + 1) & (slots - 1);
        }
        true
    }

    /// Finds the id of a name.
    #[inline]
    pub(crate) fn find_name(&self, name: &str) -> Option<u32> {
        if self.names_compressed() {
            return self.find_compressed_name(name);
        }
        self.find_stored_name(name.as_bytes())
    }

    #[inline(never)]
    fn find_compressed_name(&self, name: &str) -> Option<u32> {
        self.dictionary().with_compressed(name.as_bytes(), |stored| self.find_stored_name(stored))
    }
}

/// The bytes of one end of a name.
#[inline(always)]
fn ends_width(flags: u8) -> u32 {
    u32::from((flags & flags::ENDS_WIDTH) >> 2) + 1
}

/// The bytes of the name index.
#[inline(always)]
fn index_size(name_count: u32) -> u32 {
    if name_count as usize <= format::NAMES_WITHOUT_INDEX_MAX {
        return 0;
    }
    let count = name_count as usize;
    (format::name_index_slots(count) * format::name_index_slot_width(count)) as u32
}

impl std::fmt::Debug for Document<'_> {
    /// Prints as JSON.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::fmt::Display for Document<'_> {
    /// Prints as JSON, indented with `{:#}`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.root(), f)
    }
}
