//! One run of a query: its values, its counts, and the results on their way out.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Instant;

use jackdaw_database::{Fields, Snapshot, ids};
use jackdaw_document::{Context, Value};
use jackdaw_functions::Input;
use jackdaw_functions::javascript::{Argument, FieldsFrom, Projection as Script};
use jackdaw_indexing::Index;
use jackdaw_rql::tree::{self, Expression};
use xxhash_rust::xxh3::xxh3_128;

use crate::answer::envelope::{self, Layout};
use crate::answer::result;
use crate::error::{Error, Result};
use crate::includes::Includes;
use crate::parameters::{Parameters, Scalar};
use crate::plan::field::Origin;
use crate::plan::projection::Projection;
use crate::plan::{Access, Plan};
use crate::request::{ProjectionBehavior, Request};
use crate::row::Row;
use crate::script;
use crate::sink::{Head, Sink};

/// What one run needs to know; the same from its beginning to its end.
pub(crate) struct Run<'r> {
    pub(crate) plan: &'r Plan,
    pub(crate) request: &'r Request<'r>,
    snapshot: &'r Snapshot,
    pub(crate) paging: Paging,
    pub(crate) begun: Instant,
}

/// Which of the results are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paging {
    pub(crate) skip: u64,
    pub(crate) take: u64,
    /// What the text's `limit` says.
    pub(crate) limit: Option<u64>,
    /// What the text's `offset` says.
    offset: u64,
    filter_limit: u64,
}

impl Paging {
    fn new(plan: &Plan, request: &Request<'_>) -> Result<Paging> {
        let number = |expression: &Option<Expression<'static>>| -> Result<Option<u64>> {
            let Some(expression) = expression else { return Ok(None) };
            match request.parameters.value(&plan.text, expression)? {
                Scalar::Null => Ok(None),
                Scalar::Long(number) if number >= 0 => Ok(Some(number.unsigned_abs())),
                Scalar::Double(number) if number >= 0.0 && number.fract() == 0.0 && number < 9e15 => {
                    Ok(Some(number as u64))
                }
                Scalar::Long(number) => {
                    let message = format!("limit and offset must not be negative, but got {number}");
                    Err(Error::invalid(&plan.text, expression.span(), message))
                }
                other => {
                    let message = format!("limit and offset must be integers, but got {}", other.type_name());
                    Err(Error::invalid(&plan.text, expression.span(), message))
                }
            }
        };
        let tree::Paging { skip, take, filter_limit } = &plan.tree.paging;
        let (offset, limit) = (number(skip)?.unwrap_or(0), number(take)?);
        Ok(Paging {
            // Clients that send both mean the same page.
            skip: offset.max(request.skip),
            take: limit.unwrap_or(u64::MAX).min(request.take),
            limit,
            offset,
            filter_limit: number(filter_limit)?.unwrap_or(u64::MAX),
        })
    }

    /// How many results the text's `limit` lets through of `total` (-1: not known).
    pub(crate) fn capped(&self, total: i64) -> Option<i64> {
        let limit = i64::try_from(self.limit?).unwrap_or(i64::MAX);
        let offset = i64::try_from(self.offset).unwrap_or(i64::MAX);
        Some(if total < 0 { limit } else { limit.min(total.saturating_sub(offset)).max(0) })
    }
}

