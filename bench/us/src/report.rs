//! What a suite found: a table for people and JSON lines for programs.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::json;

use crate::engine::OURS;
use crate::measure::{Latency, Measurement};
use crate::workload::{Kind, Scale, Workload};

/// All measurements of a suite.
pub struct Results {
    engines: Vec<&'static str>,
    workloads: Vec<&'static Workload>,
    scale: Scale,
    rows: Vec<Row>,
}

/// The measurements of one workload by one engine.
struct Row {
    workload: &'static str,
    engine: String,
    measurements: Vec<Measurement>,
    failures: Vec<String>,
}

/// The line that programs read; its fields and their order are fixed.
#[derive(Serialize)]
struct Line<'a> {
    bench: &'a str,
    workload: &'a str,
    engine: &'a str,
    params: serde_json::Value,
    median: f64,
    min: f64,
    max: f64,
    runs: usize,
    unit: &'a str,
}

impl Results {
    /// Nothing yet.
    pub fn new(engines: &[&'static str], workloads: &[&'static Workload], scale: Scale) -> Results {
        Results { engines: engines.to_vec(), workloads: workloads.to_vec(), scale, rows: Vec::new() }
    }

    /// Takes in one measurement.
    pub fn add(&mut self, workload: &Workload, engine: &str, measurement: Measurement) {
        self.row_mut(workload, engine).measurements.push(measurement);
    }

    /// Takes in a measurement that could not be made.
    pub fn add_failure(&mut self, workload: &Workload, engine: &str, why: String) {
        self.row_mut(workload, engine).failures.push(why);
    }

    fn row_mut(&mut self, workload: &Workload, engine: &str) -> &mut Row {
        let at = self.rows.iter().position(|row| row.workload == workload.name && row.engine == engine);
        let at = at.unwrap_or_else(|| {
            let row = Row {
                workload: workload.name,
                engine: engine.to_owned(),
                measurements: Vec::new(),
                failures: Vec::new(),
            };
            self.rows.push(row);
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }

    fn row(&self, workload: &Workload, engine: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.workload == workload.name && row.engine == engine)
    }

    /// What went wrong: measurements that failed, and acknowledged items that were lost.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for row in &self.rows {
            problems.extend(row.failures.iter().map(|why| format!("{} {}: {why}", row.workload, row.engine)));
            let lost: u64 = row.measurements.iter().map(|m| m.lost).sum();
            if lost > 0 {
                problems.push(format!("{} {}: {lost} acknowledged items lost", row.workload, row.engine));
            }
        }
        problems
    }

    /// How many times better our median is than the best peer's; `None` without both.
    fn ratio(&self, workload: &Workload) -> Option<f64> {
        let median = |engine: &str| self.row(workload, engine).and_then(Row::median);
        let ours = median(OURS)?;
        let peers = self.engines.iter().filter(|engine| **engine != OURS).filter_map(|engine| median(engine));
        if workload.kind.more_is_better() {
            peers.reduce(f64::max).map(|best| ours / best)
        } else {
            peers.reduce(f64::min).map(|best| best / ours)
        }
    }

    /// The table, as Markdown. Medians of all columns; the ratio stands in our row.
    pub fn table(&self) -> String {
        let mut table = String::from(
            "| workload | engine | median | min-max | ours/best | p50/p99/p99.9/max us | written B/item | written/raw | file/raw | \
             peak RSS MB | anon MB | cpu s/wall s | other cores |\n",
        );
        table.push_str(&"|---".repeat(13));
        table.push_str("|\n");
        for workload in &self.workloads {
            for engine in &self.engines {
                if let Some(row) = self.row(workload, engine) {
                    let ratio = self.ratio(workload).filter(|_| *engine == OURS);
                    row.write_to(&mut table, workload, ratio);
                }
            }
        }
        table
    }

    /// One line of JSON for each workload and engine that was measured, and one more with the details.
    pub fn json_lines(&self) -> String {
        let mut lines = String::new();
        for workload in &self.workloads {
            for engine in &self.engines {
                let Some((row, median)) =
                    self.row(workload, engine).and_then(|row| Some((row, row.median()?)))
                else {
                    continue;
                };
                let (min, max) = row.range();
                let line = Line {
                    bench: "storage",
                    workload: workload.name,
                    engine,
                    params: self.params(workload),
                    median,
                    min,
                    max,
                    runs: row.measurements.len(),
                    unit: workload.kind.unit(),
                };
                for text in [serde_json::to_string(&line), serde_json::to_string(&row.details())]
                    .into_iter()
                    .flatten()
                {
                    lines.push_str(&text);
                    lines.push('\n');
                }
            }
        }
        lines
    }

    fn params(&self, workload: &Workload) -> serde_json::Value {
        let shape = workload.shape(&self.scale);
        let mut params = json!({
            "durable": true,
            "items_per_transaction": shape.items_per_transaction,
            "key_bytes": shape.key_size,
            "value_bytes": shape.value_size,
            "threads": workload.threads,
        });
        match workload.kind {
            Kind::Commit => params["seconds"] = self.scale.seconds.into(),
            _ => params["items"] = shape.items().into(),
        }
        if workload.kind == Kind::Get {
            params["reads_per_thread"] = self.scale.reads.into();
        }
        params
    }
}

