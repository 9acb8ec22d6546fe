//! The end of a vector, for the printer: writes that store whole blocks and keep a part of them, since one wide store costs less than asking how many bytes
//! there are, and a place to write at that stays in a register from one write to the next.
//!
//! Every method makes room before it writes, so that the unsafe blocks rely on nothing outside this file but the sizes of what `number` returns.

use super::number;

/// Bytes of the blocks that short text is copied in.
const BLOCK: usize = 32;

/// Room for a number: a sign, twenty digits, a point, what comes after it, and what the widest store goes beyond them.
const NUMBER_ROOM: usize = 64;

/// Where a vector goes on. What is written belongs to the vector when this is dropped.
pub(crate) struct Tail<'v> {
    out: &'v mut Vec<u8>,
    /// Where the next byte goes: in the vector's allocation, or at its end.
    at: *mut u8,
    /// The end of the allocation.
    end: *mut u8,
    /// The length that the vector had at first.
    len_before: usize,
}

impl<'v> Tail<'v> {
    pub(crate) fn new(out: &'v mut Vec<u8>) -> Tail<'v> {
        let mut tail =
            Tail { len_before: out.len(), out, at: std::ptr::null_mut(), end: std::ptr::null_mut() };
        tail.take_places();
        tail
    }

    fn take_places(&mut self) {
        let range = self.out.spare_capacity_mut().as_mut_ptr_range();
        (self.at, self.end) = (range.start.cast(), range.end.cast());
    }

    /// Tells the vector what has been written.
    fn give_back(&mut self) {
        let len = self.at as usize - self.out.as_ptr() as usize;
        // SAFETY: `at` starts at the vector's length and moves only over bytes just written, never past `end`; it steps back only over such bytes.
        unsafe { self.out.set_len(len) };
    }

    /// What `action`, which may append, does to the vector itself.
    pub(crate) fn with_vector<T>(&mut self, action: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.give_back();
        let done = action(self.out);
        self.len_before = self.len_before.min(self.out.len());
        self.take_places();
        done
    }

    /// Makes room for so many bytes.
    #[inline(always)]
    fn need(&mut self, size: usize) {
        if (self.end as usize) - (self.at as usize) < size {
            self.grow(size);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, size: usize) {
        self.with_vector(|vector| vector.reserve(size));
    }

    /// Writes the first `keep` bytes of `block` (all, if there are not so many).
    #[inline(always)]
    pub(crate) fn put<const SIZE: usize>(&mut self, block: [u8; SIZE], keep: usize) {
        self.need(SIZE);
        // SAFETY: there is room for the whole block, of which the place moves over at most all.
        unsafe {
            self.at.cast::<[u8; SIZE]>().write(block);
            self.at = self.at.add(keep.min(SIZE));
        }
    }

    /// Takes the last byte back, if one was written.
    #[inline(always)]
    pub(crate) fn step_back(&mut self) {
        if self.at as usize - self.out.as_ptr() as usize > self.len_before {
            // SAFETY: a byte was written before this place.
            self.at = unsafe { self.at.sub(1) };
        }
    }

    /// Writes a quote, the `size` bytes of `bytes` from `start` on (none, if they are not all there), and the first `after_size` bytes of `after`.
    #[inline(always)]
    pub(crate) fn put_quoted(
        &mut self,
        bytes: &[u8],
        start: u32,
        size: u32,
        after: [u8; 4],
        after_size: usize,
    ) {
        let (start, size) = (start as usize, size as usize);
        if size > BLOCK || start + BLOCK > bytes.len() {
            self.put_quoted_slice(bytes.get(start..start + size).unwrap_or(&[]), after, after_size);
            return;
        }
        self.need(1 + BLOCK + 4);
        // SAFETY: `bytes` has a block from `start` on. There is room for a byte, a block, and four bytes: the quote, the copy and what comes after the part of
        // it that counts end before that. The place moves over bytes just written.
        unsafe {
            let target = self.at;
            target.write(b'"');
            target.add(1).cast::<[u8; BLOCK]>().write(bytes.as_ptr().add(start).cast::<[u8; BLOCK]>().read());
            target.add(1 + size).cast::<[u8; 4]>().write(after);
            self.at = target.add(1 + size + after_size.min(4));
        }
    }

    /// As [`Tail::put_quoted`], of any slice: long text, and what lies near the end of its document.
    #[inline(never)]
    fn put_quoted_slice(&mut self, text: &[u8], after: [u8; 4], after_size: usize) {
        let size = text.len();
        self.need(1 + size + 4);
        let source = text.as_ptr();
        // SAFETY: there is room for the quote, the text and four bytes. Up to 32 bytes the text is copied as its first and its last bytes, which lie in it by its
        // size, and may overlap.
        unsafe {
            self.at.write(b'"');
            let target = self.at.add(1);
            macro_rules! both_ends {
                ($size:literal) => {{
                    let last = source.add(size - $size).cast::<[u8; $size]>().read();
                    target.cast::<[u8; $size]>().write(source.cast::<[u8; $size]>().read());
                    target.add(size - $size).cast::<[u8; $size]>().write(last);
                }};
            }
            match size {
                8..=16 => both_ends!(8),
                17..=32 => both_ends!(16),
                4..=7 => both_ends!(4),
                _ => target.copy_from_nonoverlapping(source, size),
            }
            target.add(size).cast::<[u8; 4]>().write(after);
            self.at = target.add(size + after_size.min(4));
        }
    }

    /// Writes so many of a byte.
    pub(crate) fn put_times(&mut self, byte: u8, times: usize) {
        self.need(times);
        // SAFETY: there is room for them.
        unsafe {
            self.at.write_bytes(byte, times);
            self.at = self.at.add(times);
        }
    }

    /// Writes the text of an integer, and `after`.
    #[inline(always)]
    pub(crate) fn put_integer(&mut self, value: i64, after: u8) {
        self.need(NUMBER_ROOM);
        // SAFETY: there is room for a sign, for digits and what their last store goes beyond them, and for a byte more.
        unsafe {
            self.at.write(b'-');
            let at = put_digits(self.at.add(usize::from(value < 0)), value.unsigned_abs());
            at.write(after);
            self.at = at.add(1);
        }
    }

    /// Writes the text of `mantissa / 10^scale`, for a scale of 1 to [`number::SHORT_SCALE_MAX`], and `after`. What stands before and after the point are written
    /// each by itself: reading back digits just written, to move them, would wait for the writes.
    #[inline(always)]
    pub(crate) fn put_short_decimal(&mut self, mantissa: i64, scale: u32, after: u8) {
        self.need(NUMBER_ROOM);
        let (whole, part) = number::split(mantissa.unsigned_abs(), scale);
        // SAFETY: there is room for a sign, twenty digits, a point, sixteen digits and a byte more.
        unsafe {
            self.at.write(b'-');
            let at = put_digits(self.at.add(usize::from(mantissa < 0)), whole);
            at.write(b'.');
            at.add(1).cast::<[u8; 16]>().write(number::sixteen_digits(part));
            let at = at.add(1 + (scale as usize).min(16));
            at.write(after);
            self.at = at.add(1);
        }
    }
}

impl Drop for Tail<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Writes the digits of `value`; returns where they end.
///
/// # Safety
///
/// From `at` on 24 bytes may be written.
#[inline(always)]
unsafe fn put_digits(at: *mut u8, value: u64) -> *mut u8 {
    // SAFETY: the first store has one to eight digits, each of at most two others eight; each is eight bytes long at most.
    unsafe {
        if let Some((text, size)) = number::small(value) {
            at.cast::<[u8; 4]>().write(text);
            return at.add(size);
        }
        if value < number::EIGHT {
            let (text, size) = number::first_digits(value);
            at.cast::<[u8; 8]>().write(text);
            return at.add(size);
        }
        put_many_digits(at, value)
    }
}

/// As [`put_digits`], for values of nine digits and more.
///
/// # Safety
///
/// As for [`put_digits`].
#[inline(never)]
unsafe fn put_many_digits(at: *mut u8, value: u64) -> *mut u8 {
    let (high, low) = (value / number::EIGHT, value % number::EIGHT);
    // SAFETY: the first store has one to eight digits, each of at most two others eight; each is eight bytes long.
    unsafe {
        let (first, middle) = (high / number::EIGHT, high % number::EIGHT);
        let (text, size) = number::first_digits(if first > 0 { first } else { high });
        at.cast::<[u8; 8]>().write(text);
        let mut at = at.add(size);
        if first > 0 {
            at.cast::<[u8; 8]>().write(number::eight_digits_text(middle));
            at = at.add(8);
        }
        at.cast::<[u8; 8]>().write(number::eight_digits_text(low));
        at.add(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `write` appends to a vector that holds a byte and has no room left.
    fn appended(write: impl Fn(&mut Tail<'_>)) -> String {
        let mut out = Vec::with_capacity(1);
        out.push(b'.');
        let mut tail = Tail::new(&mut out);
        write(&mut tail);
        drop(tail);
        assert_eq!(out[0], b'.');
        String::from_utf8_lossy(&out[1..]).into_owned()
    }

    #[test]
    fn any_place_and_size() {
        let bytes: Vec<u8> = (0..100).collect();
        // Miri takes its time.
        let step = if cfg!(miri) { 31 } else { 1 };
        for start in (0..=100).step_by(step) {
            for size in (0..=110).step_by(step) {
                let mut out = Vec::new();
                Tail::new(&mut out).put_quoted(&bytes, start as u32, size as u32, *b"\":?!", 2);
                let text = bytes.get(start..start + size).unwrap_or(&[]);
                assert_eq!(out, [b"\"", text, b"\":"].concat());
            }
        }
        let all = appended(|tail| {
            tail.put_quoted(&bytes, 1000, 3, *b"\",..", 9);
            tail.put(*b"abcd", 3);
            tail.put(*b"abcd", 9);
            tail.with_vector(|out| out.extend_from_slice(b"+++"));
            tail.put_times(b'-', 100);
            tail.step_back();
            tail.put(*b"!", 1);
        });
        assert_eq!(all, format!("\"\",..abcabcd+++{}!", "-".repeat(99)));
    }

    #[test]
    fn nothing_is_taken_back_that_was_there_before() {
        assert_eq!(appended(|tail| tail.step_back()), "");
        assert_eq!(
            appended(|tail| {
                tail.put(*b"a", 1);
                tail.step_back();
                tail.step_back();
                tail.put(*b"b", 1);
            }),
            "b"
        );
    }

    #[test]
    fn numbers_of_every_length() {
        let mut value = 7i64;
        for i in 0..18 {
            for value in [value, value + 1, 10i64.pow(i) - 1, 10i64.pow(i)] {
                for value in [value, -value] {
                    assert_eq!(appended(|tail| tail.put_integer(value, b',')), format!("{value},"));
                    for scale in 1..=number::SHORT_SCALE_MAX {
                        let (whole, part) = (value.abs() / 10i64.pow(scale), value.abs() % 10i64.pow(scale));
                        let sign = if value < 0 { "-" } else { "" };
                        assert_eq!(
                            appended(|tail| tail.put_short_decimal(value, scale, b']')),
                            format!("{sign}{whole}.{part:0width$}]", width = scale as usize)
                        );
                    }
                }
            }
            value = value * 10 + i64::from(i) % 10;
        }
        for value in [i64::MAX, i64::MIN, 0] {
            assert_eq!(appended(|tail| tail.put_integer(value, b',')), format!("{value},"));
        }
    }
}
