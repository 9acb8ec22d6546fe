//! The tree against an ordered map, its fill, its limits, and what it does on damaged pages.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;

use super::*;
use crate::page::branch::{self, Branch};
use crate::page::{Page, header, leaf};
use crate::pages::{PageMut, RunSource};
use crate::pages_in_memory::PagesInMemory;
use crate::visit::Findings;

/// A tree beside the map it must equal.
struct Twins {
    pages: PagesInMemory,
    state: TreeState,
    hint: InsertHint,
    map: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Twins {
    fn new() -> Twins {
        let (pages, state, hint) = (PagesInMemory::new(), TreeState::default(), InsertHint::default());
        Twins { pages, state, hint, map: BTreeMap::new() }
    }

    fn tree(&self) -> Tree<'_, PagesInMemory> {
        Tree::new(&self.pages, &self.state)
    }

    fn tree_mut(&mut self) -> TreeMut<'_, PagesInMemory> {
        TreeMut::new(&mut self.pages, &mut self.state, &mut self.hint)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        let replaced = self.tree_mut().put(key, value).unwrap();
        let expected = self.map.insert(key.to_vec(), value.to_vec());
        assert_eq!(replaced, expected.is_some());
    }

    fn delete(&mut self, key: &[u8]) {
        let removed = self.tree_mut().delete(key).unwrap();
        assert_eq!(removed, self.map.remove(key).is_some());
    }

    /// Everything that always holds, and every entry from both ends.
    fn check(&mut self) -> check::TreeStatistics {
        let mut findings = Findings::default();
        let statistics = self.tree().check(&mut findings).unwrap();
        assert_eq!(findings.problems, []);
        assert_eq!(findings.pages, self.pages.in_use(), "pages that belong to nobody");
        self.pages.validate_all().unwrap();
        self.pages.check_lines();
        assert_eq!(self.state.entries, self.map.len() as u64);
        assert_eq!(TreeState::decode(&self.state.encode()), Some(self.state));
        let mut cursor = self.tree().cursor();
        for (key, value) in &self.map {
            assert!(cursor.next().unwrap());
            assert_eq!((cursor.key(), cursor.value().unwrap()), (key.as_slice(), value.as_slice()));
            assert_eq!(cursor.value_size().unwrap(), value.len() as u64);
        }
        assert!(!cursor.next().unwrap());
        for (key, value) in self.map.iter().rev() {
            assert!(cursor.prev().unwrap());
            assert_eq!((cursor.key(), cursor.value().unwrap()), (key.as_slice(), value.as_slice()));
        }
        assert!(!cursor.prev().unwrap());
        if self.map.is_empty() {
            assert!(self.pages.in_use().is_empty());
            assert_eq!((self.state.root, self.state.depth), (PageNumber::NONE, 0));
        }
        statistics
    }
}

/// Numbers that look random, the same every time.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }
}

/// How many entries a test uses: few under Miri, which is a thousand times slower.
fn sized(count: u64) -> u64 {
    if cfg!(miri) { count.min(60 + count / 1000) } else { count }
}

#[test]
fn an_empty_tree_has_no_pages_and_no_entries() {
    let mut twins = Twins::new();
    assert_eq!(twins.tree().get(b"a").unwrap(), None);
    assert!(!twins.tree().contains(b"a").unwrap());
    assert_eq!(twins.tree().first().unwrap(), None);
    assert_eq!(twins.tree().last().unwrap(), None);
    assert!(!twins.tree().cursor().seek(b"a").unwrap());
    assert!(!twins.tree().cursor().seek_at_most(b"a").unwrap());
    assert_eq!(twins.tree().estimate_count(Bound::Unbounded, Bound::Unbounded).unwrap(), 0);
    assert!(!twins.tree_mut().delete(b"a").unwrap());
    assert_eq!(twins.tree_mut().delete_range(Bound::Unbounded, Bound::Unbounded).unwrap(), 0);
    twins.tree_mut().clear().unwrap();
    twins.check();
}

