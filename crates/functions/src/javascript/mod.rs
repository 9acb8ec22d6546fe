//! JavaScript: patches, projections and index functions, run by QuickJS.
//!
//! | part | module |
//! | --- | --- |
//! | limits on steps, memory and time | `limits` |
//! | the engine of each thread, its realm and compiled scripts | `engine`, `prelude.js` |
//! | scripts as text: checked and rewritten | `syntax` |
//! | documents into scripts and back | `into_script`, `from_script`, `sources` |
//! | what scripts ask of the database | `calls` |
//! | patches | `patch` |
//! | projections | `projection` |
//! | index functions | `index`, `definition`, `into_value` |
//! | index functions that need no QuickJS | `lower` |
//!
//! What always holds: a script sees nothing of what another left; it ends within its limits, or with an error that says which it exceeded; and what it leaves alone of
//! a document comes back as it was, to the last digit.

mod calls;
mod definition;
mod engine;
mod error;
mod format;
mod from_script;
mod index;
#[cfg(test)]
mod index_tests;
mod into_script;
mod into_value;
mod limits;
mod lower;
mod patch;
mod projection;
mod sources;
mod syntax;
#[cfg(test)]
mod tests;

pub use calls::IncludeKind;
pub use error::{HostError, ScriptError};
pub(crate) use format::date_text;
pub(crate) use index::{compile_map, compile_reduce};
pub use limits::Limits as ScriptLimits;
pub use patch::{PatchHost, PatchScript};
pub use projection::{Argument, FieldsFrom, Projection, ProjectionHost};
