//! `where` as the search index's tree.
//!
//! How values compare is the search index's rule; here is only said which field, which value and which operator.

use jackdaw_database::{clock, ids};
use jackdaw_document::Style;
use jackdaw_rql::tree::{Between, Call, Comparison, ComparisonOperator, Expression, In, Value as Literal};
use jackdaw_search::{Bound, KEY_FIELD, Operator, Query, Searcher, Value};

use crate::error::{Error, Result};
use crate::parameters::{Scalar, flatten};
use crate::plan::needs::COUNT;
use crate::run::Run;
use crate::search::names::{Names, Use};
use crate::search::spatial;

/// How alike a term must be for `fuzzy` unless the query says.
const SIMILARITY: f32 = 0.5;

/// Translates the conditions of one run.
pub(crate) struct Conditions<'c> {
    pub(crate) run: &'c Run<'c>,
    pub(crate) names: Names<'c>,
    pub(crate) searcher: &'c Searcher,
}

/// What is compared: an entry's key, or a field.
enum Subject {
    Key,
    Field(String),
}

impl Conditions<'_> {
    fn invalid(&self, expression: &Expression<'_>, message: impl AsRef<str>) -> Error {
        Error::invalid(&self.run.plan.text, expression.span(), message)
    }

    /// The whole `where`.
    ///
    /// Errors: fields that the index does not have, parameters not given, values that cannot be compared so.
    pub(crate) fn query(&self) -> Result<Query> {
        match &self.run.plan.tree.condition {
            Some(condition) => self.of(condition, false),
            None => Ok(Query::All),
        }
    }

    pub(crate) fn of(&self, expression: &Expression<'_>, exact: bool) -> Result<Query> {
        let all = |list: &[Expression<'_>]| {
            list.iter().map(|each| self.of(each, exact)).collect::<Result<Vec<_>>>()
        };
        Ok(match expression {
            Expression::And(junction) => Query::And(joined(all(&junction.operands)?)),
            Expression::Or(junction) => Query::Or(all(&junction.operands)?),
            Expression::Not(not) => Query::Not(Box::new(self.of(&not.operand, exact)?)),
            Expression::Comparison(comparison) => self.comparison(comparison, exact)?,
            Expression::Between(between) => self.between(between, exact)?,
            Expression::In(one_of) => self.one_of(one_of, exact)?,
            Expression::Call(call) => self.call(call, expression, exact)?,
            Expression::Literal(literal) if literal.value == Literal::True => Query::All,
            Expression::Literal(literal) if literal.value == Literal::False => Query::None,
            other => return Err(self.invalid(other, "Expected a condition here")),
        })
    }

    fn subject(&self, expression: &Expression<'_>, exact: bool) -> Result<Subject> {
        let usage = if exact { Use::Exact } else { Use::Values };
        match expression {
            Expression::Call(call) if call.is("id") => Ok(Subject::Key),
            Expression::Call(call) if call.is("count") => Ok(Subject::Field(COUNT.to_owned())),
            Expression::Call(call) if call.is("sum") || call.is("array") => match call.arguments.first() {
                Some(argument) => {
                    Ok(Subject::Field(self.names.of_argument(&argument.expression, Use::Values)?))
                }
                None => Err(self.invalid(expression, "Expected a field here")),
            },
            Expression::Call(call) if call.is("key") => match &*self.run.plan.tree.group_by {
                [key] => self.subject(&key.expression, exact),
                _ => Err(self.invalid(expression, "key() needs a GROUP BY of one field")),
            },
            Expression::Field(path) if path.as_name() == Some(jackdaw_database::metadata::ID) => {
                Ok(Subject::Key)
            }
            other => Ok(Subject::Field(self.names.of_argument(other, usage)?)),
        }
    }

    /// The value right of an operator.
    fn scalar<'e>(&'e self, expression: &'e Expression<'_>) -> Result<Scalar<'e>> {
        let Expression::Call(call) = expression else {
            return self.run.parameters().value(&self.run.plan.text, expression);
        };
        if call.is("cmpxchg") {
            let key = match call.arguments.first() {
                Some(key) => self.run.parameters().value(&self.run.plan.text, &key.expression)?,
                None => Scalar::Null,
            };
            let Scalar::Text(key) = key else {
                return Err(self.invalid(expression, "cmpxchg() expects a key"));
            };
            let found = self.run.snapshot().compare_exchange(&key)?;
            return Ok(found.and_then(|found| found.value.get("Object")).map_or(Scalar::Null, Scalar::of));
        }
        if call.is("now") || call.is("today") {
            let mut ticks = clock::now_ticks();
            if call.is("today") {
                const DAY: i64 = 24 * 3600 * 10_000_000;
                ticks -= ticks % DAY;
            }
            return Ok(Scalar::Text(clock::date_text(ticks).into()));
        }
        Err(self.invalid(expression, format!("Method {}() gives no value to compare with", call.name)))
    }

    fn value(&self, expression: &Expression<'_>) -> Result<Value> {
        let scalar = self.scalar(expression)?;
        value_of(scalar).map_err(|found| {
            self.invalid(expression, format!("Expected a single value to compare with, but got {found}"))
        })
    }

    fn text(&self, expression: &Expression<'_>) -> Result<String> {
        match self.scalar(expression)? {
            Scalar::Text(text) => Ok(text.into_owned()),
            Scalar::Null | Scalar::Missing => Ok(String::new()),
            other => {
                let mut text = Vec::new();
                other.print_to(&mut text);
                Ok(String::from_utf8_lossy(&text).into_owned())
            }
        }
    }

    fn comparison(&self, comparison: &Comparison<'_>, exact: bool) -> Result<Query> {
        let (value, as_it_is) = match self.scalar(&comparison.right)? {
            // An object is indexed as its JSON.
            Scalar::Other(object) if object.as_object().is_some() => {
                (Value::Text(object.to_json(Style::Compact)), true)
            }
            _ => (self.value(&comparison.right)?, exact),
        };
        let field = match self.subject(&comparison.left, exact)? {
            Subject::Key => {
                let entry = || match &value {
                    Value::Text(id) if exact && ids::lower(id) != *id => Query::None,
                    Value::Text(id) => Query::Key(ids::lower(id).into_owned()),
                    _ => Query::None,
                };
                let found = match comparison.operator {
                    ComparisonOperator::Equal => Some(entry()),
                    ComparisonOperator::NotEqual => Some(Query::Not(Box::new(entry()))),
                    _ => None,
                };
                match found {
                    Some(found) => return Ok(found),
                    None => KEY_FIELD.to_owned(),
                }
            }
            Subject::Field(field) => field,
        };
        let exact = as_it_is;
        let range = |low, high| Query::Range { field: field.clone(), low, high, exact };
        Ok(match comparison.operator {
            ComparisonOperator::Equal => Query::Term { field, value, exact },
            ComparisonOperator::NotEqual => Query::Not(Box::new(Query::Term { field, value, exact })),
            ComparisonOperator::Less => range(Bound::Open, Bound::Excluded(value)),
            ComparisonOperator::LessEqual => range(Bound::Open, Bound::Included(value)),
            ComparisonOperator::Greater => range(Bound::Excluded(value), Bound::Open),
            ComparisonOperator::GreaterEqual => range(Bound::Included(value), Bound::Open),
        })
    }

    fn between(&self, between: &Between<'_>, exact: bool) -> Result<Query> {
        let field = match self.subject(&between.operand, exact)? {
            Subject::Key => KEY_FIELD.to_owned(),
            Subject::Field(field) => field,
        };
        let bound = |expression: &Expression<'_>| -> Result<Bound> {
            Ok(match self.value(expression)? {
                Value::Null => Bound::Open,
                Value::Text(text) if text == "*" || text == "NULL" => Bound::Open,
                value => Bound::Included(value),
            })
        };
        Ok(Query::Range { field, low: bound(&between.low)?, high: bound(&between.high)?, exact })
    }

    fn one_of(&self, one_of: &In<'_>, exact: bool) -> Result<Query> {
        let mut values = Vec::with_capacity(one_of.values.len());
        for expression in &one_of.values {
            let mut failed = None;
            flatten(self.scalar(expression)?, &mut |scalar| match value_of(scalar) {
                Ok(value) => values.push(value),
                Err(found) => failed = Some(found),
            });
            if let Some(found) = failed {
                return Err(self.invalid(
                    expression,
                    format!("Expected a list of single values, but got {found} in it"),
                ));
            }
        }
        Ok(match self.subject(&one_of.operand, exact)? {
            Subject::Key => Query::Keys(
                values
                    .into_iter()
                    .filter_map(|value| match value {
                        Value::Text(id) => Some(ids::lower(&id).into_owned()),
                        _ => None,
                    })
                    .collect(),
            ),
            Subject::Field(_) if one_of.all && values.is_empty() => Query::None,
            Subject::Field(field) if one_of.all => Query::AllIn { field, values, exact },
            Subject::Field(field) => Query::In { field, values, exact },
        })
    }

    fn call(&self, call: &Call<'_>, expression: &Expression<'_>, exact: bool) -> Result<Query> {
        let argument = |at: usize| call.arguments.get(at).map(|argument| &argument.expression);
        let (Some(first), second) = (argument(0), argument(1)) else {
            return Err(self.invalid(expression, format!("Method {}() is no condition", call.name)));
        };
        let needed = || {
            second.ok_or_else(|| {
                self.invalid(
                    expression,
                    format!("Method {}() expects second argument to be provided", call.name),
                )
            })
        };
        let values = if exact { Use::Exact } else { Use::Values };
        let name = call.name.to_ascii_lowercase();
        Ok(match &*name {
            "exact" => self.of(first, true)?,
            "boost" => {
                let boost = self.number(needed()?)? as f32;
                Query::Boost(Box::new(self.of(first, exact)?), boost)
            }
            "search" => {
                let field = self.names.of_argument(first, if exact { Use::Exact } else { Use::Words })?;
                let operator = match argument(2) {
                    None => Operator::Or,
                    Some(word) => self.operator(word)?,
                };
                let mut texts = Vec::new();
                flatten(self.scalar(needed()?)?, &mut |scalar| texts.push(text_of(&scalar)));
                let mut all: Vec<Query> = texts
                    .into_iter()
                    .map(|text| Query::Search { field: field.clone(), text, operator })
                    .collect();
                match all.len() {
                    1 => all.swap_remove(0),
                    _ => Query::Or(all),
                }
            }
            "lucene" => Query::Lucene {
                field: self.names.of_argument(first, if exact { Use::Exact } else { Use::Words })?,
                text: self.text(needed()?)?,
                exact,
            },
            "startswith" => match self.subject(first, exact)? {
                Subject::Key => Query::KeyPrefix(ids::lower(&self.text(needed()?)?).into_owned()),
                Subject::Field(field) => Query::Prefix { field, text: self.text(needed()?)?, exact },
            },
            "endswith" => Query::Suffix {
                field: self.names.of_argument(first, values)?,
                text: self.text(needed()?)?,
                exact,
            },
            "regex" => {
                Query::Regex { field: self.names.of_argument(first, values)?, pattern: self.text(needed()?)? }
            }
            "exists" => match self.subject(first, false)? {
                Subject::Key => Query::All,
                Subject::Field(field) => Query::Exists { field },
            },
            "fuzzy" => {
                let similarity = match second {
                    Some(second) => self.number(second)? as f32,
                    None => SIMILARITY,
                };
                let Expression::Comparison(comparison) = first else {
                    return Err(self.invalid(first, "fuzzy() expects an equality of a field"));
                };
                if comparison.operator != ComparisonOperator::Equal {
                    return Err(self.invalid(first, "fuzzy() expects an equality of a field"));
                }
                let field = self.names.of_argument(&comparison.left, values)?;
                Query::Fuzzy { field, text: self.text(&comparison.right)?, similarity }
            }
            "proximity" => {
                let slop = self.number(needed()?)?;
                let (field, words) = match first {
                    Expression::Call(search) if search.is("search") && search.arguments.len() >= 2 => {
                        (&search.arguments[0].expression, &search.arguments[1].expression)
                    }
                    other => return Err(self.invalid(other, "proximity() expects search()")),
                };
                if slop < 0.0 || slop.fract() != 0.0 {
                    return Err(
                        self.invalid(needed()?, "The distance of proximity() must be an integer, 0 or more")
                    );
                }
                Query::Proximity {
                    field: self.names.of_argument(field, Use::Words)?,
                    text: self.text(words)?,
                    slop: slop as u32,
                }
            }
            "intersect" => {
                let all = call.arguments.iter().map(|each| self.of(&each.expression, exact));
                Query::Intersect(all.collect::<Result<_>>()?)
            }
            "morelikethis" => return self.more_like_this(call),
            _ if name.starts_with("spatial.") => spatial::relation(self.run, &self.names, call)?,
            _ => return Err(self.invalid(expression, format!("Method {}() is no condition", call.name))),
        })
    }

    fn number(&self, expression: &Expression<'_>) -> Result<f64> {
        match self.scalar(expression)? {
            Scalar::Long(value) => Ok(value as f64),
            Scalar::Double(value) => Ok(value),
            other => {
                Err(self.invalid(expression, format!("Expected a number, but got {}", other.type_name())))
            }
        }
    }

    fn operator(&self, expression: &Expression<'_>) -> Result<Operator> {
        let word = match expression {
            Expression::Field(path) => path.as_name().map(str::to_owned),
            other => match self.scalar(other)? {
                Scalar::Text(text) => Some(text.into_owned()),
                _ => None,
            },
        };
        match word.as_deref().map(str::to_ascii_lowercase).as_deref() {
            Some("and") => Ok(Operator::And),
            Some("or") => Ok(Operator::Or),
            _ => Err(self.invalid(expression, "The third argument of search() is `and` or `or`")),
        }
    }
}

