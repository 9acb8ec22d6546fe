//! `jackdaw import`, from starting the program to its end. No peer has a command for that.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::Options;
use crate::measure::{Run, children_cpu};
use crate::report::Outcome;
use crate::subject::Who;

/// How often the rows of a CSV file follow each other: 10 million rows of `flights`.
const REPETITIONS: usize = 30;

/// What is imported.
#[derive(Clone, Copy)]
pub(crate) enum Input {
    /// `NAME.ndjson.gz`.
    Lines(&'static str),
    /// The rows of `NAME.csv.gz`, [`REPETITIONS`] times in one file.
    Rows(&'static str),
}

/// Imports into a new database, `options.runs` times. An op is a document.
pub(crate) fn run(input: Input, folder: &Path, options: &Options) -> Result<Outcome> {
    let work = options.dir.join("import");
    std::fs::create_dir_all(&work).with_context(|| work.display().to_string())?;
    let (file, collection) = match input {
        Input::Lines(name) => (folder.join(format!("{name}.ndjson.gz")), name),
        Input::Rows(name) => (repeated_rows(&folder.join(format!("{name}.csv.gz")), &work)?, name),
    };
    let database = work.join("database");
    let mut runs = Vec::new();
    for _ in 0..options.runs.max(1) {
        if database.exists() {
            std::fs::remove_dir_all(&database)?;
        }
        let (cpu, start) = (children_cpu(), Instant::now());
        let output = Command::new(&options.server)
            .args(["import", "--json", "--collection", collection])
            .args([&database, &file])
            .output()
            .with_context(|| options.server.display().to_string())?;
        let seconds = start.elapsed().as_secs_f64();
        ensure!(output.status.success(), "jackdaw import: {}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout)?;
        let ops = report["documents"].as_u64().context("the report has no number of documents")?;
        runs.push(Run { ops, seconds, cpu: children_cpu() - cpu, ..Run::default() });
    }
    std::fs::remove_dir_all(&work)?;
    Ok(Outcome::of(Who::Ours, runs))
}

fn repeated_rows(path: &Path, folder: &Path) -> Result<PathBuf> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let mut text = BufReader::new(GzDecoder::new(file));
    let mut head = Vec::new();
    text.read_until(b'\n', &mut head)?;
    let mut rows = Vec::new();
    text.read_to_end(&mut rows)?;
    ensure!(rows.ends_with(b"\n"), "{}: the last row has no end", path.display());
    let target = folder.join("rows.csv");
    let mut out = BufWriter::new(File::create(&target)?);
    out.write_all(&head)?;
    for _ in 0..REPETITIONS {
        out.write_all(&rows)?;
    }
    out.into_inner()?.sync_all()?;
    Ok(target)
}
