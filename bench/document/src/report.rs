//! Running something several times, and the table.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

/// The time this thread has had a processor: nothing here waits for anything else, and what other programs take of the machine does not count.
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// What has been measured so far.
pub(crate) struct Report {
    out: Option<std::fs::File>,
    quick: bool,
    peers: Vec<String>,
    only: Vec<String>,
    /// The median of ourselves in the workload at hand, for ratios.
    ours: Option<(String, f64)>,
}

impl Report {
    pub(crate) fn new(
        out: Option<&Path>,
        quick: bool,
        peers: Vec<String>,
        only: Vec<String>,
    ) -> Result<Report> {
        println!(
            "{:<34} {:<20} {:>12} {:>12} {:>12}  {:<8} {:>8}",
            "workload", "engine", "median", "min", "max", "unit", "ours is"
        );
        Ok(Report { out: out.map(std::fs::File::create).transpose()?, quick, peers, only, ours: None })
    }

    pub(crate) fn wants(&self, workload: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| workload.starts_with(only.as_str()))
    }

    pub(crate) fn wants_peer(&self, engine: &str) -> bool {
        self.peers.is_empty() || self.peers.iter().any(|peer| engine.starts_with(peer.as_str()))
    }

    /// Times `run` several times; before each, `prepare` makes its input outside the clock. Reports `amount` per second in millions (MB/s of bytes) when `unit` is
    /// `MB/s`, else nanoseconds divided by `amount`.
    pub(crate) fn time<T>(
        &mut self,
        workload: &str,
        engine: &str,
        unit: &'static str,
        amount: usize,
        mut prepare: impl FnMut() -> T,
        mut run: impl FnMut(&mut T),
    ) -> Result<()> {
        let runs = if self.quick { 3 } else { 9 };
        let budget = Duration::from_millis(if self.quick { 300 } else { 2_000 });
        let mut values = Vec::new();
        let started = Instant::now();
        // Short work is repeated within one run, so that the clock's own steps do not show.
        let mut repeat = 1usize;
        loop {
            let mut inputs: Vec<T> = (0..repeat).map(|_| prepare()).collect();
            let clock = processor_time();
            for input in &mut inputs {
                run(input);
            }
            let taken = processor_time() - clock;
            if values.is_empty() && taken < Duration::from_millis(2) && repeat < 1 << 12 {
                repeat *= 4;
                continue;
            }
            let nanoseconds = taken.as_nanos() as f64 / repeat as f64;
            values.push(if unit == "MB/s" {
                amount as f64 * 1e3 / nanoseconds
            } else {
                nanoseconds / amount as f64
            });
            if values.len() >= runs
                && (self.quick || started.elapsed() > budget / 4 || values.len() >= 4 * runs)
            {
                break;
            }
            if started.elapsed() > budget * 4 && values.len() >= 3 {
                break;
            }
        }
        // The first one warms up.
        if values.len() > 3 {
            values.remove(0);
        }
        self.row(workload, engine, unit, values)
    }

    /// One number that does not vary.
    pub(crate) fn fact(
        &mut self,
        workload: &str,
        engine: &str,
        unit: &'static str,
        value: f64,
    ) -> Result<()> {
        self.row(workload, engine, unit, vec![value])
    }

    fn row(&mut self, workload: &str, engine: &str, unit: &'static str, mut values: Vec<f64>) -> Result<()> {
        values.sort_by(f64::total_cmp);
        let (median, min, max) = (values[values.len() / 2], values[0], values[values.len() - 1]);
        let mut ratio = String::new();
        if engine.starts_with("jackdaw") && !matches!(&self.ours, Some((name, _)) if name == workload) {
            self.ours = Some((workload.to_owned(), median));
        } else if let Some((name, ours)) = &self.ours
            && name == workload
        {
            // How many times better we are.
            let better = if unit == "MB/s" { ours / median } else { median / ours };
            ratio = format!("{better:.2}x");
        }
        println!("{workload:<34} {engine:<20} {median:>12.3} {min:>12.3} {max:>12.3}  {unit:<8} {ratio:>8}");
        if let Some(out) = &mut self.out {
            let line = serde_json::json!({"bench": "document", "workload": workload, "engine": engine, "params": {},
                "median": median, "min": min, "max": max, "runs": values.len(), "unit": unit});
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<()> {
        Ok(())
    }
}
