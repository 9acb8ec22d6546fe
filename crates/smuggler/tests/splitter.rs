//! The splitter against a plain parser: the same values on any cut of the input into pieces, and faults where they lie.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jackdaw_smuggler::{Form, SplitError, SplitErrorKind, Splitter, Step};
use proptest::prelude::*;

/// What a splitter finds when the input arrives in pieces of these sizes over and over.
fn split(input: &[u8], form: Form, sizes: &[usize]) -> (Vec<(u64, String)>, Result<(), SplitError>) {
    let mut splitter = Splitter::new(form, 1 << 20);
    let mut values = Vec::new();
    let mut at = 0;
    let mut sizes = sizes.iter().cycle();
    loop {
        match splitter.step() {
            Ok(Step::Value { offset, text }) => {
                values.push((offset, String::from_utf8_lossy(text).into_owned()));
            }
            Ok(Step::NeedMore) if at == input.len() => splitter.end(),
            Ok(Step::NeedMore) => {
                let piece = &input[at..(at + sizes.next().unwrap()).min(input.len())];
                splitter.push(piece);
                at += piece.len();
            }
            Ok(Step::Raw(_)) => unreachable!("none was announced"),
            Ok(Step::End) => return (values, Ok(())),
            Err(error) => return (values, Err(error)),
        }
    }
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let text = prop_oneof!["[a-z\\\\\"{}\\[\\],:\u{e9}\u{1f600} ]{0,20}", "\\\\{0,9}\"{0,3}"];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        text.prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
            prop::collection::btree_map("[a-z\"\\\\}]{0,8}", inner, 0..8)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

fn print(value: &serde_json::Value, pretty: bool) -> String {
    if pretty { serde_json::to_string_pretty(value).unwrap() } else { value.to_string() }
}

proptest! {
    #[test]
    fn elements_of_arrays(
        values in prop::collection::vec((json(), any::<bool>(), " {0,3}", "[\n\t\r ]{0,2}"), 0..12),
        sizes in prop::collection::vec(1..90usize, 1..5),
    ) {
        let mut input = String::from(" [");
        let mut expected = Vec::new();
        for (i, (value, pretty, before, behind)) in values.iter().enumerate() {
            input.push_str(if i > 0 { "," } else { "" });
            input.push_str(before);
            let text = print(value, *pretty);
            expected.push((input.len() as u64, text.clone()));
            input.push_str(&text);
            input.push_str(behind);
        }
        // An array that is left open holds the same elements.
        let (found, outcome) = split(input.as_bytes(), Form::OpenArray, &sizes);
        prop_assert_eq!((&found, outcome), (&expected, Ok(())));
        let (_, outcome) = split(input.as_bytes(), Form::Array, &sizes);
        prop_assert_eq!(outcome.unwrap_err().kind, SplitErrorKind::UnexpectedEnd);
        input.push_str("] ");
        let (found, outcome) = split(input.as_bytes(), Form::Array, &sizes);
        prop_assert_eq!((&found, outcome), (&expected, Ok(())));
    }

    #[test]
    fn values_of_sequences(
        values in prop::collection::vec((json(), any::<bool>()), 0..12),
        sizes in prop::collection::vec(1..90usize, 1..5),
    ) {
        let mut input = String::new();
        let mut expected = Vec::new();
        for (value, pretty) in &values {
            let text = print(value, *pretty);
            expected.push((input.len() as u64, text.clone()));
            input.push_str(&text);
            input.push('\n');
        }
        prop_assert_eq!(split(input.as_bytes(), Form::Sequence, &sizes), (expected, Ok(())));
    }

    /// However any bytes are cut into pieces, the same values and the same fault come out.
    #[test]
    fn pieces_make_no_difference(
        bytes in prop::collection::vec(prop::sample::select(b"{}[]\"\\,: 1n\xEF\xBB\xBF".to_vec()), 0..300),
        sizes in prop::collection::vec(1..90usize, 1..5),
        form in prop::sample::select(vec![Form::Array, Form::OpenArray, Form::Sequence]),
    ) {
        let whole = split(&bytes, form, &[usize::MAX / 2]);
        prop_assert_eq!(&split(&bytes, form, &sizes), &whole);
        prop_assert_eq!(&split(&bytes, form, &[1]), &whole);
    }

    #[test]
    fn raw_bytes_between_values(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..8),
        size in 1..90usize,
    ) {
        let mut input = b"[".to_vec();
        for (i, part) in parts.iter().enumerate() {
            input.extend_from_slice(format!("{}{{\"Size\":{}}}", if i > 0 { "," } else { "" }, part.len()).as_bytes());
            input.extend_from_slice(part);
        }
        input.push(b']');
        let mut splitter = Splitter::new(Form::Array, 100);
        let (mut found, mut pieces): (Vec<Vec<u8>>, _) = (Vec::new(), input.chunks(size));
        loop {
            match splitter.step().unwrap() {
                Step::Value { text, .. } => {
                    let count = serde_json::from_slice::<serde_json::Value>(text).unwrap()["Size"].as_u64().unwrap();
                    splitter.expect_raw(count);
                    found.push(Vec::new());
                }
                Step::Raw(bytes) => found.last_mut().unwrap().extend_from_slice(bytes),
                Step::NeedMore => match pieces.next() {
                    Some(piece) => splitter.push(piece),
                    None => splitter.end(),
                },
                Step::End => break,
            }
        }
        prop_assert_eq!(found, parts);
    }
}

