//! Exports and imports over HTTP.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::io::{Read, Write};

use serde_json::{Value, json};
use support::{Answer, TestServer};

fn server() -> TestServer {
    let server = TestServer::start();
    server.create_database("db");
    server.create_database("other");
    server
}

fn lines(count: usize) -> String {
    let line = |i| {
        format!(
            "{{\"n\":{i},\"@metadata\":{{\"@id\":\"items/{i}\",\"@collection\":\"{}\"}}}}\n",
            if i % 2 == 0 { "Even" } else { "Odd" }
        )
    };
    (0..count).map(line).collect()
}

fn import(server: &TestServer, query: &str, body: &[u8]) -> Answer {
    server.client().request("POST", &format!("/databases/db/import?{query}"), &[], body)
}

fn count(server: &TestServer, database: &str) -> u64 {
    let stats = server.get(&format!("/databases/{database}/stats")).json();
    stats["CountOfDocuments"].as_u64().expect("a count")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn gunzip(bytes: &[u8]) -> Value {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).expect("gzip");
    serde_json::from_str(&text).expect("JSON")
}

/// A multipart body of options and a file.
fn multipart(server: &TestServer, url: &str, options: Option<&[u8]>, file: &[u8]) -> Answer {
    let mut body = Vec::new();
    let mut part = |head: &str, bytes: &[u8]| {
        body.extend_from_slice(
            format!("--b0und\r\nContent-Disposition: form-data; {head}\r\n\r\n").as_bytes(),
        );
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    };
    if let Some(options) = options {
        part("name=\"importOptions\"", options);
    }
    part("name=\"file\"; filename=\"x.ravendbdump\"", file);
    body.extend_from_slice(b"--b0und--\r\n");
    let headers = [("Content-Type", "multipart/form-data; boundary=\"b0und\"")];
    server.client().request("POST", url, &headers, &body)
}

#[test]
fn lines_come_in_with_progress_and_a_report() {
    let server = server();
    let mut body = lines(3000);
    body.push_str("nonsense\n");
    let answer = import(&server, "format=lines&operationId=5", &gzip(body.as_bytes()));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let result = answer.json();
    assert_eq!(result["Documents"]["ReadCount"], 3001);
    assert_eq!(result["Documents"]["ErroredCount"], 1);
    assert_eq!(result["Report"]["refusals"][0]["place"], json!({ "Line": 3001 }));
    assert_eq!(count(&server, "db"), 3000);
    let state = server.get("/databases/db/operations/state?id=5").json();
    assert_eq!(
        (&state["Status"], &state["Result"]["Documents"]["ReadCount"]),
        (&json!("Completed"), &json!(3001))
    );
}

