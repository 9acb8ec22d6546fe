//! What is known of an index's fields beforehand.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::Result;
use crate::layout::Layout;

/// The fields of an index. Fields that come up later and are not named here work with `all_fields`' options, only slower.
#[derive(Clone, Default, PartialEq)]
pub struct Schema {
    /// Options by field name.
    pub fields: BTreeMap<String, FieldOptions>,
    /// Options of the fields that are not named.
    pub all_fields: FieldOptions,
    /// Analyzers that options may name beside those that are always there, by their names in lower case.
    pub custom_analyzers: BTreeMap<String, CustomAnalyzer>,
}

/// An index remembers what this prints and is built anew when that changes. So it says which analyzers fields have, and not what a custom one does: a custom
/// analyzer that changes leaves what is indexed as it is, as in RavenDB.
impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("fields", &self.fields).field("all_fields", &self.all_fields).finish()
    }
}

/// An analyzer made of a tokenizer of Lucene's and filters behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomAnalyzer {
    /// What cuts the text.
    pub tokenizer: CustomTokenizer,
    /// What each token goes through, in order.
    pub filters: Vec<CustomFilter>,
}

/// What cuts a text into tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CustomTokenizer {
    /// Words, numbers, host names and the like. Those of more UTF-16 units than this are left out.
    Standard(u32),
    /// RavenDB's standard analyzer, whole.
    RavenStandard,
    /// What stands between spaces.
    Whitespace,
    /// Runs of letters.
    Letter,
    /// The whole text.
    Keyword,
}

/// What becomes of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CustomFilter {
    /// `'s` goes from words with an apostrophe, dots go from acronyms.
    Standard,
    /// It becomes lower-case.
    LowerCase,
    /// It goes when it is one of these words.
    Stop {
        /// They.
        words: Vec<String>,
        /// Whether case is of no matter.
        ignores_case: bool,
        /// Whether phrases notice the gap.
        leaves_gaps: bool,
    },
    /// Its characters become what they look like in ASCII.
    AsciiFolding,
    /// Its letters of ISO Latin 1 lose their accents.
    Latin1Accent,
    /// It goes when it has fewer or more UTF-16 units.
    Length {
        /// At least.
        min: u32,
        /// At most.
        max: u32,
    },
    /// It loses English endings, by Porter's algorithm.
    PorterStem,
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
