//! Entries into an index.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tantivy::Term;
use tantivy::indexer::UserOperation;

use crate::analysis::is_too_long;
use crate::cells::{Cells, Spare};
use crate::encode::encode;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::index::{Core, OpenWriter, write_payload};

/// Operations handed over together.
const BATCH: usize = 64;

/// Bytes of entries on their way to the thread that writes them.
const IN_FLIGHT_MAX: usize = 16 << 20;

/// Adds and deletes entries. What is not committed when it is dropped is forgotten.
pub struct Writer {
    core: Arc<Core>,
    open: Option<OpenWriter>,
    memory: usize,
    batch: Vec<UserOperation<Cells>>,
    /// Whether there is something that is not committed.
    is_dirty: bool,
    /// The order of the next entry.
    order: u64,
}

impl Writer {
    pub(crate) fn new(core: Arc<Core>, memory: usize) -> Result<Writer> {
        if core.is_writing.swap(true, Ordering::AcqRel) {
            return Err(Error::Busy { path: core.path.clone() });
        }
        let order = core.next_order.load(Ordering::Acquire);
        let open = {
            let _released = core.releasing.lock();
            core.open_writer.lock().take().filter(|open| open.memory == memory)
        };
        let mut writer =
            Writer { core, open, memory, batch: Vec::with_capacity(BATCH), is_dirty: false, order };
        writer.open()?;
        Ok(writer)
    }

    fn open(&mut self) -> Result<&mut OpenWriter> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.core.open_writer(self.memory)?,
        };
        Ok(self.open.insert(open))
    }

    /// Deletes all entries of a key, also those added before by this writer.
    pub fn delete(&mut self, key: &str) -> Result<()> {
        let term = Term::from_field_text(self.core.layout.key, key);
        self.operation(UserOperation::Delete(term))
    }

    /// Adds an entry. Waits while the index is written more slowly than entries come. Keys of more than 16 383 UTF-16 units are
    /// an error.
    pub fn add(&mut self, entry: &Entry<'_>) -> Result<()> {
        if is_too_long(entry.key) {
            return Err(Error::InvalidQuery(format!("a key of {} bytes is too long", entry.key.len())));
        }
        let mut cells = encode(&self.core.layout, entry, self.order, self.core.gauge.spare.take());
        self.order += 1;
        cells.weigh(&self.core.gauge);
        self.operation(UserOperation::Add(cells))
    }

    fn operation(&mut self, operation: UserOperation<Cells>) -> Result<()> {
        self.is_dirty = true;
        self.batch.push(operation);
        if self.batch.len() >= BATCH || self.core.gauge.held() > IN_FLIGHT_MAX {
            self.hand_over()?;
            self.core.gauge.wait_below(IN_FLIGHT_MAX);
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        let result = self.open()?.writer.run(batch);
        self.checked(result.map(|_| ()))
    }

    /// After an error of tantivy's writer nothing of it can be used: it is opened anew, at the last commit.
    fn checked(&mut self, result: tantivy::Result<()>) -> Result<()> {
        result.map_err(|error| {
            self.open = None;
            Error::Library(error)
        })
    }

    /// Makes all since the last commit visible, with the caller's payload, all or nothing. Searchers taken after this see it.
    /// It becomes durable within a second or so, and when the index is closed. After an error nothing of it has happened, and
    /// what was added is forgotten.
    pub fn commit(&mut self, payload: &[u8]) -> Result<()> {
        let result = self.try_commit(payload);
        if result.is_err() {
            self.forget();
        }
        result
    }

    fn try_commit(&mut self, payload: &[u8]) -> Result<()> {
        self.hand_over()?;
        let text = write_payload(self.order, payload);
        let result = self.open()?.writer.prepare_commit().and_then(|mut prepared| {
            prepared.set_payload(&text);
            prepared.commit()
        });
        self.checked(result.map(|_| ()))?;
        self.is_dirty = false;
        self.core.next_order.store(self.order, Ordering::Release);
        self.core.set_payload(payload);
        self.core.reload()?;
        self.core.ask_for_upkeep();
        Ok(())
    }

    /// Forgets all since the last commit.
    pub fn rollback(&mut self) -> Result<()> {
        if self.is_dirty {
            self.forget();
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.batch.clear();
        // Dropping it ends its threads; what they have not committed is not in the list of segments.
        self.open = None;
        self.is_dirty = false;
        self.order = self.core.next_order.load(Ordering::Acquire);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.is_dirty {
            self.forget();
        }
        if let Some(mut open) = self.open.take() {
            open.last_used = Instant::now();
            *self.core.open_writer.lock() = Some(open);
        }
        self.core.is_writing.store(false, Ordering::Release);
        self.core.ask_for_upkeep();
    }
}

/// Bytes of entries on their way, so that they stay bounded.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    /// Buffers of entries that are no longer on their way.
    pub(crate) spare: Spare,
    held: AtomicUsize,
    lock: Mutex<()>,
    less: Condvar,
}

impl Gauge {
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, bytes: usize) {
        let before = self.held.fetch_sub(bytes, Ordering::Relaxed);
        if before > IN_FLIGHT_MAX && before - bytes <= IN_FLIGHT_MAX {
            self.less.notify_all();
        }
    }

    fn wait_below(&self, limit: usize) {
        while self.held() > limit {
            let mut guard = self.lock.lock();
            // A wake-up may slip by: not for long.
            self.less.wait_for(&mut guard, Duration::from_millis(5));
        }
    }
}
