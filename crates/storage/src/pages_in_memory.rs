//! Pages in plain memory, for testing the structures alone and under Miri: no snapshots, no journal, no file.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::format::{PAGE_HEADER_SIZE, PAGE_SIZE, PageNumber};
use crate::page::header::{self, PageKind};
use crate::page::{self, Page};
use crate::pages::{DirtyLines, LINE_SIZE, PageMut, Pages, PagesMut, RunSource};

enum Slot {
    Free,
    /// `before` is the page as it was at the last [`PagesInMemory::check_lines`]; `None`: as allocated, or not watched.
    Page {
        bytes: Box<Page>,
        lines: DirtyLines,
        before: Option<Box<Page>>,
    },
    Run(Vec<u8>),
}

/// Every page that was allocated and not freed. Using a freed page is an error, so that tests notice.
#[derive(Default)]
pub(crate) struct PagesInMemory {
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// How many pages may still be allocated, for failing.
    budget: Option<usize>,
}

impl PagesInMemory {
    pub(crate) fn new() -> PagesInMemory {
        PagesInMemory { slots: vec![Slot::Free], free: Vec::new(), budget: None } // page 0 is the root page
    }

    /// How many pages of each kind are in use, for leak tests; a run counts as one.
    pub(crate) fn in_use(&self) -> BTreeMap<u8, usize> {
        let mut counts = BTreeMap::new();
        for slot in &self.slots {
            let kind = match slot {
                Slot::Free => continue,
                Slot::Page { bytes, .. } => bytes[header::KIND_AT],
                Slot::Run(_) => PageKind::Overflow as u8,
            };
            *counts.entry(kind).or_default() += 1;
        }
        counts
    }

    /// Runs `page::validate` over every page in use: what would be checked on reading them back.
    pub(crate) fn validate_all(&self) -> Result<()> {
        for (i, slot) in self.slots.iter().enumerate() {
            if let Slot::Page { bytes, .. } = slot {
                page::validate(PageNumber(i as u64), bytes)?;
            }
        }
        Ok(())
    }

    /// Panics when a byte has changed since the last call in a line that is not marked; begins anew then.
    pub(crate) fn check_lines(&mut self) {
        for (i, slot) in self.slots.iter_mut().enumerate() {
            let Slot::Page { bytes, lines, before } = slot else { continue };
            if let Some(before) = before {
                let pairs = bytes.chunks(LINE_SIZE).zip(before.chunks(LINE_SIZE));
                for (line, (now, then)) in pairs.enumerate() {
                    assert!(
                        now == then || *lines >> line & 1 == 1,
                        "page {i} changed in line {line}, unmarked"
                    );
                }
            }
            *before = Some(bytes.clone());
            *lines = 0;
        }
    }

    /// How many lines are marked in all pages together.
    pub(crate) fn marked_lines(&self) -> u32 {
        let lines = self.slots.iter().map(|slot| match slot {
            Slot::Page { lines, .. } => lines.count_ones(),
            _ => 0,
        });
        lines.sum()
    }

    /// Lets only so many more pages be allocated; `None` for all that are wanted.
    pub(crate) fn limit(&mut self, budget: Option<usize>) {
        self.budget = budget;
    }

    /// The numbers of all pages in use.
    pub(crate) fn numbers(&self) -> Vec<PageNumber> {
        let pages = self.slots.iter().enumerate().filter(|(_, slot)| matches!(slot, Slot::Page { .. }));
        pages.map(|(i, _)| PageNumber(i as u64)).collect()
    }

    fn new_slot(&mut self, slot: Slot) -> PageNumber {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::Free);
            self.slots.len() - 1
        });
        self.slots[at] = slot;
        PageNumber(at as u64)
    }
}

impl Pages for PagesInMemory {
    fn page(&self, number: PageNumber) -> Result<&Page> {
        match self.slots.get(number.0 as usize) {
            Some(Slot::Page { bytes, .. }) => Ok(bytes),
            _ => Err(Error::damaged(number, "not in use")),
        }
    }

    fn run(&self, number: PageNumber) -> Result<&[u8]> {
        match self.slots.get(number.0 as usize) {
            Some(Slot::Run(bytes)) => Ok(bytes),
            _ => Err(Error::damaged(number, "no run")),
        }
    }
}

impl PagesMut for PagesInMemory {
    fn page_mut(&mut self, number: PageNumber) -> Result<PageMut<'_>> {
        match self.slots.get_mut(number.0 as usize) {
            Some(Slot::Page { bytes, lines, .. }) => Ok(PageMut::new(bytes, lines)),
            _ => Err(Error::damaged(number, "not in use")),
        }
    }

    fn allocate(&mut self, kind: PageKind) -> Result<PageNumber> {
        if let Some(budget) = &mut self.budget {
            *budget = budget.checked_sub(1).ok_or(Error::TransactionTooLarge { max: 0 })?;
        }
        let number = self.new_slot(Slot::Page { bytes: Box::new([0; PAGE_SIZE]), lines: 0, before: None });
        header::init(self.page_mut(number)?.all_mut(), number, kind);
        Ok(number)
    }

    fn free(&mut self, number: PageNumber) -> Result<()> {
        self.page(number)?;
        self.slots[number.0 as usize] = Slot::Free;
        self.free.push(number.0 as usize);
        Ok(())
    }

    fn write_run(&mut self, length: u64, value: &mut dyn RunSource) -> Result<PageNumber> {
        assert!(length as usize > PAGE_SIZE - PAGE_HEADER_SIZE - 16, "a run for a value that needs none");
        let mut bytes = vec![0; length as usize];
        value.fill(&mut bytes)?;
        Ok(self.new_slot(Slot::Run(bytes)))
    }

    fn free_run(&mut self, number: PageNumber) -> Result<()> {
        self.run(number)?;
        self.slots[number.0 as usize] = Slot::Free;
        self.free.push(number.0 as usize);
        Ok(())
    }
}
