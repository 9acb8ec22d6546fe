//! The best hits of a query, in order.
//!
//! Within a segment every part of an order is a `u64` that orders the same: a number, the place of a term in the dictionary, a
//! score. Only the best of each segment are compared across segments, where the places of terms mean nothing and texts are read.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use tantivy::columnar::MonotonicallyMappableToU64;
use tantivy::query::{EnableScoring, Query as TantivyQuery};
use tantivy::{DocId, DocSet};

use crate::compile::number_ends;
use crate::error::{Error, Result};
use crate::layout::Place;
use crate::query::Query;
use crate::request::{Distance, Sort, SortBy};
use crate::searcher::Snapshot;
use crate::segment::{Domain, NO_RANK, Numbers, Ranks, Segment, Sorted};

/// Most parts of an order.
const SORTS_MAX: usize = 16;

/// What is asked.
pub(crate) struct Request<'a> {
    pub(crate) snapshot: &'a Arc<Snapshot>,
    pub(crate) query: &'a Query,
    pub(crate) compiled: &'a dyn TantivyQuery,
    pub(crate) sorts: &'a [Sort],
    /// Whether entries have scores that differ.
    pub(crate) scored: bool,
}

/// One entry that was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// Its segment among the snapshot's.
    pub(crate) segment: u32,
    pub(crate) doc: DocId,
    pub(crate) score: f32,
    pub(crate) distance: Option<Distance>,
}

/// The hits of a page, and how many there are in all.
pub(crate) struct Top {
    pub(crate) total: u64,
    pub(crate) hits: Vec<Found>,
}

