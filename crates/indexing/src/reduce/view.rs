//! Trees and results as JSON, for people: what a document contributes, how a key's result came about, the entries of all keys.

use jackdaw_document::{Context, Mode, Style};
use serde_json::{Value, json};

use super::error::{Error, Result};
use super::key::{KeyReader, STORED_SIZE_MAX, hash, stored};
use super::node::{children, entries};
use super::pack::documents;
use super::snapshot::{Snapshot, record};
use super::source;
use super::state::Trees;
use super::update::{node_key, node_place};

/// Shows a pack of a key as JSON.
pub type Show<'s> = dyn FnMut(&[u8], &[u8]) -> Result<Value> + 's;

/// Shows packs that are documents: one as it is, several as an array.
pub fn show_documents(_key: &[u8], pack: &[u8]) -> Result<Value> {
    let mut shown = Vec::new();
    for document in documents(pack) {
        shown.push(parsed(&document?.to_json(Style::Compact))?);
    }
    Ok(if shown.len() == 1 { shown.remove(0) } else { Value::Array(shown) })
}

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

fn parsed(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|_| Error::damaged("a result", "it is no JSON"))
}

impl Snapshot {
    /// The results of a document's maps, each with its key and the path of nodes that it goes through to the key's result; `None` when it
    /// has none. `id` is spelled as the batch spelled it.
    pub fn document_tree(&self, id: &[u8], show: &mut Show<'_>) -> Result<Option<Value>> {
        let Some(bytes) = self.transaction.tree(Trees::SOURCES)?.get(id)? else { return Ok(None) };
        let id = String::from_utf8_lossy(id);
        let damaged = || Error::damaged(format!("the record of document `{id}`"), "it does not read");
        let mut results = Vec::new();
        for had in source::read(bytes).ok_or_else(damaged)? {
            let path = self.path(had.key, had.entry, show)?;
            results.push(json!({ "Entry": had.entry, "Hash": had.hash.to_string(), "Path": path }));
        }
        Ok(Some(json!({ "Document": id, "Results": results })))
    }

    /// A key, and the nodes from its root down to the leaf of an entry, each with its reduction.
    fn path(&self, key: &[u8], entry: u64, show: &mut Show<'_>) -> Result<Value> {
        let bytes = self.transaction.tree(Trees::KEYS)?.get(key)?;
        let bytes = bytes
            .ok_or_else(|| Error::damaged(format!("key \"{}\"", key.escape_ascii()), "it is missing"))?;
        let record = record(key, bytes)?;
        let key = record.full_key.unwrap_or(key);
        let mut shown =
            |partial: Option<&[u8]>| partial.map_or(Ok(Value::Null), |partial| show(key, partial));
        let (mut low, mut bytes, mut nodes) = (0, record.root, Vec::new());
        let mut partial = shown(record.partial)?;
        let nodes_tree = self.transaction.tree(Trees::NODES)?;
        for level in (1..=record.level).rev() {
            let damaged = || Error::damaged(node_place(record.number, level, low), "it does not read");
            let below = children(bytes).ok_or_else(damaged)?;
            nodes.push(json!({ "Level": level, "Low": low, "Children": below.len(), "Reduced": partial }));
            let at = below.partition_point(|child| child.low <= entry).saturating_sub(1);
            let child = below.get(at).ok_or_else(damaged)?;
            partial = shown(child.partial)?;
            let stored = node_key(record.number, level - 1, child.low);
            bytes = nodes_tree.get(&stored)?.ok_or_else(damaged)?;
            low = child.low;
        }
        let leaf = entries(bytes)
            .ok_or_else(|| Error::damaged(node_place(record.number, 0, low), "it is no leaf"))?;
        nodes.push(json!({ "Level": 0, "Low": low, "Results": leaf.len(), "Reduced": partial }));
        let mapped = leaf.iter().find(|held| held.number == entry);
        let mapped = shown(mapped.map(|held| held.pack))?;
        Ok(
            json!({ "Key": show_key(key)?, "Hash": hash(key).to_string(), "Count": record.count, "Nodes": nodes, "Mapped": mapped }),
        )
    }

