//! `/queries` and `/streams/queries`: the answer to a query, whole while it is small, sent while it is made when it is not.
//!
//! What took no time when it was asked before is answered on the thread that serves the connection, unless the answer gets long; everything
//! else on threads that may block.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, header};
use jackdaw_database::clock;
use jackdaw_document::Context;
use jackdaw_query::{Error as QueryError, Head, Layout, Outcome, Prepared, Request, Sink};
use tokio::sync::oneshot;

use crate::contexts::with_context;
use crate::databases::LoadedDatabase;
use crate::error::{ErrorKind, Result, WireError};
use crate::request::DatabaseRequest;
use crate::response::{PieceSender, Response};
use crate::routes::Routes;

/// An answer of more bytes is streamed.
const WHOLE_SIZE_MAX: usize = 4 << 20;
/// Bytes sent at a time.
const PIECE_SIZE: usize = 64 << 10;

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::POST, "/queries", post);
    routes.database(Method::GET, "/queries", get);
    routes.database(Method::HEAD, "/queries", head);
    routes.database(Method::POST, "/streams/queries", post_stream);
    routes.database(Method::GET, "/streams/queries", get_stream);
}

/// What the URL says of a query.
struct Asked {
    layout: Layout,
    metadata_only: bool,
    debug: Debug,
    known_etag: Option<i64>,
    /// The query itself, when it is not in the body.
    of_url: Option<OfUrl>,
}

/// A query that stands in the URL.
struct OfUrl {
    text: String,
    start: u64,
    page_size: u64,
}

/// What is told instead of the answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Debug {
    Nothing,
    Explain,
    Entries,
}

impl Asked {
    fn new(request: &DatabaseRequest, layout: Layout, in_url: bool) -> Result<Asked> {
        let query = request.query();
        let debug = match query.get_filled("debug")? {
            None => Debug::Nothing,
            Some(debug) if debug.eq_ignore_ascii_case("explain") => Debug::Explain,
            Some(debug) if debug.eq_ignore_ascii_case("entries") => Debug::Entries,
            Some(debug) => {
                return Err(ErrorKind::Argument.error(format!("Unknown query debug command: '{debug}'")));
            }
        };
        let of_url = match in_url {
            false => None,
            true => Some(OfUrl {
                text: query.get_filled("query")?.map(|text| text.into_owned()).ok_or_else(|| {
                    ErrorKind::InvalidOperation.error("Missing mandatory query string parameter 'query'.")
                })?,
                start: query.number("start")?.unwrap_or(0),
                page_size: query.number("pageSize")?.unwrap_or(u64::MAX),
            }),
        };
        Ok(Asked {
            layout,
            metadata_only: query.flag("metadataOnly")?.unwrap_or(false),
            debug,
            known_etag: request.if_none_match().and_then(|etag| etag.parse().ok()),
            of_url,
        })
    }

    /// The query, from the URL or from the body.
    fn read<'c>(&self, body: &[u8], context: &'c Context) -> Result<Request<'c>> {
        let mut request = match &self.of_url {
            Some(OfUrl { text, start, page_size }) => {
                let mut request = Request::new(text.clone());
                (request.skip, request.take) = (*start, *page_size);
                request
            }
            None => {
                if body.is_empty() {
                    return Err(ErrorKind::InvalidData.error("the body is empty; it must be a JSON object"));
                }
                let body = context.parse(body)?;
                let object = body
                    .object()
                    .ok_or_else(|| ErrorKind::InvalidData.error("the body must be a JSON object"))?;
                Request::parse(&object)?
            }
        };
        request.metadata_only = self.metadata_only;
        request.known_etag = self.known_etag;
        Ok(request)
    }
}

async fn post(mut request: DatabaseRequest) -> Result<Response> {
    let asked = Asked::new(&request, Layout::Answer, false)?;
    let body = request.bytes().await?;
    answer(request.database, asked, body).await
}

async fn get(request: DatabaseRequest) -> Result<Response> {
    let asked = Asked::new(&request, Layout::Answer, true)?;
    answer(request.database, asked, Bytes::new()).await
}

