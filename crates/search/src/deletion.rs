//! What is deleted: the entries of some keys that were added before a moment each.
//!
//! Segments come to tantivy finished, several of them for one commit, and which of its deletes came before which of their entries it could not
//! tell. The orders of entries do: a delete finds the entries of its key whose order is below that of the moment. So it does not matter when it
//! meets a segment, nor whether it does twice.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::query::{ConstScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, SegmentReader, TERMINATED, TantivyError, Term};

use crate::docs::Gather;
use crate::layout::Layout;

/// Deletes of one commit.
#[derive(Debug, Clone)]
pub(crate) struct Deletions {
    key: Field,
    /// The name of the column of orders.
    order: String,
    /// Keys in order, and the order from which on entries of theirs stay.
    keys: Arc<[(String, u64)]>,
    /// From this one on all entries stay.
    order_max: u64,
}

impl Deletions {
    pub(crate) fn new(layout: &Layout, keys: HashMap<String, u64>) -> Deletions {
        let order_max = keys.values().copied().max().unwrap_or(0);
        let mut keys: Vec<(String, u64)> = keys.into_iter().collect();
        keys.sort_unstable();
        let order = layout.tantivy.get_field_name(layout.order).to_owned();
        Deletions { key: layout.key, order, keys: keys.into(), order_max }
    }
}

impl Query for Deletions {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for Deletions {
    fn scorer(&self, reader: &SegmentReader, boost: f32) -> tantivy::Result<Box<dyn Scorer>> {
        let mut gather = Gather::new(reader.max_doc());
        let orders = reader.fast_fields().u64(&self.order)?;
        // Entries are in order: the first one's is the least.
        if orders.first(0).is_some_and(|first| first < self.order_max) {
            let inverted = reader.inverted_index(self.key)?;
            for (key, end) in self.keys.iter() {
                let term = Term::from_field_text(self.key, key);
                let Some(mut postings) = inverted.read_postings(&term, IndexRecordOption::Basic)? else {
                    continue;
                };
                let mut doc = postings.doc();
                while doc != TERMINATED && orders.first(doc).is_some_and(|order| order < *end) {
                    gather.insert(doc);
                    doc = postings.advance();
                }
            }
        }
        Ok(Box::new(ConstScorer::new(gather.finish().cursor(), boost)))
    }

    fn explain(&self, _: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        Err(TantivyError::InvalidArgument(format!("entry {doc} has no score: deletes have none")))
    }
}
