//! Facets against counting by hand.
#![allow(clippy::unwrap_used, reason = "tests")]

mod objects;

use std::collections::BTreeMap;

use jackdaw_search::{
    Bound, FacetKind, FacetRange, FacetRequest, FacetResult, FacetSort, FieldOptions, Indexing, Query, Value,
};
use objects::{Sample, above, indexed, keywords, schema, term};
use serde_json::json;

fn terms(field: &str) -> FacetRequest {
    sorted(field, FacetSort::ValueAscending, 0, usize::MAX)
}

fn sorted(field: &str, sort: FacetSort, start: usize, page_size: usize) -> FacetRequest {
    let field = field.to_owned();
    let kind = FacetKind::Terms { field, sort, start, page_size, include_remaining_terms: true };
    FacetRequest { kind, aggregations: Vec::new() }
}

fn counts(result: &FacetResult) -> Vec<(String, u64)> {
    result.values.iter().map(|value| (result.term(value).to_owned(), value.count)).collect()
}

fn text(terms: &[(&str, u64)]) -> Vec<(String, u64)> {
    terms.iter().map(|(term, count)| ((*term).to_owned(), *count)).collect()
}

#[test]
fn pages_and_what_remains_are_those_of_the_reference() {
    let sample = Sample::new(schema(&[
        ("t", indexed(Indexing::Search)),
        ("k", FieldOptions::default()),
        ("p", FieldOptions::default()),
    ]));
    let texts = [
        "quick brown fox",
        "the quick red fox jumps",
        "foo-bar baz",
        "bar foo",
        "brown bread and quick soup",
        "fox",
        "Quick Brown",
        "quack brawn",
        "john@x.com wrote: don't",
        "a b c d e f",
        "quickly",
    ];
    let keys: Vec<String> = (1..=texts.len()).map(|number| number.to_string()).collect();
    for (text, key) in texts.iter().zip(&keys) {
        sample.add([(key.as_str(), json!({"t": text, "k": text, "p": key.parse::<i64>().unwrap()}))]);
    }
    let searcher = sample.searcher();
    let requests = [
        sorted("t", FacetSort::CountDescending, 1, 3),
        sorted("t", FacetSort::CountAscending, 0, 3),
        sorted("k", FacetSort::CountDescending, 0, 2),
        sorted("k", FacetSort::ValueDescending, 0, 1),
    ];
    let results = searcher.facets(&Query::All, &requests).unwrap();
    assert_eq!(counts(&results[0]), text(&[("brown", 3), ("fox", 3), ("bar", 2)]));
    assert_eq!((results[0].remaining_hits, results[0].remaining_terms_count), (18, 17));
    assert_eq!(results[0].remaining_terms[..3], ["foo", "b", "baz"]);
    assert_eq!(counts(&results[1]), text(&[("b", 1), ("baz", 1), ("brawn", 1)]));
    assert_eq!((results[1].remaining_hits, results[1].remaining_terms_count), (27, 18));
    assert_eq!(counts(&results[2]), text(&[("a b c d e f", 1), ("bar foo", 1)]));
    assert_eq!(results[2].remaining_terms_count, 9);
    assert_eq!(counts(&results[3]), text(&[("the quick red fox jumps", 1)]));

    let number = |low, high| FacetRange { field: "p".to_owned(), low, high };
    let ranges = FacetRequest {
        kind: FacetKind::Ranges(vec![
            number(Bound::Open, Bound::Excluded(Value::Long(3))),
            number(Bound::Included(Value::Long(3)), Bound::Excluded(Value::Long(5))),
            number(Bound::Excluded(Value::Long(100)), Bound::Open),
        ]),
        aggregations: vec!["p".to_owned()],
    };
    let result = searcher.facets(&Query::All, &[ranges]).unwrap().remove(0);
    let found: Vec<(u64, f64)> =
        result.values.iter().map(|value| (value.count, value.aggregates[0].sum)).collect();
    assert_eq!(found, [(2, 3.0), (2, 7.0), (0, 0.0)]);

    let request = FacetRequest { aggregations: vec!["p".to_owned()], ..terms("t") };
    let result = searcher.facets(&above("p", 4), &[request]).unwrap().remove(0);
    let first = &result.values[0];
    assert_eq!((result.term(first), first.count), ("b", 1));
    assert_eq!((first.aggregates[0].sum, first.aggregates[0].max), (10.0, 10.0));
}

