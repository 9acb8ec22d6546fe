//! What must hold of any input: used by the fuzz target and by the replay of the corpus on the stable compiler.

use std::collections::BTreeMap;

use jackdaw_document::{Context, Mode, Style};
use jackdaw_functions::{CompileError, Entry, Input, Limits, Map, NoHost, Reduce};

/// Documents of which each has something odd: every kind of value, nothing, and a root that is no object.
const DOCUMENTS: [&str; 3] = [
    r#"{"A":7,"B":1.10,"C":"Abc","D":null,"E":true,"F":[1,2.5,"x",null,{"A":1}],"G":{"A":1,"B":{"A":[]}},"H":"2020-02-03T04:05:06.0000000Z","I":"01:02:03","J":1e400,"K":"","@metadata":{"@collection":"Xs"}}"#,
    "{}",
    "[1,[2]]",
];

/// Any text as a map, as an expression in a map, and as a reduce: it is refused with a place, or it runs within its limits, and twice alike.
pub fn linq(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let no_sources = BTreeMap::new();
    let field = format!("from x in docs.Xs select new {{ V = {text} }}");
    for text in [text, &field] {
        match Map::compile(text, &no_sources) {
            Ok(map) => run_map(&map),
            Err(error) => check_error(&error),
        }
    }
    match Reduce::compile(text, &no_sources) {
        Ok(reduce) => run_reduce(&reduce),
        Err(error) => check_error(&error),
    }
}

/// Any text as a map in JavaScript, as an expression in one, and as a reduce, whichever engine runs them: as [`linq`].
pub fn javascript(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let no_sources = BTreeMap::new();
    let field = format!("map('Xs', x => ({{ V: {text} }}))");
    let block = format!("map('Xs', x => {{ const v = {text}; return [v, {{ V: v }}]; }})");
    for text in [text, &field, &block] {
        match Map::compile(text, &no_sources) {
            Ok(map) => run_map(&map),
            Err(error) => check_error(&error),
        }
    }
    let reduce = format!("groupBy(x => ({{ A: x.A }})).aggregate(g => ({{ A: g.key.A, V: {text} }}))");
    for text in [text, &reduce] {
        match Reduce::compile(text, &no_sources) {
            Ok(reduce) => run_reduce(&reduce),
            Err(error) => check_error(&error),
        }
    }
}

fn limits() -> Limits {
    Limits { steps_max: 20_000, memory_bytes_max: 16 << 20, entries_max: 1_000 }
}

fn run_map(map: &Map) {
    let names = map.field_names();
    let mut runs = [Vec::new(), Vec::new()];
    for run in &mut runs {
        let mut runner = map.runner(limits());
        for text in DOCUMENTS {
            let context = Context::new();
            let document = context.parse(text).expect("the documents are JSON");
            let result = runner.run(&Input::new(document, "xs/1"), &mut NoHost, &mut |entry| {
                if let Some(names) = names {
                    assert!(names.iter().map(|name| &**name).eq(entry.fields.iter().map(|(name, _)| *name)));
                }
                run.push(json(entry));
                Ok(())
            });
            run.push(result.err().map(|error| error.to_string()));
        }
    }
    assert_eq!(runs[0], runs[1]);
}

fn run_reduce(reduce: &Reduce) {
    let context = Context::new();
    let mut entries = DOCUMENTS.iter().map(|text| context.parse(text).expect("the documents are JSON"));
    let mut runner = reduce.runner(limits());
    let _ = runner.run(&mut entries, &mut |entry| {
        json(entry);
        Ok(())
    });
}

/// The entry as JSON, unless it is too deep for a document.
fn json(entry: &Entry<'_>) -> Option<String> {
    let context = Context::new();
    let built = context.build(Mode::Memory, |builder| entry.append_to(builder)).ok()?;
    Some(built.to_json(Style::Compact))
}

fn check_error(error: &CompileError) {
    assert!(error.line >= 1 && error.column >= 1 && !error.message.is_empty());
}
