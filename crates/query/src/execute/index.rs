//! Queries that an index answers.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use jackdaw_database::Snapshot;
use jackdaw_document::{Document, Value};
use jackdaw_indexing::definition::FieldStorage;
use jackdaw_indexing::{Cutoff, Index, View};
use jackdaw_search::{Hit, Query, Sort, SortBy};
use xxhash_rust::xxh3::Xxh3;

use crate::answer::envelope::{self, Layout};
use crate::answer::json;
use crate::error::{Error, Result};
use crate::execute::collection::Outcome;
use crate::execute::extras::Extras;
use crate::execute::{facets, suggestions};
use crate::plan::field::Origin;
use crate::plan::projection::{ItemValue, Projection};
use crate::request::ProjectionBehavior;
use crate::row::{Distance, Row};
use crate::run::{Counts, Results, Run, SourceState, no_index_field};
use crate::search::condition::Conditions;
use crate::search::names::Names;
use crate::search::order::sorts;
use crate::sink::{Head, Sink};

/// Hits taken at once; more are streamed.
const PAGE_MAX: u64 = 2048;

/// An index in the state that a run reads.
pub(crate) struct Opened {
    pub(crate) index: Arc<Index>,
    pub(crate) view: Arc<View>,
    /// Made for this query.
    pub(crate) created: bool,
}

impl Opened {
    pub(crate) fn is_auto(&self) -> bool {
        self.index.kind().is_auto()
    }

    pub(crate) fn is_map_reduce(&self) -> bool {
        self.index.kind().is_map_reduce()
    }

    /// What is known of the answer before any of it is.
    pub(crate) fn state(&self, run: &Run<'_>) -> Result<SourceState> {
        let is_stale = self.view.is_stale(run.snapshot(), Cutoff::Now)?;
        let raft_index = self.index.raft_index();
        Ok(SourceState {
            index_name: self.index.name(),
            index_timestamp: self.view.progress().last_indexed,
            last_query: self.index.last_queried(),
            is_stale,
            etag: self.etag(run, is_stale)?,
            total: 0,
            definition_raft_index: Some(raft_index),
            auto_raft_index: self.created.then_some(raft_index),
        })
    }

    /// Changes whenever the answer may.
    fn etag(&self, run: &Run<'_>, is_stale: bool) -> Result<i64> {
        let mut hash = Xxh3::new();
        hash.update(&self.view.result_etag(is_stale).to_le_bytes());
        if run.plan.looks_elsewhere() {
            hash.update(&everything(run.snapshot())?.to_le_bytes());
        } else if is_stale {
            // Documents may have changed that the index knows in an older state.
            hash.update(&run.snapshot().last_etag()?.to_le_bytes());
        }
        Ok(hash.digest() as i64)
    }

    pub(crate) fn names<'n>(&'n self, run: &'n Run<'_>) -> Names<'n> {
        Names {
            index: &self.index,
            is_auto: self.is_auto(),
            aliases: &run.plan.aliases,
            text: &run.plan.text,
        }
    }
}

/// Changes with every write, of documents or of compare-exchange values.
pub(crate) fn everything(snapshot: &Snapshot) -> Result<i64> {
    let mut hash = Xxh3::new();
    hash.update(&snapshot.last_etag()?.to_le_bytes());
    let mut last = 0;
    snapshot.compare_exchange_by_prefix("", |found| {
        last = last.max(found.index);
        Ok(ControlFlow::Continue(()))
    })?;
    hash.update(&last.to_le_bytes());
    hash.update(&snapshot.compare_exchange_count()?.to_le_bytes());
    Ok(hash.digest() as i64)
}

