//! The tables behind a dictionary and the two loops that use them.
//!
//! The longest symbol at a place is found in two looks: symbols of four bytes and more lie in buckets by a hash of their first four bytes, longest
//! first, a bucket to a cache line; the rest are found by their first three bytes and two bytes. All looks are independent of each other, so the processor
//! makes them at once.

use super::SYMBOL_SIZE_MAX;

/// The byte before a byte that stands for itself.
const ESCAPE: u8 = 255;

/// The most codes of one byte.
pub(super) const SHORT_CODES_MAX: usize = 254;

/// The most symbols of a dictionary.
pub(super) const SYMBOL_COUNT_MAX: usize = 32 << 10;

/// Symbols of four and more bytes that may share a bucket.
const BUCKET_SIZE: usize = 5;
const BUCKET_BITS: u32 = 12;
const TRIPLE_BITS: u32 = 14;

/// The most bytes that compressing `len` bytes needs, the slack of a last store included.
pub(super) const fn compressed_size_max(len: usize) -> usize {
    2 * len + 8
}

/// Up to eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Symbol {
    /// The bytes, the first lowest; zeros above.
    pub(super) word: u64,
    pub(super) size: u8,
}

impl Symbol {
    pub(super) fn new(bytes: &[u8]) -> Symbol {
        let size = bytes.len().min(SYMBOL_SIZE_MAX);
        let mut word = [0; 8];
        word[..size].copy_from_slice(&bytes[..size]);
        Symbol { word: u64::from_le_bytes(word), size: size as u8 }
    }

    /// The two run together, cut at the longest a symbol may be.
    pub(super) fn followed_by(self, other: Symbol) -> Symbol {
        if self.size as usize >= SYMBOL_SIZE_MAX {
            return self;
        }
        let size = (self.size + other.size).min(SYMBOL_SIZE_MAX as u8);
        let word = self.word | other.word << (8 * self.size);
        Symbol { word: word & (u64::MAX >> (64 - 8 * u32::from(size))), size }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.word.to_le_bytes()[..self.size as usize].to_vec()
    }
}

/// A code and the size of its symbol: `code bytes | symbol size << 16 | code size << 24`.
#[derive(Clone, Copy, Default)]
struct Step(u32);

impl Step {
    fn new(code: usize, short_codes: usize, symbol_size: u8) -> Step {
        if code < short_codes {
            return Step(code as u32 | u32::from(symbol_size) << 16 | 1 << 24);
        }
        let rest = code - short_codes;
        let (first, second) = (short_codes + rest / 256, rest % 256);
        Step(first as u32 | (second as u32) << 8 | u32::from(symbol_size) << 16 | 2 << 24)
    }

    fn escape(byte: u8) -> Step {
        Step(u32::from(ESCAPE) | u32::from(byte) << 8 | 1 << 16 | 2 << 24)
    }

    #[inline(always)]
    fn code(self) -> [u8; 2] {
        [self.0 as u8, (self.0 >> 8) as u8]
    }

    #[inline(always)]
    fn symbol_size(self) -> usize {
        (self.0 >> 16 & 0xFF) as usize
    }

    #[inline(always)]
    fn code_size(self) -> usize {
        (self.0 >> 24) as usize
    }
}

/// One cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Bucket {
    words: [u64; BUCKET_SIZE],
    /// 64 minus the bits of the symbol: what shifts the bytes beyond it away. An unused place has symbol and shift 0 and matches only eight zero bytes,
    /// which `steps` of 0 then refuses.
    shifts: [u8; BUCKET_SIZE],
    codes: [u16; BUCKET_SIZE],
}

/// The tables of one dictionary.
pub(super) struct Codec {
    symbols: Vec<Symbol>,
    short_codes: usize,
    /// For decompression: per code, the symbol.
    words: Vec<u64>,
    sizes: Vec<u8>,
    buckets: Box<[Bucket]>,
    /// By hash of three bytes: the bytes, and the step, 0 where there is none.
    triples: Box<[(u32, Step)]>,
    /// By two bytes: the step of the two, or of the first alone.
    pairs: Box<[Step]>,
    singles: Box<[Step; 256]>,
}

#[inline(always)]
fn hash_of_four(word: u64) -> usize {
    ((word as u32).wrapping_mul(0x9E37_79B1) >> (32 - BUCKET_BITS)) as usize
}

