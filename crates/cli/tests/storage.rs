//! `jackdaw storage` as a user has it: the real binary, its output and its exit codes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use jackdaw_storage::{Environment, Options, PAGE_SIZE};
use serde_json::Value;
use tempfile::TempDir;

/// Keys in the test environment's tree.
const ENTRIES: u64 = 3000;

/// An environment with values of every size, closed, in a folder of its own.
fn environment() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("env");
    let env = Environment::open(&path, Options::default()).unwrap();
    fill(&env);
    env.close().unwrap();
    (folder, path)
}

fn fill(env: &Environment) {
    let mut tx = env.write().unwrap();
    let mut tree = tx.create_tree(b"users").unwrap();
    for i in 0..ENTRIES {
        let size = if i % 100 == 0 { 20_000 } else { 10 + i as usize % 1000 };
        tree.put(format!("users/{i:08}").as_bytes(), &vec![b'a' + (i % 26) as u8; size]).unwrap();
    }
    drop(tree);
    tx.commit().unwrap();
}

/// Runs `jackdaw storage ...`.
fn jackdaw(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jackdaw"));
    command.arg("storage").args(arguments).stdin(Stdio::null()).env_remove("RUST_LOG");
    command
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The standard output of a run with this exit code.
#[track_caller]
fn out(output: &Output, code: i32) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
    out.into_owned()
}

#[track_caller]
fn json(output: &Output, code: i32) -> Value {
    serde_json::from_str(&out(output, code)).unwrap()
}

/// The standard error of a run with this exit code, which printed nothing else.
#[track_caller]
fn error(output: &Output, code: i32) -> String {
    assert_eq!(out(output, code), "");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// All names and contents below a folder.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path))
        } else {
            all.push((path.clone(), fs::read(&path).unwrap()))
        }
    }
    all.sort();
    all
}

/// The first page of a kind in the data file; of leaves, the first one of the tree and not of the catalog.
fn page_of_kind(env: &Path, kind: &str) -> u64 {
    let of_kind = |number: &u64| {
        let output = jackdaw(&["dump-page", text(env), &number.to_string(), "--file", "--json"]);
        let page: Value = serde_json::from_slice(&output.stdout).unwrap();
        let is_catalog = page["items"][0]["key"] == "users";
        page["kind"] == kind && !is_catalog
    };
    let pages = fs::metadata(env.join("data")).unwrap().len() / PAGE_SIZE as u64;
    (0..pages).find(of_kind).unwrap()
}

fn damage(env: &Path, page: u64, at: u64) {
    let data = fs::OpenOptions::new().write(true).open(env.join("data")).unwrap();
    data.write_all_at(&[0x5A; 8], page * PAGE_SIZE as u64 + at).unwrap();
}

#[test]
fn stat_prints_what_is_there() {
    let (_folder, env) = environment();
    let plain = out(&jackdaw(&["stat", text(&env)]), 0);
    assert!(plain.contains("last transaction:"), "{plain}");
    assert!(!plain.contains("users"), "trees only when asked for: {plain}");
    let trees = out(&jackdaw(&["stat", text(&env), "--trees"]), 0);
    assert!(trees.contains(&format!("tree \"users\": {ENTRIES} entries, depth 2")), "{trees}");
    let json = json(&jackdaw(&["stat", text(&env), "--trees", "--json"]), 0);
    assert_eq!(json["last_transaction"], 1);
    assert_eq!(json["trees"][0]["name"], "users");
    assert_eq!(json["trees"][0]["entries"], ENTRIES);
    assert_eq!(json["trees"][0]["pages_by_kind"]["overflow"], ENTRIES / 100 * 3);
    assert_eq!(json["page_size"], PAGE_SIZE);
}

#[test]
fn looking_changes_nothing() {
    let (_folder, env) = environment();
    // The lock file takes the pid of whoever looks.
    let files = || contents(&env).into_iter().filter(|(path, _)| !path.ends_with("lock")).collect::<Vec<_>>();
    let before = files();
    for arguments in
        [vec!["stat", text(&env), "--trees"], vec!["check", text(&env)], vec!["dump-page", text(&env), "0"]]
    {
        out(&jackdaw(&arguments), 0);
    }
    assert!(files() == before);
}

#[test]
fn check_finds_nothing_in_a_sound_environment() {
    let (_folder, env) = environment();
    let text_out = out(&jackdaw(&["check", text(&env)]), 0);
    assert!(text_out.contains("nothing is wrong"), "{text_out}");
    let report = json(&jackdaw(&["check", text(&env), "--json"]), 0);
    assert_eq!((&report["clean"], &report["problems"]), (&Value::Bool(true), &Value::Array(vec![])));
}

