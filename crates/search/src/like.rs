//! `moreLikeThis`: from the telling terms of an entry or of texts to a query, as Lucene's does it.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::DocSet;
use tantivy::postings::Postings;
use tantivy::query::{BooleanQuery, BoostQuery, EmptyQuery, Occur};
use tantivy::schema::IndexRecordOption;

use crate::compile::{Boxed, Compiler};
use crate::error::Result;
use crate::layout::Place;
use crate::query::{MoreLikeThis, MoreLikeThisSource};

impl Compiler<'_> {
    /// The entries that share the most telling terms with the source, which is not among them.
    ///
    /// As in Lucene's `MoreLikeThis`, a term counts wherever it stands in the source, and is looked for in the one field that
    /// holds it in the most entries, the first of such fields.
    pub(crate) fn more_like_this(&self, like: &MoreLikeThis) -> Result<Boxed> {
        let (source, texts) = match &like.source {
            MoreLikeThisSource::Entries { query, texts } => (Some(self.tree(query)?), texts),
            MoreLikeThisSource::Texts(texts) => (None, texts),
        };
        let places: Vec<Arc<Place>> = like.fields.iter().map(|field| self.layout().place(field)).collect();
        let mut frequencies: HashMap<String, u32> = HashMap::new();
        for place in &places {
            let of_field: Vec<&str> = texts
                .iter()
                .filter(|(field, _)| *field == place.name)
                .map(|(_, text)| text.as_str())
                .collect();
            match &source {
                Some(source) if of_field.is_empty() => self.count_entries(place, source, &mut frequencies)?,
                _ => count_texts(place, &of_field, like.maximum_number_of_tokens_parsed, &mut frequencies),
            }
        }
        let mut telling: Vec<Telling> = Vec::new();
        for (term, frequency) in frequencies {
            telling.extend(self.telling(like, &places, term, frequency)?);
        }
        telling.sort_by(|left, right| {
            right.weight.total_cmp(&left.weight).then_with(|| left.term.cmp(&right.term))
        });
        telling.truncate(like.maximum_query_terms);
        let Some(best) = telling.first().map(|telling| telling.weight) else {
            return Ok(Box::new(EmptyQuery));
        };
        let mut clauses: Vec<(Occur, Boxed)> = Vec::new();
        for Telling { place, term, weight } in telling {
            let mut query = self.exact_term(&place, &term);
            if like.boost {
                query = Box::new(BoostQuery::new(query, like.boost_factor * weight / best));
            }
            clauses.push((Occur::Should, query));
        }
        let alike: Boxed = Box::new(BooleanQuery::new(clauses));
        Ok(match source {
            Some(source) => Box::new(BooleanQuery::new(vec![(Occur::Must, alike), (Occur::MustNot, source)])),
            None => alike,
        })
    }

    /// Adds how often each term is in the field of the entries that a query finds.
    fn count_entries(
        &self,
        place: &Place,
        source: &Boxed,
        frequencies: &mut HashMap<String, u32>,
    ) -> Result<()> {
        self.snapshot.each_match(source.as_ref(), |segment, doc| {
            let ranks = segment.ranks(place)?;
            let inverted = segment.reader.inverted_index(place.terms)?;
            for &rank in ranks.of(doc) {
                let term = segment.term_of(place, &ranks, rank)?;
                let found = inverted.terms().get(place.term(&term)).map_err(tantivy::TantivyError::from)?;
                let Some(info) = found else { continue };
                let mut postings = inverted
                    .read_postings_from_terminfo(&info, IndexRecordOption::WithFreqs)
                    .map_err(tantivy::TantivyError::from)?;
                let frequency = if postings.seek(doc) == doc { postings.term_freq() } else { 0 };
                *frequencies.entry(term).or_default() += frequency;
            }
            Ok(())
        })
    }

    /// How telling a term is, and in which field; `None` for one that is left out.
    fn telling(
        &self,
        like: &MoreLikeThis,
        places: &[Arc<Place>],
        term: String,
        frequency: u32,
    ) -> Result<Option<Telling>> {
        let length = term.chars().count();
        if frequency < like.minimum_term_frequency
            || length < like.minimum_word_length
            || (like.maximum_word_length > 0 && length > like.maximum_word_length)
            || term == crate::encode::NULL
            || term == crate::encode::EMPTY
            || like.stop_words.contains(&term)
        {
            return Ok(None);
        }
        let mut most: Option<(u64, &Arc<Place>)> = None;
        for place in places {
            let holding = self.holding(place, &term)?;
            if holding > most.map_or(0, |(most, _)| most) {
                most = Some((holding, place));
            }
        }
        let Some((holding, place)) = most else { return Ok(None) };
        let all = self.snapshot.tantivy.num_docs();
        let limit = match like.maximum_document_frequency_percentage {
            Some(share) => like.maximum_document_frequency.min(all * u64::from(share) / 100),
            None => like.maximum_document_frequency,
        };
        if holding < like.minimum_document_frequency || holding > limit {
            return Ok(None);
        }
        let rarity = (all as f32 / (holding + 1) as f32).ln() + 1.0;
        Ok(Some(Telling { place: Arc::clone(place), term, weight: frequency as f32 * rarity }))
    }

    /// How many entries hold the term in the field.
    fn holding(&self, place: &Place, term: &str) -> Result<u64> {
        let mut holding = 0;
        for segment in self.snapshot.segments.iter() {
            let inverted = segment.reader.inverted_index(place.terms)?;
            let info = inverted.terms().get(place.term(term)).map_err(tantivy::TantivyError::from)?;
            holding += info.map_or(0, |info| u64::from(info.doc_freq));
        }
        Ok(holding)
    }
}

struct Telling {
    place: Arc<Place>,
    term: String,
    weight: f32,
}

fn count_texts(place: &Place, texts: &[&str], most: usize, frequencies: &mut HashMap<String, u32>) {
    for text in texts {
        for token in place.analyzer.terms(text).into_iter().take(most) {
            *frequencies.entry(token.text).or_default() += 1;
        }
    }
}
