//! Index functions: `map(..)` and `groupBy(..).aggregate(..)` behind the faces that both languages share.
//!
//! A definition is a script that runs once on each thread; it calls `map` or `groupBy` with the functions that are then run over documents. What the rest of the
//! system has to know beforehand is read off its text (`definition`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bumpalo::Bump;
use jackdaw_document::Document;
use oxc_ast_visit::Visit;
use rquickjs::{Array, Object, Value as ScriptValue};

use super::calls::{Calls, GiveDocument, GiveValue};
use super::definition::Definitions;
use super::engine::{self, Scripts};
use super::error::{HostError, ScriptError};
use super::limits::Limits as ScriptLimits;
use super::lower::{self, Lowered, LoweredMap, LoweredReduce};
use super::{into_script, into_value, syntax};
use crate::code::{Engine, MapCode, MapFacts, ReduceCode, ReduceFacts, RunMap, RunReduce};
use crate::program::Program;
use crate::{
    Collections, CompileError, Each, Entry, Host, Input, Limits, RuntimeError, Source, SourceKind, Value,
};

/// The time that a run over one document, or over the entries of one key, may take.
const TIME: Duration = Duration::from_secs(15);
/// Memory of a runner that is kept from one run to the next, in bytes.
const KEPT_BYTES: usize = 1 << 20;

/// A definition that was checked.
#[derive(Clone)]
struct Compiled {
    code: Arc<str>,
    fields: Option<Arc<[Box<str>]>>,
}

/// Compiles the text of a map.
pub(crate) fn compile_map(
    text: &str,
    sources: &BTreeMap<String, String>,
) -> Result<(MapFacts, Arc<dyn MapCode>), CompileError> {
    let (facts, script, lowered) = both_of_map(text, sources)?;
    Ok(match lowered {
        Some(lowered) => (facts, Arc::new(LoweredMap { lowered, script })),
        None => (facts, script),
    })
}

/// A map for QuickJS, and as it was lowered if it could be.
#[expect(clippy::type_complexity, reason = "taken apart at once, here and by the test that compares the two")]
pub(super) fn both_of_map(
    text: &str,
    sources: &BTreeMap<String, String>,
) -> Result<(MapFacts, Arc<dyn MapCode>, Option<Lowered>), CompileError> {
    let (code, definitions, lowered) = compile(text, sources, lower::map)?;
    if definitions.maps.is_empty() {
        return Err(nothing_defined("a map in JavaScript must call map(collection, function)", "map"));
    }
    let mut kind = SourceKind::Documents;
    let mut collections = Vec::new();
    let (mut is_all, mut name) = (false, None);
    for map in &definitions.maps {
        kind = map.source.kind;
        name = map.source.name.clone();
        match &map.source.collections {
            Collections::All => is_all = true,
            Collections::Named(names) => collections.extend(names.iter().cloned()),
        }
    }
    if definitions.maps.iter().any(|map| map.source.kind != kind || map.source.name != name) {
        let message =
            "one text can define maps over documents, time series or counters, but not over several of them";
        return Err(nothing_defined(message, "map"));
    }
    let mut fields = definitions.maps[0].fields.clone();
    if definitions.maps.iter().any(|map| map.fields != fields) {
        fields = None;
    }
    let compiled = Compiled { code, fields: fields.as_ref().map(|fields| fields.clone().into()) };
    let facts = MapFacts {
        source: Source {
            kind,
            collections: if is_all { Collections::All } else { Collections::Named(collections) },
            name,
        },
        field_names: fields.map(Vec::into_boxed_slice),
        has_dynamic_fields: definitions.has_dynamic_fields,
        loads: definitions.loads,
        uses_compare_exchange: definitions.uses_compare_exchange,
    };
    let by_collection = definitions.maps.len() > 1;
    let fields = compiled.fields.clone();
    let script: Arc<dyn MapCode> = Arc::new(MapScript { compiled, by_collection });
    Ok((facts, script, lowered.map(|program| Lowered::new(program, fields))))
}

