//! What is asked of a searcher beside the query, and what it answers.

use crate::options::Units;

/// One part of the order of hits. Later parts order what earlier ones hold equal; the order of insertion decides last.
#[derive(Debug, Clone, PartialEq)]
pub struct Sort {
    /// By what.
    pub by: SortBy,
    /// Whether everything is turned around.
    pub descending: bool,
}

/// By what hits are ordered.
#[derive(Debug, Clone, PartialEq)]
pub enum SortBy {
    /// The text of the field's terms by their bytes, missing ones first, then null.
    Text(String),
    /// The field as a long; missing ones and what is not a number are 0.
    Long(String),
    /// The field as a double; missing ones and what is not a number are 0.
    Double(String),
    /// The text with its runs of digits as numbers.
    AlphaNumeric(String),
    /// By chance: the same seed gives the same order as long as the index does not change.
    Random(Option<String>),
    /// The score, the greatest first.
    Score,
    /// The key.
    Key,
    /// How far the field is from a point, the nearest first.
    Distance {
        /// The spatial field.
        field: String,
        /// Latitude or y.
        latitude: f64,
        /// Longitude or x.
        longitude: f64,
        /// Distances within multiples of this are equal; 0 for none.
        round: f64,
        /// Units of the answer; none for the field's.
        units: Option<Units>,
    },
}

/// A page of hits.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// How many entries match, before paging and before duplicates are left out.
    pub total: u64,
    /// Entries passed over because their key had come before, up to the end of this page.
    pub skipped_duplicates: u64,
    /// The hits, in order.
    pub hits: Vec<Hit>,
}

/// One entry of an answer.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The entry's key.
    pub key: String,
    /// How well it matches; 1 where nothing was scored.
    pub score: f32,
    /// What the caller stored with the entry; empty for nothing.
    pub stored: Vec<u8>,
    /// How far it is, when the order is by distance.
    pub distance: Option<Distance>,
    /// The entry's place in this searcher, for [`crate::Searcher::explain`] and [`crate::Searcher::entry`].
    pub place: (u32, u32),
}

/// How far an entry is from the point of the order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distance {
    /// In the units asked for.
    pub distance: f64,
    /// Latitude or y of the entry.
    pub latitude: f64,
    /// Longitude or x of the entry.
    pub longitude: f64,
}

/// How fragments of a text are marked.
#[derive(Debug, Clone, PartialEq)]
pub struct Highlight {
    /// The field whose analyzer and query terms count.
    pub field: String,
    /// About how many characters a fragment has.
    pub fragment_length: usize,
    /// Most fragments of a text.
    pub fragment_count: usize,
    /// Put before a term, one for each term of the query in turn; none for RavenDB's colours.
    pub pre_tags: Vec<String>,
    /// Put after a term.
    pub post_tags: Vec<String>,
}

/// What `suggest` looks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggest {
    /// The field.
    pub field: String,
    /// The word that is misspelt.
    pub term: String,
    /// How alike, from 0 to 1; RavenDB's default is 0.5.
    pub accuracy: f32,
    /// Most words of the answer; RavenDB's default is 15.
    pub count: usize,
    /// How likeness is measured.
    pub distance: StringDistance,
    /// The order of words that are equally like.
    pub sort: SuggestSort,
}

/// How likeness of words is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringDistance {
    /// Edits.
    Levenshtein,
    /// Common characters and a common beginning.
    JaroWinkler,
    /// Common pairs of characters.
    NGram,
}

/// The order of suggestions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuggestSort {
    /// The likest first.
    None,
    /// The most frequent first.
    Popularity,
}