async fn head(request: DatabaseRequest) -> Result<Response> {
    let response = get(request).await?;
    let (status, etag) = (response.status_code(), response.headers().get(header::ETAG).cloned());
    let empty = Response::empty(status);
    Ok(match etag {
        Some(etag) => empty.header(header::ETAG, etag),
        None => empty,
    })
}

async fn post_stream(mut request: DatabaseRequest) -> Result<Response> {
    let asked = Asked::new(&request, stream_layout(&request)?, false)?;
    let body = request.bytes().await?;
    answer(request.database, asked, body).await
}

async fn get_stream(request: DatabaseRequest) -> Result<Response> {
    let asked = Asked::new(&request, stream_layout(&request)?, true)?;
    answer(request.database, asked, Bytes::new()).await
}

/// An unknown format is taken for JSON, as the reference does.
fn stream_layout(request: &DatabaseRequest) -> Result<Layout> {
    Ok(match request.query().get_filled("format")? {
        Some(format) if format.eq_ignore_ascii_case("jsonl") => Layout::Lines,
        Some(format) if format.eq_ignore_ascii_case("csv") => Layout::Csv,
        _ => Layout::Stream,
    })
}

async fn answer(database: Arc<LoadedDatabase>, asked: Asked, body: Bytes) -> Result<Response> {
    if asked.layout == Layout::Answer
        && let Some(answer) = with_context(|context| brief(&database, &asked, &body, context))
    {
        return answer;
    }
    let (sender, response) = oneshot::channel();
    tokio::task::spawn_blocking(move || {
        with_context(|context| {
            let mut answering =
                Answering { layout: asked.layout, etag: 0, stream: None, answer: Some(sender) };
            let answered = run(&database, &asked, &body, context, &mut answering);
            answering.finish(answered);
        });
    });
    response.await.unwrap_or_else(|_| Err(ErrorKind::Internal.error("the query ended unexpectedly")))
}

/// Takes an answer as long as it is short.
#[derive(Default)]
struct Brief {
    etag: i64,
    results: usize,
    is_too_long: bool,
}

impl Sink for Brief {
    fn begin(&mut self, head: Head) {
        self.etag = head.etag;
    }

    fn written(&mut self, out: &mut Vec<u8>) -> ControlFlow<()> {
        /// Results that are printed in little time.
        const RESULTS_MAX: usize = 256;
        self.results += 1;
        self.is_too_long = self.results > RESULTS_MAX || out.len() > 4 * PIECE_SIZE;
        if self.is_too_long { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Answers a query that takes no time; `None` when it may.
fn brief(
    database: &LoadedDatabase,
    asked: &Asked,
    body: &[u8],
    context: &Context,
) -> Option<Result<Response>> {
    /// Bodies of more bytes hold long lists of parameters.
    const BODY_SIZE_MAX: usize = 16 << 10;
    if body.len() > BODY_SIZE_MAX || asked.debug != Debug::Nothing {
        return None;
    }
    let prepared = match prepare(database, asked, body, context) {
        Ok(prepared) if prepared.is_brief(database.indexes()) => prepared,
        Ok(_) => return None,
        Err(error) => return Some(Err(error)),
    };
    let mut out = Vec::with_capacity(1024);
    let mut brief = Brief::default();
    let outcome =
        database.queries().run(database, database.indexes(), &prepared, asked.layout, &mut out, &mut brief);
    if brief.is_too_long {
        prepared.was_not_brief();
        return None;
    }
    Some(match outcome {
        Ok(Outcome::Answered) => Ok(Response::json(out).header(header::ETAG, brief.etag.to_string())),
        Ok(Outcome::NotModified) => Ok(Response::not_modified()),
        Err(error) => of_error(error),
    })
}

fn prepare<'c>(
    database: &LoadedDatabase,
    asked: &Asked,
    body: &[u8],
    context: &'c Context,
) -> Result<Prepared<'c>> {
    Ok(database.queries().prepare(asked.read(body, context)?)?)
}

/// What a query that failed is answered: a missing index is told by a status alone.
fn of_error(error: QueryError) -> Result<Response> {
    match error {
        QueryError::NoIndex(_) => Ok(Response::not_found()),
        error => Err(error.into()),
    }
}

fn run(
    database: &LoadedDatabase,
    asked: &Asked,
    body: &[u8],
    context: &Context,
    answering: &mut Answering,
) -> Result<Answered> {
    let prepared = prepare(database, asked, body, context)?;
    let engine = database.queries();
    let mut out = Vec::with_capacity(4096);
    let outcome = match asked.debug {
        Debug::Nothing => {
            engine.run(database, database.indexes(), &prepared, asked.layout, &mut out, answering)
        }
        Debug::Explain => {
            return match engine.explain(database.indexes(), &prepared) {
                Ok(text) => Ok(Answered::Other(Response::json(text))),
                Err(error) => of_error(error).map(Answered::Other),
            };
        }
        Debug::Entries => engine.entries(database, database.indexes(), &prepared, &mut out, answering),
    };
    match outcome {
        Ok(Outcome::Answered) => Ok(Answered::Whole(out)),
        Ok(Outcome::NotModified) => Ok(Answered::Other(Response::not_modified())),
        Err(error) => of_error(error).map(Answered::Other),
    }
}

/// How a run ended.
enum Answered {
    /// With the rest of its text.
    Whole(Vec<u8>),
    /// With another answer than results.
    Other(Response),
}

/// An answer in the making.
struct Answering {
    layout: Layout,
    etag: i64,
    stream: Option<PieceSender>,
    /// Who waits for the answer, until it is given.
    answer: Option<oneshot::Sender<Result<Response>>>,
}

impl Sink for Answering {
    fn begin(&mut self, head: Head) {
        self.etag = head.etag;
    }

