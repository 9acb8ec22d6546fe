//! Bulk insert, as clients send it and as they break it off.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Client, LONG, TestServer};

fn put(id: usize) -> String {
    format!(
        r#"{{"Id":"users/{id}","Type":"PUT","Document":{{"Name":"{}","@metadata":{{"@collection":"Users"}}}}}}"#,
        "x".repeat(100)
    )
}

fn commands(ids: std::ops::Range<usize>) -> String {
    ids.map(put).collect::<Vec<_>>().join(",")
}

/// A bulk insert that is being sent.
struct Stream(Client);

impl Stream {
    fn begin(server: &TestServer, query: &str, headers: &str) -> Stream {
        let mut client = server.client();
        let head = format!(
            "POST /databases/db/bulk_insert?{query} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n{headers}\r\n"
        );
        client.send(head.as_bytes());
        Stream(client)
    }

    fn send(&mut self, bytes: &[u8]) {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.0.send(&chunk);
    }

    fn end(&mut self) -> support::Answer {
        self.0.send(b"0\r\n\r\n");
        self.0.answer().expect("an answer")
    }
}

fn server() -> TestServer {
    let server = TestServer::start();
    server.create_database("db");
    server
}

fn count(server: &TestServer) -> u64 {
    server.get("/databases/db/stats").json()["CountOfDocuments"].as_u64().expect("a count")
}

fn state(server: &TestServer, id: u32) -> Value {
    server.get(&format!("/databases/db/operations/state?id={id}")).json()
}

/// Waits until something holds, which takes as long as it takes.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_stream_in_pieces_is_stored_and_told() {
    let server = server();
    assert_eq!(server.get("/databases/db/operations/next-operation-id").json()["Id"], 1);
    let mut stream = Stream::begin(&server, "id=1&skipOverwriteIfUnchanged=false", "");
    stream.send(b"[");
    let text = commands(0..3000);
    for piece in text.as_bytes().chunks(7001) {
        stream.send(piece);
    }
    stream.send(br#",{"Type":"HeartBeat"}"#);
    // What came is stored although the stream goes on.
    wait_until("the documents that came", || count(&server) == 3000);
    assert_eq!(state(&server, 1)["Status"], "InProgress");
    stream.send(b"]");
    let answer = stream.end();
    assert_eq!((answer.status, answer.header("content-length")), (201, Some("0")));
    let state = state(&server, 1);
    assert_eq!((&state["Status"], &state["Result"]["Total"]), (&json!("Completed"), &json!(3000)));
    assert_eq!(state["Progress"]["LastProcessedId"], "users/2999");
}

#[test]
fn a_stream_may_end_without_its_bracket() {
    let server = server();
    for (id, body) in [(1, "["), (2, "")] {
        let mut stream = Stream::begin(&server, &format!("id={id}"), "");
        if !body.is_empty() {
            stream.send(body.as_bytes());
        }
        assert_eq!(stream.end().status, 201);
    }
    let mut stream = Stream::begin(&server, "id=3", "");
    stream.send(format!("[{},", commands(0..2)).as_bytes());
    assert_eq!(stream.end().status, 201);
    assert_eq!(count(&server), 2);
}

/// The Node client closes the array, leaves the body open, and waits for the answer.
#[test]
fn a_closed_array_is_the_end_although_the_body_goes_on() {
    let server = server();
    for (id, headers) in [(1, ""), (2, "Content-Encoding: gzip\r\n")] {
        let mut stream = Stream::begin(&server, &format!("id={id}"), headers);
        let body = format!("[{}]", commands(0..id * 10));
        if headers.is_empty() {
            stream.send(body.as_bytes());
        } else {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(body.as_bytes()).expect("memory");
            encoder.flush().expect("memory");
            stream.send(encoder.get_ref());
        }
        assert_eq!(stream.0.answer().expect("an answer").status, 201);
        assert_eq!(count(&server), id as u64 * 10);
    }
}

#[test]
fn compressed_pieces_are_taken_as_they_come() {
    let server = server();
    let mut stream = Stream::begin(&server, "id=1", "Content-Encoding: gzip\r\n");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut sent = 0;
    for i in 0..5 {
        let comma = if i == 0 { "[" } else { "," };
        encoder.write_all(format!("{comma}{}", commands(i * 10..i * 10 + 10)).as_bytes()).expect("memory");
        // A sync block, as the Python client ends each buffer with.
        encoder.flush().expect("memory");
        let bytes = encoder.get_ref()[sent..].to_vec();
        sent += bytes.len();
        stream.send(&bytes);
        wait_until("a piece that was flushed", || count(&server) == (i as u64 + 1) * 10);
    }
    encoder.write_all(b"]").expect("memory");
    stream.send(&encoder.finish().expect("memory")[sent..]);
    assert_eq!(stream.end().status, 201);
}

