//! What the protocol has and this server does not, yet: each is refused as what its client shows as "not supported", so that nothing is
//! silently left out.

use http::Method;

use crate::error::{ErrorKind, Result, WireError};
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;

pub(crate) fn routes(routes: &mut Routes) {
    let all: &[(&'static str, &[(Method, &str)])] = &[
        (
            "Attachments",
            &[
                (Method::GET, "/attachments"),
                (Method::HEAD, "/attachments"),
                (Method::POST, "/attachments"),
                (Method::PUT, "/attachments"),
                (Method::DELETE, "/attachments"),
                (Method::POST, "/attachments/bulk"),
            ],
        ),
        ("Counters", &[(Method::GET, "/counters"), (Method::POST, "/counters")]),
        (
            "Time series",
            &[
                (Method::GET, "/timeseries"),
                (Method::POST, "/timeseries"),
                (Method::GET, "/timeseries/ranges"),
                (Method::GET, "/timeseries/stats"),
                (Method::POST, "/timeseries/names/config"),
                (Method::POST, "/admin/timeseries/config"),
                (Method::POST, "/admin/timeseries/policy"),
                (Method::GET, "/streams/timeseries"),
            ],
        ),
        (
            "Revisions",
            &[
                (Method::GET, "/revisions"),
                (Method::GET, "/revisions/count"),
                (Method::GET, "/revisions/bin"),
                (Method::POST, "/admin/revisions/config"),
                (Method::POST, "/admin/revisions/conflicts/config"),
                (Method::GET, "/revisions/config"),
                (Method::DELETE, "/admin/revisions"),
            ],
        ),
        (
            "Subscriptions",
            &[
                (Method::GET, "/subscriptions"),
                (Method::PUT, "/subscriptions"),
                (Method::POST, "/subscriptions"),
                (Method::DELETE, "/subscriptions"),
                (Method::GET, "/subscriptions/state"),
                (Method::POST, "/subscriptions/drop"),
                (Method::POST, "/subscriptions/update"),
            ],
        ),
        (
            "Expiration, refreshing and archiving of documents",
            &[
                (Method::POST, "/admin/expiration/config"),
                (Method::POST, "/admin/refresh/config"),
                (Method::POST, "/admin/data-archival/config"),
            ],
        ),
        ("Compression of documents by collection", &[(Method::POST, "/admin/documents-compression/config")]),
        (
            "Connection strings and ongoing tasks",
            &[
                (Method::GET, "/admin/connection-strings"),
                (Method::PUT, "/admin/connection-strings"),
                (Method::DELETE, "/admin/connection-strings"),
                (Method::GET, "/task"),
                (Method::GET, "/tasks"),
                (Method::POST, "/admin/tasks/state"),
                (Method::DELETE, "/admin/tasks"),
                (Method::PUT, "/admin/etl"),
                (Method::POST, "/admin/periodic-backup"),
                (Method::POST, "/admin/tasks/external-replication"),
            ],
        ),
    ];
    for (name, each) in all {
        for (method, path) in *each {
            let refuse = |_: DatabaseRequest| -> std::future::Ready<Result<Response>> {
                std::future::ready(Err(feature(name)))
            };
            routes.database(method.clone(), path, refuse);
        }
    }
}

/// The refusal of a whole feature.
pub(crate) fn feature(name: &str) -> WireError {
    ErrorKind::NotSupported.error(format!("{name}: not supported by this version of the server."))
}
