//! The query scripts of `tests/queries`, through HTTP: on automatic and on static indexes alike.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{Answer, TestServer};

/// A query of a script, with what is expected of it.
struct Case {
    line: usize,
    text: String,
    parameters: Value,
    expected: Vec<String>,
    /// Our answer is another one.
    differs: bool,
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/queries");
    let files = std::fs::read_dir(folder).expect("the folder").map(|file| file.expect("a file").path());
    let mut scripts: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    scripts.sort();
    scripts
}

/// Puts the documents and indexes of a script, and gives its queries.
fn load(server: &TestServer, database: &str, text: &str) -> Vec<Case> {
    let (mut part, mut collection, mut index) = ("", "", "");
    let mut cases: Vec<Case> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix("@documents ") {
            (part, collection) = ("documents", name);
        } else if let Some(name) = line.strip_prefix("@index ") {
            (part, index) = ("index", name);
        } else if line == "@queries" {
            part = "queries";
        } else if line.is_empty() || line.starts_with('#') {
        } else if part == "documents" {
            let (id, document) = line.split_once(' ').expect("an id and a document");
            let head = format!(r#"{{"@metadata":{{"@collection":"{collection}"}}"#);
            let document = match document.strip_prefix('{').expect("an object") {
                "}" => head + "}",
                rest => format!("{head},{rest}"),
            };
            let answer = server.request("PUT", &format!("/databases/{database}/docs?id={id}"), &document);
            assert_eq!(answer.status, 201, "{}", answer.text());
        } else if part == "index" {
            let mut definition: Value = serde_json::from_str(line).expect("a definition");
            definition["Name"] = index.into();
            let body = json!({ "Indexes": [definition] }).to_string();
            let answer = server.request("PUT", &format!("/databases/{database}/admin/indexes"), &body);
            assert!(answer.status < 300, "{index}: {}", answer.text());
        } else {
            match line.split_at(line.floor_char_boundary(2)) {
                ("$ ", json) => {
                    let parameters = serde_json::from_str(json).expect("JSON");
                    cases.iter_mut().rev().take_while(|case| case.expected.is_empty()).for_each(|case| {
                        case.parameters = Value::clone(&parameters);
                    });
                }
                ("= " | "> " | "| " | "! " | "~ ", _) => {
                    let from = cases.last().expect("a query").line;
                    for case in cases.iter_mut().rev().take_while(|case| case.line == from) {
                        case.differs |= line.starts_with("~ ");
                        case.expected.push(line.to_owned());
                    }
                }
                _ => {
                    let mut texts = vec![line.to_owned()];
                    if let Some(rest) = line.strip_prefix("from *") {
                        texts = vec![format!("from {collection}{rest}")];
                        if !index.is_empty() {
                            texts.push(format!("from index '{index}'{rest}"));
                        }
                    }
                    cases.extend(texts.into_iter().map(|text| Case {
                        line: number + 1,
                        text,
                        parameters: Value::Null,
                        expected: Vec::new(),
                        differs: false,
                    }));
                }
            }
        }
    }
    cases
}

/// An answer as the lines that a script has for it.
fn lines(text: &str, answer: &Answer) -> Vec<String> {
    if answer.status == 404 {
        return vec!["! 404".to_owned()];
    }
    if answer.status != 200 {
        let name = answer.error_type().replace('+', ".");
        return vec![format!("! {}", name.rsplit('.').next().unwrap_or_default())];
    }
    let mut answer = answer.json();
    let is_ordered = text.contains("order by");
    let total = answer["TotalResults"].clone();
    let Value::Array(mut rows) = answer["Results"].take() else { panic!("no results: {answer}") };
    let is_whole = |row: &Value| {
        row["@metadata"]["@id"].is_string() && row["@metadata"]["@projection"] != Value::Bool(true)
    };
    if rows.iter().all(is_whole) {
        let mut ids: Vec<String> =
            rows.iter().map(|row| row["@metadata"]["@id"].as_str().unwrap_or_default().to_owned()).collect();
        if !is_ordered {
            ids.sort();
        }
        let sign = if is_ordered { '>' } else { '=' };
        return vec![[format!("{sign} {total}:")].into_iter().chain(ids).collect::<Vec<_>>().join(" ")];
    }
    let mut lines = Vec::new();
    for row in &mut rows {
        row.as_object_mut().expect("an object").shift_remove("@metadata");
        lines.push(format!("| {row}"));
    }
    if !is_ordered {
        lines.sort();
    }
    lines
}

/// Rows compare as JSON: the same number may be written in two ways.
fn same(text: &str, found: &[String], expected: &[String]) -> bool {
    let is_ordered = text.contains("order by");
    let parsed = |lines: &[String]| -> Vec<Value> {
        let parse = |line: &String| match line.strip_prefix("| ") {
            Some(row) => normal(serde_json::from_str(row).expect("JSON")),
            None => Value::from(&**line),
        };
        let mut all: Vec<Value> = lines.iter().map(parse).collect();
        if !is_ordered {
            all.sort_by_key(Value::to_string);
        }
        all
    };
    found == expected || parsed(found) == parsed(expected)
}

fn normal(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(all) => all.into_iter().map(normal).collect(),
        Value::Object(all) => all.into_iter().map(|(name, value)| (name, normal(value))).collect(),
        other => other,
    }
}

#[test]
fn scripts_are_answered_as_recorded() {
    let server = TestServer::start();
    let mut failures = Vec::new();
    let mut count = 0;
    for (number, path) in scripts().iter().enumerate() {
        let database = format!("scripts-{number}");
        server.create_database(&database);
        let text = std::fs::read_to_string(path).expect("a script");
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        for case in load(&server, &database, &text) {
            if case.differs {
                continue;
            }
            assert!(
                !case.expected.is_empty() || case.text.contains("select"),
                "{name}:{} expects nothing",
                case.line
            );
            let body = json!({
                "Query": case.text, "QueryParameters": case.parameters, "WaitForNonStaleResults": true,
            });
            let answer = server.request("POST", &format!("/databases/{database}/queries"), &body.to_string());
            let found = lines(&case.text, &answer);
            count += 1;
            if !same(&case.text, &found, &case.expected) {
                failures.push(format!(
                    "{name}:{}: {} {}\n    expected {:?}\n    found    {found:?} {}",
                    case.line,
                    case.text,
                    case.parameters,
                    case.expected,
                    if answer.status == 200 { String::new() } else { answer.text() }
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {count} differ\n{}", failures.len(), failures.join("\n"));
    assert!(count > 500, "only {count} queries");
}