    /// The tree of a key: its nodes with their reductions, and the results in its leaves; `None` when no document has it. Of more than `items_max` nodes and
    /// results only the first are shown; the others are counted where they would stand.
    pub fn key_tree(&self, key: &[u8], items_max: usize, show: &mut Show<'_>) -> Result<Option<Value>> {
        let mut short = [0; STORED_SIZE_MAX];
        let stored = stored(key, &mut short);
        let Some(bytes) = self.transaction.tree(Trees::KEYS)?.get(stored)? else { return Ok(None) };
        let record = record(stored, bytes)?;
        let key = record.full_key.unwrap_or(stored);
        let mut left = items_max;
        let root = Place { key, number: record.number, level: record.level, low: 0 };
        let root = self.node_tree(root, record.root, record.partial, &mut left, show)?;
        Ok(Some(
            json!({ "Key": show_key(key)?, "Hash": hash(stored).to_string(), "Count": record.count, "Root": root }),
        ))
    }

    fn node_tree(
        &self,
        place: Place<'_>,
        bytes: &[u8],
        partial: Option<&[u8]>,
        left: &mut usize,
        show: &mut Show<'_>,
    ) -> Result<Value> {
        let damaged = |found| Error::damaged(node_place(place.number, place.level, place.low), found);
        let reduced = partial.map_or(Ok(Value::Null), |partial| show(place.key, partial))?;
        let mut shown = Vec::new();
        let (name, total) = if place.level == 0 {
            let held = entries(bytes).ok_or_else(|| damaged("it is no leaf"))?;
            for entry in &held[..held.len().min(*left)] {
                shown.push(json!({ "Entry": entry.number, "Result": show(place.key, entry.pack)? }));
            }
            *left -= shown.len();
            ("Results", held.len())
        } else {
            let below = children(bytes).ok_or_else(|| damaged("it is no branch"))?;
            let nodes = self.transaction.tree(Trees::NODES)?;
            for child in &below {
                if *left == 0 {
                    break;
                }
                *left -= 1;
                let stored = node_key(place.number, place.level - 1, child.low);
                let bytes = nodes.get(&stored)?.ok_or_else(|| damaged("a child is missing"))?;
                let place = Place { level: place.level - 1, low: child.low, ..place };
                shown.push(self.node_tree(place, bytes, child.partial, left, show)?);
            }
            ("Children", below.len())
        };
        let hidden = total - shown.len();
        Ok(json!({
            "Level": place.level, "Low": place.low, "Size": bytes.len(), "Reduced": reduced, name: shown, "NotShown": hidden,
        }))
    }
}

/// Where a node is.
#[derive(Clone, Copy)]
struct Place<'k> {
    key: &'k [u8],
    number: u64,
    level: u8,
    low: u64,
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
        let tree = snapshot.key_tree(key.as_bytes(), 100, &mut show).unwrap().unwrap();
        assert_eq!(
            (&tree["Key"], &tree["Count"], &tree["Root"]["Reduced"]),
            (&json!(["a"]), &json!(10), &json!(45))
        );
        let leaves = tree["Root"]["Children"].as_array().unwrap();
        let reduced: Vec<_> = leaves.iter().map(|leaf| leaf["Reduced"].as_i64().unwrap()).collect();
        assert_eq!(reduced, [6, 22, 17]);
        assert_eq!(leaves[2]["Results"], json!([{ "Entry": 9, "Result": 8 }, { "Entry": 10, "Result": 9 }]));

        let cut = snapshot.key_tree(key.as_bytes(), 3, &mut show).unwrap().unwrap();
        assert_eq!(cut["Root"]["NotShown"], json!(2));
        assert_eq!(cut["Root"]["Children"][0]["NotShown"], json!(2));

        let document = snapshot.document_tree(b"d/9", &mut show).unwrap().unwrap();
        let results = document["Results"].as_array().unwrap();
        assert_eq!(results.len(), 2);
        assert_eq!(
            results[0]["Path"]["Nodes"][1],
            json!({ "Level": 0, "Low": 9, "Results": 2, "Reduced": 17 })
        );
        assert_eq!((&results[0]["Path"]["Mapped"], &results[1]["Path"]["Mapped"]), (&json!(9), &json!(70)));
        assert_eq!(results[1]["Path"]["Key"], json!([7]));
        assert!(snapshot.document_tree(b"d/none", &mut show).unwrap().is_none());
        assert!(snapshot.key_tree(b"none", 9, &mut show).unwrap().is_none());
    }
}
