//! The threads that index, one pool for all databases of the process.
//!
//! An index is a [`Work`] that does one bounded piece at a time and says how it goes on. It is in the queue, or running, or neither, never twice;
//! who is woken while it runs runs once more. The queue is one line for each priority, each served in turn: of seven pieces, four are of the
//! first line that has any (high priority), two begin to look at the second and one at the third, so that nobody waits for ever. A piece that is to
//! come later lies in a heap by time. A thread that has nothing to do sleeps until something comes, and threads start with the first piece of work.
//!
//! The threads give way to others: their priority at the operating system is lower, so that requests are served first.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::definition::Priority;

/// How much lower the threads' priority is at the operating system, from 0 (not at all) to 19.
const NICE: i32 = 5;

/// Something that is done piece by piece.
pub(crate) trait Work: Send + Sync {
    /// Does one piece.
    fn run(self: Arc<Self>, yielding: &Yielding<'_>) -> Next;
    /// In which line it waits.
    fn priority(&self) -> Priority;
    /// Its place in the queue.
    fn slot(&self) -> &Slot;
    /// The last piece panicked; it does not run again until it is woken.
    fn panicked(&self, message: &str);
}

/// How work goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// There is nothing to do until somebody wakes it.
    Sleep,
    /// There is more to do, after the others had their turn.
    More,
    /// There may be more, but not before so much time has passed.
    After(Duration),
}

/// Where a piece of work is.
#[derive(Default)]
pub(crate) struct Slot(Mutex<Place>);

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Nowhere,
    Queued,
    /// In the heap, under this number.
    Later(u64),
    Running,
    /// Running, and to run again.
    RunningAndWoken,
}

/// The pool.
pub struct Workers {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    threads_max: usize,
}

struct Shared {
    queue: Mutex<Queue>,
    came: Condvar,
}

#[derive(Default)]
struct Queue {
    lines: [VecDeque<Arc<dyn Work>>; 3],
    later: BinaryHeap<Reverse<Later>>,
    turn: usize,
    number: u64,
    running: usize,
    stopping: bool,
}

struct Later {
    at: Instant,
    number: u64,
    work: Arc<dyn Work>,
}

impl PartialEq for Later {
    fn eq(&self, other: &Later) -> bool {
        self.number == other.number
    }
}

impl Eq for Later {}

impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Later) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Later {
    fn cmp(&self, other: &Later) -> Ordering {
        self.at.cmp(&other.at).then(self.number.cmp(&other.number))
    }
}

/// By which a piece of work learns that others wait for its thread.
pub(crate) struct Yielding<'w>(&'w Shared);

impl Yielding<'_> {
    /// Whether others wait, so that a piece should not be longer than it must.
    pub(crate) fn others_wait(&self) -> bool {
        self.0.queue.lock().has_ready()
    }
}

impl Queue {
    fn has_ready(&self) -> bool {
        self.lines.iter().any(|line| !line.is_empty())
    }

    fn push(&mut self, work: Arc<dyn Work>) {
        let line = match work.priority() {
            Priority::High => 0,
            Priority::Normal => 1,
            Priority::Low => 2,
        };
        self.lines[line].push_back(work);
    }

    fn pop(&mut self) -> Option<Arc<dyn Work>> {
        const FIRST: [usize; 7] = [0, 1, 0, 2, 0, 1, 0];
        let first = FIRST[self.turn % FIRST.len()];
        self.turn = self.turn.wrapping_add(1);
        let order = [first, 0, 1, 2];
        order.into_iter().find_map(|line| self.lines[line].pop_front())
    }

    /// Moves what is due into the lines; when the next is due.
    fn release(&mut self, now: Instant) -> Option<Instant> {
        while let Some(Reverse(next)) = self.later.peek() {
            if next.at > now {
                return Some(next.at);
            }
            if let Some(Reverse(due)) = self.later.pop() {
                let mut place = due.work.slot().0.lock();
                // One that was woken in the meantime is in a line already.
                if *place == Place::Later(due.number) {
                    *place = Place::Queued;
                    drop(place);
                    self.push(due.work);
                }
            }
        }
        None
    }
}

