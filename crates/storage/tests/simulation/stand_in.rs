//! An engine so simple that it is right, or wrong in just the way that is asked for: it shows that the simulation notices mistakes.
//!
//! The models of all commits are kept in memory; the one file `state` says which of them is current, and is replaced by renaming.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jackdaw_storage::disk::{Disk, OpenMode, SimulatedDisk};
use jackdaw_testkit::{Model, Operation, Outcome, Random, Structure};

use super::engine::{Engine, Environment, Failure, Read, Write};

/// What the stand-in does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    None,
    /// The file is not synced before it is renamed.
    FileNotSynced,
    /// The directory is not synced after the renaming.
    DirectoryNotSynced,
    /// A failed sync is tried again, and success then believed.
    SyncRetried,
    /// A commit that failed is shown to readers.
    FailedCommitShown,
    /// Snapshots show later commits.
    SnapshotMoves,
    /// Going back to a savepoint keeps the last change.
    SavepointKeepsChange,
    /// A rolled back transaction is committed by the next.
    RollbackForgotten,
    /// A full disk is reported, but the commit stays.
    FullDiskCommits,
    /// Walking backwards leaves out the first key.
    BackwardsShort,
    /// `check` finds something.
    CheckComplains,
}

impl Mistake {
    pub const ALL: [Mistake; 10] = [
        Mistake::FileNotSynced,
        Mistake::DirectoryNotSynced,
        Mistake::SyncRetried,
        Mistake::FailedCommitShown,
        Mistake::SnapshotMoves,
        Mistake::SavepointKeepsChange,
        Mistake::RollbackForgotten,
        Mistake::FullDiskCommits,
        Mistake::BackwardsShort,
        Mistake::CheckComplains,
    ];
}

pub struct StandIn {
    mistake: Mistake,
    /// Every state that was ever committed; the first is the empty one.
    states: Arc<Mutex<Vec<Model>>>,
}

impl StandIn {
    pub fn new(mistake: Mistake) -> StandIn {
        StandIn { mistake, states: Arc::new(Mutex::new(vec![Model::default()])) }
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(error: std::io::Error) -> Failure {
    Failure::Failed(error.to_string())
}

impl Engine for StandIn {
    type Environment = StandInEnvironment;

    fn open(&self, disk: &SimulatedDisk, _habits: &mut Random) -> Result<StandInEnvironment, Failure> {
        disk.create_directory("").map_err(failed)?;
        let mut current = Model::default();
        if disk.exists("state").map_err(failed)? {
            let mut index = [0; 8];
            disk.open("state", OpenMode::Read).map_err(failed)?.read_at(0, &mut index).map_err(failed)?;
            current = held(&self.states)[u64::from_le_bytes(index) as usize].clone();
        }
        let current = Arc::new(Mutex::new(current));
        let environment = StandInEnvironment {
            mistake: self.mistake,
            states: Arc::clone(&self.states),
            disk: disk.clone(),
            current,
            leftover: Mutex::default(),
            failed: Mutex::new(false),
        };
        // What was only visible becomes durable before anybody relies on it.
        let now = held(&environment.current).clone();
        environment.store(now, Mistake::None)?;
        Ok(environment)
    }
}

pub struct StandInEnvironment {
    mistake: Mistake,
    states: Arc<Mutex<Vec<Model>>>,
    disk: SimulatedDisk,
    current: Arc<Mutex<Model>>,
    leftover: Mutex<Option<Model>>,
    failed: Mutex<bool>,
}

impl StandInEnvironment {
    fn store(&self, model: Model, mistake: Mistake) -> Result<(), Failure> {
        let index = {
            let mut states = held(&self.states);
            states.push(model);
            states.len() as u64 - 1
        };
        let full = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::StorageFull => Failure::Full(error.to_string()),
            _ => failed(error),
        };
        let file = self.disk.open("state.new", OpenMode::Create).map_err(full)?;
        file.write_at(0, &index.to_le_bytes()).map_err(full)?;
        if mistake != Mistake::FileNotSynced {
            let synced = file.sync();
            if mistake == Mistake::SyncRetried { synced.or_else(|_| file.sync()) } else { synced }
                .map_err(failed)?;
        }
        self.disk.rename("state.new", "state").map_err(failed)?;
        if mistake != Mistake::DirectoryNotSynced {
            self.disk.sync_directory("").map_err(failed)?;
        }
        Ok(())
    }
}

impl Environment for StandInEnvironment {
    type Read<'e> = View<'e>;
    type Write<'e> = View<'e>;
    type Ticket = ();

