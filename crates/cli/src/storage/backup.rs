//! `jackdaw storage backup`: the newest durable state, into a new directory or as one stream.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use jackdaw_storage::{Environment, TransactionId};
use serde::Serialize;

use super::open_read_only;
use crate::output::{Findings, Format};

/// Bytes written to a stream at once.
const BUFFER_SIZE: usize = 1 << 20;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The environment's directory
    dir: PathBuf,
    /// The backup's directory, empty or not there yet: an environment that can be opened
    #[arg(required_unless_present = "stream")]
    to: Option<PathBuf>,
    /// Write one stream, for `restore`, to this file (which must not exist), or to standard output for `-`
    #[arg(long, conflicts_with = "to", value_name = "FILE")]
    stream: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct BackedUp {
    transaction: u64,
}

/// Writes the backup and prints which transaction it holds.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let env = open_read_only(&arguments.dir)?;
    let to_output = arguments.stream.as_deref() == Some(Path::new("-"));
    let transaction = match (&arguments.to, &arguments.stream) {
        (Some(to), _) => env.backup(to)?,
        (None, Some(_)) if to_output => {
            ensure!(!io::stdout().is_terminal(), "a backup is no text: send it to a file or a program");
            let mut out = BufWriter::with_capacity(BUFFER_SIZE, io::stdout().lock());
            let transaction = env.backup_to(&mut out)?;
            out.flush().context("cannot write to standard output")?;
            transaction
        }
        (None, Some(file)) => to_file(&env, file)?,
        (None, None) => anyhow::bail!("neither a directory nor a file to write to was given"),
    };
    env.close()?;
    // Standard output holds the backup itself then.
    if !to_output {
        arguments.format.print(&BackedUp { transaction: transaction.0 })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the stream to a new file, durably. What was begun does not stay when it fails.
fn to_file(env: &Environment, path: &Path) -> Result<TransactionId> {
    let cannot = || format!("cannot write {}", path.display());
    let file = File::create_new(path).with_context(cannot)?;
    let written = || -> Result<TransactionId> {
        let mut out = BufWriter::with_capacity(BUFFER_SIZE, &file);
        let transaction = env.backup_to(&mut out)?;
        out.flush().with_context(cannot)?;
        drop(out);
        file.sync_all().with_context(cannot)?;
        Ok(transaction)
    };
    written().inspect_err(|_| drop(fs::remove_file(path)))
}

impl Findings for BackedUp {
    fn text(&self) -> String {
        format!("backed up transaction {}\n", self.transaction)
    }
}
