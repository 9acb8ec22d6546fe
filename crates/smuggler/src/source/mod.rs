//! Where documents come from: each source cuts its input into [`Block`]s of records, each of them small enough to hold several in memory and large enough to
//! hand to another thread. What the records hold is looked at there.

pub(crate) mod dump;
pub(crate) mod lines;
pub(crate) mod rows;
pub(crate) mod values;

use crate::dump::Skipped;
use crate::error::Result;
use crate::report::Refusal;
use rows::RowBlock;

/// Bytes of records in a block, about.
pub(crate) const BLOCK_SIZE: usize = 256 << 10;

/// Some records, in their order.
pub(crate) struct Block {
    /// They.
    pub(crate) records: Records,
    /// What was refused already when the input was cut.
    pub(crate) refused: Vec<Refusal>,
}

/// The records of a block.
pub(crate) enum Records {
    /// Lines of text, each a JSON value.
    Lines {
        /// The lines, ended by line feeds (the input's last one perhaps not).
        bytes: Vec<u8>,
        /// The number of the first, from 1.
        first_line: u64,
    },
    /// JSON values.
    Values {
        /// Their texts, one behind the other.
        bytes: Vec<u8>,
        /// Where each ends in `bytes`, and where it lies in the input.
        ends: Vec<(usize, u64)>,
    },
    /// Rows of a table.
    Rows(RowBlock),
    /// What a dump holds besides documents.
    Others(Vec<Other>),
}

/// Something in a dump that is no document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    /// An identity.
    Identity {
        /// Its name, with the bar at its end.
        name: String,
        /// Its last value.
        value: i64,
    },
    /// A compare-exchange value.
    CompareExchange {
        /// Its key.
        key: String,
        /// `{"Object":...}` as JSON text.
        value: String,
    },
    /// The definition of an index.
    Index {
        /// Its type, such as `Map`.
        kind: String,
        /// The definition as JSON text.
        definition: String,
    },
    /// A document that was deleted.
    Tombstone {
        /// Its id.
        id: String,
    },
    /// The database record as JSON text.
    DatabaseRecord(String),
    /// What was passed over.
    Skipped(Skipped),
}

/// Cuts an input into blocks.
pub(crate) trait Source: Send {
    /// The next block; none at the end.
    fn next_block(&mut self) -> Result<Option<Block>>;
}
