//! The journal's files: `journal/<number>.journal`, written one after the other.
//!
//! A synchronous write is fast only where the file's blocks were written before, so the next file is made ready in the
//! background: a retired one under a new number, or a new one filled with zeros. That writes every byte of a growing journal
//! twice, which pays where it is used again and again; in a burst that fills many files for the first time it does not, so beyond
//! `Options::journal_zeroed_max` new files are only allocated, and their first use makes them ready for the next. Files start small and double, so that a small
//! environment stays small and a busy one changes files rarely.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::disk::{Disk, File, OpenMode, is_full};
use crate::error::{Error, Result};
use crate::format::TransactionId;

use super::aligned::ALIGNMENT;

/// The directory below the environment's.
pub(crate) const DIRECTORY: &str = "journal";

/// Retired files kept for use again; more are removed.
const SPARES_MAX: usize = 2;

/// One journal file.
#[derive(Clone)]
pub(crate) struct JournalFile {
    pub(crate) number: u64,
    pub(crate) file: Arc<dyn File>,
    /// Bytes that were written before, and so may be used.
    pub(crate) size: u64,
}

/// The file's name below the environment's directory.
pub(crate) fn name(number: u64) -> String {
    format!("{DIRECTORY}/{number:016}.journal")
}

/// The number in a file's name (without directory), `None` when it is no journal's.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    name.strip_suffix(".journal")
        .filter(|n| n.len() == 16 && n.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|n| n.parse().ok())
}

/// The files that are not the current one.
pub(crate) struct JournalFiles {
    disk: Arc<dyn Disk>,
    size_max: u64,
    /// Once files of this many bytes were made, further ones are only allocated.
    zeroed_max: u64,
    state: Mutex<State>,
}

struct State {
    /// The number the next file gets.
    next_number: u64,
    /// The size the next new file gets.
    next_size: u64,
    /// Ready for use, under its number.
    ready: Option<JournalFile>,
    /// Bytes of all files made so far.
    zeroed: u64,
    /// The number of the file handed out last.
    current: Option<u64>,
    /// Full files that recovery may need, oldest first, each with the id of its last record.
    full: VecDeque<(JournalFile, TransactionId)>,
    /// Files that nobody needs any more: number, size.
    retired: Vec<(u64, u64)>,
}

