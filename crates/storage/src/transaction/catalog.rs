//! The catalog: the tree that maps names to the trees and tables of an environment.
//!
//! An entry's value is one byte of kind ([`Kind`]) and the structure's state, in its own encoding. A write transaction keeps the
//! states that it opened in memory and writes the changed ones into the catalog once, at commit.

use std::sync::Arc;

use super::read::ReadTransaction;
use super::table_cache::TableCache;
use super::write::WriteTransaction;
use crate::btree::{self, InsertHint, TREE_STATE_SIZE, TreeState};
use crate::error::{Error, Result};
use crate::fixed::{self, FixedState};
use crate::format::ROOT_PAGE;
use crate::multi::{MULTI_STATE_SIZE, MultiState, MultiTreeMut};
use crate::pages::Pages;
use crate::table::{self, TableState};

/// What kind of structure a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Kind {
    /// Keys and values of any length, one value a key.
    Tree = 1,
    /// Several sorted values a key.
    MultiTree = 2,
    /// `i64` keys and values of one fixed size.
    FixedTree = 3,
    /// Rows with indexes.
    Table = 4,
}

impl Kind {
    /// The kind's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Tree => "tree",
            Kind::MultiTree => "multi-value tree",
            Kind::FixedTree => "fixed-size tree",
            Kind::Table => "table",
        }
    }
}

/// The state of any structure.
#[derive(Clone)]
pub(crate) enum State {
    Tree(TreeState),
    MultiTree(MultiState),
    FixedTree(FixedState),
    /// Shared with savepoints until it is changed.
    Table(Arc<TableState>),
}

impl State {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            State::Tree(_) => Kind::Tree,
            State::MultiTree(_) => Kind::MultiTree,
            State::FixedTree(_) => Kind::FixedTree,
            State::Table(_) => Kind::Table,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ENTRY_SIZE_USUAL);
        bytes.push(self.kind() as u8);
        match self {
            State::Tree(state) => bytes.extend(state.encode()),
            State::MultiTree(state) => bytes.extend(state.encode()),
            State::FixedTree(state) => state.encode(&mut bytes),
            State::Table(state) => bytes.extend(state.encode()),
        }
        bytes
    }

    fn decode(name: &[u8], bytes: &[u8]) -> Result<State> {
        let state = match bytes.split_first() {
            Some((1, rest)) => {
                <&[u8; TREE_STATE_SIZE]>::try_from(rest).ok().and_then(TreeState::decode).map(State::Tree)
            }
            Some((2, rest)) => <&[u8; MULTI_STATE_SIZE]>::try_from(rest)
                .ok()
                .and_then(MultiState::decode)
                .map(State::MultiTree),
            Some((3, rest)) => FixedState::decode(rest)
                .and_then(|(state, size)| (size == rest.len()).then_some(State::FixedTree(state))),
            Some((4, rest)) => {
                TableState::decode(&lossy(name), rest).map(|state| State::Table(Arc::new(state)))
            }
            _ => None,
        };
        state.ok_or_else(|| senseless(name))
    }

    /// Errors: this structure, named `name`, is not one that `fresh` could have become.
    fn require(&self, name: &[u8], fresh: &State) -> Result<()> {
        match (self, fresh) {
            (State::Tree(_), State::Tree(_)) | (State::MultiTree(_), State::MultiTree(_)) => Ok(()),
            (State::FixedTree(found), State::FixedTree(fresh)) => {
                let (found, asked) = (found.value_size(), fresh.value_size());
                if found == asked {
                    return Ok(());
                }
                Err(Error::Invalid(format!(
                    "the fixed-size tree {:?} has values of {found} bytes and cannot be opened for values of {asked}",
                    lossy(name)
                )))
            }
            (State::Table(found), State::Table(fresh)) => found.require(fresh.schema()),
            _ => Err(wrong_kind(name, self.kind(), fresh.kind())),
        }
    }

    /// Gives back all pages.
    fn clear(&mut self, tx: &mut WriteTransaction) -> Result<()> {
        match self {
            State::Tree(state) => btree::TreeMut::new(tx, state, &mut InsertHint::default()).clear(),
            State::MultiTree(state) => MultiTreeMut::new(tx, state, &mut InsertHint::default()).clear(),
            State::FixedTree(state) => fixed::clear(tx, state),
            State::Table(state) => table::clear(tx, Arc::make_mut(state)),
        }
    }

    /// Forgets what saves work but is only good for the pages as they are now.
    fn forget_hints(&mut self) {
        match self {
            State::Tree(_) | State::MultiTree(_) => {}
            State::FixedTree(state) => state.forget_hints(),
            State::Table(state) => Arc::make_mut(state).forget_hints(),
        }
    }
}

/// A name for messages.
pub(crate) fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

pub(crate) fn wrong_kind(name: &[u8], found: Kind, expected: Kind) -> Error {
    Error::TreeKind { name: lossy(name), found: found.name(), expected: expected.name() }
}

pub(crate) fn not_found(name: &[u8]) -> Error {
    Error::TreeNotFound { name: lossy(name) }
}

