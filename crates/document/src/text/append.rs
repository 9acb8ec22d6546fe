//! Appends of the printer that write whole blocks and keep a part of them, since one wide store costs less than asking how many bytes there are.
//!
//! Every function reserves before it writes, so that the unsafe blocks rely on nothing outside this file.

/// Bytes of the blocks that short text is copied in.
const BLOCK: usize = 32;

/// Appends the first `keep` bytes of `block` (all, if there are not so many).
#[inline(always)]
pub(crate) fn put_block<const SIZE: usize>(out: &mut Vec<u8>, block: &[u8; SIZE], keep: usize) {
    reserve(out, SIZE);
    let size = out.len();
    // SAFETY: `SIZE` bytes past the length are reserved; the new length covers only bytes just written.
    unsafe {
        out.as_mut_ptr().add(size).cast::<[u8; SIZE]>().write(*block);
        out.set_len(size + keep.min(SIZE));
    }
}

/// Appends what `write` puts at the beginning of `SIZE` zero bytes; it returns how many those are.
#[inline(always)]
pub(crate) fn put_with<const SIZE: usize>(out: &mut Vec<u8>, write: impl FnOnce(&mut [u8; SIZE]) -> usize) {
    reserve(out, SIZE);
    let size = out.len();
    // SAFETY: `SIZE` bytes past the length are reserved, and are initialised before they are lent; nothing else refers to them. The new length covers
    // only these.
    unsafe {
        let target = out.as_mut_ptr().add(size).cast::<[u8; SIZE]>();
        target.write([0; SIZE]);
        let keep = write(&mut *target);
        out.set_len(size + keep.min(SIZE));
    }
}

/// Appends a quote, the `size` bytes of `bytes` from `start` on (none, if they are not all there), and the first `after_size` bytes of `after`.
#[inline(always)]
pub(crate) fn put_quoted(
    out: &mut Vec<u8>,
    bytes: &[u8],
    start: usize,
    size: usize,
    after: [u8; 4],
    after_size: usize,
) {
    let text = bytes.get(start..start.saturating_add(size)).unwrap_or(&[]);
    reserve(out, 1 + text.len().max(BLOCK) + 4);
    let size = out.len();
    // SAFETY: reserved are a byte, the text or a block if that is longer, and four bytes: the quote, the copy and what comes after it end before that. A block is
    // read only where `bytes` has one from `start` on. The new length covers only bytes just written.
    unsafe {
        let target = out.as_mut_ptr().add(size);
        target.write(b'"');
        if text.len() <= BLOCK && bytes.len().saturating_sub(start) >= BLOCK {
            target.add(1).cast::<[u8; BLOCK]>().write(bytes.as_ptr().add(start).cast::<[u8; BLOCK]>().read());
        } else {
            target.add(1).copy_from_nonoverlapping(text.as_ptr(), text.len());
        }
        target.add(1 + text.len()).cast::<[u8; 4]>().write(after);
        out.set_len(size + 1 + text.len() + after_size.min(4));
    }
}

#[inline(always)]
fn reserve(out: &mut Vec<u8>, additional: usize) {
    if out.capacity() - out.len() < additional {
        grow(out, additional);
    }
}

#[cold]
#[inline(never)]
fn grow(out: &mut Vec<u8>, additional: usize) {
    out.reserve(additional);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_place_and_size() {
        let bytes: Vec<u8> = (0..100).collect();
        // Miri takes its time.
        let step = if cfg!(miri) { 31 } else { 1 };
        for start in (0..=100).step_by(step) {
            for size in (0..=110).step_by(step) {
                let mut out = Vec::new();
                put_quoted(&mut out, &bytes, start, size, *b"\":?!", 2);
                let text = bytes.get(start..start + size).unwrap_or(&[]);
                assert_eq!(out, [b"\"", text, b"\":"].concat());
            }
        }
        let mut out = Vec::new();
        put_quoted(&mut out, &bytes, 1000, 3, *b"\",..", 9);
        assert_eq!(out, b"\"\",..");
        put_with::<4>(&mut out, |block| {
            block[0] = b'x';
            1
        });
        put_block(&mut out, b"abcd", 3);
        put_block(&mut out, b"abcd", 9);
        assert_eq!(out, b"\"\",..xabcabcd");
    }
}
