//! Binary JSON documents that are used in place.
//!
//! A JSON text is parsed once into a [`Document`]: bytes that can be stored, mapped back and read without parsing, copying or allocation, and
//! printed without looking for what to escape. `docs/format/document.md` specifies them byte by byte.
//!
//! ```
//! use jackdaw_document::{Context, Path, Property, Style};
//!
//! let mut context = Context::new();
//! let order = context.parse(r#"{"Company":"companies/1","Lines":[{"Product":"tea","Price":1.10}]}"#)?;
//! assert_eq!(order.get("Company").and_then(|value| value.as_text()).and_then(|text| text.as_str()), Some("companies/1"));
//!
//! // A name that is read from many documents remembers where it was.
//! let company = Property::new("Company");
//! assert!(order.object().and_then(|object| company.get(&object)).is_some());
//!
//! let price = Path::parse("Lines[].Price")?.first(&order.root());
//! assert_eq!(price.and_then(|price| price.as_f64()), Some(1.1));
//! assert_eq!(order.to_json(Style::Compact), r#"{"Company":"companies/1","Lines":[{"Product":"tea","Price":1.10}]}"#);
//!
//! // Bytes from elsewhere are checked once.
//! let bytes = order.as_bytes().to_vec();
//! let again = jackdaw_document::Document::from_bytes(&bytes)?;
//! assert_eq!(again, order);
//! # drop(order);
//! context.reset();
//! # Ok::<(), jackdaw_document::Error>(())
//! ```
//!
//! | part | module |
//! | --- | --- |
//! | parsing and printing JSON text | `text` |
//! | writing documents | `build` |
//! | reading, paths, comparison, `serde` | `read` |
//! | checking bytes from anywhere | `validate` |
//! | overlays and differences | `edit` |
//! | memory and caches | [`Context`], [`ContextPool`] |
//! | compression of names and strings | [`Dictionary`] |
//! | finding where values end in a long text | [`structure`] |
//! | etags and dates | [`etag`], [`date`] |
//!
//! The crate knows nothing of storage, collections or the network. Unsafe code is in `simd` (which has also the check for short ASCII text that reading uses), in
//! `build::buffer`, `build::names`, `text::append` and `dictionary::lanes`, and in the two calls of the parser that choose an instruction set.

mod build;
mod context;
pub mod date;
mod dictionary;
mod edit;
mod error;
pub mod etag;
pub mod format;
mod limits;
mod read;
mod simd;
mod text;
mod validate;

pub use build::{Builder, Mode};
pub use context::{Context, ContextPool, ContextStatistics, PoolStatistics, PooledContext};
pub use dictionary::Dictionary;
pub use edit::{Difference, Overlay, differences};
pub use error::{Damage, Error, Result, TextError, TextErrorKind};
pub use limits::Limits;
pub use read::{Array, Document, Number, Object, Path, Property, Text, Value};
pub use simd::structure;
pub use text::{ChunkPrinter, Style, TextStream, append_json_string};
