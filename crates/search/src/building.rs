//! Segments in the making: each of consecutive entries, several at a time, each by a thread of its own.
//!
//! tantivy's own writer deals entries out to its threads as they come, so that with more than one of them the entries of its segments lie
//! crosswise. Here a thread takes what follows until it is too far behind or its memory is used up, and what comes after that goes to another
//! thread and another segment. So segments are runs of entries, and the order in which they were added is that of the segments.
//!
//! The bytes of entries on their way and the memory of the segments are together those that the writer was given. Few entries, as most commits
//! have, are made a segment of by the thread that adds them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};
use tantivy::index::SegmentMeta;
use tantivy::indexer::{AddOperation, SegmentWriter};
use tantivy::{Index, TantivyError};

use crate::cells::{Cells, Spare};

/// Entries handed over together.
const BATCH: usize = 64;

/// Entries of a commit up to which no thread is started for them, and their bytes.
const FEW: usize = 512;
const FEW_BYTES: usize = 512 << 10;

/// The memory of a segment of few entries: what counts is that its table of terms is small.
const FEW_MEMORY: usize = 1 << 20;

/// Bytes of entries that wait for one thread, at most.
const WAITING_MAX: usize = 8 << 20;

/// A thread is worth starting for a segment that may have so much memory.
const SEGMENT_MEMORY_MIN: usize = 12 << 20;

/// Threads that work for one writer, at most.
const THREADS_MAX: usize = 4;

/// Threads of all writers of the process. Each may have one, and more while there are fewer than processors.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Processors that this process may use. Asked once: the system answers by reading files, and this is looked at between batches.
static PROCESSORS: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));

/// The segments of one commit.
pub(crate) struct Building {
    index: Index,
    spare: Arc<Spare>,
    /// Entries that were not handed over yet.
    batch: Cells,
    runs: VecDeque<Run>,
    finished: Vec<SegmentMeta>,
    /// What each run may use, and how many there may be at once.
    waiting_max: usize,
    segment_memory: usize,
    threads_max: usize,
    progress: Arc<Progress>,
    /// Whether entries beyond few have come.
    is_many: bool,
    /// Whether some entries are lost, so that the others must not be committed.
    is_broken: bool,
}

/// A segment and the thread that makes it.
struct Run {
    /// None once it has all its entries.
    sender: Option<Sender<Cells>>,
    state: Arc<RunState>,
    thread: JoinHandle<tantivy::Result<Option<SegmentMeta>>>,
}

#[derive(Default)]
struct RunState {
    /// Bytes of entries that wait.
    waiting: AtomicUsize,
    /// Its memory is used up.
    is_full: AtomicBool,
    /// The thread is done, well or not.
    is_over: AtomicBool,
    /// Nobody wants the segment any more.
    is_given_up: AtomicBool,
}

/// Counts what happens to runs that may let more entries in.
#[derive(Default)]
struct Progress {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Progress {
    fn tell(&self) {
        *self.count.lock() += 1;
        self.changed.notify_all();
    }

    fn count(&self) -> u64 {
        *self.count.lock()
    }

    /// Waits until there is more than what was counted.
    fn wait(&self, counted: u64) {
        let mut count = self.count.lock();
        while *count == counted {
            self.changed.wait(&mut count);
        }
    }
}

impl Building {
    /// For a writer with so many bytes of memory.
    pub(crate) fn new(index: Index, spare: Arc<Spare>, memory: usize) -> Building {
        let waiting_max = WAITING_MAX.min(memory / 8);
        let affordable = memory / (SEGMENT_MEMORY_MIN + waiting_max);
        let threads_max = PROCESSORS.min(THREADS_MAX).min(affordable).max(1);
        Building {
            index,
            spare,
            batch: Cells::default(),
            runs: VecDeque::new(),
            finished: Vec::new(),
            waiting_max,
            segment_memory: memory / threads_max - waiting_max,
            threads_max,
            progress: Arc::default(),
            is_many: false,
            is_broken: false,
        }
    }

    /// Adds the entry that `encode` appends. Waits while entries come faster than they are written.
    pub(crate) fn add(&mut self, encode: impl FnOnce(&mut Cells)) -> tantivy::Result<()> {
        // One failure, and nothing that succeeds after it counts.
        self.check_whole()?;
        encode(&mut self.batch);
        let entries_max = if self.is_many { BATCH } else { FEW };
        if self.batch.count() >= entries_max || self.batch.bytes_used() > FEW_BYTES {
            self.is_many = true;
            self.is_broken = true;
            self.hand_over()?;
            self.is_broken = false;
        }
        Ok(())
    }

    fn check_whole(&self) -> tantivy::Result<()> {
        match self.is_broken {
            true => Err(TantivyError::ErrorInThread("entries before this one are lost".to_owned())),
            false => Ok(()),
        }
    }

    fn hand_over(&mut self) -> tantivy::Result<()> {
        if self.batch.count() == 0 {
            return Ok(());
        }
        let mut batch = std::mem::replace(&mut self.batch, self.spare.take());
        let bytes = batch.bytes_used();
        loop {
            // What happens while it is looked at is not slept through.
            let counted = self.progress.count();
            self.collect()?;
            let running = self.runs.len();
            if let Some(run) = self.runs.back_mut()
                && let Some(sender) = &run.sender
            {
                let is_full = run.state.is_full.load(Ordering::Acquire);
                // One batch may be larger than what may wait.
                let waiting = run.state.waiting.load(Ordering::Acquire);
                let has_room = waiting == 0 || waiting + bytes <= self.waiting_max;
                if !is_full && has_room {
                    run.state.waiting.fetch_add(bytes, Ordering::AcqRel);
                    match sender.send(batch) {
                        Ok(()) => return Ok(()),
                        // It failed, and the next round learns how.
                        Err(unsent) => batch = unsent.0,
                    }
                    run.sender = None;
                    continue;
                }
                if is_full || running < self.threads_max && has_processor() {
                    run.sender = None;
                    continue;
                }
            } else if running == 0 || running < self.threads_max && has_processor() {
                self.start()?;
                continue;
            }
            self.progress.wait(counted);
        }
    }

