//! Input that somebody chose to do harm, or that only looks like it: each case with what must come of it.
#![allow(clippy::unwrap_used, missing_docs)]

use jackdaw_document::date::{DATE_TEXT_MAX, Date};
use jackdaw_document::etag::GuidEtag;
use jackdaw_document::{
    Context, Document, Error, Limits, Mode, Number, Overlay, Path, Style, Value, differences,
};

const MODES: [Mode; 2] = [Mode::Memory, Mode::Disk];

/// Parses in both modes, validates, prints; both must agree.
fn printed(context: &Context, text: &str) -> Result<String, Error> {
    let mut printed = Vec::new();
    for mode in MODES {
        let document = context.parse_with(text.as_bytes(), mode)?;
        document.validate(context.limits()).unwrap();
        let mut chunks = Vec::new();
        document.write_to(&mut chunks, Style::Compact).unwrap();
        let json = document.to_json(Style::Compact);
        assert_eq!(String::from_utf8(chunks).unwrap(), json);
        printed.push(json);
    }
    assert_eq!(printed[0], printed[1]);
    Ok(printed.remove(0))
}

#[test]
fn the_deepest_document_goes_through_everything() {
    let depth = Limits::WIDEST.depth_max as usize;
    let context = Context::with_limits(Limits::WIDEST);
    let arrays = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    let mixed = format!("{}1{}", r#"[{"a":"#.repeat(depth / 2), "}]".repeat(depth / 2));
    for text in [arrays, objects, mixed] {
        assert_eq!(printed(&context, &text).unwrap(), text);
        let document = context.parse(&text).unwrap();
        let again = context.parse_with(text.as_bytes(), Mode::Disk).unwrap();
        assert!(document == again && document.content_hash() == again.content_hash());
        assert!(differences(&document, &again).is_empty());
        assert_eq!(context.parse(document.to_json(Style::Indented)).unwrap(), document);
        let _: serde::de::IgnoredAny = document.deserialize().unwrap();
        assert_eq!(context.copy(&document).unwrap(), document);
        let mut overlay = Overlay::new(document);
        let path = if text.starts_with('{') { "b" } else { "[0]" };
        overlay.set(&Path::parse(path).unwrap(), Value::Null).unwrap();
        overlay.write(&context, Mode::Memory).unwrap();
        // One level more is one too many, as text and by building.
        assert!(printed(&context, &format!("[{text}]")).is_err());
        let wrapped = context.build(Mode::Memory, |builder| {
            builder.begin_array()?;
            builder.value(&document.root())?;
            builder.end()
        });
        assert!(matches!(wrapped, Err(Error::Limit { what: "depth", .. })), "{wrapped:?}");
    }
}

/// Printing stops at the deepest level, so that what is built must not go beyond it, embedding included.
#[test]
fn embedding_counts_as_depth() {
    let context = Context::with_limits(Limits { depth_max: 20, ..Limits::default() });
    let mut bytes = context.parse(r#"{"x":[1]}"#).unwrap().as_bytes().to_vec();
    let mut embedded = 0;
    let error = loop {
        let inner = Document::from_bytes(&bytes).unwrap();
        let outer = context.build(Mode::Memory, |builder| {
            builder.begin_object()?;
            builder.name("inner")?;
            builder.embed(&inner)?;
            builder.end()
        });
        match outer {
            Ok(outer) => {
                outer.validate(context.limits()).unwrap();
                let json = outer.to_json(Style::Compact);
                assert_eq!(context.parse(&json).unwrap().to_json(Style::Compact), json);
                let next = outer.as_bytes().to_vec();
                bytes = next;
                embedded += 1;
            }
            Err(error) => break error,
        }
        assert!(embedded < 100);
    };
    assert!(matches!(error, Error::Limit { what: "depth", limit: 20 }), "{error}");
    assert!(embedded >= 5);
}

#[test]
fn an_embedded_null_is_an_absent_option() {
    let context = Context::new();
    let null = context.parse("null").unwrap();
    let outer = context
        .build(Mode::Memory, |builder| {
            builder.begin_array()?;
            builder.embed(&null)?;
            builder.end()
        })
        .unwrap();
    assert_eq!(outer.deserialize::<Vec<Option<String>>>().unwrap(), [None]);
}

#[test]
fn names_may_be_huge_but_not_more() {
    let context = Context::new();
    let limit = context.limits().name_size_max;
    for (unit, size) in [("n", 1), ("é", 2), ("\\u0000", 1), ("\\\"", 1)] {
        let longest = unit.repeat(limit / size);
        let text = format!(r#"{{"{longest}":1,"b":2}}"#);
        assert_eq!(printed(&context, &text).unwrap(), text);
        let error = printed(&context, &format!(r#"{{"{longest}{unit}":1}}"#)).unwrap_err();
        assert!(error.to_string().contains("name"), "{error}");
    }
    let small = Context::with_limits(Limits { name_size_max: 3, name_count_max: 2, ..Limits::default() });
    assert!(small.parse(r#"{"abc":1,"é":[{"abc":1}]}"#).is_ok());
    assert!(small.parse(r#"{"abcd":1}"#).is_err());
    assert!(small.parse(r#"{"a":1,"b":2,"c":3}"#).is_err());
}

#[test]
fn repeated_names_keep_the_last_and_cost_no_more() {
    let context = Context::new();
    let many: Vec<String> = (0..200_000).map(|i| format!(r#""a":{i}"#)).collect();
    assert_eq!(printed(&context, &format!("{{{}}}", many.join(","))).unwrap(), r#"{"a":199999}"#);
    // Many names, each many times, at two levels.
    let many: Vec<String> =
        (0..20_000).map(|i| format!(r#""n{}":{{"x":{i},"x":{}}}"#, i % 1000, i + 1)).collect();
    let text = printed(&context, &format!("{{{}}}", many.join(","))).unwrap();
    let document = context.parse(&text).unwrap();
    let object = document.object().unwrap();
    assert_eq!(object.len(), 1000);
    for i in 0..1000 {
        assert_eq!(object.get_object(&format!("n{i}")).unwrap().get_i64("x").unwrap(), 19_000 + i + 1);
    }
}

/// Names chosen so that a table of them by a plain hash would degenerate: nothing here may take long, and the answers stay right.
#[test]
fn many_names_alike() {
    let context = Context::new();
    let names: Vec<String> = (0..30_000).map(|i| format!("{:0>40}", i)).collect();
    let text: Vec<String> = names.iter().enumerate().map(|(i, name)| format!(r#""{name}":{i}"#)).collect();
    let text = format!("{{{}}}", text.join(","));
    assert_eq!(printed(&context, &text).unwrap(), text);
    let document = context.parse(&text).unwrap();
    for (i, name) in names.iter().enumerate().step_by(97) {
        assert_eq!(document.get(name).unwrap().as_i64(), Some(i as i64));
    }
    assert!(document.get("0").is_none());
}

#[test]
fn nul_and_empty_are_names_and_texts_like_others() {
    let context = Context::new();
    let text = r#"{"":"","\u0000":"\u0000","\u0000\u0000":{"":[""]},"a\u0000b":"a\u0000b","a":"a"}"#;
    assert_eq!(printed(&context, text).unwrap(), text);
    for mode in MODES {
        let document = context.parse_with(text.as_bytes(), mode).unwrap();
        for (name, value) in [("", ""), ("\0", "\0"), ("a\0b", "a\0b"), ("a", "a")] {
            assert_eq!(document.object().unwrap().text(name).unwrap().to_str(), value);
        }
        assert_eq!(document.get("\0\0").unwrap().get("").unwrap().to_json(Style::Compact), r#"[""]"#);
        assert!(document.get("\0\0\0").is_none() && document.get("a\0").is_none());
    }
}

/// Lone surrogates at every place around the blocks that strings are copied in.
#[test]
fn lone_surrogates_come_back_from_anywhere() {
    let context = Context::new();
    for before in (0..70).chain([127, 128, 129]) {
        for surrogate in ["\\ud800", "\\udfff", "\\udc00\\ud800", "\\ud800\\ud800", "\\ud83d\\\\ude00"] {
            for after in ["", "x", "\\n", "é", "\\ud83d\\ude00"] {
                let text = format!(r#"["{}{surrogate}{after}"]"#, "y".repeat(before));
                let plain = text.replace("\\ud83d\\ude00", "😀");
                assert_eq!(printed(&context, &text).unwrap(), plain);
                let document = context.parse(&text).unwrap();
                assert_eq!(context.parse(&plain).unwrap(), document);
                assert_eq!(context.copy(&document).unwrap().to_json(Style::Compact), plain);
                let lossy: Vec<String> = document.deserialize().unwrap();
                assert!(lossy[0].contains('\u{FFFD}'), "{text}");
            }
        }
    }
    assert!(printed(&context, r#"{"\udc00":1}"#).is_err());
    // A pair in two halves, one escaped, the other not: there is no such text.
    assert!(context.parse(b"[\"\\ud83d\xed\xb8\x80\"]").is_err());
}

#[test]
fn every_escape_of_every_character_of_the_basic_plane() {
    let context = Context::new();
    for unit in 0..=0xFFFFu32 {
        let Some(character) = char::from_u32(unit) else { continue };
        if unit % 7 != 0 && unit > 0x300 {
            continue;
        }
        let document = context.parse(format!("\"\\u{unit:04x}\\u{unit:04X}\"")).unwrap();
        let text = document.root().as_text().unwrap();
        assert_eq!(text.as_str().unwrap(), format!("{character}{character}"));
        let expected = serde_json::to_string(&format!("{character}{character}")).unwrap();
        assert_eq!(document.to_json(Style::Compact), expected);
    }
}

#[test]
fn numbers_at_their_limits() {
    let context = Context::new();
    let cases = [
        "0",
        "-0",
        "-0.0",
        "0.0",
        "-0e0",
        "0e400",
        "1e400",
        "-1e400",
        "1e-400",
        "1E+0000000000000000000001",
        "999999999999999999",
        "1000000000000000000",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "12345678901234567890",
        "99999999999999999999",
        "0.1",
        "0.10",
        "-0.1",
        "1.0",
        "1.00000000000000000",
        "1.000000000000000000",
        "1.0000000000000000000",
        "123456789012345678.9",
        "1234567890123456789.0",
        "0.000000000000000001",
        "0.0000000000000000001",
        "5e-324",
        "2.2250738585072011e-308",
        "1.7976931348623157e308",
        "9007199254740993",
        "9007199254740992.5",
        "0.30000000000000004",
    ];
    for text in cases {
        assert_eq!(printed(&context, text).unwrap(), text);
        let document = context.parse(text).unwrap();
        let value = document.root();
        assert_eq!(value.as_i64(), text.parse().ok().filter(|_| text != "-0"), "{text}");
        let expected: f64 = text.parse().unwrap();
        assert_eq!(value.as_f64().unwrap().to_bits(), expected.to_bits(), "{text}");
        assert_eq!(document.deserialize::<f64>().unwrap().to_bits(), expected.to_bits(), "{text}");
        assert!(document.deserialize::<serde::de::IgnoredAny>().is_ok());
        assert_eq!(document.deserialize::<u64>().ok(), text.parse().ok(), "{text}");
        assert_eq!(document.deserialize::<i128>().ok(), text.parse().ok().filter(|_| text != "-0"), "{text}");
        assert_eq!(document.deserialize::<u128>().ok(), text.parse().ok(), "{text}");
    }
    for scale in 1..200usize {
        for digits in ["1", "-7", "123456789012345678"] {
            let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
            let text = format!("{sign}0.{}{digits}", "0".repeat(scale));
            assert_eq!(printed(&context, &text).unwrap(), text);
            let expected: f64 = text.parse().unwrap();
            assert_eq!(context.parse(&text).unwrap().root().as_f64(), Some(expected), "{text}");
        }
        let long = format!("{}.{}", "9".repeat(scale), "9".repeat(scale));
        assert_eq!(printed(&context, &long).unwrap(), long);
    }
}

/// Numbers that print the same are equal and have the same hash, however they came in.
#[test]
fn numbers_are_what_they_print() {
    let context = Context::new();
    let numbers = [
        Number::Integer(5),
        Number::Double(5.0),
        Number::Double(-0.0),
        Number::Double(1e21),
        Number::Double(0.5),
        Number::Decimal { mantissa: 50, scale: 1 },
        Number::Decimal { mantissa: 5, scale: 1 },
        Number::Decimal { mantissa: i64::MAX, scale: 1 },
        Number::Decimal { mantissa: i64::MIN, scale: 18 },
        Number::Decimal { mantissa: 0, scale: 127 },
        Number::Text("5"),
        Number::Text("5e0"),
        Number::Text("-0.0"),
        Number::Text("922337203685477580.7"),
    ];
    for left in numbers {
        let text = left.to_string();
        let document = context.parse(&text).unwrap();
        assert_eq!(document.to_json(Style::Compact), text);
        assert_eq!(document.root().as_number().unwrap(), left, "{text}");
        assert_eq!(document.content_hash(), Value::Number(left).content_hash(), "{text}");
        for right in numbers {
            assert_eq!(left == right, left.to_string() == right.to_string(), "{left:?} {right:?}");
        }
        let built = context.build(Mode::Memory, |builder| builder.number(&left)).unwrap();
        built.validate(context.limits()).unwrap();
        assert_eq!(built.to_json(Style::Compact), text);
        assert_eq!(built, document);
    }
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(context.build(Mode::Memory, |builder| builder.f64(value)).is_err());
    }
    for text in ["", "-", "1x", " 1", "1 ", "01", "NaN", "0x1", "1e", "١"] {
        assert!(context.build(Mode::Memory, |builder| builder.number_text(text)).is_err(), "{text}");
    }
}

/// Distances of four bytes.
#[test]
fn a_document_of_many_megabytes() {
    let context = Context::new();
    let long = "long text ".repeat(1_700_000);
    let text = format!(r#"["first","{long}",{{"name":"last","again":"first"}},1234567]"#);
    let document = context.parse(&text).unwrap();
    document.validate(context.limits()).unwrap();
    assert_eq!(document.to_json(Style::Compact), text);
    let array = document.root().as_array().unwrap();
    assert_eq!(array.get(0).unwrap().as_str().unwrap(), "first");
    assert_eq!(array.get(2).unwrap().get("again").unwrap().as_str().unwrap(), "first");
    assert_eq!(array.get(3).unwrap().as_i64(), Some(1_234_567));
}

#[test]
fn paths_from_anybody_are_read_or_refused() {
    let context = Context::new();
    let document = context.parse(r#"{"a":{"b":[[1],{"c.d":2}]},"":{"":3}}"#).unwrap();
    let pieces = [
        "a",
        "b",
        ".",
        "..",
        "[",
        "]",
        "[]",
        "[0]",
        "[99999999999999999999999]",
        "[-1]",
        "'",
        "''",
        "é",
        "\0",
        " ",
    ];
    for first in pieces {
        for second in pieces {
            for third in pieces {
                let path = format!("{first}{second}{third}");
                if let Ok(read) = Path::parse(&path) {
                    assert_eq!(Path::parse(&read.to_string()).unwrap(), read, "{path}");
                    let mut count = 0;
                    read.visit(&document.root(), |_| {
                        count += 1;
                        true
                    });
                    assert!(count <= 4);
                }
            }
        }
    }
}

/// Each text with one byte changed is refused, or means what it then says.
#[test]
fn changed_dates_and_etags() {
    let date = b"2015-01-15T00:41:16.6616631Z";
    let etag = b"01000000-0000-0005-0000-00000000012C";
    for place in 0..etag.len() {
        for byte in 0..=255 {
            if place < date.len() {
                let mut changed = *date;
                changed[place] = byte;
                if let Some(read) = Date::parse(&changed) {
                    assert_eq!(read.format(&mut [0; DATE_TEXT_MAX]), changed);
                }
            }
            let mut changed = *etag;
            changed[place] = byte;
            if let Some(read) = GuidEtag::parse(&changed) {
                assert!(read.to_text().eq_ignore_ascii_case(&changed));
            }
        }
    }
    for size in 0..=40 {
        let _ = (Date::parse(&[b'0'; 40][..size]), GuidEtag::parse(&[0xFF; 40][..size]));
    }
}
