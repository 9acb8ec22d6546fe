//! Random requests to every route, with bodies that often get past the first check: the answer makes sense, a request that is refused changes
//! nothing, and a database that no request names stays as it is.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use jackdaw_server::RouteTable;
use jackdaw_testkit::Random;
use serde_json::{Value, json};
use support::{Answer, Client, TestServer};

/// Requests for each route.
const EACH: usize = 60;
/// Statuses that may be answered at all. 500 is the protocol's status for many errors that the client caused; their type tells.
const SENSIBLE: &[u16] = &[200, 201, 204, 304, 400, 403, 404, 409, 413, 415, 500, 501];
/// Keys of query strings.
const KEYS: &[&str] = &[
    "id",
    "name",
    "startsWith",
    "matches",
    "exclude",
    "startAfter",
    "start",
    "pageSize",
    "include",
    "metadataOnly",
    "key",
    "index",
    "value",
    "force",
    "tag",
    "lastBatchSize",
    "lastRangeAt",
    "identityPartsSeparator",
    "lastMax",
    "end",
    "last",
    "etag",
    "collection",
    "format",
    "raft-request-id",
    "replicationFactor",
    "nodeTag",
    "url",
    "debug",
    "txMode",
    "cmpxchg",
    "skipOverwriteIfUnchanged",
    "operationId",
    "first-topology-update",
    "loadHash",
    "docId",
];
const VALUES: &[&str] = &[
    "",
    "users/1",
    "users/none",
    "USERS/",
    "users/",
    "users|",
    "0",
    "1",
    "-1",
    "2",
    "25",
    "2147483647",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999",
    "1.5",
    "NaN",
    "true",
    "false",
    "maybe",
    "%00",
    "%ff%fe",
    "%zz",
    "%",
    "%F0%9F%98%80",
    "a%20b",
    "../../etc/passwd",
    "..%2f..%2f",
    "\\..\\",
    "%3Cscript%3E",
    "'%20or%201=1",
    "jsonl",
    "csv",
    "A",
    "B",
    "/",
    "|",
    "%7C",
    "*",
    "users/*",
    "?",
    "@all",
    "2026-11-21T00:00:00",
    "2026-11-21T00:00:00.0000000Z",
    "00:00:15",
    "null",
    "undefined",
    "None",
    "ClusterWide",
    "target",
    "Company",
    "[]",
    "a.b[].c",
    "Lines[].Product",
];
const TEXTS: &[&str] = &[
    "",
    "x",
    "users/1",
    "users/2",
    "users/",
    "users|",
    "Users",
    "@hilo",
    "PUT",
    "DELETE",
    "GET",
    "target",
    "A:1-x",
    "A",
    "/databases/target/docs",
    "?id=users/1",
    "ClusterWide",
    "CompareExchangePUT",
    "None",
    "\u{0}",
    "\u{1F600}",
    "2026-11-21T00:00:00.0000000Z",
    "Unlock",
    "PreventDeletesError",
    "Info",
];
const NAMES: &[&str] = &[
    "Commands",
    "Id",
    "Type",
    "Document",
    "ChangeVector",
    "@metadata",
    "@collection",
    "@id",
    "Requests",
    "Url",
    "Query",
    "Method",
    "Content",
    "Headers",
    "Ids",
    "Object",
    "Name",
    "DatabaseName",
    "Settings",
    "Mode",
    "Logs",
    "MinLevel",
    "MaxNumberOfRequestsPerSession",
    "Disabled",
    "Etag",
    "TransactionMode",
    "MembersOrder",
    "Fixed",
    "Patch",
    "Index",
    "Script",
    "Values",
    "Configuration",
    "IdentityPartsSeparator",
];

struct Requests(Random);

impl Requests {
    fn of(&mut self, texts: &[&str]) -> String {
        self.0.pick(texts).map_or(String::new(), |text| (*text).to_owned())
    }

    fn query(&mut self) -> String {
        let mut query = String::new();
        for _ in 0..self.0.below(5) {
            query.push_str(["&", "&", "&", "&&", "?", "?&"][self.0.below(6)]);
            query.push_str(&self.of(KEYS));
            if !self.0.one_in(8) {
                query.push('=');
                query.push_str(&self.of(VALUES));
            }
        }
        query
    }

