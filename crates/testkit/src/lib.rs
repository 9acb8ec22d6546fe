//! What the tests of all crates share: chance from seeds ([`Random`]), running many seeds and naming the first that fails
//! ([`Seeds`]), plain models of what a storage environment holds ([`Model`], [`Operation`]), the corpus of the fuzz targets ([`replay_corpus`]), and temporary folders.
//!
//! Only tests use this crate. It uses nothing of ours, so that every crate may use it.

#![forbid(unsafe_code)]

mod corpus;
mod directory;
mod model;
mod random;
mod seeds;
mod workload;

pub use corpus::replay_corpus;
pub use directory::temporary_directory;
pub use model::{FIXED_VALUE_SIZE, Model, Operation, Outcome, Row, Structure, StructureKind};
pub use random::Random;
pub use seeds::Seeds;
pub use workload::Workload;
