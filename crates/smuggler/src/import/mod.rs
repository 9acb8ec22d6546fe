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

/// Imports an input into a database. Returns when everything is durable, or at the first failure; what was stored before that stays stored.
///
/// Blocks the thread, so it must not run on one that drives tasks.
pub fn import(
    database: &Database,
    input: impl Read + Send + 'static,
    format: &Format,
    options: &ImportOptions,
    progress: &Progress,
) -> Imported {
    let mut store = Store::new(database, options.existing, options.refused_max, progress);
    let outcome = run(&mut store, database, Box::new(input), format, options, progress);
    // Whatever happened, what was submitted is waited for.
    let settled = store.settle();
    Imported { report: store.report, failure: outcome.and(settled).err() }
}

fn run(
    store: &mut Store<'_>,
    database: &Database,
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
        let stored = take(store, &parsed);
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
fn take(store: &mut Store<'_>, parsed: &[Receiver<Batch>]) -> Result<()> {
    for receiver in parsed.iter().cycle() {
        let Ok(mut batch) = receiver.recv() else {
            break;
        };
        let others = std::mem::take(&mut batch.others);
        store.put(batch)?;
        for other in others {
            store_other(store, other)?;
        }
    }
    Ok(())
}

fn store_other(store: &mut Store<'_>, other: Other) -> Result<()> {
    match other {
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
        Other::DatabaseRecord => store.report.database_record = true,
        Other::Skipped(skipped) => {
            for (section, count) in skipped {
                *store.report.skipped.entry(section).or_default() += count;
            }
        }
    }
    Ok(())
}
