//! Hot backup: a snapshot's pages, copied while writers go on, into a directory or a stream.
//!
//! A directory backup is an environment of its own and can be opened as it is. A stream is:
//!
//! | part | bytes | meaning |
//! |---|---|---|
//! | head | 8 magic, 4 version, 4 page size, 8 transaction, 8 page count | [`MAGIC`], [`VERSION`] |
//! | extents | 8 page number, 8 size, the bytes | a page or a whole overflow run with its checksum in place, ascending |
//! | tail | 8 × `0xFF`, 8 extents, 8 hash | number of extents; xxh3-64 of everything before the hash |

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use crate::Environment;
use crate::disk::{Disk, OpenMode, RealDisk, is_full};
use crate::environment::random_identity;
use crate::error::{Error, Result};
use crate::format::{
    PAGE_HEADER_SIZE, PAGE_SIZE, PageNumber, ROOT_PAGE, TransactionId, VALUE_SIZE_MAX, read_u32, read_u64,
};
use crate::free_space;
use crate::header_file::{Header, HeaderFiles};
use crate::page::header::{self, PageKind};
use crate::pages::Pages;
use crate::root;
use crate::transaction::read::ReadTransaction;
use crate::transaction::write::run_length;

/// Starts a stream.
const MAGIC: u64 = u64::from_le_bytes(*b"JDWBACK\0");
/// The stream's version.
const VERSION: u32 = 1;
const HEAD_SIZE: usize = 32;
const END: u64 = u64::MAX;
/// Bytes of a long run that are restored at a time.
const PIECE_SIZE: usize = 1 << 20;

impl Environment {
    /// Copies the newest durable state into a directory, which is made and must be empty: an environment that can be opened.
    /// Returns the transaction it holds.
    ///
    /// Errors: [`Error::Invalid`] when the directory is not empty; [`Error::PageDamaged`]: a damaged page is not copied on;
    /// I/O. What was written until then stays, but holds no header and so is no environment.
    pub fn backup(&self, directory: impl AsRef<Path>) -> Result<TransactionId> {
        let snapshot = self.read()?;
        snapshot.backup(directory)
    }

    /// Writes the newest durable state to a stream, for [`restore`]. Returns the transaction it holds.
    pub fn backup_to(&self, out: &mut dyn Write) -> Result<TransactionId> {
        self.read()?.backup_to(out)
    }
}

impl ReadTransaction {
    /// As [`Environment::backup`], of this snapshot.
    pub fn backup(&self, directory: impl AsRef<Path>) -> Result<TransactionId> {
        let target = Target::create(directory.as_ref())?;
        let root = self.root()?;
        self.each_extent(root.page_count, |number, head, rest| {
            target.write(number, 0, head)?;
            target.write(number, head.len() as u64, rest)
        })?;
        target.finish(self.id(), if self.id().0 == 0 { 0 } else { root.page_count })?;
        Ok(self.id())
    }

    /// As [`Environment::backup_to`], of this snapshot.
    pub fn backup_to(&self, out: &mut dyn Write) -> Result<TransactionId> {
        let failed = |e| Error::io("write", "the backup stream", e);
        let root = self.root()?;
        let mut hash = Xxh3::new();
        let mut head = [0; HEAD_SIZE];
        head[..8].copy_from_slice(&MAGIC.to_le_bytes());
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[12..16].copy_from_slice(&(PAGE_SIZE as u32).to_le_bytes());
        head[16..24].copy_from_slice(&self.id().0.to_le_bytes());
        head[24..].copy_from_slice(&(if self.id().0 == 0 { 0 } else { root.page_count }).to_le_bytes());
        let mut put = |bytes: &[u8]| {
            hash.update(bytes);
            out.write_all(bytes).map_err(failed)
        };
        put(&head)?;
        let mut extents = 0_u64;
        self.each_extent(root.page_count, |number, head, rest| {
            extents += 1;
            put(&number.0.to_le_bytes())?;
            put(&((head.len() + rest.len()) as u64).to_le_bytes())?;
            put(head)?;
            put(rest)
        })?;
        put(&END.to_le_bytes())?;
        put(&extents.to_le_bytes())?;
        let digest = hash.digest();
        out.write_all(&digest.to_le_bytes()).and_then(|()| out.flush()).map_err(failed)?;
        Ok(self.id())
    }