#[test]
fn keys_and_values_have_limits() {
    let mut twins = Twins::new();
    let long = vec![b'k'; KEY_SIZE_MAX + 1];
    assert!(matches!(twins.tree_mut().put(b"", b""), Err(Error::KeyEmpty)));
    assert!(matches!(twins.tree_mut().put(&long, b""), Err(Error::KeyTooLong { size: 2049, max: 2048 })));
    assert!(matches!(twins.tree_mut().insert(b"", b""), Err(Error::KeyEmpty)));
    assert!(matches!(twins.tree_mut().delete(&long), Err(Error::KeyTooLong { .. })));
    assert!(matches!(twins.tree().cursor().seek(b""), Err(Error::KeyEmpty)));
    let too_long = twins.tree_mut().put_stream(b"k", VALUE_SIZE_MAX + 1, &mut &b""[..]);
    assert!(matches!(too_long, Err(Error::ValueTooLong { .. })));
    twins.check();
    twins.put(&long[1..], b"");
    twins.check();
}

#[test]
fn padded_heads_do_not_mix_up_short_keys() {
    let mut twins = Twins::new();
    let keys: Vec<Vec<u8>> =
        (1..8).map(|size| vec![0; size]).chain([b"a".to_vec(), b"a\0".to_vec()]).collect();
    for (i, key) in keys.iter().rev().enumerate() {
        twins.put(key, &[i as u8]);
    }
    twins.check();
    for key in &keys {
        assert_eq!(twins.tree().get(key).unwrap(), Some(twins.map[key].as_slice()));
    }
    for key in keys {
        twins.delete(&key);
        twins.check();
    }
}

#[test]
fn appending_fills_pages_and_moves_nothing() {
    let mut twins = Twins::new();
    let count = sized(60_000);
    for i in 0..count {
        twins.put(&i.to_be_bytes(), &i.to_le_bytes());
    }
    let found = twins.check();
    if !cfg!(miri) {
        let fill = found.leaf_bytes_used as f64 / (found.leaf_pages * PAGE_BODY_SIZE as u64) as f64;
        assert!(fill > 0.97, "{fill}");
        assert!(count / found.leaf_pages > 450, "{found:?}");
    }
}

#[test]
fn descending_inserts_fill_pages() {
    let mut twins = Twins::new();
    for i in (0..sized(20_000)).rev() {
        twins.put(&i.to_be_bytes(), &[7; 50]);
    }
    let found = twins.check();
    let fill = found.leaf_bytes_used as f64 / (found.leaf_pages * PAGE_BODY_SIZE as u64) as f64;
    assert!(fill > 0.9 || cfg!(miri), "{fill}");
}

#[test]
fn several_ascending_runs_fill_pages() {
    let mut twins = Twins::new();
    for i in 0..sized(10_000) {
        for run in ["orders", "people", "users"] {
            twins.put(format!("{run}/{i:08}").as_bytes(), &[7; 50]);
        }
    }
    let found = twins.check();
    let fill = found.leaf_bytes_used as f64 / (found.leaf_pages * PAGE_BODY_SIZE as u64) as f64;
    assert!(fill > 0.85 || cfg!(miri), "{fill}");
}

#[test]
fn random_inserts_leave_pages_two_thirds_full() {
    let mut twins = Twins::new();
    let mut chance = Chance(1);
    for _ in 0..sized(20_000) {
        let key = [chance.next().to_be_bytes(), chance.next().to_be_bytes()].concat();
        twins.put(&key, &[3; 128]);
    }
    let found = twins.check();
    let fill = found.leaf_bytes_used as f64 / (found.leaf_pages * PAGE_BODY_SIZE as u64) as f64;
    assert!(fill > 0.66 || cfg!(miri), "{fill}");
    let keys: Vec<Vec<u8>> = twins.map.keys().cloned().collect();
    for key in &keys {
        assert_eq!(twins.tree().get(key).unwrap(), Some(&[3; 128][..]));
    }
    for (i, key) in keys.iter().enumerate() {
        if i % 8 != 0 {
            twins.delete(key);
        }
    }
    let found = twins.check();
    let fill = found.leaf_bytes_used as f64 / (found.leaf_pages * PAGE_BODY_SIZE as u64) as f64;
    assert!(fill > 0.4 || cfg!(miri), "{fill}");
    for key in &keys {
        twins.delete(key);
    }
    twins.check();
}