impl JournalFiles {
    /// No files yet. `next_number` is above all that exist; sizes are in bytes.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        next_number: u64,
        size_min: u64,
        size_max: u64,
        zeroed_max: u64,
    ) -> JournalFiles {
        let align = |size: u64| size.next_multiple_of(ALIGNMENT as u64).max(2 * ALIGNMENT as u64);
        let (size_min, size_max) = (align(size_min), align(size_max.max(size_min)));
        let state = State {
            next_number,
            next_size: size_min,
            ready: None,
            zeroed: 0,
            current: None,
            full: VecDeque::new(),
            retired: Vec::new(),
        };
        JournalFiles { disk, size_max, zeroed_max, state: Mutex::new(state) }
    }

    /// A file found at recovery whose records are needed, up to and including `last`.
    pub(crate) fn add_full(&self, file: JournalFile, last: TransactionId) {
        let mut state = self.state.lock();
        state.next_number = state.next_number.max(file.number + 1);
        state.full.push_back((file, last));
    }

    /// A file found at recovery that is not needed.
    pub(crate) fn add_retired(&self, number: u64, size: u64) {
        let mut state = self.state.lock();
        state.next_number = state.next_number.max(number + 1);
        state.retired.push((number, size));
    }

    /// Hands out the next file, with room for at least `needed` bytes. `full` is the file that it follows.
    ///
    /// Errors: the disk is full (nothing has changed), or I/O.
    pub(crate) fn next(
        &self,
        needed: u64,
        full: Option<(JournalFile, TransactionId)>,
    ) -> Result<JournalFile> {
        let mut state = self.state.lock();
        let ready = state.ready.take();
        let file = match ready {
            Some(ready) if ready.size >= needed => ready,
            Some(mut small) => match self.extend(&small, needed) {
                Ok(()) => {
                    small.size = needed.next_multiple_of(ALIGNMENT as u64);
                    small
                }
                Err(error) => {
                    state.ready = Some(small);
                    return Err(error);
                }
            },
            None => self.make(&mut state, needed)?,
        };
        state.full.extend(full);
        state.current = Some(file.number);
        Ok(file)
    }

    fn extend(&self, file: &JournalFile, needed: u64) -> Result<()> {
        let needed = needed.next_multiple_of(ALIGNMENT as u64);
        file.file.prewrite(needed).map_err(|e| self.write_error(file.number, needed, e))
    }

    /// Makes the next file ready ahead of use, when none is. For the background.
    pub(crate) fn prepare(&self) -> Result<()> {
        let mut state = self.state.lock();
        if state.ready.is_none() {
            state.ready = Some(self.make(&mut state, 0)?);
        }
        Ok(())
    }

    /// Whether [`JournalFiles::prepare`] has work to do.
    pub(crate) fn wants_preparing(&self) -> bool {
        self.state.lock().ready.is_none()
    }

    fn make(&self, state: &mut State, needed: u64) -> Result<JournalFile> {
        let number = state.next_number;
        let size = state.next_size.max(needed.next_multiple_of(ALIGNMENT as u64));
        if let Some(at) = state.retired.iter().position(|&(_, s)| s >= size.min(self.size_max).max(needed)) {
            let (old, old_size) = state.retired[at];
            self.disk.rename(&name(old), &name(number)).map_err(|e| self.write_error(number, 0, e))?;
            state.retired.swap_remove(at);
            state.next_number += 1;
            self.sync_directory()?;
            let file = self.open(number)?;
            return Ok(JournalFile { number, file, size: old_size });
        }
        let file =
            self.disk.open(&name(number), OpenMode::Create).map_err(|e| self.write_error(number, size, e))?;
        let prepared = if state.zeroed + size <= self.zeroed_max {
            file.prewrite(size)
        } else {
            file.allocate(size).and_then(|()| file.sync())
        };
        if let Err(error) = prepared {
            drop(file);
            let _ = self.disk.remove(&name(number)); // so that a full disk has its space back
            return Err(self.write_error(number, size, error));
        }
        state.zeroed += size;
        state.next_number += 1;
        state.next_size = (size * 2).min(self.size_max);
        self.sync_directory()?;
        Ok(JournalFile { number, file, size })
    }

    fn open(&self, number: u64) -> Result<Arc<dyn File>> {
        let path = || self.disk.path().join(name(number));
        self.disk.open(&name(number), OpenMode::Write).map_err(|e| Error::io("open", path(), e))
    }

    fn sync_directory(&self) -> Result<()> {
        let path = || self.disk.path().join(DIRECTORY);
        self.disk.sync_directory(DIRECTORY).map_err(|e| Error::io("sync", path(), e))
    }

    fn write_error(&self, number: u64, bytes: u64, error: std::io::Error) -> Error {
        let path = self.disk.path().join(name(number));
        if is_full(&error) {
            return Error::DiskFull { what: path.display().to_string(), bytes, source: error };
        }
        Error::io("prepare", path, error)
    }

    /// Puts away the full files whose records are all in the data file up to `synced`. They are reused or removed.
    pub(crate) fn retire(&self, synced: TransactionId) -> Result<()> {
        let mut state = self.state.lock();
        while state.full.front().is_some_and(|(_, last)| *last <= synced) {
            if let Some((file, _)) = state.full.pop_front() {
                state.retired.push((file.number, file.size));
            }
        }
        // The largest are worth keeping.
        state.retired.sort_by_key(|&(number, size)| (std::cmp::Reverse(size), number));
        let mut removed = false;
        while state.retired.len() > SPARES_MAX {
            let Some((number, size)) = state.retired.pop() else { break };
            if let Err(error) = self.disk.remove(&name(number)) {
                // Nothing rests on its absence: the next flush tries again.
                tracing::warn!(path = %self.disk.path().join(name(number)).display(), %error, "remove a spare journal");
                state.retired.push((number, size));
                break;
            }
            removed = true;
        }
        drop(state);
        if removed { self.sync_directory() } else { Ok(()) }
    }

    /// At a clean close, when no record is needed any more: removes all files.
    pub(crate) fn remove_all(&self) -> Result<()> {
        let mut state = self.state.lock();
        let mut numbers: Vec<u64> = state.retired.drain(..).map(|(number, _)| number).collect();
        numbers.extend(state.full.drain(..).map(|(file, _)| file.number));
        numbers.extend(state.ready.take().map(|file| file.number));
        numbers.extend(state.current.take());
        drop(state);
        for number in numbers {
            let path = || self.disk.path().join(name(number));
            self.disk.remove(&name(number)).map_err(|e| Error::io("remove", path(), e))?;
        }
        self.sync_directory()
    }

    /// The number of the first file that may hold records newer than `synced`.
    pub(crate) fn first_needed_after(&self, synced: TransactionId) -> u64 {
        let state = self.state.lock();
        let full = state.full.iter().find(|(_, last)| *last > synced).map(|(file, _)| file.number);
        full.or(state.current).or(state.ready.as_ref().map(|f| f.number)).unwrap_or(state.next_number)
    }

    /// Files and bytes: full ones, and those ready or retired.
    pub(crate) fn sizes(&self) -> ((usize, u64), (usize, u64)) {
        let state = self.state.lock();
        let full = (state.full.len(), state.full.iter().map(|(f, _)| f.size).sum());
        let spare = (
            state.retired.len() + usize::from(state.ready.is_some()),
            state.retired.iter().map(|r| r.1).sum::<u64>() + state.ready.as_ref().map_or(0, |r| r.size),
        );
        (full, spare)
    }
}
