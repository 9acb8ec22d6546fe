//! `/collections/docs`: the documents of one collection, the last written first.

use std::ops::ControlFlow;

use http::Method;
use jackdaw_database::print_document;
use jackdaw_storage::Order;

use crate::endpoints::documents::{Page, Paging, fields};
use crate::endpoints::listing::Listing;
use crate::error::Result;
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::GET, "/collections/docs", documents);
}

async fn documents(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let name = query.require("name")?.into_owned();
    let mut paging = Paging::of(query)?;
    let fields = fields(query)?;
    let known = request.if_none_match().map(str::to_owned);
    let database = request.database.clone();
    Listing::new("Results", known)
        .run(move |listing| {
            let snapshot = database.read()?;
            if listing.is_known(snapshot.change_vector()?) {
                return Ok(());
            }
            snapshot.documents_of_collection(&name, i64::MAX, Order::Descending, |document| {
                Ok(match paging.next() {
                    Page::Before => ControlFlow::Continue(()),
                    Page::Inside => {
                        let listed = listing.add(|out| print_document(&document, fields, out));
                        if paging.is_full() { ControlFlow::Break(()) } else { listed }
                    }
                    Page::Behind => ControlFlow::Break(()),
                })
            })?;
            listing.finish();
            Ok(())
        })
        .await
}
