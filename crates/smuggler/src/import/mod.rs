//! An import: one thread reads, decompresses and cuts, several parse, one hands batches to the database; the database writes with a thread of its own.
//!
//! ```text
//!   input -> [read, decompress, cut] -> blocks -> [parse] x n -> batches -> [store] -> jobs -> the database's writer
//! ```
//!
//! The order of the input is kept: blocks go to the parsing threads in turn, and batches are taken from them in the same turn, so that of two documents with one id
//! the later counts. Every queue is short, so memory does not grow with the input: a slow database slows the reading down.

pub(crate) mod options;
pub(crate) mod prepare;
pub(crate) mod store;

use std::io::Read;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use jackdaw_database::Database;

use self::options::{Format, ImportOptions};
use self::prepare::{Batch, IdRule, Preparer};
use self::store::Store;
use crate::compression::{LastFrame, decompressed_until};
use crate::csv::layout::Layout;
use crate::dump::Section;
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::report::Report;
use crate::source::dump::Dump;
use crate::source::lines::Lines;
use crate::source::rows::Rows;
use crate::source::values::Values;
use crate::source::{Block, Other, Source};

/// Blocks or batches that wait between two threads.
const QUEUE: usize = 2;

/// An import that is over.
#[derive(Debug)]
pub struct Imported {
    /// What was done.
    pub report: Report,
    /// What stopped it before its end, if something did.
    pub failure: Option<Error>,
}

/// Where the definitions of indexes go that a dump holds: indexes are not this crate's.
pub trait IndexTaker {
    /// Makes an index, or changes the one of its name. Blocks until that is durable.
    ///
    /// # Errors
    ///
    /// Why it is refused. The import goes on.
    fn take(&self, definition: serde_json::Value) -> Result<(), String>;

    /// Takes what the record of the database says that indexes need, which comes before them; how many things that were, and why others were refused.
    fn take_record(&self, record: serde_json::Value) -> (u64, Vec<String>);
}

/// Imports an input into a database, and the definitions of indexes that it holds into `indexes`; without that, they are passed over. Returns when everything is durable, or at the first failure; what was stored before that stays stored.
///
/// Blocks the thread, so it must not run on one that drives tasks.
pub fn import(
    database: &Database,
    indexes: Option<&dyn IndexTaker>,
    input: impl Read + Send + 'static,
    format: &Format,
    options: &ImportOptions,
    progress: &Progress,
) -> Imported {
    let mut store = Store::new(database, options.existing, options.refused_max, progress);
    let outcome = run(&mut store, database, indexes, Box::new(input), format, options, progress);
    // Whatever happened, what was submitted is waited for.
    let settled = store.settle();
    Imported { report: store.report, failure: outcome.and(settled).err() }
}

fn run(
    store: &mut Store<'_>,
    database: &Database,
    indexes: Option<&dyn IndexTaker>,
    input: Box<dyn Read + Send>,
    format: &Format,
    options: &ImportOptions,
    progress: &Progress,
) -> Result<()> {
    let last_frame = match format {
        Format::Dump(_) => LastFrame::MayBeOpen,
        _ => LastFrame::Ended,
    };
    let input = decompressed_until(input, options.expansion, progress.read_count(), last_frame)?;
    let size_max = options.record_size_max;
    let mut layout = None;
    let mut source: Box<dyn Source> = match format {
        Format::Lines => Box::new(Lines::new(input, size_max)),
        Format::Values => Box::new(Values::new(input, size_max)),
        Format::Csv(csv) => {
            let rows = Rows::new(input, csv, size_max)?;
            layout = Some(Arc::new(Layout::new(rows.headers(), csv)?));
            Box::new(rows)
        }
        Format::Dump(dump) => Box::new(Dump::new(input, *dump, size_max)),
    };
    let ids = Arc::new(IdRule::new(options)?);
    thread::scope(|scope| {
        let (mut to_parse, mut parsed, mut parsers) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.thread_count() {
            let (block_sender, block_receiver) = sync_channel(QUEUE);
            let (batch_sender, batch_receiver) = sync_channel(QUEUE);
            let mut preparer = Preparer::new(database, options, &ids, layout.as_ref());
            parsers.push(scope.spawn(move || parse(&mut preparer, &block_receiver, &batch_sender)));
            to_parse.push(block_sender);
            parsed.push(batch_receiver);
        }
        let reader = scope.spawn(move || read(&mut *source, &to_parse, progress));
        let stored = take(store, indexes, &parsed);
        // Whoever still works finds that nobody listens, and ends.
        drop(parsed);
        let read = join(reader);
        for parser in parsers {
            join(parser);
        }
        stored.and(read)
    })
}

