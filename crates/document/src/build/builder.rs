//! Building a document call by call.

use super::names::NameIndex;
use super::writer::{Mode, Writer};
use crate::error::{Error, Result};
use crate::format::{self, kind};
use crate::limits::Limits;
use crate::read::{Document, Number, Text, Value};
use crate::text::number;

/// Writes one value by calls in its order: `begin_object`, `name`, a value, …, `end`. See [`Context::build`](crate::Context::build).
///
/// Every call checks that it may come now; the first that may not returns [`Error::Build`]. A name that an object repeats keeps the last value,
/// in the last one's place.
pub struct Builder<'w> {
    writer: &'w mut Writer,
    open: Vec<Open>,
    /// The name of the value to come.
    name: Option<NameIndex>,
    limits: Limits,
}

#[derive(Clone, Copy)]
struct Open {
    first: usize,
    /// The name under which the container lies, when its parent is an object.
    name_id: u32,
    is_object: bool,
}

impl<'w> Builder<'w> {
    pub(crate) fn new(writer: &'w mut Writer, mode: Mode, limits: &Limits) -> Builder<'w> {
        let limits = limits.within_format();
        writer.begin(mode, limits.document_size_max);
        Builder { writer, open: Vec::new(), name: None, limits }
    }

    pub(crate) fn finish(self) -> Result<()> {
        if !self.open.is_empty() {
            return Err(Error::Build("an object or array is still open"));
        }
        self.writer.finish().map(|_| ())
    }

    /// The name id for the value that comes now, once it is sure that one may.
    fn place(&mut self) -> Result<u32> {
        if self.writer.too_large() {
            return Err(self.writer.size_error());
        }
        match self.open.last() {
            None if !self.writer.entries.is_empty() => Err(Error::Build("a document has one root")),
            None => Ok(0),
            Some(open) if open.is_object => {
                let Some(name) = self.name.take() else {
                    return Err(Error::Build("a value in an object needs a name"));
                };
                let id = self.writer.names.id(name);
                if id as usize >= self.limits.name_count_max {
                    return Err(Error::Limit {
                        what: "number of distinct names",
                        limit: self.limits.name_count_max,
                    });
                }
                Ok(id)
            }
            Some(_) => Ok(0),
        }
    }

    fn begin(&mut self, is_object: bool) -> Result<()> {
        let name_id = self.place()?;
        if self.open.len() >= self.limits.depth_max as usize {
            return Err(Error::Limit { what: "depth", limit: self.limits.depth_max as usize });
        }
        self.open.push(Open { first: self.writer.entries.len(), name_id, is_object });
        Ok(())
    }

    /// Opens an object.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] where no value may stand, [`Error::Limit`] if it is too deep; so it is with all values.
    pub fn begin_object(&mut self) -> Result<()> {
        self.begin(true)
    }

    /// Opens an array.
    ///
    /// # Errors
    ///
    /// As [`Builder::begin_object`].
    pub fn begin_array(&mut self) -> Result<()> {
        self.begin(false)
    }

    /// Closes the innermost open object or array.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] if none is open, or a name still waits for its value.
    pub fn end(&mut self) -> Result<()> {
        if self.name.is_some() {
            return Err(Error::Build("a name without a value"));
        }
        let Some(open) = self.open.pop() else {
            return Err(Error::Build("nothing is open"));
        };
        let (kind, position) = if open.is_object {
            self.writer.close_object(open.first)
        } else {
            self.writer.close_array(open.first)
        };
        self.writer.push(kind, open.name_id, position);
        Ok(())
    }

    /// Names the property whose value comes next.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] outside objects or after another name, [`Error::Limit`] if it is too long.
    pub fn name(&mut self, name: &str) -> Result<()> {
        if !self.open.last().is_some_and(|open| open.is_object) {
            return Err(Error::Build("a name outside an object"));
        }
        if self.name.is_some() {
            return Err(Error::Build("a name without a value"));
        }
        if name.len() > self.limits.name_size_max {
            return Err(Error::Limit {
                what: "size of a property name in bytes",
                limit: self.limits.name_size_max,
            });
        }
        self.name = Some(self.writer.intern(name.as_bytes())?);
        Ok(())
    }

    /// Writes `null`.
    ///
    /// # Errors
    ///
    /// As [`Builder::begin_object`].
    pub fn null(&mut self) -> Result<()> {
        let id = self.place()?;
        self.writer.push(kind::NULL, id, 0);
        Ok(())
    }

    /// Writes `true` or `false`.
    ///
    /// # Errors
    ///
    /// As [`Builder::begin_object`].
    pub fn bool(&mut self, value: bool) -> Result<()> {
        let id = self.place()?;
        self.writer.push(if value { kind::TRUE } else { kind::FALSE }, id, 0);
        Ok(())
    }

    /// Writes an integer.
    ///
    /// # Errors
    ///
    /// As [`Builder::begin_object`].
    pub fn i64(&mut self, value: i64) -> Result<()> {
        let id = self.place()?;
        self.writer.push_integer(id, value);
        Ok(())
    }

    /// Writes a double. JSON has no NaN and no infinities.
    ///
    /// # Errors
    ///
    /// As [`Builder::begin_object`]; [`Error::Build`] if it is not finite.
    pub fn f64(&mut self, value: f64) -> Result<()> {
        if !value.is_finite() {
            return Err(Error::Build("JSON has neither NaN nor infinities"));
        }
        let id = self.place()?;
        self.writer.push_double(id, value);
        Ok(())
    }

    /// Writes a number given as JSON text, digit for digit.
    ///
    /// # Errors
    ///
    /// As [`Builder::begin_object`]; [`Error::Build`] if it is not a JSON number.
    pub fn number_text(&mut self, text: &str) -> Result<()> {
        let Some(parsed) = number::parse_whole(text.as_bytes()) else {
            return Err(Error::Build("the text is not a JSON number"));
        };
        let id = self.place()?;
        match parsed {
            number::Parsed::Integer(value) => self.writer.push_integer(id, value),
            number::Parsed::Decimal { mantissa, scale } => self.writer.push_decimal(id, mantissa, scale),
            number::Parsed::Text => self.writer.push_number_text(id, text.as_bytes()),
        }
        Ok(())
    }

    /// Writes a string.
    ///
    /// # Errors
    ///
    /// As [`Builder::begin_object`].
    pub fn str(&mut self, value: &str) -> Result<()> {
        let id = self.place()?;
        if value.len() > format::SIZE_MAX {
            return Err(self.writer.size_error());
        }
        self.writer.push_string(id, value.as_bytes(), false);
        Ok(())
    }

    /// Writes bytes, which print as a string in base64.
    ///
    /// # Errors
    ///
    /// As [`Builder::begin_object`].
    pub fn binary(&mut self, value: &[u8]) -> Result<()> {
        let id = self.place()?;
        if value.len() > format::SIZE_MAX {
            return Err(self.writer.size_error());
        }
        self.writer.push_binary(id, value);
        Ok(())
    }

    /// Writes a whole document as one value, its bytes unchanged; it prints as its root.
    ///
    /// # Errors
    ///
    /// As [`Builder::begin_object`]; [`Error::Build`] if the document is the root (then it needs no embedding), or uses a dictionary
    /// other than the one documents are built with here.
    pub fn embed(&mut self, document: &Document<'_>) -> Result<()> {
        if self.open.is_empty() {
            return Err(Error::Build("an embedded document needs a container around it"));
        }
        if document.dictionary_id() != 0
            && !(self.writer.mode() == Mode::Disk && document.dictionary_id() == self.writer.dictionary_id())
        {
            return Err(Error::Build("the document's dictionary is not the one in use here"));
        }
        // A level needs three bytes, so a short document needs no look into it.
        let levels_max = (self.limits.depth_max as usize).saturating_sub(self.open.len());
        if document.as_bytes().len() / 3 > levels_max && depth_exceeds(&document.root(), levels_max) {
            return Err(Error::Limit { what: "depth", limit: self.limits.depth_max as usize });
        }
        let id = self.place()?;
        self.writer.push_embedded(id, document.as_bytes());
        Ok(())
    }

    /// Writes a copy of a value of any document, whatever its depth.
    ///
    /// # Errors
    ///
    /// As [`Builder::begin_object`].
    pub fn value(&mut self, value: &Value<'_>) -> Result<()> {
        match value {
            Value::Null => self.null(),
            Value::Bool(value) => self.bool(*value),
            Value::Number(number) => self.number(number),
            Value::Text(text) => self.text(text),
            Value::Array(array) => {
                self.begin_array()?;
                for value in array.iter() {
                    self.value(&value)?;
                }
                self.end()
            }
            Value::Object(object) => {
                self.begin_object()?;
                for (name, value) in object.iter() {
                    self.name_text(&name)?;
                    self.value(&value)?;
                }
                self.end()
            }
            Value::Document(document) => {
                if self.open.is_empty() || document.dictionary_id() != 0 {
                    self.value(&document.root())
                } else {
                    self.embed(document)
                }
            }
            Value::Binary(bytes) => self.binary(bytes),
        }
    }

    /// As [`Builder::name`], from another document.
    pub(crate) fn name_text(&mut self, name: &Text<'_>) -> Result<()> {
        match name.as_str() {
            Some(name) => self.name(name),
            None => self.name(&name.to_str()),
        }
    }

    /// Writes a number as it is.
    ///
    /// # Errors
    ///
    /// As [`Builder::begin_object`].
    pub fn number(&mut self, number: &Number<'_>) -> Result<()> {
        match number {
            Number::Integer(value) => self.i64(*value),
            Number::Double(value) => self.f64(*value),
            Number::Decimal { mantissa, scale } => {
                let id = self.place()?;
                self.writer.push_decimal(id, *mantissa, (*scale).clamp(1, format::SCALE_MAX));
                Ok(())
            }
            Number::Text(text) => self.number_text(text),
        }
    }

    /// Writes a string of any document, lone surrogates included.
    ///
    /// # Errors
    ///
    /// As [`Builder::begin_object`].
    pub fn text(&mut self, text: &Text<'_>) -> Result<()> {
        let id = self.place()?;
        if text.is_compressed() {
            self.writer.push_string(id, &text.to_bytes(), false);
        } else {
            self.writer.push_string(id, text.stored(), text.has_lone_surrogates());
        }
        Ok(())
    }
}

/// Whether a value has more than `levels` of containers one in the other, embedded documents counting one each as they do in validation.
fn depth_exceeds(value: &Value<'_>, levels: usize) -> bool {
    let inner = match value {
        Value::Array(_) | Value::Object(_) | Value::Document(_) => match levels.checked_sub(1) {
            Some(inner) => inner,
            None => return true,
        },
        _ => return false,
    };
    match value {
        Value::Array(array) => array.iter().any(|value| depth_exceeds(&value, inner)),
        Value::Object(object) => object.iter().any(|(_, value)| depth_exceeds(&value, inner)),
        Value::Document(document) => depth_exceeds(&document.root(), inner),
        _ => false,
    }
}
