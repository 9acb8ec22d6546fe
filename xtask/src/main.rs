//! What cargo cannot do for this repository. `cargo xtask test` runs every test in a process of its own and names the
//! ten slowest; `cargo xtask clients` runs the suites of the official clients, `cargo xtask compat` writes COMPAT.md from their
//! results; `cargo xtask tidy` checks the rules that no lint knows.

#![forbid(unsafe_code)]

mod clients;
mod test;
mod tidy;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [--fast] [--clients] [-p PACKAGE]... [FILTER]...
      Builds all tests, runs each in a process of its own and each doc test, and reports the ten slowest.
      --fast leaves out the tests that say they are slow (CONTRIBUTING.md tells how they do).
      --clients adds the suites of the official clients.
      FILTER keeps the tests whose name contains it; several are alternatives.
  clients [--python] [--node] [--java] [--wire] [--newest] [--url URL [--peer]] [--prepare]
      Builds the server, starts it, and runs the suites of the official clients against it (tests/clients/README.md).
  compat
      Writes COMPAT.md from the results of the last runs of `clients`.
  tidy
      Checks the rules that no lint knows and prints every violation.
";

fn main() -> ExitCode {
    let mut words = env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let outcome = match command.as_str() {
        "test" => {
            test::Selection::parse(words).and_then(|selection| test::run(&workspace_root(), &selection))
        }
        "clients" => clients::run(&workspace_root(), words),
        "compat" => clients::run(&workspace_root(), ["--compat".to_owned()].into_iter()),
        "tidy" => tidy::run(&workspace_root()),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask {command}: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The folder that holds the workspace's `Cargo.toml`.
fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
