//! `jackdaw import`: documents from files into a database.

mod arguments;
mod findings;

use std::fs::File;
use std::io::{self, Read};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use jackdaw_database::{Database, DatabaseOptions};
use jackdaw_smuggler::{Imported, Progress, import};

pub(crate) use self::arguments::Arguments;
use self::findings::{Findings, Input};
use crate::exit;
use crate::progress::Shown;

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let started = Instant::now();
    let database = open(&arguments)?;
    let mut findings = Findings::new(arguments.show_refused);
    let mut failure = None;
    for path in &arguments.files {
        let imported = import_file(&database, path, &arguments)?;
        let (name, progress, Imported { report, failure: stopped }) = imported;
        findings.inputs.push(Input { name: name.clone(), read_bytes: progress.read_bytes(), report });
        if let Some(error) = stopped {
            failure = Some(anyhow::Error::new(error).context(format!("{name}: the import stopped")));
            break;
        }
    }
    // Part of what was measured: nothing is left to do when the rate is told.
    let closed = database.close().context("cannot close the database");
    findings.finish(started.elapsed());
    arguments.format.print(&findings)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    closed?;
    Ok(if findings.refused() > 0 { exit::REFUSED.into() } else { ExitCode::SUCCESS })
}

fn open(arguments: &Arguments) -> Result<Database> {
    let directory = &arguments.database;
    let name = directory.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    Database::open(directory, &name, DatabaseOptions::default())
        .with_context(|| format!("cannot open the database {}", directory.display()))
}

fn import_file(
    database: &Database,
    path: &std::path::Path,
    arguments: &Arguments,
) -> Result<(String, Progress, Imported)> {
    let progress = Progress::default();
    let (name, size, input): (String, Option<u64>, Box<dyn Read + Send>) = if path.as_os_str() == "-" {
        ("standard input".to_owned(), None, Box::new(io::stdin()))
    } else {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
        let about = file.metadata().with_context(|| format!("cannot look at {name}"))?;
        (name, about.is_file().then_some(about.len()), Box::new(file))
    };
    let format = arguments.format_of(path)?;
    let options = arguments.options();
    let shown = Shown::import(&name, &progress, size);
    let imported = import(database, input, &format, &options, &progress);
    drop(shown);
    Ok((name, progress, imported))
}
