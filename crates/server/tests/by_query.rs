//! Queries on collections, and `PATCH` and `DELETE /queries`, from outside.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Answer, TestServer};

fn server() -> TestServer {
    let server = TestServer::start();
    server.create_database("Shop");
    for number in 0..10 {
        put(
            &server,
            &format!("orders/{number}"),
            "Orders",
            &json!({ "Total": number, "Company": "companies/1" }),
        );
    }
    put(&server, "companies/1", "Companies", &json!({ "Name": "Alpha" }));
    server
}

fn put(server: &TestServer, id: &str, collection: &str, document: &Value) {
    let mut document = document.clone();
    document["@metadata"] = json!({ "@collection": collection });
    let answer = server.request("PUT", &format!("/databases/Shop/docs?id={id}"), &document.to_string());
    assert_eq!(answer.status, 201, "{}", answer.text());
}

fn ask(server: &TestServer, text: &str) -> Answer {
    server.request("POST", "/databases/Shop/queries", &json!({ "Query": text }).to_string())
}

fn count(server: &TestServer, text: &str) -> u64 {
    let answer = ask(server, text);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["TotalResults"].as_u64().expect("a count")
}

/// Starts an operation and waits for its end; its state.
fn operate(server: &TestServer, method: &str, url: &str, body: &Value) -> Value {
    let answer = server.request(method, url, &body.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let id = answer.json()["OperationId"].as_i64().expect("an id");
    let begun = Instant::now();
    loop {
        let state = server.get(&format!("/databases/Shop/operations/state?id={id}")).json();
        if state["Status"] != "InProgress" {
            return state;
        }
        assert!(begun.elapsed() < support::LONG, "{state}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_envelope_has_every_property() {
    let server = server();
    let answer = ask(&server, "from Orders where id() = 'ORDERS/3' include Company");
    let etag = answer.header("etag").expect("an etag").to_owned();
    let json = answer.json();
    assert_eq!(json["ResultEtag"].to_string(), etag, "an etag without quotes");
    for (name, expected) in [
        ("TotalResults", json!(1)),
        ("LongTotalResults", json!(1)),
        ("ScannedResults", json!(0)),
        ("SkippedResults", json!(0)),
        ("IncludedPaths", json!(["Company"])),
        ("IndexName", json!("collection/Orders")),
        ("IndexTimestamp", json!("0001-01-01T00:00:00.0000000")),
        ("LastQueryTime", json!("0001-01-01T00:00:00.0000000")),
        ("IsStale", json!(false)),
        ("NodeTag", json!("A")),
    ] {
        assert_eq!(json[name], expected, "{name}");
    }
    assert_eq!(json["Includes"]["companies/1"]["Name"], "Alpha");
    let metadata = &json["Results"][0]["@metadata"];
    assert_eq!(metadata["@id"], "orders/3");
    assert!(metadata.get("@index-score").is_none() && metadata.get("@projection").is_none());
}

#[test]
fn an_etag_lasts_until_the_answer_changes() {
    let server = server();
    let mut client = server.client();
    let mut asked = |text: &str, etag: Option<&str>| {
        let headers: Vec<(&str, &str)> = etag.iter().map(|etag| ("If-None-Match", *etag)).collect();
        client.request(
            "POST",
            "/databases/Shop/queries",
            &headers,
            json!({ "Query": text }).to_string().as_bytes(),
        )
    };
    for (text, changes_with_companies) in
        [("from Orders limit 3", false), ("from Orders limit 3 include Company", true)]
    {
        let etag = asked(text, None).header("etag").expect("an etag").to_owned();
        let quoted = format!("\"{etag}\"");
        assert_eq!(asked(text, Some(&quoted)).status, 304, "{text}");
        put(&server, "companies/1", "Companies", &json!({ "Name": format!("Beta of {text}") }));
        let status = if changes_with_companies { 200 } else { 304 };
        assert_eq!(asked(text, Some(&quoted)).status, status, "{text}");
        put(&server, "orders/3", "Orders", &json!({ "Total": 3, "Company": "companies/1", "Of": text }));
        assert_eq!(asked(text, Some(&quoted)).status, 200, "{text}");
    }
}

#[test]
fn what_a_query_finds_is_deleted() {
    let server = server();
    let state = operate(
        &server,
        "DELETE",
        "/databases/Shop/queries?allowStale=&maxOpsPerSec=None&details=true",
        &json!({
            "Query": "from Orders where startsWith(id(), $p)", "QueryParameters": { "p": "orders/1" },
        }),
    );
    assert_eq!(state["Status"], "Completed", "{state}");
    assert_eq!(state["Result"]["Total"], 1);
    assert_eq!(state["Result"]["Message"], "Processed 1 items.");
    assert_eq!(state["Result"]["Details"][0]["Id"], "orders/1");
    assert_eq!(count(&server, "from Orders"), 9);
    operate(&server, "DELETE", "/databases/Shop/queries", &json!({ "Query": "from Orders limit 4" }));
    assert_eq!(count(&server, "from Orders"), 5);
}

#[test]
fn what_a_query_finds_is_changed() {
    let server = server();
    let state = operate(
        &server,
        "PATCH",
        "/databases/Shop/queries?details=true",
        &json!({ "Query": {
        "Query": "from Orders as o load o.Company as c update { o.Total += args.more; this.Name = c.Name; }",
        "QueryParameters": { "more": 100 },
    } }),
    );
    assert_eq!(state["Status"], "Completed", "{state}");
    assert_eq!(state["Result"]["Total"], 10);
    assert_eq!(state["Result"]["Details"][9]["Status"], "Patched");
    let changed = server.get("/databases/Shop/docs?id=orders/7").json();
    assert_eq!(changed["Results"][0]["Total"], 107);
    assert_eq!(changed["Results"][0]["Name"], "Alpha");
}

#[test]
fn what_goes_wrong_is_told_by_the_operation() {
    let server = server();
    for (method, body, kind) in [
        ("PATCH", json!({ "Query": { "Query": "from Orders update { throw 5; }" } }), "JavaScriptException"),
        (
            "PATCH",
            json!({ "Query": { "Query": "from index 'Nope' update { this.x = 1 }" } }),
            "IndexDoesNotExistException",
        ),
        ("DELETE", json!({ "Query": "from index 'Nope'" }), "IndexDoesNotExistException"),
    ] {
        let state = operate(&server, method, "/databases/Shop/queries", &body);
        assert_eq!(state["Status"], "Faulted", "{state}");
        let found = state["Result"]["Type"].as_str().expect("a type");
        assert!(found.ends_with(kind), "{found}");
    }
    for (method, body) in [
        ("PATCH", json!({ "Query": { "Query": "from Orders" } })),
        ("DELETE", json!({ "Query": "from Orders where" })),
        ("DELETE", json!({ "Query": "from Orders update { }" })),
    ] {
        let answer = server.request(method, "/databases/Shop/queries", &body.to_string());
        assert_eq!(answer.status, 500);
        assert!(answer.error_type().ends_with("ParseException"), "{}", answer.text());
    }
    assert_eq!(count(&server, "from Orders"), 10);
}

#[test]
fn streams_have_what_is_known_before_the_results() {
    let server = server();
    let body = json!({ "Query": "from Orders select Total" }).to_string();
    let stream = server.request("POST", "/databases/Shop/streams/queries", &body);
    assert!(stream.text().starts_with("{\"ResultEtag\":"), "{}", stream.text());
    assert_eq!(stream.json()["Results"].as_array().map(Vec::len), Some(10));
    let lines = server.request("POST", "/databases/Shop/streams/queries?format=jsonl", &body).text();
    assert!(lines.starts_with("{\"Stats\":{"));
    assert_eq!(lines.lines().filter(|line| line.starts_with("{\"Item\":{\"Total\":")).count(), 10);
    let table = server.request("POST", "/databases/Shop/streams/queries?format=csv", &body);
    assert_eq!(table.header("content-type"), Some("text/csv"));
    assert!(
        table.text().starts_with("\u{feff}@id,Total,@metadata.@projection\r\norders/0,0,True\r\n"),
        "{}",
        table.text()
    );
    let missing = json!({ "Query": "from index 'Nope'" }).to_string();
    assert_eq!(server.request("POST", "/databases/Shop/streams/queries", &missing).status, 404);
}

#[test]
fn hostile_queries_are_refused_and_the_server_goes_on() {
    let server = server();
    let deep = format!("from Orders where {}Total = 1{}", "(".repeat(5000), ")".repeat(5000));
    let long = format!("from Orders where Total in ({})", vec!["1"; 100_000].join(","));
    for (text, statuses) in [
        (&*deep, &[500][..]),
        (&*long, &[200]),
        ("from Orders where Total = '\u{0}", &[500]),
        ("\u{feff}", &[500]),
    ] {
        let answer = ask(&server, text);
        assert!(
            statuses.contains(&answer.status),
            "{} {}",
            answer.status,
            &answer.text()[..200.min(answer.text().len())]
        );
    }
    for body in [
        "",
        "[]",
        "5",
        "{",
        "{\"Query\":5}",
        "{\"Query\":\"from Orders\",\"QueryParameters\":[1]}",
        "{\"Query\":\"from Orders\",\"Start\":-1}",
    ] {
        let answer = server.request("POST", "/databases/Shop/queries", body);
        assert!(answer.status >= 400, "{body}: {}", answer.text());
    }
    assert_eq!(count(&server, "from Orders"), 10);
}
