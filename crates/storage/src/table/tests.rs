//! Tables against a plain ordered map of rows, whose indexes are sorted anew each time.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;

use super::*;
use crate::btree::Direction;
use crate::format::{PAGE_SIZE, PageNumber};
use crate::pages_in_memory::PagesInMemory;
use crate::visit::Findings;

type Bytes = Vec<u8>;

/// id, slug (unique, may be empty), etag, collection, part (with the collection: non-unique), document
const COLUMNS: usize = 6;
const BY_SLUG: usize = 0;
const BY_ETAG: usize = 1;
const BY_COLLECTION: usize = 2;

fn schema() -> Schema {
    Schema::new(COLUMNS, 0..1)
        .unique("by_slug", 1..2)
        .etag("by_etag", 2)
        .non_unique("by_collection", 3..4)
        .non_unique("by_collection_and_part", 3..5)
}

struct Table {
    pages: PagesInMemory,
    state: TableState,
    builder: RowBuilder,
    model: BTreeMap<Bytes, Vec<Bytes>>,
}

type Columns = [Bytes; COLUMNS];

fn columns(id: u16, slug: &[u8], etag: i64, collection: u8, size: usize) -> Columns {
    [
        format!("docs/{id}").into_bytes(),
        slug.to_vec(),
        etag.to_be_bytes().to_vec(),
        vec![collection; collection as usize % 4],
        vec![id as u8 % 3],
        (0..size).map(|i| (i * 7 + id as usize) as u8).collect(),
    ]
}

impl Table {
    fn new() -> Table {
        Table {
            pages: PagesInMemory::new(),
            state: TableState::new("docs", schema()).unwrap(),
            builder: RowBuilder::new(),
            model: BTreeMap::new(),
        }
    }

