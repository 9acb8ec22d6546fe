//! Random entries and random queries against a plain evaluation of every entry. A failure prints its seed.
#![allow(clippy::unwrap_used, reason = "tests")]

mod objects;

use std::collections::BTreeMap;

use jackdaw_search::{Bound, Query, Sort, SortBy, Value};
use objects::{MEMORY, Random, Sample, keywords, with_entry};
use serde_json::{Value as Json, json};

const FIELDS: [&str; 3] = ["a", "b", "c"];

fn scalar(random: &mut Random) -> Json {
    match random.below(9) {
        0 => Json::Null,
        1 => json!(random.below(2) == 0),
        2..=4 => json!(random.below(12) as i64 - 4),
        5 => json!((random.below(80) as f64 - 20.0) / 8.0),
        6 => json!(["", "NULL", "A", "10", "2", "-3"][random.below(6) as usize]),
        _ => json!(["Abc", "abd", "zed 9", "ZED 10", "é", "aBC"][random.below(6) as usize]),
    }
}

fn object(random: &mut Random) -> Json {
    let mut object = serde_json::Map::new();
    for field in FIELDS {
        match random.below(6) {
            0 => {}
            1 => {
                let values: Vec<Json> = (0..random.below(4)).map(|_| scalar(random)).collect();
                object.insert(field.to_owned(), values.into());
            }
            _ => {
                object.insert(field.to_owned(), scalar(random));
            }
        }
    }
    object.into()
}

fn values<'a>(object: &'a Json, field: &str) -> Vec<&'a Json> {
    match object.get(field) {
        None => Vec::new(),
        Some(Json::Array(values)) => values.iter().collect(),
        Some(value) => vec![value],
    }
}

/// The term of a value.
fn text(value: &Json) -> String {
    match value {
        Json::Null => "NULL_VALUE".to_owned(),
        Json::String(text) if text.is_empty() => "EMPTY_STRING".to_owned(),
        Json::String(text) => text.to_lowercase(),
        Json::Number(number) if number.is_f64() => {
            let text = number.to_string();
            text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
        }
        other => other.to_string(),
    }
}

fn double(value: &Json) -> Option<f64> {
    value.as_f64()
}

fn long(value: &Json) -> Option<i64> {
    value.as_f64().map(|value| value as i64)
}

