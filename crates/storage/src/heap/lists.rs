//! The lists of partly free section pages: doubly linked through the pages themselves, so that a page joins and leaves
//! in constant time.
//!
//! Every function here first gets all pages it will change ready for changing, which can fail, and then changes them,
//! which cannot: an error leaves the lists as they were.

use super::HeapState;
use crate::error::Result;
use crate::format::PageNumber;
use crate::page::section::{self, List, Section};
use crate::pages::PagesMut;

/// How many pages of a list are looked at for one with room enough, before a new page is made instead.
const LOOKS_MAX: usize = 3;

/// Moves a page out of the list it is in, if any, and to the front of another, if any.
pub(super) fn relist(
    pages: &mut impl PagesMut,
    state: &mut HeapState,
    number: PageNumber,
    to: Option<List>,
) -> Result<()> {
    let section = Section::new(pages.page(number)?)?;
    let (from, prev, next) = (section.list(), section.prev(), section.next());
    if from == to {
        return Ok(());
    }
    let to_head = to.map_or(PageNumber::NONE, |list| state.head(list));
    for changed in [prev, next, to_head, number] {
        if changed.is_some() {
            Section::new(pages.page(changed)?)?;
            pages.page_mut(changed)?;
        }
    }
    if let Some(from) = from {
        if prev.is_some() {
            section::set_next(&mut pages.page_mut(prev)?, next);
        } else {
            *state.head_mut(from) = next;
        }
        if next.is_some() {
            section::set_prev(&mut pages.page_mut(next)?, prev);
        }
    }
    if let Some(to) = to {
        *state.head_mut(to) = number;
        if to_head.is_some() {
            section::set_prev(&mut pages.page_mut(to_head)?, number);
        }
    }
    section::set_links(&mut pages.page_mut(number)?, to, PageNumber::NONE, to_head);
    Ok(())
}

/// A listed page with at least `need` free bytes, if one is found near the fronts of the lists.
pub(super) fn find(pages: &mut impl PagesMut, state: &HeapState, need: usize) -> Result<Option<PageNumber>> {
    for list in [List::Quarter, List::Half] {
        let mut number = state.head(list);
        for _ in 0..LOOKS_MAX {
            if !number.is_some() {
                break;
            }
            let section = Section::new(pages.page(number)?)?;
            if section.free() >= need {
                return Ok(Some(number));
            }
            number = section.next();
        }
    }
    Ok(None)
}
