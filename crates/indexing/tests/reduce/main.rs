//! The map/reduce engine against plain recomputation: random batches, crashes, costs by counts, and the aggregations that an application has.

#![allow(clippy::unwrap_used, clippy::panic)]

mod costs;
mod crashes;
mod history;
mod model;
mod posts;
