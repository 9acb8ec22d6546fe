//! `/studio/sample-data`: fills an empty database with Northwind, indexes included.

use http::Method;

use crate::databases::blocking;
use crate::endpoints::not_supported;
use crate::error::Result;
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;
use crate::sample_data;

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::POST, "/studio/sample-data", load);
}

/// `operateOnTypes` says what: documents, indexes, or when it is not there both. Of other types the sample has nothing here.
async fn load(request: DatabaseRequest) -> Result<Response> {
    let types = request.query().all("operateOnTypes").collect::<Result<Vec<_>>>()?;
    let names: Vec<&str> = types.iter().flat_map(|names| names.split(',')).map(str::trim).collect();
    let is_asked =
        |name: &str| names.is_empty() || names.iter().any(|other| other.eq_ignore_ascii_case(name));
    let (documents, indexes) = (is_asked("Documents"), is_asked("Indexes"));
    if !documents && !indexes {
        return Err(not_supported::feature("Sample data without documents and indexes"));
    }
    let database = request.database.clone();
    blocking(move || {
        if documents {
            sample_data::load(&database)?;
        }
        if indexes {
            sample_data::load_indexes(database.indexes())?;
        }
        Ok(())
    })
    .await?;
    Ok(Response::no_content())
}
