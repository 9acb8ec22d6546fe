//! The suites of the official clients (`tests/clients`) and the raw requests (`tests/wire`): builds the server they need and starts
//! `tests/clients/run.py`, which does the rest and keeps its results as JSON.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// `cargo xtask clients`: the arguments are those of `run.py`.
pub(crate) fn run(root: &Path, arguments: impl Iterator<Item = String>) -> Result<bool> {
    let arguments: Vec<_> = arguments.collect();
    let needs_server =
        !arguments.iter().any(|word| word == "--url" || word == "--prepare" || word == "--compat");
    if needs_server {
        build_server(root)?;
    }
    let status = command(root).args(arguments).status().context("cannot run python3")?;
    Ok(status.success())
}

/// Builds the binary that `run.py` starts when it is given no other.
pub(crate) fn build_server(root: &Path) -> Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    let status = cargo.current_dir(root).args(["build", "-q", "-p", "jackdaw-cli"]).status()?;
    if !status.success() {
        bail!("the server does not build");
    }
    Ok(())
}

/// `run.py`, without arguments.
pub(crate) fn command(root: &Path) -> Command {
    let mut command = Command::new("python3");
    command.current_dir(root).arg("tests/clients/run.py");
    command
}

/// Where `run.py` keeps the results of a run against a server of ours.
pub(crate) fn results(root: &Path) -> PathBuf {
    root.join("target/clients/results/jackdaw.json")
}
