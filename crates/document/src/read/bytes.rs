//! Loads that never fail: beyond the end there are zeros.

/// The place `distance` before `position`. A distance of zero or beyond the start, which only damaged bytes have, leads to a place where nothing is: so every
/// step goes towards the start, and no document, however damaged, is endless.
#[inline(always)]
pub(crate) fn back(position: u32, distance: u32) -> u32 {
    let place = position.wrapping_sub(distance);
    if place < position { place } else { u32::MAX }
}

/// The bytes of a document.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    #[inline(always)]
    pub(crate) fn byte(self, at: u32) -> u8 {
        self.0.get(at as usize).copied().unwrap_or(0)
    }

    /// An unsigned integer of 1 to 4 bytes.
    #[inline(always)]
    pub(crate) fn unsigned(self, at: u32, width: u32) -> u32 {
        let at = at as usize;
        match self.0.get(at..at + 4) {
            // Every place the format defines has four bytes after it.
            Some(word) => {
                let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                word & (u32::MAX >> (32 - 8 * width.clamp(1, 4)))
            }
            None => self.unsigned_near_end(at, width),
        }
    }

    #[cold]
    fn unsigned_near_end(self, at: usize, width: u32) -> u32 {
        let mut value = 0;
        for i in 0..width.min(4) as usize {
            value |= u32::from(self.0.get(at + i).copied().unwrap_or(0)) << (8 * i);
        }
        value
    }

    /// A signed integer of 1 to 8 bytes.
    #[inline(always)]
    pub(crate) fn signed(self, at: u32, width: u32) -> i64 {
        let shift = 64 - 8 * width.clamp(1, 8);
        ((self.word(at) << shift) as i64) >> shift
    }

    /// Eight bytes.
    #[inline(always)]
    pub(crate) fn word(self, at: u32) -> u64 {
        let at = at as usize;
        match self.0.get(at..at + 8) {
            Some(bytes) => {
                let mut word = [0; 8];
                word.copy_from_slice(bytes);
                u64::from_le_bytes(word)
            }
            None => {
                let mut word = [0; 8];
                if let Some(rest) = self.0.get(at..) {
                    word[..rest.len()].copy_from_slice(rest);
                }
                u64::from_le_bytes(word)
            }
        }
    }

    /// A varint and the place after it.
    #[inline(always)]
    pub(crate) fn varint(self, at: u32) -> (u32, u32) {
        let byte = self.byte(at);
        if byte < 0x80 { (u32::from(byte), at.wrapping_add(1)) } else { self.varint_long(at) }
    }

    fn varint_long(self, mut at: u32) -> (u32, u32) {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte(at);
            at = at.wrapping_add(1);
            value |= u32::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                break;
            }
        }
        (value, at)
    }

    /// The `len` bytes before `at`.
    #[inline(always)]
    pub(crate) fn before(self, at: u32, len: u32) -> &'a [u8] {
        self.0.get(at.wrapping_sub(len) as usize..at as usize).unwrap_or(&[])
    }

    #[inline(always)]
    pub(crate) fn range(self, start: u32, end: u32) -> &'a [u8] {
        self.0.get(start as usize..end as usize).unwrap_or(&[])
    }
}
