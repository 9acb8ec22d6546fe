//! The environment: one directory, open. What its parts share, and the life of the whole.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::data_file::DataFile;
use crate::disk::{Disk, OpenMode, RealDisk, is_full};
use crate::error::{Error, Result};
use crate::flush::Flusher;
use crate::format::TransactionId;
use crate::header_file::{Header, HeaderFiles};
use crate::journal::files::JournalFiles;
use crate::merger::Merger;
use crate::options::Options;
use crate::recovery;
use crate::snapshot::page_table::PageTable;
use crate::snapshot::readers::Readers;
use crate::transaction::commit::JournalStage;
use crate::transaction::read::ReadTransaction;
use crate::transaction::table_cache::TableCache;
use crate::transaction::write::{WriteTransaction, Writer};

/// A storage environment: open one per directory and share it by cloning, which is cheap.
///
/// ```
/// # fn main() -> jackdaw_storage::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// use jackdaw_storage::{Environment, Options};
///
/// let env = Environment::open(directory.path(), Options::default())?;
/// let mut tx = env.write()?;
/// tx.create_tree(b"users")?.put(b"users/1", b"Ada")?;
/// tx.commit()?; // durable when it returns
///
/// let snapshot = env.read()?;
/// let users = snapshot.tree(b"users")?;
/// assert_eq!(users.get(b"users/1")?, Some(&b"Ada"[..]));
/// # Ok(())
/// # }
/// ```
///
/// When the last clone and the last transaction are dropped, everything is flushed and the directory unlocked;
/// [`Environment::close`] does the same and tells how it went.
#[derive(Clone)]
pub struct Environment {
    pub(crate) inner: Arc<Inner>,
    /// Counts the clones: the background threads hold `inner` too, and must go with the last handle.
    _handle: Arc<Handle>,
}

/// Stops the background when the last handle goes.
struct Handle(Arc<Inner>);

impl Drop for Handle {
    fn drop(&mut self) {
        // A transaction may outlive the handles: what is still to do then happens when it is dropped (`Inner::drop`).
        self.0.stop_background();
    }
}

/// What transactions, flusher and merger share.
pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) environment: u64,
    pub(crate) data: DataFile,
    pub(crate) table: PageTable,
    pub(crate) readers: Readers,
    /// The newest durable transaction: what new snapshots see.
    pub(crate) visible: crate::snapshot::sync::AtomicU64,
    /// The write lock with the writer's state.
    pub(crate) writer: Arc<Mutex<Writer>>,
    pub(crate) journal: JournalFiles,
    pub(crate) stage: JournalStage,
    /// Held while flushing: the header as it was last written.
    pub(crate) flush: Mutex<Header>,
    pub(crate) flusher: Flusher,
    pub(crate) merger: Merger,
    pub(crate) counters: Counters,
    pub(crate) tables: TableCache,
    /// The first failure of a write or sync: from then on the environment is read-only.
    failure: OnceLock<String>,
    closed: AtomicBool,
    /// `None` when read-only.
    pub(crate) headers: Option<HeaderFiles>,
    /// Tells those who wait for scratch memory that some became free.
    pub(crate) memory_freed: (Mutex<()>, Condvar),
    /// Dropped last, which unlocks the directory.
    _lock: Box<dyn Send + Sync>,
}

/// Numbers for [`crate::Stats`].
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) journal_bytes: AtomicU64,
    pub(crate) journal_bytes_uncompressed: AtomicU64,
    pub(crate) journal_bytes_since_flush: AtomicU64,
    pub(crate) journal_writes: AtomicU64,
    pub(crate) direct_bytes: AtomicU64,
    pub(crate) pages_flushed: AtomicU64,
    pub(crate) bytes_flushed: AtomicU64,
    pub(crate) flushes: AtomicU64,
    pub(crate) throttled_us: AtomicU64,
    pub(crate) recovered_records: AtomicU64,
    pub(crate) recovered_bytes: AtomicU64,
    pub(crate) recovery_us: AtomicU64,
}

