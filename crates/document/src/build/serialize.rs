//! `serde::Serialize` to a document.

use std::fmt::Display;

use serde::ser::{self, Serialize};

use super::builder::Builder;
use crate::build::writer::Mode;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::read::Document;

impl Context {
    /// Makes a document of anything that `serde` can write. Byte strings become binary; map keys must be strings, integers, characters or truth values.
    ///
    /// # Errors
    ///
    /// [`Error::Serde`] for what JSON cannot say (such as NaN), and the errors of building.
    pub fn serialize<T: Serialize + ?Sized>(&self, value: &T, mode: Mode) -> Result<Document<'_>> {
        self.build(mode, |builder| value.serialize(ToBuilder(builder)))
    }
}

impl ser::Error for Error {
    fn custom<T: Display>(message: T) -> Error {
        Error::Serde(message.to_string())
    }
}

struct ToBuilder<'b, 'w>(&'b mut Builder<'w>);

/// An open object or array; `closes` counts how many containers end with it.
struct Parts<'b, 'w> {
    builder: &'b mut Builder<'w>,
    closes: u8,
}

impl<'b, 'w> Parts<'b, 'w> {
    fn finish(self) -> Result<()> {
        for _ in 0..self.closes {
            self.builder.end()?;
        }
        Ok(())
    }
}

impl<'b, 'w> ser::Serializer for ToBuilder<'b, 'w> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Parts<'b, 'w>;
    type SerializeTuple = Parts<'b, 'w>;
    type SerializeTupleStruct = Parts<'b, 'w>;
    type SerializeTupleVariant = Parts<'b, 'w>;
    type SerializeMap = Parts<'b, 'w>;
    type SerializeStruct = Parts<'b, 'w>;
    type SerializeStructVariant = Parts<'b, 'w>;

    fn serialize_bool(self, value: bool) -> Result<()> {
        self.0.bool(value)
    }
    fn serialize_i8(self, value: i8) -> Result<()> {
        self.0.i64(value.into())
    }
    fn serialize_i16(self, value: i16) -> Result<()> {
        self.0.i64(value.into())
    }
    fn serialize_i32(self, value: i32) -> Result<()> {
        self.0.i64(value.into())
    }
    fn serialize_i64(self, value: i64) -> Result<()> {
        self.0.i64(value)
    }
    fn serialize_i128(self, value: i128) -> Result<()> {
        self.0.number_text(&value.to_string())
    }
    fn serialize_u8(self, value: u8) -> Result<()> {
        self.0.i64(value.into())
    }
    fn serialize_u16(self, value: u16) -> Result<()> {
        self.0.i64(value.into())
    }
    fn serialize_u32(self, value: u32) -> Result<()> {
        self.0.i64(value.into())
    }
    fn serialize_u64(self, value: u64) -> Result<()> {
        match i64::try_from(value) {
            Ok(value) => self.0.i64(value),
            Err(_) => self.0.number_text(&value.to_string()),
        }
    }
    fn serialize_u128(self, value: u128) -> Result<()> {
        self.0.number_text(&value.to_string())
    }
    fn serialize_f32(self, value: f32) -> Result<()> {
        // Through its own shortest text: 0.1f32 is meant as 0.1, not as 0.10000000149011612.
        if value.is_finite() { self.0.number_text(&format!("{value:?}")) } else { self.0.f64(value.into()) }
    }
    fn serialize_f64(self, value: f64) -> Result<()> {
        self.0.f64(value)
    }
    fn serialize_char(self, value: char) -> Result<()> {
        self.0.str(value.encode_utf8(&mut [0; 4]))
    }
    fn serialize_str(self, value: &str) -> Result<()> {
        self.0.str(value)
    }
    fn serialize_bytes(self, value: &[u8]) -> Result<()> {
        self.0.binary(value)
    }
    fn serialize_none(self) -> Result<()> {
        self.0.null()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<()> {
        self.0.null()
    }
    fn serialize_unit_struct(self, _name: &'static str) -> Result<()> {
        self.0.null()
    }
    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result<()> {
        self.0.str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result<()> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        self.0.begin_object()?;
        self.0.name(variant)?;
        value.serialize(ToBuilder(self.0))?;
        self.0.end()
    }
    fn serialize_seq(self, _len: Option<usize>) -> Result<Parts<'b, 'w>> {
        self.0.begin_array()?;
        Ok(Parts { builder: self.0, closes: 1 })
    }
    fn serialize_tuple(self, len: usize) -> Result<Parts<'b, 'w>> {
        self.serialize_seq(Some(len))
    }
    fn serialize_tuple_struct(self, _name: &'static str, len: usize) -> Result<Parts<'b, 'w>> {
        self.serialize_seq(Some(len))
    }
    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Parts<'b, 'w>> {
        self.0.begin_object()?;
        self.0.name(variant)?;
        self.0.begin_array()?;
        Ok(Parts { builder: self.0, closes: 2 })
    }
    fn serialize_map(self, _len: Option<usize>) -> Result<Parts<'b, 'w>> {
        self.0.begin_object()?;
        Ok(Parts { builder: self.0, closes: 1 })
    }
    fn serialize_struct(self, _name: &'static str, len: usize) -> Result<Parts<'b, 'w>> {
        self.serialize_map(Some(len))
    }
    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Parts<'b, 'w>> {
        self.0.begin_object()?;
        self.0.name(variant)?;
        self.0.begin_object()?;
        Ok(Parts { builder: self.0, closes: 2 })
    }
}

