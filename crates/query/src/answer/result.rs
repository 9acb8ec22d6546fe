//! One result as JSON text: a document with its metadata, or the properties selected.

use jackdaw_database::{Fields, StoredDocument, append_json_string, clock, metadata, print_document};
use jackdaw_document::date::{DATE_TEXT_MAX, Date};
use jackdaw_document::{Context, Style, Text, Value};

use crate::answer::json;
use crate::error::{Error, Result};
use crate::parameters::Scalar;
use crate::plan::field::{Found, Origin};
use crate::plan::projection::{CALLED, Item, ItemValue};
use crate::request::ProjectionBehavior;
use crate::row::{Distance, Row};
use crate::run::Run;
use crate::script;

/// Appends a document that was found, or what a map/reduce index made.
pub(crate) fn print_whole(row: &Row<'_>, fields: Fields, out: &mut Vec<u8>) {
    match &row.document {
        Some(document) => {
            print_document(document, fields, out);
            if row.score.is_some() || row.distance.is_some() {
                // The text ends with the metadata and the document.
                out.truncate(out.len() - 2);
                print_found(row.score, row.distance.as_ref(), out);
                out.extend_from_slice(b"}}");
            }
        }
        None => {
            out.push(b'{');
            if fields == Fields::All {
                print_properties(row.stored.as_ref(), out);
            }
            print_projection_metadata(row, false, true, out);
            out.push(b'}');
        }
    }
}

fn print_properties(value: Option<&Value<'_>>, out: &mut Vec<u8>) {
    for (name, value) in value.and_then(Value::as_object).iter().flat_map(|object| object.iter()) {
        json::separate(out);
        Value::Text(name).print_to(out, Style::Compact);
        out.push(b':');
        value.print_to(out, Style::Compact);
    }
}

/// Appends what an index says about a result to its metadata.
fn print_found(score: Option<f32>, distance: Option<&Distance>, out: &mut Vec<u8>) {
    if let Some(score) = score {
        json::name(out, "@index-score");
        json::append_double(f64::from(score), out);
    }
    if let Some(distance) = distance {
        json::name(out, "@spatial");
        out.push(b'{');
        for (name, value) in [
            ("Distance", distance.distance),
            ("Latitude", distance.latitude),
            ("Longitude", distance.longitude),
        ] {
            json::name(out, name);
            json::append_double(value, out);
        }
        out.push(b'}');
    }
}

/// Appends `"@metadata":{..}` of a projection. One that was answered by the index alone has no change vector.
pub(crate) fn print_projection_metadata(
    row: &Row<'_>,
    is_projection: bool,
    from_index: bool,
    out: &mut Vec<u8>,
) {
    print_metadata_of_projection(row, None, is_projection, from_index, out);
}

/// Appends what a script made, with the metadata that it gave it; where its content ends.
///
/// Error: it made something else than an object.
pub(crate) fn print_made(
    row: &Row<'_>,
    made: &Value<'_>,
    fields: Fields,
    out: &mut Vec<u8>,
) -> Result<usize> {
    let object = match made {
        Value::Null => None,
        made => Some(made.as_object().ok_or_else(|| {
            let found = made.type_name();
            Error::InvalidOperation(format!(
                "The function of SELECT must return an object, but it returned {found}"
            ))
        })?),
    };
    out.push(b'{');
    let mut given = None;
    for (name, value) in object.iter().flat_map(|object| object.iter()) {
        if name == metadata::METADATA {
            given = value.as_object();
        } else if fields == Fields::All {
            json::separate(out);
            Value::Text(name).print_to(out, Style::Compact);
            out.push(b':');
            value.print_to(out, Style::Compact);
        }
    }
    let end = out.len();
    print_metadata_of_projection(row, given.as_ref(), true, row.document.is_none(), out);
    out.push(b'}');
    Ok(end)
}

