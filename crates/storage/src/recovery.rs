//! Recovery: the state after the last durable commit, from the data file as of the last sync and the journal since.
//!
//! Records are applied in order to versions in scratch memory; nothing on disk is changed, so a crash during recovery costs
//! nothing, and the environment is usable as soon as the journal is read. The flusher writes the pages later.
//!
//! Reading stops at the first record that is not whole. That is the one whose write was cut short, which nobody was told about; unless a
//! later record says that it was durable: then the journal is damaged, and we refuse to open rather than lose it silently.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::data_file::DataFile;
use crate::disk::{Disk, File, OpenMode};
use crate::error::{Error, Result};
use crate::format::{PAGE_SIZE, PageNumber, ROOT_PAGE, TransactionId};
use crate::header_file::{Header, HeaderFiles};
use crate::journal::aligned::{ALIGNMENT, AlignedBuffer};
use crate::journal::changes::{self, Entries, Entry, Pieces};
use crate::journal::files::{DIRECTORY, JournalFile, JournalFiles, name, number_of};
use crate::journal::record::{HEADER_SIZE, RecordHeader};
use crate::page;
use crate::page::header::{self, PageKind};
use crate::root::{self, RootState};
use crate::snapshot::page_table::{Content, PAGES_MAX, PageTable};
use crate::transaction::commit::JOINED_SIZE_MAX;

/// Journals of fewer bytes are read by one thread.
const HELPED_SIZE_MIN: u64 = 8 << 20;
/// Entries whose places are fetched together.
const TOUCHED_MAX: usize = 32;
/// Pages validated by one thread at least.
const VALIDATE_SHARE_MIN: usize = 1024;
/// Bytes read from a journal at a time.
const READ_SIZE: usize = 1 << 20;

/// What recovery found.
pub(crate) struct Recovered {
    /// The newest transaction and its record's hash.
    pub(crate) last: TransactionId,
    pub(crate) last_hash: u64,
    pub(crate) root: RootState,
    /// The pages with versions in scratch memory.
    pub(crate) pages: Vec<PageNumber>,
    /// Records applied, and their bytes in the journal.
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    /// The last journal bytes applied.
    tail: Option<Tail>,
}

/// Journal bytes that may be seen without being durable: those of the last write of the process before, which may have failed or
/// have been under way when it died. Every earlier write had succeeded, or that one had not been made.
struct Tail {
    file: Arc<dyn File>,
    path: std::path::PathBuf,
    start: u64,
    end: u64,
}

impl Recovered {
    /// Makes durable what the recovered state rests on, so that commits can be acknowledged on top of it: after a failed write the
    /// system may show bytes that a power loss takes away, and call them clean, so they are written again, not only synced.
    pub(crate) fn settle(&self, disk: &dyn Disk, headers: &HeaderFiles, header: &mut Header) -> Result<()> {
        disk.create_directory(DIRECTORY).map_err(|e| Error::io("create", disk.path().join(DIRECTORY), e))?;
        for directory in ["", DIRECTORY] {
            let path = || disk.path().join(directory);
            disk.sync_directory(directory).map_err(|e| Error::io("sync", path(), e))?;
        }
        if let Some(tail) = &self.tail {
            let mut bytes = AlignedBuffer::default();
            bytes.set_len((tail.end - tail.start) as usize);
            tail.file.read_at(tail.start, bytes.bytes_mut()).map_err(|e| Error::io("read", &tail.path, e))?;
            tail.file
                .write_durable(tail.start, bytes.bytes())
                .map_err(|e| Error::io("write", &tail.path, e))?;
        }
        let next = Header { generation: header.generation + 1, ..*header };
        headers.write(&next)?;
        *header = next;
        Ok(())
    }
}

