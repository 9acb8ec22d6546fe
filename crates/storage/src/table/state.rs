//! What the catalog keeps of a table: its schema, so that a table can be read without the application, and the states
//! of its heap and trees.
//!
//! | size | name | meaning |
//! |---|---|---|
//! | 1 | version | [`VERSION`] |
//! | | schema | see [`Schema`] |
//! | 64 | heap | a [`HeapState`]: the rows |
//! | 33 | primary | the tree from primary keys to rows |
//! | 33 | index | (unique) the tree from keys to rows |
//! | 33 + 24 | index | (non-unique) the tree from keys to sets of rows; then `u64` rows, nested branch pages, nested leaf pages |
//! | up to 132 | index | (etag) a [`FixedState`](crate::fixed::FixedState) with values of 8 bytes |
//!
//! A tree is root page, entries, branch pages and leaf pages (`u64` each) and depth (`u8`); none needs a heap.

use std::sync::Arc;

use super::index::{Index, IndexTree};
use super::schema::Schema;
use crate::btree::{InsertHint, TreeState};
use crate::error::{Error, Result};
use crate::fixed::FixedState;
use crate::format::{PageNumber, TREE_DEPTH_MAX, read_u64};
use crate::heap::{HEAP_STATE_SIZE, HeapState};
use crate::multi::MultiState;

/// The version of the encoding.
const VERSION: u8 = 1;
const TREE_SIZE: usize = 33;

/// A table's state: it changes with every change of the table and belongs to the same transaction.
#[derive(Clone, Debug)]
pub(crate) struct TableState {
    name: Arc<str>,
    schema: Arc<Schema>,
    pub(super) heap: HeapState,
    pub(super) primary: TreeState,
    pub(super) primary_hint: InsertHint,
    pub(super) indexes: Vec<Index>,
}

impl TableState {
    /// An empty table. `name` is for messages. Error: [`Error::Invalid`] for a schema that makes no sense.
    pub(crate) fn new(name: &str, schema: Schema) -> Result<TableState> {
        schema.check()?;
        let indexes = schema.indexes().iter().map(|index| Index::new(index.kind, index.columns));
        Ok(TableState {
            name: name.into(),
            heap: HeapState::default(),
            primary: TreeState::default(),
            primary_hint: InsertHint::default(),
            indexes: indexes.collect::<Result<_>>()?,
            schema: Arc::new(schema),
        })
    }

    /// The table's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The table got another name.
    pub(crate) fn set_name(&mut self, name: &str) {
        self.name = name.into();
    }

    /// Puts the primary key's tree at a page.
    #[cfg(test)]
    pub(crate) fn set_primary_for_test(&mut self, root: PageNumber) {
        self.primary.root = root;
        self.primary.depth = 1;
    }

    /// Levels of the primary key's tree.
    pub(crate) fn depth(&self) -> usize {
        self.primary.depth
    }

    /// The table's schema.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> u64 {
        self.primary.entries
    }

    /// Forgets what saves work but is only good for the pages as they are now: for going back to a savepoint.
    pub(crate) fn forget_hints(&mut self) {
        self.primary_hint = InsertHint::default();
        for index in &mut self.indexes {
            index.hint = InsertHint::default();
            if let IndexTree::Etag(state) = &mut index.tree {
                state.forget_hints();
            }
        }
    }

    /// Error: [`Error::Invalid`] when the table was created with another schema.
    pub(crate) fn require(&self, schema: &Schema) -> Result<()> {
        if *self.schema == *schema {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "the table {:?} was created with another schema and cannot be opened with this one: it has {}; asked for was {schema}",
            self.name, self.schema
        )))
    }

    /// The bytes to keep the state as.
    pub(crate) fn encode(&self) -> Vec<u8> {
        // At least what each takes, so that the room hardly ever has to grow.
        let size = self.schema.encoded_size() + HEAP_STATE_SIZE + (self.indexes.len() + 2) * 2 * TREE_SIZE;
        let mut bytes = Vec::with_capacity(size);
        bytes.push(VERSION);
        self.schema.encode(&mut bytes);
        bytes.extend_from_slice(&self.heap.encode());
        encode_tree(&self.primary, &mut bytes);
        for index in &self.indexes {
            match &index.tree {
                IndexTree::Unique(state) => encode_tree(state, &mut bytes),
                IndexTree::NonUnique(state) => {
                    encode_tree(&state.tree, &mut bytes);
                    for number in [state.values, state.nested_branch_pages, state.nested_leaf_pages] {
                        bytes.extend_from_slice(&number.to_le_bytes());
                    }
                }
                IndexTree::Etag(state) => state.encode(&mut bytes),
            }
        }
        bytes
    }

    /// The state back from its bytes; `None` when they are no table's.
    pub(crate) fn decode(name: &str, bytes: &[u8]) -> Option<TableState> {
        let (&version, rest) = bytes.split_first()?;
        if version != VERSION {
            return None;
        }
        let (schema, rest) = Schema::decode(rest)?;
        TableState::new(name, schema).ok()?.decode_trees(rest)
    }

    /// As [`TableState::decode`], for other bytes of the table that `self` was decoded from `own` for; `None` also when the bytes begin
    /// with another schema.
    pub(crate) fn decode_like(&self, own: &[u8], bytes: &[u8]) -> Option<TableState> {
        let size = 1 + self.schema.encoded_size();
        let (schema, rest) = bytes.split_at_checked(size)?;
        (own.get(..size) == Some(schema)).then(|| self.clone())?.decode_trees(rest)
    }

    /// The state with heap and trees as these bytes say.
    fn decode_trees(self, rest: &[u8]) -> Option<TableState> {
        let mut state = self;
        let (heap, rest) = rest.split_first_chunk::<HEAP_STATE_SIZE>()?;
        state.heap = HeapState::decode(heap);
        let (primary, mut rest) = decode_tree(rest)?;
        state.primary = primary;
        for index in &mut state.indexes {
            match &mut index.tree {
                IndexTree::Unique(tree) => (*tree, rest) = decode_tree(rest)?,
                IndexTree::NonUnique(multi) => {
                    let (tree, behind) = decode_tree(rest)?;
                    let (counts, behind) = behind.split_first_chunk::<24>()?;
                    *multi = MultiState {
                        tree,
                        values: read_u64(counts, 0),
                        nested_branch_pages: read_u64(counts, 8),
                        nested_leaf_pages: read_u64(counts, 16),
                    };
                    rest = behind;
                }
                IndexTree::Etag(fixed) => {
                    let (decoded, size) = FixedState::decode(rest)?;
                    if decoded.value_size() != 8 {
                        return None;
                    }
                    (*fixed, rest) = (decoded, &rest[size..]);
                }
            }
        }
        rest.is_empty().then_some(state)
    }
}

fn encode_tree(state: &TreeState, to: &mut Vec<u8>) {
    for number in [state.root.0, state.entries, state.branch_pages, state.leaf_pages] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    to.push(state.depth as u8);
}

fn decode_tree(bytes: &[u8]) -> Option<(TreeState, &[u8])> {
    let (tree, rest) = bytes.split_first_chunk::<TREE_SIZE>()?;
    let state = TreeState {
        root: PageNumber(read_u64(tree, 0)),
        entries: read_u64(tree, 8),
        branch_pages: read_u64(tree, 16),
        leaf_pages: read_u64(tree, 24),
        depth: tree[32] as usize,
        heap: HeapState::default(),
    };
    let sound =
        state.depth <= TREE_DEPTH_MAX && state.root.is_some() == (state.depth > 0) && state.root.0 < 1 << 48;
    sound.then_some((state, rest))
}
