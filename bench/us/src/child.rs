//! One measurement, in the process that makes it. The parent (`suite`) starts it with a [`Task`] and reads its
//! standard output: a [`Measurement`] as JSON, or for a task that ends by being killed, eight bytes for every acknowledged
//! transaction.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::engine::{Engine, Entry, Purpose};
use crate::measure::{self, Cpu, Latency, Measurement};
use crate::workload::{self, Kind, Scale, Shape, mix};

/// What one child process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The engine's name.
    pub engine: String,
    /// The workload's name.
    pub workload: String,
    /// The store's directory.
    pub directory: PathBuf,
    /// How much of the workload.
    pub scale: Scale,
    /// What to do with it.
    pub step: Step,
}

/// What to do with a workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Step {
    /// Do it and measure it.
    Measure,
    /// Write its items, telling the number of every acknowledged transaction, until killed.
    WriteUntilKilled,
    /// Open what was left by a kill, measure that, and look for all items of this many acknowledged transactions.
    OpenAfterKill {
        /// Transactions that were acknowledged.
        acknowledged: u64,
    },
}

/// Does the task; prints what the parent waits for.
pub fn run(task: &Task, engines: &[Entry]) -> Result<()> {
    let entry = engines.iter().find(|entry| entry.name == task.engine).context("unknown engine")?;
    let workload = workload::find(&task.workload).context("unknown workload")?;
    let shape = workload.shape(&task.scale);
    fs::create_dir_all(&task.directory)?;
    shape.value(0); // Makes the pool of values before any clock runs.

    let written_before = measure::device_written_bytes(&task.directory)?;
    let recovers = workload.kind == Kind::Recover && task.step == Step::WriteUntilKilled;
    let purpose = if recovers { Purpose::LongJournal } else { Purpose::Ordinary };
    let opening = Instant::now();
    let engine = (entry.open)(&task.directory, purpose)?;
    let open_seconds = opening.elapsed().as_secs_f64();

    let work = Work { engine: &*engine, shape, threads: workload.threads, scale: task.scale };
    if workload.kind == Kind::Get {
        engine.read(&mut |reader| reader.scan(&mut |_, _| {}))?; // Reads of data in memory are measured, not the disk.
    }
    let cpu = Cpu::start()?;
    let mut measured = match (task.step, workload.kind) {
        (Step::WriteUntilKilled, _) => {
            let mut out = std::io::stdout();
            work.write(&mut |acknowledged| Ok(out.write_all(&u64::to_le_bytes(acknowledged))?))?;
            // Stay until killed: a store that is closed in order has nothing to recover.
            thread::sleep(Duration::from_secs(600));
            bail!("was not killed");
        }
        (Step::OpenAfterKill { acknowledged }, kind) => {
            let lost = work.count_lost(acknowledged)?;
            let value = match (kind, engine.recovered()) {
                (Kind::Recover, Some(recovered)) => {
                    recovered.seconds / (recovered.bytes as f64 / (1u64 << 30) as f64)
                }
                (Kind::Recover, None) => bail!("{} does not tell what it recovered", entry.name),
                _ => open_seconds * 1e3,
            };
            Measurement { value, operations: 1, seconds: open_seconds, lost, ..Measurement::default() }
        }
        (Step::Measure, Kind::Write) => work.measure_write()?,
        (Step::Measure, Kind::Get) => work.measure_get()?,
        (Step::Measure, Kind::Scan) => work.measure_scan()?,
        (Step::Measure, Kind::Commit) => work.measure_commit()?,
        (Step::Measure, Kind::OpenReader) => work.measure_open_reader()?,
        (Step::Measure, Kind::OpenAfterKill | Kind::Recover) => {
            bail!("{} needs a kill before", workload.name)
        }
    };
    (measured.cpu_seconds, measured.other_cores) = cpu.since()?;
    measured.anonymous_rss_bytes = measure::status_bytes("RssAnon")?;

    let closing = Instant::now();
    engine.close()?;
    measured.close_seconds = closing.elapsed().as_secs_f64();
    measure::sync_file_system(&task.directory)?;
    measured.written_bytes = measure::device_written_bytes(&task.directory)?.saturating_sub(written_before);
    measured.file_bytes = measure::disk_bytes(&task.directory)?;
    measured.peak_rss_bytes = measure::status_bytes("VmHWM")?;
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

/// A store and what to do with it.
struct Work<'a> {
    engine: &'a dyn Engine,
    shape: Shape,
    threads: usize,
    scale: Scale,
}

