//! The heap against a plain map of values, its packing, and damaged pages.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::format::PAGE_SIZE;
use crate::pages_in_memory::PagesInMemory;
use crate::visit::Findings;

struct Heap {
    pages: PagesInMemory,
    state: HeapState,
    model: BTreeMap<ValueRef, Vec<u8>>,
}

impl Heap {
    fn new() -> Heap {
        Heap { pages: PagesInMemory::new(), state: HeapState::default(), model: BTreeMap::new() }
    }

    fn insert(&mut self, value: Vec<u8>) -> ValueRef {
        let r = insert(&mut self.pages, &mut self.state, &value).unwrap();
        assert!(self.model.insert(r, value).is_none(), "{r:?} given out twice");
        r
    }

    fn update(&mut self, r: ValueRef, value: Vec<u8>) -> ValueRef {
        let now = update(&mut self.pages, &mut self.state, r, &value).unwrap();
        self.model.remove(&r).unwrap();
        assert!(self.model.insert(now, value).is_none(), "{now:?} given out twice");
        now
    }

    fn remove(&mut self, r: ValueRef) {
        remove(&mut self.pages, &mut self.state, r).unwrap();
        self.model.remove(&r).unwrap();
    }

    fn findings(&self) -> Findings {
        let mut findings = Findings::default();
        let mut refs: Vec<ValueRef> = self.model.keys().copied().collect();
        check(&self.pages, &self.state, &mut refs, &mut findings).unwrap();
        findings
    }

    /// All values are there, nothing else is, and every page is sound.
    fn verify(&self) {
        for (&r, value) in &self.model {
            assert_eq!(get(&self.pages, r).unwrap(), value);
            assert_eq!(size(&self.pages, r).unwrap(), value.len() as u64);
        }
        self.pages.validate_all().unwrap();
        let findings = self.findings();
        assert_eq!(findings.problems, []);
        assert_eq!(findings.pages, self.pages.in_use());
        assert_eq!(HeapState::decode(&self.state.encode()), self.state);
    }

    /// Which part of the section pages' bytes are values.
    fn fill(&self) -> f64 {
        let bytes: usize =
            self.model.values().map(Vec::len).filter(|&size| size <= SECTION_VALUE_SIZE_MAX).sum();
        bytes as f64 / (self.state.section_pages as f64 * PAGE_SIZE as f64)
    }
}

fn value(seed: usize, size: usize) -> Vec<u8> {
    (0..size).map(|i| (seed * 31 + i * 7 + i / 256) as u8).collect()
}

/// A plain generator, so that the packing tests need no crate and always see the same sizes.
fn sizes(min: usize, max: usize) -> impl Iterator<Item = usize> {
    let mut x = 88172645463325252u64;
    std::iter::repeat_with(move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        min + (x % (max - min) as u64) as usize
    })
}

#[test]
fn values_of_every_size_come_back() {
    let mut heap = Heap::new();
    for size in [0, 1, 2, 511, 513, SECTION_VALUE_SIZE_MAX - 1, SECTION_VALUE_SIZE_MAX] {
        assert!(!heap.insert(value(size, size)).is_run());
    }
    for size in [SECTION_VALUE_SIZE_MAX + 1, 100_000] {
        assert!(heap.insert(value(size, size)).is_run());
    }
    heap.verify();
    for r in heap.model.keys().copied().collect::<Vec<_>>() {
        heap.remove(r);
        heap.verify();
    }
    assert_eq!((heap.state.section_pages, heap.state.runs), (0, 0));
    assert_eq!(heap.state, HeapState::default());
}

#[test]
#[cfg_attr(miri, ignore = "too slow")]
fn documents_of_one_size_fill_pages() {
    let mut heap = Heap::new();
    for i in 0..7000 {
        heap.insert(value(i, 1126));
    }
    assert_eq!(heap.state.section_pages, 1000);
    assert!(heap.fill() > 0.95, "{}", heap.fill());
    heap.verify();
}

#[test]
#[cfg_attr(miri, ignore = "too slow")]
fn values_of_mixed_sizes_fill_pages() {
    for (min, max, expected) in [(600, 8000, 0.87), (600, 3000, 0.93), (100, 1000, 0.93), (2000, 8100, 0.76)]
    {
        let mut heap = Heap::new();
        for (i, size) in sizes(min, max).take(2000).enumerate() {
            heap.insert(value(i, size));
        }
        assert!(heap.fill() > expected, "{min}..{max}: {}", heap.fill());
        heap.verify();
    }
}

#[test]
#[cfg_attr(miri, ignore = "too slow")]
fn room_of_removed_values_is_used_before_new_pages() {
    let mut heap = Heap::new();
    let refs: Vec<ValueRef> = (0..7000).map(|i| heap.insert(value(i, 1126))).collect();
    let pages = heap.state.section_pages;
    for chunk in refs.chunks(7) {
        for &r in &chunk[..4] {
            heap.remove(r);
        }
    }
    heap.verify();
    for i in 0..4000 {
        heap.insert(value(i, 1126));
    }
    assert_eq!(heap.state.section_pages, pages);
    heap.verify();
}

