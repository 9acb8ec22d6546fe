//! The engine itself, as the simulation sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use jackdaw_storage::disk::SimulatedDisk;
use jackdaw_storage::{
    By, CommitTicket, Environment as Storage, Error, Kind, Options, Order, ReadTransaction, RowBuilder,
    Savepoint, Schema, WriteTransaction,
};
use jackdaw_testkit::{FIXED_VALUE_SIZE, Model, Operation, Outcome, Random, Row, Structure, StructureKind};

use super::engine::{Engine, Environment, Failure, Read, Write};

/// The structures that histories use.
pub const KINDS: &[StructureKind] = &StructureKind::ALL;

const BY_ETAG: usize = 0;
const BY_GROUP: usize = 1;

/// The columns of a [`Row`]: id, etag, group, body.
fn schema() -> Schema {
    Schema::new(4, 0..1).etag("by_etag", 1).non_unique("by_group", 2..3)
}

fn row_of(found: jackdaw_storage::Row<'_>) -> Result<Row, Error> {
    let etag = found.column_i64(1).ok_or_else(|| Error::Invalid("a row without etag".to_owned()))?;
    let (id, group) = (found.column(0).to_vec(), found.column(2).to_vec());
    Ok(Row { id, etag, group, body: Arc::new(found.column(3).to_vec()) })
}

/// Opens real environments, without background threads, so that each history repeats exactly.
pub struct Jackdaw;

fn failure(error: Error) -> Failure {
    let text = with_sources(&error);
    match error {
        Error::DiskFull { .. } => Failure::Full(text),
        Error::Failed { .. } => Failure::Failed(text),
        _ => Failure::Other(text),
    }
}

fn with_sources(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", with_sources(source)),
        None => error.to_string(),
    }
}

impl Engine for Jackdaw {
    type Environment = Storage;

    fn open(&self, disk: &SimulatedDisk, habits: &mut Random) -> Result<Storage, Failure> {
        let journal_file_size = 4096 << habits.below(8);
        let options = Options::default()
            .background(false)
            .journal_file_sizes(journal_file_size, journal_file_size << habits.below(3))
            .journal_size_before_flush(16 << 10 << habits.below(10))
            .scratch_size_max(16 << 20 << habits.below(3));
        Storage::open_on(Arc::new(disk.clone()), options).map_err(failure)
    }
}

impl Environment for Storage {
    type Read<'e> = ReadTransaction;
    type Write<'e> = WriteTransaction;
    type Ticket = CommitTicket;

    fn read(&self) -> Result<ReadTransaction, Failure> {
        Storage::read(self).map_err(failure)
    }

    fn write(&self) -> Result<WriteTransaction, Failure> {
        Storage::write(self).map_err(failure)
    }

    fn wait(&self, ticket: CommitTicket) -> Result<(), Failure> {
        ticket.wait().map(|_| ()).map_err(failure)
    }

    fn flush(&self) -> Result<(), Failure> {
        Storage::flush(self).map(|_| ()).map_err(failure)
    }

    fn check(&self) -> Result<Vec<String>, Failure> {
        let report = Storage::check(self).map_err(failure)?;
        Ok(report.problems.iter().map(|problem| format!("{problem:?}")).collect())
    }

    fn close(self) -> Result<(), Failure> {
        Storage::close(self).map_err(failure)
    }
}

/// What both kinds of transaction have, under one name.
trait View {
    fn names(&self) -> Result<Vec<(Vec<u8>, Kind)>, Error>;
    fn tree_of(&self, name: &str, order: Order) -> Result<BTreeMap<Vec<u8>, Arc<Vec<u8>>>, Error>;
    fn multi_of(&self, name: &str, order: Order) -> Result<Values, Error>;
    fn fixed_of(&self, name: &str, order: Order) -> Result<Fixed, Error>;
    fn rows_of(&self, name: &str, order: Order) -> Result<Rows, Error>;
    fn probe_tree(
        &self,
        name: &str,
        expected: &BTreeMap<Vec<u8>, Arc<Vec<u8>>>,
        random: &mut Random,
    ) -> Result<Option<String>, Error>;
    fn probe_multi(
        &self,
        name: &str,
        expected: &Values,
        random: &mut Random,
    ) -> Result<Option<String>, Error>;
    fn probe_fixed(&self, name: &str, expected: &Fixed, random: &mut Random)
    -> Result<Option<String>, Error>;
    fn probe_rows(&self, name: &str, expected: &Rows, random: &mut Random) -> Result<Option<String>, Error>;
}

