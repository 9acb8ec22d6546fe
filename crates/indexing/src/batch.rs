//! One batch of an index: what changed since the last one, mapped and written to the search index with how far that is, atomically.
//!
//! A batch reads one snapshot. In it, each collection's tombstones and documents are walked by etag from where the last batch ended; then, when
//! all of them are done, the documents that load others are mapped again for those that changed. It ends when there is nothing left, when it is
//! large enough in documents or bytes, when it took long enough and others wait for its thread, or when the index closes.
//!
//! What makes it exact:
//! - An id has a document or a tombstone in the snapshot, each with one etag, so that each is taken once and their order does not matter. A document that came
//!   back in another collection leaves its tombstone in the old one, which is passed over where the index takes both.
//! - A document that was last written before the index was made cannot be in it already when it is taken, so that nothing is deleted for it.
//! - A document is mapped with the snapshot's state of all that it loads. A change of those has a greater etag than what the index has seen of
//!   their collection, and is found from the references noted.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use bumpalo::Bump;
use jackdaw_database::{Order, Snapshot, StoredDocument, clock, ids};
use jackdaw_functions::{Input, RuntimeError};
use jackdaw_search::Writer;

use crate::auto::ALL_DOCUMENTS;
use crate::error::{Error, Result};
use crate::files::{Files, failed};
use crate::groups::{Following, Grouped};
use crate::map::{BatchHost, Runner};
use crate::output::Output;
use crate::plan::Plan;
use crate::progress::{Newest, Progress};
use crate::reduce;
use crate::references::{Changes, Kind};
use crate::statistics::BatchStatistics;
use crate::store::{ERRORS_KEPT, IndexingError};
use crate::workers::Yielding;

/// Bounds of one batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) documents: u64,
    pub(crate) bytes: u64,
    /// After this, a batch ends when others wait.
    pub(crate) share: Duration,
    /// After this, it ends in any case, so that what it did is visible and its snapshot is let go.
    pub(crate) time: Duration,
}

/// Looks at the clock after so many documents.
const CHECK_EVERY: u64 = 32;

/// What a batch did.
pub(crate) struct Done {
    pub(crate) progress: Progress,
    pub(crate) statistics: BatchStatistics,
    /// Errors by the etags of their documents.
    pub(crate) errors: Vec<(i64, IndexingError)>,
    /// There is more in the snapshot.
    pub(crate) has_more: bool,
}

/// A batch while it runs.
pub(crate) struct Batch<'b> {
    pub(crate) name: &'b str,
    pub(crate) plan: &'b Plan,
    pub(crate) files: &'b Files,
    pub(crate) snapshot: &'b Snapshot,
    pub(crate) names: &'b Bump,
    pub(crate) bounds: Bounds,
    pub(crate) yielding: &'b Yielding<'b>,
    pub(crate) is_closing: &'b dyn Fn() -> bool,
    pub(crate) writer: Writer,
    /// Of a map/reduce index: results go here and not to the writer.
    pub(crate) grouped: Option<Grouped<'b>>,
    /// Where the results go as documents.
    pub(crate) output: Option<Output<'b>>,
    pub(crate) progress: Progress,
    pub(crate) statistics: BatchStatistics,
    pub(crate) errors: Vec<(i64, IndexingError)>,
    pub(crate) begun: Instant,
    pub(crate) ended: Option<&'static str>,
    pub(crate) changed: bool,
    /// What the writer was given of a map/reduce index.
    pub(crate) following: Option<Following>,
}

/// Why a document is mapped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    Written,
    ReferenceChanged,
}

