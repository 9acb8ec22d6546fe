//! The map/reduce engine: results of maps grouped by key, and reduced so that a changed document costs the depth of its keys' trees and
//! never a whole key.
//!
//! The idea is a B+tree for each key whose branches carry reductions of what is below. Map results of a key lie in *leaves*, in the order
//! of their entry numbers; each leaf has a *partial*, the reduction of its results. Leaves are listed in *branches* with their partials, which
//! are reduced again to the branch's own partial, and so on up to the root, whose partial is the key's result. When a result changes, its leaf
//! is rewritten and reduced, then the branch above, then the next: as many nodes as the tree is deep.
//!
//! ```text
//! keys:     "Tag=rust"  -> [level 2 | count 70,000 | partial of everything | root: (low, count, size, partial) ...]
//!                                                                                    |
//! nodes:    (key 7, level 1, low 0)      -> (low, count, size, partial) ...   <------+ found by (key number, level, low)
//!           (key 7, level 0, low 0)      -> (entry, result) (entry, result) ...
//! sources:  "questions/11" -> (entry 41, hash, "Tag=rust") (entry 42, hash, "Tag=linux")
//! ```
//!
//! The root of every key lies in the key's record: a key with few results is one entry of one tree and has no node of its own.
//!
//! What always holds:
//! - A result is in exactly one leaf, under the entry number that the record of its document names with its key; both are written by one
//!   transaction, together with the *position* (the etags reached) that the worker hands in. After a crash all of a batch is there or nothing.
//! - A partial is the reduction of what is below, or marked as failed; a failed one makes all above it failed, and the key has no result.
//! - The keys whose results changed are listed in the same transaction, until whoever follows them (the search index, the output collection)
//!   says that it has them.
//!
//! The engine knows no functions and no documents: results are opaque bytes ([`pack`] says which two forms there are), and a [`Reduction`]
//! makes few of many.
//!
//! | file | what |
//! | --- | --- |
//! | `key.rs` | reduce keys as bytes that are equal when the keys are |
//! | `pack.rs`, `columns.rs` | results as bytes: documents, or rows of numbers |
//! | `batch.rs` | what the maps of a batch made, in memory |
//! | `source.rs` | which results a document has, and what a batch changes |
//! | `node.rs`, `record.rs` | the bytes of leaves and branches, and of a key's record |
//! | `update.rs` | the changes of one key: which nodes are written and reduced |
//! | `state.rs` | the trees, the counters, the list of changed keys |
//! | `engine.rs`, `snapshot.rs` | applying batches, reading results |
//! | `check.rs` | everything that must hold between the trees |
//! | `grouping.rs` | what an index groups by: from entries of functions to keys and packs, and back |
//! | `auto.rs` | the maps of automatic indexes |
//! | `view.rs` | trees and results as JSON, for people |

mod auto;
mod batch;
mod bytes;
mod check;
mod columns;
mod engine;
mod error;
mod grouping;
mod key;
mod node;
mod pack;
mod record;
mod reduction;
mod snapshot;
mod source;
mod state;
mod update;
mod view;

pub use auto::AutoMap;
pub use batch::Batch;
pub use columns::{ColumnField, ColumnKind, ColumnValue, Columns, ColumnsReduction};
pub use engine::{Applied, Engine, Failure, Mark, Options};
pub use error::{Error, Result};
pub use grouping::{Grouping, Mapper, name};
pub use key::{Key, KeyValue, hash};
pub use pack::{append_document, documents};
pub use reduction::{DocumentReduction, ReduceError, Reducer, Reduction};
pub use snapshot::{ChangedKey, ChangedKeys, KeyResult, Reduced, Snapshot, Statistics};
pub use update::Cost;
pub use view::{Around, Show, show_key};