    fn read(&self) -> Result<View<'_>, Failure> {
        Ok(View { environment: self, model: held(&self.current).clone(), writes: false })
    }

    fn write(&self) -> Result<View<'_>, Failure> {
        if *held(&self.failed) {
            return Err(Failure::Failed("an earlier write failed".to_owned()));
        }
        let leftover = held(&self.leftover).take();
        Ok(View {
            environment: self,
            model: leftover.unwrap_or_else(|| held(&self.current).clone()),
            writes: true,
        })
    }

    fn wait(&self, (): ()) -> Result<(), Failure> {
        Ok(())
    }

    fn flush(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn check(&self) -> Result<Vec<String>, Failure> {
        let complains = self.mistake == Mistake::CheckComplains && held(&self.states).len() > 5;
        Ok(complains.then(|| "something".to_owned()).into_iter().collect())
    }

    fn close(self) -> Result<(), Failure> {
        Ok(())
    }
}

pub struct View<'e> {
    environment: &'e StandInEnvironment,
    model: Model,
    writes: bool,
}

impl Read for View<'_> {
    fn contents(&self, backwards: bool) -> Result<Model, Failure> {
        let mistake = self.environment.mistake;
        let mut model = self.model.clone();
        if mistake == Mistake::SnapshotMoves && !self.writes {
            model = held(&self.environment.current).clone();
        }
        if mistake == Mistake::BackwardsShort && backwards {
            let first = model.structures().find_map(|(name, structure)| match structure {
                Structure::Tree(map) => Some((name.to_owned(), map.keys().next()?.clone())),
                _ => None,
            });
            if let Some((name, key)) = first {
                model.apply(&Operation::Delete { name, key });
            }
        }
        Ok(model)
    }

    fn probe(
        &self,
        name: &str,
        expected: &Structure,
        _random: &mut Random,
    ) -> Result<Option<String>, Failure> {
        Ok((self.contents(false)?.get(name) != Some(expected)).then(|| "it is another".to_owned()))
    }
}

impl Write for View<'_> {
    type Savepoint = Model;
    type Ticket = ();

    fn apply(&mut self, operation: &Operation) -> Result<Outcome, Failure> {
        Ok(self.model.apply(operation))
    }

    fn savepoint(&mut self) -> Result<Model, Failure> {
        Ok(self.model.clone())
    }

    fn rollback_to(&mut self, savepoint: Model) -> Result<(), Failure> {
        if self.environment.mistake != Mistake::SavepointKeepsChange {
            self.model = savepoint;
        }
        Ok(())
    }

    fn release(&mut self, _savepoint: Model) -> Result<(), Failure> {
        Ok(())
    }

    fn commit(self) -> Result<(), Failure> {
        let mistake = self.environment.mistake;
        let result = self.environment.store(self.model.clone(), mistake);
        let shown = match &result {
            Ok(()) => true,
            Err(Failure::Full(_)) => mistake == Mistake::FullDiskCommits,
            Err(_) => {
                *held(&self.environment.failed) = true;
                mistake == Mistake::FailedCommitShown
            }
        };
        if shown {
            *held(&self.environment.current) = self.model;
        }
        result
    }

    fn commit_later(self) -> Result<(), Failure> {
        self.commit()
    }

    fn rollback(self) -> Result<(), Failure> {
        if self.environment.mistake == Mistake::RollbackForgotten {
            *held(&self.environment.leftover) = Some(self.model);
        }
        Ok(())
    }
}
