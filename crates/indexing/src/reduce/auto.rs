//! The maps of automatic indexes with groups: values at paths, taken in place.
//!
//! What goes into a group follows RavenDB: a path that goes through an array (`Lines[].Product`) puts the document into the group of each element, as
//! often as elements have the value, and paths through the same array take their values from the same element. A document without the
//! array is in the group of null; one whose array is empty is in none. `array(..)` makes one key of all values.

use std::collections::BTreeMap;

use jackdaw_document::date::{DATE_TEXT_MAX, Date};
use jackdaw_document::{Path, Value};
use jackdaw_functions::{Input, RuntimeError};

use super::batch::Batch;
use super::columns::{ColumnField, ColumnKind, ColumnValue, Columns};
use super::key::{Key, KeyValue};
use crate::auto::{Aggregation, AutoDefinition, GroupByArray, exact_field, search_field};
use crate::error::{Error, Result};

/// The map of an automatic index with groups.
pub struct AutoMap {
    keys: Vec<(String, Source)>,
    sums: Vec<(String, Sum)>,
    arrays: Vec<Elements>,
    /// Names under which a field is indexed beside its own.
    variants: BTreeMap<String, Vec<String>>,
}

/// Where a value of the key comes from.
enum Source {
    Id,
    Path(Path),
    /// All values together; whether the path goes through elements of an array, and up to which.
    Content {
        array: Path,
        values: Path,
    },
    /// Of each element of the array with this number.
    Element {
        array: usize,
        rest: Path,
    },
}

enum Sum {
    Count,
    /// Of all values at the path.
    Path(Path),
    /// Of the element that the key's value is of.
    Element {
        array: usize,
        rest: Path,
    },
}

/// An array whose elements are grouped by.
struct Elements {
    prefix: String,
    /// The outermost array.
    array: Path,
    elements: Path,
}

fn parse(path: &str) -> Result<Path> {
    Path::parse(path)
        .map_err(|error| Error::InvalidDefinition(format!("'{path}' is no path into documents: {error}")))
}

/// The path up to the last `[]`, and what is behind it; `None` when there is none.
fn split(path: &str) -> Option<(&str, &str)> {
    let at = path.rfind("[]")?;
    Some((&path[..at + 2], path[at + 2..].trim_start_matches('.')))
}

/// The path of the outermost array.
fn outermost(path: &str) -> &str {
    path.split("[]").next().unwrap_or(path)
}

impl AutoMap {
    /// Errors: a path that is none.
    pub fn new(definition: &AutoDefinition) -> Result<AutoMap> {
        let (mut keys, mut sums, mut arrays) = (Vec::new(), Vec::new(), Vec::<Elements>::new());
        for (path, field) in &definition.group_by_fields {
            let source = match (field.group_by_array, split(path)) {
                (_, None) if path == "id()" || path == "@metadata.@id" => Source::Id,
                (GroupByArray::ByContent, _) => {
                    Source::Content { array: parse(outermost(path))?, values: parse(path)? }
                }
                (_, Some((prefix, rest))) => {
                    let known = arrays.iter().position(|array| array.prefix == prefix);
                    let array = known.unwrap_or(arrays.len());
                    if known.is_none() {
                        let elements = parse(prefix)?;
                        arrays.push(Elements {
                            prefix: prefix.into(),
                            array: parse(outermost(path))?,
                            elements,
                        });
                    }
                    Source::Element { array, rest: parse(rest)? }
                }
                (_, None) => Source::Path(parse(path)?),
            };
            keys.push((path.clone(), source));
        }
        for (path, field) in &definition.map_fields {
            let sum = match field.aggregation {
                Aggregation::None => continue,
                Aggregation::Count => Sum::Count,
                Aggregation::Sum => match split(path) {
                    Some((prefix, rest))
                        if let Some(array) = arrays.iter().position(|array| array.prefix == prefix) =>
                    {
                        Sum::Element { array, rest: parse(rest)? }
                    }
                    _ => Sum::Path(parse(path)?),
                },
            };
            sums.push((path.clone(), sum));
        }
        let mut variants = BTreeMap::new();
        for (path, field) in definition.group_by_fields.iter().chain(&definition.map_fields) {
            let exact = field.exact.then(|| exact_field(path));
            let search = (field.search || field.highlighting).then(|| search_field(path));
            let names: Vec<_> = exact.into_iter().chain(search).collect();
            if !names.is_empty() {
                variants.insert(path.clone(), names);
            }
        }
        Ok(AutoMap { keys, sums, arrays, variants })
    }

