//! Checking bytes from anywhere before they are believed.
//!
//! Total, and linear in what it reads: containers lie in post-order and never overlap, so each is visited once; text that many values share counts
//! each time against the limit of text, so that neither checking nor printing a small document can take for ever.

use crate::error::{Damage, Error, Result};
use crate::format::{self, flags, head, kind};
use crate::limits::Limits;
use crate::read::{Array, Document, Object, Text};
use crate::text::number;

impl Document<'_> {
    /// Checks every byte that reading could reach. After it, no accessor meets anything unexpected and printing gives valid JSON.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] with the place and the reason, also where a limit is exceeded.
    pub fn validate(&self, limits: &Limits) -> Result<()> {
        let limits = limits.within_format();
        if self.as_bytes().len() > limits.document_size_max {
            return Err(damage(0, "longer than the limit"));
        }
        let mut check = Check {
            text_left: limits.text_size_max,
            depth_max: limits.depth_max,
            limits,
            scratch: Vec::new(),
        };
        check.document(self, 0)
    }
}

fn damage(offset: u32, reason: &'static str) -> Error {
    Error::Damaged(Damage { offset: offset as usize, reason })
}

struct Check {
    /// Bytes of text (and of embedded documents) that may still be met.
    text_left: usize,
    depth_max: u32,
    limits: Limits,
    scratch: Vec<u8>,
}

impl Check {
    fn document(&mut self, document: &Document<'_>, depth: u32) -> Result<()> {
        self.names(document)?;
        let (kind, payload) = document.root_facts();
        let (.., footer) = document.name_places();
        if document.flags() & flags::RESERVED != 0 {
            return Err(damage(document.as_bytes().len() as u32 - 2, "an unknown flag"));
        }
        self.value(document, kind, payload, &mut 0, document.names_start, depth)?;
        if kind != kind::OBJECT
            && kind != kind::ARRAY
            && document.bytes.before(document.names_start, format::BYTES_AFTER_VALUE_MIN as u32) != [0; 8]
        {
            return Err(damage(footer, "a root that is no container must be followed by eight zero bytes"));
        }
        Ok(())
    }

    fn names(&mut self, document: &Document<'_>) -> Result<()> {
        let count = document.name_count() as u32;
        let (ends_start, index_start, _) = document.name_places();
        if count as usize > self.limits.name_count_max {
            return Err(damage(ends_start, "more names than the limit"));
        }
        let mut start = 0;
        let mut distinct = std::collections::HashSet::with_capacity(count as usize);
        let mut escaped = false;
        for id in 0..count {
            let end = document.name_end(id);
            if end < start || document.names_start + end > ends_start {
                return Err(damage(ends_start, "the ends of names do not ascend"));
            }
            start = end;
            let stored = document.stored_name(id);
            if !distinct.insert(stored) {
                return Err(damage(document.names_start + end, "a name stands twice"));
            }
            let mut decompressed = std::mem::take(&mut self.scratch);
            let name = if document.names_compressed() {
                if !document.dictionary().is_valid(stored) {
                    return Err(damage(document.names_start, "a name has codes that its dictionary lacks"));
                }
                decompressed.clear();
                document.dictionary().decompress(stored, &mut decompressed);
                &decompressed[..]
            } else {
                stored
            };
            if name.len() > self.limits.name_size_max {
                return Err(damage(document.names_start, "a name longer than the limit"));
            }
            if std::str::from_utf8(name).is_err() {
                return Err(damage(document.names_start, "a name is not UTF-8"));
            }
            escaped |= name.iter().any(|byte| must_escape(*byte));
            self.scratch = decompressed;
        }
        if escaped && document.flags() & flags::NAMES_ESCAPED == 0 {
            return Err(damage(document.names_start, "a name needs escaping, and no flag says so"));
        }
        if count as usize > format::NAMES_WITHOUT_INDEX_MAX {
            for id in 0..count {
                if !document.index_finds(id) {
                    return Err(damage(index_start, "the name index misses a name"));
                }
            }
        }
        Ok(())
    }

