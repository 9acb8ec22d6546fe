//! A definition made ready to run: functions compiled, collections named, fields with their options.
//!
//! Everything that can be wrong with a definition is found here, before it is stored.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexSet;
use jackdaw_functions::{Collections, CompileError, Map, Reduce, SourceKind};
use jackdaw_search as search;

use crate::analyzers::Analyzers;
use crate::auto::{ALL_DOCUMENTS, AutoDefinition};
use crate::definition::{
    ALL_FIELDS, Configuration, FieldIndexing, FieldOptions, FieldStorage, IndexDefinition, SpatialOptions,
    SpatialStrategy, SpatialType, SpatialUnits, TermVector,
};
use crate::error::{Error, Result};
use crate::map::PathMap;
use crate::output::OutputPlan;
use crate::reduce::Grouping;

/// What kind of index it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexType {
    /// Maps in C#.
    Map,
    /// Maps and a reduce function in C#.
    MapReduce,
    /// Automatic, without groups.
    AutoMap,
    /// Automatic, with groups.
    AutoMapReduce,
    /// Maps in JavaScript.
    JavaScriptMap,
    /// Maps and a reduce function in JavaScript.
    JavaScriptMapReduce,
    /// Its definition cannot be used by this version.
    Faulty,
}

impl IndexType {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            IndexType::Map => "Map",
            IndexType::MapReduce => "MapReduce",
            IndexType::AutoMap => "AutoMap",
            IndexType::AutoMapReduce => "AutoMapReduce",
            IndexType::JavaScriptMap => "JavaScriptMap",
            IndexType::JavaScriptMapReduce => "JavaScriptMapReduce",
            IndexType::Faulty => "Faulty",
        }
    }

    /// Whether entries are results of groups.
    pub fn is_map_reduce(self) -> bool {
        matches!(self, IndexType::MapReduce | IndexType::AutoMapReduce | IndexType::JavaScriptMapReduce)
    }

    /// Whether a query made it.
    pub fn is_auto(self) -> bool {
        matches!(self, IndexType::AutoMap | IndexType::AutoMapReduce)
    }
}

/// A map function and whose documents it takes.
pub(crate) struct MapSource {
    pub(crate) map: Map,
    /// Lower-case; `None` for all.
    collections: Option<Vec<String>>,
}

impl MapSource {
    /// Whether documents of this collection go through it.
    pub(crate) fn takes(&self, collection: &str) -> bool {
        self.collections
            .as_ref()
            .is_none_or(|all| all.iter().any(|name| name.eq_ignore_ascii_case(collection)))
    }
}

/// What is known of the fields.
pub(crate) struct Fields {
    by_name: BTreeMap<String, FieldOptions>,
    defaults: FieldOptions,
    stores_any: bool,
    /// A field that a document lacks is null.
    pub(crate) missing_as_null: bool,
    /// An entry without values is one.
    pub(crate) index_empty_entries: bool,
}

impl Fields {
    /// The options of a field.
    pub(crate) fn options(&self, name: &str) -> &FieldOptions {
        self.by_name.get(name).unwrap_or(&self.defaults)
    }

    pub(crate) fn is_stored(&self, name: &str) -> bool {
        self.options(name).storage == Some(FieldStorage::Yes)
    }

    pub(crate) fn is_spatial(&self, name: &str) -> bool {
        self.options(name).spatial.is_some()
    }

    pub(crate) fn stores_any(&self) -> bool {
        self.stores_any
    }
}

/// An index of more fields keeps those together that have no options: each field of its own costs something in every batch.
const OWN_FIELDS_MAX: usize = 64;

/// A definition, ready to run.
pub(crate) struct Plan {
    pub(crate) kind: IndexType,
    /// The collections as the definition names them, each once; only [`ALL_DOCUMENTS`] when a map takes all.
    pub(crate) collections: Vec<String>,
    /// Collections that functions load documents from; [`ALL_DOCUMENTS`] when they do not say.
    pub(crate) referenced: Vec<String>,
    pub(crate) uses_compare_exchange: bool,
    /// Functions ask for change vectors, which cost something to write down.
    pub(crate) needs_change_vector: bool,
    pub(crate) maps: Vec<MapSource>,
    pub(crate) paths: Option<PathMap>,
    /// Of a map/reduce index.
    pub(crate) grouping: Option<Grouping>,
    /// Where its results go as documents.
    pub(crate) output: Option<OutputPlan>,
    pub(crate) fields: Fields,
    /// Names of the fields, when they are known, in the definition's order.
    pub(crate) field_names: IndexSet<String>,
    /// There may be fields that are not among the names.
    pub(crate) has_dynamic_fields: bool,
    pub(crate) schema: search::Schema,
    pub(crate) settings: Configuration,
}

