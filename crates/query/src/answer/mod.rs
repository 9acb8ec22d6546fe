//! Answers as JSON text: results, and what stands around them.

pub(crate) mod envelope;
pub(crate) mod json;
pub(crate) mod result;
pub(crate) mod stream;
