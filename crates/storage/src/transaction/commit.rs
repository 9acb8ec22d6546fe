//! The commit: from the pages that a transaction changed to a durable record, and to versions that readers see.
//!
//! Two stages, so that the next transaction runs while this one's record is being written:
//! 1. *Execution*, under the write lock: the record is built, its place in the journal is reserved (so that a full disk fails only this
//!    transaction), and it is queued. Then the write lock is free.
//! 2. *Journal*, under the stage lock: whoever comes first writes everything queued, in order, and publishes it. There is no thread for
//!    it: the committing threads do it themselves, so a lone writer hands nothing over.
//!
//! A transaction is visible to readers only when it is durable.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::write::{DirtyKind, WriteTransaction};
use crate::environment::Inner;
use crate::error::{Error, Result};
use crate::format::{PAGE_SIZE, PageNumber, TransactionId};
use crate::journal::aligned::{ALIGNMENT, AlignedBuffer};
use crate::journal::files::JournalFile;
use crate::journal::{changes, record};
use crate::page::header;
use crate::snapshot::page_table::{Found, Link};

/// Records written together are copied into one write of at most this many bytes (a longer one is written alone).
pub(crate) const JOINED_SIZE_MAX: usize = 1 << 20;
/// Where the changed bytes of a page take more than this, its difference from the page before is tried.
const DERIVE_SIZE_MIN: usize = 1024;
/// Commits of at most so many pages try that only when their record takes more than one block: it would be no shorter.
const SMALL_COMMIT_PAGES: usize = 32;
/// Commits that may wait for the disk; the next one waits itself.
const QUEUE_MAX: usize = 256;
/// Buffers kept for use again, and how large each may be.
const BUFFERS_KEPT: usize = 8;
const BUFFER_SIZE_KEPT: usize = 4 << 20;

/// A record on its way to the journal.
struct Pending {
    id: TransactionId,
    hash: u64,
    record: AlignedBuffer,
    offset: u64,
    file: JournalFile,
    /// Runs were written to the data file: it is synced first.
    direct: bool,
    /// The pages with versions, and whether each chain was empty before.
    pages: Vec<(PageNumber, bool)>,
    page_count: u64,
}

/// The journal stage.
pub(crate) struct JournalStage {
    queue: Mutex<VecDeque<Pending>>,
    /// Held while writing.
    writing: Mutex<Scratchpad>,
    buffers: Mutex<Vec<AlignedBuffer>>,
    pages: Mutex<Vec<Vec<(PageNumber, bool)>>>,
}

/// Memory that the holder of the stage uses.
#[derive(Default)]
struct Scratchpad {
    pinned: Vec<u64>,
    gone: Vec<Link>,
}

impl JournalStage {
    pub(crate) fn new() -> JournalStage {
        JournalStage {
            queue: Mutex::default(),
            writing: Mutex::default(),
            buffers: Mutex::default(),
            pages: Mutex::default(),
        }
    }

    /// Returns when no write is under way.
    pub(crate) fn wait_for_write(&self) {
        drop(self.writing.lock());
    }

    fn buffer(&self) -> AlignedBuffer {
        self.buffers.lock().pop().unwrap_or_default()
    }

    fn keep_buffer(&self, buffer: AlignedBuffer) {
        let mut buffers = self.buffers.lock();
        if buffers.len() < BUFFERS_KEPT && buffer.capacity() <= BUFFER_SIZE_KEPT {
            buffers.push(buffer);
        }
    }
}

/// A commit whose record is queued: it is durable once [`CommitTicket::wait`] returns. Dropping the ticket does not undo the commit;
/// it becomes durable with the next one that is waited for, or (after [`WriteTransaction::commit_later`]) soon by itself.
#[must_use = "the commit is durable only after `wait`"]
pub struct CommitTicket {
    inner: Arc<Inner>,
    id: TransactionId,
}

