//! Documents, batches, ids, compare-exchange values, streams and statistics, as they are on the wire.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::{Value, json};
use support::{Answer, TestServer};

fn started() -> TestServer {
    let server = TestServer::start();
    server.create_database("x");
    server
}

fn put(server: &TestServer, id: &str, document: Value) -> String {
    let answer = server.request("PUT", &format!("/databases/x/docs?id={id}"), &document.to_string());
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["ChangeVector"].as_str().unwrap().to_owned()
}

fn with_header(server: &TestServer, method: &str, url: &str, header: (&str, &str), body: &str) -> Answer {
    server.client().request(method, url, &[header], body.as_bytes())
}

fn batch(server: &TestServer, body: Value) -> Answer {
    server.request("POST", "/databases/x/bulk_docs", &body.to_string())
}

fn count(server: &TestServer) -> i64 {
    server.get("/databases/x/stats").json()["CountOfDocuments"].as_i64().unwrap()
}

#[test]
fn a_document_is_stored_loaded_and_deleted() {
    let server = started();
    let vector = put(&server, "users/1", json!({"name": "Ada", "@metadata": {"@collection": "Users"}}));
    let url = "/databases/x/docs?&id=users%2F1";
    let answer = server.get(url);
    assert_eq!(answer.header("etag"), Some(format!("\"{vector}\"").as_str()));
    let document = &answer.json()["Results"][0];
    assert_eq!(document["name"], "Ada");
    assert_eq!(document["@metadata"]["@id"], "users/1");
    assert_eq!(document["@metadata"]["@change-vector"], vector.as_str());
    assert_eq!(document["@metadata"]["@last-modified"].as_str().unwrap().len(), 28);
    assert_eq!(answer.json()["Includes"], json!({}));

    let quoted = format!("\"{vector}\"");
    for known in [&quoted, &vector] {
        assert_eq!(with_header(&server, "GET", url, ("If-None-Match", known), "").status, 304);
        assert_eq!(with_header(&server, "HEAD", url, ("If-None-Match", known), "").status, 304);
    }
    let head = server.request("HEAD", url, "");
    assert_eq!((head.status, head.header("etag")), (200, Some(quoted.as_str())));
    assert_eq!(server.request("HEAD", "/databases/x/docs?id=none", "").status, 404);

    assert_eq!(server.request("PUT", "/databases/x/docs?id=", "{}").status, 400);
    let conflict = with_header(&server, "PUT", url, ("If-Match", "\"A:99-other\""), "{}");
    assert_eq!((conflict.status, conflict.error_type().as_str()), (409, "ConcurrencyException"));
    assert_eq!(conflict.json()["Id"], "users/1");
    assert_eq!(conflict.json()["ActualChangeVector"], vector.as_str());
    assert_eq!(conflict.json()["ExpectedChangeVector"], "A:99-other");
    assert_eq!(with_header(&server, "DELETE", url, ("If-Match", "\"A:99-other\""), "").status, 409);
    assert_eq!(with_header(&server, "DELETE", url, ("If-Match", &quoted), "").status, 204);
    let missing = server.get(url);
    assert_eq!((missing.status, missing.body.len(), missing.header("content-length")), (404, 0, Some("0")));
    assert_eq!(server.request("DELETE", url, "").status, 204);
}

