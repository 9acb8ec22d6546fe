//! Documents into and out of a database: bulk insert, dumps, lines of JSON, CSV.
#![forbid(unsafe_code)]
// Tests state what they expect by unwrapping it.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod bulk_insert;
mod error;
mod json;

pub use bulk_insert::{BulkInsertReader, COMMAND_SIZE_MAX, Command, Next};
pub use error::{Error, Result, SplitError, SplitErrorKind};
pub use json::splitter::{Form, Splitter, Step};
