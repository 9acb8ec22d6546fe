//! Suggestions, more-like-this, highlighting, explanations, entries, distinct keys, streams.
#![allow(clippy::unwrap_used, reason = "tests")]

mod objects;

use jackdaw_search::{
    Entry, FieldOptions, FieldValue, Highlight, Indexing, MoreLikeThis, MoreLikeThisSource, Operator, Query,
    SortBy, StringDistance, Suggest, SuggestSort,
};
use objects::{MEMORY, Sample, above, indexed, keywords, schema, sort, term};
use serde_json::json;

fn sample() -> Sample {
    let stored = FieldOptions { store: true, ..indexed(Indexing::Search) };
    let sample = Sample::new(schema(&[("t", indexed(Indexing::Search)), ("b", stored)]));
    let bodies: Vec<(String, String, String)> = (0..30)
        .map(|number: usize| {
            let text = format!("word{} alpha beta {}", number % 7, ["gamma", "gamme", "gummy", "gam"][number % 4]);
            let body = if number % 2 == 1 {
                format!(
                    "the body of text number {number} is about rust rust databases databases and search search engines engines"
                )
            } else {
                "cooking recipes recipes with tomato tomato and basil basil".to_owned()
            };
            (format!("y/{number}"), text, body)
        })
        .collect();
    sample.add(bodies.iter().map(|(key, text, body)| (key.as_str(), json!({"t": text, "b": body}))));
    sample
}

fn search(text: &str) -> Query {
    Query::Search { field: "b".to_owned(), text: text.to_owned(), operator: Operator::Or }
}

#[test]
fn suggestions_are_those_of_the_reference() {
    let sample = sample();
    let suggest = |term: &str, accuracy, distance| {
        let request = Suggest {
            field: "t".to_owned(),
            term: term.to_owned(),
            accuracy,
            count: 15,
            distance,
            sort: SuggestSort::None,
        };
        sample.searcher().suggest(&request).unwrap()
    };
    assert_eq!(suggest("gama", 0.5, StringDistance::Levenshtein), ["gamma", "gam", "gamme"]);
    assert_eq!(suggest("alpa", 0.4, StringDistance::Levenshtein), ["alpha"]);
    assert_eq!(suggest("alpa", 0.4, StringDistance::NGram), ["alpha"]);
    assert_eq!(suggest("alpa", 0.4, StringDistance::JaroWinkler)[0], "alpha");
    let words = suggest("word", 0.5, StringDistance::Levenshtein);
    assert_eq!(words.len(), 7);
    assert!(suggest("gamma", 0.9, StringDistance::Levenshtein).is_empty(), "never the word itself");
}

#[test]
fn alike_entries_are_found_without_the_source() {
    let sample = sample();
    let source = MoreLikeThisSource::Entries { query: Query::Key("y/1".to_owned()), texts: Vec::new() };
    let fields = vec!["b".to_owned()];
    let like = MoreLikeThis {
        fields: fields.clone(),
        minimum_term_frequency: 2,
        ..MoreLikeThis::new(source.clone())
    };
    let keys = sample.keys(&Query::MoreLikeThis(Box::new(like.clone())), &[]);
    assert_eq!(keys.len(), 14);
    assert!(
        !keys.contains(&"y/1".to_owned()) && keys.iter().all(|key| key[2..].parse::<u32>().unwrap() % 2 == 1)
    );
    // Nothing is frequent enough, or all is left out.
    for wrong in [
        MoreLikeThis { minimum_term_frequency: 3, ..like.clone() },
        MoreLikeThis { minimum_document_frequency: 16, ..like.clone() },
        MoreLikeThis { maximum_document_frequency: 14, ..like.clone() },
        MoreLikeThis { minimum_word_length: 10, ..like.clone() },
        MoreLikeThis {
            stop_words: ["rust", "databases", "search", "engines"].map(str::to_owned).into(),
            ..like.clone()
        },
    ] {
        assert!(sample.keys(&Query::MoreLikeThis(Box::new(wrong)), &[]).is_empty());
    }
    let text = MoreLikeThisSource::Texts(vec![("b".to_owned(), "tomato soup, tomato".to_owned())]);
    let text = MoreLikeThis { fields, ..MoreLikeThis::new(text) };
    let with_filter = Query::And(vec![Query::MoreLikeThis(Box::new(text)), term("t", "word0")]);
    assert_eq!(sample.keys(&with_filter, &[]), ["y/0", "y/14", "y/28"]);
}

