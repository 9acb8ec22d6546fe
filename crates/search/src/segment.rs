//! One segment of a snapshot, and what is worked out from its files when a query first needs it: opened columns, the order of
//! terms by entry, numbers in order. All of it is kept as long as the segment lives.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use parking_lot::RwLock;
use tantivy::columnar::{Cardinality, Column, MonotonicallyMappableToU64, StrColumn};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, SegmentReader, TERMINATED};

use crate::docs::{Bits, Docs, Gather};
use crate::keys::Keys;
use crate::layout::{Layout, Part, Place};

/// The rank of an entry without a term.
pub(crate) const NO_RANK: u32 = u32::MAX;

/// So many terms of a range are read one by one.
const TERMS_READ_MAX: usize = 128;

/// A segment as a snapshot sees it.
pub(crate) struct Segment {
    pub(crate) reader: SegmentReader,
    /// Its place among tantivy's segments.
    pub(crate) ord: u32,
    /// The number of its first entry.
    pub(crate) age: u64,
    pub(crate) caches: Arc<SegmentCaches>,
}

/// What was worked out of a segment. Deletes do not change it.
pub(crate) struct SegmentCaches {
    numbers: Cache<Arc<Numbers>>,
    ranks: Cache<Arc<Ranks>>,
    present: Cache<Arc<Bits>>,
    sorted: Cache<Arc<Sorted>>,
    alphanumeric: Cache<Arc<Vec<u32>>>,
    terms: Cache<Option<Arc<Terms>>>,
    key_hashes: RwLock<Option<Arc<Vec<u64>>>>,
    pub(crate) keys: Keys,
}

impl SegmentCaches {
    /// For a segment of so many entries.
    pub(crate) fn new(entries: DocId) -> SegmentCaches {
        SegmentCaches {
            numbers: Cache::default(),
            ranks: Cache::default(),
            present: Cache::default(),
            sorted: Cache::default(),
            alphanumeric: Cache::default(),
            terms: Cache::default(),
            key_hashes: RwLock::default(),
            keys: Keys::new(entries),
        }
    }
}

type Cache<T> = RwLock<HashMap<(String, u8), T>>;

fn cached<T: Clone, E>(
    cache: &Cache<T>,
    name: &str,
    kind: u8,
    make: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    // A key with a borrowed name would need a map of its own; the copy is nothing beside a query.
    let key = (name.to_owned(), kind);
    if let Some(found) = cache.read().get(&key) {
        return Ok(found.clone());
    }
    // Two queries may make it at once: the one that comes second wins, and both are right.
    let made = make()?;
    cache.write().insert(key, made.clone());
    Ok(made)
}

/// The columns of a field.
#[derive(Default)]
pub(crate) struct Numbers {
    pub(crate) longs: Option<Column<i64>>,
    pub(crate) doubles: Option<Column<f64>>,
    pub(crate) dates: Option<Column<i64>>,
    pub(crate) longitudes: Option<Column<f64>>,
    pub(crate) latitudes: Option<Column<f64>>,
    pub(crate) shapes: Option<StrColumn>,
    pub(crate) boosts: Option<Column<f64>>,
}

/// A domain in which numbers compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Domain {
    Long,
    Double,
    Date,
}

impl Numbers {
    /// The entry's values in a domain, as numbers that order the same.
    pub(crate) fn each(&self, domain: Domain, doc: DocId, mut each: impl FnMut(u64)) {
        match domain {
            Domain::Long => {
                if let Some(longs) = &self.longs {
                    longs.values_for_doc(doc).for_each(|value| each(value.to_u64()));
                }
            }
            Domain::Date => {
                if let Some(dates) = &self.dates {
                    dates.values_for_doc(doc).for_each(|value| each(value.to_u64()));
                }
            }
            Domain::Double => {
                let mut any = false;
                if let Some(doubles) = &self.doubles {
                    doubles.values_for_doc(doc).for_each(|value| {
                        any = true;
                        each(value.to_u64());
                    });
                }
                if !any && let Some(longs) = &self.longs {
                    longs.values_for_doc(doc).for_each(|value| each((value as f64).to_u64()));
                }
            }
        }
    }