macro_rules! elements {
    ($($trait:ident $method:ident),*) => {$(
        impl ser::$trait for Parts<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                value.serialize(ToBuilder(self.builder))
            }
            fn end(self) -> Result<()> {
                self.finish()
            }
        }
    )*};
}

elements!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

macro_rules! fields {
    ($($trait:ident),*) => {$(
        impl ser::$trait for Parts<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<()> {
                self.builder.name(name)?;
                value.serialize(ToBuilder(self.builder))
            }
            fn end(self) -> Result<()> {
                self.finish()
            }
        }
    )*};
}

fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Parts<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        let name = key.serialize(Key)?;
        self.builder.name(&name)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        value.serialize(ToBuilder(self.builder))
    }
    fn end(self) -> Result<()> {
        self.finish()
    }
}

/// Turns a map's key into a property name.
struct Key;

fn not_a_key<T>() -> Result<T> {
    Err(Error::Serde("a map's key must be a string, an integer, a character or a truth value".to_owned()))
}

macro_rules! keys {
    ($($method:ident $type:ty),*) => {$(
        fn $method(self, value: $type) -> Result<String> {
            Ok(value.to_string())
        }
    )*};
}

impl ser::Serializer for Key {
    type Ok = String;
    type Error = Error;
    type SerializeSeq = ser::Impossible<String, Error>;
    type SerializeTuple = ser::Impossible<String, Error>;
    type SerializeTupleStruct = ser::Impossible<String, Error>;
    type SerializeTupleVariant = ser::Impossible<String, Error>;
    type SerializeMap = ser::Impossible<String, Error>;
    type SerializeStruct = ser::Impossible<String, Error>;
    type SerializeStructVariant = ser::Impossible<String, Error>;

    keys!(
        serialize_bool bool, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64, serialize_i128 i128,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64, serialize_u128 u128, serialize_char char,
        serialize_str &str
    );

    fn serialize_f32(self, _: f32) -> Result<String> {
        not_a_key()
    }
    fn serialize_f64(self, _: f64) -> Result<String> {
        not_a_key()
    }
    fn serialize_bytes(self, _: &[u8]) -> Result<String> {
        not_a_key()
    }
    fn serialize_none(self) -> Result<String> {
        not_a_key()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<String> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<String> {
        not_a_key()
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<String> {
        not_a_key()
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<String> {
        Ok(variant.to_owned())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<String> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<String> {
        not_a_key()
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq> {
        not_a_key()
    }
    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple> {
        not_a_key()
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct> {
        not_a_key()
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant> {
        not_a_key()
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap> {
        not_a_key()
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct> {
        not_a_key()
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant> {
        not_a_key()
    }
}
