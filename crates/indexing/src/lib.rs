//! Indexes of a database: definitions, automatic ones, and the workers that keep them up to date.
//!
//! [`Indexes`] are those of one database. Each [`Index`] has a definition ([`IndexDefinition`], or [`auto::AutoDefinition`] for one that queries
//! made), which a plan makes ready to run; files, which are opened when it first runs or is queried; and its place in the queue of the
//! [`Workers`], one pool for all databases of a process. A commit wakes the indexes of the collections that it changed; a worker then takes what is new
//! in one [batch](batch), which becomes visible as a new [`View`] together with the etags up to which it is whole.
//!
//! What always holds:
//! - A view never claims etags that its searcher does not have, before a crash and after it: both are written by one commit.
//! - Definitions and errors are in the database's own environment: what was answered is durable. All else can be built again from documents.
//! - A function that fails, loops or asks for too much hurts its own document in its own index.
//! - Nothing polls: an index that has nothing to do costs no time, one that was never used has no file open.
#![forbid(unsafe_code)]

mod analyzers;
pub mod auto;
mod batch;
pub mod definition;
mod directory;
mod error;
mod files;
mod groups;
mod index;
mod indexes;
mod map;
mod output;
mod plan;
mod progress;
pub mod reduce;
mod references;
mod statistics;
mod store;
mod view;
mod waiting;
mod workers;

pub use analyzers::{AnalyzerDefinition, ServerAnalyzers};
pub use definition::IndexDefinition;
pub use error::{Error, Result};
pub use index::{Index, Status};
pub use indexes::{AutoMatch, Indexes, Options, Put};
pub use plan::IndexType;
pub use progress::{Cutoff, Etags, Progress};
pub use statistics::{BatchStatistics, CollectionStatistics, Lags};
pub use store::IndexingError;
pub use view::View;
pub use workers::Workers;
