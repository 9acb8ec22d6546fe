//! The map/reduce side of an index: its engine, and how the search index follows the results.
//!
//! A batch of a map/reduce index commits twice: first the engine (results of maps, reductions, and how far the index is), then the search index with the
//! results that changed. What the search index lacks after a crash in between, or since its last sync, is listed in the engine and followed by
//! the next batch. So the engine's progress is where a batch begins, and the search index's is what queries see.

use std::path::Path;
use std::sync::Arc;

use jackdaw_document::Context;
use jackdaw_functions::{Input, RuntimeError};
use jackdaw_search::{Entry, FieldValue, Writer};
use jackdaw_storage::{Environment, Options};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::files::failed;
use crate::map::{Arena, BatchHost, Runner, values};
use crate::output::Output;
use crate::plan::Fields;
use crate::progress::Progress;
use crate::reduce::{self, Applied, Batch, Engine, Grouping, Mapper, Mark};

/// Distinct keys in a batch: bounds the pages that its transaction changes.
const KEYS_MAX: usize = 16 * 1024;
/// Scratch memory of the environment, in bytes. A large key changes some three pages: enough for [`KEYS_MAX`], twice over.
const SCRATCH_BYTES: u64 = 1 << 30;
/// Results are synced to the disk, and need not be listed any more, after so many keys.
const KEYS_BEFORE_SYNC: u64 = 256 * 1024;

/// The map/reduce side of an index, open.
pub(crate) struct Groups {
    pub(crate) engine: Engine,
    state: Mutex<State>,
}

struct State {
    /// How far the engine is; `None`: nothing was applied yet.
    progress: Option<Progress>,
    /// Up to where the search index has followed since it was opened.
    followed: Option<Mark>,
    /// Keys followed since the search index was last synced.
    unsynced: u64,
}

impl Groups {
    /// Opens it in a directory, making it when there is none.
    pub(crate) fn open(path: &Path) -> Result<Groups> {
        let options = Options::default().scratch_size_max(SCRATCH_BYTES).journal_zeroed_max(4 << 20);
        let environment = Environment::open(path, options)?;
        let engine = Engine::open(environment, &reduce::Options::default())?;
        let progress = Progress::from_bytes(&engine.position()?)?;
        Ok(Groups { engine, state: Mutex::new(State { progress, followed: None, unsynced: 0 }) })
    }

    /// Where the next batch begins; `None`: at the beginning.
    pub(crate) fn progress(&self) -> Option<Progress> {
        self.state.lock().progress.clone()
    }

    /// Whether the engine is further than what queries see.
    pub(crate) fn is_ahead(&self, seen: &Progress) -> bool {
        self.state.lock().progress.as_ref().is_some_and(|progress| progress.batches > seen.batches)
    }

    /// Gives the search index the results that changed since it followed last. It has them when the writer commits: call [`Groups::followed`] then.
    /// So has the output collection, when there is one.
    pub(crate) fn follow(
        &self,
        name: &str,
        grouping: &Grouping,
        fields: &Fields,
        writer: &mut Writer,
        mut output: Option<&mut Output<'_>>,
    ) -> Result<Following> {
        let followed = self.state.lock().followed;
        let snapshot = self.engine.read()?;
        let changed = snapshot.changed(followed.unwrap_or_default())?;
        let mut following = Following { mark: changed.mark(), keys: changed.len() as u64, entries: 0 };
        let (mut arena, mut context) = (Arena::default(), Context::new());
        changed.each(|changed| {
            let key = reduce::name(changed.stored);
            if !changed.is_new || followed.is_none() {
                writer.delete(&key).map_err(|error| failed(name, error))?;
            }
            if let Some(output) = &mut output {
                output.write_some()?;
                output.add(&key);
            }
            let Some((full, pack)) = changed.result.and_then(|result| Some((result.key, result.pack?)))
            else {
                return Ok(());
            };
            arena.reset();
            context.reset();
            let mut entries = 0;
            grouping.results(full, pack, &context, |document| {
                entries += 1;
                let arena = &arena;
                let Some(object) = document.object() else { return Ok(()) };
                if let Some(output) = &mut output {
                    output.result(&document)?;
                }
                let mut values = Vec::with_capacity(object.len());
                for at in 0..object.len() {
                    let Some((field, value)) = object.at_index(at) else { continue };
                    let field: &str = values::text_of(&field, arena);
                    let value = if fields.is_spatial(field) {
                        values::place(&value, arena)
                    } else {
                        values::of_document(&value, arena)
                    };
                    values.push((field, value));
                    values.extend(grouping.variants(field).iter().map(|name| (name.as_str(), value)));
                }
                add(name, writer, &key, &values, document.as_bytes())
            })?;
            following.entries += entries;
            Ok::<(), Error>(())
        })?;
        if let Some(output) = output {
            output.write()?;
        }
        Ok(following)
    }

