//! Conditions that are checked document by document: `filter`.
//!
//! They compare as JavaScript does, since that is what the clause means: values of different kinds are never equal, text compares in its case, a
//! missing property is less, equal and greater than nothing; it is unequal to everything. That is another rule than that of `where`, which
//! compares what was indexed.

use std::borrow::Cow;
use std::cmp::Ordering;

use jackdaw_database::ids;
use jackdaw_document::{Context, Value};
use jackdaw_rql::tree::{Call, ComparisonOperator, Expression, Query};
use regex::Regex;

use crate::error::{Error, Result};
use crate::parameters::{Constant, Scalar, flatten};
use crate::plan::Aliases;
use crate::plan::field::{FieldPath, Found, Origin, resolve};
use crate::plan::projection::{CALLED, Called, declared};
use crate::row::Row;
use crate::run::Run;
use crate::script;

/// A condition, with its fields resolved.
#[derive(Debug)]
pub(crate) enum Condition {
    Constant(bool),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
    Comparison(Operand, ComparisonOperator, Operand),
    Between(Operand, Operand, Operand),
    In {
        operand: Operand,
        values: Vec<Operand>,
        all: bool,
    },
    Exists(Operand),
    StartsWith(Operand, Operand),
    EndsWith(Operand, Operand),
    Regex(Operand, Operand),
    /// A declared function says `true`.
    Called(Called),
}

/// A value in a condition.
#[derive(Debug)]
pub(crate) enum Operand {
    Field(Origin, FieldPath),
    Id(Origin),
    Constant(Constant),
    Parameter(String),
    /// What a declared function makes.
    Called(Box<Called>),
}

/// Functions whose condition is all that counts where there is no score and no term.
const TRANSPARENT: &[&str] = &["boost", "exact", "fuzzy"];

impl Condition {
    /// Resolves the condition of a `filter`. Errors: unknown aliases and functions, wrong arguments.
    pub(crate) fn new(
        expression: &Expression<'_>,
        tree: &Query<'_>,
        aliases: &Aliases,
        text: &str,
    ) -> Result<Condition> {
        let operand = |expression: &Expression<'_>| Operand::new(expression, tree, aliases, text);
        let all = |list: &[Expression<'_>]| {
            list.iter().map(|each| Condition::new(each, tree, aliases, text)).collect::<Result<Vec<_>>>()
        };
        Ok(match expression {
            Expression::And(junction) => Condition::And(all(&junction.operands)?),
            Expression::Or(junction) => Condition::Or(all(&junction.operands)?),
            Expression::Not(not) => {
                Condition::Not(Box::new(Condition::new(&not.operand, tree, aliases, text)?))
            }
            Expression::Comparison(comparison) => Condition::Comparison(
                operand(&comparison.left)?,
                comparison.operator,
                operand(&comparison.right)?,
            ),
            Expression::Between(between) => Condition::Between(
                operand(&between.operand)?,
                operand(&between.low)?,
                operand(&between.high)?,
            ),
            Expression::In(one_of) => Condition::In {
                operand: operand(&one_of.operand)?,
                values: one_of.values.iter().map(operand).collect::<Result<_>>()?,
                all: one_of.all,
            },
            Expression::Literal(literal) if literal.value == jackdaw_rql::tree::Value::True => {
                Condition::Constant(true)
            }
            Expression::Literal(literal) if literal.value == jackdaw_rql::tree::Value::False => {
                Condition::Constant(false)
            }
            Expression::Call(call) => Condition::of_call(call, tree, aliases, text)?,
            other => return Err(Error::invalid(text, other.span(), "Expected a condition here")),
        })
    }

    fn of_call(call: &Call<'_>, tree: &Query<'_>, aliases: &Aliases, text: &str) -> Result<Condition> {
        if declared(tree, call) {
            let called = Called::new(tree, call, aliases, text, |call| format!("{call} === true"))?;
            return Ok(Condition::Called(called));
        }
        let argument = |at: usize| -> Result<Operand> {
            Operand::new(&call.arguments[at].expression, tree, aliases, text)
        };
        if TRANSPARENT.iter().any(|name| call.is(name)) && !call.arguments.is_empty() {
            return Condition::new(&call.arguments[0].expression, tree, aliases, text);
        }
        if call.is("intersect") {
            let all = call.arguments.iter().map(|each| Condition::new(&each.expression, tree, aliases, text));
            return Ok(Condition::And(all.collect::<Result<_>>()?));
        }
        let (expected, make): (usize, fn(Operand, Operand) -> Condition) = if call.is("exists") {
            (1, |operand, _| Condition::Exists(operand))
        } else if call.is("startsWith") {
            (2, Condition::StartsWith)
        } else if call.is("endsWith") {
            (2, Condition::EndsWith)
        } else if call.is("regex") {
            (2, Condition::Regex)
        } else {
            let message = format!("'{}' query method is not supported for this type of query", call.name);
            return Err(Error::invalid(text, call.span, message));
        };
        if call.arguments.len() != expected {
            let message = format!(
                "Method {}() expects {expected} argument{}, but got {}",
                call.name,
                if expected == 1 { "" } else { "s" },
                call.arguments.len()
            );
            return Err(Error::invalid(text, call.span, message));
        }
        let second = if expected == 2 { argument(1)? } else { Operand::Constant(Constant::Null) };
        Ok(make(argument(0)?, second))
    }

