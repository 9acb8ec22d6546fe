//! The write transaction: copy on write, savepoints, rollback.
//!
//! Every page changed gets a version of its own, pushed on top of the page's chain, where readers (pinned below its id) pass
//! it by. `Writer::dirty` lists the versions in the order of pushing, so undoing is popping. A savepoint is a length of that list: a
//! page that was pushed before the savepoint is pushed again when it is changed after it, so that undoing to the savepoint is
//! popping, too, but for pages of which a copy is used again (`undo`). At commit only the topmost version of a page counts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{ArcMutexGuard, RawMutex};
use xxhash_rust::xxh3::Xxh3;

use super::catalog::OpenTrees;
use super::read::{freed, run_value};
use super::undo::Undo;
use crate::disk::is_full;
use crate::environment::Inner;
use crate::error::{Error, Result};
use crate::format::{
    DIRECT_VALUE_SIZE_MIN, PAGE_HEADER_SIZE, PAGE_SIZE, PageNumber, ROOT_PAGE, TransactionId, VALUE_SIZE_MAX,
    read_u64,
};
use crate::free_space::{self, FreeHints, SpacePages};
use crate::journal::aligned::AlignedBuffer;
use crate::journal::files::JournalFile;
use crate::journal::record::Compression;
use crate::page::Page;
use crate::page::header::{self, PageKind};
use crate::pages::{DirtyLines, Moves, PageMut, Pages, PagesMut, RunSource};
use crate::root::{self, RootState};
use crate::snapshot::page_table::{Content, Found, Link, PAGES_MAX};
use crate::snapshot::readers::Pin;

/// Bytes of a direct write at a time.
const DIRECT_CHUNK: usize = 1 << 20;

/// What the write lock protects: the newest state, durable or on its way, and what one transaction leaves to the next.
pub(crate) struct Writer {
    /// The newest transaction executed.
    pub(crate) last: TransactionId,
    /// Its record's hash.
    pub(crate) last_hash: u64,
    /// Its root state.
    pub(crate) root: RootState,
    /// The journal file being filled, and up to where.
    pub(crate) journal: Option<(JournalFile, u64)>,
    pub(crate) compression: Compression,
    /// The newest state that a flush was told to write: pages made later come from the journal alone at recovery.
    pub(crate) boundary: TransactionId,
    /// New pages and the pages that they were made from.
    pub(super) derived: Vec<(PageNumber, PageNumber)>,
    pub(super) dirty: Vec<Dirty>,
    /// Bytes of scratch memory that the versions in `dirty` take.
    pub(super) changed: u64,
    /// Versions changed in place since the savepoint, in the order of their first change.
    pub(super) undo: Vec<Undo>,
    /// The numbers of the open savepoints, the innermost last, and the last number ever given out.
    pub(super) savepoints: Vec<u64>,
    last_savepoint: u64,
    /// By the version's index.
    pub(super) versions: Vec<VersionState>,
    pub(super) hints: FreeHints,
    /// What the last transaction had opened, with the states that it left in the catalog.
    pub(super) trees: OpenTrees,
    /// Pages freed since the last sync (first page: count, when): their bytes in the data file may still be needed, by recovery or by
    /// an open snapshot, so direct writes avoid them.
    freed: RecentlyFreed,
    /// Used up to now by direct writes.
    direct_buffers: Vec<AlignedBuffer>,
}

/// One version pushed by the running transaction.
pub(super) struct Dirty {
    pub(super) page: PageNumber,
    pub(super) kind: DirtyKind,
    /// The chain was empty before.
    pub(super) first: bool,
}

#[derive(Clone, Copy)]
pub(super) enum DirtyKind {
    /// A changed or new page, a run, or a tombstone in scratch memory.
    Version(Link),
    /// A run of this many pages written to the data file.
    Direct(u64),
}

/// What the writer knows of a version of its own.
#[derive(Clone, Copy, Default)]
pub(super) struct VersionState {
    /// Changed since the version was last the same as the one below it, if that is this transaction's too.
    pub(super) lines: DirtyLines,
    /// Changed before that.
    pub(super) earlier: DirtyLines,
    /// The savepoint for which the version below keeps what this one held.
    pub(super) kept_for: u64,
    /// The version's place in `Writer::dirty`.
    pub(super) at: u32,
    /// The page was made by this transaction: what it held before does not matter.
    pub(super) new: bool,
    /// It is in the record already.
    pub(super) recorded: bool,
    pub(super) moves: Moves,
}

