//! Dictionaries of short byte strings, for compressing names and strings one by one.
//!
//! A dictionary is a list of **symbols** of 1 to 8 bytes. Text is compressed by taking, again and again, the longest symbol that the rest of it begins
//! with. The most frequent symbols have codes of one byte, all others of two; a byte that begins no symbol follows an escape (see
//! `docs/format/document.md`). This is FSST (Boncz, Neumann and Leis, 2020) with two code lengths: the short codes serve text made of few patterns, the long ones hold
//! words and the letters of many scripts. Each string is compressed by itself, so any one can be read alone, and equal text has equal
//! codes, so names and strings compare without decompression.
//!
//! The built-in dictionary (id 0) knows English, common JSON names and values, markup, addresses, and some of the world's scripts; changing it changes
//! the format. A collection may have its own, [trained](Dictionary::train) from its documents; the id stands in each document.

mod codec;
mod lanes;
mod train;

use std::sync::{Arc, OnceLock};

use self::codec::{Codec, SHORT_CODES_MAX, SYMBOL_COUNT_MAX};
use crate::error::{Error, Result};

/// The longest symbol, in bytes.
pub(crate) const SYMBOL_SIZE_MAX: usize = 8;

/// The first bytes of a stored dictionary.
const MAGIC: [u8; 4] = *b"JDD1";

/// What compresses and decompresses the strings of documents.
pub struct Dictionary {
    id: u32,
    codec: Codec,
}

impl Dictionary {
    /// The dictionary that every build knows.
    #[must_use]
    pub fn built_in() -> Arc<Dictionary> {
        Arc::clone(built_in())
    }

    pub(crate) fn built_in_ref() -> &'static Dictionary {
        built_in()
    }

    /// Makes a dictionary from sample strings, the more alike those it will meet the better. A few hundred kilobytes are enough. `id` is
    /// kept in each document written with it and must not be 0.
    ///
    /// # Errors
    ///
    /// [`Error::DictionaryBytes`] if `id` is 0.
    pub fn train<'s>(id: u32, samples: impl IntoIterator<Item = &'s [u8]>) -> Result<Dictionary> {
        if id == 0 {
            return Err(Error::DictionaryBytes("id 0 is the built-in dictionary's"));
        }
        Ok(Dictionary { id, codec: train::train(&samples.into_iter().collect::<Vec<_>>()) })
    }

    /// As [`Dictionary::train`], for the tool that makes the built-in dictionary.
    #[doc(hidden)]
    #[must_use]
    pub fn train_built_in(samples: &[&[u8]]) -> Dictionary {
        Dictionary { id: 0, codec: train::train(samples) }
    }

    /// The dictionary's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The number of symbols.
    #[must_use]
    pub fn symbol_count(&self) -> usize {
        self.codec.symbol_count()
    }

    /// Appends the compressed form of `text`, which may be up to twice as long.
    pub fn compress(&self, text: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + codec::compressed_size_max(text.len()), 0);
        let size = self.codec.compress(text, &mut out[start..]);
        out.truncate(start + size);
    }

    /// Compresses into `target`, which is made longer if it must be and keeps its length otherwise; returns how many bytes were used.
    #[inline]
    pub(crate) fn compress_into(&self, text: &[u8], target: &mut Vec<u8>) -> usize {
        let needed = codec::compressed_size_max(text.len());
        if target.len() < needed {
            target.resize(needed, 0);
        }
        self.codec.compress(text, target)
    }

    /// Gives `action` the compressed form of a short text, without allocation.
    pub(crate) fn with_compressed<T>(&self, text: &[u8], action: impl FnOnce(&[u8]) -> T) -> T {
        const SHORT: usize = 120;
        if text.len() <= SHORT {
            let mut target = [0; codec::compressed_size_max(SHORT)];
            let size = self.codec.compress(text, &mut target);
            action(&target[..size])
        } else {
            let mut target = Vec::new();
            self.compress(text, &mut target);
            action(&target)
        }
    }

    /// Appends the text of `codes`. Codes that this dictionary never writes yield nothing.
    pub fn decompress(&self, codes: &[u8], out: &mut Vec<u8>) {
        self.codec.decompress(codes, out);
    }

    /// Whether `codes` are whole codes of this dictionary.
    pub(crate) fn is_valid(&self, codes: &[u8]) -> bool {
        self.codec.is_valid(codes)
    }

    /// The dictionary as bytes for [`Dictionary::from_bytes`]: magic, id (4 bytes), number of one-byte codes (2), number of symbols (2), the symbols' lengths (1 each),
    /// their bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.id.to_le_bytes());
        out.extend_from_slice(&(self.codec.short_codes() as u16).to_le_bytes());
        out.extend_from_slice(&(self.codec.symbol_count() as u16).to_le_bytes());
        for symbol in self.codec.symbols() {
            out.push(symbol.size);
        }
        for symbol in self.codec.symbols() {
            out.extend_from_slice(&symbol.bytes());
        }
        out
    }

    /// Reads what [`Dictionary::to_bytes`] wrote.
    ///
    /// # Errors
    ///
    /// [`Error::DictionaryBytes`] with what is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Dictionary> {
        let wrong = |reason| Err(Error::DictionaryBytes(reason));
        let Some((header, rest)) = bytes.split_at_checked(12) else {
            return wrong("shorter than its header");
        };
        if header[..4] != MAGIC {
            return wrong("it does not begin with JDD1");
        }
        let id = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let short_codes = usize::from(u16::from_le_bytes([header[8], header[9]]));
        let count = usize::from(u16::from_le_bytes([header[10], header[11]]));
        if short_codes > SHORT_CODES_MAX
            || count > SYMBOL_COUNT_MAX
            || short_codes > count
            || count > short_codes + (255 - short_codes) * 256
        {
            return wrong("more symbols than codes, or more codes of one byte than symbols");
        }
        let Some((sizes, mut rest)) = rest.split_at_checked(count) else {
            return wrong("shorter than its symbols");
        };
        let mut symbols = Vec::with_capacity(count);
        for size in sizes {
            let size = usize::from(*size);
            if size == 0 || size > SYMBOL_SIZE_MAX {
                return wrong("a symbol has neither 1 nor up to 8 bytes");
            }
            let Some((symbol, after)) = rest.split_at_checked(size) else {
                return wrong("shorter than its symbols");
            };
            symbols.push(codec::Symbol::new(symbol));
            rest = after;
        }
        if !rest.is_empty() {
            return wrong("longer than its symbols");
        }
        match Codec::new(symbols, short_codes) {
            Some(codec) => Ok(Dictionary { id, codec }),
            None => wrong("its symbols repeat or crowd"),
        }
    }
}

