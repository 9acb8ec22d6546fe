//! Multi-value trees, fixed-size trees and tables through their public verbs, held against maps of the standard library.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use jackdaw_storage::disk::SimulatedDisk;
use jackdaw_storage::{
    By, Environment, Error, Kind, MultiTree, Options, Order, ReadTransaction, Row, RowBuilder, Schema,
    WriteTransaction,
};

const UNSIZED: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);
const BY_SLUG: usize = 0;
const BY_ETAG: usize = 1;
const BY_GROUP: usize = 2;

fn small() -> Options {
    Options::default().journal_file_sizes(64 << 10, 1 << 20).map_reserve(64 << 20).background(false)
}

/// id, slug (unique, may be empty), etag, group (not unique), body.
fn schema() -> Schema {
    Schema::new(5, 0..1).unique("by_slug", 1..2).etag("by_etag", 2).non_unique("by_group", 3..4)
}

/// Repeatable chance (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Document {
    slug: Vec<u8>,
    etag: i64,
    group: Vec<u8>,
    body: Vec<u8>,
}

type Values = BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>;
type Rows = BTreeMap<Vec<u8>, Document>;

/// What the environment should hold.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Model {
    multi: Values,
    fixed: BTreeMap<i64, [u8; 12]>,
    rows: Rows,
}

/// Both kinds of transaction read with the same verbs.
macro_rules! contents {
    ($transaction:expr, $order:expr) => {{
        let mut model = Model::default();
        let multi = $transaction.multi_tree(b"multi").unwrap();
        let mut cursor = multi.cursor();
        let mut more = true;
        while more {
            more = if $order == Order::Ascending { cursor.next() } else { cursor.prev() }.unwrap();
            assert_eq!(more, cursor.is_at_entry());
            if more {
                let values = model.multi.entry(cursor.key().to_vec()).or_default();
                let before = if $order == Order::Ascending { values.last() } else { values.first() };
                let order = before.map(|before| before.as_slice().cmp(cursor.value()));
                assert!(order.is_none_or(|o| o.is_lt() == ($order == Order::Ascending)));
                assert!(values.insert(cursor.value().to_vec()));
            }
        }
        assert_eq!(multi.keys(), model.multi.len() as u64);
        assert_eq!(multi.len(), model.multi.values().map(|v| v.len() as u64).sum::<u64>());

        let fixed = $transaction.fixed_tree(b"fixed").unwrap();
        let mut range = fixed.range(Bound::Unbounded, Bound::Unbounded, $order);
        let mut keys = Vec::new();
        while let Some((key, value)) = range.next().unwrap() {
            keys.push(key);
            model.fixed.insert(key, value.try_into().unwrap());
        }
        assert!(keys.windows(2).all(|k| (k[0] < k[1]) == ($order == Order::Ascending)));
        assert_eq!(fixed.len(), keys.len() as u64);

        let table = $transaction.table(b"table").unwrap();
        for by in [By::Index(BY_SLUG), By::Index(BY_ETAG), By::Index(BY_GROUP), By::Primary] {
            let mut rows = table.range(by, UNSIZED.0, UNSIZED.1, $order).unwrap();
            let mut keys: Vec<(Vec<u8>, i64)> = Vec::new();
            let mut found = Rows::new();
            while let Some(row) = rows.next().unwrap() {
                keys.push((rows.key().to_vec(), row.column_i64(2).unwrap()));
                let document = Document {
                    slug: row.column(1).to_vec(),
                    etag: row.column_i64(2).unwrap(),
                    group: row.column(3).to_vec(),
                    body: row.column(4).to_vec(),
                };
                assert!(found.insert(row.column(0).to_vec(), document).is_none());
            }
            let ordered = |a: &(Vec<u8>, i64), b: &(Vec<u8>, i64)| match by {
                By::Index(BY_ETAG) => a.1 < b.1,
                By::Index(BY_GROUP) => a.0 <= b.0,
                _ => a.0 < b.0,
            };
            let ascending = $order == Order::Ascending;
            assert!(keys.windows(2).all(|k| if ascending {
                ordered(&k[0], &k[1])
            } else {
                ordered(&k[1], &k[0])
            }));
            if by == By::Primary {
                let without_slug = found.values().filter(|d| d.slug.is_empty()).count();
                assert_eq!(model.rows.len(), found.len() - without_slug);
                model.rows.clear();
            }
            if by == By::Index(BY_SLUG) || by == By::Primary {
                model.rows = found;
            }
        }
        assert_eq!(table.len(), model.rows.len() as u64);
        model
    }};
}

