//! Blocks of 16, 32 and 64 bytes on x86-64.

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8,
    _mm_or_si128, _mm_set1_epi8, _mm_storeu_si128, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8,
    _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm256_storeu_si256, _mm512_cmpeq_epi8_mask,
    _mm512_cmplt_epu8_mask, _mm512_loadu_si512, _mm512_set1_epi8, _mm512_storeu_si512,
};

use super::Simd;

/// Whether [`Avx2`] may be used here.
pub(crate) fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("bmi1")
}

/// Whether [`Avx512`] may be used here.
pub(crate) fn has_avx512() -> bool {
    has_avx2()
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vl")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("lzcnt")
        && std::arch::is_x86_feature_detected!("popcnt")
}

/// 16 bytes; every x86-64 has it.
#[derive(Clone, Copy)]
pub(crate) struct Sse2;

#[inline(always)]
unsafe fn special_128(block: __m128i) -> u64 {
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        let quote = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'"' as i8));
        let backslash = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'\\' as i8));
        let control = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1F)), block);
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control)) as u32 as u64
    }
}

impl Simd for Sse2 {
    const WIDTH: usize = 16;

    #[inline(always)]
    unsafe fn copy_to_special(source: *const u8, target: *mut u8) -> u64 {
        // SAFETY: the caller vouches for 16 bytes on both sides.
        unsafe {
            let block = _mm_loadu_si128(source.cast());
            _mm_storeu_si128(target.cast(), block);
            special_128(block)
        }
    }

    #[inline(always)]
    unsafe fn special(source: *const u8) -> u64 {
        // SAFETY: the caller vouches for 16 bytes.
        unsafe { special_128(_mm_loadu_si128(source.cast())) }
    }

    #[inline(always)]
    unsafe fn not_space(source: *const u8) -> u64 {
        // SAFETY: the caller vouches for 16 bytes.
        unsafe {
            let block = _mm_loadu_si128(source.cast());
            let is = |byte: u8| _mm_cmpeq_epi8(block, _mm_set1_epi8(byte as i8));
            let space = _mm_or_si128(_mm_or_si128(is(b' '), is(b'\n')), _mm_or_si128(is(b'\t'), is(b'\r')));
            (_mm_movemask_epi8(space) as u32 as u64) ^ 0xFFFF
        }
    }

    #[inline(always)]
    unsafe fn equal_32(left: *const u8, right: *const u8) -> u32 {
        // SAFETY: the caller vouches for 32 bytes on both sides.
        unsafe {
            let low = _mm_cmpeq_epi8(_mm_loadu_si128(left.cast()), _mm_loadu_si128(right.cast()));
            let high =
                _mm_cmpeq_epi8(_mm_loadu_si128(left.add(16).cast()), _mm_loadu_si128(right.add(16).cast()));
            _mm_movemask_epi8(low) as u32 | (_mm_movemask_epi8(high) as u32) << 16
        }
    }
}

/// 32 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

#[inline(always)]
unsafe fn special_256(block: __m256i) -> u64 {
    // SAFETY: the caller vouches for AVX2.
    unsafe {
        let quote = _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b'"' as i8));
        let backslash = _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b'\\' as i8));
        let control = _mm256_cmpeq_epi8(_mm256_min_epu8(block, _mm256_set1_epi8(0x1F)), block);
        _mm256_movemask_epi8(_mm256_or_si256(_mm256_or_si256(quote, backslash), control)) as u32 as u64
    }
}

impl Simd for Avx2 {
    const WIDTH: usize = 32;

    #[inline(always)]
    unsafe fn copy_to_special(source: *const u8, target: *mut u8) -> u64 {
        // SAFETY: the caller vouches for AVX2 and 32 bytes on both sides.
        unsafe {
            let block = _mm256_loadu_si256(source.cast());
            _mm256_storeu_si256(target.cast(), block);
            special_256(block)
        }
    }

    #[inline(always)]
    unsafe fn special(source: *const u8) -> u64 {
        // SAFETY: the caller vouches for AVX2 and 32 bytes.
        unsafe { special_256(_mm256_loadu_si256(source.cast())) }
    }

    #[inline(always)]
    unsafe fn not_space(source: *const u8) -> u64 {
        // SAFETY: the caller vouches for AVX2 and 32 bytes.
        unsafe {
            let block = _mm256_loadu_si256(source.cast());
            let space = _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b' ' as i8));
            let line = _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b'\n' as i8));
            let tab = _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b'\t' as i8));
            let carriage = _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b'\r' as i8));
            let all = _mm256_or_si256(_mm256_or_si256(space, line), _mm256_or_si256(tab, carriage));
            (!(_mm256_movemask_epi8(all) as u32)) as u64
        }
    }

    #[inline(always)]
    unsafe fn equal_32(left: *const u8, right: *const u8) -> u32 {
        // SAFETY: the caller vouches for AVX2 and 32 bytes on both sides.
        unsafe {
            let same = _mm256_cmpeq_epi8(_mm256_loadu_si256(left.cast()), _mm256_loadu_si256(right.cast()));
            _mm256_movemask_epi8(same) as u32
        }
    }
}

