//! The automatic index that a query needs.

use jackdaw_indexing::auto::{
    ALL_DOCUMENTS, Aggregation, AutoDefinition, AutoField, AutoSpatial, GroupByArray, SpatialMethod,
};
use jackdaw_rql::tree::{Call, Expression, Path, Projection, Query, Step};
use jackdaw_rql::{Field, FieldUse, Usage, parse_expression, parse_path};

use crate::error::{Error, Result};
use crate::plan::field::{FieldPath, resolve};
use crate::plan::{Aliases, Origin};

/// The field that counts the documents of a group.
pub(crate) const COUNT: &str = "Count";

/// The index that can answer a query on a collection, or on all documents.
///
/// Errors: what cannot be indexed so.
pub(crate) fn definition(
    tree: &Query<'_>,
    collection: Option<&str>,
    aliases: &Aliases,
    text: &str,
) -> Result<AutoDefinition> {
    let mut definition = AutoDefinition::new(collection.unwrap_or(ALL_DOCUMENTS));
    for key in &tree.group_by {
        let (path, array) = group_key(&key.expression, aliases, text)?;
        definition.group_by_fields.insert(path, AutoField { group_by_array: array, ..AutoField::default() });
    }
    let mut failed = None;
    let mut note = |used: FieldUse<'_>| {
        if matches!(used.usage, Usage::Grouped)
            || matches!(used.usage, Usage::Argument(call) if call.is("array"))
        {
            return;
        }
        if let Err(error) = add(&mut definition, used, aliases, text) {
            failed.get_or_insert(error);
        }
    };
    tree.visit_fields(&mut note);
    let selected = match tree.select.as_ref().map(|select| &select.projection) {
        Some(Projection::Items(items)) => &**items,
        _ => &[],
    };
    let of_index = selected.iter().map(|item| &item.expression).chain(&tree.include);
    for call in of_index.filter_map(|expression| match expression {
        Expression::Call(call) => Some(call),
        _ => None,
    }) {
        if ["suggest", "highlight", "sum"].iter().any(|name| call.is(name)) {
            let field = match call.arguments.first().map(|argument| &argument.expression) {
                Some(Expression::Field(path)) => Field::Path(path),
                Some(Expression::Literal(literal)) => match literal.value.as_str() {
                    Some(name) => Field::Quoted(name),
                    None => continue,
                },
                _ => continue,
            };
            note(FieldUse { field, usage: Usage::Argument(call), exact: false });
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    if definition.is_map_reduce() {
        let mut counts = false;
        tree.visit_expressions(|expression| {
            counts |= matches!(expression, Expression::Call(call) if call.is("count"));
        });
        let groups: Vec<String> = definition.group_by_fields.keys().cloned().collect();
        definition.map_fields.retain(|path, _| !groups.contains(path));
        if counts || definition.map_fields.contains_key(COUNT) || definition.map_fields.is_empty() {
            definition.field(COUNT).aggregation = Aggregation::Count;
        }
        if let Some((path, _)) =
            definition.map_fields.iter().find(|(_, field)| field.aggregation == Aggregation::None)
        {
            let message =
                format!("Field '{path}' isn't neither an aggregation operation nor part of the group by key");
            return Err(Error::invalid(text, tree.span, message));
        }
    }
    Ok(definition)
}

/// The path of a key of `group by`, and what arrays on it mean.
fn group_key(expression: &Expression<'_>, aliases: &Aliases, text: &str) -> Result<(String, GroupByArray)> {
    match expression {
        Expression::Field(path) => {
            let array = match path.rest.contains(&Step::Elements) {
                true => GroupByArray::ByIndividualValues,
                false => GroupByArray::NotApplicable,
            };
            Ok((name_of(path, aliases, text)?, array))
        }
        Expression::Call(call) if call.is("array") => {
            match call.arguments.first().map(|first| &first.expression) {
                Some(Expression::Field(path)) => Ok((name_of(path, aliases, text)?, GroupByArray::ByContent)),
                _ => Err(Error::invalid(text, call.span, "array() expects a field")),
            }
        }
        other => Err(Error::invalid(text, other.span(), "GROUP BY expects a field or array()")),
    }
}

fn add(definition: &mut AutoDefinition, used: FieldUse<'_>, aliases: &Aliases, text: &str) -> Result<()> {
    let name = match used.field {
        Field::Path(path) => name_of(path, aliases, text)?,
        Field::Quoted(name) if name.starts_with("spatial.") => {
            return add_quoted(definition, name, aliases, text);
        }
        Field::Quoted(name) => match parse_path(name) {
            Ok(path) => name_of(&path, aliases, text)?,
            Err(_) => name.to_owned(),
        },
        Field::Computed(call) => return add_spatial(definition, call, aliases, text),
    };
    if name == "score" || name.is_empty() {
        return Ok(());
    }
    let grouped = definition.is_map_reduce();
    let field = definition.field(&name);
    field.exact |= used.exact;
    if let Usage::Argument(call) = used.usage {
        field.search |= call.is("search") || call.is("lucene");
        field.suggestions |= call.is("suggest");
        if call.is("highlight") {
            field.highlighting = true;
            field.search = true;
        }
        if grouped && call.is("sum") {
            field.aggregation = Aggregation::Sum;
        }
    }
    Ok(())
}

fn add_quoted(definition: &mut AutoDefinition, name: &str, aliases: &Aliases, text: &str) -> Result<()> {
    match parse_expression(name) {
        Ok(Expression::Call(call)) => add_spatial(definition, &call, aliases, text),
        _ => Err(Error::Invalid(format!("'{name}' is no spatial field\nQuery: {text}"))),
    }
}

fn add_spatial(
    definition: &mut AutoDefinition,
    call: &Call<'_>,
    aliases: &Aliases,
    text: &str,
) -> Result<()> {
    let (name, spatial) = spatial_field(call, aliases, text)?;
    definition.field(&name).spatial = Some(spatial);
    Ok(())
}

/// The name and the making of a field of places.
pub(crate) fn spatial_field(call: &Call<'_>, aliases: &Aliases, text: &str) -> Result<(String, AutoSpatial)> {
    let method = if call.is("spatial.point") { SpatialMethod::Point } else { SpatialMethod::Wkt };
    let arguments = call.arguments.iter().map(|argument| match &argument.expression {
        Expression::Field(path) => name_of(path, aliases, text),
        Expression::Literal(literal) => match literal.value.as_str() {
            Some(name) => Ok(name.to_owned()),
            None => Err(Error::invalid(text, literal.span, "Expected a field here")),
        },
        other => Err(Error::invalid(text, other.span(), "Expected a field here")),
    });
    let arguments = arguments.collect::<Result<Vec<_>>>()?;
    let prefix = if method == SpatialMethod::Point { "spatial.point" } else { "spatial.wkt" };
    let name = format!("{prefix}({})", arguments.join(", "));
    Ok((name, AutoSpatial { method, arguments, options: Default::default() }))
}

/// A field's name in an automatic index: its path without the alias.
pub(crate) fn name_of(path: &Path<'_>, aliases: &Aliases, text: &str) -> Result<String> {
    let (origin, below) = resolve(path, aliases, text)?;
    match (origin, below.first()) {
        // A field that has the name of the alias.
        (Origin::Result, None) => Ok(FieldPath::new(path).text().to_owned()),
        (Origin::Result, Some(_)) => Ok(below.text().to_owned()),
        (Origin::Loaded(_), _) => {
            Err(Error::invalid(text, path.span, "Fields of loaded documents cannot be used here"))
        }
    }
}