fn contents(snapshot: &ReadTransaction, order: Order) -> Model {
    contents!(snapshot, order)
}

fn contents_within(transaction: &WriteTransaction) -> Model {
    contents!(transaction, Order::Ascending)
}

/// Walks a range of a multi-value tree.
fn probe_multi_range(multi: &MultiTree<'_>, model: &Model, chance: &mut Chance) {
    fn bound(chance: &mut Chance, key: &[u8]) -> Bound<Vec<u8>> {
        match chance.below(3) {
            0 => Bound::Included(key.to_vec()),
            1 => Bound::Excluded(key.to_vec()),
            _ => Bound::Unbounded,
        }
    }
    let (low, high) = (multi_key(chance), multi_key(chance));
    let is_prefix = chance.below(4) == 0;
    let order = if chance.below(2) == 0 { Order::Ascending } else { Order::Descending };
    let (mut walk, mut expected): (_, Vec<_>) = if is_prefix {
        let prefix = &low[..chance.below(3) as usize];
        let within = |key: &[u8]| key.starts_with(prefix);
        (multi.prefix(prefix, order), model.multi.iter().filter(|(key, _)| within(key)).collect())
    } else {
        let (low, high) = (bound(chance, &low), bound(chance, &high));
        let bounds = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
        let within = |key: &[u8]| {
            let above = match bounds.0 {
                Bound::Included(low) => key >= low,
                Bound::Excluded(low) => key > low,
                Bound::Unbounded => true,
            };
            above
                && match bounds.1 {
                    Bound::Included(high) => key <= high,
                    Bound::Excluded(high) => key < high,
                    Bound::Unbounded => true,
                }
        };
        (multi.range(bounds.0, bounds.1, order), model.multi.iter().filter(|(key, _)| within(key)).collect())
    };
    if order == Order::Descending {
        expected.reverse();
    }
    for (key, values) in expected {
        let mut values: Vec<_> = values.iter().collect();
        if order == Order::Descending {
            values.reverse();
        }
        for value in values {
            assert_eq!(walk.next().unwrap(), Some((&key[..], &value[..])));
        }
    }
    assert_eq!(walk.next().unwrap(), None);
    assert_eq!(walk.next().unwrap(), None, "the end is the end");
}

