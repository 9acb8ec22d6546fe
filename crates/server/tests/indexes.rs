//! Indexes as they are on the wire.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::{Value, json};
use support::TestServer;
use support::websocket::WebSocket;

const BY_NAME: &str = "from u in docs.Users select new { u.Name, u.Age }";

fn started() -> TestServer {
    let server = TestServer::start();
    server.create_database("x");
    server
}

/// Stores users and waits until all indexes have them.
fn put_users(server: &TestServer, names: &[&str]) {
    let commands: Vec<Value> = names
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let document = json!({ "Name": name, "Age": at, "@metadata": { "@collection": "Users" } });
            json!({ "Type": "PUT", "Id": format!("users/{at}"), "Document": document })
        })
        .collect();
    let url = "/databases/x/bulk_docs?waitForIndexesTimeout=00:01:00&waitForIndexThrow=true";
    let answer = server.request("POST", url, &json!({ "Commands": commands }).to_string());
    assert_eq!(answer.status, 201, "{}", answer.text());
}

fn define(server: &TestServer, definition: Value) -> support::Answer {
    server.request("PUT", "/databases/x/admin/indexes", &json!({ "Indexes": [definition] }).to_string())
}

#[test]
fn an_index_is_put_told_and_deleted() {
    let server = started();
    let definition = json!({
        "Name": "Users/ByName", "Maps": [BY_NAME], "Type": null, "LockMode": null,
        "Fields": { "Name": { "Indexing": "Search", "Storage": "Yes" } },
        "Configuration": { "Indexing.Unheard": "1" },
    });
    let answer = define(&server, definition.clone());
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(answer.json()["Results"][0]["Index"], "Users/ByName");
    put_users(&server, &["Ada Lovelace", "Grace"]);
    let found = server.get("/databases/x/indexes?name=users/byname").json()["Results"][0].clone();
    assert_eq!((&found["LockMode"], &found["Type"]), (&json!("Unlock"), &json!("Map")));
    assert_eq!(found["Fields"]["Name"]["Indexing"], "Search");
    assert_eq!(found["Fields"]["Name"]["Analyzer"], Value::Null);
    assert_eq!(found["Configuration"]["Indexing.Unheard"], "1");
    for (what, expected) in
        [(&definition, false), (&found, false), (&json!({ "Name": "Other", "Maps": ["x"] }), true)]
    {
        let answer = server.request("POST", "/databases/x/indexes/has-changed", &what.to_string());
        assert_eq!(answer.json()["Changed"], expected);
    }
    let terms = server.get("/databases/x/indexes/terms?name=Users/ByName&field=Name&fromValue=ada").json();
    assert_eq!(terms["Terms"], json!(["grace", "lovelace"]));
    let stats = server.get("/databases/x/indexes/stats?name=Users/ByName").json()["Results"][0].clone();
    assert_eq!((&stats["EntriesCount"], &stats["MapAttempts"]), (&json!(2), &json!(2)));
    assert_eq!(stats["Collections"]["Users"]["DocumentLag"], 0);
    let staleness = server.get("/databases/x/indexes/staleness?name=Users/ByName").json();
    assert_eq!(staleness, json!({ "IsStale": false, "StalenessReasons": [] }));
    let all = server.get("/databases/x/stats").json();
    assert_eq!((&all["CountOfIndexes"], &all["Indexes"][0]["IsStale"]), (&json!(1), &json!(false)));
    let record = server.get("/databases/x/admin/record").json();
    assert_eq!(record["Indexes"]["Users/ByName"]["Maps"][0], BY_NAME);
    assert_eq!(server.request("RESET", "/databases/x/indexes?name=Users/ByName", "").status, 204);
    assert_eq!(server.request("DELETE", "/databases/x/indexes?name=Users/ByName", "").status, 204);
    assert_eq!(server.request("DELETE", "/databases/x/indexes?name=Users/ByName", "").status, 404);
    assert_eq!(server.get("/databases/x/indexes?name=Users/ByName").status, 404);
    assert_eq!(server.get("/databases/x/indexes?namesOnly=true").json()["Results"], json!([]));
}

