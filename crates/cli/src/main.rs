//! The binary `jackdaw`. Each group of commands has a folder, each command a file: its arguments, what it does, what it prints.
//!
//! What a command found goes to standard output, as text or with `--json` as one JSON object; errors and warnings go to
//! standard error. Exit codes are in [`exit`].

#![forbid(unsafe_code)]

mod bytes;
mod exit;
mod export;
mod import;
mod indexes;
mod output;
mod progress;
mod remote;
mod serve;
mod storage;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// A transactional document database.
#[derive(Parser)]
#[command(name = "jackdaw", version, after_help = exit::HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start the server
    Serve(serve::Arguments),
    /// Import documents: lines of JSON, JSON files, CSV, dumps
    Import(Box<import::Arguments>),
    /// Export a database as a dump
    Export(export::Arguments),
    /// Look at, check, copy and compact the directory of a storage environment
    Storage(storage::Arguments),
}

fn main() -> ExitCode {
    // clap itself answers wrong usage, with exit code 2.
    let arguments = Arguments::parse();
    let command = match arguments.command {
        // It has a log of its own, as its settings say.
        Command::Serve(arguments) => return finish(serve::run(arguments)),
        command => command,
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    finish(match command {
        Command::Import(arguments) => import::run(*arguments),
        Command::Export(arguments) => export::run(arguments),
        Command::Storage(arguments) => storage::run(arguments),
        Command::Serve(arguments) => serve::run(arguments),
    })
}

fn finish(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("jackdaw: {error:#}");
            exit::of_error(&error)
        }
    }
}