#[test]
fn several_documents_come_in_the_order_asked_with_what_they_include() {
    let server = started();
    put(&server, "c/1", json!({"name": "Acme"}));
    put(&server, "p/1", json!({"n": 1}));
    put(&server, "p/2", json!({"n": 2}));
    let order = json!({"company": "c/1", "lines": [{"product": "p/1"}, {"product": "P/2"}, {"product": "p/9"}], "more": ["p/1"]});
    put(&server, "o/1", order);
    let url = "/databases/x/docs?id=none&id=o/1&include=company&include=lines[].product&include=more&include=nothing";
    let answer = server.get(url);
    let body = answer.json();
    assert_eq!(body["Results"][0], Value::Null);
    assert_eq!(body["Results"][1]["company"], "c/1");
    let included: Vec<&String> = body["Includes"].as_object().unwrap().keys().collect();
    assert_eq!(included, ["c/1", "p/1", "p/2"]);
    let etag = answer.header("etag").unwrap().to_owned();
    assert!(etag.starts_with("\"Hash-"), "{etag}");
    assert_eq!(with_header(&server, "GET", url, ("If-None-Match", &etag), "").status, 304);
    // A change of what is included changes the answer.
    put(&server, "p/2", json!({"n": 3}));
    let again = with_header(&server, "GET", url, ("If-None-Match", &etag), "");
    assert_eq!(again.json()["Includes"]["p/2"]["n"], 3);
    let all_missing = server.get("/databases/x/docs?id=none&id=nobody");
    assert_eq!((all_missing.status, &all_missing.json()["Results"]), (200, &json!([null, null])));
    let metadata = server.get("/databases/x/docs?id=o/1&metadataOnly=true").json();
    assert_eq!(metadata["Results"][0].as_object().unwrap().keys().collect::<Vec<_>>(), ["@metadata"]);
    let posted = server.request("POST", "/databases/x/docs?loadHash=1", r#"{"ids":["o/1","none"]}"#).json();
    assert_eq!(posted["Results"].as_array().unwrap().len(), 2);
    for (url, body) in [("/databases/x/docs?loadHash=1", "[]"), ("/databases/x/docs", r#"{"Ids":[1]}"#)] {
        assert_eq!(server.request("POST", url, body).status, 400, "{body}");
    }
}

#[test]
fn documents_are_found_by_prefix_and_by_pages() {
    let server = started();
    for i in 0..20 {
        put(&server, &format!("Users/{i:02}"), json!({"i": i}));
    }
    put(&server, "others/1", json!({}));
    let ids = |url: &str| -> Vec<String> {
        let body = server.get(&format!("/databases/x/docs?{url}")).json();
        let id = |document: &Value| document["@metadata"]["@id"].as_str().unwrap().to_owned();
        body["Results"].as_array().unwrap().iter().map(id).collect()
    };
    assert_eq!(ids("startsWith=users/&start=2&pageSize=3"), ["Users/02", "Users/03", "Users/04"]);
    assert_eq!(ids("startsWith=users/&startAfter=users/17"), ["Users/18", "Users/19"]);
    assert_eq!(
        ids("startsWith=users/&matches=0?%7C1*&exclude=*1%7C*2&pageSize=4"),
        ["Users/00", "Users/03", "Users/04", "Users/05"]
    );
    assert_eq!(ids("startsWith=nobody"), [] as [&str; 0]);
    assert_eq!(ids("start=0&pageSize=2"), ["others/1", "Users/19"]);
    let answer = server.get("/databases/x/docs?startsWith=users/");
    let etag = answer.header("etag").unwrap().to_owned();
    assert_eq!(
        with_header(&server, "GET", "/databases/x/docs?startsWith=users/", ("If-None-Match", &etag), "")
            .status,
        304
    );
    for bad in ["startsWith=u&start=-1", "pageSize=x&start=0"] {
        assert_eq!(server.get(&format!("/databases/x/docs?{bad}")).status, 400, "{bad}");
    }
}

#[test]
fn a_long_listing_is_streamed() {
    let server = started();
    let text = "x".repeat(100_000);
    for i in 0..60 {
        put(&server, &format!("big/{i:02}"), json!({"text": text}));
    }
    let answer = server.get("/databases/x/docs?startsWith=big/");
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
    assert_eq!(answer.json()["Results"].as_array().unwrap().len(), 60);
}

#[test]
fn a_batch_happens_as_a_whole_or_not_at_all() {
    let server = started();
    let answer = batch(
        &server,
        json!({"Commands": [
            {"Id": "a/1", "Type": "PUT", "ChangeVector": null, "Document": {"n": 1, "@metadata": {"@collection": "As"}}},
            {"Id": "a/", "Type": "PUT", "Document": {"n": 2}},
            {"Id": "none", "Type": "DELETE", "ChangeVector": null},
        ]}),
    );
    assert_eq!(answer.status, 201, "{}", answer.text());
    let results = answer.json()["Results"].clone();
    assert_eq!(results[0]["@collection"], "As");
    assert_eq!(results[1]["@id"], "a/0000000000000000002-A");
    assert_eq!(results[2], json!({"Id": "none", "Type": "DELETE", "Deleted": false}));
    let vector = results[0]["@change-vector"].clone();

    let put_c = json!({"Id": "c", "Type": "PUT", "Document": {}});
    let stale = json!({"Id": "a/1", "Type": "PUT", "ChangeVector": "A:77-x", "Document": {}});
    let conflict = batch(&server, json!({"Commands": [put_c, stale]}));
    assert_eq!((conflict.status, conflict.error_type().as_str()), (409, "ConcurrencyException"));
    let exists = json!({"Id": "a/1", "Type": "PUT", "ChangeVector": "", "Document": {}});
    let exists = batch(&server, json!({"Commands": [put_c, exists]}));
    assert!(exists.json()["Message"].as_str().unwrap().contains("was called with expecting new document"));
    for (bad, status, name) in [
        (json!({"Id": "b", "Type": "PUT"}), 400, "InvalidDataException"),
        (json!({"Id": "b", "Type": "PUT", "Document": []}), 400, "InvalidDataException"),
        (json!({"Id": "b", "Type": "PUT", "Document": {"@metadata": 1}}), 400, "ArgumentException"),
        (json!({"Id": "b", "Type": 1, "Document": {}}), 400, "InvalidDataException"),
        (json!({"Id": "b", "Document": {}}), 400, "InvalidDataException"),
        (json!({"Id": "", "Type": "DELETE"}), 400, "ArgumentException"),
        (json!({"Id": "b".repeat(600), "Type": "PUT", "Document": {}}), 400, "ArgumentException"),
        (json!({"Id": "b", "Type": "Bogus"}), 500, "InvalidOperationException"),
        (json!(7), 400, "InvalidDataException"),
    ] {
        let refused = batch(&server, json!({"Commands": [put_c, bad]}));
        assert_eq!((refused.status, refused.error_type().as_str()), (status, name), "{bad}");
    }
    for bad in
        ["", "{", "[]", "{}", r#"{"Commands":{}}"#, "\u{0}", r#"{"Commands":[],"TransactionMode":"x"}"#]
    {
        let refused = server.request("POST", "/databases/x/bulk_docs", bad);
        assert_eq!(refused.status, 400, "{bad}: {}", refused.text());
    }
    assert_eq!(count(&server), 2);
    let deleted =
        batch(&server, json!({"Commands": [{"Id": "A/1", "Type": "DELETE", "ChangeVector": vector}]}));
    assert_eq!(
        deleted.json()["Results"][0],
        json!({"Id": "A/1", "Type": "DELETE", "Deleted": true, "ChangeVector": null})
    );
    assert_eq!(batch(&server, json!({"Commands": []})).json(), json!({"Results": []}));
}

#[test]
fn what_is_not_there_yet_is_refused_by_name() {
    let server = started();
    let put_c = json!({"Id": "c", "Type": "PUT", "Document": {}});
    for kind in ["AttachmentPUT", "Counters", "TimeSeries", "ForceRevisionCreation"] {
        let refused = batch(&server, json!({"Commands": [put_c, {"Id": "c", "Type": kind}]}));
        assert_eq!(refused.error_type(), "NotSupportedException", "{kind}");
    }
    for (method, url) in [
        ("GET", "attachments?id=c&name=a"),
        ("GET", "counters?docId=c"),
        ("GET", "docs?id=c&counter=likes"),
        ("GET", "docs?id=c&timeseries=HR&from=&to="),
        ("GET", "revisions?id=c"),
    ] {
        let refused = server.request(method, &format!("/databases/x/{url}"), "");
        assert_eq!(refused.error_type(), "NotSupportedException", "{method} {url}");
    }
    assert_eq!(count(&server), 0);
}

#[test]
fn ranges_and_identities() {
    let server = started();
    let next = |more: &str| {
        let answer = server.get(&format!("/databases/x/hilo/next?tag=users&{more}"));
        assert_eq!(answer.status, 201);
        answer.json()
    };
    let first = next("lastBatchSize=0&lastRangeAt=&identityPartsSeparator=%2F&lastMax=0");
    assert_eq!((&first["Prefix"], &first["Low"], &first["High"]), (&json!("users/"), &json!(1), &json!(32)));
    assert_eq!((&first["ServerTag"], &first["LastSize"]), (&json!("A"), &json!(32)));
    let second = next("lastBatchSize=32&lastRangeAt=None&identityPartsSeparator=-&lastMax=32");
    assert_eq!((&second["Prefix"], &second["Low"]), (&json!("users-"), &json!(33)));
    let returned = server.request("PUT", "/databases/x/hilo/return?tag=users&end=64&last=40", "");
    assert_eq!((returned.status, returned.body.len()), (200, 0));
    assert_eq!(next("")["Low"], 41);
    assert_eq!(server.get("/databases/x/hilo/next").status, 400);
    let max = server.get("/databases/x/docs?id=Raven/Hilo/users").json()["Results"][0]["Max"].clone();
    assert_eq!(max, 72);

    let post = |url: &str| server.request("POST", &format!("/databases/x/{url}"), "").json();
    assert_eq!(post("identity/next?name=users%7C"), json!({"NewIdentityValue": 1}));
    assert_eq!(post("identity/seed?name=users%7C&value=100"), json!({"NewSeedValue": 100}));
    assert_eq!(post("identity/seed?name=users%7C&value=10"), json!({"NewSeedValue": 100}));
    assert_eq!(post("identity/seed?name=users%7C&value=10&force=true"), json!({"NewSeedValue": 10}));
    assert_eq!(server.get("/databases/x/debug/identities").json(), json!({"users|": 10}));
    let vector = put(&server, "users%7C", json!({}));
    assert!(vector.starts_with("A:"));
    assert_eq!(server.get("/databases/x/docs?id=users/11").status, 200);
}

#[test]
fn compare_exchange_values() {
    let server = started();
    let put = |key: &str, index: i64, body: &str| {
        server.request("PUT", &format!("/databases/x/cmpxchg?key={key}&index={index}"), body)
    };
    let first = put("a", 0, r#"{"Object":{"n":1}}"#).json();
    assert_eq!((&first["Successful"], &first["Value"]), (&json!(true), &json!({"Object": {"n": 1}})));
    let again = put("A", 0, r#"{"Object":2}"#).json();
    assert_eq!(
        (&again["Successful"], &again["Index"], &again["Value"]),
        (&json!(false), &first["Index"], &first["Value"])
    );
    assert!(
        put("b", 0, r#"{"Object":null,"@metadata":{"x":1}}"#).json()["Index"].as_i64()
            > first["Index"].as_i64()
    );
    let found = server.get("/databases/x/cmpxchg?key=a&key=none").json()["Results"].clone();
    assert_eq!(found[0]["Value"]["Object"]["n"], 1);
    assert_eq!(found[1], json!({"Key": "none", "Value": null, "Index": -1}));
    assert_eq!(server.get("/databases/x/cmpxchg?key=none").status, 404);
    assert_eq!(server.request("PUT", "/databases/x/cmpxchg?key=a", r#"{"Object":1}"#).status, 400);
    let listed = server.get("/databases/x/cmpxchg?startsWith=&start=1&pageSize=5").json()["Results"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["Value"], json!({"Object": null, "@metadata": {"x": 1}}));
    let delete = |key: &str, index: &Value| {
        server.request("DELETE", &format!("/databases/x/cmpxchg?key={key}&index={index}"), "").json()
    };
    assert_eq!(delete("a", &json!(1_000_000))["Successful"], false);
    assert_eq!(delete("a", &first["Index"])["Successful"], true);
    assert_eq!(delete("a", &first["Index"]), json!({"Index": 0, "Value": null, "Successful": false}));
    assert_eq!(put(&"k".repeat(600), 0, r#"{"Object":1}"#).error_type(), "CompareExchangeKeyTooBigException");
    assert_eq!(put("rvn-atomic/a", 0, r#"{"Object":1}"#).error_type(), "CompareExchangeInvalidKeyException");
    assert_eq!(put("c", 0, "7").status, 400);
    // A request that was sent twice happens once.
    let twice = |()| {
        server
            .request("PUT", "/databases/x/cmpxchg?key=t&index=0&raft-request-id=r1", r#"{"Object":1}"#)
            .json()
    };
    assert_eq!(twice(()), twice(()));
    assert_eq!(server.get("/databases/x/stats/detailed").json()["CountOfCompareExchange"], 2);
}

#[test]
fn cluster_wide_transactions() {
    let server = started();
    let send = |commands: Value, query: &str| {
        let body = json!({"Commands": commands, "TransactionMode": "ClusterWide"}).to_string();
        let url = format!("/databases/x/bulk_docs?{query}");
        with_header(&server, "POST", &url, ("Raven-Client-Version", "7.2.7"), &body)
    };
    let user =
        |vector: Value| json!({"Id": "users/1", "Type": "PUT", "ChangeVector": vector, "Document": {"a": 1}});
    let email = |index: i64| json!({"Id": "mail", "Type": "CompareExchangePUT", "Document": {"Object": "x"}, "Index": index});
    let first = send(json!([user(json!("")), email(0)]), "raft-request-id=1");
    assert_eq!(first.status, 201, "{}", first.text());
    let index = first.json()["TransactionIndex"].as_i64().unwrap();
    let vector = first.json()["Results"][0]["@change-vector"].clone();
    assert_eq!(
        first.json()["Results"][1],
        json!({"Type": "CompareExchangePUT", "Key": "mail", "Index": index})
    );
    assert_eq!(first.json(), send(json!([user(json!("")), email(0)]), "raft-request-id=1").json());
    let failed = send(json!([user(vector.clone()), email(0)]), "raft-request-id=2");
    assert_eq!(
        (failed.status, failed.error_type().as_str()),
        (409, "ClusterTransactionConcurrencyException")
    );
    let violation = json!({"Id": "mail", "Type": "CompareExchange", "Expected": 0, "Actual": index});
    assert_eq!(failed.json()["ConcurrencyViolations"], json!([violation]));
    let guard = server.get("/databases/x/cmpxchg?key=rvn-atomic/users/1").json();
    assert_eq!(guard["Results"][0]["Index"], index);
    // An ordinary write in between leaves the guard, by which the next load sees the transaction.
    put(&server, "users/1", json!({"a": 2}));
    let loaded = server.get("/databases/x/docs?id=users/1&txMode=ClusterWide").json();
    let loaded = loaded["Results"][0]["@metadata"]["@change-vector"].as_str().unwrap().to_owned();
    assert!(loaded.contains(&format!("TRXN:{index}-")), "{loaded}");
    let second = send(json!([user(json!(loaded)), email(index)]), "");
    assert_eq!(second.status, 201, "{}", second.text());
    let sequential = send(json!([{"Id": "users/", "Type": "PUT", "Document": {}}]), "");
    assert_eq!((sequential.status, sequential.error_type().as_str()), (500, "RachisApplyException"));
    assert_eq!(send(json!([{"Id": "a", "Type": "PATCH"}]), "").error_type(), "NotSupportedException");
    let alone = batch(&server, json!({"Commands": [email(0)]}));
    assert_eq!(alone.error_type(), "NotSupportedException");
}

#[test]
fn streams_have_everything() {
    let server = started();
    for i in 0..3000 {
        put_quick(&server, i);
    }
    let whole = server.get("/databases/x/streams/docs?startsWith=n/").json();
    assert_eq!(whole["Results"].as_array().unwrap().len(), 3000);
    let lines = server.get("/databases/x/streams/docs?startsWith=n/1&format=jsonl&start=1&pageSize=3").text();
    let lines: Vec<&str> = lines.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 3);
    let first: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(first["@metadata"]["@id"], "n/10");
    assert_eq!(server.get("/databases/x/streams/docs?startsWith=none").json(), json!({"Results": []}));
    assert_eq!(server.get("/databases/x/streams/docs?format=xml").status, 400);
}

fn put_quick(server: &TestServer, i: usize) {
    if i.is_multiple_of(500) {
        let commands: Vec<Value> = (i..i + 500)
            .map(|i| json!({"Id": format!("n/{i}"), "Type": "PUT", "Document": {"i": i, "text": "lorem ipsum ".repeat(10)}}))
            .collect();
        assert_eq!(batch(server, json!({"Commands": commands})).status, 201);
    }
}

#[test]
fn statistics_count() {
    let server = started();
    put(&server, "a", json!({"@metadata": {"@collection": "As"}}));
    put(&server, "b", json!({"@metadata": {"@collection": "as"}}));
    let other = server.request("PUT", "/databases/x/docs?id=b", r#"{"@metadata":{"@collection":"Bs"}}"#);
    assert_eq!((other.status, other.error_type().as_str()), (500, "DocumentCollectionMismatchException"));
    put(&server, "c", json!({}));
    server.request("DELETE", "/databases/x/docs?id=c", "");
    let stats = server.get("/databases/x/stats").json();
    assert_eq!((&stats["CountOfDocuments"], &stats["CountOfTombstones"]), (&json!(2), &json!(1)));
    assert_eq!((&stats["LastDocEtag"], &stats["LastDatabaseEtag"]), (&json!(2), &json!(5)));
    assert!(stats["DatabaseChangeVector"].as_str().unwrap().starts_with("A:5-"));
    let collections = server.get("/databases/x/collections/stats").json();
    assert_eq!(collections["Collections"], json!({"As": 2}));
    let detailed = server.get("/databases/x/collections/stats/detailed").json();
    assert_eq!(detailed["Collections"]["As"]["CountOfDocuments"], 2);
    assert!(detailed["Collections"]["As"]["Size"]["SizeInBytes"].as_u64().unwrap() > 0);
    let size = server.get("/databases/x/docs/size?id=a").json();
    assert_eq!(size["DocId"], "a");
    assert!(size["ActualSize"].as_u64().unwrap() > 10);
    assert_eq!(server.get("/databases/x/docs/size?id=none").status, 404);
}

#[test]
fn numbers_order_and_strange_text_stay_as_they_were() {
    let server = started();
    let text = r#"{"z":10.0,"a":10,"big":12345678901234567890123,"e":1E+2,"neg":-0.0,"s":"\ud83d\ude00 \ud800 é \u0000","nested":{"":[[],{}]},"n":null}"#;
    let answer = server.request("PUT", "/databases/x/docs?id=strange/%C3%A9%20%F0%9F%98%80", text);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let loaded = server.get("/databases/x/docs?id=STRANGE/%C3%A9%20%F0%9F%98%80").text();
    let expected = r#"{"Results":[{"z":10.0,"a":10,"big":12345678901234567890123,"e":1E+2,"neg":-0.0,"s":"😀 \ud800 é \u0000","nested":{"":[[],{}]},"n":null,"@metadata":"#;
    assert!(loaded.starts_with(expected), "{loaded}");
}

#[test]
fn tombstones_go_by_themselves() {
    let server = TestServer::with(&[("tombstone-cleanup-interval", "10ms")]);
    server.create_database("x");
    put(&server, "a", json!({}));
    server.request("DELETE", "/databases/x/docs?id=a", "");
    let begun = std::time::Instant::now();
    while server.get("/databases/x/stats").json()["CountOfTombstones"] != 0 {
        assert!(begun.elapsed() < support::LONG, "the tombstone stays");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
