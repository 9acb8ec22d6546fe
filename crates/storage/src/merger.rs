//! The transaction merger: many threads' small writes in one transaction, one commit, one write to the journal.
//!
//! Whoever submits first leads: takes the write lock, runs the jobs that wait, each in a savepoint of its own, queues the
//! commit, hands the lead to one of those who came meanwhile, and only then waits for the disk. The next leader is awake by the time that
//! write is done, takes all that came until then, and while its batch runs and is written, the first one's submitters are woken.
//! Nobody needs a thread of its own. The others sleep, each on its own flag, until their result is there (no
//! lock that all of them would fight for).
//!
//! The pattern is flat combining (Hendler, Incze, Shavit, Tzafrir 2010) with the lead handed on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::Thread;

use parking_lot::Mutex;

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::transaction::commit::{after_commit, drive};
use crate::transaction::write::WriteTransaction;

/// Jobs in one transaction at most.
const BATCH_MAX: usize = 4096;

/// Jobs that wait for a leader.
#[derive(Default)]
pub(crate) struct Merger {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Waiting>,
    /// Somebody leads, or has been told to.
    led: bool,
}

/// The job has not run, or its commit is not durable yet.
const PENDING: u32 = 0;
/// The submitter is to lead.
const LEAD: u32 = 1;
/// The result is there.
const DONE: u32 = 2;

/// A job on its submitter's stack.
struct Job<'a> {
    flag: AtomicU32,
    run: Mutex<&'a mut (dyn FnMut(Step<'_>) -> bool + Send)>,
}

/// What a job's closure is called with.
enum Step<'a> {
    /// Run in this transaction; false: undo.
    Run(&'a mut WriteTransaction),
    /// The commit failed.
    Fail(&'a Error),
}

/// A job in the queue, and its submitter.
struct Waiting {
    job: erased::JobPointer,
    thread: Thread,
}

mod erased {
    //! A pointer to a job on another thread's stack.

    use super::Job;

    #[derive(Clone, Copy)]
    pub(super) struct JobPointer(*const Job<'static>);

    // SAFETY: a `Job` is shared between threads only through its atomic and its mutex, and its closure is `Send`.
    unsafe impl Send for JobPointer {}

    impl JobPointer {
        /// The pointer must not be used once the job's flag is `DONE`: its submitter waits for that before the job goes away.
        pub(super) fn new(job: &Job<'_>) -> JobPointer {
            JobPointer(std::ptr::from_ref(job).cast())
        }

        /// The job.
        ///
        /// # Safety
        /// The job's flag was not set to `DONE` yet, and `'a` ends before it is.
        pub(super) unsafe fn get<'a>(self) -> &'a Job<'static> {
            // SAFETY: the submitter keeps the job until its flag is `DONE`.
            unsafe { &*self.0 }
        }
    }
}

/// See [`Environment::submit`].
pub(crate) fn submit<T: Send, E: From<Error> + Send>(
    env: &Environment,
    job: impl FnOnce(&mut WriteTransaction) -> Result<T, E> + Send,
) -> Result<T, E> {
    let mut job = Some(job);
    let mut outcome: Option<Result<T, E>> = None;
    let mut run = |step: Step<'_>| match step {
        Step::Run(tx) => {
            let Some(job) = job.take() else { return false };
            let result = catch_unwind(AssertUnwindSafe(|| job(tx)))
                .unwrap_or_else(|panic| Err(E::from(Error::JobPanicked(panic_text(&*panic)))));
            let keep = result.is_ok();
            outcome = Some(result);
            keep
        }
        // A job that failed by itself keeps its own error.
        Step::Fail(error) => {
            if !matches!(outcome, Some(Err(_))) {
                outcome = Some(Err(E::from(copy_of(error))));
            }
            false
        }
    };
    enqueue_and_wait(env, &Job { flag: AtomicU32::new(PENDING), run: Mutex::new(&mut run) });
    outcome.unwrap_or_else(|| Err(E::from(Error::Closed)))
}