impl Environment {
    /// Opens the environment in a directory, making it when there is none and [`Options::create`] is set. Recovers what the journal
    /// holds beyond the data file.
    ///
    /// Errors: [`Error::Locked`], [`Error::NotFound`], [`Error::Version`], [`Error::Foreign`], [`Error::FileDamaged`],
    /// [`Error::PageDamaged`], [`Error::DiskFull`], [`Error::Io`].
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Environment> {
        let path = path.as_ref();
        let makes = options.create && !options.read_only;
        if !makes && !path.is_dir() {
            return Err(Error::NotFound { path: path.to_owned() });
        }
        let disk = RealDisk::open(path).map_err(|e| Error::io("open", path, e))?;
        Environment::open_on(Arc::new(disk), options)
    }

    /// As [`Environment::open`], on any [`Disk`].
    pub fn open_on(disk: Arc<dyn Disk>, options: Options) -> Result<Environment> {
        let start = Instant::now();
        let path = disk.path();
        let exists = HeaderFiles::exist(&*disk)?;
        if !exists && (options.read_only || !options.create) {
            return Err(Error::NotFound { path });
        }
        if !exists {
            disk.create_directory("").map_err(|e| Error::io("create", &path, e))?;
        }
        let lock = match disk.lock().map_err(|e| Error::io("lock", &path, e))? {
            Ok(lock) => lock,
            Err(pid) => return Err(Error::Locked { path, pid }),
        };
        let (mut header, headers) = if HeaderFiles::exist(&*disk)? && !is_unfinished(&disk)? {
            let header = HeaderFiles::read(&*disk)?;
            (header, if options.read_only { None } else { Some(HeaderFiles::open(&disk, OpenMode::Create)?) })
        } else {
            let (header, headers) = create(&disk)?;
            (header, Some(headers))
        };
        let mode = if options.read_only { OpenMode::Read } else { OpenMode::Write };
        let data = DataFile::open(&disk, mode, options.map_reserve)?;
        let journal = JournalFiles::new(
            disk.clone(),
            header.first_journal,
            options.journal_file_size_min,
            options.journal_file_size_max,
            options.journal_zeroed_max,
        );
        let (table, readers) = (PageTable::new(), Readers::new());
        let recovered = recovery::recover(
            &*disk,
            &header,
            &data,
            &table,
            &journal,
            options.read_only,
            options.background,
        )?;
        if let Some(headers) = &headers {
            recovered.settle(&*disk, headers, &mut header)?;
        }
        let counters = Counters::default();
        counters.recovered_records.store(recovered.records, Ordering::Relaxed);
        counters.recovered_bytes.store(recovered.bytes, Ordering::Relaxed);
        counters.journal_bytes_since_flush.store(recovered.bytes, Ordering::Relaxed);
        counters.recovery_us.store(start.elapsed().as_micros() as u64, Ordering::Relaxed);
        let inner = Inner {
            environment: header.environment,
            data,
            table,
            readers,
            visible: crate::snapshot::sync::AtomicU64::new(recovered.last.0),
            writer: Arc::new(Mutex::new(Writer::new(recovered.last, recovered.last_hash, recovered.root))),
            journal,
            stage: JournalStage::new(),
            flush: Mutex::new(header),
            flusher: Flusher::new(&header, &recovered),
            merger: Merger::default(),
            counters,
            tables: TableCache::default(),
            failure: OnceLock::new(),
            closed: AtomicBool::new(false),
            headers,
            memory_freed: Default::default(),
            _lock: lock,
            disk,
            options,
        };
        let inner = Arc::new(inner);
        if recovered.records > 0 {
            tracing::info!(
                path = %path.display(), records = recovered.records, bytes = recovered.bytes, last = recovered.last.0,
                "recovered from the journal"
            );
        }
        let env = Environment { _handle: Arc::new(Handle(inner.clone())), inner };
        if env.inner.options.background && !env.inner.options.read_only {
            crate::flush::start_background(&env.inner)?;
        }
        Ok(env)
    }

    /// Begins a read transaction: a snapshot of the newest durable state. Never waits; takes no lock.
    pub fn read(&self) -> Result<ReadTransaction> {
        if self.inner.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        ReadTransaction::begin(self.inner.clone())
    }

