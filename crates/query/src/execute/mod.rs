//! Running plans: one way for collections, one for indexes.

pub(crate) mod collection;
