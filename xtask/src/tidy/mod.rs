//! Rules that no lint knows. Each rule is a function from the tree of files to violations; a violation names the file,
//! the line where there is one, and what to do.

mod docs;
mod manifests;
mod rust;
mod text;

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Folders whose content is not ours to check: build output, data, installed packages.
const FOLDERS_SKIPPED: &[&str] =
    &[".git", "target", "bench-data", "node_modules", ".tools", ".data", "corpus"];

/// The last parts of the names of files that people write.
const WRITTEN_BY_HAND: &[&str] = &[
    ".rs",
    ".md",
    ".toml",
    ".yml",
    ".sh",
    ".py",
    ".js",
    ".ts",
    ".tsx",
    ".css",
    "Makefile",
    ".ci/run",
    ".gitignore",
];

/// A file that people write.
struct SourceFile {
    /// From the root, with `/` between parts.
    path: String,
    text: String,
}

impl SourceFile {
    fn violation(&self, line: usize, message: impl Into<String>) -> Violation {
        Violation { path: self.path.clone(), line, message: message.into() }
    }

    /// The lines with their numbers, from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// One broken rule at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    path: String,
    /// From 1; 0 when the whole file is meant.
    line: usize,
    message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Checks the whole repository; `Ok(false)` when a rule is broken.
pub(crate) fn run(root: &Path) -> Result<bool> {
    let mut files = Vec::new();
    collect(root, "", &mut files)?;
    let violations = check(&files);
    for violation in &violations {
        println!("{violation}");
    }
    println!("tidy: {} files, {} violations", files.len(), violations.len());
    Ok(violations.is_empty())
}

fn check(files: &[SourceFile]) -> Vec<Violation> {
    let mut violations =
        [text::check, rust::check, manifests::check, docs::check].map(|rule| rule(files)).concat();
    violations.sort();
    violations
}

/// Reads every file that people write below `folder`, which is empty or ends with `/`.
fn collect(root: &Path, folder: &str, files: &mut Vec<SourceFile>) -> Result<()> {
    let directory = root.join(folder);
    let entries = fs::read_dir(&directory).with_context(|| format!("cannot list {}", directory.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        names.push((entry.file_name().to_string_lossy().into_owned(), entry.file_type()?));
    }
    names.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, kind) in names {
        let path = format!("{folder}{name}");
        if kind.is_dir() {
            if !FOLDERS_SKIPPED.contains(&name.as_str()) {
                collect(root, &format!("{path}/"), files)?;
            }
        } else if kind.is_file() && WRITTEN_BY_HAND.iter().any(|end| path.ends_with(end)) {
            let text = fs::read_to_string(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
            files.push(SourceFile { path, text });
        }
    }
    Ok(())
}

/// What the rules' own tests share.
#[cfg(test)]
mod fixture {
    use super::{SourceFile, Violation};

    /// A file of the given text.
    pub(super) fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    /// `PATH:LINE` of each violation.
    pub(super) fn places(violations: &[Violation]) -> Vec<String> {
        violations.iter().map(|v| format!("{}:{}", v.path, v.line)).collect()
    }
}
