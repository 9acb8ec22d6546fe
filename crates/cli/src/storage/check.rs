//! `jackdaw storage check`: walks everything and reports every broken invariant. Changes nothing; the exit code tells whether
//! something is wrong.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use jackdaw_storage::{CheckReport, Problem};
use serde::Serialize;
use serde_json::{Value, json};

use super::open_read_only;
use crate::bytes::{hex, show, size};
use crate::exit;
use crate::output::{Findings, Format};

/// Bytes of a tree's name that text shows.
const NAME_SHOWN_MAX: usize = 100;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The environment's directory
    dir: PathBuf,
    #[command(flatten)]
    format: Format,
}

struct Outcome(CheckReport);

/// Checks and prints what was found.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let env = open_read_only(&arguments.dir)?;
    let outcome = Outcome(env.check()?);
    env.close()?;
    arguments.format.print(&outcome)?;
    Ok(if outcome.0.is_clean() { ExitCode::SUCCESS } else { exit::DAMAGED.into() })
}

impl Findings for Outcome {
    fn text(&self) -> String {
        let report = &self.0;
        let mut text = String::new();
        for Problem { page, tree, text: what } in &report.problems {
            let tree = tree.as_ref().map(|name| format!(" of {name:?}")).unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "page {page}{tree}: {what}");
        }
        if report.problems_omitted > 0 {
            let _ = writeln!(text, "and {} more", report.problems_omitted);
        }
        let verdict = match report.problems.len() as u64 + report.problems_omitted {
            0 => "nothing is wrong".to_owned(),
            1 => "1 PROBLEM: restore from a backup".to_owned(),
            count => format!("{count} PROBLEMS: restore from a backup"),
        };
        let _ = writeln!(
            text,
            "transaction {}, {} pages, {} of them free, {} trees: {verdict}",
            report.transaction,
            report.pages,
            report.free_pages,
            report.trees.len(),
        );
        text
    }
}

impl Serialize for Outcome {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = &self.0;
        let problem = |p: &Problem| json!({ "page": p.page.0, "tree": p.tree, "text": p.text });
        json!({
            "clean": report.is_clean(),
            "transaction": report.transaction.0,
            "problems": report.problems.iter().map(problem).collect::<Vec<_>>(),
            "problems_omitted": report.problems_omitted,
            "pages": report.pages,
            "free_pages": report.free_pages,
            "unused_bytes": report.unused_bytes,
            "pages_by_kind": pages_json(&report.pages_by_kind),
            "trees": trees_json(report),
        })
        .serialize(serializer)
    }
}

/// One line for each tree.
pub(super) fn trees_text(report: &CheckReport) -> String {
    let mut text = String::new();
    for tree in &report.trees {
        let pages: u64 = tree.pages_by_kind.values().sum();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{} {}: {} entries, depth {}, {pages} pages, {} unused",
            tree.kind.name(),
            show(&tree.name, NAME_SHOWN_MAX),
            tree.entries,
            tree.depth,
            size(tree.unused_bytes),
        );
    }
    text
}

/// The trees as JSON objects.
pub(super) fn trees_json(report: &CheckReport) -> Vec<Value> {
    let object = |tree: &jackdaw_storage::TreeReport| {
        json!({
            "name": String::from_utf8_lossy(&tree.name),
            "name_hex": hex(&tree.name),
            "kind": tree.kind.name(),
            "entries": tree.entries,
            "depth": tree.depth,
            "pages_by_kind": pages_json(&tree.pages_by_kind),
            "unused_bytes": tree.unused_bytes,
        })
    };
    report.trees.iter().map(object).collect()
}

/// Counts of pages with the kinds' names as JSON spells names.
pub(super) fn pages_json(pages: &BTreeMap<&'static str, u64>) -> Value {
    pages.iter().map(|(kind, count)| (kind.replace(' ', "_"), Value::from(*count))).collect()
}
