//! Writing: what a job may do, and what the writer keeps between jobs.

pub(crate) mod cluster;
pub(crate) mod compare_exchange;
pub(crate) mod documents;
pub(crate) mod hilo;
mod identities;
pub(crate) mod json_patch;
pub(crate) mod patch;
mod requests;
mod tombstones;
mod trees;

use std::collections::HashMap;

use jackdaw_document::Context;
use jackdaw_storage::{Environment, RowBuilder, WriteTransaction};

use crate::Etag;
use crate::clock;
use crate::commits::Changed;
use crate::database::Shared;
use crate::error::Result;
use crate::ids;
use crate::notifications::Event;
use crate::schema::{self, CollectionRecord};

/// What a job writes with. All that it writes becomes durable, or nothing: a job that returns an error leaves no trace, but that
/// etags are not given out twice.
pub struct Transaction<'t> {
    storage: &'t mut WriteTransaction,
    shared: &'t Shared,
    state: &'t mut WriterState,
}

/// What the writer knows without looking, and what it has yet to write.
pub(crate) struct WriterState {
    last_etag: Etag,
    last_etag_written: Etag,
    cluster_writes: i64,
    cluster_writes_written: i64,
    cluster_index: i64,
    cluster_index_written: i64,
    /// Numbers of collections by name as given.
    collections: HashMap<String, u32>,
    /// Collections that this storage transaction made.
    new_collections: Vec<(u32, String)>,
    /// By how much each write changes the number of a collection's documents: a collection may be there often.
    count_changes: Vec<(u32, i64)>,
    /// How many of them earlier jobs left: those are not touched.
    count_changes_kept: usize,
    events: Vec<Event>,
    /// What commits are told to have changed; may name more than did.
    changed: Changed,
    row: RowBuilder,
    context: Context,
    /// The writer resets its context after so many documents.
    built: u32,
}

/// A state to return to when a job failed.
pub(crate) struct Mark {
    cluster_writes: i64,
    new_collections: usize,
    count_changes: usize,
    events: usize,
}

/// Documents the writer builds itself before it gives their memory back.
const BUILT_MAX: u32 = 1024;

impl WriterState {
    pub(crate) fn load(environment: &Environment) -> Result<WriterState> {
        let mut state = WriterState {
            last_etag: 0,
            last_etag_written: 0,
            cluster_writes: 0,
            cluster_writes_written: 0,
            cluster_index: 0,
            cluster_index_written: 0,
            collections: HashMap::new(),
            new_collections: Vec::new(),
            count_changes: Vec::new(),
            count_changes_kept: 0,
            events: Vec::new(),
            changed: Changed::default(),
            row: RowBuilder::new(),
            context: Context::new(),
            built: 0,
        };
        state.reload(environment)?;
        Ok(state)
    }

    /// Takes the counters of the last durable state, and forgets what was not written. Etags go on from where they were.
    pub(crate) fn reload(&mut self, environment: &Environment) -> Result<()> {
        self.collections.clear();
        self.new_collections.clear();
        self.count_changes.clear();
        self.events.clear();
        self.changed.clear();
        let snapshot = environment.read()?;
        let about = snapshot.tree(schema::DATABASE)?;
        let counter = |key: &[u8]| about.get(key)?.map_or(Ok(0), schema::i64_of);
        self.last_etag_written = counter(schema::LAST_ETAG)?;
        self.last_etag = self.last_etag.max(self.last_etag_written);
        self.cluster_writes = counter(schema::CLUSTER_WRITES)?;
        self.cluster_writes_written = self.cluster_writes;
        self.cluster_index = counter(schema::LAST_CLUSTER_INDEX)?;
        self.cluster_index_written = self.cluster_index;
        Ok(())
    }

    /// What to return to should the job that now begins fail.
    pub(crate) fn mark(&mut self) -> Mark {
        self.count_changes_kept = self.count_changes.len();
        Mark {
            cluster_writes: self.cluster_writes,
            new_collections: self.new_collections.len(),
            count_changes: self.count_changes.len(),
            events: self.events.len(),
        }
    }

    pub(crate) fn return_to(&mut self, mark: Mark) {
        if self.new_collections.len() > mark.new_collections {
            self.new_collections.truncate(mark.new_collections);
            self.collections.clear();
        }
        self.cluster_writes = mark.cluster_writes;
        self.count_changes.truncate(mark.count_changes);
        self.events.truncate(mark.events);
    }