/// Looks things up in every way.
fn probe(snapshot: &ReadTransaction, model: &Model, chance: &mut Chance) {
    let multi = snapshot.multi_tree(b"multi").unwrap();
    let fixed = snapshot.fixed_tree(b"fixed").unwrap();
    let table = snapshot.table(b"table").unwrap();
    let newest = newest(snapshot).and_then(|row| row.column_i64(2));
    assert_eq!(newest, model.rows.values().map(|d| d.etag).max());
    for _ in 0..20 {
        let (key, value) = (multi_key(chance), multi_value(chance));
        let values = model.multi.get(&key).cloned().unwrap_or_default();
        assert_eq!(multi.count(&key).unwrap(), values.len() as u64);
        assert_eq!(multi.contains(&key, &value).unwrap(), values.contains(&value));
        let mut cursor = multi.values(&key).unwrap();
        let there = cursor.seek(&value).unwrap();
        assert_eq!(there.then(|| cursor.value()), values.range(value.clone()..).next().map(|v| &v[..]));
        let there = cursor.seek_at_most(&value).unwrap();
        assert_eq!(there.then(|| cursor.value()), values.range(..=value).next_back().map(|v| &v[..]));
        let mut all = multi.cursor();
        let there = all.seek(&key).unwrap();
        assert_eq!(there.then(|| all.key()), model.multi.range(key.clone()..).next().map(|(k, _)| &k[..]));
        if there {
            let next = model.multi.range(key.clone()..).nth(1).map(|(k, _)| &k[..]);
            let there = all.next_key().unwrap();
            assert_eq!(there.then(|| all.key()), next);
        }
        probe_multi_range(&multi, model, chance);

        let (low, high) = (fixed_key(chance), fixed_key(chance));
        assert_eq!(fixed.get(low).unwrap(), model.fixed.get(&low).map(|v| &v[..]));
        let key_of = |entry: Option<(i64, &[u8])>| entry.map(|(key, _)| key);
        let mut cursor = fixed.cursor();
        assert_eq!(key_of(cursor.seek(low).unwrap()), model.fixed.range(low..).next().map(|(k, _)| *k));
        let at_most = model.fixed.range(..=low).next_back().map(|(k, _)| *k);
        assert_eq!(key_of(cursor.seek_at_most(low).unwrap()), at_most);
        for order in [Order::Ascending, Order::Descending] {
            let mut range = fixed.range(Bound::Excluded(low), Bound::Included(high), order);
            let mut found = Vec::new();
            while let Some((key, _)) = range.next().unwrap() {
                found.push(key);
            }
            let keys = model.fixed.keys().copied().filter(|k| *k > low && *k <= high);
            let expected: Vec<i64> =
                if order == Order::Ascending { keys.collect() } else { keys.rev().collect() };
            assert_eq!(found, expected);
        }

        let id = row_id(chance);
        let row = table.get(&id).unwrap();
        let expected = model.rows.get(&id);
        assert_eq!(row.map(|row| row.column(4)), expected.map(|d| &d.body[..]));
        if let Some(document) = expected {
            let by_etag = table.get_by(BY_ETAG, &document.etag.to_be_bytes()).unwrap();
            assert_eq!(by_etag, row);
            if !document.slug.is_empty() {
                assert_eq!(table.get_by(BY_SLUG, &document.slug).unwrap(), row);
            }
        }
        // Rows with an empty key are not in an index.
        assert_eq!(table.count_by(BY_GROUP, b"").unwrap(), 0);
        let group = vec![b'g'; 1 + chance.below(5) as usize];
        let expected: BTreeSet<&[u8]> =
            model.rows.iter().filter(|(_, d)| d.group == group).map(|(id, _)| &id[..]).collect();
        assert_eq!(table.count_by(BY_GROUP, &group).unwrap(), expected.len() as u64);
        for order in [Order::Ascending, Order::Descending] {
            let mut rows = table.exact(By::Index(BY_GROUP), &group, order).unwrap();
            let mut found = BTreeSet::new();
            while let Some(row) = rows.next().unwrap() {
                assert!(found.insert(row.column(0)));
            }
            assert_eq!(found, expected);
            let prefix = &id[..id.len() - 1];
            let mut rows = table.prefix(By::Primary, prefix, order).unwrap();
            let mut found = Vec::new();
            while let Some(row) = rows.next().unwrap() {
                found.push(row.column(0));
            }
            let ids = model.rows.keys().map(|id| &id[..]).filter(|id| id.starts_with(prefix));
            let expected: Vec<&[u8]> =
                if order == Order::Ascending { ids.collect() } else { ids.rev().collect() };
            assert_eq!(found, expected);
        }
        let from = chance.below(3000) as i64 - 50;
        let mut rows = table.from_etag(BY_ETAG, from, Order::Ascending).unwrap();
        let found = rows.next().unwrap().and_then(|row| row.column_i64(2));
        assert_eq!(found, model.rows.values().map(|d| d.etag).filter(|e| *e >= from).min());
        let mut cursor = table.cursor(By::Index(BY_ETAG)).unwrap();
        assert_eq!(cursor.seek_etag(from).unwrap().then(|| cursor.etag()).flatten(), found);
    }
}

/// Rows outlive the view and the walk that found them.
fn newest(snapshot: &ReadTransaction) -> Option<Row<'_>> {
    let table = snapshot.table(b"table").unwrap();
    let mut rows = table.from_etag(BY_ETAG, i64::MAX, Order::Descending).unwrap();
    rows.next().unwrap()
}

fn multi_key(chance: &mut Chance) -> Vec<u8> {
    vec![b'k', chance.below(12) as u8]
}

fn multi_value(chance: &mut Chance) -> Vec<u8> {
    let number = chance.below(400);
    let mut value = number.to_be_bytes()[6..].to_vec();
    value.resize(2 + (number % 7 * 10) as usize, b'v');
    value
}

