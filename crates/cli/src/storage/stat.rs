//! `jackdaw storage stat`: sizes and counts. Opens the environment, and so reads its journal, but changes nothing; with `--trees` it
//! walks all pages.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use jackdaw_storage::{CheckReport, PAGE_SIZE, Stats};
use serde::Serialize;
use serde_json::{Value, json};

use super::check::{pages_json, trees_json, trees_text};
use super::open_read_only;
use crate::bytes::size;
use crate::output::{Findings, Format, aligned};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The environment's directory
    dir: PathBuf,
    /// Walk all pages too: numbers of each tree, pages by kind, how full they are
    #[arg(long)]
    trees: bool,
    #[command(flatten)]
    format: Format,
}

struct Numbers {
    stats: Stats,
    /// With `--trees`.
    walk: Option<CheckReport>,
}

/// Prints the numbers.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let env = open_read_only(&arguments.dir)?;
    let walk = if arguments.trees { Some(env.check()?) } else { None };
    let numbers = Numbers { stats: env.stats(), walk };
    env.close()?;
    arguments.format.print(&numbers)?;
    Ok(ExitCode::SUCCESS)
}

impl Findings for Numbers {
    fn text(&self) -> String {
        let stats = &self.stats;
        let mut rows = vec![
            ("last transaction", stats.last_transaction.to_string()),
            ("synced to the data file", stats.synced_transaction.to_string()),
            ("data file", size(stats.data_file_size)),
            ("pages", format!("{} of {PAGE_SIZE} bytes", stats.pages)),
            ("free pages", stats.free_pages.to_string()),
            ("used", size(stats.used_size())),
            (
                "journal records since",
                format!("{}, {}", stats.recovered_records, size(stats.recovered_bytes)),
            ),
            ("time to open", format!("{:.1} ms", stats.open_us as f64 / 1000.0)),
        ];
        let Some(walk) = &self.walk else { return aligned(&rows) };
        rows.push(("unused bytes in pages", size(walk.unused_bytes)));
        for (kind, pages) in &walk.pages_by_kind {
            rows.push((kind, format!("{pages} pages")));
        }
        aligned(&rows) + &trees_text(walk)
    }
}

impl Serialize for Numbers {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stats = &self.stats;
        let mut object = json!({
            "last_transaction": stats.last_transaction.0,
            "synced_transaction": stats.synced_transaction.0,
            "data_file_size": stats.data_file_size,
            "page_size": PAGE_SIZE,
            "pages": stats.pages,
            "free_pages": stats.free_pages,
            "used_size": stats.used_size(),
            "journal_records": stats.recovered_records,
            "journal_bytes": stats.recovered_bytes,
            "open_us": stats.open_us,
        });
        if let Some(walk) = &self.walk {
            object["unused_bytes"] = walk.unused_bytes.into();
            object["pages_by_kind"] = pages_json(&walk.pages_by_kind);
            object["trees"] = Value::Array(trees_json(walk));
        }
        object.serialize(serializer)
    }
}
