//! The two header files, `header-0` and `header-1`: up to where the data file is complete, and so where recovery begins.
//!
//! They are written in turn, the older one each time, and synced, so that a torn write leaves the other whole. Each is 4096 bytes:
//!
//! | offset | size | name | meaning |
//! |---|---|---|---|
//! | 0 | 8 | magic | [`MAGIC`] |
//! | 8 | 4 | version | [`FORMAT_VERSION`] |
//! | 12 | 4 | page size | in bytes |
//! | 16 | 8 | environment | a random identity that every journal record repeats |
//! | 24 | 8 | generation | grows by one at each write: the newer header counts |
//! | 32 | 8 | synced | the transaction up to which the data file is complete and synced |
//! | 40 | 8 | synced hash | the hash of that transaction's record: the next one's `previous hash` |
//! | 48 | 8 | first journal | number of the first journal file that may hold a newer record |
//! | 56 | 8 | page count | pages of the environment at `synced`: the data file is at least as long |
//! | 64 | 8 | checksum | xxh3-64 of the bytes before |

use std::path::Path;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::disk::{Disk, File, OpenMode, is_full};
use crate::error::{Error, Result};
use crate::format::{PAGE_SIZE, TransactionId, read_u32, read_u64};
use crate::snapshot::page_table::PAGES_MAX;

/// The names of the two files.
pub(crate) const NAMES: [&str; 2] = ["header-0", "header-1"];
const MAGIC: u64 = u64::from_le_bytes(*b"JACKDAW\0");
/// The first version: everything described in `docs/format/`.
pub(crate) const FORMAT_VERSION: u32 = 1;
/// Bytes of a header file: one block, written at once.
const SIZE: usize = 4096;
/// No generation, transaction or journal has a greater number: a million a second for thirty years, and journals' names keep their width.
const NUMBER_MAX: u64 = 1_000_000_000_000_000;

const VERSION_AT: usize = 8;
const PAGE_SIZE_AT: usize = VERSION_AT + 4;
const ENVIRONMENT_AT: usize = PAGE_SIZE_AT + 4;
const GENERATION_AT: usize = ENVIRONMENT_AT + 8;
const SYNCED_AT: usize = GENERATION_AT + 8;
const SYNCED_HASH_AT: usize = SYNCED_AT + 8;
const FIRST_JOURNAL_AT: usize = SYNCED_HASH_AT + 8;
const PAGE_COUNT_AT: usize = FIRST_JOURNAL_AT + 8;
const CHECKSUM_AT: usize = PAGE_COUNT_AT + 8;

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) environment: u64,
    pub(crate) generation: u64,
    pub(crate) synced: TransactionId,
    pub(crate) synced_hash: u64,
    pub(crate) first_journal: u64,
    pub(crate) page_count: u64,
}

