//! Numbers of variable length and slices with their length before them: what all records here are made of.

/// Appends a number, seven bits a byte, the lowest first, the highest bit set in all bytes but the last.
#[inline]
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// How many bytes [`put_number`] takes.
#[inline]
pub(super) fn number_size(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends a slice behind its length.
#[inline]
pub(super) fn put_slice(out: &mut Vec<u8>, slice: &[u8]) {
    put_number(out, slice.len() as u64);
    out.extend_from_slice(slice);
}

/// Bytes being read from the front. Every step is checked; `None` means that the bytes end too early or a number is none.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    #[inline]
    pub(super) fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    #[inline]
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    pub(super) fn slice(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_slices_come_back() {
        let numbers = (0..64).flat_map(|bits| [(1u64 << bits) - 1, 1 << bits]).chain([u64::MAX]);
        for number in numbers {
            let mut out = Vec::new();
            put_number(&mut out, number);
            assert_eq!(out.len(), number_size(number), "{number}");
            put_slice(&mut out, b"behind");
            let mut reader = Reader(&out);
            assert_eq!(reader.number(), Some(number));
            assert_eq!(reader.slice(), Some(&b"behind"[..]));
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn bytes_that_end_early_or_overflow_are_refused() {
        assert_eq!(Reader(&[]).number(), None);
        assert_eq!(Reader(&[0x80]).number(), None);
        assert_eq!(Reader(&[0xff; 10]).number(), None);
        assert_eq!(Reader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).number(), None);
        assert_eq!(Reader(&[5, 1, 2]).slice(), None);
        assert_eq!(Reader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1]).slice(), None);
    }
}
