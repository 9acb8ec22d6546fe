//! The C# LINQ front end: from the text of a map or reduce function to a [`Program`](crate::program::Program).

mod calls;
mod code;
mod literals;
mod lower;
mod objects;
mod patterns;
mod queries;
mod sources;
mod statics;
mod syntax;

pub(crate) use code::{compile_map, compile_reduce};
pub(crate) use syntax::{Syntax, named, unescape};
