//! A disk in memory that forgets what was not synced and fails when told: [`SimulatedDisk`].
//!
//! What holds, as on a real machine:
//! - [`File::write_at`], [`File::write_direct`], [`File::allocate`] and [`File::truncate`] are seen at once and durable after
//!   [`File::sync`]; [`File::write_durable`], [`File::prewrite`] and [`Disk::create_directory`] are durable on return; creating,
//!   renaming and removing a file are durable after [`Disk::sync_directory`], whether or not the file was synced.
//! - [`SimulatedDisk::crash`] makes the disk that a power loss leaves: all that was durable; of the rest, each
//!   512-byte sector as it was at some moment since the last sync, the length likewise, and of each directory's changes some first ones.
//! - A sync that fails may have lost any of what it should have made durable, although programs go on to see it and the next sync
//!   succeeds.
//!
//! One seed and one order of calls give one history: chance comes from seeds, and nothing depends on time, addresses or hashing. The
//! order of calls is the caller's matter: one thread, or none that interfere.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;

use self::chance::Chance;
use self::contents::Contents;
use self::faults::{Faults, error_of};
use self::names::{FileId, Names, directory_of};
use super::memory_map::AnonymousMemory;
use super::{Disk, File, Mapping, OpenMode, check_alignment};

mod chance;
mod contents;
mod faults;
mod names;

pub use self::faults::{Call, Fault, TracedCall};