/// A term of one field is looked for where most entries hold it, in the first of the fields when several hold it alike.
#[test]
fn alike_terms_are_looked_for_in_one_field() {
    let text = || indexed(Indexing::Search);
    let sample = Sample::new(schema(&[("a", text()), ("b", text())]));
    sample.add([
        ("x/1", json!({"a": "apple", "b": "berry"})),
        ("x/2", json!({"a": "berry", "b": "y"})),
        ("x/3", json!({"a": "z", "b": "apple"})),
        ("x/4", json!({"a": "z", "b": "cherry cherry"})),
        ("x/5", json!({"a": "cherry", "b": "cherry"})),
    ]);
    let like = |source: MoreLikeThisSource, fields: [&str; 2]| {
        let fields = fields.map(str::to_owned).into();
        sample.keys(&Query::MoreLikeThis(Box::new(MoreLikeThis { fields, ..MoreLikeThis::new(source) })), &[])
    };
    let entry =
        |key: &str| MoreLikeThisSource::Entries { query: Query::Key(key.to_owned()), texts: Vec::new() };
    assert_eq!(like(entry("x/1"), ["a", "b"]), ["x/2"]);
    assert_eq!(like(entry("x/1"), ["b", "a"]), ["x/3"]);
    let texts = MoreLikeThisSource::Texts(vec![("a".to_owned(), "cherry".to_owned())]);
    assert_eq!(like(texts, ["a", "b"]), ["x/4", "x/5"]);
}

#[test]
fn fragments_are_marked() {
    let sample = sample();
    let text =
        "the body of text number 29 is about rust rust databases databases and search search engines engines";
    let mut request = Highlight {
        field: "b".to_owned(),
        fragment_length: 30,
        fragment_count: 2,
        pre_tags: Vec::new(),
        post_tags: Vec::new(),
    };
    let searcher = sample.searcher();
    let fragments = searcher.highlight(&search("rust engines"), &request, text).unwrap();
    assert_eq!(
        fragments[0],
        " is about <b style=\"background:yellow\">rust</b> <b style=\"background:yellow\">rust</b> databases"
    );
    assert!(fragments[1].contains("<b style=\"background:lawngreen\">engines</b>"), "{fragments:?}");
    request.fragment_count = 1;
    request.pre_tags = vec!["<i>".to_owned()];
    request.post_tags = vec!["</i>".to_owned()];
    assert_eq!(searcher.highlight(&search("engin*"), &request, text).unwrap().len(), 1);
    assert!(searcher.highlight(&search("nothing"), &request, text).unwrap().is_empty());
    assert!(searcher.highlight(&term("t", "rust"), &request, text).unwrap().is_empty(), "another field");
    for text in ["", "é", "日本語 rust 日本語日本語日本語日本語日本語日本語", "rust"] {
        for length in [0, 1, 18, 19, 20, 1000] {
            request.fragment_length = length;
            let fragments = searcher.highlight(&search("rust"), &request, text).unwrap();
            assert_eq!(fragments.len(), usize::from(text.contains("rust")));
        }
    }
}

#[test]
fn hits_are_explained_and_shown_as_they_are_indexed() {
    let sample = sample();
    let searcher = sample.searcher();
    let query = search("rust");
    let hit = searcher.search(&query, &[], 0, 1, false).unwrap().hits.remove(0);
    let explanation = searcher.explain(&query, hit.place).unwrap();
    assert!(explanation.contains("value") && explanation.contains("idf"), "{explanation}");
    let entry = searcher.entry(hit.place).unwrap();
    assert_eq!(entry[0].0, "b");
    assert!(entry[0].1.contains(&"rust".to_owned()));
    assert!(searcher.entry((9, 9)).is_err() && searcher.explain(&query, (9, 9)).is_err());
}

#[test]
fn each_key_comes_once_when_asked() {
    let sample = Sample::new(keywords(&["line", "n"]));
    let mut writer = sample.index.writer(MEMORY).unwrap();
    for key in 0..50 {
        for line in 0..=(key % 5) {
            let key = format!("orders/{key}");
            let fields = [("line", FieldValue::Long(line)), ("n", FieldValue::Text("same"))];
            writer
                .add(&Entry {
                    key: &key,
                    fields: &fields,
                    stored: key.as_bytes(),
                    references: &[],
                    boost: 1.0,
                })
                .unwrap();
        }
    }
    writer.commit(b"").unwrap();
    let searcher = sample.searcher();
    for sorts in [vec![], vec![sort(SortBy::Long("line".to_owned()))], vec![sort(SortBy::Key)]] {
        let whole = searcher.search(&Query::All, &sorts, 0, 1000, true).unwrap();
        assert_eq!((whole.total, whole.hits.len(), whole.skipped_duplicates), (150, 50, 100));
        let all: Vec<String> = whole.hits.into_iter().map(|hit| hit.key).collect();
        let mut paged = Vec::new();
        for page in 0..8 {
            let hits = searcher.search(&Query::All, &sorts, page * 7, 7, true).unwrap().hits;
            assert!(hits.iter().all(|hit| hit.stored == hit.key.as_bytes()));
            paged.extend(hits.into_iter().map(|hit| hit.key));
        }
        assert_eq!(paged, all);
        let plain = searcher.search(&Query::All, &sorts, 0, 1000, false).unwrap();
        let streamed: Vec<String> =
            searcher.stream(&Query::All, &sorts).unwrap().map(|hit| hit.unwrap().key).collect();
        assert_eq!(streamed, plain.hits.into_iter().map(|hit| hit.key).collect::<Vec<_>>());
    }
    // Both conditions by different entries of one key.
    let query = Query::Intersect(vec![term("line", 0), term("line", 4)]);
    let keys = sample.keys(&query, &[]);
    assert_eq!(keys.len(), 10);
    assert!(sample.keys(&Query::And(vec![term("line", 0), term("line", 4)]), &[]).is_empty());
}

