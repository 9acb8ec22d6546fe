//! Reads the journal: record by record along the hash chain, from the last synced state to the first record that is not whole.

use std::path::Path;
use std::sync::Arc;

use super::ahead::{Ahead, HEADROOM};
use super::batch::{Batch, Body, Record};
use super::{Found, Tail};
use crate::disk::File;
use crate::error::{Error, Result};
use crate::format::TransactionId;
use crate::header_file::Header;
use crate::journal::aligned::{ALIGNMENT, AlignedBuffer};
use crate::journal::files::{JournalFile, JournalFiles};
use crate::journal::record::{HEADER_SIZE, RecordHeader};
use crate::transaction::commit::JOINED_SIZE_MAX;

/// Bytes read from a journal at a time.
const READ_SIZE: usize = 1 << 20;
/// The first batch has about so many bytes, and each one twice as many as the one before, up to the maximum: early in an environment's
/// life all pages derive from few, so that a long first batch would be work for one thread.
const BATCH_SIZE_MIN: usize = 2 << 20;
const BATCH_SIZE_MAX: usize = 16 << 20;
/// No record is added to a batch of so many entries.
const BATCH_ENTRIES_MAX: usize = 1 << 19;

/// Where the chain of records has got to, and how to read on.
pub(super) struct Reader<'a> {
    header: &'a Header,
    journal: &'a JournalFiles,
    files: std::iter::Enumerate<std::slice::Iter<'a, Found>>,
    /// The file being read, and whether it had a record to apply.
    file: Option<(Source, bool)>,
    batch_size: usize,
    pub(super) last: TransactionId,
    pub(super) last_hash: u64,
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) tail: Option<Tail>,
    windows: Windows,
}

/// A file and the offset of its next record.
struct Source {
    /// Its place in the list of files.
    index: usize,
    file: Arc<dyn File>,
    number: u64,
    size: u64,
    path: Arc<Path>,
    offset: u64,
}

/// Where and why reading a file ended before its end.
struct Stopped {
    place: String,
    reason: String,
}

