//! Patches as they are on the wire: single ones, in batches, as lists of operations; and scripts that mean ill.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::{Value, json};
use support::{Answer, TestServer};

const ORDER: &str = r#"{"n":1,"price":1.10,"big":9007199254740993,"whole":10.0,"lines":[{"p":2.50}],"2":"two","@metadata":{"@collection":"Orders","tag":"x"}}"#;

fn started() -> TestServer {
    let server = TestServer::start();
    server.create_database("x");
    put(&server, "orders/1", ORDER);
    server
}

fn put(server: &TestServer, id: &str, document: &str) -> String {
    let answer = server.request("PUT", &format!("/databases/x/docs?id={id}"), document);
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["ChangeVector"].as_str().unwrap().to_owned()
}

fn patch(server: &TestServer, id_and_more: &str, script: &str, values: Value) -> Answer {
    let body = json!({"Patch": {"Script": script, "Values": values}});
    server.request("PATCH", &format!("/databases/x/docs?id={id_and_more}"), &body.to_string())
}

fn load(server: &TestServer, id: &str) -> Value {
    server.get(&format!("/databases/x/docs?id={id}&id=none")).json()["Results"][0].clone()
}

fn batch(server: &TestServer, commands: Value) -> Answer {
    server.request("POST", "/databases/x/bulk_docs", &json!({"Commands": commands}).to_string())
}

fn script(script: &str) -> Value {
    json!({"Script": script, "Values": {}})
}

