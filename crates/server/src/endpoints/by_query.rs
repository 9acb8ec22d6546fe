//! `PATCH /queries` and `DELETE /queries`: every document that a query finds is changed or deleted, as an operation.
//!
//! What the query finds is found first, from one snapshot. Then come jobs of some documents each, so that others can write in between; what
//! was changed by then stays changed when a later one fails or the operation is killed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use jackdaw_database::{Database, Expected, Patch, PatchOptions, PatchStatus, Transaction};
use jackdaw_document::{Object, Value};
use jackdaw_query::{Error as QueryError, Layout, Purpose, Request, Whole};
use serde_json::json;

use crate::contexts::with_context;
use crate::databases::LoadedDatabase;
use crate::error::{ErrorKind, Result, WireError};
use crate::operations::RunningOperation;
use crate::query_string::Query;
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;
use crate::wire::database_record::NODE_TAG;

/// Documents deleted in one job.
const DELETED_AT_ONCE: usize = 1024;
/// Documents changed in one job: scripts take their time, and other writes wait.
const PATCHED_AT_ONCE: usize = 128;

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::DELETE, "/queries", delete);
    routes.database(Method::PATCH, "/queries", patch);
}

/// What the URL says.
struct Options {
    allow_stale: bool,
    stale_timeout: Option<Duration>,
    operations_per_second_max: Option<u64>,
    details: bool,
    ignore_steps: bool,
}

impl Options {
    fn of(query: Query<'_>) -> Result<Options> {
        // One client sends the `None` of its language.
        let filled = |name: &'static str| -> Result<Option<String>> {
            let value = query.get_filled(name)?.map(|value| value.into_owned());
            Ok(value
                .filter(|value| !value.eq_ignore_ascii_case("none") && !value.eq_ignore_ascii_case("null")))
        };
        let flag = |name: &'static str| -> Result<bool> {
            Ok(filled(name)?.is_some_and(|value| value.eq_ignore_ascii_case("true")))
        };
        let wrong = |name: &str, value: &str| {
            ErrorKind::Argument.error(format!("'{value}' is no value of the query string's '{name}'"))
        };
        let stale_timeout = match filled("staleTimeout")? {
            None => None,
            Some(text) => {
                Some(jackdaw_query::parse_duration(&text).ok_or_else(|| wrong("staleTimeout", &text))?)
            }
        };
        let operations_per_second_max = match filled("maxOpsPerSec")? {
            None => None,
            Some(text) => match text.parse() {
                Ok(number) if number > 0 => Some(number),
                _ => return Err(wrong("maxOpsPerSec", &text)),
            },
        };
        Ok(Options {
            allow_stale: flag("allowStale")?,
            stale_timeout,
            operations_per_second_max,
            details: flag("details")?,
            ignore_steps: flag("ignoreMaxStepsForScript")?,
        })
    }
}

/// What is done to each document.
enum Action {
    Delete,
    Patch(Patch),
}

async fn delete(mut request: DatabaseRequest) -> Result<Response> {
    let options = Options::of(request.query())?;
    let body = request.bytes().await?;
    let (text, parameters) = with_context(|context| {
        let body = context.parse(&body)?;
        describe(&object_of(&body)?)
    })?;
    start(&request, options, body, "DeleteByQuery", text, parameters, Purpose::Delete)
}

async fn patch(mut request: DatabaseRequest) -> Result<Response> {
    let options = Options::of(request.query())?;
    let body = request.bytes().await?;
    let (text, parameters) = with_context(|context| {
        let body = context.parse(&body)?;
        describe(&query_of(&object_of(&body)?)?)
    })?;
    start(&request, options, body, "UpdateByQuery", text, parameters, Purpose::Update)
}

fn object_of<'a>(body: &jackdaw_document::Document<'a>) -> Result<Object<'a>> {
    body.object().ok_or_else(|| ErrorKind::InvalidData.error("the body must be a JSON object"))
}

/// The query of a patch: below `Query`, or the body itself where a client sends it so.
fn query_of<'a>(body: &Object<'a>) -> Result<Object<'a>> {
    match body.get("Query") {
        Some(Value::Object(query)) => Ok(query),
        Some(Value::Text(_)) => Ok(*body),
        _ => Err(ErrorKind::InvalidData.error("Missing 'Query' property")),
    }
}

/// The text of a query and its parameters as JSON, for people.
fn describe(query: &Object<'_>) -> Result<(String, String)> {
    let text = Request::parse(query)?.text.into_owned();
    let parameters = query.get("QueryParameters").filter(|value| !value.is_null());
    Ok((text, parameters.map(|value| value.to_string()).unwrap_or_default()))
}

/// Begins the operation. A text that is no query is refused here; all else is told by the operation.
fn start(
    request: &DatabaseRequest,
    options: Options,
    body: Bytes,
    kind: &'static str,
    text: String,
    parameters: String,
    purpose: Purpose,
) -> Result<Response> {
    let database = request.database.clone();
    database.queries().prepare_for(Request::new(text.clone()), purpose)?;
    let operations = database.operations();
    let id = operations.next_id();
    let description = if parameters.is_empty() { text } else { format!("{text}\n{parameters}") };
    let running = operations.begin(id, kind, description, true)?;
    tokio::task::spawn_blocking(move || match work(&database, &options, &body, purpose, &running) {
        Ok(result) => running.complete(result),
        Err(error) => running.fail(&error),
    });
    Response::of(&json!({ "OperationId": id, "OperationNodeTag": NODE_TAG }))
}

