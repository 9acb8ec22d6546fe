//! Inverted indexes for full-text and structured queries, on tantivy.
#![forbid(unsafe_code)]
