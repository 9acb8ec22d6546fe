//! The second half of a commit, on a thread of its own: waiting for the disk, telling others, answering.

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
    pub(super) told: Told,
    pub(super) jobs: Vec<Box<dyn Job>>,
}

impl Commit {
    /// Waits until it is durable, says so by `written`, then tells and answers. Returns the emptied list of jobs.
    pub(super) fn finish(mut self, shared: &Shared, written: impl FnOnce()) -> Vec<Box<dyn Job>> {
        let failure = self.ticket.and_then(|ticket| ticket.wait().err()).map(Error::from);
        written();
        match &failure {
            None => self.told.tell(shared),
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
    commits: Option<Sender<Commit>>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// Starts the thread; `None` when there can be no more threads.
    pub(super) fn start(queue: Arc<Queue>, shared: Arc<Shared>) -> Option<Committer> {
        let (commits, taken) = channel::<Commit>();
        let run = move || {
            for commit in taken {
                let _answered = Counted { queue: &queue, is_answer: true };
                let written = Counted { queue: &queue, is_answer: false };
                commit.finish(&shared, || drop(written));
            }
        };
        let thread = std::thread::Builder::new().name("jackdaw-commits".to_owned()).spawn(run).ok()?;
        Some(Committer { commits: Some(commits), thread: Some(thread) })
    }

    /// Takes a commit over. They are finished in the order in which they come.
    pub(super) fn take(&self, commit: Commit, queue: &Queue) {
        let mut state = queue.state.lock();
        state.writing += 1;
        state.unanswered += 1;
        drop(state);
        if let Some(commits) = &self.commits
            && let Err(refused) = commits.send(commit)
        {
            // The thread is gone, by a panic. Dropping the jobs answers that the database is.
            drop(refused);
            drop(Counted { queue, is_answer: false });
            drop(Counted { queue, is_answer: true });
        }
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

/// A commit that counts as not written, or as not answered, until this is dropped; a panic does that, too.
struct Counted<'a> {
    queue: &'a Queue,
    is_answer: bool,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        let wake = if self.is_answer {
            state.unanswered -= 1;
            state.unanswered == 0 && state.idle == Idle::Answers
        } else {
            state.writing -= 1;
            state.writing == 0 && state.idle == Idle::Journal
        };
        self.queue.leave(state, wake);
    }
}
