//! `/docs`: single documents, several, by prefix, all; storing and deleting one.

use std::borrow::Cow;
use std::ops::ControlFlow;

use http::{Method, StatusCode};
use jackdaw_database::{
    Expected, Fields, IncomingDocument, PutOptions, StoredDocument, Transaction, ids, print_document,
};
use jackdaw_query::includes::{Include, Includes};
use jackdaw_storage::Order;
use xxhash_rust::xxh3::Xxh3;

use crate::contexts::with_context_for;
use crate::endpoints::listing::{Wildcards, list_documents};
use crate::endpoints::not_supported;
use crate::endpoints::paging::fields;
use crate::error::{ErrorKind, Result};
use crate::json_text as json;
use crate::query_string::Query;
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;
use crate::wire::size::humane;

/// Bytes that a write may have so that the thread which has its connection may do it itself, when nobody else writes.
pub(super) const SHORT_JOB_SIZE_MAX: usize = 16 << 10;

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::GET, "/docs", get);
    routes.database(Method::POST, "/docs", get_posted);
    routes.database(Method::HEAD, "/docs", head);
    routes.database(Method::PUT, "/docs", put);
    routes.database(Method::DELETE, "/docs", delete);
    routes.database(Method::GET, "/docs/size", size);
}

async fn get(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    refuse_unknown_includes(query)?;
    if query.has("startsWith") {
        return by_prefix(request).await;
    }
    let ids = query.all("id").collect::<Result<Vec<_>>>()?;
    match ids.is_empty() {
        true => all(request).await,
        false => load(&request, &ids),
    }
}

/// The ids stand in the body because there are many.
async fn get_posted(mut request: DatabaseRequest) -> Result<Response> {
    refuse_unknown_includes(request.query())?;
    let body = request.bytes().await?;
    let ids = with_context_for(body.len(), |context| {
        let body = context.parse(&body)?;
        let ids = ["Ids", "ids", "IDS"].iter().find_map(|name| body.get(name)).and_then(|ids| ids.as_array());
        let ids = ids
            .ok_or_else(|| ErrorKind::InvalidData.error("the body must be an object with an array 'Ids'"))?;
        ids.iter()
            .map(|id| match id.as_str() {
                Some(id) => Ok(Cow::Owned(id.into_owned())),
                None => {
                    Err(ErrorKind::InvalidData
                        .error(format!("'Ids' must hold strings, not {}", id.type_name())))
                }
            })
            .collect::<Result<Vec<Cow<'static, str>>>>()
    })?;
    load(&request, &ids)
}

/// What later versions will include is refused: leaving it out would look like there is none.
fn refuse_unknown_includes(query: Query<'_>) -> Result<()> {
    for (name, feature) in [
        ("counter", "Counters"),
        ("timeseries", "Time series"),
        ("timeseriestime", "Time series"),
        ("timeseriescount", "Time series"),
        ("revisions", "Revisions"),
        ("revisionsBefore", "Revisions"),
    ] {
        if query.has(name) {
            return Err(not_supported::feature(feature));
        }
    }
    Ok(())
}

/// A path to include. Error: it is none.
fn include(text: &str) -> Result<Include> {
    Include::parse(text)
        .map_err(|error| ErrorKind::Argument.error(format!("'{text}' is no path to include: {error}")))
}

/// Documents by their ids.
fn load(request: &DatabaseRequest, wanted: &[Cow<'_, str>]) -> Result<Response> {
    let query = request.query();
    let fields = fields(query)?;
    let include_paths = query.all("include").map(|path| include(&path?)).collect::<Result<Vec<_>>>()?;
    let exchange_paths = query.all("cmpxchg").map(|path| include(&path?)).collect::<Result<Vec<_>>>()?;
    let is_cluster_wide = query.get("txMode")?.is_some_and(|mode| mode.eq_ignore_ascii_case("ClusterWide"));
    let snapshot = request.database.read()?;
    let mut documents = Vec::with_capacity(wanted.len());
    for id in wanted {
        let mut document = snapshot.document(id)?;
        if let Some(document) = document.as_mut().filter(|_| is_cluster_wide) {
            snapshot.mark_with_guard(document)?;
        }
        documents.push(document);
    }
    if let [None] = &*documents {
        return Ok(Response::not_found());
    }
    let mut includes = Includes::default();
    for document in documents.iter().flatten() {
        includes.collect(&document.document.root(), &include_paths, &exchange_paths);
    }
    let asked: Vec<Cow<'_, str>> = wanted.iter().map(|id| ids::lower(id)).collect();
    let included = includes.documents(&snapshot, |id| asked.iter().any(|asked| asked == id))?;
    let is_alone = include_paths.is_empty() && exchange_paths.is_empty() && !is_cluster_wide;
    let etag = match (&*documents, is_alone) {
        ([Some(document)], true) => document.change_vector.to_string(),
        _ => {
            let all = documents.iter().map(Option::as_ref).chain(included.iter().map(Some));
            let exchange = includes.compare_exchange_indexes(&snapshot)?;
            hash_of(fields, all, &exchange)
        }
    };
    if request.if_none_match() == Some(&etag) {
        return Ok(Response::not_modified());
    }
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"{\"Results\":[");
    for document in &documents {
        json::separate(&mut out);
        match document {
            Some(document) => print_document(document, fields, &mut out),
            None => out.extend_from_slice(b"null"),
        }
    }
    out.extend_from_slice(b"],\"Includes\":{");
    for (i, document) in included.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        jackdaw_database::append_json_string(document.id, &mut out);
        out.push(b':');
        print_document(document, Fields::All, &mut out);
    }
    out.push(b'}');
    if !exchange_paths.is_empty() {
        json::name(&mut out, "CompareExchangeValueIncludes");
        includes.print_compare_exchange(&snapshot, &mut out)?;
    }
    out.push(b'}');
    Ok(Response::json(out).etag(&etag))
}

