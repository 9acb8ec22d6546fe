//! `/streams`: as many documents as there are, in constant memory.

use std::ops::ControlFlow;

use http::Method;
use jackdaw_database::{Database, Fields, StoredDocument, print_document};
use jackdaw_storage::Order;

use crate::endpoints::documents::{Page, Paging};
use crate::endpoints::listing::Wildcards;
use crate::error::{ErrorKind, Result};
use crate::request::DatabaseRequest;
use crate::response::{PieceSender, Response};
use crate::routes::Routes;

/// The size of a piece.
const PIECE_SIZE: usize = 64 << 10;

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
        let mut stream = Stream { sender, format, out: Vec::with_capacity(PIECE_SIZE), is_first: true };
        match stream.send_all(&database, wanted) {
            Ok(()) => stream.sender.finish(),
            Err(error) => {
                tracing::warn!(database = %database.name(), %error, "a stream of documents was broken off")
            }
        }
    });
    Ok(response)
}

struct Stream {
    sender: PieceSender,
    format: Format,
    out: Vec<u8>,
    is_first: bool,
}

impl Stream {
    fn send_all(&mut self, database: &Database, wanted: Wanted) -> Result<()> {
        let Wanted { prefix, after, from_etag, wildcards, mut paging } = wanted;
        if self.format == Format::Json {
            self.out.extend_from_slice(b"{\"Results\":[");
        }
        let snapshot = database.read()?;
        let prefix_length = prefix.as_deref().map_or(0, str::len);
        let visit = |document: StoredDocument<'_>| {
            if !wildcards.matches(document.id.get(prefix_length..).unwrap_or_default()) {
                return Ok(ControlFlow::Continue(()));
            }
            Ok(match paging.next() {
                Page::Before => ControlFlow::Continue(()),
                Page::Inside => self.add(&document),
                Page::Behind => ControlFlow::Break(()),
            })
        };
        match prefix {
            Some(prefix) => snapshot.documents_by_prefix(&prefix, after.as_deref(), visit)?,
            None => match from_etag {
                Some(etag) => snapshot.documents_by_etag(etag, Order::Ascending, visit)?,
                None => snapshot.documents_by_etag(i64::MAX, Order::Descending, visit)?,
            },
        }
        if self.format == Format::Json {
            self.out.extend_from_slice(b"]}");
        }
        // Nobody reads it when the client is gone.
        let _ = self.sender.send_blocking(std::mem::take(&mut self.out));
        Ok(())
    }

    fn add(&mut self, document: &StoredDocument<'_>) -> ControlFlow<()> {
        if !std::mem::take(&mut self.is_first) && self.format == Format::Json {
            self.out.push(b',');
        }
        print_document(document, Fields::All, &mut self.out);
        if self.format == Format::Lines {
            self.out.extend_from_slice(b"\r\n");
        }
        if self.out.len() < PIECE_SIZE {
            return ControlFlow::Continue(());
        }
        let piece = std::mem::replace(&mut self.out, Vec::with_capacity(PIECE_SIZE + PIECE_SIZE / 4));
        match self.sender.send_blocking(piece) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}
