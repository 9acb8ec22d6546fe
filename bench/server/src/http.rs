//! A small HTTP/1.1 client over keep-alive connections. It does only what a closed-loop driver needs, because every
//! microsecond it spends is taken from the server beside it: one write a request, one buffer a connection, no header map.

use std::io::{Error, ErrorKind, Result};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One connection; `body` holds the last answer's decoded body.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Bytes read and not yet used: `buffer[used..]`.
    buffer: Vec<u8>,
    used: usize,
    pub(crate) body: Vec<u8>,
}

/// Appends a whole request to `out`.
pub(crate) fn encode(out: &mut Vec<u8>, method: &str, path: &str, body: &[u8]) {
    for part in [method, " ", path, " HTTP/1.1\r\nHost: localhost\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    if method != "GET" {
        out.extend_from_slice(b"Content-Type: application/json\r\nContent-Length: ");
        out.extend_from_slice(body.len().to_string().as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, buffer: Vec::with_capacity(16 << 10), used: 0, body: Vec::new() })
    }

    /// Sends an encoded request and reads its answer; returns the status.
    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<u16> {
        self.stream.write_all(request).await?;
        self.answer().await
    }

    /// Encodes, sends, and fails on a status of 400 or more.
    pub(crate) async fn call(&mut self, method: &str, path: &str, body: &[u8]) -> Result<u16> {
        let mut request = Vec::new();
        encode(&mut request, method, path, body);
        let status = self.send(&request).await?;
        if status >= 400 {
            let text = String::from_utf8_lossy(&self.body[..self.body.len().min(600)]).into_owned();
            return Err(Error::other(format!("{method} {path}: {status} {text}")));
        }
        Ok(status)
    }

    /// Starts a request whose body follows through `chunk` and `finish_chunks`.
    pub(crate) async fn start_chunked(&mut self, path: &str) -> Result<()> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        self.stream.write_all(head.as_bytes()).await
    }

    /// `framed` is scratch space, so that size, data and line end leave in one write.
    pub(crate) async fn chunk(&mut self, data: &[u8], framed: &mut Vec<u8>) -> Result<()> {
        framed.clear();
        framed.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
        framed.extend_from_slice(data);
        framed.extend_from_slice(b"\r\n");
        self.stream.write_all(framed).await
    }

    pub(crate) async fn finish_chunks(&mut self) -> Result<u16> {
        self.stream.write_all(b"0\r\n\r\n").await?;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<u16> {
        loop {
            let (status, length) = self.head().await?;
            if status == 100 {
                continue;
            }
            self.body.clear();
            match length {
                Some(length) => self.take(length).await?,
                None => loop {
                    let line = self.line().await?;
                    let text = std::str::from_utf8(&line).unwrap_or("").trim();
                    let size = usize::from_str_radix(text.split(';').next().unwrap_or(""), 16)
                        .map_err(|_| malformed())?;
                    if size > 0 {
                        self.take(size).await?;
                    }
                    self.line().await?;
                    if size == 0 {
                        break;
                    }
                },
            }
            return Ok(status);
        }
    }

    /// The status and the body's length; no length means that it comes in chunks.
    async fn head(&mut self) -> Result<(u16, Option<usize>)> {
        let end = loop {
            if let Some(at) = self.buffer[self.used..].windows(4).position(|w| w == b"\r\n\r\n") {
                break self.used + at + 4;
            }
            self.fill().await?;
        };
        let head = &self.buffer[self.used..end];
        let status =
            head.get(9..12).and_then(|s| std::str::from_utf8(s).ok()?.parse().ok()).ok_or_else(malformed)?;
        let mut length = Some(0);
        for line in head.split(|b| *b == b'\n') {
            if let Some(value) = header(line, b"content-length:") {
                length = Some(value.parse().map_err(|_| malformed())?);
            } else if header(line, b"transfer-encoding:").is_some() {
                length = None;
            }
        }
        self.used = end;
        Ok((status, length))
    }

    async fn line(&mut self) -> Result<Vec<u8>> {
        loop {
            if let Some(at) = self.buffer[self.used..].iter().position(|b| *b == b'\n') {
                let line = self.buffer[self.used..self.used + at].to_vec();
                self.used += at + 1;
                return Ok(line);
            }
            self.fill().await?;
        }
    }

    async fn take(&mut self, mut length: usize) -> Result<()> {
        loop {
            let have = length.min(self.buffer.len() - self.used);
            self.body.extend_from_slice(&self.buffer[self.used..self.used + have]);
            self.used += have;
            length -= have;
            if length == 0 {
                return Ok(());
            }
            self.fill().await?;
        }
    }

    /// Reads more bytes, dropping the used ones first.
    async fn fill(&mut self) -> Result<()> {
        self.buffer.drain(..self.used);
        self.used = 0;
        self.buffer.reserve(16 << 10);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")),
            _ => Ok(()),
        }
    }
}

fn header<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a str> {
    let value = line.get(name.len()..).filter(|_| line[..name.len()].eq_ignore_ascii_case(name))?;
    std::str::from_utf8(value).ok().map(str::trim)
}

fn malformed() -> Error {
    Error::new(ErrorKind::InvalidData, "malformed HTTP answer")
}