    /// Calls `f` with every page and whole run in use, ascending, its checksum in place: a page as one piece, a run as its header and
    /// its value.
    fn each_extent(
        &self,
        page_count: u64,
        mut f: impl FnMut(PageNumber, &[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        if self.id().0 == 0 {
            return Ok(());
        }
        let mut free = Vec::new();
        free_space::each_free(self, page_count, |range| free.push(range))?;
        let mut free = free.into_iter().peekable();
        let mut at = 0;
        while at < page_count {
            if let Some(range) = free.next_if(|r| r.start <= at) {
                at = at.max(range.end);
                continue;
            }
            let number = PageNumber(at);
            let mut page = *self.page(number)?;
            if header::kind(&page) == Some(PageKind::Overflow) {
                // A value may be as long as memory: it is passed on from where it is.
                let value = self.run(number)?;
                let head = &mut page[..PAGE_HEADER_SIZE];
                let mut hash = header::begin_checksum(head);
                hash.update(value);
                header::store_checksum(head, hash.digest());
                f(number, head, value)?;
                at += header::run_pages(value.len() as u64);
            } else {
                header::seal(&mut page);
                f(number, &page, &[])?;
                at += 1;
            }
        }
        Ok(())
    }
}

/// Makes an environment in an empty directory from a stream that [`Environment::backup_to`] wrote. Returns the transaction it holds.
///
/// Errors: [`Error::FileDamaged`] when the stream is cut short or altered anywhere; the directory holds no environment then.
pub fn restore(stream: &mut dyn Read, directory: impl AsRef<Path>) -> Result<TransactionId> {
    let mut stream = HashedRead { stream, hash: Xxh3::new() };
    let mut head = [0; HEAD_SIZE];
    stream.fill(&mut head)?;
    if read_u64(&head, 0) != MAGIC {
        return Err(Error::Foreign {
            path: STREAM.into(),
            reason: "it does not start as a backup does".to_owned(),
        });
    }
    let found = read_u32(&head, 8);
    if found != VERSION {
        let way_out = "restore it with the version that wrote it";
        return Err(Error::Version { path: STREAM.into(), found, supported: VERSION, way_out });
    }
    if read_u32(&head, 12) as usize != PAGE_SIZE {
        return Err(damaged(format!("its page size is {}", read_u32(&head, 12))));
    }
    let (id, page_count) = (TransactionId(read_u64(&head, 16)), read_u64(&head, 24));
    let target = Target::create(directory.as_ref())?;
    let (mut extents, mut next) = (0_u64, 0_u64);
    let mut buffer = vec![0; PIECE_SIZE];
    loop {
        let number = stream.number()?;
        if number == END {
            break;
        }
        let size = stream.number()?;
        let pages = size.div_ceil(PAGE_SIZE as u64);
        if number < next || size < PAGE_HEADER_SIZE as u64 || size > VALUE_SIZE_MAX + PAGE_HEADER_SIZE as u64
        {
            return Err(damaged(format!(
                "extent {extents} at page {number} with {size} bytes is out of order or size"
            )));
        }
        next = number.saturating_add(pages);
        if next > page_count {
            return Err(damaged(format!("page {number} lies beyond the last of {page_count}")));
        }
        let number = PageNumber(number);
        let size = size as usize;
        let first = &mut buffer[..size.min(PAGE_SIZE)];
        stream.fill(first)?;
        let is_run = header::kind(first) == Some(PageKind::Overflow);
        let expected_size =
            if is_run { run_length(first).saturating_add(PAGE_HEADER_SIZE as u64) } else { PAGE_SIZE as u64 };
        if expected_size != size as u64 || header::number(first) != number {
            return Err(damaged(format!("page {number} is not what its extent of {size} bytes says")));
        }
        let (stored, mut hash) = (header::stored_checksum(first), header::begin_checksum(first));
        target.write(number, 0, first)?;
        // In pieces: a long run need not fit into memory, and a wrong size meets the end of the stream.
        let mut at = first.len();
        while at < size {
            let piece = &mut buffer[..(size - at).min(PIECE_SIZE)];
            stream.fill(piece)?;
            hash.update(piece);
            target.write(number, at as u64, piece)?;
            at += piece.len();
        }
        if hash.digest() != stored {
            return Err(damaged(format!("page {number} fails its checksum")));
        }
        extents += 1;
    }
    let counted = stream.number()?;
    let digest = stream.hash.digest();
    let mut stored = [0; 8];
    stream.stream.read_exact(&mut stored).map_err(cut_short)?;
    if counted != extents || u64::from_le_bytes(stored) != digest {
        return Err(damaged("its end does not fit what came before".to_owned()));
    }
    target.finish(id, page_count)?;
    Ok(id)
}

const STREAM: &str = "the backup stream";

fn damaged(reason: String) -> Error {
    Error::FileDamaged { path: STREAM.into(), reason }
}

fn cut_short(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => damaged("it ends too early".to_owned()),
        _ => Error::io("read", STREAM, error),
    }
}

struct HashedRead<'a> {
    stream: &'a mut dyn Read,
    hash: Xxh3,
}

