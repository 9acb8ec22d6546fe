//! Fixed-size trees against a plain ordered map, and damaged pages.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::format::PAGE_SIZE;
use crate::page::fixed::leaf_capacity;
use crate::pages::PagesMut;
use crate::pages_in_memory::PagesInMemory;
use crate::visit::Findings;

struct Tree {
    pages: PagesInMemory,
    state: FixedState,
    model: BTreeMap<i64, Vec<u8>>,
}

fn value(seed: i64, size: usize) -> Vec<u8> {
    (0..size).map(|i| (seed.wrapping_mul(31) >> (i % 8 * 8)) as u8 ^ i as u8).collect()
}

impl Tree {
    fn new(value_size: usize) -> Tree {
        Tree {
            pages: PagesInMemory::new(),
            state: FixedState::new(value_size).unwrap(),
            model: BTreeMap::new(),
        }
    }

    fn put(&mut self, key: i64, seed: i64) {
        let value = value(seed, self.state.value_size());
        let new = put(&mut self.pages, &mut self.state, key, &value).unwrap();
        assert_eq!(new, self.model.insert(key, value).is_none());
    }

    fn delete(&mut self, key: i64) {
        let found = delete(&mut self.pages, &mut self.state, key).unwrap();
        assert_eq!(found, self.model.remove(&key).is_some());
    }

    fn delete_range(&mut self, from: i64, to: i64) {
        let count = delete_range(&mut self.pages, &mut self.state, from, to).unwrap();
        let before = self.model.len();
        self.model.retain(|&key, _| key < from || key > to);
        assert_eq!(count, (before - self.model.len()) as u64);
    }

    fn cursor(&self) -> FixedCursor<'_, PagesInMemory> {
        FixedCursor::new(&self.pages, &self.state)
    }

    fn verify(&self) {
        assert_eq!(self.state.entries(), self.model.len() as u64);
        let expected: Vec<(i64, &[u8])> = self.model.iter().map(|(&key, value)| (key, &value[..])).collect();
        let mut cursor = self.cursor();
        let forward: Vec<_> = std::iter::from_fn(|| cursor.next().unwrap()).collect();
        assert!(forward == expected);
        assert_eq!(cursor.next().unwrap(), None);
        let mut backward: Vec<_> = std::iter::from_fn(|| cursor.previous().unwrap()).collect();
        backward.reverse();
        assert!(backward == expected);
        assert_eq!(cursor.next().unwrap(), expected.first().copied());
        self.pages.validate_all().unwrap();
        let mut findings = Findings::default();
        let mut visited = Vec::new();
        let on_entry = &mut |key, value: &[u8]| visited.push((key, value.to_vec()));
        visit(&self.pages, &self.state, on_entry, &mut findings).unwrap();
        assert_eq!(findings.problems, []);
        assert_eq!(findings.pages, self.pages.in_use());
        assert!(visited.iter().map(|(key, value)| (*key, &value[..])).eq(expected));
        let mut bytes = Vec::new();
        self.state.encode(&mut bytes);
        assert!(bytes.len() <= EMBEDDED_AT + EMBEDDED_SIZE_MAX);
        let (mut decoded, size) = FixedState::decode(&bytes).unwrap();
        assert_eq!(size, bytes.len());
        (decoded.last_leaf, decoded.last_key) = (self.state.last_leaf, self.state.last_key);
        assert_eq!(decoded, self.state);
        assert!((0..bytes.len()).all(|cut| FixedState::decode(&bytes[..cut]).is_none()));
    }

    fn verify_at(&self, key: i64) {
        let expected = |found: Option<(&i64, &Vec<u8>)>| found.map(|(&key, value)| (key, value.clone()));
        let found = |entry: Option<(i64, &[u8])>| entry.map(|(key, value)| (key, value.to_vec()));
        assert_eq!(get(&self.pages, &self.state, key).unwrap(), self.model.get(&key).map(|value| &value[..]));
        let mut cursor = self.cursor();
        assert_eq!(found(cursor.seek(key).unwrap()), expected(self.model.range(key..).next()));
        assert_eq!(found(cursor.previous().unwrap()), expected(self.model.range(..key).next_back()));
        assert_eq!(found(cursor.seek_back(key).unwrap()), expected(self.model.range(..=key).next_back()));
        if key < i64::MAX {
            assert_eq!(found(cursor.next().unwrap()), expected(self.model.range(key + 1..).next()));
        }
    }
}

#[test]
fn a_small_tree_takes_no_page() {
    for (size, capacity) in [(0, 16), (8, 8), (24, 4), (128, 0)] {
        let mut tree = Tree::new(size);
        for key in 0..capacity {
            tree.put(-key, key);
            tree.verify();
        }
        assert!(tree.pages.in_use().is_empty());
        tree.put(7, 7);
        tree.verify();
        assert_eq!(tree.pages.in_use().len(), 1);
        tree.delete_range(-capacity, 7 - capacity.min(1));
        tree.delete(7);
        tree.verify();
        assert!(tree.pages.in_use().is_empty());
    }
    assert!(FixedState::new(129).is_err());
}

#[test]
fn ascending_keys_leave_full_leaves() {
    let mut tree = Tree::new(8);
    let leaves = if cfg!(miri) { 3 } else { 600 };
    let count = leaf_capacity(8) as i64 * leaves;
    for key in 0..count {
        tree.put(key, key);
    }
    assert_eq!(tree.state.leaf_pages, leaves as u64);
    tree.verify();
    assert_eq!(tree.state.depth(), if cfg!(miri) { 2 } else { 3 });
    for key in [i64::MIN, -1, 0, 509, 510, 511, count - 1, count, i64::MAX] {
        tree.verify_at(key);
    }
    tree.delete_range(1000, count - 1000);
    tree.verify();
    tree.delete_range(i64::MIN, i64::MAX);
    tree.verify();
    assert!(tree.pages.in_use().is_empty());
}

