//! `select suggest(..)`: words of the index that are like misspelt ones.

use jackdaw_rql::tree::{Expression, Projection, SelectItem};

use crate::error::{Error, Result};
use crate::execute::collection::Outcome;
use crate::execute::index::Opened;
use crate::run::Run;
use crate::sink::Sink;

/// Answers a query of suggestions.
pub(crate) fn run(run: &Run<'_>, _: &Opened, _: &mut Vec<u8>, _: &mut dyn Sink) -> Result<Outcome> {
    let items = match run.plan.tree.select.as_ref().map(|select| &select.projection) {
        Some(Projection::Items(items)) => &**items,
        _ => &[],
    };
    for SelectItem { expression, .. } in items {
        if let Expression::Call(call) = expression {
            return Err(Error::NotSupported(format!("{}(): not supported by this version of the server.", call.name)));
        }
    }
    Err(Error::NotSupported("suggest(): not supported by this version of the server.".to_owned()))
}