impl Request<'_> {
    /// The hits from `skip` on, `take` at most, in order.
    pub(crate) fn top(&self, skip: usize, take: usize) -> Result<Top> {
        if self.sorts.len() > SORTS_MAX {
            return Err(Error::InvalidQuery(format!("an order has at most {SORTS_MAX} parts")));
        }
        if self.sorts.is_empty() && !self.scored {
            return self.by_insertion(skip, take);
        }
        if let Some(top) = self.by_one_column(skip, take)? {
            return Ok(top);
        }
        let by_score = [Sort { by: SortBy::Score, descending: false }];
        let sorts = if self.sorts.is_empty() { &by_score } else { self.sorts };
        let wanted = skip.saturating_add(take);
        let mut total = 0;
        let mut best: Vec<Ranked> = Vec::new();
        for at in 0..self.snapshot.segments.len() {
            total += self.best_of_segment(at, sorts, wanted, &mut best)?;
        }
        if self.snapshot.segments.len() > 1 {
            self.order_across(sorts, &mut best)?;
        }
        let hits = best
            .into_iter()
            .skip(skip)
            .take(take)
            .map(|ranked| Found {
                segment: ranked.segment,
                doc: ranked.doc,
                score: ranked.score,
                distance: None,
            })
            .collect();
        let mut top = Top { total, hits };
        self.complete(sorts, &mut top.hits)?;
        Ok(top)
    }

    /// The first entries as they come: all are as good.
    fn by_insertion(&self, skip: usize, take: usize) -> Result<Top> {
        let weight = self.compiled.weight(EnableScoring::disabled_from_searcher(&self.snapshot.tantivy))?;
        let mut total = 0u64;
        let mut hits = Vec::new();
        let mut left = skip;
        for (at, segment) in self.snapshot.segments.iter().enumerate() {
            if hits.len() < take {
                let mut scorer = weight.scorer(&segment.reader, 1.0)?;
                let mut doc = scorer.doc();
                let mut seen = 0u64;
                let ended = loop {
                    if doc == tantivy::TERMINATED {
                        break true;
                    }
                    if hits.len() == take {
                        break false;
                    }
                    if segment.is_alive(doc) {
                        seen += 1;
                        if left > 0 {
                            left -= 1;
                        } else {
                            hits.push(Found { segment: at as u32, doc, score: 1.0, distance: None });
                        }
                    }
                    doc = scorer.advance();
                };
                total += if ended { seen } else { u64::from(weight.count(&segment.reader)?) };
            } else {
                total += u64::from(weight.count(&segment.reader)?);
            }
        }
        Ok(Top { total, hits })
    }

    /// All entries, or a range of a number, by a number of one value each: read off the column in order. `None` for all else.
    fn by_one_column(&self, skip: usize, take: usize) -> Result<Option<Top>> {
        let [sort] = self.sorts else { return Ok(None) };
        let (field, domain) = match &sort.by {
            SortBy::Long(field) => (field, Domain::Long),
            SortBy::Double(field) => (field, Domain::Double),
            _ => return Ok(None),
        };
        let (low, high) = match self.query {
            Query::Range { field: of, low, high, .. } if of == field => match number_ends(low, high) {
                Some(Some((of, low, high))) if of == domain => (low, high),
                _ => return Ok(None),
            },
            Query::All => (0, u64::MAX),
            _ => return Ok(None),
        };
        let layout = &self.snapshot.layout;
        let place = layout.place(field);
        let mut runs = Vec::with_capacity(self.snapshot.segments.len());
        let mut total = 0;
        for (at, segment) in self.snapshot.segments.iter().enumerate() {
            let sorted = segment.sorted(layout, &place, domain)?;
            let is_whole = sorted.docs.len() == segment.max_doc() as usize;
            // Entries without a number sort among those with one.
            if !sorted.is_single || (matches!(self.query, Query::All) && !is_whole) {
                return Ok(None);
            }
            let range = sorted.range(low, high);
            total += match segment.reader.alive_bitset() {
                None => range.len() as u64,
                Some(_) if is_whole && range.len() == sorted.docs.len() => {
                    u64::from(segment.reader.num_docs())
                }
                Some(alive) => {
                    sorted.docs[range.clone()].iter().filter(|&&doc| alive.is_alive(doc)).count() as u64
                }
            };
            runs.push(Run { at: at as u32, segment, sorted, range, descending: sort.descending });
        }
        Ok(Some(Top { total, hits: merge_runs(runs, skip, take) }))
    }

    fn best_of_segment(
        &self,
        at: usize,
        sorts: &[Sort],
        wanted: usize,
        best: &mut Vec<Ranked>,
    ) -> Result<u64> {
        let segment = &self.snapshot.segments[at];
        let needs_score = sorts.iter().any(|sort| matches!(sort.by, SortBy::Score)) && self.scored;
        let keys =
            sorts.iter().map(|sort| Key::new(self.snapshot, segment, sort)).collect::<Result<Vec<Key>>>()?;
        let scoring = if needs_score {
            EnableScoring::enabled_from_searcher(&self.snapshot.tantivy)
        } else {
            EnableScoring::disabled_from_searcher(&self.snapshot.tantivy)
        };
        let weight = self.compiled.weight(scoring)?;
        let boosts = if needs_score { segment.boosts(&self.snapshot.layout)? } else { None };
        let mut total = 0u64;
        let from = best.len();
        match keys.as_slice() {
            [key] => {
                let mut heap = Best::new(wanted);
                let mut collect = |doc: DocId, score: f32| {
                    if segment.is_alive(doc) {
                        total += 1;
                        let score = boosts.as_ref().map_or(score, |boosts| score * boosts.of(doc));
                        heap.push((key.of(doc, score), doc, score.to_bits()));
                    }
                };
                visit(weight.as_ref(), segment, needs_score, &mut collect)?;
                best.extend(heap.finish().into_iter().map(|(key, doc, score)| Ranked {
                    segment: at as u32,
                    doc,
                    score: f32::from_bits(score),
                    keys: Keys::One(key),
                }));
            }
            _ => {
                let mut heap = Best::new(wanted);
                let mut collect = |doc: DocId, score: f32| {
                    if segment.is_alive(doc) {
                        total += 1;
                        let score = boosts.as_ref().map_or(score, |boosts| score * boosts.of(doc));
                        let first = keys[0].of(doc, score);
                        // Most entries lose by the first part already.
                        if heap.could_take(|(worst, _, _): &([u64; SORTS_MAX], DocId, u32)| first <= worst[0])
                        {
                            let mut all = [0; SORTS_MAX];
                            all[0] = first;
                            for (slot, key) in all[1..].iter_mut().zip(&keys[1..]) {
                                *slot = key.of(doc, score);
                            }
                            heap.push((all, doc, score.to_bits()));
                        }
                    }
                };
                visit(weight.as_ref(), segment, needs_score, &mut collect)?;
                best.extend(heap.finish().into_iter().map(|(all, doc, score)| Ranked {
                    segment: at as u32,
                    doc,
                    score: f32::from_bits(score),
                    keys: Keys::Several(all[..keys.len()].to_vec()),
                }));
            }
        }
        debug_assert!(best.len() - from <= wanted.max(1));
        Ok(total)
    }

    /// Orders the best of several segments.
    fn order_across(&self, sorts: &[Sort], best: &mut Vec<Ranked>) -> Result<()> {
        let layout = &self.snapshot.layout;
        let needs_text = sorts
            .iter()
            .any(|sort| matches!(sort.by, SortBy::Text(_) | SortBy::AlphaNumeric(_) | SortBy::Key));
        if !needs_text {
            best.sort_by(|left, right| left.keys.as_slice().cmp(right.keys.as_slice()));
            return Ok(());
        }
        let mut texts: Vec<(Ranked, Vec<Option<String>>)> = Vec::with_capacity(best.len());
        for ranked in best.drain(..) {
            let segment = &self.snapshot.segments[ranked.segment as usize];
            let mut parts = Vec::with_capacity(sorts.len());
            for sort in sorts {
                parts.push(match &sort.by {
                    SortBy::Text(field) | SortBy::AlphaNumeric(field) => {
                        let place = layout.place(field);
                        let ranks = segment.ranks(&place)?;
                        let rank = ranks.last[ranked.doc as usize];
                        let text =
                            (rank != NO_RANK).then(|| segment.term_of(&place, &ranks, rank)).transpose()?;
                        // In natural order null is as missing.
                        text.filter(|text| {
                            !matches!(sort.by, SortBy::AlphaNumeric(_)) || text != crate::encode::NULL
                        })
                    }
                    SortBy::Key => Some(self.snapshot.stored(segment, ranked.doc)?.0),
                    _ => None,
                });
            }
            texts.push((ranked, parts));
        }
        texts.sort_by(|(left, left_texts), (right, right_texts)| {
            for (at, sort) in sorts.iter().enumerate() {
                let (a, b) = (left_texts[at].as_deref(), right_texts[at].as_deref());
                let ordering = match &sort.by {
                    SortBy::Text(_) | SortBy::Key => directed(a.cmp(&b), sort.descending),
                    SortBy::AlphaNumeric(_) => {
                        let ordering = match (a, b) {
                            (Some(a), Some(b)) => crate::order::natural(a, b),
                            (a, b) => a.is_some().cmp(&b.is_some()),
                        };
                        directed(ordering, sort.descending)
                    }
                    // Turned around already.
                    _ => left.keys.as_slice()[at].cmp(&right.keys.as_slice()[at]),
                };
                if ordering != Ordering::Equal {
                    return ordering;
                }
            }
            Ordering::Equal
        });
        best.extend(texts.into_iter().map(|(ranked, _)| ranked));
        Ok(())
    }

    /// Scores and distances of the page, which were not needed for its order or are not kept in its keys.
    fn complete(&self, sorts: &[Sort], hits: &mut [Found]) -> Result<()> {
        if let Some(sort) = sorts.iter().find(|sort| matches!(sort.by, SortBy::Distance { .. })) {
            for hit in hits.iter_mut() {
                let segment = &self.snapshot.segments[hit.segment as usize];
                hit.distance = Key::new(self.snapshot, segment, sort)?.distance(hit.doc);
            }
        }
        let is_scored = sorts.iter().any(|sort| matches!(sort.by, SortBy::Score));
        if is_scored || !self.scored || hits.len() > 1024 {
            return Ok(());
        }
        let weight = self.compiled.weight(EnableScoring::enabled_from_searcher(&self.snapshot.tantivy))?;
        let mut order: Vec<usize> = (0..hits.len()).collect();
        order.sort_by_key(|&at| (hits[at].segment, hits[at].doc));
        let mut open = None;
        for at in order {
            let Found { segment, doc, .. } = hits[at];
            if open.as_ref().is_none_or(|(of, _)| *of != segment) {
                let reader = &self.snapshot.segments[segment as usize].reader;
                open = Some((segment, weight.scorer(reader, 1.0)?));
            }
            if let Some((_, scorer)) = &mut open
                && scorer.doc() <= doc
                && scorer.seek(doc) == doc
            {
                hits[at].score = scorer.score();
            }
        }
        Ok(())
    }
}

