//! Shapes, and how entries lie to them.

use jackdaw_rql::tree::{Argument, Call, Expression};
use jackdaw_search::{Query, Relation, Shape, SortBy, SpatialQuery, Units};

use crate::error::{Error, Result};
use crate::parameters::Scalar;
use crate::run::Run;
use crate::search::names::{Names, Use};

/// How much a distance may be wrong unless the query says.
const ERROR_PERCENTAGE: f64 = 0.025;

/// `spatial.within(field, shape[, error])` and its likes.
pub(crate) fn relation(run: &Run<'_>, names: &Names<'_>, call: &Call<'_>) -> Result<Query> {
    let relation = if call.is("spatial.within") {
        Relation::Within
    } else if call.is("spatial.contains") {
        Relation::Contains
    } else if call.is("spatial.disjoint") {
        Relation::Disjoint
    } else {
        Relation::Intersects
    };
    let (Some(field), Some(shape)) = (call.arguments.first(), call.arguments.get(1)) else {
        return Err(Error::invalid(&run.plan.text, call.span, "Expected a field and a shape"));
    };
    let Expression::Call(shape) = &shape.expression else {
        return Err(Error::invalid(
            &run.plan.text,
            shape.expression.span(),
            "Expected a shape: spatial.circle, spatial.wkt or spatial.point",
        ));
    };
    let error_percentage = match call.arguments.get(2) {
        Some(argument) => optional_number(run, argument)?.unwrap_or(ERROR_PERCENTAGE),
        None => ERROR_PERCENTAGE,
    };
    Ok(Query::Spatial(SpatialQuery {
        field: names.of_argument(&field.expression, Use::Values)?,
        relation,
        shape: shape_of(run, shape)?,
        error_percentage,
    }))
}

fn shape_of(run: &Run<'_>, call: &Call<'_>) -> Result<Shape> {
    let argument = |at: usize| -> Result<&Argument<'_>> {
        call.arguments.get(at).ok_or_else(|| {
            Error::invalid(&run.plan.text, call.span, format!("{}() has too few arguments", call.name))
        })
    };
    if call.is("spatial.circle") {
        return Ok(Shape::Circle {
            radius: number(run, argument(0)?)?,
            latitude: number(run, argument(1)?)?,
            longitude: number(run, argument(2)?)?,
            units: units(run, call.arguments.get(3))?,
        });
    }
    if call.is("spatial.point") {
        return Ok(Shape::Point {
            latitude: number(run, argument(0)?)?,
            longitude: number(run, argument(1)?)?,
        });
    }
    if call.is("spatial.wkt") {
        let wkt = argument(0)?;
        return match run.parameters().value(&run.plan.text, &wkt.expression)? {
            Scalar::Text(text) => {
                Ok(Shape::Wkt { text: text.into_owned(), units: units(run, call.arguments.get(1))? })
            }
            other => {
                let message = format!("Expected WKT as a string, but got {}", other.type_name());
                Err(Error::invalid(&run.plan.text, wkt.expression.span(), message))
            }
        };
    }
    Err(Error::invalid(&run.plan.text, call.span, format!("Unknown shape: {}()", call.name)))
}

fn number(run: &Run<'_>, argument: &Argument<'_>) -> Result<f64> {
    match run.parameters().value(&run.plan.text, &argument.expression)? {
        Scalar::Long(value) => Ok(value as f64),
        Scalar::Double(value) => Ok(value),
        Scalar::Text(text) if text.trim().parse::<f64>().is_ok() => {
            Ok(text.trim().parse().unwrap_or_default())
        }
        other => {
            let message = format!("Expected a number, but got {}", other.type_name());
            Err(Error::invalid(&run.plan.text, argument.expression.span(), message))
        }
    }
}

fn optional_number(run: &Run<'_>, argument: &Argument<'_>) -> Result<Option<f64>> {
    match run.parameters().value(&run.plan.text, &argument.expression)? {
        Scalar::Null => Ok(None),
        _ => number(run, argument).map(Some),
    }
}

fn units(run: &Run<'_>, argument: Option<&Argument<'_>>) -> Result<Option<Units>> {
    let Some(argument) = argument else { return Ok(None) };
    let text = &run.plan.text;
    let name = match &argument.expression {
        Expression::Field(path) if path.as_name().is_some() => path.as_name().unwrap_or_default().to_owned(),
        other => match run.parameters().value(text, other)? {
            Scalar::Null => return Ok(None),
            Scalar::Text(name) => name.into_owned(),
            found => {
                let message = format!("Expected 'Kilometers' or 'Miles', but got {}", found.type_name());
                return Err(Error::invalid(text, other.span(), message));
            }
        },
    };
    match &*name.to_ascii_lowercase() {
        "kilometers" => Ok(Some(Units::Kilometers)),
        "miles" => Ok(Some(Units::Miles)),
        _ => Err(Error::invalid(
            text,
            argument.expression.span(),
            format!("'{name}' is neither Kilometers nor Miles"),
        )),
    }
}

/// `spatial.distance(field, shape[, round])`.
pub(crate) fn distance(run: &Run<'_>, names: &Names<'_>, call: &Call<'_>) -> Result<SortBy> {
    let text = &run.plan.text;
    let (Some(field), Some(Argument { expression: Expression::Call(point), .. })) =
        (call.arguments.first(), call.arguments.get(1))
    else {
        return Err(Error::invalid(text, call.span, "spatial.distance() expects a field and a point"));
    };
    let (latitude, longitude) = match shape_of(run, point)? {
        Shape::Point { latitude, longitude } | Shape::Circle { latitude, longitude, .. } => {
            (latitude, longitude)
        }
        Shape::Wkt { text: wkt, .. } => center_of(&wkt)
            .ok_or_else(|| Error::invalid(text, point.span, "spatial.distance() expects a point"))?,
    };
    let round = match call.arguments.get(2) {
        Some(argument) => optional_number(run, argument)?.unwrap_or(0.0),
        None => 0.0,
    };
    Ok(SortBy::Distance {
        field: names.of_argument(&field.expression, Use::Values)?,
        latitude,
        longitude,
        round,
        units: units(run, call.arguments.get(3))?,
    })
}

/// The point of `POINT (x y)`, in any case.
fn center_of(wkt: &str) -> Option<(f64, f64)> {
    let text = wkt.trim().to_ascii_uppercase();
    let inner = text.strip_prefix("POINT")?.trim().strip_prefix('(')?.strip_suffix(')')?;
    let mut numbers = inner.split_whitespace().map(str::parse::<f64>);
    let (x, y) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some((y, x))
}
