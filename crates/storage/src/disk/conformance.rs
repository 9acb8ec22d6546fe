//! What every [`Disk`] must do alike: one suite, run against the real and the simulated one.

#![allow(clippy::unwrap_used)]

use std::io::ErrorKind;
use std::sync::Arc;

use super::{DIRECT_ALIGNMENT, Disk, File, Mapping, OpenMode};

/// Makes one test per case, each on a fresh disk whose directory does not exist yet. `$make` returns the disk and whatever must
/// live as long.
macro_rules! conformance_tests {
    ($make:expr) => {
        conformance_tests!($make;
            directories_are_made_with_parents, files_open_by_mode, names_are_listed, renaming_replaces, removed_files_stay_open,
            writes_are_read_back, reading_beyond_the_end_fails, writing_beyond_the_end_leaves_zeros, direct_writes_are_read_back,
            misaligned_direct_writes_are_refused, lengths_change, prewriting_keeps_content, maps_show_later_writes,
            maps_outlive_their_file, a_map_of_nothing_is_refused, the_lock_is_exclusive, read_only_files_refuse_writes
        );
    };
    ($make:expr; $($case:ident),*) => {
        $(#[test]
        fn $case() {
            let (disk, _keep) = $make;
            $crate::disk::conformance::$case(&disk);
        })*
    };
}
pub(crate) use conformance_tests;

/// Bytes at an address fit for direct writes.
pub(crate) struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    pub(crate) fn new(content: &[u8]) -> Aligned {
        let mut bytes = vec![0; content.len() + DIRECT_ALIGNMENT];
        let start = bytes.as_ptr().align_offset(DIRECT_ALIGNMENT);
        bytes[start..start + content.len()].copy_from_slice(content);
        Aligned { bytes, start }
    }

    pub(crate) fn get(&self) -> &[u8] {
        &self.bytes[self.start..self.bytes.len() - DIRECT_ALIGNMENT + self.start]
    }
}

fn created(disk: &dyn Disk) -> Arc<dyn File> {
    disk.create_directory("").unwrap();
    disk.open("data", OpenMode::Create).unwrap()
}

pub(crate) fn read(file: &dyn File, offset: u64, size: usize) -> Vec<u8> {
    let mut buffer = vec![0xEE; size];
    file.read_at(offset, &mut buffer).unwrap();
    buffer
}

/// Bytes of a map that lie inside its file.
fn mapped(map: &dyn Mapping, offset: usize, size: usize) -> Vec<u8> {
    // SAFETY: the callers ask for bytes inside the file, and write nothing meanwhile.
    unsafe { std::slice::from_raw_parts(map.base().add(offset), size) }.to_vec()
}

