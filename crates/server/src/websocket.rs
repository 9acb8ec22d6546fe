//! WebSockets: the handshake, a socket for text frames, and how one ends.
//!
//! A socket costs little while nothing happens on it: its read buffer is small, its write buffer grows to one frame, and it sets no timer
//! (the server's one beats for all, see [`Heartbeat`]). It stays in the server's list of connections, which ends it when the
//! peer takes nothing for too long or the server stops.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::connection::{Command, Connection, WatchedSocket};
use crate::error::{ErrorKind, Result};
use crate::request::Request;
use crate::response::Response;
use crate::state::ServerState;

/// Bytes of a message from a client at most. What clients say is short: a name, an id.
const MESSAGE_SIZE_MAX: usize = 64 << 10;
/// Bytes read at a time.
const READ_SIZE: usize = 512;
/// How long the peer may take to answer our goodbye.
const GOODBYE_MAX: Duration = Duration::from_secs(2);
/// Bytes of what the peer still sends then at most.
const GOODBYE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a reason in a close frame, by the protocol.
const REASON_SIZE_MAX: usize = 123;

/// Checks a request for a WebSocket; the answer to give, and what becomes the socket once it was given.
///
/// Errors: the request does not ask for a WebSocket of version 13, or a page of another site makes it.
pub(crate) fn accept(request: &mut Request, state: &ServerState) -> Result<(Response, Upgrade)> {
    let headers = request.headers();
    if !has_token(headers, header::CONNECTION, "upgrade") || !has_token(headers, header::UPGRADE, "websocket")
    {
        return Err(ErrorKind::BadRequest
            .error("this is an address for WebSockets: the request needs 'Upgrade: websocket'"));
    }
    if headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err(ErrorKind::BadRequest
            .error("the WebSocket protocol must be of version 13")
            .with_header(header::SEC_WEBSOCKET_VERSION, "13"));
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).filter(|key| key.len() == 24);
    let Some(key) = key.map(|key| derive_accept_key(key.as_bytes())) else {
        return Err(ErrorKind::BadRequest.error("Sec-WebSocket-Key must be there, and have 24 characters"));
    };
    check_origin(headers, state)?;
    let Some(upgrade) = request.take_upgrade() else {
        return Err(ErrorKind::BadRequest.error("a WebSocket needs a connection of its own"));
    };
    let response = Response::empty(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_ACCEPT, key);
    Ok((response, Upgrade(upgrade)))
}

/// Whether a header that lists words has one of them.
fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case(token))
}

/// A browser lets any page open a WebSocket to any server and read from it, and says in `Origin` whose page it is.
fn check_origin(headers: &HeaderMap, state: &ServerState) -> Result<()> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = text(header::ORIGIN) else { return Ok(()) };
    let host_of = |url: &str| url.parse::<Uri>().ok()?.host().map(str::to_ascii_lowercase);
    let ours =
        [text(header::HOST).and_then(host_of), state.settings().public_url.as_deref().and_then(host_of)];
    let theirs = host_of(origin);
    if theirs.is_some() && ours.contains(&theirs) {
        return Ok(());
    }
    Err(ErrorKind::ForeignOrigin.error(format!("a page of {origin} may not open a WebSocket here")))
}

/// A connection that becomes a socket as soon as its request is answered.
pub(crate) struct Upgrade(OnUpgrade);

impl Upgrade {
    /// The socket; `None` when the peer is gone already.
    pub(crate) async fn socket(self) -> Option<Socket> {
        let upgraded = self.0.await.ok()?;
        let parts = upgraded.downcast::<TokioIo<WatchedSocket>>().ok()?;
        let socket = parts.io.into_inner();
        let connection = socket.connection().clone();
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_SIZE)
            // Every frame goes out as it is.
            .write_buffer_size(0)
            .max_message_size(Some(MESSAGE_SIZE_MAX))
            .max_frame_size(Some(MESSAGE_SIZE_MAX));
        // What the client sent right behind its request.
        let already_read = parts.read_buf.to_vec();
        drop(parts.read_buf);
        let stream =
            WebSocketStream::from_partially_read(socket, already_read, Role::Server, Some(config)).await;
        Some(Socket { stream, connection })
    }
}

