//! Making room: a page that cannot take what is put into it is tidied up, or split, and its parents after it.
//!
//! A change is first planned from the leaf upwards without writing anything, then all pages it needs are allocated and
//! made ready for writing, then it is carried out, from the leaf upwards again.
//!
//! Where a page's entries are split, in order of preference:
//! 1. behind a run of ascending inserts at the page's end, or before one of descending inserts at its begin: the new entry
//!    gets a page of its own and nothing moves. The same for a key without the page's prefix, which can only be at one of
//!    the ends and would cost all others their compression;
//! 2. at a run of ascending inserts in the second half of the page;
//! 3. near the middle by bytes, between the two keys there that differ earliest, which makes the shortest separator;
//! 4. at the first place where both parts fit. There is one: no entry takes more than a third of a page.

use super::search::{self, Step, leaf_mut, path_for};
use super::{TIDY_SIZE_MAX, TreeMut};
use crate::error::{Error, Result};
use crate::format::{PAGE_BODY_SIZE, PageNumber, TREE_DEPTH_MAX};
use crate::page::Page;
use crate::page::branch::{self, Branch};
use crate::page::head::common_prefix_size;
use crate::page::header::PageKind;
use crate::page::leaf::{self, Leaf, LeafValue};
use crate::pages::PagesMut;

/// Which entry of a leaf is to be put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Insert(usize),
    Replace(usize),
}

/// Bytes by which the parts of a split near the middle may differ for the sake of a shorter separator.
const LOPSIDED_SIZE_MAX: usize = PAGE_BODY_SIZE / 8;

/// What happens to one branch above a split.
struct Level {
    step: Step,
    /// The separator that comes in behind child `step.index`.
    separator: Vec<u8>,
    action: Action,
}

enum Action {
    /// There is room.
    Insert,
    /// There is room in a page put together anew.
    Tidy,
    /// The first `.0` children stay, the others move to a new page.
    Split(usize),
}

/// What happens above a split, from the leaf's parent upwards.
struct Rise {
    levels: Vec<Level>,
    /// The separator between the two halves of the root, when the root is split.
    root_separator: Option<Vec<u8>>,
    /// The pages that will be needed, already allocated.
    leaf: PageNumber,
    branches: Vec<PageNumber>,
}

