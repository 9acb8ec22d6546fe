//! Indexes follow documents: put, change, delete, references, errors, restarts.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use jackdaw_indexing::definition::{LockMode, State};
use jackdaw_indexing::{Cutoff, Error, IndexDefinition, Status};
use serde_json::json;
use support::{LONG, Shop};

const NAMES: &str = "from u in docs.Users select new { u.Name, u.Age }";

fn user(name: &str, age: i64) -> String {
    format!(r#"{{"Name":"{name}","Age":{age},"@metadata":{{"@collection":"Users"}}}}"#)
}

#[test]
fn an_index_follows_documents() {
    let shop = Shop::new();
    shop.put("users/1", &user("Ada", 36));
    shop.put("orders/1", r#"{"Name":"Ada","@metadata":{"@collection":"Orders"}}"#);
    shop.map("Users/ByName", NAMES);
    assert_eq!(shop.find("users/byname", "Name", "ada"), ["users/1"]);
    shop.put("Users/2", &user("ADA", 5));
    assert_eq!(shop.find("Users/ByName", "Name", "Ada"), ["users/1", "users/2"]);
    assert_eq!(shop.find("Users/ByName", "Age", 5), ["users/2"]);
    shop.put("users/1", &user("Grace", 36));
    assert_eq!(shop.find("Users/ByName", "Name", "ada"), ["users/2"]);
    shop.delete("users/2");
    assert_eq!(shop.all("Users/ByName"), ["users/1"]);
    assert_eq!(shop.terms("Users/ByName", "Name"), ["grace"]);
    assert_eq!(shop.terms("Users/ByName", "id()"), ["users/1"]);
    let shop = shop.reopen();
    assert_eq!(shop.terms("Users/ByName", "Name"), ["grace"]);
    shop.put("users/3", &user("Alan", 41));
    assert_eq!(shop.all("Users/ByName"), ["users/1", "users/3"]);
}

#[test]
fn what_happens_between_two_lives_is_indexed() {
    let shop = Shop::new();
    shop.map("Users/ByName", NAMES);
    for id in 0..50 {
        shop.put(&format!("users/{id}"), &user("a", id));
    }
    shop.caught_up("Users/ByName");
    shop.indexes.stop_all(None);
    shop.put("users/0", &user("changed", 0));
    shop.delete("users/1");
    shop.put("users/50", &user("new", 0));
    let index = shop.indexes.get("Users/ByName").unwrap();
    assert!(index.is_stale().unwrap());
    assert_eq!(index.status(), Status::Paused);
    let shop = shop.reopen();
    assert_eq!(shop.find("Users/ByName", "Name", "changed"), ["users/0"]);
    assert_eq!(shop.all("Users/ByName").len(), 50);
}

#[test]
fn staleness_is_exact_to_the_etag() {
    let shop = Shop::new();
    shop.put("users/1", &user("a", 1));
    let index = shop.map("Users/ByName", NAMES);
    let view = shop.caught_up("Users/ByName");
    shop.indexes.stop_all(None);
    let other = shop.put("orders/1", r#"{"@metadata":{"@collection":"Orders"}}"#);
    let snapshot = shop.database.read().unwrap();
    assert!(!view.is_stale(&snapshot, Cutoff::Now).unwrap(), "another collection");
    let second = shop.put("users/2", &user("b", 2));
    let third = shop.put("users/3", &user("c", 3));
    shop.put("users/2", &user("b", 3));
    let snapshot = shop.database.read().unwrap();
    assert!(view.is_stale(&snapshot, Cutoff::Now).unwrap());
    assert!(!view.is_stale(&snapshot, Cutoff::Etag(other)).unwrap());
    assert!(
        !view.is_stale(&snapshot, Cutoff::Etag(second)).unwrap(),
        "what was written then is written over"
    );
    assert!(view.is_stale(&snapshot, Cutoff::Etag(third)).unwrap());
    assert!(
        index.wait_for_blocking(Cutoff::Now, LONG).unwrap().is_some(),
        "nobody waits for an index that is paused"
    );
    shop.indexes.start_all(None);
    assert!(!shop.caught_up("Users/ByName").is_stale(&snapshot, Cutoff::Now).unwrap());
    shop.indexes.stop_all(None);
    let gone = shop.delete("users/1");
    assert_eq!(index.staleness().unwrap().len(), 1);
    let snapshot = shop.database.read().unwrap();
    let view = index.view().unwrap();
    assert!(!view.is_stale(&snapshot, Cutoff::Etag(gone - 1)).unwrap());
    assert!(view.is_stale(&snapshot, Cutoff::Etag(gone)).unwrap());
}

#[test]
fn a_changed_document_reaches_those_that_load_it() {
    let shop = Shop::new();
    let order =
        |company: &str| format!(r#"{{"Company":"{company}","@metadata":{{"@collection":"Orders"}}}}"#);
    let company = |name: &str| format!(r#"{{"Name":"{name}","@metadata":{{"@collection":"Companies"}}}}"#);
    shop.put("companies/1", &company("Ink"));
    shop.put("orders/1", &order("companies/1"));
    shop.put("orders/2", &order("Companies/2"));
    shop.map(
        "Orders/ByCompany",
        "from o in docs.Orders select new { Company = LoadDocument(o.Company, \"Companies\").Name }",
    );
    let find = |name: &str| shop.find("Orders/ByCompany", "Company", name);
    assert_eq!(find("ink"), ["orders/1"]);
    shop.put("companies/1", &company("Paper"));
    assert_eq!((find("ink").len(), find("paper")), (0, vec!["orders/1".to_owned()]));
    // One that comes to be later counts, in whatever spelling.
    shop.put("companies/2", &company("Paper"));
    assert_eq!(find("paper"), ["orders/1", "orders/2"]);
    shop.delete("companies/1");
    assert_eq!(find("paper"), ["orders/2"]);
    shop.put("orders/1", &order("companies/2"));
    shop.put("companies/2", &company("Pens"));
    assert_eq!(find("pens"), ["orders/1", "orders/2"]);
    shop.delete("orders/2");
    shop.put("companies/2", &company("Ink"));
    assert_eq!(find("ink"), ["orders/1"]);
}

#[test]
fn references_hold_over_a_restart_and_to_oneself() {
    let shop = Shop::new();
    let user = |name: &str, friend: &str| {
        format!(r#"{{"Name":"{name}","Friend":"{friend}","@metadata":{{"@collection":"Users"}}}}"#)
    };
    for id in 0..20 {
        shop.put(&format!("users/{id}"), &user(&format!("n{id}"), "users/0"));
    }
    shop.map("Friends", "from u in docs.Users select new { F = LoadDocument(u.Friend, \"Users\").Name }");
    assert_eq!(shop.find("Friends", "F", "n0").len(), 20);
    let shop = shop.reopen();
    shop.put("users/0", &user("other", "users/0"));
    assert_eq!(shop.find("Friends", "F", "other").len(), 20);
    assert_eq!(shop.find("Friends", "F", "n0").len(), 0);
}

#[test]
fn a_document_that_fails_is_passed_over_and_told() {
    let shop = Shop::new();
    let document = |a: i64| format!(r#"{{"A":{a},"@metadata":{{"@collection":"Things"}}}}"#);
    for id in 0..20 {
        shop.put(&format!("things/{id}"), &document(if id == 7 { 0 } else { 1 }));
    }
    let index = shop.map("Things", "from t in docs.Things select new { X = 3 / t.A }");
    assert_eq!(shop.all("Things").len(), 19);
    let errors = index.errors().unwrap();
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].document.as_deref(), errors[0].action.as_str()), (Some("things/7"), "Map"));
    assert!(errors[0].error.contains("divide by zero"), "{}", errors[0].error);
    // One that was good and is not any more goes.
    shop.put("things/8", &document(0));
    assert_eq!(shop.all("Things").len(), 18);
    assert_eq!(index.error_count(), 2);
    let shop = shop.reopen();
    let index = shop.indexes.get("Things").unwrap();
    assert_eq!((index.error_count(), index.errors().unwrap().len()), (2, 2), "durable");
    shop.indexes.clear_errors(&["things".to_owned()]).unwrap();
    assert_eq!((index.error_count(), index.errors().unwrap().len()), (0, 0));
    assert!(matches!(shop.indexes.clear_errors(&["nope".to_owned()]), Err(Error::NotFound(_))));
}

#[test]
fn an_index_that_fails_too_often_is_taken_out_of_service() {
    let shop = Shop::new();
    for id in 0..3 {
        shop.put(&format!("things/{id}"), r#"{"A":0,"@metadata":{"@collection":"Things"}}"#);
    }
    let index = shop.map("Things", "from t in docs.Things select new { X = 3 / t.A }");
    shop.caught_up("Things");
    assert_eq!((index.state(), index.status(), index.is_invalid()), (State::Error, Status::Paused, true));
    let refusal = index.check_queryable().unwrap_err().to_string();
    assert!(
        refusal.contains("marked as errored") && refusal.contains("out of 3 map attempts, 3 has failed"),
        "{refusal}"
    );
    let shop = shop.reopen();
    assert!(shop.indexes.get("Things").unwrap().check_queryable().is_err(), "over restarts");
    shop.map("Things", "from t in docs.Things select new { X = t.A }");
    wait_until(&shop, |shop| shop.indexes.get("ReplacementOf/Things").is_none());
    assert_eq!(shop.find("Things", "X", 0).len(), 3, "a better definition takes its place");
}

/// Waits for something that an index does by itself after it was told.
fn wait_until(shop: &Shop, done: impl Fn(&Shop) -> bool) {
    let deadline = std::time::Instant::now() + LONG;
    while !done(shop) {
        assert!(std::time::Instant::now() < deadline, "in time");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[test]
fn a_changed_definition_is_built_beside_and_takes_the_place() {
    let shop = Shop::new();
    for id in 0..10 {
        shop.put(&format!("users/{id}"), &user("Ada", id));
    }
    let first = shop.map("Users/ByName", NAMES);
    shop.caught_up("Users/ByName");
    let raft_index = first.raft_index();
    // The same again is nothing; a setting applies in place.
    shop.map("users/byname", NAMES);
    assert_eq!(shop.indexes.list().len(), 1);
    assert_eq!(shop.indexes.get("Users/ByName").unwrap().raft_index(), raft_index);
    let changed = "from u in docs.Users select new { u.Name, Years = u.Age }";
    shop.indexes.stop_all(None);
    shop.map("Users/ByName", changed);
    let names: Vec<String> = shop.indexes.list().iter().map(|index| index.name()).collect();
    assert_eq!(names, ["ReplacementOf/Users/ByName", "Users/ByName"]);
    assert!(!shop.indexes.get("Users/ByName").unwrap().has_field("Years"), "the old one answers meanwhile");
    let shop = shop.reopen();
    wait_until(&shop, |shop| shop.indexes.list().len() == 1);
    assert_eq!(shop.find("Users/ByName", "Years", 4), ["users/4"]);
    assert!(shop.indexes.get("ReplacementOf/Users/ByName").is_none());
    // The old files go after the new index is there.
    wait_until(&shop, |shop| std::fs::read_dir(shop.database.path().join("indexes")).unwrap().count() == 1);
    let shop = shop.reopen();
    assert_eq!(shop.find("Users/ByName", "Years", 4), ["users/4"]);
}

#[test]
fn locked_indexes_are_not_changed() {
    let shop = Shop::new();
    let define = |map: &str, lock: Option<&str>| {
        let definition = json!({ "Name": "Users", "Maps": [map], "LockMode": lock });
        shop.indexes.put(vec![IndexDefinition::from_json(&definition).unwrap()])
    };
    define(NAMES, None).unwrap();
    shop.indexes.set_lock(&["users".to_owned()], LockMode::LockedIgnore).unwrap();
    define("from u in docs.Users select new { u.Name }", None).unwrap();
    assert_eq!(shop.indexes.count(), 1);
    shop.indexes.set_lock(&["users".to_owned()], LockMode::LockedError).unwrap();
    let error = define("from u in docs.Users select new { u.Name }", None).unwrap_err();
    assert!(error.to_string().contains("LockedError"), "{error}");
    let shop = shop.reopen();
    assert_eq!(shop.indexes.get("users").unwrap().lock_mode(), LockMode::LockedError);
    let missing = shop.indexes.set_lock(&["users".to_owned(), "nope".to_owned()], LockMode::Unlock);
    assert!(matches!(missing, Err(Error::NotFound(_))));
    assert_eq!(shop.indexes.get("users").unwrap().lock_mode(), LockMode::LockedError, "all or none");
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let shop = Shop::new();
    let good = json!({ "Name": "Good", "Maps": [NAMES] });
    for (bad, expected) in [
        (json!({ "Name": "", "Maps": [NAMES] }), "Index name cannot be empty!"),
        (json!({ "Name": "a?b", "Maps": [NAMES] }), "Only letters, digits"),
        (json!({ "Name": "Auto/X", "Maps": [NAMES] }), "cannot start with 'Auto/'"),
        (json!({ "Name": "ReplacementOf/X", "Maps": [NAMES] }), "must not start with"),
        (json!({ "Name": "X", "Maps": [] }), "must have a 'Maps' fields"),
        (json!({ "Name": "X", "Maps": ["from u in docs.Users selec u"] }), "Failed to compile index X"),
        (json!({ "Name": "X", "Maps": [NAMES], "Fields": { "Name": { "Analyzer": "Foo" } } }), "Foo"),
        (
            json!({ "Name": "X", "Maps": [NAMES], "Configuration": { "Indexing.MapBatchSize": "x" } }),
            "MapBatchSize",
        ),
        (
            json!({ "Name": "X", "Maps": [NAMES, "from o in docs.Orders select new { o.Name }"] }),
            "identical types",
        ),
    ] {
        let definitions =
            vec![IndexDefinition::from_json(&good).unwrap(), IndexDefinition::from_json(&bad).unwrap()];
        let error = shop.indexes.put(definitions).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(shop.indexes.count(), 0, "none of them");
    }
    assert!(IndexDefinition::from_json(&json!({ "Name": 7 })).is_err());
}

#[test]
fn disabled_indexes_stay_so_and_reset_ones_begin_anew() {
    let shop = Shop::new();
    shop.put("users/1", &user("Ada", 1));
    shop.map("Users", NAMES);
    assert_eq!(shop.all("Users").len(), 1);
    shop.indexes.disable("USERS").unwrap();
    shop.put("users/2", &user("Ada", 2));
    let shop = shop.reopen();
    let index = shop.indexes.get("Users").unwrap();
    assert_eq!((index.state(), index.status()), (State::Disabled, Status::Disabled));
    assert_eq!(shop.all("Users").len(), 1, "what was there is");
    shop.indexes.enable("Users").unwrap();
    assert_eq!(shop.all("Users").len(), 2);
    let before = shop.indexes.get("Users").unwrap().id();
    shop.indexes.reset("Users").unwrap();
    assert_ne!(shop.indexes.get("Users").unwrap().id(), before);
    assert_eq!(shop.all("Users").len(), 2);
    assert!(shop.indexes.delete("users").unwrap());
    assert!(!shop.indexes.delete("users").unwrap());
    assert!(matches!(shop.indexes.reset("users"), Err(Error::NotFound(_))));
    let shop = shop.reopen();
    assert_eq!(shop.indexes.count(), 0);
}

#[test]
fn tombstones_are_kept_for_those_that_need_them() {
    let shop = Shop::new();
    shop.put("users/1", &user("a", 1));
    shop.put("users/2", &user("a", 1));
    shop.map("Users", NAMES);
    assert_eq!(shop.all("Users").len(), 2);
    shop.indexes.stop_all(None);
    let first = shop.delete("users/1");
    assert!(shop.indexes.tombstones_done().unwrap() < first);
    shop.indexes.start_all(None);
    shop.caught_up("Users");
    let last = shop.put("orders/1", r#"{"@metadata":{"@collection":"Orders"}}"#);
    assert!(shop.indexes.tombstones_done().unwrap() >= last, "none is needed");
}

#[test]
fn several_maps_and_all_documents() {
    let shop = Shop::new();
    shop.put("users/1", &user("Ada", 1));
    shop.put("orders/1", r#"{"Name":"x","@metadata":{"@collection":"Orders"}}"#);
    shop.put("other/1", r#"{"Name":"y"}"#);
    let maps =
        json!(["from u in docs.Users select new { u.Name }", "from o in docs.Orders select new { o.Name }"]);
    shop.define(json!({ "Name": "Two", "Maps": maps }));
    assert_eq!(shop.terms("Two", "Name"), ["ada", "x"]);
    shop.map("All", "from d in docs select new { d.Name }");
    assert_eq!(shop.terms("All", "Name"), ["ada", "x", "y"]);
    shop.delete("other/1");
    assert_eq!(shop.terms("All", "Name"), ["ada", "x"]);
    shop.map("Fan", "from u in docs.Users from n in new[] { u.Name, \"b\" } select new { N = n }");
    assert_eq!(shop.all("Fan"), ["users/1", "users/1"]);
    shop.put("users/1", &user("Bob", 1));
    assert_eq!(shop.terms("Fan", "N"), ["b", "bob"]);
    assert_eq!(shop.all("Fan"), ["users/1", "users/1"]);
}

/// A document that is deleted and stored again in another collection leaves the indexes of the old one, at whatever moment they look.
#[test]
fn a_document_that_moves_to_another_collection_leaves_the_old_index() {
    let shop = Shop::new();
    let order = r#"{"Name":"order","@metadata":{"@collection":"Orders"}}"#;
    shop.map("Users", NAMES);
    shop.map("Orders", "from o in docs.Orders select new { o.Name }");
    let maps =
        json!(["from o in docs.Orders select new { o.Name }", "from u in docs.Users select new { u.Name }"]);
    shop.define(json!({ "Name": "Both", "Maps": maps }));
    shop.put("things/1", &user("Ada", 1));
    assert_eq!(
        (shop.all("Users"), shop.all("Both")),
        (vec!["things/1".to_owned()], vec!["things/1".to_owned()])
    );
    shop.indexes.stop_all(None);
    shop.delete("things/1");
    shop.put("things/1", order);
    shop.indexes.start_all(None);
    assert_eq!((shop.all("Users").len(), shop.all("Orders").len()), (0, 1));
    assert_eq!(shop.find("Both", "Name", "order"), ["things/1"]);
    shop.delete("things/1");
    shop.put("things/1", &user("Ada", 1));
    assert_eq!((shop.all("Users").len(), shop.all("Orders").len()), (1, 0));
    assert_eq!(shop.terms("Both", "Name"), ["ada"]);
    let last = shop.put("x/1", r#"{"@metadata":{"@collection":"X"}}"#);
    assert!(shop.indexes.tombstones_done().unwrap() >= last);
}
