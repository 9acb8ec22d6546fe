//! The engine: batches applied to an environment, each in one transaction.
//!
//! `apply` goes through the documents of the batch in the order of their ids, compares what they have with what was mapped, and writes their
//! records; what changed is then sorted by key, and key by key (many at a time, on as many threads as there are reductions) the nodes are
//! worked out on the snapshot from before the transaction, and written. All access is so in the order of the trees.
//!
//! Memory is bounded by the batch: what it holds, some tens of bytes for each change, and the pages that the transaction changes, which are
//! at most some for each document and each key. Whoever fills the batch ends it by [`Batch::bytes`] and [`Batch::keys`].

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use jackdaw_storage::{Environment, ReadTransaction, WriteTransaction};
use parking_lot::Mutex;

use super::batch::Batch;
use super::bytes::put_slice;
use super::error::{Error, Result};
use super::node::Limits;
use super::reduction::{Reducer, Reduction};
use super::snapshot::Snapshot;
use super::source::{self, Had, Place};
use super::state::{NEW, State, Trees};
use super::update::{Change, Cost, Update, Updater};

/// Keys that a thread works out before they are written: enough to spread the cost of handing over, few enough to bound the memory.
const KEYS_A_CHUNK: usize = 64;

/// Failures of the reduce function that are told one by one for a batch; the others are counted.
const FAILURES_MAX: usize = 500;

/// How the engine works. The sizes may change between openings: nodes keep theirs until they are changed.
#[derive(Clone, Debug)]
pub struct Options {
    /// The size that nodes are cut at, in bytes. Default 4000: two share a page.
    pub node_bytes_max: usize,
    /// The most results, or children, in a node. Default 512.
    pub node_items_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { node_bytes_max: 4000, node_items_max: 512 }
    }
}

/// Where the followers of the results are: all changes up to a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(pub(super) u64);

/// What applying a batch did.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// Documents in the batch, each once.
    pub documents: u64,
    /// Results that were there already, unchanged.
    pub results_same: u64,
    /// Results that took the place of another with the same key.
    pub results_replaced: u64,
    /// Results that are new.
    pub results_added: u64,
    /// Results that are no more.
    pub results_removed: u64,
    /// Keys among whose results something changed.
    pub keys: u64,
    /// Keys whose own result changed.
    pub keys_changed: u64,
    /// The keys for which the reduce function failed, with what it said; at most 500.
    pub failures: Vec<Failure>,
    /// How many keys failed.
    pub failures_count: u64,
    /// What it took.
    pub cost: Cost,
}

/// A key for which the reduce function failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The key; of a long one the stored form.
    pub key: Vec<u8>,
    /// What the function said.
    pub message: String,
}

/// The map/reduce state of an index, in an environment that may hold other things under other names. See the module.
pub struct Engine {
    environment: Environment,
    limits: Limits,
    state: Mutex<State>,
}

impl Engine {
    /// Opens what the environment holds, or begins with nothing.
    ///
    /// Errors: [`Error::Version`], [`Error::Damaged`], [`Error::Storage`].
    pub fn open(environment: Environment, options: &Options) -> Result<Engine> {
        let state = State::open(&environment)?;
        let limits = Limits {
            // A node must hold some items, or trees would not get narrower from level to level.
            bytes_max: options.node_bytes_max.max(64),
            items_max: options.node_items_max.max(4),
        };
        Ok(Engine { environment, limits, state: Mutex::new(state) })
    }

    /// The position handed in with the last batch; empty when there was none.
    pub fn position(&self) -> Result<Vec<u8>> {
        Ok(self.read()?.position()?.to_vec())
    }

    /// The results as they are now. Later batches do not change what it shows.
    pub fn read(&self) -> Result<Snapshot> {
        Ok(Snapshot::new(self.environment.read()?))
    }

    /// Applies a batch and records the position with it, durably when it returns; `position` is told what was done. Keys are reduced on so many threads at
    /// most.
    ///
    /// Errors: [`Error::NotFresh`] when a document was wrongly said to be new; that of `position`; those of the environment, among them that an id is too long. Nothing
    /// of the batch is applied then.
    pub fn apply(
        &self,
        batch: &mut Batch,
        position: &mut dyn FnMut(&Applied) -> Result<Vec<u8>>,
        reducer: &dyn Reducer,
        threads: usize,
    ) -> Result<Applied> {
        let mut state = self.state.lock();
        let mut next = state.clone();
        let mut applied = Applied::default();
        let snapshot = self.environment.read()?;
        let mut transaction = self.environment.write()?;
        let changes = record_sources(&snapshot, &mut transaction, batch, &mut next, &mut applied)?;
        let mut changed = Vec::new();
        let next_number = AtomicU64::new(next.next_number);
        self.apply_keys(&snapshot, &by_key(batch, changes), reducer, threads, &next_number, &mut |keys| {
            write_keys(&mut transaction, keys, &mut applied, &mut changed)
        })?;
        next.next_number = next_number.into_inner();
        next.batch += 1;
        next.results = (next.results + applied.results_added).saturating_sub(applied.results_removed);
        next.write(&mut transaction, &position(&applied)?, &changed)?;
        transaction.commit()?;
        *state = next;
        Ok(applied)
    }

