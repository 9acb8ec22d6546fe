//! Reading documents in place: views that borrow the bytes and copy nothing.
//!
//! No unsafe code and no panic: a place outside the document reads as zeros, a length beyond its end is cut. For a document that passed
//! [`Document::validate`], or that this crate wrote, neither ever happens; for any other bytes answers are meaningless but harmless.

pub(crate) mod array;
mod bytes;
pub(crate) mod compare;
pub(crate) mod deserialize;
pub(crate) mod document;
pub(crate) mod object;
pub(crate) mod path;
pub(crate) mod property;
pub(crate) mod text;
pub(crate) mod value;

pub use array::Array;
pub use document::Document;
pub use object::Object;
pub use path::Path;
pub use property::Property;
pub use text::Text;
pub use value::{Number, Value};
