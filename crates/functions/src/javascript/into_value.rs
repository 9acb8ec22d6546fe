//! What index functions return becomes values of fields.

use bumpalo::Bump;
use jackdaw_document::date::{Date, Zone};
use rquickjs::object::Filter;
use rquickjs::{Exception, Object, Type, Value as ScriptValue};

use super::engine::Realm;
use super::format;
use super::from_script::EXACT_MAX;
use crate::{Boosted, DynamicField, FieldIndexing, SpatialField, Value};

/// How deep values may lie in each other.
const DEPTH_MAX: u32 = 128;

/// An object's properties as fields of an entry.
pub(super) fn fields<'js, 'm>(
    realm: &Realm<'js>,
    object: &Object<'js>,
    memory: &'m Bump,
) -> rquickjs::Result<&'m [(&'m str, Value<'m>)]> {
    properties(realm, object, memory, 0)
}

/// A value as that of a field.
pub(super) fn value<'js, 'm>(
    realm: &Realm<'js>,
    value: &ScriptValue<'js>,
    field: &'m str,
    memory: &'m Bump,
) -> rquickjs::Result<Value<'m>> {
    nested(realm, value, field, memory, 0)
}

/// The object within the result of `boost(..)`, and how much it is boosted.
pub(super) fn boosted<'js>(object: Object<'js>) -> rquickjs::Result<(Object<'js>, f32)> {
    if !object.contains_key("$boost")? {
        return Ok((object, 1.0));
    }
    let boost: f64 = object.get("$boost")?;
    let inner: Option<Object<'js>> = object.get("$value")?;
    Ok((inner.unwrap_or(object), boost as f32))
}

fn properties<'js, 'm>(
    realm: &Realm<'js>,
    object: &Object<'js>,
    memory: &'m Bump,
    depth: u32,
) -> rquickjs::Result<&'m [(&'m str, Value<'m>)]> {
    let mut fields = Vec::new();
    for key in object.own_keys::<rquickjs::String<'js>>(Filter::default()) {
        let key = key?;
        let name: &'m str = memory.alloc_str(&realm.text(&key)?);
        let value: ScriptValue<'js> = object.get(key)?;
        fields.push((name, nested(realm, &value, name, memory, depth + 1)?));
    }
    Ok(memory.alloc_slice_copy(&fields))
}

fn nested<'js, 'm>(
    realm: &Realm<'js>,
    value: &ScriptValue<'js>,
    field: &'m str,
    memory: &'m Bump,
    depth: u32,
) -> rquickjs::Result<Value<'m>> {
    if depth > DEPTH_MAX {
        let message = format!("the values of '{field}' lie more than {DEPTH_MAX} deep in each other");
        return Err(Exception::throw_range(&realm.ctx, &message));
    }
    Ok(match value.type_of() {
        Type::Undefined => Value::Missing,
        Type::Bool => Value::Bool(value.as_bool() == Some(true)),
        Type::Int => Value::Long(i64::from(value.as_int().unwrap_or(0))),
        Type::Float => match value.as_float().unwrap_or(f64::NAN) {
            // Minus zero is no integer.
            whole
                if whole.fract() == 0.0
                    && whole.abs() <= EXACT_MAX
                    && whole.to_bits() != (-0.0f64).to_bits() =>
            {
                Value::Long(whole as i64)
            }
            number => Value::Double(number),
        },
        Type::BigInt => {
            let text: rquickjs::Coerced<String> = value.get()?;
            text.0.parse().map_or_else(|_| Value::Text(memory.alloc_str(&text.0)), Value::Long)
        }
        Type::String => match value.as_string() {
            Some(text) => Value::Text(memory.alloc_str(&realm.text(text)?)),
            None => Value::Null,
        },
        Type::Array => {
            let mut values = Vec::new();
            for element in value.as_array().into_iter().flat_map(|array| array.iter::<ScriptValue<'js>>()) {
                values.push(nested(realm, &element?, field, memory, depth + 1)?);
            }
            Value::Array(memory.alloc_slice_copy(&values))
        }
        Type::Object | Type::Exception | Type::Proxy | Type::Promise => match value.as_object() {
            Some(object) => self::object(realm, object, field, memory, depth)?,
            None => Value::Null,
        },
        _ => Value::Null,
    })
}