#[test]
fn facets_equal_counting_by_hand() {
    for (known, seed) in [(true, 1), (false, 2), (true, 3)] {
        let sample = Sample::new(if known { keywords(&["a", "b", "n", "x"]) } else { keywords(&[]) });
        let mut random = objects::Random::new(seed);
        let mut documents: BTreeMap<String, (Vec<String>, i64, f64)> = BTreeMap::new();
        for _ in 0..6 {
            let mut writer = sample.index.writer(objects::MEMORY).unwrap();
            for _ in 0..400 {
                let key = format!("k/{}", random.below(1500));
                let tags: Vec<String> =
                    (0..random.below(4)).map(|_| format!("tag {}", random.below(50))).collect();
                let number = random.below(100) as i64;
                let fraction = random.below(1000) as f64 / 8.0;
                let mut distinct = tags.clone();
                distinct.sort();
                distinct.dedup();
                writer.delete(&key).unwrap();
                let object =
                    json!({"a": tags, "b": format!("Group {}", number % 7), "n": number, "x": fraction});
                objects::with_entry(&key, &object, |entry| writer.add(entry).unwrap());
                documents.insert(key, (distinct, number, fraction));
            }
            writer.commit(b"").unwrap();
        }
        let searcher = sample.searcher();
        assert_eq!(searcher.entries_count(), documents.len() as u64);
        for (query, wanted) in [
            (Query::All, Box::new(|_: i64| true) as Box<dyn Fn(i64) -> bool>),
            (above("n", 60), Box::new(|number| number > 60)),
            (term("b", "group 3"), Box::new(|number| number % 7 == 3)),
            (Query::None, Box::new(|_| false)),
        ] {
            let chosen: Vec<_> = documents.values().filter(|(_, number, _)| wanted(*number)).collect();
            let mut tags: BTreeMap<String, u64> = BTreeMap::new();
            let mut groups: BTreeMap<String, (u64, f64, f64)> = BTreeMap::new();
            for (names, number, fraction) in &chosen {
                names.iter().for_each(|name| *tags.entry(name.clone()).or_default() += 1);
                let group = groups.entry(format!("group {}", number % 7)).or_insert((0, 0.0, f64::INFINITY));
                *group = (group.0 + 1, group.1 + fraction, group.2.min(*fraction));
            }
            let range = |low: f64, high: f64| FacetRange {
                field: "x".to_owned(),
                low: Bound::Included(Value::Double(low)),
                high: Bound::Excluded(Value::Double(high)),
            };
            let requests = [
                terms("a"),
                FacetRequest { aggregations: vec!["x".to_owned()], ..terms("b") },
                FacetRequest {
                    kind: FacetKind::Ranges(vec![range(0.0, 10.0), range(10.0, 99.5), range(5.0, 5.0)]),
                    aggregations: vec![],
                },
            ];
            let results = searcher.facets(&query, &requests).unwrap();
            assert_eq!(counts(&results[0]), tags.into_iter().collect::<Vec<_>>());
            let found: Vec<_> = results[1]
                .values
                .iter()
                .map(|value| {
                    (
                        results[1].term(value).to_owned(),
                        (value.count, value.aggregates[0].sum, value.aggregates[0].min),
                    )
                })
                .collect();
            assert_eq!(found, groups.into_iter().collect::<Vec<_>>());
            let inside = |low, high| {
                chosen.iter().filter(|(_, _, fraction)| *fraction >= low && *fraction < high).count() as u64
            };
            let found: Vec<u64> = results[2].values.iter().map(|value| value.count).collect();
            assert_eq!(found, [inside(0.0, 10.0), inside(10.0, 99.5), 0]);
        }
    }
}
