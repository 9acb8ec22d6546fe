//! All indexes of one database: making, changing, replacing and deleting them, and who is told of what.
//!
//! What changes the set of indexes happens under one lock, is durable before it is visible, and visible before it is answered.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jackdaw_database::notifications::{Event, IndexChange, IndexChangeKind};
use jackdaw_database::{Changed, CommitWatcher, Database, Etag, Transaction, clock, ids};
use parking_lot::{Mutex, RwLock};

use crate::analyzers::{self, AnalyzerDefinition, Analyzers, ServerAnalyzers};
use crate::auto::{ALL_DOCUMENTS, AutoDefinition, Explanation, Match};
use crate::definition::{
    Difference, IndexDefinition, LockMode, Priority, REPLACEMENT_PREFIX, State, starts_with_ignoring_case,
};
use crate::directory;
use crate::error::{Error, Result};
use crate::index::Index;
use crate::plan::Plan;
use crate::progress::Newest;
use crate::store::{self, Content, IndexId, Record};
use crate::workers::Workers;

/// Indexes of one kind at most.
const INDEXES_MAX: usize = 2000;
/// An automatic index whose fields a wider one has goes so long after that was caught up.
const SUPERSEDED_AFTER: Duration = Duration::from_secs(15);
/// An automatic index that nobody asked for so long goes.
const UNUSED_AFTER: Duration = Duration::from_secs(72 * 3600);

/// How the indexes of a database are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of memory for one batch of one index.
    pub batch_memory: usize,
    /// Whether they wait until they are told to go on ([`Indexes::start_all`]): for who only wants their definitions.
    pub is_paused: bool,
    /// Custom analyzers of the server, for definitions of all its databases.
    pub server_analyzers: Arc<ServerAnalyzers>,
}

impl Default for Options {
    fn default() -> Options {
        Options { batch_memory: 128 << 20, is_paused: false, server_analyzers: Arc::default() }
    }
}

/// The indexes of a database. Clones are the same.
#[derive(Clone)]
pub struct Indexes {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) database: Database,
    pub(crate) workers: Arc<Workers>,
    pub(crate) options: Options,
    /// The directory of all indexes.
    pub(crate) root: PathBuf,
    set: RwLock<Set>,
    /// Custom analyzers of the database.
    analyzers: RwLock<Arc<Analyzers>>,
    /// Held while the set or the analyzers change.
    changing: Mutex<()>,
    next_id: AtomicU64,
    is_paused: AtomicBool,
    is_closed: AtomicBool,
}

/// The indexes, by name and by what wakes them.
#[derive(Default)]
struct Set {
    by_key: BTreeMap<String, Arc<Index>>,
    /// By lower-case name of a collection.
    by_collection: HashMap<String, Vec<Arc<Index>>>,
    of_all: Vec<Arc<Index>>,
    of_compare_exchange: Vec<Arc<Index>>,
}

impl Set {
    fn add(&mut self, index: Arc<Index>) {
        self.by_key.insert(key(&index.name()), index);
        self.arrange();
    }

    fn remove(&mut self, name: &str) -> Option<Arc<Index>> {
        let removed = self.by_key.remove(&key(name));
        self.arrange();
        removed
    }

    fn arrange(&mut self) {
        self.by_collection.clear();
        self.of_all.clear();
        self.of_compare_exchange.clear();
        for index in self.by_key.values() {
            let all = || index.collections().iter().chain(index.referenced_collections());
            if all().any(|name| name == ALL_DOCUMENTS) {
                self.of_all.push(index.clone());
            } else {
                let keys: HashSet<String> = all().map(|name| key(name)).collect();
                for key in keys {
                    self.by_collection.entry(key).or_default().push(index.clone());
                }
            }
            if index.uses_compare_exchange() {
                self.of_compare_exchange.push(index.clone());
            }
        }
    }
}

fn key(name: &str) -> String {
    ids::lower(name).into_owned()
}

/// Wakes the indexes that a commit concerns.
struct Watcher(Weak<Inner>);

