//! Operations of a database and of the server: ids, states, kill, list.

use http::Method;
use serde_json::json;

use crate::error::{ErrorKind, Result};
use crate::operations::Operations;
use crate::query_string::Query;
use crate::request::{DatabaseRequest, ServerRequest};
use crate::response::Response;
use crate::routes::Routes;
use crate::wire::database_record::NODE_TAG;

pub(crate) fn routes(routes: &mut Routes) {
    routes.database_inline(Method::GET, "/operations/next-operation-id", |request| {
        next_id(request.database.operations())
    });
    routes.database_inline(Method::GET, "/operations/state", |request: DatabaseRequest| {
        state(request.database.operations(), request.query())
    });
    routes.database_inline(Method::POST, "/operations/kill", |request: DatabaseRequest| {
        kill(request.database.operations(), request.query())
    });
    routes.database_inline(Method::GET, "/operations", |request: DatabaseRequest| {
        list(request.database.operations(), request.query())
    });
    for path in ["/operations/next-operation-id", "/admin/operations/next-operation-id"] {
        routes.server_inline(Method::GET, path, |request| next_id(request.state.operations()));
    }
    for path in ["/operations/state", "/admin/operations/state"] {
        routes.server_inline(Method::GET, path, |request: ServerRequest| {
            state(request.state.operations(), request.query())
        });
    }
    for path in ["/operations/kill", "/admin/operations/kill"] {
        routes.server_inline(Method::POST, path, |request: ServerRequest| {
            kill(request.state.operations(), request.query())
        });
    }
    for path in ["/operations", "/admin/operations"] {
        routes.server_inline(Method::GET, path, |request: ServerRequest| {
            list(request.state.operations(), request.query())
        });
    }
}

fn next_id(operations: &Operations) -> Result<Response> {
    Response::of(&json!({ "Id": operations.next_id(), "NodeTag": NODE_TAG }))
}

/// 404 without a body for an id that nobody knows, which is "not begun yet, or long over" to clients.
fn state(operations: &Operations, query: Query<'_>) -> Result<Response> {
    match operations.state(id(query)?) {
        Some(state) => Response::of(&state),
        None => Ok(Response::not_found()),
    }
}

fn kill(operations: &Operations, query: Query<'_>) -> Result<Response> {
    operations.kill(id(query)?)?;
    Ok(Response::no_content())
}

/// All, or with `id` one of them.
fn list(operations: &Operations, query: Query<'_>) -> Result<Response> {
    match query.number("id")? {
        Some(id) => Ok(operations
            .describe(id)
            .map_or_else(Response::not_found, |one| Response::json(one.to_string()))),
        None => Response::of(&operations.describe_all()),
    }
}

fn id(query: Query<'_>) -> Result<i64> {
    query
        .number("id")?
        .ok_or_else(|| ErrorKind::Argument.error("Query string id is mandatory, but wasn't specified."))
}
