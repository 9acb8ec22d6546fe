//! All databases of the server: their records, loading on first use, closing when idle, making and deleting.
//!
//! - A database is found by its lower-cased name in one map, which holds an [`Entry`] for each that exists, loaded or not.
//! - Loading, closing, changing and deleting one database happen one after the other, under its entry's lock; databases do not wait for
//!   each other. Whoever finds one loaded takes no lock.
//! - A record is durable before its change is answered. A database that is being deleted for good says so in its record first, so that a
//!   crash in between does not bring its documents back.

mod loaded;
mod name;
mod system;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use jackdaw_database::clock;
use jackdaw_database::notifications::Event;
use jackdaw_indexing::{Options as IndexingOptions, Workers};
use parking_lot::RwLock;

pub(crate) use loaded::LoadedDatabase;
pub(crate) use system::SystemStore;

use crate::error::{ErrorKind, Result, WireError};
use crate::metrics::Metrics;
use crate::response::DATABASE_MISSING;
use crate::wire::database_record::{DatabaseRecord, LockMode};

/// After a failure to open, how long the same answer is given without another try.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The databases.
pub(crate) struct Databases {
    root: PathBuf,
    entries: RwLock<HashMap<Box<str>, Arc<Entry>>>,
    system: Arc<SystemStore>,
    metrics: Arc<Metrics>,
    /// What indexes all of them.
    workers: Arc<Workers>,
    index_options: IndexingOptions,
    /// Milliseconds since the start, as of the last pass over idle databases.
    now_ms: AtomicU64,
    start: Instant,
}

/// A database that exists.
pub(crate) struct Entry {
    key: Box<str>,
    record: Arc<ArcSwap<DatabaseRecord>>,
    loaded: ArcSwapOption<LoadedDatabase>,
    last_used_ms: AtomicU64,
    is_deleted: AtomicBool,
    /// Held while the database is loaded, closed, changed or deleted. Inside: why it could not be opened lately.
    work: tokio::sync::Mutex<Option<(Instant, ErrorKind, String)>>,
}

impl Entry {
    fn new(key: &str, record: DatabaseRecord) -> Arc<Entry> {
        Arc::new(Entry {
            key: key.into(),
            record: Arc::new(ArcSwap::from_pointee(record)),
            loaded: ArcSwapOption::empty(),
            last_used_ms: AtomicU64::new(0),
            is_deleted: AtomicBool::new(false),
            work: tokio::sync::Mutex::new(None),
        })
    }

    /// The record as it is now.
    pub(crate) fn record(&self) -> Arc<DatabaseRecord> {
        self.record.load_full()
    }

    /// The database, when it is loaded.
    pub(crate) fn if_loaded(&self) -> Option<Arc<LoadedDatabase>> {
        self.loaded.load_full()
    }
}

impl Databases {
    /// Reads all records; opens no database. What was being deleted when the server stopped is deleted now.
    pub(crate) fn open(
        root: PathBuf,
        system: Arc<SystemStore>,
        metrics: Arc<Metrics>,
        index_options: IndexingOptions,
    ) -> Result<Databases> {
        std::fs::create_dir_all(&root).map_err(|error| cannot("make", &root, error))?;
        let mut entries = HashMap::new();
        for record in system.records()? {
            let key = name::key(&record.database_name).into_owned();
            if record.is_being_deleted {
                delete_files(&root.join(&key))?;
                system.delete_record(&key)?;
                continue;
            }
            entries.insert(key.clone().into_boxed_str(), Entry::new(&key, record));
        }
        Ok(Databases {
            root,
            entries: RwLock::new(entries),
            system,
            metrics,
            workers: Workers::for_this_machine(),
            index_options,
            now_ms: AtomicU64::new(0),
            start: Instant::now(),
        })
    }

    /// The database of a name, loaded or not.
    pub(crate) fn entry(&self, name: &str) -> Option<Arc<Entry>> {
        self.entries.read().get(&*name::key(name)).cloned()
    }

    /// As [`Databases::entry`], or the error that clients know.
    pub(crate) fn require(&self, name: &str) -> Result<Arc<Entry>> {
        self.entry(name).ok_or_else(|| does_not_exist(name))
    }

