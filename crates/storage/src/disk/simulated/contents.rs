//! The bytes of one simulated file: what programs see (`memory`, `length`), what survives a power loss for certain (`durable`,
//! `durable_length`), and in between the changes that were not synced.
//!
//! Always: `durable` with all of `changes` applied in order is what programs see, unless a sync failed: then some changes are gone
//! from the list without having become durable, just as a kernel that could not write a page calls it clean.
//!
//! A power loss leaves each sector as it was at some moment since the last sync: the system may write a page back at any time, in
//! any order, and the disk tears a write between two sectors, but never inside one. The length is likewise one of those the file had.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use rustix::io::Errno;

use super::super::memory_map::AnonymousMemory;
use super::chance::Chance;

/// The longest simulated file, in bytes: the address space reserved for each. Memory is taken only for what is written.
const FILE_SIZE_MAX: u64 = 4 << 30;

/// What a disk writes wholly or not at all, in bytes.
pub(super) const SECTOR_SIZE: u64 = 512;

/// The unit in which durable bytes are kept, and shared between copies of a disk, in bytes.
const BLOCK_SIZE: usize = 4096;

type Block = [u8; BLOCK_SIZE];

/// Something done to a file that is not durable yet.
#[derive(Clone)]
enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Zero { start: u64, end: u64 },
    Length(u64),
}

impl Change {
    /// The bytes it touches; empty for a change of length.
    fn range(&self) -> (u64, u64) {
        match self {
            Change::Write { offset, bytes } => (*offset, offset + bytes.len() as u64),
            Change::Zero { start, end } => (*start, *end),
            Change::Length(_) => (0, 0),
        }
    }

    fn sectors(&self) -> std::ops::Range<u64> {
        let (start, end) = self.range();
        start / SECTOR_SIZE..end.div_ceil(SECTOR_SIZE)
    }

    /// What is left of it outside `from..to`.
    fn outside(self, from: u64, to: u64) -> Vec<Change> {
        let (start, end) = self.range();
        if end <= from || to <= start {
            return vec![self];
        }
        let mut left = Vec::new();
        match self {
            Change::Write { offset, bytes } => {
                if start < from {
                    left.push(Change::Write { offset, bytes: bytes[..(from - start) as usize].to_vec() });
                }
                if to < end {
                    left.push(Change::Write { offset: to, bytes: bytes[(to - start) as usize..].to_vec() });
                }
            }
            Change::Zero { .. } => {
                if start < from {
                    left.push(Change::Zero { start, end: from });
                }
                if to < end {
                    left.push(Change::Zero { start: to, end });
                }
            }
            Change::Length(_) => left.push(self),
        }
        left
    }
}

/// How much of what was not synced a power loss spares. Pure dice would nearly always spare something of everything;
/// bugs hide in the extremes too.
#[derive(Clone, Copy)]
enum Spared {
    Nothing,
    Everything,
    /// Each change wholly or not at all.
    SomeChanges,
    /// Each sector as it was at some moment.
    SomeSectors,
    /// All changes up to some moment, and sectors of the next.
    Start,
}

impl Spared {
    fn choose(chance: &mut Chance) -> Spared {
        match chance.below(5) {
            0 => Spared::Nothing,
            1 => Spared::Everything,
            2 => Spared::SomeChanges,
            3 => Spared::SomeSectors,
            _ => Spared::Start,
        }
    }
}

/// One file's bytes.
pub(super) struct Contents {
    memory: Arc<AnonymousMemory>,
    length: u64,
    durable: Vec<Option<Arc<Block>>>,
    durable_length: u64,
    changes: Vec<Change>,
}

impl Contents {
    /// An empty file.
    pub(super) fn new() -> io::Result<Contents> {
        Ok(Contents {
            memory: Arc::new(AnonymousMemory::new(FILE_SIZE_MAX as usize)?),
            length: 0,
            durable: Vec::new(),
            durable_length: 0,
            changes: Vec::new(),
        })
    }

    /// The same file on another disk.
    pub(super) fn copy(&self) -> io::Result<Contents> {
        let memory = AnonymousMemory::new(FILE_SIZE_MAX as usize)?;
        let mut block = [0; BLOCK_SIZE];
        for offset in (0..self.length as usize).step_by(BLOCK_SIZE) {
            self.memory.read(offset, &mut block);
            if block != [0; BLOCK_SIZE] {
                memory.write(offset, &block);
            }
        }
        Ok(Contents {
            memory: Arc::new(memory),
            length: self.length,
            durable: self.durable.clone(),
            durable_length: self.durable_length,
            changes: self.changes.clone(),
        })
    }

