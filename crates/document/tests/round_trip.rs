//! Any JSON value goes into a document and comes back, in both modes; whatever is asked of it in place is what `serde_json` answers.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod reference;

use jackdaw_document::{ChunkPrinter, Context, Document, Mode, Property, Style};
use proptest::prelude::*;
use reference::assert_same;

/// JSON values with the shapes that matter: few names often repeated, many distinct names, text with escapes, all sorts of numbers.
fn value() -> impl Strategy<Value = serde_json::Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(serde_json::Value::from),
        (0..300i64).prop_map(serde_json::Value::from),
        any::<u64>().prop_map(serde_json::Value::from),
        any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(serde_json::Value::from),
        "-?(0|[1-9][0-9]{0,25})\\.[0-9]{1,30}".prop_map(|text| serde_json::from_str(&text).unwrap()),
        "-?(0|[1-9][0-9]{0,5})(\\.[0-9]{1,5})?[eE][+-]?[0-9]{1,3}"
            .prop_map(|text| serde_json::from_str(&text).unwrap()),
    ];
    let text = prop_oneof![
        "[a-z ]{0,12}",
        "[a-zA-Z0-9 .,/:<>]{0,200}",
        "\\PC{0,40}",
        "[\u{0}-\u{20}\"\\\\é水😀]{0,30}",
        Just("the same text, long enough to be shared".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        number,
        text.prop_map(serde_json::Value::from),
    ];
    let name = prop_oneof![
        4 => "[a-f]{1,2}",
        2 => prop_oneof![Just("Id"), Just("Name"), Just("@metadata"), Just("a name of more than thirty-two bytes, to be sure")].prop_map(str::to_owned),
        1 => "\\PC{0,20}",
        1 => "[\"\\\\\n]{1,3}",
    ];
    leaf.prop_recursive(6, 200, 12, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(serde_json::Value::from),
            prop::collection::vec((name.clone(), inner), 0..40)
                .prop_map(|properties| serde_json::Value::Object(properties.into_iter().collect())),
        ]
    })
}

/// All that must hold of one text.
fn check(context: &Context, text: &str) {
    let theirs: serde_json::Value = serde_json::from_str(text).unwrap();
    let memory = context.parse(text).unwrap();
    let disk = context.parse_with(text.as_bytes(), Mode::Disk).unwrap();
    for document in [&memory, &disk] {
        document.validate(context.limits()).unwrap();
        let document = Document::from_bytes(document.as_bytes()).unwrap();
        assert_same(&document.root(), &theirs);

        let printed = document.to_json(Style::Compact);
        let again: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_same(&document.root(), &again);
        // Printing what was printed changes nothing: one spelling for everything.
        let second = Context::new();
        let reparsed = second.parse(&printed).unwrap();
        assert_eq!(reparsed.to_json(Style::Compact), printed);
        assert_eq!(reparsed, document);
        assert_eq!(reparsed.content_hash(), document.content_hash());

        let indented = document.to_json(Style::Indented);
        assert_eq!(
            second.parse(&indented).unwrap().as_bytes(),
            reparsed.as_bytes(),
            "white space changes nothing"
        );

        for style in [Style::Compact, Style::Indented] {
            let whole = document.to_json(style);
            for size in [1, 7, 100] {
                let mut printer = ChunkPrinter::new(document, style);
                let mut pieces = Vec::new();
                let mut chunk = Vec::new();
                loop {
                    let more = printer.fill(&mut chunk, size);
                    pieces.append(&mut chunk);
                    if !more {
                        break;
                    }
                }
                assert_eq!(String::from_utf8(pieces).unwrap(), whole);
            }
            let mut written = Vec::new();
            document.write_to(&mut written, style).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), whole);
        }

        let copied = context.build(Mode::Memory, |builder| builder.value(&document.root())).unwrap();
        assert_eq!(copied, document);
        assert_eq!(copied.to_json(Style::Compact), printed);
        copied.validate(context.limits()).unwrap();

        if let Some(object) = document.object() {
            for (name, value) in object.iter() {
                let property = Property::new(&name.to_str());
                for _ in 0..2 {
                    assert_eq!(property.get(&object), Some(value));
                }
                assert_eq!(document.get(&name.to_str()), Some(value));
            }
        }
    }
    assert_eq!(memory, disk);
    assert_eq!(memory.content_hash(), disk.content_hash());
    assert_eq!(memory.to_json(Style::Compact), disk.to_json(Style::Compact));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_value_round_trips(first in value(), second in value()) {
        // One context for both: what it remembers of the first must not show in the second.
        let context = Context::new();
        check(&context, &first.to_string());
        check(&context, &second.to_string());
        check(&context, &serde_json::to_string_pretty(&first).unwrap());
    }

    #[test]
    fn serde_writes_and_reads_what_text_does(value in value()) {
        let context = Context::new();
        // Their numbers of arbitrary precision write themselves as a private struct, so only through text.
        let document = context.parse(value.to_string()).unwrap();
        let read: serde_json::Value = document.deserialize().unwrap();
        let through_text: serde_json::Value = serde_json::from_str(&document.to_json(Style::Compact)).unwrap();
        prop_assert_eq!(count(&read), count(&through_text));
    }

    #[test]
    fn names_in_another_order_are_equal(mut properties in prop::collection::vec(("[a-z]{1,6}", value()), 1..40)) {
        properties.sort_by(|left, right| left.0.cmp(&right.0));
        properties.dedup_by(|left, right| left.0 == right.0);
        let forward: serde_json::Map<_, _> = properties.iter().cloned().collect();
        let backward: serde_json::Map<_, _> = properties.iter().rev().cloned().collect();
        let context = Context::new();
        let left = context.parse(serde_json::to_string(&forward).unwrap()).unwrap();
        let right = context.parse(serde_json::to_string(&backward).unwrap()).unwrap();
        prop_assert_eq!(left, right);
        prop_assert_eq!(left.content_hash(), right.content_hash());
    }
}

fn count(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(values) => 1 + values.iter().map(count).sum::<usize>(),
        serde_json::Value::Object(properties) => 1 + properties.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// Every document of the small sets in `tests/data`, and of the directory in `JACKDAW_DATA` if it is set (the large sets are not part of the repository).
#[test]
fn real_documents_round_trip() {
    let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files = reference::files(&own);
    assert!(!files.is_empty());
    if let Some(directory) = reference::data_directory() {
        files.extend(reference::files(&directory));
    }
    let mut context = Context::with_limits(reference::limits());
    for file in files {
        let texts = reference::texts(&file);
        // The large sets are alike from document to document: a bounded number from each file keeps this under a minute.
        let step = (texts.len() / 1500).max(1);
        for text in texts.iter().step_by(step) {
            let theirs: serde_json::Value = serde_json::from_slice(text).unwrap();
            for mode in [Mode::Memory, Mode::Disk] {
                let document = context.parse_with(text, mode).unwrap();
                document
                    .validate(context.limits())
                    .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                assert_same(&document.root(), &theirs);
                let printed = document.to_json(Style::Compact);
                let second = context.parse(&printed).unwrap();
                assert_eq!(second, document);
                assert_same(&second.root(), &theirs);
            }
            context.reset();
        }
    }
}