    /// The index that keeps a row out of the table, by the model.
    fn in_the_way(&self, columns: &Columns, replacing: bool) -> Option<&'static str> {
        let others = || self.model.iter().filter(|(id, _)| **id != columns[0]);
        if !columns[1].is_empty() && others().any(|(_, other)| other[1] == columns[1]) {
            return Some("by_slug");
        }
        if others().any(|(_, other)| other[2] == columns[2]) {
            return Some("by_etag");
        }
        (!replacing && self.model.contains_key(&columns[0])).then_some(PRIMARY)
    }

    fn put(&mut self, columns: Columns, how: How) {
        let existed = self.model.contains_key(&columns[0]);
        for column in &columns {
            self.builder.push(column);
        }
        let row = self.builder.finish().unwrap();
        let before = self.state.encode();
        let (pages, state) = (&mut self.pages, &mut self.state);
        let result = match how {
            How::Insert => insert(pages, state, row).map(|()| true),
            How::Update => update(pages, state, row),
            How::Upsert => upsert(pages, state, row),
        };
        let replacing = how == How::Update || (how == How::Upsert && existed);
        let refused = match (how, existed) {
            (How::Update, false) => None,
            // A row that is there twice over, by its own id and by another's key, is refused for one or the other.
            _ => self.in_the_way(&columns, replacing),
        };
        match refused {
            Some(name) => {
                let error = result.unwrap_err();
                assert!(
                    matches!(&error, Error::DuplicateKey { index, .. } if how == How::Insert || index == name),
                    "{error}"
                );
                // A page that was opened for the refused row may show in the heap's state, nothing else.
                let (after, now) = (TableState::decode("docs", &before).unwrap(), &self.state);
                assert_eq!(after.primary, now.primary);
                assert_eq!(after.rows(), now.rows());
            }
            None => {
                assert_eq!(
                    result.unwrap(),
                    match how {
                        How::Insert => true,
                        How::Update => existed,
                        How::Upsert => !existed,
                    }
                );
                if how != How::Update || existed {
                    self.model.insert(columns[0].clone(), columns.to_vec());
                }
            }
        }
    }

    fn delete(&mut self, id: &[u8]) {
        let found = delete(&mut self.pages, &mut self.state, id).unwrap();
        assert_eq!(found, self.model.remove(id).is_some());
    }

    fn delete_etag_range(&mut self, from: i64, to: i64) {
        let count = delete_etag_range(&mut self.pages, &mut self.state, BY_ETAG, from, to).unwrap();
        let before = self.model.len();
        self.model.retain(|_, row| !(from..=to).contains(&model_etag(row)));
        assert_eq!(count, (before - self.model.len()) as u64);
    }

    /// Ids with the keys they have in an index, sorted by key.
    fn model_index(&self, by: By) -> Vec<(Bytes, Bytes)> {
        let key = |row: &[Bytes]| match by {
            By::Primary => row[0].clone(),
            By::Index(BY_SLUG) => row[1].clone(),
            By::Index(BY_ETAG) => (model_etag(row) as u64 ^ 1 << 63).to_be_bytes().to_vec(),
            By::Index(BY_COLLECTION) => row[3].clone(),
            By::Index(_) => [&row[3][..], &row[4][..]].concat(),
        };
        let mut index: Vec<_> = self.model.iter().map(|(id, row)| (key(row), id.clone())).collect();
        index.retain(|(key, _)| !key.is_empty());
        index.sort();
        index
    }

    /// What a walk finds: keys (of the etag index so that they sort by their bytes) and ids, in the walk's order.
    fn walk(
        &self,
        by: By,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Vec<(Bytes, Bytes)> {
        let mut range = RowRange::new(&self.pages, &self.state, by, bounds, direction).unwrap();
        let mut found = Vec::new();
        while let Some(row) = range.next().unwrap() {
            assert!((0..COLUMNS).all(|i| row.column(i) == self.model[row.column(0)][i]));
            let mut key = range.key().to_vec();
            if by == By::Index(BY_ETAG) {
                key[0] ^= 0x80;
            }
            found.push((key, row.column(0).to_vec()));
        }
        found
    }

    fn verify(&self) {
        assert_eq!(self.state.rows(), self.model.len() as u64);
        for by in [By::Primary, By::Index(0), By::Index(1), By::Index(2), By::Index(3)] {
            let expected = self.model_index(by);
            let mut found = self.walk(by, (Bound::Unbounded, Bound::Unbounded), Direction::Ascending);
            let mut backward = self.walk(by, (Bound::Unbounded, Bound::Unbounded), Direction::Descending);
            assert!(found.is_sorted_by_key(|(key, _)| key.clone()));
            backward.reverse();
            assert!(found == backward);
            found.sort();
            assert!(found == expected, "{by:?}");
        }
        self.pages.validate_all().unwrap();
        let findings = findings(&self.pages, &self.state);
        assert_eq!(findings.problems, []);
        assert_eq!(findings.pages, self.pages.in_use());
        let bytes = self.state.encode();
        assert_eq!(TableState::decode("docs", &bytes).unwrap().encode(), bytes);
    }

    fn verify_at(&self, id: &[u8], slug: &[u8], etag: i64, collection: &[u8]) {
        let id_of = |row: Option<Row<'_>>| row.map(|row| row.column(0).to_vec());
        let model = |test: &dyn Fn(&[Bytes]) -> bool| {
            self.model.values().find(|row| test(row)).map(|row| row[0].clone())
        };
        let (pages, state) = (&self.pages, &self.state);
        assert_eq!(id_of(get(pages, state, id).unwrap()), model(&|row| row[0] == id));
        assert_eq!(id_of(get_by(pages, state, BY_SLUG, slug).unwrap()), model(&|row| row[1] == slug));
        let etag_key = etag.to_be_bytes();
        assert_eq!(
            id_of(get_by(pages, state, BY_ETAG, &etag_key).unwrap()),
            model(&|row| row[2] == etag_key)
        );
        assert_eq!(
            count_by(pages, state, BY_ETAG, &etag_key).unwrap(),
            model(&|row| row[2] == etag_key).iter().len() as u64
        );
        let in_collection = self.model.values().filter(|row| row[3] == collection).count();
        assert_eq!(count_by(pages, state, BY_COLLECTION, collection).unwrap(), in_collection as u64);
        for direction in [Direction::Ascending, Direction::Descending] {
            let by = By::Index(BY_COLLECTION);
            let mut range = RowRange::exact(pages, state, by, collection, direction).unwrap();
            assert_eq!(std::iter::from_fn(|| range.next().unwrap()).count(), in_collection);
            let mut prefixed = RowRange::prefix(pages, state, By::Primary, b"docs/1", direction).unwrap();
            let count = std::iter::from_fn(|| prefixed.next().unwrap()).count();
            assert_eq!(count, self.model.keys().filter(|id| id.starts_with(b"docs/1")).count());
            let mut from = RowRange::from_etag(pages, state, BY_ETAG, etag, direction).unwrap();
            let found: Vec<i64> =
                std::iter::from_fn(|| from.next().unwrap()).map(|row| row.column_i64(2).unwrap()).collect();
            let mut expected: Vec<i64> = self.model.values().map(|row| model_etag(row)).collect();
            expected.sort();
            if direction == Direction::Descending {
                expected.reverse();
                expected.retain(|other| *other <= etag);
            } else {
                expected.retain(|other| *other >= etag);
            }
            assert_eq!(found, expected);
        }
        for (low, high) in [
            (Bound::Included(collection), Bound::Excluded(&[2u8, 2][..])),
            (Bound::Excluded(collection), Bound::Included(&[3u8, 3, 3][..])),
        ] {
            let mut expected = self.model_index(By::Index(BY_COLLECTION));
            expected.retain(|(key, _)| match low {
                Bound::Included(low) => &key[..] >= low,
                Bound::Excluded(low) => &key[..] > low,
                Bound::Unbounded => true,
            });
            expected.retain(|(key, _)| match high {
                Bound::Included(high) => &key[..] <= high,
                Bound::Excluded(high) => &key[..] < high,
                Bound::Unbounded => true,
            });
            for direction in [Direction::Ascending, Direction::Descending] {
                let mut found = self.walk(By::Index(BY_COLLECTION), (low, high), direction);
                found.sort();
                assert!(found == expected);
            }
        }
    }
}