fn visit(
    weight: &dyn tantivy::query::Weight,
    segment: &Segment,
    needs_score: bool,
    collect: &mut dyn FnMut(DocId, f32),
) -> Result<()> {
    if needs_score {
        weight.for_each(&segment.reader, collect)?;
    } else {
        weight
            .for_each_no_score(&segment.reader, &mut |docs| docs.iter().for_each(|&doc| collect(doc, 1.0)))?;
    }
    Ok(())
}

fn directed(ordering: Ordering, descending: bool) -> Ordering {
    if descending { ordering.reverse() } else { ordering }
}

/// An entry with what it is ordered by.
struct Ranked {
    segment: u32,
    doc: DocId,
    score: f32,
    keys: Keys,
}

enum Keys {
    One(u64),
    Several(Vec<u64>),
}

impl Keys {
    fn as_slice(&self) -> &[u64] {
        match self {
            Keys::One(key) => std::slice::from_ref(key),
            Keys::Several(keys) => keys,
        }
    }
}

/// The smallest of many, in room for twice as many as are wanted: each entry costs a comparison, and now and then the lot is
/// cut in half in linear time.
struct Best<T> {
    wanted: usize,
    kept: Vec<T>,
    /// Nothing greater than this is among the smallest.
    worst: Option<T>,
}

