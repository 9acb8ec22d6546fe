//! What a walk over a structure tells whoever asked for it: `check` collects the problems and which pages are taken,
//! statistics sum up the pages.

use crate::format::PageNumber;
use crate::page::header::PageKind;

/// Listens to a walk over all pages of a structure.
pub(crate) trait Visitor {
    /// A page that belongs to the structure, or a whole overflow run of `pages` pages; `unused` is how many of its bytes
    /// hold nothing. A page that is reached twice is reported twice.
    fn page(&mut self, number: PageNumber, kind: PageKind, pages: u64, unused: u64);

    /// A broken invariant, found on or at `page`. The walk goes on where it can.
    fn problem(&mut self, page: PageNumber, text: String);
}

/// A visitor that keeps everything, for tests.
#[cfg(test)]
#[derive(Default, Debug)]
pub(crate) struct Findings {
    /// Pages by the number of their kind; a run counts as one.
    pub(crate) pages: std::collections::BTreeMap<u8, usize>,
    pub(crate) unused: u64,
    pub(crate) problems: Vec<(PageNumber, String)>,
}

#[cfg(test)]
impl Visitor for Findings {
    fn page(&mut self, _: PageNumber, kind: PageKind, _: u64, unused: u64) {
        *self.pages.entry(kind as u8).or_default() += 1;
        self.unused += unused;
    }

    fn problem(&mut self, page: PageNumber, text: String) {
        self.problems.push((page, text));
    }
}