    /// Begins the write transaction; waits while another one is open. Slowed down while flushing cannot keep up.
    ///
    /// Errors: [`Error::ReadOnly`], [`Error::Closed`], [`Error::Failed`].
    pub fn write(&self) -> Result<WriteTransaction> {
        self.inner.check_writable()?;
        crate::flush::throttle(&self.inner);
        let guard = self.inner.writer.lock_arc();
        self.inner.check_writable()?;
        WriteTransaction::begin(self.inner.clone(), guard)
    }

    /// As [`Environment::write`], but returns `None` at once when another write transaction is open.
    pub fn try_write(&self) -> Result<Option<WriteTransaction>> {
        self.inner.check_writable()?;
        match self.inner.writer.try_lock_arc() {
            Some(guard) => WriteTransaction::begin(self.inner.clone(), guard).map(Some),
            None => Ok(None),
        }
    }

    /// Runs `job` in a write transaction together with the jobs that other threads submit meanwhile, and returns what it returned
    /// once that transaction is durable. Each job runs once, in a savepoint of its own: an error that it returns undoes its
    /// changes and no others; a panic does the same and becomes [`Error::JobPanicked`].
    ///
    /// One commit for many jobs is what makes many small writes fast. The job must not wait for other transactions.
    pub fn submit<T: Send, E: From<Error> + Send>(
        &self,
        job: impl FnOnce(&mut WriteTransaction) -> Result<T, E> + Send,
    ) -> Result<T, E> {
        crate::merger::submit(self, job)
    }

    /// Writes all changes up to now to the data file, syncs it and puts the journal away, unless an older snapshot is open, whose pages
    /// would be overwritten: then nothing happens. Returns the transaction up to which the data file is complete. Happens by itself;
    /// call it to bound the next recovery. Waits for an open write transaction.
    pub fn flush(&self) -> Result<TransactionId> {
        self.inner.check_writable()?;
        crate::flush::flush(&self.inner)
    }

    /// The newest durable transaction.
    pub fn last_transaction(&self) -> TransactionId {
        TransactionId(self.inner.visible.load(Ordering::Acquire))
    }

    /// How it was opened.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The environment's directory.
    pub fn path(&self) -> std::path::PathBuf {
        self.inner.disk.path()
    }

    /// Flushes, shortens the data file to its pages, removes the journal and unlocks the directory once the last clone is gone.
    ///
    /// Errors: [`Error::Invalid`] while transactions are open (nothing has changed then); otherwise what went wrong on disk:
    /// the environment is closed all the same, and its next opening recovers.
    pub fn close(self) -> Result<()> {
        self.inner.close()
    }
}

/// Whether the directory holds what an interrupted creation leaves: headers that were not written whole, and nothing that they could
/// belong to: no data and no journal.
fn is_unfinished(disk: &Arc<dyn Disk>) -> Result<bool> {
    match HeaderFiles::read(&**disk) {
        Err(Error::FileDamaged { .. }) => {}
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
        _ => return Ok(false),
    }
    let name = crate::data_file::NAME;
    let path = disk.path().join(name);
    if disk.exists(name).map_err(|e| Error::io("look for", &path, e))? {
        let file = disk.open(name, OpenMode::Read).map_err(|e| Error::io("open", &path, e))?;
        if !file.is_empty().map_err(|e| Error::io("read the length of", &path, e))? {
            return Ok(false);
        }
    }
    let journals = disk.list(crate::journal::files::DIRECTORY);
    Ok(journals.map_err(|e| Error::io("list", disk.path(), e))?.is_empty())
}

