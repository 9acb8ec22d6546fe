//! A growing buffer at an address that direct I/O accepts.

/// What direct I/O wants addresses, offsets and lengths to be multiples of, in bytes.
pub(crate) const ALIGNMENT: usize = 4096;

#[derive(Clone, Copy)]
#[repr(align(4096))]
struct Block(#[expect(dead_code, reason = "it is seen as bytes alone")] [u8; ALIGNMENT]);

/// Bytes that start at a multiple of [`ALIGNMENT`].
#[derive(Default)]
pub(crate) struct AlignedBuffer {
    blocks: Vec<Block>,
    /// Bytes in use.
    length: usize,
}

impl AlignedBuffer {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Sets the length; new bytes are of any (initialised) content.
    pub(crate) fn set_len(&mut self, length: usize) {
        let blocks = length.div_ceil(ALIGNMENT);
        if self.blocks.len() < blocks {
            let grown = blocks.max(self.blocks.len() * 2).max(16);
            self.blocks.resize(grown, Block([0; ALIGNMENT]));
        }
        self.length = length;
    }

    /// Appends bytes.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        let at = self.length;
        self.set_len(at + bytes.len());
        self.bytes_mut()[at..].copy_from_slice(bytes);
    }

    /// Takes out the bytes `from..to`; what follows moves up.
    pub(crate) fn remove(&mut self, from: usize, to: usize) {
        let length = self.length;
        self.bytes_mut().copy_within(to..length, from);
        self.length = length - (to - from);
    }

    /// Appends zeros up to a multiple of [`ALIGNMENT`].
    pub(crate) fn pad(&mut self) {
        let at = self.length;
        self.set_len(at.next_multiple_of(ALIGNMENT));
        self.bytes_mut()[at..].fill(0);
    }

    /// Memory held, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.blocks.len() * ALIGNMENT
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `blocks` are plain bytes without padding, at least `length` of them.
        unsafe { std::slice::from_raw_parts(self.blocks.as_ptr().cast(), self.length) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.blocks.as_mut_ptr().cast(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_pads_and_keeps_its_alignment() {
        let mut buffer = AlignedBuffer::default();
        for i in 0..100_u8 {
            buffer.extend(&[i; 999]);
        }
        buffer.pad();
        assert_eq!(buffer.len() % ALIGNMENT, 0);
        assert_eq!(buffer.bytes().as_ptr().align_offset(ALIGNMENT), 0);
        assert!((0..100_usize).all(|i| buffer.bytes()[i * 999..][..999].iter().all(|&b| b as usize == i)));
        assert!(buffer.bytes()[99_900..].iter().all(|&b| b == 0));
    }
}
