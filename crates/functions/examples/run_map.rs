//! Runs a map over the documents of a file, one JSON object a line, and prints its entries or how many documents it maps in a second.
//!
//! ```text
//! cargo run --release -p jackdaw-functions --example run_map -- [--print] MAP FILE [REDUCE]
//! ```
//!
//! `MAP` is the text of a map, or `@FILE` that holds several, one a line, each of which is run. A line of the documents' file may be a `{"Id":..., ...}` object; its `Id` is the document's id. With a
//! reduce, what the map returns is reduced at once and the results are printed.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::time::Instant;

use jackdaw_document::{Context, Mode, Style};
use jackdaw_functions::{Entry, Input, Limits, Map, NoHost, Reduce, RuntimeError};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let print = arguments.first().is_some_and(|first| first == "--print");
    if print {
        arguments.remove(0);
    }
    let (map, file, reduce) = match &arguments[..] {
        [map, file] => (map, file, None),
        [map, file, reduce] => (map, file, Some(reduce)),
        _ => return Err("usage: run_map [--print] MAP|@FILE DOCUMENTS [REDUCE]".into()),
    };
    let maps: Vec<String> = match map.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file)?.lines().map(str::to_owned).collect(),
        None => vec![map.clone()],
    };
    let text = std::fs::read_to_string(file)?;
    let context = Context::new();
    let mut documents = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut bytes = Vec::new();
        context.parse_into(line.as_bytes(), Mode::Disk, &mut bytes)?;
        documents.push(bytes);
    }
    let mut out = std::io::stdout().lock();
    if let Some(reduce) = reduce {
        return map_and_reduce(map, reduce, &documents, &mut out);
    }
    for map in maps.iter().filter(|map| !map.is_empty()) {
        run(map, &documents, print, &mut out)?;
    }
    Ok(())
}

fn run(text: &str, documents: &[Vec<u8>], print: bool, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let map = match Map::compile(text, &BTreeMap::new()) {
        Ok(map) => map,
        Err(error) => {
            writeln!(out, "refused: {error}")?;
            return Ok(());
        }
    };
    let mut runner = map.runner(Limits::default());
    let mut entries = 0u64;
    let mut errors = 0u64;
    let start = Instant::now();
    for bytes in documents {
        let document = jackdaw_document::Document::open(bytes)?;
        let id = document.get("Id").and_then(|id| id.as_str()).unwrap_or_default();
        let input = Input::new(document, &id);
        let result = runner.run(&input, &mut NoHost, &mut |entry| {
            entries += 1;
            if print {
                let context = Context::new();
                let built = context.build(Mode::Memory, |builder| entry.append_to(builder));
                // A failed line shows as nothing.
                let line = built.map(|built| built.to_json(Style::Compact)).unwrap_or_default();
                let _ = writeln!(out, "{line}");
            }
            Ok(())
        });
        if let Err(error) = result {
            errors += 1;
            if print {
                writeln!(out, "error: {error}")?;
            }
        }
    }
    if !print {
        let rate = documents.len() as f64 / start.elapsed().as_secs_f64();
        writeln!(out, "{rate:.0} documents/s, {entries} entries, {errors} errors: {text}")?;
    }
    Ok(())
}

fn map_and_reduce(
    map: &str,
    reduce: &str,
    documents: &[Vec<u8>],
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let map = Map::compile(map, &BTreeMap::new())?;
    let reduce = Reduce::compile(reduce, &BTreeMap::new())?;
    let context = Context::new();
    let as_document = |entry: &Entry<'_>| {
        context
            .build(Mode::Memory, |builder| entry.append_to(builder))
            .map_err(|error| RuntimeError::Host(error.to_string()))
    };
    let mut entries = Vec::new();
    let mut runner = map.runner(Limits::default());
    for bytes in documents {
        let document = jackdaw_document::Document::open(bytes)?;
        let id = document.get("Id").and_then(|id| id.as_str()).unwrap_or_default();
        runner.run(&Input::new(document, &id), &mut NoHost, &mut |entry| {
            entries.push(as_document(entry)?);
            Ok(())
        })?;
    }
    reduce.runner(Limits::default()).run(&mut entries.iter().copied(), &mut |entry| {
        let result = as_document(entry)?.to_json(Style::Compact);
        writeln!(out, "{result}").map_err(|error| RuntimeError::Host(error.to_string()))
    })?;
    Ok(())
}
