//! Custom analyzers of a database: where they are kept, and what they mean to the search index.
//!
//! They are in the database's environment beside the definitions that name them (`docs/format/indexes.md`). One that was stored was understood; whether it is
//! still is found out at opening.

use std::collections::BTreeMap;
use std::ops::Bound;

use jackdaw_database::{Snapshot, Transaction};
use jackdaw_functions::analyzer as read;
use jackdaw_search as search;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use crate::definition::IndexDefinition;
use crate::error::{Error, Result};

/// Custom analyzers: a tree from the lower-case name to [`AnalyzerDefinition`] as JSON.
const ANALYZERS: &[u8] = b"index-analyzers";
/// Analyzers of a database at most.
const ANALYZERS_MAX: usize = 1000;

/// A custom analyzer, as a client sends it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AnalyzerDefinition {
    /// The name of the class, by which fields of indexes name it without regard to case.
    pub name: String,
    /// A file of C# that has the class.
    pub code: String,
}

impl AnalyzerDefinition {
    /// What it does, in the search index's words.
    fn compile(&self) -> Result<search::CustomAnalyzer> {
        let invalid = |what: &str| Error::InvalidDefinition(format!("Analyzer must have a '{what}' field."));
        if self.name.trim().is_empty() {
            return Err(invalid("Name"));
        }
        if self.code.trim().is_empty() {
            return Err(invalid("Code"));
        }
        let analyzer = read::Analyzer::compile(&self.name, &self.code).map_err(|error| {
            Error::AnalyzerCompilation(format!("Failed to compile analyzer '{}': {error}", self.name))
        })?;
        Ok(search::CustomAnalyzer {
            tokenizer: match analyzer.tokenizer {
                read::Tokenizer::Standard { length_max } => search::CustomTokenizer::Standard(length_max),
                read::Tokenizer::RavenStandard => search::CustomTokenizer::RavenStandard,
                read::Tokenizer::Whitespace => search::CustomTokenizer::Whitespace,
                read::Tokenizer::Letter => search::CustomTokenizer::Letter,
                read::Tokenizer::Keyword => search::CustomTokenizer::Keyword,
            },
            filters: analyzer.filters.into_iter().map(filter).collect(),
        })
    }
}

fn filter(filter: read::TokenFilter) -> search::CustomFilter {
    match filter {
        read::TokenFilter::Standard => search::CustomFilter::Standard,
        read::TokenFilter::LowerCase => search::CustomFilter::LowerCase,
        read::TokenFilter::Stop { words, ignores_case, leaves_gaps } => {
            search::CustomFilter::Stop { words, ignores_case, leaves_gaps }
        }
        read::TokenFilter::AsciiFolding => search::CustomFilter::AsciiFolding,
        read::TokenFilter::Latin1Accent => search::CustomFilter::Latin1Accent,
        read::TokenFilter::Length { min, max } => search::CustomFilter::Length { min, max },
        read::TokenFilter::PorterStem => search::CustomFilter::PorterStem,
    }
}

/// The custom analyzers of a database, by lower-case name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Analyzers(BTreeMap<String, Known>);

#[derive(Clone, Debug, PartialEq)]
struct Known {
    definition: AnalyzerDefinition,
    /// `None` when this version does not understand what is stored.
    ready: Option<search::CustomAnalyzer>,
}

impl Analyzers {
    /// Those that are stored.
    pub(crate) fn stored(snapshot: &Snapshot) -> Result<Analyzers> {
        let mut analyzers = Analyzers::default();
        let Some(tree) = snapshot.tree(ANALYZERS)? else { return Ok(analyzers) };
        let mut range = tree.iter()?;
        while let Some((key, bytes)) = range.next()? {
            let definition: AnalyzerDefinition = serde_json::from_slice(bytes).map_err(|error| {
                Error::Damaged(format!("the analyzer '{}': {error}", String::from_utf8_lossy(key)))
            })?;
            analyzers.insert_stored(definition);
        }
        Ok(analyzers)
    }

    fn insert_stored(&mut self, definition: AnalyzerDefinition) {
        let ready = definition
            .compile()
            .inspect_err(|error| tracing::error!(analyzer = %definition.name, %error, "it cannot be used"));
        let known = Known { ready: ready.ok(), definition };
        self.0.insert(known.definition.name.to_lowercase(), known);
    }