#[test]
fn what_is_wrong_is_told_in_the_clients_words() {
    let server = started();
    let compilation = "IndexCompilationException";
    let answer = define(&server, json!({ "Name": "Bad", "Maps": ["from u in docs.Users selec u"] }));
    assert_eq!((answer.status, answer.error_type()), (500, compilation.to_owned()));
    assert_eq!(answer.json()["IndexDefinitionProperty"], "Maps");
    assert_eq!(answer.json()["ProblematicText"], "from u in docs.Users selec u");
    let answer = define(&server, json!({ "Name": "", "Maps": [BY_NAME] }));
    assert_eq!((answer.status, answer.error_type()), (500, "ArgumentException".to_owned()));
    let missing = "IndexDoesNotExistException";
    for (method, url, body) in [
        ("RESET", "indexes?name=Nope", ""),
        ("GET", "indexes/errors?name=Nope", ""),
        ("DELETE", "indexes/errors?name=Nope", ""),
        ("GET", "indexes/terms?name=Nope&field=a", ""),
        ("GET", "indexes/staleness?name=Nope", ""),
        ("POST", "indexes/set-lock", r#"{"IndexNames":["Nope"],"Mode":"LockedError"}"#),
        ("POST", "indexes/set-priority", r#"{"IndexNames":["Nope"],"Priority":"Low"}"#),
        ("POST", "admin/indexes/stop?name=Nope", ""),
        ("POST", "admin/indexes/enable?name=Nope", ""),
    ] {
        let answer = server.request(method, &format!("/databases/x/{url}"), body);
        assert_eq!((answer.status, answer.error_type()), (500, missing.to_owned()), "{url}");
    }
    let body = r#"{"Sorters":[{"Name":"Mine","Code":"class Other {}"}]}"#;
    let answer = server.request("PUT", "/databases/x/admin/sorters", body);
    assert!(answer.error_type().ends_with("SorterCompilationException"), "{}", answer.text());
    assert_eq!(server.get("/databases/x/indexes/stats?name=Nope").status, 404);
}

#[test]
fn errors_states_and_the_commands_that_change_them() {
    let server = started();
    define(&server, json!({ "Name": "Div", "Maps": ["from u in docs.Users select new { X = 3 / u.Age }"] }));
    define(&server, json!({ "Name": "Good", "Maps": [BY_NAME] }));
    let status = |name: &str| {
        let all = server.get("/databases/x/indexes/status").json();
        let one = all["Indexes"].as_array().unwrap().iter().find(|one| one["Name"] == name);
        one.unwrap()["Status"].as_str().unwrap().to_owned()
    };
    put_users(&server, &["the one whose age is zero"]);
    let errors = server.get("/databases/x/indexes/errors?&name=Div").json();
    assert_eq!(errors["Results"][0]["Errors"][0]["Document"], "users/0");
    assert_eq!(errors["Results"][0]["Errors"][0]["Action"], "Map");
    let stats = server.get("/databases/x/indexes/stats?name=Div").json()["Results"][0].clone();
    assert_eq!((&stats["State"], &stats["IsInvalidIndex"]), (&json!("Error"), &json!(true)));
    assert_eq!(server.request("DELETE", "/databases/x/indexes/errors", "").status, 204);
    assert_eq!(server.get("/databases/x/indexes/stats?name=Div").json()["Results"][0]["ErrorsCount"], 0);
    for (command, expected) in [
        ("stop", "Paused"),
        ("start", "Running"),
        ("stop?name=Good", "Paused"),
        ("start?name=Good", "Running"),
        ("stop?type=map-reduce", "Running"),
        ("disable?name=Good&clusterWide=false", "Disabled"),
        ("enable?name=Good", "Running"),
    ] {
        let answer = server.request("POST", &format!("/databases/x/admin/indexes/{command}"), "");
        assert_eq!(answer.status, 204, "{command}");
        assert_eq!(status("Good"), expected, "{command}");
    }
    let body = r#"{"IndexNames":["good"],"Mode":"LockedError"}"#;
    assert_eq!(server.request("POST", "/databases/x/indexes/set-lock", body).status, 204);
    let changed =
        define(&server, json!({ "Name": "Good", "Maps": ["from u in docs.Users select new { u.Age }"] }));
    assert!(changed.error_type().ends_with("IndexCreationException"), "{}", changed.text());
    assert!(changed.text().contains("LockedError"));
}

#[test]
fn changes_of_indexes_are_told() {
    let server = started();
    let mut all = WebSocket::watching(&server, "x", "watch-indexes", Value::Null);
    let mut one = WebSocket::watching(&server, "x", "watch-index", json!("other"));
    define(&server, json!({ "Name": "Users", "Maps": [BY_NAME] }));
    let told = |kind: &str| json!({ "Type": "IndexChange", "Value": { "Name": "Users", "Type": kind } });
    assert_eq!(all.message(), told("IndexAdded"));
    put_users(&server, &["Ada"]);
    assert_eq!(all.message(), told("BatchCompleted"));
    assert_eq!(one.messages(), [] as [Value; 0]);
}

// ---- custom analyzers ----

fn put_analyzer(server: &TestServer, name: &str, code: &str) -> support::Answer {
    let body = json!({ "Analyzers": [{ "Name": name, "Code": code }] });
    server.request("PUT", "/databases/x/admin/analyzers", &body.to_string())
}

/// An analyzer whose `TokenStream` is this.
fn analyzer(name: &str, body: &str) -> String {
    format!(
        "using System.IO; using Lucene.Net.Analysis;
         public class {name} : Analyzer {{ public override TokenStream TokenStream(string f, TextReader reader) {{ {body} }} }}"
    )
}

fn put_documents(server: &TestServer, documents: &[Value]) {
    let commands: Vec<Value> = documents
        .iter()
        .enumerate()
        .map(|(at, document)| {
            let mut document = document.clone();
            document["@metadata"] = json!({ "@collection": "T" });
            json!({ "Type": "PUT", "Id": format!("t/{}", at + 1), "Document": document })
        })
        .collect();
    let url = "/databases/x/bulk_docs?waitForIndexesTimeout=00:01:00&waitForIndexThrow=true";
    let answer = server.request("POST", url, &json!({ "Commands": commands }).to_string());
    assert_eq!(answer.status, 201, "{}", answer.text());
}

fn terms(server: &TestServer, index: &str, field: &str) -> Vec<String> {
    let answer = server.get(&format!("/databases/x/indexes/terms?name={index}&field={field}&pageSize=1024"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_value(answer.json()["Terms"].clone()).unwrap()
}

/// Ids that a query finds, without what they begin with.
fn found(server: &TestServer, query: &str) -> String {
    let answer = server.request("POST", "/databases/x/queries", &json!({ "Query": query }).to_string());
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    let results = answer.json()["Results"].clone();
    let ids = results
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["@metadata"]["@id"].as_str().unwrap()[2..].to_owned());
    ids.collect()
}

/// Classes as users write them, and what RavenDB 5.4 made of texts with them.
fn reference() -> Value {
    serde_json::from_str(include_str!("../../functions/tests/data/custom_analyzers.json")).unwrap()
}

#[test]
fn custom_analyzers_give_the_terms_of_the_reference() {
    let server = started();
    let reference = reference();
    let texts = reference["texts"].as_array().unwrap();
    let fields: Vec<String> = (0..texts.len()).map(|at| format!("d.t{at}")).collect();
    let map = format!("from d in docs.T select new {{ {} }}", fields.join(", "));
    let cases = reference["analyzers"].as_array().unwrap();
    for case in cases {
        let (name, code) = (case["name"].as_str().unwrap(), case["code"].as_str().unwrap());
        let answer = put_analyzer(&server, name, code);
        assert_eq!(answer.status, 201, "{name}: {}", answer.text());
        let fields = json!({ "__all_fields": { "Analyzer": name, "Indexing": "Search" } });
        let answer = define(&server, json!({ "Name": name, "Maps": [map], "Fields": fields }));
        assert_eq!(answer.status, 201, "{name}: {}", answer.text());
    }
    let mut document = json!({});
    for (at, text) in texts.iter().enumerate() {
        document[format!("t{at}")] = text.clone();
    }
    put_documents(&server, &[document]);
    let mut failures = Vec::new();
    for case in cases {
        let name = case["name"].as_str().unwrap();
        for (at, text) in texts.iter().enumerate() {
            let terms = json!(terms(&server, name, &format!("t{at}")));
            if terms != case["terms"][at] {
                failures.push(format!("{name} on {text}: {terms}, not {}", case["terms"][at]));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn fields_of_custom_analyzers_are_queried_as_in_the_reference() {
    let server = started();
    let reference = reference()["queried"].clone();
    let analyzers = reference["analyzers"].as_array().unwrap();
    for case in analyzers {
        let (name, code) = (case["name"].as_str().unwrap(), case["code"].as_str().unwrap());
        assert_eq!(put_analyzer(&server, name, code).status, 201);
        let fields = json!({ "t": { "Analyzer": name, "Indexing": "Search" } });
        let maps = ["from d in docs.T select new { d.t }"];
        assert_eq!(define(&server, json!({ "Name": name, "Maps": maps, "Fields": fields })).status, 201);
    }
    let documents: Vec<Value> =
        reference["documents"].as_array().unwrap().iter().map(|text| json!({ "t": text })).collect();
    put_documents(&server, &documents);
    let mut failures = Vec::new();
    for query in reference["queries"].as_array().unwrap() {
        let condition = query["where"].as_str().unwrap();
        for (index, expected) in query["found"].as_object().unwrap() {
            let found = found(&server, &format!("from index '{index}' where {condition}"));
            let mut sides = [found, expected.as_str().unwrap().to_owned()];
            if !condition.contains("order by") {
                sides = sides.map(|ids| {
                    let mut ids: Vec<char> = ids.chars().collect();
                    ids.sort_unstable();
                    ids.into_iter().collect()
                });
            }
            if sides[0] != sides[1] {
                failures.push(format!("{index}, {condition}: {:?}, not {:?}", sides[0], sides[1]));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_changed_analyzer_leaves_what_is_indexed_and_serves_what_comes() {
    let mut server = started();
    assert_eq!(
        put_analyzer(
            &server,
            "Mine",
            &analyzer("Mine", "return new LowerCaseFilter(new KeywordTokenizer(reader));")
        )
        .status,
        201
    );
    let fields = json!({ "t": { "Analyzer": "mine" } });
    let index = json!({ "Name": "I", "Maps": ["from d in docs.T select new { d.t }"], "Fields": fields });
    assert_eq!(define(&server, index).status, 201);
    put_documents(&server, &[json!({ "t": "Two Words" })]);
    assert_eq!(terms(&server, "I", "t"), ["two words"]);
    assert_eq!(
        put_analyzer(&server, "Mine", &analyzer("Mine", "return new WhitespaceTokenizer(reader);")).status,
        201
    );
    assert_eq!(terms(&server, "I", "t"), ["two words"]);
    assert_eq!(found(&server, "from index 'I' where search(t, 'Two')"), "");
    put_documents(&server, &[json!({ "t": "Two Words" }), json!({ "t": "Other Words" })]);
    assert_eq!(terms(&server, "I", "t"), ["Other", "Two", "Words"]);
    assert_eq!(found(&server, "from index 'I' where search(t, 'Two')"), "1");
    server.restart();
    assert_eq!(terms(&server, "I", "t"), ["Other", "Two", "Words"]);
    let listed = server.get("/databases/x/analyzers").json();
    assert_eq!(listed["Analyzers"][0]["Name"], "Mine");
    assert_eq!(server.get("/databases/x/admin/record").json()["Analyzers"]["Mine"], listed["Analyzers"][0]);

    // Without it the index says why it answers nothing; documents are stored as ever.
    assert_eq!(server.request("DELETE", "/databases/x/admin/analyzers?name=MINE", "").status, 204);
    let answer = server.request("POST", "/databases/x/queries", r#"{"Query":"from index 'I'"}"#);
    assert!(
        answer.status >= 500 && answer.text().contains("Cannot find analyzer type 'mine'"),
        "{}",
        answer.text()
    );
    let deleted = server.request("DELETE", "/databases/x/docs?id=t/2", "");
    assert_eq!(deleted.status, 204);
    // Back again, it is built anew.
    assert_eq!(
        put_analyzer(&server, "Mine", &analyzer("Mine", "return new LowerCaseTokenizer(reader);")).status,
        201
    );
    put_documents(&server, &[json!({ "t": "Two Words" })]);
    assert_eq!(terms(&server, "I", "t"), ["two", "words"]);
}

#[test]
fn what_is_no_analyzer_is_refused() {
    let server = started();
    let fine = analyzer("Mine", "return new KeywordTokenizer(reader);");
    for (name, code, kind, message) in [
        (
            "Mine",
            fine.replace("return", "retrun"),
            "AnalyzerCompilationException",
            "Failed to compile analyzer 'Mine': line",
        ),
        (
            "Other",
            fine.clone(),
            "AnalyzerCompilationException",
            "Could not find type 'Other' in given assembly",
        ),
        (
            "Mine",
            analyzer("Mine", "return new NGramTokenFilter(new KeywordTokenizer(reader), 2, 3);"),
            "AnalyzerCompilationException",
            "NGramTokenFilter",
        ),
        ("", fine.clone(), "ArgumentException", "Analyzer must have a 'Name' field."),
        ("Mine", String::new(), "ArgumentException", "Analyzer must have a 'Code' field."),
    ] {
        let answer = put_analyzer(&server, name, &code);
        assert_eq!((answer.status, answer.error_type().as_str()), (500, kind), "{}", answer.text());
        assert!(answer.text().contains(message), "{}", answer.text());
    }
    // Of several, all or none.
    let both =
        json!({ "Analyzers": [{ "Name": "Mine", "Code": fine }, { "Name": "B", "Code": "class B { }" }] });
    assert_eq!(server.request("PUT", "/databases/x/admin/analyzers", &both.to_string()).status, 500);
    assert_eq!(server.get("/databases/x/analyzers").json()["Analyzers"], json!([]));
    assert_eq!(server.request("PUT", "/databases/x/admin/analyzers", "{}").status, 500);
    assert_eq!(server.request("DELETE", "/databases/x/admin/analyzers?name=Nope", "").status, 204);
    let index = json!({ "Name": "I", "Maps": ["from d in docs.T select new { d.t }"], "Fields": { "t": { "Analyzer": "Mine" } } });
    let answer = define(&server, index);
    assert!(answer.text().contains("Cannot find analyzer type 'Mine' for field"), "{}", answer.text());
}