#[test]
fn check_names_a_damaged_page_and_exits_with_1() {
    let (_folder, env) = environment();
    let leaf = page_of_kind(&env, "leaf");
    damage(&env, leaf, 4000);
    let text_out = out(&jackdaw(&["check", text(&env)]), 1);
    assert!(text_out.contains(&format!("page {leaf}")) && text_out.contains("PROBLEM"), "{text_out}");
    let report = json(&jackdaw(&["check", text(&env), "--json"]), 1);
    let pages: Vec<_> = report["problems"].as_array().unwrap().iter().map(|p| p["page"].as_u64()).collect();
    assert!(pages.contains(&Some(leaf)), "{pages:?}");
}

#[test]
fn dump_page_shows_keys_values_and_children() {
    let (_folder, env) = environment();
    for file in [&[][..], &["--file"]] {
        let dump = |kind: &str, more: &[&str]| {
            let page = page_of_kind(&env, kind).to_string();
            jackdaw(&[&["dump-page", text(&env), &page], file, more].concat())
        };
        let leaf = out(&dump("leaf", &[]), 0);
        assert!(leaf.contains("\"users/0000") && leaf.contains("in the overflow run at page"), "{leaf}");
        let branch = json(&dump("branch", &["--json"]), 0);
        assert!(branch["items"][1]["content"]["child_page"].as_u64().unwrap() > 0);
        assert!(branch["items"][1]["key"].as_str().unwrap().starts_with("users/"));
        let bytes = out(&dump("root", &["--bytes"]), 0);
        assert!(bytes.contains("\n0000  0000 0000"), "{bytes}");
    }
}

#[test]
fn dump_page_tells_damage_and_a_page_that_is_not_there() {
    let (_folder, env) = environment();
    let leaf = page_of_kind(&env, "leaf");
    damage(&env, leaf, 4000);
    let shown = out(&jackdaw(&["dump-page", text(&env), &leaf.to_string(), "--file"]), 1);
    assert!(shown.contains("DAMAGED"), "{shown}");
    out(&jackdaw(&["dump-page", text(&env), &leaf.to_string()]), 1);
    for file in [&[][..], &["--file"]] {
        let error = error(&jackdaw(&[&["dump-page", text(&env), "1000000"], file].concat()), 3);
        assert!(error.contains("there is no page 1000000"), "{error}");
    }
}

#[test]
fn compact_makes_a_smaller_copy_with_the_same_content() {
    let (folder, path) = environment();
    let env = Environment::open(&path, Options::default()).unwrap();
    let mut tx = env.write().unwrap();
    for i in (0..ENTRIES).filter(|i| i % 10 != 0) {
        tx.tree_mut(b"users").unwrap().delete(format!("users/{i:08}").as_bytes()).unwrap();
    }
    tx.commit().unwrap();
    env.close().unwrap();

    let copy = folder.path().join("copy");
    let sizes = json(&jackdaw(&["compact", text(&path), text(&copy), "--json"]), 0);
    assert!(sizes["size_after"].as_u64() < sizes["size_before"].as_u64(), "{sizes}");
    out(&jackdaw(&["check", text(&copy)]), 0);
    same_content(&path, &copy);
    let again = error(&jackdaw(&["compact", text(&path), text(&copy)]), 3);
    assert!(again.contains(text(&copy)), "{again}");
    same_content(&path, &copy);
}

#[track_caller]
fn same_content(a: &Path, b: &Path) {
    let entries = |path: &Path| {
        let env = Environment::open(path, Options::default().create(false).read_only(true)).unwrap();
        let snapshot = env.read().unwrap();
        let (mut range, mut all) = (snapshot.tree(b"users").unwrap().iter().unwrap(), Vec::new());
        while let Some((key, value)) = range.next().unwrap() {
            all.push((key.to_vec(), value.to_vec()));
        }
        all
    };
    assert!(entries(a) == entries(b));
}

#[test]
fn backups_hold_the_same_content() {
    let (folder, env) = environment();
    let copy = folder.path().join("copy");
    let said = out(&jackdaw(&["backup", text(&env), text(&copy)]), 0);
    assert_eq!(said, "backed up transaction 1\n");
    same_content(&env, &copy);

    let (file, restored) = (folder.path().join("backup"), folder.path().join("restored"));
    out(&jackdaw(&["backup", text(&env), "--stream", text(&file)]), 0);
    let said = json(&jackdaw(&["restore", text(&restored), text(&file), "--json"]), 0);
    assert_eq!(said["transaction"], 1);
    same_content(&env, &restored);
    out(&jackdaw(&["check", text(&restored)]), 0);
}

