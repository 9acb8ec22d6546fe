//! Entries into an index.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::analysis::is_too_long;
use crate::building::Building;
use crate::deletion::Deletions;
use crate::encode::{Places, encode};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::index::{Core, OpenWriter, write_payload};
use crate::merges::Pace;

/// Adds and deletes entries. What is not committed when it is dropped is forgotten.
pub struct Writer {
    core: Arc<Core>,
    open: Option<OpenWriter>,
    building: Building,
    places: Places,
    /// Keys of which entries are deleted, and the order from which on they stay.
    deleted: HashMap<String, u64>,
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
        let open = core.open_writer.lock().take();
        let building = Building::new(core.index.clone(), Arc::clone(&core.spare), memory);
        let (places, deleted) = (Places::default(), HashMap::new());
        let mut writer = Writer { core, open, building, places, deleted, is_dirty: false, order };
        writer.open()?;
        Ok(writer)
    }

    fn open(&mut self) -> Result<&mut OpenWriter> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.core.open_writer()?,
        };
        Ok(self.open.insert(open))
    }

    /// Deletes all entries of a key, also those added before by this writer.
    pub fn delete(&mut self, key: &str) -> Result<()> {
        self.is_dirty = true;
        match self.deleted.get_mut(key) {
            Some(order) => *order = self.order,
            None => {
                self.deleted.insert(key.to_owned(), self.order);
            }
        }
        Ok(())
    }

    /// Adds an entry. Waits while the index is written more slowly than entries come. Keys of more than 16 383 UTF-16 units are
    /// an error.
    pub fn add(&mut self, entry: &Entry<'_>) -> Result<()> {
        if is_too_long(entry.key) {
            return Err(Error::InvalidQuery(format!("a key of {} bytes is too long", entry.key.len())));
        }
        self.is_dirty = true;
        let order = self.order;
        self.order += 1;
        let (layout, places) = (&self.core.layout, &mut self.places);
        self.building.add(|cells| encode(layout, places, entry, order, cells))?;
        Ok(())
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
        let segments = self.building.finish()?;
        let deletions = match self.deleted.is_empty() {
            true => None,
            false => Some(Deletions::new(&self.core.layout, std::mem::take(&mut self.deleted))),
        };
        let text = write_payload(self.order, payload);
        let core = Arc::clone(&self.core);
        let committing = core.begin_commit();
        let open = self.open()?;
        for segment in segments {
            open.writer.add_segment(segment)?;
        }
        // After the segments: what a segment is added after, it might not see.
        if let Some(deletions) = deletions {
            open.writer.delete_query(Box::new(deletions))?;
        }
        let mut prepared = open.writer.prepare_commit()?;
        prepared.set_payload(&text);
        prepared.commit()?;
        self.is_dirty = false;
        self.core.next_order.store(self.order, Ordering::Release);
        self.core.set_payload(payload);
        self.core.reload()?;
        drop(committing);
        if let Some(open) = &mut self.open {
            self.core.merge(open, Pace::Busy);
        }
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
        self.building.forget();
        self.deleted.clear();
        // After an error of tantivy's writer nothing of it can be used: it is opened anew, at the last commit.
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

#[cfg(test)]
mod tests;