    /// Checks a value whose containers must lie between `lowest` and `highest`; raises `lowest` to their end.
    fn value(
        &mut self,
        document: &Document<'_>,
        kind: u8,
        payload: u32,
        lowest: &mut u32,
        highest: u32,
        depth: u32,
    ) -> Result<()> {
        if kind < kind::FIRST_WITH_POSITION {
            let good = match kind {
                kind::NULL
                | kind::FALSE
                | kind::TRUE
                | kind::EMPTY_STRING
                | kind::EMPTY_ARRAY
                | kind::EMPTY_OBJECT => payload == 0,
                kind::SMALL_INTEGER => payload <= 255,
                _ => false,
            };
            return if good { Ok(()) } else { Err(damage(highest, "an unknown kind or a wrong payload")) };
        }
        let position = payload;
        if position >= highest {
            return Err(damage(highest, "a value does not lie before its container"));
        }
        let bytes = document.bytes;
        match kind {
            0x10..=0x17 | 0x20..=0x27 | kind::DOUBLE => {
                // At least a head, a kind and a footer follow, so eight bytes may be loaded; what is loaded must lie before the container.
                let size = kind::fixed_size(kind).unwrap_or(8) as u32;
                if position + size > highest {
                    return Err(damage(position, "a number does not lie before its container"));
                }
                if kind == kind::DOUBLE && !f64::from_bits(bytes.word(position)).is_finite() {
                    return Err(damage(position, "a double that JSON cannot write"));
                }
                if (0x20..=0x27).contains(&kind)
                    && !(1..=format::SCALE_MAX).contains(&u32::from(bytes.byte(position + size - 1)))
                {
                    return Err(damage(position, "a decimal with a scale out of range"));
                }
                Ok(())
            }
            kind::NUMBER_TEXT => {
                let text = self.counted(document, position, highest)?;
                match number::parse_whole(text) {
                    Some(number::Parsed::Text) => Ok(()),
                    Some(_) => Err(damage(position, "a number as text that another kind holds")),
                    None => Err(damage(position, "the text is no JSON number")),
                }
            }
            0x40..=0x42 | 0x44 | 0x45 => self.string(document, kind, position, highest),
            kind::EMBEDDED => {
                let inner = self.counted(document, position, highest)?;
                if depth >= self.depth_max {
                    return Err(damage(position, "deeper than the limit"));
                }
                let inner =
                    Document::embedded(inner).map_err(|_| damage(position, "not an embedded document"))?;
                let inner = inner.with_dictionary_of(document);
                if inner.dictionary_id() != document.dictionary_id() && inner.dictionary_id() != 0 {
                    return Err(damage(position, "an embedded document with a dictionary of its own"));
                }
                self.document(&inner, depth + 1)
            }
            kind::BINARY => self.counted(document, position, highest).map(|_| ()),
            kind::ARRAY | kind::OBJECT => {
                if depth >= self.depth_max {
                    return Err(damage(position, "deeper than the limit"));
                }
                if position < *lowest {
                    return Err(damage(position, "containers overlap or are shared"));
                }
                let end = if kind == kind::ARRAY {
                    self.array(document, position, lowest, highest, depth)?
                } else {
                    self.object(document, position, lowest, highest, depth)?
                };
                *lowest = end;
                Ok(())
            }
            _ => Err(damage(position, "an unknown kind")),
        }
    }

    /// Checks the count in a container's head; returns where it ends.
    fn head(&self, document: &Document<'_>, position: u32, least_size: u32, highest: u32) -> Result<u32> {
        let count = u32::from(document.bytes.byte(position) >> head::COUNT_SHIFT);
        let (count, after) = if count as usize == head::COUNT_FOLLOWS {
            self.varint(document, position + 1, highest)?
        } else {
            (count, position + 1)
        };
        if count == 0 {
            return Err(damage(position, "an empty container that has bytes"));
        }
        if u64::from(after) + u64::from(count) * u64::from(least_size) > u64::from(highest) {
            return Err(damage(position, "more entries than bytes"));
        }
        Ok(after)
    }

    fn array(
        &mut self,
        document: &Document<'_>,
        position: u32,
        lowest: &mut u32,
        highest: u32,
        depth: u32,
    ) -> Result<u32> {
        let head = document.bytes.byte(position);
        let packed = head & head::PACKED != 0;
        self.head(document, position, if packed { 0 } else { 1 }, highest)?;
        let array = Array::at(*document, position);
        let layout = array.layout();
        if layout.end > u64::from(highest) {
            return Err(damage(position, "an array reaches into its container"));
        }
        if packed {
            let kind = document.bytes.byte(layout.kinds);
            let size = kind::fixed_size(kind).filter(|_| layout.uniform);
            let fits = size.is_some_and(|size| array.len() as u64 * size as u64 <= u64::from(position));
            if !fits {
                return Err(damage(position, "a packed array without elements of one size before it"));
            }
        }
        for index in 0..array.len() as u32 {
            let (kind, payload) = array.entry(index);
            self.value(document, kind, payload, lowest, position, depth + 1)?;
        }
        Ok(layout.end as u32)
    }

