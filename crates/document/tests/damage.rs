//! Bytes from anywhere: validation is total, what it lets through is safe to use and prints valid JSON, and even without it reading never panics.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use jackdaw_document::{Context, Document, Limits, Mode, Style, Value};

/// Reads everything there is, by every way.
fn walk(value: &Value<'_>, depth: u32) {
    if depth > 40 {
        return;
    }
    match value {
        Value::Array(array) => {
            for value in array.iter().take(1000) {
                walk(&value, depth + 1);
            }
        }
        Value::Object(object) => {
            let mut order = Vec::new();
            if object.len() < 1000 {
                assert_eq!(object.sorted(&mut order).count(), object.len());
            }
            for (name, value) in object.iter().take(1000) {
                let _ = object.get(&name.to_str());
                walk(&value, depth + 1);
            }
        }
        Value::Text(text) => {
            let _ = (text.to_str(), text.to_bytes(), text.has_lone_surrogates());
        }
        Value::Number(number) => {
            let _ = (number.as_f64(), number.to_string());
        }
        Value::Document(document) => walk(&document.root(), depth + 1),
        _ => {}
    }
}

/// What must hold of any bytes; returns whether they are a valid document.
fn check(bytes: &[u8]) -> bool {
    let Ok(document) = Document::open(bytes) else {
        return false;
    };
    // Small limits keep what a damaged document may claim small.
    let limits = Limits { text_size_max: 1 << 20, ..Limits::default() };
    if document.validate(&limits).is_err() {
        // Unchecked, it is read all the same, without panic. Printing may be long where containers are shared, so only reading.
        walk_bounded(&document.root(), &mut 2000);
        return false;
    }
    walk(&document.root(), 0);
    let text = document.to_json(Style::Compact);
    let context = Context::new();
    let reparsed = context
        .parse(&text)
        .unwrap_or_else(|error| panic!("a valid document prints invalid JSON: {error}\n{text}"));
    assert_eq!(reparsed.to_json(Style::Compact), text);
    true
}

fn walk_bounded(value: &Value<'_>, left: &mut u32) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    match value {
        Value::Array(array) => array.iter().take(50).for_each(|value| walk_bounded(&value, left)),
        Value::Object(object) => object.iter().take(50).for_each(|(name, value)| {
            let _ = name.to_str();
            let _ = object.get("Name");
            walk_bounded(&value, left);
        }),
        Value::Text(text) => {
            let _ = text.to_str();
        }
        Value::Number(number) => {
            let _ = (number.as_f64(), number.to_string());
        }
        Value::Document(document) => walk_bounded(&document.root(), left),
        _ => {}
    }
}

