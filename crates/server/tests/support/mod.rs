//! A listening server for a test, and a plain HTTP client that shows what is on the wire.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

pub(crate) mod websocket;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jackdaw_server::{LogControl, Server, Settings};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Longer than anything takes unless it hangs.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A server on a port of its own, with a directory that goes with it.
pub(crate) struct TestServer {
    directory: TempDir,
    settings: Settings,
    running: Option<(Runtime, Server)>,
    address: SocketAddr,
}

impl TestServer {
    pub(crate) fn start() -> TestServer {
        TestServer::with(&[])
    }

    /// With settings by their names.
    pub(crate) fn with(settings: &[(&str, &str)]) -> TestServer {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut checked = Settings { port: 0, data_dir: directory.path().to_owned(), ..Settings::default() };
        for (name, value) in settings {
            checked.set("test", name, value).expect("a setting");
        }
        let (running, address) = run(&checked);
        TestServer { directory, settings: checked, running: Some(running), address }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn data_dir(&self) -> &Path {
        self.directory.path()
    }

    /// Where a database's files are.
    pub(crate) fn database_dir(&self, name: &str) -> PathBuf {
        self.directory.path().join("Databases").join(name)
    }

    pub(crate) fn stop(&mut self) {
        if let Some((runtime, server)) = self.running.take() {
            runtime.block_on(server.stop());
        }
    }

    /// Begins to stop; the thread ends when the server has stopped.
    pub(crate) fn stop_in_background(&mut self) -> std::thread::JoinHandle<()> {
        let running = self.running.take();
        std::thread::spawn(move || {
            if let Some((runtime, server)) = running {
                runtime.block_on(server.stop());
            }
        })
    }

    /// Starts again on the same directory.
    pub(crate) fn restart(&mut self) {
        self.stop();
        let (running, address) = run(&self.settings);
        (self.running, self.address) = (Some(running), address);
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// One request on a connection of its own.
    pub(crate) fn request(&self, method: &str, url: &str, body: &str) -> Answer {
        self.client().request(method, url, &[], body.as_bytes())
    }

    pub(crate) fn get(&self, url: &str) -> Answer {
        self.request("GET", url, "")
    }

    pub(crate) fn create_database(&self, name: &str) {
        let answer = self.request(
            "PUT",
            &format!("/admin/databases?name={name}"),
            &format!(r#"{{"DatabaseName":"{name}"}}"#),
        );
        assert_eq!(answer.status, 201, "{}", answer.text());
    }

    /// The value of a metric without labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text();
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.and_then(|line| line.split(' ').nth(1)).and_then(|value| value.parse().ok()).expect("the metric")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(settings: &Settings) -> ((Runtime, Server), SocketAddr) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    let server = runtime.block_on(Server::start(settings.clone(), LogControl::none())).expect("a server");
    let address = server.address();
    ((runtime, server), address)
}

/// A connection.
pub(crate) struct Client {
    reader: BufReader<TcpStream>,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// A header's value, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The last part of an error's type.
    pub(crate) fn error_type(&self) -> String {
        let body = self.json();
        let name = body["Type"].as_str().expect("an error").to_owned();
        let message = body["Message"].as_str().expect("a message");
        assert_eq!(body["Error"], format!("{name}: {message}"));
        assert!(body["Url"].is_string());
        name.rsplit('.').next().unwrap_or_default().to_owned()
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Client {
        Client::try_connect(address).expect("a connection")
    }

    /// `None` when nobody listens.
    pub(crate) fn try_connect(address: SocketAddr) -> Option<Client> {
        let socket = TcpStream::connect(address).ok()?;
        socket.set_read_timeout(Some(LONG)).ok()?;
        socket.set_nodelay(true).ok()?;
        Some(Client { reader: BufReader::with_capacity(1 << 10, socket) })
    }

    /// Sends bytes as they are. The server may have closed already, which the next read shows.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.reader.get_mut().write_all(bytes);
    }

    pub(crate) fn request(
        &mut self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        self.try_request(method, url, headers, body).expect("an answer")
    }

    /// `None` when the connection ended before the answer was complete.
    pub(crate) fn try_request(
        &mut self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Option<Answer> {
        let mut head = format!("{method} {url} HTTP/1.1\r\nHost: {}\r\n", self.peer()?);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        self.send(&bytes);
        self.answer_to(method)
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.reader.get_ref().peer_addr().ok()
    }

    /// The next answer; `None` when the server closed the connection without one.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        self.answer_to("GET")
    }

    pub(crate) fn answer_to(&mut self, method: &str) -> Option<Answer> {
        loop {
            let status = self.line()?.split(' ').nth(1)?.parse().ok()?;
            let mut headers = Vec::new();
            while let Some((name, value)) = self.line()?.split_once(':') {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            if status == 100 {
                continue;
            }
            let mut answer = Answer { status, headers, body: Vec::new() };
            let has_body = method != "HEAD" && !matches!(status, 101 | 204 | 304);
            if has_body && answer.header("transfer-encoding") == Some("chunked") {
                loop {
                    let size = usize::from_str_radix(self.line()?.trim(), 16).ok()?;
                    let mut chunk = vec![0; size + 2];
                    self.reader.read_exact(&mut chunk).ok()?;
                    if size == 0 {
                        break;
                    }
                    answer.body.extend_from_slice(&chunk[..size]);
                }
            } else if has_body {
                let size = answer.header("content-length").and_then(|size| size.parse().ok()).unwrap_or(0);
                answer.body.resize(size, 0);
                self.reader.read_exact(&mut answer.body).ok()?;
            }
            return Some(answer);
        }
    }

    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        match self.reader.read_until(b'\n', &mut line) {
            Ok(size) if size > 0 => Some(String::from_utf8_lossy(&line).trim_end().to_owned()),
            _ => None,
        }
    }

    /// Whether the server closed the connection, once it did.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        matches!(self.reader.read(&mut byte), Ok(0) | Err(_))
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        self.reader.get_ref()
    }
}