#[test]
fn unchanged_documents_are_left_alone_when_asked() {
    let server = server();
    let etag = || server.get("/databases/db/stats").json()["LastDocEtag"].as_u64().expect("an etag");
    for (id, skip, expected) in [(1, true, 10), (2, true, 10), (3, false, 20)] {
        let mut stream = Stream::begin(&server, &format!("id={id}&skipOverwriteIfUnchanged={skip}"), "");
        stream.send(format!("[{}]", commands(0..10)).as_bytes());
        assert_eq!(stream.end().status, 201);
        assert_eq!(etag(), expected);
    }
}

#[test]
fn what_cannot_be_stored_is_refused_and_told() {
    let server = server();
    let cases: [(&str, u16, &str); 6] = [
        (r#"[{"Id":"a","Type":"Counters","Counters":{}}]"#, 501, "NotSupportedException"),
        (r#"[{"Id":"a","Type":"TimeSeriesBulkInsert"}]"#, 501, "NotSupportedException"),
        (r#"[{"Id":"a","Type":"AttachmentPUT","ContentLength":3}abc]"#, 501, "NotSupportedException"),
        (r#"[{"Id":"a","Type":"PUT","Document":{"n":01}}]"#, 500, "BulkInsertAbortedException"),
        (r#"{"Id":"a"}"#, 500, "BulkInsertAbortedException"),
        (r#"[{"Id":"a","Type":"PUT""#, 500, "BulkInsertAbortedException"),
    ];
    for (id, (body, status, kind)) in (1..).zip(cases) {
        let mut stream = Stream::begin(&server, &format!("id={id}"), "");
        stream.send(body.as_bytes());
        let answer = stream.end();
        assert_eq!((answer.status, answer.error_type().as_str()), (status, kind), "{body}");
        let state = state(&server, id);
        assert_eq!(state["Status"], "Faulted", "{state}");
        assert_eq!(state["Result"]["Message"], answer.json()["Message"]);
    }
    assert_eq!(count(&server), 0);
}

/// A client that goes on sending reads the error and not a broken pipe.
#[test]
fn the_error_reaches_a_client_that_sends_on() {
    let server = server();
    let mut stream = Stream::begin(&server, "id=1", "");
    stream.send(format!("[{},nonsense", commands(0..2)).as_bytes());
    for _ in 0..200 {
        stream.send(&[b' '; 60_000]);
    }
    assert_eq!(stream.end().status, 500);
    // The connection is of use again.
    let answer = stream.0.request("GET", "/databases/db/stats", &[], b"");
    assert_eq!(answer.status, 200);
}

#[test]
fn a_broken_connection_leaves_whole_batches_alone() {
    let server = server();
    let mut stream = Stream::begin(&server, "id=1", "");
    stream.send(format!("[{}", commands(0..5000)).as_bytes());
    wait_until("some documents", || count(&server) > 0);
    stream.send(format!(",{}", &put(9000)[..50]).as_bytes());
    drop(stream);
    wait_until("the end", || state(&server, 1)["Status"] != "InProgress");
    assert!(server.get("/databases/db/docs?id=users/9000").status == 404);
    // The documents are the first so many of the stream.
    let count = count(&server) as usize;
    assert!(count <= 5000);
    for id in [0, count - 1] {
        assert_eq!(server.get(&format!("/databases/db/docs?id=users/{id}")).status, 200);
    }
    assert_eq!(server.get(&format!("/databases/db/docs?id=users/{count}")).status, 404);
}

#[test]
fn a_killed_bulk_insert_fails_at_once() {
    let server = server();
    let mut stream = Stream::begin(&server, "id=7", "");
    stream.send(format!("[{}", commands(0..10)).as_bytes());
    wait_until("the documents that came", || count(&server) == 10);
    assert_eq!(server.request("POST", "/databases/db/operations/kill?id=7", "").status, 204);
    // It is answered although its body goes on.
    let answer = stream.0.answer().expect("an answer");
    assert_eq!((answer.status, answer.error_type().as_str()), (500, "OperationCanceledException"));
    assert_eq!(state(&server, 7)["Status"], "Canceled");
    assert_eq!(count(&server), 10);
}

#[test]
fn many_streams_at_once() {
    let server = server();
    std::thread::scope(|scope| {
        for id in 1..=8 {
            let server = &server;
            scope.spawn(move || {
                let mut stream = Stream::begin(server, &format!("id={id}"), "");
                stream.send(b"[");
                stream.send(commands(id * 1000..id * 1000 + 500).as_bytes());
                stream.send(b"]");
                assert_eq!(stream.end().status, 201);
            });
        }
    });
    assert_eq!(count(&server), 8 * 500);
}
