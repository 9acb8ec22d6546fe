//! How long parsing and printing take: `cargo run --release -p jackdaw-rql --example speed`.
//!
//! With a number, the first query is parsed that often and nothing else is done, for counting instructions:
//! `valgrind --tool=callgrind target/release/examples/speed 10000`.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Queries of applications, from the common to the long.
const QUERIES: &[(&str, &str)] = &[
    ("page", "from index 'Packages/Search' where Section = $section order by Size as long limit $page, 25"),
    ("collection", "from 'Users'"),
    (
        "conditions",
        "from 'Users' where Age >= $p0 and (Name = $p1 or startsWith(Name, $p2)) and true and not exists(Deleted) order by Name, Age as long desc limit $p3, $p4",
    ),
    (
        "projection",
        "from index 'Orders/Totals' as o where o.Company = $p0 load o.Company as c select o.Total, c.Name as Company, o.Lines[].Product as Products include o.Employee",
    ),
    (
        "facets",
        "from index 'Packages/Search' where search(Description, $word) select facet(Section), facet(Size < 10000, Size >= 10000 and Size < 100000, Size >= 100000) as Sizes, facet(Priority, sum(Size) as Total, $options)",
    ),
    (
        "script",
        "declare function total(o) { return o.Lines.reduce((sum, line) => sum + line.Price * line.Quantity, 0); } from 'Orders' as o where o.ShippedAt = null select { Id: id(o), Total: total(o), Name: `${o.First} ${o.Last}` }",
    ),
];

/// Parses measured together: long enough for the clock, short enough to fall between two interruptions.
const BATCH: u32 = 200;

fn main() {
    if let Some(count) = std::env::args().nth(1).and_then(|count| count.parse::<u32>().ok()) {
        for _ in 0..count {
            let _ = black_box(jackdaw_rql::parse(black_box(QUERIES[0].1)));
        }
        return;
    }
    println!("{:12} {:>6} {:>10} {:>10} {:>10}", "query", "bytes", "parse ns", "print ns", "MB/s");
    for (name, text) in QUERIES {
        let parse = fastest(|| drop(black_box(jackdaw_rql::parse(black_box(text)))));
        let print = match jackdaw_rql::parse(text) {
            Ok(query) => fastest(|| drop(black_box(query.to_string()))),
            Err(error) => {
                println!("{error}");
                continue;
            }
        };
        let speed = text.len() as f64 / parse.as_nanos() as f64 * 1000.0;
        println!("{name:12} {:6} {:10} {:10} {speed:10.0}", text.len(), parse.as_nanos(), print.as_nanos());
    }
}

/// The time of one call in the fastest of many batches.
fn fastest(mut work: impl FnMut()) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..200 {
        let start = Instant::now();
        (0..BATCH).for_each(|_| work());
        best = best.min(start.elapsed() / BATCH);
    }
    best
}
