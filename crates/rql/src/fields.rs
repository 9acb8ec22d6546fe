//! The fields that a query filters, groups and orders by: what an index must hold to answer it.

use crate::tree::{Call, Expression, OrderKey, Path, Query, Value};

/// Functions whose first argument is a field, or a string that names one; their other arguments are values.
const FIELD_FIRST: &[&str] = &[
    "search",
    "lucene",
    "startswith",
    "endswith",
    "regex",
    "exists",
    "custom",
    "sum",
    "array",
    "suggest",
    "highlight",
    "spatial.within",
    "spatial.contains",
    "spatial.disjoint",
    "spatial.intersects",
    "spatial.distance",
];

/// Functions without fields among their arguments: what looks like one is an alias, a key or a seed.
const WITHOUT_FIELDS: &[&str] = &["id", "key", "count", "random", "score", "cmpxchg", "now", "today", "last"];

/// One use of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldUse<'q> {
    /// Which field.
    pub field: Field<'q>,
    /// What for.
    pub usage: Usage<'q>,
    /// Whether it stands within `exact(...)`.
    pub exact: bool,
}

/// A field as a query names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<'q> {
    /// A path; with the alias of the source, if it has one.
    Path(&'q Path<'q>),
    /// A string given to a function as its field: a path to be parsed by [`parse_path`](crate::parse_path), or a spatial field such as
    /// `'spatial.point(Lat, Lng)'` to be parsed by [`parse_expression`](crate::parse_expression).
    Quoted(&'q str),
    /// A field that a call makes of others: `spatial.point(Lat, Lng)`, `spatial.wkt(Shape)`.
    Computed(&'q Call<'q>),
}

/// What a field is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage<'q> {
    /// By `=`, `<`, `between`, `in` and such in `where`.
    Compared,
    /// As a key of `group by`.
    Grouped,
    /// As a key of `order by`.
    Ordered(&'q OrderKey<'q>),
    /// By the function, which is the innermost around it: `search`, `exists`, `sum`, `array`, `custom`...
    Argument(&'q Call<'q>),
}

impl<'a> Query<'a> {
    /// Calls `visit` for each use of a field in `group by`, `where` and `order by`, in the order of the text. A field used twice is visited
    /// twice. What `filter`, `select` and `include` use is not visited: they read documents.
    pub fn visit_fields<'q>(&'q self, mut visit: impl FnMut(FieldUse<'q>)) {
        for key in &self.group_by {
            walk(&key.expression, Usage::Grouped, false, &mut visit);
        }
        if let Some(condition) = &self.condition {
            walk(condition, Usage::Compared, false, &mut visit);
        }
        for key in &self.order_by {
            walk(&key.expression, Usage::Ordered(key), false, &mut visit);
        }
    }

    /// Calls `visit` for each expression of the query and for each within another, outer ones first.
    pub fn visit_expressions<'q>(&'q self, mut visit: impl FnMut(&'q Expression<'a>)) {
        let items = match self.select.as_ref().map(|select| &select.projection) {
            Some(crate::tree::Projection::Items(items)) => items.as_slice(),
            _ => &[],
        };
        let roots = (self.group_by.iter().map(|key| &key.expression))
            .chain(&self.condition)
            .chain(self.order_by.iter().map(|key| &key.expression))
            .chain(&self.filter)
            .chain(items.iter().map(|item| &item.expression))
            .chain(&self.include)
            .chain(&self.paging.skip)
            .chain(&self.paging.take)
            .chain(&self.paging.filter_limit);
        for root in roots {
            root.visit(&mut visit);
        }
    }
}

impl<'a> Expression<'a> {
    /// Calls `visit` for this expression and for each within it, outer ones first.
    pub fn visit<'q>(&'q self, visit: &mut impl FnMut(&'q Expression<'a>)) {
        visit(self);
        match self {
            Expression::And(junction) | Expression::Or(junction) => {
                junction.operands.iter().for_each(|operand| operand.visit(visit));
            }
            Expression::Not(not) => not.operand.visit(visit),
            Expression::Comparison(comparison) => {
                comparison.left.visit(visit);
                comparison.right.visit(visit);
            }
            Expression::Between(between) => {
                between.operand.visit(visit);
                between.low.visit(visit);
                between.high.visit(visit);
            }
            Expression::In(one_of) => {
                one_of.operand.visit(visit);
                one_of.values.iter().for_each(|value| value.visit(visit));
            }
            Expression::Call(call) => {
                call.arguments.iter().for_each(|argument| argument.expression.visit(visit));
            }
            Expression::Field(_)
            | Expression::Literal(_)
            | Expression::Parameter(_)
            | Expression::TimeSeries(_) => {}
        }
    }
}

/// Visits the fields of `node`, which is used as `usage`.
fn walk<'q>(node: &'q Expression<'q>, usage: Usage<'q>, exact: bool, visit: &mut impl FnMut(FieldUse<'q>)) {
    match node {
        Expression::And(junction) | Expression::Or(junction) => {
            junction.operands.iter().for_each(|operand| walk(operand, Usage::Compared, exact, visit));
        }
        Expression::Not(not) => walk(&not.operand, Usage::Compared, exact, visit),
        Expression::Comparison(comparison) => {
            walk(&comparison.left, Usage::Compared, exact, visit);
            walk(&comparison.right, Usage::Compared, exact, visit);
        }
        Expression::Between(between) => walk(&between.operand, Usage::Compared, exact, visit),
        Expression::In(one_of) => walk(&one_of.operand, Usage::Compared, exact, visit),
        Expression::Field(path) => visit(FieldUse { field: Field::Path(path), usage, exact }),
        Expression::Call(call) => walk_call(call, exact, visit),
        Expression::Literal(_) | Expression::Parameter(_) | Expression::TimeSeries(_) => {}
    }
}

fn walk_call<'q>(call: &'q Call<'q>, exact: bool, visit: &mut impl FnMut(FieldUse<'q>)) {
    let named = |names: &[&str]| names.iter().any(|name| call.is(name));
    if named(WITHOUT_FIELDS) {
        return;
    }
    let usage = Usage::Argument(call);
    if !named(FIELD_FIRST) {
        let exact = exact || call.is("exact");
        call.arguments.iter().for_each(|argument| walk(&argument.expression, usage, exact, visit));
        return;
    }
    match call.arguments.first().map(|argument| &argument.expression) {
        Some(Expression::Literal(literal)) => {
            if let Value::String(text) = &literal.value {
                visit(FieldUse { field: Field::Quoted(text), usage, exact });
            }
        }
        Some(Expression::Call(inner)) if inner.is("spatial.point") || inner.is("spatial.wkt") => {
            visit(FieldUse { field: Field::Computed(inner), usage, exact });
        }
        Some(first) => walk(first, usage, exact, visit),
        None => {}
    }
}
