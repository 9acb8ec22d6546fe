//! Edits laid over a document give what the same edits on a parsed text give; differences name exactly what was edited.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use jackdaw_document::{Context, Difference, Error, Mode, Overlay, Path, Style, differences};
use proptest::prelude::*;
use reference::assert_same;
use serde_json::{Value, json};

/// Edits as data, so that they can be made twice.
#[derive(Clone, Debug)]
enum Edit {
    Set(Vec<Step>, Value),
    Remove(Vec<Step>),
    Append(Vec<Step>, Value),
}

#[derive(Clone, Debug)]
enum Step {
    Name(String),
    Index(usize),
}

fn path_of(steps: &[Step]) -> Path {
    let mut text = String::new();
    for step in steps {
        match step {
            Step::Name(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    Path::parse(&text).unwrap()
}

/// The same edit on a plain value; `false` where it must be refused.
fn edit_plain(root: &mut Value, edit: &Edit) -> bool {
    fn place<'v>(mut value: &'v mut Value, steps: &[Step]) -> Option<&'v mut Value> {
        for step in steps {
            value = match step {
                Step::Name(name) => {
                    if value.is_null() {
                        *value = json!({});
                    }
                    value.as_object_mut()?.entry(name.clone()).or_insert(Value::Null)
                }
                Step::Index(index) => value.as_array_mut()?.get_mut(*index)?,
            };
        }
        Some(value)
    }
    let mut copy = root.clone();
    let done = match edit {
        Edit::Set(steps, value) => place(&mut copy, steps).map(|place| *place = value.clone()).is_some(),
        Edit::Append(steps, value) => place(&mut copy, steps).is_some_and(|place| match place {
            Value::Array(values) => {
                values.push(value.clone());
                true
            }
            Value::Null => {
                *place = json!([value]);
                true
            }
            _ => false,
        }),
        Edit::Remove(steps) => {
            let Some((last, above)) = steps.split_last() else { return false };
            let mut value = &mut copy;
            for step in above {
                let next = match (step, value) {
                    (Step::Name(name), Value::Object(properties)) => properties.get_mut(name),
                    (Step::Index(index), Value::Array(values)) => values.get_mut(*index),
                    _ => None,
                };
                match next {
                    Some(next) => value = next,
                    None => return true,
                }
            }
            match (last, value) {
                (Step::Name(name), Value::Object(properties)) => {
                    properties.shift_remove(name);
                }
                (Step::Index(index), Value::Array(values)) if *index < values.len() => {
                    values.remove(*index);
                }
                _ => {}
            }
            true
        }
    };
    if done {
        *root = copy;
    }
    done
}

fn small_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i32>().prop_map(Value::from),
        "[a-z]{0,30}".prop_map(Value::from),
        any::<bool>().prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[abc]", inner), 0..4)
                .prop_map(|properties| Value::Object(properties.into_iter().collect())),
        ]
    })
}