    /// Adds the values of entries that have one each at most ([`Numbers::is_single`]) to `values`.
    pub(crate) fn append(&self, domain: Domain, docs: &[DocId], values: &mut Vec<u64>) {
        match (domain, &self.longs, &self.doubles) {
            (Domain::Date, ..) => append_first(self.dates.as_ref(), docs, values),
            (Domain::Long, longs, _) => append_first(longs.as_ref(), docs, values),
            (Domain::Double, None, doubles) => append_first(doubles.as_ref(), docs, values),
            (Domain::Double, longs, None) => {
                let from = values.len();
                append_first(longs.as_ref(), docs, values);
                values[from..].iter_mut().for_each(|value| *value = (i64::from_u64(*value) as f64).to_u64());
            }
            _ => docs.iter().for_each(|&doc| self.each(domain, doc, |value| values.push(value))),
        }
    }

    /// The entry's values as doubles.
    pub(crate) fn doubles(&self, doc: DocId, mut each: impl FnMut(f64)) {
        self.each(Domain::Double, doc, |value| each(f64::from_u64(value)));
    }

    /// The greatest value, by which entries are sorted; 0 for none.
    pub(crate) fn sort_key(&self, domain: Domain, doc: DocId) -> u64 {
        if domain == Domain::Long
            && let Some(longs) = &self.longs
            && longs.get_cardinality() != Cardinality::Multivalued
        {
            return longs.first(doc).unwrap_or(0).to_u64();
        }
        let mut greatest = None;
        self.each(domain, doc, |value| greatest = greatest.max(Some(value)));
        match domain {
            Domain::Long | Domain::Date => greatest.unwrap_or_else(|| 0i64.to_u64()),
            // Minus zero is no different from zero here.
            Domain::Double => (greatest.map_or(0.0, f64::from_u64) + 0.0).to_u64(),
        }
    }

    /// Whether no entry has several values in the domain.
    pub(crate) fn is_single(&self, domain: Domain) -> bool {
        let single = |column: &Option<Column<i64>>| {
            column.as_ref().is_none_or(|column| column.get_cardinality() != Cardinality::Multivalued)
        };
        match domain {
            Domain::Long => single(&self.longs),
            Domain::Date => single(&self.dates),
            Domain::Double => {
                single(&self.longs)
                    && self
                        .doubles
                        .as_ref()
                        .is_none_or(|column| column.get_cardinality() != Cardinality::Multivalued)
            }
        }
    }
}

/// Adds the first value of each entry that has one.
fn append_first<T>(column: Option<&Column<T>>, docs: &[DocId], values: &mut Vec<u64>)
where
    T: MonotonicallyMappableToU64 + PartialOrd + Copy + std::fmt::Debug + Send + Sync + 'static,
{
    let Some(column) = column else { return };
    let mut found = [None; 64];
    for docs in docs.chunks(found.len()) {
        let found = &mut found[..docs.len()];
        found.fill(None);
        column.first_vals(docs, found);
        values.extend(found.iter().flatten().map(|value| value.to_u64()));
    }
}

/// All values of a field in one domain, in order.
pub(crate) struct Sorted {
    values: Vec<u64>,
    pub(crate) docs: Vec<DocId>,
    /// Whether each entry is there at most once.
    pub(crate) is_single: bool,
}

impl Sorted {
    /// The places of the values between two, both included.
    pub(crate) fn range(&self, low: u64, high: u64) -> std::ops::Range<usize> {
        let begin = self.values.partition_point(|&value| value < low);
        let end = self.values.partition_point(|&value| value <= high);
        begin..end.max(begin)
    }

    /// How many of some places hold values below a bound.
    pub(crate) fn places_below(&self, places: &std::ops::Range<usize>, bound: u64) -> usize {
        self.values[places.clone()].partition_point(|&value| value < bound)
    }

    pub(crate) fn value(&self, at: usize) -> u64 {
        self.values[at]
    }
}

