//! A snapshot of an index, and the questions that it answers.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::index::SegmentId;
use tantivy::query::{EnableScoring, Query as TantivyQuery};
use tantivy::{DocAddress, DocId};

use crate::cells::Stored;
use crate::compile::{Compiler, is_constant};
use crate::error::{Error, Result};
use crate::layout::{Layout, SEPARATOR};
use crate::query::Query;
use crate::request::{Hit, Page, Sort};
use crate::segment::{Segment, SegmentCaches};
use crate::stream::Stream;
use crate::top;

/// The segments of one commit, the oldest first.
pub(crate) struct Snapshot {
    pub(crate) layout: Arc<Layout>,
    pub(crate) tantivy: tantivy::Searcher,
    pub(crate) segments: Arc<Vec<Segment>>,
    pub(crate) by_id: Arc<HashMap<SegmentId, usize>>,
}

impl Snapshot {
    /// The snapshot of tantivy's searcher; what was worked out for segments of `before` goes on.
    pub(crate) fn new(
        layout: &Arc<Layout>,
        tantivy: tantivy::Searcher,
        before: Option<&Snapshot>,
    ) -> Result<Snapshot> {
        let mut segments = Vec::with_capacity(tantivy.segment_readers().len());
        for (ord, reader) in tantivy.segment_readers().iter().enumerate() {
            let known = before
                .and_then(|before| before.by_id.get(&reader.segment_id()).map(|&at| &before.segments[at]));
            let (age, caches) = match known {
                Some(segment) => (segment.age, Arc::clone(&segment.caches)),
                None => {
                    let name = layout.tantivy.get_field_name(layout.order);
                    let age = reader.fast_fields().u64(name)?.first(0).unwrap_or(u64::MAX);
                    (age, Arc::new(SegmentCaches::new(reader.max_doc())))
                }
            };
            segments.push(Segment { reader: reader.clone(), ord: ord as u32, age, caches });
        }
        segments.sort_by_key(|segment| segment.age);
        let by_id =
            segments.iter().enumerate().map(|(at, segment)| (segment.reader.segment_id(), at)).collect();
        Ok(Snapshot {
            layout: Arc::clone(layout),
            tantivy,
            segments: Arc::new(segments),
            by_id: Arc::new(by_id),
        })
    }