fn fixed_key(chance: &mut Chance) -> i64 {
    let scale = [10, 1000, 100_000][chance.below(3) as usize];
    chance.below(2 * scale) as i64 - scale as i64
}

fn row_id(chance: &mut Chance) -> Vec<u8> {
    format!("documents/{}", chance.below(300)).into_bytes()
}

fn row_group(chance: &mut Chance) -> Vec<u8> {
    vec![b'g'; chance.below(5) as usize]
}

/// One random change of each structure; the answers must be the model's.
fn change(tx: &mut WriteTransaction, model: &mut Model, chance: &mut Chance, etag: &mut i64) {
    let (key, value) = (multi_key(chance), multi_value(chance));
    let mut multi = tx.multi_tree_mut(b"multi").unwrap();
    match chance.below(100) {
        0 => {
            let values = model.multi.remove(&key).map_or(0, |values| values.len() as u64);
            assert_eq!(multi.delete(&key).unwrap(), values);
        }
        1..=30 => {
            let mut was = false;
            if let Some(values) = model.multi.get_mut(&key) {
                was = values.remove(&value);
                if values.is_empty() {
                    model.multi.remove(&key);
                }
            }
            assert_eq!(multi.remove(&key, &value).unwrap(), was);
        }
        _ => {
            let new = model.multi.entry(key.clone()).or_default().insert(value.clone());
            assert_eq!(multi.add(&key, &value).unwrap(), new);
        }
    }
    drop(multi);

    let key = fixed_key(chance);
    let mut fixed = tx.fixed_tree_mut(b"fixed").unwrap();
    match chance.below(100) {
        0 => {
            let high = key + chance.below(2000) as i64;
            let gone: Vec<i64> = model.fixed.range(key..=high).map(|(k, _)| *k).collect();
            model.fixed.retain(|k, _| !gone.contains(k));
            let deleted = fixed.delete_range(Bound::Included(key), Bound::Included(high)).unwrap();
            assert_eq!(deleted, gone.len() as u64);
        }
        1..=30 => assert_eq!(fixed.delete(key).unwrap(), model.fixed.remove(&key).is_some()),
        _ => {
            let mut value = [0; 12];
            value[..8].copy_from_slice(&chance.below(u64::MAX).to_le_bytes());
            assert_eq!(fixed.put(key, &value).unwrap(), model.fixed.insert(key, value).is_some());
            assert_eq!(fixed.get(key).unwrap(), Some(&value[..]));
        }
    }
    drop(fixed);

    let id = row_id(chance);
    let mut table = tx.table_mut(b"table").unwrap();
    match chance.below(100) {
        0 => {
            let from = *etag - chance.below(300) as i64;
            let to = from + 30;
            let before = model.rows.len();
            model.rows.retain(|_, d| !(from..=to).contains(&d.etag));
            let deleted = table.delete_etag_range(BY_ETAG, from, to).unwrap();
            assert_eq!(deleted, (before - model.rows.len()) as u64);
        }
        1..=25 => assert_eq!(table.delete(&id).unwrap(), model.rows.remove(&id).is_some()),
        how => {
            // Some etags and slugs are taken.
            let number = if chance.below(10) == 0 { chance.below(*etag as u64 + 1) as i64 } else { *etag };
            *etag += 1;
            let slug = match chance.below(3) {
                0 => Vec::new(),
                _ => format!("slug-{}", chance.below(600)).into_bytes(),
            };
            let body = vec![number as u8; [10, 200, 900, 3000, 10_000][chance.below(5) as usize]];
            let document = Document { slug, etag: number, group: row_group(chance), body };
            let mut builder = RowBuilder::new();
            builder.push(&id).push(&document.slug).push_i64(number).push(&document.group);
            let row = builder.push(&document.body).finish().unwrap();
            let exists = model.rows.contains_key(&id);
            let taken = model.rows.iter().any(|(other, d)| {
                *other != id && (d.etag == number || !d.slug.is_empty() && d.slug == document.slug)
            });
            // The row itself is another's equal when it is inserted anew.
            let own = model.rows.get(&id);
            let same = own.is_some_and(|d| d.etag == number || !d.slug.is_empty() && d.slug == document.slug);
            let result = match how % 3 {
                0 => table.insert(row).map(|()| false),
                1 => table.update(row),
                _ => table.upsert(row),
            };
            let refused = match how % 3 {
                0 => exists || taken || same,
                1 => exists && taken,
                _ => taken,
            };
            match result {
                Err(Error::DuplicateKey { .. }) => assert!(refused),
                Err(other) => panic!("{other}"),
                Ok(was) => {
                    assert!(!refused);
                    assert_eq!(was, exists);
                    if exists || how % 3 != 1 {
                        model.rows.insert(id, document);
                    }
                }
            }
        }
    }
}

