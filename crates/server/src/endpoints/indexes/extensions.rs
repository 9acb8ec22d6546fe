//! Custom analyzers and sorters: classes in C#, which a server that runs no .NET cannot have. Putting one says so as a failed compilation.

use http::Method;
use serde_json::Value;

use crate::error::{ErrorKind, Result};
use crate::request::{DatabaseRequest, ServerRequest};
use crate::response::Response;
use crate::routes::Routes;

pub(super) fn routes(routes: &mut Routes) {
    for (path, list, kind) in [
        ("/admin/analyzers", "Analyzers", ErrorKind::AnalyzerCompilation),
        ("/admin/sorters", "Sorters", ErrorKind::SorterCompilation),
    ] {
        routes.database(Method::PUT, path, move |mut request: DatabaseRequest| async move {
            refuse(&request.json::<Value>().await?, list, kind)
        });
        routes.server(Method::PUT, path, move |mut request: ServerRequest| async move {
            refuse(&request.json::<Value>().await?, list, kind)
        });
        // There is none that could be there.
        routes.database(Method::DELETE, path, |request: DatabaseRequest| async move {
            request.query().require("name")?;
            Ok(Response::no_content())
        });
        routes.server(Method::DELETE, path, |request: ServerRequest| async move {
            request.query().require("name")?;
            Ok(Response::no_content())
        });
    }
    routes.database(Method::GET, "/analyzers", |_: DatabaseRequest| async { none("Analyzers") });
    routes.database(Method::GET, "/sorters", |_: DatabaseRequest| async { none("Sorters") });
}

fn none(list: &str) -> Result<Response> {
    Response::of(&serde_json::json!({ list: [] }))
}

fn refuse(body: &Value, list: &str, kind: ErrorKind) -> Result<Response> {
    let Some(Value::Array(all)) = body.get(list) else {
        return Err(ErrorKind::UnknownArgument
            .error(format!("Request should have a property name '{list}' which is mandatory.")));
    };
    let Some(first) = all.first() else { return Ok(Response::empty(http::StatusCode::CREATED)) };
    let name = first.get("Name").and_then(Value::as_str).unwrap_or_default();
    let code = first.get("Code").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() || code.is_empty() {
        return Err(ErrorKind::UnknownArgument.error(format!("each of '{list}' needs a 'Name' and 'Code'")));
    }
    let what = if list == "Sorters" { "sorter" } else { "analyzer" };
    if !code.contains(&format!("class {name}")) {
        return Err(kind.error(format!(
            "Could not find type '{name}' in given assembly: the code of the {what} has no class of that name"
        )));
    }
    Err(kind.error(format!(
        "The {what} '{name}' cannot be compiled: this server runs no .NET code, so that classes of one's own are not supported"
    )))
}