fn built_in() -> &'static Arc<Dictionary> {
    static BUILT_IN: OnceLock<Arc<Dictionary>> = OnceLock::new();
    BUILT_IN.get_or_init(|| match Dictionary::from_bytes(include_bytes!("built_in.bin")) {
        Ok(dictionary) => Arc::new(dictionary),
        // The bytes are part of the program; a test reads them.
        Err(error) => unreachable!("the built-in dictionary: {error}"),
    })
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dictionary").field("id", &self.id).field("symbols", &self.symbol_count()).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn round(dictionary: &Dictionary, text: &[u8]) {
        let mut codes = Vec::new();
        dictionary.compress(text, &mut codes);
        assert!(dictionary.is_valid(&codes));
        let mut back = Vec::new();
        dictionary.decompress(&codes, &mut back);
        assert_eq!(back, text, "{:?}", String::from_utf8_lossy(text));
        dictionary.with_compressed(text, |same| assert_eq!(same, codes));
    }

    #[test]
    fn any_bytes_come_back() {
        let trained =
            Dictionary::train(7, [b"the cat and the dog and the bird".as_slice(), b"the other"]).unwrap();
        let mut seed = 7u64;
        for dictionary in [&*Dictionary::built_in(), &trained] {
            for size in 0..300 {
                let mut text = Vec::new();
                for _ in 0..size {
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    text.push((seed >> 40) as u8);
                }
                round(dictionary, &text);
                let words: Vec<u8> = text
                    .iter()
                    .flat_map(|byte| {
                        [b"the ".as_slice(), b"and", b"\0", b"http://www."][usize::from(*byte) % 4].to_vec()
                    })
                    .collect();
                round(dictionary, &words[..size.min(words.len())]);
            }
        }
    }

    #[test]
    fn a_dictionary_comes_back_from_its_bytes() {
        let trained = Dictionary::train(7, [b"abcabcabcabc".as_slice(), b"abcdefgh"]).unwrap();
        let back = Dictionary::from_bytes(&trained.to_bytes()).unwrap();
        assert_eq!((back.id(), back.symbol_count()), (7, trained.symbol_count()));
        assert_eq!(back.to_bytes(), trained.to_bytes());
        let (mut left, mut right) = (Vec::new(), Vec::new());
        back.compress(b"abcabcabd", &mut left);
        trained.compress(b"abcabcabd", &mut right);
        assert_eq!(left, right);
    }

    #[test]
    fn foreign_bytes_are_refused() {
        let good = Dictionary::train(7, [b"abcabcabcabc".as_slice()]).unwrap().to_bytes();
        for len in 0..good.len() {
            assert!(Dictionary::from_bytes(&good[..len]).is_err(), "{len}");
        }
        let mut longer = good.clone();
        longer.push(0);
        assert!(Dictionary::from_bytes(&longer).is_err());
        assert!(Dictionary::train(0, []).is_err());
    }

    #[test]
    fn english_halves() {
        let text = b"The quick brown fox jumps over the lazy dog, and then it returns to the forest where all the other animals live.";
        let mut codes = Vec::new();
        Dictionary::built_in().compress(text, &mut codes);
        assert!(codes.len() * 100 < text.len() * 62, "{} of {}", codes.len(), text.len());
    }
}
