//! Multi-value trees against an ordered map of ordered sets, and damaged pages.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::format::PAGE_SIZE;
use crate::pages_in_memory::PagesInMemory;
use crate::visit::Findings;

type Bytes = Vec<u8>;

#[derive(Default)]
struct Multi {
    pages: PagesInMemory,
    state: MultiState,
    hint: InsertHint,
    model: BTreeMap<Bytes, BTreeSet<Bytes>>,
}

impl Multi {
    fn new() -> Multi {
        Multi { pages: PagesInMemory::new(), ..Multi::default() }
    }

    fn tree(&self) -> MultiTree<'_, PagesInMemory> {
        MultiTree::new(&self.pages, &self.state)
    }

    fn tree_mut(&mut self) -> MultiTreeMut<'_, PagesInMemory> {
        MultiTreeMut::new(&mut self.pages, &mut self.state, &mut self.hint)
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        let new = self.tree_mut().add(key, value).unwrap();
        assert_eq!(new, self.model.entry(key.to_vec()).or_default().insert(value.to_vec()));
    }

    fn remove(&mut self, key: &[u8], value: &[u8]) {
        let found = self.tree_mut().remove(key, value).unwrap();
        let expected = match self.model.get_mut(key) {
            Some(values) => values.remove(value),
            None => false,
        };
        self.model.retain(|_, values| !values.is_empty());
        assert_eq!(found, expected);
    }

    fn delete(&mut self, key: &[u8]) {
        let count = self.tree_mut().delete(key).unwrap();
        assert_eq!(count, self.model.remove(key).map_or(0, |values| values.len()) as u64);
    }

    fn verify(&self) {
        let expected: Vec<(Bytes, Bytes)> = self
            .model
            .iter()
            .flat_map(|(key, values)| values.iter().map(|value| (key.clone(), value.clone())))
            .collect();
        assert_eq!(self.state.values, expected.len() as u64);
        let owned = |cursor: &MultiCursor<'_, PagesInMemory>| {
            cursor.current().map(|(key, value)| (key.to_vec(), value.to_vec()))
        };
        let mut cursor = self.tree().cursor();
        let mut walked = Vec::new();
        while cursor.next().unwrap() {
            walked.extend(owned(&cursor));
        }
        assert!(walked == expected);
        assert!(!cursor.next().unwrap() && owned(&cursor).is_none());
        walked.clear();
        while cursor.prev().unwrap() {
            walked.extend(owned(&cursor));
        }
        walked.reverse();
        assert!(walked == expected);
        for (key, values) in &self.model {
            assert_eq!(self.tree().count(key).unwrap(), values.len() as u64);
            let mut cursor = self.tree().values(key).unwrap();
            for value in values {
                assert_eq!(cursor.next().unwrap(), Some(&value[..]));
            }
            assert_eq!(cursor.next().unwrap(), None);
            assert_eq!(cursor.prev().unwrap(), values.last().map(|value| &value[..]));
            assert_eq!(cursor.first().unwrap(), values.first().map(|value| &value[..]));
            assert_eq!(cursor.prev().unwrap(), None);
        }
        self.pages.validate_all().unwrap();
        let mut findings = Findings::default();
        self.tree().check(&mut findings).unwrap();
        assert_eq!(findings.problems, []);
        assert_eq!(findings.pages, self.pages.in_use());
        assert_eq!(MultiState::decode(&self.state.encode()), Some(self.state));
    }

    fn verify_at(&self, key: &[u8], value: &[u8]) {
        let values = self.model.get(key).cloned().unwrap_or_default();
        assert_eq!(self.tree().contains(key, value).unwrap(), values.contains(value));
        let mut cursor = self.tree().values(key).unwrap();
        let next = values.range(value.to_vec()..).next().map(|value| &value[..]);
        assert_eq!(cursor.seek(value).unwrap(), next);
        let previous = values.range(..=value.to_vec()).next_back().map(|value| &value[..]);
        assert_eq!(cursor.seek_at_most(value).unwrap(), previous);
        let mut cursor = self.tree().cursor();
        let next = self.model.range(key.to_vec()..).next();
        assert_eq!(cursor.seek(key).unwrap(), next.is_some());
        let first = |(key, values): (_, &BTreeSet<Bytes>)| (key, values.first().cloned().unwrap());
        let current =
            |cursor: &MultiCursor<'_, _>| cursor.current().map(|(key, value)| (key.to_vec(), value.to_vec()));
        assert_eq!(current(&cursor), next.map(|(key, values)| first((key.clone(), values))));
        assert_eq!(cursor.seek_at_most(key).unwrap(), self.model.range(..=key.to_vec()).next().is_some());
        let last = |(key, values): (&Bytes, &BTreeSet<Bytes>)| (key.clone(), values.last().cloned().unwrap());
        assert_eq!(current(&cursor), self.model.range(..=key.to_vec()).next_back().map(last));
    }
}

#[test]
fn few_values_lie_beside_their_key_and_many_in_a_tree_of_their_own() {
    let mut multi = Multi::new();
    for i in 0..2000u32 {
        multi.add(b"many", &i.to_be_bytes());
        multi.add(&i.to_be_bytes(), b"one");
        if i == 60 {
            assert_eq!(multi.state.nested_leaf_pages, 0);
        }
    }
    assert!(multi.state.nested_leaf_pages > 1);
    multi.verify();
    for i in 0..1990u32 {
        multi.remove(b"many", &(i * 7 % 2000).to_be_bytes());
    }
    assert_eq!(multi.state.nested_leaf_pages, 0, "ten values are packed again");
    multi.verify();
    multi.delete(b"many");
    multi.verify();
}

