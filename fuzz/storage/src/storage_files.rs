//! Opening an environment one of whose files was made by a fuzzer, and doing everything with it that there is to do.
//!
//! An input is one byte of flags and then either a whole file or changes to a good one ([`Changes`]), which reach far deeper. When asked to,
//! checksums are corrected afterwards, so that what lies behind them is tried too: then a wrong answer is to be expected, but no
//! panic, no hang, and no read out of bounds.

use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use jackdaw_storage::disk::SimulatedDisk;
use jackdaw_storage::{By, Environment, Kind, Options, Order, PAGE_SIZE, Result, RowBuilder, Schema};
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

/// The file that the fuzzer makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `data`, of an environment that was closed.
    Data,
    /// A journal, of one that was not.
    Journal,
    /// The newer header, of one that was not closed.
    Header,
}

impl Target {
    /// All of them.
    pub const ALL: [Target; 3] = [Target::Data, Target::Journal, Target::Header];

    /// The fuzz target's name, and its corpus's.
    pub fn name(self) -> &'static str {
        match self {
            Target::Data => "open_data",
            Target::Journal => "open_journal",
            Target::Header => "open_header",
        }
    }
}

/// Flag: correct the checksums.
pub const CORRECT: u8 = 1;
/// Flag: what follows is the whole file, not changes.
pub const WHOLE: u8 = 2;
/// Flag: open for reading alone.
pub const READ_ONLY: u8 = 4;

/// Changes to a good file: each is an offset (3 bytes, little-endian, modulo the file's length), a count (1 byte; 1 to 32 bytes follow) and
/// the bytes.
struct Changes<'a>(&'a [u8]);

impl<'a> Iterator for Changes<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<(usize, &'a [u8])> {
        let (head, rest) = self.0.split_first_chunk::<4>()?;
        let offset = usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16;
        let count = (1 + usize::from(head[3]) % 32).min(rest.len());
        let (bytes, rest) = rest.split_at(count);
        self.0 = rest;
        Some((offset, bytes))
    }
}

/// Runs one input. Panics when something is wrong with the engine.
pub fn run(target: Target, input: &[u8]) {
    let Some((&flags, rest)) = input.split_first() else { return };
    let sample = sample(target);
    let mut bytes = if flags & WHOLE != 0 { rest.to_vec() } else { sample.bytes.clone() };
    if flags & WHOLE == 0 {
        let length = bytes.len();
        for (offset, change) in Changes(rest) {
            for (i, &byte) in change.iter().enumerate() {
                bytes[(offset + i) % length] = byte;
            }
        }
    }
    if flags & CORRECT != 0 {
        match target {
            Target::Data => correct_pages(&mut bytes),
            Target::Journal => correct_records(&mut bytes, sample.hash_before),
            Target::Header => correct_header(&mut bytes),
        }
    }
    let Ok(disk) = sample.disk.snapshot() else { return };
    if disk.set_contents(&sample.name, &bytes).is_err() {
        return;
    }
    // Errors are welcome.
    let _ = exercise(&disk, flags & READ_ONLY != 0);
    if flags & READ_ONLY == 0 {
        // What writing left must open again, or say why not.
        let _ = exercise(&disk, false);
    }
}

fn options() -> Options {
    Options::default().background(false).journal_file_sizes(32 << 10, 64 << 10).map_reserve(64 << 20)
}

