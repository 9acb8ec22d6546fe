//! What a query's text says, worked out once for all its runs: names resolved, arguments counted, the way to its results chosen.
//!
//! A plan knows no parameters and no documents; it is kept by the text of its query ([`cache`]).

pub(crate) mod cache;
pub(crate) mod condition;
pub(crate) mod field;
pub(crate) mod include;
pub(crate) mod needs;
pub(crate) mod projection;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jackdaw_indexing::auto::AutoDefinition;
use jackdaw_rql::tree::{Call, ComparisonOperator, Expression, Path, Query, SourceKind, Value};

use crate::error::{Error, Result};
use condition::Condition;
use field::{FieldPath, Origin, resolve};
use include::Wanted;
use projection::Projection;

/// A query, ready to be run.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The text, for messages.
    pub(crate) text: Box<str>,
    pub(crate) tree: Query<'static>,
    pub(crate) aliases: Aliases,
    pub(crate) access: Access,
    pub(crate) loads: Vec<LoadPath>,
    pub(crate) filter: Option<Condition>,
    pub(crate) projection: Projection,
    pub(crate) wanted: Wanted,
    /// How long a run takes, from the latest ones.
    pub(crate) cost: Cost,
}

/// How long runs of a plan take: a moving average in nanoseconds; 0 before the first.
#[derive(Debug, Default)]
pub(crate) struct Cost(AtomicU64);

impl Cost {
    /// A run took so long. What others note at the same time may be lost, which does no harm.
    pub(crate) fn note(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
        let before = self.0.load(Ordering::Relaxed);
        // A run that is much slower than others counts at once.
        let after = if before == 0 || took > before * 4 { took } else { before - before / 8 + took / 8 };
        self.0.store(after.max(1), Ordering::Relaxed);
    }

    /// What is to be expected, once there was a run.
    pub(crate) fn expected(&self) -> Option<Duration> {
        Some(self.0.load(Ordering::Relaxed)).filter(|cost| *cost > 0).map(Duration::from_nanos)
    }
}

/// The way to the results.
#[derive(Debug)]
pub(crate) enum Access {
    /// Documents of a collection (`None`: of all), without an index.
    Collection { name: Option<String>, ids: Ids },
    /// An index that is there.
    Index(String),
    /// An automatic index that has what this asks for.
    Dynamic(Box<AutoDefinition>),
}

/// Which documents of a collection. The expressions are the plan's `where`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ids {
    /// All of them, in the order of their etags.
    All,
    /// `where false`.
    None,
    /// `id() = x`, `id() in (..)`.
    These,
    /// `startsWith(id(), x)`.
    Prefix,
}

/// A field that holds ids of documents to load.
#[derive(Debug)]
pub(crate) struct LoadPath {
    pub(crate) origin: Origin,
    pub(crate) path: FieldPath,
    pub(crate) many: bool,
}

/// The names that documents have in a query.
#[derive(Debug, Default)]
pub(crate) struct Aliases {
    source: Option<String>,
    loads: Vec<String>,
}

impl Aliases {
    pub(crate) fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    pub(crate) fn loads(&self) -> &[String] {
        &self.loads
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.source.is_none() && self.loads.is_empty()
    }

    pub(crate) fn find(&self, name: &str) -> Option<Origin> {
        if self.source.as_deref() == Some(name) {
            return Some(Origin::Result);
        }
        self.loads.iter().position(|load| load == name).map(Origin::Loaded)
    }

    pub(crate) fn list(&self) -> String {
        let names: Vec<&str> = self.source.iter().chain(&self.loads).map(|name| &**name).collect();
        names.join(", ")
    }

    /// Whose id `id()` or `id(alias)` is.
    pub(crate) fn of_id_call(&self, call: &Call<'_>, text: &str) -> Result<Origin> {
        match &*call.arguments {
            [] => Ok(Origin::Result),
            [argument] => match &argument.expression {
                Expression::Field(path) if path.as_name().is_some() => {
                    let name = path.as_name().unwrap_or_default();
                    self.find(name).ok_or_else(|| field::unknown_alias(path, self, text))
                }
                other => Err(Error::invalid(text, other.span(), "id() expects an alias")),
            },
            _ => Err(Error::invalid(text, call.span, "id() expects one alias at most")),
        }
    }
}

impl Plan {
    /// Parses and analyses a query.
    pub(crate) fn new(text: &str) -> Result<Plan> {
        let tree = jackdaw_rql::parse(text).map_err(|error| Error::parse(&error, text))?.into_owned();
        Plan::of(text, tree)
    }

