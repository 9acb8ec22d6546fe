//! Custom analyzers and sorters: classes in C#. Analyzers are read as tokenizers and filters where that is what they are; sorters need a server that runs .NET, so that putting
//! one is a failed compilation.

use http::{Method, StatusCode};
use jackdaw_indexing::AnalyzerDefinition;
use serde::Deserialize;
use serde_json::{Value, json};

use super::with_indexes;
use crate::databases::blocking;
use crate::error::{ErrorKind, Result};
use crate::request::{DatabaseRequest, ServerRequest};
use crate::response::Response;
use crate::routes::Routes;

pub(super) fn routes(routes: &mut Routes) {
    routes.database(Method::GET, "/analyzers", analyzers);
    routes.database(Method::PUT, "/admin/analyzers", put_analyzers);
    routes.database(Method::DELETE, "/admin/analyzers", delete_analyzer);
    routes.server(Method::GET, "/analyzers", server_analyzers);
    routes.server(Method::PUT, "/admin/analyzers", put_server_analyzers);
    routes.server(Method::DELETE, "/admin/analyzers", delete_server_analyzer);

    routes.database(Method::PUT, "/admin/sorters", |mut request: DatabaseRequest| async move {
        refuse_sorter(&request.json::<Value>().await?)
    });
    routes.server(Method::PUT, "/admin/sorters", |mut request: ServerRequest| async move {
        refuse_sorter(&request.json::<Value>().await?)
    });
    // There is none that could be there.
    routes.database(Method::DELETE, "/admin/sorters", |request: DatabaseRequest| async move {
        request.query().require("name")?;
        Ok(Response::no_content())
    });
    routes.server(Method::DELETE, "/admin/sorters", delete_of_none);
    routes.database(Method::GET, "/sorters", |_: DatabaseRequest| async { none("Sorters") });
}

fn none(list: &str) -> Result<Response> {
    Response::of(&json!({ list: [] }))
}

async fn delete_of_none(request: ServerRequest) -> Result<Response> {
    request.query().require("name")?;
    Ok(Response::no_content())
}

/// The list of a body.
fn listed<'b>(body: &'b Value, list: &str) -> Result<&'b Vec<Value>> {
    body.get(list).and_then(Value::as_array).ok_or_else(|| {
        ErrorKind::UnknownArgument
            .error(format!("Request should have a property name '{list}' which is mandatory."))
    })
}

// ---- analyzers ----

async fn analyzers(request: DatabaseRequest) -> Result<Response> {
    with_indexes(request, |indexes| Response::of(&json!({ "Analyzers": indexes.analyzers() }))).await
}

async fn put_analyzers(mut request: DatabaseRequest) -> Result<Response> {
    let body: Value = request.json().await?;
    let definitions = definitions(&body)?;
    with_indexes(request, |indexes| {
        indexes.put_analyzers(definitions)?;
        Ok(Response::empty(StatusCode::CREATED))
    })
    .await
}

fn definitions(body: &Value) -> Result<Vec<AnalyzerDefinition>> {
    listed(body, "Analyzers")?
        .iter()
        .map(|one| {
            AnalyzerDefinition::deserialize(one).map_err(|error| {
                ErrorKind::InvalidData
                    .error(format!("the definition of the analyzer cannot be read: {error}"))
            })
        })
        .collect()
}

async fn delete_analyzer(request: DatabaseRequest) -> Result<Response> {
    let name = request.query().require("name")?.into_owned();
    with_indexes(request, move |indexes| {
        indexes.delete_analyzer(&name)?;
        Ok(Response::no_content())
    })
    .await
}

async fn server_analyzers(request: ServerRequest) -> Result<Response> {
    Response::of(&json!({ "Analyzers": request.state.analyzers().list() }))
}

async fn put_server_analyzers(mut request: ServerRequest) -> Result<Response> {
    let definitions = definitions(&request.json().await?)?;
    let state = request.state.clone();
    blocking(move || state.change_analyzers(&definitions, None)).await?;
    Ok(Response::empty(StatusCode::CREATED))
}

async fn delete_server_analyzer(request: ServerRequest) -> Result<Response> {
    let name = request.query().require("name")?.into_owned();
    let state = request.state.clone();
    blocking(move || state.change_analyzers(&[], Some(&name))).await?;
    Ok(Response::no_content())
}

// ---- sorters ----

fn refuse_sorter(body: &Value) -> Result<Response> {
    let Some(first) = listed(body, "Sorters")?.first() else {
        return Ok(Response::empty(StatusCode::CREATED));
    };
    let name = first.get("Name").and_then(Value::as_str).unwrap_or_default();
    let code = first.get("Code").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() || code.is_empty() {
        return Err(ErrorKind::UnknownArgument.error("each of 'Sorters' needs a 'Name' and 'Code'"));
    }
    if !code.contains(&format!("class {name}")) {
        return Err(ErrorKind::SorterCompilation.error(format!(
            "Could not find type '{name}' in given assembly: the code of the sorter has no class of that name"
        )));
    }
    Err(ErrorKind::SorterCompilation.error(format!(
        "The sorter '{name}' cannot be compiled: this server runs no .NET code, so that sorters of one's own are not supported; order by fields of an index that say the order instead"
    )))
}
