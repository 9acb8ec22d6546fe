//! An index: its directory, its snapshots, and what goes on in the background.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tantivy::indexer::IndexWriterOptions;
use tantivy::schema::Schema as TantivySchema;
use tantivy::store::Compressor;
use tantivy::{IndexReader, IndexSettings, IndexWriter, ReloadPolicy};

use crate::cells::Cells;
use crate::directory::{LazyDirectory, META};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::merges::{Ages, Neighbours};
use crate::options::Schema;
use crate::searcher::{Searcher, Snapshot};
use crate::upkeep;
use crate::writer::{Gauge, Writer};

/// The file that tells for which fields an index was built.
const FIELDS: &str = "fields";

/// Changes when entries are written in another way.
const VERSION: u32 = 3;

/// The least memory of a writer, in bytes: what tantivy needs for one thread.
const WRITER_MEMORY_MIN: usize = 16 << 20;

/// The greatest one.
const WRITER_MEMORY_MAX: usize = 2 << 30;

/// A commit is durable after so long.
pub(crate) const SYNC_AFTER: Duration = Duration::from_secs(1);

/// A writer without work is let go after so long.
pub(crate) const RELEASE_AFTER: Duration = Duration::from_secs(3);

/// An index in a directory. Clones are the same index.
#[derive(Clone)]
pub struct Index {
    core: Arc<Core>,
}

/// What an index, its writer and its searchers share.
pub(crate) struct Core {
    pub(crate) path: PathBuf,
    pub(crate) layout: Arc<Layout>,
    pub(crate) directory: LazyDirectory,
    pub(crate) index: tantivy::Index,
    reader: IndexReader,
    snapshot: RwLock<Arc<Snapshot>>,
    /// One reload at a time.
    reloading: Mutex<()>,
    payload: Mutex<Vec<u8>>,
    /// tantivy's writer while there is work, or was a short while ago.
    pub(crate) open_writer: Mutex<Option<OpenWriter>>,
    pub(crate) is_writing: AtomicBool,
    /// Held while tantivy's writer is let go: until then no other can be opened.
    pub(crate) releasing: Mutex<()>,
    pub(crate) next_order: AtomicU64,
    pub(crate) gauge: Arc<Gauge>,
    ages: Ages,
    pub(crate) is_kept_up: AtomicBool,
}

/// tantivy's writer and since when it has had nothing to do.
pub(crate) struct OpenWriter {
    pub(crate) writer: IndexWriter<Cells>,
    pub(crate) memory: usize,
    pub(crate) last_used: Instant,
}

