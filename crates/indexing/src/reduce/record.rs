//! A key's record: what the tree of keys holds for it.
//!
//! ```text
//! | level, 1 byte | flags, 1 byte | number | count | full key (flag 2) | partial (unless flag 1) | root: the rest |
//! ```
//!
//! `level` is the root's (0 is a leaf), `number` the key's own in the tree of nodes (0 while it has none there), `count` how many results there
//! are. Flag 1: the reduce failed and there is no partial. Flag 2: the key is so long that it is stored shortened, and this is all of
//! it. Slices stand behind their length.

use super::bytes::{Reader, put_number, put_slice};

const FAILED: u8 = 1;
const SHORTENED: u8 = 2;

/// The deepest tree of nodes, in levels. Nodes have at least two children on the way to a split, so a deeper one is damage.
pub(super) const LEVEL_MAX: u8 = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) level: u8,
    pub(super) number: u64,
    pub(super) count: u64,
    /// When it is longer than what the record is stored under.
    pub(super) full_key: Option<&'a [u8]>,
    /// The reduction of everything; `None` when it failed.
    pub(super) partial: Option<&'a [u8]>,
    pub(super) root: &'a [u8],
}

impl<'a> Record<'a> {
    /// `None` when the bytes are damaged.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Record<'a>> {
        let mut reader = Reader(bytes);
        let level = reader.byte().filter(|level| *level <= LEVEL_MAX)?;
        let flags = reader.byte().filter(|flags| flags & !(FAILED | SHORTENED) == 0)?;
        Some(Record {
            level,
            number: reader.number()?,
            count: reader.number()?,
            full_key: if flags & SHORTENED != 0 { Some(reader.slice()?) } else { None },
            partial: if flags & FAILED == 0 { Some(reader.slice()?) } else { None },
            root: reader.0,
        })
    }

    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        let failed = if self.partial.is_none() { FAILED } else { 0 };
        let shortened = if self.full_key.is_some() { SHORTENED } else { 0 };
        out.extend([self.level, failed | shortened]);
        put_number(out, self.number);
        put_number(out, self.count);
        if let Some(key) = self.full_key {
            put_slice(out, key);
        }
        if let Some(partial) = self.partial {
            put_slice(out, partial);
        }
        out.extend_from_slice(self.root);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        for full_key in [None, Some(&b"a long key"[..])] {
            for partial in [None, Some(&b"sum"[..]), Some(b"")] {
                let record =
                    Record { level: 3, number: 300, count: 1 << 20, full_key, partial, root: b"the root" };
                let mut bytes = Vec::new();
                record.append_to(&mut bytes);
                assert_eq!(Record::read(&bytes), Some(record));
                bytes[1] |= 0x10;
                assert_eq!(Record::read(&bytes), None);
            }
        }
        assert_eq!(Record::read(&[]), None);
        assert_eq!(Record::read(&[LEVEL_MAX + 1, 0, 0, 0, 0]), None);
    }
}