/// Looks a name up in a catalog.
fn look_up(
    pages: &impl Pages,
    cache: &TableCache,
    catalog: &TreeState,
    name: &[u8],
) -> Result<Option<State>> {
    let decode = |bytes: &[u8]| match bytes.split_first() {
        Some((&kind, rest)) if kind == Kind::Table as u8 => cache
            .get(name, rest, || TableState::decode(&lossy(name), rest))
            .map_or_else(|| Err(senseless(name)), |state| Ok(State::Table(state))),
        _ => State::decode(name, bytes),
    };
    btree::Tree::new(pages, catalog).get(name)?.map(decode).transpose()
}

#[cold]
fn senseless(name: &[u8]) -> Error {
    Error::damaged(ROOT_PAGE, format!("the catalog's entry {:?} makes no sense", lossy(name)))
}

/// All entries of a catalog, by name.
pub(crate) fn entries(pages: &impl Pages, catalog: &TreeState) -> Result<Vec<(Vec<u8>, State)>> {
    let mut all = Vec::new();
    let mut cursor = btree::Tree::new(pages, catalog).cursor();
    let mut more = cursor.first()?;
    while more {
        all.push((cursor.key().to_vec(), State::decode(cursor.key(), cursor.value()?)?));
        more = cursor.next()?;
    }
    Ok(all)
}

/// The structures that a write transaction has opened, or the one before it.
#[derive(Clone, Default)]
pub(super) struct OpenTrees {
    open: Vec<OpenTree>,
}

#[derive(Clone)]
struct OpenTree {
    name: Arc<[u8]>,
    /// `None` while a handle has it in hand.
    state: Option<State>,
    hint: InsertHint,
    /// The state differs from the catalog's.
    dirty: bool,
}

impl OpenTree {
    /// Error: a handle has the state and was forgotten, else it could not be asked for.
    fn state(&self) -> Result<&State> {
        self.state.as_ref().ok_or_else(|| {
            let name = lossy(&self.name);
            Error::Invalid(format!("a handle of {name:?} was forgotten with its changes; roll back"))
        })
    }
}

impl OpenTrees {
    fn position(&self, name: &[u8]) -> Option<usize> {
        self.open.iter().position(|t| *t.name == *name)
    }

    fn add(&mut self, name: &[u8], state: State, dirty: bool) -> usize {
        self.open.push(OpenTree {
            name: name.into(),
            state: Some(state),
            hint: InsertHint::default(),
            dirty,
        });
        self.open.len() - 1
    }

    /// Whether the next transaction may have them: looking a name up takes longer the more there are, and savepoints copy them all.
    fn are_few(&self) -> bool {
        self.open.len() <= KEPT_MAX
    }

    /// After going back to a savepoint: pages that a hint names may be others now.
    pub(super) fn forget_hints(&mut self) {
        for tree in &mut self.open {
            tree.hint = InsertHint::default();
            if let Some(state) = &mut tree.state {
                state.forget_hints();
            }
        }
    }
}

impl ReadTransaction {
    pub(crate) fn state(&self, name: &[u8]) -> Result<State> {
        look_up(self, &self.inner.tables, &self.root()?.catalog, name)?.ok_or_else(|| not_found(name))
    }

    /// The names of all trees and tables with their kinds, sorted by name.
    pub fn trees(&self) -> Result<Vec<(Vec<u8>, Kind)>> {
        Ok(entries(self, &self.root()?.catalog)?
            .into_iter()
            .map(|(name, state)| (name, state.kind()))
            .collect())
    }
}

impl WriteTransaction {
    /// The place of an opened structure; `None` when there is none of this name.
    fn find(&mut self, name: &[u8]) -> Result<Option<usize>> {
        if let Some(at) = self.trees.position(name) {
            return Ok(Some(at));
        }
        let state = look_up(self, &self.inner.tables, &self.root.catalog, name)?;
        Ok(state.map(|state| self.trees.add(name, state, false)))
    }

    /// The state as this transaction sees it.
    pub(crate) fn state(&self, name: &[u8]) -> Result<State> {
        match self.trees.position(name) {
            Some(at) => self.trees.open[at].state().cloned(),
            None => {
                look_up(self, &self.inner.tables, &self.root.catalog, name)?.ok_or_else(|| not_found(name))
            }
        }
    }

    /// Opens a structure for writing that is like `fresh` (of its kind, schema, size of values), or makes it of `fresh`.
    pub(crate) fn open_or_create(&mut self, name: &[u8], fresh: State) -> Result<usize> {
        if name.is_empty() {
            return Err(Error::KeyEmpty);
        }
        let max = NAME_SIZE_MAX;
        if name.len() > max {
            return Err(Error::KeyTooLong { size: name.len(), max });
        }
        match self.find(name)? {
            Some(at) => self.trees.open[at].state()?.require(name, &fresh).map(|()| at),
            None => {
                // Into the catalog at once, so that it is listed and a failure shows now.
                let bytes = fresh.encode();
                self.put_in_catalog(name, &bytes)?;
                Ok(self.trees.add(name, fresh, false))
            }
        }
    }

