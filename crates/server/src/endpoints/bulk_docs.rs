//! `POST /bulk_docs`: the commands of one `saveChanges`, all of them or none.

use http::{HeaderMap, Method, StatusCode, header};
use jackdaw_database::{
    ClusterCommand, ClusterCommandResult, ClusterOptions, ClusterResult, Database, Expected, IfMissing,
    IncomingDocument, JsonPatch, Patch, PatchOptions, PutOptions, PutResult, Transaction,
};
use jackdaw_document::{Context, Mode, Object, Value};

use crate::contexts::with_context_for;
use crate::endpoints::documents::SHORT_JOB_SIZE_MAX;
use crate::endpoints::wait_for_indexes::WaitForIndexes;
use crate::endpoints::{not_supported, patches};
use crate::error::{ErrorKind, Result};
use crate::json_text as json;
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;

/// Commands that one short job has at most.
const SHORT_COMMANDS_MAX: usize = 16;

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::POST, "/bulk_docs", bulk_docs);
}

/// A command of a single-node transaction.
enum Command {
    Put {
        id: String,
        document: IncomingDocument,
        expected: Expected,
    },
    Delete {
        id: String,
        expected: Expected,
    },
    Patch {
        id: String,
        patch: Patch,
        if_missing: Option<IfMissing>,
        options: PatchOptions,
        returns_document: bool,
    },
    /// One script over several documents; what comes of each is not told.
    BatchPatch {
        ids: Vec<(String, Expected)>,
        patch: Patch,
        if_missing: Option<IfMissing>,
    },
    JsonPatch {
        id: String,
        patch: JsonPatch,
        returns_document: bool,
    },
}

/// A body, read.
enum Batch {
    SingleNode(Vec<Command>),
    ClusterWide(Vec<ClusterCommand>),
}

async fn bulk_docs(mut request: DatabaseRequest) -> Result<Response> {
    if is_multipart(request.headers()) {
        return Err(not_supported::feature("Attachments"));
    }
    let body = request.bytes().await?;
    let database = &request.database;
    let batch = with_context_for(body.len(), |context| read_batch(&body, context, database))?;
    let is_small = body.len() <= SHORT_JOB_SIZE_MAX;
    drop(body);
    let waiting = WaitForIndexes::of(&request)?;
    let out = match batch {
        Batch::SingleNode(commands) => {
            // Scripts may take their time.
            let is_plain =
                |command: &Command| matches!(command, Command::Put { .. } | Command::Delete { .. });
            let is_short = is_small && commands.len() <= SHORT_COMMANDS_MAX && commands.iter().all(is_plain);
            let job = move |transaction: &mut Transaction<'_>| run(&commands, transaction);
            if is_short { database.submit_short(job) } else { database.submit(job) }.await?
        }
        Batch::ClusterWide(commands) => {
            let query = request.query();
            // Callers that do not say what client they are know nothing of guards.
            let guards = !query.flag("disableAtomicDocumentWrites")?.unwrap_or(false)
                && request.headers().contains_key("raven-client-version");
            let request_id = query.get_filled("raft-request-id")?.map(|id| id.into_owned());
            let options = ClusterOptions { guards };
            database
                .submit(move |transaction| run_cluster_wide(&commands, options, request_id, transaction))
                .await?
        }
    };
    if let Some(waiting) = waiting {
        waiting.wait(&request.database).await?;
    }
    Ok(Response::json(out).status(StatusCode::CREATED))
}

fn is_multipart(headers: &HeaderMap) -> bool {
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.trim_start().get(..10).is_some_and(|start| start.eq_ignore_ascii_case("multipart/"))
}

fn read_batch(body: &[u8], context: &Context, database: &Database) -> Result<Batch> {
    let body = context.parse(body)?;
    let object = body.object().ok_or_else(|| ErrorKind::InvalidData.error("the body must be an object"))?;
    let commands = match object.get("Commands") {
        Some(Value::Array(commands)) => commands,
        Some(other) => return Err(wrong("Commands", "an array", &other)),
        None => return Err(ErrorKind::InvalidData.error("the body has no 'Commands'")),
    };
    let commands = commands.iter().enumerate().map(|(i, command)| match command.as_object() {
        Some(command) => Ok((i, command)),
        None => Err(wrong(&format!("Commands[{i}]"), "an object", &command)),
    });
    match text(&object, "TransactionMode")?.as_deref() {
        None | Some("SingleNode") => {
            let read = |each: Result<(usize, Object<'_>)>| {
                each.and_then(|(i, c)| read_command(i, &c, context, database))
            };
            Ok(Batch::SingleNode(commands.map(read).collect::<Result<_>>()?))
        }
        Some("ClusterWide") => {
            let read = |each: Result<(usize, Object<'_>)>| {
                each.and_then(|(i, c)| read_cluster_command(i, &c, context, database))
            };
            Ok(Batch::ClusterWide(commands.map(read).collect::<Result<_>>()?))
        }
        Some(other) => Err(ErrorKind::Argument.error(format!("'{other}' is no TransactionMode"))),
    }
}

