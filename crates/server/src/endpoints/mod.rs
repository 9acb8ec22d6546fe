//! The endpoints, one file for each area of the API. Each adds its routes; what a route is, [`crate::routes`] says.

mod admin_databases;
mod build;
mod bulk_docs;
mod bulk_insert;
mod by_query;
mod changes;
mod collections;
mod compare_exchange;
mod configuration;
mod documents;
mod health;
mod hilo;
mod indexes;
mod landing;
mod list_databases;
mod listing;
mod logs;
mod metrics;
mod multi_get;
mod not_supported;
mod operations;
mod paging;
mod patches;
mod queries;
mod record;
mod sample_data;
mod smuggler;
mod statistics;
mod streams;
mod topology;
mod wait_for_indexes;

use crate::router::Router;
use crate::routes::{Route, Routes};

/// All routes.
pub(crate) fn router() -> Router<Route> {
    let mut routes = Routes::new();
    admin_databases::routes(&mut routes);
    build::routes(&mut routes);
    bulk_docs::routes(&mut routes);
    bulk_insert::routes(&mut routes);
    by_query::routes(&mut routes);
    changes::routes(&mut routes);
    collections::routes(&mut routes);
    compare_exchange::routes(&mut routes);
    configuration::routes(&mut routes);
    documents::routes(&mut routes);
    health::routes(&mut routes);
    hilo::routes(&mut routes);
    indexes::routes(&mut routes);
    landing::routes(&mut routes);
    list_databases::routes(&mut routes);
    logs::routes(&mut routes);
    metrics::routes(&mut routes);
    multi_get::routes(&mut routes);
    not_supported::routes(&mut routes);
    operations::routes(&mut routes);
    patches::routes(&mut routes);
    queries::routes(&mut routes);
    record::routes(&mut routes);
    sample_data::routes(&mut routes);
    smuggler::routes(&mut routes);
    statistics::routes(&mut routes);
    streams::routes(&mut routes);
    topology::routes(&mut routes);
    #[cfg(test)]
    routes.server_inline(http::Method::GET, "/test/panic", |_| panic!("on purpose"));
    routes.into_router()
}
