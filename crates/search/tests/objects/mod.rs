//! An index in a temporary directory, filled with JSON objects.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test uses a part of this")]
#![allow(clippy::unwrap_used, reason = "tests")]

use jackdaw_search::{
    Bound, Entry, FieldOptions, FieldValue, Index, Indexing, Query, Schema, Searcher, Sort, SortBy, Value,
};
use serde_json::Value as Json;

pub struct Sample {
    pub directory: tempfile::TempDir,
    pub index: Index,
}

pub const MEMORY: usize = 20 << 20;

/// A schema of these fields.
pub fn schema(fields: &[(&str, FieldOptions)]) -> Schema {
    Schema {
        fields: fields.iter().map(|(name, options)| ((*name).to_owned(), options.clone())).collect(),
        ..Schema::default()
    }
}

pub fn indexed(indexing: Indexing) -> FieldOptions {
    FieldOptions { indexing, ..FieldOptions::default() }
}

pub fn keywords(names: &[&str]) -> Schema {
    schema(&names.iter().map(|name| (*name, FieldOptions::default())).collect::<Vec<_>>())
}

impl Sample {
    pub fn new(schema: Schema) -> Sample {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::open(directory.path(), schema).unwrap();
        Sample { directory, index }
    }

    /// Adds objects with keys, in one commit.
    pub fn add<'a>(&self, objects: impl IntoIterator<Item = (&'a str, Json)>) -> &Sample {
        let mut writer = self.index.writer(MEMORY).unwrap();
        for (key, object) in objects {
            with_entry(key, &object, |entry| writer.add(entry).unwrap());
        }
        writer.commit(b"").unwrap();
        self
    }

    pub fn searcher(&self) -> Searcher {
        self.index.searcher()
    }

    /// The keys of all hits, in order.
    pub fn keys(&self, query: &Query, sorts: &[Sort]) -> Vec<String> {
        keys(&self.searcher(), query, sorts)
    }
}

pub fn keys(searcher: &Searcher, query: &Query, sorts: &[Sort]) -> Vec<String> {
    let page = searcher.search(query, sorts, 0, 1_000_000, false).unwrap();
    assert_eq!(page.total, page.hits.len() as u64, "the total of {query:?}");
    assert_eq!(page.total, searcher.count(query).unwrap(), "the count of {query:?}");
    page.hits.into_iter().map(|hit| hit.key).collect()
}

/// Gives the entry of an object to `each`.
pub fn with_entry(key: &str, object: &Json, each: impl FnOnce(&Entry<'_>)) {
    let owned: Vec<(String, Owned)> =
        object.as_object().unwrap().iter().map(|(name, value)| (name.clone(), Owned::of(value))).collect();
    let arrays: Vec<Vec<FieldValue<'_>>> = owned.iter().map(|(_, value)| value.flat()).collect();
    let fields: Vec<(&str, FieldValue<'_>)> = owned
        .iter()
        .zip(&arrays)
        .map(|((name, value), flat)| {
            (name.as_str(), if let Owned::Array(_) = value { FieldValue::Array(flat) } else { flat[0] })
        })
        .collect();
    each(&Entry { key, fields: &fields, stored: b"", references: &[], boost: 1.0 });
}

enum Owned {
    Null,
    Text(String),
    Long(i64),
    Double(f64, String),
    Bool(bool),
    Json(String),
    Array(Vec<Owned>),
}

impl Owned {
    fn of(value: &Json) -> Owned {
        match value {
            Json::Null => Owned::Null,
            Json::Bool(value) => Owned::Bool(*value),
            Json::String(text) => Owned::Text(text.clone()),
            Json::Number(number) => match number.as_i64() {
                Some(long) => Owned::Long(long),
                None => Owned::Double(number.as_f64().unwrap(), number.to_string()),
            },
            Json::Array(values) => Owned::Array(values.iter().map(Owned::of).collect()),
            Json::Object(_) => Owned::Json(value.to_string()),
        }
    }

    fn flat(&self) -> Vec<FieldValue<'_>> {
        match self {
            Owned::Null => vec![FieldValue::Null],
            Owned::Text(text) => vec![FieldValue::Text(text)],
            Owned::Long(value) => vec![FieldValue::Long(*value)],
            Owned::Double(value, text) => vec![FieldValue::Double { value: *value, text }],
            Owned::Bool(value) => vec![FieldValue::Bool(*value)],
            Owned::Json(text) => vec![FieldValue::Json(text)],
            Owned::Array(values) => values.iter().flat_map(Owned::flat).collect(),
        }
    }
}

pub trait IntoValue {
    fn value(self) -> Value;
}

impl IntoValue for &str {
    fn value(self) -> Value {
        Value::Text(self.to_owned())
    }
}

impl IntoValue for i64 {
    fn value(self) -> Value {
        Value::Long(self)
    }
}

impl IntoValue for f64 {
    fn value(self) -> Value {
        Value::Double(self)
    }
}

impl IntoValue for bool {
    fn value(self) -> Value {
        Value::Bool(self)
    }
}

impl IntoValue for Value {
    fn value(self) -> Value {
        self
    }
}

pub fn term(field: &str, value: impl IntoValue) -> Query {
    Query::Term { field: field.to_owned(), value: value.value(), exact: false }
}

pub fn exact(field: &str, value: impl IntoValue) -> Query {
    Query::Term { field: field.to_owned(), value: value.value(), exact: true }
}

pub fn not(query: Query) -> Query {
    Query::Not(Box::new(query))
}

pub fn range(field: &str, low: Bound, high: Bound) -> Query {
    Query::Range { field: field.to_owned(), low, high, exact: false }
}

pub fn above(field: &str, value: impl IntoValue) -> Query {
    range(field, Bound::Excluded(value.value()), Bound::Open)
}

pub fn below(field: &str, value: impl IntoValue) -> Query {
    range(field, Bound::Open, Bound::Excluded(value.value()))
}

pub fn between(field: &str, low: impl IntoValue, high: impl IntoValue) -> Query {
    range(field, Bound::Included(low.value()), Bound::Included(high.value()))
}

pub fn any_of<V: IntoValue>(field: &str, values: impl IntoIterator<Item = V>) -> Query {
    let values = values.into_iter().map(IntoValue::value).collect();
    Query::In { field: field.to_owned(), values, exact: false }
}

pub fn all_in<V: IntoValue>(field: &str, values: impl IntoIterator<Item = V>) -> Query {
    let values = values.into_iter().map(IntoValue::value).collect();
    Query::AllIn { field: field.to_owned(), values, exact: false }
}

pub fn sort(by: SortBy) -> Sort {
    Sort { by, descending: false }
}

pub fn descending(by: SortBy) -> Sort {
    Sort { by, descending: true }
}

/// Numbers that a seed decides.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}
