//! Projections: a script makes something new of a result.

use std::rc::Rc;
use std::sync::Arc;

use jackdaw_document::{self as document, Context as Memory, Document, Mode};
use rquickjs::function::Args;
use rquickjs::{Object, Value};

use super::calls::{Calls, GiveDocument, GiveValue, IncludeKind, source_of};
use super::engine::{self, Realm};
use super::error::{HostError, ScriptError};
use super::limits::Limits;
use super::{from_script, into_script, syntax};
use crate::{CompileError, Input};

/// The body of a function over named values, compiled. Cheap to clone; runs on any thread.
#[derive(Clone, Debug)]
pub struct Projection(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    code: Arc<str>,
    /// The names of parameters that it uses, with their `$`.
    parameters: Vec<String>,
}

/// What a projection is run over, in the order of the names that it was compiled with.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// A document.
    Document(&'a Input<'a>),
    /// A document beside the fields that an index has stored of it.
    Result(&'a Input<'a>, Option<document::Value<'a>>, FieldsFrom),
    /// Any other value: a part of one, what an index has stored, an array of loaded documents.
    Value(document::Value<'a>),
    /// Several documents, as an array; missing ones are null.
    Documents(&'a [Option<Input<'a>>]),
    /// Nothing, such as a document that does not exist.
    Missing,
}

/// Where the fields of a result are read. Its own names, as `Object.keys` tells them, are those of the document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldsFrom {
    /// What the index has stored, else the document.
    Either,
    /// What the index has stored; others are undefined.
    Index,
    /// What the index has stored; others are [`ProjectionHost::missing`].
    IndexOrFail,
    /// The document; what it does not have is [`ProjectionHost::missing`].
    DocumentOrFail,
}

/// What a projection may ask for.
pub trait ProjectionHost {
    /// Gives the document with this id, or `None`.
    ///
    /// # Errors
    ///
    /// When it cannot be read; the run then ends with that error.
    fn load(&mut self, id: &str, give: &mut dyn FnMut(Option<&Input<'_>>)) -> Result<(), HostError>;

    /// Gives the value under a compare-exchange key: what stands under `Object` in it.
    ///
    /// # Errors
    ///
    /// As [`ProjectionHost::load`].
    fn compare_exchange(
        &mut self,
        key: &str,
        give: &mut dyn FnMut(Option<document::Value<'_>>),
    ) -> Result<(), HostError>;

    /// Remembers what is to be included in the answer.
    fn include(&mut self, _kind: IncludeKind, _id: &str) {}

    /// Takes a line that the script shows.
    fn output(&mut self, _text: String) {}

    /// The error that reading this field is, because it is not where [`FieldsFrom`] has fields from.
    fn missing(&mut self, name: &str) -> HostError {
        format!("there is no field '{name}'").into()
    }
}

struct Answers<'h>(&'h mut dyn ProjectionHost);

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

    fn tells_ids(&self) -> bool {
        true
    }

    fn include(&mut self, kind: IncludeKind, id: &str) {
        self.0.include(kind, id);
    }

    fn output(&mut self, text: String) {
        self.0.output(text);
    }

    fn missing(&mut self, name: &str) -> HostError {
        self.0.missing(name)
    }
}

impl Projection {
    /// Compiles the body of a function: declarations and a `return`. `names` are what it calls its arguments.
    ///
    /// # Errors
    ///
    /// Where and why it is no script.
    pub fn compile(body: &str, names: &[&str]) -> Result<Projection, CompileError> {
        let checked = syntax::check(body)?;
        for name in names {
            // A name that is none would be code.
            syntax::check_name(name)?;
        }
        let parameters: String = checked.parameters.iter().flat_map(|name| [",", name.as_str()]).collect();
        let names: String = names.iter().flat_map(|name| [",", name]).collect();
        let (nothing, call_of_nothing) = (syntax::NOTHING, syntax::CALL_OF_NOTHING);
        let code = format!(
            "(function({nothing},{call_of_nothing},args{names}{parameters}){{'use strict';return function(){{{}\n}}.call(undefined)}})",
            checked.code
        );
        Ok(Projection(Arc::new(Inner { code: code.into(), parameters: checked.parameters })))
    }

    /// Runs the script and gives each result to `each`, built in `memory`: those of an array one by one, otherwise the one that it returns. What is undefined is null.
    ///
    /// # Errors
    ///
    /// What the script throws, the limit it exceeds, what the host or `each` answers.
    pub fn run<'c>(
        &self,
        arguments: &[Argument<'_>],
        parameters: Option<&document::Value<'_>>,
        limits: &Limits,
        host: &mut dyn ProjectionHost,
        memory: &'c Memory,
        each: &mut dyn FnMut(Document<'c>) -> Result<(), HostError>,
    ) -> Result<(), ScriptError> {
        engine::run(limits, &mut Answers(host), |scripts| {
            let realm = &scripts.realm;
            let function = scripts.function(&self.0.code)?;
            let call = || -> rquickjs::Result<Value<'_>> {
                let mut args = Args::new(realm.ctx.clone(), 3 + arguments.len() + self.0.parameters.len());
                args.push_arg(realm.nothing.clone())?;
                args.push_arg(realm.call_of_nothing.clone())?;
                let given = match parameters {
                    Some(parameters @ document::Value::Object(_)) => into_script::value(realm, parameters)?,
                    _ => Object::new(realm.ctx.clone())?.into_value(),
                };
                args.push_arg(given.clone())?;
                for argument in arguments {
                    args.push_arg(argument.value(realm)?)?;
                }
                for name in &self.0.parameters {
                    let value: Option<Value<'_>> =
                        given.as_object().map(|object| object.get(&name[1..])).transpose()?;
                    args.push_arg(value)?;
                }
                function.call_arg(args)
            };
            let result = call().map_err(|error| realm.fault(error))?;
            match result.as_array() {
                Some(results) => {
                    for result in results.iter::<Value<'_>>() {
                        each(built(realm, &result.map_err(|error| realm.fault(error))?, memory)?)
                            .map_err(ScriptError::Host)?;
                    }
                    Ok(())
                }
                None => each(built(realm, &result, memory)?).map_err(ScriptError::Host),
            }
        })
    }
}

fn built<'js, 'c>(
    realm: &Realm<'js>,
    value: &Value<'js>,
    memory: &'c Memory,
) -> Result<Document<'c>, ScriptError> {
    from_script::any(realm, value, memory, Mode::Memory).map_err(|failure| match failure {
        from_script::Failure::Script(error) => realm.fault(error),
        from_script::Failure::Document(error) => error.into(),
    })
}

impl Argument<'_> {
    fn value<'js>(&self, realm: &Realm<'js>) -> rquickjs::Result<Value<'js>> {
        match self {
            Argument::Document(input) => into_script::document(realm, Rc::new(source_of(input))),
            Argument::Result(input, stored, from) => {
                into_script::result(realm, Rc::new(source_of(input)), stored.as_ref(), *from)
            }
            Argument::Value(value) => into_script::value(realm, value),
            Argument::Documents(inputs) => {
                let array = rquickjs::Array::new(realm.ctx.clone())?;
                for (place, input) in inputs.iter().enumerate() {
                    let value = match input {
                        Some(input) => into_script::document(realm, Rc::new(source_of(input)))?,
                        None => Value::new_null(realm.ctx.clone()),
                    };
                    array.set(place, value)?;
                }
                Ok(array.into_value())
            }
            Argument::Missing => Ok(Value::new_undefined(realm.ctx.clone())),
        }
    }
}
