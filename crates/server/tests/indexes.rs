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