/// A thread that panicked takes the import with it: that is a fault of ours.
fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

fn read(source: &mut dyn Source, to_parse: &[SyncSender<Block>], progress: &Progress) -> Result<()> {
    for sender in to_parse.iter().cycle() {
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let Some(block) = source.next_block()? else {
            break;
        };
        if sender.send(block).is_err() {
            break;
        }
    }
    Ok(())
}

fn parse(preparer: &mut Preparer, blocks: &Receiver<Block>, batches: &SyncSender<Batch>) {
    while let Ok(block) = blocks.recv() {
        if batches.send(preparer.block(block)).is_err() {
            break;
        }
    }
}

/// Stores batches in the order of their blocks, until there are no more.
fn take(store: &mut Store<'_>, indexes: Option<&dyn IndexTaker>, parsed: &[Receiver<Batch>]) -> Result<()> {
    for receiver in parsed.iter().cycle() {
        let Ok(mut batch) = receiver.recv() else {
            break;
        };
        let others = std::mem::take(&mut batch.others);
        store.put(batch)?;
        for other in others {
            store_other(store, indexes, other)?;
        }
    }
    Ok(())
}

fn store_other(store: &mut Store<'_>, indexes: Option<&dyn IndexTaker>, other: Other) -> Result<()> {
    match other {
        Other::Index { kind, definition } => take_index(store, indexes, &kind, &definition),
        Other::Identity { name, value } => {
            store.run(move |transaction| transaction.seed_identity(&name, value, false))?;
            store.report.identities += 1;
        }
        Other::CompareExchange { key, value } => store.compare_exchange(key, &value)?,
        Other::Tombstone { id } => {
            let deleted =
                store.run(move |transaction| transaction.delete(&id, &jackdaw_database::Expected::Any))?;
            store.report.deleted += u64::from(deleted.is_some());
        }
        Other::DatabaseRecord(text) => {
            store.report.database_record = true;
            // Nothing in a record that is not understood keeps documents from being taken.
            if let (Some(indexes), Ok(record)) = (indexes, serde_json::from_str(&text)) {
                let (taken, refused) = indexes.take_record(record);
                store.report.indexes.analyzers += taken;
                refused.into_iter().for_each(|reason| store.report.refuse_index(reason));
            }
        }
        Other::Skipped(skipped) => {
            for (section, count) in skipped {
                *store.report.skipped.entry(section).or_default() += count;
            }
        }
    }
    Ok(())
}

/// A definition that is refused does not end the import: the documents are worth more.
fn take_index(store: &mut Store<'_>, indexes: Option<&dyn IndexTaker>, kind: &str, definition: &str) {
    // Official servers write these as no JSON parser reads them, with commas behind the last value.
    if kind.starts_with("Auto") {
        store.report.indexes.automatic += 1;
        return;
    }
    let Some(indexes) = indexes else {
        *store.report.skipped.entry(Section::Indexes.to_string()).or_default() += 1;
        return;
    };
    let definition: serde_json::Value = match serde_json::from_str(definition) {
        Ok(definition) => definition,
        Err(error) => {
            return store.report.refuse_index(format!(
                "Could not write an index, error: its definition is no JSON: {error}"
            ));
        }
    };
    let name = definition.get("Name").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    match indexes.take(definition) {
        Ok(()) => store.report.indexes.taken += 1,
        Err(reason) => {
            store.report.refuse_index(format!("Could not write index '{name}', error: {reason}"));
        }
    }
}
