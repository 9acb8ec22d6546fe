//! Running maps and reduces in tests: entries become JSON lines.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking; not every test uses all of this"
)]

use std::collections::BTreeMap;

use jackdaw_document::{Context, Mode, Style, Value as Json};
use jackdaw_functions::{Entry, Host, Input, Limits, Map, Reduce, RuntimeError, Value};

/// Documents by id, and compare-exchange values.
pub(crate) struct Documents<'d> {
    pub(crate) documents: BTreeMap<String, Input<'d>>,
    pub(crate) values: BTreeMap<String, Json<'d>>,
    /// What was asked for, found or not.
    pub(crate) asked: Vec<String>,
}

impl<'d> Documents<'d> {
    pub(crate) fn none() -> Documents<'d> {
        Documents { documents: BTreeMap::new(), values: BTreeMap::new(), asked: Vec::new() }
    }
}

impl<'d> Host<'d> for Documents<'d> {
    fn load_document(
        &mut self,
        id: &str,
        collection: Option<&str>,
    ) -> Result<Option<Input<'d>>, RuntimeError> {
        self.asked.push(format!("{id} of {}", collection.unwrap_or("any")));
        Ok(self.documents.get(&id.to_lowercase()).copied())
    }

    fn compare_exchange(&mut self, key: &str) -> Result<Option<Json<'d>>, RuntimeError> {
        self.asked.push(format!("compare exchange {key}"));
        Ok(self.values.get(key).copied())
    }
}

/// An entry as JSON; missing fields are left out, dynamic fields show their options, a boost other than 1 shows as `@boost`.
pub(crate) fn entry_json(entry: &Entry<'_>) -> String {
    let context = Context::new();
    let built = context.build(Mode::Memory, |builder| {
        builder.begin_object()?;
        for (name, value) in entry.fields {
            if matches!(value, Value::Missing) {
                continue;
            }
            builder.name(name)?;
            if let Value::Boosted(boosted) = value {
                builder.begin_object()?;
                builder.name("@boost")?;
                builder.f64(f64::from(boosted.boost))?;
                builder.name("Value")?;
                boosted.value.append_to(builder)?;
                builder.end()?;
            } else {
                value.append_to(builder)?;
            }
        }
        if entry.boost != 1.0 {
            builder.name("@boost")?;
            builder.f64(f64::from(entry.boost))?;
        }
        builder.end()
    });
    built.unwrap().to_json(Style::Compact)
}

/// Runs a map over one document.
pub(crate) fn map_entries(map: &str, id: &str, document: &str) -> Result<Vec<String>, String> {
    let map = Map::compile(map, &BTreeMap::new()).map_err(|error| error.to_string())?;
    let context = Context::new();
    let document = context.parse(document).unwrap();
    let mut input = Input::new(document, id);
    input.collection = "Ps";
    input.last_modified = 637_000_000_000_000_000;
    let mut out = Vec::new();
    map.runner(Limits::default())
        .run(&input, &mut Documents::none(), &mut |entry| {
            out.push(entry_json(entry));
            Ok(())
        })
        .map_err(|error| error.to_string())?;
    Ok(out)
}

/// Runs a reduce over entries given as JSON.
pub(crate) fn reduce_entries<S: AsRef<str>>(reduce: &str, entries: &[S]) -> Result<Vec<String>, String> {
    let reduce = Reduce::compile(reduce, &BTreeMap::new()).map_err(|error| error.to_string())?;
    let context = Context::new();
    let mut documents = entries.iter().map(|entry| context.parse(entry.as_ref()).unwrap());
    let mut out = Vec::new();
    reduce
        .runner(Limits::default())
        .run(&mut documents, &mut |entry| {
            out.push(entry_json(entry));
            Ok(())
        })
        .map_err(|error| error.to_string())?;
    Ok(out)
}
