//! A request as endpoints see it.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, header};
use hyper::upgrade::OnUpgrade;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::body::{BodyLimits, RequestBody};
use crate::databases::LoadedDatabase;
use crate::error::{ErrorKind, Result};
use crate::query_string::Query;
use crate::router::Parameters;
use crate::state::ServerState;

/// A request whose route was found.
pub(crate) struct Request {
    head: Parts,
    /// The decoded path, where it differs from the one in `head`.
    decoded_path: Option<Box<str>>,
    parameters: Parameters,
    body: RequestBody,
}

impl Request {
    pub(crate) fn new(
        head: Parts,
        decoded_path: Option<Box<str>>,
        parameters: Parameters,
        body: RequestBody,
    ) -> Request {
        Request { head, decoded_path, parameters, body }
    }

    /// The path, decoded.
    pub(crate) fn path(&self) -> &str {
        self.decoded_path.as_deref().unwrap_or(self.head.uri.path())
    }

    /// The value of the route's parameter at `index`, decoded: 0 is the database's name in routes of databases.
    pub(crate) fn parameter(&self, index: usize) -> &str {
        self.parameters.get(self.path(), index).unwrap_or_default()
    }

    pub(crate) fn query(&self) -> Query<'_> {
        Query::new(self.head.uri.query().unwrap_or_default())
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// A header's value; `None` when it is missing or not text.
    pub(crate) fn header(&self, name: HeaderName) -> Option<&str> {
        self.head.headers.get(name)?.to_str().ok()
    }

    /// What the client has already, as `If-None-Match` tells, without its quotes.
    pub(crate) fn if_none_match(&self) -> Option<&str> {
        self.header(header::IF_NONE_MATCH).map(unquoted)
    }

    /// The change vector that `If-Match` expects, without its quotes.
    pub(crate) fn if_match(&self) -> Option<&str> {
        self.header(header::IF_MATCH).map(unquoted)
    }

    /// The body, to be read piece by piece.
    pub(crate) fn body(&mut self) -> &mut RequestBody {
        &mut self.body
    }

    /// The body alone, to be kept beyond the request's other parts.
    pub(crate) fn into_body(self) -> RequestBody {
        self.body
    }

    /// The whole body, decoded, within the limit.
    pub(crate) async fn bytes(&mut self) -> Result<Bytes> {
        self.body.bytes().await
    }

    /// The whole body as a small JSON object of a known shape. Documents do not come this way: `jackdaw_document` parses those.
    pub(crate) async fn json<T: DeserializeOwned>(&mut self) -> Result<T> {
        let invalid = |what: &'static str| ErrorKind::InvalidData.error(what);
        let bytes = self.bytes().await?;
        if bytes.is_empty() {
            return Err(invalid("the body is empty; it must be a JSON object"));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| invalid("the body is not UTF-8"))?;
        // By way of a value: a shape would also be read from an array of its members.
        let value: Value = serde_json::from_str(text)?;
        if !value.is_object() {
            return Err(invalid("the body must be a JSON object"));
        }
        Ok(T::deserialize(value)?)
    }

    /// The connection for a WebSocket, once 101 was answered; `None` when the client did not ask for one.
    pub(crate) fn take_upgrade(&mut self) -> Option<OnUpgrade> {
        self.head.extensions.remove()
    }
}

/// Etags and change vectors come quoted or not.
pub(crate) fn unquoted(value: &str) -> &str {
    let value = value.trim();
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

/// A request to the server as a whole.
pub(crate) struct ServerRequest {
    pub(crate) state: Arc<ServerState>,
    pub(crate) request: Request,
}

/// A request to one database, which is loaded.
pub(crate) struct DatabaseRequest {
    pub(crate) state: Arc<ServerState>,
    pub(crate) database: Arc<LoadedDatabase>,
    pub(crate) request: Request,
}

impl std::ops::Deref for ServerRequest {
    type Target = Request;

    fn deref(&self) -> &Request {
        &self.request
    }
}

impl std::ops::DerefMut for ServerRequest {
    fn deref_mut(&mut self) -> &mut Request {
        &mut self.request
    }
}

impl std::ops::Deref for DatabaseRequest {
    type Target = Request;

    fn deref(&self) -> &Request {
        &self.request
    }
}

impl std::ops::DerefMut for DatabaseRequest {
    fn deref_mut(&mut self) -> &mut Request {
        &mut self.request
    }
}

/// A request that another one carries (`multi_get`), or that a test makes.
pub(crate) fn inner_request(
    method: Method,
    url: &str,
    headers: HeaderMap,
    body: Bytes,
    limits: BodyLimits,
) -> Result<(Parts, RequestBody)> {
    let built = http::Request::builder().method(method).uri(url).body(());
    let (mut head, ()) = built
        .map_err(|error| ErrorKind::BadRequest.error(format!("'{url}' is no URL: {error}")))?
        .into_parts();
    head.headers = headers;
    Ok((head, RequestBody::in_memory(body, limits)))
}
