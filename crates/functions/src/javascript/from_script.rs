//! Objects of a script become documents.
//!
//! What came from a document and is still the same goes back as it was there: `1.10` stays `1.10` and an integer beyond 2^53 keeps its last digits, for as long as
//! the script left the value in its object. A number that replaces one with a fraction gets one too: `1.0 + 1` is stored as `2.0`.

use jackdaw_document::{self as document, Builder, Context as Memory, Document, Mode, Number};
use rquickjs::object::Filter;
use rquickjs::{Exception, Object, Type, Value};

use super::engine::Realm;
use super::{format, sources};

/// Integers of larger magnitude are not exact in a script.
pub(super) const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
/// Whole numbers from here on are no `i64`.
const I64_END: f64 = 9_223_372_036_854_775_808.0;
/// How far from its place the origin of a number in an array is looked for: elements before it may have been added or removed.
const MOVED_MAX: usize = 16;
/// Arrays that say to be longer are read by the names of what they hold.
const DENSE_MAX: f64 = 1024.0;
/// How deep objects may lie in each other.
const DEPTH_MAX: usize = 512;

/// Why there is no document.
pub(super) enum Failure {
    /// A script's code threw while it was read, or a value cannot be stored.
    Script(rquickjs::Error),
    Document(document::Error),
}

impl From<rquickjs::Error> for Failure {
    fn from(error: rquickjs::Error) -> Failure {
        Failure::Script(error)
    }
}

impl From<document::Error> for Failure {
    fn from(error: document::Error) -> Failure {
        Failure::Document(error)
    }
}

type Result<T = ()> = std::result::Result<T, Failure>;

/// Builds a document of an object.
pub(super) fn document<'js, 'c>(
    realm: &Realm<'js>,
    object: &Object<'js>,
    memory: &'c Memory,
    mode: Mode,
) -> Result<Document<'c>> {
    build(memory, mode, |builder| Writer { realm, open: Vec::new() }.object(object, builder, true))
}

/// Builds a document whose root is any value.
pub(super) fn any<'js, 'c>(
    realm: &Realm<'js>,
    value: &Value<'js>,
    memory: &'c Memory,
    mode: Mode,
) -> Result<Document<'c>> {
    build(memory, mode, |builder| Writer { realm, open: Vec::new() }.value(value, None, builder))
}

fn build<'c>(
    memory: &'c Memory,
    mode: Mode,
    write: impl FnOnce(&mut Builder<'_>) -> Result,
) -> Result<Document<'c>> {
    let mut failure = None;
    let built = memory.build(mode, |builder| match write(builder) {
        Ok(()) => Ok(()),
        Err(Failure::Document(error)) => Err(error),
        Err(error) => {
            failure = Some(error);
            Err(document::Error::Build("the script's object cannot be read"))
        }
    });
    match failure {
        Some(failure) => Err(failure),
        None => Ok(built?),
    }
}

/// The number under which an object's origin is known.
pub(super) fn node<'js>(realm: &Realm<'js>, object: &Object<'js>) -> rquickjs::Result<Option<u32>> {
    // Inherited by `Object.create(this)`, which then says the same.
    let node: Value<'js> = object.get(realm.source.clone())?;
    Ok(node.as_number().map(|number| number as u32))
}

struct Writer<'r, 'js> {
    realm: &'r Realm<'js>,
    /// The objects that are being written: one that holds itself ends there.
    open: Vec<Object<'js>>,
}