/// What the lock says who holds it: the process that simulates.
fn holder() -> u32 {
    std::process::id()
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

struct State {
    names: Names,
    files: BTreeMap<FileId, OpenableFile>,
    file_id_next: u64,
    locked: bool,
    faults: Faults,
    /// Decides what a failing call leaves behind.
    chance: Chance,
    capacity: Option<u64>,
    is_direct: bool,
}

struct OpenableFile {
    contents: Contents,
    handles: usize,
}

impl SimulatedDisk {
    /// An empty disk, whose directory does not exist yet. The seed decides what failing calls leave behind.
    pub fn new(seed: u64) -> SimulatedDisk {
        SimulatedDisk::of(Names::default(), BTreeMap::new(), 0, Chance::new(seed), true)
    }

    fn of(
        names: Names,
        files: BTreeMap<FileId, OpenableFile>,
        file_id_next: u64,
        chance: Chance,
        is_direct: bool,
    ) -> SimulatedDisk {
        let faults = Faults::default();
        let state =
            State { names, files, file_id_next, locked: false, faults, chance, capacity: None, is_direct };
        SimulatedDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// The disk that a power loss at this moment leaves; the seed chooses what of the unsynced survives. This disk is not changed, so
    /// that many seeds can be tried on one moment. The new one is not locked, has no faults, no capacity, and counts calls from 1.
    ///
    /// Errors: the machine that simulates is out of addresses or memory.
    pub fn crash(&self, seed: u64) -> io::Result<SimulatedDisk> {
        let state = self.state.lock();
        let chance = Chance::new(seed);
        let names = state.names.survivor(&mut chance.fork(0));
        let mut files = BTreeMap::new();
        for (_, id) in names.iter() {
            if let Some(file) = state.files.get(&id) {
                // Each file has its own dice, so that one more write to another does not change them.
                let contents = file.contents.survivor(&mut chance.fork(id.0 + 1))?;
                files.insert(id, OpenableFile { contents, handles: 0 });
            }
        }
        Ok(SimulatedDisk::of(names, files, state.file_id_next, chance.fork(u64::MAX), state.is_direct))
    }

    /// The disk as a program that starts now finds it, with all that is not durable: what the death of the process leaves. A copy: neither
    /// disk sees later changes of the other. The new one is not locked, has no faults, no capacity, and counts calls from 1.
    ///
    /// Errors: the machine that simulates is out of addresses or memory.
    pub fn snapshot(&self) -> io::Result<SimulatedDisk> {
        let state = self.state.lock();
        let mut files = BTreeMap::new();
        for (&id, file) in &state.files {
            if state.names.leads_to(id) {
                files.insert(id, OpenableFile { contents: file.contents.copy()?, handles: 0 });
            }
        }
        Ok(SimulatedDisk::of(
            state.names.clone(),
            files,
            state.file_id_next,
            state.chance.clone(),
            state.is_direct,
        ))
    }

    /// How many calls were made; the first is number 1.
    pub fn calls(&self) -> u64 {
        self.state.lock().faults.calls()
    }

    /// How many calls were made that change something or make it durable; the first is number 1.
    pub fn mutating_calls(&self) -> u64 {
        self.state.lock().faults.mutating_calls()
    }

    /// Lets the call with this number fail.
    pub fn fail_at(&self, number: u64, fault: Fault) {
        self.state.lock().faults.fail_at(number, fault);
    }

    /// Lets all calls from this number on fail.
    pub fn fail_from(&self, number: u64, fault: Fault) {
        self.state.lock().faults.fail_from(number, fault);
    }

    /// Lets the mutating call with this number (see [`SimulatedDisk::mutating_calls`]) fail.
    pub fn fail_at_mutating(&self, number: u64, fault: Fault) {
        self.state.lock().faults.fail_at_mutating(number, fault);
    }

    /// Lets all mutating calls from this number on fail.
    pub fn fail_from_mutating(&self, number: u64, fault: Fault) {
        self.state.lock().faults.fail_from_mutating(number, fault);
    }

    /// Lets so many of a million calls fail, each with one of `faults`. Panics when there is none.
    pub fn fail_randomly(&self, seed: u64, per_million: u32, faults: &[Fault]) {
        self.state.lock().faults.fail_randomly(seed, per_million, faults);
    }

    /// Takes all faults back. A power loss that happened stays.
    pub fn clear_faults(&self) {
        self.state.lock().faults.clear();
    }

    /// The calls that a fault struck, in order.
    pub fn struck(&self) -> Vec<TracedCall> {
        self.state.lock().faults.struck().to_vec()
    }

    /// How many faults have struck.
    pub fn faults_struck(&self) -> u64 {
        self.state.lock().faults.struck().len() as u64
    }

    /// Whether [`Fault::Crash`] struck.
    pub fn has_crashed(&self) -> bool {
        self.state.lock().faults.has_crashed()
    }

    /// Records calls from now on.
    pub fn start_trace(&self) {
        self.state.lock().faults.set_trace();
    }

    /// The calls recorded since [`SimulatedDisk::start_trace`]; recording ends.
    pub fn take_trace(&self) -> Vec<TracedCall> {
        self.state.lock().faults.take_trace()
    }

    /// Limits the sum of all files' lengths to so many bytes; `ENOSPC` beyond. Files already longer stay.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().capacity = bytes;
    }

    /// The sum of all files' lengths, in bytes, of the removed but open too.
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// Makes this a file system without direct writes: [`File::write_durable`] is then a write and a sync of the whole file.
    pub fn set_direct(&self, is_direct: bool) {
        self.state.lock().is_direct = is_direct;
    }

    /// The names of all files, sorted, with their directories.
    pub fn names(&self) -> Vec<String> {
        self.state.lock().names.iter().map(|(name, _)| name.to_owned()).collect()
    }

    /// A file's bytes as programs see them; `None` when it does not exist.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state.lock();
        let contents = &state.files.get(&state.names.get(name)?)?.contents;
        let mut bytes = vec![0; contents.length() as usize];
        contents.read(0, &mut bytes).ok()?;
        Some(bytes)
    }

    /// Overwrites bytes of a file, durably and behind everybody's back; lengthens it where needed.
    ///
    /// Errors: there is no such file, or it would become too long.
    pub fn damage(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        Contents::check_end(offset, bytes.len() as u64)?;
        state.named(name)?.damage(offset, bytes);
        Ok(())
    }

    /// Replaces a file's bytes, durably and behind everybody's back; makes the file and its directory when they do not exist.
    ///
    /// Errors: it would become too long, or a name is taken.
    pub fn set_contents(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        Contents::check_end(0, bytes.len() as u64)?;
        if state.names.get(name).is_none() {
            if !state.names.add_directory(directory_of(name)) {
                return Err(Errno::NOTDIR.into());
            }
            state.create(name)?;
            state.names.sync(directory_of(name));
        }
        let contents = state.named(name)?;
        contents.truncate(0);
        contents.write(0, bytes);
        contents.sync();
        Ok(())
    }
}

