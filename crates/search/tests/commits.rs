//! Commits: all or nothing, whatever happens between them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod objects;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use jackdaw_search::{Entry, Error, FieldOptions, FieldValue, Index, Query, SortBy};
use objects::{MEMORY, Random, Sample, keys, keywords, sort, term, with_entry};
use serde_json::json;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        // A file may go away while the directory is copied, as it may before a crash.
        let _ = fs::copy(file.path(), to.join(file.file_name()));
    }
}

fn model_of(index: &Index) -> BTreeMap<String, String> {
    let searcher = index.searcher();
    let hits = searcher.stream(&Query::All, &[]).unwrap().map(Result::unwrap);
    hits.map(|hit| (hit.key.clone(), String::from_utf8(hit.stored).unwrap())).collect()
}

#[test]
fn what_is_not_committed_is_forgotten() {
    let sample = Sample::new(keywords(&["n"]));
    assert_eq!(sample.index.payload(), b"");
    let add = |writer: &mut jackdaw_search::Writer, number: i64| {
        with_entry(&number.to_string(), &json!({"n": number}), |entry| writer.add(entry).unwrap());
    };
    let mut writer = sample.index.writer(MEMORY).unwrap();
    assert!(matches!(sample.index.writer(MEMORY), Err(Error::Busy { .. })), "one writer at a time");
    add(&mut writer, 1);
    writer.commit(b"one").unwrap();
    let before = sample.searcher();
    add(&mut writer, 2);
    writer.delete("1").unwrap();
    assert_eq!(keys(&sample.searcher(), &Query::All, &[]), ["1"]);
    writer.rollback().unwrap();
    add(&mut writer, 3);
    writer.commit(b"three").unwrap();
    assert_eq!(keys(&sample.searcher(), &Query::All, &[]), ["1", "3"]);
    assert_eq!(keys(&before, &Query::All, &[]), ["1"], "a searcher does not change");
    writer.delete("1").unwrap();
    add(&mut writer, 4);
    drop(writer);
    let mut writer = sample.index.writer(MEMORY).unwrap();
    writer.delete("3").unwrap();
    add(&mut writer, 3);
    writer.delete("3").unwrap();
    add(&mut writer, 5);
    writer.commit(&[0, 1, 255]).unwrap();
    assert_eq!(keys(&sample.searcher(), &Query::All, &[]), ["1", "5"]);
    assert_eq!(sample.index.payload(), [0, 1, 255]);
    // Nothing but a payload.
    writer.commit(b"later").unwrap();
    assert_eq!(sample.index.payload(), b"later");
    drop(writer);
    drop(before);
    let Sample { directory, index } = sample;
    drop(index);
    let index = Index::open(directory.path(), keywords(&["n"])).unwrap();
    assert_eq!(index.payload(), b"later");
    assert_eq!(keys(&index.searcher(), &Query::All, &[]), ["1", "5"]);
}

#[test]
fn a_copy_made_at_any_moment_is_one_of_the_commits() {
    for seed in 0..2 {
        let schema = || keywords(&["n", "s"]);
        let sample = Sample::new(schema());
        let mut random = Random::new(seed + 1);
        let mut model: BTreeMap<String, String> = BTreeMap::new();
        // What each payload stands for.
        let mut commits: BTreeMap<Vec<u8>, BTreeMap<String, String>> = BTreeMap::new();
        commits.insert(Vec::new(), model.clone());
        let mut copies = Vec::new();
        let copy_now = |copies: &mut Vec<tempfile::TempDir>| {
            let to = tempfile::tempdir().unwrap();
            copy(sample.directory.path(), to.path());
            copies.push(to);
        };
        for commit in 0..15u64 {
            let mut writer = sample.index.writer(MEMORY).unwrap();
            for step in 0..random.below(40) {
                let key = format!("k/{}", random.below(60));
                writer.delete(&key).unwrap();
                model.remove(&key);
                if random.below(4) > 0 {
                    let stored = format!("{commit} {step}");
                    let fields = [("n", FieldValue::Long(step as i64)), ("s", FieldValue::Text(&stored))];
                    let entry = Entry {
                        key: &key,
                        fields: &fields,
                        stored: stored.as_bytes(),
                        references: &[],
                        boost: 1.0,
                    };
                    writer.add(&entry).unwrap();
                    model.insert(key, stored);
                }
                if random.below(60) == 0 {
                    copy_now(&mut copies);
                }
            }
            let payload = commit.to_le_bytes();
            writer.commit(&payload).unwrap();
            commits.insert(payload.to_vec(), model.clone());
            drop(writer);
            assert_eq!(model_of(&sample.index), model);
            if random.below(3) == 0 {
                sample.index.sync().unwrap();
                // From here on it is this commit at least.
                copy_now(&mut copies);
                let last = copies.last().unwrap();
                assert_eq!(Index::open(last.path(), schema()).unwrap().payload(), payload);
            }
            if random.below(5) == 0 {
                sample.index.quiesce().unwrap();
                assert_eq!(model_of(&sample.index), model);
            }
        }
        assert!(!copies.is_empty());
        for directory in copies {
            let index = Index::open(directory.path(), schema()).unwrap();
            let expected = commits.get(&index.payload()).unwrap();
            assert_eq!(&model_of(&index), expected);
            // And it goes on from there.
            let mut writer = index.writer(MEMORY).unwrap();
            with_entry("new", &json!({"n": 1}), |entry| writer.add(entry).unwrap());
            writer.commit(b"on").unwrap();
            assert_eq!(index.searcher().count(&Query::Key("new".to_owned())).unwrap(), 1);
        }
    }
}