impl CommitWatcher for Watcher {
    fn committed(&self, changed: &Changed) {
        let Some(inner) = self.0.upgrade() else { return };
        let set = inner.set.read();
        if set.by_key.is_empty() {
            return;
        }
        if !changed.collections().is_empty() {
            set.of_all.iter().for_each(Index::wake);
        }
        for collection in changed.collections() {
            if let Some(indexes) = set.by_collection.get(&*ids::lower(collection)) {
                indexes.iter().for_each(Index::wake);
            }
        }
        if changed.has_compare_exchange() {
            set.of_compare_exchange.iter().for_each(Index::wake);
        }
    }
}

/// What became of a definition that was put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// The index's name.
    pub name: String,
    /// The index of the cluster at which it was stored.
    pub raft_index: i64,
}

/// The automatic index for a query.
pub struct AutoMatch {
    /// It.
    pub index: Arc<Index>,
    /// It was made just now, so that it has nothing in it yet.
    pub created: bool,
}

impl Indexes {
    /// Opens the indexes of a database and lets them run. Their files are opened when they are needed. Blocks on the disk.
    ///
    /// Errors: those of reading definitions, and of deleting what is left of deleted indexes.
    pub fn open(database: Database, workers: Arc<Workers>, options: Options) -> Result<Indexes> {
        let root = directory::of_database(database.path());
        let snapshot = database.read()?;
        let records = store::records(&snapshot)?;
        let ids: HashSet<IndexId> = records.iter().map(|record| record.id).collect();
        directory::clean(&root, &ids)?;
        let next_id = ids.iter().max().map_or(1, |id| id + 1);
        let is_paused = options.is_paused;
        let own = Analyzers::stored(&snapshot)?;
        let analyzers = options.server_analyzers.with_own(&own);
        let inner = Arc::new(Inner {
            database: database.clone(),
            workers,
            options,
            root,
            set: RwLock::default(),
            analyzers: RwLock::new(Arc::new(own)),
            changing: Mutex::new(()),
            next_id: AtomicU64::new(next_id),
            is_paused: AtomicBool::new(is_paused),
            is_closed: AtomicBool::new(false),
        });
        {
            let mut set = inner.set.write();
            for record in records {
                let plan = plan_of(&record.content, &analyzers);
                if let Err(error) = &plan {
                    tracing::error!(index = %record.base_name(), %error, "its definition cannot be used");
                }
                let index = Index::new(record, plan, &inner, &snapshot)?;
                set.by_key.insert(key(&index.name()), index);
            }
            set.arrange();
        }
        drop(snapshot);
        database.watch_commits(Some(Arc::new(Watcher(Arc::downgrade(&inner)))));
        let indexes = Indexes { inner };
        // What was written before somebody watched.
        indexes.list().iter().for_each(Index::wake);
        Ok(indexes)
    }

    /// The index of a name, without regard to case.
    pub fn get(&self, name: &str) -> Option<Arc<Index>> {
        self.inner.set.read().by_key.get(&*ids::lower(name)).cloned()
    }

    /// As [`Indexes::get`].
    ///
    /// Error: [`Error::NotFound`].
    pub fn require(&self, name: &str) -> Result<Arc<Index>> {
        self.get(name).ok_or_else(|| Error::NotFound(name.to_owned()))
    }

    /// All indexes, replacements among them, by their names without regard to case.
    pub fn list(&self) -> Vec<Arc<Index>> {
        self.inner.set.read().by_key.values().cloned().collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.inner.set.read().by_key.len()
    }

    /// Whether all indexes are paused.
    pub fn is_paused(&self) -> bool {
        self.inner.is_paused()
    }

