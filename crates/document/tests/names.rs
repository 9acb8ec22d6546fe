//! Finding properties by name, with and without memory of where they were.
#![allow(clippy::unwrap_used, missing_docs)]

use jackdaw_document::{Context, Mode, Property};

/// Every set of these names, in documents one after the other: names of all the lengths that are compared in their own way, some the beginning of their
/// neighbour, so that a length misread would find them.
#[test]
fn every_shape_finds_what_it_has_and_nothing_else() {
    const NAMES: [&str; 9] =
        ["", "b", "ab", "abc", "abcdefgh", "abcdefghi", "abcdefghijklmnop", "abcdefghijklmnopq", "é"];
    let mut context = Context::new();
    let properties = NAMES.map(Property::new);
    for mode in [Mode::Memory, Mode::Disk] {
        for set in 0..1u32 << NAMES.len() {
            // Odd sets backwards, so that no order is special.
            let mut members: Vec<usize> = (0..NAMES.len()).filter(|i| set >> i & 1 == 1).collect();
            if set % 2 == 1 {
                members.reverse();
            }
            let text: Vec<String> =
                members.iter().map(|i| format!(r#""{}":"value {i}""#, NAMES[*i])).collect();
            let document = context.parse_with(format!("{{{}}}", text.join(",")).as_bytes(), mode).unwrap();
            let object = document.object().unwrap();
            for (i, name) in NAMES.iter().enumerate() {
                let index = members.iter().position(|member| *member == i);
                let value = index.map(|_| format!("value {i}"));
                assert_eq!(object.index_of(name), index, "{name:?} in {document}");
                assert_eq!(object.contains(name), index.is_some());
                let found = [
                    object.get(name).and_then(|value| value.as_text()),
                    object.text(name),
                    properties[i].get(&object).and_then(|value| value.as_text()),
                    properties[i].text(&object),
                ];
                for found in found {
                    assert_eq!(found.map(|text| text.to_str().into_owned()), value, "{name:?} in {document}");
                }
            }
            assert_eq!(object.text("no such name"), None);
            context.reset();
        }
    }
}

/// The ends of names are of one byte up to 255 bytes of names, then of two; from 33 names on there is an index.
#[test]
fn many_and_long_names_are_found() {
    let context = Context::new();
    for count in [1, 7, 8, 9, 31, 32, 33, 300] {
        for size in [1, 7, 8, 9, 40, 300] {
            let names: Vec<String> = (0..count).map(|i| format!("{i:03}{}", "x".repeat(size))).collect();
            let text: Vec<String> = names.iter().map(|name| format!(r#""{name}":"{name}""#)).collect();
            for mode in [Mode::Memory, Mode::Disk] {
                let document =
                    context.parse_with(format!("{{{}}}", text.join(",")).as_bytes(), mode).unwrap();
                let object = document.object().unwrap();
                let property = Property::new(&names[count / 2]);
                assert_eq!(property.text(&object).unwrap().to_str(), names[count / 2]);
                for (i, name) in names.iter().enumerate() {
                    assert_eq!(object.index_of(name), Some(i), "{count} names of {size}");
                    assert_eq!(object.text(&name[..name.len() - 1]), None);
                    assert_eq!(object.text(&format!("{name}x")), None);
                }
            }
        }
    }
}

#[test]
fn only_strings_are_texts() {
    let context = Context::new();
    let document =
        context.parse(r#"{"n":1,"a":[],"o":{},"z":null,"e":"","s":"\u0001","u":"\ud800"}"#).unwrap();
    let object = document.object().unwrap();
    for name in ["n", "a", "o", "z"] {
        assert_eq!(object.text(name), None, "{name}");
        assert_eq!(Property::new(name).text(&object), None, "{name}");
    }
    assert_eq!(object.text("e").unwrap().as_str(), Some(""));
    assert_eq!(object.text("s").unwrap().as_str(), Some("\u{1}"));
    assert_eq!(object.text("u").unwrap().as_str(), None);
}
