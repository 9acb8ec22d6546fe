//! What several of these tests need.

#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use jackdaw_storage::{Environment, ReadTransaction, Result, TreeMut, WriteTransaction};

/// All trees of an environment: names to keys to values.
pub type Contents = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>;

/// Reads all trees through cursors.
pub fn contents(snapshot: &ReadTransaction) -> Result<Contents> {
    let mut contents = Contents::new();
    for (name, _kind) in snapshot.trees()? {
        let mut entries = BTreeMap::new();
        for entry in snapshot.tree(&name)?.iter() {
            let (key, value) = entry?;
            entries.insert(key.to_vec(), value.to_vec());
        }
        contents.insert(name, entries);
    }
    Ok(contents)
}

/// The tree, made when it is missing.
pub fn tree_mut<'t>(transaction: &'t mut WriteTransaction, name: &[u8]) -> Result<TreeMut<'t>> {
    transaction.tree_or_create(name)
}

/// `check` finds nothing.
pub fn assert_checked(environment: &Environment, place: &str) {
    let report = environment.check().unwrap_or_else(|error| panic!("{place}: check: {error}"));
    assert!(report.problems.is_empty(), "{place}: check finds {:?}", report.problems);
}
