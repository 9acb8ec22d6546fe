//! `PATCH /docs` and `PATCH /json-patch`: one document changed by a script, or by a list of operations; and both as `bulk_docs` has them.

use http::{Method, StatusCode};
use jackdaw_database::{
    Database, Expected, IfMissing, IncomingDocument, JsonPatch, Patch, PatchDebug, PatchOptions, PatchResult,
    PatchStatus,
};
use jackdaw_document::{Context, Document, Object, Style, Value};

use crate::contexts::with_context_for;
use crate::error::{ErrorKind, Result};
use crate::json_text as json;
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;

/// The date of what did not happen.
const NEVER: &[u8] = b"\"0001-01-01T00:00:00.0000000\"";

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::PATCH, "/docs", patch);
    routes.database(Method::PATCH, "/json-patch", json_patch);
}

async fn patch(mut request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let id = query.require("id")?.into_owned();
    let flag = |name| Ok::<bool, crate::error::WireError>(query.flag(name)?.unwrap_or(false));
    let options = PatchOptions {
        expected: Expected::from_text(request.if_match()),
        skip_if_unexpected: flag("skipPatchIfChangeVectorMismatch")?,
        debug: flag("debug")?,
        is_test: flag("test")?,
        steps_max: None,
    };
    let tells_all = options.debug || options.is_test;
    let body = request.bytes().await?;
    let database = &request.database;
    let (patch, if_missing) = with_context_for(body.len(), |context| {
        let body = context.parse(&body)?;
        let body = body.object().ok_or_else(|| ErrorKind::InvalidData.error("the body must be an object"))?;
        read(&body, context, database)
    })?;
    drop(body);
    let result =
        database.submit(move |transaction| transaction.patch(&id, &patch, if_missing.as_ref(), &options));
    answer(&result.await?, tells_all)
}

async fn json_patch(mut request: DatabaseRequest) -> Result<Response> {
    let id = request.query().require("id")?.into_owned();
    let body = request.bytes().await?;
    let patch = with_context_for(body.len(), |context| {
        let body = context.parse(&body)?;
        let operations = body
            .get("Operations")
            .ok_or_else(|| ErrorKind::InvalidData.error("the body has no 'Operations'"))?;
        Ok::<_, crate::error::WireError>(JsonPatch::new(&operations, context)?)
    })?;
    drop(body);
    let result = request.database.submit(move |transaction| transaction.json_patch(&id, &patch)).await?;
    answer(&result, false)
}

/// Reads `Patch`, `PatchIfMissing` and `CreateIfMissing` of an object.
pub(crate) fn read(
    object: &Object<'_>,
    context: &Context,
    database: &Database,
) -> Result<(Patch, Option<IfMissing>)> {
    let script = |name: &str| -> Result<Option<Patch>> {
        match object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(patch)) => match patch.get("Script").as_ref().and_then(Value::as_str) {
                Some(script) => Ok(Some(Patch::new(&script, patch.get("Values").as_ref(), context)?)),
                None => Err(ErrorKind::InvalidData.error(format!("Missing 'Script' property on '{name}'"))),
            },
            Some(other) => {
                let found = other.type_name();
                Err(ErrorKind::InvalidData.error(format!("'{name}' must be an object, not {found}")))
            }
        }
    };
    let patch = script("Patch")?
        .ok_or_else(|| ErrorKind::Argument.error("The 'Patch' field in the body request is mandatory"))?;
    let if_missing = match script("PatchIfMissing")? {
        Some(patch) => Some(IfMissing::Patch(patch)),
        None => match object.get("CreateIfMissing") {
            None | Some(Value::Null) => None,
            Some(document) => {
                Some(IfMissing::Create(IncomingDocument::from_value(&document, context, database)?))
            }
        },
    };
    Ok((patch, if_missing))
}

