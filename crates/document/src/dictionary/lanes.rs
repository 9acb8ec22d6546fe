//! The parts of one text compressed side by side.
//!
//! Unsafe code: the loop with AVX-512 reads and writes through pointers. What it relies on is checked at its start.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::codec::{BUCKET_SIZE, Step, hash_of_three};
use super::codec::{Codec, PARTS};

/// Compresses the part of `text` from `ats[i]` to `cuts[i + 1]` to `target` from `outs[i]` on, for each i, as far as all parts have eight bytes left; moves `ats` and `outs` on.
/// Somewhere without the instructions for it this does nothing: the caller finishes each part.
#[inline(always)]
pub(super) fn compress(
    codec: &Codec,
    text: &[u8],
    ats: &mut [usize; PARTS],
    cuts: &[usize; PARTS + 1],
    target: &mut [u8],
    outs: &mut [usize; PARTS],
) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if crate::simd::x86::has_avx512() {
        for i in 0..PARTS {
            assert!(ats[i] <= cuts[i + 1] && cuts[i + 1] <= text.len());
            assert!(text.len() >= 8);
            assert!(outs[i] + 2 * (cuts[i + 1] - ats[i]) + 2 <= target.len());
        }
        // SAFETY: the instruction set is there, and the bounds that the function names were just checked.
        unsafe { compress_avx512(codec, text, ats, cuts, target, outs) };
    }
    let _ = (codec, text, ats, cuts, target, outs);
}

/// Compresses a short text whole; `None` without the instructions for it, or if it holds a zero byte.
#[inline(always)]
pub(super) fn compress_short(codec: &Codec, text: &[u8], target: &mut [u8]) -> Option<usize> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if crate::simd::x86::has_avx512() {
        assert!(2 * text.len() + 2 <= target.len());
        // SAFETY: the instruction set is there, and the room was just checked.
        return unsafe { compress_short_avx512(codec, text, target) };
    }
    let _ = (codec, text, target);
    None
}

/// The step for a word.
///
/// # Safety
///
/// AVX-512 BW and VL are there.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn step_of(codec: &Codec, word: u64) -> Step {
    use std::arch::x86_64::{
        _mm256_alignr_epi32, _mm256_loadu_si256, _mm512_cvtepu32_epi64, _mm512_load_si512, _mm512_set1_epi64,
        _mm512_sllv_epi64, _mm512_srli_epi64, _mm512_testn_epi64_mask, _mm512_xor_si512,
    };

    const PLACES: u32 = (1 << BUCKET_SIZE) - 1;

    let bucket = &codec.buckets[hash_of_three(word)];
    // SAFETY: a bucket has 64 bytes and is aligned to them; half of them are read from its middle.
    let hits = unsafe {
        let words = _mm512_load_si512(std::ptr::from_ref(bucket).cast());
        let steps = _mm256_loadu_si256(std::ptr::from_ref(bucket).cast::<u8>().add(32).cast());
        // The first two lanes hold the last word and are rotated away, so that lane i has step i.
        let steps = _mm256_alignr_epi32::<2>(steps, steps);
        let shifts = _mm512_srli_epi64::<24>(_mm512_cvtepu32_epi64(steps));
        let differs = _mm512_sllv_epi64(_mm512_xor_si512(words, _mm512_set1_epi64(word as i64)), shifts);
        u32::from(_mm512_testn_epi64_mask(differs, differs)) & PLACES
    };
    Step(alone(u64::from(codec.step_after_hits(word, bucket, hits).0)) as u32)
}

