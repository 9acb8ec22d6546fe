//! The engine of a thread: one QuickJS runtime with one realm whose every shared object is frozen, and the scripts compiled in it.
//!
//! A realm for each script would keep scripts apart at the price of building one (some 0.4 ms) for each; here they share a realm in which nothing can be
//! left: globals and prototypes are frozen, text cannot become code, and every script is a function of its own. See `prelude.js`.

use std::cell::{Cell, RefCell};
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;

use lru::LruCache;
use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::{CaughtError, Context, Ctx, Function, Object, Persistent, Runtime, Symbol};

use super::calls::{self, Calls};
use super::error::ScriptError;
use super::limits::{Budget, Limits};
use super::sources;
use crate::RuntimeError;

/// What a script's own calls may take of the thread's stack, in bytes. Threads have 2 MiB, and more than this is above or below.
const STACK_BYTES: usize = 512 << 10;
/// Scripts that stay compiled on each thread.
const SCRIPTS_MAX: NonZeroUsize = NonZeroUsize::new(256).unwrap();
/// Garbage that the engine may gather before it looks for cycles, in bytes.
const COLLECT_AFTER_BYTES: usize = 4 << 20;

/// What stack traces call a script.
const FILE: &str = "<script>";

type Intrinsics = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::Promise,
);

thread_local! {
    static ENGINE: RefCell<Option<Engine>> = const { RefCell::new(None) };
}

/// Compiled scripts and what else is kept between runs. The order of the fields matters: nothing may outlive the runtime.
struct Engine {
    scripts: RefCell<LruCache<Arc<str>, Persistent<Function<'static>>>>,
    shared: Shared<'static>,
    context: Context,
    runtime: Runtime,
    budget: Rc<Budget>,
    /// Something is left behind that only a new engine is rid of.
    spent: Cell<bool>,
}

/// What the realm gives to Rust.
struct Shared<'js> {
    source: Persistent<Symbol<'js>>,
    nothing: Persistent<Object<'js>>,
    call_of_nothing: Persistent<Object<'js>>,
    define: Persistent<Object<'js>>,
    strict: Persistent<Function<'js>>,
    date: Persistent<Object<'js>>,
    date_value: Persistent<Function<'js>>,
    well_formed: Persistent<Function<'js>>,
    shown: Persistent<Function<'js>>,
}

/// The realm while a script runs in it.
pub(super) struct Realm<'js> {
    pub(super) ctx: Ctx<'js>,
    /// The property of objects that says which object of a document they came from.
    pub(super) source: Symbol<'js>,
    /// Stands in for null and undefined where a property is read.
    pub(super) nothing: Object<'js>,
    /// Stands in for null and undefined where a method is called.
    pub(super) call_of_nothing: Object<'js>,
    /// Makes what a definition is run with.
    pub(super) define: Object<'js>,
    /// Makes reading what is not there end the run.
    pub(super) strict: Function<'js>,
    date: Object<'js>,
    date_value: Function<'js>,
    well_formed: Function<'js>,
    shown: Function<'js>,
}

/// Runs `body` in this thread's realm, within limits. `calls` answers what the script asks of the database.
///
/// Errors: those of `body`; [`RuntimeError::Limit`] instead when a limit was exceeded; an error of `calls` instead of what the script made of it.
pub(super) fn run<R>(
    limits: &Limits,
    calls: &mut dyn Calls,
    body: impl FnOnce(&Scripts<'_, '_>) -> Result<R, ScriptError>,
) -> Result<R, ScriptError> {
    ENGINE.with(|slot| {
        let Ok(mut slot) = slot.try_borrow_mut() else {
            return Err(ScriptError::internal("a script cannot run within another"));
        };
        if slot.as_ref().is_some_and(|engine| engine.spent.get()) {
            *slot = None;
        }
        let engine = match &mut *slot {
            Some(engine) => engine,
            empty => empty.insert(Engine::new()?),
        };
        let result = engine.run(limits, calls, body);
        if engine.runtime.is_job_pending() {
            engine.spent.set(true);
        }
        result
    })
}

