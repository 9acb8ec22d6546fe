//! Storing, finding, deleting documents; what survives.
#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use jackdaw_database::{
    Database, DatabaseOptions, Error, Expected, Fields, IncomingDocument, PutOptions, Snapshot,
    print_document,
};
use jackdaw_document::Context;
use jackdaw_storage::Order;

fn open(directory: &tempfile::TempDir) -> Database {
    Database::open(directory.path(), "test", DatabaseOptions::default()).unwrap()
}

fn incoming(database: &Database, json: &str) -> IncomingDocument {
    IncomingDocument::parse(json.as_bytes(), &Context::new(), database).unwrap()
}

fn put(database: &Database, id: &str, json: &str) -> jackdaw_database::PutResult {
    try_put(database, id, json, Expected::Any).unwrap()
}

fn try_put(
    database: &Database,
    id: &str,
    json: &str,
    expected: Expected,
) -> Result<jackdaw_database::PutResult, Error> {
    let document = incoming(database, json);
    let id = id.to_owned();
    let options = PutOptions { expected, ..Default::default() };
    database.submit(move |transaction| transaction.put(&id, &document, options)).wait()
}

fn delete(database: &Database, id: &str, expected: Expected) -> Result<bool, Error> {
    let id = id.to_owned();
    database.submit(move |transaction| Ok(transaction.delete(&id, &expected)?.is_some())).wait()
}

fn json(snapshot: &Snapshot, id: &str) -> Option<serde_json::Value> {
    let document = snapshot.document(id).unwrap()?;
    let mut out = Vec::new();
    print_document(&document, Fields::All, &mut out);
    Some(serde_json::from_slice(&out).unwrap())
}

#[test]
fn what_is_stored_is_found_and_printed_with_its_metadata() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory);
    let stored = put(
        &database,
        "Users/1-A",
        r#"{"@metadata":{"@collection":"Users","@id":"old","@flags":"x","Raven-Python-Type":"U","@change-vector":"A:1"},"name":"Ada \"L\" \u0001","n":1.10}"#,
    );
    assert_eq!((stored.etag, &*stored.collection), (1, "Users"));
    assert_eq!(stored.change_vector, format!("A:1-{}", database.id().as_str()));
    let snapshot = database.read().unwrap();
    let document = snapshot.document("uSERS/1-a").unwrap().unwrap();
    let mut out = Vec::new();
    print_document(&document, Fields::All, &mut out);
    let text = String::from_utf8(out).unwrap();
    let date = jackdaw_database::clock::date_text(document.last_modified);
    let vector = &stored.change_vector;
    assert_eq!(
        text,
        format!(
            r#"{{"name":"Ada \"L\" \u0001","n":1.10,"@metadata":{{"@collection":"Users","Raven-Python-Type":"U","@change-vector":"{vector}","@id":"Users/1-A","@last-modified":"{date}"}}}}"#
        )
    );
    let mut out = Vec::new();
    print_document(&document, Fields::Metadata, &mut out);
    assert!(out.starts_with(br#"{"@metadata":{"@collection":"Users""#));
    assert!(snapshot.document("users/2").unwrap().is_none());
    assert!(snapshot.document("").unwrap().is_none());
    assert!(snapshot.document(&"x".repeat(5000)).unwrap().is_none());
}

#[test]
fn a_document_has_the_id_of_its_last_write_and_a_collection_its_first_name() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory);
    put(&database, "Users/1", r#"{"@metadata":{"@collection":"Users"}}"#);
    assert_eq!(put(&database, "users/1", r#"{"@metadata":{"@collection":"users"},"a":1}"#).id, "users/1");
    let moved = try_put(&database, "users/1", r#"{"@metadata":{"@collection":"Others"}}"#, Expected::Any);
    assert!(matches!(moved, Err(Error::CollectionMismatch { .. })), "{moved:?}");
    assert_eq!(put(&database, "x", "{}").collection.as_ref(), "@empty");
    let snapshot = database.read().unwrap();
    assert_eq!(json(&snapshot, "users/1").unwrap()["@metadata"]["@collection"], "Users");
    let collections: Vec<_> =
        snapshot.collections().unwrap().into_iter().map(|each| (each.name, each.documents)).collect();
    assert_eq!(collections, [("@empty".to_owned(), 1), ("Users".to_owned(), 1)]);
}

#[test]
fn writes_expect_what_they_are_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory);
    let first = try_put(&database, "a", "{}", Expected::New).unwrap();
    let Err(Error::Concurrency { message, id, expected, actual }) =
        try_put(&database, "a", "{}", Expected::New)
    else {
        panic!("it exists")
    };
    assert!(message.contains("was called with expecting new document"), "{message}");
    assert_eq!((id.as_str(), expected.as_str(), actual), ("a", "", Some(first.change_vector.clone())));
    let same = Expected::from_text(Some(&first.change_vector));
    let second = try_put(&database, "a", r#"{"b":1}"#, same.clone()).unwrap();
    assert_eq!(second.etag, 2);
    assert!(matches!(try_put(&database, "a", "{}", same.clone()), Err(Error::Concurrency { .. })));
    assert!(matches!(
        try_put(&database, "none", "{}", same.clone()),
        Err(Error::Concurrency { actual: None, .. })
    ));
    assert!(matches!(delete(&database, "a", same), Err(Error::Concurrency { .. })));
    assert!(delete(&database, "a", Expected::ChangeVector(second.change_vector)).unwrap());
    assert!(!delete(&database, "a", Expected::Any).unwrap());
    let statistics = database.statistics().unwrap();
    assert_eq!((statistics.documents, statistics.tombstones, statistics.last_etag), (0, 1, 3));
    put(&database, "a", "{}");
    assert_eq!(database.statistics().unwrap().tombstones, 0);
}

#[test]
fn a_failing_job_changes_nothing_and_disturbs_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory);
    let document = incoming(&database, r#"{"@metadata":{"@collection":"New"}}"#);
    let mut pending = Vec::new();
    for i in 0..300 {
        let document = document.clone();
        pending.push(database.submit(move |transaction| {
            transaction.put(&format!("new/{i}"), &document, Default::default())?;
            match i % 3 {
                0 => Ok(i),
                1 => Err(Error::InvalidOperation("no".to_owned())),
                _ => panic!("a bug"),
            }
        }));
    }
    for (i, answer) in pending.into_iter().enumerate() {
        match (i % 3, answer.wait()) {
            (0, Ok(answer)) => assert_eq!(answer, i),
            (1, Err(Error::InvalidOperation(_))) | (2, Err(Error::Panicked(_))) => {}
            (_, other) => panic!("{i}: {other:?}"),
        }
    }
    let snapshot = database.read().unwrap();
    assert_eq!(snapshot.document_count().unwrap(), 100);
    assert_eq!(snapshot.collection("new").unwrap().unwrap().documents, 100);
    assert!(snapshot.document("new/1").unwrap().is_none());
}

#[test]
fn ids_that_the_database_completes() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory);
    assert_eq!(put(&database, "users/", "{}").id, "users/0000000000000000001-A");
    assert_eq!(put(&database, "users|", "{}").id, "users/1");
    assert_eq!(put(&database, "Users|", "{}").id, "Users/2");
    assert_eq!(put(&database, "", "{}").id.len(), 36);
    let next = database.submit(|transaction| transaction.next_identity("users")).wait().unwrap();
    assert_eq!(next, 3);
    let seed =
        |value, force| database.submit(move |t| t.seed_identity("users|", value, force)).wait().unwrap();
    assert_eq!((seed(100, false), seed(50, false), seed(50, true)), (100, 100, 50));
    assert_eq!(database.read().unwrap().identities().unwrap(), [("users|".to_owned(), 50)]);
    assert!(matches!(try_put(&database, &"x".repeat(600), "{}", Expected::Any), Err(Error::InvalidId(_))));
}

