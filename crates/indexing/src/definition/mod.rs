//! Definitions of static indexes: their JSON, what is the same and what differs, what names may be.

mod configuration;
mod options;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub use configuration::{Configuration, parse_duration};
pub use options::{
    FieldIndexing, FieldOptions, FieldStorage, LockMode, Priority, SpatialOptions, SpatialStrategy,
    SpatialType, SpatialUnits, State, TermVector,
};

use crate::error::{Error, Result};

/// The field whose options are the defaults of all others.
pub const ALL_FIELDS: &str = "__all_fields";
/// What the name of an index begins with that is built to take the place of another.
pub const REPLACEMENT_PREFIX: &str = "ReplacementOf/";
/// What the names of automatic indexes begin with.
pub const AUTO_PREFIX: &str = "Auto/";

/// The definition of a static index, as a client sends it. What is not said is `None` or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct IndexDefinition {
    /// Its name; compared without regard to case.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// The map functions.
    #[serde(deserialize_with = "or_default")]
    pub maps: Vec<String>,
    /// The reduce function.
    pub reduce: Option<String>,
    /// Options of fields, by name.
    #[serde(deserialize_with = "or_default")]
    pub fields: BTreeMap<String, FieldOptions>,
    /// Settings of this index.
    #[serde(deserialize_with = "or_default")]
    pub configuration: BTreeMap<String, Option<String>>,
    /// Source texts that the functions may use, by name.
    #[serde(deserialize_with = "or_default")]
    pub additional_sources: BTreeMap<String, String>,
    /// Assemblies that the functions may use.
    #[serde(deserialize_with = "or_default")]
    pub additional_assemblies: Vec<Value>,
    /// Whether it may be replaced.
    pub lock_mode: Option<LockMode>,
    /// Its share of the workers.
    pub priority: Option<Priority>,
    /// What it is allowed to do.
    pub state: Option<State>,
    /// How it is rolled out in a cluster; kept, and without meaning on one node.
    pub deployment_mode: Option<String>,
    /// The collection that results of the reduce function are stored in.
    pub output_reduce_to_collection: Option<String>,
    /// The number in the ids of those documents.
    pub reduce_output_index: Option<i64>,
    /// The pattern of ids of documents that refer to those.
    pub pattern_for_output_reduce_to_collection_references: Option<String>,
    /// The collection of the referring documents.
    pub pattern_references_collection_name: Option<String>,
}

/// Clients send null for what they leave out.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// How a definition differs from one that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Not at all.
    None,
    /// In what applies to the index as it is: lock mode, priority, state.
    Settings,
    /// In what is indexed, so that it has to be built anew.
    Content,
}

impl IndexDefinition {
    /// Reads a definition from its JSON.
    ///
    /// Error: [`Error::InvalidDefinition`] when a member has a value of another type.
    pub fn from_json(value: &Value) -> Result<IndexDefinition> {
        if !value.is_object() {
            return Err(Error::InvalidDefinition("a definition of an index must be an object".to_owned()));
        }
        IndexDefinition::deserialize(value).map_err(|error| {
            Error::InvalidDefinition(format!("the definition of the index cannot be read: {error}"))
        })
    }

    /// How `other` differs from this one.
    pub fn difference(&self, other: &IndexDefinition) -> Difference {
        let maps =
            |definition: &IndexDefinition| definition.maps.iter().cloned().collect::<BTreeSet<String>>();
        let said = |definition: &IndexDefinition| {
            let fields = definition.fields.iter().filter(|(_, options)| **options != FieldOptions::default());
            fields.map(|(name, options)| (name.clone(), options.clone())).collect::<BTreeMap<_, _>>()
        };
        let same = maps(self) == maps(other)
            && self.reduce == other.reduce
            && said(self) == said(other)
            && self.configuration == other.configuration
            && self.additional_sources == other.additional_sources
            && self.additional_assemblies == other.additional_assemblies
            && self.output_reduce_to_collection == other.output_reduce_to_collection
            && self.pattern_for_output_reduce_to_collection_references
                == other.pattern_for_output_reduce_to_collection_references
            && self.pattern_references_collection_name == other.pattern_references_collection_name;
        let same_settings = self.lock_mode.unwrap_or_default() == other.lock_mode.unwrap_or_default()
            && self.priority.unwrap_or_default() == other.priority.unwrap_or_default()
            && self.state.unwrap_or_default() == other.state.unwrap_or_default()
            && self.deployment_mode == other.deployment_mode;
        match (same, same_settings) {
            (false, _) => Difference::Content,
            (true, false) => Difference::Settings,
            (true, true) => Difference::None,
        }
    }

    /// Checks what can be checked without compiling: the name, that there are maps.
    ///
    /// Error: [`Error::InvalidDefinition`].
    pub fn check(&self) -> Result<()> {
        let invalid = |message: String| Err(Error::InvalidDefinition(message));
        let name = &self.name;
        if name.trim().is_empty() {
            return invalid("Index name cannot be empty!".to_owned());
        }
        if starts_with_ignoring_case(name, AUTO_PREFIX) {
            return invalid(format!(
                "Index name '{name}' is not permitted. Static index name cannot start with 'Auto/'"
            ));
        }
        if starts_with_ignoring_case(name, REPLACEMENT_PREFIX) {
            return invalid(format!(
                "Index name must not start with '{REPLACEMENT_PREFIX}'. Provided index name: '{name}'"
            ));
        }
        if !name.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c)) {
            return invalid(format!(
                "Index name '{name}' is not permitted. Only letters, digits and characters ('_', '-', '.', '/') are allowed."
            ));
        }
        if name.contains("..") {
            return invalid(format!(
                "Index name '{name}' is not permitted. Name cannot contain two consecutive dots."
            ));
        }
        if name.len() > NAME_SIZE_MAX {
            return invalid(format!(
                "the name of an index has {} bytes; the longest allowed has {NAME_SIZE_MAX}",
                name.len()
            ));
        }
        if self.maps.iter().all(|map| map.trim().is_empty()) {
            return invalid("Index must have a 'Maps' fields".to_owned());
        }
        Ok(())
    }

    /// The options of a field, with the defaults of the definition's `__all_fields`.
    pub fn field(&self, name: &str) -> FieldOptions {
        let defaults = self.fields.get(ALL_FIELDS).cloned().unwrap_or_default();
        self.fields.get(name).map(|options| options.or(&defaults)).unwrap_or(defaults)
    }

    /// The definition's own settings.
    ///
    /// Error: [`Error::InvalidOperation`] when a known one has a value that cannot be.
    pub fn settings(&self) -> Result<Configuration> {
        Configuration::of(&self.configuration)
    }
}

/// Bytes of an index's name at most, in lower case.
pub const NAME_SIZE_MAX: usize = 512;

pub(crate) fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
