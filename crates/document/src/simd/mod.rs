//! Blocks of bytes looked at in one step: finding the end of a string while copying it, and skipping white space.
//!
//! The one unsafe corner of the parser. Each implementation works on [`Simd::WIDTH`] bytes; `Portable` uses plain words and is what
//! Miri and machines without a known instruction set run.

pub mod structure;
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) mod x86;

#[cfg(any(test, miri, not(target_arch = "x86_64")))]
mod portable;

#[cfg(any(test, miri, not(target_arch = "x86_64")))]
pub(crate) use portable::Portable;

/// The most bytes a block has.
pub(crate) const WIDTH_MAX: usize = 64;

/// Operations on blocks. Bit i of a mask speaks of byte i.
///
/// # Safety of the methods
///
/// `source` must be readable and `target` writable for [`Self::WIDTH`] bytes (names: 32 bytes on both sides), and the
/// instruction set of the implementation must be present.
pub(crate) trait Simd: Copy {
    /// Bytes of a block.
    const WIDTH: usize;

    /// Copies a block and tells which of its bytes end a run of plain string: `"`, `\` and control characters.
    unsafe fn copy_to_special(source: *const u8, target: *mut u8) -> u64;

    /// Tells which bytes of a block are `"`, `\` or control characters.
    unsafe fn special(source: *const u8) -> u64;

    /// Tells which bytes of a block are not JSON white space.
    unsafe fn not_space(source: *const u8) -> u64;

    /// Tells which of 32 bytes are the same on both sides.
    unsafe fn equal_32(left: *const u8, right: *const u8) -> u32;
}

/// `bytes` as text, if they are ASCII and no more than 64.
#[inline(always)]
pub(crate) fn short_ascii(bytes: &[u8]) -> Option<&str> {
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let size = bytes.len();
    if size > 64 {
        return None;
    }
    let high = if size >= 16 {
        high_bits_16_to_64(bytes)
    } else if size >= 8 {
        (word(bytes) | word(&bytes[size - 8..])) & HIGHS != 0
    } else {
        bytes.iter().fold(0, |high, byte| high | byte) >= 0x80
    };
    if high {
        return None;
    }
    // SAFETY: every byte is below 0x80.
    Some(unsafe { std::str::from_utf8_unchecked(bytes) })
}

/// Whether one of 16 to 64 bytes is 0x80 or more. Blocks of 16 that overlap where need be.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn high_bits_16_to_64(bytes: &[u8]) -> bool {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128};
    let size = bytes.len();
    assert!(size >= 16, "the caller looked");
    let at = bytes.as_ptr();
    // SAFETY: there are at least 16 bytes, so the first and the last 16 may be loaded; beyond 32 bytes so may the 16 after and before them. SSE2 is part of
    // x86-64.
    unsafe {
        let mut all = _mm_or_si128(_mm_loadu_si128(at.cast()), _mm_loadu_si128(at.add(size - 16).cast()));
        if size > 32 {
            all = _mm_or_si128(all, _mm_loadu_si128(at.add(16).cast()));
            all = _mm_or_si128(all, _mm_loadu_si128(at.add(size - 32).cast()));
        }
        _mm_movemask_epi8(all) != 0
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
fn high_bits_16_to_64(bytes: &[u8]) -> bool {
    !bytes.is_ascii()
}

/// Whether `left` and `right` are the same: for short ones, without a call.
#[inline(always)]
pub(crate) fn same(left: &[u8], right: &[u8]) -> bool {
    let size = left.len();
    if size != right.len() {
        return false;
    }
    match size {
        8..=16 => (word(left) ^ word(right)) | (word(&left[size - 8..]) ^ word(&right[size - 8..])) == 0,
        4..=7 => (half(left) ^ half(right)) | (half(&left[size - 4..]) ^ half(&right[size - 4..])) == 0,
        1..=3 => {
            // The first, the middle and the last byte are all there are.
            left[0] == right[0] && left[size / 2] == right[size / 2] && left[size - 1] == right[size - 1]
        }
        0 => true,
        _ => left == right,
    }
}

/// The digits of two values below 10^8, eight each: both are cut into fours, pairs and single digits at once.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(crate) fn sixteen_digits(high: u32, low: u32) -> [u8; 16] {
    use std::arch::x86_64::{
        __m128i, _mm_mul_epu32, _mm_mulhi_epu16, _mm_mullo_epi16, _mm_or_si128, _mm_set_epi64x,
        _mm_set1_epi8, _mm_set1_epi16, _mm_set1_epi64x, _mm_slli_epi16, _mm_slli_epi32, _mm_slli_epi64,
        _mm_srli_epi16, _mm_srli_epi64, _mm_sub_epi16, _mm_sub_epi32,
    };
    // SAFETY: SSE2 is part of x86-64, and sixteen bytes are sixteen bytes.
    unsafe {
        let values = _mm_set_epi64x(i64::from(low), i64::from(high));
        // n × 3,518,437,209 / 2^45 is n / 10,000 for all n of 32 bits.
        let quotients = _mm_srli_epi64::<45>(_mm_mul_epu32(values, _mm_set1_epi64x(3_518_437_209)));
        let rests = _mm_sub_epi32(values, _mm_mul_epu32(quotients, _mm_set1_epi64x(10_000)));
        let fours = _mm_or_si128(quotients, _mm_slli_epi64::<32>(rests));
        // n × 10,486 / 2^20 is n / 100 for all n below 10,000.
        let quotients = _mm_srli_epi16::<4>(_mm_mulhi_epu16(fours, _mm_set1_epi16(10_486)));
        let rests = _mm_sub_epi16(fours, _mm_mullo_epi16(quotients, _mm_set1_epi16(100)));
        let pairs = _mm_or_si128(quotients, _mm_slli_epi32::<16>(rests));
        // n × 6,554 / 2^16 is n / 10 for all n below 100.
        let quotients = _mm_mulhi_epu16(pairs, _mm_set1_epi16(6_554));
        let rests = _mm_sub_epi16(pairs, _mm_mullo_epi16(quotients, _mm_set1_epi16(10)));
        let digits = _mm_or_si128(quotients, _mm_slli_epi16::<8>(rests));
        std::mem::transmute::<__m128i, [u8; 16]>(_mm_or_si128(digits, _mm_set1_epi8(0x30)))
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
pub(crate) fn sixteen_digits(high: u32, low: u32) -> [u8; 16] {
    let halves = [high, low].map(|half| crate::text::number::eight_digits_text(u64::from(half)));
    let mut digits = [0; 16];
    digits[..8].copy_from_slice(&halves[0]);
    digits[8..].copy_from_slice(&halves[1]);
    digits
}

/// Asks for the cache line at `at` before it is needed. Beyond the end it does nothing that matters.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = bytes.as_ptr().wrapping_add(at);
        // SAFETY: a prefetch reads nothing that the program could see and never faults, whatever the address; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (bytes, at);
}

/// Reads a little-endian half word from the start of `bytes`, which has at least four.
#[inline(always)]
fn half(bytes: &[u8]) -> u32 {
    let mut half = [0; 4];
    half.copy_from_slice(&bytes[..4]);
    u32::from_le_bytes(half)
}

/// Reads a little-endian word from the start of `bytes`, which has at least eight.
#[inline(always)]
pub(crate) fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(word)
}