impl Work<'_> {
    /// Writes all items; calls `acknowledge` with the number of transactions done after each. Returns each commit's nanoseconds.
    fn write(&self, acknowledge: &mut dyn FnMut(u64) -> Result<()>) -> Result<Vec<u64>> {
        let mut batch = self.shape.batch();
        let mut times = Vec::with_capacity(self.shape.transactions as usize);
        for transaction in 0..self.shape.transactions {
            self.shape.fill(&mut batch, transaction * self.shape.items_per_transaction);
            let start = Instant::now();
            self.engine.write(&batch)?;
            times.push(start.elapsed().as_nanos() as u64);
            acknowledge(transaction + 1)?;
        }
        Ok(times)
    }

    fn measure_write(&self) -> Result<Measurement> {
        let start = Instant::now();
        let times = self.write(&mut |_| Ok(()))?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(Measurement {
            raw_bytes: self.shape.items() * self.shape.item_size(),
            latency: Latency::of(times),
            ..per_second(self.shape.items(), seconds)
        })
    }

    fn measure_get(&self) -> Result<Measurement> {
        let (shape, reads) = (&self.shape, self.scale.reads);
        let (seconds, _) = parallel(self.threads, |thread| {
            self.engine.read(&mut |reader| {
                for i in 0..reads {
                    let item = mix(i ^ (thread as u64) << 40 ^ 0x7777) % shape.items();
                    let expected = shape.value(item);
                    let mut right = false;
                    let key = &shape.key(item)[..shape.key_size];
                    let found = reader.get(key, &mut |value| {
                        right = value.len() == expected.len() && value[0] == expected[0];
                    })?;
                    ensure!(found && right, "item {item} is missing or wrong");
                }
                Ok(())
            })
        })?;
        Ok(per_second(reads * self.threads as u64, seconds))
    }

    fn measure_scan(&self) -> Result<Measurement> {
        let (seconds, counts) = parallel(self.threads, |_| {
            let (mut count, mut bits) = (0u64, 0u8);
            self.engine.read(&mut |reader| {
                reader.scan(&mut |key, value| {
                    count += 1;
                    bits ^= key[0] ^ value[0];
                })
            })?;
            std::hint::black_box(bits);
            Ok(count)
        })?;
        let items = self.shape.items();
        ensure!(counts.iter().all(|count| *count == items), "a scan saw {counts:?} items instead of {items}");
        Ok(per_second(items * self.threads as u64, seconds))
    }

    fn measure_commit(&self) -> Result<Measurement> {
        let stop = AtomicBool::new(false);
        // One thread more, which ends the others.
        let (seconds, times) = parallel(self.threads + 1, |thread| {
            let mut times = Vec::new();
            if thread == self.threads {
                thread::sleep(Duration::from_secs_f64(self.scale.seconds));
                stop.store(true, Ordering::Relaxed);
                return Ok(times);
            }
            let mut batch = self.shape.batch();
            while !stop.load(Ordering::Relaxed) {
                self.shape.fill(&mut batch, (thread as u64) << 40 | times.len() as u64);
                let start = Instant::now();
                self.engine.write_merged(&batch)?;
                times.push(start.elapsed().as_nanos() as u64);
            }
            Ok(times)
        })?;
        let times = times.concat();
        let commits = times.len() as u64;
        Ok(Measurement {
            raw_bytes: commits * self.shape.item_size(),
            latency: Latency::of(times),
            ..per_second(commits, seconds)
        })
    }

    fn measure_open_reader(&self) -> Result<Measurement> {
        let (start, mut opened) = (Instant::now(), 0);
        while start.elapsed().as_secs_f64() < self.scale.seconds / 2.0 {
            self.engine.open_readers(1000)?;
            opened += 1000;
        }
        let seconds = start.elapsed().as_secs_f64();
        Ok(Measurement { value: seconds * 1e9 / opened as f64, ..per_second(opened, seconds) })
    }

    /// How many items of the acknowledged transactions are not there as they were written.
    fn count_lost(&self, acknowledged: u64) -> Result<u64> {
        let mut lost = 0;
        self.engine.read(&mut |reader| {
            for i in 0..acknowledged * self.shape.items_per_transaction {
                let mut right = false;
                let key = self.shape.key(i);
                reader.get(&key[..self.shape.key_size], &mut |value| right = value == self.shape.value(i))?;
                lost += u64::from(!right);
            }
            Ok(())
        })?;
        Ok(lost)
    }
}

