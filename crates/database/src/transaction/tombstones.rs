//! Tombstones: what is left of deleted documents until everybody who must know has seen it.

use crate::Etag;
use crate::error::Result;
use crate::schema::{self, BY_ETAG};
use crate::transaction::Transaction;

impl Transaction<'_> {
    /// The document is back.
    pub(super) fn forget_tombstone(&mut self, key: &str) -> Result<()> {
        let mut tombstones = self.storage.table_mut(schema::TOMBSTONES)?;
        if !tombstones.is_empty() {
            tombstones.delete(key.as_bytes())?;
        }
        Ok(())
    }

    /// Removes the tombstones up to an etag (included), `count_max` of them at most; how many there were.
    pub fn clean_tombstones(&mut self, to: Etag, count_max: usize) -> Result<u64> {
        let mut last = None;
        {
            let tombstones = self.storage.table(schema::TOMBSTONES)?;
            let mut range = tombstones.from_etag(BY_ETAG, 0, jackdaw_storage::Order::Ascending)?;
            for _ in 0..count_max {
                let Some(row) = range.next()? else { break };
                let etag = schema::number(&row, schema::column::ETAG)?;
                if etag > to {
                    break;
                }
                last = Some(etag);
            }
        }
        match last {
            Some(last) => {
                Ok(self.storage.table_mut(schema::TOMBSTONES)?.delete_etag_range(BY_ETAG, 0, last)?)
            }
            None => Ok(0),
        }
    }
}
