//! The body of a request: read in pieces or whole, decoded as `Content-Encoding` says, within limits.
//!
//! A piece is handed on as soon as it can be decoded, because a bulk insert streams for hours. What is collected whole has a limit that
//! counts decoded bytes, so a small body that unpacks to a large one meets it too. A body that its endpoint does not read to the end is
//! read and dropped in the background: closing the connection instead would make clients see a broken pipe and not the answer.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http::{HeaderMap, header};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Sleep;
use tokio_util::io::StreamReader;

use crate::error::{ErrorKind, Result, WireError};
use crate::state::ServerState;

/// How much of a body that nobody reads is taken in before its connection is given up.
const UNREAD_BYTES_MAX: u64 = 64 << 20;
/// How long that may take.
const UNREAD_TIME_MAX: Duration = Duration::from_secs(30);
/// Pieces of decoded bodies.
const DECODED_PIECE_SIZE: usize = 32 << 10;
/// After how long a body that is collected whole must arrive at [`RATE_MIN`] bytes a second.
const RATE_GRACE: Duration = Duration::from_secs(30);
/// Bytes a second, on average: slower senders hold memory for nothing.
const RATE_MIN: u64 = 240;

/// What a body may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    /// Decoded bytes of a body that is collected whole.
    pub(crate) size_max: u64,
    /// Without any byte for this long, the sender is taken for dead.
    pub(crate) silence_max: Duration,
}

/// A request's body.
pub(crate) struct RequestBody {
    source: Source,
    limits: BodyLimits,
    /// As `Content-Length` says, of the encoded body.
    declared: Option<u64>,
}

enum Source {
    Memory(Bytes),
    Plain(NetworkBody),
    Decoded(Pin<Box<dyn AsyncRead + Send>>),
}

impl RequestBody {
    /// A body that is in memory already: a part of a larger request.
    pub(crate) fn in_memory(bytes: Bytes, limits: BodyLimits) -> RequestBody {
        RequestBody { declared: Some(bytes.len() as u64), source: Source::Memory(bytes), limits }
    }

    /// The body of a request that came over a connection.
    ///
    /// Errors: a `Content-Encoding` that is not known.
    pub(crate) fn of_connection(
        incoming: Incoming,
        headers: &HeaderMap,
        limits: BodyLimits,
        state: &Arc<ServerState>,
    ) -> Result<RequestBody> {
        if incoming.is_end_stream() {
            return Ok(RequestBody::in_memory(Bytes::new(), limits));
        }
        let declared = incoming.size_hint().exact();
        let network = NetworkBody::new(incoming, headers, limits, state.clone());
        let source = match headers.get(header::CONTENT_ENCODING) {
            None => Source::Plain(network),
            Some(codings) => decode(network, &String::from_utf8_lossy(codings.as_bytes()))?,
        };
        Ok(RequestBody { source, limits, declared })
    }

    /// The next piece, decoded; `None` at the end.
    ///
    /// Errors: the sender is too slow or gone, or what it sent is not encoded as it said.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>> {
        match &mut self.source {
            Source::Memory(bytes) if bytes.is_empty() => Ok(None),
            Source::Memory(bytes) => Ok(Some(std::mem::take(bytes))),
            Source::Plain(network) => {
                std::future::poll_fn(|context| network.poll_piece(context)).await.transpose()
            }
            Source::Decoded(reader) => {
                let mut piece = BytesMut::with_capacity(DECODED_PIECE_SIZE);
                match reader.read_buf(&mut piece).await {
                    Ok(0) => Ok(None),
                    Ok(_) => Ok(Some(piece.freeze())),
                    Err(error) => Err(unwrap(error)),
                }
            }
        }
    }

    /// The whole body, decoded.
    ///
    /// Errors: as [`RequestBody::piece`], or it is over the limit.
    pub(crate) async fn bytes(&mut self) -> Result<Bytes> {
        let limit = self.limits.size_max;
        let too_large = || {
            ErrorKind::BodyTooLarge.error(format!(
                "the body has more than {limit} bytes; send less at once, or raise the setting request-body-size-max"
            ))
        };
        let is_encoded = matches!(self.source, Source::Decoded(_));
        if self.declared.is_some_and(|declared| declared > limit && !is_encoded) {
            return Err(too_large());
        }
        let Some(first) = self.piece().await? else { return Ok(Bytes::new()) };
        let is_all = !is_encoded && self.declared == Some(first.len() as u64);
        if is_all {
            return Ok(first);
        }
        let begun = tokio::time::Instant::now();
        // What is declared may be a lie: memory is taken as bytes arrive.
        let expected = self.declared.unwrap_or_default().min(1 << 20) as usize;
        let mut whole = BytesMut::with_capacity(expected.max(first.len() * 2));
        whole.extend_from_slice(&first);
        while let Some(piece) = self.piece().await? {
            if (whole.len() + piece.len()) as u64 > limit {
                return Err(too_large());
            }
            whole.extend_from_slice(&piece);
            let elapsed = begun.elapsed();
            if elapsed > RATE_GRACE && (whole.len() as u64) < elapsed.as_secs() * RATE_MIN {
                return Err(ErrorKind::SlowBody.error(format!(
                    "the body arrives too slowly: {} bytes in {} seconds",
                    whole.len(),
                    elapsed.as_secs()
                )));
            }
        }
        Ok(whole.freeze())
    }
}