#[test]
fn backups_pass_through_pipes() {
    let (folder, env) = environment();
    let stream = jackdaw(&["backup", text(&env), "--stream", "-"]);
    assert_eq!(stream.status.code(), Some(0));
    let restored = folder.path().join("restored");
    let mut child = command(&["restore", text(&restored), "-"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&stream.stdout).unwrap();
    assert!(child.wait().unwrap().success());
    same_content(&env, &restored);
}

#[test]
fn a_backup_never_replaces_anything() {
    let (folder, env) = environment();
    let other = folder.path().join("other");
    fs::write(&other, "precious").unwrap();
    error(&jackdaw(&["backup", text(&env), "--stream", text(&other)]), 3);
    assert_eq!(fs::read(&other).unwrap(), b"precious");
    // Another environment, and the one that is backed up.
    let (_folder, taken) = environment();
    let files = |path: &Path| {
        contents(path).into_iter().filter(|(path, _)| !path.ends_with("lock")).collect::<Vec<_>>()
    };
    let before = files(&taken);
    let refused = error(&jackdaw(&["backup", text(&env), text(&taken)]), 3);
    assert!(refused.contains("empty"), "{refused}");
    assert!(files(&taken) == before);
    error(&jackdaw(&["backup", text(&env), text(&env)]), 4);
    out(&jackdaw(&["check", text(&env)]), 0);
}

#[test]
fn a_cut_or_altered_backup_is_not_restored() {
    let (folder, env) = environment();
    let (file, restored) = (folder.path().join("backup"), folder.path().join("restored"));
    out(&jackdaw(&["backup", text(&env), "--stream", text(&file)]), 0);
    let whole = fs::read(&file).unwrap();
    let mut altered = whole.clone();
    altered[whole.len() / 2] ^= 1;
    for bad in [&whole[..whole.len() - 1], &whole[..100], b"", &altered] {
        fs::write(&file, bad).unwrap();
        let message = error(&jackdaw(&["restore", text(&restored), text(&file)]), 1);
        assert!(message.starts_with("jackdaw: "), "{message}");
        error(&jackdaw(&["stat", text(&restored)]), 3);
        let _ = fs::remove_dir_all(&restored); // it need not have been made
    }
}

#[test]
fn an_environment_in_use_is_refused_with_its_holder() {
    let (_folder, env) = environment();
    let open = Environment::open(&env, Options::default()).unwrap();
    let message = error(&jackdaw(&["check", text(&env)]), 4);
    assert!(message.contains(&format!("in use by process {}", std::process::id())), "{message}");
    out(&jackdaw(&["dump-page", text(&env), "0", "--file"]), 0);
    open.close().unwrap();
    out(&jackdaw(&["check", text(&env)]), 0);
}

#[test]
fn a_directory_without_an_environment_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_path_buf(), folder.path().join("gone")] {
        for arguments in
            [vec!["stat", text(&path)], vec!["check", text(&path)], vec!["dump-page", text(&path), "0"]]
        {
            let message = error(&jackdaw(&arguments), 3);
            assert!(message.contains("holds no environment"), "{message}");
        }
    }
    assert!(contents(folder.path()).is_empty() && !folder.path().join("gone").exists());
}

#[test]
fn what_was_not_flushed_is_shown_too() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("env"), folder.path().join("copy"));
    let env = Environment::open(&path, Options::default()).unwrap();
    fill(&env);
    // A copy of the files as they are now is what a crash leaves: the commit may be in the journal alone.
    fs::create_dir_all(copy.join("journal")).unwrap();
    for (file, bytes) in contents(&path) {
        fs::write(copy.join(file.strip_prefix(&path).unwrap()), bytes).unwrap();
    }
    env.close().unwrap();
    let stat = json(&jackdaw(&["stat", text(&copy), "--trees", "--json"]), 0);
    assert_eq!(stat["trees"][0]["entries"], ENTRIES);
    out(&jackdaw(&["check", text(&copy)]), 0);
}

#[test]
fn wrong_usage_exits_with_2() {
    for arguments in
        [&["stat"][..], &["check", "a", "b"], &["backup", "a"], &["dump-page", "a", "x"], &["unheard"]]
    {
        assert_eq!(jackdaw(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let (_folder, env) = environment();
    let leaf = page_of_kind(&env, "leaf").to_string();
    let mut child = command(&["dump-page", text(&env), &leaf, "--bytes", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
