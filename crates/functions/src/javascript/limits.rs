//! What a script may use, and who counts.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::RuntimeError;

/// The engine asks after so many steps, so limits are rounded up to it.
const STEPS_BETWEEN_QUESTIONS: u64 = 10_000;

/// What one run of a script may use. What goes beyond ends the run with an error and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls and turns of loops; in units of ten thousand, rounded up.
    pub steps: u64,
    /// Bytes that the engine of the thread may hold while the script runs, its own half a megabyte included.
    pub memory_bytes: usize,
    /// Time on the clock. It is looked at every ten thousand steps.
    pub time: Duration,
}

impl Limits {
    /// For patches, which run while other writes wait.
    pub const PATCH: Limits = Limits { steps: 100_000, memory_bytes: 64 << 20, time: Duration::from_secs(2) };
    /// For index functions and projections, a document at a time.
    pub const FUNCTION: Limits =
        Limits { steps: 1_000_000, memory_bytes: 128 << 20, time: Duration::from_secs(10) };

    /// The same with another number of steps.
    #[must_use]
    pub const fn with_steps(mut self, steps: u64) -> Limits {
        self.steps = steps;
        self
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::FUNCTION
    }
}

/// Counts the steps of the script that runs.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// How often the engine may still ask.
    questions_left: Cell<u64>,
    until: Cell<Option<Instant>>,
    exceeded: Cell<Option<(&'static str, u64)>>,
    limits: Cell<Option<Limits>>,
}

impl Budget {
    pub(super) fn begin(&self, limits: &Limits) {
        // The engine's own count goes on from the run before: its first question may come at once.
        self.questions_left.set(limits.steps.div_ceil(STEPS_BETWEEN_QUESTIONS).max(1));
        self.until.set(Instant::now().checked_add(limits.time));
        self.exceeded.set(None);
        self.limits.set(Some(*limits));
    }

    /// The engine asks whether it shall stop.
    pub(super) fn is_over(&self) -> bool {
        let Some(limits) = self.limits.get() else { return false };
        if self.exceeded.get().is_some() {
            return true;
        }
        match self.questions_left.get().checked_sub(1) {
            Some(left) => self.questions_left.set(left),
            None => self.exceeded.set(Some(("steps", limits.steps))),
        }
        if self.until.get().is_some_and(|until| Instant::now() >= until) {
            self.exceeded.set(Some(("milliseconds", limits.time.as_millis() as u64)));
        }
        self.exceeded.get().is_some()
    }

    /// What was exceeded, once.
    pub(super) fn end(&self) -> Option<RuntimeError> {
        self.limits.set(None);
        self.exceeded.take().map(|(what, limit)| RuntimeError::Limit { what, limit })
    }
}
