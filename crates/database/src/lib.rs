//! Documents, on the storage engine.
//!
//! A [`Database`] is one storage environment with tables for documents, tombstones, collections, identities and compare-exchange
//! values. What always holds:
//! - every write takes the next [`Etag`]; a document or a tombstone has the etag of its last write, and no two have the same;
//! - a document has one change vector, `A:<etag>-<database id>` unless a cluster-wide transaction or another database had a part in it;
//! - writes run one after the other in the [merger](merger), many of them in one storage transaction; each is durable when it is
//!   answered, and one that fails changes nothing;
//! - reads see a [`Snapshot`] and never wait.
//!
//! ```
//! use jackdaw_database::{Database, DatabaseOptions, IncomingDocument};
//! use jackdaw_document::Context;
//!
//! # let directory = tempfile::tempdir()?;
//! let database = Database::open(directory.path(), "shop", DatabaseOptions::default())?;
//! let context = Context::new();
//! let user = context.parse(r#"{"name":"Ada","@metadata":{"@collection":"Users"}}"#)?;
//! let user = IncomingDocument::new(&user, &context, &database)?;
//! let stored = database.submit(move |transaction| transaction.put("users/1", &user, Default::default())).wait()?;
//! assert_eq!(stored.id, "users/1");
//!
//! let snapshot = database.read()?;
//! let user = snapshot.document("USERS/1")?.ok_or("it was just stored")?;
//! assert_eq!(user.etag, stored.etag);
//! assert_eq!(user.document.get("name").and_then(|name| name.as_str()).as_deref(), Some("Ada"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate knows no HTTP: who it answers, and in which spelling, is the server's.
#![forbid(unsafe_code)]

mod change_vector;
pub mod clock;
mod commits;
mod database;
mod error;
pub mod ids;
mod incoming;
pub mod merger;
pub mod metadata;
pub mod notifications;
mod output;
mod schema;
mod snapshot;
mod statistics;
mod transaction;

pub use change_vector::{ChangeVector, DatabaseId};
pub use commits::{Changed, CommitWatcher};
pub use database::{ClusterIndex, Database, DatabaseOptions};
pub use error::{ClusterViolation, Error, Result, ViolationKind};
pub use incoming::IncomingDocument;
pub use jackdaw_document::append_json_string;
pub use jackdaw_storage::Order;
pub use merger::Pending;
pub use metadata::Flags;
pub use output::{Fields, print_document, print_metadata};
pub use snapshot::{Collection, CompareExchange, Snapshot, StoredDocument, Tombstone};
pub use statistics::Statistics;
pub use transaction::Transaction;
pub use transaction::cluster::{ClusterCommand, ClusterCommandResult, ClusterOptions, ClusterResult};
pub use transaction::compare_exchange::CompareExchangeResult;
pub use transaction::documents::{DeleteResult, Expected, PutOptions, PutResult};
pub use transaction::hilo::HiloRange;
pub use transaction::json_patch::JsonPatch;
pub use transaction::patch::{
    IfMissing, Patch, PatchDebug, PatchOptions, PatchResult, PatchStatus, StoredPatch,
};

/// The number of a write: each takes the next one, from 1 on.
pub type Etag = i64;
