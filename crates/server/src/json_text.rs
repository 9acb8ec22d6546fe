//! Writing JSON text piece by piece, where a value of `serde` would be made only to be written.

use jackdaw_database::{append_json_string, clock};

/// Appends `"name":` (with a comma before it unless it comes first).
pub(crate) fn name(out: &mut Vec<u8>, name: &str) {
    if !matches!(out.last(), None | Some(b'{' | b'[' | b',')) {
        out.push(b',');
    }
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends a property with a string.
pub(crate) fn string(out: &mut Vec<u8>, property: &str, value: &str) {
    name(out, property);
    append_json_string(value, out);
}

/// Appends a property with a number.
pub(crate) fn number(out: &mut Vec<u8>, property: &str, value: i64) {
    name(out, property);
    out.extend_from_slice(value.to_string().as_bytes());
}

/// Appends a property with a date, from ticks.
pub(crate) fn date(out: &mut Vec<u8>, property: &str, ticks: i64) {
    name(out, property);
    out.push(b'"');
    clock::append_date(ticks, out);
    out.push(b'"');
}

/// Appends a property with a text that is JSON already.
pub(crate) fn raw(out: &mut Vec<u8>, property: &str, json: &[u8]) {
    name(out, property);
    out.extend_from_slice(json);
}

/// Appends a comma where one is needed before the next element of an array.
pub(crate) fn separate(out: &mut Vec<u8>) {
    if !matches!(out.last(), None | Some(b'[')) {
        out.push(b',');
    }
}
