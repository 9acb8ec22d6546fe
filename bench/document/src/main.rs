//! Measures documents against other ways to hold JSON, on real files, all in the same run.
//!
//! `cargo run --release -p jackdaw-bench-document -- --data DIR [WORKLOAD...]`, where a workload is the beginning of a name in the table. `DIR` holds
//! `NAME.ndjson.gz` files and a folder `json` of `NAME.json.gz` files; nothing here depends on which.

#![forbid(unsafe_code)]

mod peers;
mod report;
mod strings;
mod workloads;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Parser;

#[derive(Parser)]
struct Arguments {
    /// The directory with the files.
    #[arg(long, env = "DATA")]
    data: PathBuf,
    /// Writes each measurement as a line of JSON to this file.
    #[arg(long, env = "OUT")]
    out: Option<PathBuf>,
    /// Few runs.
    #[arg(long, env = "QUICK", num_args = 0..=1, default_missing_value = "1", default_value = "0")]
    quick: String,
    /// Only these peers, separated by commas; `none` for ourselves alone.
    #[arg(long, env = "PEERS", value_delimiter = ',')]
    peers: Vec<String>,
    /// Beginnings of the names of the workloads to run; all without any.
    workloads: Vec<String>,
}

/// The texts of one file.
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) texts: Vec<Vec<u8>>,
    pub(crate) size: usize,
}

fn read(path: &Path) -> Result<Set> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).with_context(|| format!("opening {}", path.display()))?;
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes)?;
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = file_name.split('.').next().unwrap_or_default().to_owned();
    let texts: Vec<Vec<u8>> = if file_name.contains(".ndjson") {
        bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
    } else {
        vec![bytes]
    };
    let size = texts.iter().map(Vec::len).sum();
    Ok(Set { name, texts, size })
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut paths = Vec::new();
    for directory in [arguments.data.clone(), arguments.data.join("json")] {
        for entry in
            std::fs::read_dir(&directory).with_context(|| format!("reading {}", directory.display()))?
        {
            let path = entry?.path();
            let name = path.to_string_lossy().into_owned();
            if name.ends_with(".ndjson.gz") || name.ends_with(".json.gz") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let sets = paths.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
    let mut report = report::Report::new(
        arguments.out.as_deref(),
        arguments.quick == "1" || arguments.quick == "true",
        arguments.peers,
        arguments.workloads,
    )?;
    workloads::run(&sets, &mut report)?;
    report.finish()
}
