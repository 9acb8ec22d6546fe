//! `POST /multi_get`: several reads in one request, each answered as if it had come alone.
//!
//! Each goes through the router to the handler that answers it otherwise, several at a time; the answers are in the order of the requests. Only
//! what reads is allowed, and only from the database that the request itself is for: a request inside a request could otherwise do what
//! whoever checked the outer one never saw. What is refused, or fails, is so for itself alone.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{ErrorKind, Result};
use crate::request::{DatabaseRequest, inner_request};
use crate::response::Response;
use crate::router::NormalPath;
use crate::routes::Routes;
use crate::service;
use crate::state::ServerState;

/// Requests of one `multi_get` that are answered at a time.
const AT_ONCE: usize = 8;
/// Bytes after which the answer is sent while it is made.
const WHOLE_SIZE_MAX: usize = 1 << 20;

/// The paths below a database that read with GET.
const READ_BY_GET: &[&str] = &[
    "/cmpxchg",
    "/collections/stats",
    "/collections/stats/detailed",
    "/configuration/client",
    "/counters",
    "/docs",
    "/docs/size",
    "/indexes",
    "/indexes/stats",
    "/indexes/terms",
    "/operations/state",
    "/queries",
    "/replication/conflicts",
    "/revisions",
    "/revisions/count",
    "/stats",
    "/stats/detailed",
    "/stats/essential",
    "/timeseries",
    "/timeseries/ranges",
    "/timeseries/stats",
];
/// Those that read with POST, because what is asked for can be too long for a URL.
const READ_BY_POST: &[&str] = &["/docs", "/queries"];

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::POST, "/multi_get", multi_get);
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Body {
    requests: Vec<Inner>,
}

/// One of the requests.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Inner {
    /// The path, with the database.
    url: String,
    /// With or without its `?`.
    #[serde(default)]
    query: Option<String>,
    /// Nothing means GET.
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    headers: Option<std::collections::HashMap<String, Option<String>>>,
    /// The body: JSON, or a text that holds it.
    #[serde(default)]
    content: Option<Box<RawValue>>,
}

