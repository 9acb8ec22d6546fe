//! One history from one seed: an environment on a simulated disk lives through random changes, failures and power losses, and
//! a plain model beside it says what it must hold at each moment.
//!
//! What is checked:
//! - every call answers as the model does;
//! - a snapshot shows what was committed when it was opened, however much happens since;
//! - after each power loss, death of the process or failure, the environment opens and holds every acknowledged commit, and of one whose
//!   commit did not return, all or nothing;
//! - `check` finds nothing;
//! - a full disk changes nothing and the environment goes on.

use std::fmt;

use jackdaw_storage::disk::SimulatedDisk;
use jackdaw_storage::disk::simulated::Fault;
use jackdaw_testkit::{Model, Random, StructureKind, Workload};

use super::engine::{Engine, Environment, Failure, Read, Write};

/// What happened in a history.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Changes made.
    pub operations: u64,
    /// Commits that were acknowledged. Every one was found again after each opening.
    pub commits: u64,
    /// Power losses.
    pub power_losses: u64,
    /// Deaths of the process alone.
    pub kills: u64,
    /// Calls that failed on purpose.
    pub faults: u64,
    /// Openings that succeeded.
    pub openings: u64,
    /// Commits without an answer that were found to be there.
    pub unacknowledged_found: u64,
    /// Times a snapshot was compared with its model.
    pub snapshots_compared: u64,
}

impl Tally {
    /// Adds another history's.
    pub fn add(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.commits += other.commits;
        self.power_losses += other.power_losses;
        self.kills += other.kills;
        self.faults += other.faults;
        self.openings += other.openings;
        self.unacknowledged_found += other.unacknowledged_found;
        self.snapshots_compared += other.snapshots_compared;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} changes, {} acknowledged commits, 0 lost, {} power losses, {} kills, {} failed calls, {} openings, \
             {} unacknowledged commits found whole, {} snapshots compared",
            self.operations,
            self.commits,
            self.power_losses,
            self.kills,
            self.faults,
            self.openings,
            self.unacknowledged_found,
            self.snapshots_compared
        )
    }
}

/// How a life of the environment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It is closed.
    Close,
    /// The process dies; the system goes on.
    Kill,
    /// The power goes off between two calls.
    PowerLoss,
    /// The power goes off during some call.
    PowerLossDuring,
    /// Some call fails, and then one of the other ends comes.
    Fails(Fault),
}

/// Runs the history of a seed. `kinds` are the structures it uses; `verbose` prints each step.
///
/// Errors: the first thing that was wrong.
pub fn run<E: Engine>(
    engine: &E,
    seed: u64,
    kinds: &[StructureKind],
    verbose: bool,
) -> Result<Tally, String> {
    let mut random = Random::new(seed);
    let mut workload = Workload::new(&mut random, kinds);
    workload.size_edges = vec![512, 8152, 8160, 16_000, 256 << 10];
    let disk = SimulatedDisk::new(random.next_u64());
    if random.one_in(4) {
        disk.set_direct(false);
    }
    let mut history = History {
        engine,
        disk,
        random,
        workload,
        acknowledged: Model::default(),
        pending: Vec::new(),
        struck_before: 0,
        tally: Tally::default(),
        verbose,
    };
    let lives = 2 + history.random.below(8);
    for _ in 0..lives {
        history.live()?;
    }
    history.disk.clear_faults();
    history.verify_after_opening()?;
    Ok(history.tally)
}

struct History<'a, E> {
    engine: &'a E,
    disk: SimulatedDisk,
    random: Random,
    workload: Workload,
    /// What the last acknowledged commit made of the environment.
    acknowledged: Model,
    /// What the commits since, whose outcome nobody knows, would make of it, in order.
    pending: Vec<Model>,
    /// Faults that struck this disk in earlier lives.
    struck_before: u64,
    tally: Tally,
    verbose: bool,
}

/// Why a session ended early, when that is no mistake.
enum Stop {
    /// The power went off.
    PowerIsOff,
    /// The environment takes no more writes, as it should after a fault.
    Failed,
    /// Something was wrong.
    Wrong(String),
}

