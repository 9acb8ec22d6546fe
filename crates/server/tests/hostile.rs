//! Input that no client sends: the right status, no panic, nothing changed.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;
use std::path::Path;

use jackdaw_server::RouteTable;
use jackdaw_testkit::{Random, Seeds};
use serde_json::{Value, json};
use support::TestServer;

/// A server with a database `x` and one document.
fn started() -> TestServer {
    let server = TestServer::start();
    server.create_database("x");
    let put = server.request(
        "PUT",
        "/databases/x/docs?id=users/1",
        r#"{"Name":"Ada","@metadata":{"@collection":"Users"}}"#,
    );
    assert_eq!(put.status, 201);
    server
}

/// What must be as it was after everything that was refused.
fn state(server: &TestServer) -> (Value, Value, BTreeSet<String>) {
    (
        server.get("/databases/x/docs").json(),
        server.get("/databases?namesOnly=true").json(),
        files(server.data_dir(), server.data_dir()),
    )
}

/// Directories below `directory`, from `root`.
fn files(root: &Path, directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.insert(entry.path().strip_prefix(root).expect("below").display().to_string());
            found.extend(files(root, &entry.path()));
        }
    }
    found
}

fn no_panics(server: &TestServer) {
    assert_eq!(server.metric("jackdaw_http_panics_total"), 0.0);
    assert_eq!(server.get("/build/version").status, 200);
}

#[test]
fn tricks_in_paths_lead_nowhere() {
    let server = started();
    let before = state(&server);
    for path in [
        "/databases/../admin/databases",
        "/databases/x/../../etc/passwd",
        "/databases/./x/docs",
        "/databases/%2e%2e/docs",
        "/databases/%2E%2e/%2e%2e/docs",
        "/databases/x%2f..%2fy/docs",
        "/databases/x%5c..%5cy/docs",
        "/databases/x%00/docs",
        "/databases/x%0d%0aSet-Cookie:%20a/docs",
        "/databases/%ff%fe/docs",
        "/databases/%c0%ae%c0%ae/docs",
    ] {
        let answer = server.get(path);
        assert_eq!((answer.status, answer.error_type().as_str()), (400, "BadRequestException"), "{path}");
    }
    for path in [
        "/databases/%252e%252e/docs",
        "/databases/..%252f..%252fetc/docs",
        "/databases/x%20/docs",
        "/databases/x./docs",
        "/databases/C:/docs",
    ] {
        let answer = server.get(path);
        assert_eq!(
            (answer.status, answer.error_type().as_str()),
            (500, "DatabaseDoesNotExistException"),
            "{path}"
        );
    }
    assert_eq!(state(&server), before);
    no_panics(&server);
}

