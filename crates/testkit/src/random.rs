//! Chance from a seed.

use std::ops::Range;

/// SplitMix64 (Steele, Lea and Flood, 2014): small, good enough for tests, and the same on every machine for ever, so
/// that a seed in an old report still replays.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// Another sequence, independent of how far this one is read from now on.
    pub fn fork(&mut self) -> Random {
        Random::new(self.next_u64())
    }

    /// The next number, any with equal chance.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`. Panics when `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound as u64) as usize
    }

    /// A number of a range. Panics when it is empty.
    pub fn within(&mut self, range: Range<usize>) -> usize {
        range.start + self.below(range.end - range.start)
    }

    /// True once in `times` on average.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of the items; `None` when there is none.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() { None } else { of.get(self.below(of.len())) }
    }

    /// An index into `weights`, each as likely as its weight. Panics when they add up to 0.
    pub fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut at = self.below(weights.iter().sum());
        for (index, &weight) in weights.iter().enumerate() {
            if at < weight {
                return index;
            }
            at -= weight;
        }
        weights.len() - 1
    }

    /// A small number mostly, a large one now and then: below `2^bits`, each number of bits as likely.
    pub fn skewed(&mut self, bits: usize) -> usize {
        let size = self.below(bits + 1);
        self.below(1 << size)
    }

    /// Incompressible bytes.
    pub fn bytes(&mut self, size: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(size + 8);
        while bytes.len() < size {
            bytes.extend_from_slice(&self.next_u64().to_le_bytes());
        }
        bytes.truncate(size);
        bytes
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_sequence_never_changes() {
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        // The reference implementation's numbers for this seed.
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn choices_keep_their_bounds() {
        let mut random = Random::new(5);
        for _ in 0..1000 {
            assert!((3..7).contains(&random.within(3..7)));
            assert!(random.skewed(4) < 16);
            assert_eq!(random.weighted(&[0, 5, 0]), 1);
            assert!([1, 2].contains(random.pick(&[1, 2]).unwrap()));
        }
        assert_eq!(random.pick::<u8>(&[]), None);
        assert_eq!(random.bytes(13).len(), 13);
    }
}
