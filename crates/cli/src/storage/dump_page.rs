//! `jackdaw storage dump-page`: one page of the data file, taken apart. Works on a damaged environment, and on one that is in use.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use jackdaw_storage::{DumpContent, DumpItem, PageDump, PageNumber, dump_page};
use serde::Serialize;
use serde_json::{Value, json};

use crate::bytes::{hex, hex_dump, show};
use crate::exit;
use crate::output::{Findings, Format, aligned};

/// Bytes of a key or value that text shows; JSON has all.
const SHOWN_MAX: usize = 60;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The environment's directory
    dir: PathBuf,
    /// The page's number: its offset in the data file divided by 8192
    page: u64,
    /// Print the page's bytes too
    #[arg(long)]
    bytes: bool,
    #[command(flatten)]
    format: Format,
}

struct Dump {
    page: PageDump,
    with_bytes: bool,
}

/// Prints the page; the exit code tells whether it is damaged.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let page = dump_page(&arguments.dir, PageNumber(arguments.page))?;
    let damaged = page.damage.is_some();
    arguments.format.print(&Dump { page, with_bytes: arguments.bytes })?;
    Ok(if damaged { exit::DAMAGED.into() } else { ExitCode::SUCCESS })
}

impl Dump {
    fn kind(&self) -> String {
        self.page.kind.map_or_else(|| format!("unknown ({})", self.page.kind_byte), str::to_owned)
    }
}

impl Findings for Dump {
    fn text(&self) -> String {
        let page = &self.page;
        let checksum = match page.checksum {
            Some(sum) if sum == page.stored_checksum => format!("{sum:016x}, fits"),
            Some(sum) => format!("{:016x}, should be {sum:016x}", page.stored_checksum),
            None => format!("{:016x}, of a run that ends beyond the file", page.stored_checksum),
        };
        let mut rows = vec![
            ("page", page.number.to_string()),
            ("kind", self.kind()),
            ("checksum", checksum),
            ("flags", format!("{:#04x}", page.flags)),
            ("count", page.count.to_string()),
            ("lower", page.lower.to_string()),
            ("upper", page.upper.to_string()),
        ];
        rows.extend(page.fields.iter().map(|(name, value)| (*name, value.to_string())));
        if let Some(damage) = &page.damage {
            rows.push(("DAMAGED", damage.clone()));
        }
        let mut text = aligned(&rows);
        for item in &page.items {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", item_text(item));
        }
        if self.with_bytes {
            text.push_str(&hex_dump(&page.bytes));
        }
        text
    }
}

fn item_text(item: &DumpItem) -> String {
    let key = match item.key.as_slice() {
        [] => String::new(),
        key => format!(" {}", show(key, SHOWN_MAX)),
    };
    let content = match &item.content {
        DumpContent::Value(value) => show(value, SHOWN_MAX),
        DumpContent::Section(page, slot) => format!("in section page {page}, slot {slot}"),
        DumpContent::Run(page) => format!("in the overflow run at page {page}"),
        DumpContent::Child(page) => format!("page {page}"),
    };
    format!("[{}]{key} -> {content}", item.index)
}

fn item_json(item: &DumpItem) -> Value {
    let content = match &item.content {
        DumpContent::Value(value) => json!({ "value_hex": hex(value) }),
        DumpContent::Section(page, slot) => json!({ "section_page": page.0, "slot": slot }),
        DumpContent::Run(page) => json!({ "run_page": page.0 }),
        DumpContent::Child(page) => json!({ "child_page": page.0 }),
    };
    let mut object = json!({ "index": item.index, "content": content });
    if !item.key.is_empty() {
        object["key_hex"] = hex(&item.key).into();
        if let Ok(text) = std::str::from_utf8(&item.key) {
            object["key"] = text.into();
        }
    }
    object
}

impl Serialize for Dump {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let page = &self.page;
        let fields: serde_json::Map<String, Value> =
            page.fields.iter().map(|(name, value)| (name.replace(' ', "_"), (*value).into())).collect();
        let mut object = json!({
            "page": page.number.0,
            "stored_number": page.stored_number.0,
            "kind": self.kind(),
            "flags": page.flags,
            "count": page.count,
            "lower": page.lower,
            "upper": page.upper,
            "stored_checksum": format!("{:016x}", page.stored_checksum),
            "checksum": page.checksum.map(|sum| format!("{sum:016x}")),
            "damage": page.damage,
            "fields": fields,
            "items": page.items.iter().map(item_json).collect::<Vec<_>>(),
        });
        if self.with_bytes {
            object["bytes_hex"] = hex(&page.bytes).into();
        }
        object.serialize(serializer)
    }
}
