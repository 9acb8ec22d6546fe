//! What is known of an index's fields beforehand.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::layout::Layout;

/// The fields of an index. Fields that come up later and are not named here work with `all_fields`' options, only slower.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    /// Options by field name.
    pub fields: BTreeMap<String, FieldOptions>,
    /// Options of the fields that are not named.
    pub all_fields: FieldOptions,
}

impl Schema {
    /// That there can be an index of these fields, without making one.
    ///
    /// Errors: `Error::UnknownAnalyzer`.
    pub fn check(&self) -> Result<()> {
        Layout::new(self.clone()).map(drop)
    }
}

/// How a field is indexed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldOptions {
    /// What becomes of text.
    pub indexing: Indexing,
    /// The analyzer's name, for fields with `Indexing::Search` and others alike; none for the default of `indexing`.
    pub analyzer: Option<String>,
    /// Whether the caller keeps the value (it does so in [`crate::Entry::stored`]); highlighting and more-like-this need it.
    pub store: bool,
    /// What is kept of the positions of terms.
    pub term_vector: TermVector,
    /// Whether the field serves suggestions.
    pub suggestions: bool,
    /// For fields with points and shapes.
    pub spatial: Option<SpatialOptions>,
}

/// What becomes of text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Indexing {
    /// One term, lower-cased.
    #[default]
    Default,
    /// One term, as it is.
    Exact,
    /// The terms that the analyzer makes, with their positions.
    Search,
    /// None: the field is only stored.
    No,
}

/// What is kept of the terms of each entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TermVector {
    /// Nothing.
    #[default]
    No,
    /// The terms.
    Yes,
    /// The terms and their positions.
    WithPositions,
    /// The terms and where they are in the text.
    WithOffsets,
    /// All of this.
    WithPositionsAndOffsets,
}

/// How a spatial field measures.
#[derive(Debug, Clone, PartialEq)]
pub struct SpatialOptions {
    /// Geography or Cartesian.
    pub kind: SpatialKind,
    /// How RavenDB would cut shapes into cells. Answers are exact here whatever it is.
    pub strategy: SpatialStrategy,
    /// The units of distances and radii that do not name theirs.
    pub units: Units,
    /// The smallest x of a Cartesian field.
    pub min_x: f64,
    /// The greatest x of a Cartesian field.
    pub max_x: f64,
    /// The smallest y of a Cartesian field.
    pub min_y: f64,
    /// The greatest y of a Cartesian field.
    pub max_y: f64,
}

impl Default for SpatialOptions {
    fn default() -> SpatialOptions {
        SpatialOptions {
            kind: SpatialKind::Geography,
            strategy: SpatialStrategy::GeohashPrefixTree,
            units: Units::Kilometers,
            min_x: -180.0,
            max_x: 180.0,
            min_y: -90.0,
            max_y: 90.0,
        }
    }
}

/// On a sphere or on a plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpatialKind {
    /// Latitude and longitude on the Earth.
    Geography,
    /// x and y.
    Cartesian,
}

/// How RavenDB would cut shapes into cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpatialStrategy {
    /// Cells of geohashes.
    GeohashPrefixTree,
    /// Cells of a quadtree.
    QuadPrefixTree,
    /// Rectangles only.
    BoundingBox,
}

/// Units of length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    /// Kilometres.
    Kilometers,
    /// Miles of 1.60934 km.
    Miles,
}
