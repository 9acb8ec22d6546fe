//! The names of the engine's trees, its counters, and the list of keys whose results changed.
//!
//! | tree | key | value |
//! | --- | --- | --- |
//! | `reduce` | `state` | version (4 bytes), then 8 bytes each: next entry, next key number, last batch, results |
//! | `reduce` | `position` | what the worker handed in with the last batch |
//! | `reduce.sources` | document id | its results (`source.rs`) |
//! | `reduce.keys` | reduce key (`key.rs`) | the key's record (`record.rs`) |
//! | `reduce.nodes` | key number, level, low (8, 1, 8 bytes, the highest first) | leaf or branch (`node.rs`) |
//! | `reduce.changed` | batch (8 bytes, the highest first) | for each key whose result it changed: 1 if it had none before, else 0; the stored key behind its length |

use std::ops::Bound;

use jackdaw_storage::{Environment, ReadTransaction, WriteTransaction};

use super::bytes::Reader;
use super::error::{Error, Result};

/// The version of everything that the engine writes.
const VERSION: u32 = 1;

/// In the list of changed keys: the key had no result before.
pub(super) const NEW: u8 = 1;

const STATE: &[u8] = b"state";
const POSITION: &[u8] = b"position";

/// The names of the trees.
pub(super) struct Trees;

impl Trees {
    pub(super) const MAIN: &[u8] = b"reduce";
    pub(super) const SOURCES: &[u8] = b"reduce.sources";
    pub(super) const KEYS: &[u8] = b"reduce.keys";
    pub(super) const NODES: &[u8] = b"reduce.nodes";
    pub(super) const CHANGED: &[u8] = b"reduce.changed";

    const ALL: [&[u8]; 5] = [Trees::MAIN, Trees::SOURCES, Trees::KEYS, Trees::NODES, Trees::CHANGED];
}

/// What goes from batch to batch.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// The number of the next new result.
    pub(super) next_entry: u64,
    /// The number of the next key whose root is cut; 0 is none.
    pub(super) next_number: u64,
    /// The last batch.
    pub(super) batch: u64,
    /// Map results in total.
    pub(super) results: u64,
    /// Changes up to this batch were followed.
    pub(super) acknowledged: u64,
    /// Changes up to this batch are not listed any more.
    pub(super) forgotten: u64,
}

impl State {
    /// Reads the state; makes the trees when there are none.
    pub(super) fn open(environment: &Environment) -> Result<State> {
        let snapshot = environment.read()?;
        match snapshot.tree(Trees::MAIN) {
            Ok(_) => State::read(&snapshot),
            Err(jackdaw_storage::Error::TreeNotFound { .. }) => {
                drop(snapshot);
                let state = State {
                    next_entry: 1,
                    next_number: 1,
                    batch: 0,
                    results: 0,
                    acknowledged: 0,
                    forgotten: 0,
                };
                let mut transaction = environment.write()?;
                for name in Trees::ALL {
                    transaction.create_tree(name)?;
                }
                state.put(&mut transaction)?;
                transaction.commit()?;
                Ok(state)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn read(snapshot: &ReadTransaction) -> Result<State> {
        let bytes = snapshot.tree(Trees::MAIN)?.get(STATE)?.unwrap_or_default();
        let damaged = || Error::damaged("the state", "it does not read");
        let mut reader = Reader(bytes);
        let version = reader.take(4).and_then(|bytes| bytes.try_into().ok()).ok_or_else(damaged)?;
        let found = u32::from_le_bytes(version);
        if found != VERSION {
            return Err(Error::Version { found, known: VERSION });
        }
        let mut number = || reader.u64().ok_or_else(damaged);
        let (next_entry, next_number, batch, results) = (number()?, number()?, number()?, number()?);
        // What was acknowledged and not forgotten before a crash is told again.
        Ok(State { next_entry, next_number, batch, results, acknowledged: 0, forgotten: 0 })
    }

    fn put(&self, transaction: &mut WriteTransaction) -> Result<()> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for number in [self.next_entry, self.next_number, self.batch, self.results] {
            bytes.extend(number.to_le_bytes());
        }
        transaction.tree_mut(Trees::MAIN)?.put(STATE, &bytes)?;
        Ok(())
    }

    /// Writes the state after a batch, with its position and the keys whose results it changed.
    pub(super) fn write(
        &mut self,
        transaction: &mut WriteTransaction,
        position: &[u8],
        changed: &[u8],
    ) -> Result<()> {
        self.put(transaction)?;
        transaction.tree_mut(Trees::MAIN)?.put(POSITION, position)?;
        if !changed.is_empty() {
            transaction.tree_mut(Trees::CHANGED)?.put(&self.batch.to_be_bytes(), changed)?;
        }
        self.forget(transaction)
    }

    /// Removes the lists that were acknowledged.
    pub(super) fn forget(&mut self, transaction: &mut WriteTransaction) -> Result<()> {
        if self.acknowledged > self.forgotten {
            let upto = self.acknowledged.to_be_bytes();
            transaction.tree_mut(Trees::CHANGED)?.delete_range(Bound::Unbounded, Bound::Included(&upto))?;
            self.forgotten = self.acknowledged;
        }
        Ok(())
    }

    /// The position as a snapshot has it.
    pub(super) fn position(snapshot: &ReadTransaction) -> Result<&[u8]> {
        Ok(snapshot.tree(Trees::MAIN)?.get(POSITION)?.unwrap_or_default())
    }
}
