//! The workloads, each for ourselves and for the peers.
#![allow(clippy::unwrap_used, reason = "a benchmark has nothing to recover to")]

use std::hint::black_box;
use std::sync::Arc;

use anyhow::Result;
use jackdaw_document::{Context, Dictionary, Document, Mode, Property, Style, Text, Value};

use crate::Set;
use crate::peers;
use crate::report::Report;

/// Three names of strings in each set that is read from.
const READ: &[(&str, [&str; 3])] = &[
    ("appstream_components", ["Type", "ID", "Package"]),
    ("commits", ["Id", "Subject", "Title"]),
    ("packages", ["Package", "Version", "Section"]),
];

pub(crate) fn run(sets: &[Set], report: &mut Report) -> Result<()> {
    for set in sets {
        parse(set, report)?;
    }
    for (name, names) in READ {
        if let Some(set) = sets.iter().find(|set| set.name == *name) {
            read3(set, names, report)?;
        }
    }
    for set in sets {
        print(set, report)?;
    }
    sizes(sets, report)?;
    dictionaries(sets, report)?;
    for set in sets {
        crate::strings::run(set, report)?;
    }
    text(report)
}

fn parse(set: &Set, report: &mut Report) -> Result<()> {
    for (mode, prefix) in [(Mode::Memory, "parse-memory"), (Mode::Disk, "parse-disk")] {
        let workload = format!("{prefix}-{}", set.name);
        if !report.wants(&workload) {
            continue;
        }
        let mut context = Context::new();
        report.time(
            &workload,
            "jackdaw",
            "MB/s",
            set.size,
            || (),
            |()| {
                for text in &set.texts {
                    black_box(context.parse_with(text, mode).unwrap());
                    context.reset();
                }
            },
        )?;
        if mode == Mode::Disk {
            continue;
        }
        let peer = |name| report.wants_peer(name);
        let wanted = [
            peer("serde_json"),
            peer("simd-json-borrowed"),
            peer("simd-json-tape"),
            peer("sonic-rs"),
            peer("bson"),
            peer("rmp-serde"),
            peer("jsonb"),
        ];
        if wanted[0] {
            report.time(
                &workload,
                "serde_json",
                "MB/s",
                set.size,
                || (),
                |()| peers::parse_serde_json(&set.texts),
            )?;
        }
        if wanted[1] {
            report.time(
                &workload,
                "simd-json-borrowed",
                "MB/s",
                set.size,
                || set.texts.clone(),
                |texts| peers::parse_simd_json(texts),
            )?;
        }
        if wanted[2] {
            report.time(
                &workload,
                "simd-json-tape",
                "MB/s",
                set.size,
                || set.texts.clone(),
                |texts| peers::parse_simd_json_tape(texts),
            )?;
        }
        if wanted[3] {
            report.time(
                &workload,
                "sonic-rs",
                "MB/s",
                set.size,
                || (),
                |()| peers::parse_sonic(&set.texts),
            )?;
        }
        for (wanted, name, convert) in [
            (wanted[4], "bson", peers::to_bson as fn(&[u8]) -> Vec<u8>),
            (wanted[5], "rmp-serde", peers::to_rmp),
            (wanted[6], "jsonb", peers::to_jsonb),
        ] {
            if wanted {
                report.time(
                    &workload,
                    name,
                    "MB/s",
                    set.size,
                    || (),
                    |()| {
                        for text in &set.texts {
                            black_box(convert(text));
                        }
                    },
                )?;
            }
        }
    }
    Ok(())
}

/// Documents as storage has them: one after the other in one stretch of memory.
pub(crate) struct Stored {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Stored {
    fn new(documents: impl Iterator<Item = Vec<u8>>) -> Stored {
        let mut stored = Stored { bytes: Vec::new(), ends: Vec::new() };
        for document in documents {
            stored.bytes.extend_from_slice(&document);
            stored.ends.push(stored.bytes.len() as u32);
        }
        stored
    }

    fn first(&self, count: usize) -> Stored {
        let ends = self.ends[..count.min(self.ends.len())].to_vec();
        Stored { bytes: self.bytes[..*ends.last().unwrap() as usize].to_vec(), ends }
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let document = &self.bytes[start..*end as usize];
            start = *end as usize;
            document
        })
    }
}

