//! Writing documents: [`writer`] makes the bytes, [`builder`] and [`serialize`] are the faces for callers.

mod buffer;
pub(crate) mod builder;
pub(crate) mod names;
pub(crate) mod serialize;
pub(crate) mod writer;

pub use builder::Builder;
pub use writer::Mode;
