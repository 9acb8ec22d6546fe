//! `/cmpxchg`: values on which a whole cluster agrees.

use std::ops::ControlFlow;

use http::Method;
use jackdaw_database::{CompareExchange, CompareExchangeResult};
use jackdaw_document::{Document, Style, Value};

use crate::contexts::with_context_for;
use crate::databases::blocking;
use crate::endpoints::bulk_docs::compare_exchange_value;
use crate::endpoints::paging::Paging;
use crate::error::{ErrorKind, Result};
use crate::json_text as json;
use crate::query_string::Query;
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;

/// How many values a listing has unless it says.
const PAGE_SIZE: u64 = 1024;

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::GET, "/cmpxchg", get);
    routes.database(Method::PUT, "/cmpxchg", put);
    routes.database(Method::DELETE, "/cmpxchg", delete);
}

async fn get(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let keys = query.all("key").collect::<Result<Vec<_>>>()?;
    if keys.is_empty() {
        return list(request).await;
    }
    let snapshot = request.database.read()?;
    let found = keys.iter().map(|key| Ok(snapshot.compare_exchange(key)?)).collect::<Result<Vec<_>>>()?;
    if let [None] = &*found {
        return Ok(Response::not_found());
    }
    let mut out = b"{\"Results\":[".to_vec();
    for (key, found) in keys.iter().zip(&found) {
        json::separate(&mut out);
        match found {
            // Clients look for the key as they asked for it.
            Some(found) => print(key, found, &mut out),
            None => {
                out.push(b'{');
                json::string(&mut out, "Key", key);
                json::raw(&mut out, "Value", b"null");
                json::number(&mut out, "Index", -1);
                out.push(b'}');
            }
        }
    }
    out.extend_from_slice(b"]}");
    Ok(Response::json(out))
}

async fn list(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let prefix = query.get("startsWith")?.unwrap_or_default().into_owned();
    let mut paging = Paging::of(query)?.at_most(PAGE_SIZE, query.has("pageSize"));
    let database = request.database.clone();
    blocking(move || {
        let snapshot = database.read()?;
        let mut out = b"{\"Results\":[".to_vec();
        snapshot.compare_exchange_by_prefix(&prefix, |found| {
            Ok(paging.page(|| {
                json::separate(&mut out);
                print(found.key, &found, &mut out);
                ControlFlow::Continue(())
            }))
        })?;
        out.extend_from_slice(b"]}");
        Ok(Response::json(out))
    })
    .await
}

fn print(key: &str, found: &CompareExchange<'_>, out: &mut Vec<u8>) {
    out.push(b'{');
    json::string(out, "Key", key);
    json::number(out, "Index", found.index);
    json::name(out, "Value");
    found.value.print_to(out, Style::Compact);
    out.push(b'}');
}

async fn put(mut request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let key = query.require("key")?.into_owned();
    let index = index_of(query)?;
    let request_id = request_id(&request)?;
    let body = request.bytes().await?;
    let value = with_context_for(body.len(), |context| {
        let body = context.parse(&body)?;
        match body.root() {
            value @ Value::Object(_) => compare_exchange_value(&value, context),
            other => Err(ErrorKind::InvalidData
                .error(format!("the body must be an object, not {}", other.type_name()))),
        }
    })?;
    let answer = request.database.submit(move |transaction| {
        once(request_id, transaction, |transaction| transaction.put_compare_exchange(&key, index, &value))
    });
    Ok(Response::json(answer.await?))
}

async fn delete(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let key = query.require("key")?.into_owned();
    let index = index_of(query)?;
    let request_id = request_id(&request)?;
    let answer = request.database.submit(move |transaction| {
        once(request_id, transaction, |transaction| transaction.delete_compare_exchange(&key, index))
    });
    Ok(Response::json(answer.await?))
}

/// The index that the value must have; it must be said.
fn index_of(query: Query<'_>) -> Result<i64> {
    query.require("index")?;
    Ok(query.number("index")?.unwrap_or(0))
}

fn request_id(request: &DatabaseRequest) -> Result<Option<String>> {
    Ok(request.query().get_filled("raft-request-id")?.map(|id| id.into_owned()))
}

/// Runs a write once for each id of a request, and writes its answer.
fn once(
    request_id: Option<String>,
    transaction: &mut jackdaw_database::Transaction<'_>,
    write: impl FnOnce(&mut jackdaw_database::Transaction<'_>) -> jackdaw_database::Result<CompareExchangeResult>,
) -> jackdaw_database::Result<Vec<u8>> {
    if let Some(id) = &request_id
        && let Some(answer) = transaction.answer_of_request(id)?
    {
        return Ok(answer.to_vec());
    }
    let result = write(transaction)?;
    let mut out = Vec::with_capacity(128);
    out.push(b'{');
    json::number(&mut out, "Index", result.index);
    json::name(&mut out, "Value");
    match &result.value {
        Some(value) => Document::open(value)?.print_to(&mut out, Style::Compact),
        None => out.extend_from_slice(b"null"),
    }
    json::raw(&mut out, "Successful", if result.successful { b"true" } else { b"false" });
    out.push(b'}');
    if let Some(id) = &request_id {
        transaction.keep_answer_of_request(id, &out)?;
    }
    Ok(out)
}
