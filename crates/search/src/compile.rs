//! From the tree of a query to tantivy's queries.
//!
//! Terms, words, phrases and their combinations are tantivy's own, which score them (BM25 where words are cut from text, the rarity
//! of the term elsewhere). All else is [`SetQuery`]: a function that gives the entries of a segment, all with the same score.

mod boosts;
mod lucene;
mod text;
mod values;

pub(crate) use text::{Piece, edits, is_like, pieces, wildcard_matches};
pub(crate) use values::{number_ends, query_date, text_ends};

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tantivy::index::SegmentId;
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, ConstScorer, EmptyQuery, EnableScoring, Explanation,
    Occur, Query as TantivyQuery, Scorer, TermQuery, Weight,
};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, SegmentReader, TantivyError, Term};

use crate::docs::{Docs, Gather};
use crate::error::{Error, Result};
use crate::layout::{Layout, Place};
use crate::query::{Query, Value};
use crate::searcher::Snapshot;
use crate::segment::{Segment, gather_postings};

/// A deeper tree is refused: it would be walked by recursion.
const DEPTH_MAX: usize = 400;

/// Turns queries into tantivy's for one snapshot.
pub(crate) struct Compiler<'a> {
    pub(crate) snapshot: &'a Arc<Snapshot>,
}

/// tantivy's query.
pub(crate) type Boxed = Box<dyn TantivyQuery>;

