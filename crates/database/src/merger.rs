//! The transaction merger: writes of many requests in one storage transaction, one after the other, each answered when it is durable.
//!
//! A database has one writer thread. It takes everything that waits, runs each job in a savepoint of its own, commits, answers all, and
//! starts over; what arrives while it writes goes into the next transaction. So a lone write costs one write to the
//! journal, and a thousand at once cost little more. (The storage engine's own `submit` does the same with the callers' threads; requests
//! here are tasks, which must not block.)

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use jackdaw_storage::Environment;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::database::Shared;
use crate::error::{Error, Result};
use crate::transaction::{Transaction, WriterState};

/// Jobs in one storage transaction at most.
const BATCH_MAX: usize = 4096;

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
    writer: Mutex<Option<JoinHandle<()>>>,
}

struct Queue {
    state: Mutex<QueueState>,
    /// Tells the writer that something came, or that it is to stop.
    came: Condvar,
    name: String,
}

#[derive(Default)]
struct QueueState {
    waiting: Vec<Box<dyn Job>>,
    /// The writer sleeps: whoever comes wakes it.
    idle: bool,
    stopping: bool,
}

impl Merger {
    /// Starts the writer's thread. Error: there can be no more threads.
    pub(crate) fn start(environment: Environment, shared: Arc<Shared>) -> Result<Merger> {
        let queue =
            Arc::new(Queue { state: Mutex::default(), came: Condvar::new(), name: shared.name.clone() });
        let writer =
            Writer { state: WriterState::load(&environment)?, queue: queue.clone(), environment, shared };
        let thread = std::thread::Builder::new()
            .name("jackdaw-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(|error| Error::InvalidOperation(format!("no thread for the writer: {error}")))?;
        Ok(Merger { queue, writer: Mutex::new(Some(thread)) })
    }

    pub(crate) fn submit<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        let (reply, answer) = oneshot::channel();
        let mut state = self.queue.state.lock();
        if state.stopping {
            drop(state);
            let _ = reply.send(Err(Error::Closed(self.queue.name.clone())));
            return Pending(answer);
        }
        state.waiting.push(Box::new(ClosureJob { run: Some(job), outcome: None, reply }));
        let wake = std::mem::take(&mut state.idle);
        drop(state);
        if wake {
            self.queue.came.notify_one();
        }
        Pending(answer)
    }

    pub(crate) fn queued(&self) -> usize {
        self.queue.state.lock().waiting.len()
    }

    /// Takes no more jobs, and waits until those submitted are done.
    pub(crate) fn stop(&self) {
        self.queue.state.lock().stopping = true;
        self.queue.came.notify_one();
        let thread = self.writer.lock().take();
        // The last handle may go in a job, on the writer's own thread.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id())
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

/// What the writer's thread owns.
struct Writer {
    queue: Arc<Queue>,
    environment: Environment,
    shared: Arc<Shared>,
    state: WriterState,
}

impl Writer {
    fn run(mut self) {
        let mut batch = Vec::new();
        loop {
            {
                let mut state = self.queue.state.lock();
                while state.waiting.is_empty() {
                    if state.stopping {
                        return;
                    }
                    state.idle = true;
                    self.queue.came.wait(&mut state);
                }
                state.idle = false;
                if state.waiting.len() <= BATCH_MAX {
                    std::mem::swap(&mut state.waiting, &mut batch);
                } else {
                    batch.extend(state.waiting.drain(..BATCH_MAX));
                }
            }
            let failure = self.execute(&mut batch).err();
            match &failure {
                None => self.state.committed(&self.shared),
                Some(error) => {
                    tracing::warn!(database = %self.shared.name, jobs = batch.len(), %error, "a transaction failed");
                    // What was counted in memory was for nothing.
                    if let Err(error) = self.state.reload(&self.environment) {
                        tracing::error!(database = %self.shared.name, %error, "cannot read the last durable state");
                    }
                }
            }
            for job in batch.drain(..) {
                job.answer(failure.as_ref());
            }
        }
    }

    /// Runs the jobs in one storage transaction and makes it durable.
    fn execute(&mut self, batch: &mut [Box<dyn Job>]) -> Result<()> {
        let mut storage = self.environment.write()?;
        let mut kept = false;
        for job in batch.iter_mut() {
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
        if !kept {
            return Ok(()); // dropping the transaction undoes what failed jobs may have left
        }
        self.state.write_back(&mut storage, &self.shared)?;
        storage.commit()?;
        Ok(())
    }
}
