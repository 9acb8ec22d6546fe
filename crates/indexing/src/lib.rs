//! Index definitions, automatic indexes, map and map/reduce pipelines, staleness.
#![forbid(unsafe_code)]

pub mod reduce;