    /// Whether it calls a declared function, which may look at other documents.
    pub(crate) fn calls(&self) -> bool {
        let called = |operand: &Operand| matches!(operand, Operand::Called(_));
        match self {
            Condition::Constant(_) => false,
            Condition::And(all) | Condition::Or(all) => all.iter().any(Condition::calls),
            Condition::Not(not) => not.calls(),
            Condition::Comparison(left, _, right)
            | Condition::StartsWith(left, right)
            | Condition::EndsWith(left, right)
            | Condition::Regex(left, right) => called(left) || called(right),
            Condition::Between(operand, low, high) => called(operand) || called(low) || called(high),
            Condition::In { operand, values, .. } => called(operand) || values.iter().any(called),
            Condition::Exists(operand) => called(operand),
            Condition::Called(_) => true,
        }
    }

    /// Whether it holds.
    ///
    /// Errors: a parameter that was not given, a pattern that is none, what a declared function throws.
    pub(crate) fn holds(&self, row: &Row<'_>, run: &Run<'_>) -> Result<bool> {
        let value =
            |operand: &Operand| -> Result<bool> { Ok(matches!(operand.value(row, run)?, Scalar::Missing)) };
        Ok(match self {
            Condition::Constant(holds) => *holds,
            Condition::And(all) => {
                for each in all {
                    if !each.holds(row, run)? {
                        return Ok(false);
                    }
                }
                true
            }
            Condition::Or(any) => {
                for each in any {
                    if each.holds(row, run)? {
                        return Ok(true);
                    }
                }
                false
            }
            Condition::Not(not) => !not.holds(row, run)?,
            Condition::Comparison(left, operator, right) => {
                let ignores_case = matches!(left, Operand::Id(_)) || matches!(right, Operand::Id(_));
                let (left, right) = (left.value(row, run)?, right.value(row, run)?);
                let equal = |left: &Scalar<'_>, right: &Scalar<'_>| match (left, right) {
                    (Scalar::Text(left), Scalar::Text(right)) if ignores_case => {
                        ids::lower(left) == ids::lower(right)
                    }
                    _ => equal(left, right),
                };
                match operator {
                    ComparisonOperator::Equal => equal(&left, &right),
                    ComparisonOperator::NotEqual => !equal(&left, &right),
                    ComparisonOperator::Less => order(&left, &right) == Some(Ordering::Less),
                    ComparisonOperator::LessEqual => order(&left, &right).is_some_and(Ordering::is_le),
                    ComparisonOperator::Greater => order(&left, &right) == Some(Ordering::Greater),
                    ComparisonOperator::GreaterEqual => order(&left, &right).is_some_and(Ordering::is_ge),
                }
            }
            Condition::Between(operand, low, high) => {
                let operand = operand.value(row, run)?;
                let (low, high) = (low.value(row, run)?, high.value(row, run)?);
                order(&operand, &low).is_some_and(Ordering::is_ge)
                    && order(&operand, &high).is_some_and(Ordering::is_le)
            }
            Condition::In { operand, values, all } => {
                let operand = operand.value(row, run)?;
                let (mut any, mut every) = (false, true);
                for value in values {
                    flatten(value.value(row, run)?, &mut |value| {
                        let found = match &operand {
                            Scalar::Other(Value::Array(array)) => {
                                array.iter().any(|element| equal(&Scalar::of(element), &value))
                            }
                            operand => equal(operand, &value),
                        };
                        any |= found;
                        every &= found;
                    });
                }
                if *all { every } else { any }
            }
            Condition::Exists(operand) => !value(operand)?,
            Condition::StartsWith(operand, start) => {
                let ignores_case = matches!(operand, Operand::Id(_));
                match (operand.value(row, run)?, start.value(row, run)?) {
                    (Scalar::Text(text), Scalar::Text(start)) if ignores_case => {
                        ids::lower(&text).starts_with(&*ids::lower(&start))
                    }
                    (Scalar::Text(text), Scalar::Text(start)) => text.starts_with(&*start),
                    _ => false,
                }
            }
            Condition::EndsWith(operand, end) => match (operand.value(row, run)?, end.value(row, run)?) {
                (Scalar::Text(text), Scalar::Text(end)) => text.ends_with(&*end),
                _ => false,
            },
            Condition::Called(called) => {
                let context = Context::new();
                let made = script::call(run, row, called, &context)?;
                matches!(made.and_then(|made| made.root().get(CALLED)), Some(Value::Bool(true)))
            }
            Condition::Regex(operand, pattern) => {
                match (operand.value(row, run)?, pattern.value(row, run)?) {
                    (Scalar::Text(value), Scalar::Text(pattern)) => {
                        let regex = Regex::new(&pattern).map_err(|error| {
                            Error::Invalid(format!("'{pattern}' is no regular expression: {error}"))
                        })?;
                        regex.is_match(&value)
                    }
                    _ => false,
                }
            }
        })
    }
}

