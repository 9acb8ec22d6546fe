//! What several tests share: comparing a document with `serde_json`'s answer, and the real data when it is at hand.
#![allow(clippy::unwrap_used, clippy::expect_used, dead_code, missing_docs, unreachable_pub)]

use std::io::Read as _;
use std::path::PathBuf;

use jackdaw_document::{Limits, Value};

/// Compares a value with what `serde_json` made of the same text: numbers by their text, objects in order, and each property by name, by place and sorted.
pub fn assert_same(ours: &Value<'_>, theirs: &serde_json::Value) {
    match theirs {
        serde_json::Value::Null => assert!(ours.is_null()),
        serde_json::Value::Bool(value) => assert_eq!(ours.as_bool(), Some(*value)),
        serde_json::Value::Number(number) => {
            let ours = ours.as_number().expect("a number");
            assert_eq!(
                ours.to_string().to_ascii_lowercase().replace("e+", "e"),
                number.to_string().to_ascii_lowercase().replace("e+", "e")
            );
            assert_eq!(ours.as_i64(), number.to_string().parse().ok().filter(|_| number.to_string() != "-0"));
            assert_eq!(ours.as_f64(), number.to_string().parse::<f64>().unwrap());
        }
        serde_json::Value::String(text) => {
            let ours = ours.as_text().expect("a string");
            assert_eq!(ours.to_str(), text.as_str());
            assert!(ours == *text.as_str());
        }
        serde_json::Value::Array(values) => {
            let ours = ours.as_array().expect("an array");
            assert_eq!(ours.len(), values.len());
            assert_eq!(ours.iter().len(), values.len());
            for (index, (value, expected)) in ours.iter().zip(values).enumerate() {
                assert_same(&value, expected);
                if index % 7 == 0 {
                    assert_same(&ours.get(index).unwrap(), expected);
                }
            }
            assert!(ours.get(values.len()).is_none());
        }
        serde_json::Value::Object(properties) => {
            let ours = ours.as_object().expect("an object");
            assert_eq!(ours.len(), properties.len());
            let mut names: Vec<&String> = Vec::new();
            for ((name, value), (expected_name, expected)) in ours.iter().zip(properties) {
                assert_eq!(name.to_str(), expected_name.as_str());
                assert_same(&value, expected);
                names.push(expected_name);
            }
            for (index, name) in names.iter().enumerate() {
                assert_eq!(ours.index_of(name), Some(index), "{name:?}");
            }
            assert_eq!(ours.index_of("no such name"), None);
            names.sort();
            let mut order = Vec::new();
            let sorted: Vec<String> =
                ours.sorted(&mut order).map(|(name, _)| name.to_str().into_owned()).collect();
            assert_eq!(sorted.iter().collect::<Vec<_>>(), names);
        }
    }
}

/// The directory with the real data sets, if the environment names one. They are not part of the repository; tests without
/// them use the small sets in `tests/data` and generated documents.
pub fn data_directory() -> Option<PathBuf> {
    std::env::var_os("JACKDAW_DATA").map(PathBuf::from)
}

/// The limits real data needs.
pub fn limits() -> Limits {
    Limits::default()
}

/// The texts of a file: one a line for `.ndjson`, else one. Unpacks `.gz`.
pub fn texts(path: &std::path::Path) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    if path.extension().is_some_and(|extension| extension == "gz") {
        flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    } else {
        std::io::BufReader::new(file).read_to_end(&mut bytes).unwrap();
    }
    if path.to_string_lossy().contains(".ndjson") {
        bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
    } else {
        vec![bytes]
    }
}

/// All data files below a directory.
pub fn files(directory: &std::path::Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.to_string_lossy().contains("json") {
            found.push(path);
        }
    }
    found.sort();
    found
}
