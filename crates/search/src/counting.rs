//! Facets: the entries of a result counted by terms and ranges.
//!
//! The result is worked out once, as a set of entries per segment. Counting by terms looks at each of them once and adds to a
//! counter per place in the dictionary; over the whole index the dictionary's own counts are the answer. Counting by ranges of
//! numbers reads each field once for all facets, and over the whole index looks at the sorted numbers alone.

use std::ops::Range;
use std::sync::Arc;

use tantivy::query::EnableScoring;
use tantivy::{DocId, DocSet};

use crate::collation;
use crate::compile::{number_ends, query_date, text_ends};
use crate::docs::{Docs, Gather};
use crate::error::Result;
use crate::facet::{Aggregate, FacetKind, FacetRange, FacetRequest, FacetResult, FacetSort, FacetValue};
use crate::layout::{Layout, Place};
use crate::query::{Bound, Query, Value};
use crate::searcher::Searcher;
use crate::segment::{Domain, Numbers, Segment};

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

/// The terms that a result has, in order.
#[derive(Default)]
struct Tally {
    text: String,
    values: Vec<Tallied>,
}

struct Tallied {
    term: Range<usize>,
    counted: Counted,
}

impl Tally {
    fn add(&mut self, term: &str, counted: Counted) {
        let start = self.text.len();
        self.text.push_str(term);
        self.values.push(Tallied { term: start..self.text.len(), counted });
    }

    /// The sum of several.
    fn of_all(mut all: Vec<Tally>) -> Tally {
        if all.len() < 2 {
            return all.pop().unwrap_or_default();
        }
        let mut parts: Vec<(&str, &Counted)> = all
            .iter()
            .flat_map(|tally| {
                tally.values.iter().map(|value| (&tally.text[value.term.clone()], &value.counted))
            })
            .collect();
        // They are runs in order, which this makes use of.
        parts.sort_by_key(|(term, _)| *term);
        let mut sum = Tally::default();
        for (term, counted) in parts {
            match sum.values.last_mut() {
                Some(last) if sum.text[last.term.clone()] == *term => last.counted.add(counted),
                _ => sum.add(term, counted.clone()),
            }
        }
        sum
    }
}

/// A range of numbers to be counted, and the number of its counter.
struct NumberRange {
    low: u64,
    high: u64,
    counter: usize,
}

