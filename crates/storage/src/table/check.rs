//! Checks a table: its heap, its trees, and that rows and index entries are one to one.

use super::index::{IndexTree, place, place_bytes};
use super::{TableState, primary_key, row_at};
use crate::btree::Tree;
use crate::error::Result;
use crate::fixed;
use crate::heap;
use crate::multi::{MultiTree, or_problem};
use crate::pages::Pages;
use crate::visit::Visitor;

/// Walks all pages of the table and reports each, and every broken invariant.
///
/// Each row must be found in each index under its key there; when moreover no index has more entries than there are
/// rows for it, every entry is of a row. Needs memory for the places of all rows, 8 bytes each.
///
/// Error: only what is no damage, such as a failed read; damage goes to the visitor.
pub(crate) fn check(pages: &impl Pages, state: &TableState, visitor: &mut dyn Visitor) -> Result<()> {
    let primary = Tree::new(pages, &state.primary);
    primary.check(visitor)?;
    for index in &state.indexes {
        match &index.tree {
            IndexTree::Unique(tree) => drop(Tree::new(pages, tree).check(visitor)?),
            IndexTree::NonUnique(multi) => MultiTree::new(pages, multi).check(visitor)?,
            IndexTree::Etag(tree) => fixed::visit(pages, tree, &mut |_, _| {}, visitor)?,
        }
    }

    let mut places = Vec::new();
    let mut expected = vec![0u64; state.indexes.len()];
    let mut cursor = primary.cursor();
    let mut found = or_problem(cursor.first(), visitor)?.unwrap_or(false);
    while found {
        let at = or_problem(cursor.value(), visitor)?.and_then(place);
        if at.is_none() {
            let text = format!("the primary key {:?} of table {:?} is of no row", cursor.key(), state.name());
            visitor.problem(state.primary.root, text);
        }
        places.extend(at);
        let row =
            at.map(|at| or_problem(row_at(pages, state.schema().columns(), at), visitor)).transpose()?;
        if let (Some(at), Some(row)) = (at, row.flatten()) {
            if primary_key(state, &row) != cursor.key() {
                let text = format!("the row {at:?} has another primary key than it is found by");
                visitor.problem(at.page(), text);
            }
            for (index, expected) in state.indexes.iter().zip(&mut expected) {
                let key = row.column_range(index.columns.range());
                if or_problem(index.check_key(key), visitor).ok().flatten().is_none() {
                    visitor.problem(at.page(), format!("the row {at:?} has a key that cannot be one"));
                } else if index.takes(key) {
                    *expected += 1;
                    let there = match &index.tree {
                        IndexTree::NonUnique(multi) => {
                            MultiTree::new(pages, multi).contains(key, &place_bytes(at))
                        }
                        _ => index.find(pages, key).map(|there| there == Some(at)),
                    };
                    if or_problem(there, visitor)? == Some(false) {
                        visitor
                            .problem(at.page(), format!("the row {at:?} is not in every index of its table"));
                    }
                }
            }
        }
        found = or_problem(cursor.next(), visitor)?.unwrap_or(false);
    }
    for (i, (index, expected)) in state.indexes.iter().zip(expected).enumerate() {
        if index.entries() != expected {
            let (table, name, found) = (state.name(), state.schema().indexes()[i].name(), index.entries());
            let text = format!("index {name:?} of table {table:?} has {found} entries for {expected} rows");
            visitor.problem(state.primary.root, text);
        }
    }
    heap::check(pages, &state.heap, &mut places, visitor)
}