    /// The fields of the results: what is grouped by, then what is counted and summed, each under its path.
    pub fn columns(&self) -> Columns {
        let sums = self.sums.iter().map(|(name, sum)| ColumnField {
            name: name.clone(),
            kind: if matches!(sum, Sum::Count) { ColumnKind::Count } else { ColumnKind::Sum },
        });
        let keys = self.keys.iter().enumerate();
        let keys = keys.map(|(at, (name, _))| ColumnField { name: name.clone(), kind: ColumnKind::Key(at) });
        Columns { fields: keys.chain(sums).collect() }
    }

    /// The names under which a field is indexed beside its own.
    pub fn variants(&self, field: &str) -> &[String] {
        self.variants.get(field).map_or(&[], Vec::as_slice)
    }

    /// Adds what a document contributes to the document that the batch began last; how many entries these are.
    ///
    /// Errors: values of an array that cannot be summed.
    pub fn run(&self, input: &Input<'_>, batch: &mut Batch) -> std::result::Result<u64, RuntimeError> {
        let root = input.document.root();
        let mut elements = Vec::with_capacity(self.arrays.len());
        for array in &self.arrays {
            let mut found = Vec::new();
            array.elements.visit(&root, |element| {
                found.push(Some(element));
                true
            });
            if found.is_empty() && array.array.first(&root).is_none_or(|value| value.as_array().is_none()) {
                found.push(None);
            }
            elements.push(found);
        }
        // Every combination of elements of different arrays: `at` counts through them.
        let combinations: usize = elements.iter().map(Vec::len).product();
        let (mut key, mut row) = (Key::new(), Vec::new());
        let mut at = vec![0; elements.len()];
        for _ in 0..combinations {
            let element = |array: usize| elements[array].get(at[array]).copied().flatten();
            key.clear();
            row.clear();
            for (_, source) in &self.keys {
                source.push(input, &root, &element, &mut key);
            }
            for (name, sum) in &self.sums {
                sum.value(name, &root, &element)?.append_to(&mut row);
            }
            batch.emit(key.as_bytes(), &row);
            for (at, found) in at.iter_mut().zip(&elements).rev() {
                *at += 1;
                if *at < found.len() {
                    break;
                }
                *at = 0;
            }
        }
        Ok(combinations as u64)
    }
}

impl Source {
    fn push<'v>(
        &self,
        input: &Input<'_>,
        root: &Value<'v>,
        element: &dyn Fn(usize) -> Option<Value<'v>>,
        key: &mut Key,
    ) {
        let value = match self {
            Source::Id => {
                key.push(KeyValue::Text(input.id));
                return;
            }
            Source::Path(path) => path.first(root),
            Source::Element { array, rest } => element(*array).and_then(|element| rest.first(&element)),
            Source::Content { array, values } => match array.first(root) {
                Some(found @ Value::Array(_)) if array == values => Some(found),
                Some(Value::Array(elements)) => {
                    content(&elements, values, root, key);
                    return;
                }
                other => other,
            },
        };
        match value {
            None => key.push(KeyValue::Null),
            Some(Value::Text(text)) => push_text(&text.to_str(), key),
            Some(value) => key.push(KeyValue::Document(&value)),
        };
    }
}