impl<'js> Writer<'_, 'js> {
    fn value(
        &mut self,
        value: &Value<'js>,
        origin: Option<&document::Value<'_>>,
        builder: &mut Builder<'_>,
    ) -> Result {
        match value.type_of() {
            Type::Bool => builder.bool(value.as_bool() == Some(true))?,
            Type::Int | Type::Float => {
                let origin = origin.and_then(document::Value::as_number);
                number(value.as_number().unwrap_or(f64::NAN), origin.as_ref(), builder)?;
            }
            Type::String => match value.as_string() {
                Some(text) => self.text(text, origin, builder)?,
                None => builder.null()?,
            },
            Type::BigInt => {
                let text: rquickjs::Coerced<String> = value.get()?;
                builder.number_text(&text.0)?;
            }
            Type::Symbol => {
                return Err(Exception::throw_type(&self.realm.ctx, "a Symbol cannot be stored").into());
            }
            Type::Array | Type::Object | Type::Exception | Type::Proxy | Type::Promise => {
                match value.as_object() {
                    Some(object) => self.nested(object, builder)?,
                    None => builder.null()?,
                }
            }
            // Undefined, null, functions.
            _ => builder.null()?,
        }
        Ok(())
    }

    fn text(
        &mut self,
        text: &rquickjs::String<'js>,
        origin: Option<&document::Value<'_>>,
        builder: &mut Builder<'_>,
    ) -> Result {
        let text = self.realm.text(text)?;
        match origin {
            // Halves of surrogate pairs are lost on the way into a script.
            Some(document::Value::Text(origin))
                if origin.has_lone_surrogates() && origin.to_str() == text =>
            {
                builder.text(origin)?;
            }
            Some(origin @ document::Value::Binary(_)) if origin.as_str().as_deref() == Some(&text) => {
                builder.value(origin)?;
            }
            _ => builder.str(&text)?,
        }
        Ok(())
    }

    fn nested(&mut self, object: &Object<'js>, builder: &mut Builder<'_>) -> Result {
        if self.open.contains(object) {
            builder.null()?;
            return Ok(());
        }
        if self.open.len() >= DEPTH_MAX {
            let message = format!("objects lie more than {DEPTH_MAX} deep in each other");
            return Err(Exception::throw_range(&self.realm.ctx, &message).into());
        }
        if object.is_array() {
            return self.array(object, builder);
        }
        if let Some(milliseconds) = self.realm.date_value(object)? {
            let Some(text) = format::date_text_of(milliseconds) else {
                let message = "a Date that is none, or not of the years 1 to 9999, cannot be stored";
                return Err(Exception::throw_range(&self.realm.ctx, message).into());
            };
            builder.str(&text)?;
            return Ok(());
        }
        self.object(object, builder, false)
    }

    fn array(&mut self, object: &Object<'js>, builder: &mut Builder<'_>) -> Result {
        let origin = node(self.realm, object)?;
        let length: f64 = object.get("length")?;
        builder.begin_array()?;
        self.open.push(object.clone());
        let write =
            |writer: &mut Self, place: usize, value: &Value<'js>, builder: &mut Builder<'_>| match origin {
                Some(origin) if value.is_number() || value.is_string() => sources::with(origin, |origin| {
                    let origin = origin.and_then(|origin| origin.as_array());
                    let origin = origin.and_then(|array| match value.as_number() {
                        Some(number) => origin_of_element(&array, place, number),
                        None => array.get(place),
                    });
                    writer.value(value, origin.as_ref(), builder)
                }),
                _ => writer.value(value, None, builder),
            };
        if length <= DENSE_MAX {
            for place in 0..length as usize {
                let value: Value<'js> = object.get(place as u32)?;
                if value.is_undefined() && !object.contains_key(place as u32)? {
                    continue;
                }
                write(self, place, &value, builder)?;
            }
        } else {
            for key in object.own_keys::<rquickjs::Atom<'js>>(Filter::default()) {
                let key = key?;
                if let Ok(place) = key.to_string()?.parse::<usize>() {
                    write(self, place, &object.get(key)?, builder)?;
                }
            }
        }
        self.open.pop();
        builder.end()?;
        Ok(())
    }

    fn object(&mut self, object: &Object<'js>, builder: &mut Builder<'_>, is_root: bool) -> Result {
        let mut properties = Vec::new();
        for key in object.own_keys::<rquickjs::String<'js>>(Filter::default()) {
            let key = key?;
            let name = self.realm.text(&key)?;
            let value: Value<'js> = object.get(key)?;
            properties.push((name, value));
        }
        let origin = node(self.realm, object)?;
        builder.begin_object()?;
        self.open.push(object.clone());
        match origin {
            None => {
                for (name, value) in &properties {
                    if !(is_root && value.is_undefined()) {
                        builder.name(name)?;
                        self.value(value, None, builder)?;
                    }
                }
            }
            Some(origin) => sources::with(origin, |origin| {
                let origin = origin.and_then(|origin| origin.as_object());
                self.properties(properties, origin.as_ref(), builder)
            })?,
        }
        self.open.pop();
        builder.end()?;
        Ok(())
    }

    /// The properties of an object that came from a document: those that it had there come first and in that order, which scripts do not keep for names
    /// that are numbers.
    fn properties(
        &mut self,
        properties: Vec<(String, Value<'js>)>,
        origin: Option<&document::Object<'_>>,
        builder: &mut Builder<'_>,
    ) -> Result {
        let Some(origin) = origin else {
            for (name, value) in properties {
                builder.name(&name)?;
                self.value(&value, None, builder)?;
            }
            return Ok(());
        };
        let mut placed: Vec<(usize, String, Value<'js>)> = properties
            .into_iter()
            .filter(|(_, value)| !value.is_undefined())
            .map(|(name, value)| (origin.index_of(&name).unwrap_or(usize::MAX), name, value))
            .collect();
        placed.sort_by_key(|(place, ..)| *place);
        for (place, name, value) in placed {
            let origin = origin.at_index(place).map(|(_, value)| value);
            builder.name(&name)?;
            self.value(&value, origin.as_ref(), builder)?;
        }
        Ok(())
    }
}

/// The number that an element of an array was made from: at its place, or near it.
fn origin_of_element<'d>(
    array: &document::Array<'d>,
    place: usize,
    number: f64,
) -> Option<document::Value<'d>> {
    let same = |origin: &document::Value<'d>| origin.as_f64() == Some(number);
    let here = array.get(place);
    if here.as_ref().is_some_and(same) {
        return here;
    }
    let near = place.saturating_sub(MOVED_MAX)..(place + MOVED_MAX).min(array.len());
    near.filter_map(|near| array.get(near)).find(same)
}

/// Appends a number; `origin` is what stood in its place.
pub(super) fn number(
    value: f64,
    origin: Option<&Number<'_>>,
    builder: &mut Builder<'_>,
) -> document::Result<()> {
    if let Some(origin) = origin {
        if origin.as_f64() == value {
            return builder.number(origin);
        }
        if !matches!(origin, Number::Integer(_)) && value.fract() == 0.0 && value.abs() < EXACT_MAX {
            return builder.number_text(&format!("{value:.1}"));
        }
    }
    if value.is_nan() {
        builder.str("NaN")
    } else if value.is_infinite() {
        builder.str(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else if value.fract() == 0.0 && value.abs() < I64_END {
        builder.i64(value as i64)
    } else {
        builder.f64(value)
    }
}