impl<'r> Run<'r> {
    pub(crate) fn new(plan: &'r Plan, request: &'r Request<'r>, snapshot: &'r Snapshot) -> Result<Run<'r>> {
        let begun = Instant::now();
        Ok(Run { plan, request, snapshot, paging: Paging::new(plan, request)?, begun })
    }

    pub(crate) fn snapshot(&self) -> &'r Snapshot {
        self.snapshot
    }

    pub(crate) fn parameters(&self) -> Parameters<'r> {
        self.request.parameters
    }

    pub(crate) fn fields(&self) -> Fields {
        if self.request.metadata_only { Fields::Metadata } else { Fields::All }
    }

    /// Whether an alias means a list of documents.
    pub(crate) fn loads_many(&self, origin: Origin) -> bool {
        match origin {
            Origin::Result => false,
            Origin::Loaded(number) => self.plan.loads.get(number).is_some_and(|load| load.many),
        }
    }

    /// What a function is given for a result: the document, with what the index stores where projections may take it from there.
    pub(crate) fn script_argument<'v>(&self, row: &Row<'v>, input: &'v Input<'v>) -> Argument<'v> {
        let from = match self.request.projection {
            ProjectionBehavior::FromDocument => return Argument::Document(input),
            ProjectionBehavior::Default => FieldsFrom::Either,
            ProjectionBehavior::FromIndex => FieldsFrom::Index,
            ProjectionBehavior::FromIndexOrThrow => FieldsFrom::IndexOrFail,
            ProjectionBehavior::FromDocumentOrThrow => FieldsFrom::DocumentOrFail,
        };
        match (row.stored, from) {
            (None, FieldsFrom::Either) => Argument::Document(input),
            (stored, from) => Argument::Result(input, stored, from),
        }
    }

    /// The error that a field is which is not where projections may take it from.
    #[cold]
    pub(crate) fn no_field(&self, row: &Row<'_>, name: &str) -> Error {
        let text = &self.plan.text;
        match (self.request.projection, row.index) {
            (ProjectionBehavior::FromIndexOrThrow, Some(index)) => no_index_field(text, index, name),
            (ProjectionBehavior::FromIndexOrThrow, None) => Error::Invalid(format!(
                "Could not extract field '{name}' from an index, because no index answers this query.\nQuery: {text}"
            )),
            _ => Error::Invalid(format!(
                "Could not extract field '{name}' from document '{}', because document does not contain such a field.\nQuery: {text}",
                row.id(Origin::Result).unwrap_or_default()
            )),
        }
    }

    /// Whether projections take nothing from what the index stores.
    pub(crate) fn takes_documents_alone(&self) -> bool {
        matches!(
            self.request.projection,
            ProjectionBehavior::FromDocument | ProjectionBehavior::FromDocumentOrThrow
        )
    }

    /// Whether projections take nothing from documents that an index found.
    pub(crate) fn takes_indexes_alone(&self, row: &Row<'_>) -> bool {
        matches!(
            self.request.projection,
            ProjectionBehavior::FromIndex | ProjectionBehavior::FromIndexOrThrow
        ) && row.index.is_some()
    }

    /// The field as the index stores it, where projections may take it from there.
    pub(crate) fn stored_field<'v>(&self, row: &Row<'v>, name: &str) -> Option<Value<'v>> {
        if self.takes_documents_alone() && row.document.is_some() {
            return None;
        }
        row.stored.as_ref()?.get(name)
    }
}

/// Where the results come from, for the head of the answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceState {
    pub(crate) index_name: String,
    /// When the index last took in documents, in ticks; 0 for a collection.
    pub(crate) index_timestamp: i64,
    /// When the index was last queried, in ticks; 0 for a collection.
    pub(crate) last_query: i64,
    pub(crate) is_stale: bool,
    pub(crate) etag: i64,
    /// Matches before paging; -1 when they are not counted.
    pub(crate) total: i64,
    pub(crate) definition_raft_index: Option<i64>,
    pub(crate) auto_raft_index: Option<i64>,
}

/// The results on their way out.
pub(crate) struct Results<'r, 'o> {
    pub(crate) run: &'r Run<'r>,
    pub(crate) layout: Layout,
    pub(crate) out: &'o mut Vec<u8>,
    sink: &'o mut dyn Sink,
    skip: u64,
    left: u64,
    pub(crate) state: SourceState,
    pub(crate) counts: Counts,
    /// What came up already, when equal results come up once.
    seen: HashSet<u128>,
    includes: Includes,
    /// The lower-case ids of the documents that the answer has.
    answered: HashSet<String>,
    scratch: Vec<u8>,
    /// Printed behind everything else.
    pub(crate) extras: Vec<u8>,
    /// The columns of comma-separated values.
    columns: Vec<String>,
    /// Memory for results that are read again; made when one is.
    context: Option<Context>,
}

/// What happened on the way.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Documents that `filter` looked at.
    pub(crate) scanned: u64,
    /// Results that were left out, as they did not pass `filter` or came up before.
    pub(crate) skipped: u64,
    /// Results that passed `filter`.
    pub(crate) passed: u64,
    /// Results given.
    pub(crate) given: u64,
}

