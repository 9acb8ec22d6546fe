//! Answers: made by endpoints, completed here with what every answer has.

use std::io;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::compression::{COMPRESSED_SIZE_MIN, Coding, CompressedStream};
use crate::connection::Connection;
use crate::error::{ErrorKind, Result, WireError};

/// The version of the protocol that this server speaks; clients choose what they send by it.
pub(crate) const SERVER_VERSION: &str = "7.1.5.71028";

/// Headers of the protocol.
pub(crate) const RAVEN_SERVER_VERSION: HeaderName = HeaderName::from_static("raven-server-version");
pub(crate) const DATABASE_MISSING: HeaderName = HeaderName::from_static("database-missing");
pub(crate) const DATABASE_CLUSTER_TX_ID: HeaderName = HeaderName::from_static("database-cluster-tx-id");
pub(crate) const REFRESH_TOPOLOGY: HeaderName = HeaderName::from_static("refresh-topology");
pub(crate) const REFRESH_CLIENT_CONFIGURATION: HeaderName =
    HeaderName::from_static("refresh-client-configuration");

const OCTET_STREAM: HeaderValue = HeaderValue::from_static("application/octet-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// Pieces of a streamed answer that may wait for the client.
const STREAM_QUEUE: usize = 8;

type PieceStream = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// An answer.
pub(crate) struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: Content,
}

enum Content {
    Bytes(Bytes),
    Stream(PieceStream),
}

impl Response {
    fn new(status: StatusCode, body: Content) -> Response {
        Response { status, headers: HeaderMap::with_capacity(8), body }
    }

    /// 200 with JSON text.
    pub(crate) fn json(text: impl Into<Bytes>) -> Response {
        let mut response = Response::new(StatusCode::OK, Content::Bytes(text.into()));
        response.headers.insert(header::CONTENT_TYPE, JSON);
        response
    }

    /// 200 with a value as JSON.
    pub(crate) fn of(value: &impl Serialize) -> Result<Response> {
        match serde_json::to_vec(value) {
            Ok(text) => Ok(Response::json(text)),
            Err(error) => Err(ErrorKind::Internal.error(format!("the answer cannot be written: {error}"))),
        }
    }

    /// Bytes of another kind: text, a page.
    pub(crate) fn bytes(content_type: &'static str, bytes: impl Into<Bytes>) -> Response {
        let mut response = Response::new(StatusCode::OK, Content::Bytes(bytes.into()));
        response.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        response
    }

    /// A status without a body.
    pub(crate) fn empty(status: StatusCode) -> Response {
        Response::new(status, Content::Bytes(Bytes::new()))
    }

    /// 204: done, nothing to say.
    pub(crate) fn no_content() -> Response {
        Response::empty(StatusCode::NO_CONTENT)
    }

    /// 404 without a body, which clients take as "there is none". Never for a route.
    pub(crate) fn not_found() -> Response {
        Response::empty(StatusCode::NOT_FOUND)
    }

    /// 304: what the client has is current.
    pub(crate) fn not_modified() -> Response {
        Response::empty(StatusCode::NOT_MODIFIED)
    }

    /// 200 with JSON that is written while it is sent. The sender is for whoever writes it, on any thread.
    pub(crate) fn stream_json() -> (PieceSender, Response) {
        let (sender, receiver) = mpsc::channel(STREAM_QUEUE);
        let is_whole = Arc::new(AtomicBool::new(false));
        let pieces = Pieces { receiver, is_whole: is_whole.clone(), is_over: false };
        let mut response = Response::new(StatusCode::OK, Content::Stream(Box::pin(pieces)));
        response.headers.insert(header::CONTENT_TYPE, JSON);
        (PieceSender { sender, is_whole }, response)
    }

