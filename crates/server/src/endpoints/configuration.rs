//! What clients are told to do, for the whole server and for one database.

use http::{Method, StatusCode};
use serde_json::json;

use crate::databases::blocking;
use crate::error::Result;
use crate::request::{DatabaseRequest, ServerRequest};
use crate::response::Response;
use crate::routes::Routes;
use crate::service::effective_client_configuration;
use crate::wire::client_configuration::ClientConfiguration;

/// The etag that stands for "there is none".
const NO_ETAG: i64 = -2;

pub(crate) fn routes(routes: &mut Routes) {
    routes.server(Method::GET, "/configuration/client", get_of_server);
    routes.server(Method::GET, "/admin/configuration/client", get_of_server);
    routes.server(Method::PUT, "/admin/configuration/client", put_of_server);
    routes.database(Method::GET, "/configuration/client", get_of_database);
    routes.database(Method::PUT, "/admin/configuration/client", put_of_database);
}

async fn get_of_server(request: ServerRequest) -> Result<Response> {
    match request.state.client_configuration() {
        Some(configuration) => Response::of(&*configuration),
        None => Ok(Response::not_found()),
    }
}

async fn put_of_server(mut request: ServerRequest) -> Result<Response> {
    let mut configuration: ClientConfiguration = request.json().await?;
    let state = request.state.clone();
    blocking(move || {
        configuration.etag = state.system().cluster_index().advance();
        state.set_client_configuration(configuration)
    })
    .await?;
    Ok(Response::empty(StatusCode::CREATED))
}

async fn get_of_database(request: DatabaseRequest) -> Result<Response> {
    let configuration = effective_client_configuration(&request.state, &request.database);
    let etag = configuration.as_ref().map_or(NO_ETAG, |configuration| configuration.etag);
    Response::of(&json!({ "Etag": etag, "Configuration": configuration }))
}

async fn put_of_database(mut request: DatabaseRequest) -> Result<Response> {
    let mut configuration: ClientConfiguration = request.json().await?;
    let name = request.database.name().to_owned();
    request
        .state
        .databases()
        .change(&name, |record, index| {
            configuration.etag = index;
            record.client = Some(configuration);
            Ok(())
        })
        .await?;
    Ok(Response::empty(StatusCode::CREATED))
}
