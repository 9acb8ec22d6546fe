//! The endpoints, one file for each area of the API. Each adds its routes; what a route is, [`crate::routes`] says.

mod admin_databases;
mod build;
mod changes;
mod configuration;
mod health;
mod list_databases;
mod logs;
mod metrics;
mod multi_get;
mod operations;
mod record;
mod topology;

use crate::router::Router;
use crate::routes::{Route, Routes};

/// All routes.
pub(crate) fn router() -> Router<Route> {
    let mut routes = Routes::new();
    admin_databases::routes(&mut routes);
    build::routes(&mut routes);
    changes::routes(&mut routes);
    configuration::routes(&mut routes);
    health::routes(&mut routes);
    list_databases::routes(&mut routes);
    logs::routes(&mut routes);
    metrics::routes(&mut routes);
    multi_get::routes(&mut routes);
    operations::routes(&mut routes);
    record::routes(&mut routes);
    topology::routes(&mut routes);
    routes.into_router()
}