    /// 200 with a file that is written while it is sent, as it is: what is in it may be compressed, so it is not compressed again.
    pub(crate) fn stream_file(file_name: &str) -> (PieceSender, Response) {
        let (sender, response) = Response::stream_json();
        // What stands between the quotes must not end them.
        let name: String =
            file_name.chars().filter(|c| !c.is_control() && !matches!(c, '"' | '\\' | '/')).collect();
        let response = response
            .header(header::CONTENT_TYPE, OCTET_STREAM)
            .header(header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\""));
        (sender, response)
    }

    /// An error as its answer to a request for `url`.
    pub(crate) fn of_error(error: &WireError, url: &str) -> Response {
        let mut response = Response::json(error.body(url)).status(error.kind().status());
        response.headers.extend(error.headers().iter().map(|(name, value)| (name.clone(), value.clone())));
        response
    }

    /// With another status.
    pub(crate) fn status(mut self, status: StatusCode) -> Response {
        self.status = status;
        self
    }

    /// With a header; a value that no header can have is left out.
    pub(crate) fn header(mut self, name: HeaderName, value: impl TryInto<HeaderValue>) -> Response {
        if let Ok(value) = value.try_into() {
            self.headers.insert(name, value);
        }
        self
    }

    /// With the `ETag` of a change vector or a hash, which is quoted.
    pub(crate) fn etag(self, etag: &str) -> Response {
        let mut quoted = String::with_capacity(etag.len() + 2);
        quoted.extend(["\"", etag, "\""]);
        self.header(header::ETAG, quoted)
    }

    pub(crate) fn status_code(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    pub(crate) fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }

    /// The whole body, for answers that become part of another one. A stream is read to its end.
    pub(crate) async fn into_bytes(self) -> Result<Bytes> {
        match self.body {
            Content::Bytes(bytes) => Ok(bytes),
            Content::Stream(mut stream) => {
                let mut whole = Vec::new();
                while let Some(piece) =
                    std::future::poll_fn(|context| stream.as_mut().poll_next(context)).await
                {
                    let piece = piece.map_err(|error| ErrorKind::Internal.error(error.to_string()))?;
                    whole.extend_from_slice(&piece);
                }
                Ok(whole.into())
            }
        }
    }

    /// The answer as it goes over the connection: compressed where allowed, with the headers of every answer.
    pub(crate) fn complete(
        self,
        accept_encoding: Option<&HeaderValue>,
        connection: Option<Arc<Connection>>,
    ) -> http::Response<ResponseBody> {
        let Response { status, mut headers, mut body } = self;
        headers.insert(RAVEN_SERVER_VERSION, HeaderValue::from_static(SERVER_VERSION));
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        // Clients want a type on answers without a body too, but for those that have done something and say no more.
        let is_silent = matches!(&body, Content::Bytes(bytes) if bytes.is_empty())
            && matches!(status, StatusCode::CREATED | StatusCode::ACCEPTED | StatusCode::NO_CONTENT);
        let is_typed = headers.contains_key(header::CONTENT_TYPE);
        if status != StatusCode::SWITCHING_PROTOCOLS && !is_typed && !is_silent {
            headers.insert(header::CONTENT_TYPE, JSON);
        }
        let may_compress = match &body {
            Content::Bytes(bytes) => bytes.len() >= COMPRESSED_SIZE_MIN,
            Content::Stream(_) => headers.get(header::CONTENT_TYPE) != Some(&OCTET_STREAM),
        };
        if may_compress
            && let Some(coding) = accept_encoding
                .and_then(|accept| accept.to_str().ok())
                .and_then(Coding::accepted)
                .filter(|_| !headers.contains_key(header::CONTENT_ENCODING))
        {
            body = compress(body, coding, &mut headers);
        }
        let mut response =
            http::Response::new(ResponseBody { content: Some(body), connection, tells_size: true });
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }
}

/// Compresses; where that cannot be, the body stays as it is.
fn compress(body: Content, coding: Coding, headers: &mut HeaderMap) -> Content {
    let compressed = match body {
        Content::Bytes(bytes) => match coding.compress(&bytes) {
            Ok(compressed) => Content::Bytes(compressed),
            Err(_) => return Content::Bytes(bytes),
        },
        Content::Stream(stream) => match CompressedStream::new(coding, stream) {
            Ok(compressed) => Content::Stream(Box::pin(compressed)),
            // The encoder could not be made, which takes memory and nothing else: the stream is gone with it.
            Err(error) => Content::Stream(Box::pin(Failed(Some(error)))),
        },
    };
    headers.insert(header::CONTENT_ENCODING, coding.name());
    compressed
}

/// Takes the pieces of a streamed answer, which ends with [`PieceSender::finish`]. Dropped without it (an error, a panic), the answer is
/// broken off, so that the client sees that it is not complete.
pub(crate) struct PieceSender {
    sender: mpsc::Sender<Bytes>,
    is_whole: Arc<AtomicBool>,
}

/// The client went away; nobody reads what is still to come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientGone;

impl PieceSender {
    /// Hands a piece over, once there is room for it.
    pub(crate) async fn send(&self, piece: impl Into<Bytes>) -> Result<(), ClientGone> {
        self.sender.send(piece.into()).await.map_err(|_| ClientGone)
    }

