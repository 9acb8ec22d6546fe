//! What several of these tests need.

#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use jackdaw_storage::{Environment, ReadTransaction, Result, TreeMut, WriteTransaction};

/// All trees of an environment: names to keys to values.
pub(crate) type Contents = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>;

/// Reads all trees through cursors.
pub(crate) fn contents(snapshot: &ReadTransaction) -> Result<Contents> {
    let mut contents = Contents::new();
    for (name, _kind) in snapshot.trees()? {
        let mut entries = BTreeMap::new();
        let mut walk = snapshot.tree(&name)?.iter()?;
        while let Some((key, value)) = walk.next()? {
            entries.insert(key.to_vec(), value.to_vec());
        }
        contents.insert(name, entries);
    }
    Ok(contents)
}

/// The tree, made when it is missing.
pub(crate) fn tree_mut<'t>(transaction: &'t mut WriteTransaction, name: &[u8]) -> Result<TreeMut<'t>> {
    transaction.create_tree(name)
}

/// `check` finds nothing.
pub(crate) fn assert_checked(environment: &Environment, place: &str) {
    let report = environment.check().unwrap_or_else(|error| panic!("{place}: check: {error}"));
    assert!(report.is_clean(), "{place}: check finds {:?}", report.problems);
}