    /// Notes that the results up to a mark were followed, so that their keys need not be kept. Durable with the next batch, or with
    /// [`Engine::settle`]; until then, after a crash, they are told again.
    pub fn acknowledge(&self, mark: Mark) {
        let mut state = self.state.lock();
        state.acknowledged = state.acknowledged.max(mark.0);
    }

    /// Makes what was acknowledged durable. For an index that is up to date: nothing is then told again at the next start.
    pub fn settle(&self) -> Result<()> {
        let mut state = self.state.lock();
        if state.acknowledged > state.forgotten {
            let mut next = state.clone();
            let mut transaction = self.environment.write()?;
            next.forget(&mut transaction)?;
            transaction.commit()?;
            *state = next;
        }
        Ok(())
    }

    /// Flushes everything and lets the environment go. Errors: snapshots that are still open; those of the environment.
    pub fn close(self) -> Result<()> {
        Ok(self.environment.close()?)
    }

    /// Works out all keys that changed and hands them over, some at a time, in about the order of the keys.
    fn apply_keys(
        &self,
        snapshot: &ReadTransaction,
        keys: &ByKey<'_>,
        reducer: &dyn Reducer,
        threads: usize,
        next_number: &AtomicU64,
        write: &mut dyn FnMut(WorkedOut<'_>) -> Result<()>,
    ) -> Result<()> {
        let chunks: Vec<_> = keys.order.chunks(KEYS_A_CHUNK).collect();
        let threads = threads.min(chunks.len());
        if threads <= 1 {
            let mut reduction = reducer.reduction();
            let mut worker = Worker::new(self.limits, snapshot, &mut *reduction, next_number)?;
            for chunk in chunks {
                write(worker.work_out(keys, chunk)?)?;
            }
            return Ok(());
        }
        let taken = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::sync_channel(2 * threads);
        thread::scope(|scope| {
            for _ in 0..threads {
                let (sender, chunks, taken) = (sender.clone(), &chunks, &taken);
                scope.spawn(move || {
                    let work = || -> Result<()> {
                        let snapshot = self.environment.read()?;
                        let mut reduction = reducer.reduction();
                        let mut worker = Worker::new(self.limits, &snapshot, &mut *reduction, next_number)?;
                        while let Some(chunk) = chunks.get(taken.fetch_add(1, Ordering::Relaxed)) {
                            let worked = worker.work_out(keys, chunk)?;
                            if sender.send(Ok(worked)).is_err() {
                                break; // writing failed: nobody listens any more
                            }
                        }
                        Ok(())
                    };
                    if let Err(error) = work() {
                        let _ = sender.send(Err(error));
                    }
                });
            }
            drop(sender);
            // The receiver goes with this closure: threads that still work end at their next send.
            receiver.into_iter().try_for_each(|worked| write(worked?))
        })
    }
}

/// A change of a result, in a batch.
struct Changed {
    key: u32,
    entry: u64,
    /// The result's number in the batch; `None`: it is no more.
    result: Option<usize>,
}

/// Compares what the documents of a batch have with what was mapped, writes their records, and tells what changes.
fn record_sources(
    snapshot: &ReadTransaction,
    transaction: &mut WriteTransaction,
    batch: &mut Batch,
    state: &mut State,
    applied: &mut Applied,
) -> Result<Vec<Changed>> {
    let before = snapshot.tree(Trees::SOURCES)?;
    let mut sources = transaction.tree_mut(Trees::SOURCES)?;
    let mut changes = Vec::with_capacity(batch.results());
    let mut record = Vec::new();
    for at in batch.sources_in_order() {
        applied.documents += 1;
        let (id, mapped, fresh) = batch.source(at);
        let old = if fresh { None } else { before.get(id)? };
        let damaged = || {
            Error::damaged(
                format!("the record of document `{}`", String::from_utf8_lossy(id)),
                "it does not read",
            )
        };
        let mut had = source::read(old.unwrap_or_default()).ok_or_else(damaged)?;
        let keys = batch.key_table().slots();
        let stored = |key: u32| &batch.arena()[keys[key as usize].stored.clone()];
        let places = source::places(&mut had, &batch.mapped()[mapped.clone()], stored);

        record.clear();
        let mut same = 0;
        for (place, number) in places.into_iter().zip(mapped.clone()) {
            let result = &batch.mapped()[number];
            let entry = match place {
                Place::Same(entry) => {
                    same += 1;
                    entry
                }
                Place::Instead(entry) => {
                    applied.results_replaced += 1;
                    changes.push(Changed { key: result.key, entry, result: Some(number) });
                    entry
                }
                Place::New => {
                    applied.results_added += 1;
                    let entry = state.next_entry;
                    state.next_entry += 1;
                    changes.push(Changed { key: result.key, entry, result: Some(number) });
                    entry
                }
            };
            Had { entry, hash: result.hash, key: stored(result.key) }.append_to(&mut record);
        }
        applied.results_same += same;
        applied.results_removed += had.len() as u64;
        let unchanged = same == mapped.len() as u64 && had.is_empty();
        if !unchanged {
            if record.is_empty() {
                sources.delete(id)?;
            } else if !fresh {
                sources.put(id, &record)?;
            } else if !sources.insert(id, &record)? {
                return Err(Error::NotFresh(String::from_utf8_lossy(id).into_owned()));
            }
        }
        for gone in &had {
            let key = batch.intern(gone.key);
            changes.push(Changed { key, entry: gone.entry, result: None });
        }
    }
    Ok(changes)
}

/// The changes of a batch by key.
struct ByKey<'b> {
    batch: &'b Batch,
    /// The numbers of the keys that have changes, in the order of the keys.
    order: Vec<u32>,
    /// Where the changes of each key number begin in `changes`, and, behind the last, where they end.
    starts: Vec<usize>,
    changes: Vec<Changed>,
}

