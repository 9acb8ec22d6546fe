//! Batches into the database: each is one job of its merger, and only so many wait that memory stays bounded.

use std::collections::VecDeque;
use std::slice::SliceIndex;
use std::sync::Arc;

use jackdaw_database::{Database, Error as DatabaseError, Expected, Pending, PutOptions, Transaction};

use jackdaw_document::Context;

use super::options::Existing;
use super::prepare::{Batch, Prepared};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::report::{Place, Refusal, Report};

/// Bytes of documents that may wait for the writer: several of its transactions.
const WAITING_SIZE_MAX: usize = 16 << 20;
/// Batches that may wait.
const WAITING_MAX: usize = 64;

/// What became of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredBatch {
    /// Documents stored.
    pub documents: u64,
    /// Documents left as they were.
    pub unchanged: u64,
    /// The etag of the last one stored; 0 if none was.
    pub last_etag: i64,
    /// The id of the last one, stored or not.
    pub last_id: String,
}

/// Submits batches and gathers what became of them.
pub(crate) struct Store<'p> {
    database: Database,
    existing: Existing,
    progress: &'p Progress,
    refused_max: u64,
    waiting: VecDeque<(Pending<StoredBatch>, Arc<Batch>)>,
    waiting_size: usize,
    pub(crate) report: Report,
}

impl<'p> Store<'p> {
    pub(crate) fn new(
        database: &Database,
        existing: Existing,
        refused_max: u64,
        progress: &'p Progress,
    ) -> Store<'p> {
        Store {
            database: database.clone(),
            existing,
            progress,
            refused_max,
            waiting: VecDeque::new(),
            waiting_size: 0,
            report: Report::default(),
        }
    }

    /// Takes a batch, and waits for earlier ones when too many wait.
    pub(crate) fn put(&mut self, mut batch: Batch) -> Result<()> {
        self.report.text_bytes += batch.text_size;
        for refusal in std::mem::take(&mut batch.refused) {
            self.refuse(refusal)?;
        }
        if batch.documents.is_empty() {
            return Ok(());
        }
        while !self.waiting.is_empty()
            && (self.waiting_size + batch.size > WAITING_SIZE_MAX || self.waiting.len() >= WAITING_MAX)
        {
            self.settle_one()?;
        }
        self.waiting_size += batch.size;
        let (batch, existing) = (Arc::new(batch), self.existing);
        let job = batch.clone();
        let pending = self.database.submit(move |transaction| store(transaction, &job, existing, 0..));
        self.waiting.push_back((pending, batch));
        Ok(())
    }

    /// Waits for all batches.
    pub(crate) fn settle(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        // Also after a failure: what the later ones stored is to be counted.
        while !self.waiting.is_empty() {
            let settled = self.settle_one();
            outcome = outcome.and(settled);
        }
        outcome
    }

    fn settle_one(&mut self) -> Result<()> {
        let Some((pending, batch)) = self.waiting.pop_front() else {
            return Ok(());
        };
        self.waiting_size -= batch.size;
        match pending.wait() {
            Ok(stored) => {
                self.count(stored);
                Ok(())
            }
            Err(error) if is_about_a_document(&error) => self.store_singly(&batch),
            Err(error) => Err(error.into()),
        }
    }

    /// A document of the batch cannot be stored, so none of it was: stores the others, one by one.
    ///
    /// They come late: another batch may have been stored since. That matters only to an id that the input has twice, one of them in a batch
    /// with a document that is refused.
    fn store_singly(&mut self, batch: &Arc<Batch>) -> Result<()> {
        let existing = self.existing;
        let jobs = (0..batch.documents.len()).map(|i| {
            let batch = batch.clone();
            self.database.submit(move |transaction| store(transaction, &batch, existing, i..=i))
        });
        let jobs: Vec<_> = jobs.collect();
        for (i, pending) in jobs.into_iter().enumerate() {
            match pending.wait() {
                Ok(stored) => self.count(stored),
                Err(error) if is_about_a_document(&error) => {
                    self.refuse(Refusal { place: batch.places[i], reason: error.to_string() })?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn count(&mut self, stored: StoredBatch) {
        self.progress.add_documents(stored.documents);
        self.progress.add_unchanged(stored.unchanged);
        self.report.documents += stored.documents;
        self.report.unchanged += stored.unchanged;
        if stored.documents > 0 {
            self.report.last_etag = stored.last_etag;
            self.report.last_id = stored.last_id;
        }
    }

    pub(crate) fn refuse(&mut self, refusal: Refusal) -> Result<()> {
        self.progress.add_refused(1);
        let last = refusal.to_string();
        self.report.refuse(refusal);
        if self.report.refused > self.refused_max {
            return Err(Error::TooManyRefused { refused: self.report.refused, last });
        }
        Ok(())
    }

    /// Stores a compare-exchange value over what is there.
    pub(crate) fn compare_exchange(&mut self, key: String, value: &str) -> Result<()> {
        let place = Place::Byte(0);
        let context = Context::new();
        let value = match context.parse_with(value.as_bytes(), self.database.document_mode()) {
            Ok(value) => value.as_bytes().to_vec(),
            Err(error) => {
                let reason = format!("the compare-exchange value {key:?}: {error}");
                return self.refuse(Refusal { place, reason });
            }
        };
        let stored = self.run(move |transaction| {
            let index = transaction.get_compare_exchange(&key)?.map_or(0, |present| present.index);
            transaction.put_compare_exchange(&key, index, &value)
        });
        match stored {
            Ok(_) => self.report.compare_exchange += 1,
            Err(Error::Database(
                error @ (DatabaseError::CompareExchangeKeyInvalid(_)
                | DatabaseError::CompareExchangeKeyTooBig { .. }
                | DatabaseError::InvalidArgument(_)),
            )) => self.refuse(Refusal { place, reason: error.to_string() })?,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Runs a job for something else than documents, in its place behind the batches before it.
    pub(crate) fn run<T: Send + 'static>(
        &mut self,
        job: impl FnOnce(&mut Transaction<'_>) -> jackdaw_database::Result<T> + Send + 'static,
    ) -> Result<T> {
        Ok(self.database.submit(job).wait()?)
    }
}

/// Whether an error is one document's fault, so that others may go through.
fn is_about_a_document(error: &DatabaseError) -> bool {
    matches!(
        error,
        DatabaseError::InvalidId(_)
            | DatabaseError::InvalidArgument(_)
            | DatabaseError::InvalidOperation(_)
            | DatabaseError::Document(_)
            | DatabaseError::Panicked(_)
    )
}

/// Stores some documents of a batch: all of them, or with an error none that matters, as the job is undone.
pub(crate) fn store(
    transaction: &mut Transaction<'_>,
    batch: &Batch,
    existing: Existing,
    which: impl SliceIndex<[Prepared], Output = [Prepared]>,
) -> jackdaw_database::Result<StoredBatch> {
    let mut stored = StoredBatch::default();
    for (id, document) in &batch.documents[which] {
        if existing == Existing::Keep && transaction.get(id)?.is_some() {
            stored.unchanged += 1;
            continue;
        }
        let options =
            PutOptions { expected: Expected::Any, skip_if_unchanged: existing == Existing::SkipUnchanged };
        let result = transaction.put(id, document, options)?;
        if result.unchanged {
            stored.unchanged += 1;
        } else {
            stored.documents += 1;
            stored.last_etag = result.etag;
        }
        stored.last_id = result.id;
    }
    Ok(stored)
}
