//! What the server answers about itself and its databases.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use serde_json::json;
use support::{Client, TestServer};

#[test]
fn every_answer_has_what_clients_need() {
    let server = TestServer::start();
    for (method, url, status) in [
        ("GET", "/build/version", 200),
        ("GET", "/nope", 400),
        ("GET", "/health/live", 204),
        ("GET", "/operations/state?id=5", 404),
    ] {
        let answer = server.request(method, url, "");
        assert_eq!(answer.status, status, "{url}");
        assert_eq!(answer.header("raven-server-version"), Some("7.1.5.71028"), "{url}");
        // What is done, with nothing to say, has no type.
        let expected = (status != 204).then_some("application/json; charset=utf-8");
        assert_eq!(answer.header("content-type"), expected, "{url}");
        assert_eq!(answer.header("vary"), Some("Accept-Encoding"), "{url}");
        assert!(answer.header("date").is_some(), "{url}");
    }
    assert_eq!(
        server.get("/build/version").json(),
        json!({"BuildVersion":71028,"ProductVersion":"7.1","CommitHash":"082d079","FullVersion":"7.1.5"})
    );
}

#[test]
fn an_unknown_route_is_never_a_404() {
    let server = TestServer::start();
    server.create_database("x");
    for (method, url) in [
        ("GET", "/nope"),
        ("POST", "/build/version"),
        ("HEAD", "/build/version"),
        ("OPTIONS", "/"),
        ("GET", "/Build/Version"),
        ("GET", "/databases/"),
        ("GET", "/databases/x"),
        ("GET", "/databases/x/nope"),
        ("RESET", "/databases/x/healthcheck"),
        ("GET", "/databases/x/healthcheck/"),
        ("GET", "//build/version"),
        ("GET", "/databases/none/nope"),
    ] {
        let mut client = server.client();
        let answer = client.request(method, url, &[], b"");
        assert_eq!(answer.status, 400, "{method} {url}");
        if method != "HEAD" {
            assert_eq!(answer.error_type(), "RouteNotFoundException");
            assert_eq!(answer.json()["Message"], format!("There is no handler for path: {method} {url}"));
        }
    }
}