impl Plan {
    /// Whether functions load documents.
    pub(crate) fn has_references(&self) -> bool {
        !self.referenced.is_empty() || self.uses_compare_exchange
    }

    /// Errors: [`Error::Compilation`], [`Error::NotSupported`], [`Error::InvalidOperation`] for settings.
    pub(crate) fn of_static(definition: &IndexDefinition, analyzers: &Analyzers) -> Result<Plan> {
        definition.check()?;
        let settings = definition.settings()?;
        if let Some(assembly) = definition.additional_assemblies.first() {
            let name = ["AssemblyName", "PackageName", "AssemblyPath"]
                .iter()
                .find_map(|key| assembly.get(*key).and_then(|name| name.as_str()))
                .unwrap_or("without a name");
            return Err(Error::Compilation {
                message: format!(
                    "Cannot load assembly '{name}': functions here are not compiled to .NET code, so that assemblies cannot be used"
                ),
                property: Some("AdditionalAssemblies"),
                text: None,
            });
        }
        let sources = &definition.additional_sources;
        let mut maps = Vec::new();
        for text in definition.maps.iter().filter(|text| !text.trim().is_empty()) {
            let map =
                Map::compile(text, sources).map_err(|error| compilation(definition, error, "Maps", text))?;
            maps.push((text, map));
        }
        let reduce = definition.reduce.as_deref().filter(|text| !text.trim().is_empty());
        let reduce = reduce
            .map(|text| {
                Reduce::compile(text, sources).map_err(|error| compilation(definition, error, "Reduce", text))
            })
            .transpose()?;
        check_same_fields(definition, &maps)?;
        if let Some(reduce) = &reduce {
            check_key_fields(definition, &maps, reduce)?;
        }
        let is_script = maps.iter().any(|(_, map)| map.language() == jackdaw_functions::Language::JavaScript);
        let kind = match (is_script, reduce.is_some()) {
            (false, false) => IndexType::Map,
            (false, true) => IndexType::MapReduce,
            (true, false) => IndexType::JavaScriptMap,
            (true, true) => IndexType::JavaScriptMapReduce,
        };
        let mut collections = Vec::new();
        let mut referenced = Vec::new();
        let mut sources = Vec::new();
        let (mut uses_compare_exchange, mut has_dynamic_fields) = (false, false);
        let mut field_names = IndexSet::new();
        for (text, map) in maps {
            let what = match map.source().kind {
                SourceKind::Documents => None,
                SourceKind::TimeSeries => Some("time series"),
                SourceKind::Counters => Some("counters"),
            };
            if let Some(what) = what {
                return Err(Error::NotSupported(format!(
                    "The index '{}' maps {what}: not supported by this version of the server.",
                    definition.name
                )));
            }
            let named = match &map.source().collections {
                Collections::All => {
                    add(&mut collections, ALL_DOCUMENTS);
                    None
                }
                Collections::Named(names) => {
                    names.iter().for_each(|name| add(&mut collections, name));
                    Some(names.iter().map(|name| name.to_lowercase()).collect())
                }
            };
            map.loads()
                .iter()
                .for_each(|name| add(&mut referenced, if name.is_empty() { ALL_DOCUMENTS } else { name }));
            uses_compare_exchange |= map.uses_compare_exchange();
            has_dynamic_fields |= map.has_dynamic_fields();
            match map.field_names() {
                Some(names) => field_names.extend(names.iter().map(|name| name.to_string())),
                None => has_dynamic_fields = true,
            }
            let _ = text;
            sources.push(MapSource { map, collections: named });
        }
        if let Some(reduce) = &reduce {
            if let Some(fields) = reduce.fields() {
                field_names = fields.iter().map(|field| field.name.to_string()).collect();
                has_dynamic_fields = false;
            } else {
                has_dynamic_fields = true;
            }
        }
        if collections.iter().any(|name| name == ALL_DOCUMENTS) {
            collections = vec![ALL_DOCUMENTS.to_owned()];
        }
        if referenced.iter().any(|name| name == ALL_DOCUMENTS) {
            referenced = vec![ALL_DOCUMENTS.to_owned()];
        }
        let defaults = definition.fields.get(ALL_FIELDS).cloned().unwrap_or_default();
        let by_name: BTreeMap<String, FieldOptions> = definition
            .fields
            .iter()
            .filter(|(name, _)| *name != ALL_FIELDS)
            .map(|(name, options)| (name.clone(), options.or(&defaults)))
            .collect();
        let mut schema = schema(&by_name, &defaults, &settings);
        add_custom_analyzers(&mut schema, analyzers);
        check_analyzers(&schema)?;
        if field_names.len() <= OWN_FIELDS_MAX {
            for name in &field_names {
                let options = || search_options(&defaults, &settings);
                schema.fields.entry(name.clone()).or_insert_with(options);
            }
        }
        let stores_any = defaults.storage == Some(FieldStorage::Yes)
            || by_name.values().any(|options| options.storage == Some(FieldStorage::Yes))
            || has_dynamic_fields;
        let text = definition.maps.iter().any(|text| text.contains("change-vector"));
        Ok(Plan {
            kind,
            collections,
            referenced,
            uses_compare_exchange,
            needs_change_vector: text,
            maps: sources,
            paths: None,
            fields: Fields {
                by_name,
                defaults,
                stores_any,
                missing_as_null: settings.index_missing_fields_as_null.unwrap_or(false),
                index_empty_entries: settings.index_empty_entries.unwrap_or(false),
            },
            grouping: reduce.as_ref().map(Grouping::of_function),
            output: OutputPlan::of(definition)?.filter(|_| reduce.is_some()),
            field_names,
            has_dynamic_fields,
            schema,
            settings,
        })
    }

