//! Pages: 8 KiB units of the data file and of scratch memory. Each kind of page has a file of its own, with its byte
//! layout, its reader and its writer side by side, and a `validate` that is called once when a page enters from disk.

pub(crate) mod bitmap;
pub(crate) mod branch;
pub(crate) mod fixed;
pub(crate) mod head;
pub(crate) mod header;
pub(crate) mod leaf;
pub(crate) mod section;

use crate::error::{Error, Result};
use crate::format::{PAGE_SIZE, PageNumber};
use header::PageKind;

/// The bytes of one page.
pub(crate) type Page = [u8; PAGE_SIZE];

/// Checks that a page that came from disk is structurally sound, so that later accesses need no bounds of their own:
/// every offset, length and count in it points inside the page. Cross-page invariants are `check`'s business.
/// For an overflow run, `page` is its first page only.
pub(crate) fn validate(number: PageNumber, page: &Page) -> Result<()> {
    let reason = match header::kind(page) {
        Some(PageKind::Root) => None,
        Some(PageKind::Branch) => branch::validate(page).err(),
        Some(PageKind::Leaf) => leaf::validate(page).err(),
        Some(PageKind::Section) => section::validate(page).err(),
        Some(PageKind::FixedBranch) => fixed::validate_branch(page).err(),
        Some(PageKind::FixedLeaf) => fixed::validate_leaf(page).err(),
        Some(PageKind::FreeBitmap) => bitmap::validate(page).err(),
        Some(PageKind::FreeDirectory | PageKind::Overflow) => None,
        None => Some(format!("its kind byte is {}, which no page has", page[header::KIND_AT])),
    };
    match reason {
        None => Ok(()),
        Some(reason) => Err(Error::damaged(number, reason)),
    }
}
