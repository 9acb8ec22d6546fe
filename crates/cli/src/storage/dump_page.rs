//! `jackdaw storage dump-page`: one page, taken apart: as the newest snapshot sees it, or with `--file` as the data file has it, which
//! works on an environment that cannot be opened or is in use.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use jackdaw_storage::{PageImage, PageItem, PageItemContent, PageNumber, inspect_page};
use serde::Serialize;
use serde_json::{Value, json};

use super::open_read_only;
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
    /// Read the data file as it is: for an environment that cannot be opened, or is in use
    #[arg(long)]
    file: bool,
    /// Print the page's bytes too
    #[arg(long)]
    bytes: bool,
    #[command(flatten)]
    format: Format,
}

struct Dump {
    page: PageImage,
    /// Where it was found.
    place: String,
    with_bytes: bool,
}

/// Prints the page; the exit code tells whether it is damaged.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let number = PageNumber(arguments.page);
    let (page, place) = if arguments.file {
        (inspect_page(&arguments.dir, number)?, "the data file".to_owned())
    } else {
        from_snapshot(&arguments.dir, number)?
    };
    let damaged = page.damage.is_some();
    arguments.format.print(&Dump { page, place, with_bytes: arguments.bytes })?;
    Ok(if damaged { exit::DAMAGED.into() } else { ExitCode::SUCCESS })
}

/// The page as the newest snapshot sees it, and where that finds it.
fn from_snapshot(directory: &Path, number: PageNumber) -> Result<(PageImage, String)> {
    let env = open_read_only(directory)?;
    let snapshot = env.read()?;
    let dump = snapshot.dump_page(number)?;
    drop(snapshot);
    env.close()?;
    let mut page = PageImage::decode(number, &dump.bytes)?;
    // The snapshot knows more: whether the page is free, and its checksum.
    page.damage = dump.problem;
    let place = match dump.transaction {
        Some(transaction) => format!("{}, written by transaction {transaction}", dump.place),
        None => dump.place.to_owned(),
    };
    if page.kind.is_none() || dump.kind == "free" {
        page.kind = Some(dump.kind);
        page.items.clear();
        page.fields.clear();
    }
    Ok((page, place))
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
            None => format!("{:016x}", page.stored_checksum),
        };
        let mut rows = vec![
            ("page", page.number.to_string()),
            ("found in", self.place.clone()),
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

fn item_text(item: &PageItem) -> String {
    let key = match item.key.as_slice() {
        [] => String::new(),
        key => format!(" {}", show(key, SHOWN_MAX)),
    };
    let content = match &item.content {
        PageItemContent::Value(value) => show(value, SHOWN_MAX),
        PageItemContent::Section(page, slot) => format!("in section page {page}, slot {slot}"),
        PageItemContent::Run(page) => format!("in the overflow run at page {page}"),
        PageItemContent::Child(page) => format!("page {page}"),
    };
    format!("[{}]{key} -> {content}", item.index)
}

fn item_json(item: &PageItem) -> Value {
    let content = match &item.content {
        PageItemContent::Value(value) => json!({ "value_hex": hex(value) }),
        PageItemContent::Section(page, slot) => json!({ "section_page": page.0, "slot": slot }),
        PageItemContent::Run(page) => json!({ "run_page": page.0 }),
        PageItemContent::Child(page) => json!({ "child_page": page.0 }),
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
            "place": self.place,
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
