//! The check: walks everything that a snapshot holds, reports every broken invariant, and counts on the way.
//!
//! Beside what each structure checks of itself (order, counts, depth, references), every page of the environment must be exactly
//! one of: the root page, part of one structure, part of the free bitmap, or free. And every page that lies in the data file must have
//! its checksum now, whether or not it was verified before.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::format::{PAGE_SIZE, PageNumber, ROOT_PAGE, TransactionId};
use crate::free_space;
use crate::multi::MultiTree;
use crate::page::header::PageKind;
use crate::pages::Pages;
use crate::root::RootState;
use crate::transaction::catalog::{self, Kind, State};
use crate::transaction::read::ReadTransaction;
use crate::visit::Visitor;
use crate::{Environment, btree, fixed, table};

/// Problems reported at most; further ones are counted.
const PROBLEMS_MAX: usize = 1000;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// The snapshot that was checked.
    pub transaction: TransactionId,
    /// Everything that is wrong, the first thousand.
    pub problems: Vec<Problem>,
    /// How many more there are.
    pub problems_omitted: u64,
    /// Pages of the environment.
    pub pages: u64,
    /// How many of them are free.
    pub free_pages: u64,
    /// Pages by kind: `"leaf"`, `"branch"`, `"section"`, `"overflow"`, ...
    pub pages_by_kind: BTreeMap<&'static str, u64>,
    /// Bytes inside pages in use that hold nothing.
    pub unused_bytes: u64,
    /// Each tree and table, by name.
    pub trees: Vec<TreeReport>,
}

/// One broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The page it was found on or at.
    pub page: PageNumber,
    /// The tree or table, when it belongs to one.
    pub tree: Option<String>,
    /// What is wrong.
    pub text: String,
}

/// Numbers of one tree or table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeReport {
    /// Its name.
    pub name: Vec<u8>,
    /// Its kind.
    pub kind: Kind,
    /// Keys, values of all keys (of a multi-value tree), or rows.
    pub entries: u64,
    /// Levels of its (main) tree; 0 when empty.
    pub depth: usize,
    /// Pages it takes, by kind.
    pub pages_by_kind: BTreeMap<&'static str, u64>,
    /// Bytes inside them that hold nothing.
    pub unused_bytes: u64,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}

/// A kind's name in reports.
pub(crate) fn kind_name(kind: PageKind) -> &'static str {
    match kind {
        PageKind::Root => "root",
        PageKind::FreeDirectory => "free directory",
        PageKind::FreeBitmap => "free bitmap",
        PageKind::Branch => "branch",
        PageKind::Leaf => "leaf",
        PageKind::Overflow => "overflow",
        PageKind::Section => "section",
        PageKind::FixedBranch => "fixed branch",
        PageKind::FixedLeaf => "fixed leaf",
    }
}

impl Environment {
    /// Checks the newest durable state. See [`ReadTransaction::check`].
    pub fn check(&self) -> Result<CheckReport> {
        self.read()?.check()
    }
}

impl ReadTransaction {
    /// Walks everything in the snapshot and reports every broken invariant. Reads all pages; writers go on meanwhile.
    ///
    /// Errors: only what is not a finding, such as a closed environment; damage is reported.
    pub fn check(&self) -> Result<CheckReport> {
        let mut walk = Walk {
            report: CheckReport { transaction: self.id(), ..Default::default() },
            ..Default::default()
        };
        let root = match self.root() {
            Ok(root) => root,
            Err(error) => {
                walk.error(ROOT_PAGE, &error);
                return Ok(walk.report);
            }
        };
        walk.report.pages = root.page_count;
        walk.report.free_pages = root.free_pages;
        walk.taken = vec![false; root.page_count as usize];
        if self.id().0 == 0 {
            return Ok(walk.report);
        }
        walk.page(ROOT_PAGE, PageKind::Root, 1, 0);
        if let Err(error) = self.walk_all(&root, &mut walk) {
            walk.error(ROOT_PAGE, &error);
        }
        self.check_use(&root, &mut walk);
        for (number, _) in std::mem::take(&mut walk.seen) {
            if self.inner.table.find(number, self.id()).is_none()
                && let Err(error) = self.inner.data.verify_again(number)
            {
                walk.error(number, &error);
            }
        }
        Ok(walk.report)
    }

    fn walk_all(&self, root: &RootState, walk: &mut Walk) -> Result<()> {
        free_space::each_own_page(self, |number, kind| walk.page(number, kind, 1, 0))?;
        btree::Tree::new(self, &root.catalog).check(walk)?;
        for (name, state) in catalog::entries(self, &root.catalog)? {
            walk.tree = Some(catalog::lossy(&name));
            let kinds = std::mem::take(&mut walk.report.pages_by_kind);
            let unused = std::mem::take(&mut walk.report.unused_bytes);
            if let Err(error) = state.check(self, walk) {
                walk.error(error_page(&error), &error);
            }
            let (entries, depth) = state.size();
            let mut tree = TreeReport {
                name,
                kind: state.kind(),
                entries,
                depth,
                pages_by_kind: kinds,
                unused_bytes: walk.report.unused_bytes,
            };
            walk.report.unused_bytes += unused;
            std::mem::swap(&mut tree.pages_by_kind, &mut walk.report.pages_by_kind);
            for (kind, pages) in &tree.pages_by_kind {
                *walk.report.pages_by_kind.entry(kind).or_default() += pages;
            }
            walk.report.trees.push(tree);
            walk.tree = None;
        }
        Ok(())
    }