/// Applies the journal to `table`; tells `journal` which files exist. With `helped`, other threads run ahead and take a share.
pub(crate) fn recover(
    disk: &dyn Disk,
    header: &Header,
    data: &DataFile,
    table: &PageTable,
    journal: &JournalFiles,
    read_only: bool,
    helped: bool,
) -> Result<Recovered> {
    if data.len() < header.page_count * PAGE_SIZE as u64 {
        let reason = format!(
            "it has {} bytes, but {} pages of {PAGE_SIZE} bytes were synced; restore it from a backup",
            data.len(),
            header.page_count
        );
        return Err(Error::FileDamaged { path: data.path().clone(), reason });
    }
    let mut replay = Replay {
        header,
        data,
        table,
        last: header.synced,
        last_hash: header.synced_hash,
        pages: Vec::new(),
        records: 0,
        bytes: 0,
        tail: None,
        body: Vec::new(),
    };
    let mode = if read_only { OpenMode::Read } else { OpenMode::Write };
    let names = disk.list(DIRECTORY).map_err(|e| Error::io("list", disk.path().join(DIRECTORY), e))?;
    let mut files = Vec::new();
    for number in names.iter().filter_map(|n| number_of(n)) {
        let path = disk.path().join(name(number));
        let file = disk.open(&name(number), mode).map_err(|e| Error::io("open", &path, e))?;
        let size = file.len().map_err(|e| Error::io("read the length of", &path, e))?;
        // Only what was written whole may be written again without metadata.
        let size = size / ALIGNMENT as u64 * ALIGNMENT as u64;
        if number < header.first_journal {
            journal.add_retired(number, size);
        } else {
            files.push((number, file, size, path));
        }
    }
    let total: u64 = files.iter().map(|(_, _, size, _)| size).sum();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if helped && total >= HELPED_SIZE_MIN {
            let (files, done) = (&files, &done);
            // Without it everything works, only slower.
            let _ = std::thread::Builder::new()
                .name("storage-recovery".to_owned())
                .spawn_scoped(scope, move || run_ahead(files, table, done));
        }
        let result = replay.read_files(&files, journal);
        done.store(true, Ordering::Release);
        result
    })?;
    replay.finish(read_only, helped)
}

/// A journal file found: its number, the file, its size in whole blocks, its path.
type Found = (u64, Arc<dyn File>, u64, std::path::PathBuf);

/// Reads the files ahead of recovery, so that it finds them in the system's cache, and gets scratch memory ready.
fn run_ahead(files: &[Found], table: &PageTable, done: &AtomicBool) {
    let mut buffer = AlignedBuffer::default();
    buffer.set_len(READ_SIZE);
    let mut windows = files.iter().flat_map(|(_, file, size, _)| {
        (0..*size).step_by(READ_SIZE).map(move |at| (file, at, (size - at).min(READ_SIZE as u64) as usize))
    });
    while !done.load(Ordering::Acquire) {
        // Errors show where the bytes are needed.
        let read = windows.next().map(|(file, at, size)| file.read_at(at, &mut buffer.bytes_mut()[..size]));
        let made = table.prepare_frames().unwrap_or(false);
        if read.is_none() && !made {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
    }
}

/// Where and why reading a file ended before its end.
struct Stopped {
    place: String,
    reason: String,
    offset: u64,
}

struct Replay<'a> {
    header: &'a Header,
    data: &'a DataFile,
    table: &'a PageTable,
    last: TransactionId,
    last_hash: u64,
    pages: Vec<PageNumber>,
    records: u64,
    bytes: u64,
    tail: Option<Tail>,
    /// Room for a decompressed body.
    body: Vec<u8>,
}

