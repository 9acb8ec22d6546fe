//! The one thread that looks after all indexes: commits become durable, quiet indexes are merged, writers without work are let go.

use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::index::Core;

struct Queue {
    entered: Mutex<Vec<(Instant, Weak<Core>)>>,
    more: Condvar,
}

static QUEUE: OnceLock<Queue> = OnceLock::new();

/// Has an index looked after when so much time has passed, if not before.
pub(crate) fn enter(core: Weak<Core>, after: Duration) {
    let queue = QUEUE.get_or_init(|| {
        let started = thread::Builder::new().name("index-upkeep".to_owned()).spawn(run);
        if let Err(error) = started {
            tracing::error!(%error, "no thread for the upkeep of indexes: commits become durable when indexes are closed");
        }
        Queue { entered: Mutex::default(), more: Condvar::new() }
    });
    let due = Instant::now() + after;
    {
        let mut entered = queue.entered.lock();
        match entered.iter_mut().find(|(_, other)| other.ptr_eq(&core)) {
            Some((other, _)) if *other <= due => return,
            Some((other, _)) => *other = due,
            None => entered.push((due, core)),
        }
    }
    queue.more.notify_one();
}

fn run() {
    loop {
        let Some(queue) = QUEUE.get() else {
            // The thread was faster than the one that started it.
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let core = next(queue);
        let Some(core) = core.upgrade() else { continue };
        if let Some(after) = core.keep_up() {
            enter(Arc::downgrade(&core), after);
        }
    }
}

fn next(queue: &Queue) -> Weak<Core> {
    let mut entered = queue.entered.lock();
    loop {
        let first =
            entered.iter().enumerate().min_by_key(|(_, (due, _))| *due).map(|(at, (due, _))| (at, *due));
        match first {
            None => queue.more.wait(&mut entered),
            Some((at, due)) if due <= Instant::now() => return entered.swap_remove(at).1,
            Some((_, due)) => {
                queue.more.wait_until(&mut entered, due);
            }
        }
    }
}