fn read_command(
    index: usize,
    command: &Object<'_>,
    context: &Context,
    database: &Database,
) -> Result<Command> {
    let kind = kind_of(index, command)?;
    let id = || -> Result<String> { Ok(text(command, "Id")?.unwrap_or_default()) };
    if kind.eq_ignore_ascii_case("PUT") {
        if command
            .get("ForceRevisionCreationStrategy")
            .is_some_and(|how| how.as_str().is_some_and(|how| how != "None"))
        {
            return Err(not_supported::feature("Revisions"));
        }
        let document = document_of(index, command, context, database)?;
        Ok(Command::Put { id: id()?, document, expected: expected(command)? })
    } else if kind.eq_ignore_ascii_case("DELETE") {
        if text(command, "IdPrefixed")?.is_some()
            || command.get("IdPrefixed").is_some_and(|it| it.as_bool() == Some(true))
        {
            return Err(ErrorKind::NotSupported.error("deleting by prefix in a batch is not supported"));
        }
        let id = id()?;
        if id.is_empty() {
            return Err(ErrorKind::Argument.error(format!("Commands[{index}]: a DELETE needs an 'Id'")));
        }
        Ok(Command::Delete { id, expected: expected(command)? })
    } else if kind.eq_ignore_ascii_case("PATCH") {
        let (patch, if_missing) = patches::read(command, context, database)?;
        let options = PatchOptions { expected: expected(command)?, ..PatchOptions::default() };
        Ok(Command::Patch {
            id: id()?,
            patch,
            if_missing,
            options,
            returns_document: returns_document(command),
        })
    } else if kind.eq_ignore_ascii_case("BatchPATCH") {
        let (patch, if_missing) = patches::read(command, context, database)?;
        Ok(Command::BatchPatch { ids: ids_of(index, command)?, patch, if_missing })
    } else if kind.eq_ignore_ascii_case("JsonPatch") {
        let operations = command.get("JsonPatch").and_then(|patch| patch.get("Operations"));
        let operations = operations.ok_or_else(|| {
            ErrorKind::InvalidData.error(format!("Commands[{index}] has no 'JsonPatch.Operations'"))
        })?;
        let patch = JsonPatch::new(&operations, context)?;
        Ok(Command::JsonPatch { id: id()?, patch, returns_document: returns_document(command) })
    } else {
        Err(refusal(index, &kind))
    }
}

fn returns_document(command: &Object<'_>) -> bool {
    command.get("ReturnDocument").and_then(|value| value.as_bool()).unwrap_or(false)
}

/// The documents of a `BatchPATCH`.
fn ids_of(index: usize, command: &Object<'_>) -> Result<Vec<(String, Expected)>> {
    let ids = match command.get("Ids") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(ids)) => ids,
        Some(other) => return Err(wrong(&format!("Commands[{index}].Ids"), "an array", &other)),
    };
    let read = |each: Value<'_>| match each.as_object() {
        Some(each) => Ok((text(&each, "Id")?.unwrap_or_default(), expected(&each)?)),
        None => Err(wrong(&format!("Commands[{index}].Ids"), "an array of objects", &each)),
    };
    ids.iter().map(read).collect()
}

