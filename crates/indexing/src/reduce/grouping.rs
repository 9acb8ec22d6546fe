//! What an index groups by and how it reduces: from entries of maps to keys and packs, and from packs to results.
//!
//! A reduce function that does nothing but add up needs not be run: its packs are rows ([`Columns`]). Any other one gets documents. Automatic indexes always
//! add up; their maps are in `auto.rs`.

use jackdaw_document::{Context, Document, Mode, Style, Value as DocumentValue};
use jackdaw_functions::{Combine, Entry, Limits, Reduce, ReduceRunner, RuntimeError, Value};

use super::auto::AutoMap;
use super::batch::Batch;
use super::columns::{ColumnField, ColumnKind, ColumnValue, Columns};
use super::error::Result;
use super::key::{Key, KeyValue, hash};
use super::pack::{append_document, documents};
use super::reduction::{ReduceError, Reducer, Reduction};
use super::view::parsed;
use crate::auto::AutoDefinition;

/// What an index groups by and how it reduces.
pub struct Grouping {
    /// The fields of entries that make the key; nested ones as paths with points.
    key_fields: Vec<String>,
    form: Form,
    auto: Option<AutoMap>,
}

enum Form {
    Documents(Reduce),
    Columns(Columns),
}

impl Grouping {
    /// That of a reduce function.
    pub fn of_function(reduce: &Reduce) -> Grouping {
        let key_fields = reduce.key_fields().iter().map(|name| name.to_string()).collect();
        let columns: Option<Vec<_>> = reduce.fields().and_then(|fields| {
            let column = |field: &jackdaw_functions::ReduceField| {
                let kind = match field.combine {
                    Combine::Key(at) => ColumnKind::Key(at),
                    Combine::Sum => ColumnKind::Sum,
                    Combine::Count => ColumnKind::Count,
                    Combine::Min | Combine::Max | Combine::Other => return None,
                };
                Some(ColumnField { name: field.name.to_string(), kind })
            };
            fields.iter().map(column).collect()
        });
        let form = match columns {
            Some(fields) => Form::Columns(Columns { fields }),
            None => Form::Documents(reduce.clone()),
        };
        Grouping { key_fields, form, auto: None }
    }

    /// That of an automatic index with groups.
    ///
    /// Errors: a path that is none.
    pub fn of_auto(definition: &AutoDefinition) -> crate::error::Result<Grouping> {
        let auto = AutoMap::new(definition)?;
        Ok(Grouping { key_fields: Vec::new(), form: Form::Columns(auto.columns()), auto: Some(auto) })
    }

    /// The map of an automatic index.
    pub fn auto(&self) -> Option<&AutoMap> {
        self.auto.as_ref()
    }

    /// The names under which a field of results is indexed beside its own.
    pub fn variants(&self, field: &str) -> &[String] {
        self.auto.as_ref().map_or(&[], |auto| auto.variants(field))
    }

    /// Whether the results are rows, for which no function is run.
    pub fn is_columns(&self) -> bool {
        matches!(self.form, Form::Columns(_))
    }

    /// What turns entries into results, for one thread.
    pub fn mapper(&self) -> Mapper<'_> {
        Mapper { grouping: self, key: Key::new(), pack: Vec::new(), context: Context::new() }
    }

    /// Gives the results of a key as documents. What is made for them lies in `context`.
    pub fn results<E: From<super::Error>>(
        &self,
        key: &[u8],
        pack: &[u8],
        context: &Context,
        mut each: impl FnMut(Document<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.form {
            Form::Documents(_) => documents(pack).try_for_each(|document| each(document?)),
            Form::Columns(columns) => {
                let mut wrong = None;
                let built = context.build(Mode::Memory, |builder| {
                    wrong = columns.write(key, pack, builder).err();
                    Ok(())
                });
                if let Some(error) = wrong {
                    return Err(error.into());
                }
                each(built.map_err(super::Error::from)?)
            }
        }
    }
}

impl Grouping {
    /// A pack of a key as JSON: its document, or an array of them when there is not exactly one.
    pub fn show(&self, key: &[u8], pack: &[u8]) -> Result<serde_json::Value> {
        let mut shown = Vec::new();
        self.results(key, pack, &Context::new(), |document| {
            shown.push(parsed(&document.to_json(Style::Compact))?);
            Ok::<(), super::Error>(())
        })?;
        Ok(if shown.len() == 1 { shown.remove(0) } else { serde_json::Value::Array(shown) })
    }
}

impl Reducer for Grouping {
    fn reduction(&self) -> Box<dyn Reduction + '_> {
        match &self.form {
            Form::Documents(reduce) => {
                let runner = reduce.runner(Limits::default());
                Box::new(FunctionReduction { runner, context: Context::new() })
            }
            Form::Columns(columns) => Box::new(columns.reduction()),
        }
    }
}

/// The name of a key outside the engine: the key of its search entries, and what output documents have in their ids.
pub fn name(stored: &[u8]) -> String {
    hash(stored).to_string()
}

/// Turns entries of maps into keys and packs.
pub struct Mapper<'g> {
    grouping: &'g Grouping,
    key: Key,
    pack: Vec<u8>,
    context: Context,
}