impl VersionState {
    /// All lines that this transaction changed.
    pub(super) fn changed(&self) -> DirtyLines {
        self.earlier | self.lines
    }
}

impl Writer {
    pub(crate) fn new(last: TransactionId, last_hash: u64, root: RootState) -> Writer {
        Writer {
            last,
            last_hash,
            root,
            journal: None,
            compression: Compression::default(),
            boundary: last,
            derived: Vec::new(),
            dirty: Vec::new(),
            changed: 0,
            undo: Vec::new(),
            savepoints: Vec::new(),
            last_savepoint: 0,
            versions: Vec::new(),
            hints: FreeHints::default(),
            trees: OpenTrees::default(),
            freed: RecentlyFreed::default(),
            direct_buffers: Vec::new(),
        }
    }
}

/// The one write transaction. Changes show to nobody until [`WriteTransaction::commit`]; dropping it undoes them.
///
/// Trees are opened by name; reading sees the transaction's own changes. An error leaves the transaction usable, without the failed
/// operation's effect, except for errors of the disk or of damaged pages in the middle of an operation: after these, commit is
/// refused and the transaction can only be rolled back (or back to a savepoint from before).
pub struct WriteTransaction {
    pub(crate) inner: Arc<Inner>,
    pub(super) writer: ArcMutexGuard<RawMutex, Writer>,
    pin: Option<Pin>,
    pub(super) id: TransactionId,
    pub(super) root: RootState,
    /// Versions from this place of `Writer::dirty` on may be changed in place.
    protected: usize,
    pub(super) trees: OpenTrees,
    /// An operation failed half way: its changes must not be committed.
    broken: Option<String>,
    done: bool,
}

/// A point of a write transaction to which it can go back. Made by [`WriteTransaction::savepoint`]; savepoints nest.
#[must_use = "release it or roll back to it"]
pub struct Savepoint {
    id: TransactionId,
    dirty: usize,
    undo: usize,
    protected: usize,
    /// Its number, and how many savepoints were open before.
    number: u64,
    depth: usize,
    root: RootState,
    trees: OpenTrees,
    broken: Option<String>,
}

impl WriteTransaction {
    pub(crate) fn begin(
        inner: Arc<Inner>,
        mut writer: ArcMutexGuard<RawMutex, Writer>,
    ) -> Result<WriteTransaction> {
        let pin = inner.readers.pin_writer()?;
        let id = TransactionId(writer.last.0 + 1);
        let root = writer.root;
        debug_assert!(writer.dirty.is_empty());
        // Taken, so that they are gone when this transaction is undone.
        let trees = std::mem::take(&mut writer.trees);
        Ok(WriteTransaction {
            inner,
            writer,
            pin: Some(pin),
            id,
            root,
            protected: 0,
            trees,
            broken: None,
            done: false,
        })
    }

    /// The id that the transaction gets when it commits.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// Bytes of scratch memory that what was changed so far takes.
    pub fn changed_size(&self) -> u64 {
        self.writer.changed
    }

    /// Undoes everything; the same as dropping the transaction.
    pub fn rollback(self) {}

    /// A point to go back to, for undoing a part of the transaction.
    pub fn savepoint(&mut self) -> Savepoint {
        let savepoint = Savepoint {
            id: self.id,
            dirty: self.writer.dirty.len(),
            undo: self.writer.undo.len(),
            protected: self.protected,
            number: self.writer.last_savepoint + 1,
            depth: self.writer.savepoints.len(),
            root: self.root,
            trees: self.trees.clone(),
            broken: self.broken.clone(),
        };
        self.protected = savepoint.dirty;
        self.writer.last_savepoint = savepoint.number;
        self.writer.savepoints.push(savepoint.number);
        savepoint
    }