impl Row {
    fn median(&self) -> Option<f64> {
        self.median_of(|m| m.value)
    }

    fn median_of(&self, field: impl Fn(&Measurement) -> f64) -> Option<f64> {
        let mut values: Vec<f64> = self.measurements.iter().map(field).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        match values.len() {
            0 => None,
            n if n % 2 == 1 => Some(values[middle]),
            _ => Some((values[middle - 1] + values[middle]) / 2.0),
        }
    }

    fn range(&self) -> (f64, f64) {
        let values = || self.measurements.iter().map(|m| m.value);
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
    }

    fn latency(&self, field: impl Fn(&Latency) -> f64) -> Option<f64> {
        self.measurements.first()?.latency?;
        self.median_of(|m| m.latency.as_ref().map_or(0.0, &field))
    }

    fn write_to(&self, table: &mut String, workload: &Workload, ratio: Option<f64>) {
        let Some(median) = self.median() else {
            // `write!` to a string cannot fail.
            let _ = writeln!(table, "| {} | {} | failed |{}", self.workload, self.engine, " |".repeat(10));
            return;
        };
        let (min, max) = self.range();
        let of = |field: fn(&Measurement) -> f64| self.median_of(field).unwrap_or(0.0);
        let raw = of(|m| m.raw_bytes as f64);
        let if_raw = |text: String| if raw > 0.0 { text } else { String::new() };
        let latency = match self.latency(|l| l.p50_us) {
            None => String::new(),
            Some(p50) => {
                let of = |field: fn(&Latency) -> f64| self.latency(field).unwrap_or(0.0);
                format!("{p50:.0}/{:.0}/{:.0}/{:.0}", of(|l| l.p99_us), of(|l| l.p999_us), of(|l| l.max_us))
            }
        };
        let _ = writeln!(
            table,
            "| {} | {} | {} {} | {}-{} | {} | {latency} | {} | {} | {} | {:.0} | {:.0} | {:.2}/{:.2} | {:.2} |",
            self.workload,
            self.engine,
            short(median),
            workload.kind.unit(),
            short(min),
            short(max),
            ratio.map(|ratio| format!("{ratio:.2}x")).unwrap_or_default(),
            if_raw(format!("{:.0}", of(|m| m.written_bytes as f64 / m.operations.max(1) as f64))),
            if_raw(format!("{:.2}", of(|m| m.written_bytes as f64) / raw)),
            if_raw(format!("{:.2}", of(|m| m.file_bytes as f64) / raw)),
            of(|m| m.peak_rss_bytes as f64) / 1e6,
            of(|m| m.anonymous_rss_bytes as f64) / 1e6,
            of(|m| m.cpu_seconds),
            of(|m| m.seconds),
            of(|m| m.other_cores),
        );
    }