impl<T: Ord + Clone> Best<T> {
    fn new(wanted: usize) -> Best<T> {
        Best { wanted, kept: Vec::new(), worst: None }
    }

    fn could_take(&self, better: impl FnOnce(&T) -> bool) -> bool {
        self.worst.as_ref().is_none_or(better)
    }

    fn push(&mut self, item: T) {
        if self.worst.as_ref().is_some_and(|worst| item >= *worst) {
            return;
        }
        self.kept.push(item);
        // 64 more, so that small pages are not cut all the time.
        if self.kept.len() >= self.wanted.saturating_mul(2).saturating_add(64) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.wanted == 0 {
            self.kept.clear();
            return;
        }
        if self.kept.len() > self.wanted {
            self.kept.select_nth_unstable(self.wanted - 1);
            self.kept.truncate(self.wanted);
            self.worst = self.kept.last().cloned();
        }
    }

    fn finish(mut self) -> Vec<T> {
        self.cut();
        self.kept.sort_unstable();
        self.kept
    }
}

/// One part of an order in one segment.
struct Key {
    by: KeyBy,
    descending: bool,
}

enum KeyBy {
    Number { numbers: Arc<Numbers>, domain: Domain },
    Text(Arc<Ranks>),
    AlphaNumeric { ranks: Arc<Ranks>, places: Arc<Vec<u32>> },
    Random { seed: u64 },
    Score,
    Distance(crate::spatial::DistanceFrom),
}

