//! Writing JSON text piece by piece.

use jackdaw_database::append_json_string;

/// Appends `"name":`, with a comma before it unless it comes first.
pub(crate) fn name(out: &mut Vec<u8>, name: &str) {
    separate(out);
    append_json_string(name, out);
    out.push(b':');
}

/// Appends a comma where one is needed before the next element or property.
pub(crate) fn separate(out: &mut Vec<u8>) {
    if !matches!(out.last(), None | Some(b'[' | b'{' | b':' | b',')) {
        out.push(b',');
    }
}

/// Appends a property with a number.
pub(crate) fn number(out: &mut Vec<u8>, property: &str, value: i64) {
    name(out, property);
    append_number(value, out);
}

/// Appends a number.
pub(crate) fn append_number(value: i64, out: &mut Vec<u8>) {
    jackdaw_document::Number::Integer(value).append_to(out);
}

/// Appends a property with a truth value.
pub(crate) fn bool(out: &mut Vec<u8>, property: &str, value: bool) {
    name(out, property);
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Appends a property with a string.
pub(crate) fn string(out: &mut Vec<u8>, property: &str, value: &str) {
    name(out, property);
    append_json_string(value, out);
}

/// Appends a property with a list of strings.
pub(crate) fn strings<'s>(out: &mut Vec<u8>, property: &str, values: impl IntoIterator<Item = &'s str>) {
    name(out, property);
    out.push(b'[');
    for value in values {
        separate(out);
        append_json_string(value, out);
    }
    out.push(b']');
}

/// Appends a double as JSON; one that is no number as `null`.
pub(crate) fn append_double(value: f64, out: &mut Vec<u8>) {
    match value {
        value if !value.is_finite() => out.extend_from_slice(b"null"),
        value if value == value.trunc() && value.abs() < 1e15 => append_number(value as i64, out),
        value => jackdaw_document::Number::Double(value).append_to(out),
    }
}
