//! The changes of one key: which nodes are written, removed and reduced.
//!
//! Works on a snapshot and only says what to write ([`Update`]), so that several threads can work on different keys, and the transaction that
//! writes waits for no reduce function.
//!
//! Going down, the changes are shared out among children by their lows; coming back, each changed node yields the nodes that take its place
//! (none when it is empty, several when it was cut), small ones are joined with a neighbour, and what remains is listed and reduced in the
//! branch above. Results that are only added behind the last one are the common case (documents come in the order of their etags): where the
//! reduction says that it may, a leaf's partial and the new results are reduced then, and not all of the leaf.

use std::sync::atomic::{AtomicU64, Ordering};

use jackdaw_storage::Tree;

use super::error::{Error, Result};
use super::node::{Child, Entry, Item, Limits, children, entries};
use super::record::{LEVEL_MAX, Record};
use super::reduction::{ReduceError, Reduction};

/// Bytes of a node's key: the key's number, the level, the low.
pub(super) const NODE_KEY_SIZE: usize = 17;

/// What a node is stored under.
pub(super) fn node_key(number: u64, level: u8, low: u64) -> [u8; NODE_KEY_SIZE] {
    let mut key = [0; NODE_KEY_SIZE];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key[8] = level;
    key[9..].copy_from_slice(&low.to_be_bytes());
    key
}

/// Where a node is, for messages.
pub(super) fn node_place(number: u64, level: u8, low: u64) -> String {
    format!("node {low} of level {level} of key {number}")
}

/// A change of one result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change<'a> {
    pub(super) entry: u64,
    /// What it is from now on; `None`: it is no more.
    pub(super) pack: Option<&'a [u8]>,
}

/// What the changes of a key come to.
#[derive(Default)]
pub(super) struct Update {
    /// The key's new record; `None`: it has no results left.
    pub(super) record: Option<Vec<u8>>,
    /// Whether the record was there before.
    pub(super) existed: bool,
    /// Whether the key's result is another than before.
    pub(super) result_changed: bool,
    pub(super) nodes: Vec<NodeWrite>,
    /// What its reduce function said, when it failed (the first time).
    pub(super) failure: Option<ReduceError>,
}

pub(super) struct NodeWrite {
    pub(super) key: [u8; NODE_KEY_SIZE],
    /// `None`: it is removed.
    pub(super) bytes: Option<Vec<u8>>,
}

/// What was done, in numbers that do not depend on the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Nodes that were read from the environment, roots not counted.
    pub nodes_read: u64,
    /// Nodes written, roots not counted.
    pub nodes_written: u64,
    /// Calls of the reduce function.
    pub reductions: u64,
    /// Packs given to it.
    pub packs_reduced: u64,
}

impl Cost {
    pub(super) fn add(&mut self, other: Cost) {
        self.nodes_read += other.nodes_read;
        self.nodes_written += other.nodes_written;
        self.reductions += other.reductions;
        self.packs_reduced += other.packs_reduced;
    }
}

/// Works out updates; each thread has its own.
pub(super) struct Updater<'s, 'r> {
    pub(super) nodes: Tree<'s>,
    pub(super) reduction: &'r mut dyn Reduction,
    pub(super) limits: Limits,
    /// The next number for a key that needs one.
    pub(super) next_number: &'r AtomicU64,
    pub(super) cost: Cost,
}

/// A node that was made: not stored yet.
struct Node {
    low: u64,
    count: u64,
    bytes: Vec<u8>,
    /// `None`: its reduce failed.
    partial: Option<Vec<u8>>,
}

/// A node below a branch: as it was, or made anew.
enum Slot<'a> {
    Kept(Child<'a>),
    Made(Node),
}

impl Slot<'_> {
    fn low(&self) -> u64 {
        match self {
            Slot::Kept(child) => child.low,
            Slot::Made(node) => node.low,
        }
    }

    fn size(&self) -> u64 {
        match self {
            Slot::Kept(child) => child.size,
            Slot::Made(node) => node.bytes.len() as u64,
        }
    }

    fn child(&self) -> Child<'_> {
        match self {
            Slot::Kept(child) => *child,
            Slot::Made(node) => Child {
                low: node.low,
                count: node.count,
                size: node.bytes.len() as u64,
                partial: node.partial.as_deref(),
            },
        }
    }
}

