//! Sets of entries of one segment, by their numbers, and tantivy's face of them.

use std::sync::Arc;

use tantivy::{DocId, DocSet, TERMINATED};

/// A set of entries.
#[derive(Debug, Clone)]
pub(crate) enum Docs {
    /// None of them.
    None,
    /// All up to a number.
    All(DocId),
    /// These, ascending.
    List(Vec<DocId>),
    /// Those whose bits are set.
    Bits(Arc<Bits>),
}

/// A bit for each entry of a segment.
#[derive(Debug, Clone)]
pub(crate) struct Bits {
    words: Vec<u64>,
    count: u32,
}

impl Bits {
    pub(crate) fn new(size: DocId) -> Bits {
        Bits { words: vec![0; (size as usize).div_ceil(64)], count: 0 }
    }

    pub(crate) fn insert(&mut self, doc: DocId) {
        let word = &mut self.words[(doc / 64) as usize];
        let bit = 1u64 << (doc % 64);
        self.count += u32::from(*word & bit == 0);
        *word |= bit;
    }
}

/// Gathers a set: a list as long as it is short, and bits from then on.
pub(crate) struct Gather {
    size: DocId,
    list: Vec<DocId>,
    bits: Option<Bits>,
}

impl Gather {
    pub(crate) fn new(size: DocId) -> Gather {
        Gather { size, list: Vec::new(), bits: None }
    }

    pub(crate) fn insert(&mut self, doc: DocId) {
        if let Some(bits) = &mut self.bits {
            bits.insert(doc);
            return;
        }
        self.list.push(doc);
        if self.list.len() > 1024 && self.list.len() as u64 * 32 > u64::from(self.size) {
            let mut bits = Bits::new(self.size);
            self.list.drain(..).for_each(|doc| bits.insert(doc));
            self.bits = Some(bits);
        }
    }

    pub(crate) fn finish(mut self) -> Docs {
        if let Some(bits) = self.bits {
            return Docs::Bits(Arc::new(bits));
        }
        self.list.sort_unstable();
        self.list.dedup();
        if self.list.is_empty() { Docs::None } else { Docs::List(self.list) }
    }
}

/// Entries that are looked at together.
const BLOCK: usize = 256;

impl Docs {
    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        match self {
            Docs::None => 0,
            Docs::All(size) => *size,
            Docs::List(list) => list.len() as u32,
            Docs::Bits(bits) => bits.count,
        }
    }

    /// Calls `each` for every entry, in order.
    pub(crate) fn each(&self, mut each: impl FnMut(DocId)) {
        match self {
            Docs::None => {}
            Docs::All(size) => (0..*size).for_each(each),
            Docs::List(list) => list.iter().copied().for_each(each),
            Docs::Bits(bits) => {
                for (at, &word) in bits.words.iter().enumerate() {
                    let mut word = word;
                    while word != 0 {
                        each(at as DocId * 64 + word.trailing_zeros());
                        word &= word - 1;
                    }
                }
            }
        }
    }

    /// Calls `each` for all entries, in order, with some of them at a time.
    pub(crate) fn each_block(&self, mut each: impl FnMut(&[DocId])) {
        if let Docs::List(list) = self {
            return list.chunks(BLOCK).for_each(each);
        }
        let mut block = Vec::with_capacity(BLOCK);
        self.each(|doc| {
            block.push(doc);
            if block.len() == BLOCK {
                each(&block);
                block.clear();
            }
        });
        each(&block);
    }

    pub(crate) fn cursor(self) -> DocsCursor {
        let mut cursor = DocsCursor { docs: self, at: 0, word: 0, doc: TERMINATED };
        cursor.doc = match &cursor.docs {
            Docs::None => TERMINATED,
            Docs::All(size) => {
                if *size == 0 {
                    TERMINATED
                } else {
                    0
                }
            }
            Docs::List(list) => list.first().copied().unwrap_or(TERMINATED),
            Docs::Bits(bits) => {
                cursor.word = bits.words.first().copied().unwrap_or(0);
                cursor.next_bit()
            }
        };
        cursor
    }
}

