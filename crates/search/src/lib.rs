//! Inverted indexes for full-text and structured queries, on tantivy.
//!
//! An [`Index`] is a directory of index entries. A [`Writer`] adds and deletes entries by key and commits them together
//! with a payload of the caller's, atomically; a [`Searcher`] is a snapshot that answers [`Query`] trees. What terms a
//! value becomes, and how values compare, is RavenDB's behaviour on Lucene: see [`FieldValue`] and [`Query`].
//!
//! Nothing here knows where documents are kept or what a request looks like.
#![forbid(unsafe_code)]

mod analysis;
mod building;
mod cells;
mod collation;
mod compile;
mod counting;
mod deletion;
mod directory;
mod docs;
mod encode;
mod entry;
mod error;
mod facet;
mod highlight;
mod index;
mod keys;
mod layout;
mod like;
mod merges;
mod options;
mod order;
mod query;
mod request;
mod searcher;
mod segment;
mod spatial;
mod stream;
mod suggest;
mod top;
mod upkeep;
mod writer;

pub use entry::{Entry, FieldValue};
pub use error::{Error, Result};
pub use facet::{Aggregate, FacetKind, FacetRange, FacetRequest, FacetResult, FacetSort, FacetValue};
pub use index::Index;
pub use layout::KEY_FIELD;
pub use options::{
    CustomAnalyzer, CustomFilter, CustomTokenizer, FieldOptions, Indexing, Schema, SpatialKind,
    SpatialOptions, SpatialStrategy, TermVector, Units,
};
pub use query::{
    Bound, MoreLikeThis, MoreLikeThisSource, Operator, Query, Relation, Shape, SpatialQuery, Value,
};
pub use request::{Distance, Highlight, Hit, Page, Sort, SortBy, StringDistance, Suggest, SuggestSort};
pub use searcher::Searcher;
pub use stream::Stream;
pub use writer::Writer;