    /// Undoes what was done since the savepoint was made. Savepoints made after it must not be used any more.
    ///
    /// Errors: [`Error::Invalid`] when the savepoint is not of this transaction, or was passed by going back further.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.check_savepoint(&savepoint)?;
        self.pop_to(savepoint.dirty);
        self.undo_to(savepoint.undo);
        self.leave_savepoint(&savepoint);
        self.root = savepoint.root;
        self.trees = savepoint.trees;
        self.trees.forget_hints();
        self.broken = savepoint.broken;
        Ok(())
    }

    /// Keeps what was done since the savepoint was made; it cannot be gone back to any more.
    pub fn release(&mut self, savepoint: Savepoint) -> Result<()> {
        self.check_savepoint(&savepoint)?;
        self.writer.undo.truncate(savepoint.undo);
        self.leave_savepoint(&savepoint);
        Ok(())
    }

    fn leave_savepoint(&mut self, savepoint: &Savepoint) {
        self.protected = savepoint.protected;
        self.writer.savepoints.truncate(savepoint.depth);
    }

    fn check_savepoint(&self, savepoint: &Savepoint) -> Result<()> {
        if savepoint.id != self.id || self.writer.savepoints.get(savepoint.depth) != Some(&savepoint.number) {
            return Err(Error::Invalid("the savepoint is not one of this transaction any more".to_owned()));
        }
        Ok(())
    }

    /// Notes that an operation failed in the middle, so that what it did is never committed.
    #[cold]
    pub(crate) fn break_with(&mut self, error: Error) -> Error {
        match &error {
            // Refused before anything was changed.
            Error::Invalid(_)
            | Error::KeyEmpty
            | Error::KeyTooLong { .. }
            | Error::ValueTooLong { .. }
            | Error::TreeNotFound { .. }
            | Error::TreeExists { .. }
            | Error::TreeKind { .. }
            | Error::DuplicateKey { .. } => {}
            _ => self.broken = Some(error.to_string()),
        }
        error
    }

    pub(super) fn check_whole(&self) -> Result<()> {
        match &self.broken {
            None => Ok(()),
            Some(cause) => Err(Error::Invalid(format!(
                "an operation of the transaction failed half way ({cause}); roll it back"
            ))),
        }
    }

    fn pop_to(&mut self, length: usize) {
        let Some(_) = self.writer.dirty.get(length) else { return };
        let table = &self.inner.table;
        let chains = table.chains();
        while self.writer.dirty.len() > length {
            if let Some(Dirty { page, kind: DirtyKind::Version(link), .. }) = self.writer.dirty.pop() {
                self.writer.changed -= table.at(link).size as u64;
                table.pop(page, link, &chains);
            }
        }
        self.writer.hints.reset();
    }

    /// Gives up the write lock's transaction without undoing: the commit has taken over.
    pub(super) fn finish(&mut self) {
        self.done = true;
        self.writer.changed = 0;
        self.writer.undo.clear();
        self.writer.savepoints.clear();
        if self.writer.freed.is_long() {
            self.forget_freed();
        }
        if let Some(pin) = self.pin.take() {
            self.inner.readers.unpin(pin);
        }
    }

    /// A version of this transaction, not linked yet.
    fn new_version(&self, content: Content) -> Result<Found> {
        let max = self.inner.options.scratch_size_max;
        if self.changed_size() > max {
            return Err(Error::TransactionTooLarge { max });
        }
        self.inner
            .table
            .allocate(content, self.id)
            .map_err(|e| Error::io("take scratch memory for", self.inner.disk.path(), e))
    }

    /// Links a version made by [`Self::new_version`] once its bytes are complete enough for the writer to see.
    fn link(&mut self, page: PageNumber, found: &Found, state: VersionState) {
        let index = found.link.index();
        let writer = &mut *self.writer;
        if writer.versions.len() <= index {
            writer.versions.resize((index + 1).next_power_of_two().max(1024), VersionState::default());
        }
        writer.versions[index] = VersionState {
            lines: 0,
            earlier: state.changed(),
            kept_for: 0,
            at: writer.dirty.len() as u32,
            ..state
        };
        let first = self.inner.table.push(page, found.link);
        writer.changed += found.size as u64;
        writer.dirty.push(Dirty { page, kind: DirtyKind::Version(found.link), first });
    }

    fn take_number(&mut self, count: u64, direct: bool) -> Result<PageNumber> {
        if self.root.free_pages >= count {
            let page_count = self.root.page_count;
            let mut hints = std::mem::take(&mut self.writer.hints);
            let blocked =
                if direct { std::mem::take(&mut self.writer.freed) } else { RecentlyFreed::default() };
            let taken =
                free_space::take(self, &mut hints, page_count, count, &|range| blocked.blocks(&range));
            self.writer.hints = hints;
            if direct {
                self.writer.freed = blocked;
            }
            if let Some(number) = taken? {
                self.root.free_pages -= count;
                return Ok(number);
            }
        }
        self.append_numbers(count)
    }

    fn append_numbers(&mut self, count: u64) -> Result<PageNumber> {
        let number = self.root.page_count;
        if number + count > PAGES_MAX {
            return Err(Error::environment_full(count));
        }
        self.inner.data.ensure_pages(number + count).map_err(|e| self.inner.fail_on_io(e))?;
        if number == 1 && self.inner.table.newest(ROOT_PAGE).is_none() && self.id.0 == 1 {
            self.new_page(ROOT_PAGE, PageKind::Root)?;
            let environment = self.inner.environment;
            root::set_environment(&mut self.page_mut(ROOT_PAGE)?, environment);
        }
        self.root.page_count = number + count;
        Ok(PageNumber(number))
    }

    fn new_page(&mut self, number: PageNumber, kind: PageKind) -> Result<()> {
        let found = self.new_version(Content::Page)?;
        // SAFETY: the version is not linked yet, so nobody else knows it.
        let bytes = unsafe { found.bytes_mut() };
        bytes.fill(0);
        if let Ok(page) = <&mut Page>::try_from(bytes) {
            header::init(page, number, kind);
        }
        self.inner.table.set_born(found.link, self.id);
        self.link(number, &found, VersionState { lines: 1, new: true, ..Default::default() });
        Ok(())
    }

    fn give_back(&mut self, number: PageNumber, count: u64) -> Result<()> {
        let found = self.new_version(Content::Tombstone)?;
        self.link(number, &found, VersionState::default());
        let id = self.id;
        self.writer.freed.insert(number.0, count, id);
        let mut hints = std::mem::take(&mut self.writer.hints);
        let given = free_space::give_back(self, &mut hints, number, count);
        self.writer.hints = hints;
        given?;
        self.root.free_pages += count;
        Ok(())
    }

    /// Forgets freed pages whose old bytes nobody needs any more.
    fn forget_freed(&mut self) {
        let synced = self.inner.flusher.synced();
        let safe = synced.min(self.inner.oldest_pinned());
        self.writer.freed.forget(safe);
    }

    /// Writes the run to the data file, around scratch memory and journal.
    fn write_run_direct(&mut self, length: u64, source: &mut dyn RunSource) -> Result<PageNumber> {
        self.forget_freed();
        let count = header::run_pages(length);
        let number = self.take_number(count, true)?;
        let mut buffer = self.writer.direct_buffers.pop().unwrap_or_default();
        let mut first = self.writer.direct_buffers.pop().unwrap_or_default();
        let result = self.copy_run(number, length, source, &mut buffer, &mut first);
        if buffer.capacity() + first.capacity() <= 4 * DIRECT_CHUNK {
            self.writer.direct_buffers.extend([buffer, first]);
        }
        result.map_err(|error| match error {
            Error::Io { .. } => {
                self.inner.fail(&error);
                error
            }
            other => other,
        })?;
        self.inner.data.set_verified(number);
        self.writer.dirty.push(Dirty { page: number, kind: DirtyKind::Direct(count), first: false });
        Ok(number)
    }

    fn copy_run(
        &self,
        number: PageNumber,
        length: u64,
        source: &mut dyn RunSource,
        buffer: &mut AlignedBuffer,
        first: &mut AlignedBuffer,
    ) -> Result<()> {
        let data = &self.inner.data;
        let write = |at: u64, bytes: &[u8]| {
            data.write_direct(number.offset() + at, bytes).map_err(|source| match is_full(&source) {
                true => {
                    let what = data.path().display().to_string();
                    Error::DiskFull { what, bytes: bytes.len() as u64, source }
                }
                false => Error::io("write", data.path(), source),
            })
        };
        let total = length + PAGE_HEADER_SIZE as u64;
        let mut hash = Xxh3::with_seed(number.0);
        let mut at = 0;
        while at < total {
            let chunk = if at == 0 { &mut *first } else { &mut *buffer };
            let size = (total - at).min(DIRECT_CHUNK as u64) as usize;
            chunk.set_len(size);
            let bytes = chunk.bytes_mut();
            let skip = if at == 0 {
                bytes[..PAGE_HEADER_SIZE].fill(0);
                bytes[header::NUMBER_AT..header::NUMBER_AT + 8].copy_from_slice(&number.0.to_le_bytes());
                bytes[header::KIND_AT] = PageKind::Overflow as u8;
                bytes[header::RUN_LENGTH_AT..header::RUN_LENGTH_AT + 8]
                    .copy_from_slice(&length.to_le_bytes());
                PAGE_HEADER_SIZE
            } else {
                0
            };
            source.fill(&mut bytes[skip..])?;
            hash.update(&bytes[if at == 0 { header::KIND_AT } else { 0 }..]);
            chunk.pad();
            if at != 0 {
                write(at, chunk.bytes())?;
            }
            at += size as u64;
        }
        let sum = hash.digest();
        first.bytes_mut()[header::CHECKSUM_AT..header::CHECKSUM_AT + 8].copy_from_slice(&sum.to_le_bytes());
        write(0, first.bytes())?;
        self.inner.counters.direct_bytes.fetch_add(total, Ordering::Relaxed);
        Ok(())
    }

    /// Writes the run into scratch memory; it goes through the journal.
    fn write_run_in_scratch(&mut self, length: u64, source: &mut dyn RunSource) -> Result<PageNumber> {
        let number = self.take_number(header::run_pages(length), false)?;
        let size = PAGE_HEADER_SIZE + length as usize;
        let content = if size <= PAGE_SIZE { Content::Page } else { Content::Run(size) };
        let found = self.new_version(content)?;
        // SAFETY: not linked yet, so nobody else knows it.
        let bytes = unsafe { found.bytes_mut() };
        bytes[..PAGE_HEADER_SIZE].fill(0);
        bytes[header::NUMBER_AT..header::NUMBER_AT + 8].copy_from_slice(&number.0.to_le_bytes());
        bytes[header::KIND_AT] = PageKind::Overflow as u8;
        bytes[header::RUN_LENGTH_AT..header::RUN_LENGTH_AT + 8].copy_from_slice(&length.to_le_bytes());
        let filled = source.fill(&mut bytes[PAGE_HEADER_SIZE..size]);
        bytes[size..].fill(0);
        // Linked even when filling failed: the version must come back when the transaction is undone.
        self.link(number, &found, VersionState { new: true, ..Default::default() });
        filled.map(|()| number)
    }
}