#[test]
fn a_database_is_made_found_listed_and_deleted() {
    let server = TestServer::start();
    let url = "/admin/databases?name=Shop&replicationFactor=1&?raft-request-id=b028d4b8";
    let made = server.request(
        "PUT",
        url,
        r#"{"DatabaseName":"Shop","Disabled":false,"Settings":{},"Topology":null}"#,
    );
    assert_eq!(made.status, 201);
    let made = made.json();
    assert_eq!(
        (&made["Name"], &made["Topology"]["Members"], &made["ShardsDefined"]),
        (&json!("Shop"), &json!(["A"]), &json!(false))
    );
    assert_eq!(made["NodesAddedTo"], json!([server.url()]));
    assert!(made["RaftCommandIndex"].as_i64().expect("an index") > 0);

    // Complete when answered, in any casing.
    let health = server.get("/databases/sHOP/healthcheck");
    assert_eq!(health.status, 204);
    let tx_id = made["Topology"]["ClusterTransactionIdBase64"].as_str().expect("an id");
    assert_eq!((tx_id.len(), health.header("database-cluster-tx-id")), (22, Some(tx_id)));

    let again = server.request("PUT", "/admin/databases?name=SHOP", r#"{"DatabaseName":"SHOP"}"#);
    assert_eq!((again.status, again.error_type().as_str()), (409, "ConcurrencyException"));
    assert_eq!(again.json()["Message"], "Database 'SHOP' already exists!");

    // A request that is sent again, because its answer was lost, gets the answer of the first.
    let put = |name: &str, id: &str| {
        let path = format!("/admin/databases?name={name}&raft-request-id={id}");
        server.request("PUT", &path, &json!({ "DatabaseName": name }).to_string())
    };
    let first = put("Twice", "6d1f");
    let second = put("Twice", "6d1f");
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(first.json(), second.json());
    assert_eq!(put("Twice", "another").status, 409);

    let record = server.get("/admin/databases?name=shop").json();
    assert_eq!(
        (&record["DatabaseName"], &record["LockMode"], &record["Etag"]),
        (&json!("Shop"), &json!("Unlock"), &made["RaftCommandIndex"])
    );
    assert_eq!(server.get("/databases/shop/admin/record").json(), record);
    for key in ["Indexes", "AutoIndexes", "Settings", "DeletionInProgress", "RavenConnectionStrings"] {
        assert_eq!(record[key], json!({}), "{key}");
    }

    server.create_database("a");
    assert_eq!(server.get("/databases?namesOnly=true").json(), json!({"Databases": ["a", "Shop", "Twice"]}));
    assert_eq!(
        server.get("/databases?start=1&pageSize=1&namesOnly=true").json(),
        json!({"Databases": ["Shop"]})
    );
    assert_eq!(server.get("/databases?name=shop").json()["Databases"][0]["DocumentsCount"], 0);
    assert_eq!(server.get("/databases?name=nope").status, 404);

    let gone = server.request(
        "DELETE",
        "/admin/databases?raft-request-id=x",
        r#"{"DatabaseNames":["SHOP"],"HardDelete":true,"FromNodes":null,"TimeToWaitForConfirmation":null}"#,
    );
    assert_eq!(gone.status, 200);
    assert!(gone.json()["RaftCommandIndex"].as_i64() > made["RaftCommandIndex"].as_i64());
    assert_eq!(gone.json()["PendingDeletes"], json!([]));
    assert!(!server.database_dir("shop").exists());
    let again =
        server.request("DELETE", "/admin/databases", r#"{"DatabaseNames":["Shop"],"HardDelete":true}"#);
    assert_eq!((again.status, &again.json()["RaftCommandIndex"]), (200, &json!(-1)));
}

#[test]
fn a_database_that_does_not_exist_is_answered_as_clients_expect() {
    let server = TestServer::start();
    for (url, status) in [("/topology?name=x", 503), ("/admin/databases?name=x", 404)] {
        let answer = server.get(url);
        assert_eq!((answer.status, answer.header("database-missing")), (status, Some("x")));
        assert_eq!(answer.json(), json!({"Type": "Error", "Message": "Database x wasn't found"}));
    }
    let answer = server.get("/databases/x/healthcheck");
    assert_eq!((answer.status, answer.error_type().as_str()), (500, "DatabaseDoesNotExistException"));
    assert_eq!(answer.json()["Type"], "Raven.Client.Exceptions.Database.DatabaseDoesNotExistException");
}

#[test]
fn names_that_cannot_be_are_refused_and_nothing_is_made() {
    let server = TestServer::start();
    for name in ["", "a/b", "../x", "a b", "a%b", "a:b", ".", "..", "a\u{0}b", &"x".repeat(200)] {
        let body = json!({"DatabaseName": name}).to_string();
        let answer = server.request("PUT", "/admin/databases", &body);
        assert_eq!(answer.status, 400, "{name:?}: {}", answer.text());
        answer.error_type();
    }
    for body in
        ["", "[1]", "null", "{\"Databas", "{\"DatabaseName\":7}", "{\"DatabaseName\":\"x\",\"Settings\":1}"]
    {
        let answer = server.request("PUT", "/admin/databases?name=x", body);
        assert_eq!((answer.status, answer.error_type().as_str()), (400, "InvalidDataException"), "{body}");
    }
    let unsupported = server.request("PUT", "/admin/databases", r#"{"DatabaseName":"x","Encrypted":true}"#);
    assert_eq!((unsupported.status, unsupported.error_type().as_str()), (501, "NotSupportedException"));
    assert_eq!(server.get("/databases?namesOnly=true").json(), json!({"Databases": []}));
    assert_eq!(std::fs::read_dir(server.data_dir().join("Databases")).expect("a directory").count(), 0);
}

#[test]
fn databases_and_what_was_set_are_there_after_a_restart() {
    let mut server = TestServer::start();
    server.create_database("Shop");
    let settings = server.request(
        "PUT",
        "/databases/shop/admin/configuration/settings",
        r#"{"Indexing.MapBatchSize":"100","n":1}"#,
    );
    assert_eq!((settings.status, settings.body.len()), (201, 0));
    server.request(
        "POST",
        "/admin/databases/set-lock",
        r#"{"DatabaseNames":["shop"],"Mode":"PreventDeletesError"}"#,
    );
    let record = server.get("/admin/databases?name=Shop").json();
    let (topology, node) = (server.get("/cluster/topology").json(), server.get("/cluster/node-info").json());
    server.restart();
    assert_eq!(server.get("/admin/databases?name=Shop").json(), record);
    assert_eq!(record["Settings"], json!({"Indexing.MapBatchSize": "100", "n": "1"}));
    assert_eq!(
        server.get("/cluster/topology").json()["Topology"]["TopologyId"],
        topology["Topology"]["TopologyId"]
    );
    assert_eq!(server.get("/cluster/node-info").json()["ServerId"], node["ServerId"]);
    let before = server.get("/databases/shop/healthcheck");
    assert_eq!(before.status, 204);
    server.create_database("second");
    let second = server.get("/admin/databases?name=second").json();
    assert!(second["Etag"].as_i64() > record["Etag"].as_i64(), "indexes only grow");
}

#[test]
fn a_soft_deleted_database_comes_back_with_its_files() {
    let server = TestServer::start();
    server.create_database("x");
    let id = |server: &TestServer| {
        server.get("/databases/x/healthcheck").header("database-cluster-tx-id").expect("an id").to_owned()
    };
    let first = id(&server);
    server.request("DELETE", "/admin/databases", r#"{"DatabaseNames":["x"],"HardDelete":false}"#);
    assert_eq!(server.get("/databases/x/healthcheck").status, 500);
    assert!(server.database_dir("x").is_dir());
    server.create_database("x");
    assert_eq!(id(&server), first);
    server.request("DELETE", "/admin/databases", r#"{"DatabaseNames":["x"],"HardDelete":true}"#);
    server.create_database("x");
    assert_ne!(id(&server), first);
}

#[test]
fn a_database_can_be_disabled_and_enabled() {
    let server = TestServer::start();
    server.create_database("x");
    let answer = server.request(
        "POST",
        "/admin/databases/disable?raft-request-id=1",
        r#"{"DatabaseNames":["X","nope"]}"#,
    );
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.json()["Status"],
        json!([
            {"Name": "X", "Success": true, "Disabled": true, "Reason": "Database state=True was propagated on the cluster"},
            {"Name": "nope", "Success": false, "Reason": "database not found"},
        ])
    );
    let refused = server.get("/databases/x/healthcheck");
    assert_eq!((refused.status, refused.error_type().as_str()), (503, "DatabaseDisabledException"));
    assert_eq!(server.get("/topology?name=x").status, 200);
    assert_eq!(server.get("/admin/databases?name=x").json()["Disabled"], true);
    assert_eq!(server.metric("jackdaw_databases_loaded"), 0.0);
    server.request("POST", "/admin/databases/enable", r#"{"DatabaseNames":["x"]}"#);
    assert_eq!(server.get("/databases/x/healthcheck").status, 204);
}

#[test]
fn locks_keep_databases() {
    let server = TestServer::start();
    server.create_database("x");
    let lock = |mode: &str| {
        server.request(
            "POST",
            "/admin/databases/set-lock",
            &json!({"DatabaseNames": ["x"], "Mode": mode}).to_string(),
        )
    };
    let delete =
        || server.request("DELETE", "/admin/databases", r#"{"DatabaseNames":["x"],"HardDelete":true}"#);
    assert_eq!(lock("PreventDeletesError").status, 204);
    let refused = delete();
    assert_eq!((refused.status, refused.error_type().as_str()), (500, "InvalidOperationException"));
    assert!(
        refused.text().contains("cannot be deleted because of the set lock mode ('PreventDeletesError')")
    );
    assert_eq!(lock("PreventDeletesIgnore").status, 204);
    assert_eq!(delete().json()["RaftCommandIndex"], -1);
    assert_eq!(server.get("/databases/x/healthcheck").status, 204);
    assert_eq!(lock("Sometimes").status, 400);
    let unknown =
        server.request("POST", "/admin/databases/set-lock", r#"{"DatabaseNames":["nope"],"Mode":"Unlock"}"#);
    assert_eq!((unknown.status, unknown.error_type().as_str()), (500, "DatabaseDoesNotExistException"));
    assert_eq!(lock("Unlock").status, 204);
    assert!(delete().json()["RaftCommandIndex"].as_i64() > Some(0));
}

#[test]
fn the_topology_is_one_node() {
    let server = TestServer::start();
    server.create_database("Shop");
    let topology = server.get("/topology?name=shop&first-topology-update&applicationIdentifier=d4f1").json();
    assert_eq!(
        topology["Nodes"],
        json!([{"Url": server.url(), "ClusterTag": "A", "ServerRole": "Member", "Database": "Shop", "ServerVersion": "7.1.5.71028"}])
    );
    assert!(topology["Etag"].as_i64() > Some(0));
    let cluster = server.get("/cluster/topology?first-topology-update").json();
    assert_eq!(cluster["Topology"]["Members"], json!({"A": server.url()}));
    assert_eq!(
        (&cluster["Leader"], &cluster["NodeTag"], &cluster["CurrentState"]),
        (&json!("A"), &json!("A"), &json!("Leader"))
    );
    let node = server.get("/cluster/node-info").json();
    assert_eq!((&node["NodeTag"], &node["ServerRole"]), (&json!("A"), &json!("Member")));
    assert_eq!(server.get("/info/tcp?tcp=health-check").json()["NodeTag"], "A");
    // The client's own name for the server is the one that works for the client.
    let mut client = server.client();
    client.send(b"GET /topology?name=shop HTTP/1.1\r\nHost: db.example:81\r\n\r\n");
    assert_eq!(client.answer().expect("an answer").json()["Nodes"][0]["Url"], "http://db.example:81");
    client.send(b"GET /topology?name=shop HTTP/1.1\r\nHost: \"><script>\r\n\r\n");
    assert_eq!(client.answer().expect("an answer").json()["Nodes"][0]["Url"], server.url());
    let public = TestServer::with(&[("public-url", "https://db.example/")]);
    public.create_database("x");
    assert_eq!(public.get("/topology?name=x").json()["Nodes"][0]["Url"], "https://db.example");
}

#[test]
fn clients_are_told_to_refresh_only_when_they_must() {
    let server = TestServer::start();
    server.create_database("x");
    let etag = server.get("/topology?name=x").json()["Etag"].as_i64().expect("an etag");
    let refresh = |header: &str, value: &str, name: &str| {
        let answer = server.client().request("GET", "/databases/x/healthcheck", &[(header, value)], b"");
        answer.header(name).map(str::to_owned)
    };
    for (value, expected) in [
        ("\"0\"", Some("true")),
        ("\"-2\"", Some("true")),
        ("0", Some("true")),
        ("\"None\"", None),
        ("", None),
        (&format!("\"{etag}\""), None),
    ] {
        assert_eq!(refresh("Topology-Etag", value, "refresh-topology").as_deref(), expected, "{value}");
    }
    assert_eq!(
        server.get("/databases/x/configuration/client").json(),
        json!({"Etag": -2, "Configuration": null})
    );
    assert_eq!(refresh("Client-Configuration-Etag", "\"0\"", "refresh-client-configuration"), None);
    assert_eq!(server.get("/configuration/client").status, 404);

    let put = server.request(
        "PUT",
        "/admin/configuration/client",
        r#"{"Etag":0,"Disabled":false,"MaxNumberOfRequestsPerSession":50}"#,
    );
    assert_eq!(put.status, 201);
    let of_server = server.get("/configuration/client").json();
    assert_eq!(of_server["MaxNumberOfRequestsPerSession"], 50);
    assert_eq!(server.get("/databases/x/configuration/client").json()["Etag"], of_server["Etag"]);
    let put = server.request("PUT", "/databases/x/admin/configuration/client", r#"{"Etag":0,"Disabled":false,"MaxNumberOfRequestsPerSession":80,"ReadBalanceBehavior":"RoundRobin"}"#);
    assert_eq!((put.status, put.body.len()), (201, 0));
    let own = server.get("/databases/x/configuration/client").json();
    assert_eq!(
        (
            &own["Configuration"]["MaxNumberOfRequestsPerSession"],
            &own["Configuration"]["LoadBalanceBehavior"]
        ),
        (&json!(80), &json!(null))
    );
    assert_eq!(own["Etag"], own["Configuration"]["Etag"]);
    for (value, expected) in [
        ("\"0\"", Some("true")),
        ("0", Some("true")),
        ("\"-2\"", Some("true")),
        ("None", None),
        (&own["Etag"].to_string(), None),
    ] {
        assert_eq!(
            refresh("Client-Configuration-Etag", value, "refresh-client-configuration").as_deref(),
            expected,
            "{value}"
        );
    }
    let bad = server.request(
        "PUT",
        "/databases/x/admin/configuration/client",
        r#"{"ReadBalanceBehavior":"Slowest"}"#,
    );
    assert_eq!((bad.status, server.get("/databases/x/configuration/client").json()), (400, own));
}

#[test]
fn the_members_of_one_node_can_be_ordered_and_nothing_else() {
    let server = TestServer::start();
    server.create_database("x");
    let before = server.get("/topology?name=x").json()["Etag"].as_i64();
    assert_eq!(
        server
            .request("POST", "/admin/databases/reorder?name=x", r#"{"MembersOrder":["A"],"Fixed":true}"#)
            .status,
        204
    );
    assert!(server.get("/topology?name=x").json()["Etag"].as_i64() > before);
    assert_eq!(server.get("/admin/databases?name=x").json()["Topology"]["PriorityOrder"], json!(["A"]));
    let other =
        server.request("POST", "/admin/databases/reorder?name=x", r#"{"MembersOrder":["B"],"Fixed":false}"#);
    assert_eq!((other.status, other.error_type().as_str()), (400, "ArgumentException"));
    let promoted = server.request("POST", "/admin/databases/promote?name=x&node=A", "");
    assert_eq!((promoted.status, &promoted.json()["Name"]), (200, &json!("x")));
    for (url, part) in
        [("name=x", "already exists on all the nodes"), ("name=x&node=B", "is not part of the cluster")]
    {
        let refused = server.request("PUT", &format!("/admin/databases/node?{url}"), "");
        assert_eq!((refused.status, refused.error_type().as_str()), (500, "InvalidOperationException"));
        assert!(refused.text().contains(part), "{}", refused.text());
    }
}

#[test]
fn operations_have_ids_and_states() {
    let server = TestServer::start();
    server.create_database("x");
    assert_eq!(
        server.get("/databases/x/operations/next-operation-id").json(),
        json!({"Id": 1, "NodeTag": "A"})
    );
    assert_eq!(server.get("/databases/x/operations/next-operation-id").json()["Id"], 2);
    assert_eq!(server.get("/operations/next-operation-id").json()["Id"], 1);
    for root in ["", "/databases/x"] {
        let unknown = server.get(&format!("{root}/operations/state?id=77"));
        assert_eq!((unknown.status, unknown.body.len()), (404, 0));
        let kill = server.request("POST", &format!("{root}/operations/kill?id=77&nodeTag=A"), "");
        assert_eq!((kill.status, kill.error_type().as_str()), (500, "ArgumentException"));
        assert_eq!(server.get(&format!("{root}/operations")).json(), json!({"Results": []}));
        for query in ["", "?id=", "?id=x"] {
            assert_eq!(server.get(&format!("{root}/operations/state{query}")).status, 400);
        }
    }
}

#[test]
fn the_log_level_can_be_changed() {
    let server = TestServer::start();
    assert_eq!(server.get("/admin/logs/configuration").json()["Logs"]["CurrentMinLevel"], "Info");
    for (body, level, mode) in [
        (r#"{"Logs":{"MinLevel":"Debug"}}"#, "Debug", "Information"),
        (r#"{"Mode":"None"}"#, "Off", "None"),
        (r#"{"Mode":"Operations"}"#, "Info", "Operations"),
    ] {
        assert_eq!(server.request("POST", "/admin/logs/configuration", body).status, 204);
        let now = server.get("/admin/logs/configuration").json();
        assert_eq!((&now["Logs"]["CurrentMinLevel"], &now["CurrentMode"]), (&json!(level), &json!(mode)));
    }
    assert_eq!(server.request("POST", "/admin/logs/configuration", r#"{"Mode":"Loud"}"#).status, 400);
}

#[test]
fn health_and_metrics_tell_of_the_server() {
    let server = TestServer::start();
    server.create_database("x");
    assert_eq!(server.get("/health/live").status, 204);
    assert_eq!(server.get("/health/ready").json(), json!({"Status": "Ready", "FailedDatabases": []}));
    assert_eq!((server.metric("jackdaw_databases"), server.metric("jackdaw_databases_loaded")), (1.0, 1.0));
    let text = server.get("/metrics").text();
    for line in [
        "jackdaw_documents{database=\"x\"} 0",
        "jackdaw_storage_failed{database=\"x\"} 0",
        "jackdaw_http_requests_total{status=\"2xx\"}",
    ] {
        assert!(text.lines().any(|other| other.starts_with(line)), "{line} is not in\n{text}");
    }
    assert_eq!(server.get("/admin/test/delay?value=1").status, 200);
    for query in ["", "?value=", "?value=x", "?value=999999999"] {
        assert_eq!(server.get(&format!("/admin/test/delay{query}")).status, 400, "{query}");
    }
}

#[test]
fn of_many_who_make_one_database_one_succeeds() {
    let server = TestServer::start();
    let address = server.address();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let make = |index: usize| {
            let name = ["one", "ONE", "One"][index % 3];
            let body = json!({"DatabaseName": name}).to_string();
            Client::connect(address).request("PUT", "/admin/databases", &[], body.as_bytes()).status
        };
        let threads: Vec<_> = (0..12).map(|index| scope.spawn(move || make(index))).collect();
        threads.into_iter().map(|thread| thread.join().expect("an answer")).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 201 | 409)), "{statuses:?}");
}

#[test]
fn databases_are_opened_once_on_first_use_however_many_ask() {
    let mut server = TestServer::start();
    for index in 0..8 {
        server.create_database(&format!("d{index}"));
    }
    server.restart();
    assert_eq!(server.metric("jackdaw_databases_loaded_total"), 0.0);
    let address = server.address();
    std::thread::scope(|scope| {
        for index in 0..32 {
            scope.spawn(move || {
                let url = format!("/databases/d{}/healthcheck", index % 8);
                assert_eq!(Client::connect(address).request("GET", &url, &[], b"").status, 204);
            });
        }
    });
    assert_eq!(server.metric("jackdaw_databases_loaded_total"), 8.0);
}

#[test]
fn a_database_that_nobody_uses_is_closed_and_opens_again() {
    let server = TestServer::with(&[("database-idle-after", "50ms")]);
    server.create_database("x");
    while server.metric("jackdaw_databases_loaded") > 0.0 {
        std::thread::yield_now();
    }
    assert_eq!(server.get("/databases/x/healthcheck").status, 204);
    assert!(server.metric("jackdaw_databases_loaded_total") >= 2.0);
}

#[test]
fn a_damaged_database_does_not_stop_others() {
    let mut server = TestServer::start();
    server.create_database("good");
    server.create_database("bad");
    server.stop();
    let data = server.database_dir("bad").join("data");
    let size = std::fs::metadata(&data).expect("the data file").len();
    std::fs::write(&data, vec![0xA5; size as usize]).expect("damaged");
    server.restart();
    for _ in 0..2 {
        let answer = server.get("/databases/bad/healthcheck");
        assert_eq!((answer.status, answer.error_type().as_str()), (500, "DatabaseLoadFailureException"));
        assert!(answer.text().contains("the database 'bad' cannot be opened"), "{}", answer.text());
        assert_eq!(server.get("/databases/good/healthcheck").status, 204);
    }
    assert_eq!(
        server.request("DELETE", "/admin/databases", r#"{"DatabaseNames":["bad"],"HardDelete":true}"#).status,
        200
    );
    server.create_database("bad");
    assert_eq!(server.get("/databases/bad/healthcheck").status, 204);
}