    /// Makes or changes static indexes, in one transaction: all of them or none. A definition that differs from the present one in what is
    /// indexed is built beside it and takes its place when it has caught up. Blocks until it is durable.
    ///
    /// Errors: [`Error::InvalidDefinition`], [`Error::Compilation`], [`Error::NotSupported`], [`Error::Locked`]; those of storing.
    pub fn put(&self, definitions: Vec<IndexDefinition>) -> Result<Vec<Put>> {
        // Without the lock: compiling takes its time.
        let analyzers = self.inner.known_analyzers();
        let plan = |definition| Plan::of_static(definition, &analyzers);
        let mut plans: Vec<Plan> = definitions.iter().map(plan).collect::<Result<_>>()?;
        let _changing = self.inner.changing.lock();
        self.inner.check_open()?;
        let now = self.inner.known_analyzers();
        if now != analyzers {
            plans = definitions.iter().map(|one| Plan::of_static(one, &now)).collect::<Result<_>>()?;
        }
        let mut results = Vec::new();
        let mut steps = Vec::new();
        for (definition, plan) in definitions.into_iter().zip(plans) {
            let step = self.inner.step(definition)?;
            steps.push((step, plan));
        }
        let inner = self.inner.clone();
        let jobs: Vec<Step> = steps.iter().map(|(step, _)| step.clone()).collect();
        let stored = self.inner.database.submit(move |transaction: &mut Transaction<'_>| {
            let mut raft_indexes = Vec::new();
            for step in jobs {
                let raft_index = transaction.next_index();
                raft_indexes.push(raft_index);
                if let Some(mut record) = step.record {
                    if step.is_new {
                        record.raft_index = raft_index;
                    }
                    store::put(transaction, &record)?;
                }
                if let Some(old) = step.old_replacement {
                    store::delete(transaction, old)?;
                }
            }
            Ok(raft_indexes)
        });
        let raft_indexes = stored.wait()?;
        let snapshot = inner.database.read()?;
        for ((step, plan), raft_index) in steps.into_iter().zip(raft_indexes) {
            results.push(Put { name: step.name.clone(), raft_index });
            if step.old_replacement.is_some() {
                let old = inner.set.write().remove(&format!("{REPLACEMENT_PREFIX}{}", step.name));
                if let Some(old) = old {
                    old.delete_files();
                }
            }
            let Some(mut record) = step.record else { continue };
            if step.is_new {
                record.raft_index = raft_index;
                let index = Index::new(record, Ok(plan), &inner, &snapshot)?;
                inner.set.write().add(index.clone());
                inner.tell(IndexChangeKind::Added, &index.name());
                index.wake();
            } else if let Some(index) = self.get(&step.name) {
                let before = index.record();
                index.set_record(record.clone());
                if before.lock_mode != record.lock_mode {
                    inner.tell(IndexChangeKind::LockModeChanged, &step.name);
                }
                if before.priority != record.priority {
                    inner.tell(IndexChangeKind::PriorityChanged, &step.name);
                }
                index.wake();
            }
        }
        Ok(results)
    }

    /// Whether putting a definition would build something anew.
    pub fn has_changed(&self, definition: &IndexDefinition) -> bool {
        match self.get(&definition.name).and_then(|index| index.given_definition()) {
            Some(present) => present.difference(definition) != Difference::None,
            None => true,
        }
    }

    /// Deletes an index, or a replacement; whether there was one. Blocks until it is durable and the files are gone.
    ///
    /// Errors: those of storing.
    pub fn delete(&self, name: &str) -> Result<bool> {
        let _changing = self.inner.changing.lock();
        let Some(index) = self.get(name) else { return Ok(false) };
        let replacement = match starts_with_ignoring_case(name, REPLACEMENT_PREFIX) {
            true => None,
            false => self.get(&format!("{REPLACEMENT_PREFIX}{name}")),
        };
        let all: Vec<Arc<Index>> = [Some(index), replacement].into_iter().flatten().collect();
        let ids: Vec<IndexId> = all.iter().map(|index| index.id()).collect();
        let job = move |transaction: &mut Transaction<'_>| {
            transaction.next_index();
            ids.iter().try_for_each(|id| store::delete(transaction, *id))
        };
        self.inner.database.submit(job).wait()?;
        for index in all {
            self.inner.set.write().remove(&index.name());
            index.delete_files();
            self.inner.tell(IndexChangeKind::Removed, &index.name());
        }
        Ok(true)
    }

    /// Builds an index anew from nothing; queries see it empty until it has caught up. Blocks until that is durable.
    ///
    /// Errors: [`Error::NotFound`]; those of storing.
    pub fn reset(&self, name: &str) -> Result<()> {
        let _changing = self.inner.changing.lock();
        self.inner.check_open()?;
        let old = self.require(name)?;
        let mut record = (*old.record()).clone();
        let old_id = record.id;
        record.id = self.inner.take_id();
        record.created = clock::now_ticks();
        if record.state == State::Error {
            record.state = State::Normal;
        }
        let plan = plan_of(&record.content, &self.inner.known_analyzers());
        let stored = record.clone();
        let job = move |transaction: &mut Transaction<'_>| {
            store::delete(transaction, old_id)?;
            store::put(transaction, &stored)
        };
        self.inner.database.submit(job).wait()?;
        let snapshot = self.inner.database.read()?;
        let index = Index::new(record, plan, &self.inner, &snapshot)?;
        drop(snapshot);
        self.inner.set.write().add(index.clone());
        old.delete_files();
        index.wake();
        Ok(())
    }

    // ---- custom analyzers ----

    /// The custom analyzers, by name.
    pub fn analyzers(&self) -> Vec<AnalyzerDefinition> {
        self.inner.analyzers.read().list()
    }

    /// Makes or changes custom analyzers, all of them or none. What is indexed stays as it is; what comes, and queries, go by the new ones. Blocks until it is durable.
    ///
    /// Errors: [`Error::InvalidDefinition`], [`Error::AnalyzerCompilation`]; those of storing.
    pub fn put_analyzers(&self, definitions: Vec<AnalyzerDefinition>) -> Result<()> {
        let _changing = self.inner.changing.lock();
        self.inner.check_open()?;
        let analyzers = self.inner.analyzers.read().with(&definitions)?;
        let names: Vec<String> = definitions.iter().map(|one| one.name.to_lowercase()).collect();
        let job = move |transaction: &mut Transaction<'_>| {
            transaction.next_index();
            analyzers::put(transaction, &definitions)
        };
        self.inner.database.submit(job).wait()?;
        *self.inner.analyzers.write() = Arc::new(analyzers);
        self.reopen_those_of(&names)
    }

    /// Deletes a custom analyzer; whether there was one. Indexes that name it cannot be used until there is one of its name again. Blocks until it is durable.
    ///
    /// Errors: those of storing.
    pub fn delete_analyzer(&self, name: &str) -> Result<bool> {
        let _changing = self.inner.changing.lock();
        self.inner.check_open()?;
        let Some(analyzers) = self.inner.analyzers.read().without(name) else { return Ok(false) };
        let key = name.to_lowercase();
        let names = [key.clone()];
        let job = move |transaction: &mut Transaction<'_>| {
            transaction.next_index();
            analyzers::delete(transaction, &key)
        };
        self.inner.database.submit(job).wait()?;
        *self.inner.analyzers.write() = Arc::new(analyzers);
        self.reopen_those_of(&names)?;
        Ok(true)
    }

    /// Analyzers of the server have changed, those of these names. Blocks on the disk.
    ///
    /// Errors: those of reading.
    pub fn server_analyzers_changed(&self, names: &[String]) -> Result<()> {
        let names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        let _changing = self.inner.changing.lock();
        self.inner.check_open()?;
        self.reopen_those_of(&names)
    }

    /// Opens the indexes anew that name one of these analyzers. The caller holds the lock.
    fn reopen_those_of(&self, names: &[String]) -> Result<()> {
        let analyzers = self.inner.known_analyzers();
        for old in self.list() {
            let Some(definition) = old.given_definition() else { continue };
            if !analyzers::names_any(&definition, names) {
                continue;
            }
            let plan = Plan::of_static(&definition, &analyzers);
            if let Err(error) = &plan {
                tracing::warn!(index = %old.name(), %error, "it cannot be used any more");
            }
            old.close();
            let snapshot = self.inner.database.read()?;
            let index = Index::new((*old.record()).clone(), plan, &self.inner, &snapshot)?;
            drop(snapshot);
            index.go_on_as(&old);
            self.inner.set.write().add(index.clone());
            index.wake();
        }
        Ok(())
    }

    /// Sets the lock mode of static indexes. Blocks until it is durable.
    ///
    /// Errors: [`Error::NotFound`] for any of the names, then nothing happens; [`Error::InvalidOperation`] for an automatic index.
    pub fn set_lock(&self, names: &[String], mode: LockMode) -> Result<()> {
        let _changing = self.inner.changing.lock();
        let indexes = names.iter().map(|name| self.require(name)).collect::<Result<Vec<_>>>()?;
        if indexes.iter().any(|index| index.kind().is_auto()) {
            return Err(Error::InvalidOperation(
                "'Indexes list contains Auto-Indexes. Lock Mode' is not set for Auto-Indexes.".to_owned(),
            ));
        }
        for index in indexes {
            index.change_record(|record| record.lock_mode = mode)?;
            self.inner.tell(IndexChangeKind::LockModeChanged, &index.name());
        }
        Ok(())
    }

    /// Sets the priority of indexes. Blocks until it is durable.
    ///
    /// Errors: [`Error::NotFound`] for any of the names, then nothing happens.
    pub fn set_priority(&self, names: &[String], priority: Priority) -> Result<()> {
        let _changing = self.inner.changing.lock();
        let indexes = names.iter().map(|name| self.require(name)).collect::<Result<Vec<_>>>()?;
        for index in indexes {
            index.change_record(|record| record.priority = priority)?;
            self.inner.tell(IndexChangeKind::PriorityChanged, &index.name());
        }
        Ok(())
    }

    /// Lets an index do nothing until it is enabled, over restarts. Blocks until it is durable.
    ///
    /// Errors: [`Error::NotFound`].
    pub fn disable(&self, name: &str) -> Result<()> {
        let _changing = self.inner.changing.lock();
        let index = self.require(name)?;
        if index.state() != State::Error {
            index.change_record(|record| record.state = State::Disabled)?;
        }
        index.told_to_stop();
        Ok(())
    }

    /// Lets an index go on that was disabled. Blocks until it is durable.
    ///
    /// Errors: [`Error::NotFound`].
    pub fn enable(&self, name: &str) -> Result<()> {
        let _changing = self.inner.changing.lock();
        let index = self.require(name)?;
        if index.state() == State::Disabled {
            index.change_record(|record| record.state = State::Normal)?;
        }
        index.wake();
        Ok(())
    }

    /// Pauses one index until it is started or the database is opened again.
    ///
    /// Errors: [`Error::NotFound`].
    pub fn stop_one(&self, name: &str) -> Result<()> {
        self.require(name)?.pause();
        Ok(())
    }

    /// Lets one index go on.
    ///
    /// Errors: [`Error::NotFound`].
    pub fn start_one(&self, name: &str) -> Result<()> {
        self.require(name)?.resume();
        Ok(())
    }

    /// Pauses the indexes with groups, those without, or with `None` all and those yet to come.
    pub fn stop_all(&self, is_map_reduce: Option<bool>) {
        match is_map_reduce {
            None => {
                self.inner.is_paused.store(true, Ordering::Release);
                self.list().iter().for_each(|index| index.told_to_stop());
            }
            Some(kind) => self.of_kind(kind).for_each(|index| index.pause()),
        }
    }

    /// Lets them go on.
    pub fn start_all(&self, is_map_reduce: Option<bool>) {
        match is_map_reduce {
            None => {
                self.inner.is_paused.store(false, Ordering::Release);
                self.list().iter().for_each(Index::resume);
            }
            Some(kind) => self.of_kind(kind).for_each(|index| index.resume()),
        }
    }

    fn of_kind(&self, is_map_reduce: bool) -> impl Iterator<Item = Arc<Index>> {
        self.list().into_iter().filter(move |index| index.kind().is_map_reduce() == is_map_reduce)
    }

    /// Forgets the errors of these indexes; of all when none is named. Blocks until it is durable.
    ///
    /// Errors: [`Error::NotFound`] for any of the names, then nothing happens.
    pub fn clear_errors(&self, names: &[String]) -> Result<()> {
        let indexes = match names {
            [] => self.list(),
            names => names.iter().map(|name| self.require(name)).collect::<Result<_>>()?,
        };
        indexes.iter().try_for_each(|index| index.clear_errors())
    }

    /// The indexes that take, or load, documents of collections in which something was written after an etag; of the given names when there are any.
    ///
    /// Errors: [`Error::NotFound`] for any of the names; those of reading.
    pub fn concerned_since(&self, etag: Etag, names: &[String]) -> Result<Vec<Arc<Index>>> {
        let candidates = match names {
            [] => self.list(),
            names => names.iter().map(|name| self.require(name)).collect::<Result<_>>()?,
        };
        let snapshot = self.inner.database.read()?;
        let mut concerned = Vec::new();
        for index in candidates {
            for collection in index.collections().iter().chain(index.referenced_collections()) {
                let newest = Newest::of(&snapshot, collection)?;
                if newest.documents.max(newest.tombstones) > etag {
                    concerned.push(index);
                    break;
                }
            }
        }
        Ok(concerned)
    }

    // ---- automatic indexes ----

    /// The automatic index that has what a query asks; made when there is none. Blocks until it is durable then.
    ///
    /// Errors: [`Error::InvalidDefinition`] for a path that is none; [`Error::InvalidOperation`] for too many; those of storing.
    pub fn auto(&self, asked: &AutoDefinition) -> Result<AutoMatch> {
        if let Some(index) = self.find_auto(asked) {
            return Ok(AutoMatch { index, created: false });
        }
        let _changing = self.inner.changing.lock();
        self.inner.check_open()?;
        // Another query may have been first.
        if let Some(index) = self.find_auto(asked) {
            return Ok(AutoMatch { index, created: false });
        }
        let mut definition = asked.clone();
        if definition.collection != ALL_DOCUMENTS {
            definition.collection = self.inner.database.collection_name(&asked.collection).into_owned();
        }
        if let Some(widest) = self.widest_partial(&definition) {
            definition = definition.extended_by(&widest);
        }
        let name = definition.name();
        if let Some(index) = self.get(&name) {
            // Of the same name and yet no match: an index that may not run, say. It is what there is.
            return Ok(AutoMatch { index, created: false });
        }
        self.inner.check_count()?;
        let plan = Plan::of_auto(&definition)?;
        let mut record = Record {
            id: self.inner.take_id(),
            raft_index: 0,
            created: clock::now_ticks(),
            is_replacement: false,
            state: State::Normal,
            lock_mode: LockMode::Unlock,
            priority: Priority::Normal,
            content: Content::Auto(definition),
        };
        let mut stored = record.clone();
        let job = move |transaction: &mut Transaction<'_>| {
            stored.raft_index = transaction.next_index();
            store::put(transaction, &stored)?;
            Ok(stored.raft_index)
        };
        record.raft_index = self.inner.database.submit(job).wait()?;
        let snapshot = self.inner.database.read()?;
        let index = Index::new(record, Ok(plan), &self.inner, &snapshot)?;
        drop(snapshot);
        self.inner.set.write().add(index.clone());
        self.inner.tell(IndexChangeKind::Added, &name);
        index.wake();
        Ok(AutoMatch { index, created: true })
    }

    /// The automatic index that has what is asked, the widest one that can be queried, if there is any.
    pub fn find_auto(&self, asked: &AutoDefinition) -> Option<Arc<Index>> {
        let matching = self.autos().filter(|(index, definition)| {
            index.state() != State::Disabled && definition.matches(asked) == Match::Complete
        });
        let ready = |index: &Index| !index.is_invalid();
        matching
            .max_by_key(|(index, definition)| {
                (ready(index), definition.width(), std::cmp::Reverse(index.id()))
            })
            .map(|(index, _)| index)
    }

    /// Why each automatic index was not taken for a query.
    pub fn explain_auto(&self, asked: &AutoDefinition) -> Vec<Explanation> {
        let reasons = self.autos().filter_map(|(index, definition)| match definition.matches(asked) {
            Match::Complete => None,
            Match::Partial(mismatch) | Match::None(mismatch) => {
                Some(Explanation { index: index.name(), reason: mismatch.0 })
            }
        });
        reasons.collect()
    }

    fn autos(&self) -> impl Iterator<Item = (Arc<Index>, AutoDefinition)> {
        self.list().into_iter().filter_map(|index| {
            let definition = index.auto_definition()?;
            Some((index, definition))
        })
    }

    fn widest_partial(&self, asked: &AutoDefinition) -> Option<AutoDefinition> {
        let partial = self.autos().filter(|(index, definition)| {
            matches!(index.state(), State::Normal | State::Idle)
                && matches!(definition.matches(asked), Match::Partial(_))
        });
        partial
            .max_by_key(|(index, definition)| (definition.width(), std::cmp::Reverse(index.id())))
            .map(|(_, definition)| definition)
    }

    /// Retires automatic indexes: those of which a wider one has all, and those that nobody asks. To be called now and then; blocks on the disk.
    ///
    /// Errors: those of storing.
    pub fn retire_unused(&self) -> Result<()> {
        let now = clock::now_ticks();
        let passed = |since: i64, span: Duration| now.saturating_sub(since) as u128 * 100 > span.as_nanos();
        let autos: Vec<_> = self.autos().collect();
        for (index, definition) in &autos {
            let is_superseded = autos.iter().any(|(other, wider)| {
                other.id() != index.id()
                    && (wider.width() > definition.width()
                        || wider.width() == definition.width() && other.id() < index.id())
                    && wider.matches(definition) == Match::Complete
                    && other.check_queryable().is_ok()
                    && other.is_stale().is_ok_and(|is_stale| !is_stale)
            });
            let since = &index.superseded_since;
            if is_superseded {
                let _ = since.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire);
            } else {
                since.store(0, Ordering::Release);
            }
            let since = since.load(Ordering::Acquire);
            if since > 0 && passed(since, SUPERSEDED_AFTER) || passed(index.last_queried(), UNUSED_AFTER) {
                tracing::info!(index = %index.name(), "retired");
                self.delete(&index.name())?;
            }
        }
        Ok(())
    }

    // ---- the database's life ----

    /// The etag up to which, included, no index needs a tombstone any more, whatever happens. Makes durable what was indexed; blocks on the disk.
    ///
    /// Errors: those of the disk.
    pub fn tombstones_done(&self) -> Result<Etag> {
        // Those of later come from documents that an index may have to forget.
        let snapshot = self.inner.database.read()?;
        let mut done = snapshot.last_etag()?;
        for index in self.list() {
            done = done.min(index.tombstones_done(&snapshot)?);
        }
        Ok(done)
    }

    /// Whether any index has something to do that it may do.
    pub fn is_busy(&self) -> bool {
        self.list()
            .iter()
            .any(|index| index.status() == crate::index::Status::Running && index.is_stale().unwrap_or(false))
    }

    /// Takes no more changes, waits for the batches that run, and closes all files.
    pub fn close(&self) {
        self.inner.is_closed.store(true, Ordering::Release);
        self.inner.database.watch_commits(None);
        let _changing = self.inner.changing.lock();
        let all = std::mem::take(&mut *self.inner.set.write());
        all.by_key.values().for_each(|index| index.close());
    }
}

