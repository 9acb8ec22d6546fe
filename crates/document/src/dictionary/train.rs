//! Choosing symbols for samples: bottom-up, as FSST does.
//!
//! Each round compresses the samples with the symbols so far, counts symbols and pairs of neighbours, and keeps what saves most among all of them, so that a
//! frequent pair becomes one symbol, and that one grows in the next round.

use std::collections::HashMap;

use super::codec::{Codec, SYMBOL_COUNT_MAX, Symbol, without_crowded};

/// Rounds: symbols double in length in each, and eight bytes are reached in three; the rest settle the choice.
const ROUNDS: usize = 9;

/// Codes of one byte, and with them all codes.
const SHORT_CODES: usize = 180;
const SYMBOL_COUNT: usize = SHORT_CODES + (255 - SHORT_CODES) * 256;

/// A symbol used less often is not worth its place.
const USES_MIN: u64 = 4;

pub(super) fn train(samples: &[&[u8]]) -> Codec {
    let mut codec = build(Vec::new(), 0);
    for round in 0..ROUNDS {
        let last = round + 1 == ROUNDS;
        let mut uses = vec![0u64; SYMBOL_COUNT_MAX + 256];
        let mut pairs: HashMap<u32, u64> = HashMap::new();
        for sample in samples {
            let mut before = None;
            codec.symbols_of(sample, |code| {
                uses[code] += 1;
                if !last && let Some(before) = before {
                    *pairs.entry((before as u32) << 16 | code as u32).or_default() += 1;
                }
                before = Some(code);
            });
        }
        let symbol_of = |code: usize| match code.checked_sub(SYMBOL_COUNT_MAX) {
            Some(byte) => Symbol { word: byte as u64, size: 1 },
            None => codec.symbols()[code],
        };
        let mut gains: HashMap<Symbol, u64> = HashMap::new();
        for (code, uses) in uses.iter().enumerate().filter(|(_, uses)| **uses > 0) {
            *gains.entry(symbol_of(code)).or_default() += uses;
        }
        for (pair, uses) in pairs {
            let symbol = symbol_of(pair as usize >> 16).followed_by(symbol_of(pair as usize & 0xFFFF));
            *gains.entry(symbol).or_default() += uses;
        }
        // What a use saves: its bytes, against about a byte and a half for the code.
        let worth = |(symbol, uses): &(Symbol, u64)| uses * (10 * u64::from(symbol.size) - 8);
        let mut ranked: Vec<(Symbol, u64)> =
            gains.into_iter().filter(|(symbol, uses)| *uses >= USES_MIN || symbol.size == 1).collect();
        ranked.sort_unstable_by_key(|entry| (std::cmp::Reverse(worth(entry)), entry.0.word, entry.0.size));
        let uses: HashMap<Symbol, u64> = ranked.iter().copied().collect();
        let mut kept = without_crowded(ranked.into_iter().map(|(symbol, _)| symbol));
        kept.truncate(SYMBOL_COUNT);
        // The most used ones get the codes of one byte.
        kept.sort_by_key(|symbol| (std::cmp::Reverse(uses[symbol]), symbol.word, symbol.size));
        codec = build(kept, SHORT_CODES);
    }
    codec
}

fn build(symbols: Vec<Symbol>, short_codes: usize) -> Codec {
    match Codec::new(symbols, short_codes) {
        Some(codec) => codec,
        // They come from a map, so none repeats, and the crowded ones are left out.
        None => unreachable!("symbols that repeat or crowd"),
    }
}