    fn json(&mut self, depth: usize) -> Value {
        match self.0.below(if depth == 0 { 5 } else { 9 }) {
            0 => Value::Null,
            1 => json!(self.0.one_in(2)),
            2 => json!(self.0.next_u64() as i64 >> self.0.below(64)),
            3 => json!(0.5),
            4 => json!(self.of(TEXTS)),
            5 | 6 => (0..self.0.below(4)).map(|_| self.json(depth - 1)).collect(),
            _ => {
                let mut object = serde_json::Map::new();
                for _ in 0..self.0.below(6) {
                    object.insert(self.of(NAMES), self.json(depth - 1));
                }
                Value::Object(object)
            }
        }
    }

    /// A body that its route knows, so that what is random gets past the first check.
    fn likely_body(&mut self, path: &str) -> Option<Value> {
        let mut value = || self.json(2);
        Some(match path {
            "/databases/{db}/bulk_docs" => {
                let kinds =
                    ["PUT", "DELETE", "PATCH", "AttachmentPUT", "CompareExchangePUT", "Counters", "x"];
                let command = |kind: &str, document: Value, id: Value, change_vector: Value| json!({ "Type": kind, "Id": id, "Document": document, "ChangeVector": change_vector });
                let commands: Vec<Value> = (0..3)
                    .map(|_| {
                        let (document, change_vector) = (value(), value());
                        command(
                            kinds[document.to_string().len() % kinds.len()],
                            document,
                            json!("users/9"),
                            change_vector,
                        )
                    })
                    .collect();
                json!({ "Commands": commands, "TransactionMode": value() })
            }
            "/databases/{db}/multi_get" => json!({
                "Requests": [
                    { "Url": "/databases/target/docs", "Query": "?id=users/1", "Headers": value(), "Content": value() },
                    { "Url": value(), "Query": value(), "Method": value() },
                ],
            }),
            "/databases/{db}/docs" => json!({ "Ids": [value(), "users/1"], "@metadata": value() }),
            "/databases/{db}/cmpxchg" => json!({ "Object": value(), "@metadata": value() }),
            _ => return None,
        })
    }

    fn body(&mut self, path: &str) -> Vec<u8> {
        let kind = self.0.below(8);
        if kind < 3
            && let Some(body) = self.likely_body(path)
        {
            return body.to_string().into_bytes();
        }
        match kind {
            0 => Vec::new(),
            1 => {
                let size = self.0.below(300);
                self.0.bytes(size)
            }
            2 => "[".repeat(self.0.below(20_000)).into_bytes(),
            3 => {
                let mut text = self.json(3).to_string().into_bytes();
                text.truncate(self.0.below(text.len() + 1));
                text
            }
            4 => {
                let mut text = self.json(3).to_string().into_bytes();
                if !text.is_empty() {
                    let at = self.0.below(text.len());
                    text[at] = self.0.next_u64() as u8;
                }
                text
            }
            _ => self.json(4).to_string().into_bytes(),
        }
    }

    fn headers(&mut self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        for name in [
            "If-Match",
            "If-None-Match",
            "Topology-Etag",
            "Client-Configuration-Etag",
            "ETag",
            "Content-Type",
            "Content-Encoding",
            "Accept-Encoding",
            "Raven-Client-Version",
            "Range",
            "Expect",
            "Upgrade",
            "Origin",
        ] {
            if self.0.one_in(12) {
                let value = match name {
                    "Content-Encoding" => {
                        ["gzip", "zstd", "br", "deflate", "x", "gzip, gzip"][self.0.below(6)]
                    }
                    "Accept-Encoding" => {
                        ["gzip", "zstd;q=0.5", "br", "*", "identity", ";;;"][self.0.below(6)]
                    }
                    "Expect" => "100-continue",
                    _ => ["\"A:1-x\"", "A:1-x", "\"\"", "-1", "None", "undefined", "text/plain", "*"]
                        [self.0.below(8)],
                };
                headers.push((name, value.to_owned()));
            }
        }
        headers
    }
}

