//! Rules for every file that people write: no leftovers, and bytes that do not make noise in a diff.

use super::{SourceFile, Violation};

/// Words that mark unfinished work. In pieces, so that this file keeps its own rule.
const MARKERS: &[&str] =
    &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX"), concat!("HA", "CK"), concat!("W", "IP")];

/// What a merge leaves behind where it could not decide.
const CONFLICTS: &[&str] = &["<<<<<<< ", ">>>>>>> "];

pub(super) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files {
        for (number, line) in file.lines() {
            if let Some(marker) = MARKERS.iter().find(|marker| has_word(line, marker)) {
                let message =
                    format!("`{marker}` is left over: finish it, or say in the issue that it is missing");
                violations.push(file.violation(number, message));
            }
            if CONFLICTS.iter().any(|conflict| line.starts_with(conflict)) {
                violations.push(file.violation(number, "a merge conflict is left over"));
            }
            if line.ends_with([' ', '\t', '\r']) {
                violations.push(file.violation(number, "white space at the end of the line"));
            }
            if line.contains('\t') && !file.path.ends_with("Makefile") {
                violations.push(file.violation(number, "a tab: indent with spaces"));
            }
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            violations.push(file.violation(0, "no newline at the end"));
        }
    }
    violations
}

/// Whether `line` has `word` with no letter, digit or underscore beside it.
fn has_word(line: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(joins) && !line[at + word.len()..].starts_with(joins))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{file, places};
    use super::*;

    #[test]
    fn leftovers_are_found_as_words() {
        let text = format!("fine\n// {0}: later\nMETHOD{0}\n{0}s\n", MARKERS[0]);
        assert_eq!(places(&check(&[file("a.rs", &text)])), ["a.rs:2"]);
    }

    #[test]
    fn conflicts_and_white_space_are_found() {
        let text = "<<<<<<< ours\nends \nok\n\tindented\nlast";
        assert_eq!(places(&check(&[file("a.md", text)])), ["a.md:1", "a.md:2", "a.md:4", "a.md:0"]);
        assert_eq!(check(&[file("Makefile", "run:\n\tcargo run\n")]), []);
    }
}
