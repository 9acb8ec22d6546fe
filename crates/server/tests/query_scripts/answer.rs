//! An answer in the words of the scripts, and JSON whose numbers stay as they were written.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::script::Script;

pub(crate) struct Found {
    /// Status and type, and the message.
    pub(crate) error: Option<(String, String)>,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<String>,
}

/// An object's members in their order.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Members {
    fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| &**value)
    }

    fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }
}

/// JSON without insignificant space, its numbers as they are; `None` for what is no JSON.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let text = text.trim();
    Some(match text.as_bytes().first()? {
        b'{' => object(serde_json::from_str(text).ok()?)?,
        b'[' => {
            let items: Vec<Box<RawValue>> = serde_json::from_str(text).ok()?;
            let items: Option<Vec<_>> = items.iter().map(|item| canonical(item.get())).collect();
            format!("[{}]", items?.join(","))
        }
        b'"' => quoted(&serde_json::from_str::<String>(text).ok()?),
        _ => text.to_owned(),
    })
}

fn object(members: Members) -> Option<String> {
    let members: Option<Vec<_>> = members
        .0
        .iter()
        .map(|(name, value)| Some(format!("{}:{}", quoted(name), canonical(value.get())?)))
        .collect();
    Some(format!("{{{}}}", members?.join(",")))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl Found {
    pub(crate) fn read(status: u16, text: &str, script: &Script) -> Found {
        let mut found = Found { error: None, head: Vec::new(), rows: Vec::new() };
        let members: Option<Members> = serde_json::from_str(text).ok();
        let Some(members) = members.filter(|_| status < 400) else {
            let error: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
            let kind = error["Type"].as_str().and_then(|kind| kind.rsplit(['.', '+']).next()).unwrap_or("-");
            let message = error["Message"].as_str().unwrap_or(text);
            found.error = Some((format!("{status} {kind}"), message.to_owned()));
            return found;
        };
        let number = |name| members.get(name).map_or("0", RawValue::get);
        found.head.push(format!("total {}", number("TotalResults")));
        for (word, name) in [("skipped", "SkippedResults"), ("scanned", "ScannedResults")] {
            if !matches!(number(name), "0" | "null") {
                found.head.push(format!("{word} {}", number(name)));
            }
        }
        if let Some(includes) = members.get("Includes").and_then(parse::<BTreeMap<String, Box<RawValue>>>) {
            let ids: Vec<_> = includes
                .iter()
                .map(|(id, value)| format!("{id}{}", if value.get() == "null" { "=null" } else { "" }))
                .collect();
            if !ids.is_empty() {
                found.head.push(format!("includes {}", ids.join(" ")));
            }
        }
        if let Some(fields) = members.get("Highlightings").and_then(parse::<Members>) {
            let fields: Vec<_> = fields
                .0
                .iter()
                .map(|(name, hits)| {
                    let hits = parse::<BTreeMap<String, Box<RawValue>>>(hits).unwrap_or_default();
                    format!(
                        "{}:{}",
                        quoted(name),
                        object(Members(hits.into_iter().collect())).unwrap_or_default()
                    )
                })
                .collect();
            if !fields.is_empty() {
                found.head.push(format!("highlights {{{}}}", fields.join(",")));
            }
        }
        let results = members.get("Results").and_then(parse::<Vec<Box<RawValue>>>).unwrap_or_default();
        found.rows = results.iter().map(|result| row(result, script)).collect();
        found
    }
}

fn parse<'a, T: Deserialize<'a>>(value: &'a RawValue) -> Option<T> {
    serde_json::from_str(value.get()).ok()
}

/// A result: its id alone when it is the whole document as stored, else with what it holds beside its metadata.
fn row(result: &RawValue, script: &Script) -> String {
    let Some(mut members) = parse::<Members>(result) else { return result.get().to_owned() };
    let metadata = members.get("@metadata").and_then(parse::<Members>);
    members.0.retain(|(name, _)| name != "@metadata");
    let body = object(members).unwrap_or_default();
    let Some(id) = metadata.as_ref().and_then(|metadata| metadata.text("@id")) else { return body };
    let shown = if id.contains([' ', '"', '{']) { quoted(&id) } else { id.clone() };
    let is_projection = metadata.is_some_and(|metadata| metadata.get("@projection").is_some());
    if !is_projection && script.stored.get(&id.to_lowercase()) == Some(&body) {
        shown
    } else {
        format!("{shown} {body}")
    }
}

impl Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some((error, message)) => write!(f, "error {error}: {message}"),
            None => {
                f.write_str(&self.head.join("; "))?;
                self.rows.iter().try_for_each(|row| write!(f, " | {row}"))
            }
        }
    }
}
