//! Texts and documents made to hurt: what they cost is bounded, and they end in an error that says why.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use jackdaw_document::Context;
use jackdaw_functions::{Input, Limits, Map, NoHost, Reduce, RuntimeError};

fn compile(text: &str) -> Result<Map, String> {
    Map::compile(text, &BTreeMap::new()).map_err(|error| error.to_string())
}

/// Compiles a map whose one field is the expression, and runs it where that is allowed.
fn try_expression(expression: &str) {
    let limits = Limits { steps_max: 10_000, ..Limits::default() };
    if let Ok(map) = compile(&format!("from x in docs.Xs select new {{ V = {expression} }}")) {
        let context = Context::new();
        let document = context.parse(r#"{"A":{"A":{"A":1}},"B":[1,2,3]}"#).unwrap();
        let _ = map.runner(limits).run(&Input::new(document, "xs/1"), &mut NoHost, &mut |_| Ok(()));
    }
}

#[test]
fn deep_texts_are_refused_or_run() {
    for depth in [50, 150, 199, 250, 5_000, 50_000] {
        for (open, middle, close) in [
            ("(", "1", ")"),
            ("-", "1", ""),
            ("!", "true", ""),
            ("new { A = ", "1", " }"),
            ("new [] { ", "1", " }"),
            ("x.B.Select(y => ", "1", ")"),
            ("x.B.Where(y => true ? ", "true", " : false)"),
            ("true ? 1 : ", "2", ""),
            ("1 + (", "1", ")"),
            ("1 ?? ", "1", ""),
            ("x.B[", "0", "]"),
            ("(int)", "1", ""),
            ("$\"{", "1", "}\""),
            ("from y in x.B select ", "1", ""),
        ] {
            // Deep texts of the costly kinds are no deeper in what they test.
            if depth > 5_000 && open.len() > 2 {
                continue;
            }
            try_expression(&format!("{}{middle}{}", open.repeat(depth), close.repeat(depth)));
        }
    }
    let error =
        compile(&format!("from x in docs.Xs select new {{ V = {}1{} }}", "(".repeat(500), ")".repeat(500)));
    assert!(error.unwrap_err().contains("200 deep"));
}

#[test]
fn long_chains_are_refused_or_run() {
    for length in [100, 700, 3_000, 20_000] {
        try_expression(&vec!["1"; length].join(" + "));
        try_expression(&format!("x{}", ".A".repeat(length)));
        try_expression(&format!("x{}", "?.A".repeat(length)));
        try_expression(&format!("x.B{}", ".Skip(0)".repeat(length)));
        try_expression(&format!("x.B{}", ".OrderBy(y => y).ThenBy(y => y)".repeat(length.min(1_000))));
        try_expression(&format!(
            "new {{ {} }}",
            (0..length).map(|n| format!("A{n} = {n}, ")).collect::<String>()
        ));
    }
    let fields: String = (0..2_000).map(|n| format!("A{n} = x.A{n}, ")).collect();
    assert_eq!(
        compile(&format!("from x in docs.Xs select new {{ {fields} }}"))
            .unwrap()
            .field_names()
            .unwrap()
            .len(),
        2_000
    );
}

#[test]
fn texts_of_any_size_and_kind_end() {
    let huge = format!("from x in docs.Xs select new {{ A = \"{}\" }}", "a".repeat(2 << 20));
    assert!(compile(&huge).unwrap_err().contains("bytes"));
    for text in [
        "",
        ";",
        "from",
        "docs",
        "from x in",
        "docs.",
        "docs.Xs",
        "docs.Select()",
        "from x in docs",
        "\u{0}",
        "from x in docs.X select \u{1F600}",
    ] {
        assert!(compile(text).is_err() || text == "docs.Xs" || text == "docs", "{text:?}");
    }
    let garbage: String = "from x in docs.Xs select new { "
        .chars()
        .chain("<>(){}[]=>&&||??..,;\"'@$".chars().cycle().take(20_000))
        .collect();
    assert!(compile(&garbage).is_err());
    assert!(Reduce::compile("from r in results group r by", &BTreeMap::new()).is_err());
}

fn limited(text: &str, limits: Limits) -> RuntimeError {
    let context = Context::new();
    let numbers: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let document = context.parse(format!(r#"{{"N":[{}]}}"#, numbers.join(","))).unwrap();
    let map = compile(text).unwrap();
    map.runner(limits).run(&Input::new(document, "xs/1"), &mut NoHost, &mut |_| Ok(())).unwrap_err()
}

#[test]
fn endless_work_ends() {
    let limits = Limits { steps_max: 100_000, ..Limits::default() };
    for text in [
        "from x in docs.Xs from a in x.N from b in x.N from c in x.N select new { a, b, c }",
        "docs.Xs.Select(x => new { V = x.N.Select(a => x.N.Sum(b => x.N.Count(c => c == a + b))) })",
        "docs.Xs.Select(x => new { V = Enumerable.Range(0, 1000000).Select(a => a).Count() })",
        "docs.Xs.Select(x => new { V = x.N.Join(x.N, a => 1, b => 1, (a, b) => a) })",
    ] {
        assert!(matches!(limited(text, limits), RuntimeError::Limit { what: "steps", .. }), "{text}");
    }
}

#[test]
fn memory_is_bounded() {
    let limits = Limits { memory_bytes_max: 8 << 20, ..Limits::default() };
    for text in [
        "docs.Xs.Select(x => new { V = x.N.Aggregate(\"abcdefgh\", (a, b) => a + a) })",
        "docs.Xs.Select(x => new { V = x.N.Aggregate(x.N, (a, b) => a.Concat(a)) })",
        "docs.Xs.Select(x => new { V = x.N.Aggregate(\"ab\", (a, b) => a.Replace(\"a\", \"aaaa\")) })",
        "docs.Xs.Select(x => new { V = x.N.Aggregate(\"ab\", (a, b) => string.Join(a, x.N)) })",
        "docs.Xs.Select(x => new { V = x.N.Aggregate(\"ab\", (a, b) => $\"{a}{a}{a}\") })",
        "from x in docs.Xs from a in x.N from b in x.N from c in x.N select new { a, b, c }",
    ] {
        let error = limited(text, limits);
        assert!(matches!(error, RuntimeError::Limit { what: "bytes of memory", .. }), "{text}: {error}");
    }
    let few = Limits { entries_max: 10, ..Limits::default() };
    let error = limited("from x in docs.Xs from a in x.N select new { a }", few);
    assert!(matches!(error, RuntimeError::Limit { what: "entries", limit: 10 }));
}

#[test]
fn values_deeper_than_the_stack_are_harmless() {
    let context = Context::new();
    let numbers: Vec<String> = (0..200_000).map(|n| n.to_string()).collect();
    let document = context.parse(format!(r#"{{"N":[{}]}}"#, numbers.join(","))).unwrap();
    for text in [
        "docs.Xs.Select(x => new { V = new [] { x.N.Aggregate(new [] { 1 }, (a, b) => new [] { a }), x.N.Aggregate(new [] { 1 }, (a, b) => new [] { a }) }.Distinct().Count() })",
        "docs.Xs.Select(x => new { V = x.N.Aggregate(new [] { 1 }, (a, b) => new [] { a }).ToString() })",
    ] {
        let map = compile(text).unwrap();
        map.runner(Limits::default())
            .run(&Input::new(document, "xs/1"), &mut NoHost, &mut |_| Ok(()))
            .unwrap();
    }
}

#[test]
fn patterns_are_bounded() {
    for pattern in ["(a{1000}){1000}", "(?=a)", "(a)\\\\1", "["] {
        let text = format!("docs.Xs.Select(x => new {{ V = Regex.IsMatch(x.A, \"{pattern}\") }})");
        assert!(
            compile(&text).unwrap_err().contains("the pattern of `Regex.IsMatch` is not supported"),
            "{pattern}"
        );
    }
}