/// An opaque etag for what several documents make together.
fn hash_of<'d>(
    fields: Fields,
    documents: impl Iterator<Item = Option<&'d StoredDocument<'d>>>,
    exchange: &[i64],
) -> String {
    let mut hash = Xxh3::new();
    hash.update(&[u8::from(fields == Fields::Metadata)]);
    let mut vector = Vec::new();
    for document in documents {
        vector.clear();
        if let Some(document) = document {
            document.change_vector.append_to(&mut vector);
        }
        vector.push(b'\n');
        hash.update(&vector);
    }
    exchange.iter().for_each(|index| hash.update(&index.to_le_bytes()));
    format!("Hash-{:032x}", hash.digest128())
}

/// Documents whose ids begin alike, in the order of their ids.
async fn by_prefix(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let prefix = query.get("startsWith")?.unwrap_or_default().into_owned();
    let wildcards = Wildcards::of(query)?;
    let after = query.get_filled("startAfter")?.map(Cow::into_owned);
    list_documents(request, move |snapshot, list| {
        snapshot.documents_by_prefix(&prefix, after.as_deref(), |document| {
            Ok(match wildcards.matches(document.id.get(prefix.len()..).unwrap_or_default()) {
                true => list(&document),
                false => ControlFlow::Continue(()),
            })
        })
    })
    .await
}

/// All documents, the newest first.
async fn all(request: DatabaseRequest) -> Result<Response> {
    list_documents(request, |snapshot, list| {
        snapshot.documents_by_etag(i64::MAX, Order::Descending, |document| Ok(list(&document)))
    })
    .await
}

async fn head(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let id = query.require("id")?;
    let snapshot = request.database.read()?;
    let Some(document) = snapshot.document(&id)? else { return Ok(Response::not_found()) };
    let etag = document.change_vector.to_string();
    if request.if_none_match() == Some(&etag) {
        return Ok(Response::not_modified());
    }
    Ok(Response::empty(StatusCode::OK).etag(&etag))
}

async fn put(mut request: DatabaseRequest) -> Result<Response> {
    let id = request.query().require("id")?.into_owned();
    let expected = Expected::from_text(request.if_match());
    let body = request.bytes().await?;
    let database = &request.database;
    let document = with_context_for(body.len(), |context| IncomingDocument::parse(&body, context, database))?;
    drop(body);
    let options = PutOptions { expected, ..PutOptions::default() };
    let is_short = document.as_bytes().len() <= SHORT_JOB_SIZE_MAX;
    let job = move |transaction: &mut Transaction<'_>| transaction.put(&id, &document, options);
    let stored = if is_short { database.submit_short(job) } else { database.submit(job) }.await?;
    let mut out = Vec::with_capacity(128);
    out.push(b'{');
    json::string(&mut out, "Id", &stored.id);
    json::string(&mut out, "ChangeVector", &stored.change_vector);
    out.push(b'}');
    Ok(Response::json(out).status(StatusCode::CREATED))
}

async fn delete(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let id = query.require("id")?.into_owned();
    let expected = Expected::from_text(request.if_match());
    request.database.submit_short(move |transaction| transaction.delete(&id, &expected)).await?;
    Ok(Response::no_content())
}

async fn size(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let id = query.require("id")?;
    let snapshot = request.database.read()?;
    let Some(document) = snapshot.document(&id)? else { return Ok(Response::not_found()) };
    let size = document.document.as_bytes().len() as u64;
    let humane = humane(size);
    Response::of(&serde_json::json!({
        "ActualSize": size,
        "HumaneActualSize": humane,
        "AllocatedSize": size,
        "HumaneAllocatedSize": humane,
        "IsCompressed": false,
        "DocId": document.id,
    }))
}
