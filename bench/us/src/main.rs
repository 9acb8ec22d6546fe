//! Measures our own engine alone: compiles no other.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use jackdaw_bench::{jackdaw, memory};

fn main() -> ExitCode {
    jackdaw_bench::run(&[jackdaw::ENTRY, memory::ENTRY])
}