impl CommitTicket {
    /// The transaction's id.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// Waits until the commit is durable.
    ///
    /// Errors: the journal could not be written ([`Error::Failed`]): the commit is not durable, and the environment takes no more
    /// writes.
    pub fn wait(self) -> Result<TransactionId> {
        drive(&self.inner, self.id)?;
        after_commit(&self.inner);
        Ok(self.id)
    }

    /// Whether the commit is durable by now.
    pub fn is_durable(&self) -> bool {
        self.inner.visible.load(Ordering::Acquire) >= self.id.0
    }
}

impl WriteTransaction {
    /// Commits and returns when the commit is durable, with the transaction's id. A transaction that changed nothing writes
    /// nothing and gets no id of its own: the newest one is returned.
    ///
    /// Errors: [`Error::DiskFull`]: nothing is committed, the environment stays usable. [`Error::Io`], [`Error::Failed`]: whether
    /// the commit survives is known after the next opening; no more writes are taken until then.
    pub fn commit(mut self) -> Result<TransactionId> {
        let (inner, id) = (self.inner.clone(), self.id);
        // Without changes of its own it still stands for those that it was built on.
        let id = if self.queue()? { id } else { TransactionId(id.0 - 1) };
        drop(self); // frees the write lock
        CommitTicket { inner, id }.wait()
    }

    /// Commits as far as possible without waiting for the disk: the next transaction can begin, on top of this one's changes, while the
    /// record is written. Readers see the changes once they are durable.
    ///
    /// Errors: as [`WriteTransaction::commit`], as far as they show before writing.
    pub fn commit_later(mut self) -> Result<CommitTicket> {
        let (inner, id) = (self.inner.clone(), self.id);
        if !self.queue()? {
            return Ok(CommitTicket { inner, id: TransactionId(id.0 - 1) });
        }
        drop(self); // frees the write lock
        if inner.stage.queue.lock().len() >= QUEUE_MAX {
            drive(&inner, id)?; // the disk cannot keep up
        }
        inner.flusher.wake_preparer();
        Ok(CommitTicket { inner, id })
    }

    /// As [`WriteTransaction::commit_later`], but nobody begins to write before the ticket is waited for (or a later commit is, or the
    /// environment closes): for callers who have a thread for that, and so save waking another one.
    ///
    /// Errors: as [`WriteTransaction::commit_later`].
    pub fn commit_when_waited_for(mut self) -> Result<CommitTicket> {
        let (inner, id) = (self.inner.clone(), self.id);
        let id = if self.queue()? { id } else { TransactionId(id.0 - 1) };
        drop(self); // frees the write lock
        Ok(CommitTicket { inner, id })
    }

    /// Builds the record and queues it. False when there is nothing to commit.
    pub(crate) fn queue(&mut self) -> Result<bool> {
        self.check_whole()?;
        self.inner.check_healthy()?;
        self.write_catalog()?;
        if self.writer.dirty.is_empty() {
            return Ok(false);
        }
        let inner = self.inner.clone();
        let mut out = inner.stage.buffer();
        let mut pages = inner.stage.pages.lock().pop().unwrap_or_default();
        record::begin(&mut out);
        let direct = self.build_record(&mut out, &mut pages)?;
        let body_size = (out.len() - record::HEADER_SIZE) as u64;
        if body_size > record::BODY_SIZE_MAX {
            return Err(Error::TransactionTooLarge { max: record::BODY_SIZE_MAX });
        }
        let mut spare = inner.stage.buffer();
        let uncompressed = self.writer.compression.compress(&mut out, &mut spare);
        inner.stage.keep_buffer(spare);
        let size = (out.len() as u64).next_multiple_of(ALIGNMENT as u64);
        let (file, offset) = self.reserve_journal(size)?;
        let id = self.id;
        let identity = record::Identity {
            journal: file.number,
            transaction: id,
            previous_hash: self.writer.last_hash,
            environment: inner.environment,
            durable: TransactionId(inner.visible.load(Ordering::Acquire)),
        };
        let hash = record::seal(&mut out, &identity, uncompressed);
        inner.counters.journal_bytes_uncompressed.fetch_add(body_size, Ordering::Relaxed);
        self.writer.last = id;
        self.writer.last_hash = hash;
        self.writer.root = self.root;
        self.writer.dirty.clear();
        self.leave_trees();
        let page_count = self.root.page_count;
        let pending = Pending { id, hash, record: out, offset, file, direct, pages, page_count };
        inner.stage.queue.lock().push_back(pending);
        self.finish();
        if inner.options.background && inner.table.wants_memory() {
            inner.flusher.wake_for_memory();
        }
        Ok(true)
    }