    fn written(&mut self, out: &mut Vec<u8>) -> ControlFlow<()> {
        if out.len() < PIECE_SIZE
            || (self.stream.is_none() && self.layout == Layout::Answer && out.len() < WHOLE_SIZE_MAX)
        {
            return ControlFlow::Continue(());
        }
        if self.stream.is_none() {
            let (sender, response) = Response::stream_json();
            self.stream = Some(sender);
            let response = self.with_headers(response);
            self.give(Ok(response));
        }
        let next = Vec::with_capacity(PIECE_SIZE + PIECE_SIZE / 4);
        match self.stream.as_ref().map(|stream| stream.send_blocking(std::mem::replace(out, next))) {
            Some(Ok(())) => ControlFlow::Continue(()),
            // The client went away.
            _ => ControlFlow::Break(()),
        }
    }
}

impl Answering {
    fn with_headers(&self, response: Response) -> Response {
        match self.layout {
            Layout::Answer => response.header(header::ETAG, self.etag.to_string()),
            Layout::Stream | Layout::Lines | Layout::Ids => response,
            Layout::Csv => {
                let now = clock::date_text(clock::now_ticks());
                let stamp: String = now.chars().filter(char::is_ascii_digit).take(12).collect();
                response.header(header::CONTENT_TYPE, HeaderValue::from_static("text/csv")).header(
                    header::CONTENT_DISPOSITION,
                    format!("attachment; filename=\"query_{stamp}.csv\""),
                )
            }
        }
    }

    fn give(&mut self, answer: Result<Response>) {
        if let Some(waiting) = self.answer.take() {
            // A client that is gone needs no answer, and shows when it is sent a piece.
            let _ = waiting.send(answer);
        }
    }

    fn finish(mut self, answered: Result<Answered>) {
        match (self.stream.take(), answered) {
            (None, Ok(Answered::Whole(out))) => {
                let response = self.with_headers(Response::json(out));
                self.give(Ok(response));
            }
            (None, Ok(Answered::Other(response))) => self.give(Ok(response)),
            (None, Err(error)) => self.give(Err(error)),
            (Some(stream), Ok(Answered::Whole(out))) => {
                if out.is_empty() || stream.send_blocking(out).is_ok() {
                    stream.finish();
                }
            }
            // Dropped without its end, the answer is broken off.
            (Some(_), Ok(Answered::Other(_))) => {}
            (Some(_), Err(error)) => log_broken(&error),
        }
    }
}

fn log_broken(error: &WireError) {
    tracing::warn!(%error, "the answer to a query was broken off");
}