    fn of(text: &str, tree: Query<'static>) -> Result<Plan> {
        if tree.from.revisions {
            return Err(Error::invalid(
                text,
                tree.from.span,
                "Revisions can be queried by subscriptions alone",
            ));
        }
        let mut aliases = Aliases {
            source: tree.from.alias.as_ref().map(|alias| alias.text.to_string()),
            loads: Vec::new(),
        };
        let mut loads = Vec::new();
        for load in &tree.load {
            let (origin, path) = resolve(&load.path, &aliases, text)?;
            loads.push(LoadPath { origin, path, many: load.many });
            aliases.loads.push(load.alias.text.to_string());
        }
        check_where(&tree, &aliases, text)?;
        let filter =
            tree.filter.as_ref().map(|filter| Condition::new(filter, &tree, &aliases, text)).transpose()?;
        let projection = Projection::new(&tree, &aliases, text)?;
        let wanted = Wanted::new(&tree.include, &aliases, text)?;
        let access = access(&tree, &aliases, text)?;
        let cost = Cost::default();
        Ok(Plan { text: text.into(), access, aliases, loads, filter, projection, wanted, tree, cost })
    }

    /// Whether what is answered depends on documents other than those of the source.
    pub(crate) fn looks_elsewhere(&self) -> bool {
        !self.loads.is_empty()
            || !self.wanted.is_empty()
            || self.projection.looks_elsewhere()
            || self.filter.as_ref().is_some_and(Condition::calls)
    }
}

/// A collection is queried without an index when its documents are wanted as they lie, or by their ids.
fn access(tree: &Query<'_>, aliases: &Aliases, text: &str) -> Result<Access> {
    let name = match &tree.from.kind {
        SourceKind::Index(name) => return Ok(Access::Index(name.text.to_string())),
        SourceKind::Collection(name) => Some(name.text.to_string()),
        SourceKind::AllDocuments => None,
    };
    let plain = tree.group_by.is_empty() && tree.order_by.is_empty() && !needs_index(tree);
    let ids = match &tree.condition {
        None => Some(Ids::All),
        Some(condition) => ids_of(condition),
    };
    Ok(match ids.filter(|_| plain) {
        Some(ids) => Access::Collection { name, ids },
        None => Access::Dynamic(Box::new(needs::definition(tree, name.as_deref(), aliases, text)?)),
    })
}

/// Whether what is selected or included comes from an index.
fn needs_index(tree: &Query<'_>) -> bool {
    let is_of_index = |expression: &Expression<'_>| match expression {
        Expression::Call(call) => ["facet", "suggest", "highlight"].iter().any(|name| call.is(name)),
        _ => false,
    };
    let selected = match tree.select.as_ref().map(|select| &select.projection) {
        Some(jackdaw_rql::tree::Projection::Items(items)) => {
            items.iter().any(|item| is_of_index(&item.expression))
        }
        _ => false,
    };
    selected || tree.include.iter().any(is_of_index)
}

fn ids_of(condition: &Expression<'_>) -> Option<Ids> {
    let is_id = |expression: &Expression<'_>| matches!(expression, Expression::Call(call) if call.is("id"));
    match condition {
        Expression::Literal(literal) => match literal.value {
            Value::True => Some(Ids::All),
            Value::False => Some(Ids::None),
            _ => None,
        },
        Expression::Comparison(comparison) => {
            let by_id = comparison.operator == ComparisonOperator::Equal && is_id(&comparison.left);
            let is_value = matches!(comparison.right, Expression::Literal(_) | Expression::Parameter(_));
            (by_id && is_value).then_some(Ids::These)
        }
        Expression::In(one_of) => (is_id(&one_of.operand) && !one_of.all).then_some(Ids::These),
        Expression::Call(call) if call.is("startsWith") => {
            call.arguments.first().is_some_and(|first| is_id(&first.expression)).then_some(Ids::Prefix)
        }
        _ => None,
    }
}

/// How many arguments the functions of `where` take: name, least, most.
const WHERE_FUNCTIONS: &[(&str, usize, usize)] = &[
    ("search", 2, 3),
    ("lucene", 2, 2),
    ("startswith", 2, 2),
    ("endswith", 2, 2),
    ("regex", 2, 2),
    ("exists", 1, 1),
    ("exact", 1, 1),
    ("boost", 2, 2),
    ("fuzzy", 2, 2),
    ("proximity", 2, 2),
    ("intersect", 2, usize::MAX),
    ("morelikethis", 1, 2),
    ("spatial.within", 2, 3),
    ("spatial.contains", 2, 3),
    ("spatial.disjoint", 2, 3),
    ("spatial.intersects", 2, 3),
    ("id", 0, 1),
    ("count", 0, 1),
    ("sum", 1, 1),
    ("key", 0, 1),
    ("array", 1, 1),
    ("cmpxchg", 1, 1),
    ("spatial.point", 2, 2),
    ("spatial.wkt", 1, 2),
    ("spatial.circle", 3, 4),
    ("now", 0, 1),
    ("today", 0, 1),
];