fn object<'js, 'm>(
    realm: &Realm<'js>,
    object: &Object<'js>,
    field: &'m str,
    memory: &'m Bump,
    depth: u32,
) -> rquickjs::Result<Value<'m>> {
    if let Some(milliseconds) = realm.date_value(object)? {
        return Ok(match format::ticks_of(milliseconds) {
            Some(ticks) => Value::Date(Date { ticks, zone: Zone::Utc }),
            None => Value::Null,
        });
    }
    if object.contains_key("$spatial")? {
        return spatial(realm, object, memory);
    }
    if !object.contains_key("$value")? {
        return Ok(Value::Object(properties(realm, object, memory, depth)?));
    }
    let inner: ScriptValue<'js> = object.get("$value")?;
    let inner = nested(realm, &inner, field, memory, depth + 1)?;
    let boost: Option<f64> = object.get("$boost")?;
    let value = match boost {
        Some(boost) => Value::Boosted(memory.alloc(Boosted { value: inner, boost: boost as f32 })),
        None => inner,
    };
    let name: Option<rquickjs::String<'js>> = object.get("$name")?;
    let options: Option<Object<'js>> = object.get("$options")?;
    if name.is_none() && options.is_none() {
        return Ok(value);
    }
    let name = match name {
        Some(name) => &*memory.alloc_str(&realm.text(&name)?),
        None => field,
    };
    let option = |option: &str| -> rquickjs::Result<Option<ScriptValue<'js>>> {
        let Some(options) = &options else { return Ok(None) };
        let value: ScriptValue<'js> = options.get(option)?;
        Ok(Some(value).filter(|value| !value.is_undefined() && !value.is_null()))
    };
    let text = |value: &ScriptValue<'js>| match (value.as_bool(), value.as_string()) {
        (Some(true), _) => Ok("Yes".to_owned()),
        (Some(false), _) => Ok("No".to_owned()),
        (None, Some(text)) => realm.text(text),
        (None, None) => Ok(String::new()),
    };
    let mut made = DynamicField { name, value, stored: None, indexing: None, term_vector: None };
    if let Some(stored) = option("storage")? {
        made.stored = Some(matches!(&*text(&stored)?, "Yes" | "yes" | "true"));
    }
    if let Some(indexing) = option("indexing")? {
        made.indexing = match &*text(&indexing)? {
            "No" => Some(FieldIndexing::No),
            "Search" | "Yes" => Some(FieldIndexing::Search),
            "Exact" => Some(FieldIndexing::Exact),
            "Default" => Some(FieldIndexing::Default),
            other => {
                let message = format!(
                    "'{other}' is no way to index the field '{name}': it must be No, Search, Exact or Default"
                );
                return Err(Exception::throw_type(&realm.ctx, &message));
            }
        };
    }
    if let Some(vector) = option("termVector")? {
        made.term_vector = Some(memory.alloc_str(&text(&vector)?));
    }
    Ok(Value::Field(memory.alloc(made)))
}

fn spatial<'js, 'm>(
    realm: &Realm<'js>,
    object: &Object<'js>,
    memory: &'m Bump,
) -> rquickjs::Result<Value<'m>> {
    let given: ScriptValue<'js> = object.get("$spatial")?;
    if let Some(text) = given.as_string() {
        let text = memory.alloc_str(&realm.text(text)?);
        return Ok(Value::Spatial(memory.alloc(SpatialField::Shape(text))));
    }
    let Some(pair) = given.as_array() else { return Ok(Value::Null) };
    let number = |place| -> rquickjs::Result<Option<f64>> {
        let value: ScriptValue<'js> = pair.get(place)?;
        Ok(match value.as_string() {
            Some(text) => realm.text(text)?.trim().parse().ok(),
            None => value.as_number(),
        })
    };
    Ok(match (number(0)?, number(1)?) {
        (Some(latitude), Some(longitude)) => {
            Value::Spatial(memory.alloc(SpatialField::Point { latitude, longitude }))
        }
        _ => Value::Null,
    })
}
