//! `multi_get`, from outside.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::{Value, json};
use support::{Answer, TestServer};

fn server() -> TestServer {
    let server = TestServer::start();
    server.create_database("Shop");
    server.create_database("other");
    for index in 1..=5 {
        put(&server, "Shop", &format!("users/{index}"), &json!({ "Index": index, "Price": "x" }));
    }
    put(&server, "other", "users/1", &json!({ "Secret": true }));
    server
}

fn put(server: &TestServer, database: &str, id: &str, document: &Value) {
    let url = format!("/databases/{database}/docs?id={id}");
    assert_eq!(server.request("PUT", &url, &document.to_string()).status, 201);
}

fn ask(server: &TestServer, requests: &Value) -> Answer {
    server.request("POST", "/databases/Shop/multi_get", &json!({ "Requests": requests }).to_string())
}

fn results(server: &TestServer, requests: &Value) -> Vec<Value> {
    let answer = ask(server, requests);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let Value::Array(results) = answer.json()["Results"].take() else { panic!("{}", answer.text()) };
    for result in &results {
        assert!(result["StatusCode"].is_u64() && result["Headers"].is_object(), "{result}");
        assert!(result.as_object().expect("an object").contains_key("Result"), "{result}");
    }
    results
}

fn get(query: &str) -> Value {
    json!({ "Url": "/databases/Shop/docs", "Query": query, "Method": "GET", "Headers": {}, "Content": null })
}

#[test]
fn each_is_answered_as_if_it_came_alone() {
    let server = server();
    let alone = server.get("/databases/Shop/docs?id=users/1");
    let etag = alone.header("etag").expect("an ETag").to_owned();
    let mut known = get("?&id=users/1");
    known["Headers"]["If-None-Match"] = json!(etag);
    let results = results(
        &server,
        &json!([
            get("?&id=users/1"),
            known,
            get("?id=users/none"),
            get("id=users/2&id=users/none"),
            get("?startsWith=users/&start=1&pageSize=2"),
            { "Url": "/databases/shop/docs", "Query": "?id=users/3" },
            { "Url": "/databases/Shop/docs", "Query": "?", "Method": "POST", "Content": { "Ids": ["users/4", "users/5"] } },
            { "Url": "/databases/Shop/docs", "Query": null, "Method": "POST", "Content": "{\"Ids\":[\"users/5\"]}" },
            { "Url": "/databases/Shop/collections/stats", "Query": "", "Method": null, "Headers": null, "Content": null },
            { "Url": "/databases/Shop/docs?id=users/2", "Method": "get" },
        ]),
    );
    assert_eq!(results.len(), 10);
    assert_eq!(results[0], json!({ "Result": alone.json(), "StatusCode": 200, "Headers": { "ETag": etag } }));
    assert_eq!(results[1], json!({ "Result": null, "StatusCode": 304, "Headers": {} }));
    assert_eq!(results[2], json!({ "Result": null, "StatusCode": 404, "Headers": {} }));
    let indexes = |result: &Value| -> Vec<Value> {
        let results = result["Result"]["Results"].as_array().expect("results");
        results.iter().map(|document| document["Index"].clone()).collect()
    };
    assert_eq!(indexes(&results[3]), [json!(2), Value::Null]);
    assert_eq!(indexes(&results[4]), [2, 3]);
    assert_eq!(indexes(&results[5]), [3]);
    assert_eq!(indexes(&results[6]), [4, 5]);
    assert_eq!(indexes(&results[7]), [5]);
    assert_eq!(results[8]["Result"]["CountOfDocuments"], 5);
    assert_eq!(indexes(&results[9]), [2]);
}

