//! Opens an environment whose header file the fuzzer has changed; see `storage_files`.
#![no_main]

use jackdaw_fuzz_storage::storage_files::{Target, run};

libfuzzer_sys::fuzz_target!(|input: &[u8]| run(Target::Header, input));
