//! `jackdaw storage restore`: an environment from a stream that `backup --stream` wrote. (A backup into a directory is an environment
//! already: copy the directory.)

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::output::{Findings, Format};

/// Bytes read from a stream at once.
const BUFFER_SIZE: usize = 1 << 20;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The environment's directory: empty or not there yet
    dir: PathBuf,
    /// The file with the stream, `-` for standard input
    from: PathBuf,
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Restored {
    transaction: u64,
}

/// Restores and prints which transaction the environment holds.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let from = &arguments.from;
    let source: Box<dyn Read> = if from == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(from).with_context(|| format!("cannot read {}", from.display()))?)
    };
    let mut stream = BufReader::with_capacity(BUFFER_SIZE, source);
    let transaction = jackdaw_storage::restore(&mut stream, &arguments.dir)?.0;
    arguments.format.print(&Restored { transaction })?;
    Ok(ExitCode::SUCCESS)
}

impl Findings for Restored {
    fn text(&self) -> String {
        format!("restored transaction {}\n", self.transaction)
    }
}
