//! Random writes against plain maps, on a disk that loses power at any call.
//!
//! One thread submits groups of jobs without waiting in between, some of which fail on purpose; then it collects their answers. When
//! the power goes, every answered job must be there after opening again, no failed one, and of those without an answer the first
//! few, whole and in order: jobs become durable in the order in which they were submitted.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use jackdaw_database::{
    Database, DatabaseOptions, Error, Expected, IncomingDocument, PutOptions, Snapshot, Transaction,
};
use jackdaw_document::Context;
use jackdaw_storage::disk::SimulatedDisk;
use jackdaw_storage::disk::simulated::Fault;
use jackdaw_storage::{Environment, Options, Order};
use jackdaw_testkit::{Random, Seeds};

const REPLAY: &str = "SEED={seed} cargo test -p jackdaw-database --test model";

/// What a database should hold: per lower-case id the id, collection and value.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Model {
    documents: BTreeMap<String, (String, String, u64)>,
    tombstones: BTreeMap<String, String>,
    identities: BTreeMap<String, i64>,
}

/// A job: some writes, all of which happen or none.
#[derive(Clone, Debug)]
struct Job {
    writes: Vec<Write>,
    fails: bool,
    /// Run by the one who submits it, where that can be.
    short: bool,
}

#[derive(Clone, Debug)]
enum Write {
    Put { id: String, collection: String, value: u64 },
    PutNew { id: String, collection: String, value: u64 },
    Delete { id: String },
    NextIdentity { name: String },
}

fn random_job(random: &mut Random) -> Job {
    let writes = (0..random.within(1..5))
        .map(|_| {
            let id = format!("{}/{}", random.pick(&["users", "Users", "orders"]).unwrap(), random.below(12));
            let collection = (*random.pick(&["Users", "Orders", "users", "@empty"]).unwrap()).to_owned();
            let value = random.next_u64() >> 1;
            match random.weighted(&[6, 3, 4, 2]) {
                0 => Write::Put { id, collection, value },
                1 => Write::PutNew { id, collection, value },
                2 => Write::Delete { id },
                _ => Write::NextIdentity { name: collection },
            }
        })
        .collect();
    Job { writes, fails: random.one_in(7), short: random.one_in(2) }
}

impl Model {
    /// The model after a job; `None` when the job must fail.
    fn after(&self, job: &Job) -> Option<Model> {
        let mut model = self.clone();
        for write in &job.writes {
            match write {
                Write::Put { id, collection, value } | Write::PutNew { id, collection, value } => {
                    let key = id.to_lowercase();
                    let before = model.documents.get(&key);
                    if before.is_some() && matches!(write, Write::PutNew { .. }) {
                        return None;
                    }
                    if before.is_some_and(|(_, before, _)| *before != collection.to_lowercase()) {
                        return None;
                    }
                    model.tombstones.remove(&key);
                    model.documents.insert(key, (id.clone(), collection.to_lowercase(), *value));
                }
                Write::Delete { id } => {
                    let key = id.to_lowercase();
                    if let Some((id, ..)) = model.documents.remove(&key) {
                        model.tombstones.insert(key, id);
                    }
                }
                Write::NextIdentity { name } => {
                    *model.identities.entry(format!("{}|", name.to_lowercase())).or_default() += 1;
                }
            }
        }
        (!job.fails).then_some(model)
    }