fn per_second(operations: u64, seconds: f64) -> Measurement {
    Measurement { value: operations as f64 / seconds, operations, seconds, ..Measurement::default() }
}

/// Runs `f(thread)` on each of `threads` threads at once; returns the wall seconds and the results.
fn parallel<T: Send>(threads: usize, f: impl Fn(usize) -> Result<T> + Sync) -> Result<(f64, Vec<T>)> {
    let gate = Barrier::new(threads + 1);
    thread::scope(|scope| {
        let start_thread = |thread| {
            let (gate, f) = (&gate, &f);
            scope.spawn(move || {
                gate.wait();
                f(thread)
            })
        };
        let started: Vec<_> = (0..threads).map(start_thread).collect();
        gate.wait();
        let start = Instant::now();
        let mut results = Vec::new();
        for thread in started {
            match thread.join() {
                Ok(result) => results.push(result?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok((start.elapsed().as_secs_f64(), results))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::path::Path;

    use super::*;
    use crate::memory;

    fn work(workload: &str, engine: &dyn Engine, check: impl Fn(&Work<'_>)) {
        let scale = Scale { items: 0.001, seconds: 0.02, reads: 1000 };
        let workload = workload::find(workload).unwrap();
        check(&Work { engine, shape: workload.shape(&scale), threads: workload.threads, scale });
    }

    #[test]
    fn what_was_written_is_read_and_scanned() {
        let engine = (memory::ENTRY.open)(Path::new(""), Purpose::Ordinary).unwrap();
        work("w2", &*engine, |w2| {
            let written = w2.measure_write().unwrap();
            assert_eq!((written.operations, written.raw_bytes), (1000, 144_000));
            assert!(written.value > 0.0 && written.latency.is_some());
        });
        work("w4-2", &*engine, |w4| assert_eq!(w4.measure_get().unwrap().operations, 2000));
        work("w5-2", &*engine, |w5| assert_eq!(w5.measure_scan().unwrap().operations, 2000));
        work("read-tx", &*engine, |readers| assert!(readers.measure_open_reader().unwrap().value > 0.0));
    }

    #[test]
    fn reads_of_missing_items_are_errors() {
        let engine = (memory::ENTRY.open)(Path::new(""), Purpose::Ordinary).unwrap();
        work("w4", &*engine, |w4| assert!(w4.measure_get().is_err()));
        work("w5", &*engine, |w5| assert!(w5.measure_scan().is_err()));
    }

    #[test]
    fn losses_are_counted() {
        let engine = (memory::ENTRY.open)(Path::new(""), Purpose::Ordinary).unwrap();
        work("w9", &*engine, |w9| {
            w9.write(&mut |_| Ok(())).unwrap();
            assert_eq!(w9.count_lost(10).unwrap(), 0);
            assert_eq!(w9.count_lost(12).unwrap(), 200);
        });
    }

    #[test]
    fn all_threads_commit() {
        let engine = (memory::ENTRY.open)(Path::new(""), Purpose::Ordinary).unwrap();
        work("w8-8", &*engine, |w8| {
            let measured = w8.measure_commit().unwrap();
            assert!(measured.operations >= 8 && measured.latency.is_some());
        });
    }
}