/// Wraps the reader once for each coding, the last one first.
fn decode(network: NetworkBody, codings: &str) -> Result<Source> {
    let mut codings = codings.split(',').map(str::trim).filter(|coding| !coding.is_empty()).rev();
    let is_identity = |coding: &&str| coding.eq_ignore_ascii_case("identity");
    let Some(coding) = codings.by_ref().find(|coding| !is_identity(coding)) else {
        return Ok(Source::Plain(network));
    };
    if codings.any(|coding| !is_identity(&coding)) {
        return Err(ErrorKind::UnknownEncoding.error("a body can be encoded once, not several times over"));
    }
    let reader = StreamReader::new(network);
    let reader: Pin<Box<dyn AsyncRead + Send>> = match coding.to_ascii_lowercase().as_str() {
        "gzip" | "x-gzip" => {
            let mut decoder = GzipDecoder::new(reader);
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
        "deflate" => Box::pin(ZlibDecoder::new(reader)),
        "br" => Box::pin(BrotliDecoder::new(reader)),
        "zstd" => {
            let mut decoder = ZstdDecoder::new(reader);
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
        coding => {
            return Err(ErrorKind::UnknownEncoding
                .error(format!("Content-Encoding '{coding}' is not known; gzip, deflate, br and zstd are")));
        }
    };
    Ok(Source::Decoded(reader))
}

/// The error inside an I/O error of a body's reader; one of the decoder's own becomes bad data.
pub(crate) fn unwrap(error: io::Error) -> WireError {
    match error.downcast::<WireError>() {
        Ok(error) => error,
        Err(error) => {
            ErrorKind::InvalidData.error(format!("the body is not encoded as Content-Encoding says: {error}"))
        }
    }
}

/// A body as it arrives, not decoded.
struct NetworkBody {
    /// `None` once it was handed to the background.
    incoming: Option<Incoming>,
    /// Whether the client waits for a word before it sends; then what was never asked for never comes.
    is_awaited: bool,
    silence_max: Duration,
    silence: Option<Pin<Box<Sleep>>>,
    state: Arc<ServerState>,
}

impl NetworkBody {
    fn new(
        incoming: Incoming,
        headers: &HeaderMap,
        limits: BodyLimits,
        state: Arc<ServerState>,
    ) -> NetworkBody {
        NetworkBody {
            incoming: Some(incoming),
            is_awaited: headers.contains_key(header::EXPECT),
            silence_max: limits.silence_max,
            silence: None,
            state,
        }
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        self.is_awaited = false;
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(None) };
        loop {
            match Pin::new(&mut *incoming).poll_frame(context) {
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Ok(frame))) => {
                    self.silence = None;
                    // Trailers say nothing that anyone here would read.
                    if let Ok(piece) = frame.into_data()
                        && !piece.is_empty()
                    {
                        return Poll::Ready(Some(Ok(piece)));
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    let error = ErrorKind::BrokenBody
                        .error(format!("the body ended before it was complete: {error}"));
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Pending => break,
            }
        }
        let silence = self.silence.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.silence_max)));
        std::task::ready!(silence.as_mut().poll(context));
        let error = ErrorKind::SlowBody
            .error(format!("nothing of the body arrived for {} seconds", self.silence_max.as_secs_f32()));
        Poll::Ready(Some(Err(error)))
    }
}

impl Stream for NetworkBody {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        self.poll_piece(context).map(|piece| piece.map(|piece| piece.map_err(io::Error::other)))
    }
}

impl Drop for NetworkBody {
    fn drop(&mut self) {
        let Some(mut incoming) = self.incoming.take() else { return };
        if incoming.is_end_stream() || self.is_awaited {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        self.state.metrics().bodies_unread.fetch_add(1, Ordering::Relaxed);
        runtime.spawn(async move {
            let mut left = UNREAD_BYTES_MAX;
            let drain = async {
                while let Some(Ok(frame)) =
                    std::future::poll_fn(|context| Pin::new(&mut incoming).poll_frame(context)).await
                {
                    left = left.saturating_sub(frame.data_ref().map_or(0, |piece| piece.len() as u64));
                    if left == 0 {
                        return;
                    }
                }
            };
            // Giving up closes the connection, which is what is wanted then.
            let _ = tokio::time::timeout(UNREAD_TIME_MAX, drain).await;
        });
    }
}