#[test]
fn what_writes_or_asks_elsewhere_is_refused_and_the_rest_answered() {
    let server = server();
    let before = server.get("/databases/Shop/stats").json();
    let refused = [
        ("PUT", "/databases/Shop/docs", "?id=users/1"),
        ("DELETE", "/databases/Shop/docs", "?id=users/1"),
        ("PATCH", "/databases/Shop/docs", "?id=users/1"),
        ("POST", "/databases/Shop/bulk_docs", ""),
        ("POST", "/databases/Shop/multi_get", ""),
        ("GET", "/databases/Shop/hilo/next", "?tag=users"),
        ("POST", "/databases/Shop/identity/next", "?name=users|"),
        ("GET", "/databases/Shop/changes", ""),
        ("GET", "/databases/Shop/streams/docs", ""),
        ("GET", "/databases/other/docs", "?id=users/1"),
        ("GET", "/databases/Shop/../other/docs", "?id=users/1"),
        ("GET", "/databases/Shop%2f..%2fother/docs", "?id=users/1"),
        ("GET", "/admin/databases", "?name=other"),
        ("DELETE", "/admin/databases", ""),
        ("GET", "databases/Shop/docs", "?id=users/1"),
        ("NO METHOD", "/databases/Shop/docs", "?id=users/1"),
        ("GET", "/databases/Shop/docs", "?id=a b\r\nX: y"),
        ("GET", "", ""),
    ];
    let mut requests: Vec<Value> = refused
        .iter()
        .map(|(method, url, query)| json!({ "Url": url, "Query": query, "Method": method, "Content": {} }))
        .collect();
    requests.push(get("?id=users/1"));
    let results = results(&server, &json!(requests));
    for (result, refused) in results.iter().zip(refused) {
        assert_eq!(result["StatusCode"], 400, "{refused:?}: {result}");
        assert!(result["Result"]["Message"].is_string() && result["Result"]["Type"].is_string(), "{result}");
    }
    assert_eq!(results[refused.len()]["StatusCode"], 200);
    assert_eq!(server.get("/databases/Shop/stats").json()["LastDatabaseEtag"], before["LastDatabaseEtag"]);
}

#[test]
fn an_error_is_the_error_object() {
    let server = server();
    let results = results(&server, &json!([get("?startsWith=users/&pageSize=many"), get("?id=users/1")]));
    assert_eq!(results[0]["StatusCode"], 400);
    let type_name = results[0]["Result"]["Type"].as_str().expect("a type");
    assert!(type_name.starts_with("System.") || type_name.starts_with("Raven."), "{type_name}");
    assert_eq!(results[1]["StatusCode"], 200);
}

#[test]
fn bodies_that_make_no_sense_are_refused_whole() {
    let server = server();
    assert_eq!(results(&server, &json!([])), [] as [Value; 0]);
    for body in [
        "",
        "x",
        "[]",
        "{}",
        r#"{"Requests":{}}"#,
        r#"{"Requests":[{}]}"#,
        r#"{"Requests":[{"Url":7}]}"#,
        r#"{"Requests":[null]}"#,
        r#"{"Requests":[{"Url":"/databases/Shop/docs"}"#,
    ] {
        let answer = server.request("POST", "/databases/Shop/multi_get", body);
        assert_eq!((answer.status, answer.error_type().as_str()), (400, "InvalidDataException"), "{body}");
    }
    let answer = server.request("POST", "/databases/none/multi_get", r#"{"Requests":[]}"#);
    assert_eq!(answer.error_type(), "DatabaseDoesNotExistException");
}

#[test]
fn many_and_large_answers_come_in_order() {
    let server = server();
    let text = "x".repeat(20_000);
    for index in 0..20 {
        put(&server, "Shop", &format!("large/{index}"), &json!({ "Index": index, "Text": text }));
    }
    // 4 MB: more than is kept before sending.
    let order: Vec<usize> = (0..200).map(|index| index * 7 % 20).collect();
    let requests: Vec<Value> = order.iter().map(|index| get(&format!("?id=large/{index}"))).collect();
    let results = results(&server, &json!(requests));
    let found: Vec<usize> = results
        .iter()
        .map(|result| {
            let document = &result["Result"]["Results"][0];
            assert_eq!(document["Text"], text);
            document["Index"].as_u64().expect("a number") as usize
        })
        .collect();
    assert_eq!(found, order);
}
