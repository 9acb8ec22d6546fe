//! Patches: scripts that change a document, and others through it.

use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jackdaw_document::{self as document, Context as Memory, Document, Mode};
use lru::LruCache;
use rquickjs::function::Args;
use rquickjs::{Function, Object, Value};

use super::calls::{Calls, GiveDocument, GiveValue, IncludeKind, source_of};
use super::engine::{self, Scripts};
use super::error::{HostError, ScriptError};
use super::limits::Limits;
use super::{from_script, into_script, syntax};
use crate::{CompileError, Input};

/// Patches whose texts were checked, in all threads together.
const KEPT_MAX: NonZeroUsize = NonZeroUsize::new(512).unwrap();
/// Longer texts are checked each time.
const KEPT_TEXT_MAX: usize = 64 << 10;

static KEPT: LazyLock<Mutex<LruCache<String, PatchScript>>> =
    LazyLock::new(|| Mutex::new(LruCache::new(KEPT_MAX)));

/// The script of a patch, checked. Cheap to clone; runs on any thread.
#[derive(Clone, Debug)]
pub struct PatchScript(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    text: String,
    code: Arc<str>,
    /// The names of parameters that it uses, with their `$`.
    parameters: Vec<String>,
}

/// What a patch may do beside changing its document.
pub trait PatchHost {
    /// Gives the document with this id as the transaction sees it, or `None`.
    ///
    /// # Errors
    ///
    /// When it cannot be read; the run then ends with that error.
    fn load(&mut self, id: &str, give: &mut dyn FnMut(Option<&Input<'_>>)) -> Result<(), HostError>;

    /// Gives the value under a compare-exchange key: what stands under `Object` in it.
    ///
    /// # Errors
    ///
    /// As [`PatchHost::load`].
    fn compare_exchange(
        &mut self,
        key: &str,
        give: &mut dyn FnMut(Option<document::Value<'_>>),
    ) -> Result<(), HostError>;

    /// Stores a document; the id it got.
    ///
    /// # Errors
    ///
    /// As [`PatchHost::load`].
    fn put(
        &mut self,
        id: &str,
        document: Document<'_>,
        change_vector: Option<&str>,
    ) -> Result<String, HostError>;

    /// Deletes a document; whether there was one.
    ///
    /// # Errors
    ///
    /// As [`PatchHost::load`].
    fn delete(&mut self, id: &str, change_vector: Option<&str>) -> Result<bool, HostError>;

    /// Remembers what is to be included in the answer.
    fn include(&mut self, _kind: IncludeKind, _id: &str) {}

    /// Takes a line that the script shows.
    fn output(&mut self, _text: String) {}
}

struct Answers<'h>(&'h mut dyn PatchHost);

impl Calls for Answers<'_> {
    fn load(
        &mut self,
        id: &str,
        _: Option<&str>,
        _: bool,
        give: &mut GiveDocument<'_>,
    ) -> Result<(), HostError> {
        self.0.load(id, give)
    }

    fn compare_exchange(&mut self, key: &str, give: &mut GiveValue<'_>) -> Result<(), HostError> {
        self.0.compare_exchange(key, give)
    }

    fn put(
        &mut self,
        id: &str,
        document: Document<'_>,
        change_vector: Option<&str>,
    ) -> Result<String, HostError> {
        self.0.put(id, document, change_vector)
    }

    fn delete(&mut self, id: &str, change_vector: Option<&str>) -> Result<bool, HostError> {
        self.0.delete(id, change_vector)
    }

    fn include(&mut self, kind: IncludeKind, id: &str) {
        self.0.include(kind, id);
    }

    fn output(&mut self, text: String) {
        self.0.output(text);
    }
}

impl PatchScript {
    /// Checks a script. Texts that came before are remembered.
    ///
    /// # Errors
    ///
    /// Where and why it is no script.
    pub fn compile(text: &str) -> Result<PatchScript, CompileError> {
        if let Some(known) = KEPT.lock().unwrap_or_else(PoisonError::into_inner).get(text) {
            return Ok(known.clone());
        }
        let checked = syntax::check(text)?;
        let names: String = checked.parameters.iter().flat_map(|name| [",", name.as_str()]).collect();
        let (nothing, call_of_nothing) = (syntax::NOTHING, syntax::CALL_OF_NOTHING);
        // Everything before the script stands on its first line, so that lines are those of the script.
        let code = format!(
            "(function({nothing},{call_of_nothing},args{names}){{'use strict';return function(){{{}\n}}.call(this)}})",
            checked.code
        );
        let inner = Inner { text: text.to_owned(), code: code.into(), parameters: checked.parameters };
        let script = PatchScript(Arc::new(inner));
        if text.len() <= KEPT_TEXT_MAX {
            KEPT.lock().unwrap_or_else(PoisonError::into_inner).put(text.to_owned(), script.clone());
        }
        Ok(script)
    }

    /// The script's text as it was given.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Whether it does nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.text.trim().is_empty()
    }

    /// Runs the script over a document and returns the changed document, built in `memory`. Properties of
    /// `@metadata` that the database makes itself may be in it. `arguments` is an object, or nothing.
    ///
    /// # Errors
    ///
    /// What the script throws, the limit it exceeds, what the host answers.
    pub fn run<'c>(
        &self,
        input: &Input<'_>,
        arguments: Option<&document::Value<'_>>,
        limits: &Limits,
        host: &mut dyn PatchHost,
        memory: &'c Memory,
        mode: Mode,
    ) -> Result<Document<'c>, ScriptError> {
        engine::run(limits, &mut Answers(host), |scripts| {
            let function = scripts.function(&self.0.code)?;
            let fault = |error| scripts.realm.fault(error);
            let this = into_script::document(&scripts.realm, Rc::new(source_of(input))).map_err(fault)?;
            self.call(scripts, &function, &this, arguments).map_err(fault)?;
            let object =
                this.as_object().ok_or_else(|| ScriptError::thrown("a document must be an object"))?;
            from_script::document(&scripts.realm, object, memory, mode).map_err(|failure| match failure {
                from_script::Failure::Script(error) => fault(error),
                from_script::Failure::Document(error) => error.into(),
            })
        })
    }

    fn call<'js>(
        &self,
        scripts: &Scripts<'_, 'js>,
        function: &Function<'js>,
        this: &Value<'js>,
        arguments: Option<&document::Value<'_>>,
    ) -> rquickjs::Result<()> {
        let realm = &scripts.realm;
        let arguments = match arguments {
            Some(arguments @ document::Value::Object(_)) => into_script::value(realm, arguments)?,
            _ => Object::new(realm.ctx.clone())?.into_value(),
        };
        let mut args = Args::new(realm.ctx.clone(), 3 + self.0.parameters.len());
        args.this(this.clone())?;
        args.push_arg(realm.nothing.clone())?;
        args.push_arg(realm.call_of_nothing.clone())?;
        args.push_arg(arguments.clone())?;
        if let Some(object) = arguments.as_object() {
            for name in &self.0.parameters {
                args.push_arg(object.get::<_, Value<'js>>(&name[1..])?)?;
            }
        }
        function.call_arg::<Value<'js>>(args)?;
        Ok(())
    }
}
