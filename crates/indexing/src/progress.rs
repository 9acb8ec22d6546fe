//! How far an index is: the etags up to which it has seen everything, and what it counts. Written with each batch, atomically, as the payload of the
//! search index's commit.

use std::collections::BTreeMap;

use jackdaw_database::{Etag, Snapshot};
use serde::{Deserialize, Serialize};

use crate::auto::ALL_DOCUMENTS;
use crate::error::{Error, Result};

/// Up to where documents and tombstones were seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Etags {
    /// Documents.
    pub documents: Etag,
    /// Tombstones.
    pub tombstones: Etag,
}

/// How far an index is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// By collection; [`ALL_DOCUMENTS`] for all.
    pub collections: BTreeMap<String, Etags>,
    /// By collection that functions load documents from.
    pub references: BTreeMap<String, Etags>,
    /// The index of the newest compare-exchange write that was seen.
    pub compare_exchange: i64,
    /// The last etag when the index began: documents that were not written since are new to it.
    pub born: Etag,
    /// Documents that a map was run over.
    pub map_attempts: u64,
    /// Of those, how many went well.
    pub map_successes: u64,
    /// And how many did not.
    pub map_errors: u64,
    /// Documents that a map was run over again since a document that they refer to changed.
    pub reference_attempts: u64,
    /// Of those, how many went well.
    pub reference_successes: u64,
    /// And how many did not.
    pub reference_errors: u64,
    /// Groups that were reduced.
    pub reduce_attempts: u64,
    /// Of those, how many went well.
    pub reduce_successes: u64,
    /// And how many did not.
    pub reduce_errors: u64,
    /// The most entries that one document became.
    pub outputs_max: u64,
    /// When the last batch ended, in ticks; 0 before the first.
    pub last_indexed: i64,
    /// Batches so far.
    pub batches: u64,
}

impl Progress {
    /// Reads what [`Progress::to_bytes`] wrote; nothing is the beginning.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Option<Progress>> {
        if bytes.is_empty() {
            return Ok(None);
        }
        serde_json::from_slice(bytes)
            .map(Some)
            .map_err(|error| Error::Damaged(format!("its progress: {error}")))
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self)
            .map_err(|error| Error::Damaged(format!("its progress cannot be written: {error}")))
    }

    /// The etag up to which none of the snapshot's tombstones is needed any more.
    pub(crate) fn tombstones_done(&self, snapshot: &Snapshot) -> Result<Etag> {
        let mut done = Etag::MAX;
        for (collection, seen) in self.collections.iter().chain(&self.references) {
            if Newest::of(snapshot, collection)?.tombstones > seen.tombstones {
                done = done.min(seen.tombstones);
            }
        }
        Ok(done)
    }
}

/// Up to where things must have been indexed for a query to be satisfied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cutoff {
    /// All that there is in the snapshot.
    #[default]
    Now,
    /// What was written up to this etag.
    Etag(Etag),
}

impl Cutoff {
    fn etag(self) -> Etag {
        match self {
            Cutoff::Now => Etag::MAX,
            Cutoff::Etag(etag) => etag,
        }
    }
}

/// What there is in a snapshot of one collection, as far as it tells whether an index is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(crate) documents: Etag,
    pub(crate) tombstones: Etag,
}

impl Newest {
    pub(crate) fn of(snapshot: &Snapshot, collection: &str) -> Result<Newest> {
        Ok(match collection {
            ALL_DOCUMENTS => Newest {
                documents: snapshot.last_document_etag()?,
                tombstones: snapshot.last_tombstone_etag(None)?,
            },
            name => Newest {
                documents: snapshot.last_etag_of_collection(name)?,
                tombstones: snapshot.last_tombstone_etag(Some(name))?,
            },
        })
    }
}

/// Why an index is behind a snapshot, in words; nothing when it is not.
pub(crate) fn staleness(
    progress: &Progress,
    snapshot: &Snapshot,
    cutoff: Cutoff,
    mut reason: impl FnMut(&dyn Fn() -> String),
) -> Result<bool> {
    let mut is_stale = false;
    let kinds = [("", &progress.collections), ("referenced ", &progress.references)];
    for (kind, collections) in kinds {
        for (collection, seen) in collections {
            let newest = Newest::of(snapshot, collection)?;
            for (what, newest, seen) in [
                ("documents", newest.documents, seen.documents),
                ("tombstones", newest.tombstones, seen.tombstones),
            ] {
                if newest > seen && is_behind(snapshot, collection, what, seen, newest, cutoff)? {
                    is_stale = true;
                    reason(&|| {
                        format!(
                            "There are still some {kind}{what} to process from collection '{collection}'. The last etag of {what} in that collection is '{newest}', but the last processed etag for that collection is '{seen}'."
                        )
                    });
                }
            }
        }
    }
    Ok(is_stale)
}

/// Whether something was written after `seen` and not after the cut-off.
fn is_behind(
    snapshot: &Snapshot,
    collection: &str,
    what: &str,
    seen: Etag,
    newest: Etag,
    cutoff: Cutoff,
) -> Result<bool> {
    let cutoff = cutoff.etag();
    if newest <= cutoff {
        return Ok(true);
    }
    if seen >= cutoff {
        return Ok(false);
    }
    // The newest is beyond the cut-off: the first one after what was seen decides.
    let mut first = Etag::MAX;
    let stop = std::ops::ControlFlow::Break(());
    let from = seen + 1;
    match (what, collection) {
        ("documents", ALL_DOCUMENTS) => {
            snapshot.documents_by_etag(from, jackdaw_database::Order::Ascending, |document| {
                first = document.etag;
                Ok(stop)
            })?;
        }
        ("documents", name) => {
            snapshot.documents_of_collection(name, from, jackdaw_database::Order::Ascending, |document| {
                first = document.etag;
                Ok(stop)
            })?;
        }
        (_, ALL_DOCUMENTS) => snapshot.tombstones_by_etag(from, |tombstone| {
            first = tombstone.etag;
            Ok(stop)
        })?,
        (_, name) => snapshot.tombstones_of_collection(name, from, |tombstone| {
            first = tombstone.etag;
            Ok(stop)
        })?,
    }
    Ok(first <= cutoff)
}
