//! An index: its directory, its snapshots, and what goes on in the background.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tantivy::index::{SegmentId, SegmentMeta};
use tantivy::indexer::{IndexWriterOptions, NoMergePolicy};
use tantivy::schema::Schema as TantivySchema;
use tantivy::store::Compressor;
use tantivy::{FutureResult, IndexReader, IndexSettings, IndexWriter, ReloadPolicy};

use crate::cells::{EntryCells, Spare};
use crate::directory::{LazyDirectory, META};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::merges::{self, Pace, Size};
use crate::options::Schema;
use crate::searcher::{Searcher, Snapshot};
use crate::upkeep;
use crate::writer::Writer;

/// The file that tells for which fields an index was built.
const FIELDS: &str = "fields";

/// Changes when entries are written in another way.
const VERSION: u32 = 3;

/// The least memory of a writer, in bytes: a segment of a few thousand entries.
const WRITER_MEMORY_MIN: usize = 16 << 20;

/// The greatest one.
const WRITER_MEMORY_MAX: usize = 2 << 30;

/// A commit is durable after so long.
const SYNC_AFTER: Duration = Duration::from_secs(1);

/// An index to which nothing was written for so long is quiet, and its segments are merged.
const QUIET_AFTER: Duration = Duration::from_secs(1);

/// A merge is given up, when the index is closed, within so long.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// tantivy's own threads for entries are not used; it wants so much memory for them all the same.
const UNUSED_MEMORY: usize = 16 << 20;

/// Merges at once, of one index (a small one beside a large one) and of all that are quiet.
const MERGES_MAX: usize = 2;

/// Merges of all indexes of the process.
static MERGES: AtomicUsize = AtomicUsize::new(0);

/// A writer without work is let go after so long.
const RELEASE_AFTER: Duration = Duration::from_secs(3);

/// An index in a directory. Clones are the same index.
#[derive(Clone)]
pub struct Index {
    pub(crate) core: Arc<Core>,
    _handle: Arc<Handle>,
}

/// Closes the index with its last clone. The thread of upkeep may hold the core a little longer, and whoever opens the directory then must find
/// what was committed.
struct Handle(Arc<Core>);

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
    /// Whether a commit is under way, which makes visible itself what it does.
    is_committing: Arc<AtomicBool>,
    /// Whether a merge failed: it is tried again after the next commit.
    has_failed: AtomicBool,
    /// The version of the directory's list of segments that searchers have.
    seen: AtomicU64,
    pub(crate) next_order: AtomicU64,
    pub(crate) spare: Arc<Spare>,
}

/// tantivy's writer, what it merges, and since when it has had nothing to do.
pub(crate) struct OpenWriter {
    pub(crate) writer: IndexWriter<EntryCells>,
    pub(crate) last_used: Instant,
    merges: Vec<Merge>,
}

/// A merge in the background.
struct Merge {
    segments: Vec<SegmentId>,
    result: FutureResult<Option<SegmentMeta>>,
    _counted: Counted,
}