/// Answers from an index.
pub(crate) fn run(
    run: &Run<'_>,
    opened: &Opened,
    layout: Layout,
    out: &mut Vec<u8>,
    sink: &mut dyn Sink,
) -> Result<Outcome> {
    match run.plan.projection {
        Projection::Facets => return facets::run(run, opened, out, sink),
        Projection::Suggestions => return suggestions::run(run, opened, out, sink),
        _ => {}
    }
    let mut state = opened.state(run)?;
    if run.request.must_be_fresh && state.is_stale {
        return Err(Error::InvalidOperation(format!(
            "Cannot perform bulk operation. The query results are stale: the index '{}' is stale.",
            state.index_name
        )));
    }
    if run.request.known_etag == Some(state.etag) {
        return Ok(Outcome::NotModified);
    }
    let names = opened.names(run);
    let searcher = opened.view.searcher();
    let query = Conditions { run, names, searcher }.query()?;
    let sorts = sorts(run, &names)?;
    check_projection(run, opened)?;
    let plan = run.plan;
    let (distinct, filtered) = (plan.projection.is_distinct(), plan.filter.is_some());
    // One document, one result: as long as it is the document that is answered.
    let distinct_keys = opened.view.progress().outputs_max > 1
        && !opened.is_map_reduce()
        && !run.request.keep_duplicates
        && matches!(plan.projection, Projection::Results { .. });
    let passes_all = distinct || filtered;
    let (skip, take) = match passes_all {
        true => (0, PAGE_MAX),
        false => (run.paging.skip, run.paging.take.min(PAGE_MAX)),
    };
    if take == 0 {
        state.total = i64::try_from(searcher.count(&query)?).unwrap_or(i64::MAX);
        return Results::begin(run, layout, state, run.paging.skip, out, sink)
            .finish()
            .map(|()| Outcome::Answered);
    }
    let to_size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let page = searcher.search(&query, &sorts, to_size(skip), to_size(take), distinct_keys)?;
    state.total = i64::try_from(page.total).unwrap_or(i64::MAX);
    let seen = skip + page.hits.len() as u64 + page.skipped_duplicates;
    let is_all =
        (page.hits.len() as u64) < take || seen >= page.total || (!passes_all && run.paging.take <= take);
    let given_first = skip + page.hits.len() as u64;
    let mut results = Results::begin(run, layout, state, skip, out, sink);
    results.counts.skipped += page.skipped_duplicates;
    let mut hits = Hits { run, opened, extras: Extras::new(run, opened, &query)? };
    let mut goes_on = ControlFlow::Continue(());
    for hit in page.hits {
        goes_on = hits.add(&hit, &mut results)?;
        if goes_on.is_break() {
            break;
        }
    }
    if !is_all && goes_on.is_continue() {
        hits.add_rest(&query, &sorts, distinct_keys, given_first, &mut results)?;
    }
    if let Some(extras) = &hits.extras {
        results.extras.push(b',');
        extras.print(&mut results.extras);
    }
    results.finish().map(|()| Outcome::Answered)
}