    /// Adds every changed page to the record; whether runs went to the data file directly.
    fn build_record(&mut self, out: &mut AlignedBuffer, pages: &mut Vec<(PageNumber, bool)>) -> Result<bool> {
        self.record_derived(out);
        let table = &self.inner.table;
        let mut direct = false;
        let is_small = self.writer.dirty.len() <= SMALL_COMMIT_PAGES;
        // The entries of pages that might be shorter as a difference: page, newest version, from and to where in the record.
        let mut long = [(PageNumber::NONE, None, 0, 0); SMALL_COMMIT_PAGES];
        let mut long_count = 0;
        for dirty in &self.writer.dirty {
            let link = match dirty.kind {
                DirtyKind::Direct(count) => {
                    direct = true;
                    changes::add_direct(out, dirty.page, count);
                    continue;
                }
                DirtyKind::Version(link) => link,
            };
            pages.push((dirty.page, dirty.first));
            let Some(newest) = table.newest(dirty.page).filter(|n| n.link == link) else {
                continue; // pushed again after a savepoint: the topmost version counts
            };
            if newest.is_tombstone() {
                changes::add_free(out, dirty.page);
                continue;
            }
            // SAFETY: the transaction's own newest version stays linked while the write lock is held.
            let bytes = unsafe { newest.bytes() };
            if header::kind(bytes) == Some(header::PageKind::Overflow) {
                let length = super::write::run_length(bytes) as usize;
                changes::add_run(out, dirty.page, &bytes[..crate::format::PAGE_HEADER_SIZE + length]);
                continue;
            }
            // SAFETY: as above.
            let new = unsafe { newest.page() };
            let state = &self.writer.versions[link.index()];
            if state.recorded {
                continue;
            }
            if state.new {
                debug_assert_unmarked_same(None, new, state.changed());
                changes::add_page(out, dirty.page, None, new, state.changed(), &[]);
                continue;
            }
            let below = self.before_this(link);
            let (old, exact) = match &below {
                // SAFETY: the newest version below this transaction's: superseded only when this one is visible, and when it is
                // flushed meanwhile its memory waits for this transaction's pin.
                Some(below) => (unsafe { below.page() }, self.is_exact(below)),
                None => (self.inner.data.page(dirty.page)?, false),
            };
            debug_assert_unmarked_same(Some(old), new, state.changed());
            let moves = if exact { state.moves.as_slice() } else { &[] };
            let at = out.len();
            changes::add_page(out, dirty.page, Some(old), new, state.changed(), moves);
            let (size, end) = (out.len() - at, out.len());
            if !exact || size <= DERIVE_SIZE_MIN {
                continue;
            }
            // Tidied up, most likely: the same cells in other places.
            if is_small {
                long[long_count] = (dirty.page, Some(link), at, end);
                long_count += 1;
            } else if changes::add_derived(out, dirty.page, new, dirty.page, old, size) {
                out.remove(at, end);
            }
        }
        for &(page, link, at, end) in long[..long_count].iter().rev() {
            if out.len() <= ALIGNMENT {
                break;
            }
            let Some((newest, below)) = table.newest(page).zip(link.and_then(|link| self.before_this(link)))
            else {
                continue;
            };
            // SAFETY: as above.
            let (new, old) = unsafe { (newest.page(), below.page()) };
            if changes::add_derived(out, page, new, page, old, end - at) {
                out.remove(at, end);
            }
        }
        Ok(direct)
    }

