//! Tokens on demand: the lexer is two words, so looking ahead is copying it.

use crate::error::{Error, ErrorKind, Result};
use crate::lex::token::{Keyword, Kind, Token};
use crate::span::Span;

/// A place in the text from which tokens are read.
#[derive(Clone, Copy)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    /// Goes on reading at the byte `at`, which is between characters.
    pub(crate) fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// The next token; at the end, [`Kind::End`] again and again.
    #[inline]
    pub(crate) fn token(&mut self) -> Result<Token> {
        let bytes = self.text.as_bytes();
        self.skip_blank()?;
        let start = self.at;
        let Some(&first) = bytes.get(start) else { return Ok(self.finish(Kind::End, start)) };
        let kind = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'@' => return Ok(self.word()),
            b'0'..=b'9' => return Ok(self.number(start)),
            b'-' if bytes.get(start + 1).is_some_and(u8::is_ascii_digit) => return Ok(self.number(start + 1)),
            b'\'' | b'"' => return self.string(first),
            b'$' => return self.parameter(),
            b',' => Kind::Comma,
            b'.' => Kind::Dot,
            b'*' => Kind::Star,
            b'[' => Kind::BracketOpen,
            b']' => Kind::BracketClose,
            b'(' => Kind::ParenthesisOpen,
            b')' => Kind::ParenthesisClose,
            b'{' => Kind::BraceOpen,
            b'=' => return Ok(self.either(b'=', Kind::Equal, Kind::Equal)),
            b'!' if bytes.get(start + 1) == Some(&b'=') => {
                return Ok(self.either(b'=', Kind::NotEqual, Kind::NotEqual));
            }
            b'<' if bytes.get(start + 1) == Some(&b'>') => {
                return Ok(self.either(b'>', Kind::NotEqual, Kind::NotEqual));
            }
            b'<' => return Ok(self.either(b'=', Kind::LessEqual, Kind::Less)),
            b'>' => return Ok(self.either(b'=', Kind::GreaterEqual, Kind::Greater)),
            _ => return self.other(),
        };
        self.at = start + 1;
        Ok(self.finish(kind, start))
    }

    #[inline]
    fn finish(&self, kind: Kind, start: usize) -> Token {
        Token { kind, span: Span { start: start as u32, end: self.at as u32 } }
    }

    /// One byte, or two when the second is `second`.
    fn either(&mut self, second: u8, with: Kind, without: Kind) -> Token {
        let start = self.at;
        let both = self.text.as_bytes().get(start + 1) == Some(&second);
        self.at = start + 1 + usize::from(both);
        self.finish(if both { with } else { without }, start)
    }

    /// Skips white space and comments.
    #[inline]
    fn skip_blank(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\t' | b'\r' | 0x0B | 0x0C) => self.at += 1,
                Some(b'/') => {
                    let rest = &self.text[self.at..];
                    if rest.starts_with("//") {
                        self.at += rest.find('\n').unwrap_or(rest.len());
                    } else if let Some(comment) = rest.strip_prefix("/*") {
                        let Some(end) = comment.find("*/") else {
                            let span = Span { start: self.at as u32, end: self.at as u32 + 2 };
                            let kind = ErrorKind::Unclosed { what: "comment: its `*/` is missing" };
                            return Err(Error::new(self.text, span, kind));
                        };
                        self.at += end + 4;
                    } else {
                        return Ok(());
                    }
                }
                // White space beyond ASCII, such as the no-break space that is pasted along with a query.
                Some(0x80..) => match self.text[self.at..].chars().next() {
                    Some(c) if c.is_whitespace() || c == '\u{FEFF}' => self.at += c.len_utf8(),
                    _ => return Ok(()),
                },
                _ => return Ok(()),
            }
        }
    }

    #[inline]
    fn word(&mut self) -> Token {
        let start = self.at;
        self.at = end_of_word(self.text, start);
        let keyword = Keyword::of(&self.text.as_bytes()[start..self.at]);
        self.finish(Kind::Word(keyword), start)
    }

    /// A number whose digits begin at `digits`: digits with underscores, a point and more, an exponent.
    fn number(&mut self, digits: usize) -> Token {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let skip = |mut at: usize| {
            while matches!(bytes.get(at), Some(b'0'..=b'9' | b'_')) {
                at += 1;
            }
            at
        };
        let mut at = skip(digits);
        if bytes.get(at) == Some(&b'.') {
            at = skip(at + 1);
        }
        if let Some(b'e' | b'E') = bytes.get(at) {
            let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            if bytes.get(at + 1 + sign).is_some_and(u8::is_ascii_digit) {
                at = skip(at + 1 + sign);
            }
        }
        self.at = at;
        self.finish(Kind::Number, start)
    }

    /// A string up to its closing quote; a doubled quote and an escaped one do not close it.
    #[inline]
    fn string(&mut self, quote: u8) -> Result<Token> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut at = start + 1;
        let mut escaped = false;
        loop {
            match bytes.get(at) {
                Some(b'\\') => {
                    escaped = true;
                    at += 2;
                }
                Some(&byte) if byte == quote => {
                    if bytes.get(at + 1) != Some(&quote) {
                        break;
                    }
                    escaped = true;
                    at += 2;
                }
                Some(_) => at += 1,
                None => {
                    let span = Span { start: start as u32, end: start as u32 + 1 };
                    let what = match quote {
                        b'"' => "string: its closing `\"` is missing",
                        _ => "string: its closing `'` is missing",
                    };
                    return Err(Error::new(self.text, span, ErrorKind::Unclosed { what }));
                }
            }
        }
        self.at = at + 1;
        Ok(self.finish(Kind::String { escaped }, start))
    }

    fn parameter(&mut self) -> Result<Token> {
        let start = self.at;
        let end = end_of_word(self.text, start + 1);
        if end == start + 1 {
            let span = Span { start: start as u32, end: end as u32 };
            let found = "a lone `$`".to_owned();
            let kind = ErrorKind::Unexpected { expected: "the name of a parameter after `$`", found };
            return Err(Error::new(self.text, span, kind));
        }
        self.at = end;
        Ok(self.finish(Kind::Parameter, start))
    }

    /// A word that begins with a letter beyond ASCII, or an error.
    #[cold]
    fn other(&mut self) -> Result<Token> {
        let start = self.at;
        let character = self.text[start..].chars().next().unwrap_or_default();
        if character.is_alphabetic() {
            return Ok(self.word());
        }
        let span = Span { start: start as u32, end: (start + character.len_utf8()) as u32 };
        Err(Error::new(self.text, span, ErrorKind::Character(character)))
    }
}

/// Where the word that begins at `at` ends: letters and digits of any script, `_`, `-` and `@`.
#[inline]
fn end_of_word(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'@' => at += 1,
            0x80.. => match text[at..].chars().next() {
                Some(c) if c.is_alphanumeric() => at += c.len_utf8(),
                _ => break,
            },
            _ => break,
        }
    }
    at
}

/// Whether `text` is one word as the lexer reads it, so that it can be a name without quotes.
pub(crate) fn is_word(text: &str) -> bool {
    let begins = text.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_' || c == '@');
    begins && end_of_word(text, 0) == text.len()
}