fn model_etag(row: &[Bytes]) -> i64 {
    i64::from_be_bytes(row[2][..].try_into().unwrap())
}

fn findings(pages: &PagesInMemory, state: &TableState) -> Findings {
    let mut findings = Findings::default();
    check(pages, state, &mut findings).unwrap();
    findings
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    Insert,
    Update,
    Upsert,
}

#[test]
fn rows_are_found_by_every_key() {
    let mut table = Table::new();
    let count = if cfg!(miri) { 30 } else { 600 };
    for i in 0..count {
        let slug = if i % 5 == 0 { String::new() } else { format!("slug-{i}") };
        table.put(columns(i, slug.as_bytes(), i as i64 - 100, i as u8 % 7, i as usize % 300), How::Insert);
    }
    table.verify();
    for i in (0..count).step_by(29) {
        table.verify_at(format!("docs/{i}").as_bytes(), format!("slug-{i}").as_bytes(), i as i64 - 100, &[1]);
    }
    // Longer documents make rows move, which every index must notice.
    for i in (0..count).step_by(3) {
        table.put(columns(i, b"", 1000 + i as i64, i as u8 % 5, 700 + i as usize % 2000), How::Update);
    }
    table.verify();
    let copied = &mut PagesInMemory::new();
    let mut copy = TableState::new("copy", table.state.schema().clone()).unwrap();
    let mut last = None;
    loop {
        last = copy_rows(&table.pages, &table.state, copied, &mut copy, last.as_deref(), 10_000).unwrap();
        if last.is_none() {
            break;
        }
    }
    assert_eq!(findings(copied, &copy).problems, []);
    assert_eq!(copy.rows(), table.state.rows());
    let by = By::Index(BY_ETAG);
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    let mut rows = RowRange::new(&table.pages, &table.state, by, bounds, Direction::Ascending).unwrap();
    let mut copied_rows = RowRange::new(copied, &copy, by, bounds, Direction::Ascending).unwrap();
    while let Some(row) = rows.next().unwrap() {
        assert_eq!(copied_rows.next().unwrap(), Some(row));
    }
    table.delete_etag_range(-50, 1100);
    table.verify();
    clear(&mut table.pages, &mut table.state).unwrap();
    table.model.clear();
    table.verify();
    assert!(table.pages.in_use().is_empty());
}