    /// Opens an existing structure of this kind for writing.
    pub(crate) fn open_existing(&mut self, name: &[u8], kind: Kind) -> Result<usize> {
        match self.find(name)? {
            Some(at) => match self.trees.open[at].state()?.kind() {
                found if found == kind => Ok(at),
                found => Err(wrong_kind(name, found, kind)),
            },
            None => Err(not_found(name)),
        }
    }

    /// Hands out the state of an opened structure until [`Self::return_state`].
    pub(crate) fn lend_state(&mut self, at: usize) -> Result<(State, InsertHint)> {
        let tree = &mut self.trees.open[at];
        // Moved out, not shared: a table's state is then changed in place.
        match tree.state.take() {
            Some(state) => Ok((state, tree.hint)),
            None => tree.state().map(|state| (state.clone(), tree.hint)),
        }
    }

    /// Takes a state back, changed or not.
    pub(crate) fn return_state(&mut self, at: usize, state: State, hint: InsertHint, changed: bool) {
        // The place is still the structure's: a handle borrows the transaction, so nothing was dropped or rolled back meanwhile.
        if let Some(tree) = self.trees.open.get_mut(at) {
            tree.state = Some(state);
            tree.hint = hint;
            tree.dirty |= changed;
        }
    }

    fn put_in_catalog(&mut self, name: &[u8], bytes: &[u8]) -> Result<()> {
        let mut catalog = self.root.catalog;
        let put = btree::TreeMut::new(self, &mut catalog, &mut InsertHint::default()).put(name, bytes);
        self.root.catalog = catalog;
        put.map(|_| ()).map_err(|e| self.break_with(e))
    }

    /// Writes the changed states into the catalog and the root state into its page.
    pub(super) fn write_catalog(&mut self) -> Result<()> {
        for at in 0..self.trees.open.len() {
            let tree = &self.trees.open[at];
            let state = tree.state()?;
            if tree.dirty {
                let (name, bytes) = (tree.name.clone(), state.encode());
                self.put_in_catalog(&name, &bytes)?;
                self.trees.open[at].dirty = false;
            }
        }
        if self.root != self.writer.root {
            let root = self.root;
            root.write(&mut crate::pages::PagesMut::page_mut(self, ROOT_PAGE)?);
        }
        Ok(())
    }

    /// Once everything is committed: leaves what is open to the next transaction, which need not look it up then.
    pub(super) fn leave_trees(&mut self) {
        if self.trees.are_few() {
            self.writer.trees = std::mem::take(&mut self.trees);
        }
    }

    /// The names of all trees and tables with their kinds, sorted by name, as this transaction sees them.
    pub fn trees(&self) -> Result<Vec<(Vec<u8>, Kind)>> {
        Ok(entries(self, &self.root.catalog)?.into_iter().map(|(name, state)| (name, state.kind())).collect())
    }

    /// Removes a tree or table of any kind with all that it holds and gives its pages back; false when there is none of this name.
    /// Takes time in proportion to its pages.
    pub fn drop_tree(&mut self, name: &[u8]) -> Result<bool> {
        let Some(at) = self.find(name)? else { return Ok(false) };
        let mut state = self.trees.open[at].state()?.clone();
        state.clear(self).map_err(|e| self.break_with(e))?;
        let mut catalog = self.root.catalog;
        let deleted = btree::TreeMut::new(self, &mut catalog, &mut InsertHint::default()).delete(name);
        self.root.catalog = catalog;
        deleted.map_err(|e| self.break_with(e))?;
        self.trees.open.remove(at);
        Ok(true)
    }

    /// Gives a tree or table another name.
    ///
    /// Errors: [`Error::TreeNotFound`], [`Error::TreeExists`], and those of a key for the new name.
    pub fn rename_tree(&mut self, from: &[u8], to: &[u8]) -> Result<()> {
        let at = self.find(from)?.ok_or_else(|| not_found(from))?;
        if from == to {
            return Ok(());
        }
        if to.is_empty() {
            return Err(Error::KeyEmpty);
        }
        if to.len() > NAME_SIZE_MAX {
            return Err(Error::KeyTooLong { size: to.len(), max: NAME_SIZE_MAX });
        }
        if self.find(to)?.is_some() {
            return Err(Error::TreeExists { name: lossy(to) });
        }
        let bytes = self.trees.open[at].state()?.encode();
        self.put_in_catalog(to, &bytes)?;
        let mut catalog = self.root.catalog;
        let deleted = btree::TreeMut::new(self, &mut catalog, &mut InsertHint::default()).delete(from);
        self.root.catalog = catalog;
        deleted.map_err(|e| self.break_with(e))?;
        let tree = &mut self.trees.open[at];
        tree.name = to.into();
        if let Some(State::Table(state)) = &mut tree.state {
            Arc::make_mut(state).set_name(&lossy(to));
        }
        Ok(())
    }
}

/// So many opened structures go from one transaction to the next at most.
const KEPT_MAX: usize = 16;
/// Catalog entries are hardly ever longer, in bytes.
const ENTRY_SIZE_USUAL: usize = 512;

/// The longest name of a tree or table, in bytes.
pub const NAME_SIZE_MAX: usize = 512;
