//! The page table and the reader registry under a model checker, which tries every interleaving (up to a number of preemptions) and every
//! value that the memory model allows a load to see.
//!
//! Run with `make loom`, or:
//! `RUSTFLAGS="--cfg loom" cargo test --release -p jackdaw-storage --lib snapshot::loom_tests`
//!
//! The bytes of pages are plain memory, of which the checker knows nothing. So each version has a cell beside it that stands for its bytes:
//! the checker reports a read of the cell that is not ordered after the write it should see, and a write while somebody reads.

#![allow(clippy::unwrap_used)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::page_table::{Content, Found, PageTable};
use super::readers::Readers;
use super::sync::{AtomicU64, Ordering};
use crate::format::{PageNumber, TransactionId};

const P: PageNumber = PageNumber(1);
const Q: PageNumber = PageNumber(2);

struct World {
    table: PageTable,
    readers: Readers,
    visible: AtomicU64,
    /// The bytes of each version, by index: the page and the transaction that filled it.
    bytes: Vec<UnsafeCell<(u64, u64)>>,
    /// The bytes of pages P and Q in the data file: the transaction.
    file: [UnsafeCell<u64>; 2],
}

// SAFETY: the cells are what the checker watches; it fails the test when they are used without order.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

impl World {
    /// P and Q are at transaction 1 in scratch memory; the file holds nothing yet.
    fn new() -> World {
        let world = World {
            table: PageTable::new(),
            readers: Readers::new(),
            visible: AtomicU64::new(0),
            bytes: (0..8).map(|_| UnsafeCell::new((0, 0))).collect(),
            file: [UnsafeCell::new(0), UnsafeCell::new(0)],
        };
        world.write(P, 1);
        world.write(Q, 1);
        world.publish(1, &[P, Q]);
        world
    }

    /// What a write transaction does to a page.
    fn write(&self, page: PageNumber, id: u64) -> Found {
        let found = self.table.allocate(Content::Page, TransactionId(id)).unwrap();
        // SAFETY: the checker watches.
        self.bytes[found.link.index()].with_mut(|bytes| unsafe { *bytes = (page.0, id) });
        self.table.push(page, found.link);
        found
    }

    /// What a commit does when it is durable.
    fn publish(&self, id: u64, pages: &[PageNumber]) {
        self.visible.store(id, Ordering::Release);
        let (mut pinned, mut gone) = (Vec::new(), Vec::new());
        self.readers.pinned(&mut pinned);
        {
            let chains = self.table.chains();
            for &page in pages {
                self.table.prune(page, &pinned, TransactionId(id), &chains, &mut gone);
            }
        }
        self.table.recycle(gone);
    }

    fn commit(&self, id: u64, pages: &[PageNumber]) {
        let writer = self.readers.pin_writer().unwrap();
        for &page in pages {
            self.write(page, id);
        }
        self.readers.unpin(writer);
        self.publish(id, pages);
    }

    fn rollback(&self, id: u64, page: PageNumber) {
        let writer = self.readers.pin_writer().unwrap();
        let found = self.write(page, id);
        let chains = self.table.chains();
        self.table.pop(page, found.link, &chains);
        drop(chains);
        self.readers.unpin(writer);
    }

    /// What a flush does with the page's version that is visible at `id`: to the file, then out of the table.
    fn flush(&self, page: PageNumber, id: u64) {
        let flusher = self.readers.pin(&self.visible).unwrap().0;
        let Some(found) = self.table.find(page, TransactionId(id)) else {
            return self.readers.unpin(flusher);
        };
        let stamp = self.look(&found);
        assert!(stamp.0 == page.0 && stamp.1 <= id);
        // SAFETY: the checker watches.
        self.file[page.0 as usize - 1].with_mut(|file| unsafe { *file = stamp.1 });
        self.readers.unpin(flusher);
        let mut gone = Vec::new();
        let chains = self.table.chains();
        self.table.unlink_flushed(page, found.link, &chains, &mut gone);
        drop(chains);
        self.table.retire(gone, &self.readers);
    }