impl<'r, 'o> Results<'r, 'o> {
    /// Begins the answer. The source leaves out `skipped` results itself.
    pub(crate) fn begin(
        run: &'r Run<'r>,
        layout: Layout,
        state: SourceState,
        skipped: u64,
        out: &'o mut Vec<u8>,
        sink: &'o mut dyn Sink,
    ) -> Results<'r, 'o> {
        sink.begin(Head { etag: state.etag });
        envelope::begin(layout, &state, out);
        Results {
            run,
            layout,
            out,
            sink,
            skip: run.paging.skip.saturating_sub(skipped),
            left: run.paging.take,
            state,
            counts: Counts::default(),
            seen: HashSet::new(),
            includes: Includes::default(),
            answered: HashSet::new(),
            scratch: Vec::new(),
            extras: Vec::new(),
            columns: Vec::new(),
            context: None,
        }
    }

    /// Whether any more results are wanted.
    pub(crate) fn wants_more(&self) -> bool {
        self.left > 0
    }

    /// Takes what was found. Breaks when no more is wanted.
    pub(crate) fn add<'s>(&mut self, mut row: Row<'s>) -> Result<ControlFlow<()>>
    where
        'r: 's,
    {
        self.add_ref(&mut row)
    }

    /// As [`Results::add`], for a row that is of use afterwards.
    pub(crate) fn add_ref<'s>(&mut self, row: &mut Row<'s>) -> Result<ControlFlow<()>>
    where
        'r: 's,
    {
        if self.left == 0 {
            return Ok(ControlFlow::Break(()));
        }
        let run = self.run;
        row.load(run.plan, run.snapshot)?;
        if let Some(filter) = &run.plan.filter {
            if self.counts.scanned == run.paging.filter_limit {
                return Ok(ControlFlow::Break(()));
            }
            self.counts.scanned += 1;
            if !filter.holds(row, run)? {
                self.counts.skipped += 1;
                return Ok(ControlFlow::Continue(()));
            }
            self.counts.passed += 1;
        }
        let distinct = run.plan.projection.is_distinct() && self.layout != Layout::Ids;
        if !distinct && self.skip > 0 {
            self.skip -= 1;
            return Ok(ControlFlow::Continue(()));
        }
        if let Projection::Script { script, arguments, .. } = &run.plan.projection
            && self.layout != Layout::Ids
        {
            return self.add_scripted(row, script, arguments, distinct);
        }
        let before = self.out.len();
        envelope::before_result(self.layout, self.counts.given, self.out);
        let start = self.out.len();
        let content_end = self.print(row)?;
        if distinct {
            let is_new = self.seen.insert(xxh3_128(&self.out[start..content_end]));
            if !is_new || self.skip > 0 {
                self.out.truncate(before);
                match is_new {
                    true => self.skip -= 1,
                    false => self.counts.skipped += 1,
                }
                return Ok(ControlFlow::Continue(()));
            }
        }
        if !run.plan.wanted.is_empty() && self.layout == Layout::Answer {
            self.collect(row, start)?;
        }
        envelope::after_result(self.layout, start, &mut self.context, &mut self.columns, self.out)?;
        self.counts.given += 1;
        self.left -= 1;
        let goes_on = self.sink.written(self.out);
        Ok(if self.left == 0 { ControlFlow::Break(()) } else { goes_on })
    }

    /// Takes what a script makes of what was found: nothing, one or several results.
    fn add_scripted(
        &mut self,
        row: &Row<'_>,
        script: &Script,
        arguments: &[Origin],
        distinct: bool,
    ) -> Result<ControlFlow<()>> {
        let run = self.run;
        let mut memory = self.context.take().unwrap_or_default();
        let projected = script::project(run, row, script, arguments, &mut self.includes, &memory)?;
        let mut goes_on = ControlFlow::Continue(());
        for made in &projected {
            let before = self.out.len();
            envelope::before_result(self.layout, self.counts.given, self.out);
            let start = self.out.len();
            let content_end = result::print_made(row, &made.root(), run.fields(), self.out)?;
            if distinct {
                let is_new = self.seen.insert(xxh3_128(&self.out[start..content_end]));
                if !is_new || self.skip > 0 {
                    self.out.truncate(before);
                    match is_new {
                        true => self.skip -= 1,
                        false => self.counts.skipped += 1,
                    }
                    continue;
                }
            }
            if !run.plan.wanted.is_empty() && self.layout == Layout::Answer {
                let wanted = &run.plan.wanted;
                self.includes.collect(&made.root(), &wanted.documents, &wanted.exchange);
            }
            envelope::after_result(self.layout, start, &mut self.context, &mut self.columns, self.out)?;
            self.counts.given += 1;
            goes_on = self.sink.written(self.out);
            if goes_on.is_break() {
                break;
            }
            self.left -= 1;
            if self.left == 0 {
                break;
            }
        }
        drop(projected);
        memory.reset();
        self.context = Some(memory);
        Ok(if self.left == 0 { ControlFlow::Break(()) } else { goes_on })
    }

    /// Prints a result; where its content ends and its metadata begins.
    fn print(&mut self, row: &Row<'_>) -> Result<usize> {
        let run = self.run;
        if self.layout == Layout::Ids {
            if let Some(id) = row.id(Origin::Result) {
                self.out.extend_from_slice(id.as_bytes());
                self.out.push(0);
            }
            return Ok(self.out.len());
        }
        match &run.plan.projection {
            Projection::Results { .. } => {
                result::print_whole(row, run.fields(), self.out);
                Ok(self.out.len())
            }
            Projection::Loaded { number, .. } => match row.documents(Origin::Loaded(*number)) {
                [document] => {
                    result::print_loaded(row, document, run.fields(), self.out);
                    Ok(self.out.len())
                }
                documents => {
                    self.out.push(b'{');
                    if run.loads_many(Origin::Loaded(*number)) && !documents.is_empty() {
                        let name = &run.plan.aliases.loads()[*number];
                        let item = crate::plan::projection::Item {
                            name: name.clone(),
                            value: crate::plan::projection::ItemValue::Whole(Origin::Loaded(*number)),
                            of_alias: true,
                        };
                        result::print_items(run, row, std::slice::from_ref(&item), self.out)?;
                    }
                    Ok(self.end_projection(row))
                }
            },
            Projection::Fields { items, .. } => {
                self.out.push(b'{');
                if run.fields() == Fields::All {
                    result::print_items(run, row, items, self.out)?;
                }
                Ok(self.end_projection(row))
            }
            Projection::Script { .. } | Projection::Facets | Projection::Suggestions => {
                Err(Error::NotSupported("this projection is not made of single results".to_owned()))
            }
        }
    }

    fn end_projection(&mut self, row: &Row<'_>) -> usize {
        let end = self.out.len();
        let from_index = row.document.is_none();
        result::print_projection_metadata(row, true, from_index, self.out);
        self.out.push(b'}');
        end
    }

    /// Notes what a result includes: of a projection, what stands in it.
    fn collect(&mut self, row: &Row<'_>, start: usize) -> Result<()> {
        let wanted = &self.run.plan.wanted;
        match (&self.run.plan.projection, &row.document) {
            (Projection::Results { .. }, Some(document)) => {
                self.answered.insert(ids::lower(document.id).into_owned());
                self.includes.collect(&document.document.root(), &wanted.documents, &wanted.exchange);
            }
            _ => {
                self.scratch.clear();
                self.scratch.extend_from_slice(&self.out[start..]);
                let context = self.context.get_or_insert_with(Context::new);
                let printed = context.parse(&self.scratch)?;
                self.includes.collect(&printed.root(), &wanted.documents, &wanted.exchange);
                context.reset();
            }
        }
        Ok(())
    }

    /// Ends the answer.
    pub(crate) fn finish(self) -> Result<()> {
        let Results { run, layout, out, mut state, counts, includes, answered, extras, .. } = self;
        // An index counts what it finds, before the filter.
        if run.plan.filter.is_some() && matches!(run.plan.access, Access::Collection { .. }) {
            state.total = i64::try_from(counts.passed).unwrap_or(i64::MAX);
        }
        if state.total < 0 && counts.given == 0 && run.paging.skip == 0 && run.paging.take > 0 {
            state.total = 0;
        }
        if layout != Layout::Answer {
            envelope::end_stream(layout, out);
            return Ok(());
        }
        out.push(b']');
        envelope::print_includes(run, &includes, &answered, out)?;
        envelope::print_state(run, &state, Some(&counts), out);
        out.extend_from_slice(&extras);
        out.push(b'}');
        Ok(())
    }
}

/// The error that a field is which an index does not store.
#[cold]
pub(crate) fn no_index_field(text: &str, index: &Index, name: &str) -> Error {
    Error::Invalid(format!(
        "Could not extract field '{name}' from index '{}', because index does not contain such a field or field value is not stored within index.\nQuery: {text}",
        index.name()
    ))
}
