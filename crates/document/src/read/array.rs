//! Arrays.

use super::bytes::back;
use super::document::Document;
use super::value::Value;
use crate::format::{head, kind};

/// An array of a document.
#[derive(Clone, Copy)]
pub struct Array<'a> {
    pub(crate) document: Document<'a>,
    pub(crate) position: u32,
    count: u32,
    kinds: u32,
    payloads: u32,
    head: u8,
    /// Bytes of one element when packed.
    packed_size: u32,
}

impl<'a> Array<'a> {
    #[inline(always)]
    pub(crate) fn at(document: Document<'a>, position: u32) -> Array<'a> {
        let bytes = document.bytes;
        let head = bytes.byte(position);
        let mut kinds = position.wrapping_add(1);
        let mut count = u32::from(head >> head::COUNT_SHIFT);
        if count as usize == head::COUNT_FOLLOWS {
            (count, kinds) = bytes.varint(kinds);
        }
        // Each element has at least a payload byte or a packed body, so more elements than bytes are damage.
        count = count.min(bytes.0.len() as u32);
        let payloads =
            if head & head::UNIFORM != 0 { kinds.wrapping_add(1) } else { kinds.wrapping_add(count) };
        let packed_size = kind::packed_size(bytes.byte(kinds));
        Array { document, position, count, kinds, payloads, head, packed_size }
    }

    pub(crate) fn empty(document: Document<'a>) -> Array<'a> {
        Array { document, position: 0, count: 0, kinds: 0, payloads: 0, head: 0, packed_size: 0 }
    }

    /// The number of elements.
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

    /// The element at `index`, in constant time.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        if index >= self.count as usize {
            return None;
        }
        let (kind, payload) = self.entry(index as u32);
        Some(Value::at(self.document, kind, payload))
    }

    /// Kind and position (or inline payload) of an element. Where numbers are of like widths some arrays are packed and some are not, as it happens,
    /// so both places are worked out and none is foretold.
    #[inline(always)]
    pub(crate) fn entry(&self, index: u32) -> (u8, u32) {
        let bytes = self.document.bytes;
        let own_kind = u32::from(self.head & head::UNIFORM == 0);
        let kind = bytes.byte(self.kinds + own_kind * index);
        let width = u32::from(self.head & head::PAYLOAD_WIDTH) + 1;
        // What a packed array has where others have payloads is not looked at.
        let payload = bytes.unsigned(self.payloads.wrapping_add(index.wrapping_mul(width)), width);
        let packed = self.head & (head::PACKED | head::UNIFORM) == head::PACKED | head::UNIFORM;
        let distance = (self.count - index).wrapping_mul(self.packed_size);
        let distance = std::hint::select_unpredictable(packed, distance, payload);
        let position = back(self.position, distance);
        (kind, if packed || kind >= kind::FIRST_WITH_POSITION { position } else { payload })
    }

    /// The elements in order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Value<'a>> + DoubleEndedIterator + use<'a> {
        let array = *self;
        (0..self.count).map(move |index| {
            let (kind, payload) = array.entry(index);
            Value::at(array.document, kind, payload)
        })
    }

    pub(crate) fn layout(&self) -> ArrayLayout {
        let uniform = self.head & head::UNIFORM != 0;
        let packed = self.head & head::PACKED != 0;
        let width = u64::from(self.head & head::PAYLOAD_WIDTH) + 1;
        let payloads = if packed { 0 } else { u64::from(self.count) * width };
        ArrayLayout { uniform, end: u64::from(self.payloads) + payloads, kinds: self.kinds }
    }
}

/// Where an array's own bytes are, for validation.
pub(crate) struct ArrayLayout {
    pub(crate) uniform: bool,
    pub(crate) end: u64,
    pub(crate) kinds: u32,
}