/// What storing a definition means.
#[derive(Clone)]
struct Step {
    name: String,
    /// What is stored; `None` when nothing changes.
    record: Option<Record>,
    /// The record is of an index that was not there.
    is_new: bool,
    /// A replacement that is not wanted any more.
    old_replacement: Option<IndexId>,
}

impl Inner {
    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Acquire)
    }

    /// Custom analyzers that definitions may name.
    fn known_analyzers(&self) -> Analyzers {
        self.options.server_analyzers.with_own(&self.analyzers.read())
    }

    fn check_open(&self) -> Result<()> {
        match self.is_closed.load(Ordering::Acquire) {
            true => Err(Error::Database(jackdaw_database::Error::Closed(self.database.name().to_owned()))),
            false => Ok(()),
        }
    }

    fn check_count(&self) -> Result<()> {
        match self.set.read().by_key.len() {
            count if count >= INDEXES_MAX => Err(Error::InvalidOperation(format!(
                "the database has {count} indexes, as many as it may; delete some first"
            ))),
            _ => Ok(()),
        }
    }

    fn take_id(&self) -> IndexId {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn find(&self, name: &str) -> Option<Arc<Index>> {
        self.set.read().by_key.get(&*ids::lower(name)).cloned()
    }

    /// What to do with a definition. The caller holds the lock.
    fn step(&self, definition: IndexDefinition) -> Result<Step> {
        let name = definition.name.clone();
        let replacement = self.find(&format!("{REPLACEMENT_PREFIX}{name}"));
        let old_replacement = replacement.as_ref().map(|index| index.id());
        let new = |is_replacement| Record {
            id: self.take_id(),
            raft_index: 0,
            created: clock::now_ticks(),
            is_replacement,
            state: definition.state.unwrap_or_default(),
            lock_mode: definition.lock_mode.unwrap_or_default(),
            priority: definition.priority.unwrap_or_default(),
            content: Content::Static(Box::new(definition.clone())),
        };
        let Some(present) = self.find(&name) else {
            self.check_count()?;
            return Ok(Step { name, record: Some(new(false)), is_new: true, old_replacement: None });
        };
        let before = present.record();
        let Content::Static(old) = &before.content else {
            return Err(Error::InvalidDefinition(format!("'{name}' is an automatic index")));
        };
        let difference = old.difference(&definition);
        if difference != Difference::None {
            match before.lock_mode {
                // Changing the lock alone is not editing.
                LockMode::LockedIgnore if difference == Difference::Content => {
                    return Ok(Step { name, record: None, is_new: false, old_replacement: None });
                }
                LockMode::LockedError if difference == Difference::Content => {
                    return Err(Error::Locked(name));
                }
                _ => {}
            }
        }
        if difference == Difference::Content {
            // One that is being built from this very definition goes on.
            if let Some(other) = replacement.and_then(|index| index.given_definition())
                && other.difference(&definition) != Difference::Content
            {
                return Ok(Step { name, record: None, is_new: false, old_replacement: None });
            }
            self.check_count()?;
            return Ok(Step { name, record: Some(new(true)), is_new: true, old_replacement });
        }
        let mut record = (*before).clone();
        if difference == Difference::Settings {
            record.lock_mode = definition.lock_mode.unwrap_or(record.lock_mode);
            record.priority = definition.priority.unwrap_or(record.priority);
            if let Some(state) = definition.state {
                record.state = state;
            }
            record.content = Content::Static(Box::new(definition));
        }
        let record = (record != *before).then_some(record);
        Ok(Step { name, record, is_new: false, old_replacement })
    }

    pub(crate) fn tell(&self, kind: IndexChangeKind, name: &str) {
        self.database.notifications().publish(Event::Index(IndexChange { kind, name: name.to_owned() }));
    }

    pub(crate) fn batch_completed(&self, index: &Arc<Index>) {
        self.tell(IndexChangeKind::BatchCompleted, &index.name());
    }

    /// An index has all there is: if it is a replacement, it takes its place. `false`: not now, but later.
    pub(crate) fn caught_up(&self, index: &Arc<Index>) -> bool {
        if !index.record().is_replacement {
            return true;
        }
        // Whoever changes the set may be waiting for this very thread to let an index go.
        let Some(_changing) = self.changing.try_lock() else { return false };
        if let Err(error) = self.replace(index) {
            tracing::error!(index = %index.name(), %error, "cannot take the place of the index it replaces");
        }
        true
    }

    fn replace(&self, index: &Arc<Index>) -> Result<()> {
        let replacement_name = index.name();
        match self.find(&replacement_name) {
            Some(current) if Arc::ptr_eq(&current, index) => {}
            _ => return Ok(()),
        }
        let mut record = (*index.record()).clone();
        record.is_replacement = false;
        let old = self.find(&record.base_name());
        let (stored, old_id) = (record.clone(), old.as_ref().map(|old| old.id()));
        let job = move |transaction: &mut Transaction<'_>| {
            if let Some(old) = old_id {
                store::delete(transaction, old)?;
            }
            store::put(transaction, &stored)
        };
        self.database.submit(job).wait()?;
        {
            let mut set = self.set.write();
            set.remove(&replacement_name);
            index.set_record(record);
            set.add(index.clone());
        }
        if let Some(old) = old {
            old.delete_files();
        }
        self.tell(IndexChangeKind::SideBySideReplace, &index.name());
        Ok(())
    }
}

fn plan_of(content: &Content, analyzers: &Analyzers) -> Result<Plan> {
    match content {
        Content::Static(definition) => Plan::of_static(definition, analyzers),
        Content::Auto(definition) => Plan::of_auto(definition),
    }
}