impl<P: PagesMut> TreeMut<'_, P> {
    /// Puts an entry for which the leaf has no room as it is. Returns the leaf where the entry is then.
    #[cold]
    pub(super) fn make_room(
        &mut self,
        number: PageNumber,
        place: Place,
        key: &[u8],
        value: LeafValue<'_>,
    ) -> Result<PageNumber> {
        let copy: Page = *self.pages.page(number)?;
        let leaf = Leaf::new(&copy);
        let entries = leaf_entries(leaf, place, key, value);
        let prefix = leaf_prefix(&entries);
        let size = leaf_size(&entries, prefix.len());
        let (Place::Insert(index) | Place::Replace(index)) = place;
        if size <= if entries.len() > 8 { TIDY_SIZE_MAX } else { PAGE_BODY_SIZE } {
            leaf::build(&mut leaf_mut(self.pages, number)?, &prefix, &entries, index + 1);
            return Ok(number);
        }
        let shares_prefix = key.starts_with(leaf.prefix());
        let Some(at) = choose_leaf_split(leaf, place, &entries, shares_prefix, prefix.len()) else {
            return Err(Error::damaged(number, "the leaf can be split nowhere"));
        };
        let separator = separator_between(&entries[at - 1], &entries[at]);
        let (path, found) = path_for(self.pages, self.state, key)?;
        if found != number {
            return Err(Error::damaged(number, "a search ends here or elsewhere"));
        }
        let appends = place == Place::Insert(leaf.count()) && at + 1 == entries.len();
        let mut rise = self.plan(&path, separator, appends)?;
        self.acquire(&mut rise, number)?;

        // From here on nothing fails but what `acquire` has done before.
        let new = rise.leaf;
        self.state.leaf_pages += 1;
        if at == 1 && place == Place::Insert(0) {
            // The new entry is alone on the new page, and that comes before the old one, which stays as it is.
            leaf::build(&mut self.pages.page_mut(new)?, &[], &entries[..1], 1);
            self.carry_out(rise, new, number)?;
            return Ok(new);
        }
        let (low, high) = entries.split_at(at);
        let mut prefix = leaf_prefix(high);
        if high.len() == 1 {
            // More will follow, and have as much in common as the keys of the page before.
            let mut first = Vec::new();
            low[0].copy_key(&mut first);
            prefix = key[..common_prefix_size(&first, key)].to_vec();
        }
        let index_high = if index >= at { index - at + 1 } else { 0 };
        self.pages.derives(new, number);
        leaf::build(&mut self.pages.page_mut(new)?, &prefix, high, index_high);
        let mut page = self.pages.page_mut(number)?;
        let stays = match place {
            Place::Insert(_) if index < at => at - 1,
            _ => at,
        };
        if stays < leaf.count() {
            leaf::remove(&mut page, stays, leaf.count());
        }
        if index < at {
            let done = match place {
                Place::Insert(_) => match key.strip_prefix(leaf.prefix()) {
                    Some(behind) => leaf::insert(&mut page, index, behind, value),
                    None => false,
                },
                Place::Replace(_) => leaf::replace(&mut page, index, value),
            };
            if !done {
                leaf::build(&mut page, &leaf_prefix(low), low, index + 1);
            }
        }
        self.carry_out(rise, number, new)?;
        if self.hint.rightmost == number {
            self.hint.rightmost = new;
        }
        Ok(if index < at { number } else { new })
    }

    /// Finds out what a new separator does to the branches above, from the lowest up.
    fn plan(&self, path: &[Step], mut separator: Vec<u8>, appends: bool) -> Result<Rise> {
        let mut levels = Vec::new();
        for step in path.iter().rev() {
            let branch = search::branch(self.pages, step.number)?;
            if !branch.separates(step.index, step.index + 1, &separator) {
                return Err(Error::damaged(step.number, "keys of a child are outside its separators"));
            }
            let mut above = None;
            let action = if branch.takes(&separator) {
                Action::Insert
            } else {
                let some = PageNumber::NONE;
                let entries = branch_entries(branch, step.index, some, &separator, some);
                let prefix = branch_prefix(&entries);
                if branch_size(&entries, prefix.len()) <= TIDY_SIZE_MAX {
                    Action::Tidy
                } else {
                    let appends = appends && step.index + 1 == branch.count();
                    let shares_prefix = separator.starts_with(branch.prefix());
                    let Some(at) =
                        choose_branch_split(&entries, step.index + 1, appends, shares_prefix, prefix.len())
                    else {
                        return Err(Error::damaged(step.number, "the branch can be split nowhere"));
                    };
                    let mut promoted = Vec::new();
                    entries[at].copy_separator(&mut promoted);
                    above = Some(promoted);
                    Action::Split(at)
                }
            };
            levels.push(Level { step: *step, separator, action });
            match above {
                Some(promoted) => separator = promoted,
                None => return Ok(Rise::new(levels, None)),
            }
        }
        if self.state.depth == TREE_DEPTH_MAX {
            return Err(Error::damaged(self.state.root, "the tree is deeper than any can be"));
        }
        Ok(Rise::new(levels, Some(separator)))
    }

    /// Gets all pages ready that the plan needs. When that fails, nothing has happened.
    fn acquire(&mut self, rise: &mut Rise, leaf: PageNumber) -> Result<()> {
        let splits = rise.levels.iter().filter(|level| matches!(level.action, Action::Split(_))).count();
        let branches = splits + usize::from(rise.root_separator.is_some());
        let mut got = |pages: &mut P| -> Result<()> {
            rise.leaf = pages.allocate(PageKind::Leaf)?;
            for _ in 0..branches {
                rise.branches.push(pages.allocate(PageKind::Branch)?);
            }
            pages.page_mut(leaf)?;
            for level in &rise.levels {
                pages.page_mut(level.step.number)?;
            }
            Ok(())
        };
        got(self.pages).or_else(|error| {
            for &number in rise.branches.iter().chain(rise.leaf.is_some().then_some(&rise.leaf)) {
                self.pages.free(number)?;
            }
            Err(error)
        })
    }

    /// Changes the branches as planned. The lowest one's child is now two: `left` and `right`.
    fn carry_out(&mut self, mut rise: Rise, mut left: PageNumber, mut right: PageNumber) -> Result<()> {
        let mut new_branch = || rise.branches.pop().unwrap_or(PageNumber::NONE);
        for Level { step: Step { number, index }, separator, action } in rise.levels {
            match action {
                Action::Insert => {
                    let mut page = self.pages.page_mut(number)?;
                    if Branch::new(page.bytes()).child(index) != left {
                        branch::set_child(&mut page, index, left);
                    }
                    branch::insert(&mut page, index + 1, &separator, right);
                }
                Action::Tidy => {
                    let copy: Page = *self.pages.page(number)?;
                    let entries = branch_entries(Branch::new(&copy), index, left, &separator, right);
                    branch::build(&mut self.pages.page_mut(number)?, &branch_prefix(&entries), &entries);
                }
                Action::Split(at) => {
                    let copy: Page = *self.pages.page(number)?;
                    let old = Branch::new(&copy);
                    let entries = branch_entries(old, index, left, &separator, right);
                    let (low, high) = entries.split_at(at);
                    let new = new_branch();
                    let mut prefix = branch_prefix(high);
                    if high.len() == 2 && low.len() > 2 {
                        // More will follow, and have as much in common as the separators of the page before.
                        let (mut first, mut last) = (Vec::new(), Vec::new());
                        low[1].copy_separator(&mut first);
                        high[1].copy_separator(&mut last);
                        prefix = last[..common_prefix_size(&first, &last)].to_vec();
                    }
                    self.pages.derives(new, number);
                    branch::build(&mut self.pages.page_mut(new)?, &prefix, high);
                    let mut page = self.pages.page_mut(number)?;
                    if index + 1 >= at && old.child(index) == left {
                        branch::remove(&mut page, at, old.count());
                    } else {
                        branch::build(&mut page, &branch_prefix(low), low);
                    }
                    self.state.branch_pages += 1;
                    (left, right) = (number, new);
                }
            }
        }
        if let Some(separator) = rise.root_separator {
            let root = new_branch();
            let entries = [branch::Entry::new(&[], left), branch::Entry::new(&separator, right)];
            branch::build(&mut self.pages.page_mut(root)?, &[], &entries);
            self.state.root = root;
            self.state.depth += 1;
            self.state.branch_pages += 1;
        }
        Ok(())
    }
}

