//! Trees and results as JSON, for people: what a document contributes, how a key's result came about, the entries of all keys.

use std::ops::Bound;

use jackdaw_document::{Context, Mode, Style};
use serde_json::{Value, json};

use super::error::{Error, Result};
use super::key::{KeyReader, STORED_SIZE_MAX, hash, stored};
use super::node::{children, entries};
use super::snapshot::{Snapshot, record};
use super::source;
use super::state::Trees;
use super::update::{node_key, node_place};

/// Shows a pack of a key as JSON.
pub type Show<'s> = dyn FnMut(&[u8], &[u8]) -> Result<Value> + 's;

/// The values of a key, as an array.
pub fn show_key(key: &[u8]) -> Result<Value> {
    let context = Context::new();
    let mut wrong = None;
    let document = context.build(Mode::Memory, |builder| {
        builder.begin_array()?;
        let mut reader = KeyReader::new(key);
        while !reader.is_empty() && wrong.is_none() {
            wrong = reader.value(builder).err();
        }
        builder.end()
    });
    match wrong {
        Some(error) => Err(error),
        None => parsed(&document?.to_json(Style::Compact)),
    }
}

pub(super) fn parsed(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|_| Error::damaged("a result", "it is no JSON"))
}

impl Snapshot {
    /// The trees of all keys that a document has results of, each around those results ([`Snapshot::key_tree`]); `None` when it has none. `id` is spelled as the
    /// batch spelled it.
    pub fn document_trees(
        &self,
        id: &[u8],
        items_max: usize,
        show: &mut Show<'_>,
    ) -> Result<Option<Vec<Value>>> {
        let Some(bytes) = self.transaction.tree(Trees::SOURCES)?.get(id)? else { return Ok(None) };
        let name = String::from_utf8_lossy(id);
        let damaged = || Error::damaged(format!("the record of document `{name}`"), "it does not read");
        let mut trees = Vec::new();
        for had in source::read(bytes).ok_or_else(damaged)? {
            let around = Around { entry: had.entry, source: &name };
            trees.extend(self.key_tree(had.key, Some(around), items_max, show)?);
        }
        Ok(Some(trees))
    }

    /// The tree of a key: its nodes with their reductions, and the results in its leaves; `None` when no document has it.
    ///
    /// Around an entry, only the nodes that lead to it are opened; the others stand with their reductions alone. Of more than `items_max` nodes and results the
    /// first are shown; the others are counted where they would stand.
    pub fn key_tree(
        &self,
        key: &[u8],
        around: Option<Around<'_>>,
        items_max: usize,
        show: &mut Show<'_>,
    ) -> Result<Option<Value>> {
        let mut short = [0; STORED_SIZE_MAX];
        let stored = stored(key, &mut short);
        let Some(bytes) = self.transaction.tree(Trees::KEYS)?.get(stored)? else { return Ok(None) };
        let record = record(stored, bytes)?;
        let key = record.full_key.unwrap_or(stored);
        let from = node_key(record.number, 0, 0);
        let to = node_key(record.number, u8::MAX, u64::MAX);
        let nodes = match record.number {
            0 => 0,
            _ => self
                .transaction
                .tree(Trees::NODES)?
                .estimate_count(Bound::Included(&from), Bound::Included(&to))?,
        };
        let mut walk =
            Walk { snapshot: self, key, number: record.number, around, left: items_max, pages: 0, show };
        let root = walk.node(record.level, 0, record.root, record.partial)?;
        Ok(Some(json!({
            "Name": hash(stored).to_string(),
            "DisplayName": show_key(key)?.to_string(),
            "Depth": record.level + 1,
            "PageCount": nodes + 1,
            "NumberOfEntries": record.count,
            "Root": root,
        })))
    }
}

/// What a tree is shown around.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// The entry.
    pub entry: u64,
    /// The document that it comes from.
    pub source: &'a str,
}

/// A walk through the nodes of a key.
struct Walk<'w, 's> {
    snapshot: &'w Snapshot,
    key: &'w [u8],
    number: u64,
    around: Option<Around<'w>>,
    /// Nodes and results that may still be shown.
    left: usize,
    /// Nodes shown so far: they are numbered.
    pages: u64,
    show: &'w mut Show<'s>,
}

