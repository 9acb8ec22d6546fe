//! One page of the data file, taken apart for a person: what `jackdaw storage dump-page` shows.
//!
//! [`inspect_page`] reads the file as it is, without opening the environment: no recovery, no lock. So it works on an environment
//! that cannot be opened or that is in use, and shows a page as it was last flushed. [`PageImage::decode`] takes apart bytes that
//! came from elsewhere, as from a snapshot.

use std::path::Path;

use crate::check::kind_name;
use crate::data_file;
use crate::disk::{Disk, OpenMode, RealDisk};
use crate::error::{Error, Result};
use crate::format::{PAGE_BODY_SIZE, PAGE_HEADER_SIZE, PAGE_SIZE, PageNumber, read_u16, read_u64};
use crate::page::header::{self, PageKind};
use crate::page::leaf::LeafValue;
use crate::page::{self, Page, branch, fixed, leaf, section};
use crate::root::RootState;

/// A page and what its bytes mean.
#[derive(Debug, Clone)]
pub struct PageImage {
    /// Where it was read: its offset divided by [`PAGE_SIZE`].
    pub number: PageNumber,
    /// The number it says it has.
    pub stored_number: PageNumber,
    /// What it holds, `None` when the byte is no kind at all.
    pub kind: Option<&'static str>,
    /// The kind's byte.
    pub kind_byte: u8,
    /// By kind.
    pub flags: u8,
    /// Entries, slots or children.
    pub count: u16,
    /// Where the slots end, in slotted pages.
    pub lower: u16,
    /// Where the cells begin, in slotted pages.
    pub upper: u16,
    /// The checksum it carries.
    pub stored_checksum: u64,
    /// The checksum it should carry; `None` where it does not count (outside the data file) or cannot be computed (of an overflow
    /// run that ends beyond the file, which is damage).
    pub checksum: Option<u64>,
    /// What is wrong with it, if anything: number, kind, structure or checksum. A page that was never written or is free now may say
    /// anything.
    pub damage: Option<String>,
    /// Further numbers of its kind, by name.
    pub fields: Vec<(&'static str, u64)>,
    /// What it holds, in order; empty when the structure is damaged.
    pub items: Vec<PageItem>,
    /// The page's bytes (the first page's, for an overflow run).
    pub bytes: Vec<u8>,
}

/// One entry of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageItem {
    /// Its index or slot.
    pub index: usize,
    /// Its key, or the separator before a child; empty where there is none.
    pub key: Vec<u8>,
    /// What is there.
    pub content: PageItemContent,
}

/// What an entry leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageItemContent {
    /// A value that lies in the page.
    Value(Vec<u8>),
    /// A value in a section page: page and slot.
    Section(PageNumber, u16),
    /// A value in an overflow run: its first page.
    Run(PageNumber),
    /// Another page.
    Child(PageNumber),
}

/// Reads a page of the environment in a directory.
///
/// Errors: [`Error::NotFound`]; [`Error::Invalid`] when the data file has no such page; [`Error::Io`]. A damaged page is
/// no error: see [`PageImage::damage`].
pub fn inspect_page(directory: impl AsRef<Path>, number: PageNumber) -> Result<PageImage> {
    let directory = directory.as_ref();
    if !directory.join(data_file::NAME).is_file() {
        return Err(Error::NotFound { path: directory.to_owned() });
    }
    let disk = RealDisk::open(directory).map_err(|e| Error::io("open", directory, e))?;
    inspect_page_on(&disk, number)
}

fn inspect_page_on(disk: &dyn Disk, number: PageNumber) -> Result<PageImage> {
    let path = disk.path().join(data_file::NAME);
    let file = disk.open(data_file::NAME, OpenMode::Read).map_err(|e| Error::io("open", &path, e))?;
    let length = file.len().map_err(|e| Error::io("read the length of", &path, e))?;
    let pages = length / PAGE_SIZE as u64;
    if number.0 >= pages {
        return Err(Error::Invalid(format!(
            "{} has {pages} pages, numbered from 0; there is no page {number}",
            path.display()
        )));
    }
    let mut page: Page = [0; PAGE_SIZE];
    file.read_at(number.offset(), &mut page).map_err(|e| Error::io("read", &path, e))?;
    let checksum = match run_size(&page) {
        None => Some(header::checksum(&page)),
        Some(size) if size <= length - number.offset() => {
            let mut run = vec![0; size as usize];
            file.read_at(number.offset(), &mut run).map_err(|e| Error::io("read", &path, e))?;
            Some(header::checksum(&run))
        }
        Some(_) => None,
    };
    let mut image = PageImage::of(number, &page);
    image.checksum = checksum;
    if image.damage.is_none() {
        image.damage = match checksum {
            None => Some("its run ends beyond the file".to_owned()),
            Some(sum) if sum != image.stored_checksum => Some("its checksum does not fit".to_owned()),
            Some(_) => None,
        };
    }
    Ok(image)
}

/// Bytes of header and value of the run that this page begins, if it does: what its checksum covers.
fn run_size(page: &Page) -> Option<u64> {
    let is_run = header::kind(page) == Some(PageKind::Overflow);
    is_run.then(|| read_u64(page, header::RUN_LENGTH_AT).saturating_add(PAGE_HEADER_SIZE as u64))
}

