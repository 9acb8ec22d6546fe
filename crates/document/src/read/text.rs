//! Text in a document: plain, with escape places, compressed, or with lone surrogates.

use std::borrow::Cow;
use std::fmt;

use super::bytes::Bytes;
use super::document::Document;
use crate::dictionary::Dictionary;
use crate::format::kind;
use crate::simd;

/// A string or a property name. Plain text is borrowed from the document; compressed text is decompressed when asked for.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    bytes: Bytes<'a>,
    /// The document's trained dictionary; without one, the built-in.
    dictionary: Option<&'a Dictionary>,
    start: u32,
    size: u32,
    /// The `STRING_` bits.
    bits: u8,
}

/// The bits of a name that may hold what JSON must escape, but says not where.
const ESCAPES_UNKNOWN: u8 = 0x80;

impl<'a> Text<'a> {
    #[inline(always)]
    pub(crate) fn at(document: Document<'a>, kind: u8, position: u32) -> Text<'a> {
        let (size, _) = document.bytes.varint(position);
        Text {
            bytes: document.bytes,
            dictionary: document.trained_dictionary(),
            start: position.wrapping_sub(size),
            size,
            bits: kind & 0x0F,
        }
    }

    pub(crate) fn empty(document: Document<'a>) -> Text<'a> {
        Text::of(document, 0, 0, 0)
    }

    #[inline(always)]
    fn of(document: Document<'a>, start: u32, size: u32, bits: u8) -> Text<'a> {
        Text { bytes: document.bytes, dictionary: document.trained_dictionary(), start, size, bits }
    }

    /// The name whose stored bytes are `start..end`.
    #[inline(always)]
    pub(crate) fn of_name(document: Document<'a>, (start, end): (u32, u32)) -> Text<'a> {
        let mut bits = 0;
        if document.names_compressed() {
            bits |= kind::STRING_COMPRESSED;
        }
        if document.names_escaped() {
            bits |= ESCAPES_UNKNOWN;
        }
        Text::of(document, start, end.wrapping_sub(start), bits)
    }

    /// The text, borrowed in place. `None` if it is compressed or holds lone surrogates: then use [`Text::to_str`].
    #[inline(always)]
    #[must_use]
    pub fn as_str(&self) -> Option<&'a str> {
        if self.bits & (kind::STRING_COMPRESSED | kind::STRING_SURROGATES) != 0 {
            return None;
        }
        utf8(self.stored())
    }

    /// The text: borrowed when it stands in the document as it is, allocated when it is compressed. Lone surrogates become U+FFFD.
    #[must_use]
    pub fn to_str(&self) -> Cow<'a, str> {
        if self.is_compressed() {
            return match String::from_utf8(self.to_bytes().into_owned()) {
                Ok(text) => Cow::Owned(text),
                Err(error) => Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()),
            };
        }
        match utf8(self.stored()) {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(surrogates_replaced(self.stored())),
        }
    }

    /// The text in UTF-8; lone surrogates are three bytes each, as WTF-8 has them.
    #[must_use]
    pub fn to_bytes(&self) -> Cow<'a, [u8]> {
        if self.is_compressed() {
            let mut out = Vec::new();
            self.dictionary().decompress(self.stored(), &mut out);
            Cow::Owned(out)
        } else {
            Cow::Borrowed(self.stored())
        }
    }

    /// Appends the text's bytes to `out`. Allocates only if `out` must grow.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        if self.is_compressed() {
            self.dictionary().decompress(self.stored(), out);
        } else {
            out.extend_from_slice(self.stored());
        }
    }

    /// The text, decompressed into a context's memory if need be, so that it lives as long as that.
    ///
    /// Lone surrogates become U+FFFD.
    #[must_use]
    pub fn in_context<'c>(&self, context: &'c crate::Context) -> &'c str
    where
        'a: 'c,
    {
        match self.as_str() {
            Some(text) => text,
            None => context.keep_text(self),
        }
    }

    /// Whether the text is compressed in the document.
    #[inline]
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.bits & kind::STRING_COMPRESSED != 0
    }

    /// Whether the text holds surrogates that belong to no pair, so that it is no UTF-8.
    #[must_use]
    pub fn has_lone_surrogates(&self) -> bool {
        self.bits & kind::STRING_SURROGATES != 0
    }

    /// The bytes as they are stored.
    #[inline(always)]
    pub(crate) fn stored(&self) -> &'a [u8] {
        self.bytes.range(self.start, self.start.wrapping_add(self.size))
    }

    #[inline]
    pub(crate) fn bits(&self) -> u8 {
        self.bits
    }

    /// Whether the text must be looked through for what to escape.
    #[inline]
    pub(crate) fn escapes_unknown(&self) -> bool {
        self.bits & (ESCAPES_UNKNOWN | kind::STRING_COMPRESSED) != 0
    }

    /// The places to escape, as offsets in the text.
    pub(crate) fn escape_places(&self) -> impl Iterator<Item = usize> + use<'a> {
        let bytes = self.bytes;
        let (mut left, mut at) = if self.bits & kind::STRING_ESCAPES != 0 {
            bytes.varint(self.escapes_position())
        } else {
            (0, 0)
        };
        let mut place = 0usize;
        let len = self.stored().len();
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let (step, after) = bytes.varint(at);
            at = after;
            let found = place + step as usize;
            place = found + 1;
            // Only damaged bytes lead beyond the end.
            (found < len).then_some(found)
        })
    }

    #[inline]
    pub(crate) fn dictionary(&self) -> &'a Dictionary {
        self.dictionary.unwrap_or_else(|| Dictionary::built_in_ref())
    }

    /// Where the places to escape start in the document, when the kind says that there are any: after the length, which stands after the text.
    pub(crate) fn escapes_position(&self) -> u32 {
        self.bytes.varint(self.start.wrapping_add(self.size)).1
    }
}

/// Short ASCII, which most text is, is checked a word at a time before the full check is asked.
#[inline(always)]
fn utf8(bytes: &[u8]) -> Option<&str> {
    match simd::short_ascii(bytes) {
        Some(text) => Some(text),
        None => utf8_any(bytes),
    }
}

#[inline(never)]
fn utf8_any(bytes: &[u8]) -> Option<&str> {
    simdutf8::basic::from_utf8(bytes).ok()
}

/// Each three-byte surrogate becomes one U+FFFD.
#[cold]
fn surrogates_replaced(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        match std::str::from_utf8(rest) {
            Ok(text) => {
                out.push_str(text);
                return out;
            }
            Err(error) => {
                let (good, bad) = rest.split_at(error.valid_up_to());
                out.push_str(&String::from_utf8_lossy(good));
                out.push('\u{FFFD}');
                let skip = if bad.len() >= 3 && bad[0] == 0xED && bad[1] >= 0xA0 { 3 } else { 1 };
                rest = &bad[skip.min(bad.len())..];
            }
        }
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        if self.is_compressed() {
            // Compression is a function of the text, so equal text has equal codes.
            self.dictionary().with_compressed(other.as_bytes(), |stored| stored == self.stored())
        } else {
            self.stored() == other.as_bytes()
        }
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Text<'_>) -> bool {
        if self.is_compressed() || other.is_compressed() {
            if self.is_compressed()
                && other.is_compressed()
                && std::ptr::eq(self.dictionary(), other.dictionary())
            {
                return self.stored() == other.stored();
            }
            return self.to_bytes() == other.to_bytes();
        }
        self.stored() == other.stored()
    }
}

impl Eq for Text<'_> {}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_str())
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.to_str(), f)
    }
}