impl Rise {
    fn new(levels: Vec<Level>, root_separator: Option<Vec<u8>>) -> Rise {
        Rise { levels, root_separator, leaf: PageNumber::NONE, branches: Vec::new() }
    }
}

/// The leaf's entries as they are to be.
fn leaf_entries<'e>(
    leaf: Leaf<'e>,
    place: Place,
    key: &'e [u8],
    value: LeafValue<'e>,
) -> Vec<leaf::Entry<'e>> {
    let mut entries = Vec::with_capacity(leaf.count() + 1);
    entries.extend((0..leaf.count()).map(|i| leaf.entry(i)));
    match place {
        Place::Insert(i) => entries.insert(i, leaf::Entry::new(key, value)),
        Place::Replace(i) => entries[i].value = value,
    }
    entries
}

/// What all keys of the entries, which are in order, begin with; nothing when there is only one.
pub(super) fn leaf_prefix(entries: &[leaf::Entry<'_>]) -> Vec<u8> {
    let [first, .., last] = entries else { return Vec::new() };
    let (mut low, mut high) = (Vec::new(), Vec::new());
    first.copy_key(&mut low);
    last.copy_key(&mut high);
    low.truncate(common_prefix_size(&low, &high));
    low
}

/// Bytes of a leaf's body with these entries and a prefix of `prefix_size`.
pub(super) fn leaf_size(entries: &[leaf::Entry<'_>], prefix_size: usize) -> usize {
    prefix_size + entries.iter().map(|entry| entry.size(prefix_size)).sum::<usize>()
}

fn leaf_fits(entries: &[leaf::Entry<'_>]) -> bool {
    leaf_size(entries, leaf_prefix(entries).len()) <= PAGE_BODY_SIZE
}

/// The shortest key greater than the first entry's key and not greater than the second's.
pub(super) fn separator_between(low: &leaf::Entry<'_>, high: &leaf::Entry<'_>) -> Vec<u8> {
    let (mut before, mut separator) = (Vec::new(), Vec::new());
    low.copy_key(&mut before);
    high.copy_key(&mut separator);
    separator.truncate(common_prefix_size(&before, &separator) + 1);
    separator
}

/// How many of the entries stay in the left one of two leaves. See the module's header.
fn choose_leaf_split(
    leaf: Leaf<'_>,
    place: Place,
    entries: &[leaf::Entry<'_>],
    shares_prefix: bool,
    prefix_size: usize,
) -> Option<usize> {
    let count = entries.len();
    if let Place::Insert(i) = place {
        if i + 1 == count && (!shares_prefix || leaf.after_last_insert() == i) {
            return Some(i);
        }
        if i == 0 && (!shares_prefix || leaf.after_last_insert() == 1) {
            return Some(1);
        }
        if leaf.after_last_insert() == i && i >= count / 2 && leaf_fits(&entries[i..]) {
            return Some(i);
        }
    }
    let sizes = || entries.iter().map(|entry| entry.size(prefix_size));
    let near = |at: usize| common_with_next(&entries[at - 1], &entries[at]);
    let fits = |at: usize| leaf_fits(&entries[..at]) && leaf_fits(&entries[at..]);
    choose_middle(count, sizes, near, fits)
}

/// How many bytes the keys of two neighbours have in common at the front.
pub(super) fn common_with_next(low: &leaf::Entry<'_>, high: &leaf::Entry<'_>) -> usize {
    low.common_in_page(high).unwrap_or_else(|| separator_between(low, high).len() - 1)
}

/// Where to split near the middle: the place with the least `cost` among those where the parts' sizes differ little,
/// else the one nearest to the middle where both parts fit.
pub(super) fn choose_middle<S: Iterator<Item = usize>>(
    count: usize,
    sizes: impl Fn() -> S,
    cost: impl Fn(usize) -> usize,
    fits: impl Fn(usize) -> bool,
) -> Option<usize> {
    let total: usize = sizes().sum();
    let mut low = 0;
    let mut best: Option<(usize, usize, usize)> = None;
    let mut middle = (usize::MAX, 0);
    for (i, size) in sizes().take(count - 1).enumerate() {
        low += size;
        let difference = low.abs_diff(total - low);
        middle = middle.min((difference, i + 1));
        if difference <= LOPSIDED_SIZE_MAX {
            let candidate = (cost(i + 1), difference, i + 1);
            best = Some(best.map_or(candidate, |best| best.min(candidate)));
        }
    }
    if let Some((.., at)) = best
        && fits(at)
    {
        return Some(at);
    }
    let middle = middle.1;
    let mut outwards = (0..count).flat_map(|d| [middle.wrapping_sub(d), middle + d]);
    outwards.find(|&at| (1..count).contains(&at) && fits(at))
}

/// The branch's entries when its child `index` becomes `left` and `right` with the separator between them.
fn branch_entries<'e>(
    branch: Branch<'e>,
    index: usize,
    left: PageNumber,
    separator: &'e [u8],
    right: PageNumber,
) -> Vec<branch::Entry<'e>> {
    let mut entries = Vec::with_capacity(branch.count() + 1);
    entries.extend((0..branch.count()).map(|i| branch.entry(i)));
    entries[index].child = left;
    entries.insert(index + 1, branch::Entry::new(separator, right));
    entries
}

/// What all separators of the entries but the first one's begin with; nothing when there is only one separator.
pub(super) fn branch_prefix(entries: &[branch::Entry<'_>]) -> Vec<u8> {
    let [_, first, .., last] = entries else { return Vec::new() };
    let (mut low, mut high) = (Vec::new(), Vec::new());
    first.copy_separator(&mut low);
    last.copy_separator(&mut high);
    low.truncate(common_prefix_size(&low, &high));
    low
}

/// Bytes of a branch's body with these entries and a prefix of `prefix_size`.
pub(super) fn branch_size(entries: &[branch::Entry<'_>], prefix_size: usize) -> usize {
    let separated: usize = entries[1..].iter().map(|entry| entry.size(prefix_size)).sum();
    prefix_size + branch::FIRST_ENTRY_SIZE + separated
}

fn branch_fits(entries: &[branch::Entry<'_>]) -> bool {
    branch_size(entries, branch_prefix(entries).len()) <= PAGE_BODY_SIZE
}

/// How many of the entries, of which `new` is the new one, stay in the left one of two branches. See the module's header.
fn choose_branch_split(
    entries: &[branch::Entry<'_>],
    new: usize,
    appends: bool,
    shares_prefix: bool,
    prefix_size: usize,
) -> Option<usize> {
    let count = entries.len();
    let fits = |at: usize| branch_fits(&entries[..at]) && branch_fits(&entries[at..]);
    if new + 1 == count && count > 3 && (appends || !shares_prefix) && fits(count - 2) {
        return Some(count - 2);
    }
    if new == 1 && !shares_prefix && count > 3 && fits(2) {
        return Some(2);
    }
    let sizes = || {
        let rest = entries[1..].iter().map(|entry| entry.size(prefix_size));
        std::iter::once(branch::FIRST_ENTRY_SIZE).chain(rest)
    };
    choose_middle(count, sizes, |at| entries[at].separator_size(), fits)
}
