//! The answers that are known to differ from the recorded ones, `tests/queries/differences.txt`.
//!
//! A line `= reason` is followed by the cases that it is the reason for, a line each: `SCRIPT SOURCES: QUERY[ $ PARAMETERS]`, the sources
//! separated by commas. `*` as the query stands for all of the script's on these sources.

use std::path::Path;

use crate::script::Case;

pub(crate) struct Differences(Vec<Entry>);

struct Entry {
    script: String,
    sources: Vec<String>,
    case: String,
    line: String,
    /// The sources on which a case that this names did differ.
    needed: Vec<String>,
}

impl Differences {
    pub(crate) fn read(folder: &Path) -> Differences {
        let text = std::fs::read_to_string(folder.join("differences.txt")).expect("the differences");
        let mut entries: Vec<Entry> = Vec::new();
        let mut has_reason = false;
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            if let Some(reason) = line.strip_prefix("= ") {
                has_reason = !reason.trim().is_empty();
                continue;
            }
            assert!(has_reason, "differences.txt: no reason: {line}");
            let (head, case) =
                line.split_once(": ").unwrap_or_else(|| panic!("differences.txt: no query: {line}"));
            let (script, sources) =
                head.split_once(' ').unwrap_or_else(|| panic!("differences.txt: no sources: {line}"));
            entries.push(Entry {
                script: script.to_owned(),
                sources: sources.split(',').map(str::to_owned).collect(),
                case: case.to_owned(),
                line: line.to_owned(),
                needed: Vec::new(),
            });
        }
        Differences(entries)
    }

    /// Those of one script.
    pub(crate) fn of(self, script: &str) -> Differences {
        Differences(self.0.into_iter().filter(|entry| entry.script == script).collect())
    }

    /// Panics over an entry of a script that is not there.
    pub(crate) fn only_of(&self, scripts: &[&str]) {
        for entry in &self.0 {
            assert!(
                scripts.contains(&entry.script.as_str()),
                "differences.txt: no such script: {}",
                entry.line
            );
        }
    }

    /// Whether it is known that this case's answer differs.
    pub(crate) fn differed(&mut self, source: &str, case: &Case) -> bool {
        let name = case.name();
        let mut known = false;
        for entry in &mut self.0 {
            if (entry.case == name || entry.case == "*") && entry.sources.iter().any(|other| other == source)
            {
                entry.needed.push(source.to_owned());
                known = true;
            }
        }
        known
    }

    /// Lines, or sources of a line, without a case that differs.
    pub(crate) fn not_needed(&self) -> Vec<String> {
        let unused = |entry: &Entry| {
            let unused: Vec<_> =
                entry.sources.iter().filter(|source| !entry.needed.contains(source)).cloned().collect();
            (!unused.is_empty()).then(|| format!("{} [{}]", entry.line, unused.join(",")))
        };
        self.0.iter().filter_map(unused).collect()
    }
}
