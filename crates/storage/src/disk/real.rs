//! The operating system's files: [`RealDisk`] and its [`File`].
//!
//! One file may have up to three descriptors: a buffered one for everything, and two that bypass the system's cache, opened when they
//! are first needed: `O_DIRECT|O_DSYNC` for [`File::write_durable`], `O_DIRECT` for [`File::write_direct`]. Whether a
//! directory's file system can do that is found by really writing one block of a temporary file, because some accept the flag
//! and then refuse the write; and should a write to the file itself be refused all the same, that file goes on without.
//! Nothing but the speed depends on the outcome.
//!
//! The buffered and the direct descriptors stay coherent because the system drops its cached pages of a range that is written
//! directly; the files' map shows the new bytes from then on.
//!
//! The lock is `flock` on the file `lock`: it belongs to the open file and not to the process, so a second opener in the same process is
//! refused too, and the system releases it when the process dies. The process id inside is for messages only.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::memory_map::{FileMap, ZeroPages};
use super::{DIRECT_ALIGNMENT, Disk, File, LOCK_FILE, Mapping, OpenMode, check_alignment};

/// Bytes of zeros written at once: long enough to run at the disk's speed (1 MiB takes 309 us, 4 KiB 25 us), short
/// enough for the kernel to pin.
const ZEROS_SIZE: usize = 1 << 20;

/// A directory of the operating system.
pub struct RealDisk {
    path: PathBuf,
    probes: Arc<Probes>,
}

/// Whether direct writes work, per directory (a `journal` directory may be a mount or a link to another disk).
type Probes = Mutex<BTreeMap<PathBuf, bool>>;

impl RealDisk {
    /// The disk for the directory `path`, which need not exist yet: [`Disk::create_directory`] of `""` makes it.
    ///
    /// Errors: the path is relative and the current directory unknown, or it is empty.
    pub fn open(path: impl AsRef<Path>) -> io::Result<RealDisk> {
        Ok(RealDisk { path: std::path::absolute(path)?, probes: Arc::default() })
    }

    /// Whether the directory holds nothing but perhaps a lock file, or does not exist.
    pub(crate) fn is_empty(&self) -> io::Result<bool> {
        match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
            Ok(entries) => {
                for entry in entries {
                    if entry?.file_name() != super::LOCK_FILE {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    fn resolve(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.path.clone() } else { self.path.join(name) }
    }
}

impl Disk for RealDisk {
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn lock(&self) -> io::Result<Result<Box<dyn Send + Sync>, u32>> {
        let path = self.resolve(LOCK_FILE);
        // Never truncated here: until the lock is ours, the content is the holder's.
        let mut file =
            fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match retry(|| rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // Unreadable or not yet written: the caller still learns that somebody holds it.
                let _ = file.read_to_string(&mut text);
                return Ok(Err(text.trim().parse().unwrap_or(0)));
            }
            Err(error) => return Err(error.into()),
        }
        file.set_len(0)?;
        file.write_all(format!("{}\n", std::process::id()).as_bytes())?;
        Ok(Ok(Box::new(file)))
    }

    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let path = self.resolve(name);
        let writable = mode != OpenMode::Read;
        let buffered = fs::OpenOptions::new()
            .read(true)
            .write(writable)
            .create(mode == OpenMode::Create)
            .truncate(false)
            .open(&path)?;
        if buffered.metadata()?.is_dir() {
            return Err(Errno::ISDIR.into());
        }
        Ok(Arc::new(RealFile {
            path,
            buffered,
            writable,
            probes: Arc::clone(&self.probes),
            durable: OnceLock::new(),
            direct: OnceLock::new(),
            reading: OnceLock::new(),
            refused: AtomicBool::new(false),
        }))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.resolve(name).try_exists()
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.resolve(directory)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            // Followed, so that a link to a file counts as one. Names that are not UTF-8 cannot be ours.
            if let Ok(name) = entry.file_name().into_string()
                && fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_file())
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create_directory(&self, directory: &str) -> io::Result<()> {
        let path = self.resolve(directory);
        let missing: Vec<&Path> = path.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
        for directory in missing.iter().rev() {
            match fs::create_dir(directory) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            if let Some(parent) = directory.parent() {
                sync_directory(parent)?;
            }
        }
        if path.is_dir() { Ok(()) } else { Err(Errno::NOTDIR.into()) }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.resolve(from), self.resolve(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.resolve(name))
    }

    fn sync_directory(&self, directory: &str) -> io::Result<()> {
        sync_directory(&self.resolve(directory))
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = fs::File::open(path)?;
    Ok(retry(|| rustix::fs::fsync(&directory))?)
}

/// Calls again as long as a signal interrupts.
fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

/// The answers by which file systems say that they cannot do something at all.
fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS)
}