/// One of [`MERGES`].
struct Counted;

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
        let snapshot =
            Snapshot::new(&layout, reader.searcher(), None).map_err(|error| damaged(error.to_string()))?;
        let is_committing = Arc::<AtomicBool>::default();
        let core = Arc::new_cyclic(|core: &Weak<Core>| {
            let (core, commits) = (Weak::clone(core), Arc::clone(&is_committing));
            directory.tell_of_lists(move || {
                // What a commit does it makes visible itself.
                if !commits.load(Ordering::Acquire) {
                    upkeep::enter(Weak::clone(&core), Duration::ZERO);
                }
            });
            Core {
                path: path.to_owned(),
                layout,
                seen: AtomicU64::new(directory.version()),
                directory: directory.clone(),
                index,
                reader,
                snapshot: RwLock::new(Arc::new(snapshot)),
                reloading: Mutex::default(),
                payload: Mutex::new(payload),
                open_writer: Mutex::default(),
                is_writing: AtomicBool::new(false),
                is_committing: Arc::clone(&is_committing),
                has_failed: AtomicBool::new(false),
                next_order: AtomicU64::new(next_order),
                spare: Arc::default(),
            }
        });
        if !core.is_settled() {
            core.ask_for_upkeep();
        }
        Ok(Index { _handle: Arc::new(Handle(Arc::clone(&core))), core })
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

    /// The writer, with so many bytes for entries in memory (16 MiB to 2 GiB; several segments are made at once where there are processors, and
    /// share them). There is one at a time: `Error::Busy` when it is taken. Drop it as soon as there is nothing to do; taking it again is
    /// cheap, and what it keeps is released when it has not been used for a few seconds.
    pub fn writer(&self, memory: usize) -> Result<Writer> {
        let memory = memory.clamp(WRITER_MEMORY_MIN, WRITER_MEMORY_MAX - (1 << 20));
        Writer::new(Arc::clone(&self.core), memory)
    }

    /// Makes the last commit durable now.
    pub fn sync(&self) -> Result<()> {
        self.core.sync()
    }

    /// Merges what is to be merged of a quiet index and waits for it, releases the writer's threads and memory, and makes the last commit
    /// durable. `Error::Busy` while there is a writer.
    pub fn quiesce(&self) -> Result<()> {
        let core = &self.core;
        if core.is_writing.swap(true, Ordering::AcqRel) {
            return Err(Error::Busy { path: core.path.clone() });
        }
        let open = core.open_writer.lock().take();
        let result = core.settle(open);
        core.is_writing.store(false, Ordering::Release);
        result?;
        core.sync()
    }

    /// Gives up merges, releases the writer, and makes the last commit durable. There is no writer any more after this, but searchers still
    /// work. `Error::Busy` while there is a writer.
    pub fn close(&self) -> Result<()> {
        if self.core.is_writing.swap(true, Ordering::AcqRel) {
            return Err(Error::Busy { path: self.core.path.clone() });
        }
        self.core.close();
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
    pub(crate) fn open_writer(&self) -> Result<OpenWriter> {
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(UNUSED_MEMORY)
            .num_worker_threads(1)
            .num_merge_threads(MERGES_MAX);
        let writer = self.index.writer_with_options(options.build()).map_err(|error| match error {
            tantivy::TantivyError::LockFailure(..) => Error::Busy { path: self.path.clone() },
            other => Error::Library(other),
        })?;
        // Which segments are neighbours it does not know.
        writer.set_merge_policy(Box::new(NoMergePolicy));
        Ok(OpenWriter { writer, merges: Vec::new(), last_used: Instant::now() })
    }

    /// Makes the last commit, and merges since, visible to searchers.
    pub(crate) fn reload(&self) -> Result<()> {
        let _one = self.reloading.lock();
        let version = self.directory.version();
        self.reader.reload()?;
        let before = self.snapshot();
        let after = Snapshot::new(&self.layout, self.reader.searcher(), Some(&before))?;
        *self.snapshot.write() = Arc::new(after);
        self.seen.store(version, Ordering::Release);
        Ok(())
    }

    /// Whether searchers lack what a merge made.
    fn is_behind(&self) -> bool {
        self.seen.load(Ordering::Acquire) != self.directory.version()
    }

    pub(crate) fn sync(&self) -> Result<()> {
        self.directory.sync().map_err(|source| Error::Io { path: self.path.clone(), source })
    }

    /// A commit is under way until this is dropped.
    pub(crate) fn begin_commit(self: &Arc<Core>) -> Committing {
        self.is_committing.store(true, Ordering::Release);
        self.has_failed.store(false, Ordering::Release);
        Committing(Arc::clone(self))
    }

    /// What is to be merged of the segments that searchers have.
    fn to_merge(&self, taken: &HashSet<SegmentId>, pace: Pace) -> Vec<Vec<SegmentId>> {
        let snapshot = self.snapshot();
        let segments: Vec<Size> = snapshot
            .segments
            .iter()
            .map(|segment| Size {
                id: segment.reader.segment_id(),
                entries: segment.reader.num_docs(),
                deleted: segment.reader.num_deleted_docs(),
            })
            .collect();
        merges::choose(&segments, taken, pace)
    }

    /// Starts merges in the background.
    pub(crate) fn merge(&self, open: &mut OpenWriter, pace: Pace) {
        self.forget_merges(open);
        // What a merge has just made is not among the segments that are looked at: the next time, then.
        if open.merges.len() >= MERGES_MAX || self.is_behind() || self.has_failed.load(Ordering::Acquire) {
            return;
        }
        let taken = open.merges.iter().flat_map(|merge| merge.segments.iter().copied()).collect();
        for segments in self.to_merge(&taken, pace).into_iter().take(MERGES_MAX - open.merges.len()) {
            let result = open.writer.merge(&segments);
            open.merges.push(Merge { segments, result, _counted: Counted::new() });
        }
    }

    /// Forgets the merges that are over.
    fn forget_merges(&self, open: &mut OpenWriter) {
        open.merges.retain_mut(|merge| match merge.is_over() {
            None => true,
            Some(Ok(_)) => false,
            Some(Err(error)) => {
                tracing::warn!(path = %self.path.display(), %error, "a merge failed");
                self.has_failed.store(true, Ordering::Release);
                false
            }
        });
    }

    /// Whether nothing is to be merged when it is quiet.
    fn is_settled(&self) -> bool {
        self.has_failed.load(Ordering::Acquire) || self.to_merge(&HashSet::new(), Pace::Quiet).is_empty()
    }

    /// Merges until nothing is to be merged any more.
    fn settle(&self, open: Option<OpenWriter>) -> Result<()> {
        let mut open = open;
        self.has_failed.store(false, Ordering::Release);
        loop {
            for merge in open.iter_mut().flat_map(|open| open.merges.drain(..)) {
                merge.result.wait()?;
            }
            if self.is_behind() {
                self.reload()?;
            }
            if self.is_settled() {
                return Ok(());
            }
            let mut writer = match open {
                Some(open) => open,
                None => self.open_writer()?,
            };
            self.merge(&mut writer, Pace::Quiet);
            open = Some(writer);
        }
    }

    /// Ends merges and lets go of the writer.
    fn close(&self) {
        let open = self.open_writer.lock().take();
        drop(open);
        self.directory.close(CLOSE_PATIENCE);
        self.spare.free();
    }

    /// What is due in the background; when to come again.
    pub(crate) fn keep_up(&self) -> Option<Duration> {
        if self.is_behind()
            && !self.is_committing.load(Ordering::Acquire)
            && let Err(error) = self.reload()
        {
            tracing::error!(%error, "an index could not be read after a merge");
        }
        if self.directory.is_unsynced()
            && let Err(error) = self.sync()
        {
            tracing::error!(%error, "an index could not be made durable; it is tried again");
        }
        // Held throughout: whoever wants to write waits until the writer is opened, or let go.
        let mut place = self.open_writer.lock();
        if self.is_writing.load(Ordering::Acquire) {
            return Some(SYNC_AFTER);
        }
        if place.is_none() {
            if self.is_settled() {
                return self.directory.is_unsynced().then_some(SYNC_AFTER);
            }
            match self.open_writer() {
                Ok(open) => *place = Some(open),
                Err(error) => {
                    tracing::warn!(%error, "an index could not be merged");
                    return None;
                }
            }
        }
        let open = place.as_mut()?;
        let idle = open.last_used.elapsed();
        if idle < QUIET_AFTER {
            return Some(QUIET_AFTER - idle);
        }
        // One index more can wait; where entries come, segments must not become many meanwhile.
        if MERGES.load(Ordering::Acquire) < MERGES_MAX {
            self.merge(open, Pace::Quiet);
        } else {
            self.forget_merges(open);
        }
        if open.merges.is_empty() && idle >= RELEASE_AFTER && self.is_settled() {
            *place = None;
            self.spare.free();
        }
        Some(SYNC_AFTER)
    }

    /// Has the background look after this index.
    pub(crate) fn ask_for_upkeep(self: &Arc<Core>) {
        upkeep::enter(Arc::downgrade(self), SYNC_AFTER);
    }
}

impl Merge {
    fn is_over(&mut self) -> Option<tantivy::Result<Option<SegmentMeta>>> {
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(&mut self.result).poll(&mut context) {
            Poll::Pending => None,
            Poll::Ready(result) => Some(result),
        }
    }
}

impl Counted {
    fn new() -> Counted {
        MERGES.fetch_add(1, Ordering::AcqRel);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        MERGES.fetch_sub(1, Ordering::AcqRel);
    }
}

/// See [`Core::begin_commit`].
pub(crate) struct Committing(Arc<Core>);

impl Drop for Committing {
    fn drop(&mut self) {
        self.0.is_committing.store(false, Ordering::Release);
        // A merge may have ended after the commit was made visible.
        if self.0.is_behind() {
            upkeep::enter(Arc::downgrade(&self.0), Duration::ZERO);
        }
    }
}

impl Core {
    fn close_and_sync(&self) {
        self.close();
        if let Err(error) = self.sync() {
            tracing::error!(path = %self.path.display(), %error, "an index could not be made durable as it was closed");
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // One that is closed has nothing to do any more; a writer that is still there closes it with itself.
        if !self.0.is_writing.swap(true, Ordering::AcqRel) {
            self.0.close_and_sync();
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.close_and_sync();
    }
}