fn print_metadata_of_projection(
    row: &Row<'_>,
    given: Option<&jackdaw_document::Object<'_>>,
    is_projection: bool,
    from_index: bool,
    out: &mut Vec<u8>,
) {
    json::name(out, metadata::METADATA);
    out.push(b'{');
    for (name, value) in given.iter().flat_map(|given| given.iter()) {
        if !metadata::is_output_only(&name.to_str()) {
            json::separate(out);
            Value::Text(name).print_to(out, Style::Compact);
            out.push(b':');
            value.print_to(out, Style::Compact);
        }
    }
    if is_projection {
        json::bool(out, "@projection", true);
    }
    json::name(out, metadata::CHANGE_VECTOR);
    match &row.document {
        Some(document) if !from_index => {
            out.push(b'"');
            document.change_vector.append_to(out);
            out.push(b'"');
        }
        _ => out.extend_from_slice(b"null"),
    }
    if let Some(id) = row.id(Origin::Result) {
        json::string(out, metadata::ID, id);
    }
    print_found(Some(row.score.unwrap_or(0.0)), row.distance.as_ref(), out);
    if let Some(document) = row.document.as_ref().filter(|_| !from_index) {
        json::name(out, metadata::LAST_MODIFIED);
        out.push(b'"');
        clock::append_date(document.last_modified, out);
        out.push(b'"');
        if !document.flags.is_none() {
            json::string(out, metadata::FLAGS, &document.flags.to_string());
        }
    }
    out.push(b'}');
}

/// Appends the properties selected; those of documents that are not there are left out.
///
/// Errors: those of reading values that stand elsewhere.
pub(crate) fn print_items(run: &Run<'_>, row: &Row<'_>, items: &[Item], out: &mut Vec<u8>) -> Result<()> {
    // Beside what the index itself can tell, fields that are not there are left out.
    let leaves_out = row.key.is_some()
        && items.iter().any(|item| match &item.value {
            ItemValue::Id(Origin::Result) => true,
            ItemValue::Field(Origin::Result, path) => {
                !run.takes_documents_alone() && row.is_stored(path.text())
            }
            _ => false,
        });
    for item in items {
        if run.request.projection == ProjectionBehavior::FromDocumentOrThrow
            && let ItemValue::Field(Origin::Result, path) = &item.value
            && matches!(row.find(Origin::Result, path), Found::Missing)
        {
            return Err(run.no_field(row, path.text()));
        }
        if leaves_out
            && let ItemValue::Field(Origin::Result, path) = &item.value
            && run.stored_field(row, path.text()).is_none()
            && matches!(row.find(Origin::Result, path), Found::Missing)
        {
            continue;
        }
        if let ItemValue::Field(origin, _) | ItemValue::Whole(origin) | ItemValue::Id(origin) = &item.value
            && row.is_missing(*origin)
        {
            continue;
        }
        // What is asked of an alias by name is left out when it is not there; a plain field is null.
        if item.of_alias
            && let ItemValue::Field(origin, path) = &item.value
            && (*origin != Origin::Result || run.stored_field(row, path.text()).is_none())
            && matches!(row.find(*origin, path), Found::Missing)
        {
            continue;
        }
        if let ItemValue::Field(Origin::Result, path) = &item.value
            && run.takes_indexes_alone(row)
            && run.stored_field(row, path.text()).is_none()
        {
            continue;
        }
        json::name(out, &item.name);
        print_value(run, row, &item.value, out)?;
    }
    Ok(())
}

