//! A database that is open: the one place where one is opened and closed.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use http::HeaderValue;
use jackdaw_database::{ClusterIndex, Database, DatabaseOptions};
use jackdaw_indexing::{Indexes, Options as IndexingOptions, Workers};
use jackdaw_query::Engine;
use tokio_util::sync::CancellationToken;

use crate::error::Result;
use crate::operations::Operations;
use crate::wire::database_record::{DatabaseRecord, NODE_TAG};

/// How long what uses a database may take to let go of it when it closes.
const LET_GO_MAX: Duration = Duration::from_secs(10);

/// Tombstones removed in one transaction at most.
const TOMBSTONES_AT_ONCE: usize = 1024;

/// A database, open, with what the server keeps beside it. It stays open as long as anyone holds it.
pub(crate) struct LoadedDatabase {
    database: Database,
    indexes: Indexes,
    record: Arc<ArcSwap<DatabaseRecord>>,
    operations: Arc<Operations>,
    queries: Engine,
    closing: CancellationToken,
    cluster_transaction_id: HeaderValue,
    loaded_at: Instant,
}

impl LoadedDatabase {
    /// Opens the database in a directory; only a new one may have no files yet. Blocks for as long as recovery takes.
    pub(super) fn open(
        path: &Path,
        is_new: bool,
        record: Arc<ArcSwap<DatabaseRecord>>,
        cluster_index: &ClusterIndex,
        workers: Arc<Workers>,
        index_options: IndexingOptions,
    ) -> Result<LoadedDatabase> {
        let mut options = DatabaseOptions {
            node_tag: NODE_TAG.to_owned(),
            cluster_index: cluster_index.clone(),
            ..DatabaseOptions::default()
        };
        // Files that are gone (a volume that is not mounted) are an error. An empty database in their place would hide that.
        options.storage = options.storage.create(is_new);
        let database = Database::open(path, &record.load().database_name, options)?;
        let indexes = Indexes::open(database.clone(), workers, index_options)?;
        let operations = Arc::new(Operations::of_database(database.notifications().clone()));
        let cluster_transaction_id = HeaderValue::from_str(database.cluster_transaction_id().as_str());
        Ok(LoadedDatabase {
            operations,
            queries: Engine::default(),
            record,
            closing: CancellationToken::new(),
            cluster_transaction_id: cluster_transaction_id.unwrap_or(HeaderValue::from_static("")),
            loaded_at: Instant::now(),
            indexes,
            database,
        })
    }

    /// The record as it is now.
    pub(crate) fn record(&self) -> Arc<DatabaseRecord> {
        self.record.load_full()
    }

    /// Its indexes.
    pub(crate) fn indexes(&self) -> &Indexes {
        &self.indexes
    }

    /// Work that goes on in this database.
    pub(crate) fn operations(&self) -> &Arc<Operations> {
        &self.operations
    }

    /// What answers its queries.
    pub(crate) fn queries(&self) -> &Engine {
        &self.queries
    }

    /// Becomes cancelled when the database closes; whoever holds it for long (sockets, streams) must let go of it then.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// The value of `Database-Cluster-Tx-Id`.
    pub(crate) fn cluster_transaction_id_header(&self) -> &HeaderValue {
        &self.cluster_transaction_id
    }

    /// Retires automatic indexes that nobody needs any more.
    pub(super) async fn retire_indexes(&self) -> Result<()> {
        let indexes = self.indexes.clone();
        crate::databases::blocking(move || Ok(indexes.retire_unused()?)).await
    }

    /// Removes the tombstones there are now, which no index needs any more, some in each transaction so that others can write in between.
    pub(super) async fn clean_tombstones(&self) -> Result<()> {
        if self.database.read()?.tombstone_count()? == 0 {
            return Ok(());
        }
        let indexes = self.indexes.clone();
        let last = crate::databases::blocking(move || Ok(indexes.tombstones_done()?)).await?;
        while self.database.read()?.tombstone_count()? > 0 && !self.closing.is_cancelled() {
            let removed = self
                .database
                .submit(move |transaction| transaction.clean_tombstones(last, TOMBSTONES_AT_ONCE))
                .await?;
            if removed == 0 {
                break;
            }
        }
        Ok(())
    }

    /// How long it has been open.
    pub(crate) fn up_time(&self) -> Duration {
        self.loaded_at.elapsed()
    }

    /// Asks all who use it to stop, waits until they did, and closes it.
    pub(super) async fn close(self: Arc<Self>) {
        self.closing.cancel();
        self.operations.kill_all();
        let (begun, mut pause) = (Instant::now(), Duration::from_micros(100));
        while Arc::strong_count(&self) > 1 && begun.elapsed() < LET_GO_MAX {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        if Arc::strong_count(&self) > 1 {
            let name = &self.record.load().database_name;
            tracing::warn!(database = %name, "closing the database although requests still use it");
        }
        let closed = tokio::task::spawn_blocking(move || {
            let name = self.record.load().database_name.clone();
            self.indexes.close();
            (name, self.database.close())
        });
        match closed.await {
            Ok((_, Ok(()))) => {}
            Ok((name, Err(error))) => {
                tracing::error!(database = %name, %error, "closing failed; the next opening recovers what was written");
            }
            Err(error) => tracing::error!(%error, "closing a database panicked"),
        }
    }
}

impl Deref for LoadedDatabase {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}