    /// What a power loss leaves of the file.
    pub(super) fn survivor(&self, chance: &mut Chance) -> io::Result<Contents> {
        let mut survivor = Contents::new()?;
        survivor.durable = self.durable.clone();
        survivor.durable_length = self.durable_length;
        survivor.keep_some(&self.changes, chance);
        survivor.length = survivor.durable_length;
        for (index, block) in survivor.durable.iter().enumerate() {
            if let Some(block) = block {
                survivor.memory.write(index * BLOCK_SIZE, &block[..]);
            }
        }
        Ok(survivor)
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn memory(&self) -> Arc<AnonymousMemory> {
        Arc::clone(&self.memory)
    }

    /// Fills `buffer` from `offset`.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        if offset.checked_add(buffer.len() as u64).is_none_or(|end| end > self.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.memory.read(offset as usize, buffer);
        Ok(())
    }

    /// Whether a file may be `end` bytes long.
    pub(super) fn check_end(offset: u64, size: u64) -> io::Result<u64> {
        match offset.checked_add(size) {
            Some(end) if end <= FILE_SIZE_MAX => Ok(end),
            _ => Err(Errno::FBIG.into()),
        }
    }

    /// A write through the cache: seen at once, not durable. The range was checked.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.extend(offset + bytes.len() as u64);
        self.memory.write(offset as usize, bytes);
        self.changes.push(Change::Write { offset, bytes: bytes.to_vec() });
    }

    /// As [`Contents::write`], of only some sectors: what a failed write leaves.
    pub(super) fn write_some(&mut self, offset: u64, bytes: &[u8], chance: &mut Chance) {
        let mut at = 0;
        while at < bytes.len() {
            let sector_end = ((offset + at as u64) / SECTOR_SIZE + 1) * SECTOR_SIZE - offset;
            let end = (sector_end as usize).min(bytes.len());
            if chance.coin() {
                self.write(offset + at as u64, &bytes[at..end]);
            }
            at = end;
        }
    }

    /// A write that is durable on return. It takes nothing else of the file along, but what the cache held of the same bytes
    /// is superseded, and a length it needs becomes durable with it.
    pub(super) fn write_durable(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        self.memory.write(offset as usize, bytes);
        self.length = self.length.max(end);
        let changes = std::mem::take(&mut self.changes);
        self.changes = changes.into_iter().flat_map(|change| change.outside(offset, end)).collect();
        if self.durable_length < end {
            self.changes.retain(|change| !matches!(change, Change::Length(_)));
            self.durable_length = self.length;
        }
        self.store(offset, bytes);
    }

    /// Makes the file longer; not durable.
    pub(super) fn extend(&mut self, length: u64) {
        if length > self.length {
            self.length = length;
            self.changes.push(Change::Length(length));
        }
    }

    /// Cuts the file; not durable.
    pub(super) fn truncate(&mut self, length: u64) {
        if length < self.length {
            self.memory.zero(length as usize, (self.length - length) as usize);
            self.changes.push(Change::Zero { start: length, end: self.length });
            self.changes.push(Change::Length(length));
            self.length = length;
        }
    }

    /// Makes all changes durable, and the length even when an earlier sync lost it: the system still knows that.
    pub(super) fn sync(&mut self) {
        for change in std::mem::take(&mut self.changes) {
            self.apply(&change, None);
        }
        self.durable_length = self.length;
    }

    /// A sync that fails: some changes become durable, and none is tried again, though programs still see them all.
    pub(super) fn sync_failing(&mut self, chance: &mut Chance) {
        let changes = std::mem::take(&mut self.changes);
        self.keep_some(&changes, chance);
    }

    /// Changes bytes behind everybody's back, durably.
    pub(super) fn damage(&mut self, offset: u64, bytes: &[u8]) {
        self.write_durable(offset, bytes);
    }

    /// Makes a choice of `changes` durable.
    fn keep_some(&mut self, changes: &[Change], chance: &mut Chance) {
        let spared = Spared::choose(chance);
        let coins: Vec<bool> = changes.iter().map(|_| chance.coin()).collect();
        let moment = chance.below(changes.len() as u64 + 1) as usize;
        // Of `touching`, the changes of one sector (or of the length) in order: how many it has seen.
        let mut versions = |touching: &[usize]| match spared {
            Spared::Nothing => 0,
            Spared::Everything => touching.len(),
            Spared::SomeChanges => {
                touching.iter().rposition(|&index| coins[index]).map_or(0, |last| last + 1)
            }
            Spared::SomeSectors => chance.below(touching.len() as u64 + 1) as usize,
            Spared::Start => {
                let whole = touching.iter().take_while(|&&index| index < moment).count();
                let torn = touching.get(whole).is_some_and(|&index| index == moment) && chance.coin();
                whole + usize::from(torn)
            }
        };
        let mut sectors: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut lengths = Vec::new();
        for (index, change) in changes.iter().enumerate() {
            if let Change::Length(_) = change {
                lengths.push(index);
            }
            for sector in change.sectors() {
                sectors.entry(sector).or_default().push(index);
            }
        }
        for (sector, touching) in sectors {
            for &index in &touching[..versions(&touching)] {
                self.apply(&changes[index], Some(sector));
            }
        }
        let seen = versions(&lengths);
        if seen > 0 {
            self.apply(&changes[lengths[seen - 1]], None);
        }
        // What lies behind the end of the file is gone.
        let behind = (self.durable.len() * BLOCK_SIZE) as u64;
        if behind > self.durable_length {
            self.store_zeros(self.durable_length, behind);
        }
    }

    /// Applies a change to the durable bytes, or only the part of it in one sector.
    fn apply(&mut self, change: &Change, sector: Option<u64>) {
        let (mut start, mut end) = change.range();
        if let Some(sector) = sector {
            start = start.max(sector * SECTOR_SIZE);
            end = end.min((sector + 1) * SECTOR_SIZE);
        }
        match change {
            Change::Write { offset, bytes } => {
                self.store(start, &bytes[(start - offset) as usize..(end - offset) as usize]);
            }
            Change::Zero { .. } => self.store_zeros(start, end),
            Change::Length(length) => self.durable_length = *length,
        }
    }

    fn store(&mut self, offset: u64, bytes: &[u8]) {
        let mut at = offset as usize;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (index, start) = (at / BLOCK_SIZE, at % BLOCK_SIZE);
            let (now, later) = rest.split_at(rest.len().min(BLOCK_SIZE - start));
            if index >= self.durable.len() {
                self.durable.resize(index + 1, None);
            }
            let block = self.durable[index].get_or_insert_with(|| Arc::new([0; BLOCK_SIZE]));
            Arc::make_mut(block)[start..start + now.len()].copy_from_slice(now);
            at += now.len();
            rest = later;
        }
    }

    fn store_zeros(&mut self, start: u64, end: u64) {
        let end = (end as usize).min(self.durable.len() * BLOCK_SIZE);
        let mut at = start as usize;
        while at < end {
            let (index, from) = (at / BLOCK_SIZE, at % BLOCK_SIZE);
            let to = (end - index * BLOCK_SIZE).min(BLOCK_SIZE);
            if from == 0 && to == BLOCK_SIZE {
                self.durable[index] = None;
            } else if let Some(block) = &mut self.durable[index] {
                Arc::make_mut(block)[from..to].fill(0);
            }
            at = index * BLOCK_SIZE + to;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use super::*;

    fn all(contents: &Contents) -> Vec<u8> {
        let mut bytes = vec![0; contents.length() as usize];
        contents.read(0, &mut bytes).unwrap();
        bytes
    }

    /// What 200 seeds leave of a file.
    fn survivors(contents: &Contents) -> BTreeSet<Vec<u8>> {
        (0..200).map(|seed| all(&contents.survivor(&mut Chance::new(seed)).unwrap())).collect()
    }

    fn synced(bytes: &[u8]) -> Contents {
        let mut contents = Contents::new().unwrap();
        contents.write(0, bytes);
        contents.sync();
        contents
    }

    #[test]
    fn what_was_synced_survives() {
        let mut contents = synced(&[1; 5000]);
        contents.truncate(3000);
        contents.extend(9000);
        contents.write(4000, &[2; 100]);
        contents.sync();
        assert_eq!(survivors(&contents), BTreeSet::from([all(&contents)]));
    }

    #[test]
    fn unsynced_writes_are_lost_torn_and_reordered_by_sector() {
        let mut contents = synced(&[0; 1024]);
        contents.write(0, &[1; 1024]);
        contents.write(0, &[2; 1024]);
        let seen: BTreeSet<(u8, u8)> = survivors(&contents)
            .iter()
            .map(|bytes| {
                assert!(
                    bytes[..512].iter().all(|&b| b == bytes[0])
                        && bytes[512..].iter().all(|&b| b == bytes[512])
                );
                (bytes[0], bytes[512])
            })
            .collect();
        let every = (0..3).flat_map(|a| (0..3).map(move |b| (a, b))).collect();
        assert_eq!(seen, every, "every mixture of old and new sectors happens");
    }

    #[test]
    fn a_sector_is_never_torn_inside() {
        let mut contents = synced(&[0; 512]);
        contents.write(0, &[1; 10]);
        contents.write(100, &[1; 10]);
        let seen: BTreeSet<(u8, u8)> =
            survivors(&contents).iter().map(|bytes| (bytes[0], bytes[100])).collect();
        assert_eq!(seen, BTreeSet::from([(0, 0), (1, 0), (1, 1)]), "the second write implies the first");
    }

    #[test]
    fn durable_writes_take_nothing_along_and_supersede_the_cache() {
        let mut contents = synced(&[0; 12288]);
        contents.write(0, &[1; 12288]);
        contents.write_durable(4096, &[2; 4096]);
        let seen = survivors(&contents);
        assert!(seen.iter().all(|bytes| bytes[4096..8192] == [2; 4096]));
        assert!(
            seen.iter().any(|bytes| bytes[..4096] == [0; 4096])
                && seen.iter().any(|bytes| bytes[..4096] == [1; 4096])
        );
        contents.sync();
        assert_eq!(survivors(&contents), BTreeSet::from([all(&contents)]));
    }

    #[test]
    fn durable_writes_make_their_length_durable() {
        let mut contents = Contents::new().unwrap();
        contents.extend(4096);
        contents.write_durable(0, &[1; 4096]);
        assert_eq!(survivors(&contents), BTreeSet::from([vec![1; 4096]]));
        contents.write_durable(8192, &[2; 4096]);
        assert!(survivors(&contents).iter().all(|bytes| bytes.len() == 12288));
    }

    #[test]
    fn lengths_survive_or_not() {
        let mut contents = synced(&[1; 1000]);
        contents.truncate(100);
        contents.extend(2000);
        let seen = survivors(&contents);
        assert_eq!(seen.iter().map(Vec::len).collect::<BTreeSet<_>>(), BTreeSet::from([1000, 100, 2000]));
        assert!(seen.iter().all(|bytes| bytes[..100] == [1; 100]));
        assert!(seen.iter().all(|bytes| bytes.len() <= 1000 || bytes[1000..].iter().all(|&b| b == 0)));
        assert!(seen.iter().any(|bytes| bytes.len() == 2000 && bytes[100..].iter().all(|&b| b == 0)));
    }

    #[test]
    fn a_failed_sync_is_not_made_good_by_the_next() {
        let mut lost = 0;
        for seed in 0..100 {
            let mut contents = synced(&[0; 4096]);
            contents.write(0, &[1; 4096]);
            contents.sync_failing(&mut Chance::new(seed));
            assert_eq!(all(&contents), [1; 4096], "programs still see the write");
            contents.sync();
            lost += usize::from(survivors(&contents) != BTreeSet::from([vec![1; 4096]]));
        }
        assert!((20..100).contains(&lost), "{lost} of 100 failed syncs lost something");
    }

    #[test]
    fn copies_are_apart() {
        let mut contents = synced(&[1; 9000]);
        contents.write(0, &[2; 10]);
        let mut copy = contents.copy().unwrap();
        assert_eq!(all(&copy), all(&contents));
        assert_eq!(survivors(&copy), survivors(&contents));
        copy.write_durable(0, &[3; 4096]);
        assert_eq!(all(&contents)[..10], [2; 10]);
        assert!(survivors(&contents).iter().all(|bytes| bytes[0] != 3));
    }
}
