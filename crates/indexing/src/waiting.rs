//! Waiting until an index did something, for tasks and for threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

/// Counts what happened; who waits sees the count change.
pub(crate) struct Signal {
    count: watch::Sender<u64>,
    /// For threads, which cannot wait for the channel with a timeout.
    lock: Mutex<()>,
    came: Condvar,
    waiting: AtomicUsize,
}

impl Default for Signal {
    fn default() -> Signal {
        Signal {
            count: watch::Sender::new(0),
            lock: Mutex::new(()),
            came: Condvar::new(),
            waiting: AtomicUsize::new(0),
        }
    }
}

/// Somebody waits as long as this lives.
pub(crate) struct Waiting<'s>(&'s Signal);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Signal {
    /// Something happened.
    pub(crate) fn tell(&self) {
        self.count.send_modify(|count| *count += 1);
        drop(self.lock.lock());
        self.came.notify_all();
    }

    /// Whether anybody waits.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Somebody begins to wait.
    pub(crate) fn waiting(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        Waiting(self)
    }

    /// What happened from here on is seen by the receiver.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// How often something happened.
    pub(crate) fn count(&self) -> u64 {
        *self.count.borrow()
    }

    /// Waits until the count is not `seen` any more; whether it was before the time is over.
    pub(crate) fn wait_until(&self, seen: u64, deadline: Instant) -> bool {
        let mut guard = self.lock.lock();
        while self.count() == seen {
            if self.came.wait_until(&mut guard, deadline).timed_out() {
                return self.count() != seen;
            }
        }
        true
    }
}