/// Two ends of the same field, one behind the other, are one range: of a list, one value must be between them.
fn joined(all: Vec<Query>) -> Vec<Query> {
    let mut out: Vec<Query> = Vec::with_capacity(all.len());
    for query in all {
        if let Query::Range { field, low, high, exact } = &query
            && let Some(Query::Range { field: other, low: other_low, high: other_high, exact: other_exact }) =
                out.last_mut()
            && field == other
            && exact == other_exact
        {
            match (&*other_low, &*other_high, low, high) {
                (_, Bound::Open, Bound::Open, high) if *other_low != Bound::Open && *high != Bound::Open => {
                    *other_high = high.clone();
                    continue;
                }
                (Bound::Open, _, low, Bound::Open) if *other_high != Bound::Open && *low != Bound::Open => {
                    *other_low = low.clone();
                    continue;
                }
                _ => {}
            }
        }
        out.push(query);
    }
    out
}

fn value_of(scalar: Scalar<'_>) -> Result<Value, &'static str> {
    Ok(match scalar {
        Scalar::Missing | Scalar::Null => Value::Null,
        Scalar::Bool(value) => Value::Bool(value),
        Scalar::Long(value) => Value::Long(value),
        Scalar::Double(value) => Value::Double(value),
        Scalar::Text(text) => Value::Text(text.into_owned()),
        Scalar::Other(value) => return Err(value.type_name()),
    })
}

fn text_of(scalar: &Scalar<'_>) -> String {
    match scalar {
        Scalar::Text(text) => text.to_string(),
        Scalar::Null | Scalar::Missing => String::new(),
        other => {
            let mut text = Vec::new();
            other.print_to(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
    }
}
