//! Measures the server from outside, as clients use it, beside a peer that speaks the same protocol: `make bench-server`, `make bench-index`,
//! `make bench-query`.
//!
//! The driver runs on one thread and sends requests over keep-alive connections, each waiting for its answer before the next. It shares the
//! machine with the server, so two figures count: requests a second, and the server's processor time for one.

#![forbid(unsafe_code)]

mod catalog;
mod data;
mod growth;
mod hello;
mod http;
mod import;
mod index;
mod measure;
mod random;
mod report;
mod route;
mod subject;
mod workload;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use crate::report::Report;
use crate::subject::Subjects;
use crate::workload::{WORKLOADS, Workload};

/// Measures the server beside a peer.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run workloads and print a table
    Run(Box<Options>),
    /// Build the catalog's indexes over real documents
    Index(Box<Options>),
    /// Query and facet the catalog's indexes
    Query(Box<Options>),
    /// List the workloads
    List,
    /// Answer every request with a fixed text, on hyper alone, as the mark for what a stack may cost
    Hello,
}

/// What to run, on what.
#[derive(clap::Args, Clone)]
pub(crate) struct Options {
    /// The workloads, separated by commas; all of them by default
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<String>,
    /// The binary `jackdaw`
    #[arg(long, default_value = "target/release/jackdaw")]
    server: PathBuf,
    /// More arguments of `jackdaw serve`
    #[arg(long, allow_hyphen_values = true, value_delimiter = ' ')]
    server_arguments: Vec<String>,
    /// What the peer is called in the table
    #[arg(long, default_value = "ravendb")]
    peer_name: String,
    /// A shell command that becomes the peer's process; {port} and {dir} are filled in
    #[arg(long)]
    peer_command: Option<String>,
    /// Where a running peer listens, HOST:PORT
    #[arg(long, conflicts_with = "peer_command")]
    peer_address: Option<String>,
    /// The process of a running peer, for its processor time and memory
    #[arg(long)]
    peer_pid: Option<u32>,
    /// The data folder of a running peer, for its size on disk
    #[arg(long)]
    peer_dir: Option<PathBuf>,
    /// Where servers that are started here keep their data; emptied before
    #[arg(long, default_value = "bench-data/server")]
    dir: PathBuf,
    /// The folder of NAME.ndjson.gz, for bulk-NAME, indexes and queries
    #[arg(long)]
    data: Option<PathBuf>,
    /// Documents that `get` and the YCSB mixes work on
    #[arg(long, default_value_t = 1_000_000)]
    docs: u64,
    /// Seconds of each run
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// How often each is run; the run with the median rate counts
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// A tenth of the documents, short runs
    #[arg(long)]
    quick: bool,
    /// A file for JSON lines
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> Result<()> {
    let command = Arguments::parse().command;
    match &command {
        Command::List => {
            WORKLOADS.iter().for_each(|workload| println!("{:<14} {}", workload.name, workload.about));
            println!("index: {}", index::names_of_indexes()?.join(" "));
            println!("query: {}", index::names_of_queries()?.join(" "));
            Ok(())
        }
        Command::Hello => hello::serve(),
        Command::Run(options) | Command::Index(options) | Command::Query(options) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            tokio::task::LocalSet::new().block_on(&runtime, run(&command, *options.clone()))
        }
    }
}

async fn run(command: &Command, mut options: Options) -> Result<()> {
    if options.quick {
        options.docs = options.docs.min(100_000);
        (options.seconds, options.runs) = (options.seconds.min(2.0), options.runs.min(1));
    }
    let bench = match command {
        Command::Index(_) => "index",
        Command::Query(_) => "query",
        _ => "server",
    };
    match bench {
        "index" => check_names(&options.workloads, &index::names_of_indexes()?)?,
        "query" => check_names(&options.workloads, &index::names_of_queries()?)?,
        _ => {}
    }
    let chosen = if bench == "server" { choose(&options.workloads)? } else { Vec::new() };
    let mut report = Report::new(bench, &options)?;
    let mut subjects = Subjects::new(&options)?;
    match bench {
        "index" => index::build(&mut subjects, &options, &mut report).await?,
        "query" => index::query(&mut subjects, &options, &mut report).await?,
        _ => {
            for workload in chosen {
                report.add(workload.name, workload::run(workload, &mut subjects, &options).await?)?;
            }
        }
    }
    subjects.stop()?;
    report.print();
    Ok(())
}

fn check_names(chosen: &[String], names: &[String]) -> Result<()> {
    match chosen.iter().find(|name| !names.contains(name)) {
        Some(name) => anyhow::bail!("there is no workload {name}; `list` shows them"),
        None => Ok(()),
    }
}

fn choose(names: &[String]) -> Result<Vec<&'static Workload>> {
    if names.is_empty() {
        return Ok(WORKLOADS.iter().collect());
    }
    let find = |name: &String| {
        let found = WORKLOADS.iter().find(|workload| workload.name == name);
        found.with_context(|| format!("there is no workload {name}; `list` shows them"))
    };
    names.iter().map(find).collect()
}
