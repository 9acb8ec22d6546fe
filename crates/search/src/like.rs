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
use crate::options::TermVector;
use crate::query::{MoreLikeThis, MoreLikeThisSource};

impl Compiler<'_> {
    /// The entries that share the most telling terms with the source, which is not among them.
    pub(crate) fn more_like_this(&self, like: &MoreLikeThis) -> Result<Boxed> {
        let (source, texts) = match &like.source {
            MoreLikeThisSource::Entries { query, texts } => (Some(self.tree(query)?), texts),
            MoreLikeThisSource::Texts(texts) => (None, texts),
        };
        let mut telling: Vec<Telling> = Vec::new();
        for place in self.places_of(like) {
            let of_field: Vec<&str> = texts
                .iter()
                .filter(|(field, _)| *field == place.name)
                .map(|(_, text)| text.as_str())
                .collect();
            let frequencies = match &source {
                Some(source) if of_field.is_empty() => self.frequencies(&place, source)?,
                _ => frequencies_of_texts(&place, &of_field, like.maximum_number_of_tokens_parsed),
            };
            for (term, frequency) in frequencies {
                if let Some(weight) = self.weight(like, &place, &term, frequency)? {
                    telling.push(Telling { place: Arc::clone(&place), term, weight });
                }
            }
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

    /// The fields to look at: those asked for, or those of which terms or texts are kept, or all that were known beforehand.
    fn places_of(&self, like: &MoreLikeThis) -> Vec<Arc<Place>> {
        if !like.fields.is_empty() {
            return like.fields.iter().map(|field| self.layout().place(field)).collect();
        }
        if let MoreLikeThisSource::Texts(texts) = &like.source {
            let mut names: Vec<&str> = texts.iter().map(|(field, _)| field.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            return names.into_iter().map(|name| self.layout().place(name)).collect();
        }
        let kept: Vec<Arc<Place>> = self
            .layout()
            .places()
            .filter(|place| place.options.store || place.options.term_vector != TermVector::No)
            .cloned()
            .collect();
        if kept.is_empty() { self.layout().places().cloned().collect() } else { kept }
    }

    /// How often each term is in the field of the entries that a query finds.
    fn frequencies(&self, place: &Place, source: &Boxed) -> Result<HashMap<String, u32>> {
        let mut frequencies = HashMap::new();
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
        })?;
        Ok(frequencies)
    }

    /// How telling a term is; `None` for one that is left out.
    fn weight(&self, like: &MoreLikeThis, place: &Place, term: &str, frequency: u32) -> Result<Option<f32>> {
        let length = term.chars().count();
        if frequency < like.minimum_term_frequency
            || length < like.minimum_word_length
            || (like.maximum_word_length > 0 && length > like.maximum_word_length)
            || term == crate::encode::NULL
            || term == crate::encode::EMPTY
            || like.stop_words.iter().any(|stop| stop == term)
        {
            return Ok(None);
        }
        let mut holding = 0u64;
        for segment in self.snapshot.segments.iter() {
            let inverted = segment.reader.inverted_index(place.terms)?;
            let info = inverted.terms().get(place.term(term)).map_err(tantivy::TantivyError::from)?;
            holding += info.map_or(0, |info| u64::from(info.doc_freq));
        }
        let all = self.snapshot.tantivy.num_docs();
        let most = match like.maximum_document_frequency_percentage {
            Some(share) => like.maximum_document_frequency.min(all * u64::from(share) / 100),
            None => like.maximum_document_frequency,
        };
        if holding == 0 || holding < like.minimum_document_frequency || holding > most {
            return Ok(None);
        }
        let rarity = (all as f32 / (holding + 1) as f32).ln() + 1.0;
        Ok(Some(frequency as f32 * rarity))
    }
}

struct Telling {
    place: Arc<Place>,
    term: String,
    weight: f32,
}

fn frequencies_of_texts(place: &Place, texts: &[&str], most: usize) -> HashMap<String, u32> {
    let mut frequencies = HashMap::new();
    for text in texts {
        for token in place.analyzer.terms(text).into_iter().take(most) {
            *frequencies.entry(token.text).or_default() += 1;
        }
    }
    frequencies
}