/// Ranges of freed pages with the transaction that freed them last; they do not overlap.
#[derive(Default, Debug)]
struct RecentlyFreed {
    ranges: BTreeMap<u64, (u64, TransactionId)>,
    /// At how many ranges old ones are looked for again.
    forget_at: usize,
}

impl RecentlyFreed {
    /// Ranges kept without looking for old ones.
    const RANGES_MIN: usize = 4096;

    fn insert(&mut self, start: u64, count: u64, id: TransactionId) {
        let end = start + count;
        while let Some((&other, &(length, at))) = self.ranges.range(..end).next_back() {
            let other_end = other + length;
            if other_end <= start {
                break;
            }
            self.ranges.remove(&other);
            if other < start {
                self.ranges.insert(other, (start - other, at));
            }
            if other_end > end {
                self.ranges.insert(end, (other_end - end, at));
            }
        }
        self.ranges.insert(start, (count, id));
    }

    /// The first page after the last freed one in the range, when there is one.
    fn blocks(&self, range: &Range<u64>) -> Option<u64> {
        let (&start, &(count, _)) = self.ranges.range(..range.end).next_back()?;
        (start + count > range.start).then_some(start + count)
    }

    fn forget(&mut self, safe: TransactionId) {
        self.ranges.retain(|_, &mut (_, at)| at > safe);
        self.forget_at = Self::RANGES_MIN.max(2 * self.ranges.len());
    }

