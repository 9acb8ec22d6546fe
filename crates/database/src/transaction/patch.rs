//! Patches: a document changed by a script, which may read and write others. All of it happens in one job, so nothing comes between.

use std::sync::Arc;

use jackdaw_document::{Context, Document, Value};
use jackdaw_functions::Input;
use jackdaw_functions::javascript::{
    HostError, IncludeKind, PatchHost, PatchScript, ScriptError, ScriptLimits,
};

use crate::Etag;
use crate::change_vector::ChangeVector;
use crate::error::{Error, Result};
use crate::ids::{self, IdKind};
use crate::incoming::IncomingDocument;
use crate::transaction::Transaction;
use crate::transaction::documents::{Expected, PutOptions};

/// A script that changes a document, with its arguments. Made on any thread, once for all the documents that it changes.
#[derive(Clone, Debug)]
pub struct Patch {
    script: PatchScript,
    /// The bytes of a document.
    arguments: Option<Vec<u8>>,
}

/// What happens when the document to be patched does not exist.
#[derive(Clone, Debug)]
pub enum IfMissing {
    /// The script makes a new one, from an empty object.
    Patch(Patch),
    /// This one is stored.
    Create(IncomingDocument),
}

/// How a patch runs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PatchOptions {
    /// In which state the document must be.
    pub expected: Expected,
    /// When it is in another one, nothing happens and that is no error.
    pub skip_if_unexpected: bool,
    /// Gathers what [`PatchDebug`] tells.
    pub debug: bool,
    /// Stores nothing. What would have been stored is in the result, with what was there before.
    pub is_test: bool,
    /// How many steps the script may take; `None` for as many as it is used to, [`u64::MAX`] for any number within its time.
    pub steps_max: Option<u64>,
}

/// How a patch went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchStatus {
    /// The document was changed.
    Patched,
    /// The script changed nothing in it.
    NotModified,
    /// There was none, and now there is.
    Created,
    /// There is none.
    DocumentDoesNotExist,
    /// It was in another state than expected.
    Skipped,
}

impl PatchStatus {
    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PatchStatus::Patched => "Patched",
            PatchStatus::NotModified => "NotModified",
            PatchStatus::Created => "Created",
            PatchStatus::DocumentDoesNotExist => "DocumentDoesNotExist",
            PatchStatus::Skipped => "Skipped",
        }
    }
}

/// What a patch did.
#[derive(Clone, Debug)]
pub struct PatchResult {
    /// How it went.
    pub status: PatchStatus,
    /// What was stored; `None` when nothing was.
    pub stored: Option<StoredPatch>,
    /// The document as the script left it; `None` when it did not run.
    pub modified: Option<IncomingDocument>,
    /// The bytes of the document as it was before, in a test; `None` when there was none.
    pub original: Option<Vec<u8>>,
    /// What the script did, when that was asked for.
    pub debug: Option<PatchDebug>,
}

/// The write of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPatch {
    /// The etag of the write.
    pub etag: Etag,
    /// The document's change vector now.
    pub change_vector: String,
    /// When it was written, in ticks.
    pub last_modified: i64,
    /// Its collection.
    pub collection: Arc<str>,
}

/// What a script did.
#[derive(Clone, Debug, Default)]
pub struct PatchDebug {
    /// What it showed, by `output`.
    pub output: Vec<String>,
    /// The documents that it loaded, and whether they were there.
    pub loaded: Vec<(String, bool)>,
    /// The documents that it stored: id and bytes.
    pub stored: Vec<(String, Vec<u8>)>,
    /// The documents that it deleted.
    pub deleted: Vec<String>,
}

impl Patch {
    /// Checks a script. `arguments` is an object, what the script knows as `args`.
    ///
    /// Errors: [`Error::ScriptSyntax`]; [`Error::InvalidArgument`] when the arguments are no object.
    pub fn new(script: &str, arguments: Option<&Value<'_>>, context: &Context) -> Result<Patch> {
        let arguments = match arguments {
            None | Some(Value::Null) => None,
            Some(arguments @ Value::Object(_)) => {
                let built =
                    context.build(jackdaw_document::Mode::Memory, |builder| builder.value(arguments))?;
                Some(built.as_bytes().to_vec())
            }
            Some(other) => {
                let found = other.type_name();
                return Err(Error::InvalidArgument(format!(
                    "the arguments of a script must be an object, not {found}"
                )));
            }
        };
        let script = PatchScript::compile(script).map_err(|error| Error::ScriptSyntax {
            message: format!("Failed to parse, {error}\n{script}"),
        })?;
        Ok(Patch { script, arguments })
    }

