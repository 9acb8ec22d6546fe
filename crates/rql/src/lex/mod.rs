//! From bytes to tokens, and the two things that are not tokens: the text of strings, and blocks in another language.

pub(crate) mod code;
pub(crate) mod lexer;
pub(crate) mod string;
pub(crate) mod token;

pub(crate) use lexer::Lexer;
pub(crate) use token::{Keyword, Kind, Token};
