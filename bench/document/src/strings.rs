//! Ways to compress the strings of documents one by one, each readable without its neighbours: size, and speed both ways.
#![allow(clippy::unwrap_used, reason = "a benchmark has nothing to recover to")]

use std::hint::black_box;

use anyhow::Result;
use jackdaw_document::{Dictionary, Document, Mode};

use crate::Set;
use crate::report::Report;
use crate::workloads::{binary, strings};

/// Text beyond this adds nothing but time.
const BYTES_MAX: usize = 4 << 20;

type Compress<'a> = Box<dyn FnMut(&[u8], &mut Vec<u8>) + 'a>;

/// Every twentieth string is a sample to learn from, the rest is measured; a string that would grow counts as it is.
pub(crate) fn run(set: &Set, report: &mut Report) -> Result<()> {
    let workload = format!("strings-{}", set.name);
    if !report.wants(&workload) || set.texts.len() < 100 {
        return Ok(());
    }
    let mut all = Vec::new();
    for bytes in binary(set, Mode::Memory).iter() {
        strings(&Document::open(bytes)?.root(), &mut all);
    }
    all.retain(|text| !text.is_empty());
    let step = (all.iter().map(Vec::len).sum::<usize>() / BYTES_MAX).max(1);
    let samples: Vec<&[u8]> = all.iter().step_by(20 * step).map(Vec::as_slice).collect();
    let texts: Vec<&[u8]> = all.iter().skip(1).step_by(step).map(Vec::as_slice).collect();
    let size: usize = texts.iter().map(|text| text.len()).sum();

    let built_in = Dictionary::built_in();
    let trained = Dictionary::train(1, samples.iter().copied())?;
    let fsst = fsst::Compressor::train(&samples);
    let from_fsst = fsst.decompressor();
    let zstd_dictionary = zstd::dict::from_samples(&samples, 64 << 10).ok();
    let mut ways: Vec<(&str, Compress<'_>, Compress<'_>)> = vec![
        (
            "jackdaw-built-in",
            Box::new(|text, out| built_in.compress(text, out)),
            Box::new(|codes, out| built_in.decompress(codes, out)),
        ),
        (
            "jackdaw-trained",
            Box::new(|text, out| trained.compress(text, out)),
            Box::new(|codes, out| trained.decompress(codes, out)),
        ),
        (
            "fsst-trained",
            Box::new(|text, out| out.extend_from_slice(&fsst.compress(text))),
            Box::new(|codes, out| out.extend_from_slice(&from_fsst.decompress(codes))),
        ),
        (
            "smaz",
            Box::new(|text, out| out.extend_from_slice(&smaz::compress(text))),
            Box::new(|codes, out| out.extend_from_slice(&smaz::decompress(codes).unwrap())),
        ),
    ];
    if let Some(dictionary) = &zstd_dictionary {
        let mut compressor = zstd::bulk::Compressor::with_dictionary(1, dictionary)?;
        let mut decompressor = zstd::bulk::Decompressor::with_dictionary(dictionary)?;
        ways.push((
            "zstd-1-trained",
            Box::new(move |text, out| out.extend_from_slice(&compressor.compress(text).unwrap())),
            Box::new(move |codes, out| {
                out.extend_from_slice(&decompressor.decompress(codes, 16 << 20).unwrap());
            }),
        ));
    }
    for (name, compress, decompress) in &mut ways {
        let mut codes = Vec::new();
        let mut total = 0;
        let compressed: Vec<Vec<u8>> = texts
            .iter()
            .map(|text| {
                codes.clear();
                compress(text, &mut codes);
                total += codes.len().min(text.len());
                codes.clone()
            })
            .collect();
        report.fact(&workload, name, "of text", total as f64 / size as f64)?;
        report.time(
            &format!("{workload}-in"),
            name,
            "MB/s",
            size,
            || (),
            |()| {
                for text in &texts {
                    codes.clear();
                    compress(text, &mut codes);
                    black_box(&codes);
                }
            },
        )?;
        report.time(
            &format!("{workload}-out"),
            name,
            "MB/s",
            size,
            || (),
            |()| {
                for text in &compressed {
                    codes.clear();
                    decompress(text, &mut codes);
                    black_box(&codes);
                }
            },
        )?;
    }
    Ok(())
}