impl Compiler<'_> {
    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.snapshot.layout
    }

    pub(crate) fn compile(&self, query: &Query) -> Result<Boxed> {
        check_depth(query)?;
        self.tree(query)
    }

    pub(crate) fn tree(&self, query: &Query) -> Result<Boxed> {
        match query {
            Query::All => Ok(Box::new(AllQuery)),
            Query::None => Ok(Box::new(EmptyQuery)),
            Query::Term { field, value, exact } => {
                self.term(&self.layout().place_of_query(field), value, *exact)
            }
            Query::Range { field, low, high, exact } => {
                self.range(&self.layout().place_of_query(field), low, high, *exact)
            }
            Query::In { field, values, exact } => {
                Ok(self.any_of(&self.layout().place_of_query(field), values, *exact))
            }
            Query::AllIn { field, values, exact } => {
                if values.is_empty() {
                    return Ok(Box::new(AllQuery));
                }
                let place = self.layout().place_of_query(field);
                let each = values
                    .iter()
                    .map(|value| (Occur::Must, self.any_of(&place, std::slice::from_ref(value), *exact)))
                    .collect();
                Ok(Box::new(BooleanQuery::new(each)))
            }
            Query::Prefix { field, text, exact } => {
                Ok(self.prefix(&self.layout().place_of_query(field), text, *exact))
            }
            Query::Suffix { field, text, exact } => {
                Ok(self.suffix(&self.layout().place_of_query(field), text, *exact))
            }
            Query::Wildcard { field, pattern, exact } => {
                Ok(self.wildcard(&self.layout().place_of_query(field), pattern, *exact))
            }
            Query::Regex { field, pattern } => self.regex(&self.layout().place_of_query(field), pattern),
            Query::Fuzzy { field, text, similarity } => {
                Ok(self.fuzzy(&self.layout().place_of_query(field), text, *similarity))
            }
            Query::Search { field, text, operator } => {
                Ok(self.search(&self.layout().place_of_query(field), text, *operator))
            }
            Query::Proximity { field, text, slop } => {
                Ok(self.words(&self.layout().place_of_query(field), text, *slop))
            }
            Query::Exists { field } => Ok(self.exists(&self.layout().place_of_query(field))),
            Query::Key(key) => Ok(self.hidden_terms(self.layout().key, std::slice::from_ref(key))),
            Query::Keys(keys) => Ok(self.hidden_terms(self.layout().key, keys)),
            Query::Reference(id) => {
                Ok(self.hidden_terms(self.layout().reference, &[crate::analysis::lower(id)]))
            }
            Query::KeyPrefix(prefix) => Ok(self.key_prefix(prefix)),
            Query::Boost(inner, factor) => {
                Ok(Box::new(BoostQuery::new(self.tree(inner)?, factor.clamp(f32::MIN, f32::MAX))))
            }
            Query::And(parts) => self.all_of(parts),
            Query::Or(parts) => {
                let mut clauses = Vec::with_capacity(parts.len());
                for part in parts {
                    clauses.push((Occur::Should, self.tree(part)?));
                }
                Ok(match clauses.len() {
                    0 => Box::new(EmptyQuery),
                    1 => clauses.remove(0).1,
                    _ => Box::new(BooleanQuery::new(clauses)),
                })
            }
            Query::Not(_) => self.all_of(std::slice::from_ref(query)),
            Query::Intersect(parts) => self.intersect(parts),
            Query::Lucene { field, text, exact } => self.lucene(field, text, *exact),
            Query::MoreLikeThis(like) => self.more_like_this(like),
            Query::Spatial(query) => self.spatial(query),
        }
    }

    fn all_of(&self, parts: &[Query]) -> Result<Boxed> {
        let mut clauses = Vec::with_capacity(parts.len() + 1);
        let mut needs_all = true;
        for part in parts {
            match part {
                Query::Not(inner) => clauses.push((Occur::MustNot, self.tree(inner)?)),
                // Everything is no condition: it would only be walked through.
                Query::All => {}
                _ => {
                    needs_all = false;
                    clauses.push((Occur::Must, self.tree(part)?));
                }
            }
        }
        if needs_all {
            clauses.push((Occur::Must, Box::new(AllQuery)));
        }
        Ok(match clauses.len() {
            1 => clauses.remove(0).1,
            _ => Box::new(BooleanQuery::new(clauses)),
        })
    }

    /// The query of one term as it stands in the dictionary.
    pub(crate) fn exact_term(&self, place: &Place, text: &str) -> Boxed {
        let term = Term::from_field_text(place.terms, &format!("{}{text}", place.prefix));
        let option =
            if place.analyzer.is_keyword() { IndexRecordOption::Basic } else { IndexRecordOption::WithFreqs };
        self.with_boosts(place, Box::new(TermQuery::new(term, option)))
    }

    /// The entries that a function finds in each segment.
    pub(crate) fn set(
        &self,
        find: impl Fn(&Segment, &Layout) -> tantivy::Result<Docs> + Send + Sync + 'static,
    ) -> Boxed {
        Box::new(SetQuery {
            segments: Arc::clone(&self.snapshot.segments),
            by_id: Arc::clone(&self.snapshot.by_id),
            layout: Arc::clone(self.layout()),
            find: Arc::new(find),
        })
    }

    /// The entries that hold one of the terms of a hidden field.
    fn hidden_terms(&self, field: tantivy::schema::Field, terms: &[String]) -> Boxed {
        if let [term] = terms {
            let query = TermQuery::new(Term::from_field_text(field, term), IndexRecordOption::Basic);
            return Box::new(ConstScoreQuery::new(Box::new(query), 1.0));
        }
        let terms = terms.to_vec();
        self.set(move |segment, _| {
            let inverted = segment.reader.inverted_index(field)?;
            let mut gather = Gather::new(segment.max_doc());
            for term in &terms {
                if let Some(info) = inverted.terms().get(term.as_bytes())? {
                    gather_postings(&inverted, &info, &mut gather)?;
                }
            }
            Ok(gather.finish())
        })
    }

    fn key_prefix(&self, prefix: &str) -> Boxed {
        let prefix = prefix.to_owned();
        self.set(move |segment, layout| {
            let inverted = segment.reader.inverted_index(layout.key)?;
            let mut gather = Gather::new(segment.max_doc());
            let mut stream = crate::segment::prefixed(inverted.terms(), &prefix)?;
            while stream.advance() {
                gather_postings(&inverted, stream.value(), &mut gather)?;
            }
            Ok(gather.finish())
        })
    }

    fn exists(&self, place: &Arc<Place>) -> Boxed {
        let place = Arc::clone(place);
        self.set(move |segment, layout| Ok(Docs::Bits(segment.present(layout, &place)?)))
    }

    /// The entries that the first query finds, of the keys of which every query finds an entry.
    fn intersect(&self, parts: &[Query]) -> Result<Boxed> {
        let Some((first, others)) = parts.split_first() else { return Ok(Box::new(EmptyQuery)) };
        let first = self.tree(first)?;
        let mut common: Option<std::collections::HashSet<u64>> = None;
        for part in others {
            let query = self.tree(part)?;
            let mut keys = std::collections::HashSet::new();
            self.snapshot.each_match(query.as_ref(), |segment, doc| {
                let key = segment.key_hashes(self.layout())?[doc as usize];
                if common.as_ref().is_none_or(|common| common.contains(&key)) {
                    keys.insert(key);
                }
                Ok(())
            })?;
            common = Some(keys);
        }
        let Some(common) = common else { return Ok(first) };
        let filter = self.set(move |segment, layout| {
            let keys = segment.key_hashes(layout)?;
            let mut gather = Gather::new(segment.max_doc());
            (0..segment.max_doc())
                .filter(|&doc| common.contains(&keys[doc as usize]))
                .for_each(|doc| gather.insert(doc));
            Ok(gather.finish())
        });
        Ok(Box::new(BooleanQuery::new(vec![
            (Occur::Must, first),
            (Occur::Must, Box::new(ConstScoreQuery::new(filter, 0.0))),
        ])))
    }
}