/// Does everything with an environment, ignoring errors on the way where something else can still be done.
fn exercise(disk: &SimulatedDisk, read_only: bool) -> Result<()> {
    let environment = Environment::open_on(Arc::new(disk.clone()), options().read_only(read_only))?;
    let _ = environment.check()?;
    let snapshot = environment.read()?;
    let trees = snapshot.trees()?;
    let mut keys: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for (name, kind) in &trees {
        let _ = match kind {
            Kind::Tree => walk(&snapshot, name, &mut keys),
            Kind::MultiTree => walk_multi(&snapshot, name),
            Kind::FixedTree => walk_fixed(&snapshot, name),
            Kind::Table => walk_table(&snapshot, name),
            _ => Ok(()),
        };
    }
    drop(snapshot);
    if read_only {
        return Ok(());
    }
    let mut transaction = environment.write()?;
    let savepoint = transaction.savepoint();
    for (name, kind) in &trees {
        let change = |transaction: &mut jackdaw_storage::WriteTransaction| -> Result<()> {
            match kind {
                Kind::Tree => {}
                Kind::MultiTree => return change_multi(transaction, name),
                Kind::FixedTree => return change_fixed(transaction, name),
                Kind::Table => return change_table(transaction, name),
                _ => return Ok(()),
            }
            let mut tree = transaction.tree_mut(name)?;
            for (_, key) in keys.iter().filter(|(of, _)| of == name).step_by(3) {
                tree.delete(key)?;
            }
            for number in 0..20_u32 {
                tree.put(&number.to_be_bytes(), &vec![number as u8; number as usize * 500])?;
            }
            Ok(())
        };
        if change(&mut transaction).is_err() {
            break;
        }
    }
    if transaction.commit().is_err() {
        return Ok(());
    }
    let _ = savepoint;
    let _ = environment.flush();
    let mut transaction = environment.write()?;
    for (name, _) in &trees {
        if transaction.drop_tree(name).is_err() {
            break;
        }
    }
    let _ = transaction.commit();
    let _ = environment.check()?;
    environment.close()
}

/// Reads a tree in all ways.
fn walk(
    snapshot: &jackdaw_storage::ReadTransaction,
    name: &[u8],
    keys: &mut Vec<(Vec<u8>, Vec<u8>)>,
) -> Result<()> {
    let tree = snapshot.tree(name)?;
    for order in [Order::Ascending, Order::Descending] {
        let mut range = tree.range(Bound::Unbounded, Bound::Unbounded, order)?;
        // A damaged chain of leaves must end as well; the sample has far fewer entries.
        let mut steps = 0;
        while let Some((key, value)) = range.next()? {
            std::hint::black_box(value.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)));
            if order == Order::Ascending && keys.len() < 2000 {
                keys.push((name.to_vec(), key.to_vec()));
            }
            steps += 1;
            assert!(steps < 10_000_000, "the walk over a small tree does not end");
        }
    }
    for (_, key) in keys.iter().filter(|(of, _)| of == name).take(50) {
        let _ = tree.get(key)?;
        let mut cursor = tree.cursor();
        cursor.seek(key)?;
        cursor.prev()?;
        let _ = tree.estimate_count(Bound::Included(key), Bound::Unbounded)?;
    }
    Ok(())
}

/// A damaged structure must end as well; the sample has far fewer entries.
fn count_step(steps: &mut u64) {
    *steps += 1;
    assert!(*steps < 10_000_000, "the walk over a small structure does not end");
}

fn walk_multi(snapshot: &jackdaw_storage::ReadTransaction, name: &[u8]) -> Result<()> {
    let tree = snapshot.multi_tree(name)?;
    let (mut cursor, mut steps) = (tree.cursor(), 0);
    while cursor.next()? {
        count_step(&mut steps);
        tree.count(cursor.key())?;
        tree.contains(cursor.key(), cursor.value())?;
    }
    while cursor.prev()? {
        count_step(&mut steps);
    }
    Ok(())
}

fn walk_fixed(snapshot: &jackdaw_storage::ReadTransaction, name: &[u8]) -> Result<()> {
    let tree = snapshot.fixed_tree(name)?;
    let mut steps = 0;
    for order in [Order::Ascending, Order::Descending] {
        let mut range = tree.range(Bound::Unbounded, Bound::Unbounded, order);
        while let Some((key, value)) = range.next()? {
            count_step(&mut steps);
            std::hint::black_box(value.len());
            tree.get(key)?;
        }
    }
    Ok(())
}

fn walk_table(snapshot: &jackdaw_storage::ReadTransaction, name: &[u8]) -> Result<()> {
    let table = snapshot.table(name)?;
    let mut steps = 0;
    let indexes = 0..table.schema().indexes().len();
    for by in [By::Primary].into_iter().chain(indexes.map(By::Index)) {
        for order in [Order::Ascending, Order::Descending] {
            let mut rows = table.range(by, Bound::Unbounded, Bound::Unbounded, order)?;
            while let Some(row) = rows.next()? {
                count_step(&mut steps);
                let sum = row.as_bytes().iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
                std::hint::black_box(sum);
            }
        }
    }
    Ok(())
}