#[test]
#[cfg_attr(miri, ignore = "too slow")]
fn a_deep_tree_grows_and_shrinks() {
    let mut tree = Tree::new(128);
    let mut key = 1i64;
    let mut keys = Vec::new();
    for _ in 0..60_000 {
        key = key.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        keys.push(key >> 3);
        tree.put(key >> 3, key);
    }
    assert_eq!(tree.state.depth(), 3);
    tree.verify();
    for key in keys.iter().step_by(777) {
        tree.verify_at(*key);
        tree.verify_at(*key + 1);
    }
    for (i, key) in keys.into_iter().enumerate() {
        tree.delete(key);
        if i % 7919 == 0 {
            tree.verify();
        }
    }
    tree.verify();
    assert!(tree.pages.in_use().is_empty());
}

#[test]
#[cfg_attr(miri, ignore = "too slow")]
fn a_queue_keeps_few_pages() {
    let mut tree = Tree::new(16);
    for key in 0..5000 {
        tree.put(key, key);
        if key >= 100 {
            tree.delete(key - 100);
        }
    }
    tree.verify();
    assert!(tree.state.leaf_pages <= 2);
}

#[test]
fn clear_gives_all_pages_back() {
    let mut tree = Tree::new(64);
    for key in 0..500 {
        tree.put(key * 77 % 501, key);
    }
    clear(&mut tree.pages, &mut tree.state).unwrap();
    tree.model.clear();
    tree.verify();
    assert!(tree.pages.in_use().is_empty());
}

#[test]
fn a_value_of_another_size_is_refused() {
    let mut tree = Tree::new(8);
    tree.put(1, 1);
    for size in [0, 7, 9] {
        let refused = put(&mut tree.pages, &mut tree.state, 2, &vec![0; size]);
        assert!(matches!(refused, Err(Error::Invalid(_))));
    }
    tree.verify();
}

#[derive(Clone, Debug)]
enum Step {
    Put(i64),
    Ascending(i64, u8),
    Delete(i64),
    DeleteRange(i64, i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = prop_oneof![8 => -1000i64..1000, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
    let step = prop_oneof![
        6 => key.clone().prop_map(Step::Put),
        3 => (key.clone(), 1u8..200).prop_map(|(from, count)| Step::Ascending(from, count)),
        4 => key.clone().prop_map(Step::Delete),
        1 => (key, 0i64..400).prop_map(|(from, size)| Step::DeleteRange(from, from.saturating_add(size))),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 20 } else { 150 })
}

fn run(tree: &mut Tree, steps: &[Step]) {
    for (seed, step) in steps.iter().enumerate() {
        match *step {
            Step::Put(key) => tree.put(key, seed as i64),
            Step::Ascending(from, count) => {
                for i in 0..count as i64 {
                    tree.put(from.saturating_add(i), seed as i64);
                }
            }
            Step::Delete(key) => tree.delete(key),
            Step::DeleteRange(from, to) => tree.delete_range(from, to),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { ProptestConfig::default().cases },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_fixed_size_tree_is_an_ordered_map(
        value_size in prop_oneof![Just(0), Just(8), Just(16), Just(128), 0usize..=128],
        steps in steps(),
    ) {
        let mut tree = Tree::new(value_size);
        for steps in steps.chunks(10) {
            run(&mut tree, steps);
            tree.verify();
            for key in [i64::MIN, -1001, -500, 0, 1, 77, 999, i64::MAX] {
                tree.verify_at(key);
            }
        }
        for key in tree.model.keys().copied().collect::<Vec<_>>() {
            tree.delete(key);
        }
        tree.verify();
        prop_assert!(tree.pages.in_use().is_empty());
    }

    /// Whatever passes `validate` is safe to use, right or wrong.
    #[test]
    fn damaged_pages_cause_errors_only(
        steps in steps(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 16..PAGE_SIZE, 0u8..8), 1..20),
        low_damage in prop::collection::vec((any::<prop::sample::Index>(), 16..22usize, 0u8..8), 0..4),
    ) {
        let mut tree = Tree::new(120);
        run(&mut tree, &steps);
        let mut numbers = Vec::new();
        for number in 1..1000 {
            if tree.pages.page(PageNumber(number)).is_ok() {
                numbers.push(PageNumber(number));
            }
        }
        for (at, byte, bit) in damage.into_iter().chain(low_damage) {
            if numbers.is_empty() { break }
            let number = numbers[at.index(numbers.len())];
            let before = *tree.pages.page(number).unwrap();
            tree.pages.page_mut(number).unwrap().all_mut()[byte] ^= 1 << bit;
            if crate::page::validate(number, tree.pages.page(number).unwrap()).is_err() {
                *tree.pages.page_mut(number).unwrap().all_mut() = before;
            }
        }
        visit(&tree.pages, &tree.state, &mut |_, _| {}, &mut Findings::default()).unwrap();
        let mut cursor = tree.cursor();
        while let Ok(Some(_)) = cursor.next() {}
        while let Ok(Some(_)) = cursor.previous() {}
        let (pages, state) = (&mut tree.pages, &mut tree.state);
        for key in -1000..1000 {
            let _ = get(pages, state, key);
            let _ = match key % 3 {
                0 => put(pages, state, key, &[1; 120]).map(drop),
                1 => delete(pages, state, key).map(drop),
                _ => delete_range(pages, state, key, key + 3).map(drop),
            };
        }
        let _ = clear(pages, state);
    }
}