fn create(disk: &Arc<dyn Disk>) -> Result<(Header, HeaderFiles)> {
    let path = disk.path();
    let io = |what: &'static str, name: &str| {
        let path = path.join(name);
        move |e: std::io::Error| match is_full(&e) {
            true => Error::DiskFull { what: path.display().to_string(), bytes: 4096, source: e },
            false => Error::io(what, path, e),
        }
    };
    let data = disk.exists(crate::data_file::NAME).map_err(io("look for", crate::data_file::NAME))?;
    if data {
        let length = disk
            .open(crate::data_file::NAME, OpenMode::Read)
            .and_then(|f| f.len())
            .map_err(io("open", crate::data_file::NAME))?;
        // An empty one is what an interrupted creation leaves.
        if length != 0 {
            return Err(Error::FileDamaged {
                path: path.join(crate::data_file::NAME),
                reason: "it exists, but both header files are missing; restore them or the whole directory from a backup"
                    .to_owned(),
            });
        }
    }
    disk.create_directory(crate::journal::files::DIRECTORY)
        .map_err(io("create", crate::journal::files::DIRECTORY))?;
    disk.open(crate::data_file::NAME, OpenMode::Create)
        .and_then(|f| f.sync())
        .map_err(io("create", crate::data_file::NAME))?;
    let environment = random_identity();
    let header = Header {
        environment,
        generation: 1,
        synced: TransactionId(0),
        synced_hash: 0,
        first_journal: 1,
        page_count: 0,
    };
    // The files appear empty first: `read` takes an empty pair for an unfinished creation only when the data file is empty too.
    let headers = HeaderFiles::open(disk, OpenMode::Create)?;
    headers.write(&header)?;
    headers.write(&Header { generation: 2, ..header })?;
    disk.sync_directory("").map_err(io("sync", ""))?;
    Ok((Header { generation: 2, ..header }, headers))
}

/// A random number that tells environments apart.
pub(crate) fn random_identity() -> u64 {
    let mut bytes = [0; 8];
    if rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) == Ok(8) {
        return u64::from_le_bytes(bytes).max(1);
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64 ^ u64::from(std::process::id()) << 40).max(1)
}

impl Inner {
    /// The error that writing would meet, if any.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.check_healthy()?;
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    pub(crate) fn check_healthy(&self) -> Result<()> {
        match self.failure.get() {
            Some(cause) => Err(Error::Failed { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// A write or sync failed: no more are tried, since what the file holds now is unknown.
    pub(crate) fn fail(&self, error: &Error) {
        let mut cause = error.to_string();
        if let Some(source) = std::error::Error::source(error) {
            cause = format!("{cause}: {source}");
        }
        if self.failure.set(cause.clone()).is_ok() {
            tracing::error!(path = %self.disk.path().display(), "{cause}; the environment takes no more writes until it is opened anew");
        }
    }

    /// Passes an error on; an I/O error of a write also stops all further writing.
    pub(crate) fn fail_on_io(&self, error: Error) -> Error {
        if matches!(error, Error::Io { .. }) {
            self.fail(&error);
        }
        error
    }

    pub(crate) fn failure(&self) -> Option<&String> {
        self.failure.get()
    }

    fn close(&self) -> Result<()> {
        if self.options.read_only {
            self.closed.store(true, Ordering::Release);
            return Ok(());
        }
        let guard = self.writer.try_lock();
        let readers = self.readers.oldest().1;
        if guard.is_none() || readers > 0 {
            let writer = if guard.is_none() { "a write transaction and " } else { "" };
            return Err(Error::Invalid(format!(
                "{writer}{readers} snapshots are open; end them before closing"
            )));
        }
        if self.closed.swap(true, Ordering::AcqRel) {
            return Err(Error::Closed);
        }
        drop(guard);
        self.stop_background();
        crate::flush::flush_and_tidy(self)
    }

    /// Ends the background threads; they finish what they are at.
    pub(crate) fn stop_background(&self) {
        self.flusher.stop();
    }

    /// Where the newest version of a page is: for [`crate::Environment::check`] and backups.
    pub(crate) fn oldest_pinned(&self) -> TransactionId {
        let visible = TransactionId(self.visible.load(Ordering::Acquire));
        self.readers.oldest().0.map_or(visible, |oldest| oldest.min(visible))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.options.read_only && !self.closed.load(Ordering::Acquire) && self.failure.get().is_none() {
            self.stop_background();
            if let Err(error) = crate::flush::flush_and_tidy(self) {
                tracing::error!(path = %self.disk.path().display(), %error, "the last flush failed; the next opening recovers from the journal");
            }
        }
    }
}
