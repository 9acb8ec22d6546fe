//! Makes the built-in dictionary, `src/dictionary/built_in.bin`, from files of JSON documents:
//!
//! `cargo run --release --example train_dictionary -- OUT SAMPLE_BYTES_PER_FILE FILE.ndjson.gz...`
//!
//! Changing the built-in dictionary changes the format: documents written with the old one no longer read. It is here so that the choice can be repeated.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::HashSet;
use std::io::Read as _;

use jackdaw_document::{Context, Dictionary, Value};

fn collect(value: &Value<'_>, into: &mut HashSet<Vec<u8>>) {
    match value {
        Value::Text(text) => {
            into.insert(text.to_bytes().into_owned());
        }
        Value::Array(array) => array.iter().for_each(|value| collect(&value, into)),
        Value::Object(object) => {
            for (name, value) in object.iter() {
                into.insert(name.to_bytes().into_owned());
                collect(&value, into);
            }
        }
        _ => {}
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let out = arguments.next().unwrap();
    let size: usize = arguments.next().unwrap().parse().unwrap();
    let mut samples: Vec<Vec<u8>> = Vec::new();
    let mut context = Context::new();
    for file in arguments {
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(std::fs::File::open(&file).unwrap()).read_to_end(&mut bytes).unwrap();
        let texts: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        let step = (bytes.len() / size).max(1);
        let mut taken = 0;
        for text in texts.iter().step_by(step) {
            // Each text once a document, as the document holds it.
            let mut distinct = HashSet::new();
            collect(&context.parse(text).unwrap().root(), &mut distinct);
            let mut distinct: Vec<_> = distinct.into_iter().collect();
            distinct.sort();
            for mut sample in distinct {
                sample.truncate(4096);
                taken += sample.len();
                samples.push(sample);
            }
            context.reset();
        }
        println!("{file}: {taken} bytes of strings");
    }
    let slices: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    let dictionary = Dictionary::train_built_in(&slices);
    let (mut plain, mut compressed) = (0, Vec::new());
    for sample in &slices {
        plain += sample.len();
        dictionary.compress(sample, &mut compressed);
    }
    println!("{} symbols; samples {plain} to {}", dictionary.symbol_count(), compressed.len());
    std::fs::write(out, dictionary.to_bytes()).unwrap();
}
