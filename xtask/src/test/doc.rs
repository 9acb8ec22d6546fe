//! Doc tests: cargo runs them itself, and says how many there were.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::process;
use super::report::Report;

/// Compiling counts here, so the limit is generous.
const LIMIT: Duration = Duration::from_secs(900);

/// Runs the doc tests of the packages (of all default members when there are none given).
pub(super) fn run(root: &Path, packages: &[String], report: &mut Report) -> Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["test", "--doc", "--no-fail-fast"]);
    for package in packages {
        cargo.args(["-p", package]);
    }
    let outcome = process::run(&mut cargo, LIMIT);
    // A package that is only a program has no doc tests, which cargo takes for a mistake when it was named.
    if outcome.output.contains("no library targets found") {
        return Ok(());
    }
    let counts = Counts::parse(&outcome.output);
    report.add_counted("doc tests", counts.passed, counts.failed, counts.skipped, outcome);
    Ok(())
}

/// What the summary lines of a libtest program say, added up.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Counts {
    fn parse(output: &str) -> Counts {
        let mut counts = Counts::default();
        for line in output.lines().filter_map(|line| line.strip_prefix("test result: ")) {
            let words: Vec<&str> = line.split([' ', '.', ';']).filter(|word| !word.is_empty()).collect();
            for pair in words.windows(2) {
                let count = pair[0].parse().unwrap_or(0);
                match pair[1] {
                    "passed" => counts.passed += count,
                    "failed" => counts.failed += count,
                    "ignored" => counts.skipped += count,
                    _ => {}
                }
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summaries_of_all_crates_are_added_up() {
        let output = "running 3 tests\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.31s\n\
            test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.31s\n";
        assert_eq!(Counts::parse(output), Counts { passed: 7, failed: 2, skipped: 1 });
        assert_eq!(Counts::parse("error: could not compile"), Counts::default());
    }
}
