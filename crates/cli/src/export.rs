//! `jackdaw export`: a database as a dump.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::ValueEnum;
use jackdaw_database::{Database, DatabaseOptions};
use jackdaw_indexing::Indexes;
use jackdaw_server::dumps::{analyzers_of_record, index_items};
use jackdaw_smuggler::{DumpCompression, ExportOptions, ExportReport, Progress, export};
use serde::Serialize;

use crate::bytes;
use crate::indexes::indexes_of;
use crate::output;
use crate::progress::Shown;
use crate::remote::DatabaseUrl;

/// Arguments of the command.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The database: its directory, which no server may have open, or the URL of one of a running server
    /// (http://HOST:PORT/databases/NAME)
    database: PathBuf,
    /// The dump to write, which must not exist yet; `-` is standard output
    file: PathBuf,
    /// How it is compressed
    #[arg(long, value_enum, default_value_t = Compression::Gzip)]
    compression: Compression,
    /// Export only documents of this collection; may be given again
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Export tombstones too
    #[arg(long)]
    tombstones: bool,
    /// Leave out definitions of indexes
    #[arg(long)]
    no_indexes: bool,
    /// Leave out the analyzers of their fields
    #[arg(long)]
    remove_analyzers: bool,
    /// Leave out identities
    #[arg(long)]
    no_identities: bool,
    /// Leave out compare-exchange values
    #[arg(long)]
    no_compare_exchange: bool,
    #[command(flatten)]
    format: output::Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Compression {
    /// Every server reads it
    Gzip,
    /// Smaller and faster
    Zstd,
    /// Not compressed
    None,
}

impl Arguments {
    fn options(&self, name: &str, indexes: &Indexes) -> ExportOptions {
        ExportOptions {
            documents: true,
            tombstones: self.tombstones,
            indexes: (!self.no_indexes).then(|| index_items(indexes, self.remove_analyzers)),
            identities: !self.no_identities,
            compare_exchange: !self.no_compare_exchange,
            collections: self.only.clone(),
            compression: match self.compression {
                Compression::Gzip => DumpCompression::Gzip,
                Compression::Zstd => DumpCompression::Zstd,
                Compression::None => DumpCompression::None,
            },
            database_record: Some(
                serde_json::json!({ "DatabaseName": name, "Analyzers": analyzers_of_record(indexes) })
                    .to_string()
                    .into_bytes(),
            ),
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    if let Some(url) = DatabaseUrl::parse(&arguments.database)? {
        return run_remote(&url, &arguments);
    }
    let started = Instant::now();
    let directory = &arguments.database;
    // Opening makes what is not there; nobody exports that.
    anyhow::ensure!(directory.is_dir(), "there is no database in {}", directory.display());
    let name = directory.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let database = Database::open(directory, &name, DatabaseOptions::default())
        .with_context(|| format!("cannot open the database {}", directory.display()))?;
    let indexes = indexes_of(&database)?;
    let options = arguments.options(&name, &indexes);
    let progress = Progress::default();
    let count = database.read()?.document_count()?;
    let shown = Shown::export(&name, &progress, count);
    let outcome = if arguments.file.as_os_str() == "-" {
        export(&database, io::stdout().lock(), &options, &progress).map_err(Into::into)
    } else {
        export_to_file(&database, &arguments.file, &options, &progress)
    };
    drop(shown);
    indexes.close();
    database.close().context("cannot close the database")?;
    let findings = Findings { report: outcome?, seconds: started.elapsed().as_secs_f64() };
    if arguments.file.as_os_str() != "-" {
        arguments.format.print(&findings)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Has a server export, and writes what it sends.
fn run_remote(url: &DatabaseUrl, arguments: &Arguments) -> Result<ExitCode> {
    if !matches!(arguments.compression, Compression::Gzip) {
        anyhow::bail!("--compression works on a directory; a server's dumps are gzip'd");
    }
    let mut types = vec!["DatabaseRecord", "Documents"];
    let also = [
        (arguments.tombstones, "Tombstones"),
        (!arguments.no_indexes, "Indexes"),
        (!arguments.no_identities, "Identities"),
        (!arguments.no_compare_exchange, "CompareExchange"),
    ];
    types.extend(also.iter().filter(|(is_asked, _)| *is_asked).map(|(_, name)| *name));
    let options = serde_json::json!({ "OperateOnTypes": types.join(","), "Collections": arguments.only, "RemoveAnalyzers": arguments.remove_analyzers });
    let mut dump = url.export(&options)?;
    if arguments.file.as_os_str() == "-" {
        io::copy(&mut dump, &mut io::stdout().lock()).context("the dump could not be taken whole")?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = &arguments.file;
    let mut file = File::create_new(path).with_context(|| format!("cannot create {}", path.display()))?;
    let copied = io::copy(&mut dump, &mut file).and_then(|size| file.sync_all().map(|()| size));
    if copied.is_err() {
        fs::remove_file(path).ok();
    }
    let size = copied.context("the dump could not be taken whole")?;
    println!("{}: {}", path.display(), bytes::size(size));
    Ok(ExitCode::SUCCESS)
}

/// A dump that is not whole does not stay.
fn export_to_file(
    database: &Database,
    path: &Path,
    options: &ExportOptions,
    progress: &Progress,
) -> Result<ExportReport> {
    let file = File::create_new(path).with_context(|| format!("cannot create {}", path.display()))?;
    let mut out = &file;
    let outcome = export(database, &mut out, options, progress)
        .map_err(anyhow::Error::from)
        .and_then(|report| file.sync_all().map(|()| report).context("the dump cannot be written"));
    if outcome.is_err() {
        out.flush().ok();
        fs::remove_file(path).ok();
    }
    outcome.with_context(|| format!("cannot export to {}", path.display()))
}

struct Findings {
    report: ExportReport,
    seconds: f64,
}

impl output::Findings for Findings {
    fn text(&self) -> String {
        let ExportReport {
            documents,
            text_bytes,
            tombstones,
            indexes,
            identities,
            compare_exchange,
            last_etag,
        } = self.report;
        output::aligned(&[
            ("documents", format!("{documents} ({} of text)", bytes::size(text_bytes))),
            ("tombstones", tombstones.to_string()),
            ("indexes", indexes.to_string()),
            ("identities", identities.to_string()),
            ("compare-exchange", compare_exchange.to_string()),
            ("last etag", last_etag.to_string()),
            ("rate", format!("{:.0} documents/s", documents as f64 / self.seconds.max(1e-6))),
        ])
    }
}

impl Serialize for Findings {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = &self.report;
        serde_json::json!({
            "documents": report.documents,
            "text_bytes": report.text_bytes,
            "tombstones": report.tombstones,
            "indexes": report.indexes,
            "identities": report.identities,
            "compare_exchange": report.compare_exchange,
            "last_etag": report.last_etag,
            "seconds": self.seconds,
        })
        .serialize(serializer)
    }
}