fn edit() -> impl Strategy<Value = Edit> {
    let step = prop_oneof![3 => "[abc]".prop_map(Step::Name), 1 => (0..4usize).prop_map(Step::Index)];
    let steps = prop::collection::vec(step, 1..4);
    prop_oneof![
        (steps.clone(), small_value()).prop_map(|(steps, value)| Edit::Set(steps, value)),
        steps.clone().prop_map(Edit::Remove),
        (steps, small_value()).prop_map(|(steps, value)| Edit::Append(steps, value)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn edits_in_place_equal_edits_on_text(start in small_value(), edits in prop::collection::vec(edit(), 1..8), disk in any::<bool>()) {
        let context = Context::new();
        let mode = if disk { Mode::Disk } else { Mode::Memory };
        let document = context.parse_with(start.to_string().as_bytes(), mode).unwrap();
        let mut plain = start.clone();
        let values: Vec<_> = edits.iter().map(|edit| match edit {
            Edit::Set(_, value) | Edit::Append(_, value) => context.parse(value.to_string()).unwrap(),
            Edit::Remove(_) => context.parse("null").unwrap(),
        }).collect();
        let mut overlay = Overlay::new(document);
        for (edit, value) in edits.iter().zip(&values) {
            // A refused edit may have opened what it walked through, or made objects on its way; so stop there, as a caller would.
            let refused = match edit {
                Edit::Set(steps, _) => overlay.set(&path_of(steps), value.root()).is_err(),
                Edit::Append(steps, _) => overlay.append(&path_of(steps), value.root()).is_err(),
                Edit::Remove(steps) => overlay.remove(&path_of(steps)).is_err(),
            };
            prop_assert_eq!(refused, !edit_plain(&mut plain, edit), "{:?} on {}", edit, plain);
            if refused {
                return Ok(());
            }
        }
        let edited = overlay.write(&context, mode).unwrap();
        edited.validate(context.limits()).unwrap();
        assert_same(&edited.root(), &plain);
        let reparsed = context.parse_with(plain.to_string().as_bytes(), mode).unwrap();
        prop_assert_eq!(edited, reparsed);
        prop_assert_eq!(edited.to_json(Style::Compact), plain.to_string());

        // Differences: none exactly when equal; taking them over, value by value, makes the old one the new one.
        let found = differences(&document, &edited);
        prop_assert_eq!(found.is_empty(), document == edited);
        let mut patched = start.clone();
        // From behind, so that removed elements do not move the places of those before them.
        for difference in found.iter().rev() {
            let place = |value: &jackdaw_document::Value<'_>| -> Value { serde_json::from_str(&value.to_json(Style::Compact)).unwrap() };
            match difference {
                Difference::Changed { path, new, .. } if path.is_empty() => patched = place(new),
                Difference::Changed { path, new, .. } => prop_assert!(edit_plain(&mut patched, &Edit::Set(steps_of(path), place(new)))),
                Difference::Removed { path, .. } => prop_assert!(edit_plain(&mut patched, &Edit::Remove(steps_of(path)))),
                Difference::Added { .. } => {}
            }
        }
        for difference in &found {
            if let Difference::Added { path, value } = difference {
                let value: Value = serde_json::from_str(&value.to_json(Style::Compact)).unwrap();
                let steps = steps_of(path);
                let done = match steps.last() {
                    Some(Step::Index(_)) => edit_plain(&mut patched, &Edit::Append(steps[..steps.len() - 1].to_vec(), value)),
                    _ => edit_plain(&mut patched, &Edit::Set(steps, value)),
                };
                prop_assert!(done, "{}", path);
            }
        }
        let patched = context.parse(patched.to_string()).unwrap();
        prop_assert_eq!(patched, edited);
    }
}

/// The steps of a path of these tests' names.
fn steps_of(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (name, indexes) = part.split_at(part.find('[').unwrap_or(part.len()));
        if !name.is_empty() {
            steps.push(Step::Name(name.to_owned()));
        }
        for index in indexes.split('[').filter(|index| !index.is_empty()) {
            steps.push(Step::Index(index.trim_end_matches(']').parse().unwrap()));
        }
    }
    steps
}

#[test]
fn what_cannot_be_edited_says_why() {
    let context = Context::new();
    let document = context.parse(r#"{"a":{"b":[1,2]},"c":"text"}"#).unwrap();
    let one = context.parse("1").unwrap().root();
    let mut overlay = Overlay::new(document);
    for (path, reason) in
        [("c.d", "no object"), ("a[0]", "no array"), ("a.b[2]", "no such element"), ("a.b[]", "no []")]
    {
        match overlay.set(&Path::parse(path).unwrap(), one) {
            Err(Error::Edit { path: named, reason: given }) => {
                assert_eq!(named, path);
                assert!(given.contains(reason), "{given}");
            }
            other => panic!("{path}: {other:?}"),
        }
    }
    assert!(overlay.append(&Path::parse("c").unwrap(), one).is_err());
    assert!(overlay.remove(&Path::parse("").unwrap()).is_err());
    overlay.insert(&Path::parse("a.b[1]").unwrap(), one).unwrap();
    overlay.insert(&Path::parse("a.b[3]").unwrap(), one).unwrap();
    assert!(overlay.insert(&Path::parse("a.b[9]").unwrap(), one).is_err());
    let written = overlay.write(&context, Mode::Memory).unwrap();
    assert_eq!(written.to_json(Style::Compact), r#"{"a":{"b":[1,1,2,1]},"c":"text"}"#);
}

#[test]
fn an_untouched_overlay_writes_its_document() {
    let context = Context::new();
    let document = context.parse(r#"{"a":[1,{"b":"c\n"}],"n":1.10}"#).unwrap();
    let overlay = Overlay::new(document);
    assert!(overlay.is_untouched());
    assert_eq!(overlay.write(&context, Mode::Memory).unwrap().as_bytes(), document.as_bytes());
}
