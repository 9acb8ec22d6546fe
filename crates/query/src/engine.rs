//! Where queries come in.

use std::sync::Arc;

use jackdaw_database::Database;

use crate::answer::envelope::Layout;
use crate::answer::json;
use crate::error::{Error, Result};
use crate::execute::collection::{self, Outcome};
use crate::plan::cache::Plans;
use crate::plan::{Access, Ids, Plan};
use crate::request::Request;
use crate::run::Run;
use crate::sink::Sink;

/// Answers the queries of one database.
#[derive(Default)]
pub struct Engine {
    plans: Plans,
}

/// A query whose text is understood, and may be run.
pub struct Prepared<'r> {
    plan: Arc<Plan>,
    request: Request<'r>,
}

impl Engine {
    /// Understands a query.
    ///
    /// Errors: [`Error::Parse`], [`Error::Invalid`], [`Error::NotSupported`].
    pub fn prepare<'r>(&self, request: Request<'r>) -> Result<Prepared<'r>> {
        let plan = self.plans.get(&request.text)?;
        if plan.tree.update.is_some() {
            return Err(Error::Invalid(format!(
                "A query that reads has no UPDATE clause\nQuery: {}",
                request.text
            )));
        }
        Ok(Prepared { plan, request })
    }

    /// Runs a query: writes its answer to `out`, for `sink` to take.
    ///
    /// Errors: those of [`Error`]. What is written by then is not an answer.
    pub fn run(
        &self,
        database: &Database,
        prepared: &Prepared<'_>,
        layout: Layout,
        out: &mut Vec<u8>,
        sink: &mut dyn Sink,
    ) -> Result<Outcome> {
        let Prepared { plan, request } = prepared;
        if layout != Layout::Answer && !plan.wanted.is_empty() {
            return Err(Error::NotSupported("Includes are not supported by this type of query.".to_owned()));
        }
        let snapshot = database.read()?;
        let run = Run::new(plan, request, &snapshot)?;
        match &plan.access {
            Access::Collection { name, ids } => {
                collection::run(&run, name.as_deref(), *ids, layout, out, sink)
            }
            Access::Index(name) => Err(Error::NoIndex(name.clone())),
            Access::Dynamic(_) => Err(without_index()),
        }
    }

    /// Which index a query would be answered by and why not by others, as JSON text.
    ///
    /// Errors: as [`Engine::run`].
    pub fn explain(&self, _: &Database, prepared: &Prepared<'_>) -> Result<Vec<u8>> {
        let mut out = b"{".to_vec();
        match &prepared.plan.access {
            Access::Collection { .. } => json::string(&mut out, "IndexName", "collection"),
            Access::Index(name) => json::string(&mut out, "IndexName", name),
            Access::Dynamic(_) => return Err(without_index()),
        }
        out.extend_from_slice(b",\"Results\":[]}");
        Ok(out)
    }

    /// The index entries that a query finds, in place of its results.
    ///
    /// Errors: as [`Engine::run`]; [`Error::NotSupported`] for a collection, which has none.
    pub fn entries(
        &self,
        _: &Database,
        prepared: &Prepared<'_>,
        _: &mut Vec<u8>,
        _: &mut dyn Sink,
    ) -> Result<Outcome> {
        match &prepared.plan.access {
            Access::Collection { .. } => Err(Error::NotSupported(
                "Collection query is handled directly by documents storage so index entries aren't created underneath"
                    .to_owned(),
            )),
            Access::Index(name) => Err(Error::NoIndex(name.clone())),
            Access::Dynamic(_) => Err(without_index()),
        }
    }
}

fn without_index() -> Error {
    Error::NotSupported("Queries that need an index: not supported by this version of the server.".to_owned())
}

impl Prepared<'_> {
    /// Whether the answer is a page of few documents found without a search, so that it is there in no time.
    #[must_use]
    pub fn is_brief(&self) -> bool {
        /// Documents that are printed in less time than it takes to pass work to another thread.
        const BRIEF_MAX: u64 = 16;
        let take = match &self.plan.tree.paging.take {
            None => self.request.take,
            Some(take) => match self.request.parameters.value(&self.plan.text, take) {
                Ok(crate::parameters::Scalar::Long(take)) => self.request.take.min(take.unsigned_abs()),
                _ => self.request.take,
            },
        };
        let is_plain = self.plan.filter.is_none() && !self.plan.projection.is_distinct();
        match &self.plan.access {
            Access::Collection { ids: Ids::These, .. } => {
                matches!(&self.plan.tree.condition, Some(jackdaw_rql::tree::Expression::Comparison(_)))
            }
            Access::Collection { ids: Ids::All, .. } => {
                is_plain
                    && take <= BRIEF_MAX
                    && self.plan.tree.paging.skip.is_none()
                    && self.request.skip == 0
            }
            _ => false,
        }
    }
}
