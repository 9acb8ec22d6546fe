//! The registry of open snapshots: which transaction ids are being read, found out without locks.
//!
//! A reader *pins* the newest durable id by writing it into a slot of its own and then looks again: when the id is
//! still the newest, whoever decides later what may be thrown away sees the pin; otherwise it tries again. This is
//! the store-then-check of Dekker's algorithm, hence the sequentially consistent fences on both sides.
//!
//! Invariants:
//! - `Slot::pinned` is 0 when free, otherwise the pinned id + 1; [`WRITER`] marks the write transaction, which needs no old
//!   version but must be waited for before memory that it may be reading is used again.
//! - `Slot::generation` changes whenever a slot is given up; so "everyone who was here then is gone" can be decided
//!   later from a list of (slot, generation).

use std::cell::Cell;

use super::sync::{AtomicPtr, AtomicU64, Ordering, fence};
use crate::error::{Error, Result};
use crate::format::TransactionId;

const BLOCK_SLOTS: usize = if cfg!(loom) { 2 } else { 64 };
/// At most this many blocks: 131,072 snapshots open at once.
const BLOCKS_MAX: usize = if cfg!(loom) { 2 } else { 2 << 10 };
const WRITER: u64 = u64::MAX;
/// Marks a pin that is the flusher's own: it holds versions like any other, but is nobody's open snapshot.
const INTERNAL: u64 = 1 << 62;

/// One cache line, so that readers on different cores do not disturb each other.
#[repr(align(64))]
struct Slot {
    pinned: AtomicU64,
    generation: AtomicU64,
}

struct Block([Slot; BLOCK_SLOTS]);

/// All slots, in blocks that are added when the others are taken and stay until the end.
pub(crate) struct Readers {
    blocks: Box<[AtomicPtr<Block>]>,
    block_count: AtomicU64,
}

/// A pin: the slot's index. Given back by [`Readers::unpin`].
#[derive(Debug)]
pub(crate) struct Pin(usize);

/// Who was active at some moment.
#[derive(Debug, Default)]
pub(crate) struct Active(Vec<(u32, u64)>);

thread_local! {
    /// Where this thread last found a free slot.
    static HINT: Cell<usize> = Cell::new(first_hint());
}

fn first_hint() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % BLOCK_SLOTS
}

impl Readers {
    pub(crate) fn new() -> Readers {
        let blocks: Box<[_]> = (0..BLOCKS_MAX).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect();
        let readers = Readers { blocks, block_count: AtomicU64::new(0) };
        readers.add_block(0);
        readers
    }

    /// Pins the newest durable id, which `newest` holds, and returns it.
    pub(crate) fn pin(&self, newest: &AtomicU64) -> Result<(Pin, TransactionId)> {
        let mut id = newest.load(Ordering::Acquire);
        let pin = self.claim(id + 1)?;
        let slot = self.slot(pin.0);
        loop {
            fence(Ordering::SeqCst);
            let now = newest.load(Ordering::Acquire);
            if now == id {
                return Ok((pin, TransactionId(id)));
            }
            id = now;
            slot.pinned.store(id + 1, Ordering::Release);
        }
    }

    /// Pins an id that the caller keeps from being passed by: the writer's newest, under the write lock.
    pub(crate) fn pin_at(&self, id: TransactionId) -> Result<Pin> {
        let pin = self.claim((id.0 + 1) | INTERNAL)?;
        fence(Ordering::SeqCst);
        Ok(pin)
    }

    /// Registers the write transaction.
    pub(crate) fn pin_writer(&self) -> Result<Pin> {
        let pin = self.claim(WRITER)?;
        fence(Ordering::SeqCst);
        Ok(pin)
    }

    /// Gives a pin back.
    pub(crate) fn unpin(&self, pin: Pin) {
        let slot = self.slot(pin.0);
        slot.generation.fetch_add(1, Ordering::Release);
        slot.pinned.store(0, Ordering::Release);
    }

    /// The pinned ids, ascending, without duplicates. Call after publishing what decides what may go.
    pub(crate) fn pinned(&self, into: &mut Vec<u64>) {
        into.clear();
        fence(Ordering::SeqCst);
        self.each(|_, slot| {
            let pinned = slot.pinned.load(Ordering::Acquire);
            if pinned != 0 && pinned != WRITER {
                into.push((pinned & !INTERNAL) - 1);
            }
        });
        into.sort_unstable();
        into.dedup();
    }

    /// The oldest pinned id, and how many snapshots are open.
    pub(crate) fn oldest(&self) -> (Option<TransactionId>, usize) {
        let (mut oldest, mut count) = (None, 0);
        fence(Ordering::SeqCst);
        self.each(|_, slot| {
            let pinned = slot.pinned.load(Ordering::Acquire);
            if pinned != 0 && pinned != WRITER {
                count += usize::from(pinned & INTERNAL == 0);
                let id = (pinned & !INTERNAL) - 1;
                oldest = Some(oldest.map_or(id, |o: u64| o.min(id)));
            }
        });
        (oldest.map(TransactionId), count)
    }

