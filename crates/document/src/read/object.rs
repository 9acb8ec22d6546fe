//! Objects.

use std::borrow::Cow;

use super::array::Array;
use super::bytes::back;
use super::document::Document;
use super::text::Text;
use super::value::Value;
use crate::error::{Error, Result};
use crate::format::{head, kind};

/// An object of a document.
#[derive(Clone, Copy)]
pub struct Object<'a> {
    pub(crate) document: Document<'a>,
    pub(crate) position: u32,
    count: u32,
    /// Where the kinds start; name ids, if each has its own, lie before them, payloads after them.
    kinds: u32,
    shape: Shape,
}

/// The payloads' width less one in the lowest two bits, then two bits of the name ids' width or [`head::NAME_IDS_RUN`], and from bit 8 on the first name id
/// where they run: in one word, so that an object stays small.
#[derive(Clone, Copy)]
struct Shape(u32);

impl Shape {
    #[inline(always)]
    fn width(self) -> u32 {
        (self.0 & u32::from(head::PAYLOAD_WIDTH)) + 1
    }

    /// The bytes of one name id; 4 where they run.
    #[inline(always)]
    fn id_width(self) -> u32 {
        (self.0 >> head::NAME_WIDTH_SHIFT & 3) + 1
    }

    #[inline(always)]
    fn runs(self) -> bool {
        self.id_width() == u32::from(head::NAME_IDS_RUN) + 1
    }

    #[inline(always)]
    fn first_id(self) -> u32 {
        self.0 >> 8
    }
}

impl<'a> Object<'a> {
    #[inline(always)]
    pub(crate) fn at(document: Document<'a>, position: u32) -> Object<'a> {
        let bytes = document.bytes;
        let head = bytes.byte(position);
        let mut ids = position.wrapping_add(1);
        let mut count = u32::from(head >> head::COUNT_SHIFT);
        if count as usize == head::COUNT_FOLLOWS {
            (count, ids) = bytes.varint(ids);
        }
        // Each property has at least two bytes, so more properties than bytes are damage.
        count = count.min(bytes.0.len() as u32);
        let mut shape = Shape(u32::from(head & 0xF));
        let kinds = if shape.runs() {
            let (first, after) = bytes.varint(ids);
            shape.0 |= first << 8;
            after
        } else {
            ids.wrapping_add(count.wrapping_mul(shape.id_width()))
        };
        Object { document, position, count, kinds, shape }
    }

    pub(crate) fn empty(document: Document<'a>) -> Object<'a> {
        Object { document, position: 0, count: 0, kinds: 0, shape: Shape(0) }
    }

    #[inline(always)]
    fn payloads(&self) -> u32 {
        self.kinds.wrapping_add(self.count)
    }

    /// Where the name ids start, if each has its own.
    #[inline(always)]
    fn ids(&self) -> u32 {
        self.kinds.wrapping_sub(self.count.wrapping_mul(self.shape.id_width()))
    }

    /// The number of properties.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The value of the property `name`: finds the name in the document, then its id among this object's. A name that is read from
    /// many documents is found faster through a [`Property`](crate::Property).
    #[inline]
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        let id = self.document.find_name(name)?;
        Some(self.value_at(self.index_of_id(id)?))
    }

    /// The string under `name`, if there is such a property and it is one. As fast as reading gets without a [`Property`](crate::Property).
    #[inline]
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Text<'a>> {
        let id = self.document.find_name(name)?;
        self.text_at(self.index_of_id(id)?)
    }

