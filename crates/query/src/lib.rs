//! RQL planned and executed: projections, includes, facets, streams.
#![forbid(unsafe_code)]
