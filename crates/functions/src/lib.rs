//! Index functions, projections and patches: C# LINQ and JavaScript, compiled and run over documents.
//!
//! | part | module |
//! | --- | --- |
//! | values, and how they become documents | `value` |
//! | what functions are given and return | `input` |
//! | errors | `error` |
//!
//! The crate knows documents and nothing of storage: what a function loads comes from its [`Host`].
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking"))]

mod error;
mod input;
mod value;

pub use error::{CompileError, RuntimeError};
pub use input::{Attachment, Each, Entry, Host, Input, NoHost};
pub use value::{Boosted, DynamicField, FieldIndexing, SpatialField, Value, time_span_text};
