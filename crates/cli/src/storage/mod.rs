//! `jackdaw storage`: one environment's directory, looked at and worked on while no server has it open.

mod dump_page;
mod stat;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use jackdaw_storage::{Environment, Options};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print sizes and counts of an environment
    Stat(stat::Arguments),
    /// Print what one page of the data file says
    DumpPage(dump_page::Arguments),
}

/// Does one of the commands.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    match arguments.command {
        Command::Stat(arguments) => stat::run(&arguments),
        Command::DumpPage(arguments) => dump_page::run(&arguments),
    }
}

/// Opens an environment that exists and changes nothing in its files.
fn open_read_only(directory: &Path) -> Result<Environment> {
    Ok(Environment::open(directory, Options::default().create(false).read_only(true))?)
}
