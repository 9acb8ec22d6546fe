//! How values compare. Every expectation is what RavenDB 5.4 answered to the same query over the same documents, but where a
//! comment says otherwise.
#![allow(clippy::unwrap_used, reason = "tests")]

mod objects;

use jackdaw_search::{Indexing, Operator, Query, Sort, SortBy, Value};
use objects::{
    Sample, above, all_in, any_of, below, between, descending, exact, indexed, keywords, not, schema, sort,
    term,
};
use serde_json::json;

fn documents() -> Vec<(&'static str, serde_json::Value)> {
    vec![
        ("1", json!({"n": 1, "s": "Abc", "a": ["x", "Y"]})),
        ("2", json!({"n": 2.5, "s": "abd", "a": []})),
        ("3", json!({"n": 10, "s": null, "d": null})),
        ("4", json!({"n": "str", "b": true, "s": "zed 10"})),
        ("5", json!({"s": "zed 9", "e": ""})),
        ("6", json!({"n": 10.0, "d": "2020-01-01"})),
        ("7", json!({"n": "2", "d": "2020-01-01T12:00:00Z"})),
        ("8", json!({"n": 1000.0, "s": "  "})),
        ("9", json!({"n": -2.7, "d": "2020-01-01T12:00:00.000"})),
        ("10", json!({"n": 123_456_789_012_345_678_i64, "d": "12:30:00"})),
        ("11", json!({"n": 1.234_567_890_123_456_8e22})),
        ("12", json!({"n": [1, [2, 3]], "s": "x".repeat(20_000), "o": {"A": "Bc", "N": 1}})),
        ("13", json!({"n": 0.1})),
        ("14", json!({"n": -0.0})),
        ("15", json!({"n": 1.50})),
        ("16", json!({"n": 1e300})),
        ("17", json!({"n": true, "s": "ÀÉ Straße İ"})),
        ("18", json!({"s": "NULL_VALUE", "a": [null, "q"]})),
        ("19", json!({"s": "zzz\nyy"})),
    ]
}

const FIELDS: [&str; 7] = ["n", "s", "a", "b", "d", "e", "o"];

/// The same documents with fields of their own, and with fields that nobody knew beforehand.
fn samples() -> [Sample; 2] {
    [keywords(&FIELDS), keywords(&[])].map(|schema| {
        let sample = Sample::new(schema);
        sample.add(documents());
        sample
    })
}

fn field(name: &str) -> String {
    name.to_owned()
}

