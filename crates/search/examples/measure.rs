//! Builds an index of made-up packages and times its queries: `cargo run --release -p jackdaw-search --example measure [entries]`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, run by hand")]

use std::time::{Duration, Instant};

use jackdaw_search::{
    Bound, Entry, FieldOptions, FieldValue, Index, Indexing, Operator, Query, Schema, Sort, SortBy, Value,
};

fn main() {
    let count: u64 = std::env::args().nth(1).map_or(200_000, |text| text.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let mut schema = Schema::default();
    for name in ["Package", "Section", "Maintainer", "Size", "Price", "Date"] {
        schema.fields.insert(name.to_owned(), FieldOptions::default());
    }
    let searched = FieldOptions { indexing: Indexing::Search, ..FieldOptions::default() };
    schema.fields.insert("Description".to_owned(), searched);
    let index = Index::open(directory.path(), schema).unwrap();
    let mut state = 1u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let start = Instant::now();
    let mut writer = index.writer(128 << 20).unwrap();
    for number in 0..count {
        let key = format!("packages/{number}");
        let package = format!("Package-{number}");
        let section = format!("section {}", random(60));
        let maintainer = format!("Maintainer {}", random(5000));
        let price = format!("{}.{}", random(500), random(99) + 1);
        let date =
            format!("20{:02}-{:02}-{:02}T10:00:00.0000000Z", random(20), random(12) + 1, random(28) + 1);
        let description: String = (0..12)
            .map(|_| {
                let a = random(3000);
                let b = random(3000);
                format!("word{} ", a * b / 3000)
            })
            .collect();
        let fields = [
            ("Package", FieldValue::Text(&package)),
            ("Section", FieldValue::Text(&section)),
            ("Maintainer", FieldValue::Text(&maintainer)),
            ("Size", FieldValue::Long(random(1_000_000) as i64)),
            ("Price", FieldValue::Double { value: price.parse().unwrap(), text: &price }),
            ("Date", FieldValue::Text(&date)),
            ("Description", FieldValue::Text(&description)),
        ];
        writer.add(&Entry { key: &key, fields: &fields, stored: b"", references: &[], boost: 1.0 }).unwrap();
    }
    writer.commit(b"1").unwrap();
    let took = start.elapsed();
    println!("{count} entries of 7 fields in {took:?}: {:.0} a second", count as f64 / took.as_secs_f64());
    drop(writer);
    let start = Instant::now();
    index.sync().unwrap();
    println!(
        "sync {:?}, {} bytes, {} segments",
        start.elapsed(),
        index.size_bytes().unwrap(),
        index.searcher().segments_count()
    );
    let mut commits = Vec::new();
    for number in 0..50 {
        let start = Instant::now();
        let mut writer = index.writer(128 << 20).unwrap();
        let key = format!("packages/{number}");
        writer.delete(&key).unwrap();
        let fields = [("Package", FieldValue::Text(&key)), ("Size", FieldValue::Long(number))];
        writer.add(&Entry { key: &key, fields: &fields, stored: b"", references: &[], boost: 1.0 }).unwrap();
        writer.commit(b"2").unwrap();
        commits.push(start.elapsed());
    }
    commits.sort();
    println!("an update, visible: median {:?}, slowest {:?}", commits[25], commits[49]);
    index.quiesce().unwrap();
    let searcher = index.searcher();
    println!("{} segments", searcher.segments_count());
    let field = |name: &str| name.to_owned();
    let text = |value: &str| Value::Text(value.to_owned());
    let term = |name: &str, value| Query::Term { field: field(name), value, exact: false };
    let search =
        |text: &str, operator| Query::Search { field: field("Description"), text: text.to_owned(), operator };
    let between = |name: &str, low, high| Query::Range {
        field: field(name),
        low: Bound::Included(low),
        high: Bound::Included(high),
        exact: false,
    };
    let by_size = vec![Sort { by: SortBy::Long(field("Size")), descending: false }];
    let by_name = vec![Sort { by: SortBy::Text(field("Package")), descending: true }];
    let cases: Vec<(&str, Query, Vec<Sort>, usize, usize)> = vec![
        ("exact", term("Package", text("package-777")), vec![], 0, 25),
        ("section, 25", term("Section", text("section 7")), vec![], 0, 25),
        ("section, count", term("Section", text("section 7")), vec![], 0, 0),
        ("section, by size", term("Section", text("section 7")), by_size.clone(), 0, 25),
        ("section, by size, page 40", term("Section", text("section 7")), by_size.clone(), 1000, 25),
        ("section, by name desc", term("Section", text("section 7")), by_name.clone(), 0, 25),
        (
            "range, by size",
            between("Size", Value::Long(100_000), Value::Long(300_000)),
            by_size.clone(),
            0,
            25,
        ),
        ("range, by name", between("Size", Value::Long(100_000), Value::Long(300_000)), by_name, 0, 25),
        ("all by size, deep", Query::All, by_size, 50_000, 25),
        ("double range, count", between("Price", Value::Double(20.0), Value::Double(60.0)), vec![], 0, 0),
        ("long equality", term("Size", Value::Long(777)), vec![], 0, 25),
        ("dates", between("Date", text("2010-01-01"), text("2011-01-01")), vec![], 0, 25),
        ("search", search("word7", Operator::Or), vec![], 0, 25),
        ("search two and", search("word7 word12", Operator::And), vec![], 0, 25),
        ("search two or", search("word7 word12", Operator::Or), vec![], 0, 25),
        (
            "prefix",
            Query::Prefix { field: field("Package"), text: "package-12".to_owned(), exact: false },
            vec![],
            0,
            25,
        ),
        ("regex", Query::Regex { field: field("Package"), pattern: "99$".to_owned() }, vec![], 0, 25),
    ];
    for (name, query, sorts, skip, take) in cases {
        let start = Instant::now();
        let total = searcher.search(&query, &sorts, skip, take, false).unwrap().total;
        let first = start.elapsed();
        let mut times = Vec::new();
        let begin = Instant::now();
        while times.len() < 2000 && begin.elapsed() < Duration::from_millis(300) {
            let start = Instant::now();
            searcher.search(&query, &sorts, skip, take, false).unwrap();
            times.push(start.elapsed());
        }
        times.sort();
        println!("{name:28} {total:8} hits, first {first:10.1?}, median {:10.1?}", times[times.len() / 2]);
    }
}
