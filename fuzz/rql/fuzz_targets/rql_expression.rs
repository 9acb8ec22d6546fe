//! See `checks::expression`.
#![no_main]
#[allow(dead_code)]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::expression(input));