/// Compiles the text of a reduce.
pub(crate) fn compile_reduce(
    text: &str,
    sources: &BTreeMap<String, String>,
) -> Result<(ReduceFacts, Arc<dyn ReduceCode>), CompileError> {
    let (facts, script, lowered) = both_of_reduce(text, sources)?;
    Ok(match lowered {
        Some(lowered) => (facts, Arc::new(LoweredReduce { lowered, script })),
        None => (facts, script),
    })
}

/// A reduce for QuickJS, and as it was lowered if it could be.
#[expect(clippy::type_complexity, reason = "taken apart at once, here and by the test that compares the two")]
pub(super) fn both_of_reduce(
    text: &str,
    sources: &BTreeMap<String, String>,
) -> Result<(ReduceFacts, Arc<dyn ReduceCode>, Option<Lowered>), CompileError> {
    let (code, mut definitions, lowered) = compile(text, sources, lower::reduce)?;
    let Some(reduce) = definitions.reduces.pop().filter(|_| definitions.reduces.is_empty()) else {
        let message = "a reduce in JavaScript must call groupBy(key).aggregate(function) once";
        return Err(nothing_defined(message, "groupBy"));
    };
    let names: Option<Arc<[Box<str>]>> =
        reduce.fields.as_ref().map(|fields| fields.iter().map(|field| field.name.clone()).collect());
    let facts = ReduceFacts { key_fields: reduce.key_fields, fields: reduce.fields };
    let script: Arc<dyn ReduceCode> =
        Arc::new(ReduceScript { compiled: Compiled { code, fields: names.clone() } });
    Ok((facts, script, lowered.map(|program| Lowered::new(program, names))))
}

fn nothing_defined(message: &str, construct: &str) -> CompileError {
    CompileError { message: message.to_owned(), line: 1, column: 1, construct: construct.to_owned() }
}

/// What a text is made into: a script for QuickJS, what the text says, and the program that it was lowered to if it could be.
type Made = (Arc<str>, Definitions, Option<Program>);

fn compile(
    text: &str,
    sources: &BTreeMap<String, String>,
    lower: impl FnOnce(&oxc_ast::ast::Program<'_>) -> Result<Program, lower::NotLowered>,
) -> Result<Made, CompileError> {
    let repaired = syntax::with_missing_commas(text);
    let checked = syntax::check(&repaired)?;
    let mut definitions = Definitions::default();
    // What sources of an index declare is not known to what is lowered.
    let lowered = syntax::parse(&repaired, |program| {
        definitions.visit_program(program);
        if sources.is_empty() { lower(program).ok() } else { None }
    })?;
    if let Some((at, message)) = definitions.wrong.take() {
        let mut error = syntax::error_at(&repaired, at as usize, message);
        error.construct = "definition".to_owned();
        return Err(error);
    }
    let (nothing, call_of_nothing) = (syntax::NOTHING, syntax::CALL_OF_NOTHING);
    let mut code = format!(
        "(()=>{{let defined;return({nothing},{call_of_nothing},define,which,given)=>{{'use strict';if(defined===undefined){{const made=define();\
         const{{map,groupBy,timeSeries,counters,createField,createSpatialField,boost}}=made;(function(){{"
    );
    for (name, source) in sources {
        let source = syntax::with_missing_commas(source);
        let checked = syntax::check(&source).map_err(|mut error| {
            error.construct = format!("additional source '{name}'");
            error
        })?;
        syntax::parse(&source, |program| {
            let mut other = Definitions::default();
            other.visit_program(program);
            definitions.loads.extend(other.loads);
            definitions.uses_compare_exchange |= other.uses_compare_exchange;
            definitions.has_dynamic_fields |= other.has_dynamic_fields;
        })?;
        // Writing into a string cannot fail.
        let _ = writeln!(code, "{}", checked.code);
    }
    let _ = write!(code, "{}\n}})();defined=made.defined}}return defined[which](given)}}}})()", checked.code);
    Ok((code.into(), definitions, lowered))
}

fn limits_of(limits: &Limits) -> ScriptLimits {
    ScriptLimits { steps: limits.steps_max, memory_bytes: limits.memory_bytes_max, time: TIME }
}

/// Calls the function of a definition.
fn call<'js>(
    scripts: &Scripts<'_, 'js>,
    code: &Arc<str>,
    which: &str,
    given: ScriptValue<'js>,
) -> Result<ScriptValue<'js>, ScriptError> {
    let realm = &scripts.realm;
    let function = scripts.function(code)?;
    let result = function.call((
        realm.nothing.clone(),
        realm.call_of_nothing.clone(),
        realm.define.clone(),
        which,
        given,
    ));
    result.map_err(|error| realm.fault(error))
}

