//! The same work done with other crates. Each function panics where the input is not JSON: the files are.
#![allow(clippy::unwrap_used, reason = "a benchmark has nothing to recover to")]

use std::hint::black_box;

use simd_json::prelude::*;
use sonic_rs::JsonValueTrait as _;

pub(crate) fn parse_serde_json(texts: &[Vec<u8>]) {
    for text in texts {
        black_box(serde_json::from_slice::<serde_json::Value>(text).unwrap());
    }
}

/// Works in its input, which it destroys; the copy is made outside the clock.
pub(crate) fn parse_simd_json(texts: &mut [Vec<u8>]) {
    for text in texts {
        black_box(simd_json::to_borrowed_value(text).unwrap());
    }
}

pub(crate) fn parse_simd_json_tape(texts: &mut [Vec<u8>]) {
    let mut buffers = simd_json::Buffers::default();
    for text in texts {
        black_box(simd_json::to_tape_with_buffers(text, &mut buffers).unwrap());
    }
}

pub(crate) fn parse_sonic(texts: &[Vec<u8>]) {
    for text in texts {
        black_box(sonic_rs::from_slice::<sonic_rs::Value>(text).unwrap());
    }
}

pub(crate) fn to_bson(text: &[u8]) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_slice(text).unwrap();
    // BSON's root is an object, and its integers end at 64 bits.
    let value = if value.is_object() { value } else { serde_json::json!({"root": value}) };
    let value = bson::serialize_to_bson(&value).unwrap_or(bson::Bson::Null);
    match value {
        bson::Bson::Document(document) => document.to_vec().unwrap_or_default(),
        _ => Vec::new(),
    }
}

pub(crate) fn to_rmp(text: &[u8]) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_slice(text).unwrap();
    rmp_serde::to_vec(&value).unwrap()
}

pub(crate) fn to_jsonb(text: &[u8]) -> Vec<u8> {
    jsonb::parse_value(text).unwrap().to_vec()
}

pub(crate) fn read3_serde_json(text: &[u8], names: &[&str; 3]) -> usize {
    let value: serde_json::Value = serde_json::from_slice(text).unwrap();
    names.iter().map(|name| value.get(name).and_then(|value| value.as_str()).map_or(0, str::len)).sum()
}

pub(crate) fn read3_simd_json(text: &mut [u8], names: &[&str; 3]) -> usize {
    let value = simd_json::to_borrowed_value(text).unwrap();
    names.iter().map(|name| value.get(*name).and_then(|value| value.as_str()).map_or(0, str::len)).sum()
}

/// Looks for each name in the text, without parsing the rest.
pub(crate) fn read3_sonic(text: &[u8], names: &[&str; 3]) -> usize {
    names
        .iter()
        .map(|name| {
            sonic_rs::get(text, [*name]).ok().and_then(|value| value.as_str().map(str::len)).unwrap_or(0)
        })
        .sum()
}

pub(crate) fn read3_bson(bytes: &[u8], names: &[&str; 3]) -> usize {
    let document = bson::RawDocument::from_bytes(bytes).unwrap();
    names
        .iter()
        .map(|name| document.get(*name).ok().flatten().and_then(|value| value.as_str()).map_or(0, str::len))
        .sum()
}

pub(crate) fn read3_rmp(bytes: &[u8], names: &[&str; 3]) -> usize {
    let value: serde_json::Value = rmp_serde::from_slice(bytes).unwrap();
    names.iter().map(|name| value.get(name).and_then(|value| value.as_str()).map_or(0, str::len)).sum()
}

pub(crate) fn read3_jsonb(bytes: &[u8], names: &[&str; 3]) -> usize {
    let value = jsonb::RawJsonb::new(bytes);
    names
        .iter()
        .map(|name| {
            let found = value.get_by_name(name, false).ok().flatten();
            found.and_then(|value| value.as_raw().as_str().ok().flatten().map(|text| text.len())).unwrap_or(0)
        })
        .sum()
}