fn change_multi(transaction: &mut jackdaw_storage::WriteTransaction, name: &[u8]) -> Result<()> {
    let mut tree = transaction.multi_tree_mut(name)?;
    for number in 0..60_u32 {
        tree.add(b"many", &number.to_be_bytes())?;
        tree.remove(b"many", format!("value {number}").as_bytes())?;
    }
    tree.delete(b"few").map(|_| ())
}

fn change_fixed(transaction: &mut jackdaw_storage::WriteTransaction, name: &[u8]) -> Result<()> {
    let mut tree = transaction.fixed_tree_mut(name)?;
    let value = vec![7; tree.value_size()];
    for number in 0..200_i64 {
        tree.delete(number * 3)?;
        tree.put(number * 7 - 500, &value)?;
    }
    Ok(())
}

fn change_table(transaction: &mut jackdaw_storage::WriteTransaction, name: &[u8]) -> Result<()> {
    let mut table = transaction.table_mut(name)?;
    let mut builder = RowBuilder::new();
    for number in 0..30_i64 {
        let id = format!("rows/{number:03}");
        if number % 3 == 0 {
            table.delete(id.as_bytes())?;
            continue;
        }
        let body = vec![number as u8; number as usize * 100];
        let row = builder.push(id.as_bytes()).push_i64(10_000 + number).push(b"g").push(&body).finish()?;
        table.upsert(row)?;
    }
    Ok(())
}

/// A good environment, of which one file is to be replaced.
struct Sample {
    disk: SimulatedDisk,
    /// The file to be replaced, and what it should hold.
    name: String,
    bytes: Vec<u8>,
    /// The hash that the journal's first record names as the one before.
    hash_before: u64,
}

fn sample(target: Target) -> &'static Sample {
    static SAMPLES: OnceLock<[Sample; 3]> = OnceLock::new();
    &SAMPLES.get_or_init(|| Target::ALL.map(make_sample))[target as usize]
}

/// The sample is made by an engine that works; where it does not, other tests say so.
fn make_sample(target: Target) -> Sample {
    let disk = SimulatedDisk::new(1);
    let left = match make_environment(&disk, target) {
        Ok(left) => left,
        Err(error) => panic!("the sample cannot be made: {error}"),
    };
    let journal = || {
        left.names().into_iter().filter(|name| name.starts_with("journal/")).max_by_key(|name| {
            // The one with the most records.
            let bytes = left.contents(name).unwrap_or_default();
            records(&bytes).len()
        })
    };
    let name = match target {
        Target::Data => "data".to_owned(),
        Target::Journal => journal().unwrap_or_default(),
        Target::Header => ["header-0", "header-1"]
            .into_iter()
            .max_by_key(|name| u64_at(&left.contents(name).unwrap_or_default(), HEADER_GENERATION_AT))
            .unwrap_or_default()
            .to_owned(),
    };
    let mut bytes = left.contents(&name).unwrap_or_default();
    let mut hash_before = 0;
    if target == Target::Journal {
        let all = records(&bytes);
        assert!(all.len() > 3, "the sample's journal has {} records", all.len());
        hash_before = u64_at(&bytes, PREVIOUS_AT);
        bytes = uncompressed(&bytes, &all);
        correct_records(&mut bytes, hash_before);
    }
    assert!(!bytes.is_empty(), "the sample has no {name}");
    Sample { disk: left, name, bytes, hash_before }
}

