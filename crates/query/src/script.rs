//! Projections by functions in JavaScript.

use std::sync::Arc;

use jackdaw_database::{Snapshot, StoredDocument};
use jackdaw_document::{Context, Document, Value};
use jackdaw_functions::Input;
use jackdaw_functions::javascript::{
    Argument, HostError, IncludeKind, Projection as Script, ProjectionHost, ScriptError, ScriptLimits,
};

use crate::error::{Error, Result};
use crate::includes::Includes;
use crate::plan::field::Origin;
use crate::plan::projection::Called;
use crate::row::Row;
use crate::run::Run;

/// Runs a projection over what was found; what it makes, in `context`.
///
/// Errors: what the script throws, or the limit that it exceeds.
pub(crate) fn project<'c>(
    run: &Run<'_>,
    row: &Row<'_>,
    script: &Script,
    arguments: &[Origin],
    includes: &mut Includes,
    context: &'c Context,
) -> Result<Vec<Document<'c>>> {
    let snapshot = run.snapshot();
    let known: Vec<Vec<Known>> = arguments
        .iter()
        .map(|origin| row.documents(*origin).iter().map(|document| Known::new(snapshot, document)).collect())
        .collect();
    let inputs: Vec<Vec<Option<Input<'_>>>> = arguments
        .iter()
        .zip(&known)
        .map(|(origin, known)| {
            let documents = row.documents(*origin).iter().zip(known);
            documents.map(|(document, known)| Some(known.input(document))).collect()
        })
        .collect();
    let given: Vec<Argument<'_>> = arguments
        .iter()
        .zip(&inputs)
        .map(|(origin, inputs)| match (&**inputs, &row.stored) {
            (inputs, _) if run.loads_many(*origin) => Argument::Documents(inputs),
            ([Some(input), ..], _) if *origin == Origin::Result => run.script_argument(row, input),
            ([Some(input), ..], _) => Argument::Document(input),
            (_, Some(stored)) if *origin == Origin::Result => Argument::Value(*stored),
            _ => Argument::Missing,
        })
        .collect();
    let parameters = run.parameters().object().map(Value::Object);
    let mut host = Host { run, row, includes };
    let mut results = Vec::new();
    let ended =
        script.run(&given, parameters.as_ref(), &ScriptLimits::FUNCTION, &mut host, context, &mut |result| {
            results.push(result);
            Ok(())
        });
    match ended {
        Ok(()) => Ok(results),
        Err(ScriptError::Host(error)) => Err(match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(error) => Error::InvalidOperation(error.to_string()),
        }),
        Err(error @ ScriptError::NotSupported { .. }) => Err(Error::NotSupported(error.to_string())),
        Err(error) => Err(Error::JavaScript(format!("{error}\nQuery: {}", run.plan.text))),
    }
}

/// Calls a declared function for one row; what it made stands under [`CALLED`](crate::plan::projection::CALLED). What it
/// includes is not taken: it is a value beside others, not the result.
///
/// Errors: as [`project`].
pub(crate) fn call<'c>(
    run: &Run<'_>,
    row: &Row<'_>,
    called: &Called,
    context: &'c Context,
) -> Result<Option<Document<'c>>> {
    let mut includes = Includes::default();
    let mut made = project(run, row, &called.script, &called.arguments, &mut includes, context)?;
    Ok(made.pop())
}

/// What is known of a document beside what is in it.
struct Known {
    collection: Arc<str>,
    change_vector: String,
}

impl Known {
    fn new(snapshot: &Snapshot, document: &StoredDocument<'_>) -> Known {
        Known {
            collection: snapshot.collection_of(document),
            change_vector: document.change_vector.to_string(),
        }
    }

    fn input<'i>(&'i self, document: &'i StoredDocument<'_>) -> Input<'i> {
        Input {
            document: document.document,
            id: document.id,
            collection: &self.collection,
            last_modified: document.last_modified,
            change_vector: &self.change_vector,
        }
    }
}

/// What scripts may ask for.
struct Host<'h> {
    run: &'h Run<'h>,
    row: &'h Row<'h>,
    includes: &'h mut Includes,
}

impl ProjectionHost for Host<'_> {
    fn load(&mut self, id: &str, give: &mut dyn FnMut(Option<&Input<'_>>)) -> Result<(), HostError> {
        let snapshot = self.run.snapshot();
        match snapshot.document(id)? {
            Some(document) => give(Some(&Known::new(snapshot, &document).input(&document))),
            None => give(None),
        }
        Ok(())
    }

    fn compare_exchange(
        &mut self,
        key: &str,
        give: &mut dyn FnMut(Option<Value<'_>>),
    ) -> Result<(), HostError> {
        let found = self.run.snapshot().compare_exchange(key)?;
        give(found.and_then(|found| found.value.get("Object")));
        Ok(())
    }

    fn include(&mut self, kind: IncludeKind, id: &str) {
        match kind {
            IncludeKind::Document => self.includes.add(id.to_owned()),
            IncludeKind::CompareExchange => self.includes.add_key(id.to_owned()),
        }
    }

    fn missing(&mut self, name: &str) -> HostError {
        self.run.no_field(self.row, name).into()
    }
}
