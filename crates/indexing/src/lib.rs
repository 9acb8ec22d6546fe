//! Indexes of a database: definitions, automatic ones, and the workers that keep them up to date.
#![forbid(unsafe_code)]
#![expect(dead_code, reason = "the workers that use these come next")]

pub mod auto;
pub mod definition;
mod directory;
mod error;
mod progress;
pub mod reduce;
mod store;
mod workers;

pub use definition::IndexDefinition;
pub use error::{Error, Result};
pub use progress::{Cutoff, Etags, Progress};
pub use store::IndexingError;
pub use workers::Workers;
