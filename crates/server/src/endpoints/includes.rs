//! Documents that others name, loaded along with them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use jackdaw_database::{Snapshot, StoredDocument, ids};
use jackdaw_document::{Path, Style, Value};

use crate::error::{ErrorKind, Result};
use crate::json_text as json;

/// A path to properties that hold ids: `Company`, `Lines[].Product`, `Company(companies/)` where the property lacks the ids' beginning.
pub(crate) struct Include {
    path: Path,
    prefix: String,
}

impl Include {
    /// Error: it is no path.
    pub(crate) fn parse(text: &str) -> Result<Include> {
        let (path, prefix) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((path, prefix)) => (path, prefix),
            None => (text, ""),
        };
        let path = Path::parse(path)
            .map_err(|error| ErrorKind::Argument.error(format!("'{text}' is no path to include: {error}")))?;
        Ok(Include { path, prefix: prefix.to_owned() })
    }

    fn visit(&self, document: &StoredDocument<'_>, mut each: impl FnMut(String)) {
        self.path.visit_through_arrays(&document.document.root(), |value| {
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
pub(crate) struct Includes {
    ids: Vec<String>,
    seen: BTreeSet<String>,
    keys: BTreeSet<String>,
}

impl Includes {
    /// Notes what a document names.
    pub(crate) fn collect(
        &mut self,
        document: &StoredDocument<'_>,
        documents: &[Include],
        exchange: &[Include],
    ) {
        for include in documents {
            include.visit(document, |id| {
                if self.seen.insert(ids::lower(&id).into_owned()) {
                    self.ids.push(id);
                }
            });
        }
        for include in exchange {
            include.visit(document, |key| {
                self.keys.insert(key);
            });
        }
    }

    /// The named documents that exist, but for those of `asked`, which the answer has anyway.
    pub(crate) fn documents<'s>(
        &self,
        snapshot: &'s Snapshot,
        asked: &[Cow<'_, str>],
    ) -> Result<Vec<StoredDocument<'s>>> {
        let mut documents = Vec::with_capacity(self.ids.len());
        for id in &self.ids {
            if !asked.iter().any(|asked| ids::lower(asked) == ids::lower(id)) {
                documents.extend(snapshot.document(id)?);
            }
        }
        Ok(documents)
    }

    /// The indexes of the named compare-exchange values; -1 for those that do not exist.
    pub(crate) fn compare_exchange_indexes(&self, snapshot: &Snapshot) -> Result<Vec<i64>> {
        self.keys
            .iter()
            .map(|key| Ok(snapshot.compare_exchange(key)?.map_or(-1, |found| found.index)))
            .collect()
    }

    /// Appends the block of the named compare-exchange values.
    pub(crate) fn print_compare_exchange(&self, snapshot: &Snapshot, out: &mut Vec<u8>) -> Result<()> {
        json::name(out, "CompareExchangeValueIncludes");
        out.push(b'{');
        for key in &self.keys {
            if !out.ends_with(b"{") {
                out.push(b',');
            }
            jackdaw_database::append_json_string(key, out);
            out.extend_from_slice(b":{");
            let found = snapshot.compare_exchange(key)?;
            json::string(out, "Key", found.as_ref().map_or(key, |found| found.key));
            json::number(out, "Index", found.as_ref().map_or(-1, |found| found.index));
            json::name(out, "Value");
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