    /// The script.
    #[must_use]
    pub fn script(&self) -> &str {
        self.script.text()
    }
}

impl Transaction<'_> {
    /// Runs a patch over the document of an id.
    ///
    /// Errors: [`Error::Concurrency`] when the document is not as expected; [`Error::Script`] when the script fails; [`Error::InvalidId`]; those of storing
    /// what the script stores. The job must then fail too, or parts of what the script did stay.
    pub fn patch(
        &mut self,
        id: &str,
        patch: &Patch,
        if_missing: Option<&IfMissing>,
        options: &PatchOptions,
    ) -> Result<PatchResult> {
        if !matches!(IdKind::of(id), IdKind::Given(_)) {
            return Err(Error::InvalidId(format!("The ID argument has invalid value: '{id}'")));
        }
        if !options.is_test {
            return self.patch_now(id, patch, if_missing, options);
        }
        let savepoint = self.storage.savepoint();
        let mark = self.state.mark();
        let result = self.patch_now(id, patch, if_missing, options);
        self.storage.rollback_to(savepoint)?;
        self.state.return_to(mark);
        let mut result = result?;
        result.stored = None;
        Ok(result)
    }

    fn patch_now(
        &mut self,
        id: &str,
        patch: &Patch,
        if_missing: Option<&IfMissing>,
        options: &PatchOptions,
    ) -> Result<PatchResult> {
        let before = self.get(id)?.map(|stored| Before {
            id: stored.id.to_owned(),
            bytes: stored.document.as_bytes().to_vec(),
            change_vector: stored.change_vector.to_string(),
            last_modified: stored.last_modified,
        });
        if !is_expected(&options.expected, before.as_ref()) {
            if options.skip_if_unexpected {
                return Ok(PatchResult::without_run(PatchStatus::Skipped));
            }
            return Err(Error::Concurrency {
                message: format!(
                    "Could not patch document '{id}' because non current change vector was used"
                ),
                id: id.to_owned(),
                expected: match &options.expected {
                    Expected::ChangeVector(expected) => expected.clone(),
                    Expected::Any | Expected::New => String::new(),
                },
                actual: before.map(|before| before.change_vector),
            });
        }
        let (before, patch) = match (before, if_missing) {
            (Some(before), _) => (Some(before), patch),
            (None, Some(IfMissing::Patch(patch))) => (None, patch),
            (None, Some(IfMissing::Create(document))) => {
                return self.store(id, document.clone(), None, PatchDebug::default(), options);
            }
            (None, None) => return Ok(PatchResult::without_run(PatchStatus::DocumentDoesNotExist)),
        };
        let memory = Context::new();
        let (modified, debug) = self.run_script(id, patch, before.as_ref(), options, &memory)?;
        let modified = IncomingDocument::within(&modified, &memory, self.shared)?;
        self.store(id, modified, before, debug, options)
    }

    /// Runs the script; the document as it left it.
    fn run_script<'c>(
        &mut self,
        id: &str,
        patch: &Patch,
        before: Option<&Before>,
        options: &PatchOptions,
        memory: &'c Context,
    ) -> Result<(Document<'c>, PatchDebug)> {
        let arguments = patch.arguments.as_deref().map(Document::open).transpose()?;
        let arguments = arguments.as_ref().map(Document::root);
        let empty;
        let input = match before {
            Some(before) => Input {
                document: Document::open(&before.bytes)?,
                id: &before.id,
                collection: "",
                last_modified: before.last_modified,
                change_vector: &before.change_vector,
            },
            None => {
                empty = memory.parse("{}")?;
                Input::new(empty, id)
            }
        };
        let limits = match options.steps_max {
            Some(steps) => ScriptLimits::PATCH.with_steps(steps),
            None => ScriptLimits::PATCH,
        };
        let mode = self.shared.document_mode;
        let mut host = Host {
            transaction: self,
            gathers: options.debug || options.is_test,
            debug: PatchDebug::default(),
        };
        let modified = patch.script.run(&input, arguments.as_ref(), &limits, &mut host, memory, mode);
        match modified {
            Ok(modified) => Ok((modified, host.debug)),
            Err(error) => Err(script_error(id, error)),
        }
    }

    /// Stores what a script made, if that is something new.
    fn store(
        &mut self,
        id: &str,
        modified: IncomingDocument,
        before: Option<Before>,
        debug: PatchDebug,
        options: &PatchOptions,
    ) -> Result<PatchResult> {
        let debug = (options.debug || options.is_test).then_some(debug);
        let mut status = PatchStatus::Created;
        let mut original = None;
        let mut id = id.to_owned();
        if let Some(before) = before {
            status = PatchStatus::Patched;
            let is_same = Document::open(&before.bytes)?.root().same_content(&modified.document()?.root());
            if options.is_test {
                original = Some(before.bytes);
            }
            if is_same {
                let status = PatchStatus::NotModified;
                return Ok(PatchResult { status, stored: None, modified: Some(modified), original, debug });
            }
            if self.get(&id)?.is_none() {
                let message = format!(
                    "the script deleted the document '{id}' and changed it too; it must do one of them"
                );
                let expected = before.change_vector;
                return Err(Error::Concurrency { message, id, expected, actual: None });
            }
            id = before.id;
        }
        let stored = self.put(&id, &modified, PutOptions::default())?;
        let stored = StoredPatch {
            etag: stored.etag,
            change_vector: stored.change_vector,
            last_modified: stored.last_modified,
            collection: stored.collection,
        };
        Ok(PatchResult { status, stored: Some(stored), modified: Some(modified), original, debug })
    }
}