#[test]
fn tricks_in_ids_are_ids() {
    let server = started();
    for id in [
        "../../etc/passwd",
        "..%2F..%2Fetc%2Fpasswd",
        "a%00b",
        "%0d%0aX-Injected: 1",
        "%F0%9F%90%A6/1",
        "a%5Cb",
        "%22%3E%3Cscript%3E",
        "%7F",
    ] {
        let url = format!("/databases/x/docs?id={}", id.replace(' ', "%20"));
        let put = server.request("PUT", &url, r#"{"a":1}"#);
        match put.status {
            201 => {
                let found = server.get(&url);
                assert_eq!(found.status, 200, "{id}");
                assert_eq!(found.json()["Results"][0]["@metadata"]["@id"], put.json()["Id"], "{id}");
                assert!(found.header("x-injected").is_none());
            }
            400 => drop(put.error_type()),
            status => panic!("{id}: {status} {}", put.text()),
        }
    }
    for query in ["id=%ff", "id=%c3%28", "startsWith=%ff"] {
        let answer = server.get(&format!("/databases/x/docs?{query}"));
        assert_eq!((answer.status, answer.error_type().as_str()), (400, "ArgumentException"), "{query}");
    }
    let long = "x".repeat(5000);
    let answer = server.request("PUT", &format!("/databases/x/docs?id={long}"), r#"{"a":1}"#);
    assert_eq!(answer.status, 400, "{}", answer.text());
    no_panics(&server);
}

/// Routes that read a JSON body.
const WITH_BODY: &[(&str, &str)] = &[
    ("PUT", "/admin/databases?name=y"),
    ("DELETE", "/admin/databases"),
    ("POST", "/admin/databases/disable"),
    ("POST", "/admin/databases/set-lock"),
    ("POST", "/admin/databases/reorder?name=x"),
    ("PUT", "/admin/configuration/client"),
    ("POST", "/admin/logs/configuration"),
    ("PUT", "/databases/x/admin/configuration/settings"),
    ("PUT", "/databases/x/admin/configuration/client"),
    ("PUT", "/databases/x/docs?id=users/2"),
    ("POST", "/databases/x/docs"),
    ("POST", "/databases/x/bulk_docs"),
    ("PUT", "/databases/x/cmpxchg?key=k&index=0"),
];

#[test]
fn bodies_that_are_no_json_are_refused() {
    let server = started();
    let before = state(&server);
    let deep = "[".repeat(200_000);
    let bodies: &[&[u8]] = &[
        b"{",
        b"}",
        b"{\"a\":}",
        b"{\"a\":1,}",
        b"{'a':1}",
        b"nul",
        b"\xff\xfe",
        b"{\"a\":\"\xc3\x28\"}",
        b"{\"a\":\"\xed\xa0\x80\"}",
        b"{\"a\":01}",
        b"{\"a\":1e}",
        b"{\"a\":\"\x01\"}",
        b"{\"a\":1}{\"b\":2}",
        b"<xml/>",
        b"\0\0\0\0",
        deep.as_bytes(),
        b"{\"a\":NaN}",
    ];
    for (method, url) in WITH_BODY {
        for body in bodies {
            let answer = server.client().request(method, url, &[], body);
            let shown = String::from_utf8_lossy(&body[..body.len().min(30)]).into_owned();
            assert!(
                (400..500).contains(&answer.status),
                "{method} {url} {shown}: {} {}",
                answer.status,
                answer.text()
            );
            answer.error_type();
        }
    }
    assert_eq!(state(&server), before);
    no_panics(&server);
}

#[test]
fn values_of_wrong_types_are_refused() {
    let server = started();
    let before = state(&server);
    for (method, url, bodies) in [
        (
            "PUT",
            "/admin/databases",
            vec![
                json!(1),
                json!("x"),
                json!([]),
                json!({"DatabaseName": []}),
                json!({"DatabaseName": "y", "Topology": {"Members": [1]}}),
                json!({"DatabaseName": "y", "Settings": {"a": []}}),
            ],
        ),
        (
            "DELETE",
            "/admin/databases",
            vec![
                json!([]),
                json!({"DatabaseNames": "x"}),
                json!({"DatabaseNames": [1]}),
                json!({"DatabaseNames": ["x"], "HardDelete": "yes"}),
                json!({"DatabaseNames": ["x"], "FromNodes": ["B"]}),
            ],
        ),
        ("POST", "/admin/databases/disable", vec![json!({}), json!({"DatabaseNames": {}})]),
        (
            "POST",
            "/databases/x/bulk_docs",
            vec![
                json!([]),
                json!({}),
                json!({"Commands": {}}),
                json!({"Commands": [1]}),
                json!({"Commands": [{}]}),
                json!({"Commands": [{"Type": "PUT", "Id": "a"}]}),
                json!({"Commands": [{"Type": "PUT", "Id": "a", "Document": 1}]}),
                json!({"Commands": [{"Type": "PUT", "Id": 1, "Document": {}}]}),
                json!({"Commands": [{"Type": "NOPE", "Id": "a"}]}),
                json!({"Commands": [{"Type": "PUT", "Id": "a", "Document": {"@metadata": []}}]}),
                json!({"Commands": [{"Type": "PUT", "Id": "a", "Document": {"@metadata": {"@collection": 1}}}]}),
                json!({"Commands": [{"Type": "PUT", "Id": "a", "Document": {}}, {"Type": "DELETE"}]}),
            ],
        ),
        (
            "PUT",
            "/databases/x/docs?id=a",
            vec![json!([]), json!(1), json!("x"), json!(null), json!({"@metadata": 1})],
        ),
    ] {
        for body in bodies {
            let answer = server.request(method, url, &body.to_string());
            assert!(answer.status >= 400, "{method} {url} {body}: {}", answer.status);
            answer.error_type();
        }
    }
    assert_eq!(state(&server), before);
    no_panics(&server);
}

#[test]
fn bytes_that_are_no_http_close_the_connection_and_nothing_else() {
    let server = started();
    let before = state(&server);
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nA\0B: c\r\n\r\n",
        b"\r\n\r\n\r\n\0\0\0\0",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST /databases/x/bulk_docs HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
        b"POST /databases/x/bulk_docs HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"GET /databases/\xff\xfe/docs HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http:// HTTP/1.1\r\n\r\n",
        b"CONNECT x:80 HTTP/1.1\r\n\r\n",
        b"GET * HTTP/1.1\r\n\r\n",
    ] {
        let mut client = server.client();
        client.send(bytes);
        client.socket().shutdown(std::net::Shutdown::Write).expect("a socket");
        if let Some(answer) = client.answer() {
            assert!(answer.status >= 400, "{:?}: {}", String::from_utf8_lossy(bytes), answer.status);
        }
    }
    assert_eq!(state(&server), before);
    no_panics(&server);
}

#[test]
fn a_smuggled_request_is_not_answered() {
    let server = started();
    let mut client = server.client();
    client.send(b"POST /databases/x/nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nDELETE /databases/x/docs?id=users/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let _ = client.answer();
    assert!(client.answer().is_none_or(|second| second.status >= 200));
    // Whatever was answered, a proxy in front that reads Content-Length and this server must not disagree silently: the
    // connection is not kept.
    assert!(client.is_closed());
    no_panics(&server);
}

#[test]
fn the_page_shows_names_as_text_only() {
    let server = started();
    let page = server.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(
        page.header("content-security-policy")
            .expect("a policy")
            .starts_with("default-src 'none'; script-src 'self'")
    );
    let script = server.get("/landing.js").text();
    for dangerous in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
        assert!(!script.contains(dangerous), "{dangerous}");
    }
    assert!(!page.text().contains("onclick") && !page.text().contains("<script>"));
    assert_eq!(server.get("/landing.css").status, 200);
}

#[test]
fn sample_data_goes_into_an_empty_database_only() {
    let server = started();
    server.create_database("n");
    let loaded = server.request(
        "POST",
        "/databases/n/studio/sample-data?operateOnTypes=Documents&raft-request-id=x",
        "",
    );
    assert_eq!(loaded.status, 204, "{}", loaded.text());
    let stats = server.get("/databases/n/collections/stats").json();
    assert_eq!((&stats["CountOfDocuments"], &stats["Collections"]["Orders"]), (&json!(1051), &json!(830)));
    assert_eq!(
        server.get("/databases/n/docs?id=companies/1-A").json()["Results"][0]["Name"],
        "Alfreds Futterkiste"
    );
    let page = server.get("/databases/n/collections/docs?name=products&start=70&pageSize=10").json();
    assert_eq!(page["Results"].as_array().map(Vec::len), Some(7));
    assert_eq!(server.get("/databases/n/indexes?namesOnly=true").json()["Results"], json!([]));
    server.create_database("i");
    assert_eq!(server.request("POST", "/databases/i/studio/sample-data", "").status, 204);
    let names = server.get("/databases/i/indexes?namesOnly=true").json();
    assert_eq!(names["Results"], json!(["Orders/ByCompany", "Orders/Totals", "Product/Search"]));
    let query = |query: &str| {
        let query = json!({ "Query": query, "WaitForNonStaleResults": true, "WaitForNonStaleResultsTimeout": "00:01:00" });
        server.request("POST", "/databases/i/queries", &query.to_string()).json()
    };
    let best = query("from index 'Orders/ByCompany' order by Total as double desc limit 1");
    assert_eq!(
        (&best["TotalResults"], &best["Results"][0]["Company"]),
        (&json!(89), &json!("companies/63-A"))
    );
    assert_eq!(query("from index 'Orders/Totals'")["TotalResults"], 830);
    assert_eq!(query("from index 'Product/Search' where search(Name, 'sauce')")["TotalResults"], 2);
    for database in ["n", "x"] {
        let refused = server.request("POST", &format!("/databases/{database}/studio/sample-data"), "");
        assert_eq!((refused.status, refused.error_type().as_str()), (500, "InvalidOperationException"));
    }
    assert_eq!(server.get("/databases/n/collections/stats").json(), stats);
}

/// Parts of URLs and bodies, good and bad.
const VALUES: &[&str] = &[
    "users/1",
    "x",
    "",
    "-1",
    "0",
    "99999999999999999999",
    "true",
    "%ff",
    "%00",
    "..",
    "null",
    "A:1-x",
    "\u{e9}",
    "a%26b",
    "*",
];
const KEYS: &[&str] = &[
    "id",
    "name",
    "start",
    "pageSize",
    "key",
    "index",
    "value",
    "tag",
    "lastMax",
    "startsWith",
    "metadataOnly",
    "include",
    "namesOnly",
    "end",
    "last",
    "?id",
    "format",
];
const BODIES: &[&str] = &[
    "",
    "{}",
    "[]",
    "{\"DatabaseName\":\"y\"}",
    "{\"DatabaseNames\":[\"y\"],\"HardDelete\":true}",
    "{\"Commands\":[{\"Id\":\"a\",\"Type\":\"PUT\",\"Document\":{}}]}",
    "{\"Ids\":[\"users/1\"]}",
    "{\"Object\":1}",
    "{\"a\":",
    "null",
    "{\"Mode\":\"None\"}",
    "{\"Commands\":[{\"Id\":\"a\",\"Type\":\"DELETE\"}],\"TransactionMode\":\"ClusterWide\"}",
];
const HEADERS: &[(&str, &str)] = &[
    ("If-Match", "\"A:1-x\""),
    ("If-None-Match", "\"\""),
    ("Accept-Encoding", "gzip"),
    ("Accept-Encoding", "zstd, br;q=0"),
    ("Content-Encoding", "gzip"),
    ("Topology-Etag", "\"-9999999999999999999\""),
    ("ETag", "\"1\""),
    ("Expect", "something"),
    ("Range", "bytes=0-"),
    ("Upgrade", "websocket"),
];

/// One of the routes, filled with chance.
fn random_request(
    routes: &[(String, String)],
    random: &mut Random,
) -> (String, String, Vec<(&'static str, &'static str)>, String) {
    let pick = |random: &mut Random, of: &'static [&'static str]| of[random.below(of.len())];
    let (method, route) = &routes[random.below(routes.len())];
    let method = if random.one_in(8) {
        pick(random, &["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS", "RESET", "X"]).to_owned()
    } else {
        method.clone()
    };
    let database = if random.one_in(4) { pick(random, VALUES) } else { "y" };
    let mut url = route.replace("{db}", database).replace("{*}", "a/b");
    for n in 0..random.below(4) {
        let (key, value) = (pick(random, KEYS), pick(random, VALUES));
        url.push_str(&format!("{}{key}={value}", if n == 0 { '?' } else { '&' }));
    }
    // These are for whoever waits, or change what the test looks at.
    for never in ["/admin/test/delay", "name=x&", "databases/x/"] {
        if url.contains(never) {
            url = "/build/version".to_owned();
        }
    }
    let headers = (0..random.below(3)).map(|_| HEADERS[random.below(HEADERS.len())]).collect();
    (method, url, headers, pick(random, BODIES).to_owned())
}

