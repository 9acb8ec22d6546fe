//! What `jackdaw import` tells at its end.

use std::time::Duration;

use jackdaw_smuggler::{Refusal, Report};
use serde::Serialize;

use crate::bytes;
use crate::output;

/// What was done with each file.
pub(super) struct Findings {
    pub(super) inputs: Vec<Input>,
    show_refused: usize,
    elapsed: Duration,
}

/// What was done with a file.
pub(super) struct Input {
    pub(super) name: String,
    /// Bytes of it that were read.
    pub(super) read_bytes: u64,
    pub(super) report: Report,
}

impl Findings {
    pub(super) fn new(show_refused: usize) -> Findings {
        Findings { inputs: Vec::new(), show_refused, elapsed: Duration::ZERO }
    }

    pub(super) fn finish(&mut self, elapsed: Duration) {
        self.elapsed = elapsed;
    }

    /// Records refused in all files.
    pub(super) fn refused(&self) -> u64 {
        self.sum(|report| report.refused)
    }

    /// Whether something of a file was not taken.
    pub(super) fn has_refused(&self) -> bool {
        self.sum(|report| report.refused + report.indexes.refused) > 0
    }

    fn sum(&self, count: impl Fn(&Report) -> u64) -> u64 {
        self.inputs.iter().map(|input| count(&input.report)).sum()
    }

    fn rate(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64().max(1e-6)
    }

    fn shown<'r>(&self, report: &'r Report) -> &'r [Refusal] {
        &report.refusals[..report.refusals.len().min(self.show_refused)]
    }
}

impl output::Findings for Findings {
    fn text(&self) -> String {
        let mut text = String::new();
        for Input { name, read_bytes, report } in &self.inputs {
            text += &format!("{name}: {} documents from {}", report.documents, bytes::size(*read_bytes));
            let mut also = |count: u64, what: &str| {
                if count > 0 {
                    text += &format!(", {count} {what}");
                }
            };
            also(report.unchanged, "left as they were");
            also(report.deleted, "deleted");
            also(report.indexes.taken, "indexes");
            also(report.indexes.analyzers, "analyzers");
            also(report.identities, "identities");
            also(report.compare_exchange, "compare-exchange values");
            also(report.refused, "refused");
            text += "\n";
            if report.database_record {
                text += "  the database record was read; nothing but custom analyzers is taken from it yet\n";
            }
            for (section, count) in &report.skipped {
                text += &format!("  passed over: {count} {section}\n");
            }
            for refusal in &report.indexes.refusals {
                text += &format!("  {refusal}\n");
            }
            let hidden = report.indexes.refused - report.indexes.refusals.len() as u64;
            if hidden > 0 {
                text += &format!("  refused: {hidden} more indexes or analyzers\n");
            }
            for refusal in self.shown(report) {
                text += &format!("  refused {refusal}\n");
            }
            let hidden = report.refused - self.shown(report).len() as u64;
            if hidden > 0 && report.refused > 0 {
                text += &format!("  refused: {hidden} more\n");
            }
        }
        let documents = self.sum(|report| report.documents);
        let text_bytes = self.sum(|report| report.text_bytes);
        text += &format!(
            "total: {documents} documents, {} refused, in {:.2} s: {:.0} documents/s, {:.1} MiB/s of text\n",
            self.refused(),
            self.elapsed.as_secs_f64(),
            self.rate(documents),
            self.rate(text_bytes) / f64::from(1 << 20),
        );
        text
    }
}

impl Serialize for Findings {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let inputs: Vec<_> = self
            .inputs
            .iter()
            .map(|Input { name, read_bytes, report }| {
                let refusals: Vec<_> = self.shown(report).iter().map(ToString::to_string).collect();
                serde_json::json!({
                    "name": name,
                    "read_bytes": read_bytes,
                    "text_bytes": report.text_bytes,
                    "documents": report.documents,
                    "unchanged": report.unchanged,
                    "deleted": report.deleted,
                    "indexes": report.indexes,
                    "identities": report.identities,
                    "compare_exchange": report.compare_exchange,
                    "database_record": report.database_record,
                    "skipped": report.skipped,
                    "refused": report.refused,
                    "refusals": refusals,
                })
            })
            .collect();
        let documents = self.sum(|report| report.documents);
        serde_json::json!({
            "inputs": inputs,
            "documents": documents,
            "refused": self.refused(),
            "seconds": self.elapsed.as_secs_f64(),
            "documents_per_second": self.rate(documents),
        })
        .serialize(serializer)
    }
}
