//! The suites of the official clients as tests among the others: each case is counted, timed and named.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::process::{self, Outcome};
use super::report::Report;
use crate::clients;

/// All suites together, the first installation of the clients among it.
const LIMIT: Duration = Duration::from_secs(3600);

/// What `tests/clients/run.py` says about one case.
#[derive(Deserialize)]
struct Case {
    suite: String,
    area: String,
    case: String,
    /// `passed`, `failed`, `skipped`, or `difference`: failed, as it is expected to for a reason that is written down.
    outcome: String,
    seconds: f64,
    message: String,
}

/// Runs all suites against a server of ours.
pub(super) fn run(root: &Path, report: &mut Report) -> Result<()> {
    clients::build_server(root)?;
    let results = clients::results(root);
    // So that no results of an earlier run are taken for this one's.
    match std::fs::remove_file(&results) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let outcome = process::run(&mut clients::command(root), LIMIT);
    let Ok(text) = std::fs::read(&results) else {
        let failure = outcome.failure.or_else(|| Some("left no results".into()));
        report.add("clients", REPLAY, Outcome { failure, ..outcome });
        return Ok(());
    };
    let cases: Vec<Case> =
        serde_json::from_slice(&text).with_context(|| format!("cannot read {}", results.display()))?;
    for case in cases {
        add(case, report);
    }
    Ok(())
}

const REPLAY: &str = "cargo xtask clients";

fn add(case: Case, report: &mut Report) {
    let id = format!("{} {}: {}", case.suite, case.area, case.case);
    let kind = case.suite.split('-').next().unwrap_or_default();
    let replay = format!("{REPLAY} --{kind}");
    let duration = Duration::try_from_secs_f64(case.seconds).unwrap_or_default();
    match case.outcome.as_str() {
        "passed" => report.add(&id, &replay, Outcome { failure: None, duration, output: case.message }),
        "skipped" | "difference" => report.skip(),
        _ => report.add(
            &id,
            &replay,
            Outcome { failure: Some("failed".into()), duration, output: case.message },
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn every_outcome_is_counted() {
        let text = r#"[
            {"suite":"wire","area":"ids","case":"a","outcome":"passed","seconds":0,"message":""},
            {"suite":"wire","area":"ids","case":"b","outcome":"failed","seconds":0.5,"message":"status"},
            {"suite":"node-7.2.6","area":"bulk","case":"c","outcome":"difference","seconds":0,"message":"","reason":"why"},
            {"suite":"node-7.2.6","area":"bulk","case":"d","outcome":"skipped","seconds":0,"message":""}]"#;
        let mut report = Report::new(0);
        for case in serde_json::from_str::<Vec<Case>>(text).unwrap() {
            add(case, &mut report);
        }
        let mut out = Vec::new();
        assert!(!report.finish(&mut out).unwrap());
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains("failed: wire ids: b: failed\n"), "{out}");
        assert!(out.ends_with("1 passed, 1 failed, 2 skipped\n"), "{out}");
    }
}
