//! Running plans: one way for collections, one for indexes.

pub(crate) mod collection;
pub(crate) mod extras;
pub(crate) mod facets;
pub(crate) mod index;
pub(crate) mod suggestions;