fn read_cluster_command(
    index: usize,
    command: &Object<'_>,
    context: &Context,
    database: &Database,
) -> Result<ClusterCommand> {
    let kind = kind_of(index, command)?;
    let id = text(command, "Id")?.unwrap_or_default();
    // The vector that was loaded comes beside the one that is to be checked; guards care for either.
    let known = match text(command, "ChangeVector")? {
        Some(vector) => Some(vector),
        None => text(command, "OriginalChangeVector")?,
    };
    let exchange_index = || match command.get("Index") {
        None | Some(Value::Null) => Ok(0),
        Some(index) => index.as_i64().ok_or_else(|| wrong("Index", "a whole number", &index)),
    };
    match kind.to_ascii_uppercase().as_str() {
        "PUT" => {
            let document = document_of(index, command, context, database)?;
            Ok(ClusterCommand::Put { id, document, known })
        }
        "DELETE" => Ok(ClusterCommand::Delete { id, known }),
        "COMPAREEXCHANGEPUT" => {
            let value = match command.get("Document") {
                Some(value @ Value::Object(_)) => compare_exchange_value(&value, context)?,
                Some(other) => {
                    return Err(wrong(&format!("Commands[{index}].Document"), "an object", &other));
                }
                None => {
                    return Err(ErrorKind::InvalidData.error(format!("Commands[{index}] has no 'Document'")));
                }
            };
            Ok(ClusterCommand::PutCompareExchange { key: id, index: exchange_index()?, value })
        }
        "COMPAREEXCHANGEDELETE" => {
            Ok(ClusterCommand::DeleteCompareExchange { key: id, index: exchange_index()? })
        }
        _ => Err(ErrorKind::NotSupported
            .error(format!("Commands[{index}]: '{kind}' is not supported in a cluster-wide transaction"))),
    }
}

/// The stored form of a compare-exchange value: an object with `Object`, and `@metadata` when it has any.
pub(crate) fn compare_exchange_value(value: &Value<'_>, context: &Context) -> Result<Vec<u8>> {
    let document = context.build(Mode::Memory, |builder| builder.value(value))?;
    Ok(document.as_bytes().to_vec())
}

/// Why a command cannot run.
fn refusal(index: usize, kind: &str) -> crate::error::WireError {
    let feature = match kind.to_ascii_uppercase().as_str() {
        "ATTACHMENTPUT" | "ATTACHMENTDELETE" | "ATTACHMENTMOVE" | "ATTACHMENTCOPY" => "Attachments",
        "COUNTERS" => "Counters",
        "TIMESERIES" | "TIMESERIESWITHINCREMENTS" | "TIMESERIESCOPY" | "TIMESERIESBULKINSERT" => {
            "Time series"
        }
        "FORCEREVISIONCREATION" => "Revisions",
        "COMPAREEXCHANGEPUT" | "COMPAREEXCHANGEDELETE" => {
            return ErrorKind::NotSupported.error(format!(
                "Commands[{index}]: '{kind}' needs a cluster-wide transaction (\"TransactionMode\":\"ClusterWide\")"
            ));
        }
        _ => {
            return ErrorKind::InvalidOperation
                .error(format!("Commands[{index}]: '{kind}' is no type of command"));
        }
    };
    not_supported::feature(feature)
}

fn kind_of(index: usize, command: &Object<'_>) -> Result<String> {
    text(command, "Type")?
        .ok_or_else(|| ErrorKind::InvalidData.error(format!("Commands[{index}] has no 'Type'")))
}

fn document_of(
    index: usize,
    command: &Object<'_>,
    context: &Context,
    database: &Database,
) -> Result<IncomingDocument> {
    match command.get("Document") {
        Some(Value::Object(document)) => Ok(IncomingDocument::from_object(&document, context, database)?),
        Some(other) => Err(wrong(&format!("Commands[{index}].Document"), "an object", &other)),
        None => Err(ErrorKind::InvalidData.error(format!("Commands[{index}] has no 'Document'"))),
    }
}

fn expected(command: &Object<'_>) -> Result<Expected> {
    Ok(Expected::from_text(text(command, "ChangeVector")?.as_deref()))
}

/// A property that is text or missing.
fn text(object: &Object<'_>, name: &str) -> Result<Option<String>> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_str() {
            Some(text) => Ok(Some(text.into_owned())),
            None => Err(wrong(name, "a string", &value)),
        },
    }
}

fn wrong(place: &str, expected: &str, found: &Value<'_>) -> crate::error::WireError {
    ErrorKind::InvalidData.error(format!("'{place}' must be {expected}, not {}", found.type_name()))
}