impl<'a> Reader<'a> {
    pub(super) fn new(header: &'a Header, journal: &'a JournalFiles, files: &'a [Found]) -> Reader<'a> {
        Reader {
            header,
            journal,
            files: files.iter().enumerate(),
            file: None,
            batch_size: BATCH_SIZE_MIN,
            last: header.synced,
            last_hash: header.synced_hash,
            records: 0,
            bytes: 0,
            tail: None,
            windows: Windows::default(),
        }
    }

    /// From now on takes the files' bytes from where they are read ahead; `None`: reads them itself.
    pub(super) fn set_ahead(&mut self, ahead: Option<Ahead>) {
        self.windows.ahead = ahead;
    }

    /// Fills the batch with the next records; whether there were any.
    pub(super) fn read(&mut self, batch: &mut Batch) -> Result<bool> {
        for buffer in batch.reset() {
            self.windows.give_back(buffer);
        }
        while batch.size() < self.batch_size && batch.len() < BATCH_ENTRIES_MAX {
            let Some((mut source, mut any)) = self.file.take().or_else(|| self.next_file()) else { break };
            match self.record(&mut source, batch, &mut any)? {
                None => self.file = Some((source, any)),
                Some(stop) => {
                    if let Some(stop) = stop {
                        self.look_for_lost(&mut source, &stop)?;
                        tracing::debug!(at = %stop.place, reason = stop.reason, "the journal ends");
                    }
                    self.windows.leave(None);
                    if any {
                        let file =
                            JournalFile { number: source.number, file: source.file, size: source.size };
                        self.journal.add_full(file, self.last);
                    } else {
                        self.journal.add_retired(source.number, source.size);
                    }
                }
            }
        }
        self.windows.leave(self.file.as_ref().map(|(source, _)| source.offset));
        batch.windows.append(&mut self.windows.used);
        batch.sort();
        self.batch_size = (self.batch_size * 2).min(BATCH_SIZE_MAX);
        Ok(batch.len() > 0)
    }

    fn next_file(&mut self) -> Option<(Source, bool)> {
        let (index, (number, file, size, path)) = self.files.next()?;
        Some((
            Source {
                index,
                file: file.clone(),
                number: *number,
                size: *size,
                path: path.as_path().into(),
                offset: 0,
            },
            false,
        ))
    }

    /// Adds the file's next record to the batch, if it is to be applied. Returns something at the file's end: why it is where it is,
    /// if not because the file ends.
    fn record(
        &mut self,
        source: &mut Source,
        batch: &mut Batch,
        any: &mut bool,
    ) -> Result<Option<Option<Stopped>>> {
        let offset = source.offset;
        if offset + ALIGNMENT as u64 > source.size {
            return Ok(Some(None));
        }
        let stop = |reason: String| {
            Ok(Some(Some(Stopped { place: format!("journal {}, offset {offset}", source.number), reason })))
        };
        let Some(record) = self.windows.header(source, offset)? else {
            return stop("no record starts here".to_owned());
        };
        if let Some(reason) = self.refusal(source.number, &record) {
            return stop(reason);
        }
        let bytes = self.windows.bytes(source, offset, record.record_size())?;
        if !record.verify(bytes) {
            return stop(format!("record {} fails its hash", record.transaction));
        }
        let end = offset + record.record_size();
        if record.transaction > self.header.synced {
            if record.transaction.0 != self.last.0 + 1 {
                return stop(format!("record {} follows {}", record.transaction, self.last));
            }
            if record.previous_hash != self.last_hash {
                return stop(format!("record {} does not continue {}", record.transaction, self.last));
            }
            self.add(source, offset, &record, batch)?;
            self.last = record.transaction;
            self.last_hash = record.hash;
            self.records += 1;
            self.bytes += record.record_size();
            let start = offset.min(end.saturating_sub(JOINED_SIZE_MAX as u64));
            self.tail = Some(Tail { file: source.file.clone(), path: source.path.clone(), start, end });
            *any = true;
        }
        source.offset = end;
        Ok(None)
    }

    fn add(&mut self, source: &Source, offset: u64, record: &RecordHeader, batch: &mut Batch) -> Result<()> {
        let damaged = |reason: String| Error::FileDamaged {
            path: source.path.to_path_buf(),
            reason: format!("record {} at {offset}: {reason}", record.transaction),
        };
        let (window, at) = self.windows.place(offset);
        let bytes = &self.windows.window.bytes()[at..];
        let mut made = Vec::new();
        let body = record.body(bytes, &mut made).map_err(damaged)?;
        batch.add_entries(body).map_err(damaged)?;
        let from = at + HEADER_SIZE;
        let stored = Body::Stored { window, from, to: from + body.len() };
        self.windows.is_used |= !record.compressed;
        let body = if record.compressed { Body::Made(made) } else { stored };
        batch.add_record(Record { transaction: record.transaction, path: source.path.clone(), offset, body });
        Ok(())
    }

    /// Why a record is not one of this file's, if it is not.
    fn refusal(&self, number: u64, record: &RecordHeader) -> Option<String> {
        if record.environment != self.header.environment {
            return Some("a record of another environment".to_owned());
        }
        (record.journal != number).then(|| format!("an old record of journal {}", record.journal))
    }

    /// After reading stopped: is there a later record that knew what is missing to be durable?
    fn look_for_lost(&mut self, source: &mut Source, stop: &Stopped) -> Result<()> {
        let mut offset = source.offset;
        while offset + ALIGNMENT as u64 <= source.size {
            if let Some(record) = self.windows.header(source, offset)?
                && self.refusal(source.number, &record).is_none()
                && record.durable > self.last
                && record.verify(self.windows.bytes(source, offset, record.record_size())?)
            {
                return Err(Error::FileDamaged {
                    path: source.path.to_path_buf(),
                    reason: format!(
                        "{} ({}), but record {} at offset {offset} says that transactions up to {} were durable; \
                         the last readable one is {}; restore from a backup",
                        stop.reason, stop.place, record.transaction, record.durable, self.last
                    ),
                });
            }
            offset += ALIGNMENT as u64;
        }
        Ok(())
    }
}

/// The bytes of a file around the place being read, and those that a batch goes on using.
#[derive(Default)]
struct Windows {
    window: AlignedBuffer,
    /// Where in `window` the file's bytes begin, and their place in the file.
    base: usize,
    start: u64,
    /// Whether the batch uses bytes of the window.
    is_used: bool,
    /// Earlier windows that the batch uses.
    used: Vec<AlignedBuffer>,
    spare: Vec<AlignedBuffer>,
    ahead: Option<Ahead>,
}

impl Windows {
    /// The bytes at `offset`; they lie inside the file.
    fn bytes(&mut self, source: &Source, offset: u64, size: u64) -> Result<&[u8]> {
        if (offset < self.start || offset + size > self.end()) && !self.take_chunk(source, offset, size) {
            self.leave(None);
            let read = size.max(READ_SIZE as u64).min(source.size - offset);
            self.window.set_len(read as usize);
            (self.base, self.start) = (0, offset);
            if let Err(error) = source.file.read_at(offset, self.window.bytes_mut()) {
                self.window.set_len(0);
                return Err(Error::io("read", &*source.path, error));
            }
        }
        let at = self.base + (offset - self.start) as usize;
        Ok(&self.window.bytes()[at..at + size as usize])
    }