impl Operand {
    fn new(expression: &Expression<'_>, tree: &Query<'_>, aliases: &Aliases, text: &str) -> Result<Operand> {
        Ok(match expression {
            Expression::Field(path) => {
                let (origin, path) = resolve(path, aliases, text)?;
                Operand::Field(origin, path)
            }
            Expression::Literal(literal) => Operand::Constant(Constant::of(literal)),
            Expression::Parameter(parameter) => Operand::Parameter(parameter.name.to_string()),
            Expression::Call(call) if declared(tree, call) => {
                Operand::Called(Box::new(Called::new(tree, call, aliases, text, str::to_owned)?))
            }
            Expression::Call(call) if call.is("id") => Operand::Id(aliases.of_id_call(call, text)?),
            other => {
                return Err(Error::invalid(
                    text,
                    other.span(),
                    "Expected a field, a literal or a parameter here",
                ));
            }
        })
    }

    fn value<'r>(&self, row: &Row<'r>, run: &Run<'r>) -> Result<Scalar<'r>> {
        Ok(match self {
            Operand::Field(origin, path) => match row.find(*origin, path) {
                Found::One(value) => Scalar::of(value),
                Found::Computed(text) => Scalar::Text(Cow::Owned(text)),
                // An array, which compares with nothing.
                Found::Missing | Found::Many(_) => Scalar::Missing,
            },
            Operand::Id(origin) => match row.id(*origin) {
                Some(id) => Scalar::Text(Cow::Borrowed(id)),
                None => Scalar::Missing,
            },
            Operand::Constant(constant) => match constant {
                Constant::Text(text) => Scalar::Text(Cow::Owned(text.clone())),
                Constant::Null => Scalar::Null,
                Constant::Bool(value) => Scalar::Bool(*value),
                Constant::Long(value) => Scalar::Long(*value),
                Constant::Double(value) => Scalar::Double(*value),
            },
            Operand::Called(called) => {
                let context = Context::new();
                let made = script::call(run, row, called, &context)?;
                match made.and_then(|made| made.root().get(CALLED)).map(Scalar::of) {
                    None => Scalar::Missing,
                    Some(Scalar::Text(text)) => Scalar::Text(Cow::Owned(text.into_owned())),
                    Some(Scalar::Null) => Scalar::Null,
                    Some(Scalar::Bool(value)) => Scalar::Bool(value),
                    Some(Scalar::Long(value)) => Scalar::Long(value),
                    Some(Scalar::Double(value)) => Scalar::Double(value),
                    // It compares with nothing, as an array of a document.
                    Some(Scalar::Missing | Scalar::Other(_)) => Scalar::Missing,
                }
            }
            Operand::Parameter(name) => match run.parameters().get(name) {
                Some(value) => Scalar::of(value),
                None => {
                    return Err(Error::Invalid(format!(
                        "Value of parameter '{name}' was not provided\nQuery: {}",
                        run.plan.text
                    )));
                }
            },
        })
    }
}

/// `===` of JavaScript.
fn equal(left: &Scalar<'_>, right: &Scalar<'_>) -> bool {
    match (left, right) {
        (Scalar::Missing, Scalar::Missing) | (Scalar::Null, Scalar::Null) => true,
        (Scalar::Bool(left), Scalar::Bool(right)) => left == right,
        (Scalar::Long(left), Scalar::Long(right)) => left == right,
        (Scalar::Text(left), Scalar::Text(right)) => left == right,
        (Scalar::Long(_) | Scalar::Double(_), Scalar::Long(_) | Scalar::Double(_)) => {
            number(left) == number(right)
        }
        _ => false,
    }
}

/// `<` and `>` of JavaScript: text with text by its characters, all else by its number; nothing compares with what has none.
fn order(left: &Scalar<'_>, right: &Scalar<'_>) -> Option<Ordering> {
    match (left, right) {
        (Scalar::Text(left), Scalar::Text(right)) => Some(left.as_bytes().cmp(right.as_bytes())),
        (Scalar::Long(left), Scalar::Long(right)) => Some(left.cmp(right)),
        _ => number(left)?.partial_cmp(&number(right)?),
    }
}

fn number(value: &Scalar<'_>) -> Option<f64> {
    match value {
        Scalar::Null => Some(0.0),
        Scalar::Bool(value) => Some(f64::from(u8::from(*value))),
        Scalar::Long(value) => Some(*value as f64),
        Scalar::Double(value) => Some(*value),
        Scalar::Text(text) if text.trim().is_empty() => Some(0.0),
        Scalar::Text(text) => text.trim().parse().ok(),
        Scalar::Missing | Scalar::Other(_) => None,
    }
}
