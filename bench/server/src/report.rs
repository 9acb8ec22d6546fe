//! The table, and JSON lines.

use std::fs::File;
use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

use crate::Options;
use crate::measure::Run;
use crate::subject::Who;

/// What one workload showed of one subject.
pub(crate) struct Outcome {
    pub(crate) who: Who,
    /// The median run's figure, in `unit`.
    pub(crate) figure: f64,
    pub(crate) unit: &'static str,
    /// The figures of all runs.
    pub(crate) runs: Vec<f64>,
    /// Microseconds of the server's processor time for one op, in the median run.
    pub(crate) cpu_us: Option<f64>,
    /// The same of all runs.
    pub(crate) cpu_runs: Vec<f64>,
    /// The rest, by name.
    pub(crate) details: Value,
}

impl Outcome {
    /// The run with the median rate.
    pub(crate) fn of(who: Who, mut runs: Vec<Run>) -> Outcome {
        runs.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
        let run = &runs[runs.len() / 2];
        let us = |quantile| run.quantile(quantile).map(round);
        let mut details = json!({
            "p50_us": us(0.5), "p99_us": us(0.99), "p999_us": us(0.999),
            "written_bytes_per_op": round(run.written as f64 / run.ops.max(1) as f64),
            "driver_busy": round(run.driver_cpu / run.seconds),
        });
        if let Some((count, first)) = &run.errors {
            details["errors"] = json!(count);
            details["first_error"] = json!(first);
        }
        Outcome {
            who,
            figure: run.rate(),
            unit: "ops/s",
            runs: runs.iter().map(Run::rate).collect(),
            cpu_us: Some(run.cpu_us()),
            cpu_runs: runs.iter().map(Run::cpu_us).collect(),
            details,
        }
    }
}

/// Collects outcomes.
pub(crate) struct Report {
    bench: &'static str,
    /// What the peer is called.
    peer: String,
    out: Option<File>,
    rows: Vec<(String, Vec<Outcome>)>,
}

impl Report {
    pub(crate) fn new(bench: &'static str, options: &Options) -> Result<Report> {
        let out = options.out.as_deref().map(File::create).transpose()?;
        Ok(Report { bench, peer: options.peer_name.clone(), out, rows: Vec::new() })
    }

    pub(crate) fn add(&mut self, workload: &str, outcomes: Vec<Outcome>) -> Result<()> {
        for outcome in &outcomes {
            let figures = Some((workload.to_owned(), &outcome.runs, outcome.figure, outcome.unit));
            let cpu =
                outcome.cpu_us.map(|cpu_us| (format!("{workload}-cpu"), &outcome.cpu_runs, cpu_us, "us/op"));
            for (workload, runs, median, unit) in figures.into_iter().chain(cpu) {
                let least = runs.iter().copied().fold(median, f64::min);
                let most = runs.iter().copied().fold(median, f64::max);
                let line = json!({
                    "bench": self.bench, "workload": workload, "engine": self.name(outcome.who), "params": outcome.details,
                    "median": round(median), "min": round(least), "max": round(most), "runs": runs.len(), "unit": unit,
                });
                self.write(&line)?;
            }
        }
        self.rows.push((workload.to_owned(), outcomes));
        Ok(())
    }

    fn write(&mut self, line: &Value) -> Result<()> {
        match &mut self.out {
            Some(file) => writeln!(file, "{line}")?,
            None => eprintln!("{line}"),
        }
        Ok(())
    }

    pub(crate) fn print(&self) {
        println!("| workload | unit | ours | other | ours/other | CPU us/op, ours | other | ours/other |");
        println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
        for (workload, outcomes) in &self.rows {
            let ours = outcomes.iter().find(|outcome| outcome.who == Who::Ours);
            let other = outcomes.iter().find(|outcome| outcome.who != Who::Ours);
            let unit = ours.or(other).map_or("", |outcome| outcome.unit);
            let cells = [
                ours.map(|outcome| outcome.figure),
                other.map(|outcome| outcome.figure),
                ours.zip(other).map(|(ours, other)| ours.figure / other.figure),
                ours.and_then(|outcome| outcome.cpu_us),
                other.and_then(|outcome| outcome.cpu_us),
                ours.zip(other).and_then(|(ours, other)| Some(ours.cpu_us? / other.cpu_us?)),
            ];
            let cells = cells.map(|cell| cell.map_or(String::new(), |value| round(value).to_string()));
            println!("| {workload} | {unit} | {} |", cells.join(" | "));
        }
    }

    fn name(&self, who: Who) -> &str {
        match who {
            Who::Ours => "jackdaw",
            Who::Peer => &self.peer,
            Who::Hello => "hyper",
        }
    }
}

/// Enough digits to compare.
pub(crate) fn round(value: f64) -> Value {
    let scale = if value.abs() >= 100.0 { 1.0 } else { 100.0 };
    json!((value * scale).round() / scale)
}
