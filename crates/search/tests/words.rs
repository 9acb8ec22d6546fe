//! Words, phrases and patterns. Every expectation is what RavenDB 5.4 found with the same query over the same documents.
#![allow(clippy::unwrap_used, reason = "tests")]

mod objects;

use jackdaw_search::{FieldOptions, Indexing, Operator, Query};
use objects::{Sample, above, any_of, between, exact, indexed, not, schema, term};
use serde_json::json;

fn sample() -> Sample {
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
    let documents = texts
        .iter()
        .zip(&keys)
        .map(|(text, key)| (key.as_str(), json!({"t": text, "k": text, "p": key.parse::<i64>().unwrap()})));
    sample.add(documents);
    sample
}

fn search(field: &str, text: &str) -> Query {
    Query::Search { field: field.to_owned(), text: text.to_owned(), operator: Operator::Or }
}

fn search_all(field: &str, text: &str) -> Query {
    Query::Search { field: field.to_owned(), text: text.to_owned(), operator: Operator::And }
}

fn fuzzy(field: &str, text: &str, similarity: f32) -> Query {
    Query::Fuzzy { field: field.to_owned(), text: text.to_owned(), similarity }
}

fn near(text: &str, slop: u32) -> Query {
    Query::Proximity { field: "t".to_owned(), text: text.to_owned(), slop }
}

fn prefix(field: &str, text: &str) -> Query {
    Query::Prefix { field: field.to_owned(), text: text.to_owned(), exact: false }
}

