//! Many who write at once: order, visibility, and what a fault leaves.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jackdaw_database::notifications::{Event, Topic};
use jackdaw_database::{
    Changed, CommitWatcher, Database, DatabaseOptions, Error, IncomingDocument, PutOptions,
};
use jackdaw_document::Context;

const THREADS: usize = 8;
const WRITES: usize = 150;

fn open(directory: &tempfile::TempDir) -> Database {
    Database::open(directory.path(), "test", DatabaseOptions::default()).unwrap()
}

fn put(database: &Database, id: String, short: bool) -> jackdaw_database::Pending<i64> {
    let document = IncomingDocument::parse(br#"{"Name":"x"}"#, &Context::new(), database).unwrap();
    let job = move |transaction: &mut jackdaw_database::Transaction<'_>| {
        transaction.put(&id, &document, PutOptions::default())?;
        Ok(transaction.last_etag())
    };
    if short { database.submit_short(job) } else { database.submit(job) }
}

/// Writes from several threads, each waiting for its answer before it goes on; calls `answered` with each id and answer.
fn write_from_all(database: &Database, answered: impl Fn(&str, Result<i64, Error>) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let answered = &answered;
            scope.spawn(move || {
                for write in 0..WRITES {
                    let id = format!("users/{thread}-{write}");
                    answered(&id, put(database, id.clone(), write % 3 == 0).wait());
                }
            });
        }
    });
}

#[test]
fn an_answer_means_that_readers_see_it_and_events_come_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory);
    let (mut subscriber, events) = database.notifications().subscribe();
    subscriber.watch(Topic::AllDocuments);
    write_from_all(&database, |id, answer| {
        let etag = answer.unwrap();
        let snapshot = database.read().unwrap();
        assert_eq!(snapshot.document(id).unwrap().unwrap().etag, etag);
    });
    let mut taken = Vec::new();
    events.try_take(&mut taken, usize::MAX).unwrap();
    let etags = taken.iter().map(|event| match &**event {
        Event::Document(change) => {
            let text = change.change_vector.split(['A', ':', '-']).nth(2);
            text.and_then(|text| text.parse::<i64>().ok()).unwrap()
        }
        other => panic!("an event that nobody watches: {other:?}"),
    });
    let etags: Vec<i64> = etags.collect();
    assert_eq!(etags.len(), THREADS * WRITES);
    assert!(etags.is_sorted(), "events are out of order: {etags:?}");
    database.close().unwrap();
}

#[test]
fn a_watcher_that_panics_changes_no_answer() {
    struct Panics(AtomicUsize);
    impl CommitWatcher for Panics {
        fn committed(&self, _: &Changed) {
            assert!(self.0.fetch_add(1, Ordering::Relaxed) % 10 != 9, "on purpose");
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let stored = parking_lot::Mutex::new(Vec::new());
    let database = open(&directory);
    database.watch_commits(Some(Arc::new(Panics(AtomicUsize::new(0)))));
    write_from_all(&database, |id, answer| {
        answer.unwrap();
        stored.lock().push(id.to_owned());
    });
    drop(database);
    let database = open(&directory);
    let snapshot = database.read().unwrap();
    for id in stored.lock().iter() {
        assert!(snapshot.document(id).unwrap().is_some(), "{id} was acknowledged and is gone");
    }
}