/// 64 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

#[inline(always)]
unsafe fn special_512(block: __m512i) -> u64 {
    // SAFETY: the caller vouches for AVX-512 BW.
    unsafe {
        _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'"' as i8))
            | _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'\\' as i8))
            | _mm512_cmplt_epu8_mask(block, _mm512_set1_epi8(0x20))
    }
}

impl Simd for Avx512 {
    const WIDTH: usize = 64;

    #[inline(always)]
    unsafe fn copy_to_special(source: *const u8, target: *mut u8) -> u64 {
        // SAFETY: the caller vouches for AVX-512 BW and 64 bytes on both sides.
        unsafe {
            let block = _mm512_loadu_si512(source.cast());
            _mm512_storeu_si512(target.cast(), block);
            special_512(block)
        }
    }

    #[inline(always)]
    unsafe fn special(source: *const u8) -> u64 {
        // SAFETY: the caller vouches for AVX-512 BW and 64 bytes.
        unsafe { special_512(_mm512_loadu_si512(source.cast())) }
    }

    #[inline(always)]
    unsafe fn not_space(source: *const u8) -> u64 {
        // SAFETY: the caller vouches for AVX-512 BW and 64 bytes.
        unsafe {
            let block = _mm512_loadu_si512(source.cast());
            !(_mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b' ' as i8))
                | _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'\n' as i8))
                | _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'\t' as i8))
                | _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'\r' as i8)))
        }
    }

    #[inline(always)]
    unsafe fn equal_32(left: *const u8, right: *const u8) -> u32 {
        // SAFETY: the caller vouches for AVX2 (part of what AVX-512 machines have) and 32 bytes on both sides.
        unsafe { Avx2::equal_32(left, right) }
    }
}

/// The values of 32 hexadecimal digits, the first in the lowest byte of the first word; `None` if one is none.
#[inline(always)]
pub(crate) fn hexadecimal(words: [u64; 4]) -> Option<[u64; 2]> {
    // SAFETY: SSE2 is part of x86-64.
    unsafe { hexadecimal_sse2(words) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn hexadecimal_sse2(words: [u64; 4]) -> Option<[u64; 2]> {
    use std::arch::x86_64::{
        _mm_add_epi8, _mm_and_si128, _mm_cvtsi128_si64, _mm_packus_epi16, _mm_set_epi64x, _mm_set1_epi16,
        _mm_slli_epi16, _mm_srli_epi16, _mm_sub_epi8, _mm_unpackhi_epi64,
    };

    /// The value of each digit, and which are digits.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn nibbles(text: __m128i) -> (__m128i, __m128i) {
        let number = _mm_sub_epi8(text, _mm_set1_epi8(b'0' as i8));
        let is_number = _mm_cmpeq_epi8(_mm_min_epu8(number, _mm_set1_epi8(9)), number);
        let letter = _mm_sub_epi8(_mm_or_si128(text, _mm_set1_epi8(0x20)), _mm_set1_epi8(b'a' as i8));
        let is_letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(5)), letter);
        let value = _mm_or_si128(
            _mm_and_si128(is_number, number),
            _mm_and_si128(is_letter, _mm_add_epi8(letter, _mm_set1_epi8(10))),
        );
        (value, _mm_or_si128(is_number, is_letter))
    }

    /// Two digits to a byte, in sixteen bits each.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn pairs(nibbles: __m128i) -> __m128i {
        let both = _mm_or_si128(_mm_slli_epi16::<4>(nibbles), _mm_srli_epi16::<8>(nibbles));
        _mm_and_si128(both, _mm_set1_epi16(0xFF))
    }

    let (left, left_good) = nibbles(_mm_set_epi64x(words[1] as i64, words[0] as i64));
    let (right, right_good) = nibbles(_mm_set_epi64x(words[3] as i64, words[2] as i64));
    if _mm_movemask_epi8(_mm_and_si128(left_good, right_good)) != 0xFFFF {
        return None;
    }
    let bytes = _mm_packus_epi16(pairs(left), pairs(right));
    let high = _mm_unpackhi_epi64(bytes, bytes);
    Some([(_mm_cvtsi128_si64(bytes) as u64).swap_bytes(), (_mm_cvtsi128_si64(high) as u64).swap_bytes()])
}
