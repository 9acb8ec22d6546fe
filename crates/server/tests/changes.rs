//! The changes API, from outside: handshake, watches, what is told to whom, hostile frames, and how sockets end.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::TestServer;
use support::websocket::{ACCEPT, BINARY, CLOSE, PING, PONG, TEXT, WebSocket, frame, handshake};

fn server() -> TestServer {
    let server = TestServer::start();
    server.create_database("Shop");
    server
}

fn put(server: &TestServer, id: &str, collection: &str) -> String {
    let body = json!({ "a": 1, "@metadata": { "@collection": collection } }).to_string();
    let answer = server.request("PUT", &format!("/databases/Shop/docs?id={id}"), &body);
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["ChangeVector"].as_str().expect("a change vector").to_owned()
}

fn delete(server: &TestServer, id: &str) {
    assert_eq!(server.request("DELETE", &format!("/databases/Shop/docs?id={id}"), "").status, 204);
}

/// Type and id of each document change.
fn told(messages: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    messages
        .iter()
        .map(|message| {
            assert_eq!(message["Type"], "DocumentChange");
            (text(&message["Value"]["Type"]), text(&message["Value"]["Id"]))
        })
        .collect()
}

#[test]
fn the_handshake_is_checked() {
    let server = server();
    let url = "/databases/Shop/changes";
    let own = server.url();
    for (headers, status) in [
        (&[("Upgrade", "")][..], 400),
        (&[("Upgrade", "h2c")], 400),
        (&[("Connection", "keep-alive")], 400),
        (&[("Sec-WebSocket-Version", "8")], 400),
        (&[("Sec-WebSocket-Version", "")], 400),
        (&[("Sec-WebSocket-Key", "")], 400),
        (&[("Sec-WebSocket-Key", "short")], 400),
        (&[("Origin", "http://elsewhere.example")], 403),
        (&[("Origin", "null")], 403),
        (&[("Origin", own.as_str())], 101),
        (&[("Connection", "keep-alive, UPGRADE"), ("Upgrade", "WebSocket")], 101),
        (&[("Sec-WebSocket-Extensions", "permessage-deflate"), ("Sec-WebSocket-Protocol", "x")], 101),
    ] {
        let answer = handshake(&mut server.client(), url, headers);
        assert_eq!(answer.status, status, "{headers:?}: {}", answer.text());
        match status {
            101 => {
                assert_eq!(answer.header("sec-websocket-accept"), Some(ACCEPT));
                assert_eq!(answer.header("sec-websocket-extensions"), None, "nothing of it is understood");
                assert_eq!(answer.header("content-length"), None);
            }
            403 => assert_eq!(answer.error_type(), "AuthorizationException"),
            _ => assert_eq!(answer.error_type(), "BadRequestException"),
        }
    }
    let answer = handshake(&mut server.client(), url, &[("Sec-WebSocket-Version", "8")]);
    assert_eq!(answer.header("sec-websocket-version"), Some("13"));
    let answer = handshake(&mut server.client(), "/databases/none/changes", &[]);
    assert_eq!((answer.status, answer.header("database-missing")), (500, Some("none")));
    assert_eq!(answer.error_type(), "DatabaseDoesNotExistException");
    assert_eq!(server.get(url).status, 400);
    assert_eq!(server.request("POST", url, "").error_type(), "RouteNotFoundException");
}

