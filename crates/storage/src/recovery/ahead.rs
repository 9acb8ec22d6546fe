//! Reads the journal files ahead of whoever takes records out of them, on threads of its own and past the system's cache: so that
//! nobody waits for the disk, and no processor copies from the cache what is needed only once.
//!
//! The threads read the files' chunks in turn, and the chunks are taken in turn. It is a help and no more: what it does not deliver, after a read that failed say, is read by whoever needs it, who
//! meets the error then.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, Scope};

use super::Found;
use crate::journal::aligned::AlignedBuffer;

/// Bytes read at a time.
const CHUNK_SIZE: u64 = 1 << 20;
/// Threads that read: the disk begins with a chunk before it is done with the one before.
const READERS: usize = 2;
/// Chunks of each thread that wait to be taken at most.
const CHUNKS_MAX: usize = 4;
/// Bytes left free before a chunk's own, for the beginning of a record that ends in it.
pub(super) const HEADROOM: usize = 128 << 10;

/// A piece of a file, behind [`HEADROOM`] bytes of any content.
pub(super) struct Chunk {
    /// The place of the file in the list.
    pub(super) file: usize,
    /// The piece's place in the file, from and to.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) buffer: AlignedBuffer,
}

/// The side of whoever takes the chunks. The threads end when it is dropped.
pub(super) struct Ahead {
    threads: [Thread; READERS],
    /// The thread whose chunk is the next one.
    turn: usize,
    /// The chunk looked at last, if not taken.
    next: Option<Chunk>,
}

struct Thread {
    chunks: Receiver<Chunk>,
    spare: Sender<AlignedBuffer>,
}

impl Ahead {
    /// Begins to read the files, in order.
    pub(super) fn start<'scope>(scope: &'scope Scope<'scope, '_>, files: &'scope [Found]) -> Ahead {
        let threads = std::array::from_fn(|own| {
            let (filled, chunks) = sync_channel(CHUNKS_MAX);
            let (spare, emptied) = channel();
            // Without it everything works, only slower.
            let _ = Builder::new()
                .name("storage-read-ahead".to_owned())
                .spawn_scoped(scope, move || read_own(files, own, &filled, &emptied));
            Thread { chunks, spare }
        });
        Ahead { threads, turn: 0, next: None }
    }

    /// The next chunk in order; waits until it is there. `None` when no more will come.
    pub(super) fn peek(&mut self) -> Option<&Chunk> {
        if self.next.is_none() {
            // After a thread has ended, its turn never passes.
            self.next = self.threads[self.turn].chunks.recv().ok();
        }
        self.next.as_ref()
    }

    /// Takes the chunk that [`Ahead::peek`] showed.
    pub(super) fn take(&mut self) -> Option<Chunk> {
        let chunk = self.next.take()?;
        self.turn = (self.turn + 1) % READERS;
        Some(chunk)
    }

    /// Gives a buffer back to be filled again.
    pub(super) fn give_back(&self, buffer: AlignedBuffer) {
        // When nothing is read any more, it is dropped.
        let _ = self.threads[self.turn].spare.send(buffer);
    }
}

/// Reads every chunk whose turn is this thread's.
fn read_own(files: &[Found], own: usize, filled: &SyncSender<Chunk>, emptied: &Receiver<AlignedBuffer>) {
    let mut turn = 0;
    for (index, (_, file, size, _)) in files.iter().enumerate() {
        let mut start = 0;
        while start < *size {
            let end = (start + CHUNK_SIZE).min(*size);
            if turn == own {
                let mut buffer = emptied.try_recv().unwrap_or_default();
                buffer.set_len(HEADROOM + (end - start) as usize);
                if file.read_direct(start, &mut buffer.bytes_mut()[HEADROOM..]).is_err()
                    || filled.send(Chunk { file: index, start, end, buffer }).is_err()
                {
                    return;
                }
            }
            turn = (turn + 1) % READERS;
            start = end;
        }
    }
}