#[track_caller]
fn check(sample: &Sample, cases: Vec<(&str, Query, &str)>) {
    let mut failures = Vec::new();
    for (name, query, expected) in cases {
        let mut found = sample.keys(&query, &[]);
        found.sort_by_key(|key| key.parse::<i64>().unwrap());
        if found.join(" ") != expected {
            failures.push(format!("{name}: {found:?}, not {expected}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn words_find_what_the_reference_finds() {
    check(
        &sample(),
        vec![
            ("t = two words", term("t", "quick brown"), ""),
            ("t = 'quick'", term("t", "quick"), "1 2 5 7"),
            ("t = 'QUICK'", term("t", "QUICK"), "1 2 5 7"),
            ("k = 'quick brown fox'", term("k", "quick brown fox"), "1"),
            ("a joined word", search("t", "foo-bar"), "3"),
            ("a joined word, and", search_all("t", "foo-bar"), "3"),
            ("a joined word turned around", search("t", "bar-foo"), "4"),
            ("two words", search("t", "quick brown"), "1 2 5 7"),
            ("two words, and", search_all("t", "quick brown"), "1 5 7"),
            ("a phrase", search("t", "\"quick brown\""), "1 7"),
            ("not next to each other", search("t", "\"quick fox\""), ""),
            ("a star", search("t", "qui*"), "1 2 5 7 11"),
            ("a star before", search("t", "*ick"), "1 2 5 7"),
            ("a star within", search("t", "q*k"), ""),
            ("only a star", search("t", "*"), "1 2 3 4 5 6 7 8 9 10 11"),
            ("a stop word", search("t", "the"), ""),
            ("a stop word, and", search_all("t", "the quick"), ""),
            ("minus", search("t", "-quick"), "1 2 5 7"),
            ("an operator is a word", search("t", "quick AND fox"), "1 2 5 6 7"),
            ("a question mark", search("t", "qu?ck"), ""),
            ("on a whole text", search("k", "quick brown fox"), "6"),
            ("a part of a whole text", search("k", "quick"), ""),
            ("a star on whole texts", search("k", "quick*"), "1 7 11"),
            ("both on whole texts", search("k", "QUICK* fox"), "1 6 7 11"),
            ("fuzzy", fuzzy("k", "fax", 0.5), "6"),
            ("fuzzy words", fuzzy("t", "quack", 0.5), "1 2 5 7 8"),
            ("fuzzy 0.9", fuzzy("t", "quick", 0.9), "1 2 5 7"),
            ("fuzzy 0.7", fuzzy("t", "quick", 0.7), "1 2 5 7 8"),
            ("fuzzy 0.5", fuzzy("t", "quick", 0.5), "1 2 5 7 8 11"),
            ("fuzzy 0.8", fuzzy("t", "qick", 0.8), ""),
            ("fuzzy with a space", fuzzy("k", "bar fo", 0.5), "4"),
            ("near 0", near("quick fox", 0), ""),
            ("near 1", near("quick fox", 1), "1 2"),
            ("near, turned around 1", near("fox quick", 1), ""),
            ("near, turned around 3", near("fox quick", 3), "1 2"),
            ("near, over words 2", near("brown soup", 2), "5"),
            ("starts", prefix("t", "qui"), "1 2 5 7 11"),
            ("starts with two words", prefix("t", "Quick b"), ""),
            ("ends", Query::Suffix { field: "t".into(), text: "ck".into(), exact: false }, "1 2 5 7 8"),
            ("regex", Query::Regex { field: "t".into(), pattern: "q.i".into() }, "1 2 5 7 11"),
            ("regex on whole texts", Query::Regex { field: "k".into(), pattern: "^quick.*fox$".into() }, "1"),
            ("in", any_of("t", ["quick", "fox"]), "1 2 5 6 7"),
            ("not", not(term("t", "quick")), "3 4 6 8 9 10 11"),
            ("greater", above("t", "quick"), "2 5 9 11"),
            ("between", between("t", "a", "c"), "1 3 4 5 7 8 10"),
            ("exact", exact("t", "Quick"), ""),
            ("exact, lower case", exact("t", "quick"), "1 2 5 7"),
            ("and a number", Query::And(vec![search("t", "quick"), above("p", 4)]), "5 7"),
            ("intersect", Query::Intersect(vec![search("t", "quick"), search("t", "brown")]), "1 5 7"),
        ],
    );
}

fn lucene(field: &str, text: &str) -> Query {
    Query::Lucene { field: field.to_owned(), text: text.to_owned(), exact: false }
}

#[test]
fn the_classic_syntax_finds_what_the_reference_finds() {
    let exactly = Query::Lucene { field: "t".to_owned(), text: "Quick".to_owned(), exact: true };
    let mut cases = vec![("exact", exactly, "")];
    for (text, expected) in [
        ("quick brown", "1 2 5 7"),
        ("quick AND brown", "1 5 7"),
        ("+quick -brown", "2"),
        ("\"quick fox\"~2", "1 2"),
        ("qui*", "1 2 5 7 11"),
        ("quick^5 brown", "1 2 5 7"),
        ("k:fox", "6"),
        ("quack~", "1 2 5 7 8"),
        ("[brawn TO brown]", "1 5 7 8"),
        ("{brawn TO brown}", "5"),
        ("qu?ck", "1 2 5 7 8"),
        ("NOT quick", ""),
        ("*", "1 2 3 4 5 6 7 8 9 10 11"),
        ("*:*", "1 2 3 4 5 6 7 8 9 10 11"),
        ("(quick OR fox) AND brown", "1 5 7"),
        ("quick~0.5", "1 2 5 7 8 11"),
        ("foo\\-bar", "3"),
        ("/qu.ck/", ""),
        ("*ick", "1 2 5 7"),
        ("quick && fox", "1 2"),
        ("!quick fox", "6"),
        ("quick || bar", "1 2 3 4 5 7"),
    ] {
        cases.push((text, lucene("t", text), expected));
    }
    for (text, expected) in
        [("fox", "6"), ("quick brown fox", "6"), ("\"quick brown fox\"", "1"), ("QUICK*", "1 7 11")]
    {
        cases.push((text, lucene("k", text), expected));
    }
    cases.push(("[2 TO 4]", lucene("p", "[2 TO 4]"), "2 3 4"));
    let sample = sample();
    check(&sample, cases);
    let deep = "(".repeat(100_000);
    for wrong in ["(((", "a:b:c", "\"", "a^x", "[a b]", "[a TO", "a\\", ")", "AND a", deep.as_str()] {
        let error = sample.searcher().count(&lucene("t", wrong)).unwrap_err().to_string();
        assert!(error.contains("cannot parse"), "{wrong}: {error}");
    }
}

#[test]
fn better_matches_come_first() {
    let sample = sample();
    let found = sample.keys(&search("t", "quick brown"), &[]);
    assert_eq!(found.last().unwrap(), "2", "{found:?}");
    let boosted = Query::Or(vec![Query::Boost(Box::new(term("k", "fox")), 10.0), term("t", "quick")]);
    assert_eq!(sample.keys(&boosted, &[])[0], "6");
    let page = sample.searcher().search(&search("t", "quick brown"), &[], 0, 10, false).unwrap();
    assert!(page.hits.windows(2).all(|pair| pair[0].score >= pair[1].score), "{page:?}");
}

#[test]
fn case_is_kept_where_the_analyzer_keeps_it() {
    let whitespace =
        FieldOptions { analyzer: Some("WhitespaceAnalyzer".into()), ..indexed(Indexing::Search) };
    let sample = Sample::new(schema(&[("t", whitespace), ("e", indexed(Indexing::Exact))]));
    sample.add([("1", json!({"t": "Quick Brown", "e": "Y"})), ("2", json!({"t": "quick", "e": "y"}))]);
    check(
        &sample,
        vec![
            ("=", term("t", "Quick"), "2"),
            ("search", search("t", "Quick"), "1"),
            ("a star", search("t", "Qu*"), "1"),
            ("starts", prefix("t", "Qu"), "2"),
            ("in", any_of("t", ["Quick"]), "2"),
            ("regex", Query::Regex { field: "t".into(), pattern: "Q".into() }, "1 2"),
            ("exact field", term("e", "Y"), "1"),
            ("exact field, starts", prefix("e", "Y"), "1"),
            ("exact field, in", any_of("e", ["Y"]), "1"),
        ],
    );
}

#[test]
fn hostile_patterns_are_refused_or_end() {
    let sample = sample();
    let regex = |pattern: &str| Query::Regex { field: "k".to_owned(), pattern: pattern.to_owned() };
    for pattern in ["(", "a{1000}{1000}{1000}", "(?=x)", "\\1"] {
        let error = sample.searcher().search(&regex(pattern), &[], 0, 1, false).unwrap_err().to_string();
        assert!(error.contains("regular expression"), "{error}");
    }
    assert!(sample.keys(&regex(&format!("^({})*$", "a*".repeat(50))), &[]).is_empty());
    let mut deep = term("k", "fox");
    for _ in 0..10_000 {
        deep = not(deep);
    }
    assert!(sample.searcher().count(&deep).is_err());
    // A tree so deep is taken apart by hand: dropping it by recursion would need as much stack.
    while let Query::Not(inner) = deep {
        deep = *inner;
    }
}
