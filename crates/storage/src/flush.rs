//! Flush and sync: from scratch memory to the data file, off every lock that a transaction needs.
//!
//! A flush takes the data file to one transaction's state, the newest when it begins, once no open snapshot is older. Page by
//! page in rising order it writes the version that this state has, and then unlinks it, so that readers find the page in the mapped file.
//! The journal still holds everything until the data file is synced and a header says so; only then are journal files let go.
//!
//! Order, and why:
//! 1. write pages (a crash now: replaying the journal onto a mixture of old and new pages gives the new state, see `changes`);
//! 2. sync the data file; 3. write and sync a header that names the new state; 4. retire journal files.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::disk::is_full;
use crate::environment::Inner;
use crate::error::{Error, Result};
use crate::format::{PAGE_HEADER_SIZE, PAGE_SIZE, PageNumber, TransactionId};
use crate::header_file::Header;
use crate::page::header::{self, PageKind};
use crate::recovery::Recovered;
use crate::snapshot::page_table::{Found, Link};
use crate::transaction::commit::{drive, drive_all};
use crate::transaction::write::run_length;

/// Pages written before their versions are unlinked and their memory can be used again.
const CHUNK_PAGES: usize = 256;
/// Bytes written before the file is synced in between: one sync of everything at the end would hold up the journal's writes.
const SYNC_BYTES: u64 = 4 << 20;
/// Scratch memory that an idle environment keeps, in bytes.
const IDLE_SCRATCH: u64 = 1 << 20;
/// How often a flush looks whether the snapshots it waits for are gone.
const READERS_WAIT: Duration = Duration::from_millis(2);
/// The longest that one write transaction is held back while the flush catches up, step by step, before it is let through anyway.
const THROTTLE_STEP_MAX: Duration = Duration::from_millis(8);

/// What is not in the data file yet, and the threads that see to it.
pub(crate) struct Flusher {
    pub(crate) unflushed: Mutex<Unflushed>,
    /// Up to which transaction the data file is complete and synced.
    synced: AtomicU64,
    signals: Mutex<Signals>,
    changed: Condvar,
    preparer_changed: Condvar,
    /// There were commits since the flush thread last looked; it is awake.
    active: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The oldest snapshot that a warning was given about.
    warned: AtomicU64,
    /// A flush cannot go on because of snapshots older than its state.
    held_up: AtomicBool,
}

#[derive(Default)]
struct Signals {
    stop: bool,
    flush: bool,
    prepare: bool,
    memory: bool,
}

/// Pages with versions in scratch memory, and the commits since the last sync.
pub(crate) struct Unflushed {
    /// Every page with a version is here; some that have none any more, too.
    pub(crate) pages: Vec<PageNumber>,
    /// The id of the first of `commits`.
    first: TransactionId,
    /// Hash and page count of each commit.
    commits: VecDeque<(u64, u64)>,
}

impl Unflushed {
    /// The next commit in order.
    pub(crate) fn add_commit(&mut self, hash: u64, page_count: u64) {
        self.commits.push_back((hash, page_count));
    }

    fn commit(&self, id: TransactionId) -> Option<(u64, u64)> {
        id.0.checked_sub(self.first.0).and_then(|at| self.commits.get(at as usize)).copied()
    }

    fn forget_before(&mut self, id: TransactionId) {
        while self.first < id && self.commits.pop_front().is_some() {
            self.first.0 += 1;
        }
    }
}

impl Flusher {
    pub(crate) fn new(header: &Header, recovered: &Recovered) -> Flusher {
        let commits = VecDeque::from([(recovered.last_hash, recovered.root.page_count)]);
        Flusher {
            unflushed: Mutex::new(Unflushed {
                pages: recovered.pages.clone(),
                first: recovered.last,
                commits,
            }),
            synced: AtomicU64::new(header.synced.0),
            signals: Mutex::default(),
            changed: Condvar::new(),
            preparer_changed: Condvar::new(),
            active: AtomicBool::new(recovered.records > 0),
            threads: Mutex::default(),
            warned: AtomicU64::new(0),
            held_up: AtomicBool::new(false),
        }
    }

    /// Up to which transaction the data file is complete and synced.
    pub(crate) fn synced(&self) -> TransactionId {
        TransactionId(self.synced.load(Ordering::Acquire))
    }

    /// Begins a flush in the background.
    pub(crate) fn wake(&self) {
        self.signals.lock().flush = true;
        self.changed.notify_one();
    }

    /// Has the next journal file prepared and queued commits written in the background.
    pub(crate) fn wake_preparer(&self) {
        self.signals.lock().prepare = true;
        self.preparer_changed.notify_one();
    }

