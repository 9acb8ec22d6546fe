//! Rules for the documentation: what is linked to exists, every page is found from its folder's README, and the
//! changelog has a place for the next change.

use std::collections::HashSet;

use super::{SourceFile, Violation};

/// Folders of pages with a README that lists them all.
const LISTED: &[&str] = &["docs/format/", "docs/decisions/"];

/// What each document must have, so that it cannot be lost by accident.
const SECTIONS: &[(&str, &[&str])] = &[
    ("README.md", &["make run", "make test"]),
    ("CHANGELOG.md", &["\n## Unreleased\n"]),
    ("ARCHITECTURE.md", &["\n## Code map\n"]),
    ("docs/glossary.md", &[]),
    ("docs/format/README.md", &[]),
];

pub(super) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let paths: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        violations.extend(check_links(file, &paths));
    }
    for file in files.iter().filter(|file| file.is_rust()) {
        violations.extend(check_mentions(file, &paths));
    }
    for folder in LISTED {
        let readme = format!("{folder}README.md");
        let list = files.iter().find(|file| file.path == readme).map_or("", |file| &file.text);
        for page in files.iter().filter(|file| file.path.starts_with(folder) && file.path != readme) {
            if !list.contains(&page.path[folder.len()..]) {
                violations.push(page.violation(0, format!("{readme} does not list this page")));
            }
        }
    }
    for (path, sections) in SECTIONS {
        match files.iter().find(|file| file.path == *path) {
            None => {
                violations.push(Violation { path: (*path).into(), line: 0, message: "is missing".into() })
            }
            Some(file) => {
                for section in sections.iter().filter(|section| !file.text.contains(**section)) {
                    violations.push(file.violation(0, format!("lacks {:?}", section.trim())));
                }
            }
        }
    }
    violations
}

/// Every relative link of a page leads to a file that people write, or to a folder of such files.
fn check_links(file: &SourceFile, paths: &HashSet<&str>) -> Vec<Violation> {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut violations = Vec::new();
    for (number, line) in file.lines() {
        for link in line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = resolve(folder, target);
            if !exists(&path, paths) && path != "LICENSE" {
                violations
                    .push(file.violation(number, format!("the link leads nowhere: there is no {path}")));
            }
        }
    }
    violations
}

/// A page that code speaks of, from `docs/` to `.md`, exists.
fn check_mentions(file: &SourceFile, paths: &HashSet<&str>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, line) in file.lines().filter(|(_, line)| line.trim_start().starts_with("//")) {
        for (at, _) in line.match_indices("docs/") {
            let page = line[at..].split(|c: char| !(c.is_alphanumeric() || "/-_.".contains(c))).next();
            let page = page.unwrap_or_default().trim_end_matches('.');
            if page.ends_with(".md") && !paths.contains(page) {
                violations.push(file.violation(number, format!("speaks of {page}, which does not exist")));
            }
        }
    }
    violations
}

fn exists(path: &str, paths: &HashSet<&str>) -> bool {
    let folder = format!("{}/", path.trim_end_matches('/'));
    paths.contains(path) || paths.iter().any(|other| other.starts_with(&folder))
}

/// `target` as seen from `folder`, with `.` and `..` resolved.
fn resolve(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{file, places};
    use super::*;

    /// The violations beyond those of an otherwise empty repository.
    fn check_files(files: Vec<SourceFile>) -> Vec<String> {
        let mut places = places(&check(&files));
        places.retain(|place| !SECTIONS.iter().any(|(path, _)| *place == format!("{path}:0")));
        places
    }

    #[test]
    fn links_are_followed_from_the_page() {
        let page = "[up](../glossary.md) [here](data.md#top) [out](https://x.y/z.md) [none](gone.md) [folder](../format/)\n";
        let files = vec![
            file("docs/glossary.md", ""),
            file("docs/format/data.md", page),
            file("docs/format/README.md", "data.md\n"),
        ];
        assert_eq!(check_files(files), ["docs/format/data.md:1"]);
    }

    #[test]
    fn pages_that_code_speaks_of_exist() {
        let code =
            "//! See docs/format/data.md.\n// docs/format/gone.md says\nlet x = \"docs/format/input.md\";\n";
        let files = vec![
            file("a.rs", code),
            file("docs/format/data.md", ""),
            file("docs/format/README.md", "[data](data.md)\n"),
        ];
        assert_eq!(check_files(files), ["a.rs:2"]);
    }

    #[test]
    fn a_page_that_is_not_listed_is_found() {
        let files = vec![file("docs/format/data.md", ""), file("docs/format/README.md", "")];
        assert_eq!(check_files(files), ["docs/format/data.md:0"]);
    }

    #[test]
    fn a_changelog_without_a_place_for_the_next_change_is_found() {
        let changelog = |text| check(&[file("CHANGELOG.md", text)]).iter().any(|v| v.path == "CHANGELOG.md");
        assert!(changelog("# Changelog\n## 0.1\n"));
        assert!(!changelog("# Changelog\n\n## Unreleased\n\n- x\n"));
    }
}
