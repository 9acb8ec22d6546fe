//! What scripts ask of the database: the functions of `host` in `prelude.js`.
//!
//! They are plain functions of the realm, which is made once; who answers stands in a slot of the thread while a script runs. An error of who answers is kept
//! there too, so that it is the result of the run whatever the script makes of it.

use std::cell::RefCell;
use std::rc::Rc;

use jackdaw_document::{self as document, Context as Memory, Document, Mode};
use rquickjs::{Ctx, Exception, Function, Object, Value};
use scoped_tls_hkt::scoped_thread_local;

use super::engine::Realm;
use super::error::{HostError, ScriptError};
use super::format;
use super::sources::{self, Source};
use super::{from_script, into_script};
use crate::Input;

/// Receives a document that was asked for.
pub(super) type GiveDocument<'g> = dyn FnMut(Option<&Input<'_>>) + 'g;
/// Receives a value that was asked for.
pub(super) type GiveValue<'g> = dyn FnMut(Option<document::Value<'_>>) + 'g;

/// Who answers a script.
pub(super) trait Calls {
    fn load(
        &mut self,
        id: &str,
        collection: Option<&str>,
        tracked: bool,
        give: &mut GiveDocument<'_>,
    ) -> Result<(), HostError>;
    fn compare_exchange(&mut self, key: &str, give: &mut GiveValue<'_>) -> Result<(), HostError>;
    fn put(
        &mut self,
        _id: &str,
        _document: Document<'_>,
        _change_vector: Option<&str>,
    ) -> Result<String, HostError> {
        Err(refusal("put"))
    }
    fn delete(&mut self, _id: &str, _change_vector: Option<&str>) -> Result<bool, HostError> {
        Err(refusal("del"))
    }
    fn include(&mut self, _kind: IncludeKind, _id: &str) {}
    fn output(&mut self, _text: String) {}
    /// What reading a field that is not there means, where that is an error.
    fn missing(&mut self, name: &str) -> HostError {
        format!("there is no field '{name}'").into()
    }
    /// Whether loaded documents have their ids in their metadata.
    fn tells_ids(&self) -> bool {
        false
    }
}

/// What a script asks to be included in an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IncludeKind {
    /// A document by its id.
    Document,
    /// A compare-exchange value by its key.
    CompareExchange,
}

fn refusal(function: &str) -> HostError {
    format!("{function}: only patches may write").into()
}

scoped_thread_local!(static mut CALLS: for<'a> &'a mut (dyn Calls + 'a));

thread_local! {
    static FAILURE: RefCell<Option<ScriptError>> = const { RefCell::new(None) };
}

/// Runs `body` with someone to answer.
pub(super) fn with<R>(calls: &mut dyn Calls, body: impl FnOnce() -> R) -> R {
    FAILURE.take();
    CALLS.set(calls, body)
}

/// The first error of who answered, once.
pub(super) fn take_failure() -> Option<ScriptError> {
    FAILURE.take()
}

fn ask<R>(
    ctx: &Ctx<'_>,
    question: impl FnOnce(&mut dyn Calls) -> Result<R, HostError>,
) -> rquickjs::Result<R> {
    if !CALLS.is_set() {
        return Err(Exception::throw_type(ctx, "nobody answers"));
    }
    // After an error nothing is asked any more: the run has failed.
    if FAILURE.with_borrow(Option::is_some) {
        return Err(Exception::throw_type(ctx, "the script has failed"));
    }
    CALLS.with(|calls| question(calls)).map_err(|error| fail(ctx, ScriptError::Host(error)))
}

fn fail(ctx: &Ctx<'_>, error: ScriptError) -> rquickjs::Error {
    let text = error.to_string();
    FAILURE.with_borrow_mut(|failure| failure.get_or_insert(error).to_string());
    Exception::throw_type(ctx, &text)
}

/// The object `host` of `prelude.js`.
pub(super) fn object<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    host.set("load", Function::new(ctx.clone(), load)?)?;
    host.set("cmpxchg", Function::new(ctx.clone(), compare_exchange)?)?;
    host.set("put", Function::new(ctx.clone(), put)?)?;
    host.set("del", Function::new(ctx.clone(), delete)?)?;
    host.set("include", Function::new(ctx.clone(), include)?)?;
    host.set("output", Function::new(ctx.clone(), output)?)?;
    host.set("id", Function::new(ctx.clone(), id)?)?;
    host.set("metadata", Function::new(ctx.clone(), metadata)?)?;
    host.set("lastModified", Function::new(ctx.clone(), last_modified)?)?;
    host.set("missing", Function::new(ctx.clone(), missing)?)?;
    host.set("notSupported", Function::new(ctx.clone(), not_supported)?)?;
    host.set("distance", Function::new(ctx.clone(), format::distance)?)?;
    host.set("timeSpan", Function::new(ctx.clone(), |ticks: f64| crate::time_span_text(ticks as i64))?)?;
    host.set("formatDate", Function::new(ctx.clone(), format::date)?)?;
    host.set("formatNumber", Function::new(ctx.clone(), format::number)?)?;
    Ok(host)
}

fn load<'js>(
    ctx: Ctx<'js>,
    id: String,
    collection: Value<'js>,
    tracked: bool,
    shared: Object<'js>,
) -> rquickjs::Result<Value<'js>> {
    let collection = collection.as_string().map(rquickjs::String::to_string).transpose()?;
    let mut loaded = None;
    let tells_id = ask(&ctx, |calls| {
        calls.load(&id, collection.as_deref(), tracked, &mut |input| loaded = input.map(source_of))?;
        Ok(calls.tells_ids())
    })?;
    match loaded {
        Some(source) => {
            let source = Rc::new(source);
            let document = into_script::document(&Realm::of(&ctx, &shared)?, source.clone())?;
            if tells_id && let Some(object) = document.as_object() {
                let metadata: Value<'js> = object.get("@metadata")?;
                if let Some(metadata) = metadata.as_object() {
                    metadata.set("@id", source.id.as_str())?;
                }
            }
            Ok(document)
        }
        None => Ok(Value::new_undefined(ctx)),
    }
}

