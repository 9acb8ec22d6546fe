//! The page at `/`: databases, collections, documents, one document. Plain files, built into the binary; a studio will take their place.

use http::{HeaderName, HeaderValue, Method, header};

use crate::error::Result;
use crate::response::Response;
use crate::routes::Routes;

/// The page loads nothing from elsewhere and runs no script that is not its own file.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

pub(crate) fn routes(routes: &mut Routes) {
    routes.server_inline(Method::GET, "/", |_| {
        page("text/html; charset=utf-8", include_bytes!("../../assets/landing.html"))
    });
    routes.server_inline(Method::GET, "/landing.js", |_| {
        page("text/javascript; charset=utf-8", include_bytes!("../../assets/landing.js"))
    });
    routes.server_inline(Method::GET, "/landing.css", |_| {
        page("text/css; charset=utf-8", include_bytes!("../../assets/landing.css"))
    });
}

fn page(content_type: &'static str, bytes: &'static [u8]) -> Result<Response> {
    Ok(Response::bytes(content_type, bytes)
        .header(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))
        .header(header::CONTENT_SECURITY_POLICY, POLICY)
        .header(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff")))
}
