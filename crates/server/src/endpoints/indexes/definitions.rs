//! Definitions: put, get, delete, reset, compare.

use http::{Method, StatusCode};
use jackdaw_indexing::IndexDefinition;
use serde_json::{Value, json};

use super::with_indexes;
use crate::endpoints::paging::Paging;
use crate::error::{ErrorKind, Result};
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;
use crate::wire::indexes;

pub(super) fn routes(routes: &mut Routes) {
    routes.database(Method::PUT, "/indexes", put);
    routes.database(Method::PUT, "/admin/indexes", put);
    routes.database(Method::GET, "/indexes", get);
    routes.database(Method::DELETE, "/indexes", delete);
    routes.database(Method::POST, "/indexes/has-changed", has_changed);
    routes.database(Method::GET, "/indexes/history", history);
    if let Ok(method) = Method::from_bytes(b"RESET") {
        routes.database(method, "/indexes", reset);
    }
}

async fn put(mut request: DatabaseRequest) -> Result<Response> {
    let body: Value = request.json().await?;
    let Some(Value::Array(definitions)) = body.get("Indexes") else {
        return Err(ErrorKind::UnknownArgument
            .error("Request should have a property name 'Indexes' which is mandatory."));
    };
    let definitions = definitions.iter().map(IndexDefinition::from_json).collect::<Result<Vec<_>, _>>()?;
    with_indexes(request, |indexes| {
        let results: Vec<Value> = indexes
            .put(definitions)?
            .into_iter()
            .map(|put| json!({ "Index": put.name, "RaftCommandIndex": put.raft_index }))
            .collect();
        Ok(Response::of(&json!({ "Results": results }))?.status(StatusCode::CREATED))
    })
    .await
}

/// One definition by name, or a page of all, whole or as names.
async fn get(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let name = query.get_filled("name")?.map(|name| name.into_owned());
    let names_only = query.flag("namesOnly")?.unwrap_or(false);
    let mut paging = Paging::of(query)?;
    with_indexes(request, move |all| {
        let mut results = Vec::new();
        match name {
            Some(name) => match all.get(&name) {
                Some(index) => results.push(indexes::definition(&index)),
                None => return Ok(Response::not_found()),
            },
            None => {
                for index in all.list() {
                    let page = paging.page(|| {
                        results.push(if names_only {
                            index.name().into()
                        } else {
                            indexes::definition(&index)
                        });
                        std::ops::ControlFlow::Continue(())
                    });
                    if page.is_break() {
                        break;
                    }
                }
            }
        }
        Response::of(&json!({ "Results": results }))
    })
    .await
}

async fn delete(request: DatabaseRequest) -> Result<Response> {
    let name = request.query().require("name")?.into_owned();
    with_indexes(request, move |indexes| {
        Ok(if indexes.delete(&name)? { Response::no_content() } else { Response::not_found() })
    })
    .await
}

async fn reset(request: DatabaseRequest) -> Result<Response> {
    let name = request.query().require("name")?.into_owned();
    with_indexes(request, move |indexes| {
        indexes.reset(&name)?;
        Ok(Response::no_content())
    })
    .await
}

async fn has_changed(mut request: DatabaseRequest) -> Result<Response> {
    let definition = IndexDefinition::from_json(&request.json().await?)?;
    with_indexes(request, move |indexes| {
        Response::of(&json!({ "Changed": indexes.has_changed(&definition) }))
    })
    .await
}

/// Only the present definition: older ones are not kept.
async fn history(request: DatabaseRequest) -> Result<Response> {
    let name = request.query().require("name")?.into_owned();
    with_indexes(request, move |all| {
        let index = all.require(&name)?;
        let entry = json!({
            "Definition": indexes::definition(&index),
            "CreatedAt": jackdaw_database::clock::date_text(index.created()),
            "Source": "",
            "RollingDeployment": {},
        });
        Response::of(&json!({ "Index": index.name(), "History": [entry] }))
    })
    .await
}
