//! The results at one moment, for reading.

use std::ops::Bound;

use jackdaw_storage::{Order, ReadTransaction};

use super::bytes::Reader;
use super::engine::Mark;
use super::error::{Error, Result};
use super::key::{STORED_SIZE_MAX, stored};
use super::record::Record;
use super::state::{State, Trees};

/// The results at one moment. Keeps old pages in memory for as long as it lives: not for long.
pub struct Snapshot {
    pub(super) transaction: ReadTransaction,
}

/// Sizes of the engine's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Documents that have results.
    pub documents: u64,
    /// Results of maps.
    pub results: u64,
    /// Keys.
    pub keys: u64,
    /// Nodes that are not roots.
    pub nodes: u64,
    /// Batches applied.
    pub batches: u64,
}

/// What a key was reduced to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduced<'a> {
    /// Its result; `None` when the reduce function failed.
    pub pack: Option<&'a [u8]>,
    /// How many results of maps it has.
    pub count: u64,
}

/// A key with what it was reduced to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyResult<'a> {
    /// The key in full.
    pub key: &'a [u8],
    /// What names the key in the engine, and its result outside (`hash`): the key itself, or of a long one its beginning and a hash.
    pub stored: &'a [u8],
    /// Its result; `None` when the reduce function failed.
    pub pack: Option<&'a [u8]>,
    /// How many results of maps it has.
    pub count: u64,
}

impl Snapshot {
    pub(super) fn new(transaction: ReadTransaction) -> Snapshot {
        Snapshot { transaction }
    }

    /// The position handed in with the last batch; empty when there was none.
    pub fn position(&self) -> Result<&[u8]> {
        State::position(&self.transaction)
    }

    /// How much there is.
    pub fn statistics(&self) -> Result<Statistics> {
        let state = State::read(&self.transaction)?;
        Ok(Statistics {
            documents: self.transaction.tree(Trees::SOURCES)?.len(),
            results: state.results,
            keys: self.transaction.tree(Trees::KEYS)?.len(),
            nodes: self.transaction.tree(Trees::NODES)?.len(),
            batches: state.batch,
        })
    }

    /// The result of a key (in full, or as it is stored); `None` when no document has it.
    pub fn result(&self, key: &[u8]) -> Result<Option<Reduced<'_>>> {
        let mut short = [0; STORED_SIZE_MAX];
        let key = stored(key, &mut short);
        let Some(bytes) = self.transaction.tree(Trees::KEYS)?.get(key)? else { return Ok(None) };
        let record = record(key, bytes)?;
        Ok(Some(Reduced { pack: record.partial, count: record.count }))
    }

    /// Hands over the results of all keys, in the order of the keys, until `each` fails.
    pub fn each_result<E: From<Error>>(
        &self,
        mut each: impl FnMut(KeyResult<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let keys = self.transaction.tree(Trees::KEYS).map_err(Error::from)?;
        let mut entries = keys.iter().map_err(Error::from)?;
        while let Some((key, bytes)) = entries.next().map_err(Error::from)? {
            let record = record(key, bytes)?;
            each(KeyResult {
                key: record.full_key.unwrap_or(key),
                stored: key,
                pack: record.partial,
                count: record.count,
            })?;
        }
        Ok(())
    }

    /// The keys whose results changed since the last acknowledged mark, each once, in their order.
    pub fn changed(&self) -> Result<ChangedKeys<'_>> {
        let lists = self.transaction.tree(Trees::CHANGED)?;
        let mut lists = lists.range(Bound::Unbounded, Bound::Unbounded, Order::Ascending)?;
        let damaged = || Error::damaged("the list of changed results", "it does not read");
        let mut keys = Vec::new();
        while let Some((_, list)) = lists.next()? {
            let mut reader = Reader(list);
            while !reader.is_empty() {
                keys.push(reader.slice().ok_or_else(damaged)?);
            }
        }
        keys.sort_unstable();
        keys.dedup();
        let mark = Mark(State::read(&self.transaction)?.batch);
        Ok(ChangedKeys { snapshot: self, keys, mark })
    }
}

/// Keys whose results changed.
pub struct ChangedKeys<'s> {
    snapshot: &'s Snapshot,
    keys: Vec<&'s [u8]>,
    mark: Mark,
}

impl<'s> ChangedKeys<'s> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// What to acknowledge ([`super::Engine::acknowledge`]) when all of them were followed, durably.
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// Hands over each key with its result as it is in the snapshot, or without one when no document has the key any more, until
    /// `each` fails. Following is the same however often it is done: all that was known of a key is replaced.
    pub fn each<E: From<Error>>(
        &self,
        mut each: impl FnMut(&'s [u8], Option<KeyResult<'s>>) -> Result<(), E>,
    ) -> Result<(), E> {
        let records = self.snapshot.transaction.tree(Trees::KEYS).map_err(Error::from)?;
        for key in &self.keys {
            let result = match records.get(key).map_err(Error::from)? {
                None => None,
                Some(bytes) => {
                    let record = record(key, bytes)?;
                    Some(KeyResult {
                        key: record.full_key.unwrap_or(key),
                        stored: key,
                        pack: record.partial,
                        count: record.count,
                    })
                }
            };
            each(key, result)?;
        }
        Ok(())
    }
}

/// A key's record.
pub(super) fn record<'a>(key: &[u8], bytes: &'a [u8]) -> Result<Record<'a>> {
    Record::read(bytes).ok_or_else(|| {
        Error::damaged(format!("the record of key \"{}\"", key.escape_ascii()), "it does not read")
    })
}