#[test]
fn documents_are_walked_by_prefix_by_etag_and_by_collection() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory);
    for i in 0..50 {
        let collection = if i % 2 == 0 { "Even" } else { "Odd" };
        put(
            &database,
            &format!("N/{i:02}"),
            &format!(r#"{{"i":{i},"@metadata":{{"@collection":"{collection}"}}}}"#),
        );
    }
    delete(&database, "n/00", Expected::Any).unwrap();
    put(&database, "n/00", r#"{"i":0,"@metadata":{"@collection":"Odd"}}"#); // in another collection, last by etag
    let snapshot = database.read().unwrap();
    let mut seen = Vec::new();
    snapshot
        .documents_by_prefix("n/1", Some("n/13"), |document| {
            seen.push(document.id.to_owned());
            Ok(if seen.len() == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
        .unwrap();
    assert_eq!(seen, ["N/14", "N/15", "N/16", "N/17"]);
    let mut etags = Vec::new();
    let mut collect = |document: jackdaw_database::StoredDocument<'_>| {
        etags.push(document.etag);
        Ok(ControlFlow::Continue(()))
    };
    snapshot.documents_by_etag(49, Order::Ascending, &mut collect).unwrap();
    snapshot.documents_of_collection("even", 5, Order::Descending, &mut collect).unwrap();
    assert_eq!(etags, [49, 50, 52, 5, 3]);
    assert_eq!(snapshot.last_etag_of_collection("Odd").unwrap(), 52);
    let counts: Vec<_> = snapshot.collections().unwrap().iter().map(|each| each.documents).collect();
    assert_eq!(counts, [24, 26]);
}

#[test]
fn unchanged_documents_can_be_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory);
    let first = put(&database, "a", r#"{"b":[1,2],"@metadata":{"@collection":"C"}}"#);
    let document = incoming(&database, r#"{"@metadata":{"@collection":"C","@id":"a"},"b":[1,2]}"#);
    let skip = PutOptions { skip_if_unchanged: true, ..Default::default() };
    let options = skip.clone();
    let second = database.submit(move |t| t.put("a", &document, options)).wait().unwrap();
    assert!(second.unchanged);
    assert_eq!((second.etag, second.change_vector), (1, first.change_vector));
    let document = incoming(&database, r#"{"@metadata":{"@collection":"C"},"b":[2,1]}"#);
    let third = database.submit(move |t| t.put("a", &document, skip)).wait().unwrap();
    assert_eq!((third.unchanged, third.etag), (false, 2));
}

#[test]
fn everything_is_there_after_opening_again() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory);
    let id = *database.id();
    put(&database, "a", r#"{"@metadata":{"@collection":"C"}}"#);
    put(&database, "b", r#"{"@metadata":{"@collection":"C"}}"#);
    delete(&database, "b", Expected::Any).unwrap();
    database.close().unwrap();
    assert!(matches!(try_put(&database, "c", "{}", Expected::Any), Err(Error::Closed(_))));
    drop(database);
    let database = open(&directory);
    assert_eq!(*database.id(), id);
    assert_eq!(database.collection_name("c"), "C");
    assert_eq!(put(&database, "c", r#"{"@metadata":{"@collection":"c"}}"#).etag, 4);
    let mut tombstones = Vec::new();
    let snapshot = database.read().unwrap();
    snapshot
        .tombstones_by_etag(0, |tombstone| {
            let collection = snapshot.collection_of_tombstone(&tombstone).to_string();
            tombstones.push((tombstone.id.to_owned(), tombstone.etag, collection));
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    assert_eq!(tombstones, [("b".to_owned(), 3, "C".to_owned())]);
    drop(snapshot);
    assert_eq!(database.submit(|t| t.clean_tombstones(3, 100)).wait().unwrap(), 1);
    assert_eq!(database.statistics().unwrap().tombstones, 0);
}

#[test]
fn another_environment_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let environment = jackdaw_storage::Environment::open(directory.path(), Default::default()).unwrap();
    let mut transaction = environment.write().unwrap();
    transaction.create_tree(b"something").unwrap();
    transaction.commit().unwrap();
    environment.close().unwrap();
    let refused = Database::open(directory.path(), "test", DatabaseOptions::default());
    assert!(matches!(refused.err(), Some(Error::Damaged(_))));
}

#[test]
fn what_is_no_document_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory);
    let context = Context::new();
    for bad in ["[]", "1", r#"{"@metadata":[]}"#, r#"{"@metadata":{"@collection":7}}"#, "{", ""] {
        assert!(IncomingDocument::parse(bad.as_bytes(), &context, &database).is_err(), "{bad}");
    }
    assert!(IncomingDocument::parse(br#"{"@metadata":null}"#, &context, &database).is_ok());
}

/// A document that was deleted and came back in another collection left the old one, and who follows that one must hear of it.
#[test]
fn a_document_that_comes_back_elsewhere_has_left_its_collection() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), "moves", DatabaseOptions::default()).unwrap();
    let put = |id: &str, collection: &str| {
        let context = jackdaw_document::Context::new();
        let json = format!(r#"{{"@metadata":{{"@collection":"{collection}"}}}}"#);
        let document = context.parse(&json).unwrap();
        let document = IncomingDocument::new(&document, &context, &database).unwrap();
        let id = id.to_owned();
        database.submit(move |t| t.put(&id, &document, PutOptions::default())).wait().unwrap().etag
    };
    let delete = |id: &'static str| {
        database.submit(move |t| t.delete(id, &Expected::Any)).wait().unwrap().unwrap().etag
    };
    let left = |collection: &str| {
        let mut ids = Vec::new();
        let snapshot = database.read().unwrap();
        let each = |tombstone: jackdaw_database::Tombstone<'_>| {
            ids.push((tombstone.id.to_owned(), tombstone.etag));
            Ok(std::ops::ControlFlow::Continue(()))
        };
        snapshot.tombstones_of_collection(collection, 0, each).unwrap();
        ids
    };
    put("Users/1", "Users");
    let first = delete("users/1");
    put("users/1", "Users");
    assert_eq!(left("Users"), []);
    let second = delete("users/1");
    assert!(second > first);
    put("Users/1", "Orders");
    assert_eq!(left("users"), [("users/1".to_owned(), second)], "as it was spelt then");
    let snapshot = database.read().unwrap();
    assert_eq!(snapshot.last_tombstone_etag(Some("Users")).unwrap(), second);
    assert_eq!(snapshot.last_tombstone_etag(None).unwrap(), 0, "the id has a document");
    drop(snapshot);
    let third = delete("users/1");
    put("users/1", "Users");
    assert_eq!(left("Orders"), [("Users/1".to_owned(), third)]);
    assert_eq!(left("Users"), [("users/1".to_owned(), second)]);
    let removed = database.submit(move |t| t.clean_tombstones(third, 100)).wait().unwrap();
    assert_eq!((removed, left("Orders"), left("Users")), (2, vec![], vec![]));
}
