//! What routes lead to: handlers, by what they need.
//!
//! Each file of `endpoints` adds its routes in `pub(crate) fn routes(routes: &mut Routes)`:
//!
//! ```text
//! routes.server(Method::GET, "/build/version", version);      // async fn(ServerRequest) -> Result<Response>
//! routes.database(Method::GET, "/docs", get_documents);       // /databases/{db}/docs; async fn(DatabaseRequest) -> Result<Response>
//! ```
//!
//! A handler runs on a thread that serves connections: what may take longer than a few hundred microseconds goes through
//! [`crate::databases::blocking`]. `..._inline` takes handlers that never wait, which saves them a future of their own.

use std::future::Future;
use std::pin::Pin;

use http::Method;

use crate::error::Result;
use crate::request::{DatabaseRequest, ServerRequest};
use crate::response::Response;
use crate::router::Router;

/// All routes of the API without a server behind them, for tools that list or try them.
pub struct RouteTable(Router<Route>);

impl RouteTable {
    /// The routes of every server.
    #[expect(clippy::new_without_default, reason = "there is nothing default about all routes")]
    pub fn new() -> RouteTable {
        RouteTable(crate::endpoints::router())
    }

    /// Methods and routes; a parameter of a route is in braces.
    pub fn all(&self) -> impl Iterator<Item = (&Method, &str)> {
        self.0.routes().iter().map(|(method, route)| (method, &**route))
    }

    /// Whether a request would find a handler. Does all the work that finding it takes, and allocates nothing.
    pub fn has(&self, method: &Method, path: &str) -> bool {
        self.0.find(method, path).is_ok()
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Response>> + Send>>;

/// A handler.
pub(crate) enum Route {
    Server(Box<dyn Fn(ServerRequest) -> Answer + Send + Sync>),
    ServerInline(fn(ServerRequest) -> Result<Response>),
    Database(Box<dyn Fn(DatabaseRequest) -> Answer + Send + Sync>),
    DatabaseInline(fn(DatabaseRequest) -> Result<Response>),
}

/// Takes the routes of all endpoints.
pub(crate) struct Routes(Router<Route>);

impl Routes {
    pub(crate) fn new() -> Routes {
        Routes(Router::new())
    }

    pub(crate) fn into_router(self) -> Router<Route> {
        self.0
    }

    /// A path from the root.
    pub(crate) fn server<F>(
        &mut self,
        method: Method,
        path: &str,
        handler: impl Fn(ServerRequest) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<Response>> + Send + 'static,
    {
        self.0.add(method, path, Route::Server(Box::new(move |request| Box::pin(handler(request)))));
    }

    /// As [`Routes::server`], for a handler that never waits.
    pub(crate) fn server_inline(
        &mut self,
        method: Method,
        path: &str,
        handler: fn(ServerRequest) -> Result<Response>,
    ) {
        self.0.add(method, path, Route::ServerInline(handler));
    }

    /// A path below `/databases/{db}`. The database is loaded before the handler is called.
    pub(crate) fn database<F>(
        &mut self,
        method: Method,
        path: &str,
        handler: impl Fn(DatabaseRequest) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<Response>> + Send + 'static,
    {
        let handler = Route::Database(Box::new(move |request| Box::pin(handler(request))));
        self.0.add(method, &below_database(path), handler);
    }

    /// As [`Routes::database`], for a handler that never waits: it may read a few documents, but not write.
    pub(crate) fn database_inline(
        &mut self,
        method: Method,
        path: &str,
        handler: fn(DatabaseRequest) -> Result<Response>,
    ) {
        self.0.add(method, &below_database(path), Route::DatabaseInline(handler));
    }
}

fn below_database(path: &str) -> String {
    format!("/databases/{{db}}{path}")
}