/// The terms of each entry as their places in the dictionary.
pub(crate) struct Ranks {
    /// The last term of each entry, by which it is sorted; [`NO_RANK`] for none.
    pub(crate) last: Vec<u32>,
    /// All terms, where entries have several.
    several: Option<(Vec<u32>, Vec<u32>)>,
    /// The dictionary's number of the field's first term.
    pub(crate) base: u64,
    /// How many terms the field has.
    pub(crate) count: u32,
}

impl Ranks {
    /// The ranks of an entry.
    pub(crate) fn of(&self, doc: DocId) -> &[u32] {
        match &self.several {
            Some((starts, ranks)) => &ranks[starts[doc as usize] as usize..starts[doc as usize + 1] as usize],
            None => {
                let last = std::slice::from_ref(&self.last[doc as usize]);
                if last[0] == NO_RANK { &[] } else { last }
            }
        }
    }

    /// Whether no entry has several terms.
    pub(crate) fn is_single(&self) -> bool {
        self.several.is_none()
    }
}

/// Texts of a field's terms are kept up to so many bytes.
const TEXTS_SIZE_MAX: usize = 4 << 20;

/// The terms of a field by their ranks, and how many entries have each, deleted ones included.
#[derive(Default)]
pub(crate) struct Terms {
    text: String,
    ends: Vec<usize>,
    pub(crate) counts: Vec<u32>,
}

impl Terms {
    pub(crate) fn text(&self, rank: usize) -> &str {
        let start = rank.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[rank]]
    }

    fn add(&mut self, term: &[u8], count: u32) {
        self.text.push_str(&String::from_utf8_lossy(term));
        self.ends.push(self.text.len());
        self.counts.push(count);
    }
}

impl Segment {
    /// The terms of a field; `None` where they are too long to be kept.
    pub(crate) fn terms(&self, place: &Place) -> tantivy::Result<Option<Arc<Terms>>> {
        cached(&self.caches.terms, &place.name, 0, || {
            let mut terms = Terms::default();
            let is_whole = self.each_term(place, |term, count| {
                terms.add(term, count);
                terms.text.len() <= TEXTS_SIZE_MAX
            })?;
            Ok(is_whole.then(|| Arc::new(terms)))
        })
    }

