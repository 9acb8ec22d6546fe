//! The corpus: what the official clients generate, one of each construct, and what must be refused, with its error.
//!
//! Files under `tests/corpus/` hold queries separated by lines of `---`; in `refused.txt`, the error stands below each query, after `=> `.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use jackdaw_rql::tree::{Expression, Query};
use jackdaw_rql::{Span, parse};

fn corpus(file: &str) -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    text.trim_end().split("\n---\n").map(str::to_owned).collect()
}

fn hash(query: &Query<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    query.hash(&mut hasher);
    hasher.finish()
}

/// What holds of every query that parses: its canonical text says the same and is a fixed point, and the tree does not depend on the text's life.
#[track_caller]
fn check(text: &str) {
    let query = match parse(text) {
        Ok(query) => query,
        Err(error) => panic!("{error}"),
    };
    let printed = query.to_string();
    let again = match parse(&printed) {
        Ok(again) => again,
        Err(error) => panic!("{text}\nprints as what does not parse: {error}"),
    };
    assert_eq!(again, query, "{text}\nprints as {printed}");
    assert_eq!(again.to_string(), printed);
    assert_eq!(hash(&again), hash(&query));
    assert_eq!(query.span.of(text), text_between_blanks(text, query.span));
    query.visit_expressions(|expression| check_spans(text, expression));
    let owned = query.clone().into_owned();
    assert_eq!(owned, query);
}

/// The text of a span has no white space at its ends.
fn text_between_blanks(text: &str, span: Span) -> &str {
    span.of(text).trim()
}

fn check_spans(text: &str, expression: &Expression<'_>) {
    let span = expression.span();
    assert!(!span.of(text).is_empty(), "an empty span in {text}: {expression}");
    let inner: Vec<Span> = match expression {
        Expression::And(junction) | Expression::Or(junction) => {
            junction.operands.iter().map(Expression::span).collect()
        }
        Expression::Not(not) => vec![not.operand.span()],
        Expression::Comparison(comparison) => vec![comparison.left.span(), comparison.right.span()],
        Expression::Between(between) => vec![between.operand.span(), between.low.span(), between.high.span()],
        Expression::In(one_of) => {
            let values = one_of.values.iter().map(Expression::span);
            std::iter::once(one_of.operand.span()).chain(values).collect()
        }
        Expression::Call(call) => call.arguments.iter().map(|argument| argument.expression.span()).collect(),
        _ => Vec::new(),
    };
    let mut at = span.start;
    for inner in inner {
        assert!(inner.start >= at && inner.end <= span.end, "{expression} in {text}: {inner:?} of {span:?}");
        at = inner.end;
    }
}

#[test]
fn what_the_node_client_generates_parses() {
    let queries = corpus("node.txt");
    assert!(queries.len() > 300);
    queries.iter().for_each(|query| check(query));
}

#[test]
fn what_the_python_client_generates_parses() {
    let queries = corpus("python.txt");
    assert!(queries.len() > 100);
    queries.iter().for_each(|query| check(query));
}

#[test]
fn each_construct_parses() {
    let queries = corpus("constructs.txt");
    assert!(queries.len() > 200);
    queries.iter().for_each(|query| check(query));
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    let mut wrong = Vec::new();
    for entry in corpus("refused.txt") {
        let (text, expected) = entry.rsplit_once("\n=> ").expect("an error after `=> `");
        let found = match parse(text) {
            Ok(query) => format!("parsed as {query}"),
            Err(error) => error.to_string().split('\n').next().unwrap_or_default().to_owned(),
        };
        if found != expected {
            wrong.push(format!("{text}\n=> {found}\n---"));
        }
    }
    assert!(wrong.is_empty(), "these have other errors:\n{}", wrong.join("\n"));
}

/// Every query of the corpus cut off at each character, and with each character left out: a tree or an error, and never a panic.
#[test]
fn damaged_queries_are_parsed_or_refused() {
    for query in ["node.txt", "constructs.txt"].into_iter().flat_map(corpus) {
        for (at, c) in query.char_indices() {
            for text in [query[..at].to_owned(), format!("{}{}", &query[..at], &query[at + c.len_utf8()..])] {
                if let Ok(parsed) = parse(&text) {
                    let printed = parsed.to_string();
                    assert_eq!(parse(&printed).as_ref(), Ok(&parsed), "{text}\nprints as {printed}");
                }
            }
        }
    }
}

/// The examples in the table of constructs of `docs/rql.md`, each in backquotes: queries, and ends of queries.
#[test]
fn the_examples_of_the_documentation_parse() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rql.md");
    let page = std::fs::read_to_string(path).unwrap();
    let table = page.split("\n## ").find(|section| section.starts_with("Constructs")).unwrap();
    let mut count = 0;
    for row in table.lines().filter(|line| line.starts_with("| ")).skip(2) {
        for example in row.split_once(" | ").unwrap().1.split('`').skip(1).step_by(2) {
            let query =
                !["where ", "limit ", "offset ", "update "].iter().any(|clause| example.starts_with(clause));
            check(&if query { example.to_owned() } else { format!("from Users {example}") });
            count += 1;
        }
    }
    assert!(count > 50, "{count} examples");
}