    /// Has scratch memory got ready in the background.
    pub(crate) fn wake_for_memory(&self) {
        self.signals.lock().memory = true;
        self.preparer_changed.notify_one();
    }

    /// A commit became durable: from now on time counts until the idle flush.
    #[inline]
    pub(crate) fn committed(&self) {
        if !self.active.load(Ordering::Relaxed) && !self.active.swap(true, Ordering::AcqRel) {
            let _signals = self.signals.lock();
            self.changed.notify_one();
        }
    }

    /// Ends the threads and waits for them.
    pub(crate) fn stop(&self) {
        self.signals.lock().stop = true;
        self.changed.notify_all();
        self.preparer_changed.notify_all();
        let threads: Vec<_> = self.threads.lock().drain(..).collect();
        for thread in threads {
            if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
                tracing::error!("a background thread of the storage engine had panicked");
            }
        }
    }
}

/// Starts the threads of an environment.
pub(crate) fn start_background(inner: &Arc<Inner>) -> Result<()> {
    let spawn = |name: &str, run: fn(&Inner)| {
        let inner = inner.clone();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&inner))
            .map_err(|e| Error::io("start a thread for", inner_path(name), e))
    };
    let threads = [spawn("storage-flush", flush_thread)?, spawn("storage-journal", journal_thread)?];
    inner.flusher.threads.lock().extend(threads);
    Ok(())
}

fn inner_path(name: &str) -> std::path::PathBuf {
    std::path::PathBuf::from(name)
}

