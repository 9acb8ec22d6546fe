//! The indexes of a database in a directory, for commands that only want their definitions.

use anyhow::{Context, Result};
use jackdaw_database::Database;
use jackdaw_indexing::{Indexes, Options, Workers};

/// The indexes of a database, at rest: whoever serves it next lets them run.
pub(crate) fn indexes_of(database: &Database) -> Result<Indexes> {
    let options = Options { is_paused: true, ..Options::default() };
    Indexes::open(database.clone(), Workers::new(1), options)
        .context("cannot read the definitions of indexes")
}
