//! Running a test on many seeds, and saying how to replay the one that fails.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Which seeds to run.
///
/// From the environment: `SEED=7` runs just that one; `SEEDS=1000` so many from 0 on (`FIRST_SEED=n`: from `n` on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// The first one.
    pub first: u64,
    /// How many, counting up.
    pub count: u64,
}

impl Seeds {
    /// What the environment variables say, otherwise `count` seeds from 0 on. Panics when one is not a number, rather than running
    /// something else than was asked for.
    pub fn from_environment(count: u64) -> Seeds {
        if let Some(seed) = number("SEED") {
            return Seeds { first: seed, count: 1 };
        }
        Seeds { first: number("FIRST_SEED").unwrap_or(0), count: number("SEEDS").unwrap_or(count) }
    }

    /// Runs `test` on each seed, on all processors, and returns the results in no particular order. A test fails by returning an
    /// error or by panicking; then no new ones begin.
    ///
    /// Errors: the lowest failing seed that was run, what it said, and the command that replays it: `replay` with `{seed}` replaced.
    pub fn run<R: Send>(
        self,
        replay: &str,
        test: impl Fn(u64) -> Result<R, String> + Sync,
    ) -> Result<Vec<R>, String> {
        let threads =
            if self.count == 1 { 1 } else { thread::available_parallelism().map_or(1, usize::from) };
        let next = AtomicU64::new(0);
        let results = Mutex::new(Vec::new());
        let failure: Mutex<Option<(u64, String)>> = Mutex::new(None);
        let failed = || failure.lock().is_ok_and(|failure| failure.is_some());
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while !failed() {
                        let offset = next.fetch_add(1, Ordering::Relaxed);
                        if offset >= self.count {
                            break;
                        }
                        let seed = self.first.wrapping_add(offset);
                        let result = catch_unwind(AssertUnwindSafe(|| test(seed)))
                            .unwrap_or_else(|panic| Err(format!("panicked: {}", text_of(&*panic))));
                        match result {
                            Ok(result) => {
                                if let Ok(mut results) = results.lock() {
                                    results.push(result);
                                }
                            }
                            Err(message) => {
                                if let Ok(mut failure) = failure.lock()
                                    && failure.as_ref().is_none_or(|(lowest, _)| seed < *lowest)
                                {
                                    *failure = Some((seed, message));
                                }
                            }
                        }
                    }
                });
            }
        });
        match failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
            Some((seed, message)) => {
                let command = replay.replace("{seed}", &seed.to_string());
                Err(format!("seed {seed} failed: {message}\nreplay it with: {command}"))
            }
            None => Ok(results.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())),
        }
    }

    /// As [`Seeds::run`], for a test function: says what it ran, and panics when a seed fails.
    pub fn check<R: Send>(self, replay: &str, test: impl Fn(u64) -> Result<R, String> + Sync) -> Vec<R> {
        println!("seeds {}..{}", self.first, self.first.wrapping_add(self.count));
        match self.run(replay, test) {
            Ok(results) => results,
            #[expect(clippy::panic, reason = "this is how a test fails")]
            Err(message) => panic!("{message}"),
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        #[expect(clippy::panic, reason = "a misspelt seed must not run other seeds")]
        Err(_) => panic!("{variable} must be a number, not {text:?}"),
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("with something that is no text")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn all_seeds_run() {
        let mut seeds = Seeds { first: 5, count: 100 }.run("", Ok).unwrap();
        seeds.sort_unstable();
        assert_eq!(seeds, (5..105).collect::<Vec<_>>());
    }

    #[test]
    fn a_failing_seed_is_named_with_its_replay() {
        let seeds = Seeds { first: 0, count: 50 };
        let error =
            seeds.run("SEED={seed} make it", |seed| if seed == 7 { Err("odd".to_owned()) } else { Ok(()) });
        assert_eq!(error.unwrap_err(), "seed 7 failed: odd\nreplay it with: SEED=7 make it");
        let error =
            Seeds { first: 9, count: 1 }.run("", |seed| -> Result<(), String> { panic!("at {seed}") });
        assert!(error.unwrap_err().starts_with("seed 9 failed: panicked: at 9"));
    }
}