/// The realm, and what is compiled in it.
pub(super) struct Scripts<'e, 'js> {
    engine: &'e Engine,
    pub(super) realm: Realm<'js>,
}

impl Engine {
    fn new() -> Result<Engine, ScriptError> {
        let failed = |error: rquickjs::Error| ScriptError::internal(format!("no JavaScript engine: {error}"));
        let runtime = Runtime::new().map_err(failed)?;
        runtime.set_max_stack_size(STACK_BYTES);
        runtime.set_gc_threshold(COLLECT_AFTER_BYTES);
        let budget = Rc::new(Budget::default());
        let counted = budget.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || counted.is_over())));
        let context = Context::custom::<Intrinsics>(&runtime).map_err(failed)?;
        let shared = context.with(|ctx| -> Result<Shared<'static>, ScriptError> {
            let build = || -> rquickjs::Result<Shared<'static>> {
                let prelude: Function<'_> = ctx.eval(include_str!("prelude.js"))?;
                let given: Object<'_> = prelude.call((calls::object(&ctx)?,))?;
                Shared::of(&ctx, &given)
            };
            build().map_err(|error| {
                ScriptError::internal(format!(
                    "no realm for scripts: {}",
                    CaughtError::from_error(&ctx, error)
                ))
            })
        })?;
        let scripts = RefCell::new(LruCache::new(SCRIPTS_MAX));
        Ok(Engine { scripts, shared, context, runtime, budget, spent: Cell::new(false) })
    }

    fn run<R>(
        &self,
        limits: &Limits,
        calls: &mut dyn Calls,
        body: impl FnOnce(&Scripts<'_, '_>) -> Result<R, ScriptError>,
    ) -> Result<R, ScriptError> {
        self.runtime.set_memory_limit(limits.memory_bytes);
        self.budget.begin(limits);
        sources::clear();
        let result = calls::with(calls, || {
            self.context.with(|ctx| {
                let realm = self.shared.restore(&ctx).map_err(|error| fault(&ctx, None, error))?;
                body(&Scripts { engine: self, realm })
            })
        });
        let exceeded = self.budget.end();
        self.runtime.set_memory_limit(0);
        let failure = calls::take_failure();
        match (result, exceeded, failure) {
            (_, Some(limit), _) => Err(limit.into()),
            (_, None, Some(failure)) => Err(failure),
            (Err(ScriptError::OutOfMemory), None, None) => {
                self.spent.set(true);
                let limit = limits.memory_bytes as u64;
                Err(RuntimeError::Limit { what: "bytes of memory", limit }.into())
            }
            (Err(ScriptError::NullOrOutOfMemory), None, None) => {
                self.spent.set(true);
                Err(ScriptError::thrown("null was thrown, or no memory was left to say what"))
            }
            (result, None, None) => result,
        }
    }
}

impl Shared<'static> {
    fn of<'js>(ctx: &Ctx<'js>, given: &Object<'js>) -> rquickjs::Result<Shared<'static>> {
        let realm = Realm::of(ctx, given)?;
        Ok(Shared {
            source: Persistent::save(ctx, realm.source),
            nothing: Persistent::save(ctx, realm.nothing),
            call_of_nothing: Persistent::save(ctx, realm.call_of_nothing),
            define: Persistent::save(ctx, realm.define),
            strict: Persistent::save(ctx, realm.strict),
            date: Persistent::save(ctx, realm.date),
            date_value: Persistent::save(ctx, realm.date_value),
            well_formed: Persistent::save(ctx, realm.well_formed),
            shown: Persistent::save(ctx, realm.shown),
        })
    }

    fn restore<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Realm<'js>> {
        Ok(Realm {
            ctx: ctx.clone(),
            source: self.source.clone().restore(ctx)?,
            nothing: self.nothing.clone().restore(ctx)?,
            call_of_nothing: self.call_of_nothing.clone().restore(ctx)?,
            define: self.define.clone().restore(ctx)?,
            strict: self.strict.clone().restore(ctx)?,
            date: self.date.clone().restore(ctx)?,
            date_value: self.date_value.clone().restore(ctx)?,
            well_formed: self.well_formed.clone().restore(ctx)?,
            shown: self.shown.clone().restore(ctx)?,
        })
    }
}

