//! A script, read: documents, index definitions, named sources, and cases with what is expected of them.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::path::Path;

use serde_json::{Value, json};

use crate::answer::{Found, canonical};

/// Stands for a source's own `from` in a query's text.
const PLACE: &str = "from *";

/// The source of a query that says itself what it is from.
const ONCE: &str = "once";

#[derive(Default)]
pub(crate) struct Script {
    /// As it is told in failures.
    pub(crate) path: String,
    /// Collection, id, and the document's text without insignificant space.
    documents: Vec<(String, String, String)>,
    /// The documents' texts by their ids in lower case.
    pub(crate) stored: HashMap<String, String>,
    /// As they are put.
    pub(crate) indexes: Vec<Value>,
    sources: HashMap<String, String>,
    pub(crate) cases: Vec<Case>,
}

pub(crate) struct Case {
    pub(crate) line: usize,
    text: String,
    /// JSON; empty when there are none.
    pub(crate) parameters: String,
    /// Where projected fields come from.
    pub(crate) projection: String,
    pub(crate) expected: Vec<(Vec<String>, Expected)>,
}

/// An answer as it was recorded.
#[derive(Default)]
pub(crate) struct Expected {
    error: Option<String>,
    /// The total and what else is told before the rows, a line each.
    head: Vec<String>,
    /// How many rows there are, when which ones they are is not defined.
    any: Option<usize>,
    /// Rows of one group may stand in any order, groups may not.
    groups: Vec<Vec<String>>,
}

/// What the indented lines that follow belong to.
enum Section {
    None,
    Documents(String),
    Map,
    Reduce,
    Source(String),
}