/// Writes all of `bytes`, or says how many were written before the error. A regular file's write stops short only when something is
/// wrong (no space, a signal): the next call then says what.
fn write_fully(file: BorrowedFd<'_>, offset: u64, bytes: &[u8]) -> Result<(), (usize, Errno)> {
    let mut done = 0;
    while done < bytes.len() {
        match retry(|| rustix::io::pwrite(file, &bytes[done..], offset + done as u64)) {
            Ok(0) => return Err((done, Errno::IO)),
            Ok(count) => done += count,
            Err(error) => return Err((done, error)),
        }
    }
    Ok(())
}

/// Whether a block written through `O_DIRECT` arrives in `directory`. An error that says nothing about it (a full disk, no
/// right to make a file) counts as yes: the file's own first write decides then.
fn probe_direct(directory: &Path) -> bool {
    let flags = OFlags::WRONLY | OFlags::DIRECT | OFlags::DSYNC | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = match rustix::fs::open(directory, flags | OFlags::TMPFILE, mode) {
        Ok(file) => file,
        // Not every file system has files without a name; some say EISDIR.
        Err(error) if is_unsupported(error) || error == Errno::ISDIR => {
            let path = directory.join(format!("direct-probe-{}", std::process::id()));
            let file = rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, mode);
            let _ = fs::remove_file(&path);
            match file {
                Ok(file) => file,
                Err(error) => return !is_unsupported(error),
            }
        }
        Err(_) => return true,
    };
    let Ok(block) = ZeroPages::new(DIRECT_ALIGNMENT) else { return true };
    match write_fully(file.as_fd(), 0, block.bytes()) {
        Ok(()) => true,
        Err((_, error)) => !is_unsupported(error),
    }
}

/// One open file of the operating system.
struct RealFile {
    /// Where it was when opened; it may have been renamed since.
    path: PathBuf,
    buffered: fs::File,
    writable: bool,
    probes: Arc<Probes>,
    /// `O_DIRECT|O_DSYNC`; `None` when that does not work here.
    durable: OnceLock<Option<OwnedFd>>,
    /// `O_DIRECT`; `None` when that does not work here.
    direct: OnceLock<Option<OwnedFd>>,
    /// `O_DIRECT` for reading; `None` when that does not work here.
    reading: OnceLock<Option<OwnedFd>>,
    /// Set when a direct write to this very file was refused.
    refused: AtomicBool,
}

impl RealFile {
    fn probe(&self) -> bool {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let mut probes = self.probes.lock();
        match probes.get(directory) {
            Some(&works) => works,
            None => {
                let works = probe_direct(directory);
                probes.insert(directory.to_owned(), works);
                works
            }
        }
    }

