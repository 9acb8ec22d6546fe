//! Documents that others name, loaded along with them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use jackdaw_database::{Result, Snapshot, StoredDocument, append_json_string, ids};
use jackdaw_document::{Path, Style, Value};

/// A path to properties that hold ids: `Company`, `Lines[].Product`, `Company(companies/)` where the property lacks the ids' beginning.
#[derive(Debug)]
pub struct Include {
    path: Path,
    prefix: String,
}

impl Include {
    /// Reads a path.
    ///
    /// Error: it is none.
    pub fn parse(text: &str) -> Result<Include, jackdaw_document::Error> {
        let (path, prefix) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((path, prefix)) => (path, prefix),
            None => (text, ""),
        };
        Ok(Include { path: Path::parse(path)?, prefix: prefix.to_owned() })
    }

    fn visit(&self, root: &Value<'_>, mut each: impl FnMut(String)) {
        self.path.visit_through_arrays(root, |value| {
            match &value {
                Value::Array(array) => array.iter().for_each(|value| self.take(&value, &mut each)),
                value => self.take(value, &mut each),
            }
            true
        });
    }

    fn take(&self, value: &Value<'_>, each: &mut impl FnMut(String)) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            each(format!("{}{text}", self.prefix));
        } else if let Some(number) = value.as_number() {
            let mut text = self.prefix.clone().into_bytes();
            number.append_to(&mut text);
            each(String::from_utf8_lossy(&text).into_owned());
        }
    }
}

/// What a set of documents includes.
#[derive(Default)]
pub struct Includes {
    ids: Vec<String>,
    seen: BTreeSet<String>,
    keys: BTreeSet<String>,
}

impl Includes {
    /// Notes what a document, or another value, names.
    pub fn collect(&mut self, root: &Value<'_>, documents: &[Include], exchange: &[Include]) {
        for include in documents {
            include.visit(root, |id| self.add(id));
        }
        for include in exchange {
            include.visit(root, |key| {
                self.keys.insert(key);
            });
        }
    }

    /// Notes one document.
    pub fn add(&mut self, id: String) {
        if self.seen.insert(ids::lower(&id).into_owned()) {
            self.ids.push(id);
        }
    }

    /// Notes one compare-exchange value.
    pub fn add_key(&mut self, key: String) {
        self.keys.insert(key);
    }

    /// Whether compare-exchange values are named.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The named documents that exist, but for those whose ids `is_known`, in lower case, as the answer has them anyway.
    pub fn documents<'s>(
        &self,
        snapshot: &'s Snapshot,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<Vec<StoredDocument<'s>>> {
        let mut documents = Vec::with_capacity(self.ids.len());
        for id in &self.ids {
            let lower: Cow<'_, str> = ids::lower(id);
            if !is_known(&lower) {
                documents.extend(snapshot.document(id)?);
            }
        }
        Ok(documents)
    }

    /// The indexes of the named compare-exchange values; -1 for those that do not exist.
    pub fn compare_exchange_indexes(&self, snapshot: &Snapshot) -> Result<Vec<i64>> {
        self.keys
            .iter()
            .map(|key| Ok(snapshot.compare_exchange(key)?.map_or(-1, |found| found.index)))
            .collect()
    }

    /// Appends the named compare-exchange values as an object, by their keys.
    pub fn print_compare_exchange(&self, snapshot: &Snapshot, out: &mut Vec<u8>) -> Result<()> {
        out.push(b'{');
        for (at, key) in self.keys.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            append_json_string(key, out);
            out.extend_from_slice(b":{\"Key\":");
            let found = snapshot.compare_exchange(key)?;
            append_json_string(found.as_ref().map_or(key, |found| found.key), out);
            out.extend_from_slice(b",\"Index\":");
            let index = found.as_ref().map_or(-1, |found| found.index);
            out.extend_from_slice(index.to_string().as_bytes());
            out.extend_from_slice(b",\"Value\":");
            match &found {
                Some(found) => found.value.print_to(out, Style::Compact),
                None => out.extend_from_slice(b"null"),
            }
            out.push(b'}');
        }
        out.push(b'}');
        Ok(())
    }
}
