//! Queries that need no index: documents of a collection as they lie, or by their ids.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use jackdaw_database::{Order, Snapshot, StoredDocument, ids};
use jackdaw_rql::tree::Expression;
use xxhash_rust::xxh3::Xxh3;

use crate::answer::envelope::Layout;
use crate::error::Result;
use crate::execute::index::everything;
use crate::parameters::{Scalar, flatten};
use crate::plan::Ids;
use crate::row::Row;
use crate::run::{Results, Run, SourceState};
use crate::sink::Sink;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The answer was written.
    Answered,
    /// The asker has the answer already; nothing was written.
    NotModified,
}

/// Answers from a collection; from all documents without a name.
pub(crate) fn run(
    run: &Run<'_>,
    name: Option<&str>,
    which: Ids,
    layout: Layout,
    out: &mut Vec<u8>,
    sink: &mut dyn Sink,
) -> Result<Outcome> {
    let snapshot = run.snapshot();
    let etag = etag(run, name)?;
    if run.request.known_etag == Some(etag) {
        return Ok(Outcome::NotModified);
    }
    let wanted = wanted(run, which)?;
    let count = || -> Result<i64> {
        let count = match name {
            Some(name) => snapshot.collection(name)?.map_or(0, |collection| collection.documents),
            None => snapshot.document_count()?,
        };
        Ok(i64::try_from(count).unwrap_or(i64::MAX))
    };
    let found = match &wanted {
        Wanted::These(ids) => existing(snapshot, name, ids)?,
        _ => Vec::new(),
    };
    let total = match &wanted {
        Wanted::All => count()?,
        Wanted::These(_) => i64::try_from(found.len()).unwrap_or(i64::MAX),
        Wanted::Prefix(_) => -1,
    };
    let state = SourceState {
        index_name: match name {
            Some(name) => format!("collection/{}", collection_name(snapshot, name)?),
            None => "AllDocs".to_owned(),
        },
        etag,
        total,
        ..SourceState::default()
    };
    let mut results = Results::begin(run, layout, state, 0, out, sink);
    let mut failed = None;
    // Documents of other collections that have the prefix too.
    let mut of_others = 0;
    if results.wants_more() {
        let mut take = |document| match results.add(Row::of_document(document)) {
            Ok(goes_on) => Ok(goes_on),
            Err(error) => {
                failed = Some(error);
                Ok(ControlFlow::Break(()))
            }
        };
        match (&wanted, name) {
            (Wanted::All, Some(name)) => {
                snapshot.documents_of_collection(name, 0, Order::Ascending, take)?;
            }
            (Wanted::All, None) => snapshot.documents_by_etag(0, Order::Ascending, take)?,
            (Wanted::These(_), _) => {
                for document in found {
                    if take(document)?.is_break() {
                        break;
                    }
                }
            }
            (Wanted::Prefix(prefix), name) => {
                snapshot.documents_by_prefix(prefix, None, |document| {
                    match is_of(snapshot, &document, name) {
                        true => take(document),
                        false => {
                            of_others += 1;
                            Ok(ControlFlow::Continue(()))
                        }
                    }
                })?;
            }
        }
    }
    results.counts.skipped += of_others;
    match failed {
        Some(error) => Err(error),
        None => results.finish().map(|()| Outcome::Answered),
    }
}

/// Which documents, with their ids known.
enum Wanted {
    All,
    These(BTreeSet<String>),
    Prefix(String),
}

fn wanted(run: &Run<'_>, which: Ids) -> Result<Wanted> {
    let text = &run.plan.text;
    let mut these = BTreeSet::new();
    let mut take = |value: Scalar<'_>| {
        if let Scalar::Text(id) = value {
            these.insert(ids::lower(&id).into_owned());
        }
    };
    match (which, &run.plan.tree.condition) {
        (Ids::None, _) => {}
        (Ids::These, Some(Expression::Comparison(comparison))) => {
            take(run.parameters().value(text, &comparison.right)?);
        }
        (Ids::These, Some(Expression::In(one_of))) => {
            for value in &one_of.values {
                flatten(run.parameters().value(text, value)?, &mut take);
            }
        }
        (Ids::Prefix, Some(Expression::Call(call))) => {
            let prefix = &call.arguments.get(1).map(|argument| &argument.expression);
            let Some(prefix) = prefix else { return Ok(Wanted::These(these)) };
            match run.parameters().value(text, prefix)? {
                Scalar::Text(prefix) => return Ok(Wanted::Prefix(prefix.into_owned())),
                // No id begins with null.
                Scalar::Missing | Scalar::Null => {}
                other => {
                    let mut prefix = Vec::new();
                    other.print_to(&mut prefix);
                    return Ok(Wanted::Prefix(String::from_utf8_lossy(&prefix).into_owned()));
                }
            }
        }
        _ => return Ok(Wanted::All),
    }
    Ok(Wanted::These(these))
}

fn is_of(snapshot: &Snapshot, document: &StoredDocument<'_>, name: Option<&str>) -> bool {
    name.is_none_or(|name| ids::lower(&snapshot.collection_of(document)) == ids::lower(name))
}

fn existing<'s>(
    snapshot: &'s Snapshot,
    name: Option<&str>,
    ids: &BTreeSet<String>,
) -> Result<Vec<StoredDocument<'s>>> {
    let mut found = Vec::new();
    for id in ids {
        found.extend(snapshot.document(id)?.filter(|document| is_of(snapshot, document, name)));
    }
    Ok(found)
}

/// The collection's name as it was first seen.
fn collection_name(snapshot: &Snapshot, name: &str) -> Result<String> {
    Ok(snapshot.collection(name)?.map_or_else(|| name.to_owned(), |collection| collection.name))
}

/// Changes with the documents of the collection; where others count too, with everything.
fn etag(run: &Run<'_>, name: Option<&str>) -> Result<i64> {
    let snapshot = run.snapshot();
    let mut hash = Xxh3::new();
    let mut add = |number: i64| hash.update(&number.to_le_bytes());
    match name.filter(|_| !run.plan.looks_elsewhere()) {
        // Between two states with the same last etag documents were only deleted.
        Some(name) => {
            add(snapshot.last_etag_of_collection(name)?);
            add(snapshot.collection(name)?.map_or(0, |collection| collection.documents as i64));
        }
        None if run.plan.looks_elsewhere() => add(everything(snapshot)?),
        None => add(snapshot.last_etag()?),
    }
    Ok(hash.digest() as i64)
}