/// Keeps a value in a general register. Without it the compiler joins the parts in vector registers, and each then waits for the slowest.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn alone(mut value: u64) -> u64 {
    // SAFETY: there are no instructions.
    unsafe { std::arch::asm!("/* {0} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags)) };
    value
}

/// # Safety
///
/// AVX-512 BW and VL are there, and `target` has two bytes for each byte of `text` and two more.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn compress_short_avx512(codec: &Codec, text: &[u8], target: &mut [u8]) -> Option<usize> {
    let (mut at, mut out) = (0, 0);
    let mut put = |step: Step| {
        // SAFETY: a step writes at most two bytes and goes on by at most two for each byte of text, for which there is room, and for two more.
        unsafe { target.as_mut_ptr().add(out).cast::<[u8; 2]>().write_unaligned(step.code()) };
        out += step.code_size();
    };
    while text.len() - at >= 8 {
        // SAFETY: the instruction set is there.
        let step = unsafe { step_of(codec, crate::simd::word(&text[at..])) };
        put(step);
        at += step.symbol_size();
    }
    let left = text.len() - at;
    if left == 0 {
        return Some(out);
    }
    let mut word = crate::simd::last_word(text, left);
    let mut left = left as isize;
    while left > 0 {
        if word & 0xFF == 0 {
            return None;
        }
        // SAFETY: the instruction set is there.
        let step = unsafe { step_of(codec, word) };
        put(step);
        word = word.checked_shr(8 * step.symbol_size() as u32).unwrap_or(0);
        left -= step.symbol_size() as isize;
    }
    Some(out)
}

/// # Safety
///
/// AVX-512 BW and VL are there. Each part lies in `text`, and from its place in `target` on there are two bytes for each of its bytes and two more.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn compress_avx512(
    codec: &Codec,
    text: &[u8],
    ats: &mut [usize; PARTS],
    cuts: &[usize; PARTS + 1],
    target: &mut [u8],
    outs: &mut [usize; PARTS],
) {
    let (mut at, mut out) = (*ats, *outs);
    loop {
        // No step takes more than eight bytes, so so many rounds need no check.
        let rounds = (0..PARTS).map(|i| (cuts[i + 1] - at[i]) / 8).min().unwrap_or(0);
        if rounds == 0 {
            break;
        }
        for _ in 0..rounds {
            for i in 0..PARTS {
                // SAFETY: eight bytes of the part are left, by the count of rounds.
                let word = unsafe { text.as_ptr().add(at[i]).cast::<u64>().read_unaligned() };
                let word = alone(u64::from_le(word));
                // SAFETY: the instruction set is there.
                let step = unsafe { step_of(codec, word) };
                // SAFETY: a step writes at most two bytes and goes on by at most two for each byte of text, for which there is room, and for two more.
                unsafe { target.as_mut_ptr().add(out[i]).cast::<[u8; 2]>().write_unaligned(step.code()) };
                at[i] += step.symbol_size();
                out[i] += step.code_size();
            }
        }
    }
    // The ends of the parts, together as well: bytes beyond a part's end are cleared, and a part that has ended has a word of zeros, which takes no step.
    let last = text.len() - 8;
    loop {
        let mut moved = 0;
        for i in 0..PARTS {
            let left = cuts[i + 1] - at[i];
            let from = at[i].min(last);
            // SAFETY: `from` is at most eight bytes before the end of the text, which has more than that.
            let word = u64::from_le(unsafe { text.as_ptr().add(from).cast::<u64>().read_unaligned() });
            let word =
                std::arch::x86_64::_bzhi_u64(word >> ((8 * (at[i] - from)) & 63), (left.min(8) * 8) as u32);
            let word = alone(word);
            // SAFETY: the instruction set is there.
            let step = unsafe { step_of(codec, word) };
            // A zero byte of the text itself stops here too; the caller goes on with it.
            let step = Step(std::hint::select_unpredictable(word & 0xFF == 0, 0, step.0));
            // SAFETY: as above; a part that has ended writes the two bytes that it has room for beyond its codes.
            unsafe { target.as_mut_ptr().add(out[i]).cast::<[u8; 2]>().write_unaligned(step.code()) };
            at[i] += step.symbol_size();
            out[i] += step.code_size();
            moved += step.code_size();
        }
        if moved == 0 {
            break;
        }
    }
    (*ats, *outs) = (at, out);
}
