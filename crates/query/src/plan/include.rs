//! `include`: what is to come along with the results.

use jackdaw_rql::tree::{self, Expression};

use crate::error::{Error, Result};
use crate::includes::Include;
use crate::plan::Aliases;

/// What a query includes.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Paths to ids of documents.
    pub(crate) documents: Vec<Include>,
    /// The same, as they are told: without the alias.
    pub(crate) paths: Vec<String>,
    /// Paths to keys of compare-exchange values.
    pub(crate) exchange: Vec<Include>,
    /// `timings()`.
    pub(crate) timings: bool,
    /// `explanations()`.
    pub(crate) explanations: bool,
    /// `highlight(..)`, as numbers of the `include` clause's expressions.
    pub(crate) highlights: Vec<usize>,
}

impl Wanted {
    pub(crate) fn new(expressions: &[Expression<'_>], aliases: &Aliases, text: &str) -> Result<Wanted> {
        let mut wanted = Wanted::default();
        for (number, expression) in expressions.iter().enumerate() {
            match expression {
                Expression::Field(_) | Expression::Literal(_) => {
                    let (include, path) = include_of(expression, aliases, text)?;
                    wanted.documents.push(include);
                    wanted.paths.push(path);
                }
                Expression::Call(call) if call.is("cmpxchg") => match &*call.arguments {
                    [path] => wanted.exchange.push(include_of(&path.expression, aliases, text)?.0),
                    _ => return Err(Error::invalid(text, call.span, "Method cmpxchg() expects one path")),
                },
                Expression::Call(call) if call.is("timings") => wanted.timings = true,
                Expression::Call(call) if call.is("explanations") => wanted.explanations = true,
                Expression::Call(call) if call.is("highlight") => wanted.highlights.push(number),
                Expression::Call(call)
                    if ["counters", "timeseries", "revisions"].iter().any(|name| call.is(name)) =>
                {
                    return Err(Error::NotSupported(format!(
                        "include {}(): not supported by this version of the server.",
                        call.name
                    )));
                }
                Expression::Call(call) => {
                    let message =
                        format!("Unable to figure out how to deal with include method '{}'", call.name);
                    return Err(Error::invalid(text, call.span, message));
                }
                other => return Err(Error::invalid(text, other.span(), "Expected a path to include")),
            }
        }
        Ok(wanted)
    }

    /// Whether what is answered depends on other documents than those found.
    pub(crate) fn is_empty(&self) -> bool {
        self.documents.is_empty() && self.exchange.is_empty()
    }
}

/// A path, or a string that holds one, without the alias of the source.
fn include_of(expression: &Expression<'_>, aliases: &Aliases, text: &str) -> Result<(Include, String)> {
    let path = match expression {
        Expression::Field(path) => {
            let full = text_of(path);
            match (aliases.source(), path.first.text.as_ref()) {
                (Some(alias), first) if first == alias => {
                    full[alias.len()..].trim_start_matches('.').to_owned()
                }
                (Some(_), _) if path.rest.iter().any(|step| matches!(step, tree::Step::Name(_))) => {
                    return Err(crate::plan::field::unknown_alias(path, aliases, text));
                }
                _ => full,
            }
        }
        Expression::Literal(literal) => match literal.value.as_str() {
            Some(string) => {
                match aliases.source().and_then(|alias| string.strip_prefix(alias)?.strip_prefix('.')) {
                    Some(path) => path.to_owned(),
                    None => string.to_owned(),
                }
            }
            None => return Err(Error::invalid(text, literal.span, "Expected a path to include")),
        },
        other => return Err(Error::invalid(text, other.span(), "Expected a path to include")),
    };
    let include = Include::parse(&path).map_err(|error| {
        Error::invalid(text, expression.span(), format!("'{path}' is no path to include: {error}"))
    })?;
    Ok((include, path))
}

fn text_of(path: &tree::Path<'_>) -> String {
    let mut text = path.first.text.to_string();
    for step in &path.rest {
        match step {
            tree::Step::Name(name) => text.extend([".", &name.text]),
            tree::Step::Elements => text.push_str("[]"),
            tree::Step::Index(index) => text.extend(["[", index, "]"]),
        }
    }
    text
}
