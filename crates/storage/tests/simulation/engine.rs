//! What the simulation asks of an engine: little enough that a trivial stand-in can show that the simulation notices mistakes.

use jackdaw_storage::disk::SimulatedDisk;
use jackdaw_testkit::{Model, Operation, Outcome, Random, Structure};

/// Why a call failed, in words for the report.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "shown when a history goes wrong")]
pub enum Failure {
    /// The disk is full; nothing was changed, and the environment goes on.
    Full(String),
    /// The environment takes no more writes until it is opened anew.
    Failed(String),
    /// Something else.
    Other(String),
}

/// Opens environments.
pub trait Engine: Sync {
    /// An open environment.
    type Environment: Environment;

    /// Opens the environment on a disk, and makes it when there is none. `habits` chooses the options.
    fn open(&self, disk: &SimulatedDisk, habits: &mut Random) -> Result<Self::Environment, Failure>;
}

/// One open environment.
pub trait Environment {
    /// A read transaction.
    type Read<'e>: Read
    where
        Self: 'e;
    /// A write transaction.
    type Write<'e>: Write<Ticket = Self::Ticket>
    where
        Self: 'e;

    /// A commit whose record is on its way.
    type Ticket;

    /// Opens a snapshot.
    fn read(&self) -> Result<Self::Read<'_>, Failure>;

    /// Begins a write transaction.
    fn write(&self) -> Result<Self::Write<'_>, Failure>;

    /// Waits until the commit is durable.
    fn wait(&self, ticket: Self::Ticket) -> Result<(), Failure>;

    /// Brings what is committed into the data file.
    fn flush(&self) -> Result<(), Failure>;

    /// Walks everything; the broken invariants it finds.
    fn check(&self) -> Result<Vec<String>, Failure>;

    /// Closes in good order.
    fn close(self) -> Result<(), Failure>;
}

/// One snapshot.
pub trait Read {
    /// All that the snapshot holds, walked with cursors, forwards or backwards.
    fn contents(&self, backwards: bool) -> Result<Model, Failure>;

    /// Looks up some keys of a structure that should hold just `expected`, by all ways there are; the first wrong answer.
    fn probe(&self, name: &str, expected: &Structure, random: &mut Random)
    -> Result<Option<String>, Failure>;
}

/// One write transaction.
pub trait Write: Read + Sized {
    /// A place to go back to.
    type Savepoint;
    /// See [`Environment::Ticket`].
    type Ticket;

    /// Makes one change.
    fn apply(&mut self, operation: &Operation) -> Result<Outcome, Failure>;

    /// Marks a place.
    fn savepoint(&mut self) -> Result<Self::Savepoint, Failure>;

    /// Goes back to it.
    fn rollback_to(&mut self, savepoint: Self::Savepoint) -> Result<(), Failure>;

    /// Keeps what was done since, together with what was done before.
    fn release(&mut self, savepoint: Self::Savepoint) -> Result<(), Failure>;

    /// Returns when the transaction is durable.
    fn commit(self) -> Result<(), Failure>;

    /// Commits without waiting; the next transaction builds on this one.
    fn commit_later(self) -> Result<Self::Ticket, Failure>;

    /// Forgets the transaction.
    fn rollback(self) -> Result<(), Failure>;
}