    /// A further descriptor of the same file, wherever it is now. The file may have been renamed or replaced, so its path
    /// is only taken when it leads to the same file.
    fn reopen(&self, flags: OFlags) -> Option<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        let link = format!("/proc/self/fd/{}", self.buffered.as_raw_fd());
        if let Ok(file) = retry(|| rustix::fs::open(&link, flags, Mode::empty())) {
            return Some(file);
        }
        let file = fs::File::from(retry(|| rustix::fs::open(&self.path, flags, Mode::empty())).ok()?);
        let (ours, theirs) = (self.buffered.metadata().ok()?, file.metadata().ok()?);
        (ours.dev() == theirs.dev() && ours.ino() == theirs.ino()).then(|| file.into())
    }

    /// A further descriptor for direct writes.
    fn reopen_to_write(&self, flags: OFlags) -> Option<OwnedFd> {
        if !self.writable || !self.probe() {
            return None;
        }
        self.reopen(flags | OFlags::WRONLY | OFlags::DIRECT)
    }

    fn durable(&self) -> Option<&OwnedFd> {
        if self.refused.load(Ordering::Relaxed) {
            return None;
        }
        self.durable.get_or_init(|| self.reopen_to_write(OFlags::DSYNC)).as_ref()
    }

    fn direct(&self) -> Option<&OwnedFd> {
        if self.refused.load(Ordering::Relaxed) {
            return None;
        }
        self.direct.get_or_init(|| self.reopen_to_write(OFlags::empty())).as_ref()
    }

    /// Writes through a direct descriptor. Returns how many bytes are left to be written through the cache: all when the file system
    /// refuses direct writes to this file, some when a write ended between two blocks, otherwise none.
    fn write_past_cache(&self, file: &OwnedFd, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            match write_fully(file.as_fd(), offset + done as u64, &bytes[done..]) {
                Ok(()) => return Ok(0),
                Err((0, error)) if is_unsupported(error) => {
                    if done == 0 {
                        self.refused.store(true, Ordering::Relaxed);
                    }
                    return Ok(bytes.len() - done);
                }
                Err((0, error)) => return Err(error.into()),
                // Some went through. The rest may no longer start at a block: step back to the last whole one.
                Err((count, _)) if count >= DIRECT_ALIGNMENT => {
                    done += count / DIRECT_ALIGNMENT * DIRECT_ALIGNMENT
                }
                Err(_) => return Ok(bytes.len() - done),
            }
        }
        Ok(0)
    }

    fn write_cached(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        write_fully(self.buffered.as_fd(), offset, bytes).map_err(|(_, error)| error.into())
    }

    fn write_zeros(&self, from: u64, to: u64) -> io::Result<()> {
        let zeros = ZeroPages::new(ZEROS_SIZE)?;
        let mut at = from;
        while at < to {
            // The first piece ends at a boundary, so that all others may go past the cache.
            let boundary = (at + 1).next_multiple_of(ZEROS_SIZE as u64).min(to);
            let piece = &zeros.bytes()[..(boundary - at) as usize];
            if check_alignment(at, piece).is_ok() {
                self.write_direct(at, piece)?;
            } else {
                self.write_cached(at, piece)?;
            }
            at = boundary;
        }
        Ok(())
    }
}

impl File for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.buffered.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.buffered.read_exact_at(buffer, offset)
    }

    fn read_direct(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        if check_alignment(offset, buffer).is_ok() {
            let reading = self.reading.get_or_init(|| self.reopen(OFlags::RDONLY | OFlags::DIRECT));
            // Whatever stops it, a file system that cannot or a damaged disk, is for the read below to meet or not to.
            while let Some(file) = reading
                && done < buffer.len()
                && let Ok(count) =
                    retry(|| rustix::io::pread(file, &mut buffer[done..], offset + done as u64))
                && count > 0
            {
                done += count;
            }
        }
        self.read_at(offset + done as u64, &mut buffer[done..])
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_cached(offset, bytes)
    }

    fn write_direct(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        check_alignment(offset, bytes)?;
        let left = match self.direct() {
            Some(file) => self.write_past_cache(file, offset, bytes)?,
            None => bytes.len(),
        };
        let done = bytes.len() - left;
        self.write_cached(offset + done as u64, &bytes[done..])
    }

    fn write_durable(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        check_alignment(offset, bytes)?;
        let left = match self.durable() {
            Some(file) => self.write_past_cache(file, offset, bytes)?,
            None => bytes.len(),
        };
        if left > 0 {
            let done = bytes.len() - left;
            self.write_cached(offset + done as u64, &bytes[done..])?;
            self.sync()?;
        }
        Ok(())
    }

    fn is_direct(&self) -> bool {
        self.durable().is_some()
    }

    fn sync(&self) -> io::Result<()> {
        Ok(retry(|| rustix::fs::fdatasync(&self.buffered))?)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let end = self.len()?;
        if length <= end {
            return Ok(());
        }
        match retry(|| rustix::fs::fallocate(&self.buffered, FallocateFlags::empty(), end, length - end)) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(end, length),
            Err(error) => Err(error.into()),
        }
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        if length >= self.len()? {
            return Ok(());
        }
        Ok(retry(|| rustix::fs::ftruncate(&self.buffered, length))?)
    }

    fn prewrite(&self, length: u64) -> io::Result<()> {
        self.write_zeros(self.len()?, length)?;
        self.sync()
    }

    fn map(&self, reserve: usize) -> io::Result<Arc<dyn Mapping>> {
        Ok(Arc::new(FileMap::new(&self.buffered, reserve)?))
    }
}

