//! The second half of a commit, on a thread of its own: waiting for the disk, telling others, answering.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use jackdaw_storage::CommitTicket;

use super::{Idle, Job, Queue};
use crate::database::Shared;
use crate::error::Error;
use crate::transaction::Told;

/// A transaction that was executed: what remains to be done.
pub(super) struct Commit {
    /// `None`: it changed nothing.
    pub(super) ticket: Option<CommitTicket>,
    /// Who is told of what once it is durable.
    pub(super) told: Option<Told>,
    pub(super) jobs: Vec<Box<dyn Job>>,
}

impl Commit {
    /// Waits until it is durable, says so by `written`, then tells and answers. Returns the emptied list of jobs.
    pub(super) fn finish(mut self, shared: &Shared, written: impl FnOnce()) -> Vec<Box<dyn Job>> {
        let failure = self.ticket.and_then(|ticket| ticket.wait().err()).map(Error::from);
        written();
        match &failure {
            None => {
                // It is durable, whatever becomes of those who are told.
                let tell = AssertUnwindSafe(|| self.told.as_mut().map(|told| told.tell(shared)));
                if catch_unwind(tell).is_err() {
                    tracing::error!(database = %shared.name, "a listener to commits panicked");
                }
            }
            // The environment takes no more writes, as the next transaction will find.
            Some(error) => {
                tracing::warn!(database = %shared.name, jobs = self.jobs.len(), %error, "a commit failed");
            }
        }
        for job in self.jobs.drain(..) {
            job.answer(failure.as_ref());
        }
        self.jobs
    }
}

/// The thread, and the way to it.
pub(super) struct Committer {
    commits: Option<Sender<Counted>>,
    thread: Option<JoinHandle<()>>,
}

/// A commit on its way.
struct Counted {
    commit: Commit,
    written: Count,
    /// Dropped last.
    answered: Count,
}

impl Committer {
    /// Starts the thread; `None` when there can be no more threads.
    pub(super) fn start(queue: Arc<Queue>, shared: Arc<Shared>) -> Option<Committer> {
        let (commits, taken) = channel::<Counted>();
        let run = move || {
            queue.state.lock().committer = Some(std::thread::current().id());
            for Counted { commit, written, answered } in taken {
                commit.finish(&shared, || drop(written));
                drop(answered);
            }
        };
        let thread = std::thread::Builder::new().name("jackdaw-commits".to_owned()).spawn(run).ok()?;
        Some(Committer { commits: Some(commits), thread: Some(thread) })
    }

    /// Takes a commit over. They are finished in the order in which they come. Returns it when the thread is gone, by a panic.
    pub(super) fn take(&self, commit: Commit, queue: &Arc<Queue>) -> Result<(), Commit> {
        let Some(commits) = &self.commits else { return Err(commit) };
        let (written, answered) = (Count::new(queue, false), Count::new(queue, true));
        commits.send(Counted { commit, written, answered }).map_err(|refused| refused.0.commit)
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        drop(self.commits.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("a thread that waits for commits panicked");
        }
    }
}

/// While this lives, a commit counts as not written, or as not answered; so a panic that drops it keeps nobody waiting.
struct Count {
    queue: Arc<Queue>,
    is_answer: bool,
}

impl Count {
    fn new(queue: &Arc<Queue>, is_answer: bool) -> Count {
        let mut state = queue.state.lock();
        *(if is_answer { &mut state.unanswered } else { &mut state.writing }) += 1;
        drop(state);
        Count { queue: queue.clone(), is_answer }
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        let wake = if self.is_answer {
            state.unanswered -= 1;
            state.unanswered == 0 && state.idle == Idle::Answers
        } else {
            state.writing -= 1;
            state.writing == 0 && matches!(state.idle, Idle::Journal | Idle::Written)
        };
        self.queue.leave(state, wake);
    }
}
