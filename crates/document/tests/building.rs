//! The builder, `serde`, and paths.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;

use jackdaw_document::{Context, Error, Mode, Number, Path, Style, Value};
use serde::{Deserialize, Serialize};

#[test]
fn calls_in_order_make_a_document() {
    let context = Context::new();
    let document = context
        .build(Mode::Memory, |builder| {
            builder.begin_object()?;
            builder.name("a")?;
            builder.begin_array()?;
            builder.null()?;
            builder.bool(true)?;
            builder.i64(i64::MIN)?;
            builder.f64(1.5)?;
            builder.number_text("1.10")?;
            builder.number_text("123456789012345678901234567890")?;
            builder.str("é\n\"")?;
            builder.binary(b"hello")?;
            builder.begin_object()?;
            builder.end()?;
            builder.begin_array()?;
            builder.end()?;
            builder.end()?;
            builder.name("b")?;
            builder.number(&Number::Decimal { mantissa: -5, scale: 3 })?;
            builder.name("a")?;
            builder.str("the last one counts")?;
            builder.end()
        })
        .unwrap();
    document.validate(context.limits()).unwrap();
    assert_eq!(document.to_json(Style::Compact), r#"{"b":-0.005,"a":"the last one counts"}"#);
    let array = context
        .build(Mode::Disk, |builder| {
            builder.begin_array()?;
            builder.f64(1.0)?;
            builder.f64(1e300)?;
            builder.binary(b"hello")?;
            builder.binary(b"hi")?;
            builder.end()
        })
        .unwrap();
    array.validate(context.limits()).unwrap();
    assert_eq!(array.to_json(Style::Compact), r#"[1.0,1E+300,"aGVsbG8=","aGk="]"#);
}

/// The bytes of the worked example in `docs/format/document.md`.
#[test]
fn the_worked_example() {
    let context = Context::new();
    let document = context.parse(r#"{"id":7,"tags":["a","bc"],"price":1.10}"#).unwrap();
    let expected = [
        &b"a\x01bc\x02"[..],
        &[0x24, 0x40, 4, 1, 110, 2, 0x3C, 0, 0x03, 0x50, 0x20, 7, 6, 2],
        b"idtagsprice",
        &[2, 6, 11, 0x60, 22, 3, 0, 0xD1],
    ];
    assert_eq!(document.as_bytes(), expected.concat());
}

#[test]
fn calls_out_of_order_are_refused() {
    let context = Context::new();
    type Calls = fn(&mut jackdaw_document::Builder<'_>) -> Result<(), Error>;
    let wrong: &[(&str, Calls)] = &[
        ("nothing", |_| Ok(())),
        ("two roots", |b| b.null().and_then(|()| b.null())),
        ("open", |b| b.begin_array()),
        ("end without begin", |b| b.end()),
        ("value without name", |b| b.begin_object().and_then(|()| b.null())),
        ("name in array", |b| b.begin_array().and_then(|()| b.name("a"))),
        ("name at root", |b| b.name("a")),
        ("two names", |b| b.begin_object().and_then(|()| b.name("a")).and_then(|()| b.name("b"))),
        ("name without value", |b| b.begin_object().and_then(|()| b.name("a")).and_then(|()| b.end())),
        ("NaN", |b| b.f64(f64::NAN)),
        ("no number", |b| b.number_text("1.")),
    ];
    for (name, calls) in wrong {
        assert!(matches!(context.build(Mode::Memory, calls), Err(Error::Build(_))), "{name}");
        assert_eq!(context.parse("[1]").unwrap().to_json(Style::Compact), "[1]", "after {name}");
    }
}

#[test]
fn a_document_inside_a_document_is_its_root() {
    let mut context = Context::new();
    for mode in [Mode::Memory, Mode::Disk] {
        let inner =
            context.parse_with(br#"{"x":[1,2],"name":"some text to compress, and the like"}"#, mode).unwrap();
        let outer = context
            .build(mode, |builder| {
                builder.begin_object()?;
                builder.name("inner")?;
                builder.embed(&inner)?;
                builder.name("list")?;
                builder.begin_array()?;
                builder.embed(&inner)?;
                builder.end()?;
                builder.end()
            })
            .unwrap();
        outer.validate(context.limits()).unwrap();
        let text = outer.to_json(Style::Compact);
        let parsed = context.parse(&text).unwrap();
        assert_eq!(outer, parsed);
        assert_eq!(outer.content_hash(), parsed.content_hash());
        assert_eq!(outer.to_json(Style::Indented), parsed.to_json(Style::Indented));
        assert_eq!(Path::parse("inner.x[1]").unwrap().first(&outer.root()).unwrap().as_i64(), Some(2));
        let mut chunks = Vec::new();
        outer.write_to(&mut chunks, Style::Compact).unwrap();
        assert_eq!(String::from_utf8(chunks).unwrap(), text);
        assert!(matches!(context.build(mode, |builder| builder.embed(&inner)), Err(Error::Build(_))));
        context.reset();
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Order<'a> {
    #[serde(rename = "Company")]
    company: &'a str,
    lines: Vec<Line>,
    note: Option<String>,
    map: BTreeMap<i32, f64>,
    state: State,
    other: State,
    third: State,
    fourth: State,
    unit: (),
    pair: (u8, char),
    big: u64,
    huge: u128,
    small: f32,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Line {
    price: f64,
    count: i64,
    bool: bool,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum State {
    New,
    Paid(i64),
    Sent { by: String },
    Split(i32, i32),
}

#[test]
fn serde_types_come_back() {
    let context = Context::new();
    let order = Order {
        company: "companies/1",
        lines: vec![
            Line { price: 0.1, count: -7, bool: true },
            Line { price: 1e300, count: i64::MAX, bool: false },
        ],
        note: None,
        map: [(1, 2.5), (-3, 0.0)].into(),
        state: State::New,
        other: State::Paid(5),
        third: State::Sent { by: "mail".to_owned() },
        fourth: State::Split(1, 2),
        unit: (),
        pair: (255, 'é'),
        big: u64::MAX,
        huge: u128::MAX,
        small: 0.1,
    };
    let document = context.serialize(&order, Mode::Memory).unwrap();
    document.validate(context.limits()).unwrap();
    assert_eq!(document.to_json(Style::Compact), serde_json::to_string(&order).unwrap().replace("e+", "E+"));
    assert_eq!(document.deserialize::<Order<'_>>().unwrap(), order);
    // Compressed text cannot be borrowed, owned text can be read.
    let compressed = context.serialize(&order, Mode::Disk).unwrap();
    assert_eq!(compressed, document);
    assert_eq!(compressed.get("other").unwrap().deserialize::<State>().unwrap(), order.other);
    assert_eq!(compressed.get("lines").unwrap().deserialize::<Vec<Line>>().unwrap(), order.lines);
    assert!(document.deserialize::<Vec<i32>>().is_err());
    assert!(document.get("pair").unwrap().deserialize::<(u8,)>().is_err());
    assert!(context.serialize(&f64::NAN, Mode::Memory).is_err());
    let by_pair: BTreeMap<(i32, i32), i32> = [((1, 2), 3)].into();
    assert!(context.serialize(&by_pair, Mode::Memory).is_err());
}

#[test]
fn typed_getters_never_guess() {
    let context = Context::new();
    let document =
        context.parse(r#"{"i":1,"d":1.0,"e":1e0,"s":"1","b":true,"n":null,"o":{},"a":[]}"#).unwrap();
    let object = document.object().unwrap();
    assert_eq!(object.get_i64("i").unwrap(), 1);
    for name in ["d", "e", "s", "b", "n", "o", "a"] {
        assert!(matches!(object.get_i64(name), Err(Error::Type { .. })), "{name}");
    }
    for name in ["i", "d", "e"] {
        assert_eq!(object.get_f64(name).unwrap(), 1.0);
    }
    assert!(matches!(object.get_f64("s"), Err(Error::Type { .. })));
    assert_eq!(object.get_str("s").unwrap(), "1");
    assert!(matches!(object.get_str("i"), Err(Error::Type { .. })));
    assert!(object.get_bool("b").unwrap());
    assert!(matches!(object.get_bool("n"), Err(Error::Type { .. })));
    assert!(object.get_object("o").unwrap().is_empty());
    assert!(object.get_array("a").unwrap().is_empty());
    assert!(matches!(object.get_array("o"), Err(Error::Type { .. })));
    assert!(matches!(object.get_str("missing"), Err(Error::Missing { .. })));
}

#[test]
fn paths() {
    let context = Context::new();
    let document = context
        .parse(r#"{"a":{"b":[{"c":1},{"c":2},{"d":3}],"x.y":{"it's":4}},"m":[[1,2],[3]],"refs":["p/1","p/2"],"":5}"#)
        .unwrap();
    let all = |path: &str, through: bool| {
        let mut found = Vec::new();
        let path = Path::parse(path).unwrap();
        let each = |value: Value<'_>| {
            found.push(value.to_json(Style::Compact));
            true
        };
        if through {
            path.visit_through_arrays(&document.root(), each)
        } else {
            path.visit(&document.root(), each)
        }
        found.join(" ")
    };
    assert_eq!(all("a.b[].c", false), "1 2");
    assert_eq!(all("a.b[1].c", false), "2");
    assert_eq!(all("a.b.c", false), "");
    assert_eq!(all("a.b.c", true), "1 2");
    assert_eq!(all("m[][]", false), "1 2 3");
    assert_eq!(all("m[1][0]", false), "3");
    assert_eq!(all("refs", true), "\"p/1\" \"p/2\"");
    assert_eq!(all("refs", false), r#"["p/1","p/2"]"#);
    assert_eq!(all("a.'x.y'.'it''s'", false), "4");
    assert_eq!(all("''", false), "5");
    assert_eq!(all("missing.more", false), "");
    let mut first = 0;
    Path::parse("m[][]").unwrap().visit(&document.root(), |_| {
        first += 1;
        first < 2
    });
    assert_eq!(first, 2, "it stops when told to");
    for path in ["a.b[].c", "a", "[0].a", "'x.y'.it's", "'.''.'", "", "m[][]"] {
        assert_eq!(Path::parse(path).unwrap().to_string(), path);
    }
    for wrong in [".", "a.", ".a", "a..b", "a[", "a[x]", "a[-1]", "a]b[", "'a", "'a'b", "a[0]b"] {
        assert!(matches!(Path::parse(wrong), Err(Error::Path { .. })), "{wrong}");
    }
}