impl Mapping for FileMap {
    fn base(&self) -> *const u8 {
        FileMap::base(self)
    }

    fn will_need(&self, offset: usize, length: usize) {
        FileMap::will_need(self, offset, length);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::BufRead;

    use super::super::conformance::{Aligned, conformance_tests, read};
    use super::*;

    fn fresh() -> (RealDisk, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        (RealDisk::open(directory.path().join("some/environment")).unwrap(), directory)
    }

    conformance_tests!(fresh());

    #[test]
    fn without_direct_writes_all_goes_through_the_cache() {
        let (disk, _directory) = fresh();
        disk.create_directory("").unwrap();
        disk.probes.lock().insert(disk.path(), false);
        let file = disk.open("data", OpenMode::Create).unwrap();
        assert!(!file.is_direct());
        file.prewrite(3 << 20).unwrap();
        file.write_durable(4096, Aligned::new(&[1; 8192]).get()).unwrap();
        file.write_direct(0, Aligned::new(&[2; 4096]).get()).unwrap();
        assert_eq!(read(&*file, 4095, 2), [2, 1]);
    }

    #[test]
    fn a_file_that_refuses_direct_writes_goes_on_without() {
        let (disk, _directory) = fresh();
        disk.create_directory("").unwrap();
        fs::write(disk.resolve("data"), vec![0; 8192]).unwrap();
        let path = disk.resolve("data");
        // A file that answers an aligned write with EINVAL, as such a file system does: this one takes only numbers.
        let refusing = fs::OpenOptions::new().write(true).open("/proc/self/oom_score_adj").unwrap();
        let file = RealFile {
            buffered: fs::OpenOptions::new().read(true).write(true).open(&path).unwrap(),
            path,
            writable: true,
            probes: Arc::clone(&disk.probes),
            durable: OnceLock::from(Some(refusing.into())),
            direct: OnceLock::new(),
            reading: OnceLock::new(),
            refused: AtomicBool::new(false),
        };
        assert!(file.is_direct());
        file.write_durable(0, Aligned::new(&[0xFF; 4096]).get()).unwrap();
        assert!(!file.is_direct());
        assert_eq!(read(&file, 0, 4096), [0xFF; 4096]);
    }

    #[test]
    fn direct_descriptors_follow_a_renamed_file() {
        let (disk, _directory) = fresh();
        disk.create_directory("").unwrap();
        let file = disk.open("old", OpenMode::Create).unwrap();
        file.prewrite(4096).unwrap();
        disk.rename("old", "new").unwrap();
        let decoy = disk.open("old", OpenMode::Create).unwrap();
        file.write_durable(0, Aligned::new(&[1; 4096]).get()).unwrap();
        assert!(decoy.is_empty().unwrap());
        assert_eq!(fs::read(disk.resolve("new")).unwrap(), [1; 4096]);
    }

    /// Names the directory to the child process of the test below.
    const HOLD_LOCK_OF: &str = "JACKDAW_TEST_HOLD_LOCK_OF";

    /// The child: holds the lock until its input ends. Does nothing when it is run as a test of its own.
    #[test]
    fn hold_the_lock() {
        let Some(path) = std::env::var_os(HOLD_LOCK_OF) else { return };
        let _guard = RealDisk::open(path).unwrap().lock().unwrap().ok().unwrap();
        println!("the lock is held");
        io::stdin().read_to_end(&mut Vec::new()).unwrap();
    }

    #[test]
    fn the_lock_names_a_holder_in_another_process() {
        let (disk, _directory) = fresh();
        disk.create_directory("").unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "disk::real::tests::hold_the_lock", "--nocapture"])
            .env(HOLD_LOCK_OF, disk.path())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = io::BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("the lock is held")));
        assert_eq!(disk.lock().unwrap().err(), Some(child.id()));
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        assert!(disk.lock().unwrap().is_ok());
    }

    #[test]
    fn damage_to_the_lock_file_hides_only_the_number() {
        let (disk, _directory) = fresh();
        disk.create_directory("").unwrap();
        let _guard = disk.lock().unwrap().ok().unwrap();
        fs::write(disk.resolve(LOCK_FILE), b"\xFF\xFE").unwrap();
        assert_eq!(disk.lock().unwrap().err(), Some(0));
    }
}
