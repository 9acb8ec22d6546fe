//! Constants and parameters: the values that a query brings along.

use std::borrow::Cow;

use jackdaw_document::{Number, Object, Style, Value};
use jackdaw_rql::tree;

use crate::error::{Error, Result};

/// A constant of the query's text, read once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Constant {
    Null,
    Bool(bool),
    Long(i64),
    /// A number with a point or an exponent, or beyond 64 bits.
    Double(f64),
    Text(String),
}

impl Constant {
    pub(crate) fn of(literal: &tree::Literal<'_>) -> Constant {
        match &literal.value {
            tree::Value::Null => Constant::Null,
            tree::Value::True => Constant::Bool(true),
            tree::Value::False => Constant::Bool(false),
            tree::Value::String(text) => Constant::Text(text.to_string()),
            number @ tree::Value::Number(_) => match number.as_i64() {
                Some(long) => Constant::Long(long),
                None => Constant::Double(number.as_f64().unwrap_or_default()),
            },
        }
    }

    pub(crate) fn scalar(&self) -> Scalar<'_> {
        match self {
            Constant::Null => Scalar::Null,
            Constant::Bool(value) => Scalar::Bool(*value),
            Constant::Long(value) => Scalar::Long(*value),
            Constant::Double(value) => Scalar::Double(*value),
            Constant::Text(text) => Scalar::Text(Cow::Borrowed(text)),
        }
    }
}

/// One value that fields are compared with.
#[derive(Debug, Clone)]
pub(crate) enum Scalar<'a> {
    /// No such property.
    Missing,
    Null,
    Bool(bool),
    Long(i64),
    Double(f64),
    Text(Cow<'a, str>),
    /// An array or an object.
    Other(Value<'a>),
}

impl<'a> Scalar<'a> {
    pub(crate) fn of(value: Value<'a>) -> Scalar<'a> {
        match value {
            Value::Null => Scalar::Null,
            Value::Bool(value) => Scalar::Bool(value),
            Value::Number(Number::Integer(value)) => Scalar::Long(value),
            Value::Number(number) => Scalar::Double(number.as_f64()),
            Value::Text(text) => Scalar::Text(text.to_str()),
            Value::Array(_) | Value::Object(_) | Value::Document(_) | Value::Binary(_) => {
                Scalar::Other(value)
            }
        }
    }

    /// Appends it as JSON.
    pub(crate) fn print_to(&self, out: &mut Vec<u8>) {
        match self {
            Scalar::Missing | Scalar::Null => out.extend_from_slice(b"null"),
            Scalar::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Scalar::Long(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Scalar::Double(value) if value.is_finite() => Number::Double(*value).append_to(out),
            Scalar::Double(_) => out.extend_from_slice(b"null"),
            Scalar::Text(text) => jackdaw_database::append_json_string(text, out),
            Scalar::Other(value) => value.print_to(out, Style::Compact),
        }
    }

    /// What it is, for messages.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Scalar::Missing => "nothing",
            Scalar::Null => "null",
            Scalar::Bool(_) => "a truth value",
            Scalar::Long(_) | Scalar::Double(_) => "a number",
            Scalar::Text(_) => "a string",
            Scalar::Other(value) => value.type_name(),
        }
    }
}

/// The parameters that came with a query.
#[derive(Clone, Copy)]
pub(crate) struct Parameters<'a> {
    object: Option<Object<'a>>,
}

impl<'a> Parameters<'a> {
    pub(crate) fn new(object: Option<Object<'a>>) -> Parameters<'a> {
        Parameters { object }
    }

    /// The object that holds them.
    pub(crate) fn object(&self) -> Option<Object<'a>> {
        self.object
    }

    /// The value of a parameter, if it was given.
    pub(crate) fn get(&self, name: &str) -> Option<Value<'a>> {
        self.object.as_ref()?.get(name)
    }

    /// The value of a parameter. Error: it was not given.
    pub(crate) fn require(&self, text: &str, parameter: &tree::Parameter<'_>) -> Result<Value<'a>> {
        self.get(&parameter.name).ok_or_else(|| {
            let message = match self.object {
                None => "The query is parametrized but the actual values of parameters were not provided"
                    .to_owned(),
                Some(_) => format!("Value of parameter '{}' was not provided", parameter.name),
            };
            Error::invalid(text, parameter.span, message)
        })
    }

    /// The one value of a literal or a parameter. Error: it is something else, or was not given.
    pub(crate) fn value<'q>(&self, text: &str, expression: &'q tree::Expression<'_>) -> Result<Scalar<'q>>
    where
        'a: 'q,
    {
        match expression {
            tree::Expression::Literal(literal) => Ok(match &literal.value {
                tree::Value::String(text) => Scalar::Text(Cow::Borrowed(text)),
                tree::Value::Null => Scalar::Null,
                tree::Value::True => Scalar::Bool(true),
                tree::Value::False => Scalar::Bool(false),
                number @ tree::Value::Number(_) => match number.as_i64() {
                    Some(long) => Scalar::Long(long),
                    None => Scalar::Double(number.as_f64().unwrap_or_default()),
                },
            }),
            tree::Expression::Parameter(parameter) => Ok(Scalar::of(self.require(text, parameter)?)),
            tree::Expression::Field(path) => Err(Error::invalid(
                text,
                path.span,
                "Expected a literal or a parameter here, but found a field",
            )),
            other => Err(Error::invalid(text, other.span(), "Expected a literal or a parameter here")),
        }
    }
}

/// Gives each value of a list to `each`: arrays, as parameters can be, are taken apart.
pub(crate) fn flatten<'a>(value: Scalar<'a>, each: &mut impl FnMut(Scalar<'a>)) {
    match value {
        Scalar::Other(Value::Array(array)) => array.iter().for_each(|value| flatten(Scalar::of(value), each)),
        value => each(value),
    }
}

/// The property of an object whatever its case: some clients send their option objects in camel case.
pub(crate) fn option<'a>(object: &Object<'a>, name: &str) -> Option<Value<'a>> {
    object.get(name).or_else(|| {
        object.iter().find(|(key, _)| key.to_str().eq_ignore_ascii_case(name)).map(|(_, value)| value)
    })
}
