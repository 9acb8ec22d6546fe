//! How fast JSON text is cut into values: `cargo run --release -p jackdaw-smuggler --example split -- FILE [TIMES]`.
//!
//! The file may be compressed; it is read into memory first, and pushed from there in pieces of 64 KiB, as a network would bring it.
#![allow(clippy::print_stdout, reason = "it is what an example does")]

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::time::Instant;

use jackdaw_smuggler::{Expansion, Form, ReadCount, Splitter, Step, decompressed};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file?")?;
    let times: u32 = arguments.next().map_or(Ok(10), |times| times.parse())?;
    let mut text = Vec::new();
    decompressed(File::open(path)?, Expansion::default(), &ReadCount::default())?.read_to_end(&mut text)?;
    let form = if text.trim_ascii_start().starts_with(b"[") { Form::Array } else { Form::Sequence };
    let mut values = 0u64;
    let started = Instant::now();
    for _ in 0..times {
        let mut splitter = Splitter::new(form, usize::MAX);
        for piece in text.chunks(64 << 10) {
            splitter.push(piece);
            while let Step::Value { .. } = splitter.step()? {
                values += 1;
            }
        }
        splitter.end();
    }
    let seconds = started.elapsed().as_secs_f64();
    let bytes = text.len() as f64 * f64::from(times);
    println!(
        "{values} values, {:.2} GB/s, {:.0} ns a value",
        bytes / seconds / 1e9,
        seconds * 1e9 / values as f64
    );
    Ok(())
}