/// Functions of `order by` beside those of `where`.
const ORDER_FUNCTIONS: &[(&str, usize, usize)] =
    &[("score", 0, 0), ("random", 0, 1), ("custom", 2, 2), ("spatial.distance", 2, 4)];

/// Checks names of functions, numbers of arguments and aliases of `where`, `group by` and `order by`.
fn check_where(tree: &Query<'_>, aliases: &Aliases, text: &str) -> Result<()> {
    let keys = tree.group_by.iter().map(|key| &key.expression);
    for root in keys.chain(&tree.condition) {
        check(root, WHERE_FUNCTIONS, aliases, text)?;
    }
    for key in &tree.order_by {
        let functions: &[_] = if matches!(&key.expression, Expression::Call(call) if known(ORDER_FUNCTIONS, call).is_some())
        {
            ORDER_FUNCTIONS
        } else {
            WHERE_FUNCTIONS
        };
        check(&key.expression, functions, aliases, text)?;
    }
    Ok(())
}

fn known(functions: &[(&str, usize, usize)], call: &Call<'_>) -> Option<(usize, usize)> {
    functions.iter().find(|(name, ..)| call.is(name)).map(|(_, least, most)| (*least, *most))
}

fn check(
    expression: &Expression<'_>,
    functions: &[(&str, usize, usize)],
    aliases: &Aliases,
    text: &str,
) -> Result<()> {
    match expression {
        Expression::And(junction) | Expression::Or(junction) => {
            junction.operands.iter().try_for_each(|operand| check(operand, functions, aliases, text))
        }
        Expression::Not(not) => check(&not.operand, functions, aliases, text),
        Expression::Comparison(comparison) => {
            check(&comparison.left, functions, aliases, text)?;
            check_value(&comparison.right, functions, aliases, text)
        }
        Expression::Between(between) => {
            check(&between.operand, functions, aliases, text)?;
            check_value(&between.low, functions, aliases, text)?;
            check_value(&between.high, functions, aliases, text)
        }
        Expression::In(one_of) => {
            check(&one_of.operand, functions, aliases, text)?;
            one_of.values.iter().try_for_each(|value| check_value(value, functions, aliases, text))
        }
        Expression::Field(path) => check_alias(path, aliases, text),
        Expression::Call(call) => {
            let Some((least, most)) = known(functions, call).or_else(|| known(WHERE_FUNCTIONS, call)) else {
                let message = format!("Method '{}' is not supported.", call.name);
                return Err(Error::invalid(text, call.span, message));
            };
            let given = call.arguments.len();
            if given < least || given > most {
                let expected = match (least, most) {
                    (least, most) if least == most => format!("{least}"),
                    (least, usize::MAX) => format!("at least {least}"),
                    (least, most) => format!("{least} to {most}"),
                };
                let plural = if expected == "1" { "" } else { "s" };
                let message = format!(
                    "Method {}() expects {expected} argument{plural} to be provided, but got {given}",
                    call.name
                );
                return Err(Error::invalid(text, call.span, message));
            }
            if ["id", "morelikethis", "search"].iter().any(|name| call.is(name)) {
                // An alias, a condition on the source document, the words `and` and `or`.
                return match call.arguments.first() {
                    Some(first) if call.is("search") => check(&first.expression, functions, aliases, text),
                    _ => Ok(()),
                };
            }
            call.arguments
                .iter()
                .try_for_each(|argument| check(&argument.expression, functions, aliases, text))
        }
        Expression::Literal(_) | Expression::Parameter(_) | Expression::TimeSeries(_) => Ok(()),
    }
}

fn check_value(
    expression: &Expression<'_>,
    functions: &[(&str, usize, usize)],
    aliases: &Aliases,
    text: &str,
) -> Result<()> {
    match expression {
        Expression::Field(path) if path.as_name() == Some("*") => Ok(()),
        other => check(other, functions, aliases, text),
    }
}

/// Fields of loaded documents are not indexed, and a name before a point must be an alias where there is one.
fn check_alias(path: &Path<'_>, aliases: &Aliases, text: &str) -> Result<()> {
    let has_name = path.rest.iter().any(|step| matches!(step, jackdaw_rql::tree::Step::Name(_)));
    if !has_name || aliases.source().is_none() || path.first.text.starts_with('@') {
        return Ok(());
    }
    match aliases.find(&path.first.text) {
        Some(Origin::Result) => Ok(()),
        Some(Origin::Loaded(_)) => {
            let message =
                format!("'{}' is a loaded document; its fields cannot be used here", path.first.text);
            Err(Error::invalid(text, path.span, message))
        }
        None => Err(field::unknown_alias(path, aliases, text)),
    }
}

#[cfg(test)]
mod tests;
