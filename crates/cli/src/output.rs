//! What commands print: the same findings as text or as JSON.

use std::io::{self, Write};

use anyhow::{Context, Result};
use serde::Serialize;

/// How findings are printed.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct Format {
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What a command found. Its JSON comes from `Serialize`.
pub(crate) trait Findings: Serialize {
    /// The text for a person, lines ended.
    fn text(&self) -> String;
}

impl Format {
    /// Prints findings to standard output. A reader that has seen enough and closed the pipe is no error.
    pub(crate) fn print(self, findings: &impl Findings) -> Result<()> {
        let text = if self.json { serde_json::to_string_pretty(findings)? + "\n" } else { findings.text() };
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            outcome => outcome.context("cannot write to standard output"),
        }
    }
}

/// Lines of `name: value`, values in one column.
pub(crate) fn aligned(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
    rows.iter().map(|(name, value)| format!("{:width$} {value}\n", format!("{name}:"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_in_one_column() {
        let text = aligned(&[("a", "1".into()), ("longer", "2".into())]);
        assert_eq!(text, "a:      1\nlonger: 2\n");
    }
}
