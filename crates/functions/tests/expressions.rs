//! Expressions of C#, each as the one field of a map over one document, with what they give: `tests/cases/expressions.txt`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod runs;

use std::fmt::Write as _;

use runs::map_entries;

/// A line is `expression => result`: JSON, `missing`, `error: part of its message` at run time, or `refused: part of its message` at compile time. Empty lines and
/// lines that start with `#` say nothing; the first line of JSON is the document.
#[test]
fn expressions_give_what_they_should() {
    let cases = include_str!("cases/expressions.txt");
    let mut document = "";
    let mut wrong = String::new();
    let mut count = 0;
    for line in cases.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line.starts_with('{') {
            document = line;
            continue;
        }
        let (expression, expected) =
            line.split_once(" ==> ").unwrap_or_else(|| panic!("no result in {line}"));
        count += 1;
        let map = format!("from x in docs.Ps select new {{ V = {expression} }}");
        let (kind, part) = expected.split_once(": ").unwrap_or((expected, ""));
        let found = map_entries(&map, "ps/1", document);
        let right = match (&found, kind) {
            (Ok(entries), "missing") => entries[..] == ["{}"],
            (Err(message), "error") => message.contains(part),
            (Err(message), "refused") => message.contains(part) && message.starts_with("line 1, column "),
            (Ok(entries), _) => entries[..] == [format!("{{\"V\":{expected}}}")],
            _ => false,
        };
        if !right {
            writeln!(wrong, "{expression} ==> {found:?}, not {expected}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 100, "only {count} cases");
}