struct HostCalls<'h, 'd>(&'h mut dyn Host<'d>);

impl Calls for HostCalls<'_, '_> {
    fn load(
        &mut self,
        id: &str,
        collection: Option<&str>,
        tracked: bool,
        give: &mut GiveDocument<'_>,
    ) -> Result<(), HostError> {
        let loaded = match tracked {
            true => self.0.load_document(id, collection),
            false => self.0.load_untracked(id, collection),
        };
        give(loaded?.as_ref());
        Ok(())
    }

    fn compare_exchange(&mut self, key: &str, give: &mut GiveValue<'_>) -> Result<(), HostError> {
        give(self.0.compare_exchange(key)?);
        Ok(())
    }
}

/// For reduces, which ask for nothing.
struct NoCalls;

impl Calls for NoCalls {
    fn load(&mut self, _: &str, _: Option<&str>, _: bool, _: &mut GiveDocument<'_>) -> Result<(), HostError> {
        Err("load: only maps can load documents".into())
    }

    fn compare_exchange(&mut self, _: &str, _: &mut GiveValue<'_>) -> Result<(), HostError> {
        Err("cmpxchg: only maps can read compare-exchange values".into())
    }
}

struct MapScript {
    compiled: Compiled,
    /// There are several maps, of which those of the document's collection run.
    by_collection: bool,
}

impl MapCode for MapScript {
    fn engine(&self) -> Engine {
        Engine::QuickJs
    }

    fn runner(&self, limits: Limits) -> Box<dyn RunMap> {
        let compiled = self.compiled.clone();
        Box::new(MapRun { compiled, by_collection: self.by_collection, limits, memory: Bump::new() })
    }
}

struct MapRun {
    compiled: Compiled,
    by_collection: bool,
    limits: Limits,
    memory: Bump,
}

impl RunMap for MapRun {
    fn run<'d>(
        &mut self,
        input: &Input<'d>,
        host: &mut dyn Host<'d>,
        each: &mut Each<'_>,
    ) -> Result<(), RuntimeError> {
        if self.memory.allocated_bytes() > KEPT_BYTES {
            self.memory = Bump::new();
        }
        self.memory.reset();
        let (memory, compiled) = (&self.memory, &self.compiled);
        let mut entries = Entries { fields: compiled.fields.as_deref(), left: self.limits.entries_max, each };
        let limit = self.limits.entries_max;
        engine::run(&limits_of(&self.limits), &mut HostCalls(host), |scripts| {
            let realm = &scripts.realm;
            let document = into_script::mapped(realm, input).map_err(|error| realm.fault(error))?;
            let which = if self.by_collection { MANY } else { ONLY };
            let given = match self.by_collection {
                false => document,
                true => {
                    let pair = Array::new(realm.ctx.clone()).and_then(|pair| {
                        pair.set(0, input.collection)?;
                        pair.set(1, document)?;
                        Ok(pair.into_value())
                    });
                    pair.map_err(|error| realm.fault(error))?
                }
            };
            let result = call(scripts, &compiled.code, which, given)?;
            entries.give(scripts, &result, memory, limit)
        })
        .map_err(ScriptError::into_runtime)
    }
}

