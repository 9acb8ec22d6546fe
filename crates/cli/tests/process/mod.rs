//! A real `jackdaw serve`, to be killed, filled and stopped from outside.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../../../server/tests/support/mod.rs"]
pub(crate) mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use self::support::{Answer, Client};

/// How long a process may take to end when it was asked to. It is asked, so this is not measured but waited for.
const END_MAX: Duration = Duration::from_secs(50);

/// The program under test.
pub(crate) const JACKDAW: &str = env!("CARGO_BIN_EXE_jackdaw");

/// A running server. Dropped, it is killed.
pub(crate) struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

impl Process {
    /// Starts a server on a directory and waits until it listens.
    pub(crate) fn start(data_dir: &Path, more: &[&str]) -> Process {
        Process::run(serve(data_dir, more)).expect("the server starts")
    }

    /// Runs a command that starts a server; `None` when it ends before one listens.
    pub(crate) fn run(mut command: Command) -> Option<Process> {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a process");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut process = Process { child, stdout, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        process.address = process.next_address()?;
        Some(process)
    }

    /// The address that is printed next: the server's, or that of the one which the command starts after it.
    pub(crate) fn next_address(&mut self) -> Option<SocketAddr> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).ok()?;
        line.trim().strip_prefix("http://")?.parse().ok()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// `kill -9`, and waits for the end.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    /// Asks it to stop.
    pub(crate) fn terminate(&self) {
        kill_process(self.pid(), Signal::TERM).expect("a signal");
    }

    /// How it ended, once it has.
    pub(crate) fn wait(mut self) -> ExitStatus {
        wait(&mut self.child)
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a state").is_none()
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address)
    }

    pub(crate) fn request(&self, method: &str, url: &str, body: &str) -> Answer {
        self.client().request(method, url, &[], body.as_bytes())
    }

    pub(crate) fn create_database(&self, name: &str) {
        let body = format!(r#"{{"DatabaseName":"{name}"}}"#);
        let answer = self.request("PUT", &format!("/admin/databases?name={name}"), &body);
        assert_eq!(answer.status, 201, "{}", answer.text());
    }

    /// Bytes of resident memory that belong to the process alone.
    pub(crate) fn anonymous_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a status");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a figure");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    }

    /// Processor time used so far.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("a status");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |index: usize| fields[index].parse::<u64>().expect("a number");
        Duration::from_millis((ticks(11) + ticks(12)) * 1000 / rustix::param::clock_ticks_per_second())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command that starts a server on a free port.
pub(crate) fn serve(data_dir: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(JACKDAW);
    command.arg("serve").args(["--port", "0", "--log-level", "error", "--data-dir"]).arg(data_dir).args(more);
    command
}

/// How a process ended, once it has.
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a state") {
            return status;
        }
        assert!(begun.elapsed() < END_MAX, "the process does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Lets this process open so many files; false where the system does not allow it.
pub(crate) fn allow_files(wanted: u64) -> bool {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return true;
    }
    if limit.maximum.is_some_and(|maximum| maximum < wanted) {
        return false;
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }).is_ok()
}

/// All documents whose ids begin so, by id.
pub(crate) fn documents(client: &mut Client, database: &str, prefix: &str) -> BTreeMap<String, Value> {
    let url = format!("/databases/{database}/streams/docs?startsWith={prefix}");
    let answer = client.request("GET", &url, &[], b"");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let Value::Array(results) = answer.json()["Results"].take() else { panic!("no results") };
    let id = |document: &Value| document["@metadata"]["@id"].as_str().expect("an id").to_owned();
    results.into_iter().map(|document| (id(&document), document)).collect()
}