type Values = BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>;
type Fixed = BTreeMap<i64, [u8; FIXED_VALUE_SIZE]>;
type Rows = BTreeMap<Vec<u8>, Row>;

/// Returns from a probe with what is wrong.
macro_rules! expect {
    ($what:expr, $found:expr, $expected:expr) => {
        let (found, expected) = ($found, $expected);
        if found != expected {
            return Ok(Some(format!("{} gives {found:?} instead of {expected:?}", $what)));
        }
    };
}

/// Error: a walk in `order` has come from `previous` to `here`.
fn in_order<K: Ord>(name: &str, previous: Option<&K>, here: &K, order: Order) -> Result<(), Error> {
    let ordered = previous.is_none_or(|previous| match order {
        Order::Ascending => previous < here,
        Order::Descending => previous > here,
    });
    if ordered { Ok(()) } else { Err(Error::Invalid(format!("{name}: a walk is out of order"))) }
}

/// Error: a structure counts other than it holds.
fn same_count(name: &str, said: u64, found: usize) -> Result<(), Error> {
    if said == found as u64 {
        return Ok(());
    }
    Err(Error::Invalid(format!("{name}: says {said} entries, has {found}")))
}

macro_rules! view {
    ($transaction:ty) => {
        impl View for $transaction {
            fn names(&self) -> Result<Vec<(Vec<u8>, Kind)>, Error> {
                self.trees()
            }

            fn tree_of(&self, name: &str, order: Order) -> Result<BTreeMap<Vec<u8>, Arc<Vec<u8>>>, Error> {
                let tree = self.tree(name.as_bytes())?;
                let mut entries = BTreeMap::new();
                let mut walk = tree.range(Bound::Unbounded, Bound::Unbounded, order)?;
                let mut previous: Option<Vec<u8>> = None;
                while let Some((key, value)) = walk.next()? {
                    let in_order = previous.as_deref().is_none_or(|previous| match order {
                        Order::Ascending => previous < key,
                        Order::Descending => previous > key,
                    });
                    if !in_order {
                        return Err(Error::Invalid(format!(
                            "{name}: key {} is out of order",
                            key.escape_ascii()
                        )));
                    }
                    previous = Some(key.to_vec());
                    entries.insert(key.to_vec(), Arc::new(value.to_vec()));
                }
                if tree.len() != entries.len() as u64 {
                    return Err(Error::Invalid(format!(
                        "{name}: says {} keys, has {}",
                        tree.len(),
                        entries.len()
                    )));
                }
                Ok(entries)
            }

            fn probe_tree(
                &self,
                name: &str,
                expected: &BTreeMap<Vec<u8>, Arc<Vec<u8>>>,
                random: &mut Random,
            ) -> Result<Option<String>, Error> {
                let tree = self.tree(name.as_bytes())?;
                let mut cursor = tree.cursor();
                let first = expected.first_key_value().map(|(key, _)| key.clone());
                let last = expected.last_key_value().map(|(key, _)| key.clone());
                expect!("first", tree.first()?.map(|(key, _)| key), first);
                expect!("last", tree.last()?.map(|(key, _)| key), last);
                for _ in 0..4 {
                    let mut key = match expected.keys().nth(random.below(expected.len().max(1))) {
                        Some(key) => key.clone(),
                        None => vec![b'k'],
                    };
                    match random.below(4) {
                        0 => key.push(0),
                        1 => {
                            let last = key.len() - 1;
                            key[last] = key[last].wrapping_sub(1);
                        }
                        _ => {}
                    }
                    key.truncate(jackdaw_storage::format::KEY_SIZE_MAX);
                    let shown = key.escape_ascii();
                    let value = expected.get(&key).map(|value| value.as_slice());
                    expect!(format!("get {shown}"), tree.get(&key)?, value);
                    expect!(format!("contains {shown}"), tree.contains(&key)?, value.is_some());
                    expect!(format!("seek_exact {shown}"), cursor.seek_exact(&key)?, value.is_some());
                    let at_least = expected.range(key.clone()..).map(|(key, _)| key.as_slice());
                    let at_most = expected.range(..=key.clone()).rev().map(|(key, _)| key.as_slice());
                    // A few steps from there in both directions.
                    let mut there = cursor.seek(&key)?;
                    for expected in at_least.map(Some).chain([None]).take(4) {
                        expect!(format!("seek {shown} and next"), there.then(|| cursor.key()), expected);
                        there = there && cursor.next()?;
                    }
                    let mut there = cursor.seek_at_most(&key)?;
                    for expected in at_most.map(Some).chain([None]).take(4) {
                        expect!(
                            format!("seek_at_most {shown} and prev"),
                            there.then(|| cursor.key()),
                            expected
                        );
                        there = there && cursor.prev()?;
                    }
                    let prefix = &key[..1 + random.below(key.len())];
                    let mut walk = tree.prefix(prefix, Order::Descending)?;
                    for (expected, _) in
                        expected.iter().rev().filter(|(key, _)| key.starts_with(prefix)).take(3)
                    {
                        let found = walk.next()?.map(|(key, _)| key.to_vec());
                        expect!(format!("prefix {}", prefix.escape_ascii()), found.as_ref(), Some(expected));
                    }
                }
                Ok(None)
            }

            fn multi_of(&self, name: &str, order: Order) -> Result<Values, Error> {
                let tree = self.multi_tree(name.as_bytes())?;
                let mut cursor = tree.cursor();
                let mut all = Values::new();
                let mut count = 0;
                let mut previous = None;
                loop {
                    let found = match order {
                        Order::Ascending => cursor.next()?,
                        Order::Descending => cursor.prev()?,
                    };
                    if !found {
                        break;
                    }
                    let here = (cursor.key().to_vec(), cursor.value().to_vec());
                    in_order(name, previous.as_ref(), &here, order)?;
                    all.entry(here.0.clone()).or_default().insert(here.1.clone());
                    previous = Some(here);
                    count += 1;
                }
                same_count(name, tree.len(), count)?;
                same_count(name, tree.keys(), all.len())?;
                Ok(all)
            }

            fn fixed_of(&self, name: &str, order: Order) -> Result<Fixed, Error> {
                let tree = self.fixed_tree(name.as_bytes())?;
                let mut walk = tree.range(Bound::Unbounded, Bound::Unbounded, order);
                let mut all = Fixed::new();
                let mut previous = None;
                while let Some((key, value)) = walk.next()? {
                    in_order(name, previous.as_ref(), &key, order)?;
                    previous = Some(key);
                    let size = || Error::Invalid(format!("{name}: a value of {} bytes", value.len()));
                    all.insert(key, value.try_into().map_err(|_| size())?);
                }
                same_count(name, tree.len(), all.len())?;
                Ok(all)
            }

            fn rows_of(&self, name: &str, order: Order) -> Result<Rows, Error> {
                let table = self.table(name.as_bytes())?;
                let unbounded = Bound::<&[u8]>::Unbounded;
                let mut all = Rows::new();
                let mut walk = table.range(By::Primary, unbounded, unbounded, order)?;
                let mut previous = None;
                while let Some(row) = walk.next()? {
                    let row = row_of(row)?;
                    in_order(name, previous.as_ref(), &row.id, order)?;
                    previous = Some(row.id.clone());
                    all.insert(row.id.clone(), row);
                }
                same_count(name, table.len(), all.len())?;
                // The other indexes must lead to the same rows.
                for by in [BY_ETAG, BY_GROUP] {
                    let mut count = 0;
                    let mut previous = None;
                    let mut walk = table.range(By::Index(by), unbounded, unbounded, order)?;
                    while let Some(row) = walk.next()? {
                        let row = row_of(row)?;
                        if all.get(&row.id) != Some(&row) {
                            return Err(Error::Invalid(format!("{name}: index {by} has another {row:?}")));
                        }
                        if by == BY_ETAG {
                            in_order(name, previous.as_ref(), &row.etag, order)?;
                            previous = Some(row.etag);
                        }
                        count += 1;
                    }
                    same_count(name, count, all.len())?;
                }
                Ok(all)
            }

            fn probe_multi(
                &self,
                name: &str,
                expected: &Values,
                random: &mut Random,
            ) -> Result<Option<String>, Error> {
                let tree = self.multi_tree(name.as_bytes())?;
                for _ in 0..4 {
                    let (mut key, values) = match expected.iter().nth(random.below(expected.len().max(1))) {
                        Some((key, values)) => (key.clone(), values.clone()),
                        None => (vec![b'm'], BTreeSet::new()),
                    };
                    let mut value = match values.iter().nth(random.below(values.len().max(1))) {
                        Some(value) => value.clone(),
                        None => vec![b'v'],
                    };
                    match random.below(4) {
                        0 => key.push(0),
                        1 => value.push(0),
                        _ => {}
                    }
                    let values = expected.get(&key).cloned().unwrap_or_default();
                    let shown = key.escape_ascii();
                    expect!(format!("count {shown}"), tree.count(&key)?, values.len() as u64);
                    let contains = tree.contains(&key, &value)?;
                    expect!(format!("contains {shown}"), contains, values.contains(&value));
                    let mut cursor = tree.values(&key)?;
                    let mut there = cursor.seek(&value)?;
                    for expected in values.range(value.clone()..).map(|v| Some(&v[..])).chain([None]).take(4)
                    {
                        expect!(format!("seek and next in {shown}"), there.then(|| cursor.value()), expected);
                        there = there && cursor.next()?;
                    }
                    let mut there = cursor.seek_at_most(&value)?;
                    let at_most = values.range(..=value.clone()).rev();
                    for expected in at_most.map(|v| Some(&v[..])).chain([None]).take(4) {
                        expect!(
                            format!("seek_at_most and prev in {shown}"),
                            there.then(|| cursor.value()),
                            expected
                        );
                        there = there && cursor.prev()?;
                    }
                    let mut cursor = tree.cursor();
                    let mut there = cursor.seek(&key)?;
                    for expected in
                        expected.range(key.clone()..).map(|(k, _)| Some(&k[..])).chain([None]).take(3)
                    {
                        expect!(format!("seek {shown} and next_key"), there.then(|| cursor.key()), expected);
                        there = there && cursor.next_key()?;
                    }
                }
                Ok(None)
            }

            fn probe_fixed(
                &self,
                name: &str,
                expected: &Fixed,
                random: &mut Random,
            ) -> Result<Option<String>, Error> {
                let tree = self.fixed_tree(name.as_bytes())?;
                let key_of = |entry: Option<(i64, &[u8])>| entry.map(|(key, _)| key);
                expect!("first", key_of(tree.first()?), expected.first_key_value().map(|(key, _)| *key));
                expect!("last", key_of(tree.last()?), expected.last_key_value().map(|(key, _)| *key));
                let mut cursor = tree.cursor();
                for _ in 0..4 {
                    let key = expected.keys().nth(random.below(expected.len().max(1))).copied().unwrap_or(0);
                    let key = key.wrapping_add([0, 0, 1, -1][random.below(4)]);
                    expect!(format!("get {key}"), tree.get(key)?, expected.get(&key).map(|v| &v[..]));
                    let mut there = cursor.seek(key)?;
                    for expected in
                        expected.range(key..).map(|(k, v)| Some((*k, &v[..]))).chain([None]).take(4)
                    {
                        expect!(format!("seek {key} and next"), there, expected);
                        there = cursor.next()?;
                    }
                    let mut there = cursor.seek_at_most(key)?;
                    let at_most = expected.range(..=key).rev();
                    for expected in at_most.map(|(k, v)| Some((*k, &v[..]))).chain([None]).take(4) {
                        expect!(format!("seek_at_most {key} and prev"), there, expected);
                        there = cursor.prev()?;
                    }
                    let high = key.saturating_add(random.below(50) as i64);
                    let mut walk = tree.range(Bound::Excluded(key), Bound::Included(high), Order::Descending);
                    let within = expected.iter().rev().filter(|(k, _)| **k > key && **k <= high);
                    for expected in within.map(|(k, v)| Some((*k, &v[..]))).chain([None]) {
                        expect!(format!("range {key} to {high}"), walk.next()?, expected);
                    }
                }
                Ok(None)
            }

            fn probe_rows(
                &self,
                name: &str,
                expected: &Rows,
                random: &mut Random,
            ) -> Result<Option<String>, Error> {
                let table = self.table(name.as_bytes())?;
                for _ in 0..4 {
                    let row = expected.values().nth(random.below(expected.len().max(1)));
                    let mut id = row.map_or(vec![b'r'], |row| row.id.clone());
                    if random.one_in(4) {
                        id.push(0);
                    }
                    let shown = id.escape_ascii();
                    let found = table.get(&id)?.map(row_of).transpose()?;
                    expect!(format!("get {shown}"), found.as_ref(), expected.get(&id));
                    let etag = row.map_or(0, |row| row.etag).wrapping_add([0, 0, 1, -1][random.below(4)]);
                    let found = table.get_by(BY_ETAG, &etag.to_be_bytes())?.map(row_of).transpose()?;
                    let of_etag = expected.values().find(|row| row.etag == etag);
                    expect!(format!("get by etag {etag}"), found.as_ref(), of_etag);
                    let mut walk = table.from_etag(BY_ETAG, etag, Order::Ascending)?;
                    let next = walk.next()?.and_then(|row| row.column_i64(1));
                    let least = expected.values().map(|row| row.etag).filter(|e| *e >= etag).min();
                    expect!(format!("from etag {etag}"), next, least);
                    let group = row.map_or(b"users".to_vec(), |row| row.group.clone());
                    let of_group = expected.values().filter(|row| row.group == group).count() as u64;
                    let shown = group.escape_ascii();
                    expect!(format!("count of group {shown}"), table.count_by(BY_GROUP, &group)?, of_group);
                    let mut walk = table.exact(By::Index(BY_GROUP), &group, Order::Descending)?;
                    let mut count = 0;
                    while let Some(row) = walk.next()? {
                        expect!(format!("the group {shown}"), row.column(2), group.as_slice());
                        count += 1;
                    }
                    expect!(format!("the rows of group {shown}"), count, of_group);
                }
                Ok(None)
            }
        }

        impl Read for $transaction {
            fn contents(&self, backwards: bool) -> Result<Model, Failure> {
                contents(self, backwards).map_err(failure)
            }

            fn probe(
                &self,
                name: &str,
                expected: &Structure,
                random: &mut Random,
            ) -> Result<Option<String>, Failure> {
                match expected {
                    Structure::Tree(expected) => self.probe_tree(name, expected, random),
                    Structure::Multi(expected) => self.probe_multi(name, expected, random),
                    Structure::Fixed(expected) => self.probe_fixed(name, expected, random),
                    Structure::Table(expected) => self.probe_rows(name, expected, random),
                }
                .map_err(failure)
            }
        }
    };
}