impl Key {
    fn new(snapshot: &Snapshot, segment: &Segment, sort: &Sort) -> Result<Key> {
        let layout = &snapshot.layout;
        let by = match &sort.by {
            SortBy::Text(field) => KeyBy::Text(segment.ranks(&layout.place(field))?),
            SortBy::AlphaNumeric(field) => {
                let place = layout.place(field);
                KeyBy::AlphaNumeric { ranks: segment.ranks(&place)?, places: segment.alphanumeric(&place)? }
            }
            SortBy::Long(field) => KeyBy::Number {
                numbers: segment.numbers(layout, &layout.place(field))?,
                domain: Domain::Long,
            },
            SortBy::Double(field) => KeyBy::Number {
                numbers: segment.numbers(layout, &layout.place(field))?,
                domain: Domain::Double,
            },
            SortBy::Random(seed) => {
                let mut hasher = DefaultHasher::new();
                match seed {
                    Some(seed) => hasher.write(seed.as_bytes()),
                    None => hasher.write_u64(chance()),
                }
                hasher.write_u64(segment.age);
                KeyBy::Random { seed: hasher.finish() }
            }
            SortBy::Score => KeyBy::Score,
            SortBy::Key => KeyBy::Text(segment.ranks(&layout.key_place())?),
            SortBy::Distance { field, latitude, longitude, round, units } => {
                let place: Arc<Place> = layout.place(field);
                let numbers = segment.numbers(layout, &place)?;
                KeyBy::Distance(crate::spatial::DistanceFrom::new(
                    &place, numbers, *latitude, *longitude, *round, *units,
                ))
            }
        };
        Ok(Key { by, descending: sort.descending })
    }

    /// What orders the entry: smaller is earlier.
    fn of(&self, doc: DocId, score: f32) -> u64 {
        let key = match &self.by {
            KeyBy::Number { numbers, domain } => numbers.sort_key(*domain, doc),
            // One more than the rank, so that missing ones are first.
            KeyBy::Text(ranks) => u64::from(ranks.last[doc as usize].wrapping_add(1)),
            KeyBy::AlphaNumeric { ranks, places } => match ranks.last[doc as usize] {
                NO_RANK => 0,
                rank => u64::from(places[rank as usize]),
            },
            KeyBy::Random { seed } => {
                let mut mixed = (seed ^ u64::from(doc)).wrapping_add(0x9E37_79B9_7F4A_7C15);
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                mixed ^ (mixed >> 31)
            }
            // The greatest first.
            KeyBy::Score => !f64::from(score).to_u64(),
            KeyBy::Distance(from) => from.sort_key(doc).to_u64(),
        };
        if self.descending { !key } else { key }
    }

    fn distance(&self, doc: DocId) -> Option<Distance> {
        match &self.by {
            KeyBy::Distance(from) => from.distance(doc),
            _ => None,
        }
    }
}

/// A number by chance.
fn chance() -> u64 {
    use std::hash::BuildHasher;
    std::hash::RandomState::new().hash_one(0)
}

/// The part of a segment's sorted numbers that a query wants.
struct Run<'a> {
    at: u32,
    segment: &'a Segment,
    sorted: Arc<Sorted>,
    range: std::ops::Range<usize>,
    descending: bool,
}

