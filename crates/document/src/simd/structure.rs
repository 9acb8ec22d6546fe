//! Which of 64 bytes of JSON text open, close or quote something.
//!
//! Who looks for the end of a value in a long input looks at nothing else, and need not look at bytes one by one: the quotes, backslashes and brackets of a
//! block become four 64-bit masks, and what lies inside strings is masked out by arithmetic. The technique is that of Langdale and Lemire,
//! "Parsing gigabytes of JSON per second" (2019).

/// Bytes of a block.
pub const BLOCK: usize = 64;

/// Bit i speaks of byte i of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    /// `"`
    pub quotes: u64,
    /// `\`
    pub backslashes: u64,
    /// `{` and `[`
    pub opens: u64,
    /// `}` and `]`
    pub closes: u64,
}

/// The bit in which brackets and braces differ: `[` | 0x20 is `{`, `]` | 0x20 is `}`, and no other byte becomes either.
const CURLY: u8 = 0x20;

/// Looks at a block.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
#[must_use]
pub fn masks(block: &[u8; BLOCK]) -> Masks {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };

    #[inline(always)]
    fn mask(part: __m128i, byte: u8) -> u64 {
        // SAFETY: SSE2 is part of x86-64.
        u64::from(unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(part, _mm_set1_epi8(byte as i8))) } as u16)
    }

    let mut masks = Masks::default();
    let (parts, _) = block.as_chunks::<16>();
    for (i, part) in parts.iter().enumerate() {
        // SAFETY: SSE2 is part of x86-64; the load needs no alignment, and the part has its sixteen bytes.
        let (part, curly) = unsafe {
            let part = _mm_loadu_si128(part.as_ptr().cast());
            (part, _mm_or_si128(part, _mm_set1_epi8(CURLY as i8)))
        };
        let shift = 16 * i;
        masks.quotes |= mask(part, b'"') << shift;
        masks.backslashes |= mask(part, b'\\') << shift;
        masks.opens |= mask(curly, b'{') << shift;
        masks.closes |= mask(curly, b'}') << shift;
    }
    masks
}

/// Looks at a block.
#[cfg(any(miri, not(target_arch = "x86_64")))]
#[inline(always)]
#[must_use]
pub fn masks(block: &[u8; BLOCK]) -> Masks {
    portable(block)
}

/// As [`masks`], with plain words of eight bytes.
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
fn portable(block: &[u8; BLOCK]) -> Masks {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    const ONES: u64 = 0x0101_0101_0101_0101;

    fn mask(word: u64, byte: u8) -> u64 {
        let other = word ^ (ONES * u64::from(byte));
        // The top bit of each byte that is zero, exactly; then the eight top bits side by side.
        let zero = !(((other & LOW) + LOW) | other | LOW);
        (zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
    }

    let mut masks = Masks::default();
    let (words, _) = block.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let curly = word | (ONES * u64::from(CURLY));
        let shift = 8 * i;
        masks.quotes |= mask(word, b'"') << shift;
        masks.backslashes |= mask(word, b'\\') << shift;
        masks.opens |= mask(curly, b'{') << shift;
        masks.closes |= mask(curly, b'}') << shift;
    }
    masks
}

/// Which bytes a backslash makes plain, and whether the block's last byte does so to the first of the next block. `escaped` tells it of the
/// block before.
#[inline(always)]
#[must_use]
pub fn escaped(backslashes: u64, escaped: bool) -> (u64, bool) {
    const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
    let first = u64::from(escaped);
    if backslashes == 0 {
        return (first, false);
    }
    // In a run of backslashes every second one is itself escaped. A subtraction that borrows through a run tells, by the parity of its
    // end, whether what follows is.
    let starts = backslashes & !first;
    let series = ((starts << 1) | ODD).wrapping_sub(starts) ^ ODD;
    (series ^ (backslashes | first), (series & backslashes) >> 63 != 0)
}

/// For each bit, the parity of the bits up to and with it: from the quotes of a block, the bytes from each opening quote up to
/// before its closing one.
#[inline(always)]
#[must_use]
pub fn parity(mut bits: u64) -> u64 {
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    bits ^= bits << 16;
    bits ^ (bits << 32)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn masks_agree_with_a_plain_loop(bytes in prop::collection::vec(any::<u8>(), BLOCK)) {
            let block: [u8; BLOCK] = bytes.try_into().unwrap();
            let mut expected = Masks::default();
            for (i, byte) in block.iter().enumerate() {
                match byte {
                    b'"' => expected.quotes |= 1 << i,
                    b'\\' => expected.backslashes |= 1 << i,
                    b'{' | b'[' => expected.opens |= 1 << i,
                    b'}' | b']' => expected.closes |= 1 << i,
                    _ => {}
                }
            }
            prop_assert_eq!(masks(&block), expected);
            prop_assert_eq!(portable(&block), expected);
        }

        #[test]
        fn escapes_agree_with_a_plain_loop(backslashes in any::<u64>(), more in any::<u64>(), before in any::<bool>()) {
            for backslashes in [backslashes, backslashes | more, backslashes & more] {
                let (mut expected, mut next) = (0, before);
                for i in 0..64 {
                    let this = next;
                    next = !this && backslashes >> i & 1 == 1;
                    expected |= u64::from(this) << i;
                }
                prop_assert_eq!(escaped(backslashes, before), (expected, next));
            }
        }

        #[test]
        fn parity_agrees_with_a_plain_loop(bits in any::<u64>()) {
            let mut expected = 0;
            for i in 0..64 {
                expected |= u64::from((bits << (63 - i)).count_ones() & 1) << i;
            }
            prop_assert_eq!(parity(bits), expected);
        }
    }

    #[test]
    fn every_byte_value_is_told_apart() {
        for byte in 0..=255 {
            let block = [byte; BLOCK];
            let all = |is: bool| if is { u64::MAX } else { 0 };
            let expected = Masks {
                quotes: all(byte == b'"'),
                backslashes: all(byte == b'\\'),
                opens: all(matches!(byte, b'{' | b'[')),
                closes: all(matches!(byte, b'}' | b']')),
            };
            assert_eq!((masks(&block), portable(&block)), (expected, expected), "{byte}");
        }
    }
}
