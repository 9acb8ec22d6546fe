//! A name that is read from many documents.

use std::cell::{Cell, RefCell};

use super::object::Object;
use super::text::Text;
use super::value::Value;
use crate::simd;

/// A property name that remembers where the documents before had it.
///
/// Documents of one collection share their shape, so the next document with as many properties most often has the name under the same id and the property at
/// the same place; both are checked before they are believed. For compressed names it also remembers their stored form.
#[derive(Clone, Debug)]
pub struct Property {
    name: Box<str>,
    stored: Stored,
    /// Where the last object had it whose number of properties has these low bits: among documents that leave out what they lack, those with as many
    /// properties most often lack the same.
    hints: [Cell<Hint>; HINTS],
    /// The name as the last dictionary compressed it.
    compressed: RefCell<Option<Compressed>>,
}

#[derive(Clone, Debug)]
struct Compressed {
    dictionary_id: u32,
    codes: Box<[u8]>,
    stored: Stored,
}

/// How many shapes are remembered.
const HINTS: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Hint {
    index: u32,
    id: u32,
}

/// The first and the last eight bytes of a name as it is stored, which are all of it up to 16 bytes.
#[derive(Clone, Copy, Debug)]
struct Stored {
    size: u32,
    first: u64,
    first_mask: u64,
    last: u64,
}

impl Stored {
    fn new(stored: &[u8]) -> Stored {
        let mut first = [0; 8];
        let few = stored.len().min(8);
        first[..few].copy_from_slice(&stored[..few]);
        Stored {
            // Longer than any name; then nothing is found.
            size: u32::try_from(stored.len()).unwrap_or(u32::MAX),
            first: u64::from_le_bytes(first),
            first_mask: if few == 0 { 0 } else { u64::MAX >> (64 - 8 * few) },
            last: stored.last_chunk().map_or(0, |last| u64::from_le_bytes(*last)),
        }
    }
}

impl Property {
    /// A property of this name.
    #[must_use]
    pub fn new(name: &str) -> Property {
        Property {
            name: name.into(),
            stored: Stored::new(name.as_bytes()),
            hints: Default::default(),
            compressed: RefCell::new(None),
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value of the property in `object`.
    #[inline(always)]
    pub fn get<'a>(&self, object: &Object<'a>) -> Option<Value<'a>> {
        Some(object.value_at(self.index_in(object)?))
    }

    /// The string under the property in `object`, if it is one. The fastest way to it.
    #[inline(always)]
    pub fn text<'a>(&self, object: &Object<'a>) -> Option<Text<'a>> {
        object.text_at(self.index_in(object)?)
    }

    /// The place of the property in the object's own order.
    #[inline(always)]
    fn index_in(&self, object: &Object<'_>) -> Option<u32> {
        if object.document.names_compressed() {
            return self.index_compressed(object);
        }
        self.index_stored(object, self.name.as_bytes(), &self.stored)
    }

    #[inline(always)]
    fn index_stored(&self, object: &Object<'_>, name: &[u8], stored: &Stored) -> Option<u32> {
        let Hint { index, id } = self.hints[object.len() % HINTS].get();
        if (index as usize) < object.len() && object.name_id(index) == id && is_name(object, id, name, stored)
        {
            return Some(index);
        }
        self.search(object, name)
    }

    /// The place of the property when it is not where the last document had it.
    #[inline(never)]
    fn search(&self, object: &Object<'_>, name: &[u8]) -> Option<u32> {
        let hint = &self.hints[object.len() % HINTS];
        let guess = hint.get().id;
        let id = if (guess as usize) < object.document.name_count()
            && simd::same(object.document.stored_name(guess), name)
        {
            guess
        } else {
            object.document.find_stored_name(name)?
        };
        let index = object.index_of_id(id)?;
        hint.set(Hint { index, id });
        Some(index)
    }

    #[inline(never)]
    fn index_compressed(&self, object: &Object<'_>) -> Option<u32> {
        let dictionary = object.document.dictionary();
        let mut kept = self.compressed.borrow_mut();
        if !matches!(&*kept, Some(kept) if kept.dictionary_id == dictionary.id()) {
            let mut codes = Vec::new();
            dictionary.compress(self.name.as_bytes(), &mut codes);
            let stored = Stored::new(&codes);
            *kept = Some(Compressed { dictionary_id: dictionary.id(), codes: codes.into(), stored });
        }
        let Compressed { codes, stored, .. } = kept.as_ref()?;
        self.index_stored(object, codes, stored)
    }
}

/// Whether the document's name of this id is `name`.
#[inline(always)]
fn is_name(object: &Object<'_>, id: u32, name: &[u8], stored: &Stored) -> bool {
    let document = &object.document;
    let (start, end) = document.name_range(id);
    if end.wrapping_sub(start) != stored.size
        || (document.bytes.word(start) ^ stored.first) & stored.first_mask != 0
    {
        return false;
    }
    stored.size <= 8
        || (document.bytes.word(end.wrapping_sub(8)) == stored.last
            && (stored.size <= 16 || document.bytes.range(start, end) == name))
}
