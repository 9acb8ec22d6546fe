//! `/collections/docs`: the documents of one collection, the last written first.

use http::Method;
use jackdaw_storage::Order;

use crate::endpoints::listing::list_documents;
use crate::error::Result;
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::GET, "/collections/docs", documents);
}

async fn documents(request: DatabaseRequest) -> Result<Response> {
    let name = request.query().require("name")?.into_owned();
    list_documents(request, move |snapshot, list| {
        snapshot.documents_of_collection(&name, i64::MAX, Order::Descending, |document| Ok(list(&document)))
    })
    .await
}