impl<'b> Batch<'b> {
    /// Runs it and commits what it did. `None`: there was nothing to do.
    pub(crate) fn run(mut self) -> Result<Option<Done>> {
        let mut runner = Runner::new(&self.plan.maps, self.plan.paths.as_ref(), &self.plan.fields);
        let mut host = BatchHost::new(self.snapshot, self.names);
        let mut changes = self.files.references.as_ref().map(|references| references.begin()).transpose()?;
        let mut mapped = HashSet::new();
        if self.progress.batches == 0 {
            self.begin_references()?;
        }
        // All of these come first: a document may have come back in another collection.
        for collection in &self.plan.collections {
            self.tombstones(collection, changes.as_mut())?;
        }
        for collection in &self.plan.collections {
            self.documents(collection, &mut runner, &mut host, changes.as_mut(), &mut mapped)?;
        }
        if self.ended.is_none() {
            self.references(&mut runner, &mut host, changes.as_mut(), &mut mapped)?;
        }
        if self.ended.is_none() {
            self.compare_exchange(&mut runner, &mut host, changes.as_mut(), &mut mapped)?;
        }
        if !self.changed {
            return Ok(None);
        }
        if let Some(changes) = changes {
            changes.commit()?;
        }
        self.statistics.map_ms = ms_since(self.begun);
        let commit = Instant::now();
        self.progress.batches += 1;
        self.progress.last_indexed = clock::now_ticks();
        if let Some(grouped) = self.grouped.take() {
            self.apply_groups(grouped)?;
        }
        let payload = self.progress.to_bytes()?;
        self.writer.commit(&payload).map_err(|error| failed(self.name, error))?;
        if let (Some(groups), Some(following)) = (&self.files.groups, self.following.take()) {
            groups.followed(self.name, &following, &self.files.search)?;
        }
        self.statistics.commit_ms = ms_since(commit);
        self.statistics.completed = clock::now_ticks();
        self.statistics.duration_ms = ms_since(self.begun);
        self.statistics.reason = self.ended.unwrap_or("No more documents to index");
        let has_more = self.ended.is_some();
        Ok(Some(Done { progress: self.progress, statistics: self.statistics, errors: self.errors, has_more }))
    }

    /// Reduces what was mapped, and gives the writer the results that changed.
    fn apply_groups(&mut self, mut grouped: Grouped<'_>) -> Result<()> {
        let threads = match self.yielding.others_wait() {
            true => 1,
            false => std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(4),
        };
        let (applied, progress) = grouped.apply(threads, &self.progress)?;
        self.progress = progress;
        for failure in &applied.failures {
            let key = reduce::show_key(&failure.key).map_or_else(|_| String::new(), |key| key.to_string());
            let error = format!(
                "Failed to execute reduce function of index '{}'. The result of the key is removed from the index as it would be incorrect. Exception: {}",
                self.name, failure.message
            );
            self.note_reduce_error(Some(format!("Reduce key: {key}")), error);
        }
        let mut output = self.output.take();
        if let Some(output) = output.as_mut().filter(|_| self.progress.batches == 1) {
            output.clear()?;
        }
        let (name, fields) = (self.name, &self.plan.fields);
        let (groups, grouping) = (grouped.groups, grouped.grouping);
        let following = groups.follow(name, grouping, fields, &mut self.writer, output.as_mut())?;
        for problem in output.map(|output| output.problems).unwrap_or_default() {
            let error = format!(
                "Failed to build document ID based on provided pattern for output to collection references. {problem}"
            );
            self.note_reduce_error(None, error);
        }
        self.statistics.outputs = following.entries;
        self.following = Some(following);
        Ok(())
    }

    /// Documents are mapped with what there is now: only what changes later is of interest.
    fn begin_references(&mut self) -> Result<()> {
        for collection in &self.plan.referenced {
            let newest = Newest::of(self.snapshot, collection)?;
            let seen = self.progress.references.entry(collection.clone()).or_default();
            (seen.documents, seen.tombstones) = (newest.documents, newest.tombstones);
        }
        self.progress.compare_exchange = self.snapshot.last_cluster_index()?;
        Ok(())
    }

