//! When a simulated disk fails: rules over the count of its calls.

use std::io;

use rustix::io::Errno;

use super::chance::Chance;

/// What happens instead of a call's success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call fails with `EIO`. A failed write may have changed some of its sectors; a failed sync may have lost any of the
    /// changes it should have made durable, and no later sync makes that good.
    Eio,
    /// The call fails with `ENOSPC`. A failed write, growth or creation changes nothing; a failed sync is as with [`Fault::Eio`],
    /// since a file system that finds space only then has lost the data.
    Enospc,
    /// The power goes off during the call: it and all later ones fail. What it was doing may be done, half done or
    /// not done; `SimulatedDisk::crash` says.
    Crash,
}

/// The calls of `Disk` and `File` that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named like the methods")]
pub enum Call {
    Lock,
    Open,
    /// [`Call::Open`], of a file that did not exist.
    Create,
    Exists,
    List,
    CreateDirectory,
    Rename,
    Remove,
    SyncDirectory,
    Len,
    ReadAt,
    WriteAt,
    WriteDirect,
    WriteDurable,
    Sync,
    Allocate,
    Truncate,
    Prewrite,
    Map,
}

impl Call {
    /// Whether the call changes something or makes changes durable.
    pub fn is_mutating(self) -> bool {
        !matches!(
            self,
            Call::Lock | Call::Open | Call::Exists | Call::List | Call::Len | Call::ReadAt | Call::Map
        )
    }

    /// Whether the call only makes earlier changes durable.
    pub fn is_sync(self) -> bool {
        matches!(self, Call::Sync | Call::SyncDirectory)
    }
}

/// One counted call, for finding out what number is what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedCall {
    /// What was called.
    pub call: Call,
    /// On which file or directory.
    pub name: String,
    /// The fault that struck it.
    pub fault: Option<Fault>,
}

#[derive(Clone, Copy)]
enum When {
    Call(u64),
    CallsFrom(u64),
    MutatingCall(u64),
    MutatingCallsFrom(u64),
}

/// Counts calls and decides which fail.
#[derive(Default)]
pub(super) struct Faults {
    calls: u64,
    mutating_calls: u64,
    struck: Vec<TracedCall>,
    rules: Vec<(When, Fault)>,
    random: Option<(Chance, u32, Vec<Fault>)>,
    trace: Option<Vec<TracedCall>>,
    crashed: bool,
}

impl Faults {
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    pub(super) fn mutating_calls(&self) -> u64 {
        self.mutating_calls
    }

    pub(super) fn struck(&self) -> &[TracedCall] {
        &self.struck
    }

    pub(super) fn fail_at(&mut self, number: u64, fault: Fault) {
        self.rules.push((When::Call(number), fault));
    }

    pub(super) fn fail_from(&mut self, number: u64, fault: Fault) {
        self.rules.push((When::CallsFrom(number), fault));
    }

    pub(super) fn fail_at_mutating(&mut self, number: u64, fault: Fault) {
        self.rules.push((When::MutatingCall(number), fault));
    }

    pub(super) fn fail_from_mutating(&mut self, number: u64, fault: Fault) {
        self.rules.push((When::MutatingCallsFrom(number), fault));
    }

    pub(super) fn fail_randomly(&mut self, seed: u64, per_million: u32, faults: &[Fault]) {
        assert!(!faults.is_empty(), "there must be a fault to choose");
        self.random = Some((Chance::new(seed), per_million, faults.to_vec()));
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
        self.random = None;
    }

    pub(super) fn set_trace(&mut self) {
        self.trace.get_or_insert_default();
    }

    pub(super) fn take_trace(&mut self) -> Vec<TracedCall> {
        self.trace.take().unwrap_or_default()
    }

    pub(super) fn has_crashed(&self) -> bool {
        self.crashed
    }

    /// Counts a call and says what fault strikes it; an error when the power is off.
    pub(super) fn count(&mut self, call: Call, name: &str) -> io::Result<Option<Fault>> {
        if self.crashed {
            return Err(power_is_off());
        }
        self.calls += 1;
        self.mutating_calls += u64::from(call.is_mutating());
        let (calls, mutating_calls, mutating) = (self.calls, self.mutating_calls, call.is_mutating());
        let rule = self.rules.iter().find(|(when, _)| match *when {
            When::Call(number) => calls == number,
            When::CallsFrom(number) => calls >= number,
            When::MutatingCall(number) => mutating && mutating_calls == number,
            When::MutatingCallsFrom(number) => mutating && mutating_calls >= number,
        });
        let mut fault = rule.map(|(_, fault)| *fault);
        if let (None, Some((chance, per_million, faults))) = (fault, &mut self.random)
            && chance.below(1_000_000) < u64::from(*per_million)
        {
            fault = Some(faults[chance.below(faults.len() as u64) as usize]);
        }
        if let Some(trace) = &mut self.trace {
            trace.push(TracedCall { call, name: name.to_owned(), fault });
        }
        if fault.is_some() {
            self.struck.push(TracedCall { call, name: name.to_owned(), fault });
        }
        self.crashed = fault == Some(Fault::Crash);
        Ok(fault)
    }
}

/// The error of a call that a fault struck.
pub(super) fn error_of(fault: Fault) -> io::Error {
    match fault {
        Fault::Eio => Errno::IO.into(),
        Fault::Enospc => Errno::NOSPC.into(),
        Fault::Crash => power_is_off(),
    }
}

fn power_is_off() -> io::Error {
    io::Error::other("the simulated machine has lost power")
}
