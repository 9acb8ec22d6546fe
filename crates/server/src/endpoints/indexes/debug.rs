//! Looking into map/reduce indexes.

use http::Method;
use serde_json::json;

use super::with_indexes;
use crate::error::{ErrorKind, Result};
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;

/// Results given at most, unless the request says otherwise.
const RESULTS: usize = 128;

pub(super) fn routes(routes: &mut Routes) {
    routes.database(Method::GET, "/indexes/debug", debug);
}

/// `op=map-reduce-tree&docId=` gives the trees of the keys that a document has results of; `op=map-reduce-results` the stored results.
async fn debug(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let name = query.require("name")?.into_owned();
    let operation = query.require("op")?.into_owned();
    let id = query.get_filled("docId")?.map(|id| id.into_owned());
    let start = query.number("start")?.unwrap_or(0);
    let count = query.number("pageSize")?.unwrap_or(RESULTS);
    with_indexes(request, move |all| {
        let index = all.require(&name)?;
        if !index.kind().is_map_reduce() {
            let message = format!(
                "The index '{}' is not a map/reduce index, so there are no results to look into.",
                index.name()
            );
            return Err(ErrorKind::InvalidOperation.error(message));
        }
        match (operation.as_str(), id) {
            ("map-reduce-tree", Some(id)) => match index.trees_of_document(&id)? {
                Some(trees) => Response::of(&json!({ "Results": trees })),
                None => Ok(Response::not_found()),
            },
            ("map-reduce-tree", None) => {
                Err(ErrorKind::BadRequest.error("Query string 'docId' is mandatory, but wasn't specified."))
            }
            ("map-reduce-results", _) => {
                Response::of(&json!({ "Results": index.stored_results(start, count)? }))
            }
            (other, _) => {
                let known = "'map-reduce-tree' and 'map-reduce-results' are known";
                Err(ErrorKind::BadRequest
                    .error(format!("The operation '{other}' of /indexes/debug is not known: {known}.")))
            }
        }
    })
    .await
}