    fn is_long(&self) -> bool {
        self.ranges.len() > self.forget_at.max(Self::RANGES_MIN)
    }
}

impl Drop for WriteTransaction {
    fn drop(&mut self) {
        if !self.done {
            self.pop_to(0);
            self.writer.derived.clear();
            self.finish();
        }
    }
}

impl Pages for WriteTransaction {
    #[inline]
    fn page(&self, number: PageNumber) -> Result<&Page> {
        match self.inner.table.newest(number) {
            // SAFETY: the newest version stays linked while the transaction runs, and changes only through `&mut self`.
            Some(found) if !found.is_tombstone() => Ok(unsafe { found.page() }),
            Some(_) => Err(freed(number)),
            None => self.inner.data.page(number),
        }
    }

    fn run(&self, number: PageNumber) -> Result<&[u8]> {
        match self.inner.table.newest(number) {
            Some(found) if found.is_tombstone() => Err(freed(number)),
            // SAFETY: as above.
            Some(found) => run_value(number, unsafe { found.bytes() }),
            None => self.inner.data.run(number),
        }
    }

    fn will_need(&self, numbers: &[PageNumber]) {
        self.inner.data.will_need(numbers);
    }
}

impl PagesMut for WriteTransaction {
    #[inline]
    fn page_mut(&mut self, number: PageNumber) -> Result<PageMut<'_>> {
        let newest = self.inner.table.newest(number);
        if let Some(found) = newest
            && found.transaction == self.id
            && !found.is_tombstone()
        {
            let protected = self.protected;
            let index = found.link.index();
            let state = self.writer.versions[index];
            if state.at as usize >= protected || self.keep_below(&found) {
                // SAFETY: the version is this transaction's own, no reader looks at it, and `&mut self` excludes other borrows.
                let bytes = unsafe { found.page_mut() };
                let state = &mut self.writer.versions[index];
                return Ok(PageMut::with_moves(bytes, &mut state.lines, &mut state.moves));
            }
            return self.copy_page(number, &found, state);
        }
        match newest {
            Some(found) if found.is_tombstone() => Err(freed(number)),
            Some(found) => self.copy_page(number, &found, VersionState::default()),
            None => {
                let version = self.new_version(Content::Page)?;
                // The page of the mapped file stays as it is: the flusher waits for the writer's pin before it uses memory again, and
                // writes the file only from versions, of which this page has none.
                let old = self.inner.data.page(number);
                let old = match old {
                    Ok(old) => old,
                    Err(error) => {
                        self.inner.table.recycle([version.link]);
                        return Err(error);
                    }
                };
                // SAFETY: not linked yet, so nobody else knows it.
                unsafe { version.bytes_mut() }.copy_from_slice(old);
                self.link(number, &version, VersionState::default());
                let index = version.link.index();
                // SAFETY: as above for the transaction's own version.
                Ok(PageMut::new(unsafe { version.page_mut() }, &mut self.writer.versions[index].lines))
            }
        }
    }

    fn allocate(&mut self, kind: PageKind) -> Result<PageNumber> {
        let number = self.take_number(1, false)?;
        self.new_page(number, kind)?;
        Ok(number)
    }

    fn free(&mut self, number: PageNumber) -> Result<()> {
        self.give_back(number, 1)
    }

    fn write_run(&mut self, length: u64, value: &mut dyn RunSource) -> Result<PageNumber> {
        if length > VALUE_SIZE_MAX {
            return Err(Error::ValueTooLong { size: length, max: VALUE_SIZE_MAX });
        }
        if length >= DIRECT_VALUE_SIZE_MIN {
            self.write_run_direct(length, value)
        } else {
            self.write_run_in_scratch(length, value)
        }
    }

    fn derives(&mut self, target: PageNumber, source: PageNumber) {
        self.writer.derived.push((target, source));
    }

    fn free_run(&mut self, number: PageNumber) -> Result<()> {
        let length = self.run(number)?.len();
        self.give_back(number, header::run_pages(length as u64))
    }
}

