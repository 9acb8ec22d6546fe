//! Walks a multi-value tree and checks what must hold between keys, values and nested trees.

use super::MultiTree;
use super::entry::Entry;
use crate::btree::Tree;
use crate::error::{Error, Result};
use crate::pages::Pages;
use crate::visit::Visitor;

impl<P: Pages> MultiTree<'_, P> {
    /// Walks all pages of the tree and of the nested trees and reports each, and every broken invariant.
    ///
    /// Error: only what is no damage, such as a failed read; damage goes to the visitor.
    pub(crate) fn check(&self, visitor: &mut dyn Visitor) -> Result<()> {
        let tree = Tree::new(self.pages, &self.state.tree);
        tree.check(visitor)?;
        let (mut values, mut branch_pages, mut leaf_pages) = (0u64, 0u64, 0u64);
        let mut cursor = tree.cursor();
        let mut found = or_problem(cursor.first(), visitor)?.unwrap_or(false);
        while found {
            let root = self.state.tree.root;
            match or_problem(cursor.value().and_then(|bytes| Entry::decode(bytes, root)), visitor)? {
                Some(Entry::Packed(packed)) => {
                    values += packed.count() as u64;
                    let unsorted = packed.iter().zip(packed.iter().skip(1)).any(|(a, b)| a >= b);
                    if unsorted || packed.count() == 0 {
                        let text =
                            format!("the packed values of key {:?} are none or not in order", cursor.key());
                        visitor.problem(root, text);
                    }
                }
                Some(Entry::Nested(nested)) => {
                    Tree::new(self.pages, &nested).check(visitor)?;
                    values = values.saturating_add(nested.entries);
                    branch_pages = branch_pages.saturating_add(nested.branch_pages);
                    leaf_pages = leaf_pages.saturating_add(nested.leaf_pages);
                    if nested.entries == 0 {
                        visitor.problem(nested.root, "a nested tree without values".to_owned());
                    }
                }
                None => {}
            }
            found = or_problem(cursor.next(), visitor)?.unwrap_or(false);
        }
        for (what, found, said) in [
            ("values", values, self.state.values),
            ("nested branch pages", branch_pages, self.state.nested_branch_pages),
            ("nested leaf pages", leaf_pages, self.state.nested_leaf_pages),
        ] {
            if found != said {
                let text = format!("a multi-value tree of {found} {what} whose state says {said}");
                visitor.problem(self.state.tree.root, text);
            }
        }
        Ok(())
    }
}

/// Tells the visitor of damage; other errors are the caller's.
pub(crate) fn or_problem<T>(result: Result<T>, visitor: &mut dyn Visitor) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Error::PageDamaged { page, reason }) => {
            visitor.problem(page, reason);
            Ok(None)
        }
        Err(other) => Err(other),
    }
}
