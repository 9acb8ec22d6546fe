//! HiLo ranges, compare-exchange values, cluster-wide transactions, requests that come twice.
#![allow(clippy::unwrap_used)]

use jackdaw_database::{
    ClusterCommand, ClusterCommandResult, ClusterOptions, ClusterResult, Database, DatabaseOptions, Error,
    IncomingDocument, ViolationKind,
};
use jackdaw_document::Context;

const GUARDS: ClusterOptions = ClusterOptions { guards: true };

fn open(directory: &tempfile::TempDir) -> Database {
    Database::open(directory.path(), "test", DatabaseOptions::default()).unwrap()
}

fn incoming(database: &Database, json: &str) -> IncomingDocument {
    IncomingDocument::parse(json.as_bytes(), &Context::new(), database).unwrap()
}

fn value(json: &str) -> Vec<u8> {
    Context::new().parse(json).unwrap().as_bytes().to_vec()
}

fn run(database: &Database, commands: Vec<ClusterCommand>) -> Result<ClusterResult, Error> {
    database.submit(move |t| t.run_cluster_transaction(&commands, GUARDS)).wait()
}

#[test]
fn ranges_never_overlap() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory);
    let next = |size, at| database.submit(move |t| t.next_hilo_range("users", size, at, 0)).wait().unwrap();
    let first = next(0, 0);
    assert_eq!((first.low, first.high, first.size), (1, 32, 32));
    let second = next(first.size, first.at);
    assert_eq!((second.low, second.high, second.size), (33, 96, 64));
    let slow = next(64, second.at - 10_000_000_000);
    assert_eq!((slow.low, slow.high), (97, 128));
    database.submit(|t| t.return_hilo_range("users", 128, 100)).wait().unwrap();
    assert_eq!(next(0, 0).low, 101);
    database.submit(|t| t.return_hilo_range("users", 128, 100)).wait().unwrap(); // no longer the last
    assert_eq!(next(0, 0).low, 133);
    let snapshot = database.read().unwrap();
    let document = snapshot.document("raven/hilo/users").unwrap().unwrap();
    assert_eq!(document.document.get("Max").unwrap().as_i64(), Some(164));
    assert_eq!(snapshot.collection_of(&document).as_ref(), "@hilo");
}