#[test]
fn copying_goes_on_where_it_stopped() {
    let mut table = Table::new();
    for i in 0..50 {
        table.put(columns(i, b"", i as i64, 1, 100), How::Insert);
    }
    let mut pages = PagesInMemory::new();
    let mut copy = TableState::new("docs", schema()).unwrap();
    let (mut after, mut steps) = (None, 0);
    loop {
        after = copy_rows(&table.pages, &table.state, &mut pages, &mut copy, after.as_deref(), 1000).unwrap();
        steps += 1;
        if after.is_none() {
            break;
        }
    }
    assert!(steps > 4);
    assert_eq!(copy.rows(), 50);
    assert_eq!(findings(&pages, &copy).problems, []);
}

#[test]
fn bad_rows_and_lookups_are_refused_and_change_nothing() {
    let mut table = Table::new();
    table.put(columns(1, b"one", 1, 1, 10), How::Insert);
    let before = table.state.encode();
    let mut builder = RowBuilder::new();
    let long = vec![b'x'; KEY_SIZE_MAX + 1];
    let etag = 9i64.to_be_bytes();
    let bad: [[&[u8]; COLUMNS]; 5] = [
        [b"", b"s", &etag, b"c", b"p", b""],
        [&long, b"s", &etag, b"c", b"p", b""],
        [b"i", &long, &etag, b"c", b"p", b""],
        [b"i", b"s", b"1234567", b"c", b"p", b""],
        [b"i", b"s", &etag, &long[1..], b"p", b""],
    ];
    for columns in bad {
        for column in columns {
            builder.push(column);
        }
        let row = builder.finish().unwrap();
        assert!(insert(&mut table.pages, &mut table.state, row).is_err());
        assert!(upsert(&mut table.pages, &mut table.state, row).is_err());
    }
    let row = builder.push(b"too few").finish().unwrap();
    assert!(matches!(insert(&mut table.pages, &mut table.state, row), Err(Error::Invalid(_))));
    let (pages, state) = (&table.pages, &table.state);
    assert!(matches!(get_by(pages, state, BY_COLLECTION, b"c"), Err(Error::Invalid(_))));
    assert!(matches!(get_by(pages, state, 4, b"c"), Err(Error::Invalid(_))));
    assert!(matches!(get_by(pages, state, BY_ETAG, b"c"), Err(Error::Invalid(_))));
    assert!(matches!(get(pages, state, b""), Err(Error::KeyEmpty)));
    assert!(RowRange::from_etag(pages, state, BY_SLUG, 1, Direction::Ascending).is_err());
    assert!(RowRange::prefix(pages, state, By::Index(BY_ETAG), b"", Direction::Ascending).is_err());
    assert!(cursor(pages, state, By::Primary).unwrap().row().is_err());
    assert_eq!(table.state.encode(), before);
    table.verify();
}

#[test]
fn another_schema_is_refused_with_both_in_the_message() {
    let state = TableState::new("docs", schema()).unwrap();
    state.require(&schema()).unwrap();
    let text = state.require(&schema().unique("more", 1..2)).unwrap_err().to_string();
    assert!(text.contains("\"docs\"") && text.contains("\"more\"") && text.contains("\"by_etag\""), "{text}");
    assert!(TableState::new("docs", Schema::new(0, 0..1)).is_err());
    let bytes = state.encode();
    assert!((0..bytes.len()).all(|cut| TableState::decode("docs", &bytes[..cut]).is_none()));
}

#[test]
fn check_notices_rows_and_entries_that_do_not_match() {
    let mut table = Table::new();
    for i in 0..40 {
        table.put(columns(i, format!("{i}").as_bytes(), i as i64, 1, 100), How::Insert);
    }
    let r = find(&table.pages, &table.state, b"docs/7").unwrap().unwrap();
    for i in 0..table.state.indexes.len() {
        let mut state = table.state.clone();
        let key = get(&table.pages, &state, b"docs/7")
            .unwrap()
            .unwrap()
            .column_range(state.indexes[i].columns.range())
            .to_vec();
        state.indexes[i].remove(&mut table.pages, &key, r).unwrap();
        assert_eq!(findings(&table.pages, &state).problems.len(), 2, "one for the row, one for the count");
        state.indexes[i].add(&mut table.pages, &key, r).unwrap();
        assert_eq!(findings(&table.pages, &state).problems, []);
        table.state = state;
    }
    let other = ValueRef::from_bytes((u64::from_le_bytes(r.to_bytes()) + 1).to_le_bytes());
    table.state.indexes[BY_SLUG].add(&mut table.pages, b"stray", other).unwrap();
    assert_eq!(findings(&table.pages, &table.state).problems.len(), 1);
}

