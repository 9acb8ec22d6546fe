//! Whether the server and its databases are well: for clients after a failure, and for whatever watches the process.

use std::time::Duration;

use http::Method;
use serde_json::json;

use crate::error::{ErrorKind, Result};
use crate::request::{DatabaseRequest, ServerRequest};
use crate::response::Response;
use crate::routes::Routes;

/// The longest delay that a test may ask for.
const DELAY_MAX: Duration = Duration::from_secs(600);

pub(crate) fn routes(routes: &mut Routes) {
    routes.server_inline(Method::GET, "/health/live", |_| Ok(Response::no_content()));
    routes.server_inline(Method::GET, "/health/ready", ready);
    routes.server_inline(Method::GET, "/setup/alive", |_| Ok(Response::no_content()));
    routes.server(Method::GET, "/admin/test/delay", delay);
    routes.database_inline(Method::GET, "/healthcheck", database_health);
}

/// Ready until it is asked to stop; loaded databases that take no more writes are named.
fn ready(request: ServerRequest) -> Result<Response> {
    let state = &request.state;
    if state.stopping().is_cancelled() {
        return Err(ErrorKind::TooMany.error("the server is stopping"));
    }
    let failed: Vec<_> = state
        .databases()
        .all()
        .iter()
        .filter_map(|entry| {
            let failure = entry.if_loaded()?.storage_stats().failure?;
            Some(json!({ "Name": entry.record().database_name, "Failure": failure }))
        })
        .collect();
    Response::of(&json!({ "Status": "Ready", "FailedDatabases": failed }))
}

/// 204 when the database can be read and takes writes.
fn database_health(request: DatabaseRequest) -> Result<Response> {
    request.database.read()?;
    if let Some(failure) = request.database.storage_stats().failure {
        return Err(ErrorKind::Internal.error(format!(
            "the database takes no more writes since an earlier one failed: {failure}; disable and enable it to open it again"
        )));
    }
    Ok(Response::no_content())
}

/// Answers after as many milliseconds as `value` says; clients' tests of timeouts use it.
async fn delay(request: ServerRequest) -> Result<Response> {
    let query = request.query();
    query.require("value")?;
    let delay = Duration::from_millis(query.number("value")?.unwrap_or(0));
    if delay > DELAY_MAX {
        return Err(ErrorKind::Argument.error(format!("the longest delay is {} ms", DELAY_MAX.as_millis())));
    }
    tokio::select! {
        () = tokio::time::sleep(delay) => {}
        () = request.state.stopping().cancelled() => {}
    }
    Ok(Response::empty(http::StatusCode::OK))
}