/// Answers with what the index holds of each hit.
pub(crate) fn entries(
    run: &Run<'_>,
    opened: &Opened,
    out: &mut Vec<u8>,
    sink: &mut dyn Sink,
) -> Result<Outcome> {
    let mut state = opened.state(run)?;
    let searcher = opened.view.searcher();
    let names = opened.names(run);
    let query = Conditions { run, names, searcher }.query()?;
    let to_size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let take = run.paging.take.min(PAGE_MAX);
    let page =
        searcher.search(&query, &sorts(run, &names)?, to_size(run.paging.skip), to_size(take), false)?;
    state.total = i64::try_from(page.total).unwrap_or(i64::MAX);
    sink.begin(Head { etag: state.etag });
    envelope::begin(Layout::Answer, &state, out);
    for hit in &page.hits {
        json::separate(out);
        out.push(b'{');
        for (name, terms) in searcher.entry(hit.place)? {
            match &*terms {
                [term] => json::string(out, &name, term),
                terms => json::strings(out, &name, terms.iter().map(String::as_str)),
            }
        }
        if !opened.is_map_reduce() {
            json::string(out, "id()", &hit.key);
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"Includes\":{}");
    envelope::print_state(run, &state, Some(&Counts::default()), out);
    out.push(b'}');
    Ok(Outcome::Answered)
}

/// Makes rows of hits.
struct Hits<'h, 'e> {
    run: &'h Run<'h>,
    opened: &'h Opened,
    extras: Option<Extras<'e>>,
}

impl<'h> Hits<'h, '_> {
    /// Takes one hit. A document that is gone since it was indexed is left out.
    fn add(&mut self, hit: &Hit, results: &mut Results<'h, '_>) -> Result<ControlFlow<()>> {
        let stored = match hit.stored.is_empty() {
            true => None,
            false => Some(Document::open(&hit.stored)?.root()),
        };
        let mut row = Row {
            stored,
            score: Some(hit.score),
            distance: hit.distance.map(|found| Distance {
                distance: found.distance,
                latitude: found.latitude,
                longitude: found.longitude,
            }),
            ..Row::default()
        };
        if !self.opened.is_map_reduce() {
            row.key = Some(&hit.key);
            row.index = Some(&self.opened.index);
            if !self.is_answered_by_index(stored.as_ref()) {
                row.document = self.run.snapshot().document(&hit.key)?;
                if row.document.is_none() {
                    return Ok(ControlFlow::Continue(()));
                }
            }
        }
        let given = results.counts.given;
        let Some(extras) = &mut self.extras else { return results.add(row) };
        let goes_on = results.add_ref(&mut row)?;
        if results.counts.given > given {
            extras.note(hit, &row)?;
        }
        Ok(goes_on)
    }

    /// Whether the stored fields are all that is selected, so that the document is not needed.
    fn is_answered_by_index(&self, stored: Option<&Value<'_>>) -> bool {
        let plan = self.run.plan;
        let Projection::Fields { items, .. } = &plan.projection else { return false };
        if plan.filter.is_some() || !plan.loads.is_empty() {
            return false;
        }
        match self.run.request.projection {
            ProjectionBehavior::FromDocument | ProjectionBehavior::FromDocumentOrThrow => return false,
            ProjectionBehavior::FromIndex | ProjectionBehavior::FromIndexOrThrow => return true,
            ProjectionBehavior::Default => {}
        }
        let Some(stored) = stored.and_then(Value::as_object) else { return false };
        // What the entry lacks, the document may have; and an id is told as the document spells it.
        let mut any = false;
        let all = items.iter().all(|item| match &item.value {
            ItemValue::Field(Origin::Result, path) => {
                any = true;
                stored.contains(path.text())
            }
            ItemValue::Constant(_) | ItemValue::Parameter(_) => true,
            _ => false,
        });
        any && all
    }

    /// Goes on where the first page ended.
    fn add_rest(
        &mut self,
        query: &Query,
        sorts: &[Sort],
        distinct_keys: bool,
        mut given: u64,
        results: &mut Results<'h, '_>,
    ) -> Result<()> {
        let by_score = [Sort { by: SortBy::Score, descending: false }];
        let sorts = if sorts.is_empty() && is_scored(query) { &by_score } else { sorts };
        let mut seen = HashSet::new();
        for hit in self.opened.view.searcher().stream(query, sorts)? {
            let hit = hit?;
            if distinct_keys && !seen.insert(hit.key.clone()) {
                results.counts.skipped += u64::from(given == 0);
                continue;
            }
            if given > 0 {
                given -= 1;
                continue;
            }
            if self.add(&hit, results)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// Whether entries that match are better or worse than others.
fn is_scored(query: &Query) -> bool {
    match query {
        Query::All
        | Query::None
        | Query::Range { .. }
        | Query::Prefix { .. }
        | Query::Suffix { .. }
        | Query::Wildcard { .. }
        | Query::Regex { .. }
        | Query::Exists { .. }
        | Query::Key(_)
        | Query::Keys(_)
        | Query::KeyPrefix(_)
        | Query::Reference(_)
        | Query::Not(_)
        | Query::Spatial(_) => false,
        Query::And(all) | Query::Or(all) | Query::Intersect(all) => all.iter().any(is_scored),
        _ => true,
    }
}

/// What is to come from the index alone must be stored there.
fn check_projection(run: &Run<'_>, opened: &Opened) -> Result<()> {
    if run.request.projection != ProjectionBehavior::FromIndexOrThrow || opened.is_map_reduce() {
        return Ok(());
    }
    let Projection::Fields { items, .. } = &run.plan.projection else { return Ok(()) };
    for item in items {
        if let ItemValue::Field(Origin::Result, path) = &item.value {
            let is_stored = opened.index.field_options(path.text()).storage == Some(FieldStorage::Yes);
            if !is_stored {
                return Err(no_index_field(&run.plan.text, &opened.index, path.text()));
            }
        }
    }
    Ok(())
}