    /// As [`PieceSender::send`], from a thread that may block.
    pub(crate) fn send_blocking(&self, piece: impl Into<Bytes>) -> Result<(), ClientGone> {
        self.sender.blocking_send(piece.into()).map_err(|_| ClientGone)
    }

    /// Ends the answer: it is whole.
    pub(crate) fn finish(self) {
        self.is_whole.store(true, Ordering::Release);
    }
}

/// The size of the pieces that a [`PieceWriter`] hands over.
const PIECE_SIZE: usize = 64 << 10;

/// Gathers what is written into pieces of a streamed answer, on a thread that may block: a client that reads slowly is waited for.
pub(crate) struct PieceWriter {
    sender: PieceSender,
    piece: Vec<u8>,
}

impl PieceWriter {
    pub(crate) fn new(sender: PieceSender) -> PieceWriter {
        PieceWriter::following(sender, Vec::new())
    }

    /// A writer that goes on behind what was written already.
    pub(crate) fn following(sender: PieceSender, written: Vec<u8>) -> PieceWriter {
        PieceWriter { sender, piece: written }
    }

    /// Appends what `print` appends.
    pub(crate) fn print(&mut self, print: impl FnOnce(&mut Vec<u8>)) -> Result<(), ClientGone> {
        print(&mut self.piece);
        if self.piece.len() < PIECE_SIZE {
            return Ok(());
        }
        // What is printed at once may be longer than a piece by a document.
        let next = Vec::with_capacity(PIECE_SIZE + PIECE_SIZE / 4);
        self.sender.send_blocking(std::mem::replace(&mut self.piece, next))
    }

    /// Hands over the last piece. The answer ends when the sender says so.
    pub(crate) fn end(self) -> Result<PieceSender, ClientGone> {
        if !self.piece.is_empty() {
            self.sender.send_blocking(self.piece)?;
        }
        Ok(self.sender)
    }
}

impl io::Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let gone = |ClientGone| io::Error::new(io::ErrorKind::BrokenPipe, "the client went away");
        self.print(|piece| piece.extend_from_slice(bytes)).map_err(gone)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// For walks over documents: they end when the client is gone.
impl ClientGone {
    pub(crate) fn breaks(sent: Result<(), ClientGone>) -> ControlFlow<()> {
        match sent {
            Ok(()) => ControlFlow::Continue(()),
            Err(ClientGone) => ControlFlow::Break(()),
        }
    }
}

struct Pieces {
    receiver: mpsc::Receiver<Bytes>,
    is_whole: Arc<AtomicBool>,
    is_over: bool,
}

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        match std::task::ready!(self.receiver.poll_recv(context)) {
            Some(piece) => Poll::Ready(Some(Ok(piece))),
            None => {
                self.is_over = true;
                let is_whole = self.is_whole.load(Ordering::Acquire);
                Poll::Ready((!is_whole).then(|| Err(io::Error::other("the answer was broken off"))))
            }
        }
    }
}

struct Failed(Option<io::Error>);

impl Stream for Failed {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        Poll::Ready(self.0.take().map(Err))
    }
}

/// The body that goes over the connection; tells the connection when it is done.
pub(crate) struct ResponseBody {
    content: Option<Content>,
    connection: Option<Arc<Connection>>,
    tells_size: bool,
}

/// Bodies up to this size are one read for every client: nothing is left of them when the connection's end is seen.
const TOLD_SIZE_MAX: usize = 4096;

impl ResponseBody {
    /// For a client that has asked for the end of the connection: a long body then goes in chunks, whose last one says that it is whole.
    /// The Node client (undici 7) asks so with every request, and fails on the end of the connection where it comes right
    /// behind a body with a length, whose last piece is still waiting for its reader.
    pub(crate) fn hide_size(&mut self) {
        self.tells_size = false;
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.content {
            Some(Content::Stream(stream)) => {
                stream.as_mut().poll_next(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
            _ => match self.content.take() {
                Some(Content::Bytes(bytes)) if !bytes.is_empty() => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                _ => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Some(Content::Bytes(bytes)) => bytes.is_empty(),
            Some(Content::Stream(_)) => false,
            None => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Some(Content::Bytes(bytes)) if self.tells_size || bytes.len() <= TOLD_SIZE_MAX => {
                SizeHint::with_exact(bytes.len() as u64)
            }
            Some(Content::Bytes(_) | Content::Stream(_)) => SizeHint::default(),
            None => SizeHint::with_exact(0),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            connection.request_ends();
        }
    }
}