    /// Whether there is a property `name`.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.index_of(name).is_some()
    }

    /// The place of the property `name` in the order of the properties.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        let id = self.document.find_name(name)?;
        Some(self.index_of_id(id)? as usize)
    }

    /// The property at a place in the document's own order.
    #[inline]
    #[must_use]
    pub fn at_index(&self, index: usize) -> Option<(Text<'a>, Value<'a>)> {
        if index >= self.count as usize {
            return None;
        }
        let index = index as u32;
        Some((self.document.name(self.name_id(index)), self.value_at(index)))
    }

    #[inline(always)]
    pub(crate) fn index_of_id(&self, id: u32) -> Option<u32> {
        if self.shape.runs() {
            return id.checked_sub(self.shape.first_id()).filter(|index| *index < self.count);
        }
        if self.shape.id_width() == 1 {
            let ids = self.document.bytes.range(self.ids(), self.kinds);
            return ids.iter().position(|byte| u32::from(*byte) == id).map(|index| index as u32);
        }
        (0..self.count).find(|index| self.name_id(*index) == id)
    }

    #[inline(always)]
    pub(crate) fn name_id(&self, index: u32) -> u32 {
        if self.shape.runs() {
            return self.shape.first_id().wrapping_add(index);
        }
        let width = self.shape.id_width();
        self.document.bytes.unsigned(self.ids().wrapping_add(index.wrapping_mul(width)), width)
    }

    /// Kind and position (or inline payload) of a property.
    #[inline(always)]
    pub(crate) fn entry(&self, index: u32) -> (u8, u32) {
        let bytes = self.document.bytes;
        let width = self.shape.width();
        let kind = bytes.byte(self.kinds.wrapping_add(index));
        let payload = bytes.unsigned(self.payloads().wrapping_add(index.wrapping_mul(width)), width);
        (kind, if kind >= kind::FIRST_WITH_POSITION { back(self.position, payload) } else { payload })
    }

    #[inline(always)]
    pub(crate) fn value_at(&self, index: u32) -> Value<'a> {
        let (kind, payload) = self.entry(index);
        Value::at(self.document, kind, payload)
    }

    #[inline(always)]
    pub(crate) fn text_at(&self, index: u32) -> Option<Text<'a>> {
        let (kind, payload) = self.entry(index);
        match kind {
            0x40..=0x45 => Some(Text::at(self.document, kind, payload)),
            kind::EMPTY_STRING => Some(Text::empty(self.document)),
            _ => None,
        }
    }

    /// The properties in the document's own order.
    #[inline]
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = (Text<'a>, Value<'a>)> + DoubleEndedIterator + use<'a> {
        let object = *self;
        (0..self.count)
            .map(move |index| (object.document.name(object.name_id(index)), object.value_at(index)))
    }

    /// The properties sorted by the bytes of their names. `order` is scratch that may be used again; nothing else is allocated
    /// unless names are compressed.
    pub fn sorted<'o>(
        &self,
        order: &'o mut Vec<u32>,
    ) -> impl ExactSizeIterator<Item = (Text<'a>, Value<'a>)> + use<'a, 'o> {
        let object = *self;
        order.clear();
        order.extend(0..self.count);
        if self.document.names_compressed() {
            order.sort_by_cached_key(|index| {
                object.document.name(object.name_id(*index)).to_bytes().into_owned()
            });
        } else {
            order.sort_unstable_by_key(|index| object.document.stored_name(object.name_id(*index)));
        }
        order.iter().map(move |index| (object.document.name(object.name_id(*index)), object.value_at(*index)))
    }

    fn need(&self, name: &str) -> Result<Value<'a>> {
        self.get(name).ok_or_else(|| Error::Missing { name: name.to_owned() })
    }

    /// The integer under `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] without such a property, [`Error::Type`] if it is not a number written as an integer of 64 bits.
    pub fn get_i64(&self, name: &str) -> Result<i64> {
        let value = self.need(name)?;
        value.as_i64().ok_or(Error::Type { expected: "an integer of 64 bits", found: value.type_name() })
    }

    /// The number under `name`, as the nearest double.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] without such a property, [`Error::Type`] if it is not a number.
    pub fn get_f64(&self, name: &str) -> Result<f64> {
        let value = self.need(name)?;
        value.as_f64().ok_or(Error::Type { expected: "a number", found: value.type_name() })
    }

    /// The string under `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] without such a property, [`Error::Type`] if it is not a string.
    pub fn get_str(&self, name: &str) -> Result<Cow<'a, str>> {
        let value = self.need(name)?;
        value.as_str().ok_or(Error::Type { expected: "a string", found: value.type_name() })
    }

    /// The truth value under `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] without such a property, [`Error::Type`] if it is not `true` or `false`.
    pub fn get_bool(&self, name: &str) -> Result<bool> {
        let value = self.need(name)?;
        value.as_bool().ok_or(Error::Type { expected: "a truth value", found: value.type_name() })
    }

    /// The object under `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] without such a property, [`Error::Type`] if it is not an object.
    pub fn get_object(&self, name: &str) -> Result<Object<'a>> {
        let value = self.need(name)?;
        value.as_object().ok_or(Error::Type { expected: "an object", found: value.type_name() })
    }

    /// The array under `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] without such a property, [`Error::Type`] if it is not an array.
    pub fn get_array(&self, name: &str) -> Result<Array<'a>> {
        let value = self.need(name)?;
        value.as_array().ok_or(Error::Type { expected: "an array", found: value.type_name() })
    }

    /// Where the object's own bytes end, for validation.
    pub(crate) fn end(&self) -> u64 {
        u64::from(self.payloads()) + u64::from(self.count) * u64::from(self.shape.width())
    }

    pub(crate) fn kinds_start(&self) -> u32 {
        self.kinds
    }
}