impl Searcher {
    /// Counts the entries that a query finds, by each of the facets.
    pub fn facets(&self, query: &Query, requests: &[FacetRequest]) -> Result<Vec<FacetResult>> {
        let found = self.found(query)?;
        let mut ranged = self.by_plain_ranges(&found, requests)?.into_iter();
        requests
            .iter()
            .map(|request| match &request.kind {
                FacetKind::Terms { field, sort, start, page_size, include_remaining_terms } => {
                    let tally = self.by_terms(&found, field, &request.aggregations)?;
                    Ok(page(tally, *sort, *start, *page_size, *include_remaining_terms))
                }
                FacetKind::Ranges(ranges) => {
                    let plain = ranged.by_ref().take(ranges.len()).collect();
                    let values = self.by_ranges(&found, ranges, &request.aggregations, plain)?;
                    Ok(FacetResult { values, ..FacetResult::default() })
                }
                FacetKind::All => {
                    let values =
                        vec![FacetValue { term: 0..0, count: self.all(&found), aggregates: Vec::new() }];
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
        let weight = compiled.weight(EnableScoring::disabled_from_searcher(&self.snapshot.tantivy))?;
        for segment in self.snapshot.segments.iter() {
            let mut gather = Gather::new(segment.max_doc());
            weight.for_each_no_score(&segment.reader, &mut |docs| {
                docs.iter().filter(|&&doc| segment.is_alive(doc)).for_each(|&doc| gather.insert(doc));
            })?;
            found.push(Some(gather.finish()));
        }
        Ok(found)
    }

    fn all(&self, found: &[Option<Docs>]) -> u64 {
        let segments = self.snapshot.segments.iter().zip(found);
        segments
            .map(|(segment, docs)| docs.as_ref().map_or(segment.reader.num_docs(), Docs::count))
            .map(u64::from)
            .sum()
    }

    /// The counts of all terms of a field that the result has, by term.
    fn by_terms(&self, found: &[Option<Docs>], field: &str, aggregations: &[String]) -> Result<Tally> {
        let place = self.snapshot.layout.place(field);
        let mut all = Vec::with_capacity(found.len());
        for (segment, docs) in self.snapshot.segments.iter().zip(found) {
            let aggregated = self.aggregated(segment, aggregations)?;
            all.push(match docs {
                None if aggregations.is_empty() => statistics(segment, &place)?,
                Some(Docs::None) => continue,
                None => count_terms(segment, &place, &Docs::All(segment.max_doc()), &aggregated)?,
                Some(docs) => count_terms(segment, &place, docs, &aggregated)?,
            });
        }
        Ok(Tally::of_all(all))
    }

    /// The counts of those ranges of numbers for which nothing else is wanted, a number for each range of all requests: each field is
    /// read once for all of them.
    fn by_plain_ranges(&self, found: &[Option<Docs>], requests: &[FacetRequest]) -> Result<Vec<u64>> {
        let mut count = 0;
        let mut fields: Vec<(&str, Domain, Vec<NumberRange>)> = Vec::new();
        for request in requests {
            let FacetKind::Ranges(ranges) = &request.kind else { continue };
            for range in ranges {
                let counter = count;
                count += 1;
                if let Some((domain, low, high)) = plain_range(range, &request.aggregations) {
                    let wanted = NumberRange { low, high, counter };
                    match fields.iter_mut().find(|field| (field.0, field.1) == (&*range.field, domain)) {
                        Some(field) => field.2.push(wanted),
                        None => fields.push((&range.field, domain, vec![wanted])),
                    }
                }
            }
        }
        let mut counts = vec![0; count];
        let layout = &self.snapshot.layout;
        for (field, domain, ranges) in fields {
            let place = layout.place(field);
            for (segment, docs) in self.snapshot.segments.iter().zip(found) {
                count_numbers(segment, layout, &place, domain, docs.as_ref(), &ranges, &mut counts)?;
            }
        }
        Ok(counts)
    }

    /// The values of a facet of ranges. `plain` has those of the ranges that [`Searcher::by_plain_ranges`] counts.
    fn by_ranges(
        &self,
        found: &[Option<Docs>],
        ranges: &[FacetRange],
        aggregations: &[String],
        plain: Vec<u64>,
    ) -> Result<Vec<FacetValue>> {
        let mut values = Vec::with_capacity(ranges.len());
        for (range, plain) in ranges.iter().zip(plain) {
            let mut counted = match plain_range(range, aggregations) {
                Some(_) => Counted { count: plain, ..Counted::default() },
                None => self.in_range(found, range, aggregations)?,
            };
            counted.aggregates.resize(aggregations.len(), NOTHING);
            values.push(FacetValue { term: 0..0, count: counted.count, aggregates: counted.aggregates });
        }
        Ok(values)
    }

    /// Counts the entries of a range, one by one.
    fn in_range(
        &self,
        found: &[Option<Docs>],
        range: &FacetRange,
        aggregations: &[String],
    ) -> Result<Counted> {
        let layout = &self.snapshot.layout;
        let place = layout.place(&range.field);
        let mut counted = Counted::default();
        for (segment, docs) in self.snapshot.segments.iter().zip(found) {
            let aggregated = self.aggregated(segment, aggregations)?;
            match facet_ends(range) {
                Some(None) => {}
                Some(Some((domain, low, high))) => {
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
                    // A date's term has capitals.
                    let is_date = is_date(&range.low) || is_date(&range.high);
                    let (from, to) = text_ends(&place, &range.low, &range.high, is_date);
                    let mut inside = segment.term_range(&place, &from, to.as_ref())?.cursor();
                    each_doc(segment, docs.as_ref(), |doc| {
                        if inside.doc() <= doc && inside.seek(doc) == doc {
                            counted.entry(&aggregated, doc);
                        }
                    });
                }
            }
        }
        Ok(counted)
    }

    fn aggregated(&self, segment: &Segment, aggregations: &[String]) -> Result<Vec<Arc<Numbers>>> {
        let layout = &self.snapshot.layout;
        let numbers = aggregations.iter().map(|field| segment.numbers(layout, &layout.place(field)));
        Ok(numbers.collect::<tantivy::Result<_>>()?)
    }
}

/// The ends of a range of numbers of which only the entries are counted.
fn plain_range(range: &FacetRange, aggregations: &[String]) -> Option<(Domain, u64, u64)> {
    if !aggregations.is_empty() {
        return None;
    }
    facet_ends(range).flatten()
}

fn is_date(bound: &Bound) -> bool {
    match bound {
        Bound::Included(Value::Text(text)) | Bound::Excluded(Value::Text(text)) => query_date(text).is_some(),
        _ => false,
    }
}

/// As [`number_ends`], where numbers compare as doubles, so that `Price <= 250` has no 250.5, and dates as the texts that they are.
#[expect(clippy::option_option, reason = "as of `number_ends`")]
fn facet_ends(range: &FacetRange) -> Option<Option<(Domain, u64, u64)>> {
    let wide = |bound: &Bound| {
        let wide = |value: &Value| match value {
            Value::Long(value) => Some(Value::Double(*value as f64)),
            Value::Text(_) => None,
            other => Some(other.clone()),
        };
        Some(match bound {
            Bound::Open => Bound::Open,
            Bound::Included(value) => Bound::Included(wide(value)?),
            Bound::Excluded(value) => Bound::Excluded(wide(value)?),
        })
    };
    number_ends(&wide(&range.low)?, &wide(&range.high)?)
}

/// Adds how many entries of a segment have a number in each range.
fn count_numbers(
    segment: &Segment,
    layout: &Layout,
    place: &Place,
    domain: Domain,
    docs: Option<&Docs>,
    ranges: &[NumberRange],
    counts: &mut [u64],
) -> tantivy::Result<()> {
    let numbers = segment.numbers(layout, place)?;
    let Some(docs) = docs.filter(|_| numbers.is_single(domain)) else {
        let sorted = segment.sorted(layout, place, domain)?;
        for NumberRange { low, high, counter } in ranges {
            counts[*counter] += match docs {
                None if sorted.is_single => sorted.range(*low, *high).len() as u64,
                _ => {
                    let mut count = 0;
                    each_doc(segment, docs, |doc| {
                        let mut inside = false;
                        numbers.each(domain, doc, |value| inside |= (*low..=*high).contains(&value));
                        count += u64::from(inside);
                    });
                    count
                }
            };
        }
        return Ok(());
    };
    let mut values = Vec::new();
    docs.each_block(|docs| {
        values.clear();
        numbers.append(domain, docs, &mut values);
        for NumberRange { low, high, counter } in ranges {
            let inside = values.iter().filter(|&&value| (*low <= value) & (value <= *high)).count();
            counts[*counter] += inside as u64;
        }
    });
    Ok(())
}

fn each_doc(segment: &Segment, docs: Option<&Docs>, each: impl FnMut(DocId)) {
    match docs {
        None => (0..segment.max_doc()).for_each(each),
        Some(docs) => docs.each(each),
    }
}

/// The counts that the dictionary keeps.
fn statistics(segment: &Segment, place: &Place) -> tantivy::Result<Tally> {
    let mut tally = Tally::default();
    let counted = |count: u32| Counted { count: u64::from(count), aggregates: Vec::new() };
    match segment.terms(place)? {
        Some(terms) => {
            tally.values.reserve(terms.counts.len());
            for (rank, &count) in terms.counts.iter().enumerate() {
                tally.add(terms.text(rank), counted(count));
            }
        }
        None => {
            segment.each_term(place, |term, count| {
                tally.add(&String::from_utf8_lossy(term), counted(count));
                true
            })?;
        }
    }
    Ok(tally)
}

fn count_terms(
    segment: &Segment,
    place: &Place,
    docs: &Docs,
    aggregated: &[Arc<Numbers>],
) -> tantivy::Result<Tally> {
    let ranks = segment.ranks(place)?;
    let size = ranks.count as usize;
    let mut counts: Vec<u32> = Vec::new();
    let mut sums: Vec<Counted> = Vec::new();
    if aggregated.is_empty() {
        counts = vec![0; size];
        if ranks.is_single() {
            docs.each(|doc| {
                if let Some(count) = counts.get_mut(ranks.last[doc as usize] as usize) {
                    *count += 1;
                }
            });
        } else {
            docs.each(|doc| ranks.of(doc).iter().for_each(|&rank| counts[rank as usize] += 1));
        }
    } else {
        sums = vec![Counted::default(); size];
        docs.each(|doc| ranks.of(doc).iter().for_each(|&rank| sums[rank as usize].entry(aggregated, doc)));
    }
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
    let mut tally = Tally { text: String::new(), values: Vec::with_capacity(some.len()) };
    if let Some(terms) = segment.terms(place)? {
        some.into_iter().for_each(|rank| tally.add(terms.text(rank), counted(rank)));
    } else if some.len() * SPARSE < size {
        for rank in some {
            tally.add(&segment.term_of(place, &ranks, rank as u32)?, counted(rank));
        }
    } else {
        let mut wanted = some.into_iter().peekable();
        let mut rank = 0;
        segment.each_term(place, |term, _| {
            if wanted.next_if_eq(&rank).is_some() {
                tally.add(&String::from_utf8_lossy(term), counted(rank));
            }
            rank += 1;
            true
        })?;
    }
    Ok(tally)
}

/// The page of the values, which come by term.
fn page(
    tally: Tally,
    sort: FacetSort,
    start: usize,
    page_size: usize,
    include_remaining_terms: bool,
) -> FacetResult {
    let Tally { text, mut values } = tally;
    // They come by the bytes of their terms.
    if !collation::is_byte_order(&text) {
        values.sort_by(|left, right| collation::compare(&text[left.term.clone()], &text[right.term.clone()]));
    }
    match sort {
        FacetSort::ValueAscending => {}
        FacetSort::ValueDescending => values.reverse(),
        // Stable: equal counts stay by term.
        FacetSort::CountAscending => values.sort_by_key(|value| value.counted.count),
        FacetSort::CountDescending => values.sort_by_key(|value| std::cmp::Reverse(value.counted.count)),
    }
    let rest = values.split_off(start.saturating_add(page_size).min(values.len()));
    let remaining_terms = match include_remaining_terms {
        true => rest.iter().map(|value| text[value.term.clone()].to_owned()).collect(),
        false => Vec::new(),
    };
    let shown =
        |Tallied { term, counted }| FacetValue { term, count: counted.count, aggregates: counted.aggregates };
    FacetResult {
        remaining_terms_count: rest.len() as u64,
        remaining_hits: rest.iter().map(|value| value.counted.count).sum(),
        remaining_terms,
        values: values.into_iter().skip(start).map(shown).collect(),
        text,
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
