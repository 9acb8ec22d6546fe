//! From a document to index entries: by functions, or by the paths of an automatic index.

mod arena;
mod host;
mod paths;
pub(crate) mod values;

use bumpalo::collections::Vec as BumpVec;
use jackdaw_document::{Context, Mode};
use jackdaw_functions::{Input, Limits, MapRunner, RuntimeError};
use jackdaw_search::{Entry, FieldValue};

pub(crate) use arena::Arena;
pub(crate) use host::{Asked, BatchHost};
pub(crate) use paths::PathMap;

use crate::plan::{Fields, MapSource};

/// Where entries go.
pub(crate) type EachEntry<'e> = dyn FnMut(&Entry<'_>) -> Result<(), RuntimeError> + 'e;

/// What runs the maps of an index in one batch.
pub(crate) struct Runner<'p> {
    fields: &'p Fields,
    maps: Vec<One<'p>>,
    arena: Arena,
    context: Context,
}

enum One<'p> {
    Paths(&'p PathMap),
    Function(&'p MapSource, MapRunner),
}

impl<'p> Runner<'p> {
    pub(crate) fn new(
        sources: &'p [MapSource],
        paths: Option<&'p PathMap>,
        fields: &'p Fields,
    ) -> Runner<'p> {
        let mut maps: Vec<One<'p>> = paths.map(One::Paths).into_iter().collect();
        maps.extend(sources.iter().map(|source| One::Function(source, source.map.runner(Limits::default()))));
        Runner { fields, maps, arena: Arena::default(), context: Context::new() }
    }

    /// Runs all maps that take documents of this one's collection, and gives their entries, with the document's lower-case id as their key, to `each`;
    /// how many there were.
    ///
    /// Error: the first that a map ended with. Entries may have been given before.
    pub(crate) fn run<'d>(
        &mut self,
        key: &str,
        input: &Input<'d>,
        host: &mut BatchHost<'d>,
        each: &mut EachEntry<'_>,
    ) -> Result<u64, RuntimeError> {
        let mut count = 0;
        for map in &mut self.maps {
            self.arena.reset();
            self.context.reset();
            match map {
                One::Paths(paths) => {
                    count += 1;
                    paths.run(key, input, &self.arena, &self.context, each)?;
                }
                One::Function(source, runner) => {
                    if !source.takes(input.collection) {
                        continue;
                    }
                    let (arena, context, fields) = (&self.arena, &self.context, self.fields);
                    runner.run(input, host, &mut |entry| {
                        if emit(key, entry, fields, arena, context, each)? {
                            count += 1;
                        }
                        Ok(())
                    })?;
                }
            }
        }
        Ok(count)
    }
}

impl Runner<'_> {
    /// Runs all functions that take documents of this one's collection, and gives their entries as they are to `each`; how many there were.
    ///
    /// Error: the first that a map ended with. Entries may have been given before.
    pub(crate) fn run_functions<'d>(
        &mut self,
        input: &Input<'d>,
        host: &mut BatchHost<'d>,
        each: &mut dyn FnMut(&jackdaw_functions::Entry<'_>) -> Result<(), RuntimeError>,
    ) -> Result<u64, RuntimeError> {
        let mut count = 0;
        for map in &mut self.maps {
            let One::Function(source, runner) = map else { continue };
            if source.takes(input.collection) {
                runner.run(input, host, &mut |entry| {
                    count += 1;
                    each(entry)
                })?;
            }
        }
        Ok(count)
    }
}

/// Gives an entry of a function on; whether it was one.
fn emit(
    key: &str,
    entry: &jackdaw_functions::Entry<'_>,
    fields: &Fields,
    arena: &Arena,
    context: &Context,
    each: &mut EachEntry<'_>,
) -> Result<bool, RuntimeError> {
    let mut out = BumpVec::with_capacity_in(entry.fields.len(), &arena.bump);
    for (name, value) in entry.fields {
        add(name, value, fields, arena, &mut out)?;
    }
    if out.is_empty() && !fields.index_empty_entries {
        return Ok(false);
    }
    let stored = if fields.stores_any() { stored_of(entry.fields, fields, context)? } else { &[] };
    each(&Entry { key, fields: &out, stored, references: &[], boost: entry.boost })?;
    Ok(true)
}

fn add<'a>(
    name: &'a str,
    value: &jackdaw_functions::Value<'a>,
    fields: &Fields,
    arena: &'a Arena,
    out: &mut BumpVec<'a, (&'a str, FieldValue<'a>)>,
) -> Result<(), RuntimeError> {
    use jackdaw_functions::Value;
    match value {
        Value::Field(field) => return add(field.name, &field.value, fields, arena, out),
        // A list of fields whose names were computed.
        Value::Array(list) if list.iter().any(|each| matches!(each, Value::Field(_))) => {
            for each in *list {
                add(name, each, fields, arena, out)?;
            }
            return Ok(());
        }
        _ => {}
    }
    match values::of_function(value, fields.is_spatial(name), arena)? {
        Some(value) => out.push((name, value)),
        None if fields.missing_as_null => out.push((name, FieldValue::Null)),
        None => {}
    }
    Ok(())
}

/// The values of the fields that are stored, as a document.
fn stored_of<'c>(
    values: &[(&str, jackdaw_functions::Value<'_>)],
    fields: &Fields,
    context: &'c Context,
) -> Result<&'c [u8], RuntimeError> {
    use jackdaw_functions::Value;
    let wrong = |error: jackdaw_document::Error| RuntimeError::value(error.to_string(), 0);
    let document = context
        .build(Mode::Memory, |builder| {
            builder.begin_object()?;
            for (name, value) in values {
                let one = std::slice::from_ref(value);
                let each = match value {
                    Value::Array(list) if list.iter().any(|each| matches!(each, Value::Field(_))) => list,
                    _ => one,
                };
                for value in each {
                    let (name, value, is_stored) = match value {
                        Value::Field(field) => {
                            let is_stored = field.stored.unwrap_or_else(|| fields.is_stored(field.name));
                            (field.name, &field.value, is_stored)
                        }
                        other => (*name, other, fields.is_stored(name)),
                    };
                    if is_stored && !matches!(value, Value::Missing) {
                        builder.name(name)?;
                        append_stored(value, builder)?;
                    }
                }
            }
            builder.end()
        })
        .map_err(wrong)?;
    Ok(document.as_bytes())
}

/// A number of a document is stored as its term is written: without zeros at the end of its fraction.
fn append_stored(
    value: &jackdaw_functions::Value<'_>,
    builder: &mut jackdaw_document::Builder<'_>,
) -> jackdaw_document::Result<()> {
    use jackdaw_functions::Value;
    let number = match value {
        Value::Number(number) => number,
        Value::Json(jackdaw_document::Value::Number(number)) => number,
        other => return other.append_to(builder),
    };
    let text = number.to_string();
    if !text.contains('.') || !text.ends_with('0') || text.contains(['e', 'E']) {
        return value.append_to(builder);
    }
    builder.number_text(text.trim_end_matches('0').trim_end_matches('.'))
}
