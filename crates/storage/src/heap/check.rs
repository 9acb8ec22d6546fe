//! Checks a heap against the references that its tree or table holds.

use super::{HeapState, ValueRef};
use crate::error::{Error, Result};
use crate::format::{PAGE_HEADER_SIZE, PAGE_SIZE, PageNumber};
use crate::page::header::{PageKind, run_pages};
use crate::page::section::{List, Section};
use crate::pages::Pages;
use crate::visit::Visitor;

/// Checks that exactly the values in `refs` lie in the heap's pages, that no two references are the same, and that the
/// open pages, the lists and the counts of the state are right. Sorts `refs`. The structure of each page has been
/// validated when it was read.
///
/// Error: only what is no damage, such as a failed read; damage goes to the visitor.
pub(crate) fn check(
    pages: &impl Pages,
    state: &HeapState,
    refs: &mut [ValueRef],
    visitor: &mut dyn Visitor,
) -> Result<()> {
    refs.sort_unstable();
    let (mut sections, mut runs, mut run_page_count) = (0, 0, 0);
    let (mut quarter, mut half) = (0, 0);
    for refs in refs.chunk_by(|a, b| a.page() == b.page()) {
        let number = refs[0].page();
        if refs.iter().any(|r| r.is_run()) {
            let Some(value) = report(pages.run(number), number, visitor)? else { continue };
            let length = value.len() as u64;
            let count = run_pages(length);
            let unused = count * PAGE_SIZE as u64 - PAGE_HEADER_SIZE as u64 - length;
            visitor.page(number, PageKind::Overflow, count, unused);
            if refs.len() != 1 {
                visitor.problem(number, format!("{} references into one overflow run", refs.len()));
            }
            runs += 1;
            run_page_count += count;
            continue;
        }
        let Some(section) = report(pages.page(number).and_then(Section::new), number, visitor)? else {
            continue;
        };
        visitor.page(number, PageKind::Section, 1, section.free() as u64);
        sections += 1;
        match section.list() {
            Some(List::Quarter) => quarter += 1,
            Some(List::Half) => half += 1,
            None => {}
        }
        check_section(section, number, state, refs, visitor);
    }
    for (list, expected) in [(List::Quarter, quarter), (List::Half, half)] {
        check_list(pages, state, list, expected, visitor)?;
    }
    for (i, open) in state.open.iter().enumerate() {
        if open.page.is_some() && refs.binary_search_by_key(&open.page, |r| r.page()).is_err() {
            visitor.problem(open.page, "an open section page without values".to_owned());
        }
        if open.page.is_some() && state.open[..i].iter().any(|other| other.page == open.page) {
            visitor.problem(open.page, "a section page that is open twice".to_owned());
        }
    }
    for (what, found, said) in [
        ("section pages", sections, state.section_pages),
        ("overflow runs", runs, state.runs),
        ("pages of overflow runs", run_page_count, state.run_pages),
    ] {
        if found != said {
            visitor.problem(PageNumber::NONE, format!("a heap of {found} {what} whose state says {said}"));
        }
    }
    Ok(())
}

/// Compares one section page with the references into it, which are sorted.
fn check_section(
    section: Section<'_>,
    number: PageNumber,
    state: &HeapState,
    refs: &[ValueRef],
    visitor: &mut dyn Visitor,
) {
    if let Some(pair) = refs.windows(2).find(|pair| pair[0] == pair[1]) {
        visitor.problem(number, format!("two references to the value in slot {}", pair[0].slot()));
    }
    for r in refs {
        if section.get(r.slot()).is_none() {
            visitor.problem(number, format!("a reference to slot {}, which is unused", r.slot()));
        }
    }
    for slot in section.slots() {
        if refs.binary_search(&ValueRef::new(number, slot)).is_err() {
            visitor.problem(number, format!("the value in slot {slot} is referred to by nothing"));
        }
    }
    match state.open.iter().find(|open| open.page == number) {
        Some(open) => {
            if open.free as usize != section.free() {
                let (said, found) = (open.free, section.free());
                visitor
                    .problem(number, format!("an open page with {found} free bytes whose heap says {said}"));
            }
            if section.list().is_some() {
                visitor.problem(number, "an open page that is in a list".to_owned());
            }
        }
        None => {
            let (found, expected) = (section.list(), List::of_free(section.free()));
            if found != expected {
                visitor.problem(
                    number,
                    format!("a section page in list {found:?} that belongs in {expected:?}"),
                );
            }
        }
    }
}

/// Walks a list: it must have as many pages as there are with its mark, each linked back to the one before.
fn check_list(
    pages: &impl Pages,
    state: &HeapState,
    list: List,
    expected: usize,
    visitor: &mut dyn Visitor,
) -> Result<()> {
    let (mut before, mut number) = (PageNumber::NONE, state.head(list));
    let mut length = 0;
    while number.is_some() {
        length += 1;
        if length > expected {
            visitor.problem(number, format!("list {list:?} goes on after all its {expected} pages"));
            return Ok(());
        }
        let Some(section) = report(pages.page(number).and_then(Section::new), number, visitor)? else {
            return Ok(());
        };
        if section.list() != Some(list) {
            visitor
                .problem(number, format!("a page in list {list:?} that says it is in {:?}", section.list()));
        }
        if section.prev() != before {
            visitor.problem(number, format!("its list's page before it is {before}, not {}", section.prev()));
        }
        (before, number) = (number, section.next());
    }
    if length < expected {
        visitor.problem(before, format!("list {list:?} ends after {length} of {expected} pages"));
    }
    Ok(())
}

/// Tells the visitor of damage; other errors are the caller's.
fn report<T>(result: Result<T>, at: PageNumber, visitor: &mut dyn Visitor) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Error::PageDamaged { page, reason }) => {
            visitor.problem(page, format!("{reason} (reached from page {at})"));
            Ok(None)
        }
        Err(other) => Err(other),
    }
}
