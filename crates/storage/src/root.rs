//! Page 0: the environment's root state, versioned like every other page.
//!
//! | offset | size | name | meaning |
//! |---|---|---|---|
//! | 32 | 8 | page count | pages of the environment: every page in use has a lower number |
//! | 40 | 8 | free pages | how many of them the free bitmap holds |
//! | 48 | 128 | catalog | state of the tree that maps names to trees and tables |
//! | 176 | 8 | environment | the identity that the headers carry: a data file of another environment is noticed |
//! | 256 | 7936 | directories | page numbers of the free bitmap's directory pages, 0 where there is none |

use crate::btree::{TREE_STATE_SIZE, TreeState};
use crate::error::{Error, Result};
use crate::format::{PAGE_HEADER_SIZE, PAGE_SIZE, PageNumber, ROOT_PAGE, read_u64};
use crate::page::{Page, header};
use crate::pages::PageMut;

const PAGE_COUNT_AT: usize = PAGE_HEADER_SIZE;
const FREE_PAGES_AT: usize = PAGE_COUNT_AT + 8;
const CATALOG_AT: usize = FREE_PAGES_AT + 8;
const ENVIRONMENT_AT: usize = 176;
const DIRECTORIES_AT: usize = 256;
const _: () = assert!(CATALOG_AT + TREE_STATE_SIZE <= ENVIRONMENT_AT && ENVIRONMENT_AT + 8 <= DIRECTORIES_AT);

/// How many directory pages the root page can name.
pub(crate) const DIRECTORIES_MAX: usize = (PAGE_SIZE - DIRECTORIES_AT) / 8;

/// The root state without the directories, which are read from the page when needed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RootState {
    pub(crate) page_count: u64,
    pub(crate) free_pages: u64,
    pub(crate) catalog: TreeState,
}

impl RootState {
    /// The state of an environment that holds nothing but its root page.
    pub(crate) fn empty() -> RootState {
        RootState { page_count: 1, free_pages: 0, catalog: TreeState::default() }
    }

    pub(crate) fn read(page: &Page) -> Result<RootState> {
        let page_count = read_u64(page, PAGE_COUNT_AT);
        if page_count == 0 {
            return Err(Error::damaged(ROOT_PAGE, "its page count is 0"));
        }
        Ok(RootState {
            page_count,
            free_pages: read_u64(page, FREE_PAGES_AT),
            catalog: page[CATALOG_AT..]
                .first_chunk()
                .and_then(TreeState::decode)
                .ok_or_else(|| Error::damaged(ROOT_PAGE, "its catalog makes no sense"))?,
        })
    }

    pub(crate) fn write(&self, page: &mut PageMut<'_>) {
        page.write_u64(PAGE_COUNT_AT, self.page_count);
        page.write_u64(FREE_PAGES_AT, self.free_pages);
        page.write(CATALOG_AT, &self.catalog.encode());
    }
}

/// The identity of the environment whose root page this is.
pub(crate) fn environment(page: &Page) -> u64 {
    read_u64(page, ENVIRONMENT_AT)
}

/// Enters the identity into a fresh root page.
pub(crate) fn set_environment(page: &mut PageMut<'_>, environment: u64) {
    page.write_u64(ENVIRONMENT_AT, environment);
}

/// A copy of the root page for an environment of another identity, checksum included.
pub(crate) fn copy_for(page: &[u8], environment: u64) -> Vec<u8> {
    let mut copy = page.to_vec();
    copy[ENVIRONMENT_AT..ENVIRONMENT_AT + 8].copy_from_slice(&environment.to_le_bytes());
    header::seal(&mut copy);
    copy
}

/// The `at`-th directory page, [`PageNumber::NONE`] where there is none yet.
pub(crate) fn directory(page: &Page, at: usize) -> PageNumber {
    PageNumber(read_u64(page, DIRECTORIES_AT + at * 8))
}

/// Enters a new directory page.
pub(crate) fn set_directory(page: &mut PageMut<'_>, at: usize, number: PageNumber) {
    page.write_u64(DIRECTORIES_AT + at * 8, number.0);
}