#[inline(always)]
fn hash_of_three(word: u64) -> usize {
    ((word as u32 & 0x00FF_FFFF).wrapping_mul(0x85EB_CA6B) >> (32 - TRIPLE_BITS)) as usize
}

/// Leaves out what the tables have no room for, keeping earlier symbols rather than later ones.
pub(super) fn without_crowded(symbols: impl IntoIterator<Item = Symbol>) -> Vec<Symbol> {
    let mut buckets = vec![0usize; 1 << BUCKET_BITS];
    let mut triples = vec![false; 1 << TRIPLE_BITS];
    symbols
        .into_iter()
        .filter(|symbol| match symbol.size {
            0 => false,
            1 | 2 => true,
            3 => !std::mem::replace(&mut triples[hash_of_three(symbol.word)], true),
            _ => {
                let used = &mut buckets[hash_of_four(symbol.word)];
                *used += 1;
                *used <= BUCKET_SIZE
            }
        })
        .collect()
}

impl Codec {
    /// Tables for these symbols, whose first `short_codes` have codes of one byte. `None` if two are the same or too many crowd one place.
    pub(super) fn new(symbols: Vec<Symbol>, short_codes: usize) -> Option<Codec> {
        let short_codes = short_codes.min(symbols.len()).min(SHORT_CODES_MAX);
        let mut distinct = std::collections::HashSet::new();
        if !symbols.iter().all(|symbol| distinct.insert(*symbol)) {
            return None;
        }
        let mut codec = Codec {
            short_codes,
            words: symbols.iter().map(|symbol| symbol.word).collect(),
            sizes: symbols.iter().map(|symbol| symbol.size).collect(),
            buckets: vec![
                Bucket {
                    words: [0; BUCKET_SIZE],
                    shifts: [0; BUCKET_SIZE],
                    codes: [u16::MAX; BUCKET_SIZE]
                };
                1 << BUCKET_BITS
            ]
            .into_boxed_slice(),
            triples: vec![(0, Step::default()); 1 << TRIPLE_BITS].into_boxed_slice(),
            pairs: vec![Step::default(); 1 << 16].into_boxed_slice(),
            singles: Box::new([Step::default(); 256]),
            symbols,
        };
        let steps: Vec<(Symbol, Step, usize)> = codec
            .symbols
            .iter()
            .enumerate()
            .map(|(code, symbol)| (*symbol, Step::new(code, short_codes, symbol.size), code))
            .collect();
        for byte in 0..=255u8 {
            codec.singles[usize::from(byte)] = Step::escape(byte);
        }
        for (symbol, step, _) in steps.iter().filter(|(symbol, ..)| symbol.size == 1) {
            codec.singles[symbol.word as usize] = *step;
        }
        for (i, pair) in codec.pairs.iter_mut().enumerate() {
            *pair = codec.singles[i & 0xFF];
        }
        let mut long: Vec<_> = steps.iter().filter(|(symbol, ..)| symbol.size >= 4).collect();
        long.sort_by_key(|(symbol, ..)| std::cmp::Reverse(symbol.size));
        for (symbol, step, _) in &steps {
            match symbol.size {
                2 => codec.pairs[symbol.word as usize] = *step,
                3 => {
                    let place = &mut codec.triples[hash_of_three(symbol.word)];
                    if place.1.0 != 0 {
                        return None;
                    }
                    *place = (symbol.word as u32, *step);
                }
                _ => {}
            }
        }
        for (symbol, _, code) in long {
            let bucket = &mut codec.buckets[hash_of_four(symbol.word)];
            let place = bucket.codes.iter().position(|code| *code == u16::MAX)?;
            bucket.words[place] = symbol.word;
            bucket.shifts[place] = 64 - 8 * symbol.size;
            bucket.codes[place] = *code as u16;
        }
        Some(codec)
    }

    pub(super) fn symbol_count(&self) -> usize {
        self.symbols.len()
    }

    pub(super) fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    pub(super) fn short_codes(&self) -> usize {
        self.short_codes
    }