/// A small environment with every kind of page; what is left of it when it is closed, or when the process dies.
fn make_environment(disk: &SimulatedDisk, target: Target) -> Result<SimulatedDisk> {
    let environment = Environment::open_on(Arc::new(disk.clone()), options())?;
    for number in 0..8_u32 {
        let mut transaction = environment.write()?;
        for name in [&b"documents"[..], b"small"] {
            let mut tree = transaction.create_tree(name)?;
            let count = if name == b"small" { 2 } else { 14 };
            for i in 0..count {
                let key = format!("users/{:04}-{i}", number * 7 % 5);
                let size = [5, 60, 200, 600, 3000, 9000, 20_000][(i * 5 + number) as usize % 7];
                tree.put(key.as_bytes(), &vec![(number * 14 + i) as u8; size])?;
            }
            if number % 2 == 1 {
                tree.delete(format!("users/{:04}-1", number * 7 % 5).as_bytes())?;
            }
        }
        let mut multi = transaction.create_multi_tree(b"multi")?;
        for i in 0..30 {
            multi.add(b"many", format!("value {}", number * 30 + i).as_bytes())?;
        }
        multi.add(b"few", &number.to_le_bytes())?;
        drop(multi);
        let mut fixed = transaction.create_fixed_tree(b"fixed", 12)?;
        for i in 0..if number < 2 { 3 } else { 300_i64 } {
            fixed.put(i * 3 - 100, &[number as u8; 12])?;
        }
        drop(fixed);
        let schema = Schema::new(4, 0..1).etag("by_etag", 1).non_unique("by_group", 2..3);
        let mut table = transaction.create_table(b"table", &schema)?;
        let mut builder = RowBuilder::new();
        for i in 0..8_i64 {
            let id = format!("rows/{:03}", (i * 7 + i64::from(number)) % 40);
            let etag = i64::from(number) * 100 + i;
            let body = vec![i as u8; [10, 300, 2000, 9000][i as usize % 4]];
            let row = builder.push(id.as_bytes()).push_i64(etag).push(b"group").push(&body).finish()?;
            table.upsert(row)?;
        }
        drop(table);
        transaction.commit()?;
        // The hashes of flushed records stand in the header too, so that a journal to be changed has none of those.
        if number == 2 && target != Target::Journal {
            environment.flush()?;
        }
    }
    if target == Target::Data {
        environment.close()?;
        return Ok(disk.clone());
    }
    let left = disk.snapshot().map_err(|source| jackdaw_storage::Error::Invalid(source.to_string()))?;
    Ok(left)
}

// The offsets of docs/format, on purpose not the engine's own: both must agree.
const PAGE_CHECKSUM_AT: usize = 8;
const PAGE_KIND_AT: usize = 16;
const RUN_LENGTH_AT: usize = 24;
const PAGE_HEADER_SIZE: usize = 32;
const OVERFLOW: u8 = 6;

const RECORD_MAGIC: &[u8; 8] = b"JDWRECD1";
const PREVIOUS_AT: usize = 24;
const STORED_SIZE_AT: usize = 32;
const SIZE_AT: usize = 40;
const FLAGS_AT: usize = 48;
const HASH_AT: usize = 72;
const RECORD_HEADER_SIZE: usize = 80;
const RECORD_ALIGNMENT: usize = 4096;

const HEADER_GENERATION_AT: usize = 24;
const HEADER_CHECKSUM_AT: usize = 64;

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).unwrap_or_default().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Gives each page, and each run that its page speaks of, the checksum that fits.
fn correct_pages(bytes: &mut [u8]) {
    let mut at = 0;
    while at + PAGE_SIZE <= bytes.len() {
        let mut size = PAGE_SIZE;
        if bytes[at + PAGE_KIND_AT] == OVERFLOW {
            let length = u64_at(bytes, at + RUN_LENGTH_AT);
            if let Some(whole) =
                usize::try_from(length).ok().and_then(|length| length.checked_add(PAGE_HEADER_SIZE))
                && whole <= bytes.len() - at
            {
                size = whole;
            }
        }
        let sum = xxh3_64_with_seed(&bytes[at + PAGE_KIND_AT..at + size], u64_at(bytes, at));
        put_u64(bytes, at + PAGE_CHECKSUM_AT, sum);
        at += size.next_multiple_of(PAGE_SIZE);
    }
}