#[test]
fn values_change_only_at_the_expected_index() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory);
    let put = |key: &'static str, index, json| {
        let value = value(json);
        database.submit(move |t| t.put_compare_exchange(key, index, &value)).wait()
    };
    let first = put("Key", 0, r#"{"Object":1}"#).unwrap();
    assert!(first.successful);
    let again = put("key", 0, r#"{"Object":2}"#).unwrap();
    assert_eq!((again.successful, again.index, again.value), (false, first.index, first.value));
    assert!(put("KEY", first.index, r#"{"Object":2}"#).unwrap().successful);
    let snapshot = database.read().unwrap();
    let found = snapshot.compare_exchange("key").unwrap().unwrap();
    assert_eq!((found.key, found.value.get("Object").unwrap().as_i64()), ("KEY", Some(2)));
    let delete =
        |key: &'static str, index| database.submit(move |t| t.delete_compare_exchange(key, index)).wait();
    assert!(!delete("key", first.index).unwrap().successful);
    assert!(delete("key", found.index).unwrap().successful);
    let missing = delete("key", 0).unwrap();
    assert_eq!((missing.successful, missing.index), (false, 0));
    assert!(matches!(put("rvn-atomic/x", 0, "{}"), Err(Error::CompareExchangeKeyInvalid(_))));
    let long: &'static str = "k".repeat(600).leak();
    assert!(matches!(put(long, 0, "{}"), Err(Error::CompareExchangeKeyTooBig { .. })));
}

#[test]
fn the_index_goes_on_after_opening_again() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory);
    let bytes = value(r#"{"Object":1}"#);
    let copy = bytes.clone();
    let first = database.submit(move |t| t.put_compare_exchange("a", 0, &copy)).wait().unwrap();
    database.close().unwrap();
    drop(database);
    let database = open(&directory);
    let second = database.submit(move |t| t.put_compare_exchange("b", 0, &bytes)).wait().unwrap();
    assert!(second.index > first.index);
}

#[test]
fn cluster_transactions_are_whole_or_not() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory);
    let document = incoming(&database, r#"{"@metadata":{"@collection":"Users"}}"#);
    let put = |known: Option<&str>| ClusterCommand::Put {
        id: "Users/1".to_owned(),
        document: document.clone(),
        known: known.map(str::to_owned),
    };
    let exchange = |index| ClusterCommand::PutCompareExchange {
        key: "email/a".to_owned(),
        index,
        value: value(r#"{"Object":"users/1"}"#),
    };
    let first = run(&database, vec![put(Some("")), exchange(0)]).unwrap();
    let ClusterCommandResult::Put(stored) = &first.results[0] else { panic!("{first:?}") };
    let vector = stored.change_vector.clone();
    assert!(vector.starts_with("RAFT:1-") && vector.contains(&format!(",TRXN:{}-", first.index)), "{vector}");
    let snapshot = database.read().unwrap();
    let guard = snapshot.compare_exchange("rvn-atomic/users/1").unwrap().unwrap();
    assert_eq!(guard.index, first.index);
    drop(snapshot);

    // A violation anywhere stops everything.
    let Err(Error::ClusterConcurrency { violations, .. }) =
        run(&database, vec![put(Some(&vector)), exchange(0)])
    else {
        panic!("the index is another")
    };
    assert_eq!((violations.len(), violations[0].kind), (1, ViolationKind::CompareExchange));
    assert_eq!((violations[0].expected, violations[0].actual), (0, first.index));
    assert_eq!(database.statistics().unwrap().last_etag, 1);
    assert!(matches!(run(&database, vec![put(None)]), Err(Error::ClusterConcurrency { .. })));

    let second = run(&database, vec![put(Some(&vector)), exchange(first.index)]).unwrap();
    assert!(second.index > first.index);
    assert!(matches!(run(&database, vec![put(Some(&vector))]), Err(Error::ClusterConcurrency { .. })));

    // An ordinary write joins the vectors, and keeps what the cluster wrote.
    let plain = document.clone();
    let joined = database.submit(move |t| t.put("users/1", &plain, Default::default())).wait().unwrap();
    assert!(
        joined.change_vector.contains(", RAFT:2-") && joined.change_vector.starts_with("A:"),
        "{joined:?}"
    );
    let delete = ClusterCommand::Delete { id: "users/1".to_owned(), known: None };
    let gone = run(&database, vec![delete]).unwrap();
    assert!(
        matches!(&gone.results[..], [ClusterCommandResult::Delete { id, .. }] if id == "users/1"),
        "{gone:?}"
    );
    assert!(database.read().unwrap().document("users/1").unwrap().is_none());
    assert!(database.read().unwrap().compare_exchange("rvn-atomic/users/1").unwrap().is_none());
    let sequential = ClusterCommand::Put { id: "users/".to_owned(), document: document.clone(), known: None };
    assert!(matches!(run(&database, vec![sequential]), Err(Error::NotInCluster(_))));
    let identity = ClusterCommand::Put { id: "users|".to_owned(), document, known: None };
    let named = run(&database, vec![identity]).unwrap();
    assert!(
        matches!(&named.results[..], [ClusterCommandResult::Put(stored)] if stored.id == "users/1"),
        "{named:?}"
    );
}

#[test]
fn a_request_is_answered_as_before() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory);
    let ask = |id: &'static str| {
        database
            .submit(move |t| {
                if let Some(answer) = t.answer_of_request(id)? {
                    return Ok(answer.to_vec());
                }
                let answer = format!("{id} {}", t.next_identity("times|")?).into_bytes();
                t.keep_answer_of_request(id, &answer)?;
                Ok(answer)
            })
            .wait()
            .unwrap()
    };
    assert_eq!(ask("a"), b"a 1");
    assert_eq!(ask("b"), b"b 2");
    assert_eq!(ask("a"), b"a 1");
}