impl Replay<'_> {
    fn read_files(&mut self, files: &[Found], journal: &JournalFiles) -> Result<()> {
        for (number, file, size, path) in files {
            let before = self.records;
            let mut reader = Reader::new(file.clone(), *size, path.clone());
            if let Some(stop) = self.read_file(*number, &mut reader)? {
                self.look_for_lost(*number, &mut reader, &stop)?;
                tracing::debug!(at = %stop.place, reason = stop.reason, "the journal ends");
            }
            if self.records > before {
                journal.add_full(JournalFile { number: *number, file: file.clone(), size: *size }, self.last);
            } else {
                journal.add_retired(*number, *size);
            }
        }
        Ok(())
    }

    /// Reads one file's records in order; why it stopped before the end, if it did.
    fn read_file(&mut self, number: u64, reader: &mut Reader) -> Result<Option<Stopped>> {
        let mut offset = 0;
        while offset + ALIGNMENT as u64 <= reader.size {
            let stop = |reason: String| Stopped {
                place: format!("journal {number}, offset {offset}"),
                reason,
                offset,
            };
            let Some(record) = reader.record(offset)? else {
                return Ok(Some(stop("no record starts here".to_owned())));
            };
            if let Some(reason) = self.refusal(number, &record) {
                return Ok(Some(stop(reason)));
            }
            let bytes = reader.bytes(offset, record.record_size())?;
            if !record.verify(bytes) {
                return Ok(Some(stop(format!("record {} fails its hash", record.transaction))));
            }
            if record.transaction > self.header.synced {
                if record.transaction.0 != self.last.0 + 1 {
                    return Ok(Some(stop(format!("record {} follows {}", record.transaction, self.last))));
                }
                if record.previous_hash != self.last_hash {
                    return Ok(Some(stop(format!(
                        "record {} does not continue {}",
                        record.transaction, self.last
                    ))));
                }
                let mut buffer = std::mem::take(&mut self.body);
                let damaged = |reason: String| Error::FileDamaged {
                    path: reader_path(number),
                    reason: format!("record {} at {offset}: {reason}", record.transaction),
                };
                let body = record.body(bytes, &mut buffer).map_err(&damaged)?;
                self.apply(body, record.transaction, &damaged)?;
                self.body = buffer;
                self.last = record.transaction;
                self.last_hash = record.hash;
                self.records += 1;
                self.bytes += record.record_size();
                let end = offset + record.record_size();
                let start = offset.min(end.saturating_sub(JOINED_SIZE_MAX as u64));
                self.tail = Some(Tail { file: reader.file.clone(), path: reader.path.clone(), start, end });
            }
            offset += record.record_size();
        }
        Ok(None)
    }

    /// Why a record is not one of this file's, if it is not.
    fn refusal(&self, number: u64, record: &RecordHeader) -> Option<String> {
        if record.environment != self.header.environment {
            return Some("a record of another environment".to_owned());
        }
        (record.journal != number).then(|| format!("an old record of journal {}", record.journal))
    }

    /// After reading stopped: is there a later record that knew what is missing to be durable?
    fn look_for_lost(&self, number: u64, reader: &mut Reader, stop: &Stopped) -> Result<()> {
        let mut offset = stop.offset;
        while offset + ALIGNMENT as u64 <= reader.size {
            if let Some(record) = reader.record(offset)?
                && self.refusal(number, &record).is_none()
                && record.durable > self.last
                && record.verify(reader.bytes(offset, record.record_size())?)
            {
                return Err(Error::FileDamaged {
                    path: reader.path.clone(),
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

    /// Reads where the entries of a record will write: one after the other each would wait for memory, together they wait once.
    fn touch(&self, body: &[u8]) {
        let mut pages: [Option<(&page::Page, Pieces<'_>)>; TOUCHED_MAX] = [None; TOUCHED_MAX];
        let mut count = 0;
        let mut sum = 0_u8;
        for entry in Entries::new(body).flatten() {
            if let Entry::Page { number, new: false, pieces } | Entry::Moved { number, pieces, .. } = entry
                && number.0 < PAGES_MAX
                && let Some(version) = self.table.newest(number).filter(|v| v.size == PAGE_SIZE)
            {
                // SAFETY: recovery alone changes versions, and does not while this borrow is alive.
                pages[count] = Some((unsafe { version.page() }, pieces));
                count += 1;
            }
            if count == TOUCHED_MAX {
                for (page, pieces) in pages.iter_mut().take(count).filter_map(Option::take) {
                    sum = sum.wrapping_add(pieces.touch(page));
                }
                count = 0;
            }
        }
        for (page, pieces) in pages.iter_mut().take(count).filter_map(Option::take) {
            sum = sum.wrapping_add(pieces.touch(page));
        }
        std::hint::black_box(sum);
    }

    fn apply(&mut self, body: &[u8], id: TransactionId, damaged: &dyn Fn(String) -> Error) -> Result<()> {
        self.touch(body);
        for entry in Entries::new(body) {
            match entry.map_err(damaged)? {
                Entry::Page { number, new, pieces } => {
                    let version = self.page(number, new, id, damaged)?;
                    pieces.apply(version);
                }
                Entry::Moved { number, moves, pieces } => {
                    let page = self.exact_page(number, damaged)?;
                    moves.apply(page);
                    pieces.apply(page);
                }
                Entry::Derived { number, source, block } => {
                    let dictionary = *self.exact_page(source, damaged)?;
                    let page = self.page(number, true, id, damaged)?;
                    changes::derive(block, &dictionary, page).map_err(damaged)?;
                }
                Entry::Run { number, bytes } => {
                    let length = (bytes.len() as u64).saturating_sub(crate::format::PAGE_HEADER_SIZE as u64);
                    let sound = bytes.len() > crate::format::PAGE_HEADER_SIZE
                        && header::kind(bytes) == Some(PageKind::Overflow)
                        && crate::transaction::write::run_length(bytes) == length
                        && header::number(bytes) == number;
                    if !sound {
                        return Err(damaged(format!("the run at page {number} is none")));
                    }
                    self.forget(number, header::run_pages(length), damaged)?;
                    let content =
                        if bytes.len() <= PAGE_SIZE { Content::Page } else { Content::Run(bytes.len()) };
                    let version = self.table.allocate(content, id).map_err(out_of_memory)?;
                    // SAFETY: just made, and no reader exists yet.
                    let memory = unsafe { version.bytes_mut() };
                    memory[..bytes.len()].copy_from_slice(bytes);
                    memory[bytes.len()..].fill(0);
                    self.table.push(number, version.link);
                    self.pages.push(number);
                }
                Entry::Free { number } => self.forget(number, 1, damaged)?,
                Entry::Direct { number, pages } => self.forget(number, pages, damaged)?,
            }
        }
        Ok(())
    }

    /// The page's version for changing: what recovery has of it, else what the data file has.
    fn page(
        &mut self,
        number: PageNumber,
        new: bool,
        id: TransactionId,
        damaged: &dyn Fn(String) -> Error,
    ) -> Result<&mut page::Page> {
        self.check(number, 1, damaged)?;
        let version = match self.table.newest(number) {
            Some(version) if version.size == PAGE_SIZE => {
                if new {
                    // SAFETY: recovery alone uses the table; no other borrow of this version is alive.
                    unsafe { version.page_mut() }.fill(0);
                }
                version
            }
            _ => {
                self.forget(number, 1, damaged)?;
                let version = self.table.allocate(Content::Page, id).map_err(out_of_memory)?;
                // SAFETY: as above.
                let memory = unsafe { version.page_mut() };
                // The base may be torn or newer than the record: all that differs is in the records that follow.
                match self.data.page_unverified(number) {
                    Ok(base) if !new => memory.copy_from_slice(base),
                    _ => memory.fill(0),
                }
                self.table.push(number, version.link);
                self.pages.push(number);
                version
            }
        };
        // SAFETY: as above.
        Ok(unsafe { version.page_mut() })
    }

    /// A page that earlier records made.
    fn exact_page(
        &mut self,
        number: PageNumber,
        damaged: &dyn Fn(String) -> Error,
    ) -> Result<&mut page::Page> {
        self.check(number, 1, damaged)?;
        match self.table.newest(number) {
            // SAFETY: as above.
            Some(version) if version.size == PAGE_SIZE => Ok(unsafe { version.page_mut() }),
            _ => Err(damaged(format!("it builds on page {number}, which no record has made"))),
        }
    }

    fn check(&self, number: PageNumber, count: u64, damaged: &dyn Fn(String) -> Error) -> Result<()> {
        if number.0.checked_add(count).is_some_and(|end| end <= PAGES_MAX) {
            return Ok(());
        }
        Err(damaged(format!("no environment has a page {number}")))
    }

    /// Drops what recovery has of these pages.
    fn forget(&mut self, number: PageNumber, count: u64, damaged: &dyn Fn(String) -> Error) -> Result<()> {
        self.check(number, count, damaged)?;
        let chains = self.table.chains();
        for page in number.0..number.0 + count {
            if let Some(version) = self.table.newest(PageNumber(page)) {
                self.table.pop(PageNumber(page), version.link, &chains);
            }
        }
        Ok(())
    }

    fn finish(mut self, read_only: bool, helped: bool) -> Result<Recovered> {
        self.pages.sort_unstable();
        self.pages.dedup();
        self.pages.retain(|&page| !self.table.is_empty(page));
        // Built on bytes that nobody has verified, so the results are.
        let threads = match std::thread::available_parallelism() {
            Ok(cores) if helped => cores.get().min(4),
            _ => 1,
        };
        let share = self.pages.len().div_ceil(threads).max(VALIDATE_SHARE_MIN);
        let table = self.table;
        std::thread::scope(|scope| {
            let shares: Vec<_> = self.pages.chunks(share).collect();
            let (last, others) =
                shares.split_last().map_or((&[][..], &[][..]), |(last, others)| (*last, others));
            let others: Vec<_> =
                others.iter().map(|share| scope.spawn(|| validate_all(table, share))).collect();
            let mut result = validate_all(table, last);
            for other in others {
                let other = other
                    .join()
                    .unwrap_or_else(|_| Err(Error::Invalid("validating pages failed".to_owned())));
                result = result.and(other);
            }
            result
        })?;
        let root = if self.last.0 == 0 {
            RootState::empty()
        } else {
            let page = match self.table.newest(ROOT_PAGE) {
                // SAFETY: as above.
                Some(version) => unsafe { version.page() },
                None => self.data.page(ROOT_PAGE)?,
            };
            let (found, expected) = (root::environment(page), self.header.environment);
            if found != expected {
                return Err(Error::Foreign {
                    path: self.data.path().clone(),
                    reason: format!(
                        "it is of environment {found:016x}, the headers are of {expected:016x}; restore the right one"
                    ),
                });
            }
            RootState::read(page)?
        };
        if root.page_count > PAGES_MAX {
            return Err(Error::damaged(ROOT_PAGE, format!("its page count is {}", root.page_count)));
        }
        if !read_only && self.records > 0 {
            self.data.ensure_pages(root.page_count)?;
        }
        Ok(Recovered {
            last: self.last,
            last_hash: self.last_hash,
            root,
            pages: self.pages,
            records: self.records,
            bytes: self.bytes,
            tail: self.tail,
        })
    }
}

fn validate_all(table: &PageTable, pages: &[PageNumber]) -> Result<()> {
    for &number in pages {
        if let Some(version) = table.newest(number) {
            // SAFETY: recovery alone uses the table, and nothing changes any more.
            let bytes = unsafe { version.page() };
            let found = header::number(bytes);
            if found != number {
                return Err(Error::damaged(number, format!("after recovery it carries the number {found}")));
            }
            page::validate(number, bytes)?;
        }
    }
    Ok(())
}

fn out_of_memory(source: std::io::Error) -> Error {
    Error::io("take scratch memory for", "recovery", source)
}

fn reader_path(number: u64) -> std::path::PathBuf {
    name(number).into()
}

/// Reads a journal file forward through a window.
struct Reader {
    file: Arc<dyn File>,
    size: u64,
    path: std::path::PathBuf,
    window: AlignedBuffer,
    /// The window's place in the file.
    start: u64,
}

impl Reader {
    fn new(file: Arc<dyn File>, size: u64, path: std::path::PathBuf) -> Reader {
        Reader { file, size, path, window: AlignedBuffer::default(), start: 0 }
    }

    /// The bytes at `offset`; they lie inside the file.
    fn bytes(&mut self, offset: u64, size: u64) -> Result<&[u8]> {
        let held = self.start..self.start + self.window.len() as u64;
        if offset < held.start || offset + size > held.end {
            let read = size.max(READ_SIZE as u64).min(self.size - offset);
            self.window.set_len(read as usize);
            self.start = offset;
            if let Err(error) = self.file.read_at(offset, self.window.bytes_mut()) {
                self.window.set_len(0);
                return Err(Error::io("read", &self.path, error));
            }
        }
        let at = (offset - self.start) as usize;
        Ok(&self.window.bytes()[at..at + size as usize])
    }

    /// The header of the record at `offset`, when one starts there and the record lies inside the file.
    fn record(&mut self, offset: u64) -> Result<Option<RecordHeader>> {
        let size = self.size;
        let header = RecordHeader::read(self.bytes(offset, HEADER_SIZE as u64)?);
        Ok(header.filter(|h| h.record_size() <= size - offset))
    }
}