impl Workers {
    /// A pool of at most this many threads; none is started before there is work.
    pub fn new(threads_max: usize) -> Arc<Workers> {
        let shared = Arc::new(Shared { queue: Mutex::default(), came: Condvar::new() });
        Arc::new(Workers { shared, threads: Mutex::default(), threads_max: threads_max.max(1) })
    }

    /// One thread for each core.
    pub fn for_this_machine() -> Arc<Workers> {
        Workers::new(std::thread::available_parallelism().map_or(2, usize::from))
    }

    /// Lets work run as soon as a thread has time; with `delay`, not before that has passed, unless it is woken without one.
    pub(crate) fn wake(&self, work: &Arc<dyn Work>, delay: Option<Duration>) {
        let mut queue = self.shared.queue.lock();
        if queue.stopping {
            return;
        }
        let mut place = work.slot().0.lock();
        match (*place, delay) {
            (Place::Nowhere, Some(delay)) => {
                queue.number += 1;
                let number = queue.number;
                *place = Place::Later(number);
                drop(place);
                queue.later.push(Reverse(Later { at: Instant::now() + delay, number, work: work.clone() }));
            }
            (Place::Nowhere | Place::Later(_), None) => {
                *place = Place::Queued;
                drop(place);
                queue.push(work.clone());
            }
            (Place::Running, _) => {
                *place = Place::RunningAndWoken;
                return;
            }
            (Place::Later(_), Some(_)) | (Place::Queued | Place::RunningAndWoken, _) => return,
        }
        drop(queue);
        self.start_thread();
        self.shared.came.notify_one();
    }

    /// Starts one more thread if there may be one more and all are busy.
    fn start_thread(&self) {
        let mut threads = self.threads.lock();
        if threads.len() >= self.threads_max || threads.len() > self.shared.queue.lock().running {
            return;
        }
        let shared = self.shared.clone();
        match std::thread::Builder::new()
            .name(format!("jackdaw-index-{}", threads.len()))
            .spawn(move || run(&shared))
        {
            Ok(thread) => threads.push(thread),
            Err(error) => tracing::error!(%error, "no thread for indexing"),
        }
    }

    /// Takes no more work, and waits for the pieces that run.
    pub fn stop(&self) {
        {
            let mut queue = self.shared.queue.lock();
            queue.stopping = true;
            queue.lines.iter_mut().for_each(VecDeque::clear);
            queue.later.clear();
        }
        self.shared.came.notify_all();
        let threads = std::mem::take(&mut *self.threads.lock());
        // The last handle may go with a piece of work, on one of the pool's own threads.
        let own = std::thread::current().id();
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != own) {
            if thread.join().is_err() {
                tracing::error!("a thread of indexing panicked");
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(shared: &Shared) {
    if let Err(error) = lower_priority() {
        tracing::debug!(%error, "indexing runs at the priority of requests");
    }
    let mut queue = shared.queue.lock();
    loop {
        let next_due = queue.release(Instant::now());
        if queue.stopping {
            return;
        }
        let Some(work) = queue.pop() else {
            match next_due {
                Some(at) => {
                    shared.came.wait_until(&mut queue, at);
                }
                None => shared.came.wait(&mut queue),
            }
            continue;
        };
        *work.slot().0.lock() = Place::Running;
        queue.running += 1;
        drop(queue);
        let next = catch_unwind(AssertUnwindSafe(|| work.clone().run(&Yielding(shared))));
        let next = next.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            work.panicked(&text);
            Next::Sleep
        });
        queue = shared.queue.lock();
        queue.running -= 1;
        if queue.stopping {
            return;
        }
        let mut place = work.slot().0.lock();
        let was_woken = *place == Place::RunningAndWoken;
        match next {
            Next::Sleep if !was_woken => *place = Place::Nowhere,
            Next::After(pause) => {
                queue.number += 1;
                let number = queue.number;
                *place = Place::Later(number);
                drop(place);
                queue.later.push(Reverse(Later { at: Instant::now() + pause, number, work: work.clone() }));
            }
            Next::Sleep | Next::More => {
                *place = Place::Queued;
                drop(place);
                queue.push(work.clone());
            }
        }
        // What was released when this thread looked may be for others.
        if queue.has_ready() {
            shared.came.notify_one();
        }
    }
}

/// Of this thread alone: on Linux, that is what a thread's own number means here.
fn lower_priority() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::mpsc;

