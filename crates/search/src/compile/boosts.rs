//! Scores of fields that entries were given a boost for.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::columnar::Column;
use tantivy::index::SegmentId;
use tantivy::query::{EnableScoring, Explanation, Query as TantivyQuery, Scorer, Weight};
use tantivy::{DocId, DocSet, SegmentReader};

use super::{Boxed, Compiler};
use crate::layout::Place;
use crate::segment::Numbers;

impl Compiler<'_> {
    /// Whether the field has a column in some segment.
    pub(super) fn has(&self, place: &Place, column: impl Fn(&Numbers) -> bool) -> bool {
        self.snapshot
            .segments
            .iter()
            .any(|segment| segment.numbers(self.layout(), place).is_ok_and(|numbers| column(&numbers)))
    }

    /// A query on a field, whose scores are multiplied by the boosts that entries were given for it.
    pub(super) fn with_boosts(&self, place: &Place, query: Boxed) -> Boxed {
        if !self.has(place, |numbers| numbers.boosts.is_some()) {
            return query;
        }
        let boosts = self.snapshot.segments.iter().filter_map(|segment| {
            let numbers = segment.numbers(self.layout(), place).ok()?;
            Some((segment.reader.segment_id(), numbers.boosts.clone()?))
        });
        Box::new(BoostedQuery { inner: query, boosts: Arc::new(boosts.collect()) })
    }
}

type Boosts = Arc<HashMap<SegmentId, Column<f64>>>;

#[derive(Debug)]
struct BoostedQuery {
    inner: Boxed,
    boosts: Boosts,
}

impl Clone for BoostedQuery {
    fn clone(&self) -> BoostedQuery {
        BoostedQuery { inner: self.inner.box_clone(), boosts: Arc::clone(&self.boosts) }
    }
}

impl TantivyQuery for BoostedQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let inner = self.inner.weight(scoring)?;
        if !scoring.is_scoring_enabled() {
            return Ok(inner);
        }
        Ok(Box::new(BoostedWeight { inner, boosts: Arc::clone(&self.boosts) }))
    }
}

struct BoostedWeight {
    inner: Box<dyn Weight>,
    boosts: Boosts,
}

impl Weight for BoostedWeight {
    fn scorer(&self, reader: &SegmentReader, boost: f32) -> tantivy::Result<Box<dyn Scorer>> {
        let inner = self.inner.scorer(reader, boost)?;
        Ok(match self.boosts.get(&reader.segment_id()) {
            Some(boosts) => Box::new(BoostedScorer { inner, boosts: boosts.clone() }),
            None => inner,
        })
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let inner = self.inner.explain(reader, doc)?;
        let boost = self.boosts.get(&reader.segment_id()).and_then(|boosts| boosts.first(doc)).unwrap_or(1.0);
        let mut explanation =
            Explanation::new("product of the score and the field's boost", inner.value() * boost as f32);
        explanation.add_const("boost", boost as f32);
        explanation.add_detail(inner);
        Ok(explanation)
    }
}

struct BoostedScorer {
    inner: Box<dyn Scorer>,
    boosts: Column<f64>,
}

impl DocSet for BoostedScorer {
    fn advance(&mut self) -> DocId {
        self.inner.advance()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.inner.seek(target)
    }

    fn doc(&self) -> DocId {
        self.inner.doc()
    }

    fn size_hint(&self) -> u32 {
        self.inner.size_hint()
    }

    fn cost(&self) -> u64 {
        self.inner.cost()
    }
}

impl Scorer for BoostedScorer {
    fn score(&mut self) -> f32 {
        let score = self.inner.score();
        self.boosts.first(self.inner.doc()).map_or(score, |boost| score * boost as f32)
    }
}