fn check_fault(input: &str, form: Form, offset: u64, kind: SplitErrorKind) {
    for size in [1, 2, 3, 1000] {
        let (_, outcome) = split(input.as_bytes(), form, &[size]);
        assert_eq!(outcome, Err(SplitError { offset, kind }), "{input} by {size}");
    }
}

#[test]
fn faults_say_where_they_lie() {
    let unexpected = |found, expected| SplitErrorKind::Unexpected { found, expected };
    check_fault("{}", Form::Array, 0, unexpected(b'{', "'['"));
    check_fault("[1 2]", Form::Array, 3, unexpected(b'2', "',' or ']'"));
    check_fault("[1,]", Form::Array, 3, unexpected(b']', "a value"));
    check_fault("[,1]", Form::OpenArray, 1, unexpected(b',', "a value"));
    check_fault("[] x", Form::Array, 3, unexpected(b'x', "the end of the input"));
    check_fault("[{\"a\":1}", Form::Array, 8, SplitErrorKind::UnexpectedEnd);
    check_fault("[{\"a\":1", Form::OpenArray, 7, SplitErrorKind::UnexpectedEnd);
    check_fault("{} }", Form::Sequence, 3, unexpected(b'}', "a value"));
    check_fault("\"a", Form::Sequence, 2, SplitErrorKind::UnexpectedEnd);
    check_fault("", Form::Array, 0, SplitErrorKind::UnexpectedEnd);
}

#[test]
fn streams_left_open_end_anywhere_between_elements() {
    for input in ["", " ", "[", "[1", "[1,", "[1 , ", "[1]"] {
        for size in [1, 100] {
            let (values, outcome) = split(input.as_bytes(), Form::OpenArray, &[size]);
            assert_eq!(outcome, Ok(()), "{input}");
            assert_eq!(values.len(), usize::from(input.contains('1')));
        }
    }
}

#[test]
fn where_a_stream_closes_its_array_it_ends() {
    let mut splitter = Splitter::new(Form::OpenArray, 100);
    splitter.push(b"[1]");
    assert!(matches!(splitter.step(), Ok(Step::Value { .. })));
    assert_eq!(splitter.step(), Ok(Step::End));
    splitter.push(b" and more");
    assert_eq!(splitter.step(), Ok(Step::End));
}

#[test]
fn too_long_a_value_is_refused_before_it_is_held() {
    let mut splitter = Splitter::new(Form::Array, 1000);
    splitter.push(b"[\"");
    let mut outcome = Ok(());
    for _ in 0..1_000_000 {
        splitter.push(&[b'a'; 100]);
        if let Err(error) = splitter.step().map(|_| ()) {
            outcome = Err(error);
            break;
        }
    }
    assert_eq!(outcome, Err(SplitError { offset: 1, kind: SplitErrorKind::TooLong { limit: 1000 } }));
    assert!(splitter.allocated() < 1 << 20);
}

#[test]
fn depth_costs_nothing() {
    let depth = 200_000;
    let input = format!("[{}{}]", "[".repeat(depth), "]".repeat(depth));
    let (values, outcome) = split(input.as_bytes(), Form::Array, &[1000]);
    assert_eq!((values.len(), outcome), (1, Ok(())));
}

#[test]
fn many_values_take_no_more_memory_than_few() {
    let mut splitter = Splitter::new(Form::Array, 1 << 20);
    splitter.push(b"[0");
    let (mut count, piece) = (0, br#",{"Name":"a name","Tags":["a","b"]}"#.repeat(1000));
    for _ in 0..100 {
        splitter.push(&piece);
        while let Step::Value { .. } = splitter.step().unwrap() {
            count += 1;
        }
        assert!(splitter.allocated() <= 1 << 20);
    }
    assert_eq!(count, 100_001);
}
