//! `jackdaw storage`: one environment's directory, looked at and worked on while no server has it open.

mod backup;
mod check;
mod compact;
mod dump_page;
mod restore;
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
    /// Print sizes and counts of an environment and of its trees
    Stat(stat::Arguments),
    /// Walk everything and report all that is wrong
    Check(check::Arguments),
    /// Print what one page says
    DumpPage(dump_page::Arguments),
    /// Copy an environment without its free space into a new directory
    Compact(compact::Arguments),
    /// Write a backup, into a new directory or as one stream
    Backup(backup::Arguments),
    /// Make an environment from a backup that was written as a stream
    Restore(restore::Arguments),
}

/// Does one of the commands.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    match arguments.command {
        Command::Stat(arguments) => stat::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::DumpPage(arguments) => dump_page::run(&arguments),
        Command::Compact(arguments) => compact::run(&arguments),
        Command::Backup(arguments) => backup::run(&arguments),
        Command::Restore(arguments) => restore::run(&arguments),
    }
}

/// Opens an environment that exists, so that nothing in its files changes.
fn open_read_only(directory: &Path) -> Result<Environment> {
    Ok(Environment::open(directory, Options::default().create(false).read_only(true))?)
}
