//! What is read off the machine around a measurement, and what a measurement is made of.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// One workload done once by one engine, in a process of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The figure, in the workload's unit.
    pub value: f64,
    /// Items written or read, or commits.
    pub operations: u64,
    /// Bytes of keys and values written; 0 when nothing was.
    pub raw_bytes: u64,
    /// How long single commits took, where they were timed.
    pub latency: Option<Latency>,
    /// Disk space the store takes after it was closed, in bytes.
    pub file_bytes: u64,
    /// Bytes that reached the disk from before the opening to after the closing, with what the system still had to write.
    /// The whole machine's: nothing else should run.
    pub written_bytes: u64,
    /// The most memory the process had, with pages of mapped files, in bytes.
    pub peak_rss_bytes: u64,
    /// Its own memory, without mapped files, before it closed the store, in bytes.
    pub anonymous_rss_bytes: u64,
    /// Processor seconds of the work, of all threads.
    pub cpu_seconds: f64,
    /// Wall seconds of the work.
    pub seconds: f64,
    /// How long closing the store took, in seconds.
    pub close_seconds: f64,
    /// Processors that others kept busy meanwhile: the noise of this measurement.
    pub other_cores: f64,
    /// Acknowledged items that were not found, or not as they were written; must be 0.
    pub lost: u64,
}

/// How long commits took, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of them took no longer.
    pub p50_us: f64,
    /// 99 of 100 took no longer.
    pub p99_us: f64,
    /// 999 of 1000 took no longer.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Latency {
    /// From the single times in nanoseconds, in any order; `None` when there are none.
    pub fn of(mut nanoseconds: Vec<u64>) -> Option<Latency> {
        nanoseconds.sort_unstable();
        let last = nanoseconds.len().checked_sub(1)?;
        let at = |part: f64| nanoseconds[(last as f64 * part).ceil() as usize] as f64 / 1000.0;
        Some(Latency { p50_us: at(0.5), p99_us: at(0.99), p999_us: at(0.999), max_us: at(1.0) })
    }
}

/// Processor time from a start on, ours and that of the whole machine.
pub struct Cpu {
    start: Instant,
    ours: f64,
    all: f64,
}

impl Cpu {
    /// Starts now.
    pub fn start() -> Result<Cpu> {
        Ok(Cpu { start: Instant::now(), ours: process_cpu_seconds()?, all: machine_cpu_seconds()? })
    }

    /// Our processor seconds since the start, and how many processors others kept busy.
    pub fn since(&self) -> Result<(f64, f64)> {
        let ours = process_cpu_seconds()? - self.ours;
        let others = (machine_cpu_seconds()? - self.all - ours).max(0.0);
        Ok((ours, others / self.start.elapsed().as_secs_f64().max(1e-3)))
    }
}

/// The kernel's unit of processor time in `/proc`: 100 a second on every architecture Linux has.
const TICKS_PER_SECOND: f64 = 100.0;

fn process_cpu_seconds() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/stat")?;
    // After the program's name, which may hold anything, in parentheses: state is field 3, utime 14, stime 15.
    let (_, fields) = text.rsplit_once(')').context("/proc/self/stat has no program name")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<f64>().unwrap_or(0.0));
    Ok(ticks.sum::<f64>() / TICKS_PER_SECOND)
}

/// Processor seconds of the whole machine since it started, without idling and waiting.
fn machine_cpu_seconds() -> Result<f64> {
    let text = fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0.0)).collect();
    let busy = [0, 1, 2, 5, 6, 7].iter().filter_map(|i| ticks.get(*i));
    Ok(busy.sum::<f64>() / TICKS_PER_SECOND)
}

/// Bytes of a memory field of `/proc/self/status`, such as `VmHWM` or `RssAnon`.
pub fn status_bytes(field: &str) -> Result<u64> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    let kilobytes: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    Ok(kilobytes << 10)
}

/// Bytes written to the device that holds a directory, by everyone, since the machine started; 0 where the system does not
/// tell. (`/proc/self/io` would be ours alone, but counts whole folios of the page cache.)
pub fn device_written_bytes(directory: &Path) -> Result<u64> {
    let device = fs::metadata(directory)?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let text = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).unwrap_or_default();
    let sectors: u64 = text.split_whitespace().nth(6).and_then(|n| n.parse().ok()).unwrap_or(0);
    Ok(sectors * 512)
}

/// Makes everything written to the file system that holds a directory durable, so that it is counted, and so that the next
/// measurement does not pay for it.
pub fn sync_file_system(directory: &Path) -> Result<()> {
    rustix::fs::syncfs(fs::File::open(directory)?)?;
    Ok(())
}

/// Disk space that a file or all files below a directory take, in bytes.
pub fn disk_bytes(path: &Path) -> io::Result<u64> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_dir() {
        return Ok(metadata.blocks() * 512);
    }
    let mut sum = 0;
    for entry in fs::read_dir(path)? {
        sum += disk_bytes(&entry?.path())?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let latency = Latency::of((1..=1000).rev().map(|us| us * 1000).collect()).unwrap();
        assert_eq!((latency.p50_us, latency.p99_us, latency.max_us), (501.0, 991.0, 1000.0));
        assert_eq!(Latency::of(vec![5000]).unwrap().p999_us, 5.0);
        assert_eq!(Latency::of(vec![]), None);
    }

    #[test]
    fn the_machine_tells_what_is_asked() {
        let cpu = Cpu::start().unwrap();
        let (ours, _) = cpu.since().unwrap();
        assert!((0.0..10.0).contains(&ours));
        assert!(machine_cpu_seconds().unwrap() > 0.0);
        assert!(status_bytes("VmHWM").unwrap() > 1 << 20);
    }

    #[test]
    fn disk_space_is_added_up() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/b"), vec![1; 100_000]).unwrap();
        sync_file_system(folder.path()).unwrap();
        assert!(disk_bytes(folder.path()).unwrap() >= 100_000);
    }
}
