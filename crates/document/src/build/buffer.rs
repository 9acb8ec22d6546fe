//! The growing bytes of a document, with the few writes that must not check bounds byte by byte.
//!
//! Every method reserves before it writes, so that the unsafe blocks rely on nothing outside this file.

use crate::simd::{Simd, WIDTH_MAX};

/// Bytes being written.
#[derive(Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
}

/// One entry of a container while it is open: the value's position (or its payload, for inline kinds) in the low 32 bits, then 24 bits
/// of name id, then the kind byte.
#[derive(Clone, Copy)]
pub(crate) struct Entry(pub(crate) u64);

impl Entry {
    #[inline(always)]
    pub(crate) fn new(kind: u8, name_id: u32, position: u32) -> Entry {
        Entry(u64::from(kind) << 56 | u64::from(name_id) << 32 | u64::from(position))
    }

    #[inline(always)]
    pub(crate) fn kind(self) -> u8 {
        (self.0 >> 56) as u8
    }

    #[inline(always)]
    pub(crate) fn name_id(self) -> u32 {
        (self.0 >> 32) as u32 & 0x00FF_FFFF
    }

    #[inline(always)]
    pub(crate) fn position(self) -> u32 {
        self.0 as u32
    }
}

impl Buffer {
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn vec(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    #[inline(always)]
    pub(crate) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    #[inline(always)]
    pub(crate) fn reserve(&mut self, additional: usize) {
        if self.bytes.capacity() - self.bytes.len() < additional {
            self.grow(additional);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, additional: usize) {
        self.bytes.reserve(additional);
    }

    #[inline(always)]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends the low `width` (at most eight) bytes of `value`.
    #[inline(always)]
    pub(crate) fn put_word(&mut self, value: u64, width: usize) {
        debug_assert!(width <= 8);
        self.reserve(8);
        let len = self.bytes.len();
        // SAFETY: eight bytes past the length are reserved; the new length covers only bytes just written.
        unsafe {
            self.bytes.as_mut_ptr().add(len).cast::<u64>().write_unaligned(value.to_le());
            self.bytes.set_len(len + width.min(8));
        }
    }

    #[inline(always)]
    pub(crate) fn put_varint(&mut self, value: u32) {
        if value < 0x80 {
            self.put_word(u64::from(value), 1);
        } else {
            crate::format::put_varint(&mut self.bytes, value);
        }
    }

    /// Copies plain string text from the start of `source` up to the first special byte (see [`Simd::copy_to_special`]); returns how many
    /// bytes were copied. All of `source` may be plain.
    #[inline(always)]
    pub(crate) fn put_plain<S: Simd>(&mut self, source: &[u8]) -> usize {
        // The copy runs at most a block past what it keeps.
        self.reserve(source.len() + WIDTH_MAX);
        let len = self.bytes.len();
        let mut done = 0;
        while source.len() - done >= S::WIDTH {
            // SAFETY: a whole block is left in `source`; `source.len()` bytes and a block are reserved and `done` is
            // less than `source.len()`.
            let mask = unsafe {
                S::copy_to_special(source.as_ptr().add(done), self.bytes.as_mut_ptr().add(len + done))
            };
            if mask != 0 {
                done += mask.trailing_zeros() as usize;
                // SAFETY: `done` bytes past `len` were written by the copies.
                unsafe { self.bytes.set_len(len + done) };
                return done;
            }
            done += S::WIDTH;
        }
        // SAFETY: `done` bytes past `len` were written by the copies.
        unsafe { self.bytes.set_len(len + done) };
        done + self.put_plain_tail::<S>(&source[done..])
    }

    /// The last bytes of a text, fewer than a block: through a block of their own, filled up with what ends a string.
    #[inline(always)]
    fn put_plain_tail<S: Simd>(&mut self, source: &[u8]) -> usize {
        let mut block = [0u8; WIDTH_MAX];
        block[..source.len()].copy_from_slice(source);
        let mut done = 0;
        while done < source.len() {
            // SAFETY: `done` is below `source.len()`, itself below a block, and a multiple of the block's width.
            let mask = unsafe { S::special(block.as_ptr().add(done)) };
            if mask != 0 {
                done += mask.trailing_zeros() as usize;
                break;
            }
            done += S::WIDTH;
        }
        let done = done.min(source.len());
        self.bytes.extend_from_slice(&source[..done]);
        done
    }

    /// Appends the name ids of `entries`, `width` bytes each.
    #[inline(always)]
    pub(crate) fn put_name_ids(&mut self, entries: &[Entry], width: usize) {
        self.put_each(entries, width, |entry| entry.name_id());
    }

    /// Appends the kinds of `entries`.
    #[inline(always)]
    pub(crate) fn put_kinds(&mut self, entries: &[Entry]) {
        self.put_each(entries, 1, |entry| u32::from(entry.kind()));
    }

    /// Appends the payloads of `entries` for a container at `position`, `width` bytes each.
    #[inline(always)]
    pub(crate) fn put_payloads(&mut self, entries: &[Entry], width: usize, position: u32) {
        self.put_each(entries, width, |entry| {
            let distance = position.wrapping_sub(entry.position());
            if entry.kind() >= crate::format::kind::FIRST_WITH_POSITION { distance } else { entry.position() }
        });
    }

    #[inline(always)]
    fn put_each(&mut self, entries: &[Entry], width: usize, value: impl Fn(&Entry) -> u32) {
        debug_assert!((1..=4).contains(&width));
        self.reserve(entries.len() * width + 4);
        let len = self.bytes.len();
        // SAFETY: each write lies in the reserved bytes: the last one starts at most at `(n − 1) × width` and is four bytes long
        // at most. The new length covers bytes just written.
        unsafe {
            let mut target = self.bytes.as_mut_ptr().add(len);
            match width {
                1 => {
                    for entry in entries {
                        target.write(value(entry) as u8);
                        target = target.add(1);
                    }
                }
                2 => {
                    for entry in entries {
                        target.cast::<u16>().write_unaligned((value(entry) as u16).to_le());
                        target = target.add(2);
                    }
                }
                _ => {
                    for entry in entries {
                        target.cast::<u32>().write_unaligned(value(entry).to_le());
                        target = target.add(width);
                    }
                }
            }
            self.bytes.set_len(len + entries.len() * width);
        }
    }
}