/// Refuses a tree that is too deep, without going down into it by recursion.
fn check_depth(query: &Query) -> Result<()> {
    let mut open = vec![(query, 1)];
    while let Some((query, depth)) = open.pop() {
        if depth > DEPTH_MAX {
            return Err(Error::InvalidQuery(format!("the query is more than {DEPTH_MAX} levels deep")));
        }
        match query {
            Query::Boost(inner, _) | Query::Not(inner) => open.push((inner, depth + 1)),
            Query::And(parts) | Query::Or(parts) | Query::Intersect(parts) => {
                open.extend(parts.iter().map(|part| (part, depth + 1)));
            }
            Query::MoreLikeThis(like) => {
                if let crate::query::MoreLikeThisSource::Entries { query, .. } = &like.source {
                    open.push((query, depth + 1));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether all entries that a query finds have the same score, so that they need no order.
pub(crate) fn is_constant(query: &Query, layout: &Layout) -> bool {
    match query {
        Query::Term { field, value, .. } => {
            !matches!(value, Value::Text(_)) || layout.place_of_query(field).analyzer.is_keyword()
        }
        Query::And(parts) => parts.iter().all(|part| is_constant(part, layout)),
        Query::Or(parts) => parts.len() < 2 && parts.iter().all(|part| is_constant(part, layout)),
        Query::Boost(inner, _) => is_constant(inner, layout),
        Query::Intersect(parts) => parts.first().is_none_or(|part| is_constant(part, layout)),
        Query::Search { .. }
        | Query::Proximity { .. }
        | Query::Lucene { .. }
        | Query::Fuzzy { .. }
        | Query::MoreLikeThis(_) => false,
        _ => true,
    }
}

type Find = dyn Fn(&Segment, &Layout) -> tantivy::Result<Docs> + Send + Sync;

/// The entries that a function finds.
#[derive(Clone)]
struct SetQuery {
    segments: Arc<Vec<Segment>>,
    by_id: Arc<HashMap<SegmentId, usize>>,
    layout: Arc<Layout>,
    find: Arc<Find>,
}

impl fmt::Debug for SetQuery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SetQuery").finish_non_exhaustive()
    }
}

impl TantivyQuery for SetQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for SetQuery {
    fn scorer(&self, reader: &SegmentReader, boost: f32) -> tantivy::Result<Box<dyn Scorer>> {
        let at = self.by_id.get(&reader.segment_id()).copied();
        let Some(segment) = at.and_then(|at| self.segments.get(at)) else {
            return Err(TantivyError::InternalError("a query met a segment of another snapshot".to_owned()));
        };
        let docs = (self.find)(segment, &self.layout)?;
        Ok(Box::new(ConstScorer::new(docs.cursor(), boost)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() > doc || scorer.seek(doc) != doc {
            return Err(TantivyError::InvalidArgument(format!("entry {doc} does not match")));
        }
        Ok(Explanation::new("ConstantScore", 1.0))
    }
}