impl State {
    fn named(&mut self, name: &str) -> io::Result<&mut Contents> {
        let id = self.names.get(name).ok_or(Errno::NOENT)?;
        Ok(&mut self.files.get_mut(&id).ok_or(Errno::NOENT)?.contents)
    }

    fn create(&mut self, name: &str) -> io::Result<FileId> {
        let id = FileId(self.file_id_next);
        self.files.insert(id, OpenableFile { contents: Contents::new()?, handles: 0 });
        self.file_id_next += 1;
        self.names.create(name, id);
        Ok(id)
    }

    /// Forgets files that nobody can reach any more.
    fn forget_unreachable(&mut self) {
        self.files.retain(|&id, file| file.handles > 0 || self.names.leads_to(id));
    }

    fn used(&self) -> u64 {
        self.files.values().map(|file| file.contents.length()).sum()
    }

    /// Refuses to make a file of `length` bytes `end` long when the disk would be too full then.
    fn check_capacity(&self, length: u64, end: u64) -> io::Result<()> {
        match self.capacity {
            Some(capacity) if end > length && self.used() - length + end > capacity => {
                Err(Errno::NOSPC.into())
            }
            _ => Ok(()),
        }
    }

    /// Counts a call that leaves nothing behind when it fails.
    fn count(&mut self, call: Call, name: &str) -> io::Result<()> {
        match self.faults.count(call, name)? {
            None => Ok(()),
            Some(fault) => Err(error_of(fault)),
        }
    }

    /// Counts a call that changes names by `change`: after a power loss during it, the change may be there or not.
    fn count_change(
        &mut self,
        call: Call,
        name: &str,
        change: impl FnOnce(&mut State) -> io::Result<()>,
    ) -> io::Result<()> {
        match self.faults.count(call, name)? {
            None => change(self),
            Some(fault) => {
                if fault == Fault::Crash {
                    change(self)?;
                }
                Err(error_of(fault))
            }
        }
    }
}

impl Disk for SimulatedDisk {
    fn path(&self) -> PathBuf {
        PathBuf::from("/simulated")
    }