#[test]
fn each_hears_of_what_it_watches_and_of_nothing_else() {
    let server = server();
    let watches = [
        ("watch-docs", Value::Null, &["users/1", "users/2", "orders/1", "users/1"][..]),
        ("watch-doc", json!("USERS/1"), &["users/1", "users/1"]),
        ("watch-prefix", json!("Users/"), &["users/1", "users/2", "users/1"]),
        ("watch-collection", json!("orders"), &["orders/1"]),
        ("watch-doc", json!("users/3"), &[]),
        ("watch-operations", Value::Null, &[]),
    ];
    let mut sockets: Vec<_> = watches
        .iter()
        .map(|(command, param, _)| WebSocket::watching(&server, "shop", command, param.clone()))
        .collect();
    let change_vector = put(&server, "users/1", "Users");
    put(&server, "users/2", "Users");
    put(&server, "orders/1", "Orders");
    delete(&server, "users/1");
    delete(&server, "users/none");
    for ((command, param, expected), socket) in watches.iter().zip(&mut sockets) {
        let messages = socket.messages();
        let ids: Vec<String> = told(&messages).into_iter().map(|(_, id)| id).collect();
        assert_eq!(ids, *expected, "{command} {param}");
    }
    // The shape, on a socket that watches the same thing in several ways and hears of it once.
    let mut socket = WebSocket::watching(&server, "Shop", "watch-docs", Value::Null);
    socket.command("watch-doc", json!("users/1"));
    socket.command("watch-doc", json!("Users/1"));
    socket.command("watch-prefix", json!("us"));
    let second = put(&server, "users/1", "Users");
    assert_ne!(change_vector, second);
    delete(&server, "Users/1");
    let messages = socket.messages();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(
        messages[0],
        json!({
            "Type": "DocumentChange",
            "Value": { "Type": "Put", "Id": "users/1", "CollectionName": "Users", "ChangeVector": second },
        })
    );
    let deletion = &messages[1]["Value"];
    assert_eq!((&deletion["Type"], &deletion["Id"]), (&json!("Delete"), &json!("users/1")));
    assert_eq!(deletion["CollectionName"], "Users", "a deletion tells the collection");
}

#[test]
fn a_batch_is_told_in_order_and_a_refused_one_not_at_all() {
    let server = server();
    let mut socket = WebSocket::watching(&server, "Shop", "watch-docs", Value::Null);
    let command =
        |id: String| json!({ "Type": "PUT", "Id": id, "ChangeVector": null, "Document": { "a": 1 } });
    let mut commands: Vec<Value> = (0..500).map(|index| command(format!("a/{index}"))).collect();
    let bulk = |commands: &[Value]| {
        server.request("POST", "/databases/Shop/bulk_docs", &json!({ "Commands": commands }).to_string())
    };
    assert_eq!(bulk(&commands).status, 201);
    let messages = socket.messages();
    assert!(told(&messages).into_iter().map(|(_, id)| id).eq((0..500).map(|index| format!("a/{index}"))));
    commands.push(json!({ "Type": "DELETE", "Id": "a/1", "ChangeVector": "A:999-x" }));
    assert_eq!(bulk(&commands).status, 409);
    assert_eq!(socket.messages(), [] as [Value; 0]);
}

#[test]
fn an_unwatch_ends_what_it_names() {
    let server = server();
    let mut socket = WebSocket::watching(&server, "Shop", "watch-doc", json!("users/1"));
    socket.command("watch-collection", json!("Orders"));
    socket.command("unwatch-doc", json!("Users/1"));
    socket.command("unwatch-doc", json!("users/never-watched"));
    put(&server, "users/1", "Users");
    put(&server, "orders/1", "Orders");
    assert_eq!(told(&socket.messages()), [("Put".to_owned(), "orders/1".to_owned())]);
    socket.command("unwatch-collection", json!("Orders"));
    put(&server, "orders/1", "Orders");
    assert_eq!(socket.messages(), [] as [Value; 0]);
}

#[test]
fn caches_and_topologies_are_told() {
    let server = server();
    let mut cache = WebSocket::watching(&server, "Shop", "watch-aggressive-caching", Value::Null);
    let mut topology = WebSocket::watching(&server, "SHOP", "watch-topology-change", json!(""));
    put(&server, "users/1", "Users");
    assert_eq!(cache.message(), json!({ "Type": "AggressiveCacheChange" }));
    delete(&server, "users/1");
    assert_eq!(cache.message(), json!({ "Type": "AggressiveCacheChange" }));
    let order = json!({ "MembersOrder": ["A"], "Fixed": true }).to_string();
    assert_eq!(server.request("POST", "/admin/databases/reorder?name=shop", &order).status, 204);
    assert_eq!(
        topology.message(),
        json!({ "Type": "TopologyChange", "Value": { "Url": server.url(), "Database": "Shop" } })
    );
    assert_eq!(cache.messages(), [] as [Value; 0]);
}

