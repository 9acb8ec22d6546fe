//! `/studio/sample-data`: fills an empty database with Northwind.

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

/// `operateOnTypes` may name more than documents; of the other types the sample has nothing here.
async fn load(request: DatabaseRequest) -> Result<Response> {
    let types = request.query().all("operateOnTypes").collect::<Result<Vec<_>>>()?;
    if !types.is_empty() && types.iter().all(|kind| !kind.eq_ignore_ascii_case("Documents")) {
        return Err(not_supported::feature("Sample data without documents"));
    }
    let database = request.database.clone();
    blocking(move || sample_data::load(&database)).await?;
    Ok(Response::no_content())
}
