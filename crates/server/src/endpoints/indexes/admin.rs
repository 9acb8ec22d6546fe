//! What may be done with indexes: lock modes, priorities, pausing and disabling, forgetting errors.

use http::Method;
use jackdaw_indexing::Indexes;
use jackdaw_indexing::definition::{LockMode, Priority};
use serde_json::Value;

use super::{names, with_indexes};
use crate::error::{ErrorKind, Result};
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;

pub(super) fn routes(routes: &mut Routes) {
    routes.database(Method::POST, "/indexes/set-lock", set_lock);
    routes.database(Method::POST, "/indexes/set-priority", set_priority);
    routes.database(Method::DELETE, "/indexes/errors", clear_errors);
    routes.database(Method::POST, "/admin/indexes/stop", |request| run(request, Verb::Stop));
    routes.database(Method::POST, "/admin/indexes/start", |request| run(request, Verb::Start));
    routes.database(Method::POST, "/admin/indexes/disable", |request| able(request, Indexes::disable));
    routes.database(Method::POST, "/admin/indexes/enable", |request| able(request, Indexes::enable));
}

/// The names in a body `{"IndexNames":[..]}`.
fn index_names(body: &Value) -> Result<Vec<String>> {
    let wrong = || ErrorKind::InvalidData.error("'IndexNames' must be an array of names of indexes");
    let Some(Value::Array(names)) = body.get("IndexNames") else { return Err(wrong()) };
    names.iter().map(|name| name.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}

fn one_of<T>(body: &Value, key: &str, of: impl Fn(&str) -> Option<T>) -> Result<T> {
    let text = body.get(key).and_then(Value::as_str).unwrap_or_default();
    of(text).ok_or_else(|| ErrorKind::Format.error(format!("'{text}' cannot be the value of '{key}'")))
}

async fn set_lock(mut request: DatabaseRequest) -> Result<Response> {
    let body: Value = request.json().await?;
    let (names, mode) = (index_names(&body)?, one_of(&body, "Mode", LockMode::from_name)?);
    with_indexes(request, move |indexes| {
        indexes.set_lock(&names, mode)?;
        Ok(Response::no_content())
    })
    .await
}

async fn set_priority(mut request: DatabaseRequest) -> Result<Response> {
    let body: Value = request.json().await?;
    let (names, priority) = (index_names(&body)?, one_of(&body, "Priority", Priority::from_name)?);
    with_indexes(request, move |indexes| {
        indexes.set_priority(&names, priority)?;
        Ok(Response::no_content())
    })
    .await
}

async fn clear_errors(request: DatabaseRequest) -> Result<Response> {
    let names = names(&request)?;
    with_indexes(request, move |indexes| {
        indexes.clear_errors(&names)?;
        Ok(Response::no_content())
    })
    .await
}

#[derive(Clone, Copy)]
enum Verb {
    Stop,
    Start,
}

/// One index by name, those of a type, or all.
async fn run(request: DatabaseRequest, verb: Verb) -> Result<Response> {
    let query = request.query();
    let name = query.get_filled("name")?.map(|name| name.into_owned());
    let is_map_reduce = match query.get_filled("type")?.as_deref() {
        None => None,
        Some("map") => Some(false),
        Some("map-reduce") => Some(true),
        Some(other) => {
            return Err(ErrorKind::UnknownArgument.error(format!(
                "Query string value 'type' can only be 'map' or 'map-reduce' but was {other}"
            )));
        }
    };
    with_indexes(request, move |indexes| {
        match (name, verb) {
            (Some(_), _) if is_map_reduce.is_some() => {
                return Err(ErrorKind::UnknownArgument
                    .error("Query string value 'name' and 'type' are mutually exclusive."));
            }
            (Some(name), Verb::Stop) => indexes.stop_one(&name)?,
            (Some(name), Verb::Start) => indexes.start_one(&name)?,
            (None, Verb::Stop) => indexes.stop_all(is_map_reduce),
            (None, Verb::Start) => indexes.start_all(is_map_reduce),
        }
        Ok(Response::no_content())
    })
    .await
}

async fn able(
    request: DatabaseRequest,
    change: fn(&Indexes, &str) -> jackdaw_indexing::Result<()>,
) -> Result<Response> {
    let name = request.query().require("name")?.into_owned();
    with_indexes(request, move |indexes| {
        change(indexes, &name)?;
        Ok(Response::no_content())
    })
    .await
}
