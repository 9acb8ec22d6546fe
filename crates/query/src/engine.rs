//! Where queries come in.

use std::sync::Arc;
use std::time::Duration;

use jackdaw_database::Database;
use jackdaw_indexing::{Cutoff, Indexes};

use crate::answer::envelope::Layout;
use crate::answer::json;
use crate::error::{Error, Result};
use crate::execute::collection::{self, Outcome};
use crate::execute::index::{self, Opened};
use crate::plan::cache::Plans;
use crate::plan::field::Origin;
use crate::plan::projection::Projection;
use crate::plan::{Access, Plan};
use crate::request::Request;
use crate::run::Run;
use crate::sink::Sink;

/// How long the first query waits for an index that was made for it.
const FIRST_WAIT_MAX: Duration = Duration::from_secs(15);

/// Answers the queries of one database.
#[derive(Default)]
pub struct Engine {
    plans: Plans,
}

/// What a query is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Its answer.
    Read,
    /// The documents found are changed by its `update` clause.
    Update,
    /// The documents found are deleted.
    Delete,
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
        self.prepare_for(request, Purpose::Read)
    }

    /// As [`Engine::prepare`], for a query that does something to what it finds.
    ///
    /// Errors: as [`Engine::prepare`]; an `update` clause that is missing, or should not be there.
    pub fn prepare_for<'r>(&self, request: Request<'r>, purpose: Purpose) -> Result<Prepared<'r>> {
        let plan = self.plans.get(&request.text)?;
        let wrong = match (purpose, &plan.tree.update) {
            (Purpose::Update, None) => "Update operations must end with UPDATE clause",
            (Purpose::Read | Purpose::Delete, Some(_)) => "Only update operations have an UPDATE clause",
            _ => return Ok(Prepared { plan, request }),
        };
        Err(Error::Parse(format!("{wrong}\nQuery: {}", request.text)))
    }

    /// Runs a query: writes its answer to `out`, for `sink` to take. Blocks on indexes where it has to wait for one.
    ///
    /// Errors: those of [`Error`]. What is written by then is not an answer.
    pub fn run(
        &self,
        database: &Database,
        indexes: &Indexes,
        prepared: &Prepared<'_>,
        layout: Layout,
        out: &mut Vec<u8>,
        sink: &mut dyn Sink,
    ) -> Result<Outcome> {
        let Prepared { plan, request } = prepared;
        if !matches!(layout, Layout::Answer | Layout::Ids) && !plan.wanted.is_empty() {
            return Err(Error::NotSupported("Includes are not supported by this type of query.".to_owned()));
        }
        let opened = open(indexes, plan, request)?;
        let snapshot = database.read()?;
        let run = Run::new(plan, request, &snapshot)?;
        let outcome = match (&plan.access, &opened) {
            (Access::Collection { name, ids }, _) => {
                collection::run(&run, name.as_deref(), *ids, layout, out, sink)
            }
            (_, Some(opened)) => index::run(&run, opened, layout, out, sink),
            (_, None) => Err(Error::InvalidOperation("the query has no source".to_owned())),
        };
        plan.cost.note(run.begun.elapsed());
        outcome
    }

    /// Which index a query would be answered by and why not by others, as JSON text.
    ///
    /// Errors: as [`Engine::run`].
    pub fn explain(&self, indexes: &Indexes, prepared: &Prepared<'_>) -> Result<Vec<u8>> {
        let mut out = b"{".to_vec();
        let mut explanations = Vec::new();
        match &prepared.plan.access {
            Access::Collection { .. } => json::string(&mut out, "IndexName", "collection"),
            Access::Index(name) => json::string(&mut out, "IndexName", &indexes.require(name)?.name()),
            Access::Dynamic(definition) => {
                explanations = indexes.explain_auto(definition);
                json::string(&mut out, "IndexName", &indexes.auto(definition)?.index.name());
            }
        }
        json::name(&mut out, "Results");
        out.push(b'[');
        for explanation in &explanations {
            json::separate(&mut out);
            out.push(b'{');
            json::string(&mut out, "Index", &explanation.index);
            json::string(&mut out, "Reason", &explanation.reason);
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
        Ok(out)
    }
}