    /// Calls `each` for every entry that a query finds, in the order of insertion.
    pub(crate) fn each_match(
        &self,
        query: &dyn TantivyQuery,
        mut each: impl FnMut(&Segment, DocId) -> Result<()>,
    ) -> Result<()> {
        let weight = query.weight(EnableScoring::disabled_from_searcher(&self.tantivy))?;
        for segment in self.segments.iter() {
            let mut failed = None;
            weight.for_each_no_score(&segment.reader, &mut |docs| {
                for &doc in docs {
                    if failed.is_none()
                        && segment.is_alive(doc)
                        && let Err(error) = each(segment, doc)
                    {
                        failed = Some(error);
                    }
                }
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(())
    }

    /// The key and the caller's bytes of an entry.
    pub(crate) fn stored(&self, segment: &Segment, doc: DocId) -> Result<(String, Vec<u8>)> {
        if let Some(key) = segment.caches.keys.get(doc) {
            return Ok((key, Vec::new()));
        }
        let stored: Stored = self.tantivy.doc(DocAddress::new(segment.ord, doc))?;
        let (key, stored) = stored.read().ok_or_else(|| {
            Error::Library(tantivy::TantivyError::InternalError("an entry without a key".to_owned()))
        })?;
        if stored.is_empty() {
            segment.caches.keys.put(doc, &key);
        }
        Ok((key, stored))
    }
}

/// Answers questions about the state of an index at one commit. Cheap to get and to clone; it keeps the files of its segments.
#[derive(Clone)]
pub struct Searcher {
    pub(crate) snapshot: Arc<Snapshot>,
}

impl Searcher {
    pub(crate) fn new(snapshot: Arc<Snapshot>) -> Searcher {
        Searcher { snapshot }
    }

    pub(crate) fn compiler(&self) -> Compiler<'_> {
        Compiler { snapshot: &self.snapshot }
    }

    /// The number of entries.
    #[must_use]
    pub fn entries_count(&self) -> u64 {
        self.snapshot.tantivy.num_docs()
    }

    /// The number of segments.
    #[must_use]
    pub fn segments_count(&self) -> usize {
        self.snapshot.segments.len()
    }

    /// How many entries a query finds.
    pub fn count(&self, query: &Query) -> Result<u64> {
        if matches!(query, Query::All) {
            return Ok(self.entries_count());
        }
        let compiled = self.compiler().compile(query)?;
        self.count_compiled(compiled.as_ref())
    }

    pub(crate) fn count_compiled(&self, compiled: &dyn TantivyQuery) -> Result<u64> {
        let weight = compiled.weight(EnableScoring::disabled_from_searcher(&self.snapshot.tantivy))?;
        let mut count = 0;
        for segment in self.snapshot.segments.iter() {
            count += u64::from(weight.count(&segment.reader)?);
        }
        Ok(count)
    }

    /// The page of `take` hits after the first `skip`, in the order of `sorts`: without any by score, and where nothing is scored
    /// in the order of insertion. The total counts all entries that match, exactly. With `distinct_keys` only the first hit of
    /// each key counts for the page, and the page says how many were passed over.
    pub fn search(
        &self,
        query: &Query,
        sorts: &[Sort],
        skip: usize,
        take: usize,
        distinct_keys: bool,
    ) -> Result<Page> {
        let compiled = self.compiler().compile(query)?;
        let scored = !is_constant(query, &self.snapshot.layout);
        if take == 0 {
            let total = self.count_compiled(compiled.as_ref())?;
            return Ok(Page { total, ..Page::default() });
        }
        let request =
            top::Request { snapshot: &self.snapshot, query, compiled: compiled.as_ref(), sorts, scored };
        if !distinct_keys {
            let found = request.top(skip, take)?;
            let hits = self.hits(&found.hits)?;
            return Ok(Page { total: found.total, skipped_duplicates: 0, hits });
        }
        // How many hits it takes to fill the page is not known: twice as many until it is full.
        let wanted = skip.saturating_add(take);
        let mut width = wanted.saturating_mul(2).saturating_add(16);
        loop {
            let found = request.top(0, width)?;
            let mut seen = std::collections::HashSet::new();
            let mut distinct = Vec::new();
            let mut skipped_duplicates = 0;
            for hit in &found.hits {
                let segment = &self.snapshot.segments[hit.segment as usize];
                let key = segment.key_hashes(&self.snapshot.layout)?[hit.doc as usize];
                if !seen.insert(key) {
                    skipped_duplicates += 1;
                } else {
                    distinct.push(*hit);
                    if distinct.len() == wanted {
                        break;
                    }
                }
            }
            if distinct.len() == wanted || found.hits.len() as u64 >= found.total {
                let page = distinct.get(skip.min(distinct.len())..).unwrap_or_default();
                return Ok(Page { total: found.total, skipped_duplicates, hits: self.hits(page)? });
            }
            width = width.saturating_mul(2);
        }
    }

    pub(crate) fn hits(&self, found: &[top::Found]) -> Result<Vec<Hit>> {
        found.iter().map(|found| self.hit(found)).collect()
    }

    pub(crate) fn hit(&self, found: &top::Found) -> Result<Hit> {
        let segment = &self.snapshot.segments[found.segment as usize];
        let (key, stored) = self.snapshot.stored(segment, found.doc)?;
        Ok(Hit {
            key,
            score: found.score,
            stored,
            distance: found.distance,
            place: (found.segment, found.doc),
        })
    }

    /// All hits, one after the other, in the order of `sorts`. Without an order it takes no memory for what is still to come, and
    /// begins at once: it goes by insertion and scores nothing. With one it holds a few bytes for each hit.
    pub fn stream(&self, query: &Query, sorts: &[Sort]) -> Result<Stream> {
        let compiled = self.compiler().compile(query)?;
        Stream::new(self.clone(), query, compiled, sorts)
    }

    /// Up to `count` terms of a field, by their bytes, from the one after `after` on.
    pub fn terms(&self, field: &str, after: Option<&str>, count: usize) -> Result<Vec<String>> {
        let place = self.snapshot.layout.place(field);
        let mut terms = std::collections::BTreeSet::new();
        for segment in self.snapshot.segments.iter() {
            let inverted = segment.reader.inverted_index(place.terms)?;
            let mut range = match after {
                Some(after) => inverted.terms().range().gt(place.term(after)),
                None => inverted.terms().range().ge(place.prefix.as_bytes()),
            };
            if let Some(end) = crate::segment::after_prefix(place.prefix.as_bytes()) {
                range = range.lt(end);
            }
            let mut stream = range.into_stream().map_err(tantivy::TantivyError::from)?;
            let mut taken = 0;
            while taken < count && stream.advance() {
                let info = stream.value().clone();
                // Terms of deleted entries stay until their segment is merged.
                if segment.reader.has_deletes() && !has_living(segment, &inverted, &info)? {
                    continue;
                }
                taken += 1;
                let text = &stream.key()[place.prefix.len()..];
                terms.insert(String::from_utf8_lossy(text).into_owned());
            }
        }
        Ok(terms.into_iter().take(count).collect())
    }

    /// The names of all fields with terms, those that were known beforehand first.
    pub fn field_names(&self) -> Result<Vec<String>> {
        let layout = &self.snapshot.layout;
        let mut names: Vec<String> = Vec::new();
        for place in layout.places() {
            for segment in self.snapshot.segments.iter() {
                if segment.reader.inverted_index(place.terms)?.terms().num_terms() > 0 {
                    names.push(place.name.clone());
                    break;
                }
            }
        }
        let mut shared = std::collections::BTreeSet::new();
        for segment in self.snapshot.segments.iter() {
            for field in [layout.terms, layout.words] {
                let inverted = segment.reader.inverted_index(field)?;
                // From the first term of one field to the first of the next.
                let mut from: Vec<u8> = Vec::new();
                loop {
                    let mut stream = inverted
                        .terms()
                        .range()
                        .ge(&from)
                        .into_stream()
                        .map_err(tantivy::TantivyError::from)?;
                    if !stream.advance() {
                        break;
                    }
                    let term = String::from_utf8_lossy(stream.key());
                    let name = term.split(SEPARATOR).next().unwrap_or_default().to_owned();
                    from = name.as_bytes().to_vec();
                    from.push(1);
                    shared.insert(name);
                }
            }
        }
        names.extend(shared);
        Ok(names)
    }
}

impl Searcher {
    /// How the score of a hit of a query came about, as JSON text: values, what they are, and what they are made of. `place` is the
    /// hit's.
    pub fn explain(&self, query: &Query, place: (u32, u32)) -> Result<String> {
        let Some(segment) = self.snapshot.segments.get(place.0 as usize) else {
            return Err(Error::InvalidQuery("the hit is of another searcher".to_owned()));
        };
        let compiled = self.compiler().compile(query)?;
        let explanation = compiled.explain(&self.snapshot.tantivy, DocAddress::new(segment.ord, place.1))?;
        Ok(explanation.to_pretty_json())
    }

    /// The terms of an entry by field, as they stand in the index.
    pub fn entry(&self, place: (u32, u32)) -> Result<Vec<(String, Vec<String>)>> {
        let found =
            self.snapshot.segments.get(place.0 as usize).filter(|segment| place.1 < segment.max_doc());
        let Some(segment) = found else {
            return Err(Error::InvalidQuery("the hit is of another searcher".to_owned()));
        };
        let mut fields = Vec::new();
        for name in self.field_names()? {
            let field = self.snapshot.layout.place(&name);
            let ranks = segment.ranks(&field)?;
            let terms = ranks
                .of(place.1)
                .iter()
                .map(|&rank| segment.term_of(&field, &ranks, rank))
                .collect::<tantivy::Result<Vec<String>>>()?;
            if !terms.is_empty() {
                fields.push((name, terms));
            }
        }
        Ok(fields)
    }
}

fn has_living(
    segment: &Segment,
    inverted: &tantivy::InvertedIndexReader,
    info: &tantivy::postings::TermInfo,
) -> Result<bool> {
    use tantivy::DocSet as _;
    let mut postings = inverted
        .read_postings_from_terminfo(info, tantivy::schema::IndexRecordOption::Basic)
        .map_err(tantivy::TantivyError::from)?;
    let mut doc = postings.doc();
    while doc != tantivy::TERMINATED {
        if segment.is_alive(doc) {
            return Ok(true);
        }
        doc = postings.advance();
    }
    Ok(false)
}