    /// Medians of everything else that was measured.
    fn details(&self) -> serde_json::Value {
        let of = |field: fn(&Measurement) -> f64| self.median_of(field).unwrap_or(0.0);
        let (raw, operations) = (of(|m| m.raw_bytes as f64), of(|m| m.operations as f64));
        let written = of(|m| m.written_bytes as f64);
        let per = |bytes: f64, unit: f64| (raw > 0.0 && unit > 0.0).then_some(bytes / unit);
        json!({
            "bench": "storage-details",
            "workload": self.workload,
            "engine": self.engine,
            "commit_us_p50": self.latency(|l| l.p50_us),
            "commit_us_p99": self.latency(|l| l.p99_us),
            "commit_us_p999": self.latency(|l| l.p999_us),
            "commit_us_max": self.latency(|l| l.max_us),
            "written_bytes_per_item": per(written, operations),
            "written_per_raw": per(written, raw),
            "file_per_raw": per(of(|m| m.file_bytes as f64), raw),
            "peak_rss_bytes": of(|m| m.peak_rss_bytes as f64),
            "anonymous_rss_bytes": of(|m| m.anonymous_rss_bytes as f64),
            "cpu_seconds": of(|m| m.cpu_seconds),
            "seconds": of(|m| m.seconds),
            "close_seconds": of(|m| m.close_seconds),
            "other_cores": of(|m| m.other_cores),
            "lost": self.measurements.iter().map(|m| m.lost).sum::<u64>(),
        })
    }
}

/// Three digits and a unit: `683K`, `1.27M`, `0.14`.
fn short(value: f64) -> String {
    let (value, unit) = match value {
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "K"),
        v => (v, ""),
    };
    match value {
        v if v >= 100.0 => format!("{v:.0}{unit}"),
        v if v >= 10.0 => format!("{v:.1}{unit}"),
        v => format!("{v:.2}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::workload;

    fn results(workload: &'static str, values: &[(&'static str, &[f64])]) -> Results {
        let workload = workload::find(workload).unwrap();
        let engines: Vec<_> = values.iter().map(|(engine, _)| *engine).collect();
        let mut results = Results::new(&engines, &[workload], Scale::WHOLE);
        for (engine, values) in values {
            for value in *values {
                results.add(
                    workload,
                    engine,
                    Measurement { value: *value, operations: 1, ..Measurement::default() },
                );
            }
        }
        results
    }

    #[test]
    fn the_ratio_is_to_the_best_peer_and_above_one_when_we_are_better() {
        let (w1, read) = (workload::find("w1").unwrap(), workload::find("read-tx").unwrap());
        let faster = results("w1", &[(OURS, &[300.0]), ("a", &[100.0]), ("b", &[150.0])]);
        assert_eq!(faster.ratio(w1), Some(2.0));
        let sooner = results("read-tx", &[(OURS, &[50.0]), ("a", &[100.0]), ("b", &[150.0])]);
        assert_eq!(sooner.ratio(read), Some(2.0));
        assert_eq!(results("w1", &[(OURS, &[300.0])]).ratio(w1), None);
    }

    #[test]
    fn the_json_line_has_its_fields_in_order() {
        let lines = results("w1", &[(OURS, &[3.0, 1.0, 2.0])]).json_lines();
        let line = lines.lines().next().unwrap();
        assert!(
            line.starts_with(r#"{"bench":"storage","workload":"w1","engine":"jackdaw","params":{"#),
            "{line}"
        );
        assert!(line.ends_with(r#"},"median":2.0,"min":1.0,"max":3.0,"runs":3,"unit":"ops/s"}"#), "{line}");
    }

    #[test]
    fn losses_and_failures_are_problems() {
        let mut results = results("w9", &[(OURS, &[1.0])]);
        assert!(results.problems().is_empty());
        let w9 = workload::find("w9").unwrap();
        results.add(w9, OURS, Measurement { lost: 3, ..Measurement::default() });
        results.add_failure(w9, OURS, "gone".into());
        assert_eq!(results.problems(), ["w9 jackdaw: gone", "w9 jackdaw: 3 acknowledged items lost"]);
    }

    #[test]
    fn a_table_row_has_as_many_cells_as_the_head() {
        let mut results = results("w2", &[(OURS, &[1.5e6]), ("a", &[])]);
        results.add_failure(workload::find("w2").unwrap(), "a", "gone".into());
        let table = results.table();
        let cells: Vec<_> = table.lines().map(|line| line.matches('|').count()).collect();
        assert_eq!(cells, [14; 4], "{table}");
        assert!(table.contains("1.50M ops/s"), "{table}");
    }
}