/// Reads the last `size` bytes of a text, at least one and fewer than eight, as a little-endian word with zeros above.
#[inline(always)]
pub(crate) fn last_word(text: &[u8], size: usize) -> u64 {
    if text.len() >= 8 {
        return word(&text[text.len() - 8..]) >> (8 * (8 - size));
    }
    let mut last = [0; 8];
    last[..size].copy_from_slice(&text[text.len() - size..]);
    u64::from_le_bytes(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every implementation agrees with a plain loop, at every byte value and place.
    fn check<S: Simd>() {
        let mut seed = 1u64;
        for round in 0..2_000 {
            let mut source = [0u8; WIDTH_MAX];
            for byte in &mut source {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = if round % 2 == 0 {
                    (seed >> 33) as u8
                } else {
                    b" \"\\\n\t\rab\x1f \x7f\x80"[(seed >> 33) as usize % 12]
                };
            }
            let mut target = [0u8; WIDTH_MAX];
            // SAFETY: both arrays hold WIDTH_MAX bytes; the caller checked the instruction set.
            let (copied, special, not_space, equal) = unsafe {
                (
                    S::copy_to_special(source.as_ptr(), target.as_mut_ptr()),
                    S::special(source.as_ptr()),
                    S::not_space(source.as_ptr()),
                    S::equal_32(source.as_ptr(), source[32..].as_ptr()),
                )
            };
            assert_eq!(source[..S::WIDTH], target[..S::WIDTH]);
            assert_eq!(copied, special);
            for (i, byte) in source[..S::WIDTH].iter().enumerate() {
                let is_special = *byte == b'"' || *byte == b'\\' || *byte < 0x20;
                let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
                assert_eq!(special >> i & 1 == 1, is_special, "{byte}");
                assert_eq!(not_space >> i & 1 == 0, is_space, "{byte}");
            }
            for i in 0..32 {
                assert_eq!(equal >> i & 1 == 1, source[i] == source[i + 32]);
            }
        }
    }

    #[test]
    fn sixteen_digits_are_those_of_the_values() {
        let mut seed = 1u64;
        // All values below 10,000 stand in some place, and many others.
        for i in 0..20_000u32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let other = (seed >> 33) as u32 % 100_000_000;
            for (high, low) in [(i, other), (other, i), (9_999 * 10_000 + i % 10_000, i % 10_000 * 10_000)] {
                let text = format!("{high:08}{low:08}");
                assert_eq!(sixteen_digits(high, low), *text.as_bytes(), "{text}");
            }
        }
    }

    #[test]
    fn short_text_is_ascii_or_not() {
        for size in 0..=80 {
            let mut bytes = vec![b'a'; size];
            assert_eq!(short_ascii(&bytes).is_some(), size <= 64, "{size}");
            for place in 0..size.min(64) {
                bytes[place] = 0x80;
                assert_eq!(short_ascii(&bytes), None, "{size}, {place}");
                bytes[place] = 0x7F;
            }
        }
    }

    #[test]
    fn same_is_equality() {
        for size in 0..=40 {
            let left: Vec<u8> = (0..size).collect();
            let mut right = left.clone();
            assert!(same(&left, &right));
            for place in 0..usize::from(size) {
                right[place] ^= 0x40;
                assert!(!same(&left, &right), "{size}, {place}");
                right[place] ^= 0x40;
            }
            right.push(0);
            assert!(!same(&left, &right));
        }
    }

    #[test]
    fn portable() {
        check::<Portable>();
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[test]
    fn x86() {
        check::<x86::Sse2>();
        if x86::has_avx2() {
            check::<x86::Avx2>();
        }
        if x86::has_avx512() {
            check::<x86::Avx512>();
        }
    }
}
