//! The changes API: a WebSocket on which clients say what they watch, and hear of it.

mod session;

use http::Method;

use crate::error::Result;
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;
use crate::websocket;

pub(crate) fn routes(routes: &mut Routes) {
    routes.database_inline(Method::GET, "/changes", changes);
}

fn changes(mut request: DatabaseRequest) -> Result<Response> {
    let url = request.state.url_for(request.headers());
    let (response, upgrade) = websocket::accept(&mut request.request, &request.state)?;
    tokio::spawn(session::run(upgrade, request.state, request.database, url));
    Ok(response)
}
