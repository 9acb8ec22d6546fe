//! JSON text cut into values as it arrives, without parsing it: [`extent`] finds where a value ends,
//! [`window`] holds what has arrived, [`scanner`] takes values and raw bytes off it, and [`splitter`] is the face for arrays and
//! sequences. [`properties`] looks one level into a value.

pub(crate) mod extent;
pub(crate) mod properties;
pub(crate) mod scanner;
pub(crate) mod splitter;
mod window;