async fn multi_get(mut request: DatabaseRequest) -> Result<Response> {
    let body: Body = request.json().await?;
    let database = request.parameter(0).to_owned();
    let state = request.state.clone();
    let answers = stream::iter(body.requests).map(move |inner| {
        let (state, database) = (state.clone(), database.clone());
        async move { answer(&state, &database, inner).await }
    });
    let mut results = Box::pin(answers.buffered(AT_ONCE).map(Answer::text));
    let mut out = Vec::from(*br#"{"Results":["#);
    if collect(&mut results, &mut out, true).await {
        return Ok(Response::json(out));
    }
    let (sender, response) = Response::stream_json();
    tokio::spawn(async move {
        loop {
            if sender.send(std::mem::take(&mut out)).await.is_err() {
                return;
            }
            if collect(&mut results, &mut out, false).await {
                break;
            }
        }
        if sender.send(out).await.is_ok() {
            sender.finish();
        }
    });
    Ok(response)
}

/// Adds results to the text until it is long enough to be sent, or all are there, which ends it; whether it did.
async fn collect(
    results: &mut (impl Stream<Item = Vec<u8>> + Unpin),
    out: &mut Vec<u8>,
    mut is_first: bool,
) -> bool {
    while out.len() < WHOLE_SIZE_MAX {
        let Some(result) = results.next().await else {
            out.extend_from_slice(b"]}");
            return true;
        };
        if !is_first {
            out.push(b',');
        }
        is_first = false;
        out.extend_from_slice(&result);
    }
    false
}

/// The answer to one of the requests.
struct Answer {
    status: StatusCode,
    etag: Option<HeaderValue>,
    /// JSON, or nothing.
    body: Bytes,
}

impl Answer {
    fn text(self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.body.len() + 96);
        text.extend_from_slice(br#"{"Result":"#);
        text.extend_from_slice(if self.body.is_empty() { b"null" } else { &self.body });
        text.extend_from_slice(format!(r#","StatusCode":{},"Headers":{{"#, self.status.as_u16()).as_bytes());
        if let Some(etag) = self.etag.as_ref().and_then(|etag| etag.to_str().ok()) {
            text.extend_from_slice(format!(r#""ETag":{}"#, serde_json::Value::from(etag)).as_bytes());
        }
        text.extend_from_slice(b"}}");
        text
    }
}

async fn answer(state: &Arc<ServerState>, database: &str, inner: Inner) -> Answer {
    let url = inner.url();
    let response = match run(state, database, inner, &url).await {
        Ok(response) => response,
        Err(error) => Response::of_error(&error, &url),
    };
    let (status, etag) = (response.status_code(), response.headers().get(header::ETAG).cloned());
    match response.into_bytes().await {
        // Clients take 304 as "what you have", and look at no header then.
        Ok(_) if status == StatusCode::NOT_MODIFIED => Answer { status, etag: None, body: Bytes::new() },
        Ok(body) => Answer { status, etag, body },
        Err(error) => Answer { status: error.kind().status(), etag: None, body: error.body(&url).into() },
    }
}

impl Inner {
    /// Path and query string.
    fn url(&self) -> String {
        let query = self.query.as_deref().unwrap_or_default();
        match query.strip_prefix('?').unwrap_or(query) {
            "" => self.url.clone(),
            query => format!("{}?{query}", self.url),
        }
    }
}

async fn run(state: &Arc<ServerState>, database: &str, inner: Inner, url: &str) -> Result<Response> {
    let method = match inner.method.as_deref() {
        None | Some("") => Method::GET,
        Some(method) => Method::from_bytes(method.to_ascii_uppercase().as_bytes())
            .map_err(|_| ErrorKind::BadRequest.error(format!("'{method}' is no HTTP method")))?,
    };
    check(&method, url, database)?;
    let body = inner.content.map_or(Ok(Bytes::new()), |content| body_of(&content))?;
    let headers = headers_of(inner.headers.unwrap_or_default());
    let (head, body) = inner_request(method, url, headers, body, state.body_limits())?;
    Ok(service::answer(state, head, body).await)
}

/// Whether a request is one of those that may come this way.
fn check(method: &Method, url: &str, database: &str) -> Result<()> {
    let path = url.split('?').next().unwrap_or_default();
    let path = NormalPath::parse(path).map_err(|error| ErrorKind::BadRequest.error(error.message()))?;
    let below = path.strip_prefix("/databases/").and_then(|rest| {
        let (name, _) = rest.split_once('/')?;
        Some((name, &rest[name.len()..]))
    });
    let Some((name, below)) = below else {
        return Err(ErrorKind::BadRequest
            .error(format!("{path}: only requests to a database can be part of a multi_get")));
    };
    if name.to_lowercase() != database.to_lowercase() {
        return Err(ErrorKind::BadRequest
            .error(format!("{path}: a multi_get of database '{database}' cannot ask another database")));
    }
    let allowed = match *method {
        Method::GET | Method::HEAD => READ_BY_GET,
        Method::POST => READ_BY_POST,
        _ => &[],
    };
    if !allowed.contains(&below) {
        return Err(ErrorKind::BadRequest.error(format!(
            "{method} {below} cannot be part of a multi_get, which is for requests that read a little and change nothing"
        )));
    }
    Ok(())
}

/// Most clients send the body as it is, one as a text that holds it.
fn body_of(content: &RawValue) -> Result<Bytes> {
    let text = content.get();
    if text == "null" {
        return Ok(Bytes::new());
    }
    let text: Cow<'_, str> = match text.starts_with('"') {
        true => Cow::Owned(serde_json::from_str(text)?),
        false => Cow::Borrowed(text),
    };
    Ok(Bytes::copy_from_slice(text.as_bytes()))
}

/// What cannot be a header is left out, as is what describes a body that was unpacked already.
fn headers_of(sent: std::collections::HashMap<String, Option<String>>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in sent {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = value.map(|value| HeaderValue::from_str(&value));
        if let (Ok(name), Some(Ok(value))) = (name, value)
            && ![header::CONTENT_ENCODING, header::CONTENT_LENGTH, header::TRANSFER_ENCODING].contains(&name)
        {
            headers.insert(name, value);
        }
    }
    headers
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn only_reads_of_the_same_database_are_let_through() {
        for (method, url, expected) in [
            ("GET", "/databases/X/docs?id=a", true),
            ("GET", "/databases/x/docs", true),
            ("HEAD", "/databases/X/docs?id=a", true),
            ("POST", "/databases/X/queries?queryHash=1", true),
            ("POST", "/databases/X/docs", true),
            ("GET", "/databases/%58/do%63s?id=a", true),
            ("PUT", "/databases/X/docs?id=a", false),
            ("DELETE", "/databases/X/docs?id=a", false),
            ("PATCH", "/databases/X/docs?id=a", false),
            ("GET", "/databases/Y/docs?id=a", false),
            ("GET", "/databases/X/../Y/docs?id=a", false),
            ("GET", "/databases/X%2fdocs", false),
            ("GET", "/databases/X", false),
            ("GET", "/build/version", false),
            ("GET", "/admin/databases?name=X", false),
            ("POST", "/databases/X/multi_get", false),
            ("POST", "/databases/X/bulk_docs", false),
            ("GET", "/databases/X/hilo/next?tag=a", false),
            ("GET", "/databases/X/operations/next-operation-id", false),
            ("GET", "/databases/X/changes", false),
            ("GET", "/databases/X/streams/docs", false),
            ("GET", "http://other/databases/X/docs", false),
            ("GET", "", false),
        ] {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            assert_eq!(check(&method, url, "X").is_ok(), expected, "{method} {url}");
        }
    }

    #[test]
    fn bodies_are_taken_as_they_are_or_out_of_a_text() {
        for (content, expected) in [
            (r#"{"Query":"from X","N":1.10}"#, r#"{"Query":"from X","N":1.10}"#),
            (r#""{\"Query\":\"from X\"}""#, r#"{"Query":"from X"}"#),
            ("null", ""),
        ] {
            let content: Box<RawValue> = serde_json::from_str(content).expect("JSON");
            assert_eq!(body_of(&content).expect("a body"), expected.as_bytes());
        }
    }

    #[test]
    fn answers_have_every_key() {
        let etag = HeaderValue::from_static("\"A:1-x\"");
        for (answer, expected) in [
            (
                Answer { status: StatusCode::OK, etag: Some(etag), body: r#"{"a":1.10}"#.into() },
                r#"{"Result":{"a":1.10},"StatusCode":200,"Headers":{"ETag":"\"A:1-x\""}}"#,
            ),
            (
                Answer { status: StatusCode::NOT_FOUND, etag: None, body: Bytes::new() },
                r#"{"Result":null,"StatusCode":404,"Headers":{}}"#,
            ),
        ] {
            assert_eq!(String::from_utf8(answer.text()).expect("UTF-8"), expected);
        }
    }
}
