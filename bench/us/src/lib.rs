//! Measures storage engines: the same work for each, durable commits in all, one process for each measurement.
//!
//! [`workload`] says what is done, [`engine`] what an engine must offer, [`child`] makes one measurement, [`suite`]
//! makes many, [`report`] prints them. `bench/peers` adds the other engines; this crate compiles none of them.

#![forbid(unsafe_code)]

pub mod child;
pub mod engine;
pub mod jackdaw;

pub mod measure;
pub mod memory;
pub mod report;
pub mod suite;
pub mod workload;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};

use engine::Entry;
use suite::Suite;
use workload::{Scale, WORKLOADS, When};

/// Measures storage engines on the same work.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run workloads and print a table and JSON lines
    Storage(Storage),
    /// List the engines and workloads
    List,
    /// One measurement: what `storage` starts
    #[command(hide = true)]
    Child {
        /// The task as JSON
        task: String,
    },
}

#[derive(clap::Args)]
struct Storage {
    /// Engines, separated by commas [default: those that `list` marks]
    #[arg(long, value_delimiter = ',')]
    engines: Vec<String>,
    /// Workloads, separated by commas [default: those that `list` marks]
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<String>,
    /// How often each measurement is made
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// A tenth of the items: a few minutes
    #[arg(long)]
    quick: bool,
    /// The large workloads too: hours
    #[arg(long)]
    full: bool,
    /// Where the stores are made and removed
    #[arg(long, default_value = "bench-data")]
    dir: PathBuf,
    /// Write the JSON lines to this file instead of printing them
    #[arg(long)]
    out: Option<PathBuf>,
    /// Seconds after which one measurement counts as failed
    #[arg(long, default_value_t = 3600)]
    limit: u64,
}

/// The program: reads the command line and measures the given engines. The exit code is 1 when a measurement failed or
/// an engine lost what it had acknowledged.
pub fn run(engines: &[Entry]) -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Storage(arguments) => storage(&arguments, engines),
        Command::List => {
            list(engines);
            Ok(true)
        }
        Command::Child { task } => child(&task, engines),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn child(task: &str, engines: &[Entry]) -> Result<bool> {
    child::run(&serde_json::from_str(task).context("not a task")?, engines)?;
    Ok(true)
}

fn list(engines: &[Entry]) {
    println!("engines (* runs by default):");
    for entry in engines {
        println!("  {}{}", if entry.by_default { '*' } else { ' ' }, entry.name);
    }
    println!("workloads (* runs by default, + in the full run):");
    for workload in WORKLOADS {
        let mark = match workload.when {
            When::Always => '*',
            When::Full => '+',
            When::Named => ' ',
        };
        println!("  {mark}{:9} {}", workload.name, workload.title);
    }
}

fn storage(arguments: &Storage, engines: &[Entry]) -> Result<bool> {
    let names = &arguments.engines;
    for name in names {
        ensure!(engines.iter().any(|entry| entry.name == name), "there is no engine {name:?}: see `list`");
    }
    for name in &arguments.workloads {
        ensure!(workload::find(name).is_some(), "there is no workload {name:?}: see `list`");
    }
    let takes_part = |entry: &&Entry| match names.as_slice() {
        [] => entry.by_default,
        names => names.iter().any(|name| name == entry.name),
    };
    let runs_workload = |workload: &&workload::Workload| match arguments.workloads.as_slice() {
        [] => workload.when == When::Always || arguments.full && workload.when == When::Full,
        names => names.iter().any(|name| name == workload.name),
    };
    let suite = Suite {
        engines: engines.iter().filter(takes_part).map(|entry| entry.name).collect(),
        workloads: WORKLOADS.iter().filter(runs_workload).collect(),
        runs: arguments.runs as usize,
        scale: if arguments.quick { Scale::QUICK } else { Scale::WHOLE },
        directory: arguments.dir.clone(),
        limit: Duration::from_secs(arguments.limit),
    };
    let results = suite.run()?;
    print!("{}", results.table());
    match &arguments.out {
        None => print!("{}", results.json_lines()),
        Some(path) => {
            fs::write(path, results.json_lines())
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    let problems = results.problems();
    for problem in &problems {
        println!("problem: {problem}");
    }
    Ok(problems.is_empty())
}