    /// The search index has committed what it followed.
    pub(crate) fn followed(
        &self,
        name: &str,
        following: &Following,
        search: &jackdaw_search::Index,
    ) -> Result<()> {
        let mut state = self.state.lock();
        state.followed = Some(following.mark);
        state.unsynced += following.keys;
        if state.unsynced >= KEYS_BEFORE_SYNC {
            search.sync().map_err(|error| failed(name, error))?;
            self.engine.acknowledge(following.mark);
            state.unsynced = 0;
        }
        Ok(())
    }

    /// Closes it, after the search index: that has everything on disk.
    pub(crate) fn close(self) -> Result<()> {
        self.settle()?;
        match self.engine.close() {
            Ok(()) => Ok(()),
            Err(reduce::Error::Storage(
                jackdaw_storage::Error::Closed | jackdaw_storage::Error::Invalid(_),
            )) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The search index has everything on disk: nothing needs to be followed again.
    pub(crate) fn settle(&self) -> Result<()> {
        let mut state = self.state.lock();
        if let Some(mark) = state.followed {
            self.engine.acknowledge(mark);
            self.engine.settle()?;
            state.unsynced = 0;
        }
        Ok(())
    }
}

/// What a batch maps, collected until it is applied.
pub(crate) struct Grouped<'b> {
    pub(crate) groups: &'b Groups,
    pub(crate) grouping: &'b Grouping,
    mapper: Mapper<'b>,
    batch: Batch,
    bytes_max: usize,
}

impl<'b> Grouped<'b> {
    pub(crate) fn new(groups: &'b Groups, grouping: &'b Grouping, bytes_max: usize) -> Grouped<'b> {
        Grouped { groups, grouping, mapper: grouping.mapper(), batch: Batch::new(), bytes_max }
    }

    /// Whether the batch should end.
    pub(crate) fn is_full(&self) -> bool {
        self.batch.keys() >= KEYS_MAX || self.batch.bytes() >= self.bytes_max
    }

    /// A document is gone.
    pub(crate) fn forget(&mut self, key: &str) {
        self.batch.begin(key.as_bytes(), false);
    }

    /// Maps a document; how many results it has.
    ///
    /// Error: what a function found wrong: call [`Grouped::take_back`] then.
    pub(crate) fn map<'d>(
        &mut self,
        key: &str,
        is_new: bool,
        input: &Input<'d>,
        runner: &mut Runner<'_>,
        host: &mut BatchHost<'d>,
    ) -> std::result::Result<u64, RuntimeError> {
        let Grouped { grouping, mapper, batch, .. } = self;
        batch.begin(key.as_bytes(), is_new);
        match grouping.auto() {
            Some(auto) => auto.run(input, batch),
            None => runner.run_functions(input, host, &mut |entry| mapper.emit(batch, entry)),
        }
    }

    /// The map of the document mapped last failed: it has no results.
    pub(crate) fn take_back(&mut self) {
        self.batch.take_back();
    }

    /// Applies everything, and records with it how far the index is: `progress`, with what was reduced.
    pub(crate) fn apply(&mut self, threads: usize, progress: &Progress) -> Result<(Applied, Progress)> {
        let mut progress = progress.clone();
        let position = &mut |applied: &Applied| {
            progress.reduce_attempts += applied.keys;
            progress.reduce_errors += applied.failures_count;
            progress.reduce_successes += applied.keys - applied.failures_count;
            progress.to_bytes().map_err(|error| reduce::Error::Position(error.to_string()))
        };
        let applied = self.groups.engine.apply(&mut self.batch, position, self.grouping, threads)?;
        self.groups.state.lock().progress = Some(progress.clone());
        Ok((applied, progress))
    }
}

/// What the search index was given.
pub(crate) struct Following {
    mark: Mark,
    pub(crate) keys: u64,
    pub(crate) entries: u64,
}

fn add(
    name: &str,
    writer: &mut Writer,
    key: &str,
    fields: &[(&str, FieldValue<'_>)],
    stored: &[u8],
) -> Result<()> {
    match writer.add(&Entry { key, fields, stored, references: &[], boost: 1.0 }) {
        Ok(()) => Ok(()),
        // The result is at fault, not the machine: it is not found by what it says wrongly.
        Err(jackdaw_search::Error::InvalidQuery(message)) => {
            tracing::warn!(index = name, key, message, "a result cannot be indexed");
            Ok(())
        }
        Err(error) => Err(Error::Search { index: name.to_owned(), source: Arc::new(error) }),
    }
}
