//! Automatic indexes: what a query needs, which index has it, and what a new one is called.
//!
//! An automatic index belongs to one collection (or to all documents). Its fields are paths into documents; beside the value as it is (in lower
//! case), a field may also be indexed whole without a change of case (`exact(Name)`) and by words (`search(Name)`), each under that name.
//! A query that no index can answer gets one with its own fields and those of the widest index of the collection, which then is retired.

mod matching;
mod name;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use matching::{Explanation, Match, Mismatch};

use crate::definition::{FieldIndexing, FieldOptions, FieldStorage, SpatialOptions, TermVector};

/// The collection of automatic indexes over all documents.
pub const ALL_DOCUMENTS: &str = "@all_docs";

/// The definition of an automatic index, and what a query asks of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AutoDefinition {
    /// The collection, or [`ALL_DOCUMENTS`].
    pub collection: String,
    /// The fields by path. With [`AutoDefinition::group_by`] these are what is aggregated.
    pub map_fields: BTreeMap<String, AutoField>,
    /// What results are grouped by, by path; empty when they are not.
    pub group_by_fields: BTreeMap<String, AutoField>,
}

/// A field of an automatic index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AutoField {
    /// Also whole, without a change of case.
    pub exact: bool,
    /// Also by words.
    pub search: bool,
    /// By words with what highlighting needs.
    pub highlighting: bool,
    /// Terms are suggested for misspelt ones.
    pub suggestions: bool,
    /// What places are made of.
    pub spatial: Option<AutoSpatial>,
    /// How values of a group are put together.
    pub aggregation: Aggregation,
    /// What an array is to a group.
    pub group_by_array: GroupByArray,
}

/// A field of places, made from other fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AutoSpatial {
    /// From what.
    pub method: SpatialMethod,
    /// The paths: latitude and longitude, or the text.
    pub arguments: Vec<String>,
    /// How they lie.
    #[serde(default)]
    pub options: SpatialOptions,
}

/// From what a place is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpatialMethod {
    /// Latitude and longitude.
    Point,
    /// Well-known text.
    Wkt,
}

/// How values of a group are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Aggregation {
    /// They are not.
    #[default]
    None,
    /// Their number.
    Count,
    /// Their sum.
    Sum,
}

/// What an array is to a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupByArray {
    /// The path goes through none.
    #[default]
    NotApplicable,
    /// The document is in the group of all values together: `array(Lines[].Product)`.
    ByContent,
    /// The document is in the group of each value: `Lines[].Product`.
    ByIndividualValues,
}

impl AutoDefinition {
    /// One without fields.
    pub fn new(collection: &str) -> AutoDefinition {
        AutoDefinition { collection: collection.to_owned(), ..AutoDefinition::default() }
    }

    /// Asks for a field by its path; what was asked of it before stays.
    pub fn field(&mut self, path: &str) -> &mut AutoField {
        self.map_fields.entry(path.to_owned()).or_default()
    }

    /// Whether results are grouped.
    pub fn is_map_reduce(&self) -> bool {
        !self.group_by_fields.is_empty()
    }

    /// The name of an index with this definition.
    pub fn name(&self) -> String {
        name::name(self)
    }

    /// The fields of the search index with their options: `Name`, `search(Name)`, `exact(Name)`.
    pub fn search_fields(&self) -> BTreeMap<String, FieldOptions> {
        let mut all = BTreeMap::new();
        for (path, field) in self.map_fields.iter().chain(&self.group_by_fields) {
            let plain = FieldOptions {
                indexing: Some(FieldIndexing::Default),
                storage: Some(FieldStorage::No),
                suggestions: Some(field.suggestions),
                term_vector: Some(TermVector::No),
                spatial: field.spatial.as_ref().map(|spatial| spatial.options.clone()),
                analyzer: None,
            };
            if field.exact {
                let exact = FieldOptions {
                    indexing: Some(FieldIndexing::Exact),
                    suggestions: Some(false),
                    ..plain.clone()
                };
                all.insert(exact_field(path), exact);
            }
            if field.search || field.highlighting {
                let highlighting = field.highlighting;
                all.insert(
                    search_field(path),
                    FieldOptions {
                        indexing: Some(FieldIndexing::Search),
                        storage: Some(if highlighting { FieldStorage::Yes } else { FieldStorage::No }),
                        term_vector: Some(if highlighting {
                            TermVector::WithPositionsAndOffsets
                        } else {
                            TermVector::No
                        }),
                        suggestions: Some(false),
                        ..plain.clone()
                    },
                );
            }
            all.insert(path.clone(), plain);
        }
        all
    }