impl Run<'_> {
    /// The entry that is next, and what orders it among other segments' entries.
    fn peek(&mut self) -> Option<(u64, u32, DocId)> {
        loop {
            if self.range.is_empty() {
                return None;
            }
            let place = if self.descending { self.range.end - 1 } else { self.range.start };
            let doc = self.sorted.docs[place];
            if self.segment.is_alive(doc) {
                let value = self.sorted.value(place);
                return Some((if self.descending { !value } else { value }, self.at, doc));
            }
            self.step();
        }
    }

    /// How many places come before all those whose order is `bound` or greater.
    fn places_before(&self, bound: u64) -> usize {
        match self.descending {
            false => self.sorted.places_below(&self.range, bound),
            true => match (!bound).checked_add(1) {
                Some(low) => self.range.len() - self.sorted.places_below(&self.range, low),
                None => 0,
            },
        }
    }

    /// Passes over those places; how many of them are living entries.
    fn pass(&mut self, bound: u64) -> usize {
        let count = self.places_before(bound);
        let passed = if self.descending {
            self.range.end -= count;
            self.range.end..self.range.end + count
        } else {
            self.range.start += count;
            self.range.start - count..self.range.start
        };
        match self.segment.reader.alive_bitset() {
            None => count,
            Some(alive) => self.sorted.docs[passed].iter().filter(|&&doc| alive.is_alive(doc)).count(),
        }
    }

    fn step(&mut self) {
        if self.descending {
            self.range.end -= 1;
        } else {
            self.range.start += 1;
        }
    }
}

/// So many entries are passed over one by one.
const STEPS_MAX: usize = 8;

/// Moves runs past the first `skip` entries or fewer, by what orders them; how many are still to be passed over.
///
/// What is passed over ends where the value changes, so that it does not matter how equal ones are ordered. Deleted entries are
/// found only by looking: each round takes the places that would be right without any, and the next what they fell short of.
fn pass_over(runs: &mut [Run<'_>], skip: usize) -> usize {
    let mut left = skip;
    while left > STEPS_MAX {
        let places_before = |bound| runs.iter().map(|run| run.places_before(bound)).sum::<usize>();
        // The greatest bound with no more places before it than are left.
        let (mut low, mut high) = (0, u64::MAX);
        while low < high {
            let middle = high - (high - low) / 2;
            match places_before(middle) <= left {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        if places_before(low) == 0 {
            break;
        }
        left -= runs.iter_mut().map(|run| run.pass(low)).sum::<usize>();
    }
    left
}

/// A page of several sorted runs.
fn merge_runs(mut runs: Vec<Run<'_>>, skip: usize, take: usize) -> Vec<Found> {
    let mut hits = Vec::new();
    let mut left = pass_over(&mut runs, skip);
    // Backwards, entries with the same number would come in the wrong order: each such group is turned around as it is taken.
    if runs.iter().any(|run| run.descending) {
        return merge_descending(runs, left, take);
    }
    while hits.len() < take {
        let next = runs.iter_mut().enumerate().filter_map(|(at, run)| run.peek().map(|key| (key, at))).min();
        let Some(((_, segment, doc), at)) = next else { break };
        runs[at].step();
        if left > 0 {
            left -= 1;
        } else {
            hits.push(Found { segment, doc, score: 1.0, distance: None });
        }
    }
    hits
}

fn merge_descending(mut runs: Vec<Run<'_>>, skip: usize, take: usize) -> Vec<Found> {
    let wanted = skip.saturating_add(take);
    let mut ordered: Vec<Found> = Vec::new();
    let mut group: Vec<(u32, DocId)> = Vec::new();
    let mut group_value = None;
    let flush = |group: &mut Vec<(u32, DocId)>, ordered: &mut Vec<Found>| {
        group.sort_unstable();
        ordered.extend(group.drain(..).map(|(segment, doc)| Found {
            segment,
            doc,
            score: 1.0,
            distance: None,
        }));
    };
    loop {
        let next = runs.iter_mut().enumerate().filter_map(|(at, run)| run.peek().map(|key| (key, at))).min();
        let Some(((value, segment, doc), at)) = next else { break };
        if group_value != Some(value) {
            flush(&mut group, &mut ordered);
            if ordered.len() >= wanted {
                break;
            }
            group_value = Some(value);
        }
        runs[at].step();
        group.push((segment, doc));
    }
    flush(&mut group, &mut ordered);
    ordered.into_iter().skip(skip).take(take).collect()
}