#[test]
fn an_update_that_fits_its_page_stays_there() {
    let mut heap = Heap::new();
    let refs: Vec<ValueRef> = (0..7).map(|i| heap.insert(value(i, 1126))).collect();
    assert_eq!(heap.update(refs[3], value(9, 1126 + 240)), refs[3]);
    heap.verify();
    assert_eq!(heap.update(refs[3], value(10, 20)), refs[3]);
    heap.verify();
    assert_eq!(heap.update(refs[0], value(11, 2400)), refs[0]);
    heap.verify();
    let moved = heap.update(refs[1], value(12, 3000));
    assert_ne!(moved.page(), refs[1].page());
    heap.verify();
    let run = heap.update(moved, value(13, 30_000));
    assert!(run.is_run());
    heap.verify();
    assert!(!heap.update(run, value(14, 700)).is_run());
    heap.verify();
}

#[test]
fn a_stream_is_stored_like_a_slice() {
    let mut heap = Heap::new();
    for size in [0, 700, SECTION_VALUE_SIZE_MAX, 50_000] {
        let bytes = value(size, size);
        let mut source = &bytes[..];
        let r = insert_stream(&mut heap.pages, &mut heap.state, size as u64, &mut source).unwrap();
        heap.model.insert(r, bytes);
    }
    heap.verify();
    let before = heap.state;
    let mut short = &[0; 10][..];
    assert!(insert_stream(&mut heap.pages, &mut heap.state, 11, &mut short).is_err());
    let too_long = insert_stream(&mut heap.pages, &mut heap.state, VALUE_SIZE_MAX + 1, &mut short);
    assert!(matches!(too_long, Err(Error::ValueTooLong { .. })));
    assert_eq!(heap.state, before);
    heap.verify();
}

#[test]
fn check_notices_what_is_lost_or_doubled() {
    let mut heap = Heap::new();
    let refs: Vec<ValueRef> = (0..20).map(|i| heap.insert(value(i, 1126))).collect();
    heap.verify();
    let problems = |refs: &[ValueRef], state: &HeapState| {
        let mut findings = Findings::default();
        check(&heap.pages, state, &mut refs.to_vec(), &mut findings).unwrap();
        findings.problems.len()
    };
    assert_eq!(problems(&refs[1..], &heap.state), 1);
    assert_eq!(problems(&[&refs[..], &refs[..1]].concat(), &heap.state), 1);
    let mut state = heap.state;
    state.section_pages += 1;
    assert_eq!(problems(&refs, &state), 1);
    state = heap.state;
    state.half = refs[0].page();
    assert!(problems(&refs, &state) > 0);
}

#[derive(Clone, Debug)]
enum Step {
    Insert(usize),
    Update(prop::sample::Index, usize),
    Remove(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![
        4 => 0usize..600,
        8 => 600usize..2500,
        2 => 2500usize..=SECTION_VALUE_SIZE_MAX,
        1 => SECTION_VALUE_SIZE_MAX..20_000
    ];
    let step = prop_oneof![
        3 => size.clone().prop_map(Step::Insert),
        2 => (any::<prop::sample::Index>(), size).prop_map(|(at, size)| Step::Update(at, size)),
        2 => any::<prop::sample::Index>().prop_map(Step::Remove)
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 40 } else { 200 })
}

fn run(heap: &mut Heap, steps: &[Step]) {
    for (seed, step) in steps.iter().enumerate() {
        let pick = |at: &prop::sample::Index| *at.get(&heap.model.keys().collect::<Vec<_>>()).to_owned();
        match step {
            Step::Insert(size) => drop(heap.insert(value(seed, *size))),
            _ if heap.model.is_empty() => {}
            Step::Update(at, size) => drop(heap.update(pick(at), value(seed, *size))),
            Step::Remove(at) => heap.remove(pick(at)),
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
    fn a_heap_is_a_map(steps in steps()) {
        let mut heap = Heap::new();
        for steps in steps.chunks(20) {
            run(&mut heap, steps);
            heap.verify();
        }
        for r in heap.model.keys().copied().collect::<Vec<_>>() {
            heap.remove(r);
        }
        heap.verify();
        prop_assert!(heap.pages.in_use().is_empty());
    }

    /// Whatever passes `validate` is safe to use, right or wrong.
    #[test]
    fn damaged_pages_cause_errors_only(
        steps in steps(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 17..PAGE_SIZE, 0u8..8), 1..20),
        low_damage in prop::collection::vec((any::<prop::sample::Index>(), 17..80usize, 0u8..8), 0..4),
    ) {
        let mut heap = Heap::new();
        run(&mut heap, &steps);
        let mut refs: Vec<ValueRef> = heap.model.keys().copied().collect();
        for (at, byte, bit) in damage.into_iter().chain(low_damage) {
            let Some(r) = refs.iter().copied().filter(|r| !r.is_run()).nth(at.index(refs.len().max(1))) else { continue };
            let before = *heap.pages.page(r.page()).unwrap();
            heap.pages.page_mut(r.page()).unwrap().all_mut()[byte] ^= 1 << bit;
            if crate::page::validate(r.page(), heap.pages.page(r.page()).unwrap()).is_err() {
                *heap.pages.page_mut(r.page()).unwrap().all_mut() = before;
            }
        }
        check(&heap.pages, &heap.state, &mut refs, &mut Findings::default()).unwrap();
        for (i, &r) in refs.iter().enumerate() {
            let _ = get(&heap.pages, r);
            let _ = insert(&mut heap.pages, &mut heap.state, &value(i, i * 97 % 5000));
            let _ = match i % 2 {
                0 => remove(&mut heap.pages, &mut heap.state, r),
                _ => update(&mut heap.pages, &mut heap.state, r, &value(i, i * 61 % 5000)).map(drop),
            };
        }
    }
}