impl Walk<'_, '_> {
    fn node(&mut self, level: u8, low: u64, bytes: &[u8], partial: Option<&[u8]>) -> Result<Value> {
        let number = self.number;
        let damaged = |found| Error::damaged(node_place(number, level, low), found);
        self.pages += 1;
        let page = self.pages;
        let reduced = partial.map_or(Ok(Value::Null), |partial| (self.show)(self.key, partial))?;
        let (mut below, mut results, mut hidden) = (Value::Null, Value::Null, 0);
        if level == 0 {
            let held = entries(bytes).ok_or_else(|| damaged("it is no leaf"))?;
            let mut shown = Vec::new();
            for entry in &held {
                let around = self.around.filter(|around| around.entry == entry.number);
                // What is asked for is shown in any case.
                if self.left == 0 && around.is_none() {
                    hidden += 1;
                    continue;
                }
                self.left = self.left.saturating_sub(1);
                let data = (self.show)(self.key, entry.pack)?;
                shown.push(json!({ "Entry": entry.number, "Data": data, "Source": around.map(|around| around.source) }));
            }
            results = Value::Array(shown);
        } else {
            let listed = children(bytes).ok_or_else(|| damaged("it is no branch"))?;
            let nodes = self.snapshot.transaction.tree(Trees::NODES)?;
            let towards = self
                .around
                .map(|around| listed.partition_point(|child| child.low <= around.entry).saturating_sub(1));
            let mut shown = Vec::new();
            for (at, child) in listed.iter().enumerate() {
                if self.left == 0 && towards != Some(at) {
                    hidden += 1;
                    continue;
                }
                self.left = self.left.saturating_sub(1);
                if towards.is_some_and(|towards| towards != at) {
                    let reduced =
                        child.partial.map_or(Ok(Value::Null), |partial| (self.show)(self.key, partial))?;
                    self.pages += 1;
                    shown.push(json!({
                        "PageNumber": self.pages, "AggregationResult": reduced, "Children": null, "Entries": null,
                        "NumberOfEntries": child.count,
                    }));
                    continue;
                }
                let stored = node_key(number, level - 1, child.low);
                let bytes = nodes.get(&stored)?.ok_or_else(|| damaged("a child is missing"))?;
                shown.push(self.node(level - 1, child.low, bytes, child.partial)?);
            }
            below = Value::Array(shown);
        }
        Ok(json!({
            "PageNumber": page, "AggregationResult": reduced, "Children": below, "Entries": results, "Size": bytes.len(),
            "NotShown": hidden,
        }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use jackdaw_storage::{Environment, Options as StorageOptions};
    use jackdaw_testkit::temporary_directory;

    use super::super::{Batch, Engine, Key, KeyValue, Options, ReduceError, Reduction};
    use super::*;

    /// Packs are numbers of one byte.
    struct Add;

    impl Reduction for Add {
        fn reduce(&mut self, _key: &[u8], packs: &[&[u8]], out: &mut Vec<u8>) -> Result<(), ReduceError> {
            out.push(packs.iter().map(|pack| pack[0]).fold(0, u8::wrapping_add));
            Ok(())
        }
    }

    #[test]
    fn trees_show_what_is_there() {
        let directory = temporary_directory();
        let environment = Environment::open(directory.path(), StorageOptions::default()).unwrap();
        let engine = Engine::open(environment, &Options { node_bytes_max: 64, node_items_max: 4 }).unwrap();
        let mut batch = Batch::new();
        let key = Key::of(KeyValue::Text("a"));
        for number in 0..10u8 {
            batch.begin(format!("d/{number}").as_bytes(), true);
            batch.emit(key.as_bytes(), &[number]);
        }
        batch.emit(Key::of(KeyValue::Integer(7)).as_bytes(), &[70]);
        engine.apply(&mut batch, &mut |_| Ok(Vec::new()), &|| Add, 1).unwrap();

        let snapshot = engine.read().unwrap();
        let mut show = |_: &[u8], pack: &[u8]| Ok(json!(pack[0]));
        let tree = snapshot.key_tree(key.as_bytes(), None, 100, &mut show).unwrap().unwrap();
        assert_eq!((&tree["DisplayName"], &tree["NumberOfEntries"]), (&json!("[\"a\"]"), &json!(10)));
        assert_eq!((&tree["Depth"], &tree["Root"]["AggregationResult"]), (&json!(2), &json!(45)));
        let leaves = tree["Root"]["Children"].as_array().unwrap();
        let reduced: Vec<_> = leaves.iter().map(|leaf| leaf["AggregationResult"].as_i64().unwrap()).collect();
        assert_eq!(reduced, [6, 22, 17]);
        let last = [
            json!({ "Entry": 9, "Data": 8, "Source": null }),
            json!({ "Entry": 10, "Data": 9, "Source": null }),
        ];
        assert_eq!(leaves[2]["Entries"], json!(last));

        let cut = snapshot.key_tree(key.as_bytes(), None, 3, &mut show).unwrap().unwrap();
        assert_eq!(cut["Root"]["NotShown"], json!(2));
        assert_eq!(cut["Root"]["Children"][0]["NotShown"], json!(2));

        let trees = snapshot.document_trees(b"d/9", 3, &mut show).unwrap().unwrap();
        assert_eq!(trees.len(), 2);
        let leaves = trees[0]["Root"]["Children"].as_array().unwrap();
        assert_eq!((&leaves[0]["Entries"], &leaves[0]["AggregationResult"]), (&json!(null), &json!(6)));
        let own = json!({ "Entry": 10, "Data": 9, "Source": "d/9" });
        assert!(leaves[2]["Entries"].as_array().unwrap().contains(&own), "{}", leaves[2]);
        assert_eq!(trees[1]["DisplayName"], json!("[7]"));
        assert!(snapshot.document_trees(b"d/none", 3, &mut show).unwrap().is_none());
        assert!(snapshot.key_tree(b"none", None, 9, &mut show).unwrap().is_none());
    }
}
