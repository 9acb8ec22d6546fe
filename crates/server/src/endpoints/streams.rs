//! `/streams`: as many documents as there are, in constant memory.

use std::ops::ControlFlow;

use http::Method;
use jackdaw_database::{Database, Fields, StoredDocument, print_document};
use jackdaw_storage::Order;

use crate::endpoints::listing::Wildcards;
use crate::endpoints::paging::Paging;
use crate::error::{ErrorKind, Result};
use crate::request::DatabaseRequest;
use crate::response::{ClientGone, PieceSender, PieceWriter, Response};
use crate::routes::Routes;

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::GET, "/streams/docs", documents);
}

/// How the stream is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    /// One object with an array.
    Json,
    /// A document a line.
    Lines,
}

/// Which documents.
struct Wanted {
    prefix: Option<String>,
    after: Option<String>,
    from_etag: Option<i64>,
    wildcards: Wildcards,
    paging: Paging,
}

async fn documents(request: DatabaseRequest) -> Result<Response> {
    let query = request.query();
    let format = match query.get_filled("format")? {
        None => Format::Json,
        Some(format) if format.eq_ignore_ascii_case("jsonl") => Format::Lines,
        Some(format) if format.eq_ignore_ascii_case("json") => Format::Json,
        Some(format) => {
            return Err(
                ErrorKind::Argument.error(format!("'{format}' is no format of a stream; json and jsonl are"))
            );
        }
    };
    let wanted = Wanted {
        prefix: query.get("startsWith")?.map(|prefix| prefix.into_owned()),
        after: query.get_filled("startAfter")?.map(|after| after.into_owned()),
        from_etag: query.number("etag")?,
        wildcards: Wildcards::of(query)?,
        paging: Paging::of(query)?,
    };
    let database = request.database.clone();
    let (sender, response) = Response::stream_json();
    tokio::task::spawn_blocking(move || {
        let mut pieces = PieceWriter::new(sender);
        match write_all(&database, wanted, format, &mut pieces) {
            // Nobody reads the end when the client is gone.
            Ok(()) => drop(pieces.end().map(PieceSender::finish)),
            Err(error) => {
                tracing::warn!(database = %database.name(), %error, "a stream of documents was broken off")
            }
        }
    });
    Ok(response)
}

fn write_all(database: &Database, wanted: Wanted, format: Format, pieces: &mut PieceWriter) -> Result<()> {
    let Wanted { prefix, after, from_etag, wildcards, mut paging } = wanted;
    let (begin, between, behind, end): (&[u8], &[u8], &[u8], &[u8]) = match format {
        Format::Json => (b"{\"Results\":[", b",", b"", b"]}"),
        Format::Lines => (b"", b"", b"\r\n", b""),
    };
    let snapshot = database.read()?;
    let prefix_length = prefix.as_deref().map_or(0, str::len);
    let mut is_first = true;
    // A client that is gone shows again with the next piece.
    let _ = pieces.print(|out| out.extend_from_slice(begin));
    let visit = |document: StoredDocument<'_>| {
        if !wildcards.matches(document.id.get(prefix_length..).unwrap_or_default()) {
            return Ok(ControlFlow::Continue(()));
        }
        Ok(paging.page(|| {
            let sent = pieces.print(|out| {
                if !std::mem::take(&mut is_first) {
                    out.extend_from_slice(between);
                }
                print_document(&document, Fields::All, out);
                out.extend_from_slice(behind);
            });
            ClientGone::breaks(sent)
        }))
    };
    match prefix {
        Some(prefix) => snapshot.documents_by_prefix(&prefix, after.as_deref(), visit)?,
        None => match from_etag {
            Some(etag) => snapshot.documents_by_etag(etag, Order::Ascending, visit)?,
            None => snapshot.documents_by_etag(i64::MAX, Order::Descending, visit)?,
        },
    }
    // As above.
    let _ = pieces.print(|out| out.extend_from_slice(end));
    Ok(())
}
