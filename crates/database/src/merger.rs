//! The transaction merger: writes of many requests in one storage transaction, one after the other, each answered when it is durable.
//!
//! A database has one writer thread. It takes everything that waits, runs each job in a savepoint of its own, commits, answers all, and
//! starts over. While a commit is being written, which is for the committer's thread (`committer`), the writer goes on: it runs what comes meanwhile in the
//! next transaction, on top of the one that is not durable yet, and commits that once the journal is free. So a lone write costs one
//! write to the journal and no hand-over, a thousand at once cost little more, and neither processor nor disk waits for the other. (The storage
//! engine's own `submit` does the same with the callers' threads; requests here are tasks, which must not block for long.)
//!
//! Where one client writes at a time, waking threads would take longer than the disk: there a short job runs on the thread that submits it, while the writer
//! sleeps.

mod committer;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::{JoinHandle, ThreadId};

use jackdaw_storage::{CommitTicket, Environment};
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;

use self::committer::{Commit, Committer};
use crate::database::Shared;
use crate::error::{Error, Result};
use crate::transaction::{Transaction, WriterState};

/// Jobs in one storage transaction at most.
const BATCH_MAX: usize = 4096;
/// A transaction that has changed so many bytes of pages runs no more jobs: what remains is for the next one.
const CHANGED_MAX: u64 = 16 << 20;
/// While the journal is busy, the writer is woken for no fewer jobs: they would not be durable sooner.
const WOKEN_FOR_MIN: usize = 8;

/// The answer to a submitted job: a future, or [`Pending::wait`] on a plain thread. Dropping it does not undo the job.
#[must_use = "the job runs in any case; its answer says whether it could be done"]
pub struct Pending<T>(oneshot::Receiver<Result<T>>);

impl<T> Pending<T> {
    /// Waits for the answer, blocking the thread. Must not be called on a thread that drives tasks.
    pub fn wait(self) -> Result<T> {
        self.0.blocking_recv().unwrap_or_else(|_| Err(gone()))
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        Pin::new(&mut self.0).poll(context).map(|answer| answer.unwrap_or_else(|_| Err(gone())))
    }
}

fn gone() -> Error {
    Error::Closed("the database".to_owned())
}