    /// All databases, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        let mut all: Vec<Arc<Entry>> = self.entries.read().values().cloned().collect();
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }

    /// How many exist.
    pub(crate) fn count(&self) -> usize {
        self.entries.read().len()
    }

    /// The database of a name, opened if it is not.
    ///
    /// Errors: there is none; it is disabled; it cannot be opened.
    pub(crate) async fn get(&self, name: &str) -> Result<Arc<LoadedDatabase>> {
        let entry = self.require(name)?;
        entry.last_used_ms.store(self.now_ms.load(Ordering::Relaxed), Ordering::Relaxed);
        match entry.loaded.load_full() {
            Some(loaded) => Ok(loaded),
            None => self.load(&entry).await,
        }
    }

    /// Opens a database, once for all who wait for it.
    async fn load(&self, entry: &Arc<Entry>) -> Result<Arc<LoadedDatabase>> {
        let mut failure = entry.work.lock().await;
        if let Some(loaded) = entry.loaded.load_full() {
            return Ok(loaded);
        }
        let name = &entry.record().database_name;
        if entry.is_deleted.load(Ordering::Acquire) {
            return Err(does_not_exist(name));
        }
        if entry.record().disabled {
            return Err(ErrorKind::DatabaseDisabled.error(format!("{name} has been disabled")));
        }
        if let Some((when, kind, message)) = &*failure
            && when.elapsed() < RETRY_AFTER
        {
            return Err(kind.error(message.clone()));
        }
        match self.open_files(entry, false).await {
            Ok(loaded) => {
                *failure = None;
                Ok(loaded)
            }
            Err(error) => {
                tracing::error!(database = %name, %error, "the database cannot be opened");
                let message = format!("the database '{name}' cannot be opened: {error}");
                *failure = Some((Instant::now(), error.kind(), message.clone()));
                Err(error.kind().error(message))
            }
        }
    }

    /// The caller holds the entry's lock; `is_new` says that there may be no files yet.
    async fn open_files(&self, entry: &Arc<Entry>, is_new: bool) -> Result<Arc<LoadedDatabase>> {
        let path = self.root.join(&*entry.key);
        let (record, system, workers) = (entry.record.clone(), self.system.clone(), self.workers.clone());
        let index_options = self.index_options.clone();
        let begun = Instant::now();
        let opened = blocking(move || {
            LoadedDatabase::open(&path, is_new, record, system.cluster_index(), workers, index_options)
        });
        let loaded = Arc::new(opened.await?);
        entry.loaded.store(Some(loaded.clone()));
        self.metrics.databases_loaded.fetch_add(1, Ordering::Relaxed);
        let took_ms = begun.elapsed().as_secs_f64() * 1e3;
        tracing::info!(database = %entry.record().database_name, took_ms, "opened");
        Ok(loaded)
    }

    /// Makes a database, open when this returns, and gives its record.
    ///
    /// Errors: the name cannot be one, or there is such a database; the disk.
    pub(crate) async fn create(&self, mut record: DatabaseRecord) -> Result<Arc<DatabaseRecord>> {
        name::check(&record.database_name)?;
        let key = name::key(&record.database_name).into_owned();
        let name = record.database_name.clone();
        // Stays invisible to the record store until the files are there, and locked for others until all is done.
        let entry = Entry::new(&key, record.clone());
        let _work = entry.work.lock().await;
        if let Some(existing) = self.insert(&key, &entry) {
            if record.made_by.is_some() && existing.record().made_by == record.made_by {
                // The same request once more: its answer is that of the first, which may still be at work.
                let _work = existing.work.lock().await;
                if !existing.is_deleted.load(Ordering::Acquire) {
                    return Ok(existing.record());
                }
            }
            // The clients read these of every conflict.
            return Err(ErrorKind::Concurrency
                .error(format!("Database '{name}' already exists!"))
                .with("Id", serde_json::Value::Null)
                .with("ExpectedChangeVector", serde_json::Value::Null)
                .with("ActualChangeVector", serde_json::Value::Null));
        }
        let made = async {
            let loaded = self.open_files(&entry, true).await?;
            record.etag = self.system.cluster_index().advance();
            record.topology_etag = record.etag;
            record.nodes_modified_at = clock::date_text(clock::now_ticks());
            record.topology_id = jackdaw_database::DatabaseId::random().as_str().to_owned();
            record.cluster_transaction_id = loaded.cluster_transaction_id().as_str().to_owned();
            self.store(&entry, record).await
        };
        match made.await {
            Ok(record) if record.disabled => {
                self.close_files(&entry).await;
                Ok(record)
            }
            Ok(record) => Ok(record),
            Err(error) => {
                entry.is_deleted.store(true, Ordering::Release);
                self.entries.write().remove(&*key);
                self.close_files(&entry).await;
                Err(error)
            }
        }
    }

    /// Adds an entry. The one that has its name already, if any: then nothing changes.
    fn insert(&self, key: &str, entry: &Arc<Entry>) -> Option<Arc<Entry>> {
        let mut entries = self.entries.write();
        if let Some(existing) = entries.get(key) {
            return Some(existing.clone());
        }
        entries.insert(key.into(), entry.clone());
        None
    }

    /// Stores a record, then makes it the current one. The caller holds the entry's lock.
    async fn store(&self, entry: &Arc<Entry>, record: DatabaseRecord) -> Result<Arc<DatabaseRecord>> {
        let record = Arc::new(record);
        let (system, key, stored) = (self.system.clone(), entry.key.clone(), record.clone());
        blocking(move || system.put_record(&key, &stored)).await?;
        entry.record.store(record.clone());
        Ok(record)
    }

    /// Changes a record; `change` may refuse. The record's etag grows. Returns the record as it is then.
    ///
    /// Errors: there is no such database; those of `change`; the disk.
    pub(crate) async fn change(
        &self,
        name: &str,
        change: impl FnOnce(&mut DatabaseRecord, i64) -> Result<()>,
    ) -> Result<Arc<DatabaseRecord>> {
        let entry = self.require(name)?;
        let _work = entry.work.lock().await;
        if entry.is_deleted.load(Ordering::Acquire) {
            return Err(does_not_exist(name));
        }
        let mut record = (*entry.record()).clone();
        let index = self.system.cluster_index().advance();
        change(&mut record, index)?;
        record.etag = index;
        let is_disabled = record.disabled;
        let is_topology_new = record.topology_etag != entry.record().topology_etag;
        let record = self.store(&entry, record).await?;
        if is_topology_new && let Some(loaded) = entry.if_loaded() {
            loaded.notifications().publish(Event::Topology);
        }
        if is_disabled {
            self.close_files(&entry).await;
        }
        Ok(record)
    }

    /// Deletes a database, and with `hard` its files. Returns the index of the change; `None` when there was nothing to do, or the lock mode
    /// says to ignore it.
    ///
    /// Errors: the lock mode forbids it; the disk.
    pub(crate) async fn delete(&self, name: &str, hard: bool) -> Result<Option<i64>> {
        let Some(entry) = self.entry(name) else { return Ok(None) };
        let _work = entry.work.lock().await;
        if entry.is_deleted.load(Ordering::Acquire) {
            return Ok(None);
        }
        let mut record = (*entry.record()).clone();
        match record.lock_mode {
            LockMode::Unlock => {}
            LockMode::PreventDeletesIgnore => return Ok(None),
            LockMode::PreventDeletesError => {
                return Err(ErrorKind::InvalidOperation.error(format!(
                    "Database '{}' cannot be deleted because of the set lock mode ('PreventDeletesError'). Please consider changing the lock mode before deleting the database.",
                    record.database_name
                )));
            }
        }
        let index = self.system.cluster_index().advance();
        if hard {
            record.etag = index;
            record.is_being_deleted = true;
            self.store(&entry, record).await?;
        }
        entry.is_deleted.store(true, Ordering::Release);
        self.close_files(&entry).await;
        let (system, key, path) = (self.system.clone(), entry.key.clone(), self.root.join(&*entry.key));
        blocking(move || {
            if hard {
                delete_files(&path)?;
            }
            system.delete_record(&key)
        })
        .await?;
        // Only now may another one have the name.
        self.entries.write().remove(&*entry.key);
        Ok(Some(index))
    }

    /// The caller holds the entry's lock.
    async fn close_files(&self, entry: &Entry) {
        if let Some(loaded) = entry.loaded.swap(None) {
            loaded.close().await;
        }
    }

    /// Removes what is left of deleted documents from the databases that are open: nothing that is here needs it any more.
    pub(crate) async fn clean_tombstones(&self) {
        for entry in self.all() {
            // One that nobody uses stays closed; it is cleaned when it is open.
            let Some(database) = entry.if_loaded() else { continue };
            if let Err(error) = database.retire_indexes().await {
                tracing::warn!(database = %entry.record().database_name, %error, "unused indexes stay");
            }
            if let Err(error) = database.clean_tombstones().await {
                tracing::warn!(database = %entry.record().database_name, %error, "tombstones stay");
            }
        }
    }

    /// Closes what nobody has used for `idle_after`. To be called now and then.
    pub(crate) async fn close_idle(&self, idle_after: Duration) {
        let now_ms = self.start.elapsed().as_millis() as u64;
        self.now_ms.store(now_ms, Ordering::Relaxed);
        let is_idle = |entry: &Entry| {
            let idle_ms = now_ms.saturating_sub(entry.last_used_ms.load(Ordering::Relaxed));
            // The entry itself holds one; more means that somebody is using it right now.
            u128::from(idle_ms) > idle_after.as_millis()
                && entry.loaded.load().as_ref().is_some_and(|loaded| Arc::strong_count(loaded) == 1)
        };
        let all = self.all();
        for entry in all.iter().filter(|entry| is_idle(entry)) {
            let Ok(_work) = entry.work.try_lock() else { continue };
            // Who stored documents and went away expects them to be indexed when he is back.
            let Some(indexes) = entry.if_loaded().map(|database| database.indexes().clone()) else {
                continue;
            };
            if blocking(move || Ok(indexes.is_busy())).await.unwrap_or(false) {
                continue;
            }
            if is_idle(entry) {
                self.close_files(entry).await;
                self.metrics.databases_unloaded.fetch_add(1, Ordering::Relaxed);
                tracing::info!(database = %entry.record().database_name, "closed, since nobody used it");
            }
        }
    }

    /// Closes all, several at a time.
    pub(crate) async fn close_all(self: &Arc<Self>) {
        let mut closing = tokio::task::JoinSet::new();
        for entry in self.all() {
            let databases = self.clone();
            closing.spawn(async move {
                let _work = entry.work.lock().await;
                databases.close_files(&entry).await;
            });
        }
        closing.join_all().await;
    }
}

/// There is no database of this name.
pub(crate) fn does_not_exist(name: &str) -> WireError {
    ErrorKind::DatabaseDoesNotExist
        .error(format!("Database '{name}' does not exist."))
        .with_header(DATABASE_MISSING, name)
}

/// Runs what may wait for the disk away from the threads that serve connections.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(ErrorKind::Internal.error(format!("the work failed unexpectedly: {error}"))),
    }
}

/// Moves the directory away first, so that a half-deleted one never looks like a database.
fn delete_files(path: &Path) -> Result<()> {
    let Some(name) = path.file_name() else { return Ok(()) };
    let mut aside_name = std::ffi::OsString::from(".deleted-");
    aside_name.push(name);
    let aside = path.with_file_name(aside_name);
    remove_if_there(&aside)?;
    match std::fs::rename(path, &aside) {
        Ok(()) => remove_if_there(&aside),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(cannot("delete", path, error)),
    }
}

fn remove_if_there(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(cannot("delete", path, error)),
        _ => Ok(()),
    }
}

fn cannot(operation: &'static str, path: &Path, error: std::io::Error) -> WireError {
    let path = path.to_owned();
    jackdaw_storage::Error::Io { operation, path, source: error }.into()
}
