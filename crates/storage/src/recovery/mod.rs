//! Recovery: the state after the last durable commit, from the data file as of the last sync and the journal since.
//!
//! Files are read ahead (`ahead`), their records taken in order (`reader`), gathered in batches that sort their entries by page (`batch`), and applied to versions in
//! scratch memory by several threads, while the next batch is read (`apply`). Nothing on disk is changed, so a crash during recovery costs
//! nothing, and the environment is usable as soon as the journal is read. The flusher writes the pages later.
//!
//! Reading stops at the first record that is not whole. That is the one whose write was cut short, which nobody was told about; unless a
//! later record says that it was durable: then the journal is damaged, and we refuse to open rather than lose it silently.

mod ahead;
mod apply;
mod batch;
mod reader;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::ahead::Ahead;
use self::apply::{Applier, Work};
use self::batch::Batch;
use self::reader::Reader;
use crate::data_file::DataFile;
use crate::disk::{Disk, File, OpenMode};
use crate::error::{Error, Result};
use crate::format::{PAGE_SIZE, PageNumber, ROOT_PAGE, TransactionId};
use crate::header_file::{Header, HeaderFiles};
use crate::journal::aligned::{ALIGNMENT, AlignedBuffer};
use crate::journal::files::{DIRECTORY, JournalFiles, name, number_of};
use crate::root::{self, RootState};
use crate::snapshot::page_table::{PAGES_MAX, PageTable};

/// Journals of fewer bytes are read by one thread.
const HELPED_SIZE_MIN: u64 = 8 << 20;
/// More threads would wait for memory.
const THREADS_MAX: usize = 4;

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
    path: Arc<Path>,
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
            tail.file
                .read_at(tail.start, bytes.bytes_mut())
                .map_err(|e| Error::io("read", &*tail.path, e))?;
            tail.file
                .write_durable(tail.start, bytes.bytes())
                .map_err(|e| Error::io("write", &*tail.path, e))?;
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
    let threads = match std::thread::available_parallelism() {
        Ok(cores) if helped && total >= HELPED_SIZE_MIN => cores.get().min(THREADS_MAX),
        _ => 1,
    };
    let applier = Applier { data, table };
    let (reader, pages) = std::thread::scope(|scope| {
        // In here, so that even a panic drops it, which ends the thread that reads ahead.
        let mut reader = Reader::new(header, journal, &files);
        if threads > 1 {
            reader.set_ahead(Some(Ahead::start(scope, &files)));
        }
        let pages = replay(&mut reader, &applier, threads);
        reader.set_ahead(None);
        (reader, pages)
    });
    let mut pages = pages?;
    pages.sort_unstable();
    pages.dedup();
    pages.retain(|&page| !table.is_empty(page));
    applier.validate(&pages, threads)?;
    let root = read_root(header, data, table, reader.last)?;
    if !read_only && reader.records > 0 {
        data.ensure_pages(root.page_count)?;
    }
    let Reader { last, last_hash, records, bytes, tail, .. } = reader;
    Ok(Recovered { last, last_hash, root, pages, records, bytes, tail })
}

/// Applies all batches, each by `threads` threads, of which one first reads the next batch. Returns the pages that got a version at any
/// time, in no order.
fn replay(reader: &mut Reader<'_>, applier: &Applier<'_>, threads: usize) -> Result<Vec<PageNumber>> {
    let mut pages = Vec::new();
    let (mut batch, mut next) = (Batch::default(), Batch::default());
    let mut more = reader.read(&mut batch)?;
    while more {
        let work = Work::new(applier, &batch);
        let read = std::thread::scope(|scope| {
            for _ in 1..threads {
                // Without it everything works, only slower.
                let _ = std::thread::Builder::new()
                    .name("storage-recovery".to_owned())
                    .spawn_scoped(scope, || work.share());
            }
            let read = reader.read(&mut next);
            work.share();
            read
        });
        work.finish(&mut pages)?;
        more = read?;
        std::mem::swap(&mut batch, &mut next);
    }
    Ok(pages)
}

/// The recovered root state.
fn read_root(header: &Header, data: &DataFile, table: &PageTable, last: TransactionId) -> Result<RootState> {
    if last.0 == 0 {
        return Ok(RootState::empty());
    }
    let page = match table.newest(ROOT_PAGE) {
        // SAFETY: recovery alone uses the table, and nothing changes any more.
        Some(version) => unsafe { version.page() },
        None => data.page(ROOT_PAGE)?,
    };
    let (found, expected) = (root::environment(page), header.environment);
    if found != expected {
        let reason = format!(
            "it is of environment {found:016x}, the headers are of {expected:016x}; restore the right one"
        );
        return Err(Error::Foreign { path: data.path().clone(), reason });
    }
    let root = RootState::read(page)?;
    if root.page_count > PAGES_MAX {
        return Err(Error::damaged(ROOT_PAGE, format!("its page count is {}", root.page_count)));
    }
    Ok(root)
}

/// A journal file found: its number, the file, its size in whole blocks, its path.
type Found = (u64, Arc<dyn File>, u64, PathBuf);
