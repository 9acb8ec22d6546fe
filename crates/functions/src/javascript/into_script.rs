//! Documents become objects of a script.
//!
//! They are converted as a whole: a property costs some 0.1 µs, about as much as a call from the script back into here would. Strings are the longest part; they are
//! copied as they are.

use std::rc::Rc;

use jackdaw_document::{self as document, Document, Number, Text};
use rquickjs::object::Property;
use rquickjs::{Array, Ctx, Object, Value};

use super::engine::Realm;
use super::projection::FieldsFrom;
use super::sources::{self, Source};
use crate::Input;

/// The property of a document that the index stores nothing of, and scripts may always ask for.
const METADATA: &str = "@metadata";

/// A document whose objects know where they came from.
pub(super) fn document<'js>(realm: &Realm<'js>, source: Rc<Source>) -> rquickjs::Result<Value<'js>> {
    let root = sources::add_root(source.clone());
    match Document::open(&source.bytes) {
        Ok(document) => tracked(realm, &document.root(), root),
        Err(error) => {
            Err(rquickjs::Exception::throw_type(&realm.ctx, &format!("a document cannot be read: {error}")))
        }
    }
}

/// A document with the fields that an index has stored of it.
pub(super) fn result<'js>(
    realm: &Realm<'js>,
    source: Rc<Source>,
    stored: Option<&document::Value<'_>>,
    from: FieldsFrom,
) -> rquickjs::Result<Value<'js>> {
    let given = document(realm, source.clone())?;
    let Some(object) = given.as_object() else { return Ok(given) };
    if from == FieldsFrom::DocumentOrFail {
        return realm.strict.call((object.clone(), object.clone()));
    }
    let own = Document::open(&source.bytes).ok().and_then(|document| document.object());
    let stored = stored.and_then(document::Value::as_object);
    if let Some(stored) = &stored {
        for (name, stored) in stored.iter() {
            let name = name.to_str();
            let field = match stored {
                // The index has it as a text.
                document::Value::Bool(value) => {
                    rquickjs::String::from_str(realm.ctx.clone(), if value { "true" } else { "false" })?
                        .into_value()
                }
                stored => value(realm, &stored)?,
            };
            match own.is_some_and(|own| own.contains(&name)) {
                true => object.set(&*name, field)?,
                false => object.prop(&*name, Property::from(field).writable().configurable())?,
            }
        }
    }
    match from {
        FieldsFrom::Index => {
            for (name, _) in own.iter().flat_map(|own| own.iter()) {
                let name = name.to_str();
                if name != METADATA && !stored.is_some_and(|stored| stored.contains(&name)) {
                    object.set(&*name, Value::new_undefined(realm.ctx.clone()))?;
                }
            }
            Ok(given)
        }
        FieldsFrom::IndexOrFail => {
            let known = Object::new(realm.ctx.clone())?;
            for (name, _) in stored.iter().flat_map(|stored| stored.iter()) {
                known.prop(&*name.to_str(), true)?;
            }
            realm.strict.call((object.clone(), known))
        }
        FieldsFrom::Either | FieldsFrom::DocumentOrFail => Ok(given),
    }
}

/// A document that is only read. Only its root knows where it came from.
pub(super) fn mapped<'js>(realm: &Realm<'js>, input: &Input<'_>) -> rquickjs::Result<Value<'js>> {
    let out = value(realm, &input.document.root())?;
    if let Some(object) = out.as_object() {
        let root = sources::add_root(Rc::new(Source {
            bytes: Box::default(),
            id: input.id.to_owned(),
            change_vector: input.change_vector.to_owned(),
            last_modified: input.last_modified,
        }));
        object.prop(realm.source.clone(), Property::from(root))?;
    }
    Ok(out)
}

fn tracked<'js>(realm: &Realm<'js>, value: &document::Value<'_>, node: u32) -> rquickjs::Result<Value<'js>> {
    let child = |value: &document::Value<'_>, place: usize| match value {
        document::Value::Object(_) | document::Value::Array(_) | document::Value::Document(_) => {
            tracked(realm, value, sources::add_child(node, place))
        }
        other => scalar(&realm.ctx, other),
    };
    let mark = |object: &Object<'js>| object.prop(realm.source.clone(), Property::from(node));
    match value {
        document::Value::Object(object) => {
            let out = Object::new(realm.ctx.clone())?;
            for (place, (name, value)) in object.iter().enumerate() {
                set(&out, &name, child(&value, place)?)?;
            }
            mark(&out)?;
            Ok(out.into_value())
        }
        document::Value::Array(array) => {
            let out = Array::new(realm.ctx.clone())?;
            for (place, value) in array.iter().enumerate() {
                out.set(place, child(&value, place)?)?;
            }
            mark(out.as_object())?;
            Ok(out.into_value())
        }
        document::Value::Document(inner) => tracked(realm, &inner.root(), node),
        other => scalar(&realm.ctx, other),
    }
}

/// A value that is only read, or whose origin does not matter.
pub(super) fn value<'js>(realm: &Realm<'js>, from: &document::Value<'_>) -> rquickjs::Result<Value<'js>> {
    match from {
        document::Value::Object(object) => {
            let out = Object::new(realm.ctx.clone())?;
            for (name, each) in object.iter() {
                set(&out, &name, value(realm, &each)?)?;
            }
            Ok(out.into_value())
        }
        document::Value::Array(array) => {
            let out = Array::new(realm.ctx.clone())?;
            for (place, each) in array.iter().enumerate() {
                out.set(place, value(realm, &each)?)?;
            }
            Ok(out.into_value())
        }
        document::Value::Document(inner) => value(realm, &inner.root()),
        other => scalar(&realm.ctx, other),
    }
}

fn set<'js>(object: &Object<'js>, name: &Text<'_>, value: Value<'js>) -> rquickjs::Result<()> {
    match name.as_str() {
        Some(name) => object.set(name, value),
        None => object.set(&*name.to_str(), value),
    }
}

fn scalar<'js>(ctx: &Ctx<'js>, value: &document::Value<'_>) -> rquickjs::Result<Value<'js>> {
    Ok(match value {
        document::Value::Bool(value) => Value::new_bool(ctx.clone(), *value),
        document::Value::Number(number) => self::number(ctx, number),
        document::Value::Text(text) => match text.as_str() {
            Some(text) => rquickjs::String::from_str(ctx.clone(), text)?.into_value(),
            None => rquickjs::String::from_str(ctx.clone(), &text.to_str())?.into_value(),
        },
        document::Value::Binary(_) => {
            let text = value.as_str().unwrap_or_default();
            rquickjs::String::from_str(ctx.clone(), &text)?.into_value()
        }
        _ => Value::new_null(ctx.clone()),
    })
}

fn number<'js>(ctx: &Ctx<'js>, number: &Number<'_>) -> Value<'js> {
    match number.as_i64().and_then(|integer| i32::try_from(integer).ok()) {
        Some(integer) => Value::new_int(ctx.clone(), integer),
        None => Value::new_float(ctx.clone(), number.as_f64()),
    }
}
