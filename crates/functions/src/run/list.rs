//! A list of values that grows in an arena.

use bumpalo::Bump;

use crate::value::Value;

/// Values in an arena; [`List::done`] gives them as a slice.
pub(super) struct List<'r> {
    arena: &'r Bump,
    values: &'r mut [Value<'r>],
    len: usize,
}

impl<'r> List<'r> {
    pub(super) fn new(arena: &'r Bump) -> List<'r> {
        List { arena, values: &mut [], len: 0 }
    }

    /// A list that grows first beyond `room` values.
    pub(super) fn with_room(arena: &'r Bump, room: usize) -> List<'r> {
        List { arena, values: arena.alloc_slice_fill_copy(room, Value::Missing), len: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, value: Value<'r>) {
        if self.len == self.values.len() {
            self.grow();
        }
        self.values[self.len] = value;
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let more = self.arena.alloc_slice_fill_copy((self.len * 2).max(4), Value::Missing);
        more[..self.len].copy_from_slice(&self.values[..self.len]);
        self.values = more;
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The values so far.
    pub(super) fn so_far(&self) -> &[Value<'r>] {
        &self.values[..self.len]
    }

    pub(super) fn done(self) -> &'r [Value<'r>] {
        let values: &'r [Value<'r>] = self.values;
        &values[..self.len]
    }
}