impl ByKey<'_> {
    fn of(&self, key: u32) -> &[Changed] {
        let key = key as usize;
        &self.changes[self.starts[key]..self.starts[key + 1]]
    }
}

fn by_key(batch: &Batch, mut changes: Vec<Changed>) -> ByKey<'_> {
    let slots = batch.key_table().slots();
    // New entries are in order already, those that were there before mostly are: the sort sees long runs.
    changes.sort_by_key(|change| (change.key, change.entry));
    let mut starts = vec![0; slots.len() + 1];
    for change in &changes {
        starts[change.key as usize + 1] += 1;
    }
    let mut order = Vec::new();
    for key in 0..slots.len() {
        if starts[key + 1] > 0 {
            order.push(key as u32);
        }
        starts[key + 1] += starts[key];
    }
    let arena = batch.arena();
    order.sort_unstable_by_key(|key| &arena[slots[*key as usize].stored.clone()]);
    ByKey { batch, order, starts, changes }
}

/// Keys with what becomes of them.
type WorkedOut<'b> = (Vec<(&'b [u8], Update)>, Cost);

/// Works out keys on one thread.
struct Worker<'s, 'r> {
    updater: Updater<'s, 'r>,
    keys: jackdaw_storage::Tree<'s>,
}

impl<'s, 'r> Worker<'s, 'r> {
    fn new(
        limits: Limits,
        snapshot: &'s ReadTransaction,
        reduction: &'r mut dyn Reduction,
        next_number: &'r AtomicU64,
    ) -> Result<Worker<'s, 'r>> {
        let nodes = snapshot.tree(Trees::NODES)?;
        let updater = Updater { nodes, reduction, limits, next_number, cost: Cost::default() };
        Ok(Worker { updater, keys: snapshot.tree(Trees::KEYS)? })
    }

    fn work_out<'b>(&mut self, keys: &ByKey<'b>, chunk: &[u32]) -> Result<WorkedOut<'b>> {
        let batch = keys.batch;
        let (arena, slots) = (batch.arena(), batch.key_table().slots());
        let mut worked = Vec::with_capacity(chunk.len());
        let mut changes = Vec::new();
        for key in chunk {
            changes.clear();
            changes.extend(keys.of(*key).iter().map(|change| Change {
                entry: change.entry,
                pack: change.result.map(|result| &arena[batch.mapped()[result].pack.clone()]),
            }));
            let slot = &slots[*key as usize];
            let stored = &arena[slot.stored.clone()];
            let full = slot.full.clone().map(|full| &arena[full]);
            worked.push((stored, self.updater.update(stored, full, self.keys.get(stored)?, &changes)?));
        }
        Ok((worked, std::mem::take(&mut self.updater.cost)))
    }
}

/// Writes keys and their nodes, and lists those whose results changed.
fn write_keys(
    transaction: &mut WriteTransaction,
    (worked, cost): WorkedOut<'_>,
    applied: &mut Applied,
    changed: &mut Vec<u8>,
) -> Result<()> {
    applied.cost.add(cost);
    let mut nodes = Vec::new();
    let mut keys = transaction.tree_mut(Trees::KEYS)?;
    for (key, update) in worked {
        applied.keys += 1;
        match &update.record {
            Some(record) => {
                keys.put(key, record)?;
            }
            None if update.existed => {
                keys.delete(key)?;
            }
            None => {}
        }
        if update.result_changed {
            applied.keys_changed += 1;
            changed.push(if update.existed { 0 } else { NEW });
            put_slice(changed, key);
        }
        if let Some(failure) = update.failure {
            applied.failures_count += 1;
            if applied.failures.len() < FAILURES_MAX {
                applied.failures.push(Failure { key: key.to_vec(), message: failure.0 });
            }
        }
        nodes.extend(update.nodes);
    }
    drop(keys);
    if nodes.is_empty() {
        return Ok(());
    }
    nodes.sort_unstable_by_key(|node| node.key);
    let mut tree = transaction.tree_mut(Trees::NODES)?;
    for node in nodes {
        match node.bytes {
            Some(bytes) => tree.put(&node.key, &bytes)?,
            None => tree.delete(&node.key)?,
        };
    }
    Ok(())
}
