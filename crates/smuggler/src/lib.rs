//! Documents into and out of a database: bulk insert, dumps, lines of JSON, CSV.
#![forbid(unsafe_code)]
// Tests state what they expect by unwrapping it.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod bulk_insert;
mod compression;
mod csv;
mod dump;
mod error;
mod export;
mod import;
mod json;
mod progress;
mod report;
mod source;

pub use bulk_insert::{BulkInsert, BulkInsertReader, COMMAND_SIZE_MAX, Command, Next, SubmittedBatch};
pub use compression::{Compression, Expansion, ReadCount, decompressed};
pub use csv::{ColumnOptions, CsvOptions, FieldType};
pub use dump::reader::{DumpReader, DumpStep};
pub use dump::writer::{BUILD_VERSION, DumpCompression, DumpWriter};
pub use dump::{Section, Skipped};
pub use error::{Error, Result, SplitError, SplitErrorKind};
pub use export::{ExportOptions, export};
pub use import::options::{DumpOptions, Existing, Format, ImportOptions};
pub use import::store::StoredBatch;
pub use import::{Imported, IndexTaker, import};
pub use json::splitter::{Form, Splitter, Step};
pub use progress::Progress;
pub use report::{ExportReport, IndexReport, Place, REFUSALS_KEPT_MAX, Refusal, Report};