#[test]
fn random_requests_to_every_route_are_answered() {
    let routes: Vec<(String, String)> =
        RouteTable::new().all().map(|(method, route)| (method.to_string(), route.to_owned())).collect();
    assert!(routes.len() > 40);
    let replay = "cargo test -p jackdaw-server --test hostile random_requests";
    Seeds::from_environment(4).check(replay, |seed| {
        let mut random = Random::new(seed);
        let server = started();
        server.create_database("y");
        let before = server.get("/databases/x/docs").json();
        let mut client = server.client();
        for _ in 0..400 {
            let (method, url, headers, body) = random_request(&routes, &mut random);
            let mut head =
                format!("{method} {url} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n", body.len());
            for (name, value) in &headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            client.send(format!("{head}\r\n{body}").as_bytes());
            match client.answer_to(&method) {
                // An answer that ends with the connection (an upgrade that came to nothing) is followed by a new one.
                None => client = server.client(),
                Some(answer) if answer.status == 101 || answer.header("connection") == Some("close") => {
                    client = server.client()
                }
                Some(answer) => {
                    let is_fault = answer.status == 500
                        && answer.text().contains("the server failed to handle the request");
                    if is_fault || !(200..600).contains(&answer.status) {
                        return Err(format!(
                            "{method} {url} {headers:?} {body}: {} {}",
                            answer.status,
                            answer.text()
                        ));
                    }
                }
            }
            if random.one_in(20) {
                server.request("PUT", "/admin/databases", r#"{"DatabaseName":"y"}"#);
            }
        }
        if server.metric("jackdaw_http_panics_total") > 0.0 {
            return Err("a handler panicked".to_owned());
        }
        let after = server.get("/databases/x/docs").json();
        if after != before { Err(format!("the database was changed: {after}")) } else { Ok(()) }
    });
}
