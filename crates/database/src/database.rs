//! A database, open: what its parts share, and the life of the whole.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jackdaw_document::Mode;
use jackdaw_storage::Environment;
use parking_lot::RwLock;

use crate::change_vector::DatabaseId;
use crate::commits::{CommitWatcher, Commits};
use crate::error::{Error, Result};
use crate::ids;
use crate::merger::{Merger, Pending};
use crate::notifications::Notifications;
use crate::schema::{self, CollectionRecord};
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;

/// Memory for what is written and not yet flushed, in bytes, unless told otherwise: a server has many databases.
const SCRATCH_SIZE_MAX: u64 = 128 << 20;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// The storage engine's options.
    pub storage: jackdaw_storage::Options,
    /// The tag of this node, in change vectors and in ids that the server makes.
    pub node_tag: String,
    /// What counts compare-exchange writes and cluster-wide transactions; one for all databases of a server.
    pub cluster_index: ClusterIndex,
    /// Whether documents are stored small or as fast as can be.
    pub document_mode: Mode,
}

impl Default for DatabaseOptions {
    fn default() -> DatabaseOptions {
        DatabaseOptions {
            storage: jackdaw_storage::Options::default().scratch_size_max(SCRATCH_SIZE_MAX),
            node_tag: "A".to_owned(),
            cluster_index: ClusterIndex::default(),
            document_mode: Mode::Memory,
        }
    }
}

/// Counts what a cluster agrees on: it only grows, and never below what any database opened with it has seen.
#[derive(Clone, Debug, Default)]
pub struct ClusterIndex(Arc<AtomicI64>);

impl ClusterIndex {
    /// The last index given out.
    pub fn last(&self) -> i64 {
        self.0.load(Ordering::Acquire)
    }

    /// The next index.
    pub fn advance(&self) -> i64 {
        self.0.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Lets all further indexes be greater than `index`.
    pub fn raise_to(&self, index: i64) {
        self.0.fetch_max(index, Ordering::AcqRel);
    }
}

/// A database; share it by cloning, which is cheap.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    shared: Arc<Shared>,
    environment: Environment,
    merger: Merger,
}

/// What readers and the writer use.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) id: DatabaseId,
    pub(crate) cluster_transaction_id: DatabaseId,
    pub(crate) node_tag: String,
    pub(crate) cluster_index: ClusterIndex,
    pub(crate) document_mode: Mode,
    pub(crate) collections: CollectionNames,
    pub(crate) notifications: Notifications,
    pub(crate) commits: Commits,
}

impl Shared {
    /// See [`Database::collection_name`].
    pub(crate) fn collection_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        match self.collections.canonical(&ids::lower(name)) {
            Some(canonical) if *canonical == *name => Cow::Borrowed(name),
            Some(canonical) => Cow::Owned(canonical.to_string()),
            None => Cow::Borrowed(name),
        }
    }
}

/// The names of all collections, in memory: a document's row has only a number.
#[derive(Default)]
pub(crate) struct CollectionNames(RwLock<CollectionMaps>);

#[derive(Default)]
struct CollectionMaps {
    by_number: HashMap<u32, Arc<str>>,
    by_key: HashMap<String, Arc<str>>,
}

impl CollectionNames {
    /// The name of a number. Collections enter before any reader can see a document of theirs.
    pub(crate) fn name(&self, number: u32) -> Arc<str> {
        let maps = self.0.read();
        maps.by_number.get(&number).cloned().unwrap_or_else(|| Arc::from(crate::metadata::EMPTY_COLLECTION))
    }

    fn canonical(&self, key: &str) -> Option<Arc<str>> {
        self.0.read().by_key.get(key).cloned()
    }

    pub(crate) fn add(&self, number: u32, name: &str) {
        let name: Arc<str> = Arc::from(name);
        let mut maps = self.0.write();
        maps.by_key.insert(ids::lower(&name).into_owned(), name.clone());
        maps.by_number.insert(number, name);
    }
}

impl Database {
    /// Opens the database in a directory, making it when there is none. Recovers what was written last; then everything that was ever
    /// acknowledged is there.
    ///
    /// Errors: those of [`Environment::open`]; [`Error::Damaged`] when the directory holds something else.
    pub fn open(path: impl AsRef<Path>, name: &str, options: DatabaseOptions) -> Result<Database> {
        let environment = Environment::open(path, options.storage.clone())?;
        Database::open_environment(environment, name, options)
    }