    /// Counts one more document, and breaks when the batch is to end.
    fn count(&mut self, bytes: usize) -> ControlFlow<()> {
        self.statistics.inputs += 1;
        self.statistics.bytes += bytes as u64;
        self.changed = true;
        let is_full = self.grouped.as_ref().is_some_and(Grouped::is_full);
        let reason = if is_full {
            "The batch has as many results as it may"
        } else if self.statistics.inputs >= self.bounds.documents {
            "The batch has as many documents as it may"
        } else if self.statistics.bytes >= self.bounds.bytes {
            "The batch has as many bytes as it may"
        } else if self.statistics.inputs.is_multiple_of(CHECK_EVERY) {
            let took = self.begun.elapsed();
            if (self.is_closing)() {
                "The index is being closed"
            } else if took >= self.bounds.time {
                "The batch took as long as it may"
            } else if took >= self.bounds.share && self.yielding.others_wait() {
                "Other indexes wait for the thread"
            } else {
                return ControlFlow::Continue(());
            }
        } else {
            return ControlFlow::Continue(());
        };
        self.ended = Some(reason);
        ControlFlow::Break(())
    }

    fn tombstones(&mut self, collection: &str, mut changes: Option<&mut Changes>) -> Result<()> {
        if self.ended.is_some() {
            return Ok(());
        }
        let from = self.progress.collections.entry(collection.to_owned()).or_default().tombstones + 1;
        let snapshot = self.snapshot;
        let mut last = None;
        let mut failure = Ok(());
        let mut each = |batch: &mut Batch<'b>, id: &str, etag: i64| {
            last = Some(etag);
            failure = batch.forget_unless_back(id, changes.as_deref_mut());
            if failure.is_err() { ControlFlow::Break(()) } else { batch.count(0) }
        };
        match collection {
            ALL_DOCUMENTS => {
                snapshot.tombstones_by_etag(from, |tombstone| Ok(each(self, tombstone.id, tombstone.etag)))?
            }
            name => snapshot.tombstones_of_collection(name, from, |tombstone| {
                Ok(each(self, tombstone.id, tombstone.etag))
            })?,
        }
        failure?;
        if let (Some(last), Some(seen)) = (last, self.progress.collections.get_mut(collection)) {
            seen.tombstones = last;
        }
        Ok(())
    }

    /// A document was deleted. It may be back in another collection: when the index takes that one, the document is mapped as it is now, maybe before its
    /// tombstone is seen, and that must stand.
    fn forget_unless_back(&mut self, id: &str, changes: Option<&mut Changes>) -> Result<()> {
        if let Some(document) = self.snapshot.document(id)? {
            let collection = self.snapshot.collection_of(&document);
            let takes = |name: &String| name == ALL_DOCUMENTS || name.eq_ignore_ascii_case(&collection);
            if self.plan.collections.iter().any(takes) {
                return Ok(());
            }
        }
        self.forget(&ids::lower(id), changes)
    }

    /// A document is gone.
    fn forget(&mut self, key: &str, changes: Option<&mut Changes>) -> Result<()> {
        match &mut self.grouped {
            Some(grouped) => grouped.forget(key),
            None => self.writer.delete(key).map_err(|error| failed(self.name, error))?,
        }
        if let Some(changes) = changes {
            changes.set(key, &Default::default())?;
        }
        Ok(())
    }

    fn documents(
        &mut self,
        collection: &str,
        runner: &mut Runner<'_>,
        host: &mut BatchHost<'b>,
        mut changes: Option<&mut Changes>,
        mapped: &mut HashSet<String>,
    ) -> Result<()> {
        if self.ended.is_some() {
            return Ok(());
        }
        let from = self.progress.collections.entry(collection.to_owned()).or_default().documents + 1;
        let snapshot = self.snapshot;
        let mut last = None;
        let mut failure = Ok(());
        let mut each = |document: StoredDocument<'b>| {
            last = Some(document.etag);
            failure = self.map(&document, Reason::Written, runner, host, changes.as_deref_mut(), mapped);
            Ok(if failure.is_err() {
                ControlFlow::Break(())
            } else {
                self.count(document.document.as_bytes().len())
            })
        };
        match collection {
            ALL_DOCUMENTS => snapshot.documents_by_etag(from, Order::Ascending, &mut each)?,
            name => snapshot.documents_of_collection(name, from, Order::Ascending, &mut each)?,
        }
        failure?;
        if let (Some(last), Some(seen)) = (last, self.progress.collections.get_mut(collection)) {
            seen.documents = last;
        }
        Ok(())
    }

    /// Maps one document. What its functions do wrong is noted; errors are those of the machine.
    fn map(
        &mut self,
        document: &StoredDocument<'b>,
        reason: Reason,
        runner: &mut Runner<'_>,
        host: &mut BatchHost<'b>,
        changes: Option<&mut Changes>,
        mapped: &mut HashSet<String>,
    ) -> Result<()> {
        let key = ids::lower(document.id);
        let collection = self.snapshot.collection_of(document);
        let input = Input {
            document: document.document,
            id: document.id,
            collection: host.name(&collection),
            last_modified: document.last_modified,
            change_vector: if self.plan.needs_change_vector {
                self.names.alloc_str(&document.change_vector.to_string())
            } else {
                ""
            },
        };
        let is_new = reason == Reason::Written && document.etag <= self.progress.born;
        if !is_new && self.grouped.is_none() {
            self.writer.delete(&key).map_err(|error| failed(self.name, error))?;
        }
        host.asked = Default::default();
        let (writer, name) = (&mut self.writer, self.name);
        let mut broken = None;
        let outcome = match &mut self.grouped {
            Some(grouped) => grouped.map(&key, is_new, &input, runner, host),
            None => runner.run(&key, &input, host, &mut |entry| {
                writer.add(entry).map_err(|error| match error {
                    // The entry is at fault, not the machine.
                    jackdaw_search::Error::InvalidQuery(message) => RuntimeError::value(message, 0),
                    other => {
                        let message = other.to_string();
                        broken = Some(failed(name, other));
                        RuntimeError::Host(message)
                    }
                })
            }),
        };
        if let Some(error) = broken {
            return Err(error);
        }
        let is_good = outcome.is_ok();
        match outcome {
            Ok(outputs) => {
                self.statistics.outputs += outputs;
                self.progress.outputs_max = self.progress.outputs_max.max(outputs);
            }
            Err(error) => {
                // What it gave before it failed goes too.
                match &mut self.grouped {
                    Some(grouped) => grouped.take_back(),
                    None => self.writer.delete(&key).map_err(|error| failed(self.name, error))?,
                }
                self.statistics.failed += 1;
                self.note_error(document.etag, document.id, &error);
            }
        }
        let progress = &mut self.progress;
        let (attempts, successes, errors) = match reason {
            Reason::Written => {
                (&mut progress.map_attempts, &mut progress.map_successes, &mut progress.map_errors)
            }
            Reason::ReferenceChanged => (
                &mut progress.reference_attempts,
                &mut progress.reference_successes,
                &mut progress.reference_errors,
            ),
        };
        *attempts += 1;
        *(if is_good { successes } else { errors }) += 1;
        if let Some(changes) = changes {
            changes.set(&key, &host.asked)?;
            mapped.insert(key.into_owned());
        }
        Ok(())
    }

    /// Something is wrong with results. They belong to no document: the time, which is beyond all etags, tells them apart.
    fn note_reduce_error(&mut self, document: Option<String>, error: String) {
        if self.errors.len() >= ERRORS_KEPT * 2 {
            self.errors.drain(..ERRORS_KEPT);
        }
        let place = clock::now_ticks() + self.errors.len() as i64;
        let error =
            IndexingError { timestamp: clock::now_ticks(), document, action: "Reduce".to_owned(), error };
        self.errors.push((place, error));
    }

    fn note_error(&mut self, etag: i64, id: &str, error: &RuntimeError) {
        if self.errors.len() == ERRORS_KEPT * 2 {
            // Only the newest are kept in the end.
            self.errors.drain(..ERRORS_KEPT);
        }
        let error = IndexingError {
            timestamp: clock::now_ticks(),
            document: Some(id.to_owned()),
            action: "Map".to_owned(),
            error: format!("Failed to execute mapping function on {id}. Exception: {error}"),
        };
        self.errors.push((etag, error));
    }

    /// Maps again what loaded documents that changed.
    fn references(
        &mut self,
        runner: &mut Runner<'_>,
        host: &mut BatchHost<'b>,
        mut changes: Option<&mut Changes>,
        mapped: &mut HashSet<String>,
    ) -> Result<()> {
        for collection in &self.plan.referenced {
            let snapshot = self.snapshot;
            for is_tombstone in [true, false] {
                if self.ended.is_some() {
                    return Ok(());
                }
                let seen = *self.progress.references.entry(collection.clone()).or_default();
                let mut last = None;
                let mut failure = Ok(());
                let mut each = |batch: &mut Batch<'b>, id: &str, etag: i64| {
                    let key = ids::lower(id);
                    failure =
                        batch.referrers(Kind::Document, &key, runner, host, changes.as_deref_mut(), mapped);
                    if failure.is_err() {
                        return ControlFlow::Break(());
                    }
                    last = Some(etag);
                    batch.count(0)
                };
                match (is_tombstone, collection.as_str()) {
                    (true, ALL_DOCUMENTS) => snapshot
                        .tombstones_by_etag(seen.tombstones + 1, |gone| Ok(each(self, gone.id, gone.etag)))?,
                    (true, name) => snapshot.tombstones_of_collection(name, seen.tombstones + 1, |gone| {
                        Ok(each(self, gone.id, gone.etag))
                    })?,
                    (false, ALL_DOCUMENTS) => {
                        snapshot.documents_by_etag(seen.documents + 1, Order::Ascending, |document| {
                            Ok(each(self, document.id, document.etag))
                        })?;
                    }
                    (false, name) => {
                        snapshot.documents_of_collection(
                            name,
                            seen.documents + 1,
                            Order::Ascending,
                            |document| Ok(each(self, document.id, document.etag)),
                        )?;
                    }
                }
                failure?;
                if let (Some(last), Some(seen)) = (last, self.progress.references.get_mut(collection)) {
                    *(if is_tombstone { &mut seen.tombstones } else { &mut seen.documents }) = last;
                }
            }
        }
        Ok(())
    }

    /// Maps all documents again that asked for `key` and were not mapped in this batch.
    fn referrers(
        &mut self,
        kind: Kind,
        key: &str,
        runner: &mut Runner<'_>,
        host: &mut BatchHost<'b>,
        mut changes: Option<&mut Changes>,
        mapped: &mut HashSet<String>,
    ) -> Result<()> {
        let Some(references) = &self.files.references else { return Ok(()) };
        let snapshot = self.snapshot;
        references.referrers(kind, key, |id| {
            if mapped.contains(id) {
                return Ok(true);
            }
            // One that is gone has a tombstone, which was taken already.
            if let Some(document) = snapshot.document(id)? {
                self.map(&document, Reason::ReferenceChanged, runner, host, changes.as_deref_mut(), mapped)?;
            }
            Ok(true)
        })
    }

    /// Maps again what asked for compare-exchange values that changed since they were last seen.
    fn compare_exchange(
        &mut self,
        runner: &mut Runner<'_>,
        host: &mut BatchHost<'b>,
        mut changes: Option<&mut Changes>,
        mapped: &mut HashSet<String>,
    ) -> Result<()> {
        if !self.plan.uses_compare_exchange {
            return Ok(());
        }
        let newest = self.snapshot.last_cluster_index()?;
        if newest <= self.progress.compare_exchange {
            return Ok(());
        }
        let Some(references) = &self.files.references else { return Ok(()) };
        for key in references.compare_exchange_keys()? {
            let index = self.snapshot.compare_exchange(&key)?.map(|found| found.index);
            // A value that is gone leaves no trace of when: its referrers are mapped again each time, which there are few of.
            if index.is_none_or(|index| index > self.progress.compare_exchange) {
                self.referrers(Kind::CompareExchange, &key, runner, host, changes.as_deref_mut(), mapped)?;
            }
        }
        self.progress.compare_exchange = newest;
        self.changed = true;
        Ok(())
    }
}

fn ms_since(instant: Instant) -> f64 {
    instant.elapsed().as_secs_f64() * 1e3
}

/// Whether an error is one that passes by itself when the index is looked up anew.
pub(crate) fn is_closed(error: &Error) -> bool {
    matches!(error, Error::Closed(_) | Error::Database(jackdaw_database::Error::Closed(_)))
}