/// A job in the queue.
trait Job: Send {
    /// Runs it; whether its changes are to stay.
    fn run(&mut self, transaction: &mut Transaction<'_>) -> bool;
    /// Answers; `failure` is the commit's. A job that failed by itself keeps its own error.
    fn answer(self: Box<Self>, failure: Option<&Error>);
}

struct ClosureJob<T, F> {
    run: Option<F>,
    outcome: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T: Send, F: FnOnce(&mut Transaction<'_>) -> Result<T> + Send> Job for ClosureJob<T, F> {
    fn run(&mut self, transaction: &mut Transaction<'_>) -> bool {
        let Some(run) = self.run.take() else { return false };
        let outcome = catch_unwind(AssertUnwindSafe(|| run(transaction)));
        let outcome = outcome.unwrap_or_else(|panic| Err(Error::Panicked(panic_text(&*panic))));
        let keep = outcome.is_ok();
        self.outcome = Some(outcome);
        keep
    }

    fn answer(self: Box<Self>, failure: Option<&Error>) {
        let answer = match (self.outcome, failure) {
            (Some(Err(error)), _) => Err(error),
            (_, Some(failure)) => Err(failure.clone()),
            (Some(outcome), None) => outcome,
            (None, None) => Err(gone()),
        };
        // Who asked may have gone.
        let _ = self.reply.send(answer);
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// The queue and the thread that empties it.
pub(crate) struct Merger {
    queue: Arc<Queue>,
    /// Locked by whoever runs jobs: the thread, but for [`Merger::submit_short`].
    writer: Arc<Mutex<Writer>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Queue {
    state: Mutex<QueueState>,
    /// Tells the writer what it waits for, see [`Idle`].
    came: Condvar,
    name: String,
}

#[derive(Default)]
struct QueueState {
    waiting: Vec<Box<dyn Job>>,
    idle: Idle,
    stopping: bool,
    /// Commits with the committer: those not durable yet, and those not answered yet.
    writing: usize,
    unanswered: usize,
    /// The committer's thread.
    committer: Option<ThreadId>,
}

/// What the sleeping writer is woken for.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Idle {
    /// It does not sleep.
    #[default]
    Not,
    /// For the first job, or because it is to stop.
    Jobs,
    /// For a number of jobs, or because the journal is free.
    Journal,
    /// Because the journal is free.
    Written,
    /// Because everything is answered.
    Answers,
}

impl Queue {
    /// Waits for jobs and takes them; `false` when there will be none any more.
    fn take(&self, batch: &mut Vec<Box<dyn Job>>) -> bool {
        let mut state = self.state.lock();
        while state.waiting.is_empty() {
            if state.stopping {
                return false;
            }
            state.idle = Idle::Jobs;
            self.came.wait(&mut state);
        }
        state.idle = Idle::Not;
        state.give(batch);
        true
    }

    /// Takes jobs, for which it waits as long as the journal is busy; `false` when that is free.
    fn take_while_writing(&self, batch: &mut Vec<Box<dyn Job>>) -> bool {
        let mut state = self.state.lock();
        while state.writing > 0 {
            let is_full = batch.len() >= BATCH_MAX;
            if state.waiting.len() >= WOKEN_FOR_MIN && !is_full {
                state.give(batch);
                return true;
            }
            state.idle = if is_full { Idle::Written } else { Idle::Journal };
            self.came.wait(&mut state);
            state.idle = Idle::Not;
        }
        false
    }

    /// Puts jobs back that were taken and not run.
    fn put_back(&self, jobs: std::vec::Drain<'_, Box<dyn Job>>) {
        if jobs.len() > 0 {
            self.state.lock().waiting.splice(0..0, jobs);
        }
    }

    /// Waits until the journal is free.
    fn wait_until_written(&self) {
        let mut state = self.state.lock();
        while state.writing > 0 {
            state.idle = Idle::Written;
            self.came.wait(&mut state);
            state.idle = Idle::Not;
        }
    }

    /// Waits until everything is answered.
    fn wait_until_answered(&self) {
        let mut state = self.state.lock();
        while state.unanswered > 0 {
            state.idle = Idle::Answers;
            self.came.wait(&mut state);
            state.idle = Idle::Not;
        }
    }

    /// Whether the committer has nothing to do, and nobody waits.
    fn is_quiet(&self) -> bool {
        let state = self.state.lock();
        state.unanswered == 0 && state.waiting.is_empty()
    }

    /// Ends a change of the state and wakes the writer if need be.
    fn leave(&self, mut state: MutexGuard<'_, QueueState>, wake: bool) {
        if wake {
            state.idle = Idle::Not;
        }
        drop(state);
        if wake {
            self.came.notify_one();
        }
    }
}

impl QueueState {
    fn give(&mut self, batch: &mut Vec<Box<dyn Job>>) {
        let room = BATCH_MAX.saturating_sub(batch.len());
        if batch.is_empty() && self.waiting.len() <= room {
            std::mem::swap(&mut self.waiting, batch);
        } else {
            batch.extend(self.waiting.drain(..room.min(self.waiting.len())));
        }
    }
}

impl Merger {
    /// Starts the writer's thread. Error: there can be no more threads.
    pub(crate) fn start(environment: Environment, shared: Arc<Shared>) -> Result<Merger> {
        let queue =
            Arc::new(Queue { state: Mutex::default(), came: Condvar::new(), name: shared.name.clone() });
        let state = WriterState::load(&environment)?;
        let writer = Writer {
            state,
            queue: queue.clone(),
            environment,
            shared,
            committer: None,
            jobs_before: 0,
            is_unsure: false,
        };
        let writer = Arc::new(Mutex::new(writer));
        let run = {
            let (queue, writer) = (queue.clone(), writer.clone());
            move || {
                let _ending = Ending(&queue);
                let mut batch = Vec::new();
                while queue.take(&mut batch) {
                    writer.lock().run(&mut batch);
                }
                // Waits until everything is answered.
                writer.lock().committer = None;
            }
        };
        let thread = std::thread::Builder::new()
            .name("jackdaw-writer".to_owned())
            .spawn(run)
            .map_err(|error| Error::InvalidOperation(format!("no thread for the writer: {error}")))?;
        Ok(Merger { queue, writer, thread: Mutex::new(Some(thread)) })
    }

    pub(crate) fn submit<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        let (reply, answer) = oneshot::channel();
        self.enqueue(Box::new(ClosureJob { run: Some(job), outcome: None, reply }));
        Pending(answer)
    }

    /// As [`Merger::submit`]; where nobody else writes it runs the job, and waits for the disk, before it returns.
    pub(crate) fn submit_short<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(ClosureJob { run: Some(job), outcome: None, reply });
        match self.lone_writer() {
            Some(mut writer) => writer.run(&mut vec![job]),
            None => self.enqueue(job),
        }
        Pending(answer)
    }

    /// The writer, when its thread sleeps, nothing waits for it or for the disk, and its last transaction had one job.
    fn lone_writer(&self) -> Option<MutexGuard<'_, Writer>> {
        let state = self.queue.state.lock();
        let sleeps = state.idle == Idle::Jobs && state.waiting.is_empty() && state.unanswered == 0;
        if !sleeps || state.stopping {
            return None;
        }
        // Under the queue's lock, so that the thread, which may be woken right after, finds the writer taken and waits.
        self.writer.try_lock().filter(|writer| writer.jobs_before <= 1)
    }

    fn enqueue(&self, job: Box<dyn Job>) {
        let mut state = self.queue.state.lock();
        if state.stopping {
            drop(state);
            job.answer(Some(&Error::Closed(self.queue.name.clone())));
            return;
        }
        state.waiting.push(job);
        let wake = match state.idle {
            Idle::Jobs => true,
            Idle::Journal => state.waiting.len() >= WOKEN_FOR_MIN,
            Idle::Not | Idle::Written | Idle::Answers => false,
        };
        self.queue.leave(state, wake);
    }