/// Where the records are: offset and size with padding.
fn records(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + RECORD_HEADER_SIZE <= bytes.len() && &bytes[at..at + 8] == RECORD_MAGIC {
        let stored = u64_at(bytes, at + STORED_SIZE_AT);
        let Some(size) = usize::try_from(stored)
            .ok()
            .and_then(|stored| stored.checked_add(RECORD_HEADER_SIZE))
            .and_then(|size| size.checked_next_multiple_of(RECORD_ALIGNMENT))
            .filter(|&size| size <= bytes.len() - at)
        else {
            break;
        };
        found.push((at, size));
        at += size;
    }
    found
}

/// The same records with their bodies as they are, so that a change of a byte is a change of an entry.
fn uncompressed(bytes: &[u8], records: &[(usize, usize)]) -> Vec<u8> {
    let mut out = Vec::new();
    for &(at, size) in records {
        let stored = u64_at(bytes, at + STORED_SIZE_AT) as usize;
        let body = &bytes[at + RECORD_HEADER_SIZE..at + RECORD_HEADER_SIZE + stored];
        let start = out.len();
        out.extend_from_slice(&bytes[at..at + RECORD_HEADER_SIZE]);
        if bytes[at + FLAGS_AT] & 1 == 0 {
            out.extend_from_slice(body);
        } else if let Ok(body) = lz4_flex::block::decompress(body, u64_at(bytes, at + SIZE_AT) as usize) {
            out.extend_from_slice(&body);
        }
        let length = (out.len() - start - RECORD_HEADER_SIZE) as u64;
        put_u64(&mut out, start + STORED_SIZE_AT, length);
        put_u64(&mut out, start + SIZE_AT, length);
        out[start + FLAGS_AT] &= !1;
        let end =
            start + ((out.len() - start).next_multiple_of(RECORD_ALIGNMENT)).max(size.min(RECORD_ALIGNMENT));
        out.resize(end, 0);
    }
    out
}

/// Gives each record the hash that fits, and its successor that hash as the one before.
fn correct_records(bytes: &mut [u8], hash_before: u64) {
    let mut before = hash_before;
    for (at, _) in records(bytes) {
        put_u64(bytes, at + PREVIOUS_AT, before);
        let stored = u64_at(bytes, at + STORED_SIZE_AT) as usize;
        let mut hash = Xxh3::new();
        hash.update(&bytes[at..at + HASH_AT]);
        hash.update(&bytes[at + RECORD_HEADER_SIZE..at + RECORD_HEADER_SIZE + stored]);
        before = hash.digest();
        put_u64(bytes, at + HASH_AT, before);
    }
}

fn correct_header(bytes: &mut [u8]) {
    if bytes.len() >= HEADER_CHECKSUM_AT + 8 {
        let sum = xxh3_64(&bytes[..HEADER_CHECKSUM_AT]);
        put_u64(bytes, HEADER_CHECKSUM_AT, sum);
    }
}

/// Checks that the samples are good as they are, and that what is corrected after no change at all is as good: otherwise the fuzzer
/// never gets past the first check. The first thing that is wrong.
pub fn check_samples() -> std::result::Result<(), String> {
    for target in Target::ALL {
        let sample = sample(target);
        for correct in [false, true] {
            let mut bytes = sample.bytes.clone();
            match target {
                _ if !correct => {}
                Target::Data => correct_pages(&mut bytes),
                Target::Journal => correct_records(&mut bytes, sample.hash_before),
                Target::Header => correct_header(&mut bytes),
            }
            if correct && target != Target::Data && bytes != sample.bytes {
                return Err(format!("{}: correcting changes what is right", target.name()));
            }
            let disk = sample.disk.snapshot().map_err(|error| error.to_string())?;
            disk.set_contents(&sample.name, &bytes).map_err(|error| error.to_string())?;
            let environment = Environment::open_on(Arc::new(disk), options())
                .map_err(|error| format!("{}: the sample does not open: {error}", target.name()))?;
            let last = environment.last_transaction().0;
            if last < 8 {
                return Err(format!("{}: the sample ends at transaction {last}", target.name()));
            }
            let report = environment.check().map_err(|error| error.to_string())?;
            if !report.is_clean() {
                return Err(format!("{}: {:?}", target.name(), report.problems));
            }
        }
    }
    Ok(())
}