    /// Writes what was only counted so far.
    pub(crate) fn write_back(&mut self, storage: &mut WriteTransaction, shared: &Shared) -> Result<()> {
        for (number, name) in &self.new_collections {
            // Before the commit: no reader may meet a document whose collection has no name yet.
            shared.collections.add(*number, name);
        }
        self.count_changes.sort_unstable();
        let by_collection = self.count_changes.chunk_by(|one, other| one.0 == other.0);
        let sums =
            by_collection.map(|changes| (changes[0].0, changes.iter().map(|change| change.1).sum::<i64>()));
        let mut sums = sums.filter(|(_, change)| *change != 0).peekable();
        if sums.peek().is_some() {
            let mut collections = storage.tree_mut(schema::COLLECTIONS)?;
            for (number, change) in sums {
                let name = shared.collections.name(number);
                let key = ids::lower(&name);
                if let Some(record) = collections.get(key.as_bytes())? {
                    let mut record = CollectionRecord::decode(record)?;
                    record.documents = record.documents.saturating_add_signed(change);
                    collections.put(key.as_bytes(), &record.encode())?;
                }
            }
        }
        let mut about = storage.tree_mut(schema::DATABASE)?;
        let mut counter = |key: &[u8], now: i64, written: i64| -> Result<()> {
            if now != written {
                about.put(key, &now.to_be_bytes())?;
            }
            Ok(())
        };
        counter(schema::LAST_ETAG, self.last_etag, self.last_etag_written)?;
        counter(schema::CLUSTER_WRITES, self.cluster_writes, self.cluster_writes_written)?;
        counter(schema::LAST_CLUSTER_INDEX, self.cluster_index, self.cluster_index_written)
    }

    /// What was written is on its way, and whatever follows builds on it. Returns whom to tell of what when it is durable.
    pub(crate) fn queued(&mut self) -> Told {
        self.last_etag_written = self.last_etag;
        self.cluster_writes_written = self.cluster_writes;
        self.cluster_index_written = self.cluster_index;
        self.new_collections.clear();
        self.count_changes.clear();
        if self.built >= BUILT_MAX {
            self.context.reset();
            self.built = 0;
        }
        Told { changed: std::mem::take(&mut self.changed), events: std::mem::take(&mut self.events) }
    }
}

/// What others are told of a transaction, once it is durable.
pub(crate) struct Told {
    changed: Changed,
    events: Vec<Event>,
}

impl Told {
    /// Tells them.
    pub(crate) fn tell(&mut self, shared: &Shared) {
        if !self.changed.is_empty() {
            shared.commits.tell(&self.changed);
        }
        for event in self.events.drain(..) {
            shared.notifications.publish(event);
        }
    }
}

impl<'t> Transaction<'t> {
    pub(crate) fn new(
        storage: &'t mut WriteTransaction,
        shared: &'t Shared,
        state: &'t mut WriterState,
    ) -> Transaction<'t> {
        Transaction { storage, shared, state }
    }

    /// The next etag.
    fn next_etag(&mut self) -> Etag {
        self.state.last_etag += 1;
        self.state.last_etag
    }

    /// The last etag given out, by this job or an earlier one.
    pub fn last_etag(&self) -> Etag {
        self.state.last_etag
    }

    fn now(&self) -> i64 {
        clock::now_ticks()
    }

    /// The number of a collection, which is made when there is none.
    fn collection_number(&mut self, name: &str) -> Result<u32> {
        if let Some(number) = self.state.collections.get(name) {
            return Ok(*number);
        }
        let key = ids::lower(name);
        if key.len() > ids::ID_SIZE_MAX {
            let (size, max) = (key.len(), ids::ID_SIZE_MAX);
            let message = format!("the name of a collection has {size} bytes; the longest allowed has {max}");
            return Err(crate::Error::InvalidArgument(message));
        }
        let mut collections = self.storage.tree_mut(schema::COLLECTIONS)?;
        let number = match collections.get(key.as_bytes())? {
            Some(record) => CollectionRecord::decode(record)?.number,
            None => {
                // None is ever removed, so the count is free.
                let number = u32::try_from(collections.len() + 1).map_err(|_| {
                    crate::Error::InvalidOperation("there are too many collections".to_owned())
                })?;
                let record = CollectionRecord { number, documents: 0, name: name.to_owned() };
                collections.put(key.as_bytes(), &record.encode())?;
                self.state.new_collections.push((number, name.to_owned()));
                number
            }
        };
        self.state.collections.insert(name.to_owned(), number);
        Ok(number)
    }

    fn collection_name(&self, number: u32) -> std::sync::Arc<str> {
        let new = self.state.new_collections.iter().find(|(new, _)| *new == number);
        new.map_or_else(
            || self.shared.collections.name(number),
            |(_, name)| std::sync::Arc::from(name.as_str()),
        )
    }

    fn count(&mut self, collection: u32, change: i64) {
        let kept = self.state.count_changes_kept.min(self.state.count_changes.len());
        match self.state.count_changes[kept..].iter_mut().find(|(number, _)| *number == collection) {
            Some((_, sum)) => *sum += change,
            None => self.state.count_changes.push((collection, change)),
        }
    }

    /// The next index of the cluster, remembered with what is written.
    fn next_cluster_index(&mut self) -> i64 {
        let index = self.shared.cluster_index.advance();
        self.state.cluster_index = index;
        index
    }
}