    /// Every page is used once or free.
    fn check_use(&self, root: &RootState, walk: &mut Walk) {
        let mut free = 0;
        let mut wrong = Vec::new();
        let mut taken = std::mem::take(&mut walk.taken);
        let listed = free_space::each_free(self, root.page_count, |range| {
            free += range.end - range.start;
            for number in range {
                match taken.get_mut(number as usize) {
                    Some(taken @ false) => *taken = true,
                    Some(_) => wrong.push((number, "it is in use and marked free")),
                    None => wrong.push((number, "it is marked free beyond the last page")),
                }
            }
        });
        if let Err(error) = listed {
            walk.error(error_page(&error), &error);
            return;
        }
        if free != root.free_pages {
            walk.problem(
                ROOT_PAGE,
                format!("it counts {} free pages; the bitmap has {free}", root.free_pages),
            );
        }
        for (number, text) in wrong {
            walk.problem(PageNumber(number), text.to_owned());
        }
        for (number, taken) in taken.into_iter().enumerate() {
            if !taken {
                walk.problem(PageNumber(number as u64), "it is neither in use nor free".to_owned());
            }
        }
    }
}

fn error_page(error: &Error) -> PageNumber {
    match error {
        Error::PageDamaged { page, .. } => *page,
        _ => ROOT_PAGE,
    }
}

#[derive(Default)]
struct Walk {
    report: CheckReport,
    taken: Vec<bool>,
    /// Pages and first pages of runs, with how many pages they take.
    seen: Vec<(PageNumber, u64)>,
    tree: Option<String>,
}

impl Walk {
    fn error(&mut self, page: PageNumber, error: &Error) {
        match error {
            Error::PageDamaged { page, reason } => self.problem(*page, reason.clone()),
            other => self.problem(page, other.to_string()),
        }
    }
}

impl Visitor for Walk {
    fn page(&mut self, number: PageNumber, kind: PageKind, pages: u64, unused: u64) {
        for page in number.0..number.0 + pages {
            match self.taken.get_mut(page as usize) {
                Some(taken @ false) => *taken = true,
                Some(_) => self.problem(PageNumber(page), "it is in use twice".to_owned()),
                None => {
                    self.problem(PageNumber(page), "it is in use beyond the last page".to_owned());
                    break;
                }
            }
        }
        *self.report.pages_by_kind.entry(kind_name(kind)).or_default() += pages;
        self.report.unused_bytes += unused;
        self.seen.push((number, pages));
    }

    fn problem(&mut self, page: PageNumber, text: String) {
        if self.report.problems.len() < PROBLEMS_MAX {
            self.report.problems.push(Problem { page, tree: self.tree.clone(), text });
        } else {
            self.report.problems_omitted += 1;
        }
    }
}

impl State {
    fn check(&self, pages: &impl Pages, visitor: &mut dyn Visitor) -> Result<()> {
        match self {
            State::Tree(state) => btree::Tree::new(pages, state).check(visitor).map(|_| ()),
            State::MultiTree(state) => MultiTree::new(pages, state).check(visitor),
            State::FixedTree(state) => fixed::visit(pages, state, &mut |_, _| {}, visitor),
            State::Table(state) => table::check(pages, state, visitor),
        }
    }

    /// Entries and depth.
    fn size(&self) -> (u64, usize) {
        match self {
            State::Tree(state) => (state.entries, state.depth),
            State::MultiTree(state) => (state.values, state.tree.depth),
            State::FixedTree(state) => (state.entries(), state.depth()),
            State::Table(state) => (state.rows(), state.depth()),
        }
    }
}

/// One page, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageDump {
    /// The page.
    pub number: PageNumber,
    /// Its kind; `"free"`, `"inside a run"` or `"unknown"` where it has none.
    pub kind: &'static str,
    /// Where this snapshot finds it.
    pub place: &'static str,
    /// The transaction that wrote the version in scratch memory; `None` for the data file's.
    pub transaction: Option<TransactionId>,
    /// Entries, slots or children, where the kind has any.
    pub count: u16,
    /// Whether number, checksum and structure are sound, else why not.
    pub problem: Option<String>,
    /// All its bytes.
    pub bytes: Vec<u8>,
}

impl ReadTransaction {
    /// Describes one page as this snapshot sees it, damaged or not.
    ///
    /// Errors: [`Error::Invalid`] when the environment has no such page.
    pub fn dump_page(&self, number: PageNumber) -> Result<PageDump> {
        let page_count = self.root().map_or(self.inner.data.len() / PAGE_SIZE as u64, |r| r.page_count);
        if number.0 >= page_count {
            return Err(Error::Invalid(format!(
                "there is no page {number}: the last one is {}",
                page_count.saturating_sub(1)
            )));
        }
        let found = self.inner.table.find(number, self.id());
        let free = free_space::is_free(self, number).unwrap_or(false);
        let (place, bytes) = match found {
            Some(found) if !found.is_tombstone() => {
                // SAFETY: the snapshot is pinned as long as `self` lives.
                ("scratch memory", unsafe { found.page() }.to_vec())
            }
            Some(_) => ("nowhere: it is free", vec![0; PAGE_SIZE]),
            None => ("the data file", self.inner.data.page_unverified(number)?.to_vec()),
        };
        let problem = match self.page(number) {
            _ if free => None,
            Ok(_) => None,
            Err(Error::PageDamaged { reason, .. }) => Some(reason),
            Err(other) => Some(other.to_string()),
        };
        let kind = match crate::page::header::kind(&bytes) {
            _ if free => "free",
            Some(kind) if crate::page::header::number(&bytes) == number => kind_name(kind),
            _ => "inside a run, or unknown",
        };
        Ok(PageDump {
            number,
            kind,
            place,
            transaction: found.map(|f| f.transaction),
            count: crate::format::read_u16(&bytes, crate::page::header::COUNT_AT),
            problem,
            bytes,
        })
    }
}