pub(crate) fn directories_are_made_with_parents(disk: &dyn Disk) {
    assert_eq!(disk.open("data", OpenMode::Create).err().unwrap().kind(), ErrorKind::NotFound);
    assert!(disk.lock().is_err(), "there is nothing to lock yet");
    assert!(!disk.exists("").unwrap());
    disk.create_directory("").unwrap();
    assert!(disk.exists("").unwrap());
    assert_eq!(disk.open("a/b/c", OpenMode::Create).err().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(disk.list("a/b").unwrap(), Vec::<String>::new());
    disk.create_directory("a/b").unwrap();
    disk.create_directory("a/b").unwrap();
    disk.open("a/b/c", OpenMode::Create).unwrap();
    assert!(disk.exists("a/b").unwrap() && disk.exists("a/b/c").unwrap());
    disk.sync_directory("a/b").unwrap();
    assert_eq!(disk.sync_directory("nowhere").unwrap_err().kind(), ErrorKind::NotFound);
    assert!(disk.create_directory("a/b/c").is_err(), "a file is in the way");
    assert!(disk.open("a/b", OpenMode::Write).is_err(), "a directory is no file");
}

pub(crate) fn files_open_by_mode(disk: &dyn Disk) {
    disk.create_directory("").unwrap();
    assert!(!disk.exists("data").unwrap());
    assert_eq!(disk.open("data", OpenMode::Read).err().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(disk.open("data", OpenMode::Write).err().unwrap().kind(), ErrorKind::NotFound);
    assert!(disk.open("data", OpenMode::Create).unwrap().is_empty().unwrap());
    assert!(disk.exists("data").unwrap());
    let one = disk.open("data", OpenMode::Write).unwrap();
    one.write_at(0, b"kept").unwrap();
    let other = disk.open("data", OpenMode::Create).unwrap();
    assert_eq!(read(&*other, 0, 4), b"kept", "opening does not empty");
    other.write_at(0, b"seen").unwrap();
    assert_eq!(read(&*disk.open("data", OpenMode::Read).unwrap(), 0, 4), b"seen");
    assert_eq!(read(&*one, 0, 4), b"seen");
}

pub(crate) fn names_are_listed(disk: &dyn Disk) {
    disk.create_directory("journal").unwrap();
    for name in ["2", "10", "1"] {
        disk.open(&format!("journal/{name}"), OpenMode::Create).unwrap();
    }
    disk.open("data", OpenMode::Create).unwrap();
    disk.create_directory("journal/below").unwrap();
    assert_eq!(disk.list("journal").unwrap(), ["1", "10", "2"]);
    assert_eq!(disk.list("").unwrap(), ["data"]);
    assert_eq!(disk.list("nowhere").unwrap(), Vec::<String>::new());
}

pub(crate) fn renaming_replaces(disk: &dyn Disk) {
    disk.create_directory("journal").unwrap();
    let from = disk.open("from", OpenMode::Create).unwrap();
    from.write_at(0, b"from").unwrap();
    let to = disk.open("journal/to", OpenMode::Create).unwrap();
    to.write_at(0, b"to").unwrap();
    disk.rename("from", "journal/to").unwrap();
    assert!(!disk.exists("from").unwrap());
    assert_eq!(read(&*disk.open("journal/to", OpenMode::Read).unwrap(), 0, 4), b"from");
    // Both stay usable under their open handles, directly as well.
    assert_eq!(read(&*to, 0, 2), b"to");
    from.write_durable(0, Aligned::new(&[7; 4096]).get()).unwrap();
    assert_eq!(read(&*disk.open("journal/to", OpenMode::Read).unwrap(), 0, 4096), [7; 4096]);
    assert_eq!(disk.rename("from", "else").unwrap_err().kind(), ErrorKind::NotFound);
    disk.rename("journal/to", "journal/to").unwrap();
    assert!(disk.exists("journal/to").unwrap());
}

pub(crate) fn removed_files_stay_open(disk: &dyn Disk) {
    let file = created(disk);
    file.write_at(0, b"text").unwrap();
    disk.remove("data").unwrap();
    assert!(!disk.exists("data").unwrap());
    assert_eq!(disk.remove("data").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(read(&*file, 0, 4), b"text");
    file.write_at(4, b"more").unwrap();
    assert_eq!(read(&*file, 0, 8), b"textmore");
    assert!(disk.open("data", OpenMode::Create).unwrap().is_empty().unwrap());
}

pub(crate) fn writes_are_read_back(disk: &dyn Disk) {
    let file = created(disk);
    file.write_at(0, &[1; 10_000]).unwrap();
    file.write_at(5_000, &[2; 100]).unwrap();
    file.write_at(5_050, &[]).unwrap();
    file.sync().unwrap();
    assert_eq!(file.len().unwrap(), 10_000);
    assert!(!file.is_empty().unwrap());
    let bytes = read(&*file, 0, 10_000);
    assert!(bytes.iter().enumerate().all(|(i, &b)| b == if (5_000..5_100).contains(&i) { 2 } else { 1 }));
    file.read_at(10_000, &mut []).unwrap();
}

pub(crate) fn reading_beyond_the_end_fails(disk: &dyn Disk) {
    let file = created(disk);
    file.write_at(0, b"short").unwrap();
    let mut buffer = [0; 6];
    assert_eq!(file.read_at(0, &mut buffer).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(file.read_at(100, &mut buffer[..1]).unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

pub(crate) fn writing_beyond_the_end_leaves_zeros(disk: &dyn Disk) {
    let file = created(disk);
    file.write_at(20_000, b"far").unwrap();
    assert_eq!(file.len().unwrap(), 20_003);
    assert_eq!(read(&*file, 0, 20_000), vec![0; 20_000]);
}

pub(crate) fn direct_writes_are_read_back(disk: &dyn Disk) {
    let file = created(disk);
    file.prewrite(64 << 10).unwrap();
    assert_eq!(read(&*file, 0, 64 << 10), vec![0; 64 << 10]);
    let first = Aligned::new(&[3; 16 << 10]);
    file.write_durable(8 << 10, first.get()).unwrap();
    assert_eq!(read(&*file, 8 << 10, 16 << 10), [3; 16 << 10]);
    // Over what the cache holds, and beyond the end.
    file.write_at(100, b"cached").unwrap();
    file.write_durable(0, Aligned::new(&[4; 4096]).get()).unwrap();
    assert_eq!(read(&*file, 0, 4096), [4; 4096]);
    file.write_direct(64 << 10, Aligned::new(&[5; 2 << 20]).get()).unwrap();
    assert_eq!(file.len().unwrap(), (64 << 10) + (2 << 20));
    assert_eq!(read(&*file, 64 << 10, 2 << 20), vec![5; 2 << 20]);
    file.write_at(4000, b"across").unwrap();
    assert_eq!(read(&*file, 3999, 8), [4, b'a', b'c', b'r', b'o', b's', b's', 4]);
    file.sync().unwrap();
}

pub(crate) fn misaligned_direct_writes_are_refused(disk: &dyn Disk) {
    let file = created(disk);
    file.prewrite(16 << 10).unwrap();
    let block = Aligned::new(&[9; 8192]);
    let whole = block.get();
    for (offset, bytes) in [(512, whole), (0, &whole[..512]), (0, &whole[512..512 + 4096])] {
        assert_eq!(file.write_durable(offset, bytes).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(file.write_direct(offset, bytes).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(read(&*file, 0, 16 << 10), [0; 16 << 10]);
}

pub(crate) fn lengths_change(disk: &dyn Disk) {
    let file = created(disk);
    file.write_at(0, &[1; 6000]).unwrap();
    file.allocate(100_000).unwrap();
    assert_eq!(file.len().unwrap(), 100_000);
    assert_eq!(read(&*file, 0, 6000), [1; 6000]);
    assert_eq!(read(&*file, 6000, 94_000), vec![0; 94_000]);
    file.allocate(5).unwrap();
    assert_eq!(file.len().unwrap(), 100_000, "allocating never shortens");
    file.truncate(200_000).unwrap();
    assert_eq!(file.len().unwrap(), 100_000, "truncating never lengthens");
    file.truncate(3000).unwrap();
    assert_eq!(file.len().unwrap(), 3000);
    file.allocate(8000).unwrap();
    assert_eq!(read(&*file, 0, 3000), [1; 3000]);
    assert_eq!(read(&*file, 3000, 5000), [0; 5000], "what was cut off does not come back");
}

pub(crate) fn prewriting_keeps_content(disk: &dyn Disk) {
    let file = created(disk);
    file.write_at(0, &[1; 5000]).unwrap();
    // Several pieces, from and to places that are no block's.
    let length = (3 << 20) + 77;
    file.prewrite(length).unwrap();
    assert_eq!(file.len().unwrap(), length);
    assert_eq!(read(&*file, 0, 5000), [1; 5000]);
    assert!(read(&*file, 5000, length as usize - 5000).iter().all(|&b| b == 0));
    file.prewrite(10).unwrap();
    assert_eq!(file.len().unwrap(), length);
    assert_eq!(read(&*file, 0, 5000), [1; 5000]);
}

pub(crate) fn maps_show_later_writes(disk: &dyn Disk) {
    let file = created(disk);
    file.allocate(64 << 10).unwrap();
    file.write_at(0, b"before").unwrap();
    let map = file.map(1 << 30).unwrap();
    let base = map.base().addr();
    assert!(base.is_multiple_of(4096));
    assert_eq!(mapped(&*map, 0, 6), b"before");
    file.write_at(0, b"after!").unwrap();
    assert_eq!(mapped(&*map, 0, 6), b"after!");
    file.write_durable(8192, Aligned::new(&[6; 8192]).get()).unwrap();
    assert_eq!(mapped(&*map, 8192, 8192), [6; 8192]);
    file.write_direct(8192, Aligned::new(&[7; 4096]).get()).unwrap();
    assert_eq!(mapped(&*map, 8190, 3), [0, 0, 7]);
    // The file grows under the map.
    file.allocate(4 << 20).unwrap();
    file.write_at((4 << 20) - 3, b"end").unwrap();
    map.will_need(0, 4 << 20);
    map.will_need(5 << 20, usize::MAX);
    assert_eq!(mapped(&*map, (4 << 20) - 3, 3), b"end");
    assert_eq!(map.base().addr(), base);
    // Another map of the same file sees the same bytes.
    assert_eq!(mapped(&*disk.open("data", OpenMode::Read).unwrap().map(1 << 20).unwrap(), 0, 6), b"after!");
}

pub(crate) fn maps_outlive_their_file(disk: &dyn Disk) {
    let file = created(disk);
    file.write_at(0, &[8; 8192]).unwrap();
    let map = file.map(1 << 20).unwrap();
    drop(file);
    disk.remove("data").unwrap();
    assert_eq!(mapped(&*map, 0, 8192), [8; 8192]);
}

pub(crate) fn a_map_of_nothing_is_refused(disk: &dyn Disk) {
    assert_eq!(created(disk).map(0).err().unwrap().kind(), ErrorKind::InvalidInput);
}

pub(crate) fn the_lock_is_exclusive(disk: &dyn Disk) {
    disk.create_directory("").unwrap();
    let guard = disk.lock().unwrap().ok().unwrap();
    assert_eq!(disk.lock().unwrap().err(), Some(std::process::id()));
    drop(guard);
    let guard = disk.lock().unwrap().ok().unwrap();
    assert_eq!(disk.lock().unwrap().err(), Some(std::process::id()));
    drop(guard);
}

pub(crate) fn read_only_files_refuse_writes(disk: &dyn Disk) {
    created(disk).write_at(0, &[1; 8192]).unwrap();
    let file = disk.open("data", OpenMode::Read).unwrap();
    let block = Aligned::new(&[2; 4096]);
    assert!(!file.is_direct());
    file.write_at(0, b"no").unwrap_err();
    file.write_direct(0, block.get()).unwrap_err();
    file.write_durable(0, block.get()).unwrap_err();
    file.truncate(0).unwrap_err();
    file.allocate(1 << 20).unwrap_err();
    file.prewrite(1 << 20).unwrap_err();
    assert_eq!(read(&*file, 0, 8192), [1; 8192]);
}
