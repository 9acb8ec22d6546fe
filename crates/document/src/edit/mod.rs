//! Changing documents, and telling two apart.

mod difference;
mod overlay;

pub use difference::{Difference, differences};
pub use overlay::Overlay;
