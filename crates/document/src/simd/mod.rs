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

/// Reads a little-endian word from the start of `bytes`, which has at least eight.
#[inline(always)]
pub(crate) fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(word)
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
