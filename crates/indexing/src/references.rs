//! Which documents an index loaded for which: a storage environment beside the search index, only for indexes whose functions load.
//!
//! ```text
//! by-document:  lower-case id of the mapped document  -> kinds and lower-case keys that it asked for, each ended by 0
//! by-reference: kind, lower-case key, 0, lower-case id -> nothing
//! ```
//!
//! A batch commits here before the search index does. What is in between is written again by the batch that follows a crash, since that begins
//! where the search index is; references too many in the meantime do no harm.

use std::path::Path;

use jackdaw_storage::{Environment, Options, Order, WriteTransaction};

use crate::error::{Error, Result};
use crate::map::Asked;

const BY_DOCUMENT: &[u8] = b"by-document";
const BY_REFERENCE: &[u8] = b"by-reference";

/// What is referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Document,
    CompareExchange,
}

impl Kind {
    fn byte(self) -> u8 {
        match self {
            Kind::Document => b'd',
            Kind::CompareExchange => b'x',
        }
    }
}

/// The references of one index.
pub(crate) struct References(Environment);

/// Changes of one batch.
pub(crate) struct Changes(WriteTransaction);

impl References {
    /// Opens them in a directory, making it when there is none.
    pub(crate) fn open(path: &Path) -> Result<References> {
        let options = Options::default().scratch_size_max(32 << 20).journal_zeroed_max(1 << 20);
        let environment = Environment::open(path, options)?;
        let mut transaction = environment.write()?;
        transaction.create_tree(BY_DOCUMENT)?;
        transaction.create_tree(BY_REFERENCE)?;
        transaction.commit()?;
        Ok(References(environment))
    }

    pub(crate) fn begin(&self) -> Result<Changes> {
        Ok(Changes(self.0.write()?))
    }

    /// Gives each document that asked for `key` to `each`, in order of their ids, from the first after `after` on, until it returns `false`.
    pub(crate) fn referrers(
        &self,
        kind: Kind,
        key: &str,
        mut each: impl FnMut(&str) -> Result<bool>,
    ) -> Result<()> {
        let snapshot = self.0.read()?;
        let tree = snapshot.tree(BY_REFERENCE)?;
        let prefix = reference_key(kind, key, "");
        let mut range = tree.prefix(&prefix, Order::Ascending)?;
        while let Some((found, _)) = range.next()? {
            let id = found.get(prefix.len()..).and_then(|id| std::str::from_utf8(id).ok());
            let id = id.ok_or_else(|| Error::Damaged("a reference".to_owned()))?;
            if !each(id)? {
                break;
            }
        }
        Ok(())
    }

    /// All keys of compare-exchange values that documents asked for.
    pub(crate) fn compare_exchange_keys(&self) -> Result<Vec<String>> {
        let snapshot = self.0.read()?;
        let tree = snapshot.tree(BY_REFERENCE)?;
        let mut keys: Vec<String> = Vec::new();
        let mut range = tree.prefix(&[Kind::CompareExchange.byte()], Order::Ascending)?;
        while let Some((found, _)) = range.next()? {
            let key = found.get(1..).and_then(|rest| rest.split(|byte| *byte == 0).next());
            let key = key.and_then(|key| std::str::from_utf8(key).ok());
            let key = key.ok_or_else(|| Error::Damaged("a reference".to_owned()))?;
            if keys.last().is_none_or(|last| last != key) {
                keys.push(key.to_owned());
            }
        }
        Ok(keys)
    }

    /// Closes the files; what is committed is there at the next opening.
    pub(crate) fn close(self) -> Result<()> {
        match self.0.close() {
            Ok(()) | Err(jackdaw_storage::Error::Closed | jackdaw_storage::Error::Invalid(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Changes {
    /// The document asked for exactly this the last time it was mapped.
    pub(crate) fn set(&mut self, document: &str, asked: &Asked) -> Result<()> {
        let mut new = Vec::new();
        let kinds = [(Kind::Document, &asked.documents), (Kind::CompareExchange, &asked.compare_exchange)];
        for (kind, keys) in kinds {
            for key in keys {
                new.push(kind.byte());
                new.extend_from_slice(key.as_bytes());
                new.push(0);
            }
        }
        let old = self.0.tree(BY_DOCUMENT)?.get(document.as_bytes())?.map(<[u8]>::to_vec);
        if old.as_deref().unwrap_or_default() == new {
            return Ok(());
        }
        let mut references = self.0.tree_mut(BY_REFERENCE)?;
        for one in each(old.as_deref().unwrap_or_default()) {
            references.delete(&whole_key(one, document))?;
        }
        for one in each(&new) {
            references.put(&whole_key(one, document), &[])?;
        }
        drop(references);
        let mut documents = self.0.tree_mut(BY_DOCUMENT)?;
        if new.is_empty() {
            documents.delete(document.as_bytes())?;
        } else {
            documents.put(document.as_bytes(), &new)?;
        }
        Ok(())
    }

    pub(crate) fn commit(self) -> Result<()> {
        self.0.commit()?;
        Ok(())
    }
}

/// Kind and key of each reference.
fn each(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|one| !one.is_empty())
}

fn whole_key(reference: &[u8], document: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(reference.len() + 1 + document.len());
    key.extend_from_slice(reference);
    key.push(0);
    key.extend_from_slice(document.as_bytes());
    key
}

fn reference_key(kind: Kind, key: &str, document: &str) -> Vec<u8> {
    let mut reference = vec![kind.byte()];
    reference.extend_from_slice(key.as_bytes());
    whole_key(&reference, document)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn asked(documents: &[&str], keys: &[&str]) -> Asked {
        let owned = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect();
        Asked { documents: owned(documents), compare_exchange: owned(keys) }
    }

    fn referrers(references: &References, kind: Kind, key: &str) -> Vec<String> {
        let mut found = Vec::new();
        let all = references.referrers(kind, key, |id| {
            found.push(id.to_owned());
            Ok(true)
        });
        all.unwrap();
        found
    }

    #[test]
    fn what_a_document_asked_for_last_counts() {
        let directory = tempfile::tempdir().unwrap();
        let references = References::open(directory.path()).unwrap();
        let set = |changes: &[(&str, Asked)]| {
            let mut transaction = references.begin().unwrap();
            changes.iter().for_each(|(id, asked)| transaction.set(id, asked).unwrap());
            transaction.commit().unwrap();
        };
        set(&[
            ("a", asked(&["x", "y"], &["k"])),
            ("b", asked(&["x"], &[])),
            ("ab", asked(&["xy"], &["k", "k2"])),
        ]);
        assert_eq!(referrers(&references, Kind::Document, "x"), ["a", "b"]);
        assert_eq!(referrers(&references, Kind::Document, "xy"), ["ab"]);
        assert_eq!(referrers(&references, Kind::CompareExchange, "k"), ["a", "ab"]);
        assert_eq!(references.compare_exchange_keys().unwrap(), ["k", "k2"]);
        set(&[("a", asked(&["y", "z"], &[])), ("b", asked(&[], &[]))]);
        assert_eq!(referrers(&references, Kind::Document, "x"), [""; 0]);
        assert_eq!(referrers(&references, Kind::Document, "z"), ["a"]);
        references.close().unwrap();
        let references = References::open(directory.path()).unwrap();
        assert_eq!(referrers(&references, Kind::CompareExchange, "k"), ["ab"]);
    }
}
