//! How costs grow: map/reduce over generated questions, up to a million of them, and facets of very many values.
//!
//! Questions have tags as real ones do: one to five each, of 65,000 by Zipf's and Mandelbrot's law (exponent 1.15, 3 added to each rank), so that one key
//! gets a hundred thousand results while most get a few.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::Options;
use crate::catalog;
use crate::data::{self, Set};
use crate::http::Connection;
use crate::index::build_in;
use crate::measure::Target;
use crate::random::{Random, hash};
use crate::report::{Outcome, Report, round};
use crate::subject::{Subjects, Who};

/// The database of generated documents.
const DATABASE: &str = "grown";
/// The workloads: questions, each a tenth of the next.
const SIZES: &[(&str, u64)] =
    &[("growth-10000", 10_000), ("growth-100000", 100_000), ("growth-1000000", 1_000_000)];
/// Facets of generated questions; measured on the largest number of them that is asked for.
const FACETS: &str = "facet-values";

const TAGS: u64 = 65_000;
/// Values of the facet with many.
const CODES: u64 = 70_000;
/// Values of the facet that is compared with a query for each.
const MONTHS: u64 = 120;
/// Documents changed, one after the other, of one key.
const CHANGES: u64 = 40;
/// Views of a question that was changed, at least.
const CHANGED: u64 = 5000;
/// Documents sent in one bulk insert.
const PORTION: u64 = 50_000;

const FACET_INDEX: &str = "Questions/Facets";

pub(crate) fn names() -> Vec<String> {
    SIZES.iter().map(|(name, _)| (*name).to_owned()).chain([FACETS.to_owned()]).collect()
}

/// Runs those that are asked for by name; there is no other way, as they take minutes.
pub(crate) async fn run(subjects: &mut Subjects, options: &Options, report: &mut Report) -> Result<()> {
    let tags = Tags::new();
    for (name, count) in SIZES {
        if options.workloads.iter().any(|wanted| wanted == name) {
            grow(subjects, name, *count, &tags, report).await?;
        }
    }
    if options.workloads.iter().any(|wanted| wanted == FACETS) {
        facets(subjects, &tags, report).await?;
    }
    Ok(())
}

/// Ranks of tags by their frequency, cumulated.
struct Tags(Vec<f64>);

impl Tags {
    fn new() -> Tags {
        let mut sum = 0.0;
        let cumulated = (0..TAGS).map(|rank| {
            sum += (rank as f64 + 1.0 + 3.0).powf(-1.15);
            sum
        });
        Tags(cumulated.collect())
    }

    fn rank(&self, random: &mut Random) -> u64 {
        let wanted = random.unit() * self.0.last().copied().unwrap_or(1.0);
        self.0.partition_point(|&sum| sum < wanted) as u64
    }
}

/// The name of a tag: ranks are shuffled.
fn tag(rank: u64) -> String {
    format!("tag-{}", (rank * 7919 + 13) % TAGS)
}

