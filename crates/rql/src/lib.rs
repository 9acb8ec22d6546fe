//! RQL, the query language: lexer, parser, syntax tree, printer.
//!
//! ```
//! use jackdaw_rql::parse;
//! use jackdaw_rql::tree::{Expression, SourceKind};
//!
//! let query = parse("FROM Orders AS o WHERE o.Total > $min AND NOT o.'order' IN ('x') SELECT o.Lines[].Product as Products LIMIT 10")?;
//! assert!(matches!(&query.from.kind, SourceKind::Collection(name) if name.text == "Orders"));
//! assert!(matches!(query.condition, Some(Expression::And(_))));
//!
//! // Trees print as canonical text, which parses to an equal tree.
//! let text = "from 'Orders' as o where o.Total > $min and not o.order in ('x') select o.Lines[].Product as Products limit 10";
//! assert_eq!(query.to_string(), text);
//! assert_eq!(parse(text)?, query);
//!
//! // Errors say what was expected, and where.
//! let error = parse("from Orders where Total > and Paid = true").unwrap_err();
//! assert_eq!(error.to_string(), "\
//! 1:27: expected a value after the operator, found `and`
//! from Orders where Total > and Paid = true
//!                           ^^^");
//! # Ok::<(), jackdaw_rql::Error>(())
//! ```
//!
//! | part | module |
//! | --- | --- |
//! | the syntax tree, which borrows from the text | [`tree`] |
//! | tokens, the text of strings, the end of blocks in JavaScript | `lex` |
//! | recursive descent, clause by clause | `parse` |
//! | `Display` of every node: canonical text | `print` |
//! | the fields that a query needs an index for: [`Query::visit_fields`](tree::Query::visit_fields) | `fields` |
//!
//! `docs/rql.md` has the grammar with an example of each construct. The crate parses; it does not judge: whether a function exists and takes such
//! arguments, whether an alias is declared, whether a parameter is given, the query crate says. JavaScript and time series queries are kept as
//! exact text.
//!
//! What always holds:
//!
//! - Parsing is total: any text gives a tree or an error, in bounded stack and in time linear in the text. Depth is limited by [`Limits`], and a
//!   chain of `and` or `or` is one node however long.
//! - Every node has the place it was parsed from, and two trees are equal if they say the same, wherever.
#![forbid(unsafe_code)]

mod error;
mod fields;
mod lex;
mod limits;
mod parse;
mod print;
mod span;
pub mod tree;

pub use error::{Error, ErrorKind, Result};
pub use fields::{Field, FieldUse, Usage};
pub use limits::{DEPTH_MAX, Limits, TEXT_SIZE_MAX};
pub use parse::{parse, parse_expression, parse_path, parse_with};
pub use span::Span;
