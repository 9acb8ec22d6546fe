//! The closed loop, and what it costs the server.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::http::Connection;
use crate::random::Random;

/// Where a server is and how to look at it from outside.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: String,
    pub(crate) pid: Option<u32>,
    /// Its data.
    pub(crate) folder: Option<PathBuf>,
}

/// What one run showed.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) ops: u64,
    pub(crate) seconds: f64,
    /// In units of 100 ns, sorted.
    pub(crate) latencies: Vec<u32>,
    /// Processor seconds of the server.
    pub(crate) cpu: f64,
    /// Processor seconds of the driver: near `seconds`, and it is the driver that was measured.
    pub(crate) driver_cpu: f64,
    /// Bytes that the server's process wrote to the disk.
    pub(crate) written: u64,
    /// How many answers had a status of 400 or more, and the first of them.
    pub(crate) errors: Option<(usize, String)>,
}

impl Run {
    pub(crate) fn rate(&self) -> f64 {
        self.ops as f64 / self.seconds
    }

    /// Microseconds of the server's processor time for one op.
    pub(crate) fn cpu_us(&self) -> f64 {
        self.cpu * 1e6 / self.ops.max(1) as f64
    }

    /// Microseconds.
    pub(crate) fn quantile(&self, quantile: f64) -> Option<f64> {
        let at = (self.latencies.len() as f64 * quantile) as usize;
        let last = self.latencies.len().checked_sub(1)?;
        Some(f64::from(self.latencies[at.min(last)]) / 10.0)
    }
}

/// What was used so far.
pub(crate) struct Usage {
    cpu: f64,
    driver_cpu: f64,
    written: u64,
    at: Instant,
}

impl Target {
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            cpu: cpu(self.pid),
            driver_cpu: cpu(Some(std::process::id())),
            written: written(self.pid),
            at: Instant::now(),
        }
    }

    /// A run without latencies that began at `before`.
    pub(crate) fn run_since(&self, before: &Usage, ops: u64) -> Run {
        let now = self.usage();
        Run {
            ops,
            seconds: (now.at - before.at).as_secs_f64(),
            cpu: now.cpu - before.cpu,
            driver_cpu: now.driver_cpu - before.driver_cpu,
            written: now.written.saturating_sub(before.written),
            ..Run::default()
        }
    }
}

/// Fills a buffer with the next encoded request of one connection.
pub(crate) type Next = Rc<dyn Fn(&mut Random, &mut Vec<u8>)>;

/// Sends requests over some connections, each waiting for its answer before its next, for `seconds` after a warm-up.
/// Counts what is answered within those seconds, whenever it was sent: so a slow server is not counted short.
pub(crate) async fn closed_loop(
    target: &Target,
    connections: usize,
    warmup: f64,
    seconds: f64,
    next: Next,
) -> Result<Run> {
    let start = Instant::now() + Duration::from_secs_f64(warmup);
    let end = start + Duration::from_secs_f64(seconds);
    let seed = std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_nanos() as u64);
    let mut tasks = Vec::new();
    for n in 0..connections {
        let next = next.clone();
        let mut connection = Connection::open(&target.address).await?;
        tasks.push(tokio::task::spawn_local(async move {
            let (mut latencies, mut errors, mut request) = (Vec::new(), Vec::new(), Vec::new());
            let mut random = Random::new(seed.wrapping_add(n as u64));
            let mut sent = Instant::now();
            while sent < end {
                request.clear();
                next(&mut random, &mut request);
                sent = Instant::now();
                let status = connection.send(&request).await?;
                let done = Instant::now();
                if status >= 400 {
                    errors.push(format!("{status} {}", String::from_utf8_lossy(&connection.body)));
                }
                if done >= start && done <= end {
                    latencies.push(((done - sent).as_nanos() / 100) as u32);
                }
            }
            anyhow::Ok((latencies, errors))
        }));
    }
    tokio::time::sleep_until(start.into()).await;
    let before = target.usage();
    tokio::time::sleep_until(end.into()).await;
    let mut run = target.run_since(&before, 0);
    run.seconds = seconds;
    let mut errors = Vec::new();
    for task in tasks {
        let (mut latencies, mut failed) = task.await??;
        run.latencies.append(&mut latencies);
        errors.append(&mut failed);
    }
    run.latencies.sort_unstable();
    run.ops = run.latencies.len() as u64;
    let count = errors.len();
    run.errors = errors.into_iter().next().map(|first| (count, first));
    Ok(run)
}

/// User and system seconds a process has used; 0 without a process.
pub(crate) fn cpu(pid: Option<u32>) -> f64 {
    pid.and_then(|pid| cpu_at(pid, 11)).unwrap_or(0.0)
}

/// Processor seconds of the processes that this one started and that have ended.
pub(crate) fn children_cpu() -> f64 {
    cpu_at(std::process::id(), 13).unwrap_or(0.0)
}

/// User and system time in seconds, which are the fields `first` and `first + 1` after the name in a process's `stat`.
fn cpu_at(pid: u32, first: usize) -> Option<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name is in brackets and may hold spaces: count the fields after it.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((ticks(first)? + ticks(first + 1)?) / TICKS_PER_SECOND)
}

fn written(pid: Option<u32>) -> u64 {
    let read = || number_of(&format!("/proc/{}/io", pid?), "write_bytes:");
    read().unwrap_or(0)
}

/// Resident memory in bytes, and the part of it that is no file.
pub(crate) fn memory(pid: Option<u32>) -> Option<(u64, u64)> {
    let file = format!("/proc/{}/status", pid?);
    Some((number_of(&file, "VmRSS:")? << 10, number_of(&file, "RssAnon:")? << 10))
}

fn number_of(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