impl Script {
    pub(crate) fn read(folder: &Path, name: &str) -> Script {
        let file = folder.join("scripts").join(format!("{name}.queries"));
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let path = format!("tests/queries/scripts/{name}.queries");
        let mut script = Script { path, ..Script::default() };
        let mut section = Section::None;
        for (place, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                section = Section::None;
            } else if line.starts_with("? ") || !script.cases.is_empty() {
                script.read_case_line(place + 1, line);
            } else {
                section = script.read_head_line(line, section);
            }
        }
        assert!(!script.cases.is_empty(), "{} has no queries", script.path);
        script
    }

    fn read_case_line(&mut self, number: usize, line: &str) {
        if let Some(text) = line.strip_prefix("? ") {
            self.cases.push(Case {
                line: number,
                text: text.to_owned(),
                parameters: String::new(),
                projection: "Default".to_owned(),
                expected: Vec::new(),
            });
            return;
        }
        let place = format!("{}:{number}", self.path);
        let case = self.cases.last_mut().expect("a case");
        if let Some(parameters) = line.strip_prefix("$ ") {
            case.parameters = parameters.to_owned();
        } else if let Some(sources) = line.strip_prefix("> ") {
            let sources = sources.split(' ').map(str::to_owned).collect();
            case.expected.push((sources, Expected::default()));
        } else if let Some(rest) = line.strip_prefix("  ") {
            match case.expected.last_mut() {
                Some((_, expected)) => expected.read_line(rest),
                None => case.text.extend(["\n", rest]),
            }
        } else {
            // Words for the recorder: the expectations show what came of them.
            assert!(line.starts_with("! "), "{place}: no line of a case: {line}");
            if let Some(behavior) = line.split(' ').find_map(|word| word.strip_prefix("projection=")) {
                case.projection = behavior.to_owned();
            }
        }
    }

    fn read_head_line(&mut self, line: &str, section: Section) -> Section {
        if let Some(code) = line.strip_prefix("    ") {
            let index = self.indexes.last_mut().expect("an index");
            let text = match &section {
                Section::Map => index["Maps"].as_array_mut().and_then(|maps| maps.last_mut()),
                Section::Reduce => Some(&mut index["Reduce"]),
                Section::Source(name) => Some(&mut index["AdditionalSources"][name.as_str()]),
                Section::None | Section::Documents(_) => None,
            };
            let text = text.unwrap_or_else(|| panic!("{}: belongs to nothing: {line}", self.path));
            let before = text.as_str().unwrap_or_default();
            *text = if before.is_empty() { json!(code) } else { json!(format!("{before}\n{code}")) };
            return section;
        }
        if let Section::Documents(collection) = &section {
            let (id, text) = read_id(line);
            let text = canonical(text).unwrap_or_else(|| panic!("{}: no JSON: {line}", self.path));
            self.stored.insert(id.to_lowercase(), text.clone());
            self.documents.push((collection.clone(), id, text));
            return section;
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut set = |name: &str, value: Value| self.indexes.last_mut().expect("an index")[name] = value;
        match word {
            "documents" => return Section::Documents(rest.to_owned()),
            "index" => {
                self.indexes.push(json!({ "Name": rest, "Maps": [""] }));
                return Section::Map;
            }
            "map" => {
                let maps = &mut self.indexes.last_mut().expect("an index")["Maps"];
                maps.as_array_mut().expect("maps").push(json!(""));
                return Section::Map;
            }
            "reduce" => {
                set("Reduce", json!(""));
                return Section::Reduce;
            }
            "source" => return Section::Source(rest.to_owned()),
            "fields" => set("Fields", serde_json::from_str(rest).expect("JSON")),
            "configuration" => set("Configuration", serde_json::from_str(rest).expect("JSON")),
            "on" => {
                let (name, from) = rest.split_once(": ").expect("a name and a source");
                self.sources.insert(name.to_owned(), from.to_owned());
            }
            _ => panic!("{}: unknown: {line}", self.path),
        }
        Section::None
    }

    /// The body of a `bulk_docs` that stores the documents in their order.
    pub(crate) fn commands(&self) -> String {
        let commands: Vec<_> = self
            .documents
            .iter()
            .map(|(collection, id, text)| {
                let members = text.strip_suffix('}').expect("an object");
                let comma = if members == "{" { "" } else { "," };
                let (id, collection) = (json!(id), json!(collection));
                format!(
                    r#"{{"Id":{id},"ChangeVector":null,"Type":"PUT","Document":{members}{comma}"@metadata":{{"@collection":{collection}}}}}}}"#
                )
            })
            .collect();
        format!(r#"{{"Commands":[{}]}}"#, commands.join(","))
    }
}

/// A row's or a document's id, plain or as a JSON text, and what follows it.
fn read_id(line: &str) -> (String, &str) {
    if line.starts_with('"') {
        let end = line.find("\" ").expect("the id's end") + 1;
        return (serde_json::from_str(&line[..end]).expect("an id"), &line[end + 1..]);
    }
    let (id, rest) = line.split_once(' ').expect("an id and a document");
    (id.to_owned(), rest)
}

impl Case {
    pub(crate) fn query(&self, script: &Script, source: &str) -> String {
        if source == ONCE {
            return self.text.clone();
        }
        self.text.replacen(PLACE, &format!("from {}", script.sources[source]), 1)
    }

    /// The text on one line and the parameters: what a difference names the case by.
    pub(crate) fn name(&self) -> String {
        let mut text = self.text.replace('\n', " ");
        if self.projection != "Default" {
            text.extend([" projection=", &self.projection]);
        }
        if self.parameters.is_empty() { text } else { format!("{text} $ {}", self.parameters) }
    }
}

impl Expected {
    fn read_line(&mut self, line: &str) {
        if let Some(error) = line.strip_prefix("error ") {
            self.error = Some(error.to_owned());
        } else if let Some(count) = line.strip_prefix("any ") {
            self.any = Some(count.parse().expect("a count"));
        } else if let Some(ids) = line.strip_prefix("= ") {
            self.groups.push(ids.split(' ').map(str::to_owned).collect());
        } else if let Some(row) = line.strip_prefix("- ") {
            self.groups.push(vec![row.to_owned()]);
        } else if let Some(row) = line.strip_prefix("~ ") {
            self.groups.last_mut().expect("a group").push(row.to_owned());
        } else {
            self.head.push(line.to_owned());
        }
    }

    pub(crate) fn agrees(&self, found: &Found) -> bool {
        match (&self.error, &found.error) {
            (Some(expected), Some((found, _))) => return same_error(expected, found),
            (None, None) => {}
            _ => return false,
        }
        // A count that varies may be any, or none.
        fn word(line: &str) -> &str {
            line.split(' ').next().unwrap_or_default()
        }
        let varies = |line: &str| self.head.iter().any(|own| own.ends_with(" ?") && word(own) == word(line));
        let fixed =
            |head: &[String]| -> Vec<String> { head.iter().filter(|line| !varies(line)).cloned().collect() };
        if fixed(&self.head) != fixed(&found.head) {
            return false;
        }
        if let Some(count) = self.any {
            return found.rows.len() == count;
        }
        let mut rows = found.rows.as_slice();
        for group in &self.groups {
            if rows.len() < group.len() {
                return false;
            }
            let (here, rest) = rows.split_at(group.len());
            let (mut here, mut group) = (here.to_vec(), group.clone());
            here.sort();
            group.sort();
            if here != group {
                return false;
            }
            rows = rest;
        }
        rows.is_empty()
    }
}

/// Whether an error stands for another. That a query is wrong is said by two types, and RavenDB says it by many more (what went wrong while it
/// ran into it); those that clients tell apart stay apart: a field that is not indexed, a document that is not there.
fn same_error(expected: &str, found: &str) -> bool {
    expected == found
        || matches!(found, "500 ParseException" | "500 InvalidQueryException")
            && expected.starts_with("500 ")
            && !matches!(expected, "500 ArgumentException" | "500 DocumentDoesNotExistException")
}

impl Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = &self.error {
            return write!(f, "error {error}");
        }
        f.write_str(&self.head.join("; "))?;
        if let Some(count) = self.any {
            return write!(f, "; any {count} rows");
        }
        for group in &self.groups {
            write!(f, " | {}", group.join(" ~ "))?;
        }
        Ok(())
    }
}
