//! Processor time of typical index maps, in C#, in JavaScript as it is lowered, and in JavaScript run by QuickJS.
//!
//! ```text
//! cargo run --release -p jackdaw-functions --example languages [-- ROUNDS]
//! ```
//!
//! Each map runs over documents made here; of all rounds the fastest is shown, in microseconds of one thread a document.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use jackdaw_document::{Context, Document, Mode};
use jackdaw_functions::{Engine, Input, Limits, Map, NoHost};

/// A map in both languages.
struct Case {
    name: &'static str,
    csharp: &'static str,
    javascript: &'static str,
}

const CASES: [Case; 4] = [
    Case {
        name: "Orders/Totals",
        csharp: "from o in docs.Orders select new { o.Company, Total = o.Lines.Sum(l => l.PricePerUnit * l.Quantity * (1 - l.Discount)) }",
        javascript: "map('Orders', o => ({ Company: o.Company, Total: o.Lines.reduce((sum, l) => sum + l.PricePerUnit * l.Quantity * (1 - l.Discount), 0) }))",
    },
    Case {
        name: "Orders/Lines",
        csharp: "from o in docs.Orders from l in o.Lines select new { o.Company, l.Product, l.Quantity }",
        javascript: "map('Orders', o => o.Lines.map(l => ({ Company: o.Company, Product: l.Product, Quantity: l.Quantity })))",
    },
    Case {
        name: "Users/Search",
        csharp: "from o in docs.Orders select new { Query = new[] { o.Employee, o.Company, o.ShipTo.City, o.ShipTo.Country }, o.OrderedAt, o.Freight }",
        javascript: "map('Orders', o => ({ Query: [o.Employee, o.Company, o.ShipTo.City, o.ShipTo.Country], OrderedAt: o.OrderedAt, Freight: o.Freight }))",
    },
    Case {
        name: "Users/Names",
        csharp: "from o in docs.Orders where o.Freight > 1 select new { Name = (o.ShipTo.City + \" \" + o.ShipTo.Country).ToLower(), Big = o.Lines.Count > 2 ? \"yes\" : \"no\" }",
        javascript: "map('Orders', o => { if (o.Freight > 1) return { Name: (o.ShipTo.City + ' ' + o.ShipTo.Country).toLowerCase(), Big: o.Lines.length > 2 ? 'yes' : 'no' }; })",
    },
];

const DOCUMENTS: u64 = 2_000;

fn order(number: u64) -> String {
    let lines: Vec<String> = (0..number % 5 + 1)
        .map(|line| {
            format!(
                r#"{{"Product":"products/{}-A","ProductName":"Product {line}","PricePerUnit":{}.{:02},"Quantity":{},"Discount":0.{}}}"#,
                number * 7 % 77,
                number % 90 + 1,
                number % 100,
                line + 1,
                number % 2 * 5
            )
        })
        .collect();
    format!(
        r#"{{"Company":"companies/{}-A","Employee":"employees/{}-A","Freight":{}.25,"Lines":[{}],"OrderedAt":"2025-{:02}-{:02}T00:00:00.0000000","RequireAt":"2026-01-01T00:00:00.0000000","ShipTo":{{"City":"City {}","Country":"Country {}","Line1":"Street {number}","PostalCode":"{number}"}},"ShipVia":"shippers/1-A","@metadata":{{"@collection":"Orders"}}}}"#,
        number % 91,
        number % 9,
        number % 40,
        lines.join(","),
        number % 12 + 1,
        number % 28 + 1,
        number % 50,
        number % 20,
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    let rounds: u32 = std::env::args().nth(1).map_or(Ok(20), |rounds| rounds.parse())?;
    let context = Context::new();
    let mut documents = Vec::new();
    for number in 0..DOCUMENTS {
        let mut bytes = Vec::new();
        context.parse_into(order(number).as_bytes(), Mode::Disk, &mut bytes)?;
        documents.push(bytes);
    }
    // An index with additional sources runs in QuickJS.
    let sources = BTreeMap::from([("none".to_owned(), "const nothing = null".to_owned())]);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{:<16}{:>10}{:>10}{:>10}  us/document", "map", "C#", "lowered", "QuickJS")?;
    for case in &CASES {
        let csharp = Map::compile(case.csharp, &BTreeMap::new())?;
        let lowered = Map::compile(case.javascript, &BTreeMap::new())?;
        let script = Map::compile(case.javascript, &sources)?;
        if (lowered.engine(), script.engine()) != (Engine::Program, Engine::QuickJs) {
            return Err(format!("{}: not the engines that are to be compared", case.name).into());
        }
        let mut best = [Duration::MAX; 3];
        for _ in 0..rounds {
            for (best, map) in best.iter_mut().zip([&csharp, &lowered, &script]) {
                *best = (*best).min(run(map, &documents)?);
            }
        }
        let each = best.map(|best| best.as_secs_f64() * 1e6 / DOCUMENTS as f64);
        writeln!(out, "{:<16}{:>10.3}{:>10.3}{:>10.3}", case.name, each[0], each[1], each[2])?;
    }
    Ok(())
}

/// The time of a run over all documents.
fn run(map: &Map, documents: &[Vec<u8>]) -> Result<Duration, Box<dyn Error>> {
    let mut runner = map.runner(Limits::default());
    let mut fields = 0;
    let start = Instant::now();
    for bytes in documents {
        let document = Document::open(bytes)?;
        runner.run(&Input::new(document, "orders/1-A"), &mut NoHost, &mut |entry| {
            fields += entry.fields.len();
            Ok(())
        })?;
    }
    let took = start.elapsed();
    if fields == 0 {
        return Err("a map that returns nothing".into());
    }
    Ok(took)
}
