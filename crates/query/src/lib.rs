//! RQL planned and executed: projections, includes, facets, streams.
//!
//! A query's text becomes a plan, which is kept and used again; a run of it reads one snapshot and writes its answer as JSON text
//! while it finds the results, so that an answer of any length takes the memory of one result.
//!
//! | part | module |
//! | --- | --- |
//! | what is asked | [`Request`] |
//! | names resolved, arguments checked, the way to the results chosen | `plan` |
//! | collections, indexes | `execute` |
//! | conditions and orders as the search index takes them | `search` |
//! | one run: filter, distinct, paging | `run`, `row` |
//! | results and what stands around them, as text | `answer` |
//! | documents that come along | [`includes`] |
//!
//! The crate knows no HTTP: who waits for the answer, and how errors are told, is the server's.
#![forbid(unsafe_code)]

mod answer;
mod engine;
mod error;
mod execute;
pub mod includes;
mod parameters;
mod plan;
mod request;
mod row;
mod run;
mod script;
mod search;
mod sink;

pub use answer::envelope::Layout;
pub use engine::{Engine, Prepared, Purpose};
pub use error::{Error, Result};
pub use execute::collection::Outcome;
pub use request::{ProjectionBehavior, Request, parse_duration};
pub use sink::{Head, Sink, Whole};