impl WriteTransaction {
    fn copy_page(&mut self, number: PageNumber, old: &Found, state: VersionState) -> Result<PageMut<'_>> {
        let version = self.new_version(Content::Page)?;
        // SAFETY: `old` is the newest version, which stays linked; the new one is not linked yet, so nobody else knows it.
        unsafe { version.bytes_mut().copy_from_slice(old.page()) };
        self.inner.table.set_born(version.link, self.inner.table.born(old.link));
        self.link(number, &version, state);
        let state = &mut self.writer.versions[version.link.index()];
        // SAFETY: the version is this transaction's own, no reader looks at it, and `&mut self` excludes other borrows.
        Ok(PageMut::with_moves(unsafe { version.page_mut() }, &mut state.lines, &mut state.moves))
    }
}

impl SpacePages for WriteTransaction {
    fn space_page_mut(&mut self, number: PageNumber) -> Result<PageMut<'_>> {
        self.page_mut(number)
    }

    fn append_page(&mut self, kind: PageKind) -> Result<PageNumber> {
        let number = self.append_numbers(1)?;
        self.new_page(number, kind)?;
        Ok(number)
    }
}

/// The length of the run whose header this is.
pub(crate) fn run_length(page: &[u8]) -> u64 {
    read_u64(page, header::RUN_LENGTH_AT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recently_freed_ranges_do_not_hide_each_other() {
        let mut freed = RecentlyFreed::default();
        freed.insert(100, 50, TransactionId(5));
        freed.insert(110, 1, TransactionId(7));
        assert_eq!(freed.blocks(&(120..130)), Some(150));
        assert_eq!(freed.blocks(&(90..100)), None);
        freed.insert(90, 100, TransactionId(8));
        assert_eq!(freed.ranges.len(), 1);
        freed.insert(95, 1, TransactionId(9));
        freed.forget(TransactionId(8));
        assert_eq!(freed.blocks(&(0..1000)), Some(96));
        assert_eq!(freed.blocks(&(96..1000)), None);
    }
}
