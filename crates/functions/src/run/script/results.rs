//! What a function returns becomes entries: numbers that are whole become integers, objects with `$value` and the like become fields of their own. It is what
//! `javascript/into_value.rs` makes of the objects of QuickJS.

use super::super::{Run, Step};
use super::arrays::Items;
use super::{declined, operators};
use crate::error::RuntimeError;
use crate::input::Entry;
use crate::value::{Boosted, DynamicField, FieldIndexing, SpatialField, Value};

/// Integers of larger magnitude are not exact in a script.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
/// How deep values may lie in each other; beyond, QuickJS says what is wrong.
const DEPTH_MAX: u32 = 100;

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    /// The entries that a result is: an object is one, an array several, and anything else none. `names` are the fields of all, when they are always the same.
    ///
    /// Error: more entries than are allowed, or the run is declined.
    pub(crate) fn entries(
        &mut self,
        result: Value<'r>,
        names: Option<&'r [Box<str>]>,
        out: &mut Vec<Entry<'r>>,
        depth: u32,
    ) -> Step<()> {
        if depth > DEPTH_MAX {
            return Err(declined());
        }
        self.step()?;
        if let Some(items) = Items::of(&result) {
            for at in 0..items.len() {
                let item = self.item(&items, at);
                self.entries(item, names, out, depth + 1)?;
            }
            return Ok(());
        }
        if !operators::is_object(&result) {
            return Ok(());
        }
        if out.len() >= self.limits.entries_max {
            let limit = self.limits.entries_max as u64;
            return Err(Box::new(RuntimeError::Limit { what: "entries", limit }));
        }
        let entry = self.entry(result, names)?;
        out.push(entry);
        Ok(())
    }

    fn entry(&mut self, result: Value<'r>, names: Option<&'r [Box<str>]>) -> Step<Entry<'r>> {
        let mut fields = self.properties_of(&result)?;
        let mut boost = 1.0;
        if let Some((_, by)) = fields.iter().find(|(name, _)| *name == "$boost") {
            let Value::Double(by) = by else { return Err(declined()) };
            boost = *by as f32;
            match fields.iter().find(|(name, _)| *name == "$value") {
                Some((_, inner)) if operators::is_object(inner) && Items::of(inner).is_none() => {
                    fields = self.properties_of(inner)?;
                }
                None | Some((_, Value::Missing | Value::Null)) => {}
                Some(_) => return Err(declined()),
            }
        }
        let made = match names {
            None => {
                let made: &'r mut [(&'r str, Value<'r>)] = self.arena.alloc_slice_copy(fields);
                for (name, value) in made.iter_mut() {
                    *value = self.field_value(*value, name, 1)?;
                }
                made
            }
            Some(names) => {
                let made: &'r mut [(&'r str, Value<'r>)] =
                    self.arena.alloc_slice_fill_with(names.len(), |at| (&*names[at], Value::Missing));
                for (at, field) in made.iter_mut().enumerate() {
                    let found = match fields.get(at) {
                        Some((name, value)) if *name == field.0 => Some(*value),
                        _ => fields.iter().find(|(name, _)| *name == field.0).map(|(_, value)| *value),
                    };
                    if let Some(value) = found {
                        field.1 = self.field_value(value, field.0, 0)?;
                    }
                }
                made
            }
        };
        Ok(Entry { fields: made, boost })
    }

    /// A value as that of a field.
    fn field_value(&mut self, value: Value<'r>, field: &'r str, depth: u32) -> Step<Value<'r>> {
        Ok(match value {
            Value::Double(number) => plain_number(number),
            Value::Missing | Value::Null | Value::Bool(_) | Value::Text(_) => value,
            value => {
                if depth > DEPTH_MAX {
                    return Err(declined());
                }
                self.step()?;
                match Items::of(&value) {
                    Some(items) => {
                        let values = self.arena.alloc_slice_fill_copy(items.len(), Value::Missing);
                        for (at, value) in values.iter_mut().enumerate() {
                            let item = self.item(&items, at);
                            *value = self.field_value(item, field, depth + 1)?;
                        }
                        self.step()?;
                        Value::Array(values)
                    }
                    None => self.field_object(value, field, depth)?,
                }
            }
        })
    }

    fn field_object(&mut self, value: Value<'r>, field: &'r str, depth: u32) -> Step<Value<'r>> {
        let fields = self.properties_of(&value)?;
        let get = |name: &str| fields.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        if let Some(place) = get("$spatial") {
            return self.spatial_field(place);
        }
        let Some(inner) = get("$value") else {
            let made: &'r mut [(&'r str, Value<'r>)] = self.arena.alloc_slice_copy(fields);
            for (name, value) in made.iter_mut() {
                *value = self.field_value(*value, name, depth + 1)?;
            }
            return Ok(Value::Object(made));
        };
        let inner = self.field_value(inner, field, depth + 1)?;
        let value = match get("$boost") {
            None | Some(Value::Missing | Value::Null) => inner,
            Some(Value::Double(boost)) => {
                Value::Boosted(self.arena.alloc(Boosted { value: inner, boost: boost as f32 }))
            }
            Some(_) => return Err(declined()),
        };
        let name = match get("$name") {
            None | Some(Value::Missing | Value::Null) => None,
            Some(Value::Text(name)) => Some(name),
            Some(_) => return Err(declined()),
        };
        let options = match get("$options") {
            None | Some(Value::Missing | Value::Null) => None,
            Some(options) if operators::is_object(&options) && Items::of(&options).is_none() => {
                Some(self.properties_of(&options)?)
            }
            Some(_) => return Err(declined()),
        };
        if name.is_none() && options.is_none() {
            return Ok(value);
        }
        let option = |option: &str| -> Step<Option<&'r str>> {
            let found = options.unwrap_or_default().iter().find(|(name, _)| *name == option);
            Ok(match found.map(|(_, value)| value) {
                None | Some(Value::Missing | Value::Null) => None,
                Some(Value::Bool(true)) => Some("Yes"),
                Some(Value::Bool(false)) => Some("No"),
                Some(Value::Text(text)) => Some(text),
                Some(_) => return Err(declined()),
            })
        };
        let stored = option("storage")?.map(|stored| matches!(stored, "Yes" | "yes" | "true"));
        let indexing = match option("indexing")? {
            None => None,
            Some("No") => Some(FieldIndexing::No),
            Some("Search" | "Yes") => Some(FieldIndexing::Search),
            Some("Exact") => Some(FieldIndexing::Exact),
            Some("Default") => Some(FieldIndexing::Default),
            Some(_) => return Err(declined()),
        };
        let term_vector = option("termVector")?;
        let name = name.unwrap_or(field);
        Ok(Value::Field(self.arena.alloc(DynamicField { name, value, stored, indexing, term_vector })))
    }

    fn spatial_field(&mut self, place: Value<'r>) -> Step<Value<'r>> {
        if let Value::Text(text) = place {
            return Ok(Value::Spatial(self.arena.alloc(SpatialField::Shape(text))));
        }
        let Some(pair) = Items::of(&place) else { return Ok(Value::Null) };
        let number = |value: Value<'r>| match value {
            Value::Double(number) => Ok(Some(number)),
            Value::Text(text) => Ok(text.trim().parse().ok()),
            Value::Missing | Value::Null | Value::Bool(_) => Ok(None),
            _ => Err(declined()),
        };
        Ok(match (number(self.item(&pair, 0))?, number(self.item(&pair, 1))?) {
            (Some(latitude), Some(longitude)) => {
                Value::Spatial(self.arena.alloc(SpatialField::Point { latitude, longitude }))
            }
            _ => Value::Null,
        })
    }
}

fn plain_number<'r>(number: f64) -> Value<'r> {
    // Minus zero is no integer.
    let is_whole =
        number.fract() == 0.0 && number.abs() <= EXACT_MAX && number.to_bits() != (-0.0f64).to_bits();
    if is_whole { Value::Long(number as i64) } else { Value::Double(number) }
}