impl<'js> Scripts<'_, 'js> {
    /// The value of an expression, evaluated once on each thread and remembered by its text: a function.
    pub(super) fn function(&self, code: &Arc<str>) -> Result<Function<'js>, ScriptError> {
        let ctx = &self.realm.ctx;
        if let Some(known) = self.engine.scripts.borrow_mut().get(code) {
            return known.clone().restore(ctx).map_err(|error| self.realm.fault(error));
        }
        let mut options = EvalOptions::default();
        options.filename = Some(FILE.to_owned());
        let function: Function<'js> =
            ctx.eval_with_options(code.as_bytes(), options).map_err(|error| self.realm.fault(error))?;
        let kept = Persistent::save(ctx, function.clone());
        self.engine.scripts.borrow_mut().put(code.clone(), kept);
        Ok(function)
    }
}

impl<'js> Realm<'js> {
    /// The realm as `prelude.js` hands it over.
    pub(super) fn of(ctx: &Ctx<'js>, given: &Object<'js>) -> rquickjs::Result<Realm<'js>> {
        Ok(Realm {
            ctx: ctx.clone(),
            source: given.get("source")?,
            nothing: given.get("nothing")?,
            call_of_nothing: given.get("callOfNothing")?,
            define: given.get("define")?,
            strict: given.get("strict")?,
            date: given.get("date")?,
            date_value: given.get("dateValue")?,
            well_formed: given.get("wellFormed")?,
            shown: given.get("shown")?,
        })
    }

    /// What went wrong, as an error of ours.
    #[cold]
    pub(super) fn fault(&self, error: rquickjs::Error) -> ScriptError {
        fault(&self.ctx, Some(&self.shown), error)
    }

    /// The milliseconds of a `Date`; `None` for anything else.
    pub(super) fn date_value(&self, object: &Object<'js>) -> rquickjs::Result<Option<f64>> {
        match object.is_instance_of(&self.date) {
            true => self.date_value.call((object.clone(),)),
            false => Ok(None),
        }
    }

    /// A string's text; halves of surrogate pairs become the replacement character.
    pub(super) fn text(&self, text: &rquickjs::String<'js>) -> rquickjs::Result<String> {
        match text.to_string() {
            Err(rquickjs::Error::Utf8(_)) => self.well_formed.call((text.clone(),)),
            text => text,
        }
    }
}

#[cold]
fn fault<'js>(ctx: &Ctx<'js>, shown: Option<&Function<'js>>, error: rquickjs::Error) -> ScriptError {
    match CaughtError::from_error(ctx, error) {
        CaughtError::Error(rquickjs::Error::Allocation) => ScriptError::OutOfMemory,
        CaughtError::Error(error) => ScriptError::thrown(error.to_string()),
        CaughtError::Exception(exception) => {
            let message = exception.message().unwrap_or_default();
            if message == "out of memory" {
                return ScriptError::OutOfMemory;
            }
            let name: Option<String> = exception.get("name").ok();
            let mut text = match name.filter(|name| !name.is_empty()) {
                Some(name) => format!("{name}: {message}"),
                None => message,
            };
            if let Some(place) = exception.stack().as_deref().and_then(place) {
                text.push_str(&format!(" (line {place})"));
            }
            ScriptError::thrown(text)
        }
        // What is left when there is no memory for the error itself.
        CaughtError::Value(value) if value.is_null() => ScriptError::NullOrOutOfMemory,
        CaughtError::Value(value) => {
            let text = shown.and_then(|shown| shown.call::<_, String>((value,)).ok());
            // Showing it may have thrown.
            let _ = ctx.catch();
            ScriptError::thrown(text.unwrap_or_else(|| "a value that cannot be shown".to_owned()))
        }
    }
}

/// The line of a script in a stack trace.
fn place(stack: &str) -> Option<&str> {
    let at = stack.find(FILE)?;
    let digits = &stack[at + FILE.len() + 1..];
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    (end > 0).then(|| &digits[..end])
}