/// The answer to a patch of one document.
fn answer(result: &PatchResult, tells_all: bool) -> Result<Response> {
    let status = match result.status {
        PatchStatus::DocumentDoesNotExist => return Ok(Response::not_found()),
        PatchStatus::Skipped => return Ok(Response::not_modified()),
        PatchStatus::Created => StatusCode::CREATED,
        PatchStatus::Patched | PatchStatus::NotModified => StatusCode::OK,
    };
    let mut out = Vec::with_capacity(512);
    out.push(b'{');
    json::string(&mut out, "Status", result.status.name());
    json::name(&mut out, "ModifiedDocument");
    print_modified(result, &mut out)?;
    if tells_all {
        json::name(&mut out, "OriginalDocument");
        match &result.original {
            Some(bytes) => print_bytes(bytes, &mut out)?,
            None => out.extend_from_slice(b"null"),
        }
        json::name(&mut out, "Debug");
        print_debug(result.debug.as_ref(), &mut out)?;
    }
    if let Some(stored) = &result.stored {
        json::date(&mut out, "LastModified", stored.last_modified);
        json::string(&mut out, "ChangeVector", &stored.change_vector);
        json::string(&mut out, "Collection", &stored.collection);
    } else if tells_all && result.status != PatchStatus::NotModified {
        json::raw(&mut out, "LastModified", NEVER);
        json::raw(&mut out, "ChangeVector", b"null");
        json::string(
            &mut out,
            "Collection",
            result.modified.as_ref().map_or("", IncomingDocument::collection),
        );
    }
    out.push(b'}');
    Ok(Response::json(out).status(status))
}

/// Appends the result of a command of a batch.
pub(crate) fn print_command(
    kind: &str,
    id: &str,
    result: &PatchResult,
    returns_document: bool,
    out: &mut Vec<u8>,
) -> jackdaw_database::Result<()> {
    out.push(b'{');
    json::string(out, "Id", id);
    match &result.stored {
        Some(stored) => {
            json::string(out, "ChangeVector", &stored.change_vector);
            json::date(out, "LastModified", stored.last_modified);
        }
        None => {
            json::raw(out, "ChangeVector", b"null");
            json::raw(out, "LastModified", NEVER);
        }
    }
    json::string(out, "Type", kind);
    json::string(out, "PatchStatus", result.status.name());
    if kind == "PATCH" {
        json::raw(out, "Debug", b"null");
    } else {
        json::number(out, "Etag", result.stored.as_ref().map_or(0, |stored| stored.etag));
    }
    if returns_document {
        json::name(out, "ModifiedDocument");
        print_modified(result, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn print_modified(result: &PatchResult, out: &mut Vec<u8>) -> jackdaw_database::Result<()> {
    match &result.modified {
        Some(modified) => print_bytes(modified.as_bytes(), out),
        None => {
            out.extend_from_slice(b"null");
            Ok(())
        }
    }
}

fn print_bytes(bytes: &[u8], out: &mut Vec<u8>) -> jackdaw_database::Result<()> {
    Document::open(bytes)?.root().print_to(out, Style::Compact);
    Ok(())
}

/// Appends what a script did.
fn print_debug(debug: Option<&PatchDebug>, out: &mut Vec<u8>) -> Result<()> {
    let Some(debug) = debug else {
        out.extend_from_slice(b"null");
        return Ok(());
    };
    out.push(b'{');
    json::name(out, "Info");
    strings(&debug.output, out);
    json::name(out, "Actions");
    out.push(b'{');
    json::name(out, "LoadDocument");
    out.push(b'[');
    for (id, exists) in &debug.loaded {
        json::separate(out);
        out.push(b'{');
        json::string(out, "Id", id);
        json::raw(out, "Exists", if *exists { b"true" } else { b"false" });
        out.push(b'}');
    }
    out.push(b']');
    json::name(out, "PutDocument");
    out.push(b'[');
    for (id, bytes) in &debug.stored {
        json::separate(out);
        out.push(b'{');
        json::string(out, "Id", id);
        json::name(out, "Data");
        print_bytes(bytes, out)?;
        out.push(b'}');
    }
    out.push(b']');
    json::name(out, "DeleteDocument");
    strings(&debug.deleted, out);
    for name in ["GetCounter", "IncrementCounter", "DeleteCounter", "GetTimeSeries", "AppendTimeSeries"] {
        json::raw(out, name, b"[]");
    }
    for name in ["IncrementTimeSeries", "DeleteTimeSeries"] {
        json::raw(out, name, b"[]");
    }
    out.extend_from_slice(b"}}");
    Ok(())
}

fn strings(texts: &[String], out: &mut Vec<u8>) {
    out.push(b'[');
    for text in texts {
        json::separate(out);
        jackdaw_database::append_json_string(text, out);
    }
    out.push(b']');
}
