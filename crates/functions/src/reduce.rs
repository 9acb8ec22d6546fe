//! Reduce functions, of both languages.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jackdaw_document::Document;

use crate::code::{Engine, ReduceCode, ReduceFacts, RunReduce};
use crate::error::{CompileError, RuntimeError};
use crate::input::Each;
use crate::language::Language;
use crate::limits::Limits;
use crate::linq;

/// A compiled reduce function: from entries of one key to fewer of the same shape. What it returns can be reduced again together with other entries, which is how
/// partial results are combined. Cheap to clone; shared between threads.
#[derive(Clone)]
pub struct Reduce {
    language: Language,
    facts: Arc<ReduceFacts>,
    code: Arc<dyn ReduceCode>,
}

/// A field of what a reduce returns, and how partial results of it are combined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReduceField {
    /// Its name.
    pub name: Box<str>,
    /// What the function does for it.
    pub combine: Combine,
}

/// What a reduce does for one field, as far as it is one of the plain things: those can be combined without running the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combine {
    /// The key, or this field of it, counted as in [`Reduce::key_fields`].
    Key(usize),
    /// `g.Sum(x => x.Name)` of the field of the same name: null counts as nothing, integers stay integers.
    Sum,
    /// `g.Count()`: how many entries were reduced. It counts partial results as one each, so it is right only when all entries are reduced at once.
    Count,
    /// `g.Min(x => x.Name)` of the field of the same name.
    Min,
    /// `g.Max(x => x.Name)` of the field of the same name.
    Max,
    /// Anything else: the function must run.
    Other,
}

impl Reduce {
    /// Compiles the text of a reduce, whose language is told from how it begins. `sources` are the index's additional sources by name.
    ///
    /// # Errors
    ///
    /// What is not understood or not supported, with its name and position; among that a key that is no field of the map's entries.
    pub fn compile(text: &str, sources: &BTreeMap<String, String>) -> Result<Reduce, CompileError> {
        let language = Language::of_reduce(text);
        let (facts, code): (ReduceFacts, Arc<dyn ReduceCode>) = match language {
            Language::CSharp => linq::compile_reduce(text, sources)?,
            Language::JavaScript => crate::javascript::compile_reduce(text, sources)?,
        };
        Ok(Reduce { language, facts: Arc::new(facts), code })
    }

    /// What it runs in. A reduce in JavaScript whose every construct has a meaning in the program is lowered to it, as C# is; a document for which that
    /// does not settle the answer goes to QuickJS all the same.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.code.engine()
    }

    /// The language of the text.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// The fields of map entries that make the key, in order; nested ones as paths with dots. Empty when all entries have one key.
    #[must_use]
    pub fn key_fields(&self) -> &[Box<str>] {
        &self.facts.key_fields
    }

    /// The fields of what it returns, in order, if they are always the same.
    #[must_use]
    pub fn fields(&self) -> Option<&[ReduceField]> {
        self.facts.fields.as_deref()
    }

    /// What one thread needs to run the reduce. Make one for a batch, not for a key.
    #[must_use]
    pub fn runner(&self, limits: Limits) -> ReduceRunner {
        ReduceRunner { run: self.code.runner(limits) }
    }
}

impl fmt::Debug for Reduce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reduce")
            .field("language", &self.language)
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

/// A reduce on one thread.
pub struct ReduceRunner {
    run: Box<dyn RunReduce>,
}

impl ReduceRunner {
    /// Reduces entries, given as documents whose root is an object of their fields, and gives each result to `each`. Entries of several keys give several results.
    ///
    /// # Errors
    ///
    /// What the function or `each` finds wrong. The runner can go on with other entries.
    pub fn run<'d>(
        &mut self,
        entries: &mut dyn Iterator<Item = Document<'d>>,
        each: &mut Each<'_>,
    ) -> Result<(), RuntimeError> {
        self.run.run(entries, each)
    }
}