/// Finds the index of a query, in a state that is as new as the query wants. An index that was made for it is waited for, so that the first answer is whole where
/// that takes no long time.
fn open(indexes: &Indexes, plan: &Plan, request: &Request<'_>) -> Result<Option<Opened>> {
    let (index, created) = match &plan.access {
        Access::Collection { .. } => return Ok(None),
        Access::Index(name) => (indexes.require(name)?, false),
        Access::Dynamic(definition) => {
            let found = indexes.auto(definition)?;
            (found.index, found.created)
        }
    };
    index.check_queryable()?;
    let wait = request.wait.or(created.then_some(FIRST_WAIT_MAX));
    let waited = match wait {
        Some(wait) => index.wait_for_blocking(Cutoff::Now, wait)?,
        None => None,
    };
    let view = match waited {
        Some(view) => view,
        None => index.view()?,
    };
    index.note_query();
    Ok(Some(Opened { index, view, created }))
}

impl Engine {
    /// The index entries that a query finds, in place of its results.
    ///
    /// Errors: as [`Engine::run`]; [`Error::NotSupported`] for a collection, which has none.
    pub fn entries(
        &self,
        database: &Database,
        indexes: &Indexes,
        prepared: &Prepared<'_>,
        out: &mut Vec<u8>,
        sink: &mut dyn Sink,
    ) -> Result<Outcome> {
        let Prepared { plan, request } = prepared;
        let Some(opened) = open(indexes, plan, request)? else {
            return Err(Error::NotSupported(
                "Collection query is handled directly by documents storage so index entries aren't created underneath"
                    .to_owned(),
            ));
        };
        let snapshot = database.read()?;
        let run = Run::new(plan, request, &snapshot)?;
        index::entries(&run, &opened, out, sink)
    }
}

impl Prepared<'_> {
    /// The script of `update`, which knows the document by its alias and what `load` loads.
    #[must_use]
    pub fn script(&self) -> Option<String> {
        let tree = &self.plan.tree;
        let update = tree.update.as_ref()?;
        let mut script = String::new();
        for declaration in &tree.declarations {
            let parameters: Vec<&str> = declaration.parameters.iter().map(|name| &*name.text).collect();
            script += &format!(
                "function {}({}) {{{}}} ",
                declaration.name.text,
                parameters.join(", "),
                declaration.body.text
            );
        }
        if let Some(alias) = &tree.from.alias {
            script += &format!("let {} = this; ", alias.text);
        }
        for (load, path) in tree.load.iter().zip(&self.plan.loads) {
            let origin = match path.origin {
                Origin::Result => "this",
                Origin::Loaded(number) => tree.load.get(number).map_or("this", |load| &load.alias.text),
            };
            let mut value = origin.to_owned();
            for name in path.path.text().replace("[]", "").split('.') {
                value += &format!("?.[{}]", serde_json::Value::from(name));
            }
            script += &format!("let {} = load({value}); ", load.alias.text);
        }
        Some(script + &update.text)
    }

    /// Whether the answer is there in no time, so that it is not worth another thread: runs of the same text took no time before. One that takes longer
    /// this time is broken off by its sink, which tells [`Prepared::was_not_brief`].
    #[must_use]
    pub fn is_brief(&self, indexes: &Indexes) -> bool {
        /// Ten times what it costs to pass work to another thread and back; other requests on this one wait no longer than for a slow disk.
        const COST_MAX: Duration = Duration::from_millis(1);
        if self.request.wait.is_some() || self.plan.filter.is_some() {
            return false;
        }
        if matches!(&self.plan.projection, Projection::Script { .. }) {
            return false;
        }
        // An index that is gone would be made again, and waited for.
        if let Access::Dynamic(definition) = &self.plan.access
            && indexes.find_auto(definition).is_none()
        {
            return false;
        }
        self.plan.cost.expected().is_some_and(|cost| cost < COST_MAX)
    }

    /// Notes that the answer was longer than a brief one may be: the next runs of the same text are not taken for brief.
    pub fn was_not_brief(&self) {
        self.plan.cost.note(Duration::from_millis(10));
    }
}
