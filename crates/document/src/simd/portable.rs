//! Blocks of eight bytes in a plain word.

use super::Simd;

/// Works on every machine, eight bytes at a time.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The high bit of each byte of `word` that is zero (exact, not only for the lowest).
#[inline(always)]
fn zeros(word: u64) -> u64 {
    !(((word & !HIGHS) + !HIGHS) | word | !HIGHS)
}

/// The high bit of each byte that equals `byte`.
#[inline(always)]
fn equal(word: u64, byte: u8) -> u64 {
    zeros(word ^ (ONES * u64::from(byte)))
}

/// Gathers the high bits of the eight bytes into one byte.
#[inline(always)]
fn gather(highs: u64) -> u64 {
    ((highs >> 7).wrapping_mul(0x0102_0408_1020_4080)) >> 56
}

#[inline(always)]
unsafe fn load(source: *const u8) -> u64 {
    // SAFETY: the caller vouches for eight readable bytes.
    u64::from_le(unsafe { source.cast::<u64>().read_unaligned() })
}

#[inline(always)]
fn special(word: u64) -> u64 {
    // Below 0x20: the top three bits are all clear.
    let control = zeros(word & (ONES * 0xE0));
    gather(equal(word, b'"') | equal(word, b'\\') | control)
}

impl Simd for Portable {
    const WIDTH: usize = 8;

    #[inline(always)]
    unsafe fn copy_to_special(source: *const u8, target: *mut u8) -> u64 {
        // SAFETY: the caller vouches for eight bytes on both sides.
        unsafe {
            let word = load(source);
            target.cast::<u64>().write_unaligned(word.to_le());
            special(word)
        }
    }

    #[inline(always)]
    unsafe fn special(source: *const u8) -> u64 {
        // SAFETY: as above.
        special(unsafe { load(source) })
    }

    #[inline(always)]
    unsafe fn not_space(source: *const u8) -> u64 {
        // SAFETY: as above.
        let word = unsafe { load(source) };
        let space = equal(word, b' ') | equal(word, b'\t') | equal(word, b'\n') | equal(word, b'\r');
        gather(space) ^ 0xFF
    }

    #[inline(always)]
    unsafe fn equal_32(left: *const u8, right: *const u8) -> u32 {
        let mut mask = 0;
        for i in 0..4 {
            // SAFETY: the caller vouches for 32 bytes on both sides.
            let different = unsafe { load(left.add(8 * i)) ^ load(right.add(8 * i)) };
            mask |= (gather(zeros(different)) as u32) << (8 * i);
        }
        mask
    }
}