    /// Adds the new pages that were made from pages which recovery has exactly, before anything changes those.
    fn record_derived(&mut self, out: &mut AlignedBuffer) {
        let derived = std::mem::take(&mut self.writer.derived);
        let table = &self.inner.table;
        for &(target, source) in &derived {
            let Some(new) = table.newest(target).filter(|n| n.transaction == self.id && n.size == PAGE_SIZE)
            else {
                continue;
            };
            let index = new.link.index();
            let state = self.writer.versions[index];
            if !state.new || state.recorded {
                continue;
            }
            let before = table.newest(source).and_then(|newest| match newest.transaction == self.id {
                true => self.before_this(newest.link),
                false => Some(newest),
            });
            let Some(before) = before.filter(|b| b.size == PAGE_SIZE && self.is_exact(b)) else { continue };
            // SAFETY: as in `build_record`.
            let (new, before) = unsafe { (new.page(), before.page()) };
            if header::kind(new) != Some(header::PageKind::Overflow)
                && changes::add_derived(out, target, new, source, before, PAGE_SIZE / 2)
            {
                self.writer.versions[index].recorded = true;
            }
        }
        self.writer.derived = derived;
        self.writer.derived.clear();
    }

    /// The newest version below one of this transaction's own that an earlier transaction wrote.
    fn before_this(&self, own: Link) -> Option<Found> {
        let mut below = self.inner.table.below(own);
        while let Some(own) = below.filter(|b| b.transaction == self.id) {
            below = self.inner.table.below(own.link);
        }
        below
    }

    /// Whether recovery will have exactly these bytes, from records alone.
    fn is_exact(&self, version: &Found) -> bool {
        self.inner.table.born(version.link) > self.writer.boundary
    }

    /// A place for a record of this many bytes in a file whose blocks exist.
    fn reserve_journal(&mut self, size: u64) -> Result<(JournalFile, u64)> {
        if let Some((file, at)) = &mut self.writer.journal
            && *at + size <= file.size
        {
            let offset = *at;
            *at += size;
            // The next file is made ready when this one is half full: in time, and not much more than will be used.
            if offset < file.size / 2 && *at >= file.size / 2 {
                self.inner.flusher.wake_preparer();
            }
            return Ok((file.clone(), offset));
        }
        let last = self.writer.last;
        let full = self.writer.journal.as_ref().map(|(file, _)| (file.clone(), last));
        let file = self.inner.journal.next(size, full).map_err(|e| self.inner.fail_on_io(e))?;
        if size >= file.size / 2 {
            self.inner.flusher.wake_preparer();
        }
        self.writer.journal = Some((file.clone(), size));
        Ok((file, 0))
    }
}

/// In debug builds: what a structure changed lies in the lines that it marked, else recovery would lose it.
fn debug_assert_unmarked_same(old: Option<&crate::page::Page>, new: &crate::page::Page, lines: u128) {
    if cfg!(debug_assertions) {
        for line in 0..128 {
            let range = line * crate::pages::LINE_SIZE..(line + 1) * crate::pages::LINE_SIZE;
            let is_same = |at: usize| old.map_or(0, |old| old[at]) == new[at];
            // When a flush has put the old page into the data file meanwhile, it has a checksum there, which means nothing here.
            let checksum = header::CHECKSUM_AT..header::CHECKSUM_AT + 8;
            let same = range.clone().all(|at| checksum.contains(&at) || is_same(at));
            assert!(
                lines >> line & 1 == 1 || same,
                "page {} changed at {range:?} unmarked",
                header::number(new)
            );
        }
    }
}

/// Writes all that is queued.
pub(crate) fn drive_all(inner: &Inner) -> Result<()> {
    let newest = inner.stage.queue.lock().back().map(|p| p.id);
    newest.map_or(Ok(()), |id| drive(inner, id))
}