/// The only function of a definition.
const ONLY: &str = "0";
/// The function that runs all maps of a document's collection.
const MANY: &str = "many";

struct ReduceScript {
    compiled: Compiled,
}

impl ReduceCode for ReduceScript {
    fn engine(&self) -> Engine {
        Engine::QuickJs
    }

    fn runner(&self, limits: Limits) -> Box<dyn RunReduce> {
        Box::new(ReduceRun { compiled: self.compiled.clone(), limits, memory: Bump::new() })
    }
}

struct ReduceRun {
    compiled: Compiled,
    limits: Limits,
    memory: Bump,
}

impl RunReduce for ReduceRun {
    fn run<'d>(
        &mut self,
        given: &mut dyn Iterator<Item = Document<'d>>,
        each: &mut Each<'_>,
    ) -> Result<(), RuntimeError> {
        if self.memory.allocated_bytes() > KEPT_BYTES {
            self.memory = Bump::new();
        }
        self.memory.reset();
        let (memory, compiled) = (&self.memory, &self.compiled);
        let mut entries = Entries { fields: compiled.fields.as_deref(), left: self.limits.entries_max, each };
        let limit = self.limits.entries_max;
        engine::run(&limits_of(&self.limits), &mut NoCalls, |scripts| {
            let realm = &scripts.realm;
            let mut read = || -> rquickjs::Result<ScriptValue<'_>> {
                let array = Array::new(realm.ctx.clone())?;
                for (place, entry) in given.enumerate() {
                    array.set(place, into_script::value(realm, &entry.root())?)?;
                }
                Ok(array.into_value())
            };
            let array = read().map_err(|error| realm.fault(error))?;
            let result = call(scripts, &compiled.code, ONLY, array)?;
            entries.give(scripts, &result, memory, limit)
        })
        .map_err(ScriptError::into_runtime)
    }
}

/// Where entries go.
struct Entries<'f, 'e, 'b> {
    /// Their fields in order, when they are always the same.
    fields: Option<&'f [Box<str>]>,
    left: usize,
    each: &'e mut Each<'b>,
}

impl Entries<'_, '_, '_> {
    /// Gives what a function returned: an entry, an array of entries (which may hold arrays), or nothing.
    fn give<'js>(
        &mut self,
        scripts: &Scripts<'_, 'js>,
        result: &ScriptValue<'js>,
        memory: &Bump,
        limit: usize,
    ) -> Result<(), ScriptError> {
        let realm = &scripts.realm;
        if let Some(array) = result.as_array() {
            for entry in array.iter::<ScriptValue<'js>>() {
                self.give(scripts, &entry.map_err(|error| realm.fault(error))?, memory, limit)?;
            }
            return Ok(());
        }
        let Some(object) = result.as_object().filter(|object| !object.is_function()) else { return Ok(()) };
        if self.left == 0 {
            let limit = limit as u64;
            return Err(RuntimeError::Limit { what: "entries", limit }.into());
        }
        self.left -= 1;
        let (object, boost) = into_value::boosted(object.clone()).map_err(|error| realm.fault(error))?;
        let fields = match self.fields {
            Some(names) => self.known_fields(scripts, &object, names, memory),
            None => into_value::fields(realm, &object, memory),
        };
        let fields = fields.map_err(|error| realm.fault(error))?;
        (self.each)(&Entry { fields, boost }).map_err(ScriptError::Runtime)
    }

    fn known_fields<'js, 'm>(
        &self,
        scripts: &Scripts<'_, 'js>,
        object: &Object<'js>,
        names: &[Box<str>],
        memory: &'m Bump,
    ) -> rquickjs::Result<&'m [(&'m str, Value<'m>)]> {
        let mut fields = Vec::with_capacity(names.len());
        for name in names {
            let name: &'m str = memory.alloc_str(name);
            let value: ScriptValue<'js> = object.get(name)?;
            fields.push((name, into_value::value(&scripts.realm, &value, name, memory)?));
        }
        Ok(memory.alloc_slice_copy(&fields))
    }
}
