//! One index: what it is, what it may do, its files, and who waits for it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bumpalo::Bump;
use jackdaw_database::{Database, Etag, Snapshot, Transaction, clock};
use jackdaw_search::{Query, Searcher, Sort, SortBy};
use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::auto::{ALL_DOCUMENTS, AutoDefinition};
use crate::batch::{Batch, Bounds, Done, is_closed};
use crate::definition::{FieldOptions, IndexDefinition, LockMode, Priority, REPLACEMENT_PREFIX, State};
use crate::directory;
use crate::error::{Error, Result};
use crate::files::{Files, failed};
use crate::groups::{Grouped, Groups};
use crate::indexes::{Inner, Options};
use crate::output::Output;
use crate::plan::{IndexType, Plan};
use crate::progress::{Cutoff, Newest, Progress};
use crate::reduce::{self, Grouping};
use crate::statistics::{BatchStatistics, Batches, CollectionStatistics, Lags};
use crate::store::{self, Content, IndexId, IndexingError, Record};
use crate::view::View;
use crate::waiting::Signal;
use crate::workers::{Next, Slot, Work, Workers, Yielding};

/// Documents in one batch, unless the definition says otherwise.
const BATCH_DOCUMENTS: u64 = 256 * 1024;
/// Bytes of documents in one batch.
const BATCH_BYTES: u64 = 128 << 20;
/// How long a batch goes on although others wait.
const SHARE: Duration = Duration::from_millis(250);
/// How long a batch goes on in any case, unless the definition says otherwise.
const BATCH_TIME: Duration = Duration::from_secs(15);
/// After a batch, an index for which nobody waits rests as long as the batch took, so that many small writes share one; and no longer than this.
const REST_MAX: Duration = Duration::from_millis(100);
/// After a failure of the machine (a full disk, say), how long until the next try.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// After the indexes were just being changed, how long until the next try to take another one's place.
const REPLACE_AGAIN: Duration = Duration::from_millis(50);
/// The part of documents that may fail.
const ERROR_RATE_MAX: f64 = 0.15;
/// Nodes and results that are shown of one tree.
const TREE_ITEMS: usize = 1000;
/// Documents counted at most to tell how far behind an index is.
const LAG_MAX: u64 = 100_000;

/// What an index is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It follows what is written.
    Running,
    /// It was told to pause, or failed too often.
    Paused,
    /// It is disabled.
    Disabled,
}

impl Status {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Running => "Running",
            Status::Paused => "Paused",
            Status::Disabled => "Disabled",
        }
    }
}

/// An index.
pub struct Index {
    id: IndexId,
    /// Until the index is closed: who still holds it then must not hold the database.
    database: RwLock<Option<Database>>,
    workers: Arc<Workers>,
    owner: Weak<Inner>,
    options: Options,
    directory: PathBuf,
    /// Changes with lock mode, priority, state and when a replacement takes its place.
    record: RwLock<Arc<Record>>,
    plan: std::result::Result<Plan, Error>,
    slot: Slot,
    /// Open since the first use. Whoever runs a batch or closes holds the lock.
    files: Mutex<Option<Files>>,
    view: RwLock<Option<Arc<View>>>,
    /// Of a map/reduce index, while its files are open.
    groups: RwLock<Option<Arc<Groups>>>,
    is_paused: AtomicBool,
    is_closed: AtomicBool,
    /// Its files are to go when it is closed.
    is_deleted: AtomicBool,
    signal: Signal,
    batches: Batches,
    error_count: AtomicUsize,
    /// Why it takes no queries.
    failure: Mutex<Option<String>>,
    last_queried: AtomicI64,
    /// Milliseconds since `opened` before which it should not run unless somebody waits.
    rest_until_ms: AtomicU64,
    opened: Instant,
    /// When a wider automatic index was found to have all that this one has, in ticks; 0 for not yet.
    pub(crate) superseded_since: AtomicI64,
}

