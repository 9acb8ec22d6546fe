//! The parser: recursive descent with one token at hand, and another looked at where a word can be a keyword or a name.

mod clause;
mod expression;

use std::borrow::Cow;

use crate::error::{Error, ErrorKind, Result};
use crate::lex::{Keyword, Kind, Lexer, Token, code, string};
use crate::limits::{DEPTH_MAX, Limits, TEXT_SIZE_MAX};
use crate::span::Span;
use crate::tree::{Code, CodeLanguage, Expression, Name, Path, Query, Step, Text};

/// Parses a query within the default limits.
///
/// # Errors
///
/// What is wrong with the text, and where.
pub fn parse(text: &str) -> Result<Query<'_>> {
    parse_with(text, Limits::default())
}

/// Parses a query.
///
/// # Errors
///
/// What is wrong with the text, and where; [`ErrorKind::Limit`] when it is too long or too deep.
pub fn parse_with(text: &str, limits: Limits) -> Result<Query<'_>> {
    let mut parser = Parser::new(text, limits)?;
    let query = parser.query()?;
    parser.end("a clause or the end of the query")?;
    Ok(query)
}

/// Parses a condition or value alone, such as the range `Cost >= 200 and Cost < 400` of a stored facet.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_expression(text: &str) -> Result<Expression<'_>> {
    let mut parser = Parser::new(text, Limits::default())?;
    let expression = parser.expression()?;
    parser.end("an operator or the end of the expression")?;
    Ok(expression)
}

/// Parses a path alone, such as the one in the string `include 'Lines[].Product'`.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_path(text: &str) -> Result<Path<'_>> {
    let mut parser = Parser::new(text, Limits::default())?;
    let path = parser.path("the name of a field")?;
    parser.end("`.`, `[` or the end of the path")?;
    Ok(path)
}

struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// The token at hand; the lexer stands behind it.
    token: Token,
    /// The place of the token before it.
    last: Span,
    depth: u32,
    depth_max: u32,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, limits: Limits) -> Result<Parser<'a>> {
        let text_size_max = limits.text_size_max.min(TEXT_SIZE_MAX);
        if text.len() > text_size_max {
            let kind = ErrorKind::Limit { what: "length of a query in bytes", limit: text_size_max };
            return Err(Error::new("", Span::default(), kind));
        }
        let mut lexer = Lexer::new(text);
        let token = lexer.token()?;
        let depth_max = limits.depth_max.min(DEPTH_MAX);
        Ok(Parser { text, lexer, token, last: Span::default(), depth: 0, depth_max })
    }

    /// Goes to the next token and returns the place of the one left.
    #[inline]
    fn bump(&mut self) -> Result<Span> {
        self.last = self.token.span;
        self.token = self.lexer.token()?;
        Ok(self.last)
    }

    /// The kind of the token after the one at hand.
    #[inline]
    fn peek(&self) -> Result<Kind> {
        let mut ahead = self.lexer;
        Ok(ahead.token()?.kind)
    }

    #[inline]
    fn at(&self, kind: Kind) -> bool {
        self.token.kind == kind
    }

    #[inline]
    fn at_word(&self, keyword: Keyword) -> bool {
        self.token.kind == Kind::Word(keyword)
    }

    /// Goes past the token if it is of this kind.
    #[inline]
    fn eat(&mut self, kind: Kind) -> Result<bool> {
        let found = self.at(kind);
        if found {
            self.bump()?;
        }
        Ok(found)
    }

    #[inline]
    fn eat_word(&mut self, keyword: Keyword) -> Result<bool> {
        self.eat(Kind::Word(keyword))
    }

    #[inline]
    fn expect(&mut self, kind: Kind, expected: &'static str) -> Result<Span> {
        if self.at(kind) { self.bump() } else { Err(self.unexpected(expected)) }
    }

    fn end(&self, expected: &'static str) -> Result<()> {
        if self.at(Kind::End) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// From the start of an earlier token to the end of the one before the token at hand.
    #[inline]
    fn since(&self, start: Span) -> Span {
        start.to(self.last)
    }

    /// Says what should stand where the token at hand stands.
    #[cold]
    fn unexpected(&self, expected: &'static str) -> Error {
        self.unexpected_at(self.token.span, expected)
    }

    #[cold]
    fn unexpected_at(&self, span: Span, expected: &'static str) -> Error {
        let text = span.of(self.text);
        let found = if text.is_empty() {
            "the end of the query".to_owned()
        } else {
            let shown: String = text.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect();
            format!("`{shown}{}`", if shown.len() < text.len() { "..." } else { "" })
        };
        Error::new(self.text, span, ErrorKind::Unexpected { expected, found })
    }

    #[cold]
    fn error(&self, span: Span, kind: ErrorKind) -> Error {
        Error::new(self.text, span, kind)
    }

    /// Goes one level deeper; each caller goes back up by itself.
    #[inline]
    fn descend(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > self.depth_max {
            let kind = ErrorKind::Limit { what: "depth of nesting", limit: self.depth_max as usize };
            return Err(self.error(self.token.span, kind));
        }
        Ok(())
    }

    /// The text of the string token `span`.
    fn string_text(&self, span: Span, escaped: bool) -> Result<Text<'a>> {
        if escaped {
            return Ok(Cow::Owned(string::unescape(self.text, span)?));
        }
        Ok(Cow::Borrowed(&self.text[span.start as usize + 1..span.end as usize - 1]))
    }

    fn word_text(&self, span: Span) -> Text<'a> {
        Cow::Borrowed(span.of(self.text))
    }

    /// A name: a word that is not reserved, or any string.
    fn name(&mut self, expected: &'static str) -> Result<Name<'a>> {
        match self.token.kind {
            Kind::Word(keyword) if keyword.is_reserved() => {
                let span = self.token.span;
                Err(self.error(span, ErrorKind::Reserved(span.of(self.text).to_owned())))
            }
            _ => self.any_name(expected),
        }
    }

    /// A name where no clause can begin, so that reserved words are names too.
    fn any_name(&mut self, expected: &'static str) -> Result<Name<'a>> {
        let text = match self.token.kind {
            Kind::Word(_) => self.word_text(self.token.span),
            Kind::String { escaped } => self.string_text(self.token.span, escaped)?,
            _ => return Err(self.unexpected(expected)),
        };
        Ok(Name { text, span: self.bump()? })
    }

    /// `as name`, if it is there.
    fn alias(&mut self) -> Result<Option<Name<'a>>> {
        if !self.eat_word(Keyword::As)? {
            return Ok(None);
        }
        Ok(Some(self.name("an alias after `as`")?))
    }

    fn path(&mut self, expected: &'static str) -> Result<Path<'a>> {
        let first = self.name(expected)?;
        self.path_from(first)
    }

    /// The rest of the path that begins with `first`.
    fn path_from(&mut self, first: Name<'a>) -> Result<Path<'a>> {
        let mut rest = Vec::new();
        loop {
            if self.eat(Kind::Dot)? {
                rest.push(Step::Name(self.any_name("the name of a property after `.`")?));
            } else if self.eat(Kind::BracketOpen)? {
                let digits = self.word_text(self.token.span);
                if self.at(Kind::Number) && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    self.bump()?;
                    rest.push(Step::Index(digits));
                } else {
                    rest.push(Step::Elements);
                }
                self.expect(Kind::BracketClose, "`]`")?;
            } else {
                let span = self.since(first.span);
                return Ok(Path { first, rest, span });
            }
        }
    }

    /// A block in braces: the token at hand must be the opening one. The span begins at `start`.
    fn braces(&mut self, expected: &'static str) -> Result<Code<'a>> {
        if !self.at(Kind::BraceOpen) {
            return Err(self.unexpected(expected));
        }
        let open = self.token.span;
        let close = code::closing_brace(self.text, open.start as usize);
        self.block(open, close, CodeLanguage::JavaScript, "block: its `}` is missing")
    }

    /// A time series query in parentheses, which the token at hand opens.
    fn time_series(&mut self) -> Result<Code<'a>> {
        let open = self.token.span;
        let close = code::closing_parenthesis(self.text, open.start as usize);
        self.block(open, close, CodeLanguage::TimeSeries, "parenthesis: its `)` is missing")
    }

    fn block(
        &mut self,
        open: Span,
        close: Option<usize>,
        language: CodeLanguage,
        what: &'static str,
    ) -> Result<Code<'a>> {
        let Some(close) = close else { return Err(self.error(open, ErrorKind::Unclosed { what })) };
        let text = Cow::Borrowed(&self.text[open.end as usize..close]);
        self.lexer.seek(close + 1);
        self.bump()?;
        self.last = Span { start: close as u32, end: close as u32 + 1 };
        Ok(Code { language, text, span: open.to(self.last) })
    }
}