    use super::*;

    struct Counted {
        name: &'static str,
        slot: Slot,
        priority: Priority,
        pieces: AtomicUsize,
        done: mpsc::SyncSender<&'static str>,
        panics: bool,
    }

    impl Work for Counted {
        fn run(self: Arc<Self>, _: &Yielding<'_>) -> Next {
            let left = self.pieces.fetch_sub(1, SeqCst) - 1;
            self.done.send(self.name).ok();
            assert!(!self.panics, "on purpose");
            if left == 0 { Next::Sleep } else { Next::More }
        }

        fn priority(&self) -> Priority {
            self.priority
        }

        fn slot(&self) -> &Slot {
            &self.slot
        }

        fn panicked(&self, message: &str) {
            assert!(message.contains("on purpose"));
            self.done.send("panicked").ok();
        }
    }

    fn work(name: &'static str, pieces: usize, done: &mpsc::SyncSender<&'static str>) -> Arc<Counted> {
        Arc::new(Counted {
            name,
            slot: Slot::default(),
            priority: Priority::Normal,
            pieces: AtomicUsize::new(pieces),
            done: done.clone(),
            panics: false,
        })
    }

    #[test]
    fn pieces_take_turns() {
        let workers = Workers::new(1);
        let (done, each) = mpsc::sync_channel(0);
        for name in ["a", "b", "c"] {
            let work: Arc<dyn Work> = work(name, 3, &done);
            workers.wake(&work, None);
        }
        let order: Vec<_> = each.iter().take(9).collect();
        for name in ["a", "b", "c"] {
            assert_eq!(order.iter().filter(|each| **each == name).count(), 3, "{order:?}");
        }
        assert!(order[3..].windows(3).all(|three| three[0] != three[1] || three[1] != three[2]), "{order:?}");
    }

    #[test]
    fn one_that_is_woken_while_it_runs_runs_again() {
        let workers = Workers::new(2);
        let (done, each) = mpsc::sync_channel(0);
        let counted = work("a", 1, &done);
        let as_work: Arc<dyn Work> = counted.clone();
        workers.wake(&as_work, None);
        // It is in `send`: running.
        while *counted.slot.0.lock() != Place::Running {
            std::thread::yield_now();
        }
        counted.pieces.fetch_add(1, SeqCst);
        workers.wake(&as_work, None);
        workers.wake(&as_work, None);
        assert_eq!(each.iter().take(2).count(), 2);
        drop(workers);
        assert!(each.try_recv().is_err(), "once more, not twice");
    }

    #[test]
    fn what_comes_later_is_woken_early_by_who_cannot_wait() {
        let workers = Workers::new(1);
        let (done, each) = mpsc::sync_channel(1);
        let work: Arc<dyn Work> = work("a", 1, &done);
        workers.wake(&work, Some(Duration::from_secs(3600)));
        workers.wake(&work, None);
        assert_eq!(each.recv(), Ok("a"));
    }

    #[test]
    fn a_panic_ends_the_piece_and_not_the_thread() {
        let workers = Workers::new(1);
        let (done, each) = mpsc::sync_channel(4);
        let mut bad = work("bad", 2, &done);
        if let Some(bad) = Arc::get_mut(&mut bad) {
            bad.panics = true;
        }
        let bad: Arc<dyn Work> = bad;
        workers.wake(&bad, None);
        assert_eq!([each.recv(), each.recv()], [Ok("bad"), Ok("panicked")]);
        let good: Arc<dyn Work> = work("good", 1, &done);
        workers.wake(&good, None);
        assert_eq!(each.recv(), Ok("good"));
    }
}
