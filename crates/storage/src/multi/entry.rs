//! What the leaf keeps beside a key: its values, or where they are.
//!
//! | offset | size | name | meaning |
//! |---|---|---|---|
//! | 0 | 1 | kind | 0 packed, 1 nested |
//! | 1 | 2 | count | (packed) how many values |
//! | 3 | 2 + size each | value | (packed) ascending: `u16` size, then the bytes |
//! | 1 | 8 | root | (nested) the nested tree's root page |
//! | 9 | 8 | entries | (nested) how many values |
//! | 17 | 8 | branch pages | (nested) how many the nested tree has |
//! | 25 | 8 | leaf pages | (nested) how many the nested tree has |
//! | 33 | 1 | depth | (nested) levels of the nested tree |

use crate::btree::{Tree, TreeState};
use crate::error::{Error, Result};
use crate::format::{PageNumber, TREE_DEPTH_MAX, read_u16, read_u64};
use crate::heap::HeapState;
use crate::pages::Pages;

/// The longest packed entry, in bytes: small enough that a leaf holds many, and that changing one is a short copy.
pub(super) const PACKED_SIZE_MAX: usize = 400;
/// The most values of a packed entry: each takes at least three bytes.
pub(super) const PACKED_COUNT_MAX: usize = (PACKED_SIZE_MAX - PACKED_AT) / 3;

const PACKED: u8 = 0;
const NESTED: u8 = 1;
const PACKED_AT: usize = 3;
const NESTED_SIZE: usize = 34;

/// A decoded entry.
#[derive(Clone, Copy)]
pub(super) enum Entry<'p> {
    Packed(Packed<'p>),
    Nested(TreeState),
}

impl<'p> Entry<'p> {
    /// Decodes and checks an entry. Error: damage, said to be of the tree with this root.
    pub(super) fn decode(bytes: &'p [u8], root: PageNumber) -> Result<Entry<'p>> {
        let decoded = match bytes.first() {
            Some(&PACKED) => Packed::decode(bytes).map(Entry::Packed),
            Some(&NESTED) => decode_nested(bytes).map(Entry::Nested),
            _ => None,
        };
        decoded.ok_or_else(|| {
            Error::damaged(root, "a key of the multi-value tree of this root has unreadable values")
        })
    }

    pub(super) fn count(&self) -> u64 {
        match self {
            Entry::Packed(packed) => packed.count() as u64,
            Entry::Nested(nested) => nested.entries,
        }
    }
}

fn decode_nested(bytes: &[u8]) -> Option<TreeState> {
    if bytes.len() != NESTED_SIZE {
        return None;
    }
    let state = TreeState {
        root: PageNumber(read_u64(bytes, 1)),
        entries: read_u64(bytes, 9),
        branch_pages: read_u64(bytes, 17),
        leaf_pages: read_u64(bytes, 25),
        depth: bytes[33] as usize,
        heap: HeapState::default(),
    };
    (state.root.is_some() && state.root.0 < 1 << 48 && (1..=TREE_DEPTH_MAX).contains(&state.depth))
        .then_some(state)
}

/// The bytes of an entry whose values are in a nested tree.
pub(super) fn encode_nested(state: &TreeState) -> [u8; NESTED_SIZE] {
    let mut bytes = [0; NESTED_SIZE];
    bytes[0] = NESTED;
    for (i, number) in [state.root.0, state.entries, state.branch_pages, state.leaf_pages].iter().enumerate()
    {
        bytes[1 + i * 8..9 + i * 8].copy_from_slice(&number.to_le_bytes());
    }
    bytes[33] = state.depth as u8;
    bytes
}

/// Packed values, checked.
#[derive(Clone, Copy)]
pub(super) struct Packed<'p>(&'p [u8]);