impl PageImage {
    /// Takes apart the bytes of a page, of an overflow run its first page. The checksum is not looked at.
    ///
    /// Errors: [`Error::Invalid`] when it is not a page's number of bytes.
    pub fn decode(number: PageNumber, bytes: &[u8]) -> Result<PageImage> {
        match bytes.first_chunk::<PAGE_SIZE>() {
            Some(page) if bytes.len() == PAGE_SIZE => Ok(PageImage::of(number, page)),
            _ => Err(Error::Invalid(format!("a page has {PAGE_SIZE} bytes, not {}", bytes.len()))),
        }
    }

    fn of(number: PageNumber, page: &Page) -> PageImage {
        let structure = page::validate(number, page);
        let damage = match &structure {
            _ if header::number(page) != number => {
                Some(format!("it says that it is page {}", header::number(page)))
            }
            Err(Error::PageDamaged { reason, .. }) => Some(reason.clone()),
            Err(other) => Some(other.to_string()),
            Ok(()) => None,
        };
        let mut image = PageImage {
            number,
            stored_number: header::number(page),
            kind: header::kind(page).map(kind_name),
            kind_byte: page[header::KIND_AT],
            flags: page[header::FLAGS_AT],
            count: read_u16(page, header::COUNT_AT),
            lower: read_u16(page, header::LOWER_AT),
            upper: read_u16(page, header::UPPER_AT),
            stored_checksum: header::stored_checksum(page),
            checksum: None,
            damage,
            fields: Vec::new(),
            items: Vec::new(),
            bytes: page.to_vec(),
        };
        // Only a sound structure can be walked without bounds of one's own.
        if let (Ok(()), Some(kind)) = (structure, header::kind(page)) {
            image.add_content(kind, page);
        }
        image
    }

    fn add(&mut self, index: usize, key: impl Into<Vec<u8>>, content: PageItemContent) {
        self.items.push(PageItem { index, key: key.into(), content });
    }

