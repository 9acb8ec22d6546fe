//! `/hilo` and `/identity`: ids that nobody else gets.

use http::{Method, StatusCode};
use jackdaw_document::date::Date;

use crate::databases::blocking;
use crate::error::{ErrorKind, Result};
use crate::json_text as json;
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;
use crate::wire::database_record::NODE_TAG;

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::GET, "/hilo/next", next_range);
    routes.database(Method::PUT, "/hilo/return", return_range);
    routes.database(Method::POST, "/identity/next", next_identity);
    routes.database(Method::POST, "/identity/seed", seed_identity);
    routes.database(Method::GET, "/debug/identities", identities);
}

async fn next_range(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let tag = query.require("tag")?.into_owned();
    let size = query.number::<i64>("lastBatchSize")?.unwrap_or(0);
    let max = query.number::<i64>("lastMax")?.unwrap_or(0);
    let separator = query.get_filled("identityPartsSeparator")?.unwrap_or("/".into()).into_owned();
    // Clients write nothing, `None`, or a date in any of several precisions; what cannot be read means "long ago".
    let at =
        query.get_filled("lastRangeAt")?.and_then(|at| Date::parse(at.as_bytes())).map_or(0, Date::utc_ticks);
    let prefix = format!("{tag}{separator}");
    let range =
        request.database.submit(move |transaction| transaction.next_hilo_range(&tag, size, at, max)).await?;
    let mut out = Vec::with_capacity(128);
    out.push(b'{');
    json::string(&mut out, "Prefix", &prefix);
    json::number(&mut out, "Low", range.low);
    json::number(&mut out, "High", range.high);
    json::number(&mut out, "LastSize", range.size);
    json::string(&mut out, "ServerTag", NODE_TAG);
    json::date(&mut out, "LastRangeAt", range.at);
    out.push(b'}');
    Ok(Response::json(out).status(StatusCode::CREATED))
}

async fn return_range(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let tag = query.require("tag")?.into_owned();
    let (end, last) = (number(&request, "end")?, number(&request, "last")?);
    request.database.submit(move |transaction| transaction.return_hilo_range(&tag, end, last)).await?;
    Ok(Response::empty(StatusCode::OK))
}

/// A number that must be there.
fn number(request: &DatabaseRequest, name: &'static str) -> Result<i64> {
    let query = request.query();
    query.require(name)?;
    query.number(name)?.ok_or_else(|| ErrorKind::Argument.error(format!("Query string {name} has no value.")))
}

async fn next_identity(request: DatabaseRequest) -> Result<Response> {
    let name = request.query().require("name")?.into_owned();
    let value = request.database.submit(move |transaction| transaction.next_identity(&name)).await?;
    Response::of(&serde_json::json!({ "NewIdentityValue": value }))
}

async fn seed_identity(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let name = query.require("name")?.into_owned();
    let value = number(&request, "value")?;
    let force = query.flag("force")?.unwrap_or(false);
    let value =
        request.database.submit(move |transaction| transaction.seed_identity(&name, value, force)).await?;
    Response::of(&serde_json::json!({ "NewSeedValue": value }))
}

async fn identities(request: DatabaseRequest) -> Result<Response> {
    let database = request.database.clone();
    let identities = blocking(move || Ok(database.read()?.identities()?)).await?;
    let identities: serde_json::Map<_, _> =
        identities.into_iter().map(|(name, value)| (name, value.into())).collect();
    Response::of(&identities)
}