    /// Errors: a path that is none.
    pub(crate) fn of_auto(definition: &AutoDefinition) -> Result<Plan> {
        let by_name = definition.search_fields();
        let settings = Configuration::default();
        let schema = schema(&by_name, &FieldOptions::default(), &settings);
        let is_map_reduce = definition.is_map_reduce();
        Ok(Plan {
            kind: if is_map_reduce { IndexType::AutoMapReduce } else { IndexType::AutoMap },
            collections: vec![definition.collection.clone()],
            referenced: Vec::new(),
            uses_compare_exchange: false,
            needs_change_vector: definition.map_fields.contains_key("@metadata.@change-vector"),
            maps: Vec::new(),
            paths: if is_map_reduce { None } else { Some(PathMap::new(definition)?) },
            output: None,
            grouping: if is_map_reduce { Some(Grouping::of_auto(definition)?) } else { None },
            field_names: by_name.keys().cloned().collect(),
            has_dynamic_fields: false,
            fields: Fields {
                stores_any: by_name.values().any(|options| options.storage == Some(FieldStorage::Yes)),
                by_name,
                defaults: FieldOptions::default(),
                missing_as_null: false,
                index_empty_entries: true,
            },
            schema,
            settings,
        })
    }
}

fn add(list: &mut Vec<String>, name: &str) {
    if !list.iter().any(|each| each.eq_ignore_ascii_case(name)) {
        list.push(name.to_owned());
    }
}

fn compilation(
    definition: &IndexDefinition,
    error: CompileError,
    property: &'static str,
    text: &str,
) -> Error {
    Error::Compilation {
        message: format!("Failed to compile index {}: {error}", definition.name),
        property: Some(property),
        text: Some(text.to_owned()),
    }
}

/// The fields of a map's entries, where they are always the same.
fn fixed_fields(map: &Map) -> Option<BTreeSet<String>> {
    if map.has_dynamic_fields() {
        return None;
    }
    Some(map.field_names()?.iter().map(|name| name.to_string()).collect())
}

/// A reduce must group by fields that its maps give.
fn check_key_fields(definition: &IndexDefinition, maps: &[(&String, Map)], reduce: &Reduce) -> Result<()> {
    for fields in maps.iter().filter_map(|(_, map)| fixed_fields(map)) {
        let missing = reduce.key_fields().iter().find(|path| {
            let name = path.split(['.', '[']).next().unwrap_or_default();
            !fields.contains(name)
        });
        if let Some(missing) = missing {
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            return Err(Error::Compilation {
                message: format!(
                    "Failed to compile index {}: the reduce function groups by field '{missing}', which the map does not give. Its fields are: {}",
                    definition.name,
                    fields.join(", ")
                ),
                property: Some("Reduce"),
                text: definition.reduce.clone(),
            });
        }
    }
    Ok(())
}