/// Runs the commands and writes the answer: one result for each, in their order.
fn run(commands: &[Command], transaction: &mut Transaction<'_>) -> jackdaw_database::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(32 + commands.len() * 192);
    out.extend_from_slice(b"{\"Results\":[");
    for command in commands {
        json::separate(&mut out);
        match command {
            Command::Put { id, document, expected } => {
                let options = PutOptions { expected: expected.clone(), ..PutOptions::default() };
                print_put(&transaction.put(id, document, options)?, &mut out);
            }
            Command::Delete { id, expected } => {
                let deleted = transaction.delete(id, expected)?.is_some();
                print_delete(id, deleted, &mut out);
            }
            Command::Patch { id, patch, if_missing, options, returns_document } => {
                let result = transaction.patch(id, patch, if_missing.as_ref(), options)?;
                patches::print_command("PATCH", id, &result, *returns_document, &mut out)?;
            }
            Command::BatchPatch { ids, patch, if_missing } => {
                for (id, expected) in ids {
                    let options = PatchOptions { expected: expected.clone(), ..PatchOptions::default() };
                    transaction.patch(id, patch, if_missing.as_ref(), &options)?;
                }
                out.extend_from_slice(b"{\"Type\":\"BatchPATCH\"}");
            }
            Command::JsonPatch { id, patch, returns_document } => {
                let result = transaction.json_patch(id, patch)?;
                patches::print_command("JsonPatch", id, &result, *returns_document, &mut out)?;
            }
        }
    }
    out.extend_from_slice(b"]}");
    Ok(out)
}

fn print_put(stored: &PutResult, out: &mut Vec<u8>) {
    out.push(b'{');
    json::string(out, "Type", "PUT");
    json::string(out, "@id", &stored.id);
    json::string(out, "@collection", &stored.collection);
    json::string(out, "@change-vector", &stored.change_vector);
    json::date(out, "@last-modified", stored.last_modified);
    if !stored.flags.is_none() {
        json::string(out, "@flags", &stored.flags.to_string());
    }
    out.push(b'}');
}

fn print_delete(id: &str, deleted: bool, out: &mut Vec<u8>) {
    out.push(b'{');
    json::string(out, "Id", id);
    json::string(out, "Type", "DELETE");
    json::raw(out, "Deleted", if deleted { b"true" } else { b"false" });
    if deleted {
        json::raw(out, "ChangeVector", b"null");
    }
    out.push(b'}');
}

/// As [`run`], once for each id of a request: a client that got no answer sends the same again.
fn run_cluster_wide(
    commands: &[ClusterCommand],
    options: ClusterOptions,
    request_id: Option<String>,
    transaction: &mut Transaction<'_>,
) -> jackdaw_database::Result<Vec<u8>> {
    if let Some(id) = &request_id
        && let Some(answer) = transaction.answer_of_request(id)?
    {
        return Ok(answer.to_vec());
    }
    let ClusterResult { index, results } = transaction.run_cluster_transaction(commands, options)?;
    let mut out = Vec::with_capacity(64 + results.len() * 192);
    out.extend_from_slice(b"{\"Results\":[");
    for result in &results {
        json::separate(&mut out);
        match result {
            ClusterCommandResult::Put(stored) => {
                let (vector, ticks) = (&stored.change_vector, stored.last_modified);
                print_cluster_write("PUT", "@id", &stored.id, vector, ticks, &mut out);
            }
            ClusterCommandResult::Delete { id, change_vector, last_modified } => {
                print_cluster_write("DELETE", "Id", id, change_vector, *last_modified, &mut out);
            }
            ClusterCommandResult::PutCompareExchange { key } => {
                print_compare_exchange("CompareExchangePUT", key, index, &mut out);
            }
            ClusterCommandResult::DeleteCompareExchange { key } => {
                print_compare_exchange("CompareExchangeDELETE", key, index, &mut out);
            }
        }
    }
    out.push(b']');
    json::number(&mut out, "TransactionIndex", index);
    out.push(b'}');
    if let Some(id) = &request_id {
        transaction.keep_answer_of_request(id, &out)?;
    }
    Ok(out)
}

fn print_cluster_write(kind: &str, id_name: &str, id: &str, vector: &str, ticks: i64, out: &mut Vec<u8>) {
    out.push(b'{');
    json::string(out, "Type", kind);
    json::date(out, "@last-modified", ticks);
    json::string(out, id_name, id);
    json::string(out, "@change-vector", vector);
    out.push(b'}');
}

fn print_compare_exchange(kind: &str, key: &str, index: i64, out: &mut Vec<u8>) {
    out.push(b'{');
    json::string(out, "Type", kind);
    json::string(out, "Key", key);
    json::number(out, "Index", index);
    out.push(b'}');
}
