//! What stands around the results.

use std::collections::HashSet;

use jackdaw_database::{Fields, append_json_string, clock, print_document};
use jackdaw_document::Context;

use crate::answer::{json, stream};
use crate::error::Result;
use crate::includes::Includes;
use crate::run::{Counts, Run, SourceState};

/// How an answer is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One object, the results first, what is known of them behind.
    Answer,
    /// One object, the results last: read while it is sent.
    Stream,
    /// A line for each result.
    Lines,
    /// Comma-separated values; the first result makes the columns.
    Csv,
    /// The ids of the documents found and nothing else, each followed by a zero byte: for who does something to each.
    Ids,
}

/// The tag of this node: there is one.
const NODE_TAG: &str = "A";

/// A moment that never was, as answers write it.
const NEVER: &str = "0001-01-01T00:00:00.0000000";

pub(crate) fn begin(layout: Layout, state: &SourceState, out: &mut Vec<u8>) {
    match layout {
        Layout::Answer => out.extend_from_slice(b"{\"Results\":["),
        Layout::Stream => {
            out.push(b'{');
            print_statistics(state, out);
            out.extend_from_slice(b",\"Results\":[");
        }
        Layout::Lines => {
            out.extend_from_slice(b"{\"Stats\":{");
            print_statistics(state, out);
            out.extend_from_slice(b"}}\r\n");
        }
        Layout::Csv => out.extend_from_slice("\u{feff}".as_bytes()),
        Layout::Ids => {}
    }
}

fn print_statistics(state: &SourceState, out: &mut Vec<u8>) {
    json::number(out, "ResultEtag", state.etag);
    json::bool(out, "IsStale", state.is_stale);
    json::string(out, "IndexName", &state.index_name);
    json::number(out, "TotalResults", state.total);
    json::name(out, "IndexTimestamp");
    out.push(b'"');
    clock::append_date(state.index_timestamp, out);
    out.push(b'"');
}

pub(crate) fn before_result(layout: Layout, given: u64, out: &mut Vec<u8>) {
    match layout {
        Layout::Answer | Layout::Stream => {
            if given > 0 {
                out.push(b',');
            }
        }
        Layout::Lines => out.extend_from_slice(b"{\"Item\":"),
        Layout::Csv | Layout::Ids => {}
    }
}

/// What follows a result, which was printed from `start` on.
pub(crate) fn after_result(
    layout: Layout,
    start: usize,
    context: &mut Option<Context>,
    columns: &mut Vec<String>,
    out: &mut Vec<u8>,
) -> Result<()> {
    match layout {
        Layout::Answer | Layout::Stream | Layout::Ids => {}
        Layout::Lines => out.extend_from_slice(b"}\r\n"),
        Layout::Csv => {
            let text = out.split_off(start);
            let context = context.get_or_insert_with(Context::new);
            let printed = context.parse(&text)?;
            stream::print_csv(&printed.root(), columns, out);
            context.reset();
        }
    }
    Ok(())
}

pub(crate) fn end_stream(layout: Layout, out: &mut Vec<u8>) {
    if layout == Layout::Stream {
        out.extend_from_slice(b"]}");
    }
}

pub(crate) fn print_includes(
    run: &Run<'_>,
    includes: &Includes,
    answered: &HashSet<String>,
    out: &mut Vec<u8>,
) -> Result<()> {
    json::name(out, "Includes");
    out.push(b'{');
    for document in includes.documents(run.snapshot(), |id| answered.contains(id))? {
        json::separate(out);
        append_json_string(document.id, out);
        out.push(b':');
        print_document(&document, Fields::All, out);
    }
    out.push(b'}');
    if !run.plan.wanted.exchange.is_empty() || includes.has_keys() {
        json::name(out, "CompareExchangeValueIncludes");
        includes.print_compare_exchange(run.snapshot(), out)?;
    }
    Ok(())
}

fn print_moment(out: &mut Vec<u8>, name: &str, ticks: i64) {
    match ticks {
        0 => json::string(out, name, NEVER),
        ticks => {
            json::name(out, name);
            out.push(b'"');
            clock::append_date(ticks, out);
            out.push(b'"');
        }
    }
}

/// Appends the properties behind the results; without counts where results are not documents.
pub(crate) fn print_state(run: &Run<'_>, state: &SourceState, counts: Option<&Counts>, out: &mut Vec<u8>) {
    let milliseconds = i64::try_from(run.begun.elapsed().as_millis()).unwrap_or(i64::MAX);
    json::number(out, "TotalResults", state.total);
    json::number(out, "LongTotalResults", state.total);
    if let Some(capped) = run.paging.capped(state.total) {
        json::number(out, "CappedMaxResults", capped);
    }
    if let Some(counts) = counts {
        json::number(out, "ScannedResults", i64::try_from(counts.scanned).unwrap_or(i64::MAX));
        json::number(out, "SkippedResults", i64::try_from(counts.skipped).unwrap_or(i64::MAX));
    }
    json::number(out, "DurationInMs", milliseconds);
    match run.plan.wanted.paths.is_empty() {
        true => {
            json::name(out, "IncludedPaths");
            out.extend_from_slice(b"null");
        }
        false => json::strings(out, "IncludedPaths", run.plan.wanted.paths.iter().map(|path| &**path)),
    }
    json::string(out, "IndexName", &state.index_name);
    print_moment(out, "IndexTimestamp", state.index_timestamp);
    print_moment(out, "LastQueryTime", state.last_query);
    json::bool(out, "IsStale", state.is_stale);
    json::number(out, "ResultEtag", state.etag);
    json::string(out, "NodeTag", NODE_TAG);
    if let Some(index) = state.definition_raft_index {
        json::number(out, "IndexDefinitionRaftIndex", index);
    }
    if let Some(index) = state.auto_raft_index {
        json::number(out, "AutoIndexCreationRaftIndex", index);
    }
    if run.plan.wanted.timings {
        let text = format!(
            "{{\"DurationInMs\":{milliseconds},\"Timings\":{{\"Query\":{{\"DurationInMs\":{milliseconds},\"Timings\":null}}}}}}"
        );
        json::name(out, "Timings");
        out.extend_from_slice(text.as_bytes());
    }
}
