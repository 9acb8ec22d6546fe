//! What a run of the tests found, as it goes and at the end.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;

use super::process::Outcome;

/// How many of the slowest tests are named at the end.
const SLOWEST_COUNT: usize = 10;

/// The results so far.
pub(super) struct Report {
    passed: usize,
    failed: Vec<String>,
    skipped: usize,
    durations: Vec<(Duration, String)>,
}

impl Report {
    /// Starts with the tests that will not be run.
    pub(super) fn new(skipped: usize) -> Report {
        Report { passed: 0, failed: Vec::new(), skipped, durations: Vec::new() }
    }

    /// Takes in one test, and prints it at once when it failed.
    pub(super) fn add(&mut self, id: &str, replay: &str, outcome: Outcome) {
        match outcome.failure {
            None => self.passed += 1,
            Some(failure) => {
                println!("---- {id}: {failure} after {:.2} s", outcome.duration.as_secs_f64());
                println!("{}", outcome.output.trim_end());
                println!("---- again: {replay}\n");
                self.failed.push(format!("{id}: {failure}"));
            }
        }
        self.durations.push((outcome.duration, id.to_owned()));
    }

    /// Takes in a test that was not run, or whose failure is expected and explained.
    pub(super) fn skip(&mut self) {
        self.skipped += 1;
    }

    /// Takes in tests that another program ran and counted. A failure without a count, as when they do not compile,
    /// counts as one.
    pub(super) fn add_counted(
        &mut self,
        id: &str,
        passed: usize,
        failed: usize,
        skipped: usize,
        outcome: Outcome,
    ) {
        self.passed += passed;
        self.skipped += skipped;
        if let Some(failure) = outcome.failure {
            println!("---- {id}: {failure}\n{}\n", outcome.output.trim_end());
            self.failed.extend(std::iter::repeat_n(format!("{id}: {failure}"), failed.max(1)));
        }
    }

    /// Prints the ten slowest, the failures, and the counts as the last line; returns whether all passed.
    pub(super) fn finish(mut self, out: &mut impl Write) -> Result<bool> {
        self.durations.sort_by(|a, b| b.cmp(a));
        writeln!(out, "the slowest tests:")?;
        for (duration, id) in self.durations.iter().take(SLOWEST_COUNT) {
            writeln!(out, "{:9.2} s  {id}", duration.as_secs_f64())?;
        }
        for failure in &self.failed {
            writeln!(out, "failed: {failure}")?;
        }
        writeln!(out, "{} passed, {} failed, {} skipped", self.passed, self.failed.len(), self.skipped)?;
        Ok(self.failed.is_empty())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    fn outcome(milliseconds: u64, failure: Option<&str>) -> Outcome {
        let duration = Duration::from_millis(milliseconds);
        Outcome { failure: failure.map(str::to_owned), duration, output: String::new() }
    }

    fn finish(report: Report) -> (bool, String) {
        let mut text = Vec::new();
        let all_passed = report.finish(&mut text).unwrap();
        (all_passed, String::from_utf8(text).unwrap())
    }

    #[test]
    fn the_last_line_counts_and_the_slowest_come_first() {
        let mut report = Report::new(2);
        for i in 0..20 {
            report.add(&format!("test {i}"), "", outcome(i, None));
        }
        let (all_passed, text) = finish(report);
        assert!(all_passed);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 1 + SLOWEST_COUNT + 1);
        assert!(lines[1].ends_with("test 19") && lines[10].ends_with("test 10"), "{text}");
        assert_eq!(lines[11], "20 passed, 0 failed, 2 skipped");
    }

    #[test]
    fn failures_are_named_and_counted() {
        let mut report = Report::new(0);
        report.add("a", "", outcome(1, Some("failed")));
        report.add_counted("doc tests", 3, 0, 1, outcome(1, Some("does not compile")));
        let (all_passed, text) = finish(report);
        assert!(!all_passed);
        assert!(text.contains("failed: a: failed\n"));
        assert!(text.ends_with("3 passed, 2 failed, 1 skipped\n"), "{text}");
    }
}
