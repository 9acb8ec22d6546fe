//! The files of an index: visible at once, durable a little later.
//!
//! tantivy syncs every file that it writes and renames its list of files ("meta.json") into place after that: some twenty
//! syncs for a commit of one entry. An index is derived data, and its payload says how far it has come, so it need not be
//! durable to the last commit: it must be whole at some commit. So files are written without a sync, and the lists
//! (`meta.json`, `.managed.json`) stay in memory, where readers of this process see them. [`LazyDirectory::sync`] syncs the
//! new files, then the directory, and only then replaces the list on disk: what is on disk is at every moment the whole state
//! of one commit. Files that the list on disk still names are deleted after the next sync.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite,
    WatchCallback, WatchHandle, WritePtr,
};

/// The list of segments of the last commit.
pub(crate) const META: &str = "meta.json";

/// Bytes of a file that are written together.
const BUFFER: usize = 64 << 10;

/// A directory whose commits become durable by [`LazyDirectory::sync`].
#[derive(Clone, Debug)]
pub(crate) struct LazyDirectory {
    shared: Arc<Shared>,
}

struct Shared {
    root: PathBuf,
    mapped: MmapDirectory,
    state: Mutex<State>,
    /// One sync at a time.
    syncing: Mutex<()>,
    bytes_unsynced: AtomicU64,
    /// Files that are being written.
    open_files: AtomicUsize,
    /// How often the list of segments was replaced.
    version: AtomicU64,
    /// Told whenever it is.
    on_list: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Whether nothing may be written any more.
    is_closed: AtomicBool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").field("root", &self.root).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    /// Small files by name, as they were last replaced; newer than those on disk.
    lists: HashMap<PathBuf, Arc<Vec<u8>>>,
    /// Whether `lists` holds something that is not on disk.
    lists_changed: bool,
    /// Files that were written and not yet synced.
    unsynced: BTreeSet<PathBuf>,
    /// Files to delete after the next sync, since the list on disk may name them.
    doomed: BTreeSet<PathBuf>,
}

impl LazyDirectory {
    /// Opens a directory that exists.
    pub(crate) fn open(root: &Path) -> io::Result<LazyDirectory> {
        let mapped = MmapDirectory::open(root).map_err(io::Error::other)?;
        Ok(LazyDirectory {
            shared: Arc::new(Shared {
                root: root.to_owned(),
                mapped,
                state: Mutex::default(),
                syncing: Mutex::default(),
                bytes_unsynced: AtomicU64::new(0),
                open_files: AtomicUsize::new(0),
                version: AtomicU64::new(0),
                on_list: OnceLock::new(),
                is_closed: AtomicBool::new(false),
            }),
        })
    }

