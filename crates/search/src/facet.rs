//! What is asked of facets, and what they answer.

use std::ops::Range;

use crate::query::Bound;

/// One facet: entries counted by terms or by ranges of fields.
#[derive(Debug, Clone, PartialEq)]
pub struct FacetRequest {
    /// By what entries are counted.
    pub kind: FacetKind,
    /// Fields whose numbers are summed up for each value.
    pub aggregations: Vec<String>,
}

/// By what entries are counted.
#[derive(Debug, Clone, PartialEq)]
pub enum FacetKind {
    /// By every term of the field.
    Terms {
        /// The field.
        field: String,
        /// The order of the values.
        sort: FacetSort,
        /// How many values are left out at the beginning.
        start: usize,
        /// Most values of the answer.
        page_size: usize,
        /// Whether the terms after the page are listed.
        include_remaining_terms: bool,
    },
    /// By these ranges, in this order. Numbers compare as doubles, texts, those of dates too, as terms.
    Ranges(Vec<FacetRange>),
    /// All entries, as one value without a term.
    All,
}

/// A range of a field.
#[derive(Debug, Clone, PartialEq)]
pub struct FacetRange {
    /// The field.
    pub field: String,
    /// The lower end.
    pub low: Bound,
    /// The upper end.
    pub high: Bound,
}

/// The order of the values of a facet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FacetSort {
    /// Terms by their letters, without regard to case.
    #[default]
    ValueAscending,
    /// The same, backwards.
    ValueDescending,
    /// The smallest count first.
    CountAscending,
    /// The greatest count first.
    CountDescending,
}

/// The answer to a [`FacetRequest`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FacetResult {
    /// The values of the page; all ranges, in order, for ranges.
    pub values: Vec<FacetValue>,
    /// How many terms come after the page.
    pub remaining_terms_count: u64,
    /// How many entries they hold, together.
    pub remaining_hits: u64,
    /// The terms after the page, when asked for.
    pub remaining_terms: Vec<String>,
    /// The terms of all values, one after the other: a string for each would be most of the work.
    pub(crate) text: String,
}

impl FacetResult {
    /// The term of one of its values; empty for ranges.
    #[must_use]
    pub fn term(&self, value: &FacetValue) -> &str {
        self.text.get(value.term.clone()).unwrap_or_default()
    }
}

/// One value of a facet.
#[derive(Debug, Clone, PartialEq)]
pub struct FacetValue {
    /// Where its term stands in the result's text.
    pub(crate) term: Range<usize>,
    /// How many entries of the result hold it.
    pub count: u64,
    /// One for each field of `aggregations`, in order.
    pub aggregates: Vec<Aggregate>,
}

/// The numbers of a field over the entries of a facet's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aggregate {
    /// How many entries have a number.
    pub count: u64,
    /// The sum of the numbers.
    pub sum: f64,
    /// The smallest; infinite without any.
    pub min: f64,
    /// The greatest; minus infinite without any.
    pub max: f64,
}