/// Writes what is queued, until the transaction is durable.
pub(crate) fn drive(inner: &Inner, id: TransactionId) -> Result<()> {
    while inner.visible.load(Ordering::Acquire) < id.0 {
        let mut pad = inner.stage.writing.lock();
        if inner.visible.load(Ordering::Acquire) >= id.0 {
            break;
        }
        inner.check_healthy()?;
        let batch: Vec<Pending> = inner.stage.queue.lock().drain(..).collect();
        if batch.is_empty() {
            return Err(Error::Invalid(format!("transaction {id} is neither durable nor on its way")));
        }
        write_batch(inner, batch, &mut pad)?;
    }
    Ok(())
}

fn write_batch(inner: &Inner, mut batch: Vec<Pending>, pad: &mut Scratchpad) -> Result<()> {
    if batch.iter().any(|p| p.direct) {
        // Before the record: a record on disk proves that its runs are.
        inner.data.sync().map_err(|e| {
            let error = Error::io("sync", inner.data.path(), e);
            inner.fail(&error);
            error
        })?;
    }
    let mut at = 0;
    while at < batch.len() {
        let mut end = at + 1;
        let (head, rest) = batch[at..].split_at_mut(1);
        let first = &mut head[0];
        for next in rest {
            let follows = next.file.number == first.file.number
                && next.offset == first.offset + first.record.len() as u64;
            if !follows || first.record.len() + next.record.len() > JOINED_SIZE_MAX {
                break;
            }
            first.record.extend(next.record.bytes());
            end += 1;
        }
        let bytes = first.record.bytes();
        first.file.file.write_durable(first.offset, bytes).map_err(|e| {
            let path = inner.disk.path().join(crate::journal::files::name(first.file.number));
            let error = Error::io("write", path, e);
            inner.fail(&error);
            error
        })?;
        let size = bytes.len() as u64;
        inner.counters.journal_writes.fetch_add(1, Ordering::Relaxed);
        inner.counters.journal_bytes.fetch_add(size, Ordering::Relaxed);
        inner.counters.journal_bytes_since_flush.fetch_add(size, Ordering::Relaxed);
        at = end;
    }
    publish(inner, batch, pad);
    Ok(())
}

/// Makes durable transactions visible and recycles the versions that nobody needs since.
fn publish(inner: &Inner, batch: Vec<Pending>, pad: &mut Scratchpad) {
    let Some(visible) = batch.last().map(|p| p.id) else { return };
    inner.counters.commits.fetch_add(batch.len() as u64, Ordering::Relaxed);
    {
        let mut unflushed = inner.flusher.unflushed.lock();
        for pending in &batch {
            unflushed.add_commit(pending.hash, pending.page_count);
            unflushed.pages.extend(pending.pages.iter().filter(|(_, first)| *first).map(|(page, _)| *page));
        }
    }
    inner.visible.store(visible.0, Ordering::SeqCst);
    inner.readers.pinned(&mut pad.pinned);
    {
        let chains = inner.table.chains();
        for pending in &batch {
            for &(page, first) in &pending.pages {
                if !first {
                    inner.table.prune(page, &pad.pinned, visible, &chains, &mut pad.gone);
                }
            }
        }
    }
    inner.table.recycle(pad.gone.drain(..));
    for mut pending in batch {
        inner.stage.keep_buffer(pending.record);
        pending.pages.clear();
        let mut pages = inner.stage.pages.lock();
        if pages.len() < BUFFERS_KEPT {
            pages.push(pending.pages);
        }
    }
    inner.flusher.committed();
}

/// What falls due after a commit, where there is no background for it. The commit is durable whatever becomes of this: a failed
/// write has made the environment read-only, as the next call tells; a full disk lets the journal grow until a later flush succeeds.
pub(crate) fn after_commit(inner: &Inner) {
    if crate::flush::is_due(inner) {
        if inner.options.background {
            inner.flusher.wake();
        } else if let Err(error) = crate::flush::flush(inner) {
            tracing::warn!(path = %inner.disk.path().display(), %error, "flush failed");
        }
    }
}
