//! Running one process to its end, or to its limit.

use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};

/// How a process ended.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Why it counts as failed, in a few words; nothing when it succeeded.
    pub(super) failure: Option<String>,
    /// Wall time from start to end.
    pub(super) duration: Duration,
    /// Its standard output and error, in the order in which they were written.
    pub(super) output: String,
}

/// Runs a process with its output kept. After `limit` it is killed, with everything it started.
pub(super) fn run(command: &mut Command, limit: Duration) -> Outcome {
    let start = Instant::now();
    let (failure, output) = match try_run(command, limit) {
        Ok((failure, output)) => (failure, output),
        Err(error) => (Some(format!("could not be run: {error:#}")), String::new()),
    };
    Outcome { failure, duration: start.elapsed(), output }
}

fn try_run(command: &mut Command, limit: Duration) -> Result<(Option<String>, String)> {
    // One file for both streams keeps their order, and unlike a pipe it cannot fill up, nor stay open in a grandchild.
    let mut log = temporary_file().context("no temporary file for its output")?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
    // Its own group, so that killing it kills what it started.
    let mut child = command.process_group(0).spawn()?;
    let group = Pid::from_child(&child);
    let (ended, wait_end) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        let hangs = wait_end.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
        if hangs {
            // It may have ended just now, which is as good.
            let _ = kill_process_group(group, Signal::KILL);
        }
        hangs
    });
    let status = child.wait()?;
    drop(ended);
    let hung = watchdog.join().unwrap_or(false);
    let mut output = Vec::new();
    log.rewind()?;
    log.read_to_end(&mut output)?;
    let failure = if hung {
        Some(format!("hangs: still running after {} s, killed", limit.as_secs_f64()))
    } else {
        failure_of(status)
    };
    Ok((failure, String::from_utf8_lossy(&output).into_owned()))
}

fn failure_of(status: ExitStatus) -> Option<String> {
    match (status.success(), status.signal()) {
        (true, _) => None,
        (false, Some(signal)) => Some(format!("killed by signal {signal}")),
        (false, None) => Some(format!("failed ({status})")),
    }
}

/// An open file without a name.
fn temporary_file() -> Result<std::fs::File> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("xtask-{}-{number}.log", std::process::id()));
    let file = std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Outcome {
        run(Command::new("sh").args(["-c", script]), limit)
    }

    #[test]
    fn output_and_success_are_kept() {
        let outcome = shell("echo out; echo err >&2; echo out again", LONG);
        assert_eq!(outcome.failure, None);
        assert_eq!(outcome.output, "out\nerr\nout again\n");
    }

    #[test]
    fn failure_and_signal_are_told_apart() {
        assert!(shell("exit 3", LONG).failure.is_some_and(|f| f.contains("exit status: 3")));
        assert!(shell("kill -SEGV $$", LONG).failure.is_some_and(|f| f.contains("signal 11")));
    }

    #[test]
    fn a_missing_program_is_a_failure() {
        let outcome = run(&mut Command::new("/no/such/program"), LONG);
        assert!(outcome.failure.is_some_and(|f| f.contains("could not be run")));
    }

    #[test]
    fn a_hang_is_cut_off_with_its_children() {
        // The child's child would outlive it by far, and holds the output open.
        let outcome = shell("echo before; sleep 600 & wait", Duration::from_millis(50));
        assert!(outcome.failure.is_some_and(|f| f.contains("hangs")));
        assert_eq!(outcome.output, "before\n");
        assert!(outcome.duration < LONG);
    }

    const LONG: Duration = Duration::from_secs(30);
}
