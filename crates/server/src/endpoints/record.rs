//! The record of one database, seen from inside.

use http::{Method, StatusCode};
use serde_json::Value;

use crate::error::Result;
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;
use crate::wire::database_record::settings_of;
use crate::wire::indexes;

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::GET, "/admin/record", record);
    routes.database(Method::GET, "/admin/configuration/settings", settings);
    routes.database(Method::PUT, "/admin/configuration/settings", put_settings);
}

async fn record(request: DatabaseRequest) -> Result<Response> {
    let mut record = request.database.record().to_wire();
    indexes::add_to_record(request.database.indexes(), &mut record);
    Response::of(&record)
}

async fn settings(request: DatabaseRequest) -> Result<Response> {
    Response::of(&request.database.record().settings)
}

/// Replaces all settings of the database. They take effect when it is next loaded.
async fn put_settings(mut request: DatabaseRequest) -> Result<Response> {
    let settings = settings_of(&request.json::<Value>().await?)?;
    let name = request.database.name().to_owned();
    request
        .state
        .databases()
        .change(&name, |record, _| {
            record.settings = settings;
            Ok(())
        })
        .await?;
    Ok(Response::empty(StatusCode::CREATED))
}
