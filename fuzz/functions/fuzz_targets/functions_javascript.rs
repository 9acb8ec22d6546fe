//! See `checks::javascript`.
#![no_main]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::javascript(input));
