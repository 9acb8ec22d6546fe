//! Facets: the entries of a result counted by terms and ranges.
//!
//! The result is worked out once, as a set of entries per segment. Counting by terms looks at each of them once and adds to a
//! counter per place in the dictionary; over the whole index the dictionary's own counts are the answer. Counting by ranges of
//! numbers looks at each once too, and over the whole index at the sorted numbers alone.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::{DocId, DocSet, TERMINATED};

use crate::compile::{number_ends, text_ends};
use crate::docs::{Docs, Gather};
use crate::error::Result;
use crate::facet::{Aggregate, FacetKind, FacetRange, FacetRequest, FacetResult, FacetSort, FacetValue};
use crate::layout::Place;
use crate::query::Query;
use crate::searcher::Searcher;
use crate::segment::{Numbers, Segment, prefixed};

/// With fewer values than one in so many terms, their texts are looked up one by one.
const SPARSE: usize = 16;

/// What is counted of a value.
#[derive(Debug, Clone, Default)]
struct Counted {
    count: u64,
    aggregates: Vec<Aggregate>,
}

/// Of nothing.
const NOTHING: Aggregate = Aggregate { count: 0, sum: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY };

impl Counted {
    fn add(&mut self, other: &Counted) {
        self.count += other.count;
        self.aggregates.resize(other.aggregates.len().max(self.aggregates.len()), NOTHING);
        for (mine, other) in self.aggregates.iter_mut().zip(&other.aggregates) {
            mine.count += other.count;
            mine.sum += other.sum;
            mine.min = mine.min.min(other.min);
            mine.max = mine.max.max(other.max);
        }
    }

    /// Counts an entry and its numbers.
    fn entry(&mut self, aggregated: &[Arc<Numbers>], doc: DocId) {
        self.count += 1;
        self.aggregates.resize(aggregated.len(), NOTHING);
        for (aggregate, numbers) in self.aggregates.iter_mut().zip(aggregated) {
            numbers.doubles(doc, |value| {
                aggregate.count += 1;
                aggregate.sum += value;
                aggregate.min = aggregate.min.min(value);
                aggregate.max = aggregate.max.max(value);
            });
        }
    }
}

impl Searcher {
    /// Counts the entries that a query finds, by each of the facets.
    pub fn facets(&self, query: &Query, requests: &[FacetRequest]) -> Result<Vec<FacetResult>> {
        let found = self.found(query)?;
        requests
            .iter()
            .map(|request| match &request.kind {
                FacetKind::Terms { field, sort, start, page_size, include_remaining_terms } => {
                    let values = self.by_terms(&found, field, &request.aggregations)?;
                    Ok(page(values, *sort, *start, *page_size, *include_remaining_terms))
                }
                FacetKind::Ranges(ranges) => {
                    let values = self.by_ranges(&found, ranges, &request.aggregations)?;
                    Ok(FacetResult { values, ..FacetResult::default() })
                }
            })
            .collect()
    }

    /// The living entries that a query finds in each segment; `None` for all entries of a segment without deletes.
    fn found(&self, query: &Query) -> Result<Vec<Option<Docs>>> {
        let mut found = Vec::with_capacity(self.snapshot.segments.len());
        if matches!(query, Query::All) {
            for segment in self.snapshot.segments.iter() {
                found.push(segment.reader.alive_bitset().map(|alive| {
                    let mut gather = Gather::new(segment.max_doc());
                    alive.iter_alive().for_each(|doc| gather.insert(doc));
                    gather.finish()
                }));
            }
            return Ok(found);
        }
        let compiled = self.compiler().compile(query)?;
        let mut gathers: HashMap<u32, Gather> = HashMap::new();
        self.snapshot.each_match(compiled.as_ref(), |segment, doc| {
            gathers.entry(segment.ord).or_insert_with(|| Gather::new(segment.max_doc())).insert(doc);
            Ok(())
        })?;
        for segment in self.snapshot.segments.iter() {
            found.push(Some(gathers.remove(&segment.ord).map_or(Docs::None, Gather::finish)));
        }
        Ok(found)
    }