    fn of(snapshot: &Snapshot) -> Model {
        let mut model = Model::default();
        let mut last = 0;
        let mut collections: BTreeMap<String, u64> = BTreeMap::new();
        snapshot
            .documents_by_etag(0, Order::Ascending, |document| {
                assert!(document.etag > last);
                last = document.etag;
                let collection = snapshot.collection_of(&document).to_lowercase();
                *collections.entry(collection.clone()).or_default() += 1;
                let value = document.document.get("v").unwrap().as_i64().unwrap() as u64;
                model
                    .documents
                    .insert(document.id.to_lowercase(), (document.id.to_owned(), collection, value));
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
        snapshot
            .tombstones_by_etag(0, |tombstone| {
                model.tombstones.insert(tombstone.id.to_lowercase(), tombstone.id.to_owned());
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
        model.identities = snapshot.identities().unwrap().into_iter().collect();
        // The other ways to the documents lead to the same ones.
        assert!(snapshot.last_etag().unwrap() >= last);
        assert_eq!(snapshot.document_count().unwrap(), model.documents.len() as u64);
        for collection in snapshot.collections().unwrap() {
            let key = collection.name.to_lowercase();
            assert_eq!(collection.documents, collections.remove(&key).unwrap_or(0), "{key}");
            let mut count = 0;
            snapshot
                .documents_of_collection(&key, 0, Order::Ascending, |document| {
                    assert_eq!(snapshot.document(document.id).unwrap().unwrap().etag, document.etag);
                    count += 1;
                    Ok(ControlFlow::Continue(()))
                })
                .unwrap();
            assert_eq!(count, collection.documents);
        }
        assert!(collections.is_empty());
        model
    }
}

fn submit(database: &Database, job: &Job, context: &Context) -> jackdaw_database::Pending<()> {
    let mut prepared = Vec::new();
    for write in &job.writes {
        let document = match write {
            Write::Put { collection, value, .. } | Write::PutNew { collection, value, .. } => {
                let text = format!(r#"{{"v":{value},"@metadata":{{"@collection":"{collection}"}}}}"#);
                Some(IncomingDocument::parse(text.as_bytes(), context, database).unwrap())
            }
            _ => None,
        };
        prepared.push((write.clone(), document));
    }
    let fails = job.fails;
    let run = move |transaction: &mut Transaction<'_>| {
        for (write, document) in &prepared {
            match (write, document) {
                (Write::Put { id, .. }, Some(document)) => {
                    transaction.put(id, document, PutOptions::default())?;
                }
                (Write::PutNew { id, .. }, Some(document)) => {
                    let options = PutOptions { expected: Expected::New, ..PutOptions::default() };
                    transaction.put(id, document, options)?;
                }
                (Write::Delete { id }, _) => {
                    transaction.delete(id, &Expected::Any)?;
                }
                (Write::NextIdentity { name }, _) => {
                    transaction.next_identity(name)?;
                }
                _ => unreachable!("puts have documents"),
            }
        }
        if fails { Err(Error::InvalidOperation("on purpose".to_owned())) } else { Ok(()) }
    };
    if job.short { database.submit_short(run) } else { database.submit(run) }
}

fn open(disk: &SimulatedDisk) -> Result<Database, Error> {
    let options = Options::new()
        .map_reserve(64 << 20)
        .scratch_size_max(16 << 20)
        .journal_file_sizes(64 << 10, 256 << 10);
    let environment = Environment::open_on(Arc::new(disk.clone()), options)?;
    Database::open_environment(environment, "model", DatabaseOptions::default())
}

/// One history: some groups of jobs, a power loss or a close, and so on. Returns how many jobs were acknowledged.
fn history(seed: u64) -> Result<u64, String> {
    let mut random = Random::new(seed);
    let context = Context::new();
    let mut disk = SimulatedDisk::new(seed);
    let mut model = Model::default();
    let mut acknowledged = 0;
    for _ in 0..random.within(1..4) {
        let database = open(&disk).map_err(|error| format!("cannot open: {error}"))?;
        let found = Model::of(&database.read().unwrap());
        if found != model {
            return Err(format!("after opening: found {found:?}, expected {model:?}"));
        }
        if random.one_in(2) {
            disk.fail_at_mutating(disk.mutating_calls() + 1 + random.skewed(6) as u64, Fault::Crash);
        }
        let mut possible = vec![model.clone()];
        'groups: for _ in 0..random.within(1..8) {
            // Many at times, so that some run while others are being written.
            let jobs: Vec<Job> = (0..1 + random.skewed(7)).map(|_| random_job(&mut random)).collect();
            let pending: Vec<_> = jobs.iter().map(|job| submit(&database, job, &context)).collect();
            let mut lost = false;
            for (job, answer) in jobs.iter().zip(pending) {
                let current = possible.last().cloned().unwrap_or_default();
                let next = current.after(job);
                match (answer.wait(), next) {
                    (Ok(()), Some(next)) if !lost => {
                        acknowledged += 1;
                        possible = vec![next];
                    }
                    (Ok(()), _) if lost => return Err(format!("{job:?} was acknowledged after a lost one")),
                    (Ok(()), _) => return Err(format!("{job:?} should have failed")),
                    (
                        Err(
                            Error::InvalidOperation(_)
                            | Error::Concurrency { .. }
                            | Error::CollectionMismatch { .. },
                        ),
                        None,
                    ) => {}
                    (Err(Error::Storage(_)), Some(next)) if disk.has_crashed() => {
                        // Nobody knows: it may be there or not, but then with all before it.
                        lost = true;
                        possible.push(next);
                    }
                    (Err(Error::Storage(_)), None) if disk.has_crashed() => lost = true,
                    // It ran on a state without the lost ones.
                    (Err(Error::Concurrency { .. } | Error::CollectionMismatch { .. }), _) if lost => {}
                    (Err(error), _) => return Err(format!("{job:?}: {error}")),
                }
            }
            if lost {
                break 'groups;
            }
            let found = Model::of(&database.read().unwrap());
            if found != possible[0] {
                return Err(format!("found {found:?}, expected {:?}", possible[0]));
            }
        }
        if disk.has_crashed() || random.one_in(2) {
            let after = disk.crash(random.next_u64()).map_err(|error| error.to_string())?;
            drop(database);
            disk = after;
        } else {
            if let Err(error) = database.close()
                && !disk.has_crashed()
            {
                return Err(format!("cannot close: {error}"));
            }
            drop(database);
            disk.clear_faults();
            if disk.has_crashed() {
                disk = disk.crash(random.next_u64()).map_err(|error| error.to_string())?;
            }
        }
        let database = open(&disk).map_err(|error| format!("cannot open after the power loss: {error}"))?;
        let found = Model::of(&database.read().unwrap());
        model = match possible.iter().position(|each| *each == found) {
            Some(at) => possible.swap_remove(at),
            None => {
                return Err(format!("after the power loss: found {found:?}, expected one of {possible:?}"));
            }
        };
        drop(database);
        disk = disk.snapshot().map_err(|error| error.to_string())?;
    }
    Ok(acknowledged)
}

#[test]
fn acknowledged_jobs_survive_and_others_are_whole_or_not_there() {
    let counts = Seeds::from_environment(400).check(REPLAY, history);
    let acknowledged: u64 = counts.iter().sum();
    println!("{acknowledged} acknowledged jobs, none lost");
    assert!(acknowledged > 10 * counts.len() as u64 / 2, "the histories hardly do anything: {acknowledged}");
}
