//! The tables behind a dictionary and the two loops that use them.
//!
//! The longest symbol at a place is found in two looks: symbols of three bytes and more lie in buckets by a hash of their first three bytes, longest
//! first, a bucket to a cache line; the rest are found by their two bytes. Both looks are made at once, and what they find is chosen without a branch. But each place depends on
//! the symbol before it, so one string is a long chain of cache latencies. Hence longer text is compressed as [`PARTS`] parts side by side (`lanes.rs`), whose
//! codes are then put together; where it is cut is part of the format, so that equal text has equal codes.

use super::SYMBOL_SIZE_MAX;
use super::lanes;

/// The byte before a byte that stands for itself.
const ESCAPE: u8 = 255;

/// The most codes of one byte.
pub(super) const SHORT_CODES_MAX: usize = 254;

/// The most symbols of a dictionary.
pub(super) const SYMBOL_COUNT_MAX: usize = 32 << 10;

/// Symbols of three and more bytes that may share a bucket.
pub(super) const BUCKET_SIZE: usize = 5;
const BUCKET_BITS: u32 = 13;
const BUCKET_COUNT: usize = 1 << BUCKET_BITS;

/// Text of at least [`PARTS_SIZE_MIN`] bytes is compressed as so many parts.
pub(super) const PARTS: usize = 4;
pub(super) const PARTS_SIZE_MIN: usize = 32;

/// The most bytes that compressing `len` bytes needs, the slack of each part's last store included.
pub(super) const fn compressed_size_max(len: usize) -> usize {
    2 * len + 8 * PARTS
}

/// Where text is cut: into quarters, each cut moved on to the next byte that begins a character.
fn cuts(text: &[u8]) -> [usize; PARTS + 1] {
    let mut cuts = [0; PARTS + 1];
    cuts[PARTS] = text.len();
    for (i, cut) in cuts.iter_mut().enumerate().take(PARTS).skip(1) {
        *cut = text.len() * i / PARTS;
        while text.get(*cut).is_some_and(|byte| byte & 0xC0 == 0x80) && *cut < text.len() * i / PARTS + 3 {
            *cut += 1;
        }
    }
    cuts
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

/// A code with what follows from it: `code bytes | symbol size << 16 | code size << 20 | (64 − bits of the symbol) << 24`.
#[derive(Clone, Copy, Default)]
pub(super) struct Step(pub(super) u32);

impl Step {
    fn new(code: usize, short_codes: usize, symbol_size: u8) -> Step {
        if code < short_codes {
            return Step::of(code as u32, 1, symbol_size);
        }
        let rest = code - short_codes;
        let (first, second) = (short_codes + rest / 256, rest % 256);
        Step::of(first as u32 | (second as u32) << 8, 2, symbol_size)
    }

    fn escape(byte: u8) -> Step {
        Step::of(u32::from(ESCAPE) | u32::from(byte) << 8, 2, 1)
    }

    fn of(code: u32, code_size: u32, symbol_size: u8) -> Step {
        let size = u32::from(symbol_size);
        Step(code | size << 16 | code_size << 20 | (64 - 8 * size) << 24)
    }

    #[inline(always)]
    pub(super) fn code(self) -> [u8; 2] {
        [self.0 as u8, (self.0 >> 8) as u8]
    }

    #[inline(always)]
    pub(super) fn symbol_size(self) -> usize {
        (self.0 >> 16 & 0xF) as usize
    }

    #[inline(always)]
    pub(super) fn code_size(self) -> usize {
        (self.0 >> 20 & 0xF) as usize
    }
}

/// One cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Bucket {
    pub(super) words: [u64; BUCKET_SIZE],
    /// The last is for no match.
    pub(super) steps: [Step; BUCKET_SIZE + 1],
}

impl Bucket {
    /// A bucket that nothing matches: its words belong into another one.
    fn unused(place: usize) -> Bucket {
        Bucket {
            words: [u64::from(place == hash_of_three(0)); BUCKET_SIZE],
            steps: [Step::default(); BUCKET_SIZE + 1],
        }
    }
}

/// The tables of one dictionary.
pub(super) struct Codec {
    symbols: Vec<Symbol>,
    pub(super) short_codes: usize,
    /// For decompression: per code, the symbol.
    words: Vec<u64>,
    sizes: Vec<u8>,
    pub(super) buckets: Box<[Bucket; BUCKET_COUNT]>,
    /// By two bytes: the step of the two, or of the first alone.
    pub(super) pairs: Box<[Step; 1 << 16]>,
    singles: Box<[Step; 256]>,
}

/// The bucket of a text's first three bytes, below [`BUCKET_COUNT`].
#[inline(always)]
pub(super) fn hash_of_three(word: u64) -> usize {
    (((word as u32) << 8).wrapping_mul(0x9E37_79B1) >> (32 - BUCKET_BITS)) as usize
}

fn boxed<T: Clone, const N: usize>(value: T) -> Box<[T; N]> {
    match vec![value; N].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("the slice was made with the array's length"),
    }
}