view!(ReadTransaction);
view!(WriteTransaction);

fn contents(view: &impl View, backwards: bool) -> Result<Model, Error> {
    let order = if backwards { Order::Descending } else { Order::Ascending };
    let mut model = Model::default();
    for (name, kind) in view.names()? {
        let name = String::from_utf8_lossy(&name).into_owned();
        let structure = match kind {
            Kind::Tree => Structure::Tree(view.tree_of(&name, order)?),
            Kind::MultiTree => Structure::Multi(view.multi_of(&name, order)?),
            Kind::FixedTree => Structure::Fixed(view.fixed_of(&name, order)?),
            Kind::Table => Structure::Table(view.rows_of(&name, order)?),
            other => return Err(Error::Invalid(format!("{name} is a {other:?}"))),
        };
        model.set(&name, structure);
    }
    Ok(model)
}

/// An answer that the model calls a refusal.
fn refused(result: Result<Outcome, Error>) -> Result<Outcome, Error> {
    match result {
        Err(
            Error::TreeNotFound { .. }
            | Error::TreeExists { .. }
            | Error::TreeKind { .. }
            | Error::DuplicateKey { .. },
        ) => Ok(Outcome::Refused),
        other => other,
    }
}

fn apply(transaction: &mut WriteTransaction, operation: &Operation) -> Result<Outcome, Error> {
    match operation {
        Operation::Create { name, kind } => {
            // The engine opens what is there already; the model refuses.
            if transaction.trees()?.iter().any(|(other, _)| other == name.as_bytes()) {
                return Ok(Outcome::Refused);
            }
            match kind {
                StructureKind::Tree => drop(transaction.create_tree(name.as_bytes())?),
                StructureKind::Multi => drop(transaction.create_multi_tree(name.as_bytes())?),
                StructureKind::Fixed => {
                    drop(transaction.create_fixed_tree(name.as_bytes(), FIXED_VALUE_SIZE)?);
                }
                StructureKind::Table => drop(transaction.create_table(name.as_bytes(), &schema())?),
            }
            Ok(Outcome::Done)
        }
        Operation::Drop { name } => match transaction.drop_tree(name.as_bytes())? {
            true => Ok(Outcome::Done),
            false => Ok(Outcome::Refused),
        },
        Operation::Rename { from, to } if from == to => Ok(Outcome::Refused),
        Operation::Rename { from, to } => {
            transaction.rename_tree(from.as_bytes(), to.as_bytes()).map(|()| Outcome::Done)
        }
        Operation::Put { name, key, value } => {
            transaction.tree_mut(name.as_bytes())?.put(key, value).map(Outcome::Was)
        }
        Operation::Delete { name, key } => {
            transaction.tree_mut(name.as_bytes())?.delete(key).map(Outcome::Was)
        }
        Operation::MultiAdd { name, key, value } => {
            transaction.multi_tree_mut(name.as_bytes())?.add(key, value).map(Outcome::Was)
        }
        Operation::MultiRemove { name, key, value } => {
            transaction.multi_tree_mut(name.as_bytes())?.remove(key, value).map(Outcome::Was)
        }
        Operation::FixedPut { name, key, value } => {
            transaction.fixed_tree_mut(name.as_bytes())?.put(*key, value).map(Outcome::Was)
        }
        Operation::FixedDelete { name, key } => {
            transaction.fixed_tree_mut(name.as_bytes())?.delete(*key).map(Outcome::Was)
        }
        Operation::Insert { name, row } | Operation::Update { name, row } => {
            let mut builder = RowBuilder::new();
            builder.push(&row.id).push_i64(row.etag).push(&row.group).push(&row.body);
            let mut table = transaction.table_mut(name.as_bytes())?;
            let row = builder.finish()?;
            let done = match operation {
                Operation::Insert { .. } => table.insert(row).map(|()| true)?,
                _ => table.update(row)?,
            };
            Ok(if done { Outcome::Done } else { Outcome::Refused })
        }
        Operation::DeleteRow { name, id } => {
            transaction.table_mut(name.as_bytes())?.delete(id).map(Outcome::Was)
        }
    }
}

impl Write for WriteTransaction {
    type Savepoint = Savepoint;
    type Ticket = CommitTicket;

    fn apply(&mut self, operation: &Operation) -> Result<Outcome, Failure> {
        refused(apply(self, operation)).map_err(failure)
    }

    fn savepoint(&mut self) -> Result<Savepoint, Failure> {
        Ok(WriteTransaction::savepoint(self))
    }

    fn rollback_to(&mut self, savepoint: Savepoint) -> Result<(), Failure> {
        WriteTransaction::rollback_to(self, savepoint).map_err(failure)
    }

    fn release(&mut self, savepoint: Savepoint) -> Result<(), Failure> {
        WriteTransaction::release(self, savepoint).map_err(failure)
    }

    fn commit(self) -> Result<(), Failure> {
        WriteTransaction::commit(self).map(|_| ()).map_err(failure)
    }

    fn commit_later(self) -> Result<CommitTicket, Failure> {
        WriteTransaction::commit_later(self).map_err(failure)
    }

    fn rollback(self) -> Result<(), Failure> {
        WriteTransaction::rollback(self);
        Ok(())
    }
}