    /// With these, which take the place of those of their names.
    ///
    /// Errors: [`Error::InvalidDefinition`], [`Error::AnalyzerCompilation`]; [`Error::InvalidOperation`] for too many.
    pub(crate) fn with(&self, definitions: &[AnalyzerDefinition]) -> Result<Analyzers> {
        let mut analyzers = self.clone();
        for definition in definitions {
            let ready = Some(definition.compile()?);
            let known = Known { definition: definition.clone(), ready };
            analyzers.0.insert(definition.name.to_lowercase(), known);
        }
        if analyzers.0.len() > ANALYZERS_MAX {
            return Err(Error::InvalidOperation(format!("a database may have {ANALYZERS_MAX} analyzers")));
        }
        Ok(analyzers)
    }

    /// Without the one of this name; `None` when there is none.
    pub(crate) fn without(&self, name: &str) -> Option<Analyzers> {
        let mut analyzers = self.clone();
        analyzers.0.remove(&name.to_lowercase())?;
        Some(analyzers)
    }

    /// All, by name.
    pub(crate) fn list(&self) -> Vec<AnalyzerDefinition> {
        self.0.values().map(|known| known.definition.clone()).collect()
    }

    /// The one of this name, if it can be used.
    pub(crate) fn get(&self, name: &str) -> Option<&search::CustomAnalyzer> {
        self.0.get(&name.to_lowercase())?.ready.as_ref()
    }
}

/// The custom analyzers of a server. A database's own come before them.
#[derive(Debug, Default)]
pub struct ServerAnalyzers(RwLock<Analyzers>);

impl ServerAnalyzers {
    /// Those that are remembered.
    pub fn stored(definitions: Vec<AnalyzerDefinition>) -> ServerAnalyzers {
        let mut analyzers = Analyzers::default();
        definitions.into_iter().for_each(|definition| analyzers.insert_stored(definition));
        ServerAnalyzers(RwLock::new(analyzers))
    }

    /// All, by name.
    pub fn list(&self) -> Vec<AnalyzerDefinition> {
        self.0.read().list()
    }

    /// Changes them: adds these, then deletes the one of a name; `remember` is given what there is to remember, before anybody sees it. Indexes must be told
    /// ([`crate::Indexes::server_analyzers_changed`]).
    ///
    /// Errors: as those of [`crate::Indexes::put_analyzers`], and those of `remember`.
    pub fn change<E: From<Error>>(
        &self,
        put: &[AnalyzerDefinition],
        delete: Option<&str>,
        remember: impl FnOnce(&[AnalyzerDefinition]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut present = self.0.write();
        let mut analyzers = present.with(put)?;
        if let Some(without) = delete.and_then(|name| analyzers.without(name)) {
            analyzers = without;
        }
        remember(&analyzers.list())?;
        *present = analyzers;
        Ok(())
    }

    pub(crate) fn with_own(&self, own: &Analyzers) -> Analyzers {
        let mut all = self.0.read().clone();
        all.0.extend(own.0.iter().map(|(name, known)| (name.clone(), known.clone())));
        all
    }
}

/// Whether a definition names one of these analyzers, in lower case, for a field or in its settings.
pub(crate) fn names_any(definition: &IndexDefinition, names: &[String]) -> bool {
    let of_fields = definition.fields.values().filter_map(|field| field.analyzer.as_deref());
    let of_settings = definition.configuration.values().flatten().map(String::as_str);
    of_fields.chain(of_settings).any(|name| names.contains(&name.to_lowercase()))
}

pub(crate) fn put(
    transaction: &mut Transaction<'_>,
    definitions: &[AnalyzerDefinition],
) -> jackdaw_database::Result<()> {
    let mut tree = transaction.tree(ANALYZERS)?;
    for definition in definitions {
        let bytes = serde_json::to_vec(definition).map_err(|error| {
            jackdaw_database::Error::InvalidArgument(format!("the analyzer cannot be written: {error}"))
        })?;
        tree.put(definition.name.to_lowercase().as_bytes(), &bytes)?;
    }
    Ok(())
}

pub(crate) fn delete(transaction: &mut Transaction<'_>, name: &str) -> jackdaw_database::Result<()> {
    let key = name.to_lowercase();
    transaction
        .tree(ANALYZERS)?
        .delete_range(Bound::Included(key.as_bytes()), Bound::Included(key.as_bytes()))?;
    Ok(())
}