    /// Whether commits wait to become durable.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.shared.state.lock().lists_changed
    }

    /// How often the list of segments was replaced.
    pub(crate) fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    /// Has `told` called whenever the list of segments was replaced, by a commit or a merge. Only the first one is taken.
    pub(crate) fn tell_of_lists(&self, told: impl Fn() + Send + Sync + 'static) {
        let _ = self.shared.on_list.set(Box::new(told));
    }

    /// Lets nothing be written any more, so that merges end, and waits a little until they have. Lists can still be synced.
    pub(crate) fn close(&self, patience: Duration) {
        self.shared.is_closed.store(true, Ordering::Release);
        let begun = Instant::now();
        while self.shared.open_files.load(Ordering::Acquire) > 0 && begun.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets nothing be synced, so that the files on disk stay those of one commit, while this is held.
    #[cfg(test)]
    pub(crate) fn hold(&self) -> parking_lot::MutexGuard<'_, ()> {
        self.shared.syncing.lock()
    }

    /// Makes the last commit durable. Commits may go on meanwhile; theirs is the next sync.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let _one = self.shared.syncing.lock();
        // All files that these lists name were written before; what is written from now on belongs to later lists.
        let (lists, unsynced, doomed) = {
            let mut state = self.shared.state.lock();
            if !state.lists_changed {
                return Ok(());
            }
            state.lists_changed = false;
            let lists: BTreeMap<PathBuf, Arc<Vec<u8>>> =
                state.lists.iter().map(|(name, text)| (name.clone(), Arc::clone(text))).collect();
            (lists, std::mem::take(&mut state.unsynced), std::mem::take(&mut state.doomed))
        };
        let result = self.sync_files(&lists, &unsynced);
        let mut state = self.shared.state.lock();
        match result {
            Ok(()) => {
                self.shared.bytes_unsynced.store(0, Ordering::Relaxed);
                drop(state);
                for name in doomed {
                    // A file that stays is removed when the index is opened.
                    let _ = fs::remove_file(self.shared.root.join(name));
                }
                Ok(())
            }
            Err(error) => {
                state.lists_changed = true;
                state.unsynced.extend(unsynced);
                state.doomed.extend(doomed);
                Err(error)
            }
        }
    }

    fn sync_files(
        &self,
        lists: &BTreeMap<PathBuf, Arc<Vec<u8>>>,
        unsynced: &BTreeSet<PathBuf>,
    ) -> io::Result<()> {
        for name in unsynced {
            match File::open(self.shared.root.join(name)) {
                Ok(file) => file.sync_data()?,
                // Written and deleted again since: no list names it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        self.shared.mapped.sync_directory()?;
        for (name, text) in lists {
            self.shared.mapped.atomic_write(name, text)?;
        }
        self.shared.mapped.sync_directory()
    }

    /// Removes files that no list names: what an unfinished commit left behind.
    pub(crate) fn remove_strays(&self, named: &BTreeSet<PathBuf>) -> io::Result<()> {
        for file in fs::read_dir(&self.shared.root)? {
            let name = PathBuf::from(file?.file_name());
            let is_segment = name.extension().is_some_and(|extension| {
                ["store", "term", "idx", "pos", "fieldnorm", "fast", "del", "temp"]
                    .iter()
                    .any(|known| extension == *known)
            });
            if is_segment && !named.contains(&name) {
                fs::remove_file(self.shared.root.join(name))?;
            }
        }
        Ok(())
    }
}

impl Directory for LazyDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.shared.mapped.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let mut state = self.shared.state.lock();
        if !state.unsynced.remove(path) {
            state.doomed.insert(path.to_owned());
            state.lists_changed = true;
            return Ok(());
        }
        drop(state);
        self.shared.mapped.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        if self.shared.state.lock().lists.contains_key(path) {
            return Ok(true);
        }
        self.shared.mapped.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let full = self.shared.root.join(path);
        if let Err(error) = self.shared.check_open() {
            return Err(OpenWriteError::wrap_io_error(error, path.to_owned()));
        }
        let file = OpenOptions::new().write(true).create_new(true).open(full).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                OpenWriteError::FileAlreadyExists(path.to_owned())
            } else {
                OpenWriteError::wrap_io_error(error, path.to_owned())
            }
        })?;
        self.shared.state.lock().unsynced.insert(path.to_owned());
        self.shared.open_files.fetch_add(1, Ordering::AcqRel);
        Ok(io::BufWriter::with_capacity(
            BUFFER,
            Box::new(LazyFile { file, shared: Arc::clone(&self.shared) }),
        ))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        if let Some(text) = self.shared.state.lock().lists.get(path) {
            return Ok(text.to_vec());
        }
        self.shared.mapped.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        let mut state = self.shared.state.lock();
        state.lists.insert(path.to_owned(), Arc::new(data.to_vec()));
        // The list of all files matters only together with the list of segments.
        if path == Path::new(META) {
            state.lists_changed = true;
            self.shared.version.fetch_add(1, Ordering::AcqRel);
            drop(state);
            if let Some(told) = self.shared.on_list.get() {
                told();
            }
        }
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.shared.mapped.acquire_lock(lock)
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

impl Shared {
    fn check_open(&self) -> io::Result<()> {
        match self.is_closed.load(Ordering::Acquire) {
            true => Err(io::Error::other("the index is closed")),
            false => Ok(()),
        }
    }
}

/// A file that is synced later.
struct LazyFile {
    file: File,
    shared: Arc<Shared>,
}

impl Drop for LazyFile {
    fn drop(&mut self) {
        self.shared.open_files.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Write for LazyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.shared.check_open()?;
        let written = self.file.write(bytes)?;
        self.shared.bytes_unsynced.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for LazyFile {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        Ok(())
    }
}