#[test]
fn references_boosts_and_chance() {
    let sample = Sample::new(keywords(&["n"]));
    let mut writer = sample.index.writer(MEMORY).unwrap();
    for number in 0..100 {
        let key = format!("{number:02}");
        let fields = [("n", FieldValue::Long(number)), ("dynamic", FieldValue::Words("Some words"))];
        let references: &[&str] = if number % 10 == 0 { &["Companies/1", "x"] } else { &[] };
        let boost = if number == 42 { 3.0 } else { 1.0 };
        writer.add(&Entry { key: &key, fields: &fields, stored: b"", references, boost }).unwrap();
    }
    writer.commit(b"").unwrap();
    assert_eq!(sample.keys(&Query::Reference("companies/1".to_owned()), &[]).len(), 10);
    let words =
        Query::Search { field: "dynamic".to_owned(), text: "words".to_owned(), operator: Operator::Or };
    assert_eq!(sample.keys(&words, &[]).len(), 100);
    assert_eq!(sample.keys(&words, &[])[0], "42");
    let random = |seed: &str| sample.keys(&above("n", 9), &[sort(SortBy::Random(Some(seed.to_owned())))]);
    assert_eq!(random("a"), random("a"));
    assert_ne!(random("a"), random("b"));
    let mut all = random("c");
    all.sort();
    assert_eq!(all.len(), 90);
    assert_eq!(all[0], "10");
}

#[test]
fn a_field_may_count_more_than_another() {
    for known in
        [schema(&[("a", indexed(Indexing::Search)), ("b", indexed(Indexing::Search))]), keywords(&[])]
    {
        let sample = Sample::new(known);
        let mut writer = sample.index.writer(MEMORY).unwrap();
        for (key, a, b) in [("1", "plain", "milk"), ("2", "cheese", "plain"), ("3", "other", "milk")] {
            let value = FieldValue::Text(a);
            let fields =
                [("a", FieldValue::Boosted { value: &value, boost: 10.0 }), ("b", FieldValue::Text(b))];
            writer.add(&Entry { key, fields: &fields, stored: b"", references: &[], boost: 1.0 }).unwrap();
        }
        writer.commit(b"").unwrap();
        let search = |field: &str, text: &str| Query::Search {
            field: field.to_owned(),
            text: text.to_owned(),
            operator: Operator::Or,
        };
        let query = Query::Or(vec![search("a", "cheese"), search("b", "milk")]);
        assert_eq!(sample.keys(&query, &[]), ["2", "1", "3"]);
        let hit = sample.searcher().search(&query, &[], 0, 1, false).unwrap().hits.remove(0);
        assert!(sample.searcher().explain(&query, hit.place).unwrap().contains("boost"));
    }
}

#[test]
fn pieces_of_words_are_found_as_the_reference_finds_them() {
    let grams = FieldOptions { analyzer: Some("NGramAnalyzer".into()), ..indexed(Indexing::Search) };
    let sample = Sample::new(schema(&[("t", grams)]));
    let texts = [("1", "Banana"), ("2", "Ananas"), ("3", "Canada"), ("4", "Bandana split"), ("5", "Xylo")];
    sample.add(texts.map(|(key, text)| (key, json!({"t": text}))));
    for (text, expected) in [
        ("ana", "1 2 3 4"),
        ("anax", ""),
        ("anan", "1 2"),
        ("dana", "4"),
        ("split", "4"),
        ("and", ""),
        ("ban*", "1 4"),
    ] {
        let query = Query::Search { field: "t".to_owned(), text: text.to_owned(), operator: Operator::Or };
        let mut found = sample.keys(&query, &[]);
        found.sort();
        assert_eq!(found.join(" "), expected, "{text}");
    }
}