    /// The place in the file behind the window.
    fn end(&self) -> u64 {
        self.start + (self.window.len() - self.base) as u64
    }

    /// Makes a chunk that was read ahead the window, when one has these bytes, or their end and the window their beginning.
    fn take_chunk(&mut self, source: &Source, offset: u64, size: u64) -> bool {
        let (start, end) = (self.start, self.end());
        loop {
            let Some(ahead) = &mut self.ahead else { return false };
            let Some(chunk) = ahead.peek() else { return false };
            if chunk.file < source.index || chunk.file == source.index && chunk.end <= offset {
                if let Some(chunk) = ahead.take() {
                    ahead.give_back(chunk.buffer);
                }
                continue;
            }
            let before = chunk.start.saturating_sub(offset) as usize;
            let is_held = before == 0 || start <= offset && end >= chunk.start;
            if chunk.file > source.index || offset + size > chunk.end || before > HEADROOM || !is_held {
                return false;
            }
            let Some(mut chunk) = ahead.take() else { return false };
            if before > 0 {
                let at = self.base + (offset - start) as usize;
                let held = &self.window.bytes()[at..at + before];
                chunk.buffer.bytes_mut()[HEADROOM - before..HEADROOM].copy_from_slice(held);
            }
            self.set_window(chunk.buffer);
            (self.base, self.start) = (HEADROOM - before, chunk.start - before as u64);
            return true;
        }
    }

    /// The header of the record at `offset`, when one starts there and the record lies inside the file.
    fn header(&mut self, source: &Source, offset: u64) -> Result<Option<RecordHeader>> {
        let header = RecordHeader::read(self.bytes(source, offset, HEADER_SIZE as u64)?);
        Ok(header.filter(|h| h.record_size() <= source.size - offset))
    }

    /// Which of the batch's windows the present one will be, and where in it the bytes at `offset` are.
    fn place(&self, offset: u64) -> (usize, usize) {
        (self.used.len(), self.base + (offset - self.start) as usize)
    }

    /// Begins a new window, with the bytes of this one from a place in the file on, if any.
    fn leave(&mut self, from: Option<u64>) {
        let mut fresh = self.spare.pop().unwrap_or_default();
        fresh.set_len(0);
        let held = from.filter(|from| (self.start..self.end()).contains(from));
        if let Some(from) = held {
            fresh.extend(&self.window.bytes()[self.base + (from - self.start) as usize..]);
        }
        self.set_window(fresh);
        (self.base, self.start) = (0, held.unwrap_or(0));
    }

    fn set_window(&mut self, window: AlignedBuffer) {
        let before = std::mem::replace(&mut self.window, window);
        if std::mem::take(&mut self.is_used) {
            self.used.push(before);
        } else {
            self.give_back(before);
        }
    }

    /// Takes a buffer to be used again.
    fn give_back(&mut self, buffer: AlignedBuffer) {
        match &self.ahead {
            Some(ahead) if self.spare.len() > 1 => ahead.give_back(buffer),
            _ => self.spare.push(buffer),
        }
    }
}
