//! The bytes that have arrived and are not yet used: one buffer, filled behind, taken from in front.
//!
//! What is left is moved to the front only when the room behind runs out, so a byte is moved seldom: with buffers much longer than a value, almost never. The
//! buffer grows only to hold a value longer than itself, and gives that memory back afterwards.

/// Bytes of a buffer when nothing needs more.
const SIZE: usize = 256 << 10;
/// A larger buffer is let go as soon as it is empty.
const KEPT_MAX: usize = 1 << 20;

/// See the module's text. `buffer[start..end]` has arrived and is not yet used.
#[derive(Default)]
pub(crate) struct Window {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Where `start` lies in the whole input.
    offset: u64,
}

impl Window {
    /// What has arrived and is not yet used.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Where the first of [`Window::bytes`] lies in the whole input.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Uses up the first `count` bytes and returns them.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> &[u8] {
        let start = self.start;
        self.start += count;
        self.offset += count as u64;
        &self.buffer[start..self.start]
    }

    /// Room behind the bytes, never empty. [`Window::filled`] says how much of it was filled.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > KEPT_MAX {
                self.buffer = Vec::new();
            }
        }
        if self.buffer.is_empty() {
            self.buffer = vec![0; SIZE];
        }
        if self.buffer.len() - self.end < SIZE / 4 {
            // Moving pays when it makes at least as much room as it moves; else the value needs a larger buffer.
            if self.start >= self.buffer.len() / 2 {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            } else {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        &mut self.buffer[self.end..]
    }

    /// Says that the first `count` bytes of the room now hold what arrived.
    pub(crate) fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.buffer.len());
    }

    /// Copies what arrived into the room.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.room();
            let count = room.len().min(bytes.len());
            room[..count].copy_from_slice(&bytes[..count]);
            self.filled(count);
            bytes = &bytes[count..];
        }
    }

    /// Bytes of memory held.
    pub(crate) fn allocated(&self) -> usize {
        self.buffer.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in_and_memory_stays() {
        let input: Vec<u8> = (0..3_000_000u32).map(|i| (i ^ (i >> 8)) as u8).collect();
        let mut window = Window::default();
        let (mut taken, mut step) = (Vec::new(), 1);
        for piece in input.chunks(40_000) {
            window.push(piece);
            step = step * 7 % 60_000 + 1;
            let count = window.bytes().len().min(step);
            assert_eq!(window.offset(), taken.len() as u64);
            taken.extend_from_slice(window.take(count));
        }
        let rest = window.bytes().len();
        taken.extend_from_slice(window.take(rest));
        assert_eq!(taken, input);
        window.push(&[0; 8 << 20]);
        assert!(window.allocated() >= 8 << 20);
        window.take(8 << 20);
        window.push(b"x");
        assert!(window.allocated() <= KEPT_MAX);
    }
}