impl<'p> Packed<'p> {
    /// `None` when the values do not exactly fill the bytes or are too many. Their order is for `check`.
    fn decode(bytes: &'p [u8]) -> Option<Packed<'p>> {
        if bytes.len() < PACKED_AT || bytes.len() > PACKED_SIZE_MAX {
            return None;
        }
        let mut at = PACKED_AT;
        let count = read_u16(bytes, 1) as usize;
        for _ in 0..count {
            if at + 2 > bytes.len() || read_u16(bytes, at) == 0 {
                return None;
            }
            at += 2 + read_u16(bytes, at) as usize;
        }
        (at == bytes.len()).then_some(Packed(bytes))
    }

    pub(super) fn count(self) -> usize {
        read_u16(self.0, 1) as usize
    }

    /// The value at an offset and the offset behind it.
    pub(super) fn value_at(self, at: usize) -> (&'p [u8], usize) {
        let end = at + 2 + read_u16(self.0, at) as usize;
        (&self.0[at + 2..end], end)
    }

    /// The values, as they are stored: ascending.
    pub(super) fn iter(self) -> impl Iterator<Item = &'p [u8]> {
        self.offsets().map(move |at| self.value_at(at).0)
    }

    /// Where the values are.
    pub(super) fn offsets(self) -> impl Iterator<Item = usize> + use<'p> {
        let mut at = PACKED_AT;
        (0..self.count()).map(move |_| {
            let next = self.value_at(at).1;
            std::mem::replace(&mut at, next)
        })
    }

    /// The offset where the value is, or where it would be.
    pub(super) fn search(self, value: &[u8]) -> Result<usize, usize> {
        let mut at = PACKED_AT;
        for _ in 0..self.count() {
            let (other, next) = self.value_at(at);
            match other.cmp(value) {
                std::cmp::Ordering::Less => at = next,
                std::cmp::Ordering::Equal => return Ok(at),
                std::cmp::Ordering::Greater => break,
            }
        }
        Err(at)
    }
}

/// Room to put a packed entry together, on the stack.
pub(super) struct PackedBuffer {
    bytes: [u8; PACKED_SIZE_MAX],
    size: usize,
}

impl PackedBuffer {
    pub(super) fn new() -> PackedBuffer {
        PackedBuffer { bytes: [0; PACKED_SIZE_MAX], size: PACKED_AT } // kind 0, count 0
    }

    pub(super) fn copy_from(&mut self, packed: Packed<'_>) {
        self.size = packed.0.len();
        self.bytes[..self.size].copy_from_slice(packed.0);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.size]
    }

    pub(super) fn packed(&self) -> Packed<'_> {
        Packed(self.bytes())
    }

    fn add_to_count(&mut self, change: i16) {
        let count = read_u16(&self.bytes, 1).wrapping_add_signed(change);
        self.bytes[1..3].copy_from_slice(&count.to_le_bytes());
    }

    /// Inserts a value at an offset; false when there is no room.
    pub(super) fn insert(&mut self, at: usize, value: &[u8]) -> bool {
        let size = 2 + value.len();
        if self.size + size > PACKED_SIZE_MAX {
            return false;
        }
        self.bytes.copy_within(at..self.size, at + size);
        self.bytes[at..at + 2].copy_from_slice(&(value.len() as u16).to_le_bytes());
        self.bytes[at + 2..at + size].copy_from_slice(value);
        self.size += size;
        self.add_to_count(1);
        true
    }

    /// Removes the value at an offset.
    pub(super) fn remove(&mut self, at: usize) {
        let end = self.packed().value_at(at).1;
        self.bytes.copy_within(end..self.size, at);
        self.size -= end - at;
        self.add_to_count(-1);
    }
}

/// The values of a nested tree, packed, when they take no more than `size_max` bytes so.
pub(super) fn pack(pages: &impl Pages, nested: &TreeState, size_max: usize) -> Result<Option<PackedBuffer>> {
    if nested.entries > PACKED_COUNT_MAX as u64 || nested.depth > 1 {
        return Ok(None);
    }
    let mut buffer = PackedBuffer::new();
    let mut cursor = Tree::new(pages, nested).cursor();
    let mut found = cursor.first()?;
    while found {
        let at = buffer.size;
        if !buffer.insert(at, cursor.key()) || buffer.size > size_max {
            return Ok(None);
        }
        found = cursor.next()?;
    }
    Ok(Some(buffer))
}