    /// Reads a version's bytes.
    fn look(&self, found: &Found) -> (u64, u64) {
        // SAFETY: the checker watches.
        self.bytes[found.link.index()].with(|bytes| unsafe { *bytes })
    }

    /// Reads the page in the snapshot, as the transaction that wrote what it saw.
    fn read(&self, page: PageNumber, id: TransactionId) -> u64 {
        match self.table.find(page, id) {
            Some(found) => {
                let (of, stamp) = self.look(&found);
                assert_eq!(of, page.0, "a version of another page");
                assert_eq!(stamp, found.transaction.0, "a version used again under its reader");
                // Again later: it stays what it was.
                thread::yield_now();
                assert_eq!(self.look(&found), (of, stamp));
                stamp
            }
            // SAFETY: the checker watches.
            None => self.file[page.0 as usize - 1].with(|file| unsafe { *file }),
        }
    }

    /// A reader that pins, reads both pages, and checks them against `writes`: for P and Q the transactions that wrote them.
    fn reader(&self, writes: [&[u64]; 2]) {
        let (pin, id) = self.readers.pin(&self.visible).unwrap();
        for (page, writes) in [P, Q].into_iter().zip(writes) {
            let expected = writes.iter().copied().filter(|&write| write <= id.0).max().unwrap();
            assert_eq!(self.read(page, id), expected, "page {page} in snapshot {id}");
        }
        self.readers.unpin(pin);
    }
}

/// `preemptions`: as many as a second or so allows; `LOOM_MAX_PREEMPTIONS` asks for another number.
fn check(preemptions: usize, model: impl Fn(Arc<World>) + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(preemptions));
    builder.check(move || model(Arc::new(World::new())));
}

fn spawn(world: &Arc<World>, act: impl FnOnce(&World) + 'static) -> thread::JoinHandle<()> {
    let world = Arc::clone(world);
    thread::spawn(move || act(&world))
}

#[test]
fn a_reader_beside_commits_that_supersede_and_recycle() {
    check(4, |world| {
        let writer = spawn(&world, |world| {
            world.commit(2, &[P]);
            // Takes the memory that P's first version gave back, if nobody reads it.
            world.commit(3, &[Q]);
            world.commit(4, &[P]);
        });
        world.reader([&[1, 2, 4], &[1, 3]]);
        writer.join().unwrap();
        world.reader([&[1, 2, 4], &[1, 3]]);
    });
}

#[test]
fn two_readers_beside_a_commit() {
    check(1, |world| {
        let writer = spawn(&world, |world| {
            world.commit(2, &[P, Q]);
            world.commit(3, &[P]);
        });
        let other = spawn(&world, |world| world.reader([&[1, 2, 3], &[1, 2]]));
        world.reader([&[1, 2, 3], &[1, 2]]);
        writer.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn a_reader_passes_a_version_that_is_rolled_back_and_used_for_another_page() {
    check(4, |world| {
        let writer = spawn(&world, |world| {
            world.rollback(2, P);
            world.commit(2, &[Q]);
        });
        world.reader([&[1], &[1, 2]]);
        writer.join().unwrap();
    });
}

#[test]
fn a_reader_beside_a_flush_whose_memory_is_used_again() {
    check(4, |world| {
        let flusher = spawn(&world, |world| {
            world.flush(P, 1);
            world.commit(2, &[Q]);
            world.table.reclaim(&world.readers);
        });
        world.reader([&[1], &[1, 2]]);
        flusher.join().unwrap();
    });
}

#[test]
fn a_writer_pushes_while_the_version_below_is_flushed() {
    check(1, |world| {
        let flusher = spawn(&world, |world| world.flush(P, 1));
        let writer = spawn(&world, |world| world.commit(2, &[P]));
        world.reader([&[1, 2], &[1]]);
        flusher.join().unwrap();
        writer.join().unwrap();
        world.reader([&[1, 2], &[1]]);
    });
}