#[test]
fn long_values_and_clearing() {
    let mut multi = Multi::new();
    for i in 0..300usize {
        let size = [1, 100, 390, 395, 396, 500, KEY_SIZE_MAX][i % 7];
        let value: Bytes = (0..size).map(|at| (i + at) as u8).collect();
        multi.add(&[b'k', (i % 11) as u8], &value);
    }
    multi.verify();
    multi.delete(&[b'k', 3]);
    multi.delete(b"absent");
    multi.verify();
    multi.tree_mut().clear().unwrap();
    multi.model.clear();
    multi.verify();
    assert!(multi.pages.in_use().is_empty());
}

#[test]
#[cfg_attr(miri, ignore = "too slow")]
fn clearing_takes_more_nested_trees_than_one_batch() {
    let mut multi = Multi::new();
    for i in 0..1500u32 {
        multi.add(&i.to_be_bytes(), &[7; 401]);
    }
    multi.verify();
    multi.tree_mut().clear().unwrap();
    assert!(multi.pages.in_use().is_empty());
}

#[test]
fn bad_keys_and_values_are_refused() {
    let mut multi = Multi::new();
    multi.add(b"key", b"value");
    let long = vec![1; KEY_SIZE_MAX + 1];
    assert!(matches!(multi.tree_mut().add(b"", b"value"), Err(Error::KeyEmpty)));
    assert!(matches!(multi.tree_mut().add(b"key", b""), Err(Error::KeyEmpty)));
    assert!(matches!(multi.tree_mut().add(&long, b"value"), Err(Error::KeyTooLong { .. })));
    assert!(matches!(multi.tree_mut().add(b"key", &long), Err(Error::ValueTooLong { .. })));
    assert!(matches!(multi.tree_mut().add(b"key2", &long), Err(Error::ValueTooLong { .. })));
    multi.verify();
}

#[derive(Clone, Debug)]
enum Step {
    Add(u8, Bytes),
    AddMany(u8, u8, usize),
    Remove(u8, Bytes),
    RemoveMany(u8, u8),
    Delete(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let value = prop_oneof![
        6 => prop::collection::vec(0u8..4, 1..5),
        1 => (any::<u8>(), 1usize..700).prop_map(|(byte, size)| vec![byte; size])
    ];
    let step = prop_oneof![
        6 => (0u8..6, value.clone()).prop_map(|(key, value)| Step::Add(key, value)),
        2 => (0u8..6, 0u8..100, prop_oneof![Just(2usize), 1usize..60])
            .prop_map(|(key, count, size)| Step::AddMany(key, count, size)),
        4 => (0u8..6, value).prop_map(|(key, value)| Step::Remove(key, value)),
        1 => (0u8..6, 0u8..100).prop_map(|(key, count)| Step::RemoveMany(key, count)),
        1 => (0u8..6).prop_map(Step::Delete),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 15 } else { 120 })
}

fn run(multi: &mut Multi, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Add(key, value) => multi.add(&[*key], value),
            Step::AddMany(key, count, size) => {
                for i in 0..*count {
                    multi.add(&[*key], &vec![i; *size]);
                }
            }
            Step::Remove(key, value) => multi.remove(&[*key], value),
            Step::RemoveMany(key, count) => {
                let values: Vec<Bytes> = multi
                    .model
                    .get(&[*key][..])
                    .into_iter()
                    .flatten()
                    .take(*count as usize)
                    .cloned()
                    .collect();
                for value in values {
                    multi.remove(&[*key], &value);
                }
            }
            Step::Delete(key) => multi.delete(&[*key]),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { ProptestConfig::default().cases },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_multi_value_tree_is_an_ordered_map_of_sets(steps in steps()) {
        let mut multi = Multi::new();
        for steps in steps.chunks(10) {
            run(&mut multi, steps);
            multi.verify();
            for key in 0..7u8 {
                multi.verify_at(&[key], &[2, 1]);
            }
        }
        multi.tree_mut().clear().unwrap();
        prop_assert!(multi.pages.in_use().is_empty());
    }

    /// Whatever passes `validate` is safe to use, right or wrong.
    #[test]
    fn damaged_pages_cause_errors_only(
        steps in steps(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 16..PAGE_SIZE, 0u8..8), 1..40),
    ) {
        let mut multi = Multi::new();
        run(&mut multi, &steps);
        let mut numbers = Vec::new();
        for number in 1..1000 {
            if multi.pages.page(PageNumber(number)).is_ok() {
                numbers.push(PageNumber(number));
            }
        }
        for (at, byte, bit) in damage {
            if numbers.is_empty() { break }
            let number = numbers[at.index(numbers.len())];
            let before = *multi.pages.page(number).unwrap();
            multi.pages.page_mut(number).unwrap().all_mut()[byte] ^= 1 << bit;
            if crate::page::validate(number, multi.pages.page(number).unwrap()).is_err() {
                *multi.pages.page_mut(number).unwrap().all_mut() = before;
            }
        }
        multi.tree().check(&mut Findings::default()).unwrap();
        let mut cursor = multi.tree().cursor();
        while let Ok(true) = cursor.next() {}
        while let Ok(true) = cursor.prev() {}
        for key in 0..6u8 {
            let _ = multi.tree().count(&[key]);
            for value in 0..40u8 {
                let _ = multi.tree().contains(&[key], &[value; 2]);
                let _ = multi.tree_mut().add(&[key], &[value; 20]);
                let _ = multi.tree_mut().remove(&[key], &[value; 2]);
            }
            if key % 2 == 0 {
                let _ = multi.tree_mut().delete(&[key]);
            }
        }
        let _ = multi.tree_mut().clear();
    }
}
