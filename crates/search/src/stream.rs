//! All hits of a query, one after the other.

use tantivy::query::{EnableScoring, Scorer, Weight};
use tantivy::{DocSet, TERMINATED};

use crate::compile::{Boxed, is_constant};
use crate::error::Result;
use crate::query::Query;
use crate::request::{Hit, Sort};
use crate::searcher::Searcher;
use crate::top::{Found, Request};

/// The hits of [`Searcher::stream`].
pub struct Stream {
    searcher: Searcher,
    source: Source,
}

enum Source {
    /// By insertion: the segments are walked through as hits are taken.
    Walk { weight: Box<dyn Weight>, next_segment: usize, scorer: Option<Box<dyn Scorer>> },
    /// In an order: what was found, backwards.
    Sorted(Vec<Found>),
    /// After an error.
    Ended,
}

impl Stream {
    pub(crate) fn new(searcher: Searcher, query: &Query, compiled: Boxed, sorts: &[Sort]) -> Result<Stream> {
        let source = if sorts.is_empty() {
            let weight =
                compiled.weight(EnableScoring::disabled_from_searcher(&searcher.snapshot.tantivy))?;
            Source::Walk { weight, next_segment: 0, scorer: None }
        } else {
            let scored = !is_constant(query, &searcher.snapshot.layout);
            let request =
                Request { snapshot: &searcher.snapshot, query, compiled: compiled.as_ref(), sorts, scored };
            let mut found = request.top(0, usize::MAX)?.hits;
            found.reverse();
            Source::Sorted(found)
        };
        Ok(Stream { searcher, source })
    }

    fn found(&mut self) -> Result<Option<Found>> {
        match &mut self.source {
            Source::Ended => Ok(None),
            Source::Sorted(found) => Ok(found.pop()),
            Source::Walk { weight, next_segment, scorer } => loop {
                let segments = &self.searcher.snapshot.segments;
                if let Some(open) = scorer {
                    let segment = (*next_segment - 1) as u32;
                    let doc = open.doc();
                    if doc != TERMINATED {
                        open.advance();
                        if segments[segment as usize].is_alive(doc) {
                            return Ok(Some(Found { segment, doc, score: 1.0, distance: None }));
                        }
                        continue;
                    }
                }
                let Some(segment) = segments.get(*next_segment) else { return Ok(None) };
                *scorer = Some(weight.scorer(&segment.reader, 1.0)?);
                *next_segment += 1;
            },
        }
    }
}

impl Iterator for Stream {
    type Item = Result<Hit>;

    fn next(&mut self) -> Option<Result<Hit>> {
        let hit = self.found().and_then(|found| found.map(|found| self.searcher.hit(&found)).transpose());
        if hit.is_err() {
            self.source = Source::Ended;
        }
        hit.transpose()
    }
}