#[test]
fn damage_and_other_schemas_are_told() {
    let schema = || keywords(&["n", "s"]);
    let sample = Sample::new(schema());
    sample.add((0..100).map(|_| ("key", json!({"n": 1, "s": "text"}))));
    let Sample { directory, index } = sample;
    drop(index);
    let mut other = schema();
    other.fields.insert("more".to_owned(), FieldOptions::default());
    assert!(matches!(Index::open(directory.path(), other), Err(Error::OtherSchema { .. })));
    let files: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().path()).collect();
    let mut told = 0;
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let is_needed = !name.starts_with('.');
        if !is_needed {
            continue;
        }
        for change in ["missing", "empty", "short"] {
            let broken = tempfile::tempdir().unwrap();
            copy(directory.path(), broken.path());
            let target = broken.path().join(&name);
            let bytes = fs::read(&target).unwrap();
            match change {
                "missing" => fs::remove_file(&target).unwrap(),
                "empty" => fs::write(&target, b"").unwrap(),
                _ => fs::write(&target, &bytes[..bytes.len() / 2]).unwrap(),
            }
            match Index::open(broken.path(), schema()) {
                Err(Error::Damaged { .. } | Error::OtherSchema { .. }) => told += 1,
                Err(other) => panic!("{name} {change}: {other}"),
                Ok(_) => panic!("{name} {change}: opened"),
            }
        }
    }
    assert!(told >= 20, "{told}");
    let foreign = tempfile::tempdir().unwrap();
    fs::write(foreign.path().join("letter.txt"), b"x").unwrap();
    assert!(matches!(Index::open(foreign.path(), schema()), Err(Error::Damaged { .. })));
}

#[test]
fn segments_stay_few_and_entries_in_order() {
    let sample = Sample::new(keywords(&["n"]));
    for number in 0..120 {
        sample.add([(format!("{number:03}").as_str(), json!({"n": number}))]);
    }
    sample.index.quiesce().unwrap();
    let searcher = sample.searcher();
    assert!(searcher.segments_count() <= 16, "{} segments", searcher.segments_count());
    let expected: Vec<String> = (0..120).map(|number| format!("{number:03}")).collect();
    assert_eq!(keys(&searcher, &Query::All, &[]), expected);
    assert_eq!(keys(&searcher, &Query::All, &[sort(SortBy::Long("none".to_owned()))]), expected);
}

#[test]
fn hostile_entries() {
    let sample = Sample::new(keywords(&["known"]));
    let long = "x".repeat(200_000);
    let wide: Vec<FieldValue<'_>> = (0..50_000).map(FieldValue::Long).collect();
    let mut nested = FieldValue::Long(7);
    let mut levels: Vec<[FieldValue<'_>; 1]> = Vec::new();
    for _ in 0..100 {
        // Arrays of arrays, kept alive for as long as the entry.
        levels.push([nested]);
        nested = FieldValue::Array(Vec::leak(vec![nested]));
    }
    let odd = "a\0b\u{1}c.d\\e";
    let fields = [
        ("known", FieldValue::Text(&long)),
        ("known", FieldValue::Text("short")),
        ("wide", FieldValue::Array(&wide)),
        ("nested", nested),
        (odd, FieldValue::Text("\u{1}NULL_VALUE")),
        ("", FieldValue::Long(1)),
        ("nan", FieldValue::Double { value: f64::NAN, text: "NaN" }),
        ("inf", FieldValue::Double { value: f64::INFINITY, text: "Infinity" }),
        ("min", FieldValue::Long(i64::MIN)),
    ];
    let mut writer = sample.index.writer(MEMORY).unwrap();
    let entry = Entry { key: "k", fields: &fields, stored: &[7; 100_000], references: &[], boost: f32::NAN };
    writer.add(&entry).unwrap();
    assert!(writer.add(&Entry { key: &long, ..entry }).is_err());
    writer.commit(b"").unwrap();
    let searcher = sample.searcher();
    assert_eq!(searcher.entries_count(), 1);
    for query in [
        term("known", "short"),
        term("wide", 49_999),
        term("nested", 7),
        term("", 1),
        term("min", i64::MIN),
        term("inf", f64::INFINITY),
        Query::Exists { field: odd.to_owned() },
    ] {
        assert_eq!(searcher.count(&query).unwrap(), 1, "{query:?}");
    }
    assert_eq!(searcher.count(&term("known", long.as_str())).unwrap(), 0);
    let page = searcher
        .search(&Query::All, &[sort(SortBy::Double("nan".to_owned()))], 0, usize::MAX, false)
        .unwrap();
    assert_eq!(page.hits[0].stored.len(), 100_000);
    assert!(searcher.search(&Query::All, &[], usize::MAX, usize::MAX, true).unwrap().hits.is_empty());
}