    /// Takes the segments of the runs that are over.
    fn collect(&mut self) -> tantivy::Result<()> {
        let mut at = 0;
        while at < self.runs.len() {
            if !self.runs[at].state.is_over.load(Ordering::Acquire) {
                at += 1;
                continue;
            }
            if let Some(run) = self.runs.remove(at) {
                self.finished.extend(join(run)?);
            }
        }
        Ok(())
    }

    /// Starts a run.
    fn start(&mut self) -> tantivy::Result<()> {
        let (sender, receiver) = channel();
        let state = Arc::<RunState>::default();
        let work = Work {
            index: self.index.clone(),
            memory: self.segment_memory,
            waiting_low: self.waiting_max / 2,
            receiver,
            spare: Arc::clone(&self.spare),
            over: Over { state: Arc::clone(&state), progress: Arc::clone(&self.progress) },
        };
        THREADS.fetch_add(1, Ordering::AcqRel);
        // It has the priority of the thread that starts it.
        let started = thread::Builder::new().name("index-segment".to_owned()).spawn(move || work.run());
        self.runs.push_back(Run { sender: Some(sender), state, thread: started? });
        Ok(())
    }

    /// The segments of all entries since the last time.
    pub(crate) fn finish(&mut self) -> tantivy::Result<Vec<SegmentMeta>> {
        self.check_whole()?;
        if self.is_many {
            self.hand_over()?;
        } else if self.batch.count() > 0 {
            let batch = std::mem::take(&mut self.batch);
            let segment = self.index.new_segment();
            let mut writer = SegmentWriter::for_segment(FEW_MEMORY, segment.clone())?;
            add_all(&mut writer, batch, &self.spare)?;
            let entries = writer.max_doc();
            writer.finalize()?;
            self.finished.push(segment.with_max_doc(entries).meta().clone());
        }
        self.is_many = false;
        if let Some(last) = self.runs.back_mut() {
            last.sender = None;
        }
        while let Some(run) = self.runs.pop_front() {
            self.finished.extend(join(run)?);
        }
        Ok(std::mem::take(&mut self.finished))
    }

    /// Forgets all entries since the last time.
    pub(crate) fn forget(&mut self) {
        self.batch = Cells::default();
        self.is_many = false;
        self.is_broken = false;
        self.finished.clear();
        for run in &mut self.runs {
            run.state.is_given_up.store(true, Ordering::Release);
            run.sender = None;
        }
        for run in self.runs.drain(..) {
            // What went wrong does not matter any more.
            let _ = join(run);
        }
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        self.forget();
    }
}

fn join(run: Run) -> tantivy::Result<Option<SegmentMeta>> {
    run.thread.join().unwrap_or_else(|_| {
        Err(TantivyError::ErrorInThread("the thread that makes a segment panicked".to_owned()))
    })
}

/// Whether one more thread would have a processor.
fn has_processor() -> bool {
    THREADS.load(Ordering::Acquire) < *PROCESSORS
}

/// What the thread of a run does.
struct Work {
    index: Index,
    memory: usize,
    /// When no more bytes wait, more are let in.
    waiting_low: usize,
    receiver: Receiver<Cells>,
    spare: Arc<Spare>,
    over: Over,
}

/// Tells that a run is over, however it ends.
struct Over {
    state: Arc<RunState>,
    progress: Arc<Progress>,
}

impl Drop for Over {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::AcqRel);
        self.state.is_over.store(true, Ordering::Release);
        self.progress.tell();
    }
}

impl Work {
    fn run(self) -> tantivy::Result<Option<SegmentMeta>> {
        let (state, progress) = (&self.over.state, &self.over.progress);
        let segment = self.index.new_segment();
        let mut writer = SegmentWriter::for_segment(self.memory, segment.clone())?;
        for batch in self.receiver {
            if state.is_given_up.load(Ordering::Acquire) {
                return Ok(None);
            }
            let bytes = batch.bytes_used();
            add_all(&mut writer, batch, &self.spare)?;
            let before = state.waiting.fetch_sub(bytes, Ordering::AcqRel);
            let after = before - bytes;
            let is_full = writer.mem_usage() >= self.memory;
            state.is_full.store(is_full, Ordering::Release);
            if is_full || after == 0 || before > self.waiting_low && after <= self.waiting_low {
                progress.tell();
            }
        }
        if state.is_given_up.load(Ordering::Acquire) || writer.max_doc() == 0 {
            return Ok(None);
        }
        let entries = writer.max_doc();
        writer.finalize()?;
        Ok(Some(segment.with_max_doc(entries).meta().clone()))
    }
}

fn add_all(writer: &mut SegmentWriter, entries: Cells, spare: &Spare) -> tantivy::Result<()> {
    // Deletes go by the orders of entries and not by stamps.
    entries.each(spare, |document| writer.add_document(AddOperation { opstamp: 0, document }))
}
