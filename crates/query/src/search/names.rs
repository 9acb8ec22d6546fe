//! What fields are called in the index that answers.

use jackdaw_indexing::Index;
use jackdaw_indexing::auto::{exact_field, search_field};
use jackdaw_rql::tree::{Expression, Path};
use jackdaw_rql::{Span, parse_expression, parse_path};
use jackdaw_search::KEY_FIELD;

use crate::error::{Error, Result};
use crate::plan::Aliases;
use crate::plan::needs::{name_of, spatial_field};

/// What a field is used for, which in automatic indexes decides on its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Its values.
    Values,
    /// Its words.
    Words,
    /// Its values in their case.
    Exact,
}

/// The names of an index's fields.
#[derive(Clone, Copy)]
pub(crate) struct Names<'n> {
    pub(crate) index: &'n Index,
    pub(crate) is_auto: bool,
    pub(crate) aliases: &'n Aliases,
    pub(crate) text: &'n str,
}

impl Names<'_> {
    /// The field that a path means.
    ///
    /// Errors: the index has none; an unknown alias.
    pub(crate) fn of_path(&self, path: &Path<'_>, usage: Use) -> Result<String> {
        let name = name_of(path, self.aliases, self.text)?;
        self.of_name(name, usage, path.span)
    }

    /// The field that an argument means: a path, a string that holds one, or a spatial field.
    pub(crate) fn of_argument(&self, expression: &Expression<'_>, usage: Use) -> Result<String> {
        match expression {
            Expression::Field(path) => self.of_path(path, usage),
            Expression::Call(call) if call.is("id") => Ok(KEY_FIELD.to_owned()),
            Expression::Call(call) if call.is("spatial.point") || call.is("spatial.wkt") => {
                Ok(spatial_field(call, self.aliases, self.text)?.0)
            }
            Expression::Literal(literal) => match literal.value.as_str() {
                Some(name) if name.starts_with("spatial.") => match parse_expression(name) {
                    Ok(call @ Expression::Call(_)) => self.of_argument(&call, usage),
                    _ => {
                        Err(Error::invalid(self.text, literal.span, format!("'{name}' is no spatial field")))
                    }
                },
                Some(name) => match parse_path(name) {
                    Ok(path) => {
                        let name = name_of(&path, self.aliases, self.text)?;
                        self.of_name(name, usage, literal.span)
                    }
                    Err(_) => self.of_name(name.to_owned(), usage, literal.span),
                },
                None => Err(Error::invalid(self.text, literal.span, "Expected a field here")),
            },
            other => Err(Error::invalid(self.text, other.span(), "Expected a field here")),
        }
    }

    /// The field of a name.
    pub(crate) fn of_name(&self, name: String, usage: Use, _: Span) -> Result<String> {
        if self.is_auto {
            return Ok(match usage {
                Use::Values => name,
                Use::Words => search_field(&name),
                Use::Exact => exact_field(&name),
            });
        }
        if self.index.has_field(&name) {
            return Ok(name);
        }
        let underscored = name.replace("[].", "_").replace('.', "_");
        if self.index.has_field(&underscored) {
            return Ok(underscored);
        }
        Err(Error::Argument(format!(
            "The field '{name}' is not indexed in '{}', cannot query/sort on fields that are not indexed",
            self.index.name()
        )))
    }
}