    fn object(
        &mut self,
        document: &Document<'_>,
        position: u32,
        lowest: &mut u32,
        highest: u32,
        depth: u32,
    ) -> Result<u32> {
        let after_count = self.head(document, position, 2, highest)?;
        if document.bytes.byte(position) >> head::NAME_WIDTH_SHIFT & 3 == head::NAME_IDS_RUN {
            let (first, _) = self.varint(document, after_count, highest)?;
            if first as usize > format::NAME_COUNT_MAX {
                return Err(damage(position, "a name id without a name"));
            }
        }
        let object = Object::at(*document, position);
        if object.end() > u64::from(highest) {
            return Err(damage(position, "an object reaches into its container"));
        }
        let count = object.len() as u32;
        let names = document.name_count() as u32;
        // Distinct ids: few are compared with each other, many through a set.
        let mut seen = 0u64;
        let mut many = std::collections::HashSet::new();
        for index in 0..count {
            let id = object.name_id(index);
            if id >= names {
                return Err(damage(position, "a name id without a name"));
            }
            let repeated = if id < 64 { seen >> id & 1 == 1 } else { !many.insert(id) };
            if repeated {
                return Err(damage(position, "an object has a name twice"));
            }
            if id < 64 {
                seen |= 1 << id;
            }
        }
        for index in 0..count {
            let (kind, payload) = object.entry(index);
            self.value(document, kind, payload, lowest, position, depth + 1)?;
        }
        debug_assert!(object.kinds_start() > position);
        Ok(object.end() as u32)
    }

    fn varint(&self, document: &Document<'_>, at: u32, highest: u32) -> Result<(u32, u32)> {
        let mut value = 0u64;
        for i in 0..5 {
            let place = at + i;
            if place >= highest {
                break;
            }
            let byte = document.bytes.byte(place);
            value |= u64::from(byte & 0x7F) << (7 * i);
            if byte < 0x80 {
                let Ok(value) = u32::try_from(value) else { break };
                return Ok((value, place + 1));
            }
        }
        Err(damage(at, "a varint that does not end"))
    }

    /// The bytes before a length at `position`, counted against the limit of text.
    fn counted<'a>(&mut self, document: &Document<'a>, position: u32, highest: u32) -> Result<&'a [u8]> {
        let (len, _) = self.varint(document, position, highest)?;
        if len > position {
            return Err(damage(position, "longer than all before it"));
        }
        self.count(position, len as usize)?;
        Ok(document.bytes.before(position, len))
    }

    fn count(&mut self, position: u32, len: usize) -> Result<()> {
        // One for the value itself, so that empty ones count too.
        match self.text_left.checked_sub(len + 1) {
            Some(left) => {
                self.text_left = left;
                Ok(())
            }
            None => Err(damage(position, "more text than the limit, counting shared text each time")),
        }
    }

    fn string(&mut self, document: &Document<'_>, kind: u8, position: u32, highest: u32) -> Result<()> {
        let stored = self.counted(document, position, highest)?;
        if stored.is_empty() {
            return Err(damage(position, "an empty string that has bytes"));
        }
        if kind & kind::STRING_COMPRESSED != 0 {
            if !document.dictionary().is_valid(stored) {
                return Err(damage(position, "codes that the dictionary lacks"));
            }
            let mut text = std::mem::take(&mut self.scratch);
            text.clear();
            document.dictionary().decompress(stored, &mut text);
            let good = simdutf8::basic::from_utf8(&text).is_ok();
            let len = text.len();
            self.scratch = text;
            self.count(position, len)?;
            return if good { Ok(()) } else { Err(damage(position, "a string that is not UTF-8")) };
        }
        let surrogates = kind & kind::STRING_SURROGATES != 0;
        let good = if surrogates { is_wtf8(stored) } else { simdutf8::basic::from_utf8(stored).is_ok() };
        if !good {
            return Err(damage(position, "a string that is not UTF-8"));
        }
        let mut expected = (0..stored.len())
            .filter(|i| must_escape(stored[*i]) || (surrogates && is_surrogate(&stored[*i..])));
        if kind & kind::STRING_ESCAPES == 0 {
            return match expected.next() {
                None => Ok(()),
                Some(_) => {
                    Err(damage(position, "a string that needs escaping, and its kind does not say so"))
                }
            };
        }
        let text = Text::at(*document, kind, position);
        let (count, mut at) = self.varint(document, text.escapes_position(), highest)?;
        let mut place = 0u64;
        for _ in 0..count {
            let (step, after) = self.varint(document, at, highest)?;
            at = after;
            place += u64::from(step);
            if expected.next().map(|place| place as u64) != Some(place) {
                return Err(damage(position, "a wrong place to escape"));
            }
            place += 1;
        }
        if expected.next().is_some() || count == 0 {
            return Err(damage(position, "a place to escape is missing"));
        }
        Ok(())
    }
}

fn must_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn is_surrogate(bytes: &[u8]) -> bool {
    matches!(bytes, [0xED, 0xA0..=0xBF, 0x80..=0xBF, ..])
}

/// Whether the bytes are UTF-8 but for surrogates of three bytes each.
fn is_wtf8(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    loop {
        match std::str::from_utf8(rest) {
            Ok(_) => return true,
            Err(error) => {
                rest = &rest[error.valid_up_to()..];
                if !is_surrogate(rest) {
                    return false;
                }
                rest = &rest[3..];
            }
        }
    }
}
