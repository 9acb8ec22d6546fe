//! Reduces: keys, results, what is known of their fields, and that they can be applied to their own results.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod runs;

use std::collections::BTreeMap;

use jackdaw_functions::{Combine, Reduce};
use runs::reduce_entries;

const BY_TAG: &str = "from r in results group r by r.Tag into g select new { Tag = g.Key, Count = g.Sum(x => x.Count), Most = g.Max(x => x.Most), First = g.First().First }";
const BY_MONTH: &str = "from r in results group r by new { r.Year, M = r.Month } into g select new { g.Key.Year, Month = g.Key.M, Count = g.Sum(x => x.Count) }";

fn fields(reduce: &Reduce) -> Vec<(&str, Combine)> {
    reduce.fields().unwrap().iter().map(|field| (&*field.name, field.combine)).collect()
}

fn keys(reduce: &Reduce) -> Vec<&str> {
    reduce.key_fields().iter().map(|field| &**field).collect()
}

#[test]
fn keys_and_fields_are_known() {
    let compile = |text: &str| Reduce::compile(text, &BTreeMap::new()).unwrap();
    let by_tag = compile(BY_TAG);
    assert_eq!(keys(&by_tag), ["Tag"]);
    assert_eq!(
        fields(&by_tag),
        [
            ("Tag", Combine::Key(0)),
            ("Count", Combine::Sum),
            ("Most", Combine::Max),
            ("First", Combine::Other)
        ]
    );
    let by_month = compile(BY_MONTH);
    assert_eq!(keys(&by_month), ["Year", "Month"]);
    assert_eq!(
        fields(&by_month),
        [("Year", Combine::Key(0)), ("Month", Combine::Key(1)), ("Count", Combine::Sum)]
    );
    let methods = compile(
        "results.GroupBy(r => new { A = r.A, B = r.B }).Select(g => new { g.Key.A, N = Enumerable.Sum(g, r => r.N), D = Enumerable.Sum(g, r => ((decimal) r.D)), C = g.Count() })",
    );
    assert_eq!(keys(&methods), ["A", "B"]);
    assert_eq!(
        fields(&methods),
        [("A", Combine::Key(0)), ("N", Combine::Sum), ("D", Combine::Other), ("C", Combine::Count)]
    );
    assert!(
        keys(&compile("from r in results group r by 1 into g select new { N = g.Sum(x => x.N) }")).is_empty()
    );
    assert_eq!(
        keys(&compile("from r in results group r by r.Address.City into g select new { City = g.Key }")),
        ["Address.City"]
    );
    // With a clause between, nothing is plain.
    let let_between = compile(
        "from r in results group r by r.A into g let n = g.Sum(x => x.N) select new { A = g.Key, N = n }",
    );
    assert_eq!(fields(&let_between), [("A", Combine::Other), ("N", Combine::Other)]);
}

#[test]
fn what_is_no_reduce_is_refused() {
    for text in [
        "from r in results select new { r.A }",
        "from r in results group r by r.A + 1 into g select new { A = g.Key }",
        "from r in results group r by r.A.ToLower() into g select new { A = g.Key }",
        "from r in docs.Users group r by r.A into g select new { A = g.Key }",
    ] {
        assert!(Reduce::compile(text, &BTreeMap::new()).is_err(), "{text}");
    }
}

#[test]
fn results_can_be_reduced_again() {
    let entries = [
        r#"{"Tag":"a","Count":1,"Most":3,"First":"x"}"#,
        r#"{"Tag":"b","Count":1,"Most":null,"First":"y"}"#,
        r#"{"Tag":"a","Count":1,"Most":5.5,"First":"z"}"#,
        r#"{"Tag":null,"Count":1,"Most":1,"First":"z"}"#,
    ];
    let whole = reduce_entries(BY_TAG, &entries).unwrap();
    assert_eq!(
        whole,
        [
            r#"{"Tag":"a","Count":2,"Most":5.5,"First":"x"}"#,
            r#"{"Tag":"b","Count":1,"Most":null,"First":"y"}"#,
            r#"{"Tag":null,"Count":1,"Most":1,"First":"z"}"#,
        ]
    );
    let mut parts = reduce_entries(BY_TAG, &entries[..2]).unwrap();
    parts.extend(reduce_entries(BY_TAG, &entries[2..]).unwrap());
    assert_eq!(reduce_entries(BY_TAG, &parts).unwrap(), whole);
}

#[test]
fn composite_keys_count_null() {
    let entries = [
        r#"{"Year":2020,"Month":1,"Count":1}"#,
        r#"{"Year":2020,"Month":null,"Count":2}"#,
        r#"{"Year":2020,"Count":3}"#,
        r#"{"Year":2020,"Month":1,"Count":10}"#,
    ];
    assert_eq!(
        reduce_entries(BY_MONTH, &entries).unwrap(),
        [r#"{"Year":2020,"Month":1,"Count":11}"#, r#"{"Year":2020,"Month":null,"Count":5}"#]
    );
}

#[test]
fn many_keys_are_found_again() {
    let entries: Vec<String> =
        (0..5000).map(|n| format!(r#"{{"Tag":"{}","Count":1,"Most":{n},"First":0}}"#, n % 1000)).collect();
    let reduced = reduce_entries(BY_TAG, &entries).unwrap();
    assert_eq!(reduced.len(), 1000);
    assert!(reduced.iter().all(|entry| entry.contains(r#""Count":5,"#)));
}

#[test]
fn a_null_condition_after_grouping_is_false() {
    let reduce = "from r in results group r by new { K = r.B } into g where g.Key.K select new { B = g.Key.K, C = g.Sum(x => x.C) }";
    let entries = [r#"{"B":true,"C":1}"#, r#"{"B":null,"C":1}"#, r#"{"B":false,"C":1}"#];
    assert_eq!(reduce_entries(reduce, &entries).unwrap(), [r#"{"B":true,"C":1}"#]);
}

/// As in RavenDB 5.4, where sums of values of no known type are decimals.
#[test]
fn sums_divide_with_a_fraction() {
    let reduce = "from r in results group r by r.K into g select new { K = g.Key, Q = g.Sum(x => x.Q), N = g.Sum(x => x.N), Average = g.Sum(x => x.Q) / g.Sum(x => x.N), Half = g.Sum(x => (int)x.Q) / 2 }";
    let entries = [r#"{"K":"k","Q":2,"N":1}"#, r#"{"K":"k","Q":3,"N":1}"#, r#"{"K":"l","Q":4,"N":2}"#];
    assert_eq!(
        reduce_entries(reduce, &entries).unwrap(),
        [r#"{"K":"k","Q":5,"N":2,"Average":2.5,"Half":2}"#, r#"{"K":"l","Q":4,"N":2,"Average":2,"Half":2}"#]
    );
}
