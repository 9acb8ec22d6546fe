//! Indexes: definitions, what may be done with them, and what they tell. All of it may wait for the disk, so all of it blocks elsewhere.

mod admin;
mod debug;
mod definitions;
mod extensions;
mod statistics;

use jackdaw_indexing::Indexes;

use crate::databases::blocking;
use crate::error::Result;
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;

pub(crate) fn routes(routes: &mut Routes) {
    admin::routes(routes);
    debug::routes(routes);
    definitions::routes(routes);
    extensions::routes(routes);
    statistics::routes(routes);
}

/// Answers with what `work` makes of the database's indexes, on a thread that may block.
async fn with_indexes(
    request: DatabaseRequest,
    work: impl FnOnce(&Indexes) -> Result<Response> + Send + 'static,
) -> Result<Response> {
    let DatabaseRequest { database, .. } = request;
    blocking(move || work(database.indexes())).await
}

/// All values of `name`, without empty ones: clients write `?&name=`.
fn names(request: &DatabaseRequest) -> Result<Vec<String>> {
    let all = request.query().all("name").map(|name| Ok(name?.into_owned()));
    let all: Vec<String> = all.collect::<Result<_>>()?;
    Ok(all.into_iter().filter(|name| !name.is_empty()).collect())
}
