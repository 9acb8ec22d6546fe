//! `serde::Deserialize` from a document. Plain strings are borrowed from it.

use std::borrow::Cow;
use std::fmt::Display;

use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};

use super::document::Document;
use super::value::{Number, Value};
use crate::error::{Error, Result};
use crate::format::DEPTH_MAX;

impl<'a> Document<'a> {
    /// Reads the document into a type of the caller's.
    ///
    /// # Errors
    ///
    /// [`Error::Serde`] if the type expects something else.
    pub fn deserialize<T: de::Deserialize<'a>>(&self) -> Result<T> {
        self.root().deserialize()
    }
}

impl<'a> Value<'a> {
    /// Reads the value into a type of the caller's.
    ///
    /// # Errors
    ///
    /// [`Error::Serde`] if the type expects something else.
    pub fn deserialize<T: de::Deserialize<'a>>(&self) -> Result<T> {
        T::deserialize(*self)
    }
}

impl de::Error for Error {
    fn custom<T: Display>(message: T) -> Error {
        Error::Serde(message.to_string())
    }
}

/// A value and how deep it lies: a type that nests without end must not follow damaged bytes to the end of the stack.
#[derive(Clone, Copy)]
struct Nested<'a> {
    value: Value<'a>,
    depth: u32,
}

impl<'a> Nested<'a> {
    /// The deserializer of what lies in this value, an embedded document being its root.
    fn inner(self) -> Result<Nested<'a>> {
        if self.depth >= DEPTH_MAX {
            return Err(Error::Limit { what: "depth", limit: DEPTH_MAX as usize });
        }
        Ok(Nested { value: self.value, depth: self.depth + 1 })
    }

    fn unwrapped(self) -> Nested<'a> {
        match self.value {
            Value::Document(document) => Nested { value: document.root(), ..self },
            _ => self,
        }
    }
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        Nested { value: self, depth: 0 }.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        Nested { value: self, depth: 0 }.deserialize_option(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value> {
        Nested { value: self, depth: 0 }.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        Nested { value: self, depth: 0 }.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        Nested { value: self, depth: 0 }.deserialize_f64(visitor)
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        Nested { value: self, depth: 0 }.deserialize_i128(visitor)
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        Nested { value: self, depth: 0 }.deserialize_u128(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

impl<'de> Deserializer<'de> for Nested<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let this = self.unwrapped();
        match this.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(Number::Integer(value)) => visitor.visit_i64(value),
            Value::Number(Number::Text(text)) => {
                // Of types that take anything few take more than 64 bits; for them it is the nearest double.
                match text.parse::<u64>() {
                    Ok(value) => visitor.visit_u64(value),
                    Err(_) => visitor.visit_f64(Number::Text(text).as_f64()),
                }
            }
            Value::Number(number) => visitor.visit_f64(number.as_f64()),
            Value::Text(text) => match text.to_str() {
                Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
                Cow::Owned(text) => visitor.visit_string(text),
            },
            Value::Binary(bytes) => visitor.visit_borrowed_bytes(bytes),
            Value::Array(array) => {
                let depth = this.inner()?.depth;
                let mut values = array.iter().map(|value| Nested { value, depth });
                let result = visitor.visit_seq(Elements(&mut values))?;
                if values.len() > 0 {
                    return Err(Error::Serde("an array with more elements than expected".to_owned()));
                }
                Ok(result)
            }
            Value::Object(object) => {
                visitor.visit_map(Properties { object, next: 0, depth: this.inner()?.depth })
            }
            // An embedded document's root is none.
            Value::Document(_) => Err(Error::Serde("a document whose root is a document".to_owned())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.unwrapped().value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let this = self.unwrapped();
        match this.value {
            Value::Text(text) => visitor.visit_enum(text.to_str().into_deserializer()),
            Value::Object(object) if object.len() == 1 => match object.at_index(0) {
                Some((name, value)) => {
                    let value = Nested { value, depth: this.inner()?.depth };
                    visitor.visit_enum(Variant { name: name.to_str(), value })
                }
                None => Err(Error::Serde("an object without properties is no enum".to_owned())),
            },
            other => Err(Error::Serde(format!("{} is no enum", other.type_name()))),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_any(visitor)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_f64(visitor)
    }

    /// Any number is a double, integers of whatever length included.
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.unwrapped().value {
            Value::Number(number) => visitor.visit_f64(number.as_f64()),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.unwrapped().value {
            // -0 is no integer.
            Value::Number(Number::Text(text)) => match text.parse::<i128>() {
                Ok(value) if value != 0 => visitor.visit_i128(value),
                _ => self.deserialize_any(visitor),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.unwrapped().value {
            Value::Number(Number::Text(text)) => match text.parse::<u128>() {
                Ok(value) => visitor.visit_u128(value),
                _ => self.deserialize_any(visitor),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 char str string byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

struct Elements<'i, I>(&'i mut I);

impl<'de, I: Iterator<Item = Nested<'de>>> de::SeqAccess<'de> for Elements<'_, I> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        self.0.next().map(|value| seed.deserialize(value)).transpose()
    }
}

struct Properties<'a> {
    object: super::Object<'a>,
    next: usize,
    depth: u32,
}

impl<'de> de::MapAccess<'de> for Properties<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        match self.object.at_index(self.next) {
            Some((name, _)) => seed.deserialize(Key(name.to_str())).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let Some((_, value)) = self.object.at_index(self.next) else {
            return Err(Error::Serde("a value was asked for before its key".to_owned()));
        };
        self.next += 1;
        seed.deserialize(Nested { value, depth: self.depth })
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.object.len() - self.next)
    }
}

/// A property name as a map's key: text, or the integer or truth value that it spells.
struct Key<'a>(Cow<'a, str>);

macro_rules! spelt {
    ($($method:ident $visit:ident),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            match self.0.parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => self.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.0 {
            Cow::Borrowed(name) => visitor.visit_borrowed_str(name),
            Cow::Owned(name) => visitor.visit_string(name),
        }
    }

    spelt!(
        deserialize_bool visit_bool, deserialize_i8 visit_i8, deserialize_i16 visit_i16, deserialize_i32 visit_i32,
        deserialize_i64 visit_i64, deserialize_i128 visit_i128, deserialize_u8 visit_u8, deserialize_u16 visit_u16,
        deserialize_u32 visit_u32, deserialize_u64 visit_u64, deserialize_u128 visit_u128
    );

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    serde::forward_to_deserialize_any! {
        f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Variant<'a> {
    name: Cow<'a, str>,
    value: Nested<'a>,
}

impl<'de> de::EnumAccess<'de> for Variant<'de> {
    type Error = Error;
    type Variant = VariantContent<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, VariantContent<'de>)> {
        let name: de::value::CowStrDeserializer<'_, Error> = self.name.into_deserializer();
        let name = seed.deserialize(name)?;
        Ok((name, VariantContent(self.value)))
    }
}

struct VariantContent<'a>(Nested<'a>);

impl<'de> de::VariantAccess<'de> for VariantContent<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<()> {
        de::Deserialize::deserialize(self.0)
    }
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        seed.deserialize(self.0)
    }
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.0.deserialize_any(visitor)
    }
    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value> {
        self.0.deserialize_any(visitor)
    }
}