/// The tags' ranks of a question; the same each time.
fn ranks(number: u64, tags: &Tags) -> Vec<u64> {
    let mut random = Random::new(number);
    let count = match random.below(100) {
        0..31 => 1,
        31..65 => 2,
        65..89 => 3,
        89..97 => 4,
        _ => 5,
    };
    let mut ranks: Vec<u64> = (0..count).map(|_| tags.rank(&mut random)).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

fn question(number: u64, views: u64, tags: &Tags) -> Value {
    let mix = hash(number);
    // One that was changed is of another year, too.
    let year = if views < CHANGED { 2008 + mix % 10 } else { 2020 + views % 2 };
    let (month, day) = (1 + mix / 10 % 12, 1 + mix / 120 % 28);
    json!({
        "Tags": ranks(number, tags).into_iter().map(tag).collect::<Vec<_>>(),
        "CreationDate": format!("{year}-{month:02}-{day:02}T12:00:00.0000000"),
        "Month": format!("{year}-{month:02}"),
        "Code": format!("code {}", number % CODES),
        "Score": mix / 4000 % 100,
        "ViewCount": views,
        "AnswerCount": mix % 7,
        "@metadata": {"@collection": "Questions"},
    })
}

async fn load(target: &Target, count: u64, tags: &Tags) -> Result<()> {
    let mut connection = Connection::open(&target.address).await?;
    data::delete_database(&mut connection, DATABASE).await?;
    data::create_database(&mut connection, DATABASE).await?;
    for from in (0..count).step_by(PORTION as usize) {
        let documents = (from..count.min(from + PORTION))
            .map(|number| (format!("questions/{number}"), question(number, number % 1000, tags)));
        data::bulk_insert(target, DATABASE, &Set::of(documents), 0).await?;
    }
    Ok(())
}

async fn grow(
    subjects: &mut Subjects,
    name: &str,
    count: u64,
    tags: &Tags,
    report: &mut Report,
) -> Result<()> {
    for index in ["Questions/PerTag", "Questions/PerTagPerMonth"] {
        eprintln!("{name} {index}");
        let entries = catalog::section("indexes", &[index.to_owned()])?;
        let short = index.trim_start_matches("Questions/");
        let (mut built, mut hot, mut cold) = (Vec::new(), Vec::new(), Vec::new());
        for who in subjects.both() {
            let target = subjects.get(who).await?.target.clone();
            load(&target, count, tags).await?;
            let Some(entry) = entries.first() else { continue };
            let (run, stats) = build_in(&target, DATABASE, entry).await?;
            let mut outcome = Outcome::of(who, vec![run]);
            outcome.unit = "docs/s";
            outcome.details = stats;
            built.push(outcome);
            hot.push(change(who, &target, index, count, 0, tags).await?);
            // A tag of a handful of questions, whatever their number.
            let rare = (count / 40).min(TAGS - 1);
            cold.push(change(who, &target, index, count, rare, tags).await?);
        }
        report.add(&format!("{name}-{short}"), built)?;
        report.add(&format!("{name}-{short}-change-hot"), hot)?;
        report.add(&format!("{name}-{short}-change-rare"), cold)?;
    }
    Ok(())
}

/// Milliseconds from a changed question of a tag to the tag's new result.
async fn change(
    who: Who,
    target: &Target,
    index: &str,
    count: u64,
    rank: u64,
    tags: &Tags,
) -> Result<Outcome> {
    let mut connection = Connection::open(&target.address).await?;
    let of_tag: Vec<u64> = (0..count).filter(|number| ranks(*number, tags).contains(&rank)).collect();
    let query = json!({
        "Query": format!("from index '{index}' where Tag = $tag limit 1"),
        "QueryParameters": {"tag": tag(rank)}, "WaitForNonStaleResults": true,
    });
    let path = format!("/databases/{DATABASE}/queries");
    connection.call("POST", &path, query.to_string().as_bytes()).await?;
    let mut took = Vec::new();
    let before = target.usage();
    for number in of_tag.iter().cycle().take(if of_tag.is_empty() { 0 } else { CHANGES as usize }) {
        let document = question(*number, CHANGED + took.len() as u64, tags).to_string();
        let begun = Instant::now();
        let put = format!("/databases/{DATABASE}/docs?id=questions/{number}");
        connection.call("PUT", &put, document.as_bytes()).await?;
        connection.call("POST", &path, query.to_string().as_bytes()).await?;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let run = target.run_since(&before, took.len().max(1) as u64);
    took.sort_by(f64::total_cmp);
    let median = took.get(took.len() / 2).copied().unwrap_or(0.0);
    Ok(Outcome {
        who,
        figure: median,
        unit: "ms",
        runs: took.clone(),
        cpu_us: Some(run.cpu_us()),
        cpu_runs: vec![run.cpu_us()],
        details: json!({"documents": count, "key_size": of_tag.len(), "changes": took.len()}),
    })
}

/// A facet of very many values, and one of some against a query for each.
async fn facets(subjects: &mut Subjects, tags: &Tags, report: &mut Report) -> Result<()> {
    const DOCUMENTS: u64 = 200_000;
    let definition = json!({"collection": "Questions", "definition": {"Name": FACET_INDEX,
        "Maps": ["from q in docs.Questions select new { q.Code, q.Month, q.Score }"]}});
    let (mut many, mut some, mut single) = (Vec::new(), Vec::new(), Vec::new());
    for who in subjects.both() {
        eprintln!("{FACETS}");
        let target = subjects.get(who).await?.target.clone();
        load(&target, DOCUMENTS, tags).await?;
        build_in(&target, DATABASE, &definition).await?;
        let ask = |text: String| json!({"Query": format!("from index '{FACET_INDEX}' {text}")}).to_string();
        let all = [ask("where Score >= 0 select facet(Code)".to_owned())];
        many.push(timed(who, &target, &all, CODES).await?);
        let by_month = [ask("where Score < 50 select facet(Month)".to_owned())];
        some.push(timed(who, &target, &by_month, MONTHS).await?);
        let each: Vec<String> = (0..MONTHS)
            .map(|n| {
                ask(format!("where Score < 50 and Month = '{}-{:02}' limit 0", 2008 + n / 12, 1 + n % 12))
            })
            .collect();
        single.push(timed(who, &target, &each, MONTHS).await?);
    }
    report.add("facet-70000-values", many)?;
    report.add("facet-120-values", some)?;
    report.add("facet-120-queries", single)
}

/// Milliseconds for a list of queries, one after the other.
async fn timed(who: Who, target: &Target, bodies: &[String], values: u64) -> Result<Outcome> {
    const RUNS: usize = 15;
    let mut connection = Connection::open(&target.address).await?;
    let path = format!("/databases/{DATABASE}/queries");
    let mut took = Vec::new();
    let before = target.usage();
    for _ in 0..RUNS {
        let begun = Instant::now();
        for body in bodies {
            connection.call("POST", &path, body.as_bytes()).await?;
        }
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let run = target.run_since(&before, RUNS as u64);
    let answer: Value = serde_json::from_slice(&connection.body)?;
    if bodies.len() == 1 {
        let found = answer["Results"][0]["Values"].as_array().map_or(0, Vec::len) as u64;
        ensure!(found == values, "{found} values instead of {values}");
    }
    took.sort_by(f64::total_cmp);
    Ok(Outcome {
        who,
        figure: took[RUNS / 2],
        unit: "ms",
        runs: took.clone(),
        cpu_us: Some(run.cpu_us()),
        cpu_runs: vec![run.cpu_us()],
        details: json!({"values": values, "requests": bodies.len(), "slowest_ms": round(took[RUNS - 1])}),
    })
}