fn flush_thread(inner: &Inner) {
    let flusher = &inner.flusher;
    let mut seen = 0;
    loop {
        let idle = {
            let mut signals = flusher.signals.lock();
            let mut timed_out = false;
            if !signals.stop && !signals.flush {
                if flusher.active.load(Ordering::Acquire) {
                    timed_out =
                        flusher.changed.wait_for(&mut signals, inner.options.flush_after_idle).timed_out();
                } else {
                    flusher.changed.wait(&mut signals);
                }
            }
            if signals.stop {
                return;
            }
            signals.flush = false;
            timed_out
        };
        if inner.check_healthy().is_err() {
            flusher.active.store(false, Ordering::Release);
            continue;
        }
        let commits = inner.counters.commits.load(Ordering::Relaxed);
        let is_idle = idle && commits == seen;
        seen = commits;
        if is_due(inner) || is_idle {
            if is_idle {
                flusher.active.store(false, Ordering::Release);
            }
            let wait_for_readers = || {
                let mut signals = flusher.signals.lock();
                if !signals.stop {
                    flusher.changed.wait_for(&mut signals, READERS_WAIT);
                }
                !signals.stop && inner.check_healthy().is_ok()
            };
            match flush_when(inner, wait_for_readers) {
                Ok(_) if is_idle => {
                    inner.table.reclaim(&inner.readers);
                    inner.table.trim(IDLE_SCRATCH);
                }
                Ok(_) => {}
                // A full disk is tried again; any other failure has been noted in the environment.
                Err(error) => {
                    tracing::warn!(path = %inner.disk.path().display(), %error, "flush failed");
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }
}

fn journal_thread(inner: &Inner) {
    let flusher = &inner.flusher;
    loop {
        let prepare = {
            let mut signals = flusher.signals.lock();
            while !signals.stop && !signals.prepare && !signals.memory {
                flusher.preparer_changed.wait(&mut signals);
            }
            if signals.stop {
                return;
            }
            signals.memory = false;
            std::mem::take(&mut signals.prepare)
        };
        if inner.check_healthy().is_err() {
            continue;
        }
        if prepare {
            // Errors show to those who wait for their commits; this thread only helps.
            if let Err(error) = drive_all(inner) {
                tracing::debug!(%error, "writing queued commits failed");
            }
            if inner.journal.wants_preparing()
                && let Err(error) = inner.journal.prepare()
            {
                tracing::warn!(path = %inner.disk.path().display(), %error, "cannot prepare the next journal file");
            }
        }
        // A failure shows to whoever needs the memory.
        if let Err(error) = inner.table.prepare_memory() {
            tracing::debug!(%error, "cannot get memory ready");
        }
    }
}

/// Whether a flush should begin.
pub(crate) fn is_due(inner: &Inner) -> bool {
    let journal = inner.counters.journal_bytes_since_flush.load(Ordering::Relaxed);
    (journal >= inner.options.journal_size_before_flush
        || inner.table.used() >= inner.options.scratch_size_max / 2)
        && inner.oldest_pinned() > inner.flusher.synced()
}

/// Holds a new write transaction back a little when scratch memory fills faster than it is flushed: the fuller, the longer. When
/// it is full, until there is room, unless an old snapshot keeps the flush from making any.
pub(crate) fn throttle(inner: &Inner) {
    let max = inner.options.scratch_size_max;
    let soft = max / 4 * 3;
    if inner.table.used() < soft || !inner.options.background {
        return;
    }
    let start = Instant::now();
    loop {
        let used = inner.table.used();
        if used < soft {
            break;
        }
        inner.flusher.wake();
        if inner.flusher.held_up.load(Ordering::Acquire) {
            warn_of_reader(inner, inner.oldest_pinned());
            break;
        }
        let fullness = (used - soft) as f64 / (max - soft).max(1) as f64;
        let wait = THROTTLE_STEP_MAX.mul_f64(fullness.clamp(0.02, 1.0));
        let (lock, freed) = &inner.memory_freed;
        let _ = freed.wait_for(&mut lock.lock(), wait);
        if inner.table.used() < max || inner.check_healthy().is_err() {
            break;
        }
    }
    inner.counters.throttled_us.fetch_add(start.elapsed().as_micros() as u64, Ordering::Relaxed);
}

/// Once per snapshot.
fn warn_of_reader(inner: &Inner, oldest: TransactionId) {
    let lag = inner.visible.load(Ordering::Acquire).saturating_sub(oldest.0);
    if lag > 0 && inner.flusher.warned.swap(oldest.0 + 1, Ordering::AcqRel) != oldest.0 + 1 {
        tracing::warn!(
            path = %inner.disk.path().display(), snapshot = oldest.0, lag, scratch = inner.table.used(),
            "an old snapshot keeps changed pages in memory; end it"
        );
    }
}

/// See [`crate::Environment::flush`].
pub(crate) fn flush(inner: &Inner) -> Result<TransactionId> {
    flush_when(inner, || false)
}

/// Chooses the state to flush, the *boundary*: the newest that has been executed, at this moment. From then on the writer does not count
/// on records to build the pages that this state has. Older snapshots still read pages that the flush would overwrite; it goes
/// on once they are gone, for which it waits as long as `wait` says so.
fn flush_when(inner: &Inner, wait: impl Fn() -> bool) -> Result<TransactionId> {
    let mut header = inner.flush.lock();
    inner.check_healthy()?;
    if TransactionId(inner.visible.load(Ordering::Acquire)) == header.synced {
        return Ok(header.synced);
    }
    let (pin, target) = {
        let mut writer = inner.writer.lock();
        let pin = inner.readers.pin_at(writer.last)?;
        writer.boundary = writer.last;
        (pin, writer.last)
    };
    let result = drive(inner, target).and_then(|()| {
        while inner.oldest_pinned() < target {
            let oldest = inner.oldest_pinned();
            if target.0.saturating_sub(oldest.0) > inner.options.reader_lag_warning {
                warn_of_reader(inner, oldest);
            }
            inner.flusher.held_up.store(true, Ordering::Release);
            let goes_on = wait();
            inner.flusher.held_up.store(false, Ordering::Release);
            if !goes_on {
                return Ok(());
            }
        }
        flush_to(inner, &mut header, target)
    });
    inner.readers.unpin(pin);
    inner.table.reclaim(&inner.readers);
    inner.memory_freed.1.notify_all();
    result.map_err(|e| inner.fail_on_io(e))?;
    Ok(header.synced)
}

fn flush_to(inner: &Inner, header: &mut Header, target: TransactionId) -> Result<()> {
    inner.counters.journal_bytes_since_flush.store(0, Ordering::Relaxed);
    let (mut pages, commit) = {
        let mut unflushed = inner.flusher.unflushed.lock();
        (std::mem::take(&mut unflushed.pages), unflushed.commit(target))
    };
    let Some((hash, page_count)) = commit else {
        return Err(Error::Invalid(format!("transaction {target} is not known to the flusher")));
    };
    pages.sort_unstable();
    pages.dedup();
    let mut kept = Vec::new();
    let written = write_pages(inner, &pages, target, &mut kept);
    inner.flusher.unflushed.lock().pages.append(&mut kept);
    written?;
    sync(inner)?;
    let next = Header {
        generation: header.generation + 1,
        synced: target,
        synced_hash: hash,
        first_journal: inner.journal.first_needed_after(target),
        page_count,
        ..*header
    };
    let Some(headers) = &inner.headers else { return Err(Error::ReadOnly) };
    headers.write(&next)?;
    let before = std::mem::replace(header, next);
    inner.flusher.synced.store(target.0, Ordering::Release);
    inner.flusher.unflushed.lock().forget_before(target);
    // Not what the header before needs: should the new one be damaged, opening begins there and loses nothing.
    inner.journal.retire(before.synced)?;
    inner.counters.flushes.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Writes the pages' versions of the target state. Pages that still have versions afterwards go to `kept`; after an error all that
/// were not dealt with.
fn write_pages(
    inner: &Inner,
    pages: &[PageNumber],
    target: TransactionId,
    kept: &mut Vec<PageNumber>,
) -> Result<()> {
    let table = &inner.table;
    let mut written: Vec<(PageNumber, Link)> = Vec::with_capacity(CHUNK_PAGES);
    let mut unsynced = 0;
    for (i, chunk) in pages.chunks(CHUNK_PAGES).enumerate() {
        written.clear();
        for (j, &page) in chunk.iter().enumerate() {
            let Some(found) = table.find(page, target) else {
                if !table.is_empty(page) {
                    kept.push(page);
                }
                continue;
            };
            if !found.is_tombstone() {
                match write_version(inner, page, &found) {
                    Ok(size) => unsynced += size,
                    Err(error) => {
                        kept.extend(written.iter().map(|(page, _)| *page));
                        kept.extend(&pages[i * CHUNK_PAGES + j..]);
                        return Err(error);
                    }
                }
            }
            written.push((page, found.link));
        }
        let mut gone = Vec::with_capacity(written.len());
        {
            let chains = table.chains();
            for &(page, link) in &written {
                if !table.unlink_flushed(page, link, &chains, &mut gone) {
                    kept.push(page);
                }
            }
        }
        inner.counters.pages_flushed.fetch_add(written.len() as u64, Ordering::Relaxed);
        table.retire(gone, &inner.readers);
        inner.memory_freed.1.notify_all();
        if unsynced >= SYNC_BYTES {
            unsynced = 0;
            if let Err(error) = sync(inner) {
                kept.extend(pages.get((i + 1) * CHUNK_PAGES..).unwrap_or_default());
                return Err(error);
            }
        }
    }
    Ok(())
}

fn sync(inner: &Inner) -> Result<()> {
    inner.data.sync().map_err(|e| Error::io("sync", inner.data.path(), e))
}

/// Writes one version with its checksum into its place; returns how many bytes.
fn write_version(inner: &Inner, number: PageNumber, found: &Found) -> Result<u64> {
    // SAFETY: the flusher's pin is at or above the target, so the version stays as it is while it is linked, and this thread unlinks it.
    let bytes = unsafe { found.bytes() };
    let mut first = [0; PAGE_SIZE];
    let size = bytes.len().min(PAGE_SIZE);
    first[..size].copy_from_slice(&bytes[..size]);
    let sum = if header::kind(bytes) == Some(PageKind::Overflow) {
        header::checksum(&bytes[..PAGE_HEADER_SIZE + run_length(bytes) as usize])
    } else {
        header::checksum(bytes)
    };
    first[header::CHECKSUM_AT..header::CHECKSUM_AT + 8].copy_from_slice(&sum.to_le_bytes());
    let write = |offset: u64, bytes: &[u8]| {
        inner.data.write(offset, bytes).map_err(|source| match is_full(&source) {
            true => {
                let what = inner.data.path().display().to_string();
                Error::DiskFull { what, bytes: bytes.len() as u64, source }
            }
            false => Error::io("write", inner.data.path(), source),
        })
    };
    write(number.offset(), &first)?;
    let mut at = PAGE_SIZE;
    while at < bytes.len() {
        // Page by page as everything else in this file: see `disk` about large folios.
        let end = bytes.len().min(at + PAGE_SIZE);
        write(number.offset() + at as u64, &bytes[at..end])?;
        at = end;
    }
    inner.data.set_verified(number);
    inner.counters.bytes_flushed.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    Ok(bytes.len() as u64)
}

/// The end of an environment: everything into the data file, which is cut to its pages, and no journal left.
pub(crate) fn flush_and_tidy(inner: &Inner) -> Result<()> {
    inner.check_healthy()?;
    let last = inner.writer.lock().last;
    drive(inner, last)?;
    let synced = flush(inner)?;
    if synced == last {
        // Both headers say the same before the journal goes, so that one of them suffices.
        let mut header = inner.flush.lock();
        let next = Header { generation: header.generation + 1, ..*header };
        if let Some(headers) = &inner.headers {
            headers.write(&next)?;
        }
        *header = next;
        inner.data.truncate_pages(header.page_count)?;
        inner.journal.remove_all()?;
    }
    Ok(())
}