impl HashedRead<'_> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.stream.read_exact(bytes).map_err(cut_short)?;
        self.hash.update(bytes);
        Ok(())
    }

    fn number(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// The directory being filled.
struct Target {
    disk: Arc<dyn Disk>,
    data: Arc<dyn crate::disk::File>,
    /// An identity of its own: a journal of the original must never be taken for this one's.
    environment: u64,
    _lock: Box<dyn Send + Sync>,
}

impl Target {
    fn create(directory: &Path) -> Result<Target> {
        let disk = RealDisk::open(directory).map_err(|e| Error::io("open", directory, e))?;
        disk.create_directory("").map_err(|e| Error::io("create", directory, e))?;
        let lock = match disk.lock().map_err(|e| Error::io("lock", directory, e))? {
            Ok(lock) => lock,
            Err(pid) => return Err(Error::Locked { path: directory.to_owned(), pid }),
        };
        if !disk.is_empty().map_err(|e| Error::io("list", directory, e))? {
            return Err(Error::Invalid(format!("{} is not empty", directory.display())));
        }
        disk.create_directory(crate::journal::files::DIRECTORY)
            .map_err(|e| Error::io("create", directory, e))?;
        let data = disk
            .open(crate::data_file::NAME, OpenMode::Create)
            .map_err(|e| Error::io("create", directory.join(crate::data_file::NAME), e))?;
        Ok(Target { disk: Arc::new(disk), data, environment: random_identity(), _lock: lock })
    }

    /// Writes bytes that are `at` bytes behind the start of a page.
    fn write(&self, number: PageNumber, at: u64, bytes: &[u8]) -> Result<()> {
        if number == ROOT_PAGE && bytes.len() == PAGE_SIZE {
            let bytes = root::copy_for(bytes, self.environment);
            return self.data.write_at(0, &bytes).map_err(|e| self.failed("write", e));
        }
        self.data.write_at(number.offset() + at, bytes).map_err(|e| self.failed("write", e))
    }

    fn failed(&self, operation: &'static str, source: std::io::Error) -> Error {
        let path = self.disk.path().join(crate::data_file::NAME);
        if is_full(&source) {
            return Error::DiskFull { what: path.display().to_string(), bytes: PAGE_SIZE as u64, source };
        }
        Error::io(operation, path, source)
    }

    /// Makes the directory an environment.
    fn finish(self, id: TransactionId, page_count: u64) -> Result<()> {
        self.data.allocate(page_count * PAGE_SIZE as u64).map_err(|e| self.failed("extend", e))?;
        self.data.sync().map_err(|e| self.failed("sync", e))?;
        let headers = HeaderFiles::open(&self.disk, OpenMode::Create)?;
        let environment = self.environment;
        let header =
            Header { environment, generation: 1, synced: id, synced_hash: 0, first_journal: 1, page_count };
        headers.write(&header)?;
        headers.write(&Header { generation: 2, ..header })?;
        self.disk.sync_directory("").map_err(|e| self.failed("sync", e))
    }
}
