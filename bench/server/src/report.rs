//! The table, and JSON lines.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use crate::subject::Who;
use crate::workload::Workload;

/// What one workload showed of one subject.
pub(crate) struct Outcome {
    pub(crate) who: Who,
    /// The median run's figure, in `unit`.
    pub(crate) figure: f64,
    pub(crate) unit: &'static str,
    /// The figures of all runs.
    pub(crate) runs: Vec<f64>,
    /// Microseconds of the server's processor time for one op.
    pub(crate) cpu_us: Option<f64>,
    /// The rest, by name.
    pub(crate) details: Value,
}

/// Collects outcomes.
pub(crate) struct Report {
    out: Option<File>,
    rows: Vec<(&'static Workload, Vec<Outcome>)>,
}

impl Report {
    pub(crate) fn new(out: Option<&Path>) -> Result<Report> {
        Ok(Report { out: out.map(File::create).transpose()?, rows: Vec::new() })
    }

    pub(crate) fn add(&mut self, workload: &'static Workload, outcomes: Vec<Outcome>) -> Result<()> {
        for outcome in &outcomes {
            let line = json!({
                "bench": "server", "workload": workload.name, "subject": name(outcome.who),
                "median": round(outcome.figure), "runs": outcome.runs.iter().map(|run| round(*run)).collect::<Vec<_>>(),
                "unit": outcome.unit, "details": outcome.details,
            });
            self.write(&line)?;
            if let Some(cpu_us) = outcome.cpu_us {
                let line = json!({
                    "bench": "server", "workload": format!("{}-cpu", workload.name), "subject": name(outcome.who),
                    "median": round(cpu_us), "unit": "us/op",
                });
                self.write(&line)?;
            }
        }
        self.rows.push((workload, outcomes));
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
            println!("| {} | {unit} | {} |", workload.name, cells.join(" | "));
        }
    }
}

fn name(who: Who) -> &'static str {
    match who {
        Who::Ours => "jackdaw",
        Who::Peer => "peer",
        Who::Hello => "hyper",
    }
}

/// Enough digits to compare.
pub(crate) fn round(value: f64) -> Value {
    let scale = if value.abs() >= 100.0 { 1.0 } else { 100.0 };
    json!((value * scale).round() / scale)
}
