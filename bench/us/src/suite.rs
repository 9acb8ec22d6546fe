//! The parent: which measurements are made, in which order, each in a child process with a time limit.
//!
//! A repetition goes through the workloads, and within each through the engines, so that engines are compared within
//! minutes of each other; the engine that begins changes from repetition to repetition.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::child::{Step, Task};
use crate::measure::{self, Measurement};
use crate::report::Results;
use crate::workload::{Kind, Scale, Workload};

/// A writer that is to be killed is killed after this part of its transactions.
const KILL_AFTER: f64 = 0.9;

/// What to measure.
pub struct Suite {
    /// Engines by name.
    pub engines: Vec<&'static str>,
    /// Workloads, in the order of the catalogue.
    pub workloads: Vec<&'static Workload>,
    /// How often.
    pub runs: usize,
    /// How much of each.
    pub scale: Scale,
    /// Where stores are made, each in a folder of its own.
    pub directory: PathBuf,
    /// A child that takes longer is killed, and its measurement counts as failed.
    pub limit: Duration,
}

impl Suite {
    /// Makes all measurements. One that fails is told and noted; the others go on.
    pub fn run(&self) -> Result<Results> {
        let mut results = Results::new(&self.engines, &self.workloads, self.scale);
        fs::create_dir_all(&self.directory)
            .with_context(|| format!("cannot make {}", self.directory.display()))?;
        for run in 0..self.runs {
            for (index, workload) in self.workloads.iter().enumerate() {
                for engine in self.engines_in_order(run) {
                    if workload.kind == Kind::Recover && engine != crate::engine::OURS {
                        continue; // Peers do not tell how much they recovered.
                    }
                    eprintln!("run {} of {}: {} {engine}", run + 1, self.runs, workload.name);
                    match self.measure(engine, workload) {
                        Ok(measurement) => results.add(workload, engine, measurement),
                        Err(error) => {
                            eprintln!("failed: {} {engine}: {error:#}", workload.name);
                            results.add_failure(workload, engine, format!("{error:#}"));
                        }
                    }
                }
                // A store lives as long as the next workload reads it.
                let next = self.workloads.get(index + 1);
                if next.is_none_or(|next| !next.reads_store() || next.store != workload.store) {
                    for engine in &self.engines {
                        self.remove(&self.store(engine, workload))?;
                    }
                }
            }
        }
        Ok(results)
    }

    fn engines_in_order(&self, run: usize) -> Vec<&'static str> {
        let mut engines = self.engines.clone();
        engines.rotate_left(run % self.engines.len().max(1));
        engines
    }

    fn store(&self, engine: &str, workload: &Workload) -> PathBuf {
        self.directory.join(format!("{engine}-{}", workload.store))
    }

    fn remove(&self, store: &PathBuf) -> Result<()> {
        match fs::remove_dir_all(store) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", store.display()))
            }
            _ => Ok(()),
        }
    }

    fn measure(&self, engine: &str, workload: &Workload) -> Result<Measurement> {
        let store = self.store(engine, workload);
        let task = |workload: &str, step| Task {
            engine: engine.to_owned(),
            workload: workload.to_owned(),
            directory: store.clone(),
            scale: self.scale,
            step,
        };
        if workload.reads_store() {
            if !store.exists() {
                // The workload that makes the store was not asked for.
                self.run_child(&task(workload.store, Step::Measure))?;
            }
            return self.run_child(&task(workload.name, Step::Measure));
        }
        self.remove(&store)?;
        match workload.kind {
            Kind::OpenAfterKill | Kind::Recover => {
                let transactions = workload.shape(&self.scale).transactions;
                let kill_at = ((transactions as f64 * KILL_AFTER) as u64).max(1);
                let acknowledged =
                    self.write_and_kill(&task(workload.name, Step::WriteUntilKilled), kill_at)?;
                self.run_child(&task(workload.name, Step::OpenAfterKill { acknowledged }))
            }
            _ => self.run_child(&task(workload.name, Step::Measure)),
        }
    }

    /// Runs a task to its end and reads its measurement.
    fn run_child(&self, task: &Task) -> Result<Measurement> {
        measure::sync_file_system(&self.directory)?; // Nobody pays for the writes of the one before.
        let mut child = start(task)?;
        let start = Instant::now();
        while child.try_wait()?.is_none() {
            if start.elapsed() > self.limit {
                child.kill()?;
                child.wait()?;
                bail!("took longer than {} s", self.limit.as_secs());
            }
            thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
        }
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).with_context(|| format!("the child said {text:?}"))
    }

    /// Runs a task until it has acknowledged `kill_at` transactions, kills it, and returns how many it acknowledged.
    fn write_and_kill(&self, task: &Task, kill_at: u64) -> Result<u64> {
        let mut child = start(task)?;
        let mut out = child.stdout.take().context("the child has no output")?;
        let mut acknowledged = 0;
        let mut number = [0; 8];
        while acknowledged < kill_at {
            if out.read_exact(&mut number).is_err() {
                let output = child.wait_with_output()?;
                bail!("ended before it was killed: {}", String::from_utf8_lossy(&output.stderr).trim());
            }
            acknowledged = u64::from_le_bytes(number);
        }
        child.kill()?;
        // What it acknowledged before it died counts too.
        while out.read_exact(&mut number).is_ok() {
            acknowledged = u64::from_le_bytes(number);
        }
        child.wait()?;
        Ok(acknowledged)
    }
}

fn start(task: &Task) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("child").arg(serde_json::to_string(task)?);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().context("cannot start a child process")
}
