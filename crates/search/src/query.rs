//! The tree of a query.

use crate::options::Units;

/// What entries to find.
#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    /// Every entry.
    All,
    /// No entry.
    None,
    /// The field holds the value. Text goes through the field's analyzer, unless `exact`; longs compare in the domain of longs,
    /// doubles in that of doubles; null is the explicit null, never a missing field.
    Term {
        /// The field.
        field: String,
        /// The value.
        value: Value,
        /// Whether text is taken as it is.
        exact: bool,
    },
    /// The field is between the bounds. Longs compare with truncated numbers, doubles with numbers, text with terms by their
    /// bytes, dates as time.
    Range {
        /// The field.
        field: String,
        /// The lower end.
        low: Bound,
        /// The upper end.
        high: Bound,
        /// Whether text is taken as it is.
        exact: bool,
    },
    /// The field holds one of the values; none of them is no entry.
    In {
        /// The field.
        field: String,
        /// The values.
        values: Vec<Value>,
        /// Whether text is taken as it is.
        exact: bool,
    },
    /// The field holds all of the values; none of them is every entry.
    AllIn {
        /// The field.
        field: String,
        /// The values.
        values: Vec<Value>,
        /// Whether text is taken as it is.
        exact: bool,
    },
    /// A term of the field begins with the text (lower-cased unless `exact`).
    Prefix {
        /// The field.
        field: String,
        /// The beginning.
        text: String,
        /// Whether text is taken as it is.
        exact: bool,
    },
    /// A term of the field ends with the text (lower-cased unless `exact`).
    Suffix {
        /// The field.
        field: String,
        /// The end.
        text: String,
        /// Whether text is taken as it is.
        exact: bool,
    },
    /// A term of the field matches the pattern of `*` and `?`.
    Wildcard {
        /// The field.
        field: String,
        /// The pattern.
        pattern: String,
        /// Whether text is taken as it is.
        exact: bool,
    },
    /// A part of a term of the field matches the regular expression.
    Regex {
        /// The field.
        field: String,
        /// The expression.
        pattern: String,
    },
    /// A term of the field is like the text.
    Fuzzy {
        /// The field.
        field: String,
        /// The text.
        text: String,
        /// From 0 (anything) to 1 (the same).
        similarity: f32,
    },
    /// `search()`: words, words with `*`, quoted phrases.
    Search {
        /// The field.
        field: String,
        /// The words.
        text: String,
        /// Whether one or all of them are needed.
        operator: Operator,
    },
    /// The words in this order within so many moves.
    Proximity {
        /// The field.
        field: String,
        /// The words.
        text: String,
        /// How many moves of a word are allowed; 0 is a phrase.
        slop: u32,
    },
    /// `lucene()`: the classic query syntax.
    Lucene {
        /// The field of what names none.
        field: String,
        /// The expression.
        text: String,
        /// Whether text is taken as it is.
        exact: bool,
    },
    /// The field is there, null or not.
    Exists {
        /// The field.
        field: String,
    },
    /// The entries of this key.
    Key(String),
    /// The entries of these keys.
    Keys(Vec<String>),
    /// The entries whose key begins so.
    KeyPrefix(String),
    /// The entries made from the document with this id.
    Reference(String),
    /// The same entries with a greater or smaller score.
    Boost(Box<Query>, f32),
    /// All of them.
    And(Vec<Query>),
    /// One of them.
    Or(Vec<Query>),
    /// All entries but these.
    Not(Box<Query>),
    /// The entries of the keys of which each query finds an entry.
    Intersect(Vec<Query>),
    /// Entries like another.
    MoreLikeThis(Box<MoreLikeThis>),
    /// Entries by where they are.
    Spatial(SpatialQuery),
}

/// A value in a query.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// The explicit null.
    Null,
    /// Text, or a date as text.
    Text(String),
    /// An integer.
    Long(i64),
    /// A number with a fraction.
    Double(f64),
    /// `true` or `false`.
    Bool(bool),
}

