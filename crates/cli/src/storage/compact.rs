//! `jackdaw storage compact`: copies an environment, without its free space and with full pages, into a new directory. The source
//! is left as it is; putting the copy in its place is the caller's to do.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use super::open_read_only;
use crate::bytes::size;
use crate::output::{Findings, Format};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The environment's directory
    dir: PathBuf,
    /// The copy's directory: empty or not there yet
    to: PathBuf,
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Compacted {
    transaction: u64,
    size_before: u64,
    size_after: u64,
}

/// Copies and prints the sizes.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let env = open_read_only(&arguments.dir)?;
    let transaction = env.compact(&arguments.to)?.0;
    let size_before = env.stats().data_file_size;
    env.close()?;
    let copy = open_read_only(&arguments.to)?;
    let size_after = copy.stats().data_file_size;
    copy.close()?;
    arguments.format.print(&Compacted { transaction, size_before, size_after })?;
    Ok(ExitCode::SUCCESS)
}

impl Findings for Compacted {
    fn text(&self) -> String {
        let (before, after) = (size(self.size_before), size(self.size_after));
        format!("transaction {}: data file {before} before, {after} in the copy\n", self.transaction)
    }
}
