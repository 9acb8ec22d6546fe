//! A WebSocket client that can also say what no client should. Frames are put together by hand, so that the server's library is not held
//! against itself.

use std::collections::VecDeque;
use std::io::Read;

use serde_json::{Value, json};

use super::{Answer, Client, TestServer};

/// The example of RFC 6455, with the answer to it.
pub(crate) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub(crate) const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

pub(crate) const TEXT: u8 = 0x81;
pub(crate) const BINARY: u8 = 0x82;
pub(crate) const CLOSE: u8 = 0x88;
pub(crate) const PING: u8 = 0x89;
pub(crate) const PONG: u8 = 0x8a;

/// A client on the changes socket of a database.
pub(crate) struct WebSocket {
    client: Client,
    messages: VecDeque<Value>,
    next_command: i64,
}

/// Asks for a WebSocket.
pub(crate) fn handshake(client: &mut Client, url: &str, more: &[(&str, &str)]) -> Answer {
    let mut headers = vec![
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", KEY),
    ];
    headers.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
    headers.extend(more.iter().filter(|(_, value)| !value.is_empty()));
    client.request("GET", url, &headers, b"")
}

impl WebSocket {
    pub(crate) fn open(server: &TestServer, database: &str) -> WebSocket {
        let mut client = server.client();
        let answer = handshake(&mut client, &format!("/databases/{database}/changes"), &[]);
        WebSocket::after(client, &answer)
    }

    /// On a connection that has sent its handshake.
    pub(crate) fn over(mut client: Client) -> WebSocket {
        let answer = client.answer().expect("an answer");
        WebSocket::after(client, &answer)
    }

    /// On a connection whose handshake was answered.
    pub(crate) fn after(client: Client, answer: &Answer) -> WebSocket {
        assert_eq!(answer.status, 101, "{}", answer.text());
        assert_eq!(answer.header("sec-websocket-accept"), Some(ACCEPT));
        let mut socket = WebSocket { client, messages: VecDeque::new(), next_command: 1 };
        let first = socket.message();
        assert_eq!(first, json!({ "TopologyChange": true, "AggressiveCachingChange": true }));
        socket
    }

    /// Opens one and puts a watch into force.
    pub(crate) fn watching(server: &TestServer, database: &str, command: &str, param: Value) -> WebSocket {
        let mut socket = WebSocket::open(server, database);
        socket.command(command, param);
        socket
    }

    /// Sends bytes that may be no frame.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.client.send(bytes);
    }

    pub(crate) fn send(&mut self, kind: u8, payload: &[u8]) {
        let frame = frame(kind, payload, true);
        self.client.send(&frame);
    }

    /// Sends a command and waits for its confirmation; what comes before it is kept.
    pub(crate) fn command(&mut self, command: &str, param: Value) {
        let id = self.next_command;
        self.next_command += 1;
        let text = json!({ "CommandId": id, "Command": command, "Param": param }).to_string();
        self.send(TEXT, text.as_bytes());
        self.wait_for_confirmation(id);
    }

    pub(crate) fn wait_for_confirmation(&mut self, id: i64) {
        let mut kept = std::mem::take(&mut self.messages);
        loop {
            let message = self.message();
            if message["Type"] == "Confirm" {
                assert_eq!(message, json!({ "CommandId": id, "Type": "Confirm" }));
                break;
            }
            kept.push_back(message);
        }
        kept.append(&mut self.messages);
        self.messages = kept;
    }

    /// The next message. Heartbeats are passed over.
    pub(crate) fn message(&mut self) -> Value {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return message;
            }
            let (kind, payload) = self.frame().expect("a frame, not the end");
            assert_eq!(kind, TEXT, "{}", String::from_utf8_lossy(&payload));
            self.take_in(&payload);
        }
    }

    /// What has come so far, up to the confirmation of a command that is sent now and does nothing.
    pub(crate) fn messages(&mut self) -> Vec<Value> {
        self.command("watch-counters", Value::Null);
        self.messages.drain(..).collect()
    }

    fn take_in(&mut self, payload: &[u8]) {
        let Ok(Value::Array(messages)) = serde_json::from_slice(payload) else {
            panic!("no array: {}", String::from_utf8_lossy(payload));
        };
        self.messages.extend(messages);
    }

    /// The next frame; `None` at the end of the connection.
    pub(crate) fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let reader = &mut self.client.reader;
        let mut head = [0; 2];
        reader.read_exact(&mut head).ok()?;
        let mut read = |size: usize| {
            let mut bytes = vec![0; size];
            reader.read_exact(&mut bytes).ok().map(|()| bytes)
        };
        assert_eq!(head[1] & 0x80, 0, "frames of a server are not masked");
        let size = match head[1] {
            126 => read(2)?.iter().fold(0, |size, byte| size << 8 | usize::from(*byte)),
            127 => read(8)?.iter().fold(0, |size, byte| size << 8 | usize::from(*byte)),
            size => usize::from(size),
        };
        Some((head[0], read(size)?))
    }

    /// The code with which the server closes, after whatever it still sends; `None` when it just ends.
    pub(crate) fn close_code(&mut self) -> Option<u16> {
        while let Some((kind, payload)) = self.frame() {
            if kind == CLOSE {
                let code = payload.first_chunk().map(|code| u16::from_be_bytes(*code));
                assert!(std::str::from_utf8(&payload[2..]).is_ok() && payload.len() <= 125);
                assert!(self.frame().is_none(), "nothing comes after a goodbye");
                return code;
            }
            if kind == TEXT {
                self.take_in(&payload);
            }
        }
        None
    }

    /// Waits until the server has closed, without reading before.
    pub(crate) fn client(&mut self) -> &mut Client {
        &mut self.client
    }
}

/// A frame, masked as a client must.
pub(crate) fn frame(kind: u8, payload: &[u8], masked: bool) -> Vec<u8> {
    let mask_bit = if masked { 0x80 } else { 0 };
    let mut frame = vec![kind];
    match payload.len() {
        size @ ..126 => frame.push(mask_bit | size as u8),
        size @ ..65_536 => {
            frame.push(mask_bit | 126);
            frame.extend_from_slice(&(size as u16).to_be_bytes());
        }
        size => {
            frame.push(mask_bit | 127);
            frame.extend_from_slice(&(size as u64).to_be_bytes());
        }
    }
    if !masked {
        frame.extend_from_slice(payload);
        return frame;
    }
    let mask = [0x12, 0x34, 0x56, 0x78];
    frame.extend_from_slice(&mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}
