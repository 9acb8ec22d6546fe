//! From a request to its answer: finds the route and the database, calls the handler, turns errors into answers, adds what all answers
//! have, counts and logs.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, Uri, header};
use hyper::body::Incoming;

use crate::body::RequestBody;
use crate::connection::Connection;
use crate::databases::LoadedDatabase;
use crate::error::{ErrorKind, Result, WireError};
use crate::request::{DatabaseRequest, Request, ServerRequest, unquoted};
use crate::response::{
    DATABASE_CLUSTER_TX_ID, REFRESH_CLIENT_CONFIGURATION, REFRESH_TOPOLOGY, Response, ResponseBody,
};
use crate::router::{NoMatch, NormalPath};
use crate::routes::Route;
use crate::state::ServerState;
use crate::wire::client_configuration::ClientConfiguration;
use crate::wire::database_record::DatabaseRecord;

/// The etag of the cluster's topology: one node, which never changes.
pub(crate) const CLUSTER_TOPOLOGY_ETAG: i64 = 1;

const YES: HeaderValue = HeaderValue::from_static("true");

/// Answers a request that came over a connection.
pub(crate) async fn serve(
    state: Arc<ServerState>,
    connection: Arc<Connection>,
    request: http::Request<Incoming>,
) -> Result<http::Response<ResponseBody>, Infallible> {
    let begun = Instant::now();
    connection.request_begins();
    let open = OpenRequest::begin(&state);
    let (head, incoming) = request.into_parts();
    let accept_encoding = head.headers.get(header::ACCEPT_ENCODING).cloned();
    let closes = head
        .headers
        .get(header::CONNECTION)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"));
    let told = Told { method: head.method.clone(), uri: head.uri.clone() };
    let body = RequestBody::of_connection(incoming, &head.headers, state.body_limits(), &state);
    let outcome = match body {
        Ok(body) => AssertUnwindSafe(dispatch(&state, head, body)).catch_unwind().await,
        Err(error) => Ok(Err(error)),
    };
    let response = match outcome {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => Response::of_error(&error, told.url()),
        Err(panic) => after_panic(&state, panic, &told),
    };
    if response.status_code() == StatusCode::SWITCHING_PROTOCOLS {
        connection.is_upgraded();
    }
    let took = begun.elapsed();
    state.metrics().answered(response.status_code(), took);
    drop(open);
    log(&state, &connection, &told, response.status_code(), took);
    let mut response = response.complete(accept_encoding.as_ref(), Some(connection));
    if closes {
        response.body_mut().hide_size();
    }
    Ok(response)
}

/// What is kept of a request for messages about it.
struct Told {
    method: Method,
    uri: Uri,
}

impl Told {
    fn url(&self) -> &str {
        self.uri.path_and_query().map_or("", |url| url.as_str())
    }
}

/// Counts a request as open until it is answered or its connection ends.
struct OpenRequest<'s>(&'s ServerState);

impl OpenRequest<'_> {
    fn begin(state: &ServerState) -> OpenRequest<'_> {
        state.metrics().requests_open.fetch_add(1, Ordering::Relaxed);
        OpenRequest(state)
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.0.metrics().requests_open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A handler panicked: a bug, which must not take down what else goes on.
#[cold]
fn after_panic(state: &ServerState, panic: Box<dyn std::any::Any + Send>, told: &Told) -> Response {
    state.metrics().panics.fetch_add(1, Ordering::Relaxed);
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!(method = %told.method, url = told.url(), panic = %text, "a request's handler panicked");
    let error = ErrorKind::Internal.error("the server failed to handle the request; its log has more");
    Response::of_error(&error, told.url())
}

fn log(state: &ServerState, connection: &Connection, told: &Told, status: StatusCode, took: Duration) {
    let settings = state.settings();
    let is_slow = !settings.log_slow_requests.is_zero() && took > settings.log_slow_requests;
    if is_slow {
        state.metrics().requests_slow.fetch_add(1, Ordering::Relaxed);
    }
    if !is_slow && !settings.log_requests {
        return;
    }
    let (took_ms, status, peer) = (took.as_secs_f64() * 1e3, status.as_u16(), connection.peer());
    match is_slow {
        true => {
            tracing::warn!(target: "jackdaw::requests", method = %told.method, url = told.url(), status, took_ms, %peer, "slow request");
        }
        false => {
            tracing::info!(target: "jackdaw::requests", method = %told.method, url = told.url(), status, took_ms, %peer, "request");
        }
    }
}

/// Answers a request, wherever it came from: over a connection, or as a part of another request. Errors are answers too.
pub(crate) async fn answer(state: &Arc<ServerState>, head: Parts, body: RequestBody) -> Response {
    let uri = head.uri.clone();
    let url = || uri.path_and_query().map_or("", |url| url.as_str());
    match dispatch(state, head, body).await {
        Ok(response) => response,
        Err(error) => Response::of_error(&error, url()),
    }
}