impl Index {
    pub(crate) fn new(
        record: Record,
        plan: std::result::Result<Plan, Error>,
        owner: &Arc<Inner>,
        snapshot: &Snapshot,
    ) -> Result<Arc<Index>> {
        let directory = directory::of_index(&owner.root, record.id, &record.base_name());
        let error_count = store::count_errors(snapshot, record.id)?;
        let failure = match (&plan, record.state) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(_), State::Error) => Some(String::new()),
            _ => None,
        };
        Ok(Arc::new(Index {
            id: record.id,
            database: RwLock::new(Some(owner.database.clone())),
            workers: owner.workers.clone(),
            owner: Arc::downgrade(owner),
            options: owner.options.clone(),
            directory,
            last_queried: AtomicI64::new(clock::now_ticks()),
            record: RwLock::new(Arc::new(record)),
            plan,
            slot: Slot::default(),
            files: Mutex::default(),
            view: RwLock::default(),
            groups: RwLock::default(),
            is_paused: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            is_deleted: AtomicBool::new(false),
            signal: Signal::default(),
            batches: Batches::default(),
            error_count: AtomicUsize::new(error_count),
            failure: Mutex::new(failure),
            rest_until_ms: AtomicU64::new(0),
            opened: Instant::now(),
            superseded_since: AtomicI64::new(0),
        }))
    }

    /// Goes on in the place of another one, which is the same but for how its fields are analyzed.
    pub(crate) fn go_on_as(&self, other: &Index) {
        self.is_paused.store(other.is_paused.load(Ordering::Acquire), Ordering::Release);
        self.last_queried.store(other.last_queried.load(Ordering::Acquire), Ordering::Release);
        if let Some(failure) =
            other.failure.lock().clone().filter(|_| !self.is_faulty() && !other.is_faulty())
        {
            *self.failure.lock() = Some(failure);
        }
    }

    // ---- what it is ----

    /// Its number, which no other index of the database has or had.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its name, with `ReplacementOf/` before it while it is one.
    pub fn name(&self) -> String {
        let record = self.record();
        if record.is_replacement {
            format!("{REPLACEMENT_PREFIX}{}", record.base_name())
        } else {
            record.base_name()
        }
    }

    pub(crate) fn record(&self) -> Arc<Record> {
        self.record.read().clone()
    }

    pub(crate) fn set_record(&self, record: Record) {
        *self.record.write() = Arc::new(record);
    }

    /// What kind of index it is.
    pub fn kind(&self) -> IndexType {
        self.plan.as_ref().map_or(IndexType::Faulty, |plan| plan.kind)
    }

    /// Whether its definition cannot be used by this version, so that it has no files and answers nothing.
    pub fn is_faulty(&self) -> bool {
        self.plan.is_err()
    }

    /// The index of the cluster at which its definition was last changed.
    pub fn raft_index(&self) -> i64 {
        self.record().raft_index
    }

    /// The number under which its results are documents.
    fn output_number(&self) -> i64 {
        let record = self.record();
        match &record.content {
            Content::Static(definition) => definition.reduce_output_index.unwrap_or(record.raft_index),
            Content::Auto(_) => record.raft_index,
        }
    }

    /// When it was made, in ticks.
    pub fn created(&self) -> i64 {
        self.record().created
    }

    /// Its lock mode.
    pub fn lock_mode(&self) -> LockMode {
        self.record().lock_mode
    }

    /// Its definition, as others see it: with settings in force, and for an automatic index the texts that stand for its functions.
    pub fn definition(&self) -> IndexDefinition {
        let record = self.record();
        let mut definition = match &record.content {
            Content::Static(definition) => (**definition).clone(),
            Content::Auto(auto) => IndexDefinition {
                maps: vec![auto.map_text()],
                reduce: auto.reduce_text(),
                fields: auto.search_fields(),
                ..IndexDefinition::default()
            },
        };
        definition.name = self.name();
        definition.lock_mode = Some(record.lock_mode);
        definition.priority = Some(record.priority);
        definition.state = Some(record.state);
        definition
    }

    /// The definition as it was given; `None` for an automatic index.
    pub fn given_definition(&self) -> Option<IndexDefinition> {
        match &self.record().content {
            Content::Static(definition) => Some((**definition).clone()),
            Content::Auto(_) => None,
        }
    }

    /// The definition of an automatic index.
    pub fn auto_definition(&self) -> Option<AutoDefinition> {
        match &self.record().content {
            Content::Static(_) => None,
            Content::Auto(definition) => Some(definition.clone()),
        }
    }

    /// The collections it takes, as its definition names them; only [`ALL_DOCUMENTS`] when it takes all.
    pub fn collections(&self) -> &[String] {
        self.plan.as_ref().map_or(&[], |plan| &plan.collections)
    }

    /// The collections its functions load documents from.
    pub fn referenced_collections(&self) -> &[String] {
        self.plan.as_ref().map_or(&[], |plan| &plan.referenced)
    }

    pub(crate) fn uses_compare_exchange(&self) -> bool {
        self.plan.as_ref().is_ok_and(|plan| plan.uses_compare_exchange)
    }

    /// Whether entries may have this field.
    pub fn has_field(&self, name: &str) -> bool {
        self.plan.as_ref().is_ok_and(|plan| plan.has_dynamic_fields || plan.field_names.contains(name))
    }

    /// Names of the fields that are known beforehand, in the definition's order.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        self.plan.iter().flat_map(|plan| plan.field_names.iter().map(String::as_str))
    }

    /// Whether entries may have other fields than those known beforehand.
    pub fn has_dynamic_fields(&self) -> bool {
        self.plan.as_ref().is_ok_and(|plan| plan.has_dynamic_fields)
    }

    /// The options of a field.
    pub fn field_options(&self, name: &str) -> FieldOptions {
        self.plan.as_ref().map(|plan| plan.fields.options(name).clone()).unwrap_or_default()
    }

    fn database(&self) -> Result<Database> {
        self.database.read().clone().ok_or_else(|| Error::Closed(self.name()))
    }

    // ---- what it may do ----

    /// What it is allowed to do.
    pub fn state(&self) -> State {
        self.record().state
    }

    /// What it is doing.
    pub fn status(&self) -> Status {
        match self.state() {
            _ if self.plan.is_err() => Status::Disabled,
            State::Disabled => Status::Disabled,
            State::Error => Status::Paused,
            State::Normal | State::Idle if self.is_paused() => Status::Paused,
            State::Normal | State::Idle => Status::Running,
        }
    }

    fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Acquire) || self.owner.upgrade().is_none_or(|owner| owner.is_paused())
    }

    fn may_run(&self) -> bool {
        !self.is_closed.load(Ordering::Acquire) && self.status() == Status::Running
    }

    /// Whether it runs, or does when it is resumed.
    fn may_resume(&self) -> bool {
        let is_normal = matches!(self.state(), State::Normal | State::Idle);
        !self.is_closed.load(Ordering::Acquire) && self.plan.is_ok() && is_normal
    }

    /// Whether it takes no queries, since its functions failed too often or cannot be compiled.
    pub fn is_invalid(&self) -> bool {
        self.failure.lock().is_some()
    }

    /// That it takes queries.
    ///
    /// Error: [`Error::Errored`] with the reason.
    pub fn check_queryable(&self) -> Result<()> {
        match &*self.failure.lock() {
            None => Ok(()),
            Some(reason) => {
                Err(Error::Errored(format!("Index '{}' is marked as errored. {reason}", self.name())))
            }
        }
    }

    /// Stops until [`Index::resume`] or until the database is opened anew.
    pub(crate) fn pause(&self) {
        self.is_paused.store(true, Ordering::Release);
        self.signal.tell();
    }

    /// It may have been told to stop: who waits looks again.
    pub(crate) fn told_to_stop(&self) {
        self.signal.tell();
    }

    pub(crate) fn resume(self: &Arc<Self>) {
        self.is_paused.store(false, Ordering::Release);
        self.wake();
    }

    // ---- running ----

    /// There may be something to do. Returns at once.
    pub(crate) fn wake(self: &Arc<Self>) {
        if !self.may_run() {
            return;
        }
        let rest = if self.signal.has_waiting() { None } else { self.rest() };
        let work: Arc<dyn Work> = self.clone();
        self.workers.wake(&work, rest);
    }

    /// As [`Index::wake`], without any rest.
    fn wake_now(self: &Arc<Self>) {
        if self.may_run() {
            let work: Arc<dyn Work> = self.clone();
            self.workers.wake(&work, None);
        }
    }

    fn rest(&self) -> Option<Duration> {
        let until = self.rest_until_ms.load(Ordering::Relaxed);
        let now = self.opened.elapsed().as_millis() as u64;
        (until > now).then(|| Duration::from_millis(until - now))
    }

    /// One state of the index, for queries. Opens its files when that is the first use; blocks on the disk then.
    ///
    /// Errors: [`Error::Closed`]; those of opening.
    pub fn view(&self) -> Result<Arc<View>> {
        if let Some(view) = &*self.view.read() {
            return Ok(view.clone());
        }
        let mut files = self.files.lock();
        self.open_files(&mut files)?;
        self.view.read().clone().ok_or_else(|| Error::Closed(self.name()))
    }

    /// The caller holds the lock.
    fn open_files<'f>(&self, files: &'f mut Option<Files>) -> Result<&'f Files> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::Closed(self.name()));
        }
        if files.is_none() {
            let plan = self.plan.as_ref().map_err(Clone::clone)?;
            let (opened, progress) = Files::open(&self.directory, &self.name(), plan)?;
            let progress = match progress {
                Some(progress) => progress,
                None => self.beginning(plan)?,
            };
            self.show(opened.search.searcher(), progress);
            *self.groups.write() = opened.groups.clone();
            *files = Some(opened);
        }
        files.as_ref().ok_or_else(|| Error::Closed(self.name()))
    }

    /// Nothing was seen yet.
    fn beginning(&self, plan: &Plan) -> Result<Progress> {
        let mut progress = Progress { born: self.database()?.read()?.last_etag()?, ..Progress::default() };
        for collection in &plan.collections {
            progress.collections.entry(collection.clone()).or_default();
        }
        for collection in &plan.referenced {
            progress.references.entry(collection.clone()).or_default();
        }
        Ok(progress)
    }

    fn show(&self, searcher: Searcher, progress: Progress) -> Arc<View> {
        let view = Arc::new(View { id: self.id, searcher, progress: Arc::new(progress) });
        *self.view.write() = Some(view.clone());
        view
    }

    fn run_batch(self: &Arc<Self>, yielding: &Yielding<'_>) -> Result<Next> {
        if !self.signal.has_waiting()
            && let Some(rest) = self.rest()
        {
            return Ok(Next::After(rest));
        }
        let mut files = self.files.lock();
        if files.is_none() && self.may_run() {
            self.open_files(&mut files)?;
            // Who waits for them to be opened has a view now, and must not wait for the batch too.
            MutexGuard::bump(&mut files);
        }
        if !self.may_run() {
            return Ok(Next::Sleep);
        }
        let plan = self.plan.as_ref().map_err(Clone::clone)?;
        let files = self.open_files(&mut files)?;
        let view = self.view.read().clone().ok_or_else(|| Error::Closed(self.name()))?;
        let snapshot = self.database()?.read()?;
        let is_first = view.progress.batches == 0;
        if !is_first
            && !view.is_stale(&snapshot, Cutoff::Now)?
            && !self.is_behind_compare_exchange(&view, &snapshot)?
        {
            drop(snapshot);
            return Ok(self.caught_up());
        }
        let (name, names, begun) = (self.name(), Bump::new(), Instant::now());
        let (database, memory) = (self.database()?, self.options.batch_memory);
        let batch = Batch {
            name: &name,
            plan,
            files,
            snapshot: &snapshot,
            names: &names,
            bounds: Bounds {
                documents: plan.settings.map_batch_size.unwrap_or(BATCH_DOCUMENTS),
                bytes: BATCH_BYTES,
                share: SHARE,
                time: plan.settings.map_timeout.unwrap_or(BATCH_TIME).min(BATCH_TIME * 4),
            },
            yielding,
            is_closing: &|| self.is_closed.load(Ordering::Acquire) || self.is_paused(),
            // A reduce's results are few beside what they are made of.
            writer: files
                .search
                .writer(if plan.grouping.is_some() { memory / 4 } else { memory })
                .map_err(|error| failed(&name, error))?,
            // What the engine of a map/reduce index has is not reduced again, even where the search index lacks it.
            progress: files
                .groups
                .as_deref()
                .and_then(Groups::progress)
                .unwrap_or_else(|| (*view.progress).clone()),
            grouped: files
                .groups
                .as_deref()
                .zip(plan.grouping.as_ref())
                .map(|(groups, grouping)| Grouped::new(groups, grouping, memory / 2)),
            output: plan.output.as_ref().map(|output| Output::new(output, &database, self.output_number())),
            following: None,
            statistics: BatchStatistics { started: clock::now_ticks(), ..BatchStatistics::default() },
            errors: Vec::new(),
            begun,
            ended: None,
            changed: is_first || files.groups.as_ref().is_some_and(|groups| groups.is_ahead(&view.progress)),
        };
        let done = batch.run()?;
        drop(snapshot);
        let Some(Done { progress, statistics, errors, has_more }) = done else {
            return Ok(self.caught_up());
        };
        if !errors.is_empty() {
            let count = store::add_errors(&self.database()?, self.id, errors)?;
            self.error_count.store(count, Ordering::Release);
        }
        self.check_error_rate(&progress, has_more)?;
        let view = self.show(files.search.searcher(), progress);
        let took = begun.elapsed();
        tracing::debug!(index = %name, documents = statistics.inputs, entries = statistics.outputs, ms = statistics.duration_ms, reason = statistics.reason, "batch");
        self.batches.add(statistics);
        // One that has more goes on at once: a rest gathers what is written meanwhile.
        let rest = if has_more { Duration::ZERO } else { self.opened.elapsed() + took.min(REST_MAX) };
        self.rest_until_ms.store(rest.as_millis() as u64, Ordering::Relaxed);
        self.signal.tell();
        if let Some(owner) = self.owner.upgrade() {
            owner.batch_completed(self);
        }
        if has_more {
            return Ok(Next::More);
        }
        let newest = self.database()?.read()?;
        if view.is_stale(&newest, Cutoff::Now)? {
            return Ok(Next::After(Duration::ZERO));
        }
        drop(newest);
        Ok(self.caught_up())
    }

    fn is_behind_compare_exchange(&self, view: &View, snapshot: &Snapshot) -> Result<bool> {
        Ok(self.uses_compare_exchange() && snapshot.last_cluster_index()? > view.progress.compare_exchange)
    }

    fn caught_up(self: &Arc<Self>) -> Next {
        self.signal.tell();
        match self.owner.upgrade() {
            Some(owner) if !owner.caught_up(self) => Next::After(REPLACE_AGAIN),
            _ => Next::Sleep,
        }
    }

    /// Takes the index out of service when too much of what it maps fails.
    fn check_error_rate(self: &Arc<Self>, progress: &Progress, has_more: bool) -> Result<()> {
        let kinds = [
            ("map", progress.map_attempts, progress.map_errors),
            ("map reference", progress.reference_attempts, progress.reference_errors),
            ("reduce", progress.reduce_attempts, progress.reduce_errors),
        ];
        for (kind, attempts, errors) in kinds {
            // A few at the beginning say nothing of those that follow.
            if errors == 0 || has_more && attempts < 100 {
                continue;
            }
            let rate = errors as f64 / attempts.max(1) as f64;
            if rate > ERROR_RATE_MAX {
                let reason = format!(
                    "Index {} is invalid, out of {attempts} {kind} attempts, {errors} has failed. Error rate of {:.2}% exceeds allowed 15% error rate",
                    self.name(),
                    rate * 100.0
                );
                tracing::warn!(index = %self.name(), reason, "out of service");
                self.change_record(|record| record.state = State::Error)?;
                *self.failure.lock() = Some(reason);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Changes what is stored of the index. Blocks until that is durable.
    pub(crate) fn change_record(&self, change: impl FnOnce(&mut Record)) -> Result<()> {
        let mut record = (*self.record()).clone();
        change(&mut record);
        if record == *self.record() {
            return Ok(());
        }
        let stored = record.clone();
        self.database()?
            .submit(move |transaction: &mut Transaction<'_>| store::put(transaction, &stored))
            .wait()?;
        self.set_record(record);
        Ok(())
    }

    // ---- waiting ----

    /// Waits until everything in the database as of now, up to the cut-off, is in the index; or until it is disabled, in error or closed. One that is
    /// paused is waited for: somebody may resume it. Never times out by itself: drop it, or see [`Index::wait_for_blocking`], which gives up on those.
    ///
    /// Returns the view that has it; whether it really has, its staleness tells.
    pub async fn wait_for(self: &Arc<Self>, cutoff: Cutoff) -> Result<Arc<View>> {
        let waiting = self.signal.waiting();
        let mut changes = self.signal.subscribe();
        let cutoff = self.fixed(cutoff)?;
        loop {
            changes.mark_unchanged();
            if let Some(view) = self.reached(cutoff, || !self.may_resume())? {
                drop(waiting);
                return Ok(view);
            }
            self.wake_now();
            if changes.changed().await.is_err() {
                return Err(Error::Closed(self.name()));
            }
        }
    }

    /// As [`Index::wait_for`], on a thread that may block, for so long at most. `None`: the time is over.
    pub fn wait_for_blocking(
        self: &Arc<Self>,
        cutoff: Cutoff,
        timeout: Duration,
    ) -> Result<Option<Arc<View>>> {
        let _waiting = self.signal.waiting();
        let deadline = Instant::now() + timeout.min(Duration::from_secs(365 * 86_400));
        let cutoff = self.fixed(cutoff)?;
        loop {
            let seen = self.signal.count();
            if let Some(view) = self.reached(cutoff, || !self.may_run())? {
                return Ok(Some(view));
            }
            self.wake_now();
            if !self.signal.wait_until(seen, deadline) {
                return Ok(None);
            }
        }
    }

    /// What is written after the wait began is not waited for.
    fn fixed(&self, cutoff: Cutoff) -> Result<Cutoff> {
        Ok(match cutoff {
            Cutoff::Now => Cutoff::Etag(self.database()?.read()?.last_etag()?),
            etag => etag,
        })
    }

    fn reached(&self, cutoff: Cutoff, gives_up: impl FnOnce() -> bool) -> Result<Option<Arc<View>>> {
        let view = self.view()?;
        let snapshot = self.database()?.read()?;
        let is_behind =
            view.is_stale(&snapshot, cutoff)? || self.is_behind_compare_exchange(&view, &snapshot)?;
        Ok((!is_behind || gives_up()).then_some(view))
    }

    /// Whether something that is in the database now is not in the index.
    ///
    /// Errors: those of reading.
    pub fn is_stale(&self) -> Result<bool> {
        Ok(!self.staleness()?.is_empty())
    }

    /// Why it is stale, in words; nothing when it is not.
    ///
    /// Errors: those of reading.
    pub fn staleness(&self) -> Result<Vec<String>> {
        if self.plan.is_err() {
            return Ok(Vec::new());
        }
        let view = self.view()?;
        let snapshot = self.database()?.read()?;
        let mut reasons = view.staleness(&snapshot, Cutoff::Now)?;
        if self.is_behind_compare_exchange(&view, &snapshot)? {
            reasons.push("There are still some compare-exchange references to process.".to_owned());
        }
        Ok(reasons)
    }

    // ---- what it tells ----

    /// A query used it now.
    pub fn note_query(&self) {
        self.last_queried.store(clock::now_ticks(), Ordering::Relaxed);
    }

    /// When a query last used it, in ticks; when it was opened, if none did.
    pub fn last_queried(&self) -> i64 {
        self.last_queried.load(Ordering::Relaxed)
    }

    /// Its errors, the oldest first.
    ///
    /// Errors: those of reading.
    pub fn errors(&self) -> Result<Vec<IndexingError>> {
        store::errors(&self.database()?.read()?, self.id)
    }

    /// How many errors it has.
    pub fn error_count(&self) -> usize {
        self.error_count.load(Ordering::Acquire)
    }

    /// Forgets its errors. Blocks until that is durable.
    pub(crate) fn clear_errors(&self) -> Result<()> {
        let id = self.id;
        self.database()?
            .submit(move |transaction: &mut Transaction<'_>| store::delete_errors(transaction, id))
            .wait()?;
        self.error_count.store(0, Ordering::Release);
        Ok(())
    }

    /// The last batches, the oldest first.
    pub fn batches(&self) -> Vec<BatchStatistics> {
        self.batches.all()
    }

    /// The last batch.
    pub fn last_batch(&self) -> Option<BatchStatistics> {
        self.batches.last()
    }

    /// Documents a second, in the last minute.
    pub fn rate(&self) -> f64 {
        self.batches.rate(clock::now_ticks())
    }

    /// Terms of a field in their order, from the first after `after` on, `count` at most; `id()` is the documents' ids in lower case.
    ///
    /// Errors: those of reading.
    pub fn terms(&self, view: &View, field: &str, after: Option<&str>, count: usize) -> Result<Vec<String>> {
        let wrong = |error| failed(&self.name(), error);
        if field != "id()" {
            return view.searcher.terms(field, after, count).map_err(wrong);
        }
        // Keys are no field's terms; they come in their order.
        let by_key = Sort { by: SortBy::Key, descending: false };
        let mut keys: Vec<String> = Vec::new();
        for hit in view.searcher.stream(&Query::All, &[by_key]).map_err(wrong)? {
            let key = hit.map_err(wrong)?.key;
            if after.is_some_and(|after| *key <= *after) || keys.last() == Some(&key) {
                continue;
            }
            if keys.len() == count {
                break;
            }
            keys.push(key);
        }
        Ok(keys)
    }

    /// What a document contributes to the results of a map/reduce index, as trees of JSON, one for each of its results: the nodes from the leaf that holds it up to the
    /// result of its key. Large nodes are shown in part. `None`: it has no results, or this is no map/reduce index.
    ///
    /// Errors: those of opening and reading.
    pub fn trees_of_document(&self, id: &str) -> Result<Option<Vec<serde_json::Value>>> {
        let Some((groups, grouping)) = self.groups()? else { return Ok(None) };
        let id = jackdaw_database::ids::lower(id);
        let show = &mut |key: &[u8], pack: &[u8]| grouping.show(key, pack);
        Ok(groups.engine.read()?.document_trees(id.as_bytes(), TREE_ITEMS, show)?)
    }

    /// The results of a map/reduce index as the engine has them, in the order of their keys: keys, results, and of how many results of maps they are made.
    ///
    /// Errors: those of opening and reading.
    pub fn stored_results(&self, start: usize, count: usize) -> Result<Vec<serde_json::Value>> {
        let Some((groups, grouping)) = self.groups()? else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        groups.engine.read()?.some_results(start, count, |result| {
            let shown = result.pack.map(|pack| grouping.show(result.key, pack)).transpose()?;
            all.push(serde_json::json!({
                "Key": reduce::show_key(result.key)?,
                "Hash": reduce::name(result.stored),
                "NumberOfEntries": result.count,
                "Result": shown,
            }));
            Ok::<(), reduce::Error>(())
        })?;
        Ok(all)
    }

    /// The map/reduce side; `None` of other indexes.
    fn groups(&self) -> Result<Option<(Arc<Groups>, &Grouping)>> {
        let Some(grouping) = self.plan.as_ref().map_err(Clone::clone)?.grouping.as_ref() else {
            return Ok(None);
        };
        // Opens the files.
        self.view()?;
        let groups = self.groups.read().clone().ok_or_else(|| Error::Closed(self.name()))?;
        Ok(Some((groups, grouping)))
    }

    /// How far behind it is, by collection. Counts up to a bound.
    ///
    /// Errors: those of reading.
    pub fn lags(&self) -> Result<Lags> {
        let view = self.view()?;
        let snapshot = self.database()?.read()?;
        let mut lags = Lags::new();
        for (collection, seen) in &view.progress.collections {
            let newest = Newest::of(&snapshot, collection)?;
            let mut lag = CollectionStatistics {
                last_processed_document: seen.documents,
                last_processed_tombstone: seen.tombstones,
                ..CollectionStatistics::default()
            };
            let count = |counter: &mut u64| {
                *counter += 1;
                Ok(if *counter == LAG_MAX {
                    std::ops::ControlFlow::Break(())
                } else {
                    std::ops::ControlFlow::Continue(())
                })
            };
            let tombstones = seen.tombstones + 1;
            lag.documents = match collection.as_str() {
                ALL_DOCUMENTS => snapshot.document_count()?,
                name => snapshot.collection(name)?.map_or(0, |collection| collection.documents),
            };
            if newest.documents > seen.documents {
                let collection = Some(collection.as_str()).filter(|name| *name != ALL_DOCUMENTS);
                lag.document_lag = snapshot.documents_since(collection, seen.documents + 1, LAG_MAX)?;
            }
            if newest.tombstones > seen.tombstones {
                match collection.as_str() {
                    ALL_DOCUMENTS => {
                        snapshot.tombstones_by_etag(tombstones, |_| count(&mut lag.tombstone_lag))?
                    }
                    name => snapshot
                        .tombstones_of_collection(name, tombstones, |_| count(&mut lag.tombstone_lag))?,
                }
            }
            lags.insert(collection.clone(), lag);
        }
        Ok(lags)
    }

    /// Bytes of its files on disk.
    pub fn size_on_disk(&self) -> u64 {
        directory::size(&self.directory)
    }

    /// Makes durable what was indexed, and tells the etag up to which it needs none of the snapshot's tombstones, whatever happens.
    pub(crate) fn tombstones_done(&self, snapshot: &Snapshot) -> Result<Etag> {
        if self.plan.is_err() {
            // They will not wait for it. Should it be of use again (its analyzer comes back), it begins anew: the lock keeps whoever opens it then apart.
            let _files = self.files.lock();
            if self.is_closed.load(Ordering::Acquire) {
                return Err(Error::Closed(self.name()));
            }
            directory::delete(&self.directory)?;
            return Ok(Etag::MAX);
        }
        let mut files = self.files.lock();
        let files = self.open_files(&mut files)?;
        let view = self.view.read().clone().ok_or_else(|| Error::Closed(self.name()))?;
        files.search.sync().map_err(|error| failed(&self.name(), error))?;
        if let Some(groups) = &files.groups {
            groups.settle()?;
        }
        view.progress.tombstones_done(snapshot)
    }

    // ---- the end ----

    /// Takes no more work, waits for the batch that runs, and closes the files.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let files = self.files.lock().take();
        *self.view.write() = None;
        *self.groups.write() = None;
        *self.database.write() = None;
        self.signal.tell();
        if let Some(files) = files {
            let name = self.name();
            if let Err(error) = files.close(&name) {
                tracing::error!(index = %name, %error, "closing failed; what is missing is indexed again");
            }
        }
    }

    /// Closes it and deletes its files. The record is gone already.
    pub(crate) fn delete_files(&self) {
        self.is_deleted.store(true, Ordering::Release);
        self.close();
        if let Err(error) = directory::delete(&self.directory) {
            tracing::warn!(index = %self.name(), %error, "files of a deleted index stay until the database is opened again");
        }
    }
}

impl Work for Index {
    fn run(self: Arc<Self>, yielding: &Yielding<'_>) -> Next {
        match self.run_batch(yielding) {
            Ok(next) => next,
            Err(error) if is_closed(&error) => Next::Sleep,
            Err(error) => {
                tracing::error!(index = %self.name(), %error, "a batch failed; it will be tried again");
                Next::After(RETRY_AFTER)
            }
        }
    }

    fn priority(&self) -> Priority {
        self.record().priority
    }

    fn slot(&self) -> &Slot {
        &self.slot
    }

    fn panicked(&self, message: &str) {
        tracing::error!(index = %self.name(), message, "a batch panicked");
        // Nothing of it was committed, and it would only happen again.
        *self.failure.lock() = Some(format!("Indexing failed unexpectedly: {message}"));
        self.is_paused.store(true, Ordering::Release);
        self.signal.tell();
    }
}