    fn lock(&self) -> io::Result<Result<Box<dyn Send + Sync>, u32>> {
        let mut state = self.state.lock();
        state.count(Call::Lock, super::LOCK_FILE)?;
        if !state.names.has_directory("") {
            return Err(Errno::NOENT.into());
        }
        if state.locked {
            return Ok(Err(holder()));
        }
        state.locked = true;
        Ok(Ok(Box::new(LockGuard { state: Arc::clone(&self.state) })))
    }

    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        let found = state.names.get(name);
        if found.is_some() || mode != OpenMode::Create {
            state.count(Call::Open, name)?;
        } else {
            state.count_change(Call::Create, name, |state| {
                if state.names.has_directory(name) {
                    return Err(Errno::ISDIR.into());
                }
                if !state.names.has_directory(directory_of(name)) {
                    return Err(Errno::NOENT.into());
                }
                state.create(name).map(|_| ())
            })?;
        }
        let id = state.names.get(name).ok_or(if state.names.has_directory(name) {
            Errno::ISDIR
        } else {
            Errno::NOENT
        })?;
        let file = state.files.get_mut(&id).ok_or(Errno::NOENT)?;
        file.handles += 1;
        let writable = mode != OpenMode::Read;
        Ok(Arc::new(SimulatedFile { state: Arc::clone(&self.state), id, name: name.to_owned(), writable }))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        let mut state = self.state.lock();
        state.count(Call::Exists, name)?;
        Ok(state.names.get(name).is_some() || state.names.has_directory(name))
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let mut state = self.state.lock();
        state.count(Call::List, directory)?;
        Ok(state.names.list(directory))
    }

    fn create_directory(&self, directory: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.count_change(Call::CreateDirectory, directory, |state| {
            if state.names.add_directory(directory) { Ok(()) } else { Err(Errno::NOTDIR.into()) }
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.count_change(Call::Rename, from, |state| {
            let file = state.names.get(from).ok_or(Errno::NOENT)?;
            if !state.names.has_directory(directory_of(to)) {
                return Err(Errno::NOENT.into());
            }
            if state.names.has_directory(to) {
                return Err(Errno::ISDIR.into());
            }
            state.names.rename(from, to, file);
            state.forget_unreachable();
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.count_change(Call::Remove, name, |state| {
            state.names.get(name).ok_or(Errno::NOENT)?;
            state.names.remove(name);
            state.forget_unreachable();
            Ok(())
        })
    }

    fn sync_directory(&self, directory: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.count(Call::SyncDirectory, directory)?;
        if !state.names.has_directory(directory) {
            return Err(Errno::NOENT.into());
        }
        state.names.sync(directory);
        state.forget_unreachable();
        Ok(())
    }
}

/// Gives the lock back.
struct LockGuard {
    state: Arc<Mutex<State>>,
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.state.lock().locked = false;
    }
}

/// One open file of a simulated disk.
struct SimulatedFile {
    state: Arc<Mutex<State>>,
    id: FileId,
    /// What it was called when opened.
    name: String,
    writable: bool,
}

impl SimulatedFile {
    /// Counts a call, and passes the file's contents, the dice and the fault to `act`, whose result counts when no fault struck.
    fn act<T>(
        &self,
        call: Call,
        act: impl FnOnce(&mut Contents, &mut Chance, Option<Fault>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.act_growing(call, |_| Ok(0), act)
    }

    /// As [`SimulatedFile::act`], for a call that makes the file as long as `end` says, if it is shorter.
    fn act_growing<T>(
        &self,
        call: Call,
        end: impl FnOnce(&Contents) -> io::Result<u64>,
        act: impl FnOnce(&mut Contents, &mut Chance, Option<Fault>) -> io::Result<T>,
    ) -> io::Result<T> {
        let state = &mut *self.state.lock();
        let fault = state.faults.count(call, &self.name)?;
        if call.is_mutating() && !self.writable && call != Call::Sync {
            return Err(Errno::BADF.into());
        }
        let contents = &state.files.get(&self.id).ok_or(Errno::BADF)?.contents;
        let (length, end) = (contents.length(), end(contents)?);
        state.check_capacity(length, end)?;
        let contents = &mut state.files.get_mut(&self.id).ok_or(Errno::BADF)?.contents;
        let done = act(contents, &mut state.chance, fault)?;
        match fault {
            None => Ok(done),
            Some(fault) => Err(error_of(fault)),
        }
    }

    /// A write that is not durable on return.
    fn write_volatile(&self, call: Call, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = |_: &Contents| Contents::check_end(offset, bytes.len() as u64);
        self.act_growing(call, end, |contents, chance, fault| {
            match fault {
                None | Some(Fault::Crash) => contents.write(offset, bytes),
                Some(Fault::Eio) => contents.write_some(offset, bytes, chance),
                Some(Fault::Enospc) => {}
            }
            Ok(())
        })
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if let Some(file) = state.files.get_mut(&self.id) {
            file.handles -= 1;
        }
        state.forget_unreachable();
    }
}

impl File for SimulatedFile {
    fn len(&self) -> io::Result<u64> {
        self.act(Call::Len, |contents, _, _| Ok(contents.length()))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.act(
            Call::ReadAt,
            |contents, _, fault| if fault.is_none() { contents.read(offset, buffer) } else { Ok(()) },
        )
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_volatile(Call::WriteAt, offset, bytes)
    }

    fn write_direct(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        check_alignment(offset, bytes)?;
        self.write_volatile(Call::WriteDirect, offset, bytes)
    }

    fn write_durable(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        check_alignment(offset, bytes)?;
        let is_direct = self.state.lock().is_direct;
        let end = |_: &Contents| Contents::check_end(offset, bytes.len() as u64);
        self.act_growing(Call::WriteDurable, end, |contents, chance, fault| {
            match (fault, is_direct) {
                (None, true) => contents.write_durable(offset, bytes),
                (None, false) => {
                    contents.write(offset, bytes);
                    contents.sync();
                }
                // Torn: any of its sectors may have reached the disk.
                (Some(Fault::Crash), _) => contents.write(offset, bytes),
                (Some(Fault::Enospc), _) => {}
                (Some(Fault::Eio), true) => contents.write_some(offset, bytes, chance),
                (Some(Fault::Eio), false) => {
                    contents.write(offset, bytes);
                    contents.sync_failing(chance);
                }
            }
            Ok(())
        })
    }

    fn is_direct(&self) -> bool {
        self.writable && self.state.lock().is_direct
    }

    fn sync(&self) -> io::Result<()> {
        self.act(Call::Sync, |contents, chance, fault| {
            match fault {
                None => contents.sync(),
                Some(Fault::Eio | Fault::Enospc) => contents.sync_failing(chance),
                Some(Fault::Crash) => {}
            }
            Ok(())
        })
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let end = |_: &Contents| Contents::check_end(0, length);
        self.act_growing(Call::Allocate, end, |contents, chance, fault| {
            match fault {
                None | Some(Fault::Crash) => contents.extend(length),
                // Space may run out on the way.
                Some(Fault::Eio | Fault::Enospc) => contents.extend(chance.below(length + 1)),
            }
            Ok(())
        })
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.act(Call::Truncate, |contents, _, fault| {
            if matches!(fault, None | Some(Fault::Crash)) {
                contents.truncate(length);
            }
            Ok(())
        })
    }

    fn prewrite(&self, length: u64) -> io::Result<()> {
        let end = |_: &Contents| Contents::check_end(0, length);
        self.act_growing(Call::Prewrite, end, |contents, chance, fault| {
            match fault {
                None => {
                    contents.extend(length);
                    contents.sync();
                }
                Some(Fault::Crash) => contents.extend(length),
                Some(Fault::Eio) => {
                    contents.extend(chance.below(length + 1));
                    contents.sync_failing(chance);
                }
                Some(Fault::Enospc) => contents.extend(chance.below(length + 1)),
            }
            Ok(())
        })
    }

    fn map(&self, reserve: usize) -> io::Result<Arc<dyn Mapping>> {
        if reserve == 0 {
            return Err(Errno::INVAL.into());
        }
        self.act(Call::Map, |contents, _, _| {
            Ok(Arc::new(SimulatedMapping { memory: contents.memory() }) as Arc<dyn Mapping>)
        })
    }
}

/// The very memory that the file's bytes are in. Less is reserved than asked for, which nobody can notice: a file never gets
/// longer than its memory.
struct SimulatedMapping {
    memory: Arc<AnonymousMemory>,
}

impl Mapping for SimulatedMapping {
    fn base(&self) -> *const u8 {
        self.memory.base()
    }

    fn will_need(&self, _offset: usize, _length: usize) {}
}

#[cfg(test)]
mod tests;
