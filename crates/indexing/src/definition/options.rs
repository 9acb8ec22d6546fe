//! What can be said of an index, and of a field of one, beside its functions.

use serde::{Deserialize, Serialize};

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$each])* $variant,)* }

        impl $name {
            /// The name, as it is written in definitions.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => stringify!($variant),)* }
            }

            /// The one of this name, without regard to case.
            pub fn from_name(name: &str) -> Option<$name> {
                [$($name::$variant),*].into_iter().find(|each| each.as_str().eq_ignore_ascii_case(name))
            }
        }
    };
}

names! {
    /// Whether a definition may be replaced.
    LockMode {
        /// It may.
        #[default]
        Unlock,
        /// It may not: who tries is told that it was, and nothing happens.
        LockedIgnore,
        /// It may not: who tries gets an error.
        LockedError,
    }
}

names! {
    /// How much of the workers' time an index gets when there is not enough for all.
    Priority {
        /// Less than others.
        Low,
        /// As much as others.
        #[default]
        Normal,
        /// More than others.
        High,
    }
}

names! {
    /// What an index is allowed to do.
    State {
        /// To index.
        #[default]
        Normal,
        /// Nothing, until it is enabled again; queries see what was indexed before.
        Disabled,
        /// Nothing, since nobody asked it for long; a query wakes it.
        Idle,
        /// Nothing, and no queries either: its functions failed too often.
        Error,
    }
}

names! {
    /// How a field is made into terms.
    FieldIndexing {
        /// The whole value, in lower case.
        #[default]
        Default,
        /// The whole value as it is.
        Exact,
        /// The words that an analyzer finds in it.
        Search,
        /// Not at all.
        No,
    }
}

names! {
    /// Whether values are kept beside terms.
    FieldStorage {
        /// They are.
        Yes,
        /// They are not.
        #[default]
        No,
    }
}

names! {
    /// What is kept of a field's terms for each document.
    TermVector {
        /// Nothing.
        #[default]
        No,
        /// The terms.
        Yes,
        /// And where in the order of words.
        WithPositions,
        /// And where in the text.
        WithOffsets,
        /// All of that.
        WithPositionsAndOffsets,
    }
}

names! {
    /// On what surface a spatial field lies.
    SpatialType {
        /// The earth: longitude and latitude in degrees.
        #[default]
        Geography,
        /// A plane.
        Cartesian,
    }
}

names! {
    /// How shapes become terms.
    SpatialStrategy {
        /// Cells of a geohash.
        #[default]
        GeohashPrefixTree,
        /// Cells of a tree of quadrants.
        QuadPrefixTree,
        /// The smallest box around a shape.
        BoundingBox,
    }
}

names! {
    /// In what distances are measured on the earth.
    SpatialUnits {
        /// Kilometers.
        #[default]
        Kilometers,
        /// Miles.
        Miles,
    }
}

/// Options of one field; what is `None` was not said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct FieldOptions {
    /// The analyzer's name.
    pub analyzer: Option<String>,
    /// How values become terms.
    pub indexing: Option<FieldIndexing>,
    /// Whether values are stored.
    pub storage: Option<FieldStorage>,
    /// Whether terms are suggested for misspelt ones.
    pub suggestions: Option<bool>,
    /// What is kept of terms.
    pub term_vector: Option<TermVector>,
    /// That the field holds places.
    pub spatial: Option<SpatialOptions>,
}

impl FieldOptions {
    /// These, with what is not said taken from `defaults`.
    pub fn or(&self, defaults: &FieldOptions) -> FieldOptions {
        FieldOptions {
            analyzer: self.analyzer.clone().or_else(|| defaults.analyzer.clone()),
            indexing: self.indexing.or(defaults.indexing),
            storage: self.storage.or(defaults.storage),
            suggestions: self.suggestions.or(defaults.suggestions),
            term_vector: self.term_vector.or(defaults.term_vector),
            spatial: self.spatial.clone().or_else(|| defaults.spatial.clone()),
        }
    }
}

/// Options of a field of places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct SpatialOptions {
    /// On what surface.
    #[serde(rename = "Type")]
    pub kind: SpatialType,
    /// How shapes become terms.
    pub strategy: SpatialStrategy,
    /// How fine the cells are.
    pub max_tree_level: u32,
    /// The surface's least x.
    pub min_x: f64,
    /// The surface's greatest x.
    pub max_x: f64,
    /// The surface's least y.
    pub min_y: f64,
    /// The surface's greatest y.
    pub max_y: f64,
    /// In what distances are given.
    pub units: SpatialUnits,
}

impl Default for SpatialOptions {
    fn default() -> SpatialOptions {
        SpatialOptions {
            kind: SpatialType::Geography,
            strategy: SpatialStrategy::GeohashPrefixTree,
            max_tree_level: 9,
            min_x: -180.0,
            max_x: 180.0,
            min_y: -90.0,
            max_y: 90.0,
            units: SpatialUnits::Kilometers,
        }
    }
}
