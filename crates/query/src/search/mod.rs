//! From the clauses of a query to what the search index is asked.

pub(crate) mod condition;
pub(crate) mod more_like_this;
pub(crate) mod names;
pub(crate) mod order;
pub(crate) mod spatial;
