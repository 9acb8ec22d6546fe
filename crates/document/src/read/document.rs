//! A whole document: its footer, its names, its root.

use super::bytes::Bytes;
use super::object::Object;
use super::text::Text;
use super::value::Value;
use crate::dictionary::Dictionary;
use crate::error::{Damage, Error};
use crate::format::{self, flags, kind};
use crate::limits::Limits;

/// A binary document that is read in place. Copying it copies a few words.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    pub(crate) bytes: Bytes<'a>,
    dictionary: Option<&'a Dictionary>,
    pub(crate) names_start: u32,
    ends_start: u32,
    index_start: u32,
    footer: u32,
    name_count: u32,
    dictionary_id: u32,
    ends_width: u8,
    flags: u8,
    root_kind: u8,
    root_payload: u32,
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
    /// Other bytes do no harm (there is no unsafe code behind this, and nothing panics), but what is read from them means nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if the footer is not one; [`Error::Dictionary`] if a trained dictionary is needed.
    pub fn open(bytes: &'a [u8]) -> Result<Document<'a>, Error> {
        let document = Document::open_footer(bytes)?;
        if document.dictionary_id != 0 {
            return Err(Error::Dictionary { needed: document.dictionary_id, given: 0 });
        }
        Ok(document)
    }

    /// As [`Document::open`], for documents that may have been written with `dictionary`.
    ///
    /// # Errors
    ///
    /// As [`Document::open`]; [`Error::Dictionary`] if another dictionary is needed.
    pub fn open_with(bytes: &'a [u8], dictionary: &'a Dictionary) -> Result<Document<'a>, Error> {
        let mut document = Document::open_footer(bytes)?;
        if document.dictionary_id != 0 {
            if document.dictionary_id != dictionary.id() {
                return Err(Error::Dictionary { needed: document.dictionary_id, given: dictionary.id() });
            }
            document.dictionary = Some(dictionary);
        }
        Ok(document)
    }

    fn open_footer(bytes: &'a [u8]) -> Result<Document<'a>, Error> {
        let damaged = |offset: usize, reason| Err(Error::Damaged(Damage { offset, reason }));
        let len = bytes.len();
        if len < 6 {
            return damaged(0, "shorter than any document");
        }
        if len > format::SIZE_MAX {
            return damaged(0, "longer than any document");
        }
        if bytes[len - 1] != format::VERSION {
            return damaged(len - 1, "unknown version (this build reads version 1, 0xD1)");
        }
        let bits = bytes[len - 2];
        let view = Bytes(bytes);
        let width = u32::from(bits & flags::FOOTER_WIDTH) + 1;
        let has_dictionary = bits & flags::DICTIONARY != 0;
        let footer_size = 3 + 2 * width + if has_dictionary { 4 } else { 0 };
        let Some(footer) = (len as u32).checked_sub(footer_size) else {
            return damaged(0, "shorter than its footer");
        };
        let at = footer + if has_dictionary { 4 } else { 0 };
        let dictionary_id = if has_dictionary { view.unsigned(footer, 4) } else { 0 };
        let root_kind = view.byte(at);
        let distance = view.unsigned(at + 1, width);
        let name_count = view.unsigned(at + 1 + width, width);
        let ends_width = u32::from((bits & flags::ENDS_WIDTH) >> 2) + 1;
        if name_count as usize > format::NAME_COUNT_MAX {
            return damaged(at as usize, "too many names");
        }
        if root_kind == kind::EMBEDDED {
            // So that asking an embedded document for its root never recurses.
            return damaged(at as usize, "the root is an embedded document");
        }
        let mut index_size = 0;
        if name_count as usize > format::NAMES_WITHOUT_INDEX_MAX {
            let count = name_count as usize;
            index_size = (format::name_index_slots(count) * format::name_index_slot_width(count)) as u32;
        }
        let places = footer
            .checked_sub(index_size)
            .and_then(|index_start| Some((index_start, index_start.checked_sub(name_count * ends_width)?)));
        let Some((index_start, ends_start)) = places else {
            return damaged(at as usize, "more names than it has bytes");
        };
        let names_size =
            if name_count == 0 { 0 } else { view.unsigned(index_start - ends_width, ends_width) };
        let Some(names_start) = ends_start.checked_sub(names_size) else {
            return damaged(index_start as usize, "names longer than the document");
        };
        let root_payload = if root_kind >= kind::FIRST_WITH_POSITION {
            match footer.checked_sub(distance) {
                Some(position) if position < names_start => position,
                _ => return damaged(at as usize, "the root lies outside the values"),
            }
        } else {
            distance
        };
        Ok(Document {
            bytes: view,
            dictionary: None,
            names_start,
            ends_start,
            index_start,
            footer,
            name_count,
            dictionary_id,
            ends_width: ends_width as u8,
            flags: bits,
            root_kind,
            root_payload,
        })
    }

    /// The document's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes.0
    }

    /// The id of the trained dictionary it was written with; 0 if with the built-in one or none.
    #[must_use]
    pub fn dictionary_id(&self) -> u32 {
        self.dictionary_id
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

    pub(crate) fn name_places(&self) -> (u32, u32, u32) {
        (self.ends_start, self.index_start, self.footer)
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

    /// Takes another document's dictionary: an embedded document shares its host's.
    pub(crate) fn with_dictionary_of(mut self, other: &Document<'a>) -> Document<'a> {
        if self.dictionary_id == other.dictionary_id {
            self.dictionary = other.dictionary;
        }
        self
    }

    pub(crate) fn embedded(bytes: &'a [u8]) -> Result<Document<'a>, Error> {
        Document::open_footer(bytes)
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
        self.bytes.unsigned(
            self.ends_start.wrapping_add(id.wrapping_mul(u32::from(self.ends_width))),
            u32::from(self.ends_width),
        )
    }

    /// The bytes of a name as they are stored.
    #[inline(always)]
    pub(crate) fn stored_name(&self, id: u32) -> &'a [u8] {
        if id >= self.name_count {
            return &[];
        }
        let start = if id == 0 { 0 } else { self.name_end(id - 1) };
        let end = self.name_end(id);
        self.bytes.range(self.names_start.wrapping_add(start), self.names_start.wrapping_add(end))
    }

    /// A name.
    #[inline]
    pub(crate) fn name(&self, id: u32) -> Text<'a> {
        Text::of_name(*self, self.stored_name(id))
    }

    /// Finds the id of a name by its stored bytes.
    #[inline]
    pub(crate) fn find_stored_name(&self, stored: &[u8]) -> Option<u32> {
        if self.name_count as usize <= format::NAMES_WITHOUT_INDEX_MAX {
            let mut start = 0;
            for id in 0..self.name_count {
                let end = self.name_end(id);
                if end.wrapping_sub(start) as usize == stored.len()
                    && self
                        .bytes
                        .range(self.names_start.wrapping_add(start), self.names_start.wrapping_add(end))
                        == stored
                {
                    return Some(id);
                }
                start = end;
            }
            return None;
        }
        self.find_in_index(stored)
    }

    fn find_in_index(&self, stored: &[u8]) -> Option<u32> {
        let count = self.name_count as usize;
        let slots = format::name_index_slots(count) as u32;
        let width = format::name_index_slot_width(count) as u32;
        let mut slot = format::name_hash(stored) & (slots - 1);
        for _ in 0..format::NAME_INDEX_PROBES_MAX {
            let id = self.bytes.unsigned(self.index_start + slot * width, width).checked_sub(1)?;
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
            let found = self.bytes.unsigned(self.index_start + slot * width, width);
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