#[test]
fn what_has_no_events_yet_is_confirmed_all_the_same() {
    let server = server();
    let mut socket = WebSocket::open(&server, "Shop");
    for verb in ["watch", "unwatch"] {
        for (subject, param) in [
            ("counters", Value::Null),
            ("counter", json!("likes")),
            ("document-counters", json!("users/1")),
            ("all-timeseries", Value::Null),
            ("timeseries", json!("HeartRate")),
            ("all-document-timeseries", json!("users/1")),
            ("operation", json!("12")),
            ("operations", Value::Null),
        ] {
            socket.command(&format!("{verb}-{subject}"), param);
        }
    }
    for (id, subject) in [(900, "document-counter"), (901, "document-timeseries")] {
        let command = json!({
            "CommandId": id, "Command": format!("watch-{subject}"), "Param": null, "Params": ["users/1", "x"],
        });
        socket.send(TEXT, command.to_string().as_bytes());
        socket.wait_for_confirmation(id);
    }
}

#[test]
fn many_commands_at_once_are_confirmed_in_order() {
    let server = server();
    let mut socket = WebSocket::open(&server, "Shop");
    let mut bytes = Vec::new();
    for id in 0..2000 {
        let command = json!({ "CommandId": id, "Command": "watch-doc", "Param": format!("users/{id}") });
        bytes.extend_from_slice(&frame(TEXT, command.to_string().as_bytes(), true));
    }
    socket.send_raw(&bytes);
    for id in 0..2000 {
        assert_eq!(socket.message(), json!({ "CommandId": id, "Type": "Confirm" }));
    }
    put(&server, "users/1999", "Users");
    assert_eq!(told(&[socket.message()]), [("Put".to_owned(), "users/1999".to_owned())]);
}