fn query_text(value: &Value) -> String {
    match value {
        Value::Null => "NULL_VALUE".to_owned(),
        Value::Text(text) if text.is_empty() => "EMPTY_STRING".to_owned(),
        Value::Text(text) => text.to_lowercase(),
        Value::Long(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
    }
}

fn evaluate(query: &Query, object: &Json) -> bool {
    let any = |field: &str, holds: &dyn Fn(&Json) -> bool| values(object, field).into_iter().any(holds);
    match query {
        Query::All => true,
        Query::None => false,
        Query::Term { field, value, .. } => any(field, &|found| match value {
            Value::Long(value) => long(found) == Some(*value),
            Value::Double(value) => double(found).is_some_and(|found| found.total_cmp(value).is_eq()),
            other => text(found) == query_text(other),
        }),
        Query::In { field, values: wanted, .. } => {
            any(field, &|found| wanted.iter().any(|value| query_text(value) == text(found)))
        }
        Query::AllIn { field, values: wanted, .. } => {
            wanted.iter().all(|value| any(field, &|found| query_text(value) == text(found)))
        }
        Query::Range { field, low, high, .. } => {
            let bounds: Vec<&Value> = [low, high]
                .into_iter()
                .filter_map(|bound| match bound {
                    Bound::Open => None,
                    Bound::Included(value) | Bound::Excluded(value) => Some(value),
                })
                .collect();
            let as_long = bounds.iter().all(|value| matches!(value, Value::Long(_)));
            let as_double = bounds.iter().all(|value| matches!(value, Value::Long(_) | Value::Double(_)));
            any(field, &|found| {
                let compare = |value: &Value| match value {
                    Value::Long(value) if as_long => long(found).map(|found| found.cmp(value)),
                    Value::Long(value) if as_double => {
                        double(found).map(|found| found.total_cmp(&(*value as f64)))
                    }
                    Value::Double(value) if as_double => double(found).map(|found| found.total_cmp(value)),
                    // The empty text stands at its term, as in RavenDB.
                    other => Some(text(found).cmp(&query_text(other))),
                };
                let above = match low {
                    Bound::Open => true,
                    Bound::Included(value) => compare(value).is_some_and(|ordering| ordering.is_ge()),
                    Bound::Excluded(value) => compare(value).is_some_and(|ordering| ordering.is_gt()),
                };
                let below = match high {
                    Bound::Open => true,
                    Bound::Included(value) => compare(value).is_some_and(|ordering| ordering.is_le()),
                    Bound::Excluded(value) => compare(value).is_some_and(|ordering| ordering.is_lt()),
                };
                above && below
            })
        }
        Query::Prefix { field, text: start, .. } => {
            any(field, &|found| text(found).starts_with(&start.to_lowercase()))
        }
        Query::Suffix { field, text: end, .. } => {
            any(field, &|found| text(found).ends_with(&end.to_lowercase()))
        }
        Query::Exists { field } => any(field, &|_| true),
        Query::And(parts) => parts.iter().all(|part| evaluate(part, object)),
        Query::Or(parts) => parts.iter().any(|part| evaluate(part, object)),
        Query::Not(inner) => !evaluate(inner, object),
        other => panic!("{other:?}"),
    }
}

fn value(random: &mut Random) -> Value {
    match scalar(random) {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(value),
        Json::String(text) => Value::Text(text),
        Json::Number(number) => {
            number.as_i64().map_or_else(|| Value::Double(number.as_f64().unwrap()), Value::Long)
        }
        _ => Value::Null,
    }
}

fn bound(random: &mut Random) -> Bound {
    let value = match value(random) {
        // As ends of ranges these are open.
        Value::Null => return Bound::Open,
        value => value,
    };
    if random.below(2) == 0 { Bound::Included(value) } else { Bound::Excluded(value) }
}

fn query(random: &mut Random, depth: u32) -> Query {
    let field = (*random.pick(&FIELDS)).to_owned();
    let start = |random: &mut Random| (*random.pick(&["a", "Z", "1", "-", "", "x", "é"])).to_owned();
    match random.below(if depth == 0 { 9 } else { 13 }) {
        0..=2 => Query::Term { field, value: value(random), exact: false },
        3 | 4 => {
            let (low, high) = match random.below(3) {
                0 => (bound(random), Bound::Open),
                1 => (Bound::Open, bound(random)),
                _ => (bound(random), bound(random)),
            };
            if low == Bound::Open && high == Bound::Open {
                Query::All
            } else {
                Query::Range { field, low, high, exact: false }
            }
        }
        5 => Query::In { field, values: (0..random.below(4)).map(|_| value(random)).collect(), exact: false },
        6 => Query::AllIn {
            field,
            values: (0..random.below(3)).map(|_| value(random)).collect(),
            exact: false,
        },
        7 if random.below(2) == 0 => Query::Prefix { field, text: start(random), exact: false },
        7 => Query::Suffix { field, text: start(random), exact: false },
        8 => Query::Exists { field },
        9 | 10 => Query::And((0..=random.below(3)).map(|_| query(random, depth - 1)).collect()),
        11 => Query::Or((0..=random.below(3)).map(|_| query(random, depth - 1)).collect()),
        _ => Query::Not(Box::new(query(random, depth - 1))),
    }
}

/// What an entry is sorted by, first to last.
fn sort_key(by: &SortBy, object: &Json) -> (Option<String>, f64) {
    match by {
        SortBy::Text(field) => (values(object, field).into_iter().map(text).max(), 0.0),
        SortBy::Long(field) => {
            (None, values(object, field).into_iter().filter_map(long).max().unwrap_or(0) as f64)
        }
        SortBy::Double(field) => {
            let greatest = values(object, field).into_iter().filter_map(double).max_by(f64::total_cmp);
            (None, greatest.unwrap_or(0.0) + 0.0)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn random_queries_find_what_a_plain_evaluation_finds() {
    let seeds: u64 = std::env::var("SEARCH_SEEDS").map_or(6, |seeds| seeds.parse().unwrap());
    let first: u64 = std::env::var("SEARCH_SEED").map_or(1, |seed| seed.parse().unwrap());
    for seed in first..first + seeds {
        let mut random = Random::new(seed);
        let sample = Sample::new(if seed % 2 == 0 { keywords(&[]) } else { keywords(&FIELDS) });
        // Entries by key, and the order in which they came.
        let mut model: BTreeMap<String, (u64, Json)> = BTreeMap::new();
        let mut order = 0;
        for _ in 0..1 + random.below(4) {
            let mut writer = sample.index.writer(MEMORY).unwrap();
            for _ in 0..random.below(120) {
                let key = format!("{}", random.below(150));
                writer.delete(&key).unwrap();
                model.remove(&key);
                if random.below(10) > 0 {
                    let object = object(&mut random);
                    with_entry(&key, &object, |entry| writer.add(entry).unwrap());
                    model.insert(key, (order, object));
                    order += 1;
                }
            }
            writer.commit(b"").unwrap();
        }
        if random.below(2) == 0 {
            sample.index.quiesce().unwrap();
        }
        let searcher = sample.searcher();
        let mut in_order: Vec<(&String, &(u64, Json))> = model.iter().collect();
        in_order.sort_by_key(|(_, (order, _))| *order);
        for number in 0..150 {
            let query = query(&mut random, 3);
            let mut expected: Vec<(&String, &Json)> = in_order
                .iter()
                .filter(|(_, (_, object))| evaluate(&query, object))
                .map(|(key, (_, object))| (*key, object))
                .collect();
            let told = format!("seed {seed}, query {number}: SEARCH_SEED={seed} SEARCH_SEEDS=1: {query:?}");
            assert_eq!(searcher.count(&query).unwrap(), expected.len() as u64, "{told}");
            let field = (*random.pick(&FIELDS)).to_owned();
            let by = match random.below(3) {
                0 => SortBy::Text(field),
                1 => SortBy::Long(field),
                _ => SortBy::Double(field),
            };
            let descending = random.below(2) == 0;
            expected.sort_by(|(_, left), (_, right)| {
                let (left, right) = (sort_key(&by, left), sort_key(&by, right));
                let ordering = left.0.cmp(&right.0).then(left.1.total_cmp(&right.1));
                if descending { ordering.reverse() } else { ordering }
            });
            let sorts = [Sort { by, descending }];
            let deepest = *random.pick(&[30, 160]);
            let (skip, take) = (random.below(deepest) as usize, 1 + random.below(30) as usize);
            let page = searcher.search(&query, &sorts, skip, take, false).unwrap();
            assert_eq!(page.total, expected.len() as u64, "{told}");
            let keys: Vec<&String> = expected.iter().map(|(key, _)| *key).skip(skip).take(take).collect();
            assert_eq!(page.hits.iter().map(|hit| &hit.key).collect::<Vec<_>>(), keys, "{told} by {sorts:?}");
            let streamed: Vec<String> =
                searcher.stream(&query, &[]).unwrap().map(|hit| hit.unwrap().key).collect();
            let mut all: Vec<String> = expected.iter().map(|(key, _)| (*key).clone()).collect();
            all.sort_by_key(|key| model[key].0);
            assert_eq!(streamed, all, "{told}");
        }
    }
}

/// All entries, and ranges, by a number that each has once, with deleted ones among them: pages from anywhere.
#[test]
fn pages_by_one_number_begin_anywhere() {
    let mut random = Random::new(29);
    let sample = Sample::new(keywords(&["n"]));
    let mut model: Vec<(String, i64)> = Vec::new();
    for batch in 0..4 {
        let mut writer = sample.index.writer(MEMORY).unwrap();
        for number in 0..700 {
            let key = format!("{batch}/{number}");
            // Few values, many, and one of nearly all entries.
            let value = match batch {
                0 => random.below(20) as i64,
                1 => random.below(100_000) as i64 - 50_000,
                2 => 7 + i64::from(number == 350),
                _ => 10 + number,
            };
            with_entry(&key, &json!({"n": value}), |entry| writer.add(entry).unwrap());
            model.push((key, value));
        }
        for _ in 0..if batch == 3 { 900 } else { 0 } {
            let (key, _) = model.swap_remove(random.below(model.len() as u64) as usize);
            writer.delete(&key).unwrap();
        }
        writer.commit(b"").unwrap();
    }
    let place = |key: &str| {
        let (batch, number) = key.split_once('/').unwrap();
        (batch.parse::<u32>().unwrap(), number.parse::<u32>().unwrap())
    };
    model.sort_by_key(|(key, _)| place(key));
    let searcher = sample.searcher();
    let range = |low: i64, high: i64| Query::Range {
        field: "n".to_owned(),
        low: Bound::Included(Value::Long(low)),
        high: Bound::Included(Value::Long(high)),
        exact: false,
    };
    for (query, low, high) in [(Query::All, i64::MIN, i64::MAX), (range(-1000, 9), -1000, 9)] {
        for descending in [false, true] {
            let mut expected: Vec<&(String, i64)> =
                model.iter().filter(|(_, value)| (low..=high).contains(value)).collect();
            expected.sort_by_key(|(_, value)| if descending { !*value } else { *value });
            let sorts = [Sort { by: SortBy::Long("n".to_owned()), descending }];
            for skip in (0..expected.len() + 40).step_by(19) {
                let page = searcher.search(&query, &sorts, skip, 25, false).unwrap();
                let found: Vec<&str> = page.hits.iter().map(|hit| &*hit.key).collect();
                let wanted: Vec<&str> = expected.iter().skip(skip).take(25).map(|(key, _)| &**key).collect();
                assert_eq!(found, wanted, "{skip} of {query:?} {descending}");
                assert_eq!(page.total, expected.len() as u64);
            }
        }
    }
}