fn work(
    database: &Arc<LoadedDatabase>,
    options: &Options,
    body: &[u8],
    purpose: Purpose,
    running: &RunningOperation,
) -> Result<serde_json::Value> {
    let (ids, action) = with_context(|context| -> Result<(Vec<u8>, Action)> {
        let body = context.parse(body)?;
        let object = object_of(&body)?;
        let query = if purpose == Purpose::Update { query_of(&object)? } else { object };
        let mut asked = Request::parse(&query)?;
        asked.wait = options.stale_timeout.or(asked.wait);
        asked.must_be_fresh = !options.allow_stale;
        let prepared = database.queries().prepare_for(asked, purpose)?;
        let action = match prepared.script() {
            Some(script) => {
                Action::Patch(Patch::new(&script, query.get("QueryParameters").as_ref(), context)?)
            }
            None => Action::Delete,
        };
        let mut ids = Vec::new();
        let found = database.queries().run(
            database,
            database.indexes(),
            &prepared,
            Layout::Ids,
            &mut ids,
            &mut Whole::default(),
        );
        match found {
            Ok(_) => Ok((ids, action)),
            Err(QueryError::NoIndex(name)) => {
                Err(ErrorKind::IndexDoesNotExist.error(format!("There is no index with '{name}' name.")))
            }
            Err(error) => Err(error.into()),
        }
    })?;
    let ids: Vec<&str> = ids
        .split(|byte| *byte == 0)
        .filter(|id| !id.is_empty())
        .filter_map(|id| std::str::from_utf8(id).ok())
        .collect();
    let total = ids.len();
    let action = Arc::new(action);
    let mut details = Vec::new();
    let at_once = match (&*action, options.operations_per_second_max) {
        (_, Some(most)) => usize::try_from(most).unwrap_or(usize::MAX).min(PATCHED_AT_ONCE),
        (Action::Delete, None) => DELETED_AT_ONCE,
        (Action::Patch(_), None) => PATCHED_AT_ONCE,
    };
    let (begun, mut done) = (Instant::now(), 0);
    for ids in ids.chunks(at_once) {
        if running.cancel().is_cancelled() || database.closing().is_cancelled() {
            return Err(ErrorKind::Cancelled.error("The operation was canceled."));
        }
        details.extend(apply(database, ids, &action, options)?);
        done += ids.len();
        running.progress(json!({
            "$type": "Raven.Client.Documents.Operations.DeterminateProgress, Raven.Client",
            "Processed": done,
            "Total": total,
        }));
        if let Some(most) = options.operations_per_second_max {
            pace(begun, done as u64, most, running);
        }
    }
    if !options.details {
        details.clear();
    }
    Ok(json!({
        "$type": "Raven.Client.Documents.Operations.BulkOperationResult, Raven.Client",
        "Total": total,
        "Message": format!("Processed {total} items."),
        "Details": details,
        "Query": null,
        "DocumentsProcessed": 0,
        "AttachmentsProcessed": 0,
        "CountersProcessed": 0,
        "TimeSeriesProcessed": 0,
    }))
}

/// Waits until so much may have been done.
fn pace(begun: Instant, done: u64, per_second: u64, running: &RunningOperation) {
    let due = Duration::from_secs_f64(done as f64 / per_second as f64);
    while let Some(left) = due.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
        if running.cancel().is_cancelled() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(20)));
    }
}

/// Does it to some documents, in one job; what the details say of each.
fn apply(
    database: &Database,
    ids: &[&str],
    action: &Arc<Action>,
    options: &Options,
) -> Result<Vec<serde_json::Value>, WireError> {
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let action = action.clone();
    let wants_details = options.details;
    let steps_max = options.ignore_steps.then_some(u64::MAX);
    let job = move |transaction: &mut Transaction<'_>| {
        let mut details = Vec::new();
        for id in &ids {
            match &*action {
                Action::Delete => {
                    let deleted = transaction.delete(id, &Expected::Any)?;
                    if wants_details {
                        details.push(json!({
                            "$type": "Raven.Client.Documents.Operations.BulkOperationResult+DeleteDetails, Raven.Client",
                            "Id": id,
                            "Etag": deleted.map(|deleted| deleted.etag),
                        }));
                    }
                }
                Action::Patch(patch) => {
                    let options = PatchOptions { steps_max, ..PatchOptions::default() };
                    let result = transaction.patch(id, patch, None, &options)?;
                    if wants_details && result.status != PatchStatus::DocumentDoesNotExist {
                        details.push(json!({
                            "$type": "Raven.Client.Documents.Operations.BulkOperationResult+PatchDetails, Raven.Client",
                            "Id": id,
                            "ChangeVector": result.stored.as_ref().map(|stored| &*stored.change_vector),
                            "Status": result.status.name(),
                        }));
                    }
                }
            }
        }
        Ok(details)
    };
    Ok(database.submit(job).wait()?)
}
