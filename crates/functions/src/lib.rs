//! Index functions, projections and patches: C# LINQ and JavaScript, compiled and run over documents; custom analyzers in C#.
//!
//! | part | module |
//! | --- | --- |
//! | values, and how they become documents | `value` |
//! | what functions are given and return | `input` |
//! | errors | `error` |
//! | custom analyzers: classes in C# read as tokenizers and filters | `analyzer` |
//!
//! The crate knows documents and nothing of storage: what a function loads comes from its [`Host`].
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking"))]

pub mod analyzer;
mod code;
mod error;
mod input;
pub mod javascript;
mod language;
mod limits;
mod linq;
mod map;
mod program;
mod reduce;
mod run;
mod source;
mod value;

pub use code::Engine;
pub use error::{CompileError, RuntimeError};
pub use input::{Attachment, Each, Entry, Host, Input, NoHost};
pub use language::Language;
pub use limits::Limits;
pub use map::{Map, MapRunner};
pub use reduce::{Combine, Reduce, ReduceField, ReduceRunner};
pub use source::{Collections, Source, SourceKind};
pub use value::{
    Boosted, DynamicField, FieldIndexing, Group, SpatialField, Value, format_value, time_span_text,
};
