//! Tombstones: what is left of deleted documents until everybody who must know has seen it.

use crate::Etag;
use crate::error::Result;
use crate::schema::{self, BY_ETAG};
use crate::transaction::Transaction;

impl Transaction<'_> {
    /// The document is back, in the collection of this number. Where that is another one than before, the tombstone stays under a key of its own, so that
    /// who follows the old collection hears that the document is gone from there.
    pub(super) fn forget_tombstone(&mut self, key: &str, collection: u32) -> Result<()> {
        let mut tombstones = self.storage.table_mut(schema::TOMBSTONES)?;
        if tombstones.is_empty() {
            return Ok(());
        }
        let Some(row) = tombstones.read().get(key.as_bytes())? else { return Ok(()) };
        let columns: Vec<Vec<u8>> = (0..schema::column::CONTENT).map(|at| row.column(at).to_vec()).collect();
        tombstones.delete(key.as_bytes())?;
        let left = &columns[schema::column::COLLECTION];
        if *left == collection.to_be_bytes() {
            return Ok(());
        }
        let mut moved = vec![schema::MOVED];
        moved.extend_from_slice(left);
        moved.extend_from_slice(key.as_bytes());
        let builder = self.state.row.push(&moved);
        for (at, column) in columns.iter().enumerate().skip(1) {
            match at {
                schema::column::ID if column.is_empty() => builder.push(key.as_bytes()),
                _ => builder.push(column),
            };
        }
        let row = builder.finish()?;
        tombstones.upsert(row)?;
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