/// Walks through a set.
pub(crate) struct DocsCursor {
    docs: Docs,
    /// The place in the list, or the number of the word.
    at: usize,
    /// The bits of the word that are still to come.
    word: u64,
    doc: DocId,
}

impl DocsCursor {
    fn next_bit(&mut self) -> DocId {
        let Docs::Bits(bits) = &self.docs else { return TERMINATED };
        while self.word == 0 {
            self.at += 1;
            match bits.words.get(self.at) {
                Some(&word) => self.word = word,
                None => return TERMINATED,
            }
        }
        let bit = self.word.trailing_zeros();
        self.word &= self.word - 1;
        self.at as DocId * 64 + bit
    }
}

impl DocSet for DocsCursor {
    fn advance(&mut self) -> DocId {
        if self.doc == TERMINATED {
            return TERMINATED;
        }
        self.doc = match &self.docs {
            Docs::None => TERMINATED,
            Docs::All(size) => {
                if self.doc + 1 < *size {
                    self.doc + 1
                } else {
                    TERMINATED
                }
            }
            Docs::List(list) => {
                self.at += 1;
                list.get(self.at).copied().unwrap_or(TERMINATED)
            }
            Docs::Bits(_) => self.next_bit(),
        };
        self.doc
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc >= target {
            return self.doc;
        }
        match &self.docs {
            Docs::None => self.doc = TERMINATED,
            Docs::All(size) => self.doc = if target < *size { target } else { TERMINATED },
            Docs::List(list) => {
                // Steps that double, then a binary search: targets are mostly near.
                let mut step = 1;
                let mut low = self.at;
                while low + step < list.len() && list[low + step] < target {
                    low += step;
                    step *= 2;
                }
                let high = (low + step + 1).min(list.len());
                self.at = low + list[low..high].partition_point(|&doc| doc < target);
                self.doc = list.get(self.at).copied().unwrap_or(TERMINATED);
            }
            Docs::Bits(bits) => {
                let at = (target / 64) as usize;
                match bits.words.get(at) {
                    Some(&word) => {
                        self.at = at;
                        self.word = word & (u64::MAX << (target % 64));
                        self.doc = self.next_bit();
                    }
                    None => {
                        self.at = bits.words.len();
                        self.word = 0;
                        self.doc = TERMINATED;
                    }
                }
            }
        }
        self.doc
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.docs.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(docs: Docs) -> Vec<DocId> {
        let mut cursor = docs.cursor();
        let mut found = Vec::new();
        while cursor.doc() != TERMINATED {
            found.push(cursor.doc());
            cursor.advance();
        }
        found
    }

    #[test]
    fn lists_and_bits_walk_and_seek_alike() {
        for (size, step) in [(100u32, 7u32), (100_000, 7), (100_000, 3001), (5000, 1), (64, 64)] {
            let expected: Vec<DocId> = (0..size).filter(|doc| doc % step == step - 1).collect();
            let mut gather = Gather::new(size);
            expected.iter().rev().chain(expected.iter()).for_each(|&doc| gather.insert(doc));
            let docs = gather.finish();
            assert_eq!(walk(docs.clone()), expected, "{size} {step}");
            for from in (0..size).step_by(size as usize / 20 + 1) {
                let mut cursor = docs.clone().cursor();
                for target in (from..size + 10).step_by(size as usize / 50 + 3) {
                    let found = cursor.seek(target);
                    let next = expected.iter().copied().find(|&doc| doc >= target).unwrap_or(TERMINATED);
                    assert_eq!(found, next, "{size} {step} {target}");
                }
            }
        }
        assert_eq!(walk(Docs::All(3)), [0, 1, 2]);
        assert!(walk(Docs::All(0)).is_empty() && walk(Docs::None).is_empty());
    }
}
