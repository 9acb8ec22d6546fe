//! Reading ahead of a walk whose leaves are not in memory.
//!
//! The data file's map is advised for random access, because neighbours in the file are seldom neighbours in a tree. A walk over a tree that lies on
//! disk would then wait for each leaf in turn. A cursor that has waited twice within a few leaves asks the system for the next ones of the branch
//! together, so that the disk works on many at once, and goes on asking until no leaf has kept it waiting for a while: asking for what is in memory costs a little, and
//! most walks are over pages that are.

use std::time::{Duration, Instant};

use super::Direction;
use crate::format::PageNumber;
use crate::page::branch::Branch;
use crate::pages::Pages;

/// A leaf that takes longer came from a disk: from memory it takes a microsecond or two.
const WAITED: Duration = Duration::from_micros(40);
/// Leaves that are asked for together.
const TOGETHER: usize = 64;
/// Leaves without waiting after which nothing is asked for any more.
const PATIENCE: u16 = 256;
/// A second wait within so many leaves says that it was the disk, and not that the processor was elsewhere.
const AGAIN: u16 = 64;

/// What a cursor has asked for.
#[derive(Clone, Copy, Default)]
pub(super) struct ReadAhead {
    /// Leaves for which it goes on asking; 0 as long as it has not waited.
    left: u16,
    /// Leaves in which a wait would be the second.
    watches: u16,
    /// Children of the branch, in the direction of the walk, up to which it has asked, and where it was then.
    asked: usize,
    at: usize,
}

impl ReadAhead {
    /// The cursor came to a leaf; `since` is when it began to.
    pub(super) fn came(&mut self, since: Instant) {
        if since.elapsed() > WAITED {
            if self.left > 0 || self.watches > 0 {
                self.left = PATIENCE;
            }
            self.watches = AGAIN;
        } else {
            self.left = self.left.saturating_sub(1);
            self.watches = self.watches.saturating_sub(1);
        }
    }

    /// Asks for leaves behind child `index` of the branch above the leaves.
    #[inline]
    pub(super) fn ask(&mut self, pages: &impl Pages, branch: Branch<'_>, index: usize, direction: Direction) {
        if self.left > 0 {
            self.ask_now(pages, branch, index, direction);
        }
    }

    #[cold]
    fn ask_now(&mut self, pages: &impl Pages, branch: Branch<'_>, index: usize, direction: Direction) {
        let count = branch.count();
        // Counted in the direction of the walk.
        let place = |index: usize| if direction == Direction::Ascending { index } else { count - 1 - index };
        let at = place(index);
        if at != self.at + 1 {
            // Another branch, or the first time.
            self.asked = at;
        }
        self.at = at;
        if self.asked > at + TOGETHER / 2 {
            return;
        }
        let mut wanted = [PageNumber::NONE; TOGETHER];
        let from = self.asked.max(at) + 1;
        let to = (from + TOGETHER).min(count);
        if from >= to {
            return;
        }
        for (wanted, child) in wanted.iter_mut().zip(from..to) {
            *wanted = branch.child(place(child));
        }
        let wanted = &mut wanted[..to - from];
        wanted.sort_unstable();
        pages.will_need(wanted);
        self.asked = to - 1;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::cell::RefCell;
    use std::thread::sleep;

    use super::super::cursor::Cursor;
    use super::super::{InsertHint, TreeMut, TreeState};
    use super::*;
    use crate::error::Result;
    use crate::page::Page;
    use crate::pages_in_memory::PagesInMemory;

    /// Pages on a slow disk.
    struct Slow {
        pages: PagesInMemory,
        asked: RefCell<Vec<PageNumber>>,
        read: RefCell<Vec<PageNumber>>,
    }

    impl Pages for Slow {
        fn page(&self, number: PageNumber) -> Result<&Page> {
            if !self.asked.borrow().contains(&number) {
                sleep(WAITED * 2);
            }
            self.read.borrow_mut().push(number);
            self.pages.page(number)
        }

        fn run(&self, number: PageNumber) -> Result<&[u8]> {
            self.pages.run(number)
        }

        fn will_need(&self, numbers: &[PageNumber]) {
            assert!(numbers.is_sorted() && numbers.len() <= TOGETHER);
            self.asked.borrow_mut().extend_from_slice(numbers);
        }
    }

    #[test]
    fn a_walk_that_waits_asks_for_what_it_reads_then() {
        let mut pages = PagesInMemory::new();
        let (mut state, mut hint) = (TreeState::default(), InsertHint::default());
        for number in 0..40_000u32 {
            // In no order, so that leaves are scattered.
            let key = number.wrapping_mul(0x9E37_79B1).to_be_bytes();
            TreeMut::new(&mut pages, &mut state, &mut hint).put(&key, &[7; 40]).unwrap();
        }
        for direction in [Direction::Ascending, Direction::Descending] {
            let slow = Slow { pages, asked: RefCell::default(), read: RefCell::default() };
            let mut cursor = Cursor::new(&slow, &state);
            let mut entries = 0;
            while match direction {
                Direction::Ascending => cursor.next(),
                Direction::Descending => cursor.prev(),
            }
            .unwrap()
            {
                entries += 1;
            }
            assert_eq!(entries, 40_000);
            let (asked, read) = (slow.asked.take(), slow.read.take());
            assert!(asked.len() > read.len() / 2, "{} of {}", asked.len(), read.len());
            assert!(asked.iter().all(|number| read.contains(number)), "nothing is asked for in vain");
            let mut once = asked.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), asked.len(), "nothing is asked for twice");
            pages = slow.pages;
        }
    }
}