/// Leaves out what the tables have no room for, keeping earlier symbols rather than later ones.
pub(super) fn without_crowded(symbols: impl IntoIterator<Item = Symbol>) -> Vec<Symbol> {
    let mut buckets = vec![0usize; BUCKET_COUNT];
    symbols
        .into_iter()
        .filter(|symbol| match symbol.size {
            _ if symbol.bytes().contains(&0) => false,
            0 => false,
            1 | 2 => true,
            _ => {
                let used = &mut buckets[hash_of_three(symbol.word)];
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
        // No symbol has a zero: the bytes after a text's end are taken as zeros.
        if !symbols.iter().all(|symbol| distinct.insert(*symbol) && !symbol.bytes().contains(&0)) {
            return None;
        }
        let mut codec = Codec {
            short_codes,
            words: symbols.iter().map(|symbol| symbol.word).collect(),
            sizes: symbols.iter().map(|symbol| symbol.size).collect(),
            buckets: boxed(Bucket::unused(1)),
            pairs: boxed(Step::default()),
            singles: Box::new([Step::default(); 256]),
            symbols,
        };
        let steps: Vec<(Symbol, Step, usize)> = codec
            .symbols
            .iter()
            .enumerate()
            .map(|(code, symbol)| (*symbol, Step::new(code, short_codes, symbol.size), code))
            .collect();
        codec.buckets[hash_of_three(0)] = Bucket::unused(hash_of_three(0));
        for byte in 0..=255u8 {
            codec.singles[usize::from(byte)] = Step::escape(byte);
        }
        for (symbol, step, _) in steps.iter().filter(|(symbol, ..)| symbol.size == 1) {
            codec.singles[symbol.word as usize] = *step;
        }
        for (i, pair) in codec.pairs.iter_mut().enumerate() {
            *pair = codec.singles[i & 0xFF];
        }
        let mut long: Vec<_> = steps.iter().filter(|(symbol, ..)| symbol.size >= 3).collect();
        long.sort_by_key(|(symbol, ..)| std::cmp::Reverse(symbol.size));
        for (symbol, step, _) in steps.iter().filter(|(symbol, ..)| symbol.size == 2) {
            codec.pairs[symbol.word as usize] = *step;
        }
        let mut used = vec![0; codec.buckets.len()];
        for (symbol, step, _) in long {
            let place = hash_of_three(symbol.word);
            let bucket = &mut codec.buckets[place];
            let i: usize = used[place];
            if i >= BUCKET_SIZE {
                return None;
            }
            used[place] += 1;
            bucket.words[i] = symbol.word;
            bucket.steps[i] = *step;
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

    /// The longest symbol that begins `word`, whose bytes after the text's end are zero.
    #[inline(always)]
    fn step(&self, word: u64) -> Step {
        let bucket = &self.buckets[hash_of_three(word)];
        let mut hits = 0u32;
        for i in 0..BUCKET_SIZE {
            let differs = (word ^ bucket.words[i]) << (bucket.steps[i].0 >> 24);
            hits |= u32::from(differs == 0) << i;
        }
        self.step_after_hits(word, bucket, hits)
    }

    /// The step, once it is known which places of the bucket match.
    #[inline(always)]
    pub(super) fn step_after_hits(&self, word: u64, bucket: &Bucket, hits: u32) -> Step {
        let pair = self.pairs[(word & 0xFFFF) as usize];
        let place = (hits | 1 << BUCKET_SIZE).trailing_zeros() as usize;
        let long = bucket.steps[place.min(BUCKET_SIZE)];
        // Which of the two it is cannot be foretold, so a branch would often be taken back.
        Step(std::hint::select_unpredictable(hits != 0, long.0, pair.0))
    }

    /// Compresses `text` into `target`, which must have [`compressed_size_max`] bytes; returns the bytes used.
    #[inline]
    pub(super) fn compress(&self, text: &[u8], target: &mut [u8]) -> usize {
        if text.len() < PARTS_SIZE_MIN {
            return match lanes::compress_short(self, text, target) {
                Some(size) => size,
                None => self.compress_part(text, target),
            };
        }
        let cuts = cuts(text);
        // Each part writes where even its longest codes keep out of the next one's way.
        let places: [usize; PARTS] = std::array::from_fn(|i| 2 * cuts[i] + 8 * i);
        let mut ats: [usize; PARTS] = std::array::from_fn(|i| cuts[i]);
        let mut outs = places;
        lanes::compress(self, text, &mut ats, &cuts, target, &mut outs);
        let mut total = 0;
        for i in 0..PARTS {
            if ats[i] < cuts[i + 1] {
                outs[i] += self.compress_part(&text[ats[i]..cuts[i + 1]], &mut target[outs[i]..]);
            }
            target.copy_within(places[i]..outs[i], total);
            total += outs[i] - places[i];
        }
        total
    }

    #[inline(always)]
    fn compress_part(&self, text: &[u8], target: &mut [u8]) -> usize {
        let mut at = 0;
        let mut out = 0;
        while text.len() - at >= 8 {
            let step = self.step(crate::simd::word(&text[at..]));
            target[out..out + 2].copy_from_slice(&step.code());
            at += step.symbol_size();
            out += step.code_size();
        }
        let mut left = text.len() - at;
        if left == 0 {
            return out;
        }
        let mut word = crate::simd::last_word(text, left);
        while left > 0 {
            let step = self.step(word);
            target[out..out + 2].copy_from_slice(&step.code());
            out += step.code_size();
            // No symbol has a zero, so none reaches beyond the end; one of eight bytes would need all of the word.
            word = word.checked_shr(8 * step.symbol_size() as u32).unwrap_or(0);
            left -= step.symbol_size();
        }
        out
    }

    /// Which symbols compressing `text` in one part takes, for training; a byte that stands for itself is `SYMBOL_COUNT_MAX` plus its value.
    pub(super) fn symbols_of(&self, text: &[u8], mut each: impl FnMut(usize)) {
        let mut at = 0;
        while at < text.len() {
            let left = (text.len() - at).min(8);
            let mut word = [0; 8];
            word[..left].copy_from_slice(&text[at..at + left]);
            let step = self.step(u64::from_le_bytes(word));
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