    /// The counts of all terms of a field that the result has, by term.
    fn by_terms(
        &self,
        found: &[Option<Docs>],
        field: &str,
        aggregations: &[String],
    ) -> Result<Vec<(String, Counted)>> {
        let place = self.snapshot.layout.place(field);
        let mut all: Vec<Vec<(String, Counted)>> = Vec::new();
        for (segment, docs) in self.snapshot.segments.iter().zip(found) {
            let aggregated = self.aggregated(segment, aggregations)?;
            let counted = match docs {
                None if aggregations.is_empty() => statistics(segment, &place)?,
                Some(Docs::None) => continue,
                docs => {
                    let docs = docs.clone().unwrap_or(Docs::All(segment.max_doc()));
                    count_terms(segment, &place, docs, &aggregated)?
                }
            };
            all.push(counted);
        }
        if all.len() < 2 {
            return Ok(all.pop().unwrap_or_default());
        }
        let mut merged: HashMap<String, Counted> = HashMap::new();
        for (term, counted) in all.into_iter().flatten() {
            merged.entry(term).or_default().add(&counted);
        }
        let mut values: Vec<(String, Counted)> = merged.into_iter().collect();
        values.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        Ok(values)
    }

    fn by_ranges(
        &self,
        found: &[Option<Docs>],
        ranges: &[FacetRange],
        aggregations: &[String],
    ) -> Result<Vec<FacetValue>> {
        let layout = &self.snapshot.layout;
        let mut values = vec![Counted::default(); ranges.len()];
        for (segment, docs) in self.snapshot.segments.iter().zip(found) {
            let aggregated = self.aggregated(segment, aggregations)?;
            for (range, counted) in ranges.iter().zip(&mut values) {
                let place = layout.place(&range.field);
                match number_ends(&range.low, &range.high) {
                    Some(None) => {}
                    Some(Some((domain, low, high))) => {
                        if docs.is_none() && aggregated.is_empty() {
                            let sorted = segment.sorted(layout, &place, domain)?;
                            if sorted.is_single {
                                counted.count += sorted.range(low, high).len() as u64;
                                continue;
                            }
                        }
                        let numbers = segment.numbers(layout, &place)?;
                        each_doc(segment, docs.as_ref(), |doc| {
                            let mut inside = false;
                            numbers.each(domain, doc, |value| inside |= (low..=high).contains(&value));
                            if inside {
                                counted.entry(&aggregated, doc);
                            }
                        });
                    }
                    None => {
                        let (from, to) = text_ends(&place, &range.low, &range.high, false);
                        let mut inside = segment.term_range(&place, &from, to.as_ref())?.cursor();
                        each_doc(segment, docs.as_ref(), |doc| {
                            if inside.doc() <= doc && inside.seek(doc) == doc {
                                counted.entry(&aggregated, doc);
                            }
                        });
                    }
                }
            }
        }
        Ok(values
            .into_iter()
            .map(|mut counted| {
                counted.aggregates.resize(aggregations.len(), NOTHING);
                FacetValue { term: String::new(), count: counted.count, aggregates: counted.aggregates }
            })
            .collect())
    }

    fn aggregated(&self, segment: &Segment, aggregations: &[String]) -> Result<Vec<Arc<Numbers>>> {
        let layout = &self.snapshot.layout;
        let numbers = aggregations.iter().map(|field| segment.numbers(layout, &layout.place(field)));
        Ok(numbers.collect::<tantivy::Result<_>>()?)
    }
}

fn each_doc(segment: &Segment, docs: Option<&Docs>, mut each: impl FnMut(DocId)) {
    match docs {
        None => (0..segment.max_doc()).for_each(each),
        Some(docs) => {
            let mut cursor = docs.clone().cursor();
            let mut doc = cursor.doc();
            while doc != TERMINATED {
                each(doc);
                doc = cursor.advance();
            }
        }
    }
}

/// The counts that the dictionary keeps.
fn statistics(segment: &Segment, place: &Place) -> tantivy::Result<Vec<(String, Counted)>> {
    let inverted = segment.reader.inverted_index(place.terms)?;
    let mut stream = prefixed(inverted.terms(), &place.prefix)?;
    let mut counts = Vec::new();
    while stream.advance() {
        let term = String::from_utf8_lossy(&stream.key()[place.prefix.len()..]).into_owned();
        let count = u64::from(stream.value().doc_freq);
        counts.push((term, Counted { count, aggregates: Vec::new() }));
    }
    Ok(counts)
}