#[test]
fn an_insert_that_fits_marks_few_lines() {
    let mut twins = Twins::new();
    let mut chance = Chance(2);
    for _ in 0..40 {
        twins.put(&chance.next().to_be_bytes(), &[1; 100]);
    }
    twins.check();
    twins.put(&[0x80; 8], &[2; 100]);
    assert!(twins.pages.marked_lines() <= 2 + 5 + 3, "{}", twins.pages.marked_lines());
    twins.check();
    twins.put(&[0x80; 8], &[3; 100]);
    assert!(twins.pages.marked_lines() <= 3, "only the value");
    twins.check();
}

/// Keys that share a long prefix fill a page ten times over without it; then one comes that does not share it.
#[test]
fn a_key_without_the_prefix_does_not_cost_the_others_theirs() {
    for stranger in [&b"zebra"[..], b"aardvark", b"p"] {
        let mut twins = Twins::new();
        for i in 0..sized(300) as u32 {
            let key = [&[b'p'; 1500][..], &i.to_be_bytes()].concat();
            twins.put(&key, b"v");
        }
        let before = twins.check().leaf_pages;
        twins.put(stranger, b"v");
        assert!(twins.check().leaf_pages <= before + 1);
        let middle = [&[b'p'; 700][..], b"q"].concat();
        twins.put(&middle, b"v");
        twins.check();
    }
}

#[test]
fn values_change_their_size_in_place_and_out_of_place() {
    let mut twins = Twins::new();
    let sizes = [0, 1, 8, 126, 127, 128, 511, 512, 513, 8150, 8160, 8161, 20_000];
    for (i, from) in sizes.into_iter().enumerate() {
        for (j, to) in sizes.into_iter().enumerate() {
            let key = format!("key {i} {j}");
            twins.put(key.as_bytes(), &vec![i as u8; from]);
            twins.put(key.as_bytes(), &vec![j as u8; to]);
        }
    }
    twins.check();
    for (i, size) in sizes.into_iter().enumerate() {
        let key = format!("stream {i}");
        let value = vec![i as u8; size];
        assert!(!twins.tree_mut().put_stream(key.as_bytes(), size as u64, &mut value.as_slice()).unwrap());
        assert!(twins.tree_mut().put_stream(key.as_bytes(), size as u64, &mut value.as_slice()).unwrap());
        twins.map.insert(key.into_bytes(), value);
    }
    assert!(twins.tree_mut().change_in_place(b"stream 4", |value| value[3] = 99).unwrap());
    twins.map.get_mut(&b"stream 4"[..]).unwrap()[3] = 99;
    assert!(!twins.tree_mut().change_in_place(b"stream 12", |_| ()).unwrap(), "in the heap");
    assert!(!twins.tree_mut().change_in_place(b"none", |_| ()).unwrap());
    twins.check();
    twins.tree_mut().clear().unwrap();
    twins.map.clear();
    twins.check();
}

#[test]
fn inserts_leave_what_is_there() {
    let mut twins = Twins::new();
    for size in [3, 3000] {
        let key = format!("k{size}");
        assert!(twins.tree_mut().insert(key.as_bytes(), &vec![1; size]).unwrap());
        assert!(!twins.tree_mut().insert(key.as_bytes(), &vec![2; size]).unwrap());
        twins.map.insert(key.into_bytes(), vec![1; size]);
    }
    twins.check();
}

#[test]
fn the_worst_mixtures_of_sizes_split() {
    let mut chance = Chance(3);
    for round in 0..sized(60) {
        let mut twins = Twins::new();
        for _ in 0..60 {
            let size = match chance.next() % 3 {
                0 => 1 + chance.next() as usize % 8,
                1 => 2000 + chance.next() as usize % 49,
                _ => 1 + chance.next() as usize % 2048,
            };
            let shared = [0, 3, 900, 1900][round as usize % 4].min(size - 1);
            let mut key = vec![b'x'; shared];
            key.extend((shared..size).map(|_| chance.next() as u8));
            let value_size = [0, 8, 512, 512][chance.next() as usize % 4];
            twins.put(&key, &vec![5; value_size]);
        }
        twins.check();
        let keys: Vec<Vec<u8>> = twins.map.keys().cloned().collect();
        for key in keys.iter().step_by(2) {
            twins.delete(key);
        }
        twins.check();
    }
}

