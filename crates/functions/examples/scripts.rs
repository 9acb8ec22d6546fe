//! How long scripts take, in processor time of this thread: patches and index functions over an order of Northwind's size.
//!
//!     cargo run --release -p jackdaw-functions --example scripts

use std::collections::BTreeMap;
use std::error::Error;

use jackdaw_document::{self as document, Context, Document, Mode};
use jackdaw_functions::javascript::{HostError, PatchHost, PatchScript, ScriptLimits};
use jackdaw_functions::{Input, Limits, Map, NoHost, Reduce};

const ORDER: &str = r#"{"Company":"companies/85-A","Employee":"employees/5-A","Freight":32.38,"Lines":[{"Discount":0.0,"PricePerUnit":14.00,"Product":"products/11-A","ProductName":"Queso Cabrales","Quantity":12},{"Discount":0.0,"PricePerUnit":9.80,"Product":"products/42-A","ProductName":"Singaporean Hokkien Fried Mee","Quantity":10},{"Discount":0.0,"PricePerUnit":34.80,"Product":"products/72-A","ProductName":"Mozzarella di Giovanni","Quantity":5}],"OrderedAt":"1996-07-04T00:00:00.0000000","RequireAt":"1996-08-01T00:00:00.0000000","ShipTo":{"City":"Reims","Country":"France","Line1":"59 rue de l'Abbaye","Line2":null,"Location":{"Latitude":49.255958199999988,"Longitude":4.1547448},"PostalCode":"51100","Region":null},"ShipVia":"shippers/3-A","ShippedAt":"1996-07-16T00:00:00.0000000","@metadata":{"@collection":"Orders"}}"#;

struct Nothing;

impl PatchHost for Nothing {
    fn load(&mut self, _: &str, give: &mut dyn FnMut(Option<&Input<'_>>)) -> Result<(), HostError> {
        give(None);
        Ok(())
    }

    fn compare_exchange(
        &mut self,
        _: &str,
        give: &mut dyn FnMut(Option<document::Value<'_>>),
    ) -> Result<(), HostError> {
        give(None);
        Ok(())
    }

    fn put(&mut self, id: &str, _: Document<'_>, _: Option<&str>) -> Result<String, HostError> {
        Ok(id.to_owned())
    }

    fn delete(&mut self, _: &str, _: Option<&str>) -> Result<bool, HostError> {
        Ok(false)
    }
}

/// Nanoseconds that this thread has run.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn measure(
    name: &str,
    count: u32,
    mut work: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    for _ in 0..count / 10 {
        work()?;
    }
    let start = processor_time();
    for _ in 0..count {
        work()?;
    }
    let each = (processor_time() - start) as f64 / f64::from(count) / 1000.0;
    println!("{name:40} {each:8.2} µs {:10.0}/s", 1e6 / each);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new();
    let order = context.parse(ORDER)?;
    let input = Input { collection: "Orders", ..Input::new(order, "orders/1") };
    for (name, text) in [
        ("patch: nothing", ""),
        ("patch: one property", "this.Freight = this.Freight + 1"),
        ("patch: lines", "this.Lines.forEach(l => { l.Total = l.Quantity * l.PricePerUnit })"),
    ] {
        let script = PatchScript::compile(text)?;
        let mut memory = Context::new();
        measure(name, 20_000, || {
            script.run(&input, None, &ScriptLimits::PATCH, &mut Nothing, &memory, Mode::Memory)?;
            memory.reset();
            Ok(())
        })?;
    }
    let mut number = 0;
    measure("patch: a new text each time", 2_000, || {
        number += 1;
        let script = PatchScript::compile(&format!("this.Freight = {number}"))?;
        script.run(&input, None, &ScriptLimits::PATCH, &mut Nothing, &Context::new(), Mode::Memory)?;
        Ok(())
    })?;
    for (name, text) in [
        ("map: JavaScript, two fields", "map('Orders', o => ({ Company: o.Company, City: o.ShipTo.City }))"),
        ("map: C#, the same", "from o in docs.Orders select new { o.Company, o.ShipTo.City }"),
        (
            "map: JavaScript, a total",
            "map('Orders', o => ({ Company: o.Company, Total: o.Lines.reduce((a, l) => a + l.Quantity * l.PricePerUnit, 0) }))",
        ),
        (
            "map: C#, the same",
            "from o in docs.Orders select new { o.Company, Total = o.Lines.Sum(l => l.Quantity * l.PricePerUnit) }",
        ),
    ] {
        let map = Map::compile(text, &BTreeMap::new())?;
        let mut runner = map.runner(Limits::default());
        measure(name, 20_000, || Ok(runner.run(&input, &mut NoHost, &mut |_| Ok(()))?))?;
    }
    let reduce = Reduce::compile(
        "groupBy(x => x.k).aggregate(g => ({ k: g.key, n: g.values.reduce((a, b) => a + b.n, 0) }))",
        &BTreeMap::new(),
    )?;
    let entry = context.parse(r#"{"k":"a","n":1}"#)?;
    let mut runner = reduce.runner(Limits::default());
    measure("reduce: JavaScript, 100 entries", 1_000, || {
        Ok(runner.run(&mut std::iter::repeat_n(entry, 100), &mut |_| Ok(()))?)
    })?;
    Ok(())
}