impl Index {
    /// Opens the index in a directory, or makes one. `Error::Damaged` and `Error::OtherSchema` mean that the directory must
    /// be deleted and the index built anew.
    ///
    /// After a crash the index and its payload are those of one and the same commit: the last one that was synced, which
    /// happens within a second or so of each commit, and when the index is closed.
    pub fn open(path: &Path, schema: Schema) -> Result<Index> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let damaged = |reason: String| Error::Damaged { path: path.to_owned(), reason };
        let fields_text = format!("jackdaw search index {VERSION}\n{schema:#?}\n");
        let layout = Arc::new(Layout::new(schema)?);
        fs::create_dir_all(path).map_err(io)?;
        let fields_path = path.join(FIELDS);
        let is_new = !path.join(META).try_exists().map_err(io)?;
        if is_new {
            if fs::read_dir(path).map_err(io)?.flatten().any(|file| !is_leftover(&file.path())) {
                return Err(damaged("it holds other files, but no list of segments".to_owned()));
            }
            fs::write(&fields_path, &fields_text).map_err(io)?;
        } else {
            let found = fs::read_to_string(&fields_path)
                .map_err(|error| damaged(format!("the file '{FIELDS}' cannot be read: {error}")))?;
            if found != fields_text {
                return Err(Error::OtherSchema { path: path.to_owned() });
            }
        }
        let directory = LazyDirectory::open(path).map_err(io)?;
        let opened = catch_unwind(AssertUnwindSafe(|| {
            if is_new { create(&layout, &directory) } else { open_existing(&layout, &directory) }
        }));
        let (index, reader) = match opened {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => return Err(damaged(error.to_string())),
            Err(_) => return Err(damaged("its files cannot be understood".to_owned())),
        };
        let meta = index.load_metas().map_err(|error| damaged(error.to_string()))?;
        let (next_order, payload) = match &meta.payload {
            Some(text) => read_payload(text).ok_or_else(|| damaged("its payload is not one".to_owned()))?,
            None => (0, Vec::new()),
        };
        let ages = Ages::default();
        let snapshot = Snapshot::new(&layout, reader.searcher(), None, &ages)
            .map_err(|error| damaged(error.to_string()))?;
        Ok(Index {
            core: Arc::new(Core {
                path: path.to_owned(),
                layout,
                directory,
                index,
                reader,
                snapshot: RwLock::new(Arc::new(snapshot)),
                reloading: Mutex::default(),
                payload: Mutex::new(payload),
                open_writer: Mutex::default(),
                is_writing: AtomicBool::new(false),
                releasing: Mutex::default(),
                next_order: AtomicU64::new(next_order),
                gauge: Arc::default(),
                ages,
                is_kept_up: AtomicBool::new(false),
            }),
        })
    }

    /// The payload of the last commit; empty before the first.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        self.core.payload.lock().clone()
    }

    /// The last commit, for queries.
    #[must_use]
    pub fn searcher(&self) -> Searcher {
        Searcher::new(self.core.snapshot())
    }

    /// The writer, with so many bytes for entries in memory (16 MiB to 2 GiB; a segment is written when they are used up). There
    /// is one at a time: `Error::Busy` when it is taken. Drop it as soon as there is nothing to do; taking it again is cheap, and
    /// its threads and memory are released when it has not been used for a few seconds.
    pub fn writer(&self, memory: usize) -> Result<Writer> {
        let memory = memory.clamp(WRITER_MEMORY_MIN, WRITER_MEMORY_MAX - (1 << 20));
        Writer::new(Arc::clone(&self.core), memory)
    }

    /// Makes the last commit durable now.
    pub fn sync(&self) -> Result<()> {
        self.core.sync()
    }

    /// Waits for merges, releases the writer's threads and memory, and makes the last commit durable. `Error::Busy` while there
    /// is a writer.
    pub fn quiesce(&self) -> Result<()> {
        if self.core.is_writing.swap(true, Ordering::AcqRel) {
            return Err(Error::Busy { path: self.core.path.clone() });
        }
        let releasing = self.core.releasing.lock();
        let open = self.core.open_writer.lock().take();
        let result = match open {
            Some(open) => open.writer.wait_merging_threads().map_err(Error::from),
            None => Ok(()),
        };
        drop(releasing);
        self.core.is_writing.store(false, Ordering::Release);
        result?;
        self.core.reload()?;
        self.core.sync()
    }

    /// Bytes of the index on disk.
    pub fn size_bytes(&self) -> Result<u64> {
        let io = |source| Error::Io { path: self.core.path.clone(), source };
        let mut size = 0;
        for file in fs::read_dir(&self.core.path).map_err(io)? {
            // A file may go away under a merge.
            size += file.map_err(io)?.metadata().map_or(0, |metadata| metadata.len());
        }
        Ok(size)
    }
}

/// Whether a file may stand in a directory in which no index was finished.
fn is_leftover(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name == FIELDS || name.starts_with('.')
}

type Opened = (tantivy::Index, IndexReader);

fn create(layout: &Layout, directory: &LazyDirectory) -> tantivy::Result<Opened> {
    let stores = layout.schema.fields.values().any(|field| field.store) || layout.schema.all_fields.store;
    let settings = IndexSettings {
        // Keys alone are read one at a time: small blocks as they are.
        docstore_compression: if stores { Compressor::Lz4 } else { Compressor::None },
        docstore_blocksize: if stores { 16 << 10 } else { 2 << 10 },
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    };
    let index = tantivy::Index::create(directory.clone(), layout.tantivy.clone(), settings)?;
    directory.sync()?;
    finish(layout, index)
}

