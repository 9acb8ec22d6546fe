//! The terms of RavenDB 5.4's analyzers, as its `/indexes/terms` answered for the texts of `tests/data/analyzers.json` (but for
//! characters outside the basic plane, which its answers show as two replacement characters).

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use serde_json::Value;

use super::Analyzer;
use crate::options::{CustomAnalyzer, CustomFilter, CustomTokenizer, Schema};

#[test]
fn terms_are_those_of_the_reference() {
    let cases: Value = serde_json::from_str(include_str!("../../tests/data/analyzers.json")).unwrap();
    let mut failures = Vec::new();
    for case in cases.as_array().unwrap() {
        let name = case["analyzer"].as_str().unwrap();
        let text = case["text"].as_str().unwrap();
        let expected: BTreeSet<String> =
            case["terms"].as_array().unwrap().iter().map(|term| term.as_str().unwrap().to_owned()).collect();
        let terms: BTreeSet<String> = Analyzer::named("f", name, &Schema::default())
            .unwrap()
            .terms(text)
            .into_iter()
            .map(|token| token.text)
            .collect();
        if terms != expected {
            let missing: Vec<_> = expected.difference(&terms).collect();
            let more: Vec<_> = terms.difference(&expected).collect();
            failures.push(format!("{name} on {text:?}: missing {missing:?}, too many {more:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn names_are_known_in_full_and_unknown_ones_refused() {
    for name in [
        "StandardAnalyzer",
        "Lucene.Net.Analysis.Standard.StandardAnalyzer",
        "Lucene.Net.Analysis.StandardAnalyzer",
        "Lucene.Net.Analysis.Standard.StandardAnalyzer, Lucene.Net, Version=3.0.3.0",
    ] {
        assert_eq!(Analyzer::named("f", name, &Schema::default()).unwrap(), Analyzer::Standard, "{name}");
    }
    for name in ["Nope", "standardanalyzer", "CollationAnalyzer", "Lucene.Net.Analysis.De.GermanAnalyzer", ""]
    {
        let error = Analyzer::named("f", name, &Schema::default()).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("analyzer type"), "{error}");
    }
}

#[test]
fn words_that_are_too_long_are_left_out_or_cut() {
    let long = "x".repeat(300);
    assert!(Analyzer::Standard.terms(&long).is_empty());
    let cut: Vec<usize> = Analyzer::Whitespace.terms(&long).iter().map(|token| token.text.len()).collect();
    assert_eq!(cut, [255, 45]);
    assert_eq!(Analyzer::Keyword.terms(&"x".repeat(16_383)).len(), 1);
    assert!(Analyzer::Keyword.terms(&"x".repeat(16_384)).is_empty());
}

#[test]
fn positions_count_stop_words() {
    let places: Vec<(String, usize)> = Analyzer::Standard
        .terms("the cat and the hat")
        .into_iter()
        .map(|token| (token.text, token.position))
        .collect();
    assert_eq!(places, [("cat".to_owned(), 1), ("hat".to_owned(), 4)]);
}

fn custom(tokenizer: CustomTokenizer, filters: Vec<CustomFilter>) -> Analyzer {
    let mut schema = Schema::default();
    schema.custom_analyzers.insert("mine".to_owned(), CustomAnalyzer { tokenizer, filters });
    Analyzer::named("f", "Mine", &schema).unwrap()
}

#[test]
fn filters_that_leave_gaps_are_noticed_by_positions() {
    let stop = |words: &[&str], leaves_gaps| CustomFilter::Stop {
        words: words.iter().map(|&word| word.to_owned()).collect(),
        ignores_case: false,
        leaves_gaps,
    };
    let places = |filters: Vec<CustomFilter>, text: &str| -> Vec<(String, usize)> {
        let analyzer = custom(CustomTokenizer::Whitespace, filters);
        analyzer.terms(text).into_iter().map(|token| (token.text, token.position)).collect()
    };
    let place = |text: &str, position| (text.to_owned(), position);
    let text = "the cat and the hat";
    let words = ["the", "and"];
    assert_eq!(places(vec![stop(&words, true)], text), [place("cat", 1), place("hat", 4)]);
    assert_eq!(places(vec![stop(&words, false)], text), [place("cat", 0), place("hat", 1)]);
    // What the second filter lets through keeps the gaps of the first.
    assert_eq!(
        places(vec![stop(&["the"], true), stop(&["and"], false)], text),
        [place("cat", 1), place("hat", 3)]
    );
    assert_eq!(
        places(vec![CustomFilter::Length { min: 4, max: 9 }, CustomFilter::LowerCase], "a LONG b WORD"),
        [place("long", 0), place("word", 1)]
    );
}

#[test]
fn built_in_analyzers_come_before_custom_ones_of_their_name() {
    let mut schema = Schema::default();
    let keyword = CustomAnalyzer { tokenizer: CustomTokenizer::Keyword, filters: Vec::new() };
    schema.custom_analyzers.insert("standardanalyzer".to_owned(), keyword);
    assert_eq!(Analyzer::named("f", "StandardAnalyzer", &schema).unwrap(), Analyzer::Standard);
    assert!(Analyzer::named("f", "My.standardanalyzer", &schema).is_err());
}
