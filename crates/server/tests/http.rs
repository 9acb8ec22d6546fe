//! HTTP itself: connections, bodies, encodings, limits, slow and dead peers, stopping.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::io::{Read, Write};

use support::TestServer;

const RECORD: &str = r#"{"DatabaseName":"x"}"#;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

#[test]
fn a_connection_takes_many_requests_and_answers_in_order() {
    let server = TestServer::start();
    let mut client = server.client();
    for _ in 0..100 {
        assert_eq!(client.request("GET", "/build/version", &[], b"").status, 200);
    }
    // Sent ahead of the answers.
    client.send(
        &b"GET /build/version HTTP/1.1\r\nHost: x\r\n\r\nGET /nope HTTP/1.1\r\nHost: x\r\n\r\n".repeat(20),
    );
    for _ in 0..20 {
        assert_eq!(client.answer().map(|answer| answer.status), Some(200));
        assert_eq!(client.answer().map(|answer| answer.status), Some(400));
    }
    client.send(b"GET /build/version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_eq!(client.answer().map(|answer| answer.status), Some(200));
    assert!(client.is_closed());
}

#[test]
fn bodies_come_in_all_encodings() {
    let server = TestServer::start();
    let brotli =
        [0x8b, 0x09, 0x80].into_iter().chain(*br#"{"DatabaseName":"x"}"#).chain([0x03]).collect::<Vec<u8>>();
    let zstd = zstd::stream::encode_all(RECORD.as_bytes(), 1).expect("in memory");
    for (coding, body) in [
        ("gzip", gzip(RECORD.as_bytes())),
        ("GZIP", gzip(RECORD.as_bytes())),
        ("deflate", deflate(RECORD.as_bytes())),
        ("br", brotli),
        ("zstd", zstd),
        ("identity", RECORD.as_bytes().to_vec()),
    ] {
        let answer =
            server.client().request("PUT", "/admin/databases", &[("Content-Encoding", coding)], &body);
        assert_eq!(answer.status, 201, "{coding}: {}", answer.text());
        server.request("DELETE", "/admin/databases", r#"{"DatabaseNames":["x"],"HardDelete":true}"#);
    }
    for (coding, body, status) in [
        ("rot13", RECORD.as_bytes().to_vec(), 415),
        ("gzip, gzip", gzip(&gzip(RECORD.as_bytes())), 415),
        ("gzip", RECORD.as_bytes().to_vec(), 400),
        ("gzip", gzip(RECORD.as_bytes())[..20].to_vec(), 400),
        ("zstd", gzip(b"x"), 400),
        ("br", b"\xff\xff".to_vec(), 400),
    ] {
        let mut client = server.client();
        let answer = client.request("PUT", "/admin/databases", &[("Content-Encoding", coding)], &body);
        assert_eq!(answer.status, status, "{coding}: {}", answer.text());
        answer.error_type();
        assert_eq!(client.request("GET", "/build/version", &[], b"").status, 200, "the connection goes on");
    }
    assert_eq!(server.get("/databases?namesOnly=true").text(), r#"{"Databases":[]}"#);
}

#[test]
fn a_chunked_body_is_a_body() {
    let server = TestServer::start();
    let mut client = server.client();
    client.send(b"PUT /admin/databases HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for byte in RECORD.bytes() {
        client.send(format!("1\r\n{}\r\n", char::from(byte)).as_bytes());
    }
    client.send(b"0\r\n\r\n");
    assert_eq!(client.answer().map(|answer| answer.status), Some(201));
}

#[test]
fn a_body_over_the_limit_is_refused_packed_or_not() {
    let server = TestServer::with(&[("request-body-size-max", "64K")]);
    let large = format!(r#"{{"DatabaseName":"x","Settings":{{"a":"{}"}}}}"#, "y".repeat(70_000));
    let bomb = gzip(&vec![b' '; 50 << 20]);
    assert!(bomb.len() < 400_000);
    let bomb_zstd = zstd::stream::encode_all(&vec![b' '; 50 << 20][..], 1).expect("in memory");
    assert!(bomb_zstd.len() < 60_000);
    for (headers, body) in [
        (&[][..], large.as_bytes()),
        (&[("Content-Encoding", "gzip")], &gzip(large.as_bytes())),
        (&[("Content-Encoding", "gzip")], &bomb),
        (&[("Content-Encoding", "zstd")], &bomb_zstd),
    ] {
        let mut client = server.client();
        let answer = client.request("PUT", "/admin/databases", headers, body);
        assert_eq!((answer.status, answer.error_type().as_str()), (413, "BadRequestException"));
        assert_eq!(client.request("GET", "/build/version", &[], b"").status, 200, "the connection goes on");
    }
    let mut client = server.client();
    client.send(b"PUT /admin/databases HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n");
    assert_eq!(client.answer().map(|answer| answer.status), Some(413), "before it is sent");
}

#[test]
fn a_body_that_nobody_reads_does_not_break_the_connection() {
    let server = TestServer::start();
    let mut client = server.client();
    let body = vec![b'x'; 3 << 20];
    for _ in 0..3 {
        let answer = client.request("POST", "/nope", &[], &body);
        assert_eq!((answer.status, answer.error_type().as_str()), (400, "RouteNotFoundException"));
    }
    assert_eq!(server.metric("jackdaw_http_bodies_unread_total"), 3.0);
}

#[test]
fn a_client_that_waits_to_send_is_told_to() {
    let server = TestServer::start();
    let mut client = server.client();
    client.send(
        format!(
            "PUT /admin/databases HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
            RECORD.len()
        )
        .as_bytes(),
    );
    let mut head = [0; 25];
    client.socket().read_exact(&mut head).expect("a word");
    assert_eq!(&head, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.send(RECORD.as_bytes());
    assert_eq!(client.answer().map(|answer| answer.status), Some(201));
}

#[test]
fn large_answers_are_compressed_as_asked() {
    let server = TestServer::start();
    for index in 0..10 {
        server.create_database(&format!("database-{index}"));
    }
    let get =
        |accept: &str| server.client().request("GET", "/databases", &[("Accept-Encoding", accept)], b"");
    let plain = get("identity");
    assert!(plain.body.len() > 4096 && plain.header("content-encoding").is_none());
    for (accept, coding) in
        [("gzip, deflate", "gzip"), ("gzip, deflate, br, zstd", "zstd"), ("gzip;q=1.0", "gzip")]
    {
        let packed = get(accept);
        assert_eq!(packed.header("content-encoding"), Some(coding));
        assert!(packed.body.len() < plain.body.len() / 2);
        let mut text = Vec::new();
        match coding {
            "gzip" => flate2::read::GzDecoder::new(&packed.body[..]).read_to_end(&mut text).expect("gzip"),
            _ => zstd::stream::copy_decode(&packed.body[..], &mut text).map(|()| 0).expect("zstd"),
        };
        let names = |text: &[u8]| {
            let list: serde_json::Value = serde_json::from_slice(text).expect("JSON");
            list["Databases"]
                .as_array()
                .expect("a list")
                .iter()
                .map(|one| one["Name"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&text), names(&plain.body));
    }
    let small = server.client().request("GET", "/build/version", &[("Accept-Encoding", "gzip")], b"");
    assert_eq!(small.header("content-encoding"), None);
}

#[test]
fn a_slow_sender_is_told_and_a_silent_one_is_closed() {
    let server = TestServer::with(&[
        ("request-body-timeout", "200ms"),
        ("request-head-timeout", "300ms"),
        ("idle-timeout", "300ms"),
    ]);
    let mut client = server.client();
    client.send(b"PUT /admin/databases HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
    let answer = client.answer().expect("an answer");
    assert_eq!((answer.status, answer.error_type().as_str()), (408, "TimeoutException"));
    let mut half_a_head = server.client();
    half_a_head.send(b"GET /build/ver");
    assert!(half_a_head.is_closed());
    let mut silent = server.client();
    assert!(silent.is_closed());
    let mut once = server.client();
    assert_eq!(once.request("GET", "/build/version", &[], b"").status, 200);
    assert!(once.is_closed());
    assert!(server.metric("jackdaw_http_connections_timed_out_total") >= 3.0);
}

#[test]
fn a_client_that_takes_no_answers_is_closed() {
    let server = TestServer::with(&[("write-timeout", "300ms")]);
    server.create_database("x");
    let client = server.client();
    // Answers pile up until no buffer has room for them; then the server closes the connection, which ends the sending.
    let request = b"GET /admin/databases?name=x HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1000);
    while client.socket().write_all(&request).is_ok() {}
    assert!(server.metric("jackdaw_http_connections_timed_out_total") > 0.0);
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let server = TestServer::with(&[("request-head-size-max", "16K")]);
    for head in [
        format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(40_000)),
        format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "a".repeat(40_000)),
        format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "a: b\r\n".repeat(500)),
    ] {
        let mut client = server.client();
        client.send(head.as_bytes());
        if let Some(answer) = client.answer() {
            assert!(matches!(answer.status, 414 | 431), "{}", answer.status);
        }
        assert!(client.is_closed());
    }
    assert_eq!(server.get("/build/version").status, 200);
}

#[test]
fn connections_over_the_limit_are_closed_and_others_go_on() {
    let server = TestServer::with(&[("connections-max", "3")]);
    let mut clients: Vec<_> = (0..3).map(|_| server.client()).collect();
    for client in &mut clients {
        assert_eq!(client.request("GET", "/build/version", &[], b"").status, 200);
    }
    assert!(server.client().is_closed());
    let refused = clients[0].request("GET", "/metrics", &[], b"").text();
    assert!(refused.contains("jackdaw_http_connections_refused_total 1\n"), "{refused}");
}

#[test]
fn stopping_lets_requests_end() {
    let mut server = TestServer::start();
    let mut idle = server.client();
    assert_eq!(idle.request("GET", "/build/version", &[], b"").status, 200);
    let mut busy = server.client();
    busy.send(b"PUT /admin/databases HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{\"Databas");
    // The head was taken in: this connection is busy. The other one hears of it.
    while !idle.request("GET", "/metrics", &[], b"").text().contains("jackdaw_http_requests_open 2\n") {}
    let stopping = server.stop_in_background();
    assert!(idle.is_closed(), "an idle connection ends at once");
    busy.send(b"eName\":\"x\"}");
    let answer = busy.answer().expect("an answer");
    assert_eq!(answer.status, 201);
    assert!(busy.is_closed());
    stopping.join().expect("stopped");
}

#[test]
fn stopping_does_not_wait_for_ever() {
    let mut server = TestServer::with(&[("shutdown-timeout", "200ms")]);
    let mut stuck = server.client();
    stuck.send(b"PUT /admin/databases HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{");
    while server.metric("jackdaw_http_requests_open") < 2.0 {}
    server.stop();
    assert!(stuck.is_closed());
}

/// The Node client asks for the end of the connection with every request, and takes the end for a failure when it follows right behind
/// a long body with a length.
#[test]
fn a_long_answer_before_the_end_of_a_connection_goes_in_chunks() {
    let server = TestServer::start();
    server.create_database("x");
    let text = "long ".repeat(10_000);
    let stored = server.request("PUT", "/databases/x/docs?id=long", &format!("{{\"text\":\"{text}\"}}"));
    assert_eq!(stored.status, 201);
    let mut client = server.client();
    let answer = client.request("GET", "/databases/x/docs?id=long", &[("Connection", "close")], b"");
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
    assert_eq!(answer.header("content-length"), None);
    assert_eq!(answer.json()["Results"][0]["text"], text);
    assert!(client.is_closed());
    let mut client = server.client();
    let short = client.request("GET", "/build/version", &[("Connection", "close")], b"");
    assert!(short.header("content-length").is_some());
}