/// A text that is a date is grouped by, and shown, with seven digits of fraction, however it was written.
fn push_text<'k>(text: &str, key: &'k mut Key) -> &'k mut Key {
    let mut buffer = [0; DATE_TEXT_MAX];
    key.push(KeyValue::Text(Date::in_full(text, &mut buffer).unwrap_or(text)))
}

/// The values at a path through an array, as one array; null for elements that have none.
fn content<'v>(elements: &jackdaw_document::Array<'v>, values: &Path, root: &Value<'v>, key: &mut Key) {
    key.begin_array();
    let mut found = 0;
    values.visit(root, |value| {
        found += 1;
        key.push(KeyValue::Document(&value));
        true
    });
    // One level of arrays: what has no value is null, wherever it stands among the elements.
    for _ in found..elements.len() {
        key.push(KeyValue::Null);
    }
    key.end();
}

impl Sum {
    fn value<'v>(
        &self,
        name: &str,
        root: &Value<'v>,
        element: &dyn Fn(usize) -> Option<Value<'v>>,
    ) -> std::result::Result<ColumnValue<'static>, RuntimeError> {
        let (path, from) = match self {
            Sum::Count => return Ok(ColumnValue::Long(1)),
            Sum::Path(path) => (path, Some(*root)),
            Sum::Element { array, rest } => (rest, element(*array)),
        };
        let Some(from) = from else { return Ok(ColumnValue::Null) };
        if !path.is_many() {
            return Ok(path.first(&from).map_or(ColumnValue::Null, |value| ColumnValue::of_document(&value)));
        }
        let mut sum = Ok(ColumnValue::Null);
        path.visit(&from, |value| {
            let value = ColumnValue::of_document(&value);
            if let Ok(before) = sum {
                sum = before.plus(value).ok_or(value);
            }
            sum.is_ok()
        });
        sum.map_err(|_| {
            RuntimeError::value(format!("the sum of '{name}' meets a value that is no number"), 0)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use jackdaw_document::{Context, Style};
    use jackdaw_storage::{Environment, Options as StorageOptions};
    use jackdaw_testkit::temporary_directory;

    use super::super::{Engine, Grouping, Options};
    use super::*;
    use crate::auto::AutoField;

    const ORDERS: [&str; 6] = [
        r#"{"Company":"c1","Lines":[{"Product":"p1","Quantity":2},{"Product":"p1","Quantity":3},{"Product":"p2","Quantity":4}],"Total":1.5,"Tags":["x","y"]}"#,
        r#"{"Company":"c1","Lines":[{"Product":"p2","Quantity":5}],"Total":"7","Tags":["y","x"]}"#,
        r#"{"Company":"c2","Lines":[],"Total":null,"Tags":[]}"#,
        r#"{"Company":"c2","Total":2}"#,
        r#"{"Company":{"Name":"n"},"Lines":[{"Quantity":1}],"Total":2,"Tags":["x","y"]}"#,
        r#"{"Company":"C1","Lines":[{"Product":"p1","Quantity":1}],"Total":2.25,"Tags":null}"#,
    ];

    fn definition(group: &[(&str, GroupByArray)], sums: &[&str]) -> AutoDefinition {
        let mut definition = AutoDefinition::new("Orders");
        for (path, array) in group {
            let field = AutoField { group_by_array: *array, ..AutoField::default() };
            definition.group_by_fields.insert((*path).into(), field);
        }
        definition.field("Count").aggregation = Aggregation::Count;
        for path in sums {
            definition.field(path).aggregation = Aggregation::Sum;
        }
        definition
    }

    /// All results, sorted; those that failed as `!`.
    fn results(group: &[(&str, GroupByArray)], sums: &[&str]) -> Vec<String> {
        let grouping = Grouping::of_auto(&definition(group, sums)).unwrap();
        let directory = temporary_directory();
        let environment = Environment::open(directory.path(), StorageOptions::default()).unwrap();
        let engine = Engine::open(environment, &Options::default()).unwrap();
        let (mut batch, context) = (Batch::new(), Context::new());
        for (at, json) in ORDERS.iter().enumerate() {
            let id = format!("orders/{at}");
            batch.begin(id.as_bytes(), true);
            let input = Input::new(context.parse(json).unwrap(), &id);
            grouping.auto().unwrap().run(&input, &mut batch).unwrap();
        }
        engine.apply(&mut batch, &mut |_| Ok(Vec::new()), &grouping, 1).unwrap();
        let mut all = Vec::new();
        let snapshot = engine.read().unwrap();
        snapshot
            .each_result(|result| {
                let Some(pack) = result.pack else {
                    all.push("!".into());
                    return Ok(());
                };
                grouping.results(result.key, pack, &context, |document| {
                    all.push(document.to_json(Style::Compact).to_string());
                    Ok::<(), super::super::Error>(())
                })
            })
            .unwrap();
        all.sort();
        all
    }

    use GroupByArray::{ByContent, ByIndividualValues, NotApplicable};

    /// What RavenDB 5.4 answers over the same documents.
    #[test]
    fn groups_are_those_of_ravendb() {
        assert_eq!(
            results(&[("Lines[].Product", ByIndividualValues)], &["Lines[].Quantity"]),
            [
                r#"{"Lines[].Product":"p1","Count":3,"Lines[].Quantity":6}"#,
                r#"{"Lines[].Product":"p2","Count":2,"Lines[].Quantity":9}"#,
                r#"{"Lines[].Product":null,"Count":2,"Lines[].Quantity":1}"#,
            ]
        );
        assert_eq!(
            results(&[("Lines[].Product", ByContent)], &[]),
            [
                r#"{"Lines[].Product":["p1","p1","p2"],"Count":1}"#,
                r#"{"Lines[].Product":["p1"],"Count":1}"#,
                r#"{"Lines[].Product":["p2"],"Count":1}"#,
                r#"{"Lines[].Product":[],"Count":1}"#,
                r#"{"Lines[].Product":[null],"Count":1}"#,
                r#"{"Lines[].Product":null,"Count":1}"#,
            ]
        );
        assert_eq!(
            results(&[("Tags", ByContent)], &[]),
            [
                r#"{"Tags":["x","y"],"Count":2}"#,
                r#"{"Tags":["y","x"],"Count":1}"#,
                r#"{"Tags":[],"Count":1}"#,
                r#"{"Tags":null,"Count":2}"#,
            ]
        );
        assert_eq!(
            results(&[("Company", NotApplicable), ("Tags[]", ByIndividualValues)], &[]),
            [
                r#"{"Company":"C1","Tags[]":null,"Count":1}"#,
                r#"{"Company":"c1","Tags[]":"x","Count":2}"#,
                r#"{"Company":"c1","Tags[]":"y","Count":2}"#,
                r#"{"Company":"c2","Tags[]":null,"Count":1}"#,
                r#"{"Company":{"Name":"n"},"Tags[]":"x","Count":1}"#,
                r#"{"Company":{"Name":"n"},"Tags[]":"y","Count":1}"#,
            ]
        );
        assert_eq!(
            results(&[("Company.Name", NotApplicable)], &[]),
            [r#"{"Company.Name":"n","Count":1}"#, r#"{"Company.Name":null,"Count":5}"#]
        );
    }

    /// A text among numbers makes its group fail, and no other; all values of an array are summed where it is not grouped by.
    #[test]
    fn sums_fail_alone_and_go_over_arrays() {
        assert_eq!(
            results(&[("Company", NotApplicable)], &["Total", "Lines[].Quantity"]),
            [
                "!",
                r#"{"Company":"C1","Count":1,"Lines[].Quantity":1,"Total":2.25}"#,
                r#"{"Company":"c2","Count":2,"Lines[].Quantity":0,"Total":2}"#,
                r#"{"Company":{"Name":"n"},"Count":1,"Lines[].Quantity":1,"Total":2}"#,
            ]
        );
    }
}
