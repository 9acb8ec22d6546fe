//! A bar on a terminal while something long runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use jackdaw_smuggler::Progress;

/// How often the bar is drawn.
const EVERY: Duration = Duration::from_millis(100);

/// Shows a progress until it is dropped. On anything but a terminal it shows nothing.
pub(crate) struct Shown {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Shown {
    /// Shows an import: bytes read of `size` (if that is known), documents, documents a second.
    pub(crate) fn import(name: &str, progress: &Progress, size: Option<u64>) -> Shown {
        let progress = progress.clone();
        Shown::bytes(name, size, move |elapsed| (progress.read_bytes(), message(&progress, elapsed)))
    }

    /// Shows an upload: bytes sent of `size` (if that is known).
    pub(crate) fn upload(name: &str, sent: &Arc<AtomicU64>, size: Option<u64>) -> Shown {
        let sent = sent.clone();
        Shown::bytes(name, size, move |_| (sent.load(Ordering::Relaxed), "sent".to_owned()))
    }

    /// Shows an export of `count` documents.
    pub(crate) fn export(name: &str, progress: &Progress, count: u64) -> Shown {
        let progress = progress.clone();
        let bar = ProgressBar::new(count.max(1));
        Shown::start(name, bar, "{prefix} [{bar:30}] {msg} {eta} left", move |elapsed| {
            (progress.documents(), message(&progress, elapsed))
        })
    }

    fn bytes(
        name: &str,
        size: Option<u64>,
        state: impl Fn(Duration) -> (u64, String) + Send + 'static,
    ) -> Shown {
        let (bar, template) = match size {
            Some(size) => {
                (ProgressBar::new(size), "{prefix} [{bar:30}] {bytes}/{total_bytes} {msg} {eta} left")
            }
            None => (ProgressBar::no_length(), "{prefix} {bytes} {msg}"),
        };
        Shown::start(name, bar, template, state)
    }

    fn start(
        name: &str,
        bar: ProgressBar,
        template: &str,
        state: impl Fn(Duration) -> (u64, String) + Send + 'static,
    ) -> Shown {
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        let done = Arc::new(AtomicBool::new(false));
        let stop = done.clone();
        let thread = thread::Builder::new().name("progress".into()).spawn(move || {
            let started = Instant::now();
            while !stop.load(Ordering::Relaxed) {
                let (position, message) = state(started.elapsed());
                bar.set_position(position);
                bar.set_message(message);
                thread::park_timeout(EVERY);
            }
            bar.finish_and_clear();
        });
        // Without the thread there is no bar, which is no reason to stop.
        Shown { done, thread: thread.ok() }
    }
}

fn message(progress: &Progress, elapsed: Duration) -> String {
    let documents = progress.documents();
    let rate = documents as f64 / elapsed.as_secs_f64().max(0.001);
    let refused = match progress.refused() {
        0 => String::new(),
        refused => format!(", {refused} refused"),
    };
    format!("{documents} documents, {rate:.0}/s{refused}")
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It panics at most, and then the bar is gone too.
            let _ = thread.join();
        }
    }
}