    fn add_content(&mut self, kind: PageKind, page: &Page) {
        match kind {
            PageKind::Root => {
                if let Ok(root) = RootState::read(page) {
                    self.fields.extend([
                        ("page count", root.page_count),
                        ("free pages", root.free_pages),
                        ("catalog root", root.catalog.root.0),
                        ("catalog entries", root.catalog.entries),
                        ("catalog depth", root.catalog.depth as u64),
                    ]);
                }
            }
            PageKind::FreeDirectory => {
                for index in 0..PAGE_BODY_SIZE / 8 {
                    let bitmap = PageNumber(read_u64(page, PAGE_HEADER_SIZE + index * 8));
                    if bitmap.is_some() {
                        self.add(index, [], PageItemContent::Child(bitmap));
                    }
                }
            }
            PageKind::FreeBitmap => {
                let bits: u64 =
                    page[PAGE_HEADER_SIZE..].iter().map(|byte| u64::from(byte.count_ones())).sum();
                self.fields.push(("free pages", bits));
            }
            PageKind::Branch => {
                let branch = branch::Branch::new(page);
                self.fields.push(("prefix size", branch.prefix().len() as u64));
                for index in 0..branch.count() {
                    let mut separator = Vec::new();
                    if index > 0 {
                        branch.entry(index).copy_separator(&mut separator);
                    }
                    self.add(index, separator, PageItemContent::Child(branch.child(index)));
                }
            }
            PageKind::Leaf => {
                let leaf = leaf::Leaf::new(page);
                self.fields.push(("prefix size", leaf.prefix().len() as u64));
                for index in 0..leaf.count() {
                    let entry = leaf.entry(index);
                    let mut key = Vec::new();
                    entry.copy_key(&mut key);
                    let content = match entry.value {
                        LeafValue::Inline(value) => PageItemContent::Value(value.to_vec()),
                        LeafValue::Long(reference) if reference.is_run() => {
                            PageItemContent::Run(reference.page())
                        }
                        LeafValue::Long(reference) => {
                            PageItemContent::Section(reference.page(), reference.slot())
                        }
                    };
                    self.add(index, key, content);
                }
            }
            PageKind::Overflow => self.fields.push(("length", read_u64(page, header::RUN_LENGTH_AT))),
            PageKind::Section => {
                let Ok(section) = section::Section::new(page) else { return };
                self.fields.extend([
                    ("free bytes", section.free() as u64),
                    ("previous", section.prev().0),
                    ("next", section.next().0),
                ]);
                for slot in section.slots() {
                    let value = section.get(slot).unwrap_or_default();
                    self.add(slot.into(), [], PageItemContent::Value(value.to_vec()));
                }
            }
            PageKind::FixedBranch => {
                let Ok(branch) = fixed::Branch::new(page) else { return };
                for index in 0..branch.count() {
                    let key = if index > 0 { branch.key(index).to_string() } else { String::new() };
                    self.add(index, key, PageItemContent::Child(branch.child(index)));
                }
            }
            PageKind::FixedLeaf => {
                let size = usize::from(self.flags);
                self.fields.push(("value size", size as u64));
                let Ok(entries) = fixed::Entries::of_leaf(page, size) else { return };
                for index in 0..entries.count() {
                    let key = entries.key(index).to_string();
                    self.add(index, key, PageItemContent::Value(entries.value(index).to_vec()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::sync::Arc;

    use super::*;
    use crate::disk::SimulatedDisk;
    use crate::{Environment, Options};

    /// An environment with values of every kind of storage, closed; its pages.
    fn pages() -> (Arc<SimulatedDisk>, Vec<PageImage>) {
        let disk = Arc::new(SimulatedDisk::new(1));
        let env = Environment::open_on(disk.clone(), Options::default().background(false)).unwrap();
        let mut tx = env.write().unwrap();
        {
            let mut tree = tx.create_tree(b"t").unwrap();
            for i in 0..2000u32 {
                tree.put(&i.to_be_bytes(), &[7; 100]).unwrap();
            }
            tree.put(b"section", &[8; 3000]).unwrap();
            tree.put(b"run", &[9; 30_000]).unwrap();
        }
        tx.commit().unwrap();
        env.close().unwrap();
        let mut images = Vec::new();
        while let Ok(image) = inspect_page_on(&*disk, PageNumber(images.len() as u64)) {
            images.push(image);
        }
        (disk, images)
    }

    #[test]
    fn every_page_is_taken_apart() {
        let (_, pages) = pages();
        let of_kind =
            |kind| pages.iter().filter(move |page| page.kind == Some(kind) && page.damage.is_none());
        assert_eq!(of_kind("root").count(), 1);
        let items: usize = of_kind("leaf").map(|page| page.items.len()).sum();
        assert_eq!(items, 2000 + 2 + 1, "the tree's entries and the catalog's");
        let leaves = of_kind("leaf").count();
        let children: usize = of_kind("branch").map(|page| page.items.len()).sum();
        assert_eq!(children, leaves - 1, "all leaves but the catalog's have a branch over them");
        assert_eq!(of_kind("overflow").map(|page| page.fields[0]).collect::<Vec<_>>(), [("length", 30_000)]);
        let value = of_kind("section").next().unwrap().items[0].content.clone();
        assert_eq!(value, PageItemContent::Value(vec![8; 3000]));
    }

    #[test]
    fn references_lead_to_their_pages() {
        let (_, pages) = pages();
        let find = |key: &[u8]| {
            let items = || pages.iter().filter(|page| page.kind == Some("leaf")).flat_map(|page| &page.items);
            items().find(|item| item.key == key).unwrap().content.clone()
        };
        let PageItemContent::Run(run) = find(b"run") else { panic!("not in a run") };
        assert_eq!(pages[run.0 as usize].kind, Some("overflow"));
        let PageItemContent::Section(page, _) = find(b"section") else { panic!("not in a section") };
        assert_eq!(pages[page.0 as usize].kind, Some("section"));
    }

    #[test]
    fn damage_is_told_and_no_error() {
        let (disk, pages) = pages();
        let leaf = pages.iter().find(|page| page.kind == Some("leaf")).unwrap().number;
        let file = disk.open(data_file::NAME, OpenMode::Write).unwrap();
        file.write_at(leaf.offset() + 8190, &[1, 2]).unwrap();
        let damage = inspect_page_on(&*disk, leaf).unwrap().damage.unwrap();
        assert!(damage.contains("checksum"), "{damage}");
        file.write_at(leaf.offset(), &[255; PAGE_SIZE]).unwrap();
        let image = inspect_page_on(&*disk, leaf).unwrap();
        assert!(image.damage.is_some() && image.items.is_empty());
    }

    #[test]
    fn a_run_beyond_the_file_is_damage() {
        let (disk, pages) = pages();
        let run = pages.iter().find(|page| page.kind == Some("overflow")).unwrap().number;
        let file = disk.open(data_file::NAME, OpenMode::Write).unwrap();
        for length in [1u64 << 40, u64::MAX] {
            file.write_at(run.offset() + header::RUN_LENGTH_AT as u64, &length.to_le_bytes()).unwrap();
            assert!(inspect_page_on(&*disk, run).unwrap().damage.is_some());
        }
    }

    #[test]
    fn bytes_from_elsewhere_are_taken_apart_without_their_checksum() {
        let (_, pages) = pages();
        let leaf = pages.iter().find(|page| page.kind == Some("leaf")).unwrap();
        let mut bytes = leaf.bytes.clone();
        bytes[header::CHECKSUM_AT] ^= 1;
        let image = PageImage::decode(leaf.number, &bytes).unwrap();
        assert_eq!((image.damage, image.items), (None, leaf.items.clone()));
        assert!(PageImage::decode(leaf.number, &bytes[1..]).is_err());
    }

    #[test]
    fn a_page_that_is_not_there_is_an_error() {
        let (disk, pages) = pages();
        let error = inspect_page_on(&*disk, PageNumber(pages.len() as u64)).unwrap_err();
        assert!(error.to_string().contains("there is no page"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(inspect_page(folder.path(), PageNumber(0)), Err(Error::NotFound { .. })));
    }
}
