//! Map functions, of both languages.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::code::{Engine, MapCode, MapFacts, RunMap};
use crate::error::{CompileError, RuntimeError};
use crate::input::{Each, Host, Input};
use crate::language::Language;
use crate::limits::Limits;
use crate::linq;
use crate::source::Source;

/// A compiled map function: from a document to index entries. Cheap to clone; shared between threads, each of which runs it through a [`MapRunner`].
///
/// ```
/// use jackdaw_document::Context;
/// use jackdaw_functions::{Input, Limits, Map, NoHost};
///
/// let map = Map::compile("from u in docs.Users select new { u.Name, Tags = u.Tags.Count }", &Default::default())?;
/// assert_eq!(map.field_names().map(|names| names.len()), Some(2));
///
/// let context = Context::new();
/// let user = context.parse(r#"{"Name":"Ada","Tags":["a","b"]}"#)?;
/// let mut runner = map.runner(Limits::default());
/// runner.run(&Input::new(user, "users/1"), &mut NoHost, &mut |entry| {
///     assert_eq!(entry.get("Name").and_then(|name| name.as_text()), Some("Ada"));
///     Ok(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Map {
    language: Language,
    facts: Arc<MapFacts>,
    code: Arc<dyn MapCode>,
}

impl Map {
    /// Compiles the text of a map, whose language is told from how it begins. `sources` are the index's additional sources by name.
    ///
    /// # Errors
    ///
    /// What is not understood or not supported, with its name and position.
    pub fn compile(text: &str, sources: &BTreeMap<String, String>) -> Result<Map, CompileError> {
        let language = Language::of_map(text);
        let (facts, code): (MapFacts, Arc<dyn MapCode>) = match language {
            Language::CSharp => linq::compile_map(text, sources)?,
            Language::JavaScript => crate::javascript::compile_map(text, sources)?,
        };
        Ok(Map { language, facts: Arc::new(facts), code })
    }

    /// What it runs in. A map in JavaScript whose every construct has a meaning in the program is lowered to it, as C# is; a document for which that
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

    /// What it runs over.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.facts.source
    }

    /// The fields of every entry in order, if they are always the same. Among them is `_` or whatever name stands before a `CreateField`.
    #[must_use]
    pub fn field_names(&self) -> Option<&[Box<str>]> {
        self.facts.field_names.as_deref()
    }

    /// Whether entries may have fields whose names are computed (`CreateField`).
    #[must_use]
    pub fn has_dynamic_fields(&self) -> bool {
        self.facts.has_dynamic_fields
    }

    /// The collections from which it loads documents, as the text names them: a change there runs it again over the documents that loaded the changed one.
    #[must_use]
    pub fn loads(&self) -> &[Box<str>] {
        &self.facts.loads
    }

    /// Whether it reads compare-exchange values.
    #[must_use]
    pub fn uses_compare_exchange(&self) -> bool {
        self.facts.uses_compare_exchange
    }

    /// What one thread needs to run the map: memory that is used again and places where properties were found. Make one for a batch, not for a document.
    #[must_use]
    pub fn runner(&self, limits: Limits) -> MapRunner {
        MapRunner { run: self.code.runner(limits) }
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map")
            .field("language", &self.language)
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

/// A map on one thread.
pub struct MapRunner {
    run: Box<dyn RunMap>,
}

impl MapRunner {
    /// Runs the map over a document and gives each entry that it returns to `each`, in order. When an error comes after some entries, those were given already:
    /// the caller forgets them.
    ///
    /// # Errors
    ///
    /// What the function, the host or `each` finds wrong. The runner can go on with another document.
    pub fn run<'d>(
        &mut self,
        input: &Input<'d>,
        host: &mut dyn Host<'d>,
        each: &mut Each<'_>,
    ) -> Result<(), RuntimeError> {
        self.run.run(input, host, each)
    }
}
