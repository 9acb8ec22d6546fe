//! Rules for Rust files: a header, a size that can be read, names that say something, and unsafe code where it belongs.

use super::{SourceFile, Violation};

/// Above this many lines a file is ready to become a folder.
const LINES_MAX: usize = 1000;

/// The files that may be longer, each with its reason. An entry that is no longer needed is itself a violation.
const LONG_FILES: &[(&str, &str)] = &[];

/// Names that do not say what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "helper", "helpers", "manager", "misc"];

/// The crates that may hold unsafe code, in small modules (or call a peer's unsafe interface). All others forbid it at
/// their root.
const CRATES_WITH_UNSAFE: &[&str] = &["crates/storage", "crates/document", "bench/peers"];

/// Where the storage engine may touch the system's files: everything else goes through the traits there, so that the simulated disk
/// sees it. Tests lie outside `STORAGE`.
const STORAGE: &str = "crates/storage/src/";
const STORAGE_DISK: &str = "crates/storage/src/disk/";

pub(super) fn check(files: &[SourceFile]) -> Vec<Violation> {
    check_with(files, LONG_FILES)
}

fn check_with(files: &[SourceFile], long_files: &[(&str, &str)]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        if !file.text.starts_with("//!") {
            violations.push(
                file.violation(1, "no `//!` header: say what this file is and what always holds in it"),
            );
        }
        let (lines, allowed) = (file.lines().count(), long_files.iter().any(|(path, _)| *path == file.path));
        if lines > LINES_MAX && !allowed {
            let message = format!(
                "{lines} lines: split it, or give the reason in LONG_FILES of xtask/src/tidy/rust.rs"
            );
            violations.push(file.violation(0, message));
        } else if lines <= LINES_MAX && allowed {
            violations.push(file.violation(0, "not long any more: remove it from LONG_FILES"));
        }
        if file.path.split(['/', '.']).any(|part| EMPTY_NAMES.contains(&part)) {
            violations.push(file.violation(0, "the name does not say what is inside: call it what it holds"));
        }
        if file.path.starts_with(STORAGE) && !file.path.starts_with(STORAGE_DISK) {
            for (number, line) in file.lines() {
                if line.contains("std::fs") && !line.trim_start().starts_with("//") {
                    let message = "files are opened, read and written in disk/ alone: use its traits";
                    violations.push(file.violation(number, message));
                }
            }
        }
        if is_crate_root(&file.path)
            && !CRATES_WITH_UNSAFE.iter().any(|folder| file.path.starts_with(folder))
            && !file.text.contains("#![forbid(unsafe_code)]")
        {
            violations.push(file.violation(0, "the crate's root lacks `#![forbid(unsafe_code)]`"));
        }
    }
    violations
}

fn is_crate_root(path: &str) -> bool {
    path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs")
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{file, places};
    use super::*;

    #[test]
    fn a_header_is_asked_for() {
        let files = [file("crates/x/src/a.rs", "//! A.\n"), file("crates/x/src/b.rs", "use std::fs;\n")];
        assert_eq!(places(&check(&files)), ["crates/x/src/b.rs:1"]);
    }

    #[test]
    fn long_files_need_a_reason_and_short_ones_must_not_have_one() {
        let long = "//! Long.\n".repeat(LINES_MAX + 1);
        let files = [file("a.rs", &long), file("b.rs", &long), file("c.rs", "//! Short.\n")];
        let violations = check_with(&files, &[("b.rs", "a table"), ("c.rs", "was a table")]);
        assert_eq!(places(&violations), ["a.rs:0", "c.rs:0"]);
    }

    #[test]
    fn empty_names_are_refused() {
        let files = [file("crates/x/src/utils.rs", "//! x\n"), file("crates/x/src/common/a.rs", "//! x\n")];
        assert_eq!(check(&files).len(), 2);
        assert_eq!(check(&[file("crates/x/src/commonly.rs", "//! x\n")]), []);
    }

    #[test]
    fn storage_touches_files_in_disk_alone() {
        let text = "//! x std::fs\nuse std::fs::File;\n";
        let paths =
            ["crates/storage/src/flush.rs", "crates/storage/src/disk/real.rs", "crates/storage/tests/a.rs"];
        assert_eq!(places(&check(&paths.map(|path| file(path, text)))), ["crates/storage/src/flush.rs:2"]);
    }

    #[test]
    fn only_the_crates_of_the_list_may_hold_unsafe_code() {
        let files = [
            file("crates/storage/src/lib.rs", "//! x\n"),
            file("crates/rql/src/lib.rs", "//! x\n"),
            file("crates/cli/src/main.rs", "//! x\n#![forbid(unsafe_code)]\n"),
        ];
        assert_eq!(places(&check(&files)), ["crates/rql/src/lib.rs:0"]);
    }
}
