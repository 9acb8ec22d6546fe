//! `jackdaw import`: documents from files into a database.

mod arguments;
mod findings;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use jackdaw_database::{Database, DatabaseOptions};
use jackdaw_server::dumps::TakenIndexes;
use jackdaw_smuggler::{Imported, Progress, Report, import};

pub(crate) use self::arguments::Arguments;
use self::findings::{Findings, Input};
use crate::exit;
use crate::indexes::indexes_of;
use crate::progress::Shown;
use crate::remote::DatabaseUrl;

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let started = Instant::now();
    let target = Target::open(&arguments.database)?;
    let mut findings = Findings::new(arguments.show_refused);
    let mut failure = None;
    for path in &arguments.files {
        let Done { name, read_bytes, report, failure: stopped } = import_file(&target, path, &arguments)?;
        findings.inputs.push(Input { name: name.clone(), read_bytes, report });
        if let Some(error) = stopped {
            failure = Some(error.context(format!("{name}: the import stopped")));
            break;
        }
    }
    // Part of what was measured: nothing is left to do when the rate is told.
    let closed = target.close();
    findings.finish(started.elapsed());
    arguments.format.print(&findings)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    closed?;
    Ok(if findings.has_refused() { exit::REFUSED.into() } else { ExitCode::SUCCESS })
}

/// Where the documents go.
enum Target {
    /// A database in a directory, with its indexes.
    Directory(Database, TakenIndexes),
    /// A database of a running server.
    Server(DatabaseUrl),
}

impl Target {
    fn open(database: &Path) -> Result<Target> {
        if let Some(url) = DatabaseUrl::parse(database)? {
            return Ok(Target::Server(url));
        }
        let name = database.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let database = Database::open(database, &name, DatabaseOptions::default())
            .with_context(|| format!("cannot open the database {}", database.display()))?;
        let taken = TakenIndexes { indexes: indexes_of(&database)?, remove_analyzers: false };
        Ok(Target::Directory(database, taken))
    }

    fn close(self) -> Result<()> {
        match self {
            Target::Directory(database, taken) => {
                taken.indexes.close();
                database.close().context("cannot close the database")
            }
            Target::Server(_) => Ok(()),
        }
    }
}

/// What became of a file.
struct Done {
    name: String,
    read_bytes: u64,
    report: Report,
    failure: Option<anyhow::Error>,
}

fn import_file(target: &Target, path: &Path, arguments: &Arguments) -> Result<Done> {
    let (name, size, input): (String, Option<u64>, Box<dyn Read + Send>) = if path.as_os_str() == "-" {
        ("standard input".to_owned(), None, Box::new(io::stdin()))
    } else {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
        let about = file.metadata().with_context(|| format!("cannot look at {name}"))?;
        (name, about.is_file().then_some(about.len()), Box::new(file))
    };
    match target {
        Target::Directory(database, indexes) => {
            let format = arguments.format_of(path)?;
            let progress = Progress::default();
            let shown = Shown::import(&name, &progress, size);
            let Imported { report, failure } =
                import(database, Some(indexes), input, &format, &arguments.options(), &progress);
            drop(shown);
            let read_bytes = progress.read_bytes();
            Ok(Done { name, read_bytes, report, failure: failure.map(Into::into) })
        }
        Target::Server(url) => {
            let query = arguments.query_of(path)?;
            let sent = Arc::new(AtomicU64::new(0));
            let shown = Shown::upload(&name, &sent, size);
            let outcome = url.import(input, &query, &sent);
            drop(shown);
            let read_bytes = sent.load(Ordering::Relaxed);
            let (report, failure) = match outcome {
                Ok(report) => (report, None),
                Err(error) => (Report::default(), Some(error)),
            };
            Ok(Done { name, read_bytes, report, failure })
        }
    }
}
