//! `jackdaw import` and `jackdaw export` as a person types them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn jackdaw(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jackdaw"));
    command.current_dir(folder).args(arguments.split(' ')).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn files_of_all_kinds_go_in_and_a_dump_comes_out() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let lines =
        "{\"n\":1,\"@metadata\":{\"@id\":\"a/1\"}}\nnonsense\n{\"n\":2,\"@metadata\":{\"@id\":\"a/2\"}}\n";
    std::fs::write(folder.join("a.ndjson"), lines).unwrap();
    std::fs::write(folder.join("b.json"), "[{\"@metadata\":{\"@id\":\"b/1\"}}]").unwrap();
    std::fs::write(folder.join("c.csv"), "key,Name,zip\n1,Ada,0815\n").unwrap();
    let output = jackdaw(
        folder,
        "import db a.ndjson b.json c.csv --collection Things --column key=@id --id-prefix c/ --column zip:text",
    );
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    let text = out(&output);
    assert!(text.contains("refused line 2: "), "{text}");
    assert!(text.contains("total: 4 documents, 1 refused"), "{text}");

    let output = jackdaw(folder, "export db x.ravendbdump --json");
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert!(out(&output).contains("\"documents\": 4"), "{}", out(&output));
    let output = jackdaw(folder, "export db x.ravendbdump");
    assert_eq!(output.status.code(), Some(3), "what is there is not written over");
    assert!(errors(&output).contains("x.ravendbdump"), "{}", errors(&output));

    let output = jackdaw(folder, "import copy x.ravendbdump --json");
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert!(out(&output).contains("\"documents\": 4"), "{}", out(&output));
    let plain = out(&jackdaw(folder, "export copy - --compression none"));
    assert!(plain.contains("\"zip\":\"0815\"") && plain.contains("\"@id\":\"c/1\""), "{plain}");
}

#[test]
fn standard_input_needs_to_be_told() {
    let folder = tempfile::tempdir().unwrap();
    let output = jackdaw(folder.path(), "import db -");
    assert_eq!(output.status.code(), Some(3));
    assert!(errors(&output).contains("--input"), "{}", errors(&output));
    let mut command = Command::new(env!("CARGO_BIN_EXE_jackdaw"))
        .current_dir(folder.path())
        .args(["import", "db", "-", "--input", "lines", "--collection", "X"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    command.stdin.take().unwrap().write_all(b"{\"a\":1}\n{\"a\":2}").unwrap();
    let output = command.wait_with_output().unwrap();
    assert!(out(&output).contains("total: 2 documents, 0 refused"), "{}", out(&output));
}

#[test]
fn what_cannot_be_done_is_told_with_its_code() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let cut = "[{\"@metadata\":{\"@id\":\"b/1\"}},{\"@meta";
    std::fs::write(folder.join("cut.json"), cut).unwrap();
    let output = jackdaw(folder, "import db cut.json");
    assert_eq!(output.status.code(), Some(3));
    assert!(out(&output).contains("total: 1 documents"), "{}", out(&output));
    assert!(errors(&output).contains("ends too early"), "{}", errors(&output));
    assert_eq!(jackdaw(folder, "import db missing.json").status.code(), Some(3));
    assert_eq!(jackdaw(folder, "import db").status.code(), Some(2));
    assert_eq!(jackdaw(folder, "export nothing x.dump").status.code(), Some(3));
    assert!(!folder.join("nothing").exists());
    assert_eq!(jackdaw(folder, "import http://127.0.0.1:1/x cut.json").status.code(), Some(3));
    let open = jackdaw_database::Database::open(folder.join("db"), "db", Default::default()).unwrap();
    let output = jackdaw(folder, "import db cut.json");
    assert_eq!(output.status.code(), Some(4), "{}", errors(&output));
    drop(open);
}