fn create(tx: &mut WriteTransaction) {
    tx.create_multi_tree(b"multi").unwrap();
    tx.create_fixed_tree(b"fixed", 12).unwrap();
    tx.create_table(b"table", &schema()).unwrap();
}

/// Some transactions of random changes, parts of them undone; all commit.
fn live(env: &Environment, model: &mut Model, chance: &mut Chance, etag: &mut i64) {
    for _ in 0..6 {
        let mut tx = env.write().unwrap();
        create(&mut tx);
        for _ in 0..chance.below(4) {
            for _ in 0..chance.below(60) {
                change(&mut tx, model, chance, etag);
            }
            let before = model.clone();
            let savepoint = tx.savepoint();
            for _ in 0..chance.below(60) {
                change(&mut tx, model, chance, etag);
            }
            if chance.below(2) == 0 {
                tx.rollback_to(savepoint).unwrap();
                *model = before;
            } else {
                tx.release(savepoint).unwrap();
            }
        }
        // Opened once more and not changed: what was changed before must be kept.
        create(&mut tx);
        assert_eq!(contents_within(&tx), *model);
        tx.commit().unwrap();
        if chance.below(4) == 0 {
            env.flush().unwrap();
        }
    }
}

fn assert_clean(env: &Environment) {
    let report = env.check().unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
}

#[test]
fn structures_do_as_maps_do_through_commits_rollbacks_and_crashes() {
    for seed in 0..12 {
        let mut chance = Chance(seed);
        let mut disk = SimulatedDisk::new(seed);
        let (mut model, mut etag) = (Model::default(), 0);
        for life in 0..4 {
            let options = small().scratch_size_max(64 << 20).journal_size_before_flush(200_000);
            let env = Environment::open_on(Arc::new(disk.clone()), options).unwrap();
            if life > 0 {
                let snapshot = env.read().unwrap();
                for order in [Order::Ascending, Order::Descending] {
                    assert!(contents(&snapshot, order) == model, "seed {seed}, life {life}, {order:?}");
                }
                probe(&snapshot, &model, &mut chance);
                assert_clean(&env);
            }
            let snapshot = (life > 0).then(|| (env.read().unwrap(), model.clone()));
            live(&env, &mut model, &mut chance, &mut etag);
            if let Some((snapshot, then)) = snapshot {
                assert!(contents(&snapshot, Order::Ascending) == then, "seed {seed}, life {life}");
            }
            let crashed = disk.crash(seed * 10 + life).unwrap();
            std::mem::forget(env); // its process is gone
            disk = crashed;
        }
        assert!(!model.multi.is_empty() && !model.fixed.is_empty() && !model.rows.is_empty());
    }
}