/// What tells whether a database has changed.
fn state(server: &TestServer, database: &str) -> (Value, Vec<u8>) {
    let stats = server.get(&format!("/databases/{database}/stats")).json();
    let documents = server.get(&format!("/databases/{database}/docs?startsWith=&pageSize=1000"));
    assert_eq!(documents.status, 200);
    (
        json!([stats["LastDatabaseEtag"], stats["CountOfDocuments"], stats["DatabaseChangeVector"]]),
        documents.body,
    )
}

fn check(answer: &Answer, method: &str, what: &str) {
    // 404, 500 or 503, each as its clients know it, and a name that no header can have is in the body alone.
    if answer.header("database-missing").is_some() || answer.text().contains("wasn't found\"}") {
        return;
    }
    assert!(SENSIBLE.contains(&answer.status), "{what}: {} {}", answer.status, answer.text());
    if answer.status < 400 || answer.status == 404 && answer.body.is_empty() || method == "HEAD" {
        return;
    }
    assert!(!answer.body.is_empty(), "{what}: {} without a word", answer.status);
    // `error_type` checks the other properties.
    let kind = answer.error_type();
    assert!(answer.status != 500 || kind != "RavenException", "{what}: {}", answer.text());
}

#[test]
fn slow_whatever_comes_is_answered_sensibly() {
    let server = TestServer::with(&[("request-body-size-max", "1M")]);
    for name in ["target", "bystander"] {
        server.create_database(name);
        for index in 1..=5 {
            let url = format!("/databases/{name}/docs?id=users/{index}");
            assert_eq!(server.request("PUT", &url, r#"{"@metadata":{"@collection":"Users"}}"#).status, 201);
        }
    }
    let bystander = state(&server, "bystander");
    let mut known = state(&server, "target");
    let (mut refused, mut taken) = (0, 0);
    let mut client = server.client();
    let routes: Vec<(String, String)> =
        RouteTable::new().all().map(|(method, path)| (method.to_string(), path.to_owned())).collect();
    for (number, (method, path)) in routes.iter().enumerate() {
        for round in 0..EACH {
            let seed = (number * EACH + round) as u64;
            let mut requests = Requests(Random::new(seed));
            let name = ["target", "TARGET", "target", "none", "%74arget"][requests.0.below(5)];
            let url = path.replace("{db}", name).replace("{*}", "a/b").replace("{name}", "x");
            let url = format!("{url}?{}", requests.query());
            if is_left_out(method, path, &url) {
                continue;
            }
            let headers = requests.headers();
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let body = requests.body(path);
            let what = format!("seed {seed}: {method} {url} {headers:?} {}", String::from_utf8_lossy(&body));
            let answer = match client.try_request(method, &url, &headers, &body) {
                Some(answer) => answer,
                // The server may end a connection whose request it cannot read to its end; the next one must do.
                None => {
                    client = server.client();
                    client
                        .try_request(method, &url, &headers, &body)
                        .unwrap_or_else(|| panic!("{what}: no answer"))
                }
            };
            check(&answer, method, &what);
            if answer.header("connection") == Some("close") {
                client = server.client();
            }
            if !matches!(method.as_str(), "GET" | "HEAD") || answer.status < 300 {
                let now = state(&server, "target");
                if answer.status >= 400 {
                    assert!(
                        now == known,
                        "{what}: it was refused with {} and changed something",
                        answer.status
                    );
                    refused += 1;
                } else {
                    taken += 1;
                }
                known = now;
            }
        }
    }
    println!("{taken} requests were taken, {refused} refused");
    assert!(taken > 500 && refused > 500, "both kinds are there: {taken}, {refused}");
    assert!(state(&server, "bystander") == bystander, "a database changed that no request named");
    assert_eq!(server.metric("jackdaw_http_panics_total"), 0.0);
    assert_eq!(Client::connect(server.address()).request("GET", "/health/live", &[], b"").status, 204);
}

/// What would make the test's own database go away, or wait for long, or stores what came before it failed.
fn is_left_out(method: &str, path: &str, url: &str) -> bool {
    let waits = path == "/admin/test/delay";
    let removes =
        path == "/admin/databases" && method == "DELETE" || path.starts_with("/admin/databases/disable");
    let replaces = path == "/admin/databases" && method == "PUT";
    let streams = path.ends_with("/bulk_insert") || path.contains("/smuggler/");
    waits || removes || replaces || streams || url.contains("bystander")
}
