//! A name that is read from many documents.

use std::cell::{Cell, RefCell};

use super::object::Object;
use super::value::Value;

/// A property name that remembers where the last document had it.
///
/// Documents of one collection share their shape, so the next document most often has the name under the same id and the property at the same
/// place; both are checked before they are believed. For compressed names it also remembers their stored form.
#[derive(Clone, Debug)]
pub struct Property {
    name: Box<str>,
    index: Cell<u32>,
    id: Cell<u32>,
    /// The name compressed with the dictionary of this id.
    compressed: RefCell<(Option<u32>, Vec<u8>)>,
}

impl Property {
    /// A property of this name.
    #[must_use]
    pub fn new(name: &str) -> Property {
        Property {
            name: name.into(),
            index: Cell::new(0),
            id: Cell::new(0),
            compressed: RefCell::new((None, Vec::new())),
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value of the property in `object`.
    #[inline]
    pub fn get<'a>(&self, object: &Object<'a>) -> Option<Value<'a>> {
        if object.document.names_compressed() {
            return self.get_compressed(object);
        }
        self.get_stored(object, self.name.as_bytes())
    }

    #[inline(always)]
    fn get_stored<'a>(&self, object: &Object<'a>, stored: &[u8]) -> Option<Value<'a>> {
        let (index, id) = (self.index.get(), self.id.get());
        if (index as usize) < object.len()
            && object.name_id(index) == id
            && object.document.stored_name(id) == stored
        {
            return Some(object.value_at(index));
        }
        self.search(object, stored)
    }

    fn search<'a>(&self, object: &Object<'a>, stored: &[u8]) -> Option<Value<'a>> {
        let guess = self.id.get();
        let id = if object.document.stored_name(guess) == stored
            && (guess as usize) < object.document.name_count()
        {
            guess
        } else {
            object.document.find_stored_name(stored)?
        };
        let index = object.index_of_id(id)?;
        self.id.set(id);
        self.index.set(index);
        Some(object.value_at(index))
    }

    fn get_compressed<'a>(&self, object: &Object<'a>) -> Option<Value<'a>> {
        let dictionary = object.document.dictionary();
        let mut compressed = self.compressed.borrow_mut();
        if compressed.0 != Some(dictionary.id()) {
            compressed.1.clear();
            dictionary.compress(self.name.as_bytes(), &mut compressed.1);
            compressed.0 = Some(dictionary.id());
        }
        self.get_stored(object, &compressed.1)
    }
}