    /// As [`Database::open`], in a storage environment that is open already: on a disk of another kind, say. [`DatabaseOptions::storage`] is
    /// of no use then.
    pub fn open_environment(
        environment: Environment,
        name: &str,
        options: DatabaseOptions,
    ) -> Result<Database> {
        let path = environment.path();
        prepare(&environment)?;
        let snapshot = environment.read()?;
        let about = snapshot.tree(schema::DATABASE)?;
        let id_of = |key: &[u8]| -> Result<DatabaseId> {
            let bytes = about.get(key)?.and_then(|bytes| bytes.try_into().ok());
            bytes.map(DatabaseId::new).ok_or_else(|| Error::damaged("its id is missing"))
        };
        let last_cluster_index = about.get(schema::LAST_CLUSTER_INDEX)?.map_or(Ok(0), schema::i64_of)?;
        options.cluster_index.raise_to(last_cluster_index);
        let collections = CollectionNames::default();
        let mut range = snapshot.tree(schema::COLLECTIONS)?.iter()?;
        while let Some((_, record)) = range.next()? {
            let record = CollectionRecord::decode(record)?;
            collections.add(record.number, &record.name);
        }
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            id: id_of(schema::DATABASE_ID)?,
            cluster_transaction_id: id_of(schema::CLUSTER_TRANSACTION_ID)?,
            node_tag: options.node_tag,
            cluster_index: options.cluster_index,
            document_mode: options.document_mode,
            collections,
            notifications: Notifications::default(),
            commits: Commits::default(),
        });
        drop(range);
        drop(snapshot);
        let merger = Merger::start(environment.clone(), shared.clone())?;
        Ok(Database { inner: Arc::new(Inner { path, shared, environment, merger }) })
    }

    /// The database's name.
    pub fn name(&self) -> &str {
        &self.inner.shared.name
    }

    /// The directory it lies in.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// What its change vectors call it.
    pub fn id(&self) -> &DatabaseId {
        &self.inner.shared.id
    }

    /// What its cluster-wide transactions' indexes are marked with.
    pub fn cluster_transaction_id(&self) -> &DatabaseId {
        &self.inner.shared.cluster_transaction_id
    }

    /// A snapshot of the newest durable state. Never waits.
    pub fn read(&self) -> Result<Snapshot> {
        Ok(Snapshot::new(self.inner.environment.read()?, self.inner.shared.clone()))
    }

    /// Runs `job` in a storage transaction together with the jobs of others, and answers when that is durable. A job that returns an error,
    /// or panics, changes nothing, and the others do not notice. Jobs run in the order in which they were submitted, on one thread,
    /// so a job should only write: parsing and the like come before.
    ///
    /// Errors (in the answer): the job's; [`Error::Storage`] when the commit fails; [`Error::Closed`].
    pub fn submit<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        self.inner.merger.submit(job)
    }

    /// As [`Database::submit`], for a job of microseconds from a thread that may wait for one write to the disk: where nobody else writes, that is done
    /// here and now, which saves waking two threads. Where others write, it is the same as [`Database::submit`].
    pub fn submit_short<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        self.inner.merger.submit_short(job)
    }

    /// Who is told of changes.
    pub fn notifications(&self) -> &Notifications {
        &self.inner.shared.notifications
    }

    /// Lets `watcher` be told of each commit from now on, in place of whoever was told before.
    pub fn watch_commits(&self, watcher: Option<Arc<dyn CommitWatcher>>) {
        self.inner.shared.commits.set(watcher);
    }

    /// What counts compare-exchange writes, cluster-wide transactions and definitions.
    pub fn cluster_index(&self) -> &ClusterIndex {
        &self.inner.shared.cluster_index
    }

    /// How many jobs wait for the writer.
    pub fn queued_jobs(&self) -> usize {
        self.inner.merger.queued()
    }

    /// The storage engine's figures.
    pub fn storage_stats(&self) -> jackdaw_storage::Stats {
        self.inner.environment.stats()
    }

    /// The storage environment, for checks and backups.
    pub fn environment(&self) -> &Environment {
        &self.inner.environment
    }

    /// The name of a collection in the casing in which it was first seen; the given one when it is new.
    pub fn collection_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        self.inner.shared.collection_name(name)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    /// How documents are encoded here.
    pub fn document_mode(&self) -> Mode {
        self.inner.shared.document_mode
    }

    /// Takes no more writes, finishes those that were submitted, writes everything to the data file and unlocks the directory.
    ///
    /// Errors: those of the disk (the next opening then recovers from the journal); a snapshot that is still open puts the last step off until
    /// it is dropped, which is no error.
    pub fn close(&self) -> Result<()> {
        self.inner.merger.stop();
        match self.inner.environment.clone().close() {
            Ok(()) | Err(jackdaw_storage::Error::Closed | jackdaw_storage::Error::Invalid(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Makes the tables of a new database; checks the layout's version of one that exists.
fn prepare(environment: &Environment) -> Result<()> {
    let snapshot = environment.read()?;
    match snapshot.tree(schema::DATABASE) {
        Ok(about) => {
            let version =
                about.get(schema::VERSION)?.and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
            return match version {
                Some(schema::FORMAT_VERSION) => Ok(()),
                Some(found) => Err(Error::InvalidOperation(format!(
                    "the database has layout version {found}; this build reads version {}: open it with the build that wrote it and export it",
                    schema::FORMAT_VERSION
                ))),
                None => Err(Error::damaged("its layout version is missing")),
            };
        }
        Err(jackdaw_storage::Error::TreeNotFound { .. }) if snapshot.trees()?.is_empty() => {}
        Err(jackdaw_storage::Error::TreeNotFound { .. }) => {
            return Err(Error::damaged("its directory holds a storage environment of something else"));
        }
        Err(error) => return Err(error.into()),
    }
    drop(snapshot);
    let mut transaction = environment.write()?;
    let mut about = transaction.create_tree(schema::DATABASE)?;
    about.put(schema::VERSION, &schema::FORMAT_VERSION.to_be_bytes())?;
    about.put(schema::DATABASE_ID, &DatabaseId::random().bytes())?;
    about.put(schema::CLUSTER_TRANSACTION_ID, &DatabaseId::random().bytes())?;
    drop(about);
    transaction.create_tree(schema::COLLECTIONS)?;
    transaction.create_tree(schema::IDENTITIES)?;
    transaction.create_table(schema::DOCUMENTS, &schema::documents())?;
    transaction.create_table(schema::TOMBSTONES, &schema::tombstones())?;
    transaction.create_table(schema::COMPARE_EXCHANGE, &schema::compare_exchange())?;
    transaction.create_table(schema::REQUESTS, &schema::requests())?;
    transaction.commit()?;
    Ok(())
}