impl Header {
    fn encode(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let mut put = |at: usize, value: u64| bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        put(0, MAGIC);
        put(VERSION_AT, u64::from(FORMAT_VERSION) | (PAGE_SIZE as u64) << 32);
        put(ENVIRONMENT_AT, self.environment);
        put(GENERATION_AT, self.generation);
        put(SYNCED_AT, self.synced.0);
        put(SYNCED_HASH_AT, self.synced_hash);
        put(FIRST_JOURNAL_AT, self.first_journal);
        put(PAGE_COUNT_AT, self.page_count);
        let checksum = xxh3_64(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads one; the error is told only when the other file is no better.
    fn decode(bytes: &[u8; SIZE], path: &Path) -> Result<Header> {
        let damaged = |reason: String| Error::FileDamaged { path: path.to_owned(), reason };
        if bytes.iter().all(|&b| b == 0) {
            return Err(damaged("it holds only zeros".to_owned()));
        }
        if read_u64(bytes, 0) != MAGIC {
            return Err(Error::Foreign {
                path: path.to_owned(),
                reason: "it does not start with the magic number of a Jackdaw header".to_owned(),
            });
        }
        // The version before the checksum: another version may compute another one.
        let found = read_u32(bytes, VERSION_AT);
        if found != FORMAT_VERSION {
            let way_out = if found > FORMAT_VERSION {
                "open it with the newer version that wrote it"
            } else {
                "export it with the version that wrote it and import it here"
            };
            return Err(Error::Version { path: path.to_owned(), found, supported: FORMAT_VERSION, way_out });
        }
        if xxh3_64(&bytes[..CHECKSUM_AT]) != read_u64(bytes, CHECKSUM_AT) {
            return Err(damaged("its checksum does not fit".to_owned()));
        }
        let page_size = read_u32(bytes, PAGE_SIZE_AT);
        if page_size as usize != PAGE_SIZE {
            return Err(damaged(format!("its page size is {page_size}, not {PAGE_SIZE}")));
        }
        let header = Header {
            environment: read_u64(bytes, ENVIRONMENT_AT),
            generation: read_u64(bytes, GENERATION_AT),
            synced: TransactionId(read_u64(bytes, SYNCED_AT)),
            synced_hash: read_u64(bytes, SYNCED_HASH_AT),
            first_journal: read_u64(bytes, FIRST_JOURNAL_AT),
            page_count: read_u64(bytes, PAGE_COUNT_AT),
        };
        // They count up from 1, so that far no one has come; all later sums are safe from overflow.
        let counted = [header.generation, header.synced.0, header.first_journal];
        if counted.into_iter().any(|number| number > NUMBER_MAX) || header.page_count > PAGES_MAX {
            return Err(damaged("it counts further than is possible".to_owned()));
        }
        Ok(header)
    }
}

/// The pair, open.
pub(crate) struct HeaderFiles {
    disk: Arc<dyn Disk>,
    files: [Arc<dyn File>; 2],
}

impl HeaderFiles {
    /// Whether the directory holds at least one header.
    pub(crate) fn exist(disk: &dyn Disk) -> Result<bool> {
        for name in NAMES {
            if disk.exists(name).map_err(|e| Error::io("look for", disk.path().join(name), e))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Opens the pair for writing, making missing ones.
    pub(crate) fn open(disk: &Arc<dyn Disk>, mode: OpenMode) -> Result<HeaderFiles> {
        let open =
            |name: &str| disk.open(name, mode).map_err(|e| Error::io("open", disk.path().join(name), e));
        Ok(HeaderFiles { disk: disk.clone(), files: [open(NAMES[0])?, open(NAMES[1])?] })
    }

    /// The newest sound header of the directory. Reads without changing anything.
    ///
    /// Errors: neither is sound (the more telling of the two reasons).
    pub(crate) fn read(disk: &dyn Disk) -> Result<Header> {
        let read = |name: &str| -> Result<Header> {
            let path = disk.path().join(name);
            let mut bytes = [0; SIZE];
            let file = disk.open(name, OpenMode::Read).map_err(|e| Error::io("open", &path, e))?;
            let length = file.len().map_err(|e| Error::io("read", &path, e))?;
            if length < SIZE as u64 {
                let reason = format!("it has {length} bytes instead of {SIZE}");
                return Err(Error::FileDamaged { path, reason });
            }
            file.read_at(0, &mut bytes).map_err(|e| Error::io("read", &path, e))?;
            Header::decode(&bytes, &path)
        };
        match (read(NAMES[0]), read(NAMES[1])) {
            (Ok(a), Ok(b)) if a.environment != b.environment => Err(Error::Foreign {
                path: disk.path().join(NAMES[1]),
                reason: "the two header files belong to different environments; restore the right one from a backup"
                    .to_owned(),
            }),
            (Ok(a), Ok(b)) => Ok(if a.generation >= b.generation { a } else { b }),
            // What could not be read may be the newer one.
            (Err(e), _) | (_, Err(e)) if is_unreadable(&e) => Err(e),
            // Another version or a foreign file beside a sound header is no torn write: refuse it.
            (Ok(_), Err(e @ (Error::Version { .. } | Error::Foreign { .. }))) => Err(e),
            (Err(e @ (Error::Version { .. } | Error::Foreign { .. })), _) => Err(e),
            (Ok(header), Err(_)) | (Err(_), Ok(header)) => Ok(header),
            (Err(_), Err(e @ (Error::Version { .. } | Error::Foreign { .. }))) => Err(e),
            (Err(e), Err(_)) => Err(e),
        }
    }

    /// Writes the header into the file whose turn it is and syncs it.
    pub(crate) fn write(&self, header: &Header) -> Result<()> {
        let turn = (header.generation % 2) as usize;
        let path = || self.disk.path().join(NAMES[turn]);
        self.files[turn].write_at(0, &header.encode()).map_err(|e| match is_full(&e) {
            true => Error::DiskFull { what: path().display().to_string(), bytes: SIZE as u64, source: e },
            false => Error::io("write", path(), e),
        })?;
        self.files[turn].sync().map_err(|e| Error::io("sync", path(), e))
    }
}

/// Whether the file is there but could not be read.
fn is_unreadable(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() != std::io::ErrorKind::NotFound)
}