    /// Calls `each` for the terms of a field in order, with how many entries have each, until it says no; whether it never did.
    pub(crate) fn each_term(
        &self,
        place: &Place,
        mut each: impl FnMut(&[u8], u32) -> bool,
    ) -> tantivy::Result<bool> {
        let inverted = self.reader.inverted_index(place.terms)?;
        let mut stream = prefixed(inverted.terms(), &place.prefix)?;
        while stream.advance() {
            if !each(&stream.key()[place.prefix.len()..], stream.value().doc_freq) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) fn max_doc(&self) -> DocId {
        self.reader.max_doc()
    }

    pub(crate) fn is_alive(&self, doc: DocId) -> bool {
        self.reader.alive_bitset().is_none_or(|alive| alive.is_alive(doc))
    }

    /// The columns of a field.
    pub(crate) fn numbers(&self, layout: &Layout, place: &Place) -> tantivy::Result<Arc<Numbers>> {
        cached(&self.caches.numbers, &place.name, 0, || {
            let fast = self.reader.fast_fields();
            let name = |part| place.column_name(layout, part);
            // A column of a field of its own is there even when it is empty.
            fn some<T>(column: Option<Column<T>>) -> Option<Column<T>>
            where
                T: PartialOrd + Copy + std::fmt::Debug + Send + Sync + 'static,
            {
                column.filter(|column| column.values.num_vals() > 0)
            }
            Ok(Arc::new(Numbers {
                longs: some(fast.column_opt::<i64>(&name(Part::Long))?),
                doubles: some(fast.column_opt::<f64>(&name(Part::Double))?),
                dates: some(fast.column_opt::<i64>(&name(Part::Date))?),
                longitudes: some(fast.column_opt::<f64>(&name(Part::Longitude))?),
                latitudes: some(fast.column_opt::<f64>(&name(Part::Latitude))?),
                boosts: some(fast.column_opt::<f64>(&name(Part::Boost))?),
                shapes: fast.str(&name(Part::Shape))?.filter(|shapes| shapes.num_terms() > 0),
            }))
        })
    }

    /// All values of a field in order.
    pub(crate) fn sorted(
        &self,
        layout: &Layout,
        place: &Place,
        domain: Domain,
    ) -> tantivy::Result<Arc<Sorted>> {
        cached(&self.caches.sorted, &place.name, domain as u8, || {
            let numbers = self.numbers(layout, place)?;
            let mut pairs = Vec::new();
            for doc in 0..self.max_doc() {
                numbers.each(domain, doc, |value| pairs.push((value, doc)));
            }
            pairs.sort_unstable();
            pairs.dedup();
            let (values, docs) = pairs.into_iter().unzip();
            Ok(Arc::new(Sorted { values, docs, is_single: numbers.is_single(domain) }))
        })
    }

    /// The entries with a value between two, both included.
    pub(crate) fn between(
        &self,
        layout: &Layout,
        place: &Place,
        domain: Domain,
        low: u64,
        high: u64,
    ) -> tantivy::Result<Docs> {
        if low > high {
            return Ok(Docs::None);
        }
        let sorted = self.sorted(layout, place, domain)?;
        let range = sorted.range(low, high);
        let mut gather = Gather::new(self.max_doc());
        sorted.docs[range].iter().for_each(|&doc| gather.insert(doc));
        Ok(gather.finish())
    }

    /// The terms of each entry of a field.
    pub(crate) fn ranks(&self, place: &Place) -> tantivy::Result<Arc<Ranks>> {
        cached(&self.caches.ranks, &place.name, 0, || {
            self.read_ranks(place.terms, &place.prefix).map(Arc::new)
        })
    }

    fn read_ranks(&self, field: Field, prefix: &str) -> tantivy::Result<Ranks> {
        let inverted = self.reader.inverted_index(field)?;
        let size = self.max_doc() as usize;
        let mut last = vec![NO_RANK; size];
        let mut extra: Vec<(DocId, u32)> = Vec::new();
        let mut base = None;
        let mut count = 0u32;
        let mut stream = prefixed(inverted.terms(), prefix)?;
        while stream.advance() {
            base.get_or_insert(stream.term_ord());
            let mut postings =
                inverted.read_postings_from_terminfo(stream.value(), IndexRecordOption::Basic)?;
            let mut doc = postings.doc();
            while doc != TERMINATED {
                let slot = &mut last[doc as usize];
                if *slot != NO_RANK {
                    extra.push((doc, *slot));
                }
                *slot = count;
                doc = postings.advance();
            }
            count += 1;
        }
        let several = (!extra.is_empty()).then(|| {
            let mut starts = vec![0u32; size + 1];
            for &(doc, _) in &extra {
                starts[doc as usize + 1] += 1;
            }
            for (doc, rank) in last.iter().enumerate() {
                starts[doc + 1] += u32::from(*rank != NO_RANK);
            }
            for at in 0..size {
                starts[at + 1] += starts[at];
            }
            // Extras come in the order of terms; the last term of an entry fills what is left.
            let mut next = starts.clone();
            let mut ranks = vec![0; starts[size] as usize];
            for &(doc, rank) in &extra {
                ranks[next[doc as usize] as usize] = rank;
                next[doc as usize] += 1;
            }
            for (doc, rank) in last.iter().enumerate() {
                if *rank != NO_RANK {
                    ranks[next[doc] as usize] = *rank;
                }
            }
            (starts, ranks)
        });
        Ok(Ranks { last, several, base: base.unwrap_or(0), count })
    }

    /// The term of a rank.
    pub(crate) fn term_of(&self, place: &Place, ranks: &Ranks, rank: u32) -> tantivy::Result<String> {
        let inverted = self.reader.inverted_index(place.terms)?;
        let mut bytes = Vec::new();
        inverted.terms().ord_to_term(ranks.base + u64::from(rank), &mut bytes)?;
        let text = bytes.get(place.prefix.len()..).unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// For each rank, its place among the terms in natural order: runs of digits as numbers. 0 is for entries without a
    /// term and null.
    pub(crate) fn alphanumeric(&self, place: &Place) -> tantivy::Result<Arc<Vec<u32>>> {
        cached(&self.caches.alphanumeric, &place.name, 0, || {
            let inverted = self.reader.inverted_index(place.terms)?;
            let mut terms: Vec<(String, u32)> = Vec::new();
            let mut stream = prefixed(inverted.terms(), &place.prefix)?;
            while stream.advance() {
                let text = String::from_utf8_lossy(&stream.key()[place.prefix.len()..]).into_owned();
                terms.push((text, terms.len() as u32));
            }
            let mut places = vec![0; terms.len()];
            terms.sort_by(|(left, _), (right, _)| crate::order::natural(left, right));
            for (at, (text, rank)) in terms.iter().enumerate() {
                places[*rank as usize] = if text == crate::encode::NULL { 0 } else { at as u32 + 1 };
            }
            Ok(Arc::new(places))
        })
    }

    /// The entries in which a field is there.
    pub(crate) fn present(&self, layout: &Layout, place: &Place) -> tantivy::Result<Arc<Bits>> {
        cached(&self.caches.present, &place.name, 0, || {
            let mut bits = Bits::new(self.max_doc());
            let inverted = self.reader.inverted_index(place.terms)?;
            let mut stream = prefixed(inverted.terms(), &place.prefix)?;
            while stream.advance() {
                let mut postings =
                    inverted.read_postings_from_terminfo(stream.value(), IndexRecordOption::Basic)?;
                let mut doc = postings.doc();
                while doc != TERMINATED {
                    bits.insert(doc);
                    doc = postings.advance();
                }
            }
            let numbers = self.numbers(layout, place)?;
            if let Some(latitudes) = &numbers.latitudes {
                (0..self.max_doc())
                    .filter(|&doc| latitudes.index.has_value(doc))
                    .for_each(|doc| bits.insert(doc));
            }
            if let Some(shapes) = &numbers.shapes {
                (0..self.max_doc())
                    .filter(|&doc| shapes.ords().index.has_value(doc))
                    .for_each(|doc| bits.insert(doc));
            }
            Ok(Arc::new(bits))
        })
    }

    /// A hash of each entry's key.
    pub(crate) fn key_hashes(&self, layout: &Layout) -> tantivy::Result<Arc<Vec<u64>>> {
        if let Some(hashes) = &*self.caches.key_hashes.read() {
            return Ok(Arc::clone(hashes));
        }
        let inverted = self.reader.inverted_index(layout.key)?;
        let mut hashes = vec![0; self.max_doc() as usize];
        let mut stream = inverted.terms().stream()?;
        while stream.advance() {
            let mut hasher = DefaultHasher::new();
            hasher.write(stream.key());
            let hash = hasher.finish();
            let mut postings =
                inverted.read_postings_from_terminfo(stream.value(), IndexRecordOption::Basic)?;
            let mut doc = postings.doc();
            while doc != TERMINATED {
                hashes[doc as usize] = hash;
                doc = postings.advance();
            }
        }
        let hashes = Arc::new(hashes);
        *self.caches.key_hashes.write() = Some(Arc::clone(&hashes));
        Ok(hashes)
    }

    /// The entries of the terms between two, which are with the field's prefix, each with whether it counts itself.
    pub(crate) fn term_range(
        &self,
        place: &Place,
        from: &(Vec<u8>, bool),
        to: Option<&(Vec<u8>, bool)>,
    ) -> tantivy::Result<Docs> {
        let inverted = self.reader.inverted_index(place.terms)?;
        let mut range = inverted.terms().range();
        range = if from.1 { range.ge(&from.0) } else { range.gt(&from.0) };
        range = match to {
            Some((text, true)) => range.le(text),
            Some((text, false)) => range.lt(text),
            None => range,
        };
        let mut gather = Gather::new(self.max_doc());
        let mut stream = range.into_stream()?;
        let mut taken = 0;
        while stream.advance() {
            taken += 1;
            if taken <= TERMS_READ_MAX {
                gather_postings(&inverted, stream.value(), &mut gather)?;
                continue;
            }
            // So many terms cost more than a look at every entry. This is the first one that was not read.
            let first = stream.term_ord();
            drop(stream);
            let last = match to {
                Some((text, with)) => {
                    let rest = inverted.terms().range();
                    let mut rest = if *with { rest.gt(text) } else { rest.ge(text) }.into_stream()?;
                    if rest.advance() { rest.term_ord() } else { inverted.terms().num_terms() as u64 }
                }
                None => inverted.terms().num_terms() as u64,
            };
            let ranks = self.ranks(place)?;
            let wanted =
                (first - ranks.base) as u32..last.saturating_sub(ranks.base).min(u64::from(NO_RANK)) as u32;
            if ranks.is_single() {
                for (doc, rank) in ranks.last.iter().enumerate() {
                    if wanted.contains(rank) {
                        gather.insert(doc as DocId);
                    }
                }
            } else {
                for doc in 0..self.max_doc() {
                    if ranks.of(doc).iter().any(|rank| wanted.contains(rank)) {
                        gather.insert(doc);
                    }
                }
            }
            break;
        }
        Ok(gather.finish())
    }

    /// The entries of all terms that `wanted` accepts, of those that begin with `prefix`.
    pub(crate) fn matching(
        &self,
        place: &Place,
        prefix: &str,
        mut wanted: impl FnMut(&str) -> bool,
    ) -> tantivy::Result<Docs> {
        let inverted = self.reader.inverted_index(place.terms)?;
        let mut gather = Gather::new(self.max_doc());
        let mut stream = prefixed(inverted.terms(), &format!("{}{prefix}", place.prefix))?;
        while stream.advance() {
            let is_wanted = std::str::from_utf8(&stream.key()[place.prefix.len()..]).is_ok_and(&mut wanted);
            if is_wanted {
                gather_postings(&inverted, stream.value(), &mut gather)?;
            }
        }
        Ok(gather.finish())
    }
}

/// Adds the entries of a term.
pub(crate) fn gather_postings(
    inverted: &tantivy::InvertedIndexReader,
    info: &tantivy::postings::TermInfo,
    gather: &mut Gather,
) -> tantivy::Result<()> {
    let mut postings = inverted.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
    let mut doc = postings.doc();
    while doc != TERMINATED {
        gather.insert(doc);
        doc = postings.advance();
    }
    Ok(())
}

/// The terms that begin so.
pub(crate) fn prefixed<'a>(
    terms: &'a tantivy::termdict::TermDictionary,
    prefix: &str,
) -> std::io::Result<tantivy::termdict::TermStreamer<'a>> {
    let range = terms.range().ge(prefix.as_bytes());
    match after_prefix(prefix.as_bytes()) {
        Some(after) => range.lt(after).into_stream(),
        None => range.into_stream(),
    }
}

/// The least bytes that are greater than all that begin with `prefix`; `None` where there are none.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut after = prefix[..=last].to_vec();
    after[last] += 1;
    Some(after)
}

/// The boosts that entries were given.
pub(crate) struct Boosts(Column<f64>);

impl Boosts {
    pub(crate) fn of(&self, doc: DocId) -> f32 {
        self.0.first(doc).map_or(1.0, |boost| boost as f32)
    }
}

impl Segment {
    /// The boosts of entries; `None` where no entry has one.
    pub(crate) fn boosts(&self, layout: &Layout) -> tantivy::Result<Option<Boosts>> {
        let column =
            self.reader.fast_fields().column_opt::<f64>(layout.tantivy.get_field_name(layout.boost))?;
        Ok(column.filter(|column| column.values.num_vals() > 0).map(Boosts))
    }
}