/// The key that is being worked on.
struct Work<'k> {
    /// As it is given to the reduce function.
    key: &'k [u8],
    number: u64,
    update: Update,
}

/// A node as it is stored, with what its parent knows of it.
#[derive(Clone, Copy)]
struct Stored<'a> {
    low: u64,
    bytes: &'a [u8],
    partial: Option<&'a [u8]>,
}

impl<'s> Updater<'s, '_> {
    /// Works out what `changes`, in the order of their entries and at most one for each, make of a key. `record` is its record, if it has
    /// one; `full` is the key in full, if it is stored shortened.
    pub(super) fn update(
        &mut self,
        stored: &[u8],
        full: Option<&[u8]>,
        record: Option<&[u8]>,
        changes: &[Change<'_>],
    ) -> Result<Update> {
        let damaged =
            || Error::damaged(format!("the record of key \"{}\"", stored.escape_ascii()), "it does not read");
        let before = match record {
            Some(bytes) => Some(Record::read(bytes).ok_or_else(damaged)?),
            None => None,
        };
        let full = before.map_or(full, |record| record.full_key);
        let mut work = Work {
            key: full.unwrap_or(stored),
            number: before.map_or(0, |record| record.number),
            update: Update { existed: before.is_some(), ..Update::default() },
        };
        let mut level = before.map_or(0, |record| record.level);
        let root = Stored {
            low: 0,
            bytes: before.map_or(&[], |record| record.root),
            partial: before.and_then(|record| record.partial),
        };
        let mut nodes = self.node(&mut work, level, root, changes)?;
        while nodes.len() > 1 {
            if work.number == 0 {
                work.number = self.next_number.fetch_add(1, Ordering::Relaxed);
            }
            level += 1;
            let slots = nodes.into_iter().map(Slot::Made).collect();
            nodes = self.branch(&mut work, level, 0, slots, true)?;
        }
        let mut root = nodes.pop();
        while level > 0 {
            let Some(below) = root.as_ref() else { break };
            let Some(only) = self.only_child(&mut work, level, below)? else { break };
            level -= 1;
            root = Some(only);
        }
        let partial = root.as_ref().and_then(|root| root.partial.as_deref());
        let had = before.and_then(|record| record.partial);
        work.update.result_changed = match (before.is_some(), root.is_some()) {
            (true, true) => partial != had,
            (before, after) => before != after,
        };
        work.update.record = root.as_ref().map(|root| {
            let mut bytes = Vec::with_capacity(root.bytes.len() + partial.map_or(0, <[u8]>::len) + 24);
            let record = Record {
                level,
                number: work.number,
                count: root.count,
                full_key: full,
                partial,
                root: &root.bytes,
            };
            record.append_to(&mut bytes);
            bytes
        });
        self.cost.nodes_written +=
            work.update.nodes.iter().filter(|node| node.bytes.is_some()).count() as u64;
        Ok(work.update)
    }

    /// The nodes that take the place of one. All are of its level; the first has its low.
    fn node(
        &mut self,
        work: &mut Work<'_>,
        level: u8,
        node: Stored<'_>,
        changes: &[Change<'_>],
    ) -> Result<Vec<Node>> {
        if level == 0 {
            return self.leaf(work, node, changes);
        }
        let below = children(node.bytes)
            .ok_or_else(|| Error::damaged(node_place(work.number, level, node.low), "it is no branch"))?;
        let mut slots = Vec::with_capacity(below.len() + 1);
        let mut rest = changes;
        for (at, child) in below.iter().enumerate() {
            let end = below
                .get(at + 1)
                .map_or(rest.len(), |next| rest.partition_point(|change| change.entry < next.low));
            let (mine, others) = rest.split_at(end);
            rest = others;
            if mine.is_empty() {
                slots.push(Slot::Kept(*child));
                continue;
            }
            let bytes = self.read(work.number, level - 1, child.low)?;
            let made =
                self.node(work, level - 1, Stored { low: child.low, bytes, partial: child.partial }, mine)?;
            if made.is_empty() {
                remove(work, level - 1, child.low);
            }
            slots.extend(made.into_iter().map(Slot::Made));
        }
        let slots = self.join(work, level - 1, slots)?;
        let packed = changes.last().zip(below.last()).is_some_and(|(change, last)| change.entry >= last.low);
        self.branch(work, level, node.low, slots, packed)
    }

    /// The leaves that take the place of one.
    fn leaf(&mut self, work: &mut Work<'_>, leaf: Stored<'_>, changes: &[Change<'_>]) -> Result<Vec<Node>> {
        let old = entries(leaf.bytes)
            .ok_or_else(|| Error::damaged(node_place(work.number, 0, leaf.low), "it is no leaf"))?;
        let last = old.last().map(|entry| entry.number);
        let appends = changes.first().is_some_and(|change| last.is_none_or(|last| change.entry > last))
            && changes.iter().all(|change| change.pack.is_some());
        if appends
            && self.reduction.is_incremental()
            && let (Some(last), Some(partial)) = (last, leaf.partial)
        {
            let added = || {
                changes.iter().filter_map(|change| Some(Entry { number: change.entry, pack: change.pack? }))
            };
            let size = leaf.bytes.len() + added().map(|entry| entry.size()).sum::<usize>();
            if size <= self.limits.bytes_max && old.len() + changes.len() <= self.limits.items_max {
                let mut bytes = Vec::with_capacity(size);
                bytes.extend_from_slice(leaf.bytes);
                let mut before = last;
                for entry in added() {
                    entry.append(before, &mut bytes);
                    before = entry.number;
                }
                let packs: Vec<_> = std::iter::once(partial).chain(added().map(|entry| entry.pack)).collect();
                let partial = self.reduce(work, &packs);
                let count = (old.len() + changes.len()) as u64;
                return Ok(vec![Node { low: leaf.low, count, bytes, partial }]);
            }
        }
        let merged = merge(&old, changes);
        Ok(self.nodes_of(work, leaf.low, &merged, appends))
    }

    /// The branches of one level over the given nodes, which are of the level below and are stored if they were made.
    fn branch(
        &mut self,
        work: &mut Work<'_>,
        level: u8,
        low: u64,
        slots: Vec<Slot<'_>>,
        packed: bool,
    ) -> Result<Vec<Node>> {
        if level > LEVEL_MAX {
            return Err(Error::damaged(node_place(work.number, level, low), "the tree is too deep"));
        }
        let below: Vec<_> = slots.iter().map(Slot::child).collect();
        let nodes = self.nodes_of(work, low, &below, packed);
        for slot in slots {
            if let Slot::Made(node) = slot {
                let key = node_key(work.number, level - 1, node.low);
                work.update.nodes.push(NodeWrite { key, bytes: Some(node.bytes) });
            }
        }
        Ok(nodes)
    }

    /// Nodes that hold these items, reduced.
    fn nodes_of<I: Item>(&mut self, work: &mut Work<'_>, low: u64, items: &[I], packed: bool) -> Vec<Node> {
        let mut nodes = Vec::new();
        for run in self.limits.cut(items, packed) {
            let first = run.start == 0;
            let items = &items[run];
            let mut bytes = Vec::with_capacity(items.iter().map(Item::size).sum());
            let mut before = 0;
            for item in items {
                item.append(before, &mut bytes);
                before = item.number();
            }
            let packs: Option<Vec<_>> = items.iter().map(Item::pack).collect();
            let partial = packs.and_then(|packs| self.reduce(work, &packs));
            let low = if first { low } else { items.first().map_or(low, Item::number) };
            nodes.push(Node { low, count: items.iter().map(Item::count).sum(), bytes, partial });
        }
        nodes
    }

    /// Joins nodes that became small with a neighbour.
    fn join<'a>(&mut self, work: &mut Work<'_>, level: u8, slots: Vec<Slot<'a>>) -> Result<Vec<Slot<'a>>> {
        let mut joined: Vec<Slot<'a>> = Vec::with_capacity(slots.len());
        for slot in slots {
            if let Some(left) = joined.pop_if(|left| self.should_join(left, &slot)) {
                remove(work, level, slot.low());
                joined.push(Slot::Made(self.one_of(work, level, &left, &slot)?));
            } else {
                joined.push(slot);
            }
        }
        Ok(joined)
    }

    fn should_join(&self, left: &Slot<'_>, right: &Slot<'_>) -> bool {
        let changed = matches!(left, Slot::Made(_)) || matches!(right, Slot::Made(_));
        let small = self.limits.is_small(left.size()) || self.limits.is_small(right.size());
        changed && small && self.limits.fit_together(left.size(), right.size())
    }

    /// Two neighbours as one node.
    fn one_of(&mut self, work: &mut Work<'_>, level: u8, left: &Slot<'_>, right: &Slot<'_>) -> Result<Node> {
        let low = left.low();
        let mut bytes = [&[][..]; 2];
        for (bytes, slot) in bytes.iter_mut().zip([left, right]) {
            *bytes = match slot {
                Slot::Kept(child) => self.read(work.number, level, child.low)?,
                Slot::Made(node) => &node.bytes,
            };
        }
        let damaged =
            || Error::damaged(node_place(work.number, level, low), "it, or the next, does not read");
        let mut nodes = if level == 0 {
            let mut items = entries(bytes[0]).ok_or_else(damaged)?;
            items.extend(entries(bytes[1]).ok_or_else(damaged)?);
            self.joined(work, low, &items)
        } else {
            let mut items = children(bytes[0]).ok_or_else(damaged)?;
            items.extend(children(bytes[1]).ok_or_else(damaged)?);
            self.joined(work, low, &items)
        };
        nodes.pop().ok_or_else(|| Error::damaged(node_place(work.number, level, low), "it is empty"))
    }

    /// One node of all items, whatever their number: they fit, by what their parents say of their sizes.
    fn joined<I: Item>(&mut self, work: &mut Work<'_>, low: u64, items: &[I]) -> Vec<Node> {
        let limits =
            std::mem::replace(&mut self.limits, Limits { bytes_max: usize::MAX, items_max: usize::MAX });
        let nodes = self.nodes_of(work, low, items, true);
        self.limits = limits;
        nodes
    }

    /// The only child of a root, which takes its place and is no stored node any more; `None` when there are several.
    fn only_child(&mut self, work: &mut Work<'_>, level: u8, root: &Node) -> Result<Option<Node>> {
        let below = children(&root.bytes)
            .ok_or_else(|| Error::damaged(node_place(work.number, level, root.low), "it is no branch"))?;
        let [child] = below.as_slice() else { return Ok(None) };
        let key = node_key(work.number, level - 1, child.low);
        let made = work.update.nodes.iter_mut().rfind(|node| node.key == key && node.bytes.is_some());
        let bytes = match made.and_then(|node| node.bytes.take()) {
            Some(bytes) => bytes,
            None => {
                let bytes = self.read(work.number, level - 1, child.low)?.to_vec();
                remove(work, level - 1, child.low);
                bytes
            }
        };
        // The low of a root is 0; the first child's is, too, as every first node keeps that of the node it comes from.
        Ok(Some(Node {
            low: child.low,
            count: child.count,
            bytes,
            partial: child.partial.map(<[u8]>::to_vec),
        }))
    }

    fn read(&mut self, number: u64, level: u8, low: u64) -> Result<&'s [u8]> {
        self.cost.nodes_read += 1;
        let found = self.nodes.get(&node_key(number, level, low))?;
        found.ok_or_else(|| Error::damaged(node_place(number, level, low), "it is missing"))
    }

    /// The reduction of packs; `None` when the function fails, which is noted.
    fn reduce(&mut self, work: &mut Work<'_>, packs: &[&[u8]]) -> Option<Vec<u8>> {
        self.cost.reductions += 1;
        self.cost.packs_reduced += packs.len() as u64;
        let mut partial = Vec::new();
        match self.reduction.reduce(work.key, packs, &mut partial) {
            Ok(()) => Some(partial),
            Err(error) => {
                work.update.failure.get_or_insert(error);
                None
            }
        }
    }
}

fn remove(work: &mut Work<'_>, level: u8, low: u64) {
    work.update.nodes.push(NodeWrite { key: node_key(work.number, level, low), bytes: None });
}

/// The entries of a leaf after changes: both are in the order of entry numbers. A removal of what is not there is no error: the state is the
/// same.
fn merge<'a>(old: &[Entry<'a>], changes: &[Change<'a>]) -> Vec<Entry<'a>> {
    let mut merged = Vec::with_capacity(old.len() + changes.len());
    let mut old = old.iter().peekable();
    for change in changes {
        while let Some(entry) = old.next_if(|entry| entry.number < change.entry) {
            merged.push(*entry);
        }
        old.next_if(|entry| entry.number == change.entry);
        if let Some(pack) = change.pack {
            merged.push(Entry { number: change.entry, pack });
        }
    }
    merged.extend(old);
    merged
}
