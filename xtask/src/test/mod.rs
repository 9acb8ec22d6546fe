//! The test runner: builds all test programs, asks each for its tests, runs every test in a process of its own, as many
//! at a time as there are cores, and reports.
//!
//! A process each, because a crash, a leaked thread or a changed signal mask then belongs to one test, and because a
//! hanging test can be killed and named. What always holds:
//! - every test found is run, or counted as skipped; none is counted twice;
//! - a test that neither ends nor fails within its limit is killed with everything it started, and reported by name;
//! - the last line printed is `N passed, N failed, N skipped`.

mod build;
mod clients;
mod doc;
mod process;
mod report;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use build::TestCase;
use report::Report;

/// A test that runs longer than this hangs. Fifty times what an ordinary test may take, for machines under load.
const LIMIT: Duration = Duration::from_secs(60);

/// The same for tests that say they are slow.
const LIMIT_SLOW: Duration = Duration::from_secs(900);

/// Which tests the caller wants.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Leave out slow tests.
    fast: bool,
    /// Run the suites of the official clients too. They need what a plain checkout does not (Python, Node, Maven, a network once).
    clients: bool,
    /// Packages to build and run; empty means the workspace's default members.
    packages: Vec<String>,
    /// Parts of names; empty means all tests. Doc tests run only when this is empty.
    filters: Vec<String>,
}

impl Selection {
    /// Reads the command line after `test`.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Selection> {
        let mut selection = Selection::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--fast" => selection.fast = true,
                "--clients" => selection.clients = true,
                "-p" | "--package" => selection.packages.push(words.next().context("-p wants a package")?),
                _ if word.starts_with('-') => bail!("unknown option {word}"),
                _ => selection.filters.push(word),
            }
        }
        Ok(selection)
    }

    /// Whether to run a test that was asked for; otherwise it counts as skipped.
    fn runs(&self, case: &TestCase) -> bool {
        !(case.ignored || self.fast && case.is_slow())
    }

    /// Whether a test is asked for at all.
    fn names(&self, case: &TestCase) -> bool {
        let id = case.id();
        self.filters.is_empty() || self.filters.iter().any(|filter| id.contains(filter.as_str()))
    }
}

/// Builds and runs; `Ok(false)` when a test failed. An error means that the tests could not be run.
pub(crate) fn run(root: &Path, selection: &Selection) -> Result<bool> {
    let mut cases = build::test_cases(root, &selection.packages)?;
    cases.retain(|case| selection.names(case));
    let (mut cases, skipped): (Vec<_>, Vec<_>) = cases.into_iter().partition(|case| selection.runs(case));
    // The slow ones first, so that the last minute is not one slow test and idle cores.
    cases.sort_by_key(|case| !case.is_slow());

    let report = Mutex::new(Report::new(skipped.len()));
    let next = AtomicUsize::new(0);
    let workers = thread::available_parallelism().map_or(2, |n| n.get());
    thread::scope(|scope| {
        for _ in 0..workers.min(cases.len()) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let limit = if case.is_slow() { LIMIT_SLOW } else { LIMIT };
                    let outcome = process::run(&mut case.command(), limit);
                    let mut report = report.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    report.add(&case.id(), &case.replay(), outcome);
                }
            });
        }
    });
    let mut report = report.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if selection.filters.is_empty() {
        doc::run(root, &selection.packages, &mut report)?;
    }
    if selection.clients {
        clients::run(root, &mut report)?;
    }
    report.finish(&mut std::io::stdout().lock())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    fn parse(line: &str) -> Result<Selection> {
        Selection::parse(line.split_whitespace().map(str::to_owned))
    }

    fn case(target: &str, name: &str) -> TestCase {
        TestCase { target: target.into(), name: name.into(), ..TestCase::default() }
    }

    #[test]
    fn the_command_line_is_read() {
        let selection = parse("--fast -p storage btree -p cli").unwrap();
        assert!(selection.fast);
        assert_eq!(selection.packages, ["storage", "cli"]);
        assert_eq!(selection.filters, ["btree"]);
        assert!(parse("--clients").unwrap().clients);
        assert!(parse("--quick").is_err());
        assert!(parse("-p").is_err());
    }

    #[test]
    fn fast_leaves_out_slow_tests_and_nothing_else() {
        let (all, fast) = (parse("").unwrap(), parse("--fast").unwrap());
        for slow in
            [case("kill", "slow_fifty_rounds"), case("slow_kill", "fifty_rounds"), case("x", "slow::a")]
        {
            assert!(all.runs(&slow) && !fast.runs(&slow), "{}", slow.id());
        }
        for quick in [case("x", "page::slowly_growing"), case("x", "not_slow_at_all")] {
            assert!(all.runs(&quick) && fast.runs(&quick), "{}", quick.id());
        }
    }

    #[test]
    fn an_ignored_test_is_skipped_even_when_all_run() {
        let mut ignored = case("x", "million_seeds");
        ignored.ignored = true;
        assert!(!parse("").unwrap().runs(&ignored));
    }

    #[test]
    fn a_filter_looks_at_the_whole_name() {
        let kill = case("kill", "fifty_rounds");
        assert!(parse("kill").unwrap().names(&kill));
        assert!(parse("nothing fifty").unwrap().names(&kill));
        assert!(!parse("nothing").unwrap().names(&kill));
    }
}