async fn dispatch(state: &Arc<ServerState>, head: Parts, body: RequestBody) -> Result<Response> {
    let path =
        NormalPath::parse(head.uri.path()).map_err(|error| ErrorKind::BadRequest.error(error.message()))?;
    let found = state.router().find(&head.method, &path);
    let (route, parameters) = found.map_err(|no_match| no_route(no_match, &head))?;
    let decoded_path = match path {
        std::borrow::Cow::Borrowed(_) => None,
        std::borrow::Cow::Owned(path) => Some(path.into_boxed_str()),
    };
    let request = Request::new(head, decoded_path, parameters, body);
    match route {
        Route::Server(handler) => {
            let refresh = wants_cluster_topology(&request);
            let request = ServerRequest { state: state.clone(), request };
            let mut response = handler(request).await?;
            if refresh {
                response.headers_mut().insert(REFRESH_TOPOLOGY, YES);
            }
            Ok(response)
        }
        Route::ServerInline(handler) => handler(ServerRequest { state: state.clone(), request }),
        Route::Database(handler) => {
            let (database, request) = with_database(state, request).await?;
            let about = About::new(state, &database, &request);
            about.complete(handler(DatabaseRequest { state: state.clone(), database, request }).await)
        }
        Route::DatabaseInline(handler) => {
            let (database, request) = with_database(state, request).await?;
            let about = About::new(state, &database, &request);
            about.complete(handler(DatabaseRequest { state: state.clone(), database, request }))
        }
    }
}

#[cold]
fn no_route(no_match: NoMatch, head: &Parts) -> WireError {
    let url = head.uri.path_and_query().map_or("", |url| url.as_str());
    let method = &head.method;
    let error = ErrorKind::RouteNotFound.error(format!("There is no handler for path: {method} {url}"));
    match no_match {
        NoMatch::Path => error,
        NoMatch::Method => error.with("Reason", "the path exists, but not with this method"),
    }
}

async fn with_database(state: &Arc<ServerState>, request: Request) -> Result<(Arc<LoadedDatabase>, Request)> {
    let database = state.databases().get(request.parameter(0)).await?;
    Ok((database, request))
}

/// What answers about a database have in common.
struct About {
    cluster_transaction_id: HeaderValue,
    refresh_topology: bool,
    refresh_client_configuration: bool,
}

impl About {
    fn new(state: &ServerState, database: &LoadedDatabase, request: &Request) -> About {
        let record = database.record();
        let headers = request.headers();
        let number = |name: &'static str| headers.get(name).and_then(etag_of);
        let known_topology = number("topology-etag");
        let refresh_client_configuration = match number("client-configuration-etag") {
            // A client that has none says so with a word that is no number, or with nothing.
            None => false,
            Some(known) => client_configuration_etag(state, &record).is_some_and(|current| current != known),
        };
        About {
            cluster_transaction_id: database.cluster_transaction_id_header().clone(),
            refresh_topology: known_topology.is_some_and(|known| known < record.topology_etag),
            refresh_client_configuration,
        }
    }

    fn complete(self, mut outcome: Result<Response>) -> Result<Response> {
        let headers = match &mut outcome {
            Ok(response) => response.headers_mut(),
            Err(error) => error.headers_mut(),
        };
        headers.insert(DATABASE_CLUSTER_TX_ID, self.cluster_transaction_id);
        if self.refresh_topology {
            headers.insert(REFRESH_TOPOLOGY, YES);
        }
        if self.refresh_client_configuration {
            headers.insert(REFRESH_CLIENT_CONFIGURATION, YES);
        }
        outcome
    }
}

/// The etag of what clients of a database are told to do, without a copy of it: every request of a client asks.
fn client_configuration_etag(state: &ServerState, record: &DatabaseRecord) -> Option<i64> {
    let own = record.client.as_ref().filter(|own| !own.disabled).map(|own| own.etag);
    own.or_else(|| state.client_configuration().filter(|all| !all.disabled).map(|all| all.etag))
}

/// What clients of a database are told to do: its own configuration, else the server's.
pub(crate) fn effective_client_configuration(
    state: &ServerState,
    database: &LoadedDatabase,
) -> Option<ClientConfiguration> {
    let own = database.record().client.clone().filter(|own| !own.disabled);
    own.or_else(|| state.client_configuration().filter(|all| !all.disabled).map(|all| (*all).clone()))
}

fn wants_cluster_topology(request: &Request) -> bool {
    let known = request.headers().get("cluster-topology-etag").and_then(etag_of);
    known.is_some_and(|known| known < CLUSTER_TOPOLOGY_ETAG) && !request.path().contains("/topology")
}

/// `"742"`, `742`; nothing for `"None"` and the like.
fn etag_of(value: &HeaderValue) -> Option<i64> {
    unquoted(value.to_str().ok()?).parse().ok()
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test fails by panicking")]
mod tests {
    use std::io::{Read, Write};

    use crate::{LogControl, Server, Settings};

    #[test]
    fn a_panic_is_an_answer_and_takes_nothing_down() {
        let directory = tempfile::tempdir().expect("a directory");
        let settings = Settings { port: 0, data_dir: directory.path().to_owned(), ..Settings::default() };
        let runtime = tokio::runtime::Runtime::new().expect("threads");
        let server = runtime.block_on(Server::start(settings, LogControl::none())).expect("a server");
        let mut socket = std::net::TcpStream::connect(server.address()).expect("a connection");
        let requests = b"GET /test/panic HTTP/1.1\r\nHost: x\r\n\r\nGET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        socket.write_all(requests).expect("sent");
        let mut answers = String::new();
        socket.read_to_string(&mut answers).expect("answers");
        assert!(answers.starts_with("HTTP/1.1 500 "), "{answers}");
        assert!(answers.contains("RavenException"), "{answers}");
        assert!(!answers.contains("on purpose"), "what went wrong inside is for the log");
        assert!(answers.contains("\njackdaw_http_panics_total 1\n"), "{answers}");
        runtime.block_on(server.stop());
    }
}