fn enqueue_and_wait(env: &Environment, job: &Job<'_>) {
    let merger = &env.inner.merger;
    let leads = {
        let mut state = merger.state.lock();
        state.waiting.push(Waiting { job: erased::JobPointer::new(job), thread: std::thread::current() });
        !std::mem::replace(&mut state.led, true)
    };
    if leads {
        lead(env);
    }
    loop {
        match job.flag.load(Ordering::Acquire) {
            DONE => return,
            LEAD => {
                job.flag.store(PENDING, Ordering::Relaxed);
                lead(env);
            }
            _ => std::thread::park(),
        }
    }
}

/// Runs and commits what waits, handing the lead on as soon as the commit is queued.
fn lead(env: &Environment) {
    let inner = &env.inner;
    // Executing takes much less time than the write that is under way: what arrives until that is done goes into one transaction. The
    // lead was handed on before it, so waking up cost no time.
    inner.stage.wait_for_write();
    let mut batch = Vec::new();
    let queued = run_batch(env, &mut batch);
    hand_on(&inner.merger);
    let result = match &queued {
        Ok(Some(id)) => drive(inner, *id),
        _ => Ok(()),
    };
    let failure = queued.err().or(result.err());
    for Waiting { job, thread } in batch {
        // SAFETY: its flag is set only here.
        let job = unsafe { job.get() };
        if let Some(error) = &failure {
            (job.run.lock())(Step::Fail(error));
        }
        job.flag.store(DONE, Ordering::Release); // the job may be gone from here on
        if thread.id() != std::thread::current().id() {
            thread.unpark();
        }
    }
    after_commit(inner);
}

/// Executes all waiting jobs in one transaction and queues its commit: its id, or `None` when nothing changed.
fn run_batch(env: &Environment, batch: &mut Vec<Waiting>) -> Result<Option<crate::TransactionId>> {
    let tx = env.write();
    {
        let mut state = env.inner.merger.state.lock();
        if state.waiting.len() <= BATCH_MAX {
            std::mem::swap(&mut state.waiting, batch);
        } else {
            batch.extend(state.waiting.drain(..BATCH_MAX));
        }
    }
    let mut tx = tx?;
    let alone = batch.len() == 1;
    for Waiting { job, .. } in batch.iter() {
        // SAFETY: its flag is set only after this batch.
        let job = unsafe { job.get() };
        if alone {
            if !(job.run.lock())(Step::Run(&mut tx)) {
                return Ok(None); // dropping the transaction undoes it
            }
            continue;
        }
        let savepoint = tx.savepoint();
        let keep = (job.run.lock())(Step::Run(&mut tx));
        if keep { tx.release(savepoint)? } else { tx.rollback_to(savepoint)? }
    }
    let id = tx.id();
    Ok(tx.queue()?.then_some(id))
}

/// The next leader is one of those who wait; nobody, when nobody does.
fn hand_on(merger: &Merger) {
    let next = {
        let mut state = merger.state.lock();
        match state.waiting.first() {
            Some(first) => Some((first.job, first.thread.clone())),
            None => {
                state.led = false;
                None
            }
        }
    };
    if let Some((job, thread)) = next {
        // SAFETY: the job is in the queue, which only a leader empties, and the next leader is its own submitter, told here.
        unsafe { job.get() }.flag.store(LEAD, Ordering::Release);
        thread.unpark();
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// The error of a commit for each of its submitters.
fn copy_of(error: &Error) -> Error {
    match error {
        Error::ReadOnly => Error::ReadOnly,
        Error::Closed => Error::Closed,
        Error::TransactionTooLarge { max } => Error::TransactionTooLarge { max: *max },
        Error::DiskFull { what, bytes, source } => {
            Error::DiskFull { what: what.clone(), bytes: *bytes, source: source.kind().into() }
        }
        Error::Invalid(text) => Error::Invalid(text.clone()),
        Error::Failed { cause } => Error::Failed { cause: cause.clone() },
        Error::Io { operation, path, source } => {
            let source = match source.raw_os_error() {
                Some(code) => std::io::Error::from_raw_os_error(code),
                None => std::io::Error::new(source.kind(), source.to_string()),
            };
            Error::Io { operation, path: path.clone(), source }
        }
        Error::PageDamaged { page, reason } => Error::PageDamaged { page: *page, reason: reason.clone() },
        other => Error::Failed { cause: other.to_string() },
    }
}