/// A copy of a document for as long as a script has it.
pub(super) fn source_of(input: &Input<'_>) -> Source {
    Source {
        bytes: input.document.as_bytes().into(),
        id: input.id.to_owned(),
        change_vector: input.change_vector.to_owned(),
        last_modified: input.last_modified,
    }
}

fn missing(ctx: Ctx<'_>, name: String) -> rquickjs::Result<()> {
    ask(&ctx, |calls| Err(calls.missing(&name)))
}

fn compare_exchange<'js>(ctx: Ctx<'js>, key: String, shared: Object<'js>) -> rquickjs::Result<Value<'js>> {
    let realm = Realm::of(&ctx, &shared)?;
    let mut result = Ok(Value::new_null(ctx.clone()));
    ask(&ctx, |calls| {
        calls.compare_exchange(&key, &mut |value| {
            if let Some(value) = value {
                result = into_script::value(&realm, &value);
            }
        })
    })?;
    result
}

fn put<'js>(
    ctx: Ctx<'js>,
    id: String,
    object: Object<'js>,
    change_vector: Option<String>,
    shared: Object<'js>,
) -> rquickjs::Result<String> {
    let realm = Realm::of(&ctx, &shared)?;
    let memory = Memory::new();
    let built =
        from_script::document(&realm, &object, &memory, Mode::Memory).map_err(|error| match error {
            from_script::Failure::Script(error) => error,
            from_script::Failure::Document(error) => fail(&ctx, ScriptError::Document(error)),
        })?;
    ask(&ctx, |calls| calls.put(&id, built, change_vector.as_deref()))
}

fn delete(ctx: Ctx<'_>, id: String, change_vector: Option<String>) -> rquickjs::Result<bool> {
    ask(&ctx, |calls| calls.delete(&id, change_vector.as_deref()))
}

fn include(ctx: Ctx<'_>, kind: String, id: String) -> rquickjs::Result<()> {
    let kind = if kind == "document" { IncludeKind::Document } else { IncludeKind::CompareExchange };
    ask(&ctx, |calls| {
        calls.include(kind, &id);
        Ok(())
    })
}

fn output(ctx: Ctx<'_>, text: String) -> rquickjs::Result<()> {
    ask(&ctx, |calls| {
        calls.output(text);
        Ok(())
    })
}

fn id(node: u32) -> Option<String> {
    sources::document(node).map(|source| source.id.clone())
}

/// What the database knows of a document beside what is in it.
fn metadata<'js>(ctx: Ctx<'js>, node: u32) -> rquickjs::Result<Value<'js>> {
    let Some(source) = sources::document(node) else { return Ok(Value::new_undefined(ctx)) };
    let known = Object::new(ctx)?;
    if !source.change_vector.is_empty() {
        known.set("@change-vector", source.change_vector.as_str())?;
    }
    known.set("@id", source.id.as_str())?;
    if source.last_modified > 0 {
        known.set("@last-modified", format::date_text(source.last_modified))?;
    }
    Ok(known.into_value())
}

/// Milliseconds since 1970.
fn last_modified(node: u32) -> Option<f64> {
    let source = sources::document(node).filter(|source| source.last_modified > 0)?;
    Some((source.last_modified - format::TICKS_OF_1970) as f64 / 10_000.0)
}

fn not_supported(ctx: Ctx<'_>, function: String, feature: String) -> rquickjs::Result<()> {
    Err(fail(&ctx, ScriptError::NotSupported { function, feature }))
}