fn count_terms(
    segment: &Segment,
    place: &Place,
    docs: Docs,
    aggregated: &[Arc<Numbers>],
) -> tantivy::Result<Vec<(String, Counted)>> {
    let ranks = segment.ranks(place)?;
    let size = ranks.count as usize;
    let mut counts: Vec<u32> = Vec::new();
    let mut sums: Vec<Counted> = Vec::new();
    if aggregated.is_empty() {
        counts = vec![0; size];
        if ranks.is_single() {
            each_doc(segment, Some(&docs), |doc| {
                if let Some(count) = counts.get_mut(ranks.last[doc as usize] as usize) {
                    *count += 1;
                }
            });
        } else {
            each_doc(segment, Some(&docs), |doc| {
                ranks.of(doc).iter().for_each(|&rank| counts[rank as usize] += 1);
            });
        }
    } else {
        sums = vec![Counted::default(); size];
        each_doc(segment, Some(&docs), |doc| {
            ranks.of(doc).iter().for_each(|&rank| sums[rank as usize].entry(aggregated, doc));
        });
    }
    let mut values = Vec::new();
    let some: Vec<usize> = (0..size)
        .filter(|&rank| if aggregated.is_empty() { counts[rank] > 0 } else { sums[rank].count > 0 })
        .collect();
    let mut counted = |rank: usize| {
        if aggregated.is_empty() {
            Counted { count: u64::from(counts[rank]), aggregates: Vec::new() }
        } else {
            std::mem::take(&mut sums[rank])
        }
    };
    if some.len() * SPARSE < size {
        for rank in some {
            values.push((segment.term_of(place, &ranks, rank as u32)?, counted(rank)));
        }
        return Ok(values);
    }
    let inverted = segment.reader.inverted_index(place.terms)?;
    let mut stream = prefixed(inverted.terms(), &place.prefix)?;
    let mut wanted = some.into_iter().peekable();
    let mut rank = 0;
    while stream.advance() {
        if wanted.next_if_eq(&rank).is_some() {
            let term = String::from_utf8_lossy(&stream.key()[place.prefix.len()..]).into_owned();
            values.push((term, counted(rank)));
        }
        rank += 1;
    }
    Ok(values)
}

/// The page of the values, which come by term.
fn page(
    mut values: Vec<(String, Counted)>,
    sort: FacetSort,
    start: usize,
    page_size: usize,
    include_remaining_terms: bool,
) -> FacetResult {
    match sort {
        FacetSort::ValueAscending => {}
        FacetSort::ValueDescending => values.reverse(),
        // Stable: equal counts stay by term.
        FacetSort::CountAscending => values.sort_by_key(|(_, counted)| counted.count),
        FacetSort::CountDescending => values.sort_by_key(|(_, counted)| std::cmp::Reverse(counted.count)),
    }
    let rest = values.split_off(start.saturating_add(page_size).min(values.len()));
    FacetResult {
        remaining_terms_count: rest.len() as u64,
        remaining_hits: rest.iter().map(|(_, counted)| counted.count).sum(),
        remaining_terms: if include_remaining_terms {
            rest.into_iter().map(|(term, _)| term).collect()
        } else {
            Vec::new()
        },
        values: values
            .into_iter()
            .skip(start)
            .map(|(term, counted)| FacetValue { term, count: counted.count, aggregates: counted.aggregates })
            .collect(),
    }
}

/// The order of doubles by their numbers is that of `f64::total_cmp`.
#[cfg(test)]
mod tests {
    use tantivy::columnar::MonotonicallyMappableToU64;

    #[test]
    fn doubles_keep_their_order_as_numbers() {
        let mut doubles = [0.0, -0.0, 1.5, -1.5, f64::MAX, f64::MIN, 1e-300];
        doubles.sort_by(f64::total_cmp);
        assert!(doubles.windows(2).all(|pair| pair[0].to_u64() < pair[1].to_u64()));
    }
}