#[test]
fn a_patch_changes_what_it_says_and_nothing_else() {
    let server = started();
    let answer = patch(&server, "orders/1", "this.n += args.by", json!({"by": 4}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.json();
    assert_eq!((&body["Status"], &body["Collection"]), (&json!("Patched"), &json!("Orders")));
    assert!(answer.text().contains(&ORDER.replacen("\"n\":1", "\"n\":5", 1)), "{}", answer.text());
    let document = load(&server, "orders/1");
    assert_eq!(document["n"], 5);
    assert_eq!(document["@metadata"]["@change-vector"], body["ChangeVector"]);
    assert_eq!(document["@metadata"]["@last-modified"], body["LastModified"]);
    assert_eq!(document["@metadata"]["tag"], "x");
    let text = server.get("/databases/x/docs?id=orders/1").text();
    assert!(
        text.contains(
            r#"{"n":5,"price":1.10,"big":9007199254740993,"whole":10.0,"lines":[{"p":2.50}],"2":"two","#
        ),
        "{text}"
    );

    // The same again with no effect is no write.
    let same = patch(&server, "orders/1", "this.n = 5; this.gone = undefined", json!({}));
    assert_eq!((same.status, same.json()["Status"].clone()), (200, json!("NotModified")));
    assert_eq!(same.json().get("ChangeVector"), None);
    assert_eq!(load(&server, "orders/1")["@metadata"]["@change-vector"], body["ChangeVector"]);
}

#[test]
fn missing_documents() {
    let server = started();
    let missing = patch(&server, "orders/2", "this.n = 1", json!({}));
    assert_eq!((missing.status, missing.text().as_str()), (404, ""));
    let body = json!({
        "Patch": script("this.n = 1"),
        "PatchIfMissing": script("this.made = id(this); getMetadata(this)['@collection'] = 'Orders'"),
    });
    let made = server.request("PATCH", "/databases/x/docs?id=orders/2", &body.to_string());
    assert_eq!((made.status, made.json()["Status"].clone()), (201, json!("Created")));
    assert_eq!(
        (load(&server, "orders/2")["made"].clone(), made.json()["Collection"].clone()),
        (json!("orders/2"), json!("Orders"))
    );
    let patched = server.request("PATCH", "/databases/x/docs?id=orders/2", &body.to_string());
    assert_eq!(patched.json()["Status"], "Patched");
    assert_eq!(load(&server, "orders/2")["n"], 1);
}

#[test]
fn change_vectors_are_checked() {
    let server = started();
    let body = json!({"Patch": script("this.n = 2")}).to_string();
    let with = |url: &str, vector: &str| {
        server.client().request("PATCH", url, &[("If-Match", vector)], body.as_bytes())
    };
    let url = "/databases/x/docs?id=orders/1";
    let conflict = with(url, "\"A:99-other\"");
    assert_eq!((conflict.status, conflict.error_type().as_str()), (409, "ConcurrencyException"));
    assert_eq!(conflict.json()["ExpectedChangeVector"], "A:99-other");
    let skipped = with(&format!("{url}&skipPatchIfChangeVectorMismatch=true"), "\"A:99-other\"");
    assert_eq!((skipped.status, skipped.text().as_str()), (304, ""));
    assert_eq!(load(&server, "orders/1")["n"], 1);
    let vector = load(&server, "orders/1")["@metadata"]["@change-vector"].as_str().unwrap().to_owned();
    assert_eq!(with(url, &format!("\"{vector}\"")).json()["Status"], "Patched");
}

#[test]
fn scripts_read_and_write_other_documents() {
    let server = started();
    put(&server, "companies/1", r#"{"name":"Ada","rate":1.50}"#);
    let answer = patch(
        &server,
        "orders/1",
        "const c = load('companies/1');
         this.company = c.name;
         this.copy = put('copies/', { rate: c.rate, '@metadata': { '@collection': 'Copies' } });
         this.there = [load('nope') === undefined, del('companies/1'), del('companies/1')];
         this.value = cmpxchg('key');",
        json!({}),
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    let order = load(&server, "orders/1");
    assert_eq!(order["company"], "Ada");
    assert_eq!((&order["there"], &order["value"]), (&json!([true, true, false]), &Value::Null));
    let copy = load(&server, order["copy"].as_str().unwrap());
    assert_eq!((&copy["rate"], &copy["@metadata"]["@collection"]), (&json!(1.5), &json!("Copies")));
    assert_eq!(load(&server, "companies/1"), Value::Null);

    // What fails leaves nothing behind.
    let failed = patch(&server, "orders/1", "put('copies/x', {}); this.n = 9; throw 'no'", json!({}));
    assert_eq!((failed.status, failed.error_type().as_str()), (500, "JavaScriptException"));
    assert!(failed.json()["Message"].as_str().unwrap().contains("no"));
    assert_eq!((load(&server, "orders/1")["n"].clone(), load(&server, "copies/x")), (json!(1), Value::Null));
    let conflict = patch(
        &server,
        "orders/1",
        "try { put('orders/1', {}, 'A:99-x') } catch (e) {} this.n = 9",
        json!({}),
    );
    assert_eq!((conflict.status, conflict.error_type().as_str()), (409, "ConcurrencyException"));
    let moved = patch(&server, "orders/1", "this['@metadata']['@collection'] = 'Others'", json!({}));
    assert_eq!(moved.error_type(), "DocumentCollectionMismatchException");
    let both = patch(&server, "orders/1", "del('orders/1'); this.n = 3", json!({}));
    assert_eq!(both.status, 409);
    assert_eq!(load(&server, "orders/1")["n"], 1);
    assert_eq!(patch(&server, "orders/1", "del('orders/1')", json!({})).json()["Status"], "NotModified");
    assert_eq!(load(&server, "orders/1"), Value::Null);
}

#[test]
fn tests_store_nothing_and_tell_all() {
    let server = started();
    let script =
        "output(this.n); output({a: 1}); this.n = 2; load('nope'); put('y', {b: 2}); del('orders/1x')";
    let answer = patch(&server, "orders/1&test=true", script, json!({}));
    let body = answer.json();
    assert_eq!(body["Status"], "Patched", "{}", answer.text());
    assert_eq!((&body["ModifiedDocument"]["n"], &body["OriginalDocument"]["n"]), (&json!(2), &json!(1)));
    assert_eq!(body["Debug"]["Info"], json!(["1", "{\"a\":1}"]));
    let actions = &body["Debug"]["Actions"];
    assert_eq!(actions["LoadDocument"], json!([{"Id": "nope", "Exists": false}]));
    assert_eq!(
        (&actions["PutDocument"][0]["Id"], &actions["PutDocument"][0]["Data"]["b"]),
        (&json!("y"), &json!(2))
    );
    assert_eq!(actions["DeleteDocument"], json!(["orders/1x"]));
    assert_eq!((load(&server, "orders/1")["n"].clone(), load(&server, "y")), (json!(1), Value::Null));
    assert_eq!(server.get("/databases/x/stats").json()["CountOfDocuments"], 1);

    let debug = patch(&server, "orders/1&debug=true", "output('x'); this.n = 2", json!({})).json();
    assert_eq!((&debug["Debug"]["Info"], &debug["OriginalDocument"]), (&json!(["x"]), &Value::Null));
    assert_eq!(load(&server, "orders/1")["n"], 2);
}

#[test]
fn a_batch_is_run_in_its_order() {
    let server = started();
    let answer = batch(
        &server,
        json!([
            {"Type": "PUT", "Id": "orders/2", "Document": {"n": 1, "@metadata": {"@collection": "Orders"}}},
            {"Type": "PATCH", "Id": "orders/2", "Patch": script("this.n += 10")},
            {"Type": "PATCH", "Id": "orders/2", "Patch": script("this.n += 100"), "ReturnDocument": true},
            {"Type": "PATCH", "Id": "orders/2", "Patch": script("this.n = 111")},
            {"Type": "PATCH", "Id": "orders/3", "Patch": script("this.n = 1")},
            {"Type": "PATCH", "Id": "orders/3", "Patch": script("this.n = 1"), "PatchIfMissing": script("this.m = load('orders/2').n"), "ReturnDocument": true},
            {"Type": "PATCH", "Id": "orders/4", "Patch": script("this.n = 1"), "CreateIfMissing": {"c": 1.10}, "ReturnDocument": true},
            {"Type": "BatchPATCH", "Ids": [{"Id": "orders/1"}, {"Id": "orders/2"}, {"Id": "nope"}], "Patch": script("this.all = true")},
            {"Type": "DELETE", "Id": "orders/2"},
            {"Type": "PATCH", "Id": "orders/2", "Patch": script("this.n = 1")},
        ]),
    );
    assert_eq!(answer.status, 201, "{}", answer.text());
    let results = answer.json()["Results"].clone();
    let status: Vec<_> =
        (0..10).map(|i| results[i]["PatchStatus"].as_str().unwrap_or("-").to_owned()).collect();
    let expected = [
        "-",
        "Patched",
        "Patched",
        "NotModified",
        "DocumentDoesNotExist",
        "Created",
        "Created",
        "-",
        "-",
        "DocumentDoesNotExist",
    ];
    assert_eq!(status, expected);
    assert_eq!(results[2]["ModifiedDocument"]["n"], 111);
    assert_eq!(results[1].get("ModifiedDocument"), None);
    assert_eq!(
        (&results[3]["ChangeVector"], &results[3]["LastModified"]),
        (&Value::Null, &json!("0001-01-01T00:00:00.0000000"))
    );
    assert_eq!(results[5]["ModifiedDocument"]["m"], 111);
    assert!(answer.text().contains(r#"{"c":1.1,"#));
    assert_eq!(results[7], json!({"Type": "BatchPATCH"}));
    assert_eq!(load(&server, "orders/1")["all"], true);
    assert_eq!(load(&server, "orders/2"), Value::Null);

    // All or nothing.
    for bad in [
        json!({"Type": "PATCH", "Id": "orders/1", "Patch": script("throw 5")}),
        json!({"Type": "PATCH", "Id": "orders/1", "Patch": script("this.a = ;")}),
        json!({"Type": "PATCH", "Id": "orders/1", "Patch": script("this.n = 5"), "ChangeVector": "A:99-x"}),
        json!({"Type": "PATCH", "Id": "orders/1", "Patch": script("this.n = 5"), "ChangeVector": ""}),
        json!({"Type": "PATCH", "Id": "", "Patch": script("this.n = 5")}),
        json!({"Type": "PATCH", "Id": "orders/", "Patch": script("this.n = 5")}),
        json!({"Type": "PATCH", "Id": "orders/1"}),
        json!({"Type": "PATCH", "Id": "orders/1", "Patch": {"Script": "this.n = 5", "Values": 7}}),
        json!({"Type": "BatchPATCH", "Ids": [{"Id": "orders/3", "ChangeVector": "A:99-x"}], "Patch": script("this.n = 5")}),
        json!({"Type": "JsonPatch", "Id": "orders/1", "JsonPatch": {"Operations": [{"op": "remove", "path": "/nope"}]}}),
    ] {
        let answer = batch(&server, json!([{"Type": "PUT", "Id": "kept/1", "Document": {}}, bad]));
        assert!(answer.status >= 400, "{bad}: {}", answer.text());
        assert_eq!(load(&server, "kept/1"), Value::Null, "{bad}");
    }
    let cluster = json!({"TransactionMode": "ClusterWide", "Commands": [{"Type": "PATCH", "Id": "orders/1", "Patch": script("this.n = 5")}]});
    let refused = server.request("POST", "/databases/x/bulk_docs", &cluster.to_string());
    assert_eq!(refused.error_type(), "NotSupportedException");
}

#[test]
fn json_patches() {
    let server = started();
    let run = |operations: Value| {
        put(&server, "orders/1", ORDER);
        let command = json!([{"Type": "JsonPatch", "Id": "orders/1", "JsonPatch": {"Operations": operations}, "ReturnDocument": true}]);
        batch(&server, command)
    };
    let check = |operations: Value, from: &str, to: &str| {
        let answer = run(operations);
        assert_eq!(answer.status, 201, "{}", answer.text());
        assert_eq!(
            answer.json()["Results"][0]["PatchStatus"],
            if from == to { "NotModified" } else { "Patched" }
        );
        assert!(answer.text().contains(&ORDER.replacen(from, to, 1)), "{}", answer.text());
    };
    check(json!([]), "", "");
    check(json!([{"op": "replace", "path": "/n", "value": "x"}]), "\"n\":1", "\"n\":\"x\"");
    check(json!([{"op": "add", "path": "/lines/-", "value": 9}]), "}],", "},9],");
    check(json!([{"op": "add", "path": "/lines/0", "value": 9}]), "[{\"p\"", "[9,{\"p\"");
    check(json!([{"op": "remove", "path": "/lines/0"}]), "[{\"p\":2.50}]", "[]");
    check(json!([{"op": "add", "path": "/lines/0/a~1b~0", "value": 1}]), "2.50}", "2.50,\"a/b~\":1}");
    check(json!([{"op": "copy", "from": "/price", "path": "/lines/0/q"}]), "2.50}", "2.50,\"q\":1.10}");
    check(
        json!([{"op": "test", "path": "/n", "value": 1}, {"op": "remove", "path": "/2"}]),
        ",\"2\":\"two\"",
        "",
    );
    let moved = run(json!([{"op": "move", "from": "/price", "path": "/cost"}])).json()["Results"][0]["ModifiedDocument"].clone();
    assert_eq!((moved["cost"].as_f64(), moved.get("price")), (Some(1.1), None));
    for operation in [
        json!({"op": "replace", "path": "/nope", "value": 1}),
        json!({"op": "remove", "path": "/nope"}),
        json!({"op": "remove", "path": ""}),
        json!({"op": "add", "path": "/lines/7", "value": 1}),
        json!({"op": "add", "path": "/lines/01", "value": 1}),
        json!({"op": "add", "path": "/no/where", "value": 1}),
        json!({"op": "add", "path": "/n/deep", "value": 1}),
        json!({"op": "move", "from": "/lines", "path": "/lines/0"}),
        json!({"op": "test", "path": "/n", "value": 2}),
        json!({"op": "bogus", "path": "/n"}),
        json!({"op": "add", "path": "n", "value": 1}),
        json!({"op": "add", "path": "/n"}),
        json!(5),
    ] {
        let answer = run(json!([{"op": "add", "path": "/n", "value": 7}, operation]));
        assert!(answer.status >= 400, "{operation}: {}", answer.text());
        assert_eq!(load(&server, "orders/1")["n"], 1);
    }
    let body = json!({"Operations": [{"op": "add", "path": "/n", "value": 7}]}).to_string();
    let answer = server.request("PATCH", "/databases/x/json-patch?id=orders/1", &body);
    assert_eq!((answer.status, answer.json()["ModifiedDocument"]["n"].clone()), (200, json!(7)));
    assert_eq!(
        server.request("PATCH", "/databases/x/json-patch?id=none", &body).error_type(),
        "InvalidOperationException"
    );
}

#[test]
fn hostile_scripts_hurt_only_themselves() {
    let server = started();
    for (hostile, error) in [
        ("while (true) {}", "JavaScriptException"),
        ("for (;;) { try { for (;;); } finally { continue } }", "JavaScriptException"),
        ("const a = []; while (true) a.push(new Array(1000).fill(1))", "JavaScriptException"),
        ("(function f() { f() })()", "JavaScriptException"),
        ("/^(a+)+$/.test('a'.repeat(50) + 'b')", "JavaScriptException"),
        ("this.q = { get a() { while (true); } }", "JavaScriptException"),
        ("eval('1')", "JavaScriptException"),
        ("this.q = Symbol()", "JavaScriptException"),
        ("}); (function () {", "JavaScriptParseException"),
        ("this.a = \u{0}", "JavaScriptParseException"),
        ("incrementCounter(this, 'x')", "NotSupportedException"),
    ] {
        let answer = patch(&server, "orders/1", &format!("this.n = 9; {hostile}"), json!({}));
        assert_eq!(
            (answer.status >= 500, answer.error_type().as_str()),
            (true, error),
            "{hostile}: {}",
            answer.text()
        );
        let good =
            patch(&server, "orders/1", "this.n = this.n + 0; Object.prototype.x === undefined", json!({}));
        assert_eq!((good.status, good.json()["Status"].clone()), (200, json!("NotModified")), "{hostile}");
    }
    let polluted = patch(&server, "orders/1", "Object.prototype.polluted = 1", json!({}));
    assert_eq!(polluted.status, 500);
    let clean =
        patch(&server, "orders/1", "this.clean = [this.polluted === undefined, typeof leak]", json!({}));
    assert_eq!(clean.json()["ModifiedDocument"]["clean"], json!([true, "undefined"]));
}

#[test]
fn requests_that_make_no_sense() {
    let server = started();
    for (url, body) in [
        ("/databases/x/docs", json!({"Patch": script("")})),
        ("/databases/x/docs?id=", json!({"Patch": script("")})),
        ("/databases/x/docs?id=orders/1", json!({})),
        ("/databases/x/docs?id=orders/1", json!([])),
        ("/databases/x/docs?id=orders/1", json!({"Patch": {"Values": {}}})),
        ("/databases/x/docs?id=orders/1", json!({"Patch": {"Script": 5}})),
        ("/databases/x/docs?id=orders/1", json!({"Patch": "this.n = 2"})),
        ("/databases/x/json-patch?id=orders/1", json!({})),
        ("/databases/x/json-patch?id=orders/1", json!({"Operations": 5})),
    ] {
        let answer = server.request("PATCH", url, &body.to_string());
        assert_eq!(answer.status, 400, "{url} {body}: {}", answer.text());
    }
    assert_eq!(load(&server, "orders/1")["n"], 1);
}
