//! The engine itself, as the simulation sees it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use jackdaw_storage::disk::SimulatedDisk;
use jackdaw_storage::{
    CommitTicket, Environment as Storage, Error, Kind, Options, Order, ReadTransaction, Savepoint,
    WriteTransaction,
};
use jackdaw_testkit::{Model, Operation, Outcome, Random, Structure, StructureKind};

use super::engine::{Engine, Environment, Failure, Read, Write};

/// The structures that histories use.
pub const KINDS: &[StructureKind] = &[StructureKind::Tree];

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
    fn probe_tree(
        &self,
        name: &str,
        expected: &BTreeMap<Vec<u8>, Arc<Vec<u8>>>,
        random: &mut Random,
    ) -> Result<Option<String>, Error>;
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
                macro_rules! expect {
                    ($what:expr, $found:expr, $expected:expr) => {
                        let (found, expected) = ($found, $expected);
                        if found != expected {
                            return Ok(Some(format!("{} gives {found:?} instead of {expected:?}", $what)));
                        }
                    };
                }
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
                    Structure::Tree(expected) => self.probe_tree(name, expected, random).map_err(failure),
                    _ => Ok(None),
                }
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
                other => return Err(Error::Invalid(format!("{other:?} is not simulated yet"))),
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
        other => Err(Error::Invalid(format!("{other:?} is not simulated yet"))),
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