fn print_value(run: &Run<'_>, row: &Row<'_>, value: &ItemValue, out: &mut Vec<u8>) -> Result<()> {
    match value {
        ItemValue::Field(origin, path) => {
            if *origin == Origin::Result
                && let Some(value) = run.stored_field(row, path.text())
            {
                match row.key {
                    Some(_) => print_stored(&value, out),
                    None => value.print_to(out, Style::Compact),
                }
                return Ok(());
            }
            print_found_value(&row.find(*origin, path), out);
        }
        ItemValue::Whole(origin) => match (origin, row.documents(*origin)) {
            (Origin::Result, []) => {
                out.push(b'{');
                print_properties(row.stored.as_ref(), out);
                out.push(b'}');
            }
            (Origin::Loaded(_), documents) if run.loads_many(*origin) => {
                out.push(b'[');
                for document in documents {
                    json::separate(out);
                    print_nested(document, out);
                }
                out.push(b']');
            }
            (_, [document, ..]) => print_nested(document, out),
            (_, []) => out.extend_from_slice(b"null"),
        },
        ItemValue::Id(origin) => match row.id(*origin) {
            Some(id) => append_json_string(id, out),
            None => out.extend_from_slice(b"null"),
        },
        ItemValue::Constant(constant) => constant.scalar().print_to(out),
        ItemValue::Parameter(name) => match run.parameters().get(name) {
            Some(value) => value.print_to(out, Style::Compact),
            None => out.extend_from_slice(b"null"),
        },
        ItemValue::Keys(keys) => {
            out.push(b'{');
            for (name, path) in keys {
                json::name(out, name);
                match run.stored_field(row, path.text()) {
                    Some(value) => value.print_to(out, Style::Compact),
                    None => print_found_value(&row.find(Origin::Result, path), out),
                }
            }
            out.push(b'}');
        }
        ItemValue::Called(called) => {
            let context = Context::new();
            match script::call(run, row, called, &context)?.and_then(|made| made.root().get(CALLED)) {
                Some(value) => value.print_to(out, Style::Compact),
                None => out.extend_from_slice(b"null"),
            }
        }
        ItemValue::CompareExchange(key) => {
            let key = match &**key {
                ItemValue::Constant(constant) => constant.scalar(),
                ItemValue::Parameter(name) => run.parameters().get(name).map_or(Scalar::Null, Scalar::of),
                _ => Scalar::Null,
            };
            let found = match &key {
                Scalar::Text(key) => run.snapshot().compare_exchange(key)?,
                _ => None,
            };
            match found.and_then(|found| found.value.get("Object")) {
                Some(value) => value.print_to(out, Style::Compact),
                None => out.extend_from_slice(b"null"),
            }
        }
    }
    Ok(())
}

/// A stored field: an index of documents stores text, whatever it was made of.
fn print_stored(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Number(_) | Value::Bool(_) => {
            out.push(b'"');
            value.print_to(out, Style::Compact);
            out.push(b'"');
        }
        Value::Array(array) => {
            out.push(b'[');
            for value in array.iter() {
                json::separate(out);
                print_stored(&value, out);
            }
            out.push(b']');
        }
        value => value.print_to(out, Style::Compact),
    }
}

/// A text that is a date is selected with seven digits of fraction, however it was written.
fn print_text(text: Text<'_>, out: &mut Vec<u8>) {
    if let Some(plain) = text.as_str()
        && let Some(date) = Date::in_full(plain, &mut [0; DATE_TEXT_MAX])
    {
        out.push(b'"');
        out.extend_from_slice(date.as_bytes());
        out.push(b'"');
        return;
    }
    Value::Text(text).print_to(out, Style::Compact);
}

fn print_found_value(found: &Found<'_>, out: &mut Vec<u8>) {
    match found {
        Found::Missing => out.extend_from_slice(b"null"),
        Found::One(Value::Text(text)) => print_text(*text, out),
        Found::One(value) => value.print_to(out, Style::Compact),
        Found::Computed(text) => append_json_string(text, out),
        Found::Many(values) => {
            out.push(b'[');
            for found in values {
                json::separate(out);
                match found {
                    Found::One(value) => value.print_to(out, Style::Compact),
                    found => print_found_value(found, out),
                }
            }
            out.push(b']');
        }
    }
}

/// A document as the value of a property: of what is known about it, its id alone.
fn print_nested(document: &StoredDocument<'_>, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut stored = None;
    for (name, value) in document.document.object().iter().flat_map(|object| object.iter()) {
        if name == metadata::METADATA {
            stored = value.as_object();
            continue;
        }
        json::separate(out);
        Value::Text(name).print_to(out, Style::Compact);
        out.push(b':');
        value.print_to(out, Style::Compact);
    }
    json::name(out, metadata::METADATA);
    out.push(b'{');
    print_properties(stored.map(Value::Object).as_ref(), out);
    json::string(out, metadata::ID, document.id);
    out.extend_from_slice(b"}}");
}

/// Appends a loaded document in place of the one found.
pub(crate) fn print_loaded(row: &Row<'_>, document: &StoredDocument<'_>, fields: Fields, out: &mut Vec<u8>) {
    print_document(document, fields, out);
    out.truncate(out.len() - 2);
    print_found(Some(row.score.unwrap_or(0.0)), row.distance.as_ref(), out);
    out.extend_from_slice(b"}}");
}