/// One end of a range.
#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    /// No end.
    Open,
    /// This value too.
    Included(Value),
    /// Up to this value.
    Excluded(Value),
}

/// How words are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// One is enough.
    Or,
    /// All are needed.
    And,
}

/// What `moreLikeThis` looks for.
#[derive(Debug, Clone, PartialEq)]
pub struct MoreLikeThis {
    /// Like what.
    pub source: MoreLikeThisSource,
    /// Fewest times that a term must occur in the source.
    pub minimum_term_frequency: u32,
    /// Most terms of the query that is made.
    pub maximum_query_terms: usize,
    /// Most words read of a field that is analyzed anew.
    pub maximum_number_of_tokens_parsed: usize,
    /// Shortest word, 0 for any.
    pub minimum_word_length: usize,
    /// Longest word, 0 for any.
    pub maximum_word_length: usize,
    /// Fewest entries that must hold a term.
    pub minimum_document_frequency: u64,
    /// Most entries that may hold a term.
    pub maximum_document_frequency: u64,
    /// The same as a share of all entries, from 0 to 100.
    pub maximum_document_frequency_percentage: Option<u32>,
    /// Whether terms weigh by how telling they are.
    pub boost: bool,
    /// Factor of these weights.
    pub boost_factor: f32,
    /// Words that are left out, lower-cased.
    pub stop_words: Vec<String>,
    /// The fields to look at, in the order in which they are asked for a term that several hold.
    pub fields: Vec<String>,
}

impl MoreLikeThis {
    /// What RavenDB answers with when no options are given: any term of the source that any other entry holds. (Its reference
    /// names 2 and 5 as the smallest frequencies; observed of 5.4 are 1 and 1.)
    #[must_use]
    pub fn new(source: MoreLikeThisSource) -> MoreLikeThis {
        MoreLikeThis {
            source,
            minimum_term_frequency: 1,
            maximum_query_terms: 25,
            maximum_number_of_tokens_parsed: 5000,
            minimum_word_length: 0,
            maximum_word_length: 0,
            minimum_document_frequency: 1,
            maximum_document_frequency: u64::MAX,
            maximum_document_frequency_percentage: None,
            boost: false,
            boost_factor: 1.0,
            stop_words: Vec::new(),
            fields: Vec::new(),
        }
    }
}

/// What entries shall be like.
#[derive(Debug, Clone, PartialEq)]
pub enum MoreLikeThisSource {
    /// Like the entries that the query finds, which are not in the answer. `texts` are the source's values by field, for
    /// words and how often they occur.
    Entries {
        /// Finds the source.
        query: Query,
        /// Field and text, as often as there are texts.
        texts: Vec<(String, String)>,
    },
    /// Like these texts by field.
    Texts(Vec<(String, String)>),
}

/// Entries by where they are.
#[derive(Debug, Clone, PartialEq)]
pub struct SpatialQuery {
    /// The spatial field.
    pub field: String,
    /// How the entry's shape must lie to the query's.
    pub relation: Relation,
    /// The query's shape.
    pub shape: Shape,
    /// How much a distance may be wrong, as a share of the shape's size. Answers are exact whatever it is.
    pub error_percentage: f64,
}

/// How the shape of an entry lies to the shape of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Inside; with something in common, for entries with shapes that are no points.
    Within,
    /// Around.
    Contains,
    /// Apart.
    Disjoint,
    /// With something in common.
    Intersects,
}

/// A shape.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// All within a radius of a point.
    Circle {
        /// The radius.
        radius: f64,
        /// Latitude or y of the middle.
        latitude: f64,
        /// Longitude or x of the middle.
        longitude: f64,
        /// The radius's units; none for the field's.
        units: Option<Units>,
    },
    /// Well-known text, `Circle(lng lat d=radius)`, or a plain box `minX minY maxX maxY`.
    Wkt {
        /// The text.
        text: String,
        /// The units of a circle's radius; none for the field's.
        units: Option<Units>,
    },
    /// A point.
    Point {
        /// Latitude or y.
        latitude: f64,
        /// Longitude or x.
        longitude: f64,
    },
}