    pub(crate) fn queued(&self) -> usize {
        self.queue.state.lock().waiting.len()
    }

    /// Takes no more jobs, and waits until those submitted are done.
    pub(crate) fn stop(&self) {
        self.queue.state.lock().stopping = true;
        self.queue.came.notify_one();
        let thread = self.thread.lock().take();
        // The last handle may go in a job, on the writer's own thread, or in a watcher, on the committer's, for which the writer waits.
        let (own, committer) = (std::thread::current().id(), self.queue.state.lock().committer);
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != own && committer != Some(own))
            && thread.join().is_err()
        {
            tracing::error!(database = %self.queue.name, "the writer's thread panicked");
        }
    }
}

impl Drop for Merger {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The writer's thread runs. When it ends, even by a panic, nobody waits for it in vain.
struct Ending<'a>(&'a Queue);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.stopping = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        // Which answers that the database is gone.
        drop(waiting);
    }
}

/// What it takes to run jobs.
struct Writer {
    queue: Arc<Queue>,
    environment: Environment,
    shared: Arc<Shared>,
    state: WriterState,
    /// Made when it is first of use: most databases of a server with many are written to by one at a time, if at all.
    committer: Option<Committer>,
    /// Jobs of the last transaction.
    jobs_before: usize,
    /// A transaction was begun and did not come to its end: `state` may count what is not there.
    is_unsure: bool,
}

impl Writer {
    /// Runs the jobs of `batch`, or the first of them: the others go back to where they came from.
    fn run(&mut self, batch: &mut Vec<Box<dyn Job>>) {
        // Where one writes at a time, nothing is to be won by handing over.
        let lone = batch.len() == 1 && self.jobs_before <= 1 && self.queue.is_quiet();
        let hands_over = !lone && self.has_committer();
        if !hands_over {
            self.queue.wait_until_answered();
        }
        let mut run = 0;
        if std::mem::replace(&mut self.is_unsure, true) {
            self.reload();
        }
        let executed = self.execute(batch, &mut run, hands_over);
        self.is_unsure = false;
        self.queue.put_back(batch.drain(run..));
        self.jobs_before = run;
        let jobs = std::mem::take(batch);
        match executed {
            Ok(ticket) => {
                // Without a ticket nothing was written, counters neither.
                let told = ticket.is_some().then(|| self.state.queued());
                let commit = Commit { ticket, told, jobs };
                let refused = match self.committer.as_ref().filter(|_| hands_over) {
                    Some(committer) => committer.take(commit, &self.queue).err(),
                    None => Some(commit),
                };
                if let Some(commit) = refused {
                    *batch = commit.finish(&self.shared, || ());
                    if hands_over {
                        self.committer = None;
                    }
                }
            }
            Err(error) => {
                tracing::warn!(database = %self.shared.name, jobs = jobs.len(), %error, "a transaction failed");
                self.reload();
                for job in jobs {
                    job.answer(Some(&error));
                }
            }
        }
    }

    /// Forgets what was counted in memory for nothing.
    fn reload(&mut self) {
        // What it was built on is answered first, and read next.
        self.queue.wait_until_answered();
        if let Err(error) = self.state.reload(&self.environment) {
            tracing::error!(database = %self.shared.name, %error, "cannot read the last durable state");
        }
    }

    /// Whether there is a committer, which is made when there can be one.
    fn has_committer(&mut self) -> bool {
        // Without a background, whoever waits for a commit may have to flush too, for which no transaction may be open.
        if self.committer.is_none() && self.environment.options().background {
            self.committer = Committer::start(self.queue.clone(), self.shared.clone());
        }
        self.committer.is_some()
    }

    /// Runs the jobs in one storage transaction, with `goes_on` those too that come while the journal is busy, and commits it as far as
    /// possible without waiting. Says how many of the jobs it answers for. No ticket: none of them left anything to commit.
    fn execute(
        &mut self,
        batch: &mut Vec<Box<dyn Job>>,
        run: &mut usize,
        goes_on: bool,
    ) -> Result<Option<CommitTicket>> {
        *run = batch.len(); // all of them hear of it
        let mut storage = self.environment.write()?;
        *run = 0;
        let mut kept = false;
        loop {
            for job in &mut batch[*run..] {
                if storage.changed_size() >= CHANGED_MAX {
                    break;
                }
                *run += 1;
                let savepoint = storage.savepoint();
                let mark = self.state.mark();
                let keep = job.run(&mut Transaction::new(&mut storage, &self.shared, &mut self.state));
                if keep {
                    storage.release(savepoint)?;
                    kept = true;
                } else {
                    storage.rollback_to(savepoint)?;
                    self.state.return_to(mark);
                }
            }
            if !goes_on {
                break;
            }
            if *run < batch.len() {
                self.queue.wait_until_written();
                break;
            }
            if !self.queue.take_while_writing(batch) {
                break;
            }
        }
        if !kept {
            return Ok(None); // dropping the transaction undoes what failed jobs may have left
        }
        self.state.write_back(&mut storage, &self.shared)?;
        Ok(Some(storage.commit_when_waited_for()?))
    }
}
