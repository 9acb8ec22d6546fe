//! Compare-exchange values: keys on which a whole cluster agrees, each with the index of its last write.

use crate::error::{Error, Result};
use crate::ids;
use crate::schema;
use crate::snapshot::{CompareExchange, compare_exchange};
use crate::transaction::Transaction;

/// The most bytes of a key, in lower case.
pub(crate) const KEY_SIZE_MAX: usize = 512;

/// Keys that begin so guard documents of cluster-wide transactions.
pub(crate) const GUARD_PREFIX: &str = "rvn-atomic/";

/// How a compare-exchange write went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompareExchangeResult {
    /// Whether the index was the expected one, so that the write happened.
    pub successful: bool,
    /// The value's index now; for a deletion the index of the deletion; 0 when there is no value.
    pub index: i64,
    /// The value now (for a deletion the deleted one): the bytes of a document `{"Object":...}`.
    pub value: Option<Vec<u8>>,
}

impl Transaction<'_> {
    /// The value of a key as this job sees it.
    pub fn get_compare_exchange(&self, key: &str) -> Result<Option<CompareExchange<'_>>> {
        let key = ids::lower(key);
        if key.is_empty() || key.len() > KEY_SIZE_MAX {
            return Ok(None);
        }
        self.storage.table(schema::COMPARE_EXCHANGE)?.get(key.as_bytes())?.map(compare_exchange).transpose()
    }

    /// Stores a value when the key's index is `index` (0: there must be none). `value` is a document `{"Object":...}`, with `@metadata` when
    /// it has any.
    ///
    /// Errors: [`Error::CompareExchangeKeyTooBig`], [`Error::CompareExchangeKeyInvalid`]; those of storage.
    pub fn put_compare_exchange(
        &mut self,
        key: &str,
        index: i64,
        value: &[u8],
    ) -> Result<CompareExchangeResult> {
        check_key(key)?;
        if let Some(other) = self.other_index(key, index)? {
            return Ok(other);
        }
        let index = self.next_cluster_index();
        self.write_compare_exchange(key, index, value)?;
        Ok(CompareExchangeResult { successful: true, index, value: Some(value.to_vec()) })
    }

    /// Removes a value when the key's index is `index`.
    ///
    /// Errors: as for [`Transaction::put_compare_exchange`].
    pub fn delete_compare_exchange(&mut self, key: &str, index: i64) -> Result<CompareExchangeResult> {
        check_key(key)?;
        let Some(current) = self.get_compare_exchange(key)? else {
            return Ok(CompareExchangeResult { successful: false, index: 0, value: None });
        };
        let value = Some(current.value.as_bytes().to_vec());
        if current.index != index {
            return Ok(CompareExchangeResult { successful: false, index: current.index, value });
        }
        let index = self.next_cluster_index();
        self.remove_compare_exchange(key)?;
        Ok(CompareExchangeResult { successful: true, index, value })
    }

    /// The present value, when its index is not the given one.
    fn other_index(&self, key: &str, index: i64) -> Result<Option<CompareExchangeResult>> {
        let current = self.get_compare_exchange(key)?;
        let (actual, value) = match &current {
            Some(current) => (current.index, Some(current.value.as_bytes().to_vec())),
            None => (0, None),
        };
        Ok((actual != index.max(0)).then_some(CompareExchangeResult {
            successful: false,
            index: actual,
            value,
        }))
    }

    /// Writes a value, whatever is there.
    pub(super) fn write_compare_exchange(&mut self, key: &str, index: i64, value: &[u8]) -> Result<()> {
        let lower = ids::lower(key);
        let row = self
            .state
            .row
            .push(lower.as_bytes())
            .push(key.as_bytes())
            .push_i64(index)
            .push(value)
            .finish()?;
        self.storage.table_mut(schema::COMPARE_EXCHANGE)?.upsert(row)?;
        self.state.changed.add_compare_exchange();
        Ok(())
    }

    pub(super) fn remove_compare_exchange(&mut self, key: &str) -> Result<bool> {
        self.state.changed.add_compare_exchange();
        Ok(self.storage.table_mut(schema::COMPARE_EXCHANGE)?.delete(ids::lower(key).as_bytes())?)
    }
}

/// Errors: the key is empty, too long or reserved.
pub(crate) fn check_key(key: &str) -> Result<()> {
    let lower = ids::lower(key);
    if lower.is_empty() {
        return Err(Error::InvalidArgument("a compare-exchange key must not be empty".to_owned()));
    }
    if lower.len() > KEY_SIZE_MAX {
        return Err(Error::CompareExchangeKeyTooBig { size: lower.len(), max: KEY_SIZE_MAX });
    }
    if lower.starts_with(GUARD_PREFIX) {
        return Err(Error::CompareExchangeKeyInvalid(format!(
            "'{key}' cannot be changed by itself: keys that begin with '{GUARD_PREFIX}' guard documents of cluster-wide transactions"
        )));
    }
    Ok(())
}