#[derive(Clone, Debug)]
enum Step {
    Put(How, Columns),
    Delete(u16),
    DeleteEtags(i64, i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let slug = prop_oneof![3 => Just(Bytes::new()), 1 => prop::collection::vec(0u8..3, 0..3)];
    let etag = prop_oneof![1 => -20i64..20, 4 => -500i64..500, 1 => any::<i64>()];
    let size = prop_oneof![4 => 0usize..300, 2 => 300usize..3000, 1 => 3000usize..12_000];
    let how = prop_oneof![2 => Just(How::Insert), 1 => Just(How::Update), 2 => Just(How::Upsert)];
    let put =
        (how, 0u16..40, slug, etag, 0u8..9, size).prop_map(|(how, id, slug, etag, collection, size)| {
            Step::Put(how, columns(id, &slug, etag, collection, size))
        });
    let step = prop_oneof![
        12 => put,
        3 => (0u16..40).prop_map(Step::Delete),
        1 => (-500i64..500, 0i64..200).prop_map(|(from, size)| Step::DeleteEtags(from, from + size)),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 15 } else { 150 })
}

fn run(table: &mut Table, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Put(how, columns) => table.put(columns.clone(), *how),
            Step::Delete(id) => table.delete(format!("docs/{id}").as_bytes()),
            Step::DeleteEtags(from, to) => table.delete_etag_range(*from, *to),
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
    fn a_table_is_a_map_of_rows(steps in steps()) {
        let mut table = Table::new();
        for steps in steps.chunks(15) {
            run(&mut table, steps);
            table.verify();
            table.verify_at(b"docs/7", &[1], 3, &[1]);
            table.verify_at(b"docs/11", &[2, 0], -3, &[2, 2]);
        }
        for id in table.model.keys().cloned().collect::<Vec<_>>() {
            table.delete(&id);
        }
        table.verify();
        prop_assert!(table.pages.in_use().is_empty());
    }

    /// Whatever passes `validate` is safe to use, right or wrong.
    #[test]
    fn damaged_pages_cause_errors_only(
        steps in steps(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 16..PAGE_SIZE, 0u8..8), 1..40),
    ) {
        let mut table = Table::new();
        run(&mut table, &steps);
        let mut numbers = Vec::new();
        for number in 1..1000 {
            if table.pages.page(PageNumber(number)).is_ok() {
                numbers.push(PageNumber(number));
            }
        }
        for (at, byte, bit) in damage {
            if numbers.is_empty() { break }
            let number = numbers[at.index(numbers.len())];
            let before = *table.pages.page(number).unwrap();
            table.pages.page_mut(number).unwrap().all_mut()[byte] ^= 1 << bit;
            if crate::page::validate(number, table.pages.page(number).unwrap()).is_err() {
                *table.pages.page_mut(number).unwrap().all_mut() = before;
            }
        }
        findings(&table.pages, &table.state);
        let bounds = (Bound::Unbounded, Bound::Unbounded);
        for by in [By::Primary, By::Index(0), By::Index(1), By::Index(2), By::Index(3)] {
            for direction in [Direction::Ascending, Direction::Descending] {
                let mut range = RowRange::new(&table.pages, &table.state, by, bounds, direction).unwrap();
                while let Ok(Some(row)) = range.next() {
                    std::hint::black_box(row.column(COLUMNS - 1));
                }
            }
        }
        let (pages, state) = (&mut table.pages, &mut table.state);
        for id in 0..40u16 {
            let columns = columns(id, &[id as u8], id as i64, 1, id as usize * 50);
            for column in &columns {
                table.builder.push(column);
            }
            let row = table.builder.finish().unwrap();
            let _ = get(pages, state, &columns[0]);
            let _ = match id % 3 {
                0 => upsert(pages, state, row).map(drop),
                1 => delete(pages, state, &columns[0]).map(drop),
                _ => update(pages, state, row).map(drop),
            };
        }
        let _ = delete_etag_range(pages, state, BY_ETAG, -100, 100);
        let _ = clear(pages, state);
    }
}