impl Mapper<'_> {
    /// Adds an entry to the document that the batch began last.
    ///
    /// Errors: an entry that cannot be a document.
    pub fn emit(&mut self, batch: &mut Batch, entry: &Entry<'_>) -> std::result::Result<(), RuntimeError> {
        let wrong = |error: jackdaw_document::Error| RuntimeError::value(error.to_string(), 0);
        self.context.reset();
        self.key.clear();
        self.pack.clear();
        for field in &self.grouping.key_fields {
            push(&mut self.key, &at_path(entry, field), &self.context).map_err(wrong)?;
        }
        if self.grouping.key_fields.is_empty() {
            // All entries have one key, which must have some bytes.
            self.key.push(KeyValue::Null);
        }
        match &self.grouping.form {
            Form::Documents(_) => {
                let document =
                    self.context.build(Mode::Memory, |builder| entry.append_to(builder)).map_err(wrong)?;
                append_document(&mut self.pack, document.as_bytes());
            }
            Form::Columns(columns) => {
                for field in columns.rows() {
                    let value = match field.kind {
                        ColumnKind::Count => ColumnValue::Long(1),
                        _ => entry
                            .get(&field.name)
                            .map_or(ColumnValue::Null, |value| ColumnValue::of_function(&value)),
                    };
                    value.append_to(&mut self.pack);
                }
            }
        }
        batch.emit(self.key.as_bytes(), &self.pack);
        Ok(())
    }
}

/// The value of a field, or at a path of names with points.
fn at_path<'a>(entry: &Entry<'a>, path: &str) -> Value<'a> {
    if let Some(value) = entry.get(path) {
        return value;
    }
    let Some((first, rest)) = path.split_once('.') else { return Value::Missing };
    let mut value = entry.get(first).unwrap_or(Value::Missing);
    for name in rest.split('.') {
        value = match value {
            Value::Object(fields) => {
                fields.iter().find(|(field, _)| *field == name).map_or(Value::Missing, |(_, value)| *value)
            }
            // What lies in a document is borrowed from a value on the stack, so that only the last step may go there.
            Value::Json(json) => return json_at(json, rest),
            _ => Value::Missing,
        };
    }
    value
}

fn json_at<'a>(value: &'a DocumentValue<'a>, path: &str) -> Value<'a> {
    let found = path.split('.').try_fold(*value, |value, name| value.get(name));
    match found {
        None | Some(DocumentValue::Null) => Value::Null,
        Some(DocumentValue::Bool(value)) => Value::Bool(value),
        Some(DocumentValue::Number(number)) => match number.as_i64() {
            Some(value) => Value::Long(value),
            None => Value::Double(number.as_f64()),
        },
        Some(DocumentValue::Text(text)) => text.as_str().map_or(Value::Null, Value::Text),
        Some(_) => Value::Json(value),
    }
}

/// Adds a value of a function to a key, as it would be read from the document that the entry becomes.
fn push(key: &mut Key, value: &Value<'_>, context: &Context) -> jackdaw_document::Result<()> {
    match value {
        Value::Missing | Value::Null => key.push(KeyValue::Null),
        Value::Bool(value) => key.push(KeyValue::Bool(*value)),
        Value::Long(value) => key.push(KeyValue::Integer(*value)),
        Value::Double(value) if value.is_finite() => key.push(KeyValue::Double(*value)),
        Value::Double(_) => key.push(KeyValue::Null),
        Value::Text(text) => key.push(KeyValue::Text(text)),
        Value::Number(number) => key.push(KeyValue::Document(&DocumentValue::Number(**number))),
        Value::Json(value) => key.push(KeyValue::Document(value)),
        other => {
            let document = context.build(Mode::Memory, |builder| {
                builder.begin_array()?;
                other.append_to(builder)?;
                builder.end()
            })?;
            let value = document.root().as_array().and_then(|array| array.get(0));
            key.push(value.as_ref().map_or(KeyValue::Null, KeyValue::Document))
        }
    };
    Ok(())
}

/// A reduce function on one thread.
struct FunctionReduction {
    runner: ReduceRunner,
    context: Context,
}

impl Reduction for FunctionReduction {
    fn reduce(
        &mut self,
        _key: &[u8],
        packs: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), ReduceError> {
        let FunctionReduction { runner, context } = self;
        let mut damage = None;
        let mut all = packs.iter().flat_map(|pack| documents(pack)).map_while(|document| match document {
            Ok(document) => Some(document),
            Err(error) => {
                damage = Some(error);
                None
            }
        });
        let ran = runner.run(&mut all, &mut |entry| {
            let document = context
                .build(Mode::Memory, |builder| entry.append_to(builder))
                .map_err(|error| RuntimeError::value(error.to_string(), 0))?;
            append_document(out, document.as_bytes());
            Ok(())
        });
        context.reset();
        match (ran, damage) {
            (_, Some(error)) => Err(error.into()),
            (Err(error), None) => Err(ReduceError(error.to_string())),
            (Ok(()), None) => Ok(()),
        }
    }
}
