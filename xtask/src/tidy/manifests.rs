//! Rules for `Cargo.toml` files: shared lints and versions, and dependencies between our crates that point one way.
//!
//! The manifests are read line by line: they are ours, and written plainly.

use super::{SourceFile, Violation};

/// Which of our crates a crate may use; the arrows of ARCHITECTURE.md. Tools and benches may use any.
const MAY_USE: &[(&str, &[&str])] = &[
    ("crates/storage", &[]),
    ("crates/document", &[]),
    ("crates/rql", &[]),
    ("crates/testkit", &[]),
    ("crates/functions", &["document"]),
    ("crates/search", &["document"]),
    ("crates/database", &["storage", "document", "functions"]),
    ("crates/indexing", &["storage", "document", "database", "search", "functions"]),
    ("crates/query", &["document", "database", "search", "functions", "indexing", "rql"]),
    ("crates/smuggler", &["document", "database"]),
    ("crates/server", &["storage", "document", "database", "smuggler", "indexing", "query", "rql"]),
    ("crates/cli", &["storage", "document", "database", "smuggler", "indexing", "query", "rql", "server"]),
];

/// Manifests with versions of their own: nothing else in the workspace uses what they use.
const OWN_VERSIONS: &[&str] = &["bench/peers/Cargo.toml", "bench/document/Cargo.toml"];

pub(super) fn check(files: &[SourceFile]) -> Vec<Violation> {
    // Under `fuzz/` are workspaces of their own, for a nightly compiler.
    let manifests =
        files.iter().filter(|file| file.path.ends_with("/Cargo.toml") && !file.path.starts_with("fuzz/"));
    manifests.flat_map(check_manifest).collect()
}

fn check_manifest(file: &SourceFile) -> Vec<Violation> {
    let mut violations = Vec::new();
    if !file.text.contains("[lints]\nworkspace = true\n") {
        violations.push(file.violation(0, "does not share the lints: add `[lints]` with `workspace = true`"));
    }
    let folder = file.path.trim_end_matches("/Cargo.toml");
    let may_use = MAY_USE.iter().find(|(name, _)| *name == folder).map(|(_, uses)| *uses);
    if may_use.is_none() && folder.starts_with("crates/") {
        violations
            .push(file.violation(0, "not in MAY_USE of xtask/src/tidy/manifests.rs: say what it may use"));
    }
    let mut section = "";
    for (number, line) in file.lines() {
        if line.starts_with('[') {
            section = line;
            continue;
        }
        let Some((name, _)) = line.split_once(['.', ' ', '=']).filter(|_| section.ends_with("dependencies]"))
        else {
            continue;
        };
        if name.starts_with('#') || name.is_empty() {
            continue;
        }
        if !line.contains("workspace = true") && !OWN_VERSIONS.contains(&file.path.as_str()) {
            violations.push(
                file.violation(number, format!("{name}: its version belongs into the root Cargo.toml")),
            );
        }
        // Tests may use the test kit anywhere.
        if let (Some(ours), Some(may_use)) = (name.strip_prefix("jackdaw-"), may_use)
            && !may_use.contains(&ours)
            && !(ours == "testkit" && section == "[dev-dependencies]")
        {
            violations.push(
                file.violation(number, format!("{folder} may not use {name}: arrows run one way, down")),
            );
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{file, places};
    use super::*;

    const LINTS: &str = "[lints]\nworkspace = true\n";

    fn check_text(path: &str, text: &str) -> Vec<String> {
        places(&check(&[file(path, text)]))
    }

    #[test]
    fn lints_are_shared() {
        assert_eq!(check_text("xtask/Cargo.toml", "[package]\n"), ["xtask/Cargo.toml:0"]);
        assert_eq!(check_text("xtask/Cargo.toml", LINTS), [""; 0]);
    }

    #[test]
    fn versions_are_shared() {
        let text = format!(
            "[dependencies]\nserde.workspace = true\nlibc = \"0.2\"\nx = {{ workspace = true }}\n{LINTS}"
        );
        assert_eq!(check_text("xtask/Cargo.toml", &text), ["xtask/Cargo.toml:3"]);
        assert_eq!(check_text("bench/peers/Cargo.toml", &text), [""; 0]);
    }

    #[test]
    fn arrows_run_down() {
        let uses = |name: &str| format!("[dependencies]\njackdaw-{name}.workspace = true\n{LINTS}");
        assert_eq!(check_text("crates/database/Cargo.toml", &uses("storage")), [""; 0]);
        assert_eq!(
            check_text("crates/storage/Cargo.toml", &uses("database")),
            ["crates/storage/Cargo.toml:2"]
        );
        assert_eq!(
            check_text("crates/storage/Cargo.toml", &uses("testkit")),
            ["crates/storage/Cargo.toml:2"]
        );
        let in_tests = format!("[dev-dependencies]\njackdaw-testkit.workspace = true\n{LINTS}");
        assert_eq!(check_text("crates/storage/Cargo.toml", &in_tests), [""; 0]);
    }

    #[test]
    fn a_new_crate_must_be_placed() {
        assert_eq!(check_text("crates/unheard/Cargo.toml", LINTS), ["crates/unheard/Cargo.toml:0"]);
    }
}
