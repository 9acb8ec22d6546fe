//! Indexes over real documents: how fast they are built, and how fast they are queried.

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::Options;
use crate::catalog::{self, Values, entry_name};
use crate::data::{self, Set, get};
use crate::growth;
use crate::http::{Connection, encode};
use crate::measure::{Next, Run, Target, closed_loop, memory};
use crate::random::Random;
use crate::report::{Outcome, Report, round};
use crate::subject::{Subjects, Who};

/// The database that all of this is about.
const DATABASE: &str = "real";
/// Which sets of documents it holds, and under how many ids each document: 249,246 documents.
const SETS: &[(&str, usize)] = &[("packages", 1), ("products", 1), ("questions", 20), ("users", 12)];
/// How long an index may take.
const PATIENCE: Duration = Duration::from_secs(1800);
/// The workload that measures how soon an update is found.
const VISIBLE: &str = "visible";

/// The names of all workloads of building.
pub(crate) fn names_of_indexes() -> Result<Vec<String>> {
    let mut names: Vec<_> =
        catalog::section("indexes", &[])?.iter().map(|entry| entry_name(entry).to_owned()).collect();
    names.push(VISIBLE.to_owned());
    names.extend(growth::names());
    Ok(names)
}

/// The names of all workloads of queries, without the number of connections.
pub(crate) fn names_of_queries() -> Result<Vec<String>> {
    let (queries, facets) = (catalog::section("query", &[])?, catalog::section("facet", &[])?);
    Ok(queries.iter().chain(&facets).map(|entry| entry_name(entry).to_owned()).collect())
}

/// From each definition to an index that is not stale. An op is a document mapped.
pub(crate) async fn build(subjects: &mut Subjects, options: &Options, report: &mut Report) -> Result<()> {
    for entry in catalog::section("indexes", &options.workloads)? {
        let name = entry_name(&entry);
        eprintln!("{name}");
        let both = subjects.both();
        let mut runs: Vec<Vec<Run>> = both.iter().map(|_| Vec::new()).collect();
        let mut about = vec![json!({}); both.len()];
        for _ in 0..options.runs.max(1) {
            for (at, who) in both.iter().enumerate() {
                let target = loaded(*who, subjects, options).await?;
                let (run, stats) = build_once(&target, &entry).await?;
                runs[at].push(run);
                about[at] = stats;
            }
        }
        let outcomes = both.iter().zip(runs).zip(about).map(|((who, runs), about)| {
            let mut outcome = Outcome::of(*who, runs);
            outcome.unit = "docs/s";
            outcome.details = about;
            outcome
        });
        report.add(name, outcomes.collect())?;
    }
    if options.workloads.is_empty() || options.workloads.iter().any(|name| name == VISIBLE) {
        let mut outcomes = Vec::new();
        for who in subjects.both() {
            let target = loaded(who, subjects, options).await?;
            outcomes.push(visible(who, &target, options).await?);
        }
        report.add(VISIBLE, outcomes)?;
    }
    growth::run(subjects, options, report).await
}

async fn build_once(target: &Target, entry: &Value) -> Result<(Run, Value)> {
    build_in(target, DATABASE, entry).await
}

/// Builds an index anew. An op is a document of its collection.
pub(crate) async fn build_in(target: &Target, database: &str, entry: &Value) -> Result<(Run, Value)> {
    let mut connection = Connection::open(&target.address).await?;
    let name = entry_name(entry);
    let counts = get(&mut connection, &format!("/databases/{database}/collections/stats")).await?;
    let collection = entry["collection"].as_str().unwrap_or("");
    let documents = counts["Collections"][collection].as_u64().context("no such collection")?;
    delete_index(&mut connection, database, name).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let anonymous = memory(target.pid).map_or(0, |(_, anonymous)| anonymous);
    let before = target.usage();
    put_index_in(&mut connection, database, entry).await?;
    let (stats, most) = wait_until_built(&mut connection, target, database, name).await?;
    let run = target.run_since(&before, documents);
    let about = json!({
        "documents": documents, "entries": stats["EntriesCount"], "errors": stats["ErrorsCount"],
        "anonymous_mb_before": anonymous / 1_000_000, "anonymous_mb_most": most / 1_000_000,
    });
    Ok((run, about))
}