impl From<String> for Stop {
    fn from(wrong: String) -> Stop {
        Stop::Wrong(wrong)
    }
}

/// Commits made without waiting: with how many of the pending ones are durable when it is.
type Tickets<E> = Vec<(<<E as Engine>::Environment as Environment>::Ticket, usize)>;

macro_rules! step {
    ($history:expr, $($text:tt)*) => {
        if $history.verbose {
            println!("[call {}] {}", $history.disk.calls(), format_args!($($text)*));
        }
    };
}

impl<E: Engine> History<'_, E> {
    /// One life: from opening to an end of some sort.
    fn live(&mut self) -> Result<(), String> {
        let end = match self.random.weighted(&[2, 2, 2, 6, 2, 2]) {
            0 => End::Close,
            1 => End::Kill,
            2 => End::PowerLoss,
            3 => End::PowerLossDuring,
            4 => End::Fails(Fault::Eio),
            _ => End::Fails(Fault::Enospc),
        };
        self.struck_before = self.disk.faults_struck();
        // Some strike while the environment is being opened, most later.
        let bits = 3 + self.random.below(8);
        let number = 1 + self.random.skewed(bits) as u64;
        let fault = match end {
            End::PowerLossDuring => Some(Fault::Crash),
            End::Fails(fault) => Some(fault),
            _ => None,
        };
        step!(self, "---- a life that ends with {end:?}, fault at {number}");
        if let Some(fault) = fault {
            self.disk.fail_at(self.disk.calls() + number, fault);
            self.tally.faults += 1;
        }
        let result = self.open_and_work(end);
        for struck in self.disk.struck().iter().skip(self.struck_before as usize) {
            step!(self, "(the fault struck {:?} of {})", struck.call, struck.name);
        }
        match result {
            Ok(()) => {}
            Err(Stop::Wrong(wrong)) => return Err(wrong),
            Err(Stop::PowerIsOff) => step!(self, "the power is off"),
            Err(Stop::Failed) => step!(self, "the environment takes no more writes"),
        }
        self.disk.clear_faults();
        let next = match end {
            _ if self.disk.has_crashed() => End::PowerLoss,
            End::Fails(_) => [End::Kill, End::PowerLoss, End::Close][self.random.below(3)],
            End::PowerLossDuring => End::PowerLoss,
            end => end,
        };
        let seed = self.random.next_u64();
        match next {
            End::PowerLoss => {
                self.tally.power_losses += 1;
                self.disk = self.disk.crash(seed).map_err(|error| error.to_string())?;
            }
            End::Kill => {
                self.tally.kills += 1;
                self.disk = self.disk.snapshot().map_err(|error| error.to_string())?;
            }
            _ => {}
        }
        Ok(())
    }

    fn open_and_work(&mut self, end: End) -> Result<(), Stop> {
        let environment = match self.engine.open(&self.disk, &mut self.random) {
            Ok(environment) => environment,
            Err(failure) => {
                self.excuse("open", failure)?;
                // Nothing is known to be lost: the next life opens it without faults, or with others.
                return Err(Stop::Failed);
            }
        };
        self.tally.openings += 1;
        self.recognise(&environment)?;
        let result = self.work(&environment);
        if end == End::Close && result.is_ok() {
            step!(self, "close");
            if let Err(failure) = environment.close() {
                self.excuse("close", failure)?;
            }
        }
        result
    }

    /// Whether a fault struck in this life.
    fn faults_struck(&self) -> bool {
        self.disk.faults_struck() > self.struck_before
    }

    /// A failure is all right when a fault struck; otherwise it is a mistake.
    fn excuse(&self, doing: &str, failure: Failure) -> Result<(), Stop> {
        if self.disk.has_crashed() {
            return Err(Stop::PowerIsOff);
        }
        if self.faults_struck() {
            step!(self, "{doing} failed: {failure:?}");
            return Ok(());
        }
        Err(Stop::Wrong(format!("{doing} failed though no call did: {failure:?}")))
    }

    /// Finds out which of the possible states an opened environment holds.
    fn recognise(&mut self, environment: &E::Environment) -> Result<(), Stop> {
        let backwards = self.random.one_in(2);
        let found = match environment.read().and_then(|snapshot| snapshot.contents(backwards)) {
            Ok(found) => found,
            Err(failure) => {
                self.excuse("reading after opening", failure)?;
                return Err(Stop::Failed);
            }
        };
        let known = if self.acknowledged == found {
            Some(0)
        } else {
            self.pending.iter().position(|model| *model == found).map(|index| index + 1)
        };
        match known {
            Some(0) => {}
            Some(index) => {
                self.tally.unacknowledged_found += 1;
                step!(self, "the unacknowledged commit {index} of {} is there", self.pending.len());
                self.acknowledged = self.pending.swap_remove(index - 1);
            }
            None => {
                let mut wrong = "after opening".to_owned();
                if let Some(struck) = self.disk.struck().get(self.struck_before as usize) {
                    wrong += &format!(" ({:?} struck {:?} of {})", struck.fault, struck.call, struck.name);
                }
                if let Some(difference) = self.acknowledged.difference(&found) {
                    wrong += &format!(", compared with the last acknowledged commit: {difference}");
                }
                for (index, pending) in self.pending.iter().enumerate() {
                    if let Some(difference) = pending.difference(&found) {
                        wrong += &format!("; with the unacknowledged commit {}: {difference}", index + 1);
                    }
                }
                return Err(Stop::Wrong(wrong));
            }
        }
        self.pending.clear();
        self.check(environment)
    }

    fn check(&mut self, environment: &E::Environment) -> Result<(), Stop> {
        match environment.check() {
            Ok(broken) => match broken.first() {
                None => Ok(()),
                Some(first) => {
                    Err(Stop::Wrong(format!("check finds {} broken invariants: {first}", broken.len())))
                }
            },
            Err(failure) => self.excuse("check", failure),
        }
    }

    /// Transactions, snapshots and flushes in one open environment.
    fn work(&mut self, environment: &E::Environment) -> Result<(), Stop> {
        let mut snapshots: Vec<(<E::Environment as Environment>::Read<'_>, Model)> = Vec::new();
        let mut tickets = Tickets::<E>::new();
        let bits = 2 + self.random.below(7);
        let steps = 1 + self.random.skewed(bits);
        for _ in 0..steps {
            match self.random.weighted(&[10, 3, 3, 2, 2, 1, 2]) {
                0 => self.transact(environment, &mut tickets)?,
                6 if !tickets.is_empty() => self.wait(environment, &mut tickets)?,
                1 if snapshots.len() < 4 => {
                    step!(self, "open a snapshot");
                    match environment.read() {
                        Ok(snapshot) => {
                            let model = self.shown(&snapshot, &mut tickets)?;
                            snapshots.push((snapshot, model));
                        }
                        Err(failure) => self.excuse("opening a snapshot", failure)?,
                    }
                }
                2 if !snapshots.is_empty() => {
                    let at = self.random.below(snapshots.len());
                    self.compare(&snapshots[at].0, &snapshots[at].1.clone(), "a snapshot")?;
                }
                3 if !snapshots.is_empty() => {
                    step!(self, "close a snapshot");
                    let at = self.random.below(snapshots.len());
                    drop(snapshots.swap_remove(at));
                }
                4 => {
                    step!(self, "flush");
                    if let Err(failure) = environment.flush() {
                        self.excuse("flush", failure)?;
                    }
                }
                5 => {
                    step!(self, "check");
                    self.check(environment)?;
                }
                _ => {}
            }
        }
        for (snapshot, model) in &snapshots {
            self.compare(snapshot, model, "a snapshot at the end")?;
        }
        Ok(())
    }

    /// Holds a view against its model.
    fn compare(&mut self, view: &impl Read, model: &Model, what: &str) -> Result<(), Stop> {
        self.tally.snapshots_compared += 1;
        let backwards = self.random.one_in(2);
        step!(self, "compare {what}{}", if backwards { " backwards" } else { "" });
        match view.contents(backwards) {
            Ok(found) => {
                if let Some(difference) = model.difference(&found) {
                    return Err(Stop::Wrong(format!("{what} differs: {difference}")));
                }
            }
            Err(failure) => self.excuse("reading", failure)?,
        }
        for (name, structure) in model.structures() {
            match view.probe(name, structure, &mut self.random) {
                Ok(None) => {}
                Ok(Some(wrong)) => return Err(Stop::Wrong(format!("{what}, {name}: {wrong}"))),
                Err(failure) => self.excuse("looking up", failure)?,
            }
        }
        Ok(())
    }

    /// One write transaction.
    fn transact(&mut self, environment: &E::Environment, tickets: &mut Tickets<E>) -> Result<(), Stop> {
        step!(self, "begin");
        let mut transaction = match environment.write() {
            Ok(transaction) => transaction,
            Err(Failure::Failed(_)) if self.faults_struck() => return Err(Stop::Failed),
            Err(failure) => return self.excuse("beginning a transaction", failure),
        };
        let mut model = self.latest().clone();
        let mut savepoints = Vec::new();
        let bits = 2 + self.random.below(7);
        let operations = self.random.skewed(bits);
        for _ in 0..operations {
            if self.random.one_in(20) && savepoints.len() < 4 {
                step!(self, "  savepoint");
                match transaction.savepoint() {
                    Ok(savepoint) => savepoints.push((savepoint, model.clone())),
                    Err(failure) => return self.excuse("making a savepoint", failure),
                }
            }
            if self.random.one_in(25)
                && let Some((savepoint, before)) = savepoints.pop()
            {
                let result = if self.random.one_in(2) {
                    step!(self, "  back to the savepoint");
                    model = before;
                    transaction.rollback_to(savepoint)
                } else {
                    step!(self, "  release the savepoint");
                    transaction.release(savepoint)
                };
                if let Err(failure) = result {
                    return self.excuse("ending a savepoint", failure);
                }
            }
            let operation = self.workload.next(&mut self.random, &model);
            step!(self, "  {operation:?}");
            match transaction.apply(&operation) {
                Ok(outcome) => {
                    let expected = model.apply(&operation);
                    if outcome != expected {
                        return Err(Stop::Wrong(format!(
                            "{operation:?}: {outcome:?} instead of {expected:?}"
                        )));
                    }
                    self.tally.operations += 1;
                }
                Err(failure) => {
                    self.excuse(&format!("{operation:?}"), failure)?;
                    step!(self, "roll back");
                    if let Err(failure) = transaction.rollback() {
                        self.excuse("rolling back", failure)?;
                    }
                    return self.compare_newest(environment);
                }
            }
        }
        if self.random.one_in(6) {
            self.compare(&transaction, &model, "the transaction")?;
        }
        if self.random.one_in(6) {
            step!(self, "roll back");
            if let Err(failure) = transaction.rollback() {
                self.excuse("rolling back", failure)?;
            }
            return self.compare_newest(environment);
        }
        let later = self.random.one_in(4);
        step!(self, "commit{}", if later { " later" } else { "" });
        let result = if later {
            transaction.commit_later().map(|ticket| tickets.push((ticket, self.pending.len() + 1)))
        } else {
            transaction.commit()
        };
        match result {
            Ok(()) => {
                self.pending.push(model);
                self.tally.commits += 1;
                if !later {
                    // Whoever is durable, so is all that it was built on.
                    tickets.clear();
                    self.acknowledge(self.pending.len());
                }
                if self.random.one_in(10) { self.compare_newest(environment) } else { Ok(()) }
            }
            Err(Failure::Full(text)) if self.faults_struck() && !self.disk.has_crashed() => {
                step!(self, "the disk is full: {text}");
                self.compare_newest(environment)
            }
            Err(failure) => {
                self.pending.push(model);
                self.after_failed_commit(environment, failure, self.pending.len() - 1)
            }
        }
    }

    /// Waits for a commit made without waiting.
    fn wait(&mut self, environment: &E::Environment, tickets: &mut Tickets<E>) -> Result<(), Stop> {
        let (ticket, count) = tickets.swap_remove(self.random.below(tickets.len()));
        step!(self, "wait for a commit");
        match environment.wait(ticket) {
            Ok(()) => {
                tickets.retain(|(_, other)| *other > count);
                self.acknowledge(count);
                tickets.iter_mut().for_each(|(_, other)| *other -= count);
                Ok(())
            }
            Err(failure) => self.after_failed_commit(environment, failure, count - 1),
        }
    }

    /// What the next transaction builds on.
    fn latest(&self) -> &Model {
        self.pending.last().unwrap_or(&self.acknowledged)
    }

    /// The first `count` pending commits are durable.
    fn acknowledge(&mut self, count: usize) {
        if let Some(last) = self.pending.drain(..count).next_back() {
            self.acknowledged = last;
        }
    }

    /// After a commit that failed, nobody knows whether it is durable: it is not shown, and nothing more is written. The `before` pending
    /// ones before it may have become durable.
    fn after_failed_commit(
        &mut self,
        environment: &E::Environment,
        failure: Failure,
        before: usize,
    ) -> Result<(), Stop> {
        self.excuse("commit", failure)?;
        match environment.read() {
            Ok(snapshot) => {
                let model = self.model_of(&snapshot, before)?.1;
                self.compare(&snapshot, &model, "the newest snapshot after a failed commit")?;
            }
            Err(failure) => self.excuse("opening a snapshot", failure)?,
        }
        match environment.write() {
            Err(Failure::Failed(_)) => Err(Stop::Failed),
            Err(failure) => Err(Stop::Wrong(format!("after a failed commit, begin says {failure:?}"))),
            Ok(_) => Err(Stop::Wrong("after a failed commit, another transaction may begin".to_owned())),
        }
    }

    /// A new snapshot shows the last acknowledged commit, or a pending one that has become durable since.
    fn compare_newest(&mut self, environment: &E::Environment) -> Result<(), Stop> {
        match environment.read() {
            Ok(snapshot) => {
                let model = self.model_of(&snapshot, self.pending.len())?.1;
                self.compare(&snapshot, &model, "the newest snapshot")
            }
            Err(failure) => self.excuse("opening a snapshot", failure),
        }
    }

    /// The model of a new snapshot. What it shows is durable, so the commits up to there count as acknowledged.
    fn shown(&mut self, snapshot: &impl Read, tickets: &mut Tickets<E>) -> Result<Model, Stop> {
        let (count, model) = self.model_of(snapshot, self.pending.len())?;
        if count > 0 {
            self.acknowledge(count);
            tickets.retain(|(_, other)| *other > count);
            tickets.iter_mut().for_each(|(_, other)| *other -= count);
        }
        Ok(model)
    }

    /// Which of the possible states a new snapshot shows: how many pending commits it has, `count_max` at most, and its model.
    fn model_of(&mut self, snapshot: &impl Read, count_max: usize) -> Result<(usize, Model), Stop> {
        if count_max == 0 {
            return Ok((0, self.acknowledged.clone()));
        }
        match snapshot.contents(false) {
            Ok(found) => {
                if found == self.acknowledged {
                    return Ok((0, found));
                }
                match self.pending[..count_max].iter().position(|model| *model == found) {
                    Some(index) => Ok((index + 1, found)),
                    None => {
                        let difference = self.acknowledged.difference(&found).unwrap_or_default();
                        Err(Stop::Wrong(format!("a new snapshot shows no state there was: {difference}")))
                    }
                }
            }
            Err(failure) => {
                self.excuse("reading", failure)?;
                Ok((0, self.acknowledged.clone()))
            }
        }
    }

    /// Opens once more, without faults.
    fn verify_after_opening(&mut self) -> Result<(), String> {
        step!(self, "---- the last opening");
        let wrong = |stop| match stop {
            Stop::Wrong(wrong) => wrong,
            Stop::PowerIsOff | Stop::Failed => "the last opening failed".to_owned(),
        };
        let environment = self
            .engine
            .open(&self.disk, &mut self.random)
            .map_err(|failure| format!("opening: {failure:?}"))?;
        self.tally.openings += 1;
        self.recognise(&environment).map_err(wrong)?;
        self.compare_newest(&environment).map_err(wrong)?;
        environment.close().map_err(|failure| format!("closing: {failure:?}"))
    }
}
