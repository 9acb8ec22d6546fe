//! One index of a table: from keys to the places of rows, in the kind of tree that suits it.

use super::schema::{Columns, IndexKind};
use crate::btree::{InsertHint, Tree, TreeMut, TreeState};
use crate::error::{Error, Result};
use crate::fixed::{self, FixedState};
use crate::format::KEY_SIZE_MAX;
use crate::heap::ValueRef;
use crate::multi::{MultiState, MultiTreeMut};
use crate::pages::{Pages, PagesMut};

/// An index's state and what it takes for its key.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub(super) columns: Columns,
    pub(super) tree: IndexTree,
    /// Where the last insert went; of no meaning for an etag index, which remembers that itself.
    pub(super) hint: InsertHint,
}

/// The tree of an index, by its kind.
#[derive(Clone, Debug)]
pub(crate) enum IndexTree {
    /// Key to row.
    Unique(TreeState),
    /// Key to rows: the values are their places, big-endian, so rows of one key come in the order they lie in.
    NonUnique(MultiState),
    /// Number to row.
    Etag(FixedState),
}

/// A row's place as it is a value in an index; big-endian so that places close together sort together.
#[inline]
pub(super) fn place_bytes(r: ValueRef) -> [u8; 8] {
    let mut bytes = r.to_bytes();
    bytes.reverse();
    bytes
}

/// The place back; `None` when the bytes are no place.
#[inline]
pub(super) fn place(bytes: &[u8]) -> Option<ValueRef> {
    let mut bytes: [u8; 8] = bytes.try_into().ok()?;
    bytes.reverse();
    Some(ValueRef::from_bytes(bytes))
}

/// An etag index's key as the number it is. Error: not eight bytes.
pub(super) fn etag(key: &[u8]) -> Result<i64> {
    let refused = |_| Error::Invalid(format!("an etag of {} bytes; it has 8, big-endian", key.len()));
    key.try_into().map(i64::from_be_bytes).map_err(refused)
}

impl Index {
    pub(super) fn new(kind: IndexKind, columns: Columns) -> Result<Index> {
        let tree = match kind {
            IndexKind::Unique => IndexTree::Unique(TreeState::default()),
            IndexKind::NonUnique => IndexTree::NonUnique(MultiState::default()),
            IndexKind::Etag => IndexTree::Etag(FixedState::new(8)?),
        };
        Ok(Index { columns, tree, hint: InsertHint::default() })
    }

    /// Whether rows with this key are in the index.
    #[inline]
    pub(super) fn takes(&self, key: &[u8]) -> bool {
        !key.is_empty()
    }

    /// Errors: the key cannot be in this index.
    #[inline]
    pub(super) fn check_key(&self, key: &[u8]) -> Result<()> {
        if let IndexTree::Etag(_) = self.tree {
            return etag(key).map(drop);
        }
        match key.len() {
            0..=KEY_SIZE_MAX => Ok(()),
            size => Err(Error::KeyTooLong { size, max: KEY_SIZE_MAX }),
        }
    }

    /// The row that has this key, for an index that allows only one; `None` for the others.
    pub(super) fn find(&self, pages: &impl Pages, key: &[u8]) -> Result<Option<ValueRef>> {
        if !self.takes(key) {
            return Ok(None);
        }
        let found = match &self.tree {
            IndexTree::Unique(state) => Tree::new(pages, state).get(key)?,
            IndexTree::NonUnique(_) => None,
            IndexTree::Etag(state) => fixed::get(pages, state, etag(key)?)?,
        };
        match found {
            Some(bytes) => place(bytes).map(Some).ok_or_else(|| self.damaged()),
            None => Ok(None),
        }
    }

    #[cold]
    pub(super) fn damaged(&self) -> Error {
        let root = match &self.tree {
            IndexTree::Unique(state) => state.root,
            IndexTree::NonUnique(state) => state.tree.root,
            IndexTree::Etag(state) => state.root(),
        };
        Error::damaged(root, "a key of the table index of this root is of no row")
    }

    /// Adds a row under its key, which is free.
    #[inline]
    pub(super) fn add(&mut self, pages: &mut impl PagesMut, key: &[u8], r: ValueRef) -> Result<()> {
        if !self.takes(key) {
            return Ok(());
        }
        match &mut self.tree {
            IndexTree::Unique(state) => {
                TreeMut::new(pages, state, &mut self.hint).put(key, &place_bytes(r))?;
            }
            IndexTree::NonUnique(state) => {
                MultiTreeMut::new(pages, state, &mut self.hint).add(key, &place_bytes(r))?;
            }
            IndexTree::Etag(state) => {
                fixed::put(pages, state, etag(key)?, &place_bytes(r))?;
            }
        }
        Ok(())
    }

    /// Takes a row out that is there under its key.
    pub(super) fn remove(&mut self, pages: &mut impl PagesMut, key: &[u8], r: ValueRef) -> Result<()> {
        if !self.takes(key) {
            return Ok(());
        }
        let found = match &mut self.tree {
            IndexTree::Unique(state) => TreeMut::new(pages, state, &mut self.hint).delete(key)?,
            IndexTree::NonUnique(state) => {
                MultiTreeMut::new(pages, state, &mut self.hint).remove(key, &place_bytes(r))?
            }
            // The key is a stored row's, so one that is no etag is damage.
            IndexTree::Etag(state) => match etag(key) {
                Ok(etag) => fixed::delete(pages, state, etag)?,
                Err(_) => false,
            },
        };
        if found { Ok(()) } else { Err(self.damaged()) }
    }

    /// Notes that the row with this key is at another place now.
    pub(super) fn relocate(
        &mut self,
        pages: &mut impl PagesMut,
        key: &[u8],
        from: ValueRef,
        to: ValueRef,
    ) -> Result<()> {
        if let IndexTree::NonUnique(_) = self.tree {
            self.remove(pages, key, from)?;
        }
        self.add(pages, key, to)
    }

    /// Removes everything.
    pub(super) fn clear(&mut self, pages: &mut impl PagesMut) -> Result<()> {
        match &mut self.tree {
            IndexTree::Unique(state) => TreeMut::new(pages, state, &mut self.hint).clear(),
            IndexTree::NonUnique(state) => MultiTreeMut::new(pages, state, &mut self.hint).clear(),
            IndexTree::Etag(state) => fixed::clear(pages, state),
        }
    }

    /// How many rows are in the index.
    pub(super) fn entries(&self) -> u64 {
        match &self.tree {
            IndexTree::Unique(state) => state.entries,
            IndexTree::NonUnique(state) => state.values,
            IndexTree::Etag(state) => state.entries(),
        }
    }
}