fn samples() -> Vec<Vec<u8>> {
    let context = Context::new();
    let many_names =
        format!("{{{}}}", (0..60).map(|i| format!("\"name{i}\":{i}")).collect::<Vec<_>>().join(","));
    let texts = [
        "1",
        "\"text\"",
        "-1234567.25",
        r#"{"Name":"Ann","Age":30,"Tags":["a","b","a longer tag"],"Points":[[1.5,2.5],[300,70000]],"None":null}"#,
        r#"{"a\n":"escaped \" text\n","s":"\ud800 lone","e":1e300,"o":{},"l":[],"t":true,"d":{"d":{"d":[{"x":-1}]}}}"#,
        r#"["the same text again","the same text again","the same text again, longer, so that it has more than sixty-four bytes"]"#,
        &many_names,
    ];
    let mut samples = Vec::new();
    for text in texts {
        for mode in [Mode::Memory, Mode::Disk] {
            samples.push(context.parse_with(text.as_bytes(), mode).unwrap().as_bytes().to_vec());
        }
    }
    let inner = context.parse(r#"{"inner":[1,2,3]}"#).unwrap();
    let built = context.build(Mode::Memory, |builder| {
        builder.begin_object()?;
        builder.name("embedded")?;
        builder.embed(&inner)?;
        builder.name("binary")?;
        builder.binary(b"\0\x01\xff")?;
        builder.name("double")?;
        builder.f64(0.1)?;
        builder.end()
    });
    samples.push(built.unwrap().as_bytes().to_vec());
    samples
}

#[test]
fn one_byte_changed() {
    let values: &[u8] = if cfg!(miri) {
        &[0, 0xFF]
    } else {
        &[
            0, 1, 2, 5, 0x0F, 0x10, 0x31, 0x40, 0x41, 0x42, 0x44, 0x50, 0x60, 0x70, 0x7F, 0x80, 0xED, 0xF0,
            0xFF,
        ]
    };
    let mut still_valid = 0;
    for sample in samples() {
        assert!(check(&sample));
        for place in 0..sample.len() {
            for value in values {
                let mut bytes = sample.clone();
                bytes[place] = *value;
                still_valid += u32::from(check(&bytes));
            }
            for bit in 0..8 {
                let mut bytes = sample.clone();
                bytes[place] ^= 1 << bit;
                still_valid += u32::from(check(&bytes));
            }
        }
    }
    // Changed letters and digits make other valid documents.
    assert!(still_valid > 0);
}

#[test]
fn cut_and_shifted() {
    for sample in samples() {
        for len in 0..sample.len() {
            check(&sample[..len]);
            check(&sample[len..]);
            let mut without = sample.clone();
            without.remove(len);
            check(&without);
            let mut doubled = sample.clone();
            doubled.insert(len, sample[len]);
            check(&doubled);
        }
    }
}

#[test]
fn random_bytes_with_a_good_end() {
    let mut seed = 3u64;
    let rounds = if cfg!(miri) { 200 } else { 200_000 };
    for _ in 0..rounds {
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        };
        let len = 6 + next() as usize % 60;
        let mut bytes: Vec<u8> = (0..len)
            .map(|_| [next() as u8, next() as u8 % 16, 0x40, 0x50, 0x60, 0x10][next() as usize % 6])
            .collect();
        bytes[len - 1] = jackdaw_document::format::VERSION;
        bytes[len - 2] = next() as u8 & 0x51;
        check(&bytes);
    }
}

/// Containers that share a child would double at each level; the order of containers forbids it.
#[test]
fn shared_containers_are_refused() {
    // [x, x] with one and the same x: an array of two elements at one position.
    let context = Context::new();
    let good = context.parse("[[null],[null]]").unwrap().as_bytes().to_vec();
    assert!(check(&good));
    let mut shared = good.clone();
    // The root's two distances: make both lead to the same array.
    let at = shared.len() - 5 - 2;
    assert_ne!(shared[at], shared[at + 1]);
    shared[at] = shared[at + 1];
    let document = Document::open(&shared).unwrap();
    assert!(document.validate(&Limits::default()).is_err());
}

/// Ten thousand references to one text count ten thousand times against the limit of text.
#[test]
fn shared_text_counts_each_time() {
    let context = Context::new();
    let text = format!("[{}]", vec![format!("\"{}\"", "x".repeat(1000)); 10_000].join(","));
    let document = context.parse(&text).unwrap();
    assert!(document.as_bytes().len() < 50_000, "{}", document.as_bytes().len());
    document.validate(&Limits::default()).unwrap();
    let limits = Limits { text_size_max: 1 << 20, ..Limits::default() };
    assert!(document.validate(&limits).unwrap_err().to_string().contains("text"));
}

#[test]
fn other_versions_are_named() {
    let context = Context::new();
    let mut bytes = context.parse("[1]").unwrap().as_bytes().to_vec();
    *bytes.last_mut().unwrap() = 0xD2;
    assert!(Document::from_bytes(&bytes).unwrap_err().to_string().contains("version"));
}

#[test]
fn a_missing_dictionary_is_named() {
    let dictionary = std::sync::Arc::new(
        jackdaw_document::Dictionary::train(9, [b"Name of a city".as_slice(); 20]).unwrap(),
    );
    let mut context = Context::new();
    context.set_dictionary(std::sync::Arc::clone(&dictionary));
    let document = context.parse_with(br#"{"Name of a city":"Name of a city"}"#, Mode::Disk).unwrap();
    assert_eq!(document.to_json(Style::Compact), r#"{"Name of a city":"Name of a city"}"#);
    assert_eq!(document.dictionary_id(), 9);
    let error = Document::from_bytes(document.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("dictionary 9"), "{error}");
    let again = Document::open_with(document.as_bytes(), &dictionary).unwrap();
    again.validate(&Limits::default()).unwrap();
    assert_eq!(again, document);
}
