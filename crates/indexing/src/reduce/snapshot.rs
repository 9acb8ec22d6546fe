//! The results at one moment, for reading.

use std::ops::Bound;

use jackdaw_storage::{Order, ReadTransaction};

use super::bytes::Reader;
use super::engine::Mark;
use super::error::{Error, Result};
use super::key::{STORED_SIZE_MAX, stored};
use super::record::Record;
use super::state::{NEW, State, Trees};

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

    /// As [`Snapshot::each_result`], of `count` keys from the one with number `start` on.
    pub fn some_results<E: From<Error>>(
        &self,
        start: usize,
        count: usize,
        mut each: impl FnMut(KeyResult<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let keys = self.transaction.tree(Trees::KEYS).map_err(Error::from)?;
        let mut entries = keys.iter().map_err(Error::from)?;
        let mut at = 0;
        while let Some((key, bytes)) = entries.next().map_err(Error::from)? {
            if at >= start.saturating_add(count) {
                break;
            }
            if at >= start {
                let record = record(key, bytes)?;
                let full = record.full_key.unwrap_or(key);
                each(KeyResult { key: full, stored: key, pack: record.partial, count: record.count })?;
            }
            at += 1;
        }
        Ok(())
    }

    /// The keys whose results changed after a mark, each once, in their order. What was acknowledged is not listed any more.
    pub fn changed(&self, after: Mark) -> Result<ChangedKeys<'_>> {
        let lists = self.transaction.tree(Trees::CHANGED)?;
        let after = after.0.to_be_bytes();
        let mut lists = lists.range(Bound::Excluded(&after), Bound::Unbounded, Order::Ascending)?;
        let damaged = || Error::damaged("the list of changed results", "it does not read");
        let mut keys = Vec::new();
        while let Some((_, list)) = lists.next()? {
            let mut reader = Reader(list);
            while !reader.is_empty() {
                let is_new = reader.byte().ok_or_else(damaged)? == NEW;
                keys.push((reader.slice().ok_or_else(damaged)?, is_new));
            }
        }
        // Of several mentions the first, which tells how it was at the mark: the sort is stable.
        keys.sort_by_key(|(key, _)| *key);
        keys.dedup_by_key(|(key, _)| *key);
        let mark = Mark(State::read(&self.transaction)?.batch);
        Ok(ChangedKeys { snapshot: self, keys, mark })
    }
}

/// Keys whose results changed.
pub struct ChangedKeys<'s> {
    snapshot: &'s Snapshot,
    /// Stored, and whether they had no result at the mark.
    keys: Vec<(&'s [u8], bool)>,
    mark: Mark,
}

/// A key whose result changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedKey<'s> {
    /// The key as it is stored.
    pub stored: &'s [u8],
    /// It had no result at the mark: whoever has followed exactly up to there has nothing to remove.
    pub is_new: bool,
    /// Its result as it is in the snapshot; `None` when no document has the key any more.
    pub result: Option<KeyResult<'s>>,
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

    /// What to acknowledge ([`super::Engine::acknowledge`]) when all of them were followed, durably, and from where to go on.
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// Hands over each key with its result, until `each` fails. Following is the same however often it is done: all that was known of a
    /// key is replaced.
    pub fn each<E: From<Error>>(
        &self,
        mut each: impl FnMut(ChangedKey<'s>) -> Result<(), E>,
    ) -> Result<(), E> {
        let records = self.snapshot.transaction.tree(Trees::KEYS).map_err(Error::from)?;
        for (key, is_new) in &self.keys {
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
            each(ChangedKey { stored: key, is_new: *is_new, result })?;
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