#[test]
fn csv_comes_in_as_the_query_says() {
    let server = server();
    let body = "key;Name;Age\n1;Ada;36\n2;Bo;NA\n";
    let answer = import(
        &server,
        "format=csv&delimiter=;&null=NA&collection=Users&idPrefix=users/&id=",
        body.as_bytes(),
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    let found = server.get("/databases/db/docs?startsWith=users/").json();
    assert_eq!(found["Results"][1]["Age"], Value::Null);
    assert_eq!(found["Results"][0]["@metadata"]["@collection"], "Users");
    let answer = multipart(
        &server,
        "/databases/db/smuggler/import/csv?collection=People",
        None,
        b"@id,Name\np/1,Cy\n",
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(server.get("/databases/db/docs?id=p/1").json()["Results"][0]["Name"], "Cy");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let server = server();
    for (query, body) in [
        ("", "{}"),
        ("format=xml", "{}"),
        ("format=csv&delimiter=ab", "a\n1\n"),
        ("format=csv", ""),
        ("format=lines&existing=maybe", "{}"),
        ("format=json", "{} x"),
        ("format=dump", "[]"),
        ("format=lines&refusedMax=0", "x\n"),
    ] {
        let answer = import(&server, query, body.as_bytes());
        assert_eq!(answer.status, 400, "{query}: {}", answer.text());
        answer.error_type();
    }
    let answer = server.client().request("POST", "/databases/db/smuggler/import", &[], b"{}");
    assert_eq!(answer.status, 400);
    let answer =
        multipart(&server, "/databases/db/smuggler/import", Some(br#"{"TransformScript":"x"}"#), b"{}");
    assert_eq!((answer.status, answer.error_type().as_str()), (501, "NotSupportedException"));
    let state = server.get("/databases/db/operations").json();
    let results = state["Results"].as_array().expect("a list");
    assert!(results.iter().all(|one| one["State"]["Status"] == "Faulted"), "{state}");
}

#[test]
fn a_dump_goes_out_and_comes_in() {
    let server = server();
    assert_eq!(import(&server, "format=lines", lines(2000).as_bytes()).status, 200);
    server.request("POST", "/databases/db/identity/seed?name=users%7C&value=9", "");
    let options = r#"{"OperateOnTypes":"DatabaseRecord,Documents,Identities,CompareExchange","Collections":[],"TransformScript":null,"FileName":null}"#;
    let headers = [("Accept-Encoding", "gzip")];
    let dump = server.client().request(
        "POST",
        "/databases/db/smuggler/export?operationId=77",
        &headers,
        options.as_bytes(),
    );
    assert_eq!((dump.status, dump.header("content-encoding")), (200, None));
    assert_eq!(dump.header("content-type"), Some("application/octet-stream"));
    assert!(dump.header("content-disposition").is_some_and(|name| name.ends_with(".ravendbdump\"")));
    let content = gunzip(&dump.body);
    assert_eq!(content["Docs"].as_array().map(Vec::len), Some(2000));
    assert_eq!(content["DatabaseRecord"]["DatabaseName"], "db");
    // The last piece is sent before the operation ends.
    let state = || server.get("/databases/db/operations/state?id=77").json();
    while state()["Status"] == "InProgress" {
        std::thread::yield_now();
    }
    assert_eq!(state()["Result"]["Documents"]["ReadCount"], 2000);

    let options = gzip(br#"{"OperateOnTypes":"Documents,Identities"}"#);
    for options in [Some(&options[..]), Some(b"{}"), None] {
        let url = "/databases/other/smuggler/import?operationId=5";
        let answer = multipart(&server, url, options, &dump.body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let result = answer.json();
        assert_eq!(result["Documents"]["ReadCount"], 2000);
        assert_eq!(
            (&result["Identities"]["ReadCount"], &result["Indexes"]["Skipped"]),
            (&json!(1), &json!(false)),
            "the dump has no indexes that could be passed over"
        );
    }
    assert_eq!(count(&server, "other"), 2000);
    let one = server.request("POST", "/databases/other/identity/next?name=users%7C", "");
    assert_eq!(one.json()["NewIdentityValue"], 10);
    // Some of it.
    let options = r#"{"OperateOnTypes":["Documents"],"Collections":["Odd"]}"#;
    let odd = server.client().request("POST", "/databases/db/smuggler/export", &[], options.as_bytes());
    let odd = gunzip(&odd.body);
    assert_eq!((odd["Docs"].as_array().map(Vec::len), odd.get("Identities")), (Some(1000), None));
}

#[test]
fn an_upload_that_breaks_off_stores_nothing_it_did_not_see_whole() {
    let server = server();
    let mut client = server.client();
    let body = lines(1000);
    let head = format!(
        "POST /databases/db/import?format=lines&operationId=9 HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        body.len() + 100
    );
    client.send(head.as_bytes());
    client.send(body.as_bytes());
    client.send(b"{\"n\":12");
    drop(client);
    loop {
        let state = server.get("/databases/db/operations/state?id=9");
        if state.status == 200 && state.json()["Status"] != "InProgress" {
            break;
        }
        std::thread::yield_now();
    }
    assert!(count(&server, "db") <= 1000);
}

#[test]
fn a_killed_import_ends() {
    let server = server();
    let mut client = server.client();
    client.send(b"POST /databases/db/import?format=lines&operationId=9 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(b"8\r\n{\"a\":1}\n\r\n");
    while server.get("/databases/db/operations/state?id=9").status != 200 {
        std::thread::yield_now();
    }
    assert_eq!(server.request("POST", "/databases/db/operations/kill?id=9", "").status, 204);
    let answer = client.answer().expect("an answer");
    assert_eq!((answer.status, answer.error_type().as_str()), (500, "OperationCanceledException"));
    assert_eq!(server.get("/databases/db/operations/state?id=9").json()["Status"], "Canceled");
}

#[test]
fn a_record_of_nonsense_keeps_no_document_out() {
    let server = server();
    for (number, record) in
        ["[1]", "7", "\"x\"", "null", "{\"Analyzers\":[]}", "{\"Analyzers\":{\"A\":5}}"].iter().enumerate()
    {
        let id = format!("nonsense/{number}");
        let dump = format!(
            r#"{{"BuildVersion":54000,"DatabaseRecord":{record},"Docs":[{{"@metadata":{{"@id":"{id}"}}}}]}}"#
        );
        let answer = multipart(&server, "/databases/db/smuggler/import?operationId=6", None, dump.as_bytes());
        assert!(answer.status < 500, "{record}: {}", answer.text());
        assert_eq!(server.get(&format!("/databases/db/docs?id={id}")).status, 200, "{record}");
    }
}

#[test]
fn definitions_of_indexes_go_with_a_dump() {
    let server = server();
    let code = "using System.IO; using Lucene.Net.Analysis; public class Mine : Analyzer { \
        public override TokenStream TokenStream(string f, TextReader r) { return new WhitespaceTokenizer(r); } }";
    let analyzers = json!({ "Analyzers": [{ "Name": "Mine", "Code": code }] });
    assert_eq!(server.request("PUT", "/databases/db/admin/analyzers", &analyzers.to_string()).status, 201);
    let fields = json!({ "n": { "Analyzer": "Mine", "Storage": "Yes" } });
    let indexes = json!({ "Indexes": [
        { "Name": "A", "Maps": ["from d in docs.Even select new { d.n }"], "Fields": fields, "Priority": "High", "LockMode": "LockedError" },
        { "Name": "B", "Maps": ["map('Odd', d => ({ n: d.n }))"], "State": "Disabled" },
    ] });
    let put = server.request("PUT", "/databases/db/admin/indexes", &indexes.to_string());
    assert_eq!(put.status, 201, "{}", put.text());
    assert_eq!(import(&server, "format=lines", lines(10).as_bytes()).status, 200);
    let automatic = r#"{"Query":"from Even where n = 2"}"#;
    assert_eq!(server.request("POST", "/databases/db/queries", automatic).status, 200);

    let export = |options: Value| {
        let answer =
            server.request("POST", "/databases/db/smuggler/export?operationId=9", &options.to_string());
        assert_eq!(answer.status, 200, "{}", answer.text());
        gunzip(&answer.body)
    };
    let dump = export(json!({}));
    let items = dump["Indexes"].as_array().expect("indexes").clone();
    let names: Vec<&Value> = items.iter().map(|item| &item["IndexDefinition"]["Name"]).collect();
    assert_eq!(names, ["A", "B"]);
    assert_eq!((&items[0]["Type"], &items[1]["Type"]), (&json!("Map"), &json!("JavaScriptMap")));
    assert_eq!(dump["DatabaseRecord"]["Analyzers"]["Mine"]["Code"], code);
    let state = server.get("/databases/db/operations/state?id=9").json();
    assert_eq!(state["Result"]["Indexes"]["ReadCount"], 2);
    assert!(export(json!({ "OperateOnTypes": "Documents" })).get("Indexes").is_none());
    let without = export(json!({ "OperateOnTypes": "Indexes", "RemoveAnalyzers": true }));
    assert_eq!(without["Indexes"][0]["IndexDefinition"]["Fields"]["n"]["Analyzer"], Value::Null);

    let definitions = |database: &str| {
        let mut all = server.get(&format!("/databases/{database}/indexes")).json()["Results"].clone();
        all.as_array_mut().expect("indexes").retain(|index| index["Type"] != "AutoMap");
        all
    };
    let taken = |database: &str, options: Value, dump: &Value| {
        server.create_database(database);
        let url = format!("/databases/{database}/smuggler/import?operationId=7");
        let answer =
            multipart(&server, &url, Some(options.to_string().as_bytes()), dump.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let result = taken("whole", json!({}), &dump);
    assert_eq!((&result["Indexes"]["ReadCount"], &result["Indexes"]["ErroredCount"]), (&json!(2), &json!(0)));
    assert_eq!(result["Indexes"]["Skipped"], false);
    assert_eq!(definitions("whole"), definitions("db"));

    // What is refused is told, and the rest comes in: a bad function, an analyzer that is not there, one of a kind that is not supported, one that only queries make.
    let mut bad = dump.clone();
    let more = json!([
        { "Type": "Map", "IndexDefinition": { "Name": "Bad", "Maps": ["from d in docs.Even select d.n.Foo(("] } },
        { "Type": "AutoMap", "IndexDefinition": { "Name": "Auto/Even/Byn", "Collections": ["Even"] } },
        { "Type": "Map", "IndexDefinition": { "Name": "Counters", "Maps": ["from c in counters.Even select new { c.Name }"] } },
    ]);
    let list = bad["Indexes"].as_array_mut().expect("indexes");
    more.as_array().expect("items").iter().rev().for_each(|item| list.insert(0, item.clone()));
    let result = taken("bad", json!({ "OperateOnTypes": "Documents,Indexes" }), &bad);
    let (read, errored) = (&result["Indexes"]["ReadCount"], &result["Indexes"]["ErroredCount"]);
    assert_eq!((read, errored), (&json!(5), &json!(3)), "{result}");
    let messages = result["Messages"].to_string();
    for message in [
        "Could not write index 'Bad', error: ",
        "Could not write index 'Counters', error: ",
        "'A', error: Cannot find analyzer type 'Mine'",
    ] {
        assert!(messages.contains(message), "{messages}");
    }
    assert_eq!((definitions("bad")[0]["Name"].clone(), count(&server, "bad")), (json!("B"), 10));
    let result = taken("removed", json!({ "OperateOnTypes": "Indexes", "RemoveAnalyzers": true }), &dump);
    assert_eq!(
        (&result["Indexes"]["ErroredCount"], &definitions("removed")[0]["Fields"]["n"]["Analyzer"]),
        (&json!(0), &Value::Null)
    );
    let result = taken("none", json!({ "OperateOnTypes": "Documents" }), &dump);
    assert_eq!((&result["Indexes"]["Skipped"], &definitions("none")), (&json!(true), &json!([])));

    // Onto what is there: the same is the same, another is an edit, which a lock refuses.
    let again = |dump: &Value| {
        multipart(
            &server,
            "/databases/whole/smuggler/import?operationId=8",
            None,
            dump.to_string().as_bytes(),
        )
        .json()
    };
    assert_eq!(again(&dump)["Indexes"]["ErroredCount"], 0);
    let mut edited = dump.clone();
    edited["Indexes"][0]["IndexDefinition"]["Maps"] =
        json!(["from d in docs.Even select new { d.n, x = 1 }"]);
    let result = again(&edited);
    assert_eq!(result["Indexes"]["ErroredCount"], 1);
    assert!(result["Messages"].to_string().contains("lock mode LockedError"), "{}", result["Messages"]);
}