#[test]
fn copies_are_equal_and_dropping_gives_all_pages_back() {
    let dir = tempfile::tempdir().unwrap();
    let env = Environment::open(dir.path().join("original"), small()).unwrap();
    let (mut model, mut chance, mut etag) = (Model::default(), Chance(7), 0);
    for _ in 0..5 {
        live(&env, &mut model, &mut chance, &mut etag);
    }
    assert_clean(&env);
    let report = env.check().unwrap();
    let kinds: Vec<(Kind, u64)> = report.trees.iter().map(|tree| (tree.kind, tree.entries)).collect();
    let values = model.multi.values().map(|values| values.len() as u64).sum();
    let (fixed, rows) = (model.fixed.len() as u64, model.rows.len() as u64);
    assert_eq!(kinds, [(Kind::FixedTree, fixed), (Kind::MultiTree, values), (Kind::Table, rows)]);

    env.backup(dir.path().join("backup")).unwrap();
    let mut stream = Vec::new();
    env.backup_to(&mut stream).unwrap();
    jackdaw_storage::restore(&mut &stream[..], dir.path().join("restored")).unwrap();
    env.compact(dir.path().join("compact")).unwrap();
    for name in ["backup", "restored", "compact"] {
        let copy = Environment::open(dir.path().join(name), small()).unwrap();
        assert!(contents(&copy.read().unwrap(), Order::Ascending) == model, "{name}");
        assert_clean(&copy);
        let (mut model, mut etag) = (model.clone(), etag);
        live(&copy, &mut model, &mut chance, &mut etag);
        assert!(contents(&copy.read().unwrap(), Order::Descending) == model, "{name}");
        assert_clean(&copy);
    }

    // Renamed and cleared structures go on; dropped ones leave nothing.
    let mut tx = env.write().unwrap();
    for name in ["multi", "fixed", "table"] {
        tx.rename_tree(name.as_bytes(), b"other").unwrap();
        tx.rename_tree(b"other", name.as_bytes()).unwrap();
    }
    assert_eq!(contents_within(&tx), model);
    tx.commit().unwrap();
    assert!(contents(&env.read().unwrap(), Order::Ascending) == model);
    let mut tx = env.write().unwrap();
    tx.multi_tree_mut(b"multi").unwrap().clear().unwrap();
    tx.fixed_tree_mut(b"fixed").unwrap().clear().unwrap();
    tx.table_mut(b"table").unwrap().clear().unwrap();
    tx.commit().unwrap();
    assert!(contents(&env.read().unwrap(), Order::Ascending) == Model::default());
    assert_clean(&env);
    let mut model = Model::default();
    live(&env, &mut model, &mut chance, &mut etag);
    let mut tx = env.write().unwrap();
    for name in ["multi", "fixed", "table"] {
        assert!(tx.drop_tree(name.as_bytes()).unwrap());
        assert!(!tx.drop_tree(name.as_bytes()).unwrap());
    }
    tx.commit().unwrap();
    let report = env.check().unwrap();
    assert!(report.is_clean() && report.trees.is_empty(), "{report:#?}");
    let own =
        report.pages_by_kind.keys().all(|kind| ["root", "free directory", "free bitmap"].contains(kind));
    assert!(own, "{report:#?}");
}

