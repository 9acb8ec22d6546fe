//! The workloads, by name.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::Options;
use crate::data;
use crate::http::{Connection, encode};
use crate::import::{self, Input};
use crate::measure::{Next, Run, Target, closed_loop, memory};
use crate::random::{self, Random, Zipf};
use crate::report::Outcome;
use crate::route;
use crate::subject::{Subjects, Who, disk_bytes};

/// Database of the documents that are read.
const READ_DATABASE: &str = "ycsb";
/// How long a server is left alone before its memory is looked at.
const IDLE: Duration = Duration::from_secs(10);

/// One workload.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    work: Work,
}

enum Work {
    /// `/build/version` over so many connections.
    Version(usize),
    /// The same, and bare hyper.
    Hello(usize),
    Route,
    Put(usize),
    Batch(usize),
    Read {
        mix: Mix,
        connections: usize,
    },
    Bulk(&'static str),
    Import(Input),
    Startup,
    IdleRss,
    LoadedRss,
    Disk,
}

/// Share of reads, and which documents.
#[derive(Clone, Copy)]
struct Mix {
    reads: f64,
    keys: Keys,
}

#[derive(Clone, Copy, PartialEq)]
enum Keys {
    Uniform,
    Zipfian,
    Latest,
}

const UNIFORM_READS: Mix = Mix { reads: 1.0, keys: Keys::Uniform };

const fn workload(name: &'static str, about: &'static str, work: Work) -> Workload {
    Workload { name, about, work }
}

const fn ycsb(name: &'static str, about: &'static str, reads: f64, keys: Keys) -> Workload {
    workload(name, about, Work::Read { mix: Mix { reads, keys }, connections: 32 })
}

/// All of them, in the order in which they run.
pub(crate) const WORKLOADS: &[Workload] = &[
    workload("route", "finding a route, with all routes", Work::Route),
    workload("version-1", "GET /build/version, 1 connection", Work::Version(1)),
    workload("version-32", "the same, 32 connections", Work::Version(32)),
    workload("version-128", "the same, 128 connections", Work::Version(128)),
    workload("hello-128", "the same, beside bare hyper", Work::Hello(128)),
    workload("put-1", "PUT of a new document of 1.1 KB, 1 connection", Work::Put(1)),
    workload("put-32", "the same, 32 connections", Work::Put(32)),
    workload("put-128", "the same, 128 connections", Work::Put(128)),
    workload(
        "batch-1",
        "bulk_docs of 100 new documents, 1 connection; figures are documents",
        Work::Batch(1),
    ),
    workload("batch-8", "the same, 8 connections", Work::Batch(8)),
    workload(
        "get-1",
        "GET of a document by id, 1 connection",
        Work::Read { mix: UNIFORM_READS, connections: 1 },
    ),
    workload("get-32", "the same, 32 connections", Work::Read { mix: UNIFORM_READS, connections: 32 }),
    workload("get-128", "the same, 128 connections", Work::Read { mix: UNIFORM_READS, connections: 128 }),
    ycsb("ycsb-c", "reads only, zipfian keys, 32 connections", 1.0, Keys::Zipfian),
    ycsb("ycsb-b", "95% reads, 5% updates, zipfian keys", 0.95, Keys::Zipfian),
    ycsb("ycsb-a", "50% reads, 50% updates, zipfian keys", 0.5, Keys::Zipfian),
    ycsb("ycsb-d", "95% reads of new documents, 5% inserts", 0.95, Keys::Latest),
    workload("bulk-packages", "bulk insert of a set of documents", Work::Bulk("packages")),
    workload("bulk-commits", "the same", Work::Bulk("commits")),
    workload("bulk-products", "the same", Work::Bulk("products")),
    workload("bulk-questions", "the same", Work::Bulk("questions")),
    workload("bulk-users", "the same", Work::Bulk("users")),
    workload(
        "import-packages",
        "`jackdaw import` of a set of documents, from exec to exit",
        Work::Import(Input::Lines("packages")),
    ),
    workload("import-flights", "the same of 10 million rows of CSV", Work::Import(Input::Rows("flights"))),
    workload("loaded-rss", "anonymous memory with the documents for reading loaded", Work::LoadedRss),
    workload("disk", "bytes on disk of the documents for reading", Work::Disk),
    workload("startup", "from exec to the first document of the database for reading", Work::Startup),
    workload("idle-rss", "memory of the server with one database, idle", Work::IdleRss),
];

/// Runs one workload on those that it is for.
pub(crate) async fn run(
    workload: &Workload,
    subjects: &mut Subjects,
    options: &Options,
) -> Result<Vec<Outcome>> {
    eprintln!("{}: {}", workload.name, workload.about);
    let work = &workload.work;
    match work {
        Work::Route => return Ok(vec![single(Who::Ours, route::nanoseconds(options.seconds), "ns")]),
        Work::Hello(_) => return sweep(work, &[Who::Ours, Who::Hello], subjects, options).await,
        Work::Startup => return startup(subjects, options).await.map(|outcome| vec![outcome]),
        Work::Bulk(_) | Work::Import(_) if options.data.is_none() => {
            eprintln!("  left out: --data does not say where the sets are");
            return Ok(Vec::new());
        }
        Work::Import(input) => {
            let folder = options.data.as_deref().context("--data is missing")?;
            return Ok(vec![import::run(*input, folder, options)?]);
        }
        Work::LoadedRss | Work::Disk | Work::IdleRss => {
            let mut outcomes = Vec::new();
            for who in subjects.both() {
                outcomes.extend(at_rest(work, who, subjects, options).await?);
            }
            return Ok(outcomes);
        }
        _ => {}
    }
    let both = subjects.both();
    sweep(work, &both, subjects, options).await
}

fn single(who: Who, figure: f64, unit: &'static str) -> Outcome {
    Outcome { who, figure, unit, runs: vec![figure], cpu_us: None, cpu_runs: Vec::new(), details: json!({}) }
}

/// Runs on each in turn, so that what else happens on the machine meets all alike.
async fn sweep(work: &Work, on: &[Who], subjects: &mut Subjects, options: &Options) -> Result<Vec<Outcome>> {
    let mut runs: Vec<Vec<Run>> = on.iter().map(|_| Vec::new()).collect();
    for n in 0..options.runs.max(1) {
        for (who, runs) in on.iter().zip(&mut runs) {
            if matches!(work, Work::Read { .. }) {
                load(*who, subjects, options.docs).await?;
            }
            let target = subjects.get(*who).await?.target.clone();
            // The first run warms the server up; those after it only need to fill the connections.
            let warmup = if n == 0 { (options.seconds / 2.0).min(2.0) } else { 0.3 };
            runs.push(once(work, &target, warmup, options).await?);
        }
    }
    Ok(on.iter().zip(runs).map(|(who, runs)| Outcome::of(*who, runs)).collect())
}

async fn once(work: &Work, target: &Target, warmup: f64, options: &Options) -> Result<Run> {
    let run = async |connections, next| closed_loop(target, connections, warmup, options.seconds, next).await;
    match work {
        Work::Version(connections) | Work::Hello(connections) => {
            run(*connections, Rc::new(|_, out| encode(out, "GET", "/build/version", b""))).await
        }
        Work::Put(connections) => {
            create_database(target, "put").await?;
            let keys = fresh_keys();
            run(*connections, Rc::new(move |random, out| put_request(out, "put", next_of(&keys), random)))
                .await
        }
        Work::Batch(connections) => {
            const SIZE: u64 = 100;
            create_database(target, "batch").await?;
            let keys = fresh_keys();
            let next: Next = Rc::new(move |random, out| batch_request(out, "batch", SIZE, &keys, random));
            let mut run = run(*connections, next).await?;
            run.ops *= SIZE;
            Ok(run)
        }
        Work::Read { mix, connections } => run(*connections, reads(*mix, options.docs)).await,
        Work::Bulk(set) => {
            let folder = options.data.as_deref().context("--data is missing")?;
            let documents = data::Set::read(folder, set)?;
            let mut connection = Connection::open(&target.address).await?;
            data::delete_database(&mut connection, "bulk").await?;
            data::create_database(&mut connection, "bulk").await?;
            data::bulk_insert(target, "bulk", &documents, 0).await
        }
        Work::Route | Work::Import(_) | Work::Startup | Work::IdleRss | Work::LoadedRss | Work::Disk => {
            Ok(Run::default())
        }
    }
}

async fn create_database(target: &Target, name: &str) -> Result<()> {
    data::create_database(&mut Connection::open(&target.address).await?, name).await
}

/// Puts the documents for reading into a server, once.
async fn load(who: Who, subjects: &mut Subjects, docs: u64) -> Result<()> {
    const AT_ONCE: u64 = 200;
    const CONNECTIONS: u64 = 4;
    let subject = subjects.get(who).await?;
    if subject.is_loaded {
        return Ok(());
    }
    eprintln!("  loading {docs} documents");
    let mut connection = Connection::open(&subject.target.address).await?;
    data::delete_database(&mut connection, READ_DATABASE).await?;
    data::create_database(&mut connection, READ_DATABASE).await?;
    let next_key = Rc::new(Cell::new(0));
    let mut tasks = Vec::new();
    for n in 0..CONNECTIONS {
        let (address, next_key) = (subject.target.address.clone(), next_key.clone());
        tasks.push(tokio::task::spawn_local(async move {
            let mut connection = Connection::open(&address).await?;
            let (mut random, mut request) = (Random::new(n), Vec::new());
            while next_key.get() < docs {
                request.clear();
                let size = AT_ONCE.min(docs - next_key.get());
                batch_request(&mut request, READ_DATABASE, size, &next_key, &mut random);
                let status = connection.send(&request).await?;
                ensure!(status == 201, "{status} {}", String::from_utf8_lossy(&connection.body));
            }
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    subject.is_loaded = true;
    Ok(())
}

/// YCSB's mixes. An update writes the whole document.
fn reads(mix: Mix, docs: u64) -> Next {
    let (zipf, newest) = (Zipf::new(docs), Cell::new(docs));
    Rc::new(move |random, out| {
        let is_read = random.unit() < mix.reads;
        if !is_read && mix.keys == Keys::Latest {
            return put_request(out, READ_DATABASE, newest.replace(newest.get() + 1), random);
        }
        let n = match mix.keys {
            Keys::Uniform => random.below(docs),
            // Skips the newest few, which other connections may not have written yet.
            Keys::Latest => newest.get() - 1 - (zipf.rank(random) + 256).min(docs - 1),
            Keys::Zipfian => random::hash(zipf.rank(random)) % docs,
        };
        match is_read {
            true => encode(out, "GET", &document_path(n), b""),
            false => put_request(out, READ_DATABASE, n, random),
        }
    })
}

fn document_path(n: u64) -> String {
    format!("/databases/{READ_DATABASE}/docs?id={}", random::key(n))
}

/// A counter of keys that no earlier run has used.
fn fresh_keys() -> Rc<Cell<u64>> {
    Rc::new(Cell::new(std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_micros() as u64) << 8))
}

fn next_of(keys: &Cell<u64>) -> u64 {
    keys.replace(keys.get() + 1)
}

fn put_request(out: &mut Vec<u8>, database: &str, n: u64, random: &mut Random) {
    let mut body = Vec::with_capacity(1300);
    random::document(&mut body, random);
    encode(out, "PUT", &format!("/databases/{database}/docs?id={}", random::key(n)), &body);
}

fn batch_request(out: &mut Vec<u8>, database: &str, size: u64, keys: &Cell<u64>, random: &mut Random) {
    let mut body = b"{\"Commands\":[".to_vec();
    for n in 0..size {
        let (comma, id) = (if n == 0 { "" } else { "," }, random::key(next_of(keys)));
        let head = format!("{comma}{{\"Id\":\"{id}\",\"ChangeVector\":null,\"Type\":\"PUT\",\"Document\":");
        body.extend_from_slice(head.as_bytes());
        random::document(&mut body, random);
        body.push(b'}');
    }
    body.extend_from_slice(b"]}");
    encode(out, "POST", &format!("/databases/{database}/bulk_docs"), &body);
}

/// Memory and disk of a server that does nothing.
async fn at_rest(
    work: &Work,
    who: Who,
    subjects: &mut Subjects,
    options: &Options,
) -> Result<Option<Outcome>> {
    if !matches!(work, Work::IdleRss) {
        load(who, subjects, options.docs).await?;
    }
    tokio::time::sleep(IDLE).await;
    let subject = subjects.get(who).await?;
    if matches!(work, Work::Disk) {
        let folder =
            subject.target.folder.as_ref().map(|folder| folder.join("Databases").join(READ_DATABASE));
        return Ok(folder.map(|folder| single(who, disk_bytes(&folder) as f64 / 1e6, "MB")));
    }
    let Some((resident, anonymous)) = memory(subject.target.pid) else { return Ok(None) };
    let figure = if matches!(work, Work::IdleRss) { resident } else { anonymous };
    let mut outcome = single(who, figure as f64 / 1e6, "MB");
    outcome.details = json!({"resident_mb": resident / 1_000_000, "anonymous_mb": anonymous / 1_000_000});
    Ok(Some(outcome))
}

/// Only ours: starting a peer again is its start script's matter.
async fn startup(subjects: &mut Subjects, options: &Options) -> Result<Outcome> {
    load(Who::Ours, subjects, options.docs).await?;
    let mut runs = Vec::new();
    for _ in 0..options.runs.max(1) {
        runs.push(subjects.restart_ours(&document_path(1)).await?.as_secs_f64() * 1e3);
    }
    let mut sorted = runs.clone();
    sorted.sort_by(f64::total_cmp);
    let mut outcome = single(Who::Ours, sorted[sorted.len() / 2], "ms");
    outcome.runs = runs;
    Ok(outcome)
}