impl Stored {
    /// As an indexing batch reads: it knows which documents come next, and says so to the processor.
    fn iter_announced(&self) -> impl Iterator<Item = &[u8]> {
        const AHEAD: usize = 2;
        self.iter().enumerate().map(|(i, document)| {
            if let Some(ends) = self.ends.get(i + AHEAD - 1..=i + AHEAD) {
                Document::prefetch(&self.bytes[ends[0] as usize..ends[1] as usize]);
            }
            document
        })
    }
}

pub(crate) fn binary(set: &Set, mode: Mode) -> Stored {
    let mut context = Context::new();
    Stored::new(set.texts.iter().map(|text| {
        let bytes = context.parse_with(text, mode).unwrap().as_bytes().to_vec();
        context.reset();
        bytes
    }))
}

fn length(text: Option<Text<'_>>) -> usize {
    text.and_then(|text| text.as_str()).map_or(0, str::len)
}

fn read3(set: &Set, names: &[&str; 3], report: &mut Report) -> Result<()> {
    let workload = format!("read3-{}", set.name);
    let without = format!("read3-nohint-{}", set.name);
    if !report.wants(&workload) && !report.wants(&without) {
        return Ok(());
    }
    let documents = binary(set, Mode::Memory);
    let count = documents.len();
    let properties = names.map(Property::new);
    let with_hints = |document: &[u8]| {
        let object = Document::open(document).unwrap().object().unwrap();
        properties.iter().map(|property| length(property.text(&object))).sum::<usize>()
    };
    let by_name = |document: &[u8]| {
        let object = Document::open(document).unwrap().object().unwrap();
        names.iter().map(|name| length(object.text(name))).sum::<usize>()
    };
    report.time(
        &workload,
        "jackdaw",
        "ns/doc",
        count,
        || (),
        |()| {
            black_box(documents.iter_announced().map(with_hints).sum::<usize>());
        },
    )?;
    report.time(
        &workload,
        "jackdaw-unannounced",
        "ns/doc",
        count,
        || (),
        |()| {
            black_box(documents.iter().map(with_hints).sum::<usize>());
        },
    )?;
    let few = &documents.first(200);
    report.time(
        &workload,
        "jackdaw-in-cache",
        "ns/doc",
        few.len() * 10,
        || (),
        |()| {
            for _ in 0..10 {
                black_box(few.iter().map(with_hints).sum::<usize>());
            }
        },
    )?;
    let compressed = binary(set, Mode::Disk);
    report.time(&workload, "jackdaw-disk", "ns/doc", count, Context::new, |context| {
        let mut sum = 0;
        for bytes in compressed.iter() {
            let object = Document::open(bytes).unwrap().object().unwrap();
            for property in &properties {
                sum += property.text(&object).map_or(0, |text| text.in_context(context).len());
            }
            context.reset();
        }
        black_box(sum);
    })?;
    if report.wants_peer("serde_json") {
        report.time(
            &workload,
            "serde_json",
            "ns/doc",
            count,
            || (),
            |()| {
                black_box(set.texts.iter().map(|text| peers::read3_serde_json(text, names)).sum::<usize>());
            },
        )?;
    }
    if report.wants_peer("simd-json") {
        report.time(
            &workload,
            "simd-json-borrowed",
            "ns/doc",
            count,
            || set.texts.clone(),
            |texts| {
                black_box(texts.iter_mut().map(|text| peers::read3_simd_json(text, names)).sum::<usize>());
            },
        )?;
    }
    if report.wants_peer("sonic-rs") {
        report.time(
            &workload,
            "sonic-rs-get",
            "ns/doc",
            count,
            || (),
            |()| {
                black_box(set.texts.iter().map(|text| peers::read3_sonic(text, names)).sum::<usize>());
            },
        )?;
    }
    type Peer = (&'static str, fn(&[u8]) -> Vec<u8>, fn(&[u8], &[&str; 3]) -> usize);
    let binaries: [Peer; 3] = [
        ("bson", peers::to_bson, peers::read3_bson),
        ("rmp-serde", peers::to_rmp, peers::read3_rmp),
        ("jsonb", peers::to_jsonb, peers::read3_jsonb),
    ];
    for (name, convert, read) in binaries {
        if report.wants_peer(name) {
            let theirs = Stored::new(set.texts.iter().map(|text| convert(text)));
            report.time(
                &workload,
                name,
                "ns/doc",
                count,
                || (),
                |()| {
                    black_box(theirs.iter().map(|bytes| read(bytes, names)).sum::<usize>());
                },
            )?;
        }
    }
    report.time(
        &without,
        "jackdaw",
        "ns/doc",
        count,
        || (),
        |()| {
            black_box(documents.iter_announced().map(by_name).sum::<usize>());
        },
    )?;
    report.time(
        &without,
        "jackdaw-in-cache",
        "ns/doc",
        few.len() * 10,
        || (),
        |()| {
            for _ in 0..10 {
                black_box(few.iter().map(by_name).sum::<usize>());
            }
        },
    )
}

fn print(set: &Set, report: &mut Report) -> Result<()> {
    let workload = format!("print-{}", set.name);
    if !report.wants(&workload) {
        return Ok(());
    }
    for (mode, engine) in [(Mode::Memory, "jackdaw"), (Mode::Disk, "jackdaw-disk")] {
        let documents = binary(set, mode);
        let mut out = Vec::new();
        let size: usize =
            documents.iter().map(|bytes| Document::open(bytes).unwrap().to_json(Style::Compact).len()).sum();
        report.time(
            &workload,
            engine,
            "MB/s",
            size,
            || (),
            |()| {
                for bytes in documents.iter() {
                    out.clear();
                    Document::open(bytes).unwrap().print_to(&mut out, Style::Compact);
                    black_box(&out);
                }
            },
        )?;
    }
    let mut out = Vec::new();
    if report.wants_peer("serde_json") {
        let values: Vec<serde_json::Value> =
            set.texts.iter().map(|text| serde_json::from_slice(text).unwrap()).collect();
        let size: usize = values.iter().map(|value| serde_json::to_vec(value).unwrap().len()).sum();
        report.time(
            &workload,
            "serde_json",
            "MB/s",
            size,
            || (),
            |()| {
                for value in &values {
                    out.clear();
                    serde_json::to_writer(&mut out, value).unwrap();
                    black_box(&out);
                }
            },
        )?;
    }
    if report.wants_peer("sonic-rs") {
        let values: Vec<sonic_rs::Value> =
            set.texts.iter().map(|text| sonic_rs::from_slice(text).unwrap()).collect();
        let size: usize = values.iter().map(|value| sonic_rs::to_vec(value).unwrap().len()).sum();
        report.time(
            &workload,
            "sonic-rs",
            "MB/s",
            size,
            || (),
            |()| {
                for value in &values {
                    out.clear();
                    sonic_rs::to_writer(&mut out, value).unwrap();
                    black_box(&out);
                }
            },
        )?;
    }
    if report.wants_peer("simd-json") {
        use simd_json::prelude::Writable as _;
        let mut texts = set.texts.clone();
        let values: Vec<simd_json::BorrowedValue<'_>> =
            texts.iter_mut().map(|text| simd_json::to_borrowed_value(text).unwrap()).collect();
        let size: usize = values.iter().map(|value| value.encode().len()).sum();
        report.time(
            &workload,
            "simd-json-borrowed",
            "MB/s",
            size,
            || (),
            |()| {
                for value in &values {
                    out.clear();
                    value.write(&mut out).unwrap();
                    black_box(&out);
                }
            },
        )?;
    }
    Ok(())
}

fn sizes(sets: &[Set], report: &mut Report) -> Result<()> {
    for (mode, workload) in [(Mode::Memory, "size-memory"), (Mode::Disk, "size-disk")] {
        if !report.wants(workload) {
            continue;
        }
        let (mut ours, mut texts) = (0, 0);
        for set in sets {
            let size: usize = binary(set, mode).bytes.len();
            report.fact(
                &format!("{workload}-{}", set.name),
                "jackdaw",
                "of text",
                size as f64 / set.size as f64,
            )?;
            ours += size;
            texts += set.size;
        }
        report.fact(workload, "jackdaw", "of text", ours as f64 / texts as f64)?;
        if mode == Mode::Memory {
            for (name, convert) in [
                ("bson", peers::to_bson as fn(&[u8]) -> Vec<u8>),
                ("rmp-serde", peers::to_rmp),
                ("jsonb", peers::to_jsonb),
            ] {
                if report.wants_peer(name) {
                    let size: usize =
                        sets.iter().flat_map(|set| &set.texts).map(|text| convert(text).len()).sum();
                    report.fact(workload, name, "of text", size as f64 / texts as f64)?;
                }
            }
        }
    }
    Ok(())
}

/// What a dictionary trained for one collection gains over the built-in one, and what zstd makes of the same documents with a dictionary of its own.
fn dictionaries(sets: &[Set], report: &mut Report) -> Result<()> {
    for set in sets {
        let workload = format!("size-trained-{}", set.name);
        if !report.wants(&workload) || set.texts.len() < 100 {
            continue;
        }
        let plain = binary(set, Mode::Memory);
        // Every twentieth document is a sample, the rest is what is measured.
        let mut samples = Vec::new();
        for bytes in plain.iter().step_by(20) {
            strings(&Document::open(bytes)?.root(), &mut samples);
        }
        let slices: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
        let dictionary = Arc::new(Dictionary::train(1, slices)?);
        let mut context = Context::new();
        context.set_dictionary(Arc::clone(&dictionary));
        let others = || set.texts.iter().enumerate().filter(|(i, _)| i % 20 != 0).map(|(_, text)| text);
        let size: usize = others().map(Vec::len).sum();
        let mut ours = 0;
        for text in others() {
            ours += context.parse_with(text, Mode::Disk)?.as_bytes().len();
            context.reset();
        }
        report.fact(&workload, "jackdaw", "of text", ours as f64 / size as f64)?;
        let samples: Vec<&Vec<u8>> = set.texts.iter().step_by(20).collect();
        if let Ok(trained) = zstd::dict::from_samples(&samples, 64 << 10) {
            let mut compressor = zstd::bulk::Compressor::with_dictionary(1, &trained)?;
            let mut theirs = 0;
            for text in others() {
                theirs += compressor.compress(text)?.len();
            }
            report.fact(&workload, "zstd-1-dictionary", "of text", theirs as f64 / size as f64)?;
        }
        let mut compressor = zstd::bulk::Compressor::new(1)?;
        let mut theirs = 0;
        for text in others() {
            theirs += compressor.compress(text)?.len();
        }
        report.fact(&workload, "zstd-1-alone", "of text", theirs as f64 / size as f64)?;
    }
    Ok(())
}

pub(crate) fn strings(value: &Value<'_>, into: &mut Vec<Vec<u8>>) {
    match value {
        Value::Text(text) => into.push(text.to_bytes().into_owned()),
        Value::Array(array) => array.iter().for_each(|value| strings(&value, into)),
        Value::Object(object) => {
            for (name, value) in object.iter() {
                into.push(name.to_bytes().into_owned());
                strings(&value, into);
            }
        }
        _ => {}
    }
}

/// Etags and dates, a thousand different ones a run.
fn text(report: &mut Report) -> Result<()> {
    use jackdaw_document::date::{DATE_TEXT_MAX, Date, UNIX_EPOCH_TICKS, Zone};
    use jackdaw_document::etag::GuidEtag;

    const COUNT: usize = 1000;
    let etags: Vec<GuidEtag> = (0..COUNT as u64)
        .map(|i| GuidEtag { restarts: 0x0100_0000_0000_0005, changes: i.wrapping_mul(0x9E37_79B9_7F4A_7C15) })
        .collect();
    let etag_texts: Vec<[u8; 36]> = etags.iter().map(|etag| etag.to_text()).collect();
    let dates: Vec<Date> = (0..COUNT as i64)
        .map(|i| Date { ticks: UNIX_EPOCH_TICKS + i * 13_000_000_123_457, zone: Zone::Utc })
        .collect();
    let date_texts: Vec<Vec<u8>> =
        dates.iter().map(|date| date.format(&mut [0; DATE_TEXT_MAX]).to_vec()).collect();
    if report.wants("etag-parse") {
        report.time(
            "etag-parse",
            "jackdaw",
            "ns",
            COUNT,
            || (),
            |()| {
                for text in &etag_texts {
                    black_box(GuidEtag::parse(black_box(text)).unwrap());
                }
            },
        )?;
    }
    if report.wants("etag-format") {
        report.time(
            "etag-format",
            "jackdaw",
            "ns",
            COUNT,
            || (),
            |()| {
                for etag in &etags {
                    black_box(black_box(*etag).to_text());
                }
            },
        )?;
    }
    if report.wants("date-parse") {
        report.time(
            "date-parse",
            "jackdaw",
            "ns",
            COUNT,
            || (),
            |()| {
                for text in &date_texts {
                    black_box(Date::parse(black_box(text)).unwrap());
                }
            },
        )?;
    }
    if report.wants("date-format") {
        report.time(
            "date-format",
            "jackdaw",
            "ns",
            COUNT,
            || (),
            |()| {
                let mut buffer = [0; DATE_TEXT_MAX];
                for date in &dates {
                    black_box(black_box(*date).format(&mut buffer));
                }
            },
        )?;
    }
    Ok(())
}