async fn delete_index(connection: &mut Connection, database: &str, name: &str) {
    // It need not be there.
    let _ = connection.call("DELETE", &format!("/databases/{database}/indexes?name={name}"), b"").await;
}

async fn put_index_in(connection: &mut Connection, database: &str, entry: &Value) -> Result<()> {
    let body = json!({"Indexes": [entry["definition"]]}).to_string();
    let path = format!("/databases/{database}/admin/indexes");
    connection.call("PUT", &path, body.as_bytes()).await?;
    Ok(())
}

/// The index's statistics, and the most anonymous memory that the server was seen to have.
async fn wait_until_built(
    connection: &mut Connection,
    target: &Target,
    database: &str,
    name: &str,
) -> Result<(Value, u64)> {
    let begun = Instant::now();
    let mut most = 0;
    loop {
        let mut answer = get(connection, &format!("/databases/{database}/indexes/stats?name={name}")).await?;
        let stats = answer["Results"][0].take();
        most = most.max(memory(target.pid).map_or(0, |(_, anonymous)| anonymous));
        ensure!(stats["State"] != "Error", "{name} is in error");
        if stats["IsStale"] == false {
            return Ok((stats, most));
        }
        ensure!(begun.elapsed() < PATIENCE, "{name} is still stale");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Milliseconds from sending a PUT to the answer of a query that waits for it, on an idle server.
async fn visible(who: Who, target: &Target, options: &Options) -> Result<Outcome> {
    let entries = catalog::section("indexes", &["Users/Search".to_owned()])?;
    let entry = entries.first().context("the catalog has no Users/Search")?;
    ensure_built(target, entry).await?;
    let mut connection = Connection::open(&target.address).await?;
    let (mut took, count) = (Vec::new(), if options.quick { 20 } else { 100 });
    for n in 0..count {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let name = format!("visible{n}x{}", random_name());
        let document = json!({"DisplayName": name, "Reputation": n, "@metadata": {"@collection": "Users"}});
        let query = json!({
            "Query": "from index 'Users/Search' where DisplayName = $name",
            "QueryParameters": {"name": name}, "WaitForNonStaleResults": true,
        });
        let begun = Instant::now();
        let path = format!("/databases/{DATABASE}/docs?id=users/visible-{n}");
        connection.call("PUT", &path, document.to_string().as_bytes()).await?;
        let path = format!("/databases/{DATABASE}/queries");
        connection.call("POST", &path, query.to_string().as_bytes()).await?;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
        let answer: Value = serde_json::from_slice(&connection.body)?;
        ensure!(answer["TotalResults"] == 1, "an update was not found: {answer}");
    }
    took.sort_by(f64::total_cmp);
    let at = |quantile: f64| took[((took.len() - 1) as f64 * quantile) as usize];
    let details = json!({"p90_ms": round(at(0.9)), "max_ms": round(at(1.0))});
    Ok(Outcome {
        who,
        figure: at(0.5),
        unit: "ms",
        runs: vec![at(0.5)],
        cpu_us: None,
        cpu_runs: Vec::new(),
        details,
    })
}

/// Letters that no earlier run has used.
fn random_name() -> String {
    let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_micros() as u64);
    format!("{now:x}")
}

/// Queries and facets, at 1 and 32 connections, on indexes that are built before.
pub(crate) async fn query(subjects: &mut Subjects, options: &Options, report: &mut Report) -> Result<()> {
    let mut entries = catalog::section("query", &options.workloads)?;
    entries.extend(catalog::section("facet", &options.workloads)?);
    for entry in &entries {
        let (name, text) = (entry_name(entry), entry["query"].as_str().unwrap_or(""));
        for connections in [1, 32] {
            eprintln!("{name}-{connections}");
            let both = subjects.both();
            let mut runs: Vec<Vec<Run>> = both.iter().map(|_| Vec::new()).collect();
            let mut answers = vec![json!({}); both.len()];
            for n in 0..options.runs.max(1) {
                for (at, who) in both.iter().enumerate() {
                    let target = loaded(*who, subjects, options).await?;
                    let mut connection = Connection::open(&target.address).await?;
                    ensure_index_of(&target, text).await?;
                    let values = Rc::new(values(&mut connection).await?);
                    answers[at] = one_answer(&mut connection, &values, text).await?;
                    let warmup = if n == 0 { (options.seconds / 2.0).min(2.0) } else { 0.3 };
                    let text = text.to_owned();
                    let next: Next = Rc::new(move |random, out| {
                        encode(out, "POST", &queries(), values.body(&text, random).as_bytes());
                    });
                    runs[at].push(closed_loop(&target, connections, warmup, options.seconds, next).await?);
                }
            }
            let outcomes = both.iter().zip(runs).zip(&answers).map(|((who, runs), answer)| {
                let mut outcome = Outcome::of(*who, runs);
                outcome.details["one_answer"] = answer.clone();
                outcome
            });
            report.add(&format!("{name}-{connections}"), outcomes.collect())?;
            if let [ours, theirs] = &answers[..]
                && (&ours["total"], &ours["results"]) != (&theirs["total"], &theirs["results"])
            {
                eprintln!("  the answers differ: {ours} and {theirs}");
            }
        }
    }
    Ok(())
}

fn queries() -> String {
    format!("/databases/{DATABASE}/queries")
}

/// The size of one answer: a fast wrong one must not win.
async fn one_answer(connection: &mut Connection, values: &Values, text: &str) -> Result<Value> {
    let body = values.body(text, &mut Random::new(1));
    connection.call("POST", &queries(), body.as_bytes()).await?;
    let bytes = connection.body.len();
    let answer: Value = serde_json::from_slice(&connection.body)?;
    let results = answer["Results"].as_array().map_or(0, Vec::len);
    Ok(json!({"total": answer["TotalResults"], "results": results, "bytes": bytes}))
}

async fn values(connection: &mut Connection) -> Result<Values> {
    let mut samples = Vec::new();
    for prefix in ["packages/", "questions/"] {
        let path = format!("/databases/{DATABASE}/docs?startsWith={prefix}&pageSize=2000&start=100");
        let mut answer = get(connection, &path).await?;
        samples.push(answer["Results"].as_array_mut().map(std::mem::take).unwrap_or_default());
    }
    let questions = samples.pop().unwrap_or_default();
    Values::from_documents(samples.pop().unwrap_or_default(), &questions)
}

/// Builds the index that a query names, unless it is there.
async fn ensure_index_of(target: &Target, query: &str) -> Result<()> {
    let name = query.split('\'').nth(1).context("a query without an index")?;
    let entries = catalog::section("indexes", &[name.to_owned()])?;
    let Some(entry) = entries.first() else { bail!("the catalog has no index {name}") };
    ensure_built(target, entry).await
}

async fn ensure_built(target: &Target, entry: &Value) -> Result<()> {
    let mut connection = Connection::open(&target.address).await?;
    let path = format!("/databases/{DATABASE}/indexes/stats?name={}", entry_name(entry));
    let is_there = get(&mut connection, &path).await.is_ok_and(|stats| stats["Results"][0].is_object());
    if !is_there {
        put_index_in(&mut connection, DATABASE, entry).await?;
    }
    wait_until_built(&mut connection, target, DATABASE, entry_name(entry)).await.map(drop)
}

/// A server with the documents, which are put in when they are not there yet.
async fn loaded(who: Who, subjects: &mut Subjects, options: &Options) -> Result<Target> {
    let subject = subjects.get(who).await?;
    let target = subject.target.clone();
    if std::mem::replace(&mut subject.is_loaded, true) {
        return Ok(target);
    }
    let folder = options.data.as_deref().context("--data must say where the sets of documents are")?;
    let mut connection = Connection::open(&target.address).await?;
    data::delete_database(&mut connection, DATABASE).await?;
    data::create_database(&mut connection, DATABASE).await?;
    for (name, copies) in SETS {
        eprintln!("  loading {name}");
        let set = Set::read(folder, name)?;
        let copies = if options.quick { copies.div_ceil(10) } else { *copies };
        for copy in 0..copies {
            data::bulk_insert(&target, DATABASE, &set, copy).await?;
        }
    }
    Ok(target)
}
