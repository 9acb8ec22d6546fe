//! What the bytes of documents are spent on, summed over files of JSON lines: `size_breakdown FILE.ndjson.gz...`.
//!
//! Reads documents by the tables of `docs/format/document.md`, not by this crate's own reader.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a tool for one look, on documents just written"
)]

use std::collections::{BTreeMap, HashSet};
use std::io::Read as _;

use jackdaw_document::Context;

struct Walk<'a> {
    bytes: &'a [u8],
    /// Positions of strings met, since they may be shared.
    met: HashSet<usize>,
    sums: &'a mut BTreeMap<&'static str, usize>,
}

impl Walk<'_> {
    fn number(&self, at: usize, width: usize) -> usize {
        (0..width).map(|i| usize::from(self.bytes[at + i]) << (8 * i)).sum()
    }

    fn varint(&self, mut at: usize) -> (usize, usize) {
        let (mut value, mut shift) = (0, 0);
        loop {
            value |= usize::from(self.bytes[at] & 0x7F) << shift;
            at += 1;
            if self.bytes[at - 1] < 0x80 {
                return (value, at);
            }
            shift += 7;
        }
    }

    fn add(&mut self, what: &'static str, bytes: usize) {
        *self.sums.entry(what).or_default() += bytes;
    }

    fn value(&mut self, kind: u8, at: usize) {
        match kind {
            0x10..=0x17 => self.add("numbers", usize::from(kind & 7) + 1),
            0x20..=0x27 => self.add("numbers", usize::from(kind & 7) + 2),
            0x30 => self.add("numbers", 8),
            0x31 | 0x40..=0x45 if self.met.insert(at) => {
                let (size, mut after) = self.varint(at);
                self.add("string text", size);
                if kind & 0xF1 == 0x41 {
                    let start = after;
                    let mut count;
                    (count, after) = self.varint(after);
                    while count > 0 {
                        (_, after) = self.varint(after);
                        count -= 1;
                    }
                    self.add("escape places", after - start);
                    after = start;
                }
                self.add("string lengths", after - at);
            }
            0x50 | 0x60 => self.container(kind, at),
            _ => {}
        }
    }

    fn container(&mut self, kind: u8, position: usize) {
        let head = self.bytes[position];
        let (count, mut at) = match head >> 4 {
            15 => self.varint(position + 1),
            count => (usize::from(count), position + 1),
        };
        self.add("heads", at - position);
        let width = usize::from(head & 3) + 1;
        let (mut kinds, mut packed) = (count, false);
        if kind == 0x60 {
            let start = at;
            at = match usize::from(head >> 2 & 3) {
                3 => self.varint(at).1,
                less => at + count * (less + 1),
            };
            self.add("name ids", at - start);
        } else {
            kinds = if head & 4 != 0 { 1 } else { count };
            packed = head & 8 != 0;
        }
        self.add("kinds", kinds);
        if packed {
            let one = self.bytes[at] & 7;
            let size = if self.bytes[at] >= 0x30 {
                8
            } else {
                usize::from(one) + 1 + usize::from(self.bytes[at] >> 5)
            };
            self.add("numbers", count * size);
            return;
        }
        self.add(if kind == 0x60 { "payloads of objects" } else { "payloads of arrays" }, count * width);
        for i in 0..count {
            let kind = self.bytes[at + if kinds == count { i } else { 0 }];
            let payload = self.number(at + kinds + i * width, width);
            if kind >= 0x10 {
                self.value(kind, position - payload);
            }
        }
    }
}

fn main() {
    let (mut sums, mut text_size, mut total, mut documents) = (BTreeMap::new(), 0, 0, 0);
    for path in std::env::args().skip(1) {
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut text).unwrap();
        let mut context = Context::new();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let document = context.parse(line).unwrap();
            let bytes = document.as_bytes();
            let mut walk = Walk { bytes, met: HashSet::new(), sums: &mut sums };
            let flags = bytes[bytes.len() - 2];
            let width = usize::from(flags & 3) + 1;
            let footer = bytes.len() - 3 - 2 * width;
            let root = footer - walk.number(footer + 1, width);
            let names = document.names().map(|name| name.to_bytes().len()).sum();
            walk.add("names", names);
            walk.add("name ends and index", footer - names_start(&walk, footer, flags, width) - names);
            walk.add("footers", bytes.len() - footer);
            walk.value(bytes[footer], root);
            text_size += line.len();
            total += bytes.len();
            documents += 1;
            context.reset();
        }
    }
    println!(
        "{documents} documents, {text_size} bytes of text, {total} of documents ({:.3})",
        total as f64 / text_size as f64
    );
    let known: usize = sums.values().sum();
    sums.insert("not accounted for", total - known);
    for (what, bytes) in sums {
        println!("{what:<22} {bytes:>12} {:>7.3} of text", bytes as f64 / text_size as f64);
    }
}

fn names_start(walk: &Walk<'_>, footer: usize, flags: u8, width: usize) -> usize {
    let count = walk.number(footer + 1 + width, width);
    let ends_width = usize::from(flags >> 2 & 3) + 1;
    let slots = if count > 32 { (count + count.div_ceil(2)).next_power_of_two() } else { 0 };
    let index = footer - slots * if count < 255 { 1 } else { 2 };
    let last = if count == 0 { 0 } else { walk.number(index - ends_width, ends_width) };
    index - count * ends_width - last
}
