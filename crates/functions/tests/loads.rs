//! What maps ask their host for: documents, compare-exchange values, attachments; and what is in metadata.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod runs;

use std::collections::BTreeMap;

use jackdaw_document::{Context, Value as Json};
use jackdaw_functions::{Attachment, Host, Input, Limits, Map, RuntimeError};
use runs::{Documents, entry_json};

const ORDER: &str = r#"{"Company":"companies/1","Others":["Companies/1","companies/2",null],"Odd":5,"Name":"1","@metadata":{"@collection":"Orders","@counters":["likes"],"@attachments":[{"Name":"a.txt","ContentType":"text/plain","Hash":"h","Size":3}]}}"#;

/// Runs a map over the order and gives its entries and what was asked for.
fn run(map: &str) -> Result<(Vec<String>, Vec<String>), String> {
    let context = Context::new();
    let company = context
        .parse(r#"{"Name":"Tea & Co","Since":"2001-02-03T00:00:00","@metadata":{"@collection":"Companies"}}"#)
        .unwrap();
    let reserved = context.parse(r#"{"N":3,"Names":["a","b"]}"#).unwrap();
    let order = context.parse(ORDER).unwrap();
    let mut host = Documents::none();
    host.documents.insert("companies/1".to_owned(), Input::new(company, "companies/1"));
    host.values.insert("reserved".to_owned(), reserved.root());
    let map = Map::compile(map, &BTreeMap::new()).map_err(|error| error.to_string())?;
    let mut entries = Vec::new();
    map.runner(Limits::default())
        .run(&Input::new(order, "orders/1"), &mut host, &mut |entry| {
            entries.push(entry_json(entry));
            Ok(())
        })
        .map_err(|error| error.to_string())?;
    Ok((entries, host.asked))
}

fn check(map: &str, entry: &str, asked: &[&str]) {
    let (entries, found) = run(map).unwrap();
    assert_eq!(
        (entries, found),
        (vec![entry.to_owned()], asked.iter().map(|id| (*id).to_owned()).collect()),
        "{map}"
    );
}

#[test]
fn documents_are_loaded() {
    check(
        "from o in docs.Orders let c = LoadDocument(o.Company, \"Companies\") select new { c.Name, c.Since.Year, Id = Id(c) }",
        r#"{"Name":"Tea & Co","Year":2001,"Id":"companies/1"}"#,
        &["companies/1 of Companies"],
    );
    check(
        "docs.Orders.Select(o => new { o = o, c = this.LoadDocument(String.Format(\"companies/{0}\", o.Name), \"Companies\") }).Select(this0 => new { V = this0.c != null ? this0.c.Name : ((string) null) })",
        r#"{"V":"Tea & Co"}"#,
        &["companies/1 of Companies"],
    );
    check(
        "from o in docs.Orders select new { Names = LoadDocument(o.Others, \"Companies\").Select(c => c.Name) }",
        r#"{"Names":["Tea & Co",null,null]}"#,
        &["Companies/1 of Companies", "companies/2 of Companies"],
    );
    check(
        "from o in docs.Orders select new { N = 1, V = LoadDocument(o.Missing, \"Companies\").Name }",
        r#"{"N":1}"#,
        &[],
    );
    check(
        "from o in docs.Orders select new { V = NoTracking.LoadDocument(o.Company, \"Companies\").Name }",
        r#"{"V":"Tea & Co"}"#,
        &["companies/1 of Companies"],
    );
    let error =
        run("from o in docs.Orders select new { V = LoadDocument(o.Odd, \"Companies\") }").unwrap_err();
    assert!(error.contains("LoadDocument may only be called with a string"), "{error}");
}

#[test]
fn compare_exchange_values_are_loaded() {
    check(
        "from o in docs.Orders let r = LoadCompareExchangeValue<object>(\"reserved\") select new { r.N, First = r.Names[0] }",
        r#"{"N":3,"First":"a"}"#,
        &["compare exchange reserved"],
    );
    check(
        "from o in docs.Orders select new { V = LoadCompareExchangeValue<object>(new [] { \"reserved\", \"none\" }).Select(r => r.N) }",
        r#"{"V":[3,null]}"#,
        &["compare exchange reserved", "compare exchange none"],
    );
    assert!(
        Map::compile(
            "from o in docs.Orders select new { V = LoadCompareExchangeValue<string>(o.Name) }",
            &BTreeMap::new()
        )
        .unwrap()
        .uses_compare_exchange()
    );
}

#[test]
fn metadata_lists_what_belongs_to_a_document() {
    check(
        "from o in docs.Orders select new { C = CounterNamesFor(o), T = TimeSeriesNamesFor(o), A = AttachmentsFor(o).Select(a => a.Name) }",
        r#"{"C":["likes"],"T":[],"A":["a.txt"]}"#,
        &[],
    );
}

struct WithAttachment;

impl<'d> Host<'d> for WithAttachment {
    fn load_document(&mut self, _: &str, _: Option<&str>) -> Result<Option<Input<'d>>, RuntimeError> {
        Err(RuntimeError::Host("the disk is gone".to_owned()))
    }

    fn compare_exchange(&mut self, _: &str) -> Result<Option<Json<'d>>, RuntimeError> {
        Ok(None)
    }

    fn attachment(&mut self, id: &str, name: &str) -> Result<Option<Attachment<'d>>, RuntimeError> {
        let found = id == "orders/1" && name == "a.txt";
        Ok(found.then_some(Attachment {
            name: "a.txt",
            content_type: "text/plain",
            hash: "h",
            content: b"tea",
        }))
    }
}

#[test]
fn attachments_are_described_and_errors_of_the_host_end_the_run() {
    let context = Context::new();
    let order = context.parse(ORDER).unwrap();
    let mut entries = Vec::new();
    for (map, expected) in [
        (
            "from o in docs.Orders let a = LoadAttachment(o, \"a.txt\") select new { a.Name, a.Size, a.ContentType }",
            Ok(r#"{"Name":"a.txt","Size":3,"ContentType":"text/plain"}"#),
        ),
        (
            "from o in docs.Orders select new { V = LoadAttachments(o).Select(a => a.Size) }",
            Ok(r#"{"V":[3]}"#),
        ),
        ("from o in docs.Orders select new { N = 1, V = LoadAttachment(o, \"b\").Size }", Ok(r#"{"N":1}"#)),
        (
            "from o in docs.Orders select new { V = LoadDocument(o.Company, \"Companies\") }",
            Err("the disk is gone"),
        ),
    ] {
        entries.clear();
        let result = Map::compile(map, &BTreeMap::new()).unwrap().runner(Limits::default()).run(
            &Input::new(order, "orders/1"),
            &mut WithAttachment,
            &mut |entry| {
                entries.push(entry_json(entry));
                Ok(())
            },
        );
        match expected {
            Ok(entry) => assert_eq!(entries, [entry], "{map}"),
            Err(message) => assert_eq!(result.unwrap_err().to_string(), message),
        }
    }
}

#[test]
fn an_error_of_who_takes_the_entries_ends_the_run() {
    let context = Context::new();
    let order = context.parse(ORDER).unwrap();
    let map =
        Map::compile("from o in docs.Orders from n in o.Others select new { n }", &BTreeMap::new()).unwrap();
    let mut count = 0;
    let result = map.runner(Limits::default()).run(
        &Input::new(order, "orders/1"),
        &mut Documents::none(),
        &mut |_| {
            count += 1;
            if count == 2 { Err(RuntimeError::Host("full".to_owned())) } else { Ok(()) }
        },
    );
    assert_eq!((result.unwrap_err().to_string().as_str(), count), ("full", 2));
}
