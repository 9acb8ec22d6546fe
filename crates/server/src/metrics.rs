//! Counters of the server, and their Prometheus text.
//!
//! Requests are counted by outcome and by how long they took in buckets that double; a request costs two increments. Byte counts are
//! collected from the connections by the timer.

use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;

/// Upper bounds of the buckets of durations, in microseconds; each is four times the one before.
const BUCKETS_US: [u64; 11] =
    [16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];

/// What the server counts. All counters run since its start.
#[derive(Default)]
pub(crate) struct Metrics {
    /// Answers by first digit of their status, from 1xx.
    answers: [AtomicU64; 5],
    /// Answers by duration; the last is "longer than any bucket".
    durations: [AtomicU64; BUCKETS_US.len() + 1],
    duration_sum_us: AtomicU64,
    /// Requests being answered.
    pub(crate) requests_open: AtomicI64,
    /// Requests slower than the limit of the slow log.
    pub(crate) requests_slow: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) connections_accepted: AtomicU64,
    /// Refused because as many were open as may be.
    pub(crate) connections_refused: AtomicU64,
    /// Closed because the peer took too long.
    pub(crate) connections_timed_out: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) bytes_written: AtomicU64,
    /// Bodies that were read and dropped because their endpoint did not want them.
    pub(crate) bodies_unread: AtomicU64,
    /// Open WebSockets.
    pub(crate) sockets_open: AtomicI64,
    /// WebSockets closed because their client did not take its changes in time.
    pub(crate) sockets_cut_off: AtomicU64,
    pub(crate) databases_loaded: AtomicU64,
    pub(crate) databases_unloaded: AtomicU64,
}

impl Metrics {
    /// Counts an answer.
    pub(crate) fn answered(&self, status: StatusCode, took: Duration) {
        let class = usize::from(status.as_u16() / 100).clamp(1, 5) - 1;
        self.answers[class].fetch_add(1, Ordering::Relaxed);
        let us = took.as_micros() as u64;
        self.durations[bucket(us)].fetch_add(1, Ordering::Relaxed);
        self.duration_sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Writes all of it.
    pub(crate) fn write(&self, out: &mut Exposition) {
        out.head("jackdaw_http_requests_total", "counter", "Requests answered, by class of status.");
        for (index, count) in self.answers.iter().enumerate() {
            out.labelled(
                "jackdaw_http_requests_total",
                &[("status", &format!("{}xx", index + 1))],
                load(count),
            );
        }
        out.head(
            "jackdaw_http_request_duration_seconds",
            "histogram",
            "From a request's head to its answer's head.",
        );
        let mut sum = 0;
        for (index, count) in self.durations.iter().enumerate() {
            sum += load(count);
            let bound = BUCKETS_US.get(index).map(|us| (*us as f64 / 1e6).to_string());
            let labels = [("le", bound.as_deref().unwrap_or("+Inf"))];
            out.labelled("jackdaw_http_request_duration_seconds_bucket", &labels, sum);
        }
        let seconds = load(&self.duration_sum_us) as f64 / 1e6;
        out.labelled("jackdaw_http_request_duration_seconds_sum", &[], seconds);
        out.labelled("jackdaw_http_request_duration_seconds_count", &[], sum);
        out.gauge(
            "jackdaw_http_requests_open",
            "Requests being answered.",
            self.requests_open.load(Ordering::Relaxed),
        );
        out.gauge("jackdaw_websockets", "WebSockets open.", self.sockets_open.load(Ordering::Relaxed));
        for (name, help, counter) in [
            (
                "jackdaw_http_requests_slow_total",
                "Requests slower than the slow log's limit.",
                &self.requests_slow,
            ),
            ("jackdaw_http_panics_total", "Requests whose handler panicked; each is a bug.", &self.panics),
            ("jackdaw_http_connections_accepted_total", "Connections accepted.", &self.connections_accepted),
            (
                "jackdaw_http_connections_refused_total",
                "Connections over the limit.",
                &self.connections_refused,
            ),
            (
                "jackdaw_http_connections_timed_out_total",
                "Connections closed because the peer took too long.",
                &self.connections_timed_out,
            ),
            ("jackdaw_http_read_bytes_total", "Bytes received.", &self.bytes_read),
            ("jackdaw_http_written_bytes_total", "Bytes sent.", &self.bytes_written),
            ("jackdaw_http_bodies_unread_total", "Bodies read and dropped.", &self.bodies_unread),
            (
                "jackdaw_websockets_cut_off_total",
                "WebSockets closed because the client did not take its changes in time.",
                &self.sockets_cut_off,
            ),
            ("jackdaw_databases_loaded_total", "Databases opened.", &self.databases_loaded),
            (
                "jackdaw_databases_unloaded_total",
                "Databases closed because nobody used them.",
                &self.databases_unloaded,
            ),
        ] {
            out.counter(name, help, load(counter));
        }
    }
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn bucket(us: u64) -> usize {
    BUCKETS_US.partition_point(|bound| *bound < us)
}

/// Text in Prometheus' exposition format.
#[derive(Default)]
pub(crate) struct Exposition(String);

impl Exposition {
    pub(crate) fn into_text(self) -> String {
        self.0
    }

    /// What the samples of `name` that follow mean.
    pub(crate) fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail; the same holds below.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// One sample.
    pub(crate) fn labelled(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.0.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{escaped}\"", if index == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    pub(crate) fn counter(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, "counter", help);
        self.labelled(name, &[], value);
    }

    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, "gauge", help);
        self.labelled(name, &[], value);
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_that_holds_them() {
        for (us, expected) in [(0, 0), (16, 0), (17, 1), (64, 1), (16_777_216, 10), (16_777_217, 11)] {
            assert_eq!(bucket(us), expected, "{us}");
        }
    }

    #[test]
    fn the_text_is_prometheus() {
        let metrics = Metrics::default();
        metrics.answered(StatusCode::OK, Duration::from_micros(20));
        metrics.answered(StatusCode::NOT_FOUND, Duration::from_secs(60));
        let mut out = Exposition::default();
        metrics.write(&mut out);
        out.head("x", "gauge", "X.");
        out.labelled("x", &[("database", "a\"b\\"), ("kind", "y")], 1.5);
        let text = out.into_text();
        for line in [
            "jackdaw_http_requests_total{status=\"2xx\"} 1",
            "jackdaw_http_requests_total{status=\"4xx\"} 1",
            "jackdaw_http_request_duration_seconds_bucket{le=\"0.000016\"} 0",
            "jackdaw_http_request_duration_seconds_bucket{le=\"0.000064\"} 1",
            "jackdaw_http_request_duration_seconds_bucket{le=\"+Inf\"} 2",
            "jackdaw_http_request_duration_seconds_sum 60.00002",
            "jackdaw_http_request_duration_seconds_count 2",
            "x{database=\"a\\\"b\\\\\",kind=\"y\"} 1.5",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
        }
    }
}