impl PatchResult {
    fn without_run(status: PatchStatus) -> PatchResult {
        PatchResult { status, stored: None, modified: None, original: None, debug: None }
    }
}

/// A document before it was patched: a copy, since the script may change what lies behind it.
struct Before {
    id: String,
    bytes: Vec<u8>,
    change_vector: String,
    last_modified: i64,
}

fn is_expected(expected: &Expected, before: Option<&Before>) -> bool {
    match (expected, before) {
        (Expected::Any, _) => true,
        (Expected::New, _) | (Expected::ChangeVector(_), None) => false,
        (Expected::ChangeVector(expected), Some(before)) => {
            ChangeVector::Text(before.change_vector.as_str().into()).is(expected)
        }
    }
}

fn script_error(id: &str, error: ScriptError) -> Error {
    match error {
        ScriptError::Host(error) => match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(error) => Error::Script(format!("Script failed for document ID '{id}'. {error}")),
        },
        ScriptError::NotSupported { .. } => Error::NotSupported(error.to_string()),
        ScriptError::Document(error) => Error::Document(error),
        error => Error::Script(format!("Script failed for document ID '{id}'. {error}")),
    }
}

/// What a script does, done in the transaction.
struct Host<'h, 't> {
    transaction: &'h mut Transaction<'t>,
    gathers: bool,
    debug: PatchDebug,
}

impl PatchHost for Host<'_, '_> {
    fn load(&mut self, id: &str, give: &mut dyn FnMut(Option<&Input<'_>>)) -> Result<(), HostError> {
        let stored = self.transaction.get(id)?;
        if self.gathers {
            self.debug.loaded.push((id.to_owned(), stored.is_some()));
        }
        match stored {
            Some(stored) => give(Some(&Input {
                document: stored.document,
                id: stored.id,
                collection: "",
                last_modified: stored.last_modified,
                change_vector: &stored.change_vector.to_string(),
            })),
            None => give(None),
        }
        Ok(())
    }

    fn compare_exchange(
        &mut self,
        key: &str,
        give: &mut dyn FnMut(Option<Value<'_>>),
    ) -> Result<(), HostError> {
        let value = self.transaction.get_compare_exchange(key)?;
        give(value.and_then(|value| value.value.get("Object")));
        Ok(())
    }

    fn put(
        &mut self,
        id: &str,
        document: Document<'_>,
        change_vector: Option<&str>,
    ) -> Result<String, HostError> {
        if matches!(IdKind::of(id), IdKind::Identity(_)) {
            let message = format!(
                "Document ids cannot end with '|', but was called with {id}. Identities are only generated for external requests, not calls to put in a script."
            );
            return Err(Box::new(Error::NotSupported(message)));
        }
        let memory = Context::new();
        let document = IncomingDocument::within(&document, &memory, self.transaction.shared)?;
        let options = PutOptions { expected: Expected::from_text(change_vector), ..PutOptions::default() };
        let stored = self.transaction.put(id, &document, options)?;
        if self.gathers {
            self.debug.stored.push((stored.id.clone(), document.as_bytes().to_vec()));
        }
        Ok(stored.id)
    }

    fn delete(&mut self, id: &str, change_vector: Option<&str>) -> Result<bool, HostError> {
        if self.gathers {
            self.debug.deleted.push(id.to_owned());
        }
        // An id that cannot be one has no document.
        if id.is_empty() || ids::lower(id).len() > ids::ID_SIZE_MAX {
            return Ok(false);
        }
        let deleted = self.transaction.delete(id, &Expected::from_text(change_vector))?;
        Ok(deleted.is_some())
    }

    fn include(&mut self, _: IncludeKind, _: &str) {}

    fn output(&mut self, text: String) {
        if self.gathers {
            self.debug.output.push(text);
        }
    }
}