#[test]
fn filters_find_what_the_reference_finds() {
    let all_but = |missing: &[i64]| {
        (1..=19).filter(|id| !missing.contains(id)).map(|id| id.to_string()).collect::<Vec<_>>().join(" ")
    };
    let n = || field("n");
    let s = || field("s");
    let cases: Vec<(&str, Query, String)> = [
        ("n = 2", term("n", 2), "2 12"),
        ("n = 10", term("n", 10), "3 6"),
        ("n = 1000", term("n", 1000), "8"),
        ("n = '2'", term("n", "2"), "7 12"),
        ("n = 2.5", term("n", 2.5), "2"),
        ("n = '2.5'", term("n", "2.5"), "2"),
        ("n > 9", above("n", 9), "3 6 8 10 11 16"),
        ("n > 9.5", above("n", 9.5), "3 6 8 10 11 16"),
        ("n = 1", term("n", 1), "1 12 15"),
        ("n = true", term("n", true), "17"),
        ("n = '1000'", term("n", "1000"), "8"),
        ("n = 0", term("n", 0), "13 14"),
        ("n = 0.0", term("n", 0.0), ""),
        ("n < 0", below("n", 0), "9"),
        ("n = -2", term("n", -2), "9"),
        ("n between -3 and -2", between("n", -3, -2), "9"),
        ("n > '1'", above("n", "1"), "2 3 4 6 7 8 10 11 12 15 16 17"),
        ("s > 5", above("s", 5), ""),
        ("n = null", term("n", Value::Null), ""),
        ("n in (2, 10)", any_of("n", [2, 10]), "3 6 7 12"),
        ("n in ('2', '10')", any_of("n", ["2", "10"]), "3 6 7 12"),
        ("n all in (1, 3)", all_in("n", [1, 3]), "12"),
        ("n in ()", any_of::<i64>("n", []), ""),
        ("s = 'null_value'", term("s", "null_value"), "18"),
        ("s = null", term("s", Value::Null), "3"),
        ("a = null", term("a", Value::Null), "18"),
        ("exists(a)", Query::Exists { field: field("a") }, "1 18"),
        ("s = '  '", term("s", "  "), "8"),
        ("s = ''", term("s", ""), ""),
        ("e = ''", term("e", ""), "5"),
        ("e = null", term("e", Value::Null), ""),
        ("d = '2020-01-01T12:00:00'", term("d", "2020-01-01T12:00:00"), "7 9"),
        ("d = '2020-01-01T12:00:00.000'", term("d", "2020-01-01T12:00:00.000"), "7 9"),
        ("d > '2020-01-01T11'", above("d", "2020-01-01T11"), "3"),
        ("d > '2020-01-01T11:00:00'", above("d", "2020-01-01T11:00:00"), "7 9"),
        ("d between times", between("d", "2020-01-01T12:00:00", "2020-01-02"), "7 9"),
        ("d between '2020' and '2021'", between("d", "2020", "2021"), "6 7 9"),
        (
            "startsWith(n, '1')",
            Query::Prefix { field: n(), text: "1".into(), exact: false },
            "1 3 6 8 10 11 12 15 16",
        ),
        (
            "startsWith(d, '2020')",
            Query::Prefix { field: field("d"), text: "2020".into(), exact: false },
            "6 7 9",
        ),
        ("startsWith(s, 'AB')", Query::Prefix { field: s(), text: "AB".into(), exact: false }, "1 2"),
        ("regex(n, '0')", Query::Regex { field: n(), pattern: "0".into() }, "3 6 8 10 11 13 14 16"),
        ("regex(s, '^z')", Query::Regex { field: s(), pattern: "^z".into() }, "4 5 19"),
        ("n >= 3 and n <= 10", between("n", 3, 10), "3 6 12"),
        ("s = 'STRASSE'", term("s", "STRASSE"), ""),
        ("s = 'àé straße İ'", term("s", "àé STRAßE İ"), "17"),
        ("endsWith(n, '0')", Query::Suffix { field: n(), text: "0".into(), exact: false }, "3 6 8 14 16"),
        ("s > 'abc'", above("s", "abc"), "2 4 5 17 18 19"),
        ("s between 'abc' and 'abd'", between("s", "abc", "abd"), "1 2"),
        ("a = 'y'", term("a", "y"), "1"),
        ("a all in ('x', 'y')", all_in("a", ["x", "y"]), "1"),
        ("b = true", term("b", true), "4"),
        ("b = 'true'", term("b", "true"), "4"),
        ("exact(s = 'Abc')", exact("s", "Abc"), ""),
        ("exact(s = 'abc')", exact("s", "abc"), "1"),
        ("o as it was", exact("o", r#"{"A":"Bc","N":1}"#), "12"),
        (
            "search(s, 'zed 9')",
            Query::Search { field: s(), text: "zed*".into(), operator: Operator::Or },
            "4 5",
        ),
        (
            "s = 'abc' or n = 10 and b = true",
            Query::Or(vec![term("s", "abc"), Query::And(vec![term("n", 10), term("b", true)])]),
            "1",
        ),
        ("regex(s, 'ZED')", Query::Regex { field: s(), pattern: "ZED".into() }, "4 5"),
        ("id() = '7'", Query::Key(field("7")), "7"),
        ("id() in ('7', '3', 'x')", Query::Keys(vec![field("7"), field("3"), field("x")]), "3 7"),
        ("startsWith(id(), '1')", Query::KeyPrefix(field("1")), "1 10 11 12 13 14 15 16 17 18 19"),
    ]
    .into_iter()
    .map(|(name, query, expected)| (name, query, expected.to_owned()))
    .chain([
        ("n != 2", not(term("n", 2)), all_but(&[2, 12])),
        ("s != 'abc'", not(term("s", "abc")), all_but(&[1])),
        ("s != null", not(term("s", Value::Null)), all_but(&[3])),
        ("a != null", not(term("a", Value::Null)), all_but(&[18])),
        ("true and not n = 2", Query::And(vec![Query::All, not(term("n", 2))]), all_but(&[2, 12])),
        ("not not n = 2", not(not(term("n", 2))), "2 12".to_owned()),
    ])
    .collect();
    let mut failures = Vec::new();
    for sample in samples() {
        for (name, query, expected) in &cases {
            let found = sample.keys(query, &[]);
            let mut sorted = found.clone();
            sorted.sort_by_key(|key| key.parse::<i64>().unwrap());
            if sorted.join(" ") != *expected {
                failures.push(format!("{name}: {sorted:?}, not {expected}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn orders_are_those_of_the_reference() {
    // Document 11 has its place by its text, 1.2345678901234568e+22, which is not as it was written for the reference.
    let cases: [(&str, Sort, &str); 12] = [
        ("n", sort(SortBy::Text(field("n"))), "5 18 19 14 9 13 1 11 15 3 6 8 10 16 7 2 12 4 17"),
        ("n as long", sort(SortBy::Long(field("n"))), "9 4 5 7 13 14 17 18 19 1 15 2 12 3 6 8 10 11 16"),
        (
            "n as long desc",
            descending(SortBy::Long(field("n"))),
            "11 16 10 8 3 6 12 2 1 15 4 5 7 13 14 17 18 19 9",
        ),
        ("n as double", sort(SortBy::Double(field("n"))), "9 4 5 7 14 17 18 19 13 1 15 2 12 3 6 8 10 11 16"),
        (
            "n as alphaNumeric",
            sort(SortBy::AlphaNumeric(field("n"))),
            "5 18 19 13 1 15 11 16 7 2 12 3 6 8 10 14 9 4 17",
        ),
        ("s", sort(SortBy::Text(field("s"))), "6 7 9 10 11 12 13 14 15 16 8 3 1 2 18 4 5 19 17"),
        ("s desc", descending(SortBy::Text(field("s"))), "17 19 5 4 18 2 1 3 8 6 7 9 10 11 12 13 14 15 16"),
        ("d", sort(SortBy::Text(field("d"))), "1 2 4 5 8 11 12 13 14 15 16 17 18 19 10 6 9 7 3"),
        ("a", sort(SortBy::Text(field("a"))), "2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 19 18 1"),
        ("a desc", descending(SortBy::Text(field("a"))), "1 18 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 19"),
        (
            "s as alphaNumeric",
            sort(SortBy::AlphaNumeric(field("s"))),
            "3 6 7 9 10 11 12 13 14 15 16 8 1 2 18 5 4 19 17",
        ),
        ("nothing", sort(SortBy::Long(field("nothing"))), "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19"),
    ];
    let mut failures = Vec::new();
    // In one segment, and in one for each document.
    for one_by_one in [false, true] {
        for known in [keywords(&FIELDS), keywords(&[])] {
            let sample = Sample::new(known);
            if one_by_one {
                documents().into_iter().for_each(|document| {
                    sample.add([document]);
                });
            } else {
                sample.add(documents());
            }
            for (name, sort, expected) in &cases {
                let found = sample.keys(&Query::All, std::slice::from_ref(sort)).join(" ");
                if found != *expected {
                    failures.push(format!("order by {name} ({one_by_one}): {found}, not {expected}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn terms_are_those_of_the_reference() {
    for sample in samples() {
        let terms = |field: &str| sample.searcher().terms(field, None, 1000).unwrap();
        assert_eq!(
            terms("s"),
            ["  ", "NULL_VALUE", "abc", "abd", "null_value", "zed 10", "zed 9", "zzz\nyy", "àé straße İ"]
        );
        assert_eq!(terms("a"), ["NULL_VALUE", "q", "x", "y"]);
        assert_eq!(terms("e"), ["EMPTY_STRING"]);
        assert_eq!(terms("o"), [r#"{"A":"Bc","N":1}"#]);
        assert_eq!(
            terms("d"),
            [
                "12:30:00",
                "2020-01-01",
                "2020-01-01T12:00:00.0000000",
                "2020-01-01T12:00:00.0000000Z",
                "NULL_VALUE"
            ]
        );
        assert!(terms("n").contains(&"10".to_owned()) && terms("n").contains(&"1.5".to_owned()));
        assert_eq!(sample.searcher().terms("s", Some("abd"), 2).unwrap(), ["null_value", "zed 10"]);
        let mut names = sample.searcher().field_names().unwrap();
        names.sort();
        assert_eq!(names, ["a", "b", "d", "e", "n", "o", "s"]);
    }
}

#[test]
fn fields_that_are_searched_keep_null_and_numbers_whole() {
    let sample = Sample::new(schema(&[("s", indexed(Indexing::Search)), ("a", indexed(Indexing::Exact))]));
    sample.add(documents());
    let terms = |field: &str| sample.searcher().terms(field, None, 1000).unwrap();
    assert_eq!(
        terms("s"),
        ["10", "9", "NULL_VALUE", "abc", "abd", "null", "straße", "value", "yy", "zed", "zzz", "àé", "İ"]
    );
    assert_eq!(terms("a"), ["NULL_VALUE", "Y", "q", "x"]);
    let search = |text: &str, operator| {
        let query = Query::Search { field: field("s"), text: text.to_owned(), operator };
        let mut keys = sample.keys(&query, &[]);
        keys.sort();
        keys.join(" ")
    };
    assert_eq!(search("zed 9", Operator::Or), "4 5");
    assert_eq!(search("zed 9", Operator::And), "5");
    assert_eq!(search("\"zed 10\"", Operator::Or), "4");
    assert_eq!(search("\"10 zed\"", Operator::Or), "");
    assert_eq!(search("ze* YY", Operator::Or), "19 4 5");
    assert_eq!(search("the", Operator::Or), "");
    assert_eq!(sample.keys(&term("s", Value::Null), &[]), ["3"]);
}
