//! What indexes tell: statistics, errors, terms, staleness, how far they are.

use std::sync::Arc;

use http::Method;
use jackdaw_indexing::{Index, Indexes};
use serde_json::{Value, json};

use super::{names, with_indexes};
use crate::error::Result;
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;
use crate::wire::indexes;

/// Terms given at most, unless the request says otherwise.
const TERMS: usize = i32::MAX as usize;

pub(super) fn routes(routes: &mut Routes) {
    routes.database(Method::GET, "/indexes/stats", stats);
    routes.database(Method::GET, "/indexes/status", status);
    routes.database(Method::GET, "/indexes/errors", errors);
    routes.database(Method::GET, "/indexes/terms", terms);
    routes.database(Method::GET, "/indexes/staleness", staleness);
    routes.database(Method::GET, "/indexes/progress", progress);
    routes.database(Method::GET, "/indexes/performance", performance);
    routes.database(Method::GET, "/indexes/total-time", total_time);
}

/// Those of the given names that there are; all when none is given.
fn chosen(all: &Indexes, names: &[String]) -> Vec<Arc<Index>> {
    match names {
        [] => all.list(),
        names => names.iter().filter_map(|name| all.get(name)).collect(),
    }
}

fn results(results: Vec<Value>) -> Result<Response> {
    Response::of(&json!({ "Results": results }))
}

async fn stats(request: DatabaseRequest) -> Result<Response> {
    let names = names(&request)?;
    with_indexes(request, move |all| {
        let chosen = chosen(all, &names);
        if chosen.is_empty() && !names.is_empty() {
            return Ok(Response::not_found());
        }
        results(chosen.iter().map(|index| indexes::statistics(index)).collect::<Result<_>>()?)
    })
    .await
}

async fn status(request: DatabaseRequest) -> Result<Response> {
    let all = request.database.indexes();
    let each: Vec<Value> = all
        .list()
        .iter()
        .map(|index| json!({ "Name": index.name(), "Status": index.status().as_str() }))
        .collect();
    let status = if all.is_paused() { "Paused" } else { "Running" };
    Response::of(&json!({ "Status": status, "Indexes": each }))
}

async fn errors(request: DatabaseRequest) -> Result<Response> {
    let names = names(&request)?;
    with_indexes(request, move |all| {
        let chosen = match &names[..] {
            [] => all.list(),
            names => names.iter().map(|name| all.require(name)).collect::<Result<_, _>>()?,
        };
        results(chosen.iter().map(|index| indexes::errors(index)).collect::<Result<_>>()?)
    })
    .await
}

async fn terms(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let name = query.require("name")?.into_owned();
    let field = query.require("field")?.into_owned();
    let after = query.get_filled("fromValue")?.map(|after| after.into_owned());
    let count = query.number("pageSize")?.unwrap_or(TERMS);
    let known = request.if_none_match().and_then(|known| known.parse::<i64>().ok());
    with_indexes(request, move |all| {
        let index = all.require(&name)?;
        let (view, is_stale) = (index.view()?, index.is_stale()?);
        let etag = view.result_etag(is_stale);
        if known == Some(etag) {
            return Ok(Response::not_modified());
        }
        let terms = index.terms(&view, &field, after.as_deref(), count)?;
        let answer = json!({ "IndexName": index.name(), "ResultEtag": etag, "Terms": terms });
        Ok(Response::of(&answer)?.header(http::header::ETAG, etag.to_string()))
    })
    .await
}

async fn staleness(request: DatabaseRequest) -> Result<Response> {
    let name = request.query().require("name")?.into_owned();
    with_indexes(request, move |all| {
        let reasons = all.require(&name)?.staleness()?;
        Response::of(&json!({ "IsStale": !reasons.is_empty(), "StalenessReasons": reasons }))
    })
    .await
}

/// Of those that are not done.
async fn progress(request: DatabaseRequest) -> Result<Response> {
    with_indexes(request, |all| {
        let mut out = Vec::new();
        for index in all.list() {
            if !index.is_faulty() && index.is_stale()? {
                out.push(indexes::progress(&index)?);
            }
        }
        results(out)
    })
    .await
}

async fn performance(request: DatabaseRequest) -> Result<Response> {
    let chosen = chosen(request.database.indexes(), &names(&request)?);
    results(chosen.iter().map(|index| indexes::performance(index)).collect())
}

async fn total_time(request: DatabaseRequest) -> Result<Response> {
    let span = |ms: f64| {
        let ticks = (ms * 1e4) as u64;
        let (seconds, fraction) = (ticks / 10_000_000, ticks % 10_000_000);
        format!("{:02}:{:02}:{:02}.{fraction:07}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    };
    let each: Vec<Value> = request
        .database
        .indexes()
        .list()
        .iter()
        .map(|index| {
            let total: f64 = index.batches().iter().map(|batch| batch.duration_ms).sum();
            json!({ "Name": index.name(), "TotalIndexingTime": span(total), "LagTime": "00:00:00" })
        })
        .collect();
    Response::of(&each)
}
