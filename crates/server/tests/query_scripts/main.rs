//! The query scripts of `tests/queries/scripts`: each is stored in a database of its own, each query is asked, and the answer has to be what
//! a real RavenDB gave when the script was recorded. `tests/queries/README.md` tells the format; `tests/queries/differences.txt` lists the
//! answers that are known to differ, each with its reason, and an entry that is no longer needed fails as loudly as a new difference.
//!
//! A script's test tells all that differs, not only the first.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod answer;
mod differences;
mod script;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use answer::Found;
use differences::Differences;
use script::{Case, Script};
use support::{Client, LONG, TestServer};

const DATABASE: &str = "scripts";

/// Between two looks at whether the indexes are up to date.
const POLL: Duration = Duration::from_millis(5);

macro_rules! scripts {
    ($($name:ident)*) => {
        const SCRIPTS: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { check(stringify!($name)); })*
    };
}

scripts! { collections dates equality facets groups numbers objects order project ranges suggest text }

/// The folder with the scripts and the list of differences.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/queries")
}

#[test]
fn every_script_has_a_test() {
    let listed: BTreeSet<_> = SCRIPTS.iter().map(|name| format!("{name}.queries")).collect();
    let there: BTreeSet<_> = std::fs::read_dir(folder().join("scripts"))
        .expect("the scripts")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .collect();
    assert_eq!(listed, there);
    Differences::read(&folder()).only_of(SCRIPTS);
}

fn check(name: &str) {
    let script = Script::read(&folder(), name);
    let mut known = Differences::read(&folder()).of(name);
    let server = TestServer::start();
    let mut client = server.client();
    let mut told = String::new();
    let refused = prepare(&mut client, &script);
    for case in &script.cases {
        for (sources, expected) in &case.expected {
            for source in sources {
                let found = ask(&mut client, &script, case, source);
                if !expected.agrees(&found) && !known.differed(source, case) {
                    let text = case.query(&script, source);
                    let _ = writeln!(told, "{}:{} [{source}] {text}", script.path, case.line);
                    if case.projection != "Default" {
                        let _ = writeln!(told, "    projection {}", case.projection);
                    }
                    if !case.parameters.is_empty() {
                        let _ = writeln!(told, "    parameters {}", case.parameters);
                    }
                    let _ = writeln!(told, "    expected   {expected}\n    found      {found}");
                }
            }
        }
    }
    for entry in known.not_needed() {
        let _ = writeln!(told, "differences.txt: no longer needed: {entry}");
    }
    assert!(told.is_empty(), "\n{refused}{told}");
}

/// Puts the indexes and then the documents, and waits until the indexes know them. The answers to indexes that were refused, whose queries
/// differ then.
fn prepare(client: &mut Client, script: &Script) -> String {
    let mut refused = String::new();
    let body = json!({ "DatabaseName": DATABASE }).to_string();
    call(client, "PUT", &format!("/admin/databases?name={DATABASE}"), &body);
    for index in &script.indexes {
        let body = json!({ "Indexes": [index] }).to_string();
        let answer =
            client.request("PUT", &format!("/databases/{DATABASE}/admin/indexes"), &[], body.as_bytes());
        if answer.status >= 300 {
            let _ = writeln!(refused, "{}", answer.text());
        }
    }
    call(client, "POST", &format!("/databases/{DATABASE}/bulk_docs"), &script.commands());
    let end = Instant::now() + LONG;
    loop {
        let stats: Value =
            serde_json::from_str(&call(client, "GET", &format!("/databases/{DATABASE}/stats"), ""))
                .expect("statistics");
        let indexes = stats["Indexes"].as_array().expect("indexes");
        if indexes.iter().all(|index| index["IsStale"] == false) {
            return refused;
        }
        assert!(Instant::now() < end, "the indexes stay stale: {indexes:?}");
        std::thread::sleep(POLL);
    }
}

fn call(client: &mut Client, method: &str, url: &str, body: &str) -> String {
    let answer = client.request(method, url, &[], body.as_bytes());
    assert!(answer.status < 300, "{method} {url}: {}", answer.text());
    answer.text()
}

fn ask(client: &mut Client, script: &Script, case: &Case, source: &str) -> Found {
    let text = serde_json::to_string(&case.query(script, source)).expect("text");
    let parameters = if case.parameters.is_empty() { "null" } else { &case.parameters };
    let body = format!(
        r#"{{"Query":{text},"QueryParameters":{parameters},"WaitForNonStaleResults":true,"WaitForNonStaleResultsTimeout":"00:00:30","ProjectionBehavior":"{}"}}"#,
        case.projection
    );
    let answer = client.request("POST", &format!("/databases/{DATABASE}/queries"), &[], body.as_bytes());
    Found::read(answer.status, &answer.text(), script)
}