#[test]
fn what_is_sent_with_the_handshake_is_not_lost() {
    let server = server();
    let mut client = server.client();
    let mut bytes = format!(
        "GET /databases/shop/changes HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {}\r\n\r\n",
        support::websocket::KEY
    )
    .into_bytes();
    bytes.extend(frame(TEXT, br#"{"CommandId":7,"Command":"watch-docs"}"#, true));
    client.send(&bytes);
    let mut socket = WebSocket::over(client);
    socket.wait_for_confirmation(7);
}

#[test]
fn frames_may_come_in_pieces_and_pings_are_answered() {
    let server = server();
    let mut socket = WebSocket::open(&server, "Shop");
    let (first, rest) = (br#"{"CommandId":5,"Comm"#, br#"and":"watch-docs"}"#);
    socket.send(TEXT & 0x7f, first);
    socket.send(PING, b"are you there");
    assert_eq!(socket.frame(), Some((PONG, b"are you there".to_vec())));
    socket.send(0x80, rest);
    socket.wait_for_confirmation(5);
    for byte in frame(TEXT, br#"{"CommandId":6,"Command":"watch-docs"}"#, true) {
        socket.send_raw(&[byte]);
    }
    socket.wait_for_confirmation(6);
    socket.send(CLOSE, &1000_u16.to_be_bytes());
    assert_eq!(socket.close_code(), Some(1000));
}

#[test]
fn hostile_frames_end_their_socket_and_nothing_else() {
    let server = server();
    let mut bystander = WebSocket::watching(&server, "Shop", "watch-docs", Value::Null);
    let text = |text: &str| frame(TEXT, text.as_bytes(), true);
    let mut long_in_pieces = frame(TEXT & 0x7f, &[b' '; 40_000], true);
    long_in_pieces.extend(frame(0x80, &[b' '; 40_000], true));
    let mut huge_head = vec![TEXT, 0xff];
    huge_head.extend_from_slice(&u64::MAX.to_be_bytes());
    huge_head.extend_from_slice(b"mask");
    let cases: Vec<(&str, Vec<u8>, u16)> = vec![
        ("not masked", frame(TEXT, b"{}", false), 1002),
        ("binary", frame(BINARY, b"{}", true), 1003),
        ("a reserved kind", frame(0x83, b"", true), 1002),
        ("a reserved control kind", frame(0x8b, b"", true), 1002),
        ("reserved bits", frame(0xc1, b"{}", true), 1002),
        ("a continuation of nothing", frame(0x80, b"{}", true), 1002),
        ("a message within a message", [frame(0x01, b"{", true), frame(TEXT, b"}", true)].concat(), 1002),
        ("a ping in pieces", frame(PING & 0x7f, b"", true), 1002),
        ("a long ping", frame(PING, &[0; 126], true), 1002),
        ("a close frame of one byte", frame(CLOSE, &[3], true), 1002),
        ("a frame that is too long", frame(TEXT, &[b' '; 65_537], true), 1009),
        ("a message that is too long", long_in_pieces, 1009),
        ("a length of 2^64", huge_head, 1009),
        ("no UTF-8", frame(TEXT, b"\"\xff\xfe\"", true), 1007),
        ("no JSON", text("watch-docs"), 1007),
        ("no object", text("[1]"), 1007),
        ("an empty text", text(""), 1007),
        ("deep JSON", text(&"[".repeat(60_000)), 1007),
        ("no command", text("{}"), 1007),
        ("an unknown command", text(r#"{"CommandId":1,"Command":"watch-all"}"#), 1008),
        ("a command without its parameter", text(r#"{"CommandId":1,"Command":"watch-doc"}"#), 1008),
        ("a request", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(9), 1002),
    ];
    for (name, bytes, code) in cases {
        let mut socket = WebSocket::open(&server, "Shop");
        socket.send_raw(&bytes);
        assert_eq!(socket.close_code(), Some(code), "{name}");
        if code == 1008 {
            let error = socket.message();
            assert_eq!(error["Type"], "Error", "{name}");
            assert!(error["Exception"].is_string(), "{name}");
        }
    }
    for seed in 0..200 {
        let mut random = jackdaw_testkit::Random::new(seed);
        let mut socket = WebSocket::open(&server, "Shop");
        let size = 1 + random.below(3000);
        socket.send_raw(&random.bytes(size));
        socket.client().socket().shutdown(std::net::Shutdown::Write).expect("a half close");
        let code = socket.close_code();
        assert!(matches!(code, None | Some(1002 | 1003 | 1007 | 1009)), "seed {seed}: {code:?}");
    }
    put(&server, "users/1", "Users");
    assert_eq!(told(&bystander.messages()).len(), 1);
    assert_eq!(server.metric("jackdaw_http_panics_total"), 0.0);
}

#[test]
fn a_command_that_is_wrong_leaves_those_before_it_confirmed() {
    let server = server();
    let mut socket = WebSocket::open(&server, "Shop");
    let mut bytes = frame(TEXT, br#"{"CommandId":1,"Command":"watch-docs"}"#, true);
    bytes.extend(frame(TEXT, br#"{"CommandId":2,"Command":"explode"}"#, true));
    socket.send_raw(&bytes);
    assert_eq!(socket.close_code(), Some(1008));
    assert_eq!(socket.message(), json!({ "CommandId": 1, "Type": "Confirm" }));
    assert_eq!(socket.message()["Exception"], "unknown command 'explode'");
}

#[test]
fn a_database_that_goes_takes_its_sockets_along() {
    let server = server();
    server.create_database("other");
    let mut others = WebSocket::watching(&server, "other", "watch-docs", Value::Null);
    for (method, url, body, status, then) in [
        ("POST", "/admin/databases/disable", r#"{"DatabaseNames":["Shop"]}"#, 200, 503),
        ("POST", "/admin/databases/enable", r#"{"DatabaseNames":["Shop"]}"#, 200, 101),
        ("DELETE", "/admin/databases", r#"{"DatabaseNames":["Shop"],"HardDelete":true}"#, 200, 500),
    ] {
        let mut sockets: Vec<WebSocket> = match url {
            "/admin/databases/enable" => Vec::new(),
            _ => (0..20).map(|_| WebSocket::watching(&server, "shop", "watch-docs", Value::Null)).collect(),
        };
        // One that never reads must not keep the database from closing.
        let silent = (!sockets.is_empty()).then(|| WebSocket::open(&server, "shop"));
        assert_eq!(server.request(method, url, body).status, status);
        for socket in &mut sockets {
            assert_eq!(socket.close_code(), Some(1001), "{url}");
        }
        drop(silent);
        assert_eq!(handshake(&mut server.client(), "/databases/Shop/changes", &[]).status, then, "{url}");
    }
    assert_eq!(others.messages(), [] as [Value; 0]);
}

#[test]
fn a_server_that_stops_says_so_to_its_sockets() {
    let mut server = server();
    let mut sockets: Vec<WebSocket> =
        (0..50).map(|_| WebSocket::watching(&server, "Shop", "watch-docs", Value::Null)).collect();
    assert_eq!(server.metric("jackdaw_websockets"), 50.0);
    let stopping = server.stop_in_background();
    for socket in &mut sockets {
        assert_eq!(socket.close_code(), Some(1001));
    }
    drop(sockets);
    stopping.join().expect("stopped");
}

#[test]
fn sockets_that_close_are_let_go() {
    let server = server();
    for round in 0..3 {
        let sockets: Vec<WebSocket> =
            (0..50).map(|_| WebSocket::watching(&server, "Shop", "watch-doc", json!("a"))).collect();
        assert_eq!(server.metric("jackdaw_websockets"), 50.0, "round {round}");
        drop(sockets);
        while server.metric("jackdaw_websockets") > 0.0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    // The one that asks.
    while server.metric("jackdaw_http_connections") > 1.0 {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_watched_database_stays_open_when_others_are_closed_for_being_idle() {
    let server = TestServer::with(&[("database-idle-after", "500ms")]);
    server.create_database("Shop");
    server.create_database("idle");
    let mut socket = WebSocket::watching(&server, "Shop", "watch-docs", Value::Null);
    let loaded = server.metric("jackdaw_databases_loaded_total");
    while server.metric("jackdaw_databases_unloaded_total") < 1.0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    put(&server, "users/1", "Users");
    assert_eq!(told(&[socket.message()]).len(), 1);
    assert_eq!(server.metric("jackdaw_databases_loaded_total"), loaded, "it did not have to be opened again");
    drop(socket);
    while server.metric("jackdaw_databases_unloaded_total") < 2.0 {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn who_takes_nothing_is_cut_off_and_others_miss_nothing() {
    let server = server();
    let slow = WebSocket::watching(&server, "Shop", "watch-docs", Value::Null);
    let mut quick = WebSocket::watching(&server, "Shop", "watch-docs", Value::Null);
    let reader = std::thread::spawn(move || {
        let mut seen = 0;
        loop {
            let message = quick.message();
            if message["Value"]["Id"] == "last" {
                return seen;
            }
            seen += 1;
        }
    });
    // Long ids, so that what the system buffers for the slow one is soon full.
    let mut written = 0;
    while server.metric("jackdaw_websockets_cut_off_total") == 0.0 {
        assert!(written < 200_000, "nobody was cut off");
        let commands: Vec<Value> = (0..1000)
            .map(|index| {
                let id = format!("{:0>450}/{}", "", written + index);
                json!({ "Type": "PUT", "Id": id, "ChangeVector": null, "Document": {} })
            })
            .collect();
        let body = json!({ "Commands": commands }).to_string();
        assert_eq!(server.request("POST", "/databases/Shop/bulk_docs", &body).status, 201);
        written += 1000;
    }
    put(&server, "last", "X");
    assert_eq!(reader.join().expect("all of them"), written);
    assert_eq!(server.metric("jackdaw_websockets_cut_off_total"), 1.0);
    drop(slow);
}

#[test]
fn slow_idle_sockets_hear_the_heartbeat() {
    let server = server();
    let mut sockets: Vec<WebSocket> = (0..40).map(|_| WebSocket::open(&server, "Shop")).collect();
    for socket in &mut sockets {
        for _ in 0..2 {
            assert_eq!(socket.frame(), Some((TEXT, b"[]".to_vec())));
        }
    }
}