#[test]
fn ranges_and_prefixes_walk_both_ways() {
    let mut twins = Twins::new();
    for i in 0..sized(3000) {
        twins.put(format!("key/{:05}", i * 2).as_bytes(), b"v");
    }
    twins.put(&[0xff, 0xff, 1], b"v");
    let bounds = ["key/00000", "key/00001", "key/00002", "key/00031", "key/01000", "key/99999", "a"];
    let some: Vec<Bound<&[u8]>> = bounds
        .iter()
        .flat_map(|key| [Bound::Included(key.as_bytes()), Bound::Excluded(key.as_bytes())])
        .chain([Bound::Unbounded])
        .collect();
    for &low in &some {
        for &high in &some {
            let within = |key: &&Vec<u8>| {
                (match low {
                    Bound::Included(low) => key.as_slice() >= low,
                    Bound::Excluded(low) => key.as_slice() > low,
                    Bound::Unbounded => true,
                }) && match high {
                    Bound::Included(high) => key.as_slice() <= high,
                    Bound::Excluded(high) => key.as_slice() < high,
                    Bound::Unbounded => true,
                }
            };
            let mut expected: Vec<&Vec<u8>> = twins.map.keys().filter(within).collect();
            let tree = twins.tree();
            assert!(collect(tree.range(low, high, Direction::Ascending)).iter().eq(expected.iter().copied()));
            expected.reverse();
            assert!(
                collect(tree.range(low, high, Direction::Descending)).iter().eq(expected.iter().copied())
            );
        }
    }
    for prefix in [&b"key/000"[..], b"key/", b"", b"b", b"\xff", b"\xff\xff"] {
        let mut expected: Vec<&Vec<u8>> = twins.map.keys().filter(|key| key.starts_with(prefix)).collect();
        assert!(
            collect(twins.tree().prefix(prefix, Direction::Ascending)).iter().eq(expected.iter().copied())
        );
        expected.reverse();
        assert!(
            collect(twins.tree().prefix(prefix, Direction::Descending)).iter().eq(expected.iter().copied())
        );
    }
    assert_eq!(prefix_end(b"a\xff"), Some(b"b".to_vec()));
    assert_eq!(prefix_end(b"\xff\xff"), None);
}

fn collect(mut range: Range<'_, PagesInMemory>) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    while let Some((key, _)) = range.next().unwrap() {
        keys.push(key.to_vec());
    }
    assert_eq!(range.next().unwrap(), None);
    keys
}

#[test]
fn cursors_turn_round_at_the_ends() {
    let mut twins = Twins::new();
    for i in 0..sized(3000) {
        twins.put(format!("{i:05}").as_bytes(), &[1; 40]);
    }
    let tree = twins.tree();
    let mut cursor = tree.cursor();
    assert_eq!((cursor.is_at_entry(), cursor.key()), (false, &b""[..]));
    assert!(cursor.last().unwrap() && !cursor.next().unwrap() && !cursor.next().unwrap());
    assert!(cursor.prev().unwrap());
    assert_eq!(Some(cursor.key()), twins.map.keys().next_back().map(Vec::as_slice));
    assert!(cursor.first().unwrap() && !cursor.prev().unwrap() && !cursor.prev().unwrap());
    assert!(!cursor.is_at_entry());
    assert!(cursor.next().unwrap());
    assert_eq!(cursor.key(), b"00000");
    for (i, key) in twins.map.keys().enumerate() {
        assert!(cursor.seek_exact(key).unwrap());
        assert_eq!(cursor.next().unwrap(), i + 1 < twins.map.len());
        assert!(cursor.prev().unwrap());
        assert_eq!(cursor.key(), key);
        let behind = [key, &b"\0"[..]].concat();
        assert!(!cursor.seek_exact(&behind).unwrap());
        assert_eq!(cursor.is_at_entry(), i + 1 < twins.map.len());
        assert!(cursor.seek_at_most(&behind).unwrap());
        assert_eq!(cursor.key(), key);
        let copy = cursor.clone();
        assert_eq!(copy.key(), key);
    }
    assert!(!cursor.seek_at_most(b"0").unwrap());
    assert!(cursor.next().unwrap());
    assert!(!cursor.seek(b"9").unwrap());
    assert!(cursor.prev().unwrap());
}

