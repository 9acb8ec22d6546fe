//! JSON text in and out.

mod append;
pub(crate) mod number;
pub(crate) mod parse;
pub(crate) mod print;
pub(crate) mod stream;

pub use print::{ChunkPrinter, Style, append_json_string};
pub use stream::TextStream;
