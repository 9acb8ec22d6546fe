//! Identities: numbers that go up by one, by name.

use crate::error::{Error, Result};
use crate::ids;
use crate::schema;
use crate::transaction::Transaction;

/// The key of an identity: lower case, with the bar that clients may leave out.
fn key(name: &str) -> Result<String> {
    let mut key = ids::lower(name).into_owned();
    if !key.ends_with('|') {
        key.push('|');
    }
    match key.len() {
        1 => Err(Error::InvalidArgument("the name of an identity must not be empty".to_owned())),
        size if size > ids::ID_SIZE_MAX => {
            let max = ids::ID_SIZE_MAX;
            Err(Error::InvalidArgument(format!(
                "the name of an identity has {size} bytes; the longest allowed has {max}"
            )))
        }
        _ => Ok(key),
    }
}

impl Transaction<'_> {
    /// The next value of an identity; the first is 1.
    pub fn next_identity(&mut self, name: &str) -> Result<i64> {
        let key = key(name)?;
        let mut identities = self.storage.tree_mut(schema::IDENTITIES)?;
        let last = identities.get(key.as_bytes())?.map_or(Ok(0), schema::i64_of)?;
        let next = last
            .checked_add(1)
            .ok_or_else(|| Error::InvalidOperation(format!("the identity '{key}' has no values left")))?;
        identities.put(key.as_bytes(), &next.to_be_bytes())?;
        Ok(next)
    }

    /// Lets an identity go on from `value`; without `force` only upwards. Returns its value now.
    pub fn seed_identity(&mut self, name: &str, value: i64, force: bool) -> Result<i64> {
        let key = key(name)?;
        let mut identities = self.storage.tree_mut(schema::IDENTITIES)?;
        let last = identities.get(key.as_bytes())?.map(schema::i64_of).transpose()?;
        match last {
            Some(last) if last >= value && !force => Ok(last),
            _ => {
                identities.put(key.as_bytes(), &value.to_be_bytes())?;
                Ok(value)
            }
        }
    }
}