/// An open WebSocket.
pub(crate) struct Socket {
    stream: WebSocketStream<WatchedSocket>,
    connection: Arc<Connection>,
}

/// Why a socket ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The peer said goodbye, or is gone.
    ByPeer,
    /// The peer is not to be waited for.
    AtOnce,
    /// With a code and a word to the peer.
    Saying(Code, Cow<'static, str>),
}

/// Codes of RFC 6455, section 7.4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// 1001: the server stops, or what the socket is about goes away.
    Away,
    /// 1002: what came is no WebSocket frame.
    Protocol,
    /// 1003: frames of this kind are not expected.
    Unsupported,
    /// 1007: the text is not what it should be.
    Invalid,
    /// 1008: the peer asks for what it cannot have.
    Policy,
    /// 1009: the message is too long.
    Size,
    /// 1013: the peer is too slow; it may try again.
    Again,
}

impl Code {
    fn wire(self) -> CloseCode {
        match self {
            Code::Away => CloseCode::Away,
            Code::Protocol => CloseCode::Protocol,
            Code::Unsupported => CloseCode::Unsupported,
            Code::Invalid => CloseCode::Invalid,
            Code::Policy => CloseCode::Policy,
            Code::Size => CloseCode::Size,
            Code::Again => CloseCode::Again,
        }
    }
}

impl Socket {
    /// The next text from the peer. Dropping the future loses nothing.
    pub(crate) async fn text(&mut self) -> Result<String, End> {
        loop {
            let message = self.stream.next().await;
            if let Some(text) = text_of(message)? {
                return Ok(text);
            }
        }
    }