    /// The text that stands for the map function where definitions are listed.
    pub fn map_text(&self) -> String {
        let fields = self.map_fields.iter().map(|(path, field)| match field.aggregation {
            Aggregation::None => format!("<Name:{path}>"),
            Aggregation::Count => format!("<Name:{path}#Operation:Count>"),
            Aggregation::Sum => format!("<Name:{path}#Operation:Sum>"),
        });
        format!("{}:[{}]", self.collection, fields.collect::<Vec<_>>().join(";"))
    }

    /// The same for the reduce function, if there is one.
    pub fn reduce_text(&self) -> Option<String> {
        let fields = self.group_by_fields.keys().map(|path| format!("<Name:{path}>"));
        self.is_map_reduce()
            .then(|| format!("{}:[{}]", self.collection, fields.collect::<Vec<_>>().join(";")))
    }

    /// As it stands in the record of a database.
    pub fn to_record(&self, name: &str) -> Value {
        let fields = |fields: &BTreeMap<String, AutoField>| {
            fields.iter().map(|(path, field)| (path.clone(), field.to_record())).collect::<Map<_, _>>()
        };
        json!({
            "ClusterState": null,
            "Type": if self.is_map_reduce() { "AutoMapReduce" } else { "AutoMap" },
            "Collection": self.collection,
            "MapFields": fields(&self.map_fields),
            "GroupByFields": fields(&self.group_by_fields),
            "Name": name,
            "Priority": "Normal",
            "State": null,
        })
    }

    /// From the record of a database.
    pub fn from_record(record: &Value) -> Option<AutoDefinition> {
        let fields = |key: &str| -> Option<BTreeMap<String, AutoField>> {
            let Some(Value::Object(fields)) = record.get(key) else { return Some(BTreeMap::new()) };
            fields.iter().map(|(path, field)| Some((path.clone(), AutoField::from_record(field)?))).collect()
        };
        Some(AutoDefinition {
            collection: record.get("Collection")?.as_str()?.to_owned(),
            map_fields: fields("MapFields")?,
            group_by_fields: fields("GroupByFields")?,
        })
    }
}

/// The name of the field that has the values of a path as they are.
pub fn exact_field(path: &str) -> String {
    format!("exact({path})")
}

/// The name of the field that has the words of a path.
pub fn search_field(path: &str) -> String {
    format!("search({path})")
}

impl AutoField {
    /// Adds what another one has.
    pub fn widen(&mut self, other: &AutoField) {
        self.exact |= other.exact;
        self.search |= other.search;
        self.highlighting |= other.highlighting;
        self.suggestions |= other.suggestions;
        if self.spatial.is_none() {
            self.spatial.clone_from(&other.spatial);
        }
    }

    fn to_record(&self) -> Value {
        let mut indexing = Vec::new();
        for (is_on, name) in [
            (self.search, "Search"),
            (self.exact, "Exact"),
            (self.highlighting, "Highlighting"),
            (true, "Default"),
        ] {
            if is_on {
                indexing.push(name);
            }
        }
        let spatial = self.spatial.as_ref().map(|spatial| {
            let mut members = Map::new();
            members.insert("MethodType".to_owned(), json!(spatial.method));
            members.insert("MethodArguments".to_owned(), json!(spatial.arguments));
            if let Value::Object(options) = json!(spatial.options) {
                members.extend(options);
            }
            members
        });
        json!({
            "Storage": "No",
            "Indexing": indexing.join(", "),
            "Aggregation": self.aggregation,
            "Spatial": spatial,
            "GroupByArrayBehavior": self.group_by_array,
            "Suggestions": self.suggestions,
            "IsNameQuoted": false,
        })
    }

    fn from_record(record: &Value) -> Option<AutoField> {
        let indexing = record.get("Indexing").and_then(Value::as_str).unwrap_or_default();
        let has = |name: &str| indexing.split(',').any(|each| each.trim() == name);
        let of = |key: &str| record.get(key).filter(|value| !value.is_null());
        let spatial = match of("Spatial") {
            None => None,
            Some(spatial) => Some(AutoSpatial {
                method: SpatialMethod::deserialize(spatial.get("MethodType")?).ok()?,
                arguments: Vec::deserialize(spatial.get("MethodArguments")?).ok()?,
                options: SpatialOptions::deserialize(spatial).ok()?,
            }),
        };
        Some(AutoField {
            exact: has("Exact"),
            search: has("Search"),
            highlighting: has("Highlighting"),
            suggestions: of("Suggestions").and_then(Value::as_bool).unwrap_or_default(),
            spatial,
            aggregation: of("Aggregation")
                .map_or(Some(Aggregation::None), |value| Aggregation::deserialize(value).ok())?,
            group_by_array: of("GroupByArrayBehavior")
                .map_or(Some(GroupByArray::NotApplicable), |value| GroupByArray::deserialize(value).ok())?,
        })
    }
}