    /// Everyone active now, the writer included.
    pub(crate) fn active(&self) -> Active {
        let mut active = Vec::new();
        fence(Ordering::SeqCst);
        self.each(|at, slot| {
            // The generation first: were it read after `pinned`, a slot given up and taken again in between would pass for its successor.
            let generation = slot.generation.load(Ordering::Acquire);
            if slot.pinned.load(Ordering::Acquire) != 0 {
                active.push((at as u32, generation));
            }
        });
        Active(active)
    }

    /// Whether everyone in the list has gone since; forgets those who have.
    pub(crate) fn all_gone(&self, active: &mut Active) -> bool {
        active.0.retain(|&(at, generation)| {
            let slot = self.slot(at as usize);
            slot.generation.load(Ordering::Acquire) == generation && slot.pinned.load(Ordering::Acquire) != 0
        });
        active.0.is_empty()
    }

    fn claim(&self, value: u64) -> Result<Pin> {
        let count = self.block_count.load(Ordering::Acquire) as usize * BLOCK_SLOTS;
        // A model checker repeats a history exactly, so nothing may be left of the one before.
        let hint = if cfg!(loom) { 0 } else { HINT.with(Cell::get) };
        let start = if hint < count { hint } else { 0 };
        for at in (start..count).chain(0..start) {
            let pinned = &self.slot(at).pinned;
            if pinned.load(Ordering::Relaxed) == 0
                && pinned.compare_exchange(0, value, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                HINT.with(|h| h.set(at));
                return Ok(Pin(at));
            }
        }
        if count / BLOCK_SLOTS == BLOCKS_MAX {
            return Err(Error::Invalid(format!("{count} transactions are open; no more fit")));
        }
        self.add_block(count / BLOCK_SLOTS);
        self.claim(value)
    }

    fn add_block(&self, at: usize) {
        let block = Box::new(Block(std::array::from_fn(|_| Slot {
            pinned: AtomicU64::new(0),
            generation: AtomicU64::new(0),
        })));
        let block = Box::into_raw(block);
        let null = std::ptr::null_mut();
        if self.blocks[at].compare_exchange(null, block, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: the block was just made and lost the race, so nobody else knows it.
            drop(unsafe { Box::from_raw(block) });
        }
        self.block_count.fetch_max(at as u64 + 1, Ordering::AcqRel);
    }

    fn slot(&self, at: usize) -> &Slot {
        let block = self.blocks[at / BLOCK_SLOTS].load(Ordering::Acquire);
        // SAFETY: indices come from counts below `block_count`, whose blocks are set once and freed with `self`.
        unsafe { &(*block).0[at % BLOCK_SLOTS] }
    }

    fn each(&self, mut f: impl FnMut(usize, &Slot)) {
        for at in 0..self.block_count.load(Ordering::Acquire) as usize * BLOCK_SLOTS {
            f(at, self.slot(at));
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        for block in &self.blocks {
            let block = block.load(Ordering::Acquire);
            if !block.is_null() {
                // SAFETY: set once from `Box::into_raw` in `add_block`; `&mut self` means that nobody uses it any more.
                drop(unsafe { Box::from_raw(block) });
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn pins_are_seen_and_forgotten() {
        let (readers, newest) = (Readers::new(), AtomicU64::new(7));
        let (a, id) = readers.pin(&newest).unwrap();
        assert_eq!(id, TransactionId(7));
        newest.store(9, Ordering::Release);
        let (b, _) = readers.pin(&newest).unwrap();
        let w = readers.pin_writer().unwrap();
        let mut ids = Vec::new();
        readers.pinned(&mut ids);
        assert_eq!(ids, [7, 9]);
        assert_eq!(readers.oldest(), (Some(TransactionId(7)), 2));
        let mut active = readers.active();
        readers.unpin(a);
        readers.unpin(w);
        assert!(!readers.all_gone(&mut active));
        readers.unpin(b);
        let (_later, _) = readers.pin(&newest).unwrap();
        assert!(readers.all_gone(&mut active));
    }

    /// A close during a background flush was refused, because the flusher's pin counted as an open snapshot.
    #[test]
    fn the_flushers_pin_holds_versions_and_is_no_open_snapshot() {
        let readers = Readers::new();
        let pin = readers.pin_at(TransactionId(5)).unwrap();
        assert_eq!(readers.oldest(), (Some(TransactionId(5)), 0));
        let mut ids = Vec::new();
        readers.pinned(&mut ids);
        assert_eq!(ids, [5]);
        readers.unpin(pin);
    }

    #[test]
    fn more_than_a_block_of_readers() {
        let (readers, newest) = (Readers::new(), AtomicU64::new(1));
        let pins: Vec<_> = (0..200).map(|_| readers.pin(&newest).unwrap().0).collect();
        assert_eq!(readers.oldest().1, 200);
        pins.into_iter().for_each(|p| readers.unpin(p));
        assert_eq!(readers.oldest(), (None, 0));
    }
}
