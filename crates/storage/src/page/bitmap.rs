//! A page of the free bitmap: `count` in the header is how many bits are set; the body is the bits (see `free_space`).

use super::Page;
use super::header::COUNT_AT;
use crate::format::{PAGE_HEADER_SIZE, read_u16};

/// Checks that the count is the number of bits set.
pub(crate) fn validate(page: &Page) -> Result<(), String> {
    let bits: u32 = page[PAGE_HEADER_SIZE..].iter().map(|b| b.count_ones()).sum();
    let count = read_u16(page, COUNT_AT);
    if bits == u32::from(count) {
        Ok(())
    } else {
        Err(format!("it counts {count} free pages and marks {bits}"))
    }
}