#[test]
fn estimates_are_near() {
    let mut twins = Twins::new();
    let count = sized(50_000);
    for i in 0..count {
        twins.put(format!("{i:08}").as_bytes(), &[1; 20]);
    }
    let key = |i: u64| format!("{i:08}").into_bytes();
    for (low, high) in [(0, count), (count / 4, count / 2), (10, 15), (7, 7), (count / 2, count - 1)] {
        let (low_key, high_key) = (key(low), key(high));
        let estimate =
            twins.tree().estimate_count(Bound::Included(&low_key), Bound::Excluded(&high_key)).unwrap();
        assert!(estimate.abs_diff(high - low) <= (high - low) / 10, "{low} {high} {estimate}");
    }
    assert_eq!(twins.tree().estimate_count(Bound::Unbounded, Bound::Unbounded).unwrap(), count);
}

/// Whatever allocation fails, nothing has changed.
#[test]
fn a_failed_put_changes_nothing() {
    let mut chance = Chance(4);
    let mut twins = Twins::new();
    let mut failures = 0;
    for i in 0..sized(6000) {
        let size = 1 + chance.next() as usize % if i % 3 == 0 { 900 } else { 12 };
        let key: Vec<u8> = (0..size).map(|_| chance.next() as u8).collect();
        let value = vec![1; chance.next() as usize % 600];
        let mut budget = 0;
        loop {
            let before = twins.state;
            twins.pages.limit(Some(budget));
            let result = twins.tree_mut().put(&key, &value);
            twins.pages.limit(None);
            match result {
                Ok(_) => break,
                Err(Error::TransactionTooLarge { .. }) => {
                    failures += 1;
                    // The heap may have other pages open than before, but holds no more.
                    assert_eq!(TreeState { heap: before.heap, ..twins.state }, before);
                    if failures % 16 == 0 {
                        twins.check();
                    }
                    budget += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        twins.map.insert(key, value);
    }
    assert!(failures > 100 || cfg!(miri));
    twins.check();
}

#[test]
fn pages_that_become_lean_are_merged_or_levelled() {
    let mut twins = Twins::new();
    for i in 0..sized(5000) {
        twins.put(format!("{i:06}").as_bytes(), &[1; 100]);
    }
    let full = twins.check();
    // All but one page in ten lose nine of ten entries: their neighbours are full, so they level or merge.
    let keys: Vec<Vec<u8>> = twins.map.keys().cloned().collect();
    for (i, key) in keys.iter().enumerate() {
        if i % 200 >= 60 && i % 10 != 0 {
            twins.delete(key);
        }
    }
    let found = twins.check();
    if !cfg!(miri) {
        let fill = found.leaf_bytes_used as f64 / (found.leaf_pages * PAGE_BODY_SIZE as u64) as f64;
        assert!(fill > 0.55 && found.leaf_pages < full.leaf_pages * 3 / 4, "{fill} {found:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "builds several trees")]
fn a_check_finds_what_is_broken() {
    let sound = || {
        let mut twins = Twins::new();
        for i in 0..3000u64 {
            twins.put(&(i * 2).to_be_bytes(), &[1; 100]);
        }
        twins.put(b"long", &[2; 5000]);
        twins.check();
        twins
    };
    let problems = |twins: &Twins| {
        let mut findings = Findings::default();
        twins.tree().check(&mut findings).unwrap();
        findings.problems.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("; ")
    };
    let root = |twins: &Twins| *twins.pages.page(twins.state.root).unwrap();
    let child = |twins: &Twins, i: usize| Branch::new(&root(twins)).child(i);

    let mut twins = sound();
    twins.state.entries += 1;
    assert!(problems(&twins).contains("said to have 3002 entries and has 3001"), "{}", problems(&twins));

    let mut twins = sound();
    twins.state.depth += 1;
    assert!(problems(&twins).contains("expects a Branch here"), "{}", problems(&twins));

    let mut twins = sound();
    let (number, other) = (twins.state.root, child(&twins, 1));
    branch::set_child(&mut twins.pages.page_mut(number).unwrap(), 2, other);
    let found = problems(&twins);
    assert!(found.contains("in the tree twice"), "{found}");

    let mut twins = sound();
    let number = child(&twins, 3);
    let mut page = twins.pages.page_mut(number).unwrap();
    let stranger = leaf::Entry::new(&[0xff; 8], LeafValue::Inline(b""));
    leaf::build(&mut page, &[], &[stranger], 0);
    let found = problems(&twins);
    assert!(found.contains("its last key is not less than the separator behind it"), "{found}");

    let mut twins = sound();
    let leaf = child(&twins, 0);
    twins.pages.free(leaf).unwrap();
    assert!(problems(&twins).contains("not in use"));

    let mut twins = sound();
    let leaf = child(&twins, 4);
    twins.pages.page_mut(leaf).unwrap().all_mut()[header::COUNT_AT] += 1;
    assert!(problems(&twins).contains("slots end at"));

    let mut twins = sound();
    let r = heap::insert(&mut twins.pages, &mut twins.state.heap, &[1; 9000]).unwrap();
    assert!(!problems(&twins).is_empty(), "{r:?} belongs to nobody");
}

#[derive(Clone, Debug)]
enum Op {
    Put(u16, u8),
    Insert(u16, u8),
    Delete(u16),
    DeleteRange(u16, u16),
    Seek(u16),
    Change(u16),
    ForgetHint,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (any::<u16>(), any::<u8>()).prop_map(|(key, value)| Op::Put(key, value)),
        3 => (any::<u16>(), any::<u8>()).prop_map(|(key, value)| Op::Insert(key, value)),
        8 => any::<u16>().prop_map(Op::Delete),
        1 => (any::<u16>(), 0..3000u16).prop_map(|(low, width)| Op::DeleteRange(low, low.saturating_add(width))),
        3 => any::<u16>().prop_map(Op::Seek),
        1 => any::<u16>().prop_map(Op::Change),
        1 => Just(Op::ForgetHint),
    ]
}

/// The keys of one test: what number `i` stands for.
fn key_of(shape: u8, i: u16) -> Vec<u8> {
    match shape {
        // few short keys of few letters, zeros among them
        0 => {
            let size = 1 + i as usize % 7;
            (0..size).map(|at| [0, 1, b'a', 255][(i as usize >> (3 + 2 * at)) & 3]).collect()
        }
        // numbers behind a long prefix
        1 => [&[b'p'; 300][..], &(i % 4096).to_be_bytes()].concat(),
        // big keys
        2 => {
            let i = i % 256;
            let mut key = vec![b'k'; (i as usize * 37) % 2040];
            key.extend_from_slice(&i.to_be_bytes());
            key
        }
        // small ones beside big ones with a long prefix
        3 => match i % 3 {
            0 => (i % 999).to_be_bytes().to_vec(),
            1 => [&[b'm'; 1500][..], &(i % 777).to_be_bytes()].concat(),
            _ => [&[b'm'; 700][..], &[(i % 251) as u8; 40]].concat(),
        },
        // decimal numbers
        _ => format!("users/{}", i % 8192).into_bytes(),
    }
}

fn value_of(sizes: u8, value: u8) -> Vec<u8> {
    let size = match (sizes, value % 16) {
        (0, _) => 8,
        (_, 0) => 0,
        (_, 1..8) => value as usize,
        (1, _) => 40 * (value as usize % 13),
        (_, 8..12) => 508 + value as usize % 8,
        (_, 12..14) => 8150 + value as usize % 20,
        (_, 14) => 3000,
        _ => 20_000,
    };
    vec![value; size]
}

fn run(shape: u8, sizes: u8, ops: Vec<Op>) {
    let mut twins = Twins::new();
    for (i, op) in ops.into_iter().enumerate() {
        match op {
            Op::Put(key, value) => twins.put(&key_of(shape, key), &value_of(sizes, value)),
            Op::Insert(key, value) => {
                let (key, value) = (key_of(shape, key), value_of(sizes, value));
                let inserted = twins.tree_mut().insert(&key, &value).unwrap();
                assert_eq!(inserted, !twins.map.contains_key(&key));
                twins.map.entry(key).or_insert(value);
            }
            Op::Delete(key) => twins.delete(&key_of(shape, key)),
            Op::DeleteRange(low, high) => {
                let (a, b) = (key_of(shape, low), key_of(shape, high));
                let (low, high) = if a <= b { (a, b) } else { (b, a) };
                let keys: Vec<Vec<u8>> =
                    twins.map.range(low.clone()..high.clone()).map(|(key, _)| key.clone()).collect();
                let removed =
                    twins.tree_mut().delete_range(Bound::Included(&low), Bound::Excluded(&high)).unwrap();
                assert_eq!(removed, keys.len() as u64);
                for key in keys {
                    twins.map.remove(&key);
                }
            }
            Op::Seek(key) => {
                let key = key_of(shape, key);
                let tree = twins.tree();
                assert_eq!(tree.get(&key).unwrap(), twins.map.get(&key).map(Vec::as_slice));
                assert_eq!(tree.contains(&key).unwrap(), twins.map.contains_key(&key));
                let mut cursor = tree.cursor();
                let behind = twins.map.range(key.clone()..).next();
                assert_eq!(cursor.seek(&key).unwrap(), behind.is_some());
                assert_eq!(cursor.key(), behind.map_or(&b""[..], |(key, _)| key));
                let before = twins.map.range(..=key.clone()).next_back();
                assert_eq!(cursor.seek_at_most(&key).unwrap(), before.is_some());
                assert_eq!(cursor.key(), before.map_or(&b""[..], |(key, _)| key));
            }
            Op::Change(key) => {
                let key = key_of(shape, key);
                let changed = twins.tree_mut().change_in_place(&key, |value| value.fill(0xcc)).unwrap();
                match twins.map.get_mut(&key) {
                    Some(value) if changed => value.fill(0xcc),
                    Some(value) => assert!(value.len() > INLINE_VALUE_SIZE_MAX),
                    None => assert!(!changed),
                }
            }
            Op::ForgetHint => twins.hint = InsertHint::default(),
        }
        if i % 64 == 63 {
            twins.check();
        }
    }
    twins.check();
    let keys: Vec<Vec<u8>> = twins.map.keys().cloned().collect();
    for key in keys {
        twins.delete(&key);
    }
    twins.check();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { ProptestConfig::default().cases },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn equals_an_ordered_map(
        shape in 0..5u8,
        sizes in 0..3u8,
        ops in prop::collection::vec(op(), 0..if cfg!(miri) { 40 } else { 700 }),
    ) {
        run(shape, sizes, ops);
    }

    #[cfg_attr(miri, ignore = "slow, and there is nothing unsafe in it")]
    /// Any bytes changed in any page: it is noticed, or what comes of it is an error or another tree, and never a panic
    /// or an endless walk.
    #[test]
    fn damage_never_panics(
        seed in any::<u64>(),
        shape in 0..5u8,
        flips in prop::collection::vec((any::<u16>(), any::<u16>(), any::<u8>(), any::<bool>()), 1..6),
    ) {
        let mut chance = Chance(seed);
        let mut twins = Twins::new();
        for _ in 0..sized(800) {
            let key = key_of(shape, chance.next() as u16);
            let value = value_of(1, chance.next() as u8);
            twins.put(&key, &value);
        }
        let numbers = twins.pages.numbers();
        for (page, at, byte, in_front) in flips {
            let number = numbers[page as usize % numbers.len()];
            // Half of them where the structure is.
            let at = if in_front { 16 + at as usize % 120 } else { 16 + at as usize % (PAGE_BODY_SIZE + 16) };
            twins.pages.page_mut(number).unwrap().all_mut()[at] = byte;
        }
        let pages = Validating(twins.pages);
        let mut state = twins.state;
        let mut findings = Findings::default();
        let _ = Tree::new(&pages, &state).check(&mut findings);
        let mut steps = 0;
        let mut cursor = Tree::new(&pages, &state).cursor();
        while let Ok(true) = cursor.next() {
            let _ = cursor.value();
            steps += 1;
        }
        let mut cursor = Tree::new(&pages, &state).cursor();
        while let Ok(true) = cursor.prev() {
            steps += 1;
        }
        prop_assert!(steps <= 4 * 1100);
        let mut pages = pages;
        let mut hint = InsertHint::default();
        for _ in 0..300 {
            let key = key_of(shape, chance.next() as u16);
            let value = value_of(1, chance.next() as u8);
            let mut tree = TreeMut::new(&mut pages, &mut state, &mut hint);
            match chance.next() % 4 {
                0 => drop(tree.delete(&key)),
                1 => drop(tree.read().get(&key)),
                _ => drop(tree.put(&key, &value)),
            }
        }
        let _ = TreeMut::new(&mut pages, &mut state, &mut hint).delete_range(Bound::Unbounded, Bound::Included(b"m"));
        let _ = TreeMut::new(&mut pages, &mut state, &mut hint).clear();
    }

    #[cfg_attr(miri, ignore = "slow, and there is nothing unsafe in it")]
    /// Trees made of pages that are each sound and do not belong together.
    #[test]
    fn sound_pages_in_wrong_places_never_panic(
        seed in any::<u64>(),
        shape in 0..5u8,
        swaps in prop::collection::vec((any::<u16>(), any::<u16>()), 1..4),
    ) {
        let mut chance = Chance(seed);
        let mut twins = Twins::new();
        for _ in 0..sized(1200) {
            let key = key_of(shape, chance.next() as u16);
            twins.put(&key, &value_of(1, chance.next() as u8));
        }
        let numbers = twins.pages.numbers();
        for (from, to) in swaps {
            let (from, to) = (numbers[from as usize % numbers.len()], numbers[to as usize % numbers.len()]);
            let copy = *twins.pages.page(from).unwrap();
            twins.pages.page_mut(to).unwrap().all_mut()[8..].copy_from_slice(&copy[8..]);
        }
        let mut cursor = twins.tree().cursor();
        while let Ok(true) = cursor.next() {}
        let mut cursor = twins.tree().cursor();
        while let Ok(true) = cursor.prev() {}
        let mut findings = Findings::default();
        let _ = twins.tree().check(&mut findings);
        for _ in 0..600 {
            let key = key_of(shape, chance.next() as u16);
            let value = value_of(1, chance.next() as u8);
            let mut tree = twins.tree_mut();
            match chance.next() % 3 {
                0 => drop(tree.delete(&key)),
                _ => drop(tree.put(&key, &value)),
            }
        }
        let _ = twins.tree_mut().clear();
    }
}

/// Pages as they come from disk: each is validated when it is used.
struct Validating(PagesInMemory);

impl Pages for Validating {
    fn page(&self, number: PageNumber) -> Result<&Page> {
        let page = self.0.page(number)?;
        crate::page::validate(number, page)?;
        Ok(page)
    }

    fn run(&self, number: PageNumber) -> Result<&[u8]> {
        self.0.run(number)
    }
}

impl PagesMut for Validating {
    fn page_mut(&mut self, number: PageNumber) -> Result<PageMut<'_>> {
        // A page that was just allocated is not built yet.
        if self.0.page(number)?[header::COUNT_AT..][..2] != [0, 0] {
            self.page(number)?;
        }
        self.0.page_mut(number)
    }

    fn allocate(&mut self, kind: header::PageKind) -> Result<PageNumber> {
        self.0.allocate(kind)
    }

    fn free(&mut self, number: PageNumber) -> Result<()> {
        self.0.free(number)
    }

    fn write_run(&mut self, length: u64, value: &mut dyn RunSource) -> Result<PageNumber> {
        self.0.write_run(length, value)
    }

    fn free_run(&mut self, number: PageNumber) -> Result<()> {
        self.0.free_run(number)
    }
}