/// Maps of one index must make entries of the same fields.
fn check_same_fields(definition: &IndexDefinition, maps: &[(&String, Map)]) -> Result<()> {
    let Some((first_text, first)) = maps.first().and_then(|(text, map)| Some((text, fixed_fields(map)?)))
    else {
        return Ok(());
    };
    for (text, map) in &maps[1..] {
        let Some(other) = fixed_fields(map) else { continue };
        if other != first {
            let list =
                |names: Vec<&String>| names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(Error::Compilation {
                message: format!(
                    "Failed to compile index {}: Map and Reduce functions of a index must return identical types.\nBaseline function: {first_text}\nNon matching function: {text}\n\nCommon fields: {}\nMissing fields: {}\nAdditional fields: {}",
                    definition.name,
                    list(first.intersection(&other).collect()),
                    list(first.difference(&other).collect()),
                    list(other.difference(&first).collect()),
                ),
                property: Some("Maps"),
                text: Some((*text).clone()),
            });
        }
    }
    Ok(())
}

/// Those that options name.
fn add_custom_analyzers(schema: &mut search::Schema, analyzers: &Analyzers) {
    let all = schema.fields.values().chain([&schema.all_fields]);
    let named = all.filter_map(|options| {
        let name = options.analyzer.as_ref()?;
        Some((name.to_lowercase(), analyzers.get(name)?.clone()))
    });
    schema.custom_analyzers = named.collect();
}

fn check_analyzers(schema: &search::Schema) -> Result<()> {
    schema.check().map_err(|error| Error::Compilation {
        message: error.to_string(),
        property: None,
        text: None,
    })
}

fn schema(
    fields: &BTreeMap<String, FieldOptions>,
    defaults: &FieldOptions,
    settings: &Configuration,
) -> search::Schema {
    search::Schema {
        fields: fields
            .iter()
            .map(|(name, options)| (name.clone(), search_options(options, settings)))
            .collect(),
        all_fields: search_options(defaults, settings),
        ..search::Schema::default()
    }
}

fn search_options(options: &FieldOptions, settings: &Configuration) -> search::FieldOptions {
    let analyzer = options.analyzer.clone().filter(|name| !name.trim().is_empty());
    let indexing = match (options.indexing, &analyzer) {
        // An analyzer alone says that words are wanted.
        (None, Some(_)) => FieldIndexing::Search,
        (Some(FieldIndexing::Default), Some(_)) => FieldIndexing::Search,
        (indexing, _) => indexing.unwrap_or_default(),
    };
    let default_analyzer = match indexing {
        FieldIndexing::Default => &settings.default_analyzer,
        FieldIndexing::Exact => &settings.default_exact_analyzer,
        FieldIndexing::Search => &settings.default_search_analyzer,
        FieldIndexing::No => &None,
    };
    search::FieldOptions {
        indexing: match indexing {
            FieldIndexing::Default => search::Indexing::Default,
            FieldIndexing::Exact => search::Indexing::Exact,
            FieldIndexing::Search => search::Indexing::Search,
            FieldIndexing::No => search::Indexing::No,
        },
        analyzer: analyzer.or_else(|| default_analyzer.clone()),
        store: options.storage == Some(FieldStorage::Yes),
        term_vector: match options.term_vector.unwrap_or_default() {
            TermVector::No => search::TermVector::No,
            TermVector::Yes => search::TermVector::Yes,
            TermVector::WithPositions => search::TermVector::WithPositions,
            TermVector::WithOffsets => search::TermVector::WithOffsets,
            TermVector::WithPositionsAndOffsets => search::TermVector::WithPositionsAndOffsets,
        },
        suggestions: options.suggestions.unwrap_or(false),
        spatial: options.spatial.as_ref().map(spatial_options),
    }
}

fn spatial_options(options: &SpatialOptions) -> search::SpatialOptions {
    search::SpatialOptions {
        kind: match options.kind {
            SpatialType::Geography => search::SpatialKind::Geography,
            SpatialType::Cartesian => search::SpatialKind::Cartesian,
        },
        strategy: match options.strategy {
            SpatialStrategy::GeohashPrefixTree => search::SpatialStrategy::GeohashPrefixTree,
            SpatialStrategy::QuadPrefixTree => search::SpatialStrategy::QuadPrefixTree,
            SpatialStrategy::BoundingBox => search::SpatialStrategy::BoundingBox,
        },
        units: match options.units {
            SpatialUnits::Kilometers => search::Units::Kilometers,
            SpatialUnits::Miles => search::Units::Miles,
        },
        min_x: options.min_x,
        max_x: options.max_x,
        min_y: options.min_y,
        max_y: options.max_y,
    }
}
