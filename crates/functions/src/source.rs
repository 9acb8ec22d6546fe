//! What a map runs over.

/// What a map runs over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// Which kind of data.
    pub kind: SourceKind,
    /// Of which documents.
    pub collections: Collections,
    /// The name of the time series or counter, where the map names one; `None` for documents and for all of them.
    pub name: Option<Box<str>>,
}

/// The kind of data that a map runs over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourceKind {
    /// `docs`.
    Documents,
    /// `timeSeries`.
    TimeSeries,
    /// `counters`.
    Counters,
}

/// The documents that a map runs over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Collections {
    /// Those of all collections, and those of none.
    All,
    /// Those of these collections, named as the function names them; names are compared without regard to case.
    Named(Vec<Box<str>>),
}