#[test]
fn what_is_refused_is_named_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let env = Environment::open(dir.path(), small()).unwrap();
    let mut tx = env.write().unwrap();
    tx.create_tree(b"tree").unwrap();
    create(&mut tx);

    // Each under another's name.
    assert!(matches!(tx.tree(b"multi"), Err(Error::TreeKind { found: "multi-value tree", .. })));
    assert!(matches!(tx.create_tree(b"fixed"), Err(Error::TreeKind { found: "fixed-size tree", .. })));
    assert!(matches!(tx.multi_tree_mut(b"table"), Err(Error::TreeKind { found: "table", .. })));
    assert!(matches!(tx.create_fixed_tree(b"tree", 8), Err(Error::TreeKind { found: "tree", .. })));
    assert!(matches!(tx.table(b"tree"), Err(Error::TreeKind { expected: "table", .. })));
    assert!(matches!(tx.table(b"none"), Err(Error::TreeNotFound { .. })));
    assert!(matches!(tx.fixed_tree_mut(b"none"), Err(Error::TreeNotFound { .. })));

    // Made differently.
    let other_size = tx.create_fixed_tree(b"fixed", 8).err().unwrap().to_string();
    assert!(other_size.contains("\"fixed\" has values of 12 bytes"), "{other_size}");
    assert!(matches!(tx.create_fixed_tree(b"wide", 129), Err(Error::ValueTooLong { size: 129, max: 128 })));
    let other_schema = tx.create_table(b"table", &Schema::new(5, 0..1)).err().unwrap().to_string();
    assert!(other_schema.contains("created with another schema"), "{other_schema}");
    assert!(matches!(tx.create_table(b"bad", &Schema::new(0, 0..1)), Err(Error::Invalid(_))));

    // Arguments. The transaction goes on and commits.
    let mut multi = tx.multi_tree_mut(b"multi").unwrap();
    assert!(matches!(multi.add(b"", b"v"), Err(Error::KeyEmpty)));
    assert!(matches!(multi.add(b"k", b""), Err(Error::KeyEmpty)));
    assert!(matches!(multi.add(b"k", &[1; 2049]), Err(Error::ValueTooLong { size: 2049, max: 2048 })));
    assert!(matches!(multi.add(&[1; 2049], b"v"), Err(Error::KeyTooLong { .. })));
    assert!(multi.is_empty() && multi.keys() == 0);
    drop(multi);
    let mut fixed = tx.fixed_tree_mut(b"fixed").unwrap();
    assert!(matches!(fixed.put(1, b"short"), Err(Error::Invalid(_))));
    assert!(fixed.is_empty());
    drop(fixed);
    let mut builder = RowBuilder::new();
    let mut table = tx.table_mut(b"table").unwrap();
    assert!(matches!(table.insert(builder.push(b"x").finish().unwrap()), Err(Error::Invalid(_))));
    builder.push(b"").push(b"").push_i64(1).push(b"").push(b"");
    assert!(matches!(table.insert(builder.finish().unwrap()), Err(Error::KeyEmpty)));
    builder.push(b"id").push(b"").push(b"no etag").push(b"").push(b"");
    assert!(matches!(table.insert(builder.finish().unwrap()), Err(Error::Invalid(_))));
    builder.push(b"id").push(b"s").push_i64(1).push(b"").push(b"");
    table.insert(builder.finish().unwrap()).unwrap();
    builder.push(b"id2").push(b"s").push_i64(2).push(b"").push(b"");
    let duplicate = table.insert(builder.finish().unwrap()).unwrap_err().to_string();
    assert!(duplicate.contains("\"by_slug\"") && duplicate.contains("\"table\""), "{duplicate}");
    assert!(matches!(table.delete_etag_range(BY_SLUG, 0, 9), Err(Error::Invalid(_))));
    assert!(matches!(table.read().get_by(BY_GROUP, b"g"), Err(Error::Invalid(_))));
    assert!(matches!(table.read().cursor(By::Index(3)), Err(Error::Invalid(_))));
    assert!(matches!(table.read().prefix(By::Index(BY_ETAG), b"", Order::Ascending), Err(Error::Invalid(_))));
    assert!(matches!(table.read().from_etag(BY_SLUG, 0, Order::Ascending), Err(Error::Invalid(_))));
    assert_eq!(table.len(), 1);
    drop(table);

    // A renamed table's messages have its new name.
    tx.rename_tree(b"table", b"documents").unwrap();
    let mut table = tx.table_mut(b"documents").unwrap();
    builder.push(b"id2").push(b"").push_i64(1).push(b"").push(b"");
    let duplicate = table.insert(builder.finish().unwrap()).unwrap_err().to_string();
    assert!(duplicate.contains("\"by_etag\"") && duplicate.contains("\"documents\""), "{duplicate}");
    drop(table);
    tx.commit().unwrap();
    assert_clean(&env);
    assert_eq!(env.read().unwrap().table(b"documents").unwrap().schema(), &schema());
}

#[test]
fn a_forgotten_handle_cannot_lose_changes_silently() {
    let dir = tempfile::tempdir().unwrap();
    let env = Environment::open(dir.path(), small()).unwrap();
    let mut tx = env.write().unwrap();
    create(&mut tx);
    let savepoint = tx.savepoint();
    let mut fixed = tx.fixed_tree_mut(b"fixed").unwrap();
    fixed.put(1, &[1; 12]).unwrap();
    std::mem::forget(fixed);
    assert!(matches!(tx.fixed_tree(b"fixed"), Err(Error::Invalid(_))));
    assert!(matches!(tx.fixed_tree_mut(b"fixed"), Err(Error::Invalid(_))));
    assert!(matches!(tx.drop_tree(b"fixed"), Err(Error::Invalid(_))));
    tx.rollback_to(savepoint).unwrap();
    tx.fixed_tree_mut(b"fixed").unwrap().put(2, &[2; 12]).unwrap();
    let mut table = tx.table_mut(b"table").unwrap();
    table.clear().unwrap();
    std::mem::forget(table);
    assert!(matches!(tx.commit(), Err(Error::Invalid(_))));
    assert!(env.read().unwrap().trees().unwrap().is_empty());
}
