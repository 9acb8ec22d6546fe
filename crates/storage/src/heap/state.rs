//! What a heap knows of itself: kept by whoever owns the heap (a tree's or a table's state).
//!
//! | offset | size | name | meaning |
//! |---|---|---|---|
//! | 0 | 4 × 8 | open | the open section pages: `page << 16 \| free bytes`, 0 for none |
//! | 32 | 6 | quarter | the first page of the list of pages with a quarter or more free, 0 for none |
//! | 38 | 6 | half | the first page of the list of pages with half or more free, 0 for none |
//! | 44 | 6 | section pages | how many there are |
//! | 50 | 6 | runs | how many overflow runs there are |
//! | 56 | 8 | run pages | how many pages they take |

use crate::format::{PageNumber, read_u64};
use crate::page::section::List;

/// Bytes of an encoded [`HeapState`].
pub(crate) const HEAP_STATE_SIZE: usize = 64;

/// How many section pages take new values at the same time. Several, so that a value that does not fit into what is
/// left of one page does not make the page a full one: a smaller value that follows takes the place.
pub(crate) const OPEN_PAGES: usize = 4;

/// An open section page and its free bytes, known without looking at it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct OpenPage {
    pub(super) page: PageNumber,
    pub(super) free: u16,
}

/// A heap's state. It changes with every change of the heap and belongs to the same transaction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct HeapState {
    pub(super) open: [OpenPage; OPEN_PAGES],
    pub(super) quarter: PageNumber,
    pub(super) half: PageNumber,
    /// Section pages, open, listed and full ones.
    pub(crate) section_pages: u64,
    /// Overflow runs.
    pub(crate) runs: u64,
    /// Pages of all overflow runs.
    pub(crate) run_pages: u64,
}

impl HeapState {
    /// The bytes to keep the state as.
    pub(crate) fn encode(&self) -> [u8; HEAP_STATE_SIZE] {
        let mut bytes = [0; HEAP_STATE_SIZE];
        for (i, open) in self.open.iter().enumerate() {
            let packed = open.page.0 << 16 | open.free as u64;
            bytes[i * 8..i * 8 + 8].copy_from_slice(&packed.to_le_bytes());
        }
        let six = [self.quarter.0, self.half.0, self.section_pages, self.runs];
        for (i, value) in six.iter().enumerate() {
            let at = OPEN_PAGES * 8 + i * 6;
            bytes[at..at + 6].copy_from_slice(&value.to_le_bytes()[..6]);
        }
        bytes[56..64].copy_from_slice(&self.run_pages.to_le_bytes());
        bytes
    }

    /// The state back from its bytes. Any bytes make a state: what it says is checked where it is used.
    pub(crate) fn decode(bytes: &[u8; HEAP_STATE_SIZE]) -> HeapState {
        let six = |i: usize| {
            let mut value = [0; 8];
            let at = OPEN_PAGES * 8 + i * 6;
            value[..6].copy_from_slice(&bytes[at..at + 6]);
            u64::from_le_bytes(value)
        };
        HeapState {
            open: std::array::from_fn(|i| {
                let packed = read_u64(bytes, i * 8);
                OpenPage { page: PageNumber(packed >> 16), free: packed as u16 }
            }),
            quarter: PageNumber(six(0)),
            half: PageNumber(six(1)),
            section_pages: six(2),
            runs: six(3),
            run_pages: read_u64(bytes, 56),
        }
    }

    #[inline]
    pub(super) fn open_mut(&mut self, page: PageNumber) -> Option<&mut OpenPage> {
        self.open.iter_mut().find(|open| open.page == page)
    }

    pub(super) fn head(&self, list: List) -> PageNumber {
        match list {
            List::Quarter => self.quarter,
            List::Half => self.half,
        }
    }

    pub(super) fn head_mut(&mut self, list: List) -> &mut PageNumber {
        match list {
            List::Quarter => &mut self.quarter,
            List::Half => &mut self.half,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_survive_encoding() {
        let mut state = HeapState::default();
        assert_eq!(HeapState::decode(&state.encode()), state);
        for (i, open) in state.open.iter_mut().enumerate() {
            *open = OpenPage { page: PageNumber((1 << 48) - 1 - i as u64), free: 8156 - i as u16 };
        }
        state.quarter = PageNumber(5 << 40);
        state.half = PageNumber(6 << 40);
        state.section_pages = 7 << 40;
        state.runs = 8 << 40;
        state.run_pages = 9 << 50;
        assert_eq!(HeapState::decode(&state.encode()), state);
    }
}