    /// The next text, if it has arrived.
    pub(crate) fn text_if_there(&mut self) -> Result<Option<String>, End> {
        // What polls with a waker that does nothing must be polled again before it is waited for; `text` does.
        while let Some(message) = self.stream.next().now_or_never() {
            if let Some(text) = text_of(message)? {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// Sends a text frame. Dropping the future leaves a frame half sent, which [`Socket::end`] completes.
    pub(crate) async fn send(&mut self, text: String) -> Result<(), End> {
        self.stream.send(Message::text(text)).await.map_err(|error| end_of(&error))
    }

    /// For [`ended`].
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Says goodbye where there is somebody to say it to, and ends the connection.
    pub(crate) async fn end(mut self, end: End) {
        let (code, reason) = match end {
            End::AtOnce => return,
            End::ByPeer => {
                // Its goodbye is answered by the library.
                let _ = tokio::time::timeout(GOODBYE_MAX, self.stream.flush()).await;
                return;
            }
            End::Saying(code, reason) => (code, reason),
        };
        let mut length = reason.len().min(REASON_SIZE_MAX);
        while !reason.is_char_boundary(length) {
            length -= 1;
        }
        let frame = CloseFrame { code: code.wire(), reason: reason[..length].into() };
        let goodbye = async {
            // Boxed, so that a socket that does not end yet is not larger for it.
            if self.stream.close(Some(frame)).await.is_err() {
                return;
            }
            let mut socket = self.stream.into_inner();
            if socket.shutdown().await.is_err() {
                return;
            }
            // Closing a socket that has bytes to read resets the connection, which can overtake our goodbye.
            let mut rest = vec![0; READ_SIZE];
            let mut left = GOODBYE_BYTES_MAX;
            while let Ok(count @ 1..) = socket.read(&mut rest).await {
                left = left.saturating_sub(count);
                if left == 0 {
                    return;
                }
            }
        };
        let goodbye: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(goodbye);
        let _ = tokio::time::timeout(GOODBYE_MAX, goodbye).await;
    }
}

/// Waits until the server ends the connection, because it stops or the peer takes nothing.
pub(crate) async fn ended(connection: &Connection) -> End {
    std::future::poll_fn(|context| match connection.poll_command(context) {
        Command::Run => std::task::Poll::Pending,
        Command::Finish => {
            std::task::Poll::Ready(End::Saying(Code::Away, Cow::Borrowed("the server is stopping")))
        }
        Command::Abort => std::task::Poll::Ready(End::AtOnce),
    })
    .await
}

fn text_of(message: Option<Result<Message, Error>>) -> Result<Option<String>, End> {
    match message {
        Some(Ok(Message::Text(text))) => Ok(Some(text.as_str().to_owned())),
        // Pings are answered by the library.
        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(None),
        Some(Ok(Message::Binary(_))) => {
            Err(End::Saying(Code::Unsupported, Cow::Borrowed("only text frames are understood")))
        }
        Some(Ok(Message::Close(_))) | None => Err(End::ByPeer),
        Some(Err(error)) => Err(end_of(&error)),
    }
}

fn end_of(error: &Error) -> End {
    let say = |code| End::Saying(code, error.to_string().into());
    match error {
        Error::Capacity(_) => say(Code::Size),
        Error::Utf8(_) => say(Code::Invalid),
        Error::Protocol(
            tokio_tungstenite::tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
        ) => End::ByPeer,
        Error::Protocol(_) => say(Code::Protocol),
        _ => End::ByPeer,
    }
}

/// How often the server's timer beats; each socket hears every [`SLOTS`]th beat.
pub(crate) const BEAT: Duration = Duration::from_millis(250);
/// Sockets are spread over so many beats, so that not all of them write at the same moment: 18 times 250 ms are 4.5 s.
const SLOTS: usize = 18;

/// The heartbeat of all sockets: one timer beats, sockets wait for the beats of their slot.
pub(crate) struct Heartbeat {
    slots: [Notify; SLOTS],
    next_slot: AtomicUsize,
    beats: AtomicUsize,
}

impl Default for Heartbeat {
    fn default() -> Heartbeat {
        Heartbeat {
            slots: std::array::from_fn(|_| Notify::new()),
            next_slot: AtomicUsize::new(0),
            beats: AtomicUsize::new(0),
        }
    }
}

/// When a socket hears the heartbeat.
#[derive(Clone, Copy)]
pub(crate) struct Slot(usize);

impl Heartbeat {
    /// To be called every [`BEAT`].
    pub(crate) fn beat(&self) {
        let slot = self.beats.fetch_add(1, Ordering::Relaxed) % SLOTS;
        self.slots[slot].notify_waiters();
    }

    /// A slot for a new socket.
    pub(crate) fn slot(&self) -> Slot {
        Slot(self.next_slot.fetch_add(1, Ordering::Relaxed) % SLOTS)
    }

    /// Waits for the slot's next beat. A beat while nobody waits is lost: who is busy is not idle.
    pub(crate) async fn wait(&self, slot: Slot) {
        self.slots[slot.0].notified().await;
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn words_of_headers_are_found() {
        let mut headers = HeaderMap::new();
        headers.append(header::CONNECTION, "keep-alive, Upgrade".parse().expect("a value"));
        headers.append(header::CONNECTION, "x".parse().expect("a value"));
        for (token, expected) in [("upgrade", true), ("X", true), ("keep", false), ("", false)] {
            assert_eq!(has_token(&headers, header::CONNECTION, token), expected, "{token}");
        }
        assert!(!has_token(&headers, header::UPGRADE, "websocket"));
    }

    #[tokio::test]
    async fn each_slot_hears_its_own_beat() {
        let heartbeat = Arc::new(Heartbeat::default());
        let slots: Vec<Slot> = (0..SLOTS * 2).map(|_| heartbeat.slot()).collect();
        let mut waits: Vec<_> = slots.iter().map(|slot| Box::pin(heartbeat.wait(*slot))).collect();
        for wait in &mut waits {
            assert!(wait.as_mut().now_or_never().is_none());
        }
        for beat in 0..SLOTS {
            heartbeat.beat();
            let heard = waits.iter_mut().filter_map(|wait| wait.as_mut().now_or_never()).count();
            assert_eq!(heard, 2, "beat {beat}");
            waits.retain_mut(|_| true);
            waits = slots
                .iter()
                .filter(|slot| slot.0 > beat)
                .map(|slot| Box::pin(heartbeat.wait(*slot)))
                .collect();
            for wait in &mut waits {
                assert!(wait.as_mut().now_or_never().is_none());
            }
        }
    }
}