fn open_existing(layout: &Layout, directory: &LazyDirectory) -> tantivy::Result<Opened> {
    let index = tantivy::Index::open(directory.clone())?;
    if TantivySchema::clone(&layout.tantivy) != index.schema() {
        return Err(tantivy::TantivyError::SchemaError(
            "its fields are others than those it was built for".into(),
        ));
    }
    let named: BTreeSet<PathBuf> = index.load_metas()?.list_segment_files().into_iter().collect();
    directory.remove_strays(&named)?;
    // Readers open some files late, or take a missing one for an empty one.
    for name in &named {
        let extension = name.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("store" | "term" | "idx" | "pos" | "fieldnorm" | "fast")) {
            tantivy::Directory::open_read(index.directory(), name)?;
        }
    }
    finish(layout, index)
}

fn finish(layout: &Layout, mut index: tantivy::Index) -> tantivy::Result<Opened> {
    index.set_tokenizers(layout.tokenizers());
    let reader = index
        .reader_builder()
        .reload_policy(ReloadPolicy::Manual)
        .doc_store_cache_num_blocks(16)
        .try_into()?;
    Ok((index, reader))
}

/// The payload as text: the order of the next entry and the caller's bytes.
pub(crate) fn write_payload(next_order: u64, payload: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = format!("{next_order:x}:");
    for byte in payload {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn read_payload(text: &str) -> Option<(u64, Vec<u8>)> {
    let (order, digits) = text.split_once(':')?;
    let order = u64::from_str_radix(order, 16).ok()?;
    let digits = digits.as_bytes();
    if digits.len() % 2 != 0 {
        return None;
    }
    let bytes = digits
        .chunks_exact(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect::<Option<Vec<u8>>>()?;
    Some((order, bytes))
}

impl Core {
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read())
    }

    pub(crate) fn set_payload(&self, payload: &[u8]) {
        *self.payload.lock() = payload.to_vec();
    }

    /// tantivy's writer, opened when it is not.
    pub(crate) fn open_writer(&self, memory: usize) -> Result<OpenWriter> {
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(memory)
            .num_worker_threads(1)
            .num_merge_threads(1);
        let writer = self.index.writer_with_options(options.build()).map_err(|error| match error {
            tantivy::TantivyError::LockFailure(..) => Error::Busy { path: self.path.clone() },
            other => Error::Library(other),
        })?;
        writer.set_merge_policy(Box::new(Neighbours::new(Arc::clone(&self.ages))));
        Ok(OpenWriter { writer, memory, last_used: Instant::now() })
    }

    /// Makes the last commit, and merges since, visible to searchers.
    pub(crate) fn reload(&self) -> Result<()> {
        let _one = self.reloading.lock();
        self.reader.reload()?;
        let before = self.snapshot();
        let after = Snapshot::new(&self.layout, self.reader.searcher(), Some(&before), &self.ages)?;
        *self.snapshot.write() = Arc::new(after);
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<()> {
        self.directory.sync().map_err(|source| Error::Io { path: self.path.clone(), source })
    }

    /// What is due in the background; when to come again.
    pub(crate) fn keep_up(&self) -> Option<Duration> {
        if self.directory.is_unsynced()
            && let Err(error) = self.sync()
        {
            tracing::error!(%error, "an index could not be made durable; it is tried again");
        }
        // A merge may take long, and the next writer must not wait for it.
        if self.directory.is_written_to() {
            return Some(SYNC_AFTER);
        }
        let releasing = self.releasing.lock();
        let released = {
            let mut open = self.open_writer.lock();
            match open.take_if(|open| open.last_used.elapsed() >= RELEASE_AFTER) {
                Some(open) => open,
                // Taken by a writer, or used a short while ago.
                None if open.is_some() || self.is_writing.load(Ordering::Acquire) => return Some(SYNC_AFTER),
                None => return None,
            }
        };
        if let Err(error) = released.writer.wait_merging_threads() {
            tracing::warn!(%error, "a merge failed");
        }
        drop(releasing);
        self.gauge.spare.free();
        if let Err(error) = self.reload() {
            tracing::error!(%error, "an index could not be read after a merge");
        }
        Some(SYNC_AFTER)
    }

    /// Has the background look after this index.
    pub(crate) fn ask_for_upkeep(self: &Arc<Core>) {
        if !self.is_kept_up.swap(true, Ordering::AcqRel) {
            upkeep::enter(Arc::downgrade(self));
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if let Some(open) = self.open_writer.get_mut().take() {
            drop(open);
        }
        if let Err(error) = self.directory.sync() {
            tracing::error!(path = %self.path.display(), %error, "an index could not be made durable as it was closed");
        }
    }
}
