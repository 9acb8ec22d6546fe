//! `order by`.

use jackdaw_rql::tree::{Call, Direction, Expression, OrderKey, OrderType};
use jackdaw_search::{Sort, SortBy};

use crate::error::{Error, Result};
use crate::parameters::Scalar;
use crate::plan::needs::COUNT;
use crate::run::Run;
use crate::search::names::{Names, Use};
use crate::search::spatial;

/// What the search index orders by.
///
/// Errors: fields that the index does not have; wrong arguments.
pub(crate) fn sorts(run: &Run<'_>, names: &Names<'_>) -> Result<Vec<Sort>> {
    let text = &*run.plan.text;
    let each = run.plan.tree.order_by.iter().map(|key| {
        let by = match &key.expression {
            Expression::Field(path) => typed(names.of_path(path, Use::Values)?, key.order_type),
            Expression::Literal(literal) if literal.value.as_str().is_some() => {
                typed(names.of_argument(&key.expression, Use::Values)?, key.order_type)
            }
            Expression::Call(call) => of_call(run, names, key, call)?,
            other => return Err(Error::invalid(text, other.span(), "ORDER BY expects a field or a call")),
        };
        Ok(Sort { by, descending: key.direction == Direction::Descending })
    });
    each.collect()
}

fn typed(field: String, order_type: Option<OrderType>) -> SortBy {
    match order_type {
        None | Some(OrderType::String) => SortBy::Text(field),
        Some(OrderType::Long) => SortBy::Long(field),
        Some(OrderType::Double) => SortBy::Double(field),
        Some(OrderType::AlphaNumeric) => SortBy::AlphaNumeric(field),
    }
}

fn of_call(run: &Run<'_>, names: &Names<'_>, key: &OrderKey<'_>, call: &Call<'_>) -> Result<SortBy> {
    let text = &*run.plan.text;
    let first = call.arguments.first().map(|argument| &argument.expression);
    if call.is("id") {
        return Ok(SortBy::Key);
    }
    if call.is("score") {
        return Ok(SortBy::Score);
    }
    if call.is("random") {
        let seed = first.map(|seed| run.parameters().value(text, seed)).transpose()?;
        return Ok(SortBy::Random(seed.map(|seed| match seed {
            Scalar::Text(seed) => seed.into_owned(),
            other => {
                let mut seed = Vec::new();
                other.print_to(&mut seed);
                String::from_utf8_lossy(&seed).into_owned()
            }
        })));
    }
    if call.is("count") {
        return Ok(typed(COUNT.to_owned(), key.order_type.or(Some(OrderType::Long))));
    }
    if call.is("sum")
        && let Some(Expression::Field(path)) = first
    {
        return Ok(typed(names.of_path(path, Use::Values)?, key.order_type.or(Some(OrderType::Double))));
    }
    if call.is("key") && run.plan.tree.group_by.len() == 1 {
        let field = match &run.plan.tree.group_by[0].expression {
            Expression::Call(call) => call.arguments.first().map(|argument| &argument.expression),
            other => Some(other),
        };
        if let Some(field) = field {
            return Ok(typed(names.of_argument(field, Use::Values)?, key.order_type));
        }
    }
    if call.is("custom") {
        let name =
            call.arguments.get(1).map(|name| run.parameters().value(text, &name.expression)).transpose()?;
        let name = match name {
            Some(Scalar::Text(name)) => name.into_owned(),
            _ => String::new(),
        };
        return Err(Error::NoSorter(name));
    }
    if call.is("spatial.distance") {
        return spatial::distance(run, names, call);
    }
    Err(Error::invalid(text, call.span, format!("Unsupported method in ORDER BY clause: {}()", call.name)))
}
