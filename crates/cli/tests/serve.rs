//! `jackdaw serve` as a user has it: the real binary, its settings, its output, its end.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A server that is killed when the test ends, however it does.
struct Running {
    child: Child,
    url: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn jackdaw(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jackdaw"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("JACKDAW_") {
            command.env_remove(name);
        }
    }
    command
        .current_dir(directory)
        .arg("serve")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn start(command: &mut Command) -> Running {
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    Running { child, url: line.trim().to_owned() }
}

fn get(url: &str, path: &str) -> String {
    let mut socket = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    write!(socket, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

fn terminate(running: &mut Running) -> (Option<i32>, String) {
    let killed = Command::new("kill").arg(running.child.id().to_string()).status().unwrap();
    assert!(killed.success());
    let status = running.child.wait().unwrap();
    let mut log = String::new();
    running.child.stderr.as_mut().unwrap().read_to_string(&mut log).unwrap();
    (status.code(), log)
}

fn refused(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(!status.success() && stdout.is_empty());
    String::from_utf8(stderr).unwrap()
}

#[test]
fn it_prints_the_url_really_bound_serves_and_ends_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = start(jackdaw(folder.path()).args(["--port", "0", "--data-dir", "data"]));
    assert!(running.url.starts_with("http://127.0.0.1:") && !running.url.ends_with(":0"), "{}", running.url);
    assert!(get(&running.url, "/build/version").starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(folder.path().join("data/System/data").exists());
    let (code, log) = terminate(&mut running);
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("ready") && log.contains("stopped"), "{log}");
}

#[test]
fn flags_go_before_the_environment_and_that_before_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = "data-dir = \"of-file\"\nlog-format = \"json\"\nport = 1\npublic-url = \"http://of-file\"\nlog-requests = true\n";
    std::fs::write(folder.path().join("jackdaw.toml"), file).unwrap();
    let mut command = jackdaw(folder.path());
    command
        .env("JACKDAW_SETTINGS", "jackdaw.toml")
        .env("JACKDAW_PORT", "2")
        .env("JACKDAW_DATA_DIR", "of-environment");
    let mut running = start(command.args(["--port", "0", "--public-url", ""]));
    assert!(folder.path().join("of-environment").is_dir() && !folder.path().join("of-file").exists());
    assert!(get(&running.url, "/health/live").starts_with("HTTP/1.1 204"));
    let (code, log) = terminate(&mut running);
    assert_eq!(code, Some(0));
    let requests = log.lines().filter(|line| line.starts_with('{') && line.contains("/health/live")).count();
    assert_eq!(requests, 1, "{log}");
}

#[test]
fn what_cannot_be_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("bad.toml"), "prot = 1\n").unwrap();
    for (message, expected) in [
        (refused(jackdaw(path).args(["--colour", "red"])), "--colour"),
        (refused(jackdaw(path).args(["--port", "http"])), "--port: the setting 'port' cannot be 'http'"),
        (
            refused(jackdaw(path).env("JACKDAW_PROT", "1")),
            "environment variable JACKDAW_PROT: there is no setting 'prot'",
        ),
        (refused(jackdaw(path).args(["--settings", "bad.toml"])), "bad.toml: there is no setting 'prot'"),
        (refused(jackdaw(path).args(["--settings", "none.toml"])), "none.toml: No such file"),
        (refused(jackdaw(path).args(["--host", "0.0.0.0"])), "--unsecured-access-allowed public-network"),
    ] {
        assert!(message.contains(expected), "{expected} is not in {message}");
    }
    assert!(!path.join("jackdaw-data").exists(), "nothing is made");
}

#[test]
fn a_directory_in_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(jackdaw(folder.path()).args(["--port", "0"]));
    let message = refused(jackdaw(folder.path()).args(["--port", "0"]));
    assert!(message.contains(&format!("is in use by process {}", running.child.id())), "{message}");
    let port = running.url.rsplit(':').next().unwrap();
    let message = refused(jackdaw(folder.path()).args(["--port", port, "--data-dir", "other"]));
    assert!(message.contains("cannot listen on 127.0.0.1"), "{message}");
}