    /// The longest symbol that begins `word`, of which `left` bytes are text.
    #[inline(always)]
    fn step(&self, word: u64, left: usize) -> Step {
        let bucket = &self.buckets[hash_of_four(word)];
        let mut hits = 0u32;
        for i in 0..BUCKET_SIZE {
            let differs = (word ^ bucket.words[i]) << bucket.shifts[i];
            hits |= u32::from(differs == 0) << i;
        }
        while hits != 0 {
            let place = hits.trailing_zeros() as usize;
            let code = bucket.codes[place % BUCKET_SIZE];
            let size = 8 - bucket.shifts[place % BUCKET_SIZE] as usize / 8;
            if size <= left && code != u16::MAX {
                return Step::new(usize::from(code), self.short_codes, size as u8);
            }
            hits &= hits - 1;
        }
        let (key, step) = self.triples[hash_of_three(word)];
        if key == word as u32 & 0x00FF_FFFF && step.0 != 0 && left >= 3 {
            return step;
        }
        if left >= 2 { self.pairs[(word & 0xFFFF) as usize] } else { self.singles[(word & 0xFF) as usize] }
    }

    /// Compresses `text` into `target`, which must have [`compressed_size_max`] bytes; returns the bytes used.
    #[inline]
    pub(super) fn compress(&self, text: &[u8], target: &mut [u8]) -> usize {
        let mut at = 0;
        let mut out = 0;
        while text.len() - at >= 8 {
            let step = self.step(crate::simd::word(&text[at..]), 8);
            target[out..out + 2].copy_from_slice(&step.code());
            at += step.symbol_size();
            out += step.code_size();
        }
        while at < text.len() {
            let mut word = [0; 8];
            word[..text.len() - at].copy_from_slice(&text[at..]);
            let step = self.step(u64::from_le_bytes(word), text.len() - at);
            target[out..out + 2].copy_from_slice(&step.code());
            at += step.symbol_size();
            out += step.code_size();
        }
        out
    }

    /// Which symbols compressing `text` takes, for training; a byte that stands for itself is `SYMBOL_COUNT_MAX` plus its value.
    pub(super) fn symbols_of(&self, text: &[u8], mut each: impl FnMut(usize)) {
        let mut at = 0;
        while at < text.len() {
            let left = (text.len() - at).min(8);
            let mut word = [0; 8];
            word[..left].copy_from_slice(&text[at..at + left]);
            let step = self.step(u64::from_le_bytes(word), left);
            let [first, second] = step.code();
            each(if step.code_size() == 1 {
                usize::from(first)
            } else if first == ESCAPE {
                SYMBOL_COUNT_MAX + usize::from(second)
            } else {
                self.short_codes + (usize::from(first) - self.short_codes) * 256 + usize::from(second)
            });
            at += step.symbol_size();
        }
    }

    /// Appends the text of `codes`.
    #[inline]
    pub(super) fn decompress(&self, codes: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        // Each code yields at most eight bytes; the store below always writes eight.
        out.resize(start + 8 * codes.len() + 8, 0);
        let target = &mut out[start..];
        let mut at = 0;
        let mut written = 0;
        while at < codes.len() {
            let first = codes[at];
            let code = if usize::from(first) < self.short_codes {
                at += 1;
                usize::from(first)
            } else {
                let second = codes.get(at + 1).copied().unwrap_or(0);
                at += 2;
                if first == ESCAPE {
                    target[written] = second;
                    written += 1;
                    continue;
                }
                self.short_codes + (usize::from(first) - self.short_codes) * 256 + usize::from(second)
            };
            if let (Some(word), Some(size)) = (self.words.get(code), self.sizes.get(code)) {
                target[written..written + 8].copy_from_slice(&word.to_le_bytes());
                written += usize::from(*size);
            }
        }
        out.truncate(start + written);
    }

    /// Whether `codes` are whole codes of symbols that exist.
    pub(super) fn is_valid(&self, codes: &[u8]) -> bool {
        let mut at = 0;
        while at < codes.len() {
            let first = usize::from(codes[at]);
            if first < self.short_codes {
                at += 1;
                continue;
            }
            let Some(second) = codes.get(at + 1) else {
                return false;
            };
            if first != usize::from(ESCAPE)
                && self.short_codes + (first - self.short_codes) * 256 + usize::from(*second)
                    >= self.symbols.len()
            {
                return false;
            }
            at += 2;
        }
        true
    }
}
