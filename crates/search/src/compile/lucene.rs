//! `lucene()`: the classic query syntax.
//!
//! ```text
//! query  := clause*
//! clause := ["AND" | "OR" | "&&" | "||"] ["+" | "-" | "NOT" | "!"] [name ":"] (part | "(" query ")") ["^" number]
//! part   := word ["~" [number]] | word with * or ? | "\"" phrase "\"" ["~" number]
//!         | ("[" | "{") end "TO" end ("]" | "}")
//! ```
//!
//! A clause is needed after `+` and on both sides of `AND`, forbidden after `-`, `!` and `NOT`, and one of many else. A query of
//! forbidden clauses alone finds nothing. A backslash takes any character as it is.

use std::sync::Arc;

use tantivy::query::{BooleanQuery, BoostQuery, EmptyQuery, Occur};

use super::{Boxed, Compiler};
use crate::error::{Error, Result};
use crate::layout::Place;

/// More nested parentheses are refused.
const DEPTH_MAX: usize = 100;

/// The likeness of `word~` without a number.
const LIKENESS: f32 = 0.5;

impl Compiler<'_> {
    /// `lucene()`.
    pub(super) fn lucene(&self, field: &str, text: &str, exact: bool) -> Result<Boxed> {
        let mut parser = Parser { compiler: self, text, at: 0, exact };
        let query = parser.query(field, 0)?;
        match parser.peek() {
            None => Ok(query),
            Some(character) => Err(parser.error(&format!("'{character}' is not expected"))),
        }
    }
}

struct Parser<'a> {
    compiler: &'a Compiler<'a>,
    text: &'a str,
    at: usize,
    exact: bool,
}

/// A word: its characters with backslashes taken away, and which of them are wildcards.
#[derive(Default)]
struct Word {
    text: String,
    has_wildcards: bool,
    was_escaped: bool,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.text[self.at..].starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// A word that is an operator.
    fn eat_word(&mut self, word: &str) -> bool {
        let rest = &self.text[self.at..];
        let ends = rest
            .strip_prefix(word)
            .is_some_and(|after| after.chars().next().is_none_or(|next| next.is_whitespace() || next == '('));
        if ends {
            self.at += word.len();
        }
        ends
    }

    fn space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn error(&self, what: &str) -> Error {
        Error::InvalidQuery(format!("cannot parse '{}': {what} at character {}", self.text, self.at + 1))
    }

    fn query(&mut self, field: &str, depth: usize) -> Result<Boxed> {
        if depth > DEPTH_MAX {
            return Err(self.error(&format!("more than {DEPTH_MAX} parentheses are open")));
        }
        let mut clauses: Vec<(Occur, Boxed)> = Vec::new();
        loop {
            self.space();
            match self.peek() {
                None => break,
                Some(')') if depth > 0 => break,
                _ => {}
            }
            let and = self.eat("&&") || self.eat_word("AND");
            let or = !and && (self.eat("||") || self.eat_word("OR"));
            if (and || or) && clauses.is_empty() {
                return Err(self.error("an operator without a left side"));
            }
            self.space();
            let mut occur = if and { Occur::Must } else { Occur::Should };
            if self.eat("+") {
                occur = Occur::Must;
            } else if self.eat("-") || self.eat("!") || self.eat_word("NOT") {
                occur = Occur::MustNot;
            }
            self.space();
            if and
                && let Some((left, _)) = clauses.last_mut()
                && *left == Occur::Should
            {
                *left = Occur::Must;
            }
            if let Some(query) = self.clause(field, depth)? {
                clauses.push((occur, query));
            } else if occur == Occur::Must {
                // A stop word cannot be found.
                clauses.push((occur, Box::new(EmptyQuery)));
            }
        }
        Ok(match clauses.len() {
            0 => Box::new(EmptyQuery),
            1 if clauses[0].0 != Occur::MustNot => clauses.remove(0).1,
            _ if clauses.iter().all(|(occur, _)| *occur == Occur::MustNot) => Box::new(EmptyQuery),
            _ => Box::new(BooleanQuery::new(clauses)),
        })
    }

    /// A clause; `None` for one that the analyzer leaves nothing of.
    fn clause(&mut self, field: &str, depth: usize) -> Result<Option<Boxed>> {
        let place = self.compiler.layout().place_of_query(field);
        let query = match self.peek() {
            None => return Err(self.error("the text ends where a clause is expected")),
            Some('(') => {
                self.at += 1;
                let inner = self.query(field, depth + 1)?;
                self.space();
                if !self.eat(")") {
                    return Err(self.error("a parenthesis is not closed"));
                }
                Some(inner)
            }
            Some('"') => {
                let phrase = self.quoted()?;
                let slop = if self.eat("~") { self.number().unwrap_or(0.0) } else { 0.0 };
                self.phrase(&place, &phrase, slop as u32)
            }
            Some('[' | '{') => Some(self.range(&place)?),
            Some(_) => {
                let word = self.word()?;
                if word.text.is_empty() {
                    return Err(self.error("a clause is expected"));
                }
                if self.eat(":") {
                    if word.text == "*" && self.eat("*") {
                        return Ok(Some(Box::new(tantivy::query::AllQuery)));
                    }
                    self.space();
                    if matches!(self.peek(), Some(':')) {
                        return Err(self.error("':' is not expected"));
                    }
                    let query = self.part(&word.text, depth)?;
                    return self.boosted(query);
                }
                self.simple(&place, &word)?
            }
        };
        self.boosted(query)
    }

    /// What follows a field's name: no other name.
    fn part(&mut self, field: &str, depth: usize) -> Result<Option<Boxed>> {
        if matches!(self.peek(), Some('(' | '"' | '[' | '{')) {
            return self.clause(field, depth);
        }
        let word = self.word()?;
        if word.text.is_empty() {
            return Err(self.error("a clause is expected"));
        }
        if self.peek() == Some(':') {
            return Err(self.error("':' is not expected"));
        }
        let place = self.compiler.layout().place_of_query(field);
        self.simple(&place, &word)
    }

    fn simple(&mut self, place: &Arc<Place>, word: &Word) -> Result<Option<Boxed>> {
        if self.eat("~") {
            let likeness = self.number().map_or(LIKENESS, |number| number as f32);
            return Ok(Some(self.compiler.fuzzy(place, &word.text, likeness)));
        }
        if word.has_wildcards {
            if word.text == "*" {
                return Ok(Some(self.compiler.exists(place)));
            }
            return Ok(Some(self.compiler.wildcard(place, &word.text, self.exact)));
        }
        Ok(self.phrase(place, &word.text, 0))
    }

    fn boosted(&mut self, query: Option<Boxed>) -> Result<Option<Boxed>> {
        if !self.eat("^") {
            return Ok(query);
        }
        let Some(boost) = self.number() else { return Err(self.error("a boost is a number")) };
        Ok(query.map(|query| Box::new(BoostQuery::new(query, boost as f32)) as Boxed))
    }

    /// The words of a text, next to each other or within so many moves.
    fn phrase(&self, place: &Arc<Place>, text: &str, slop: u32) -> Option<Boxed> {
        if self.exact {
            return Some(self.compiler.exact_term(place, text));
        }
        let tokens = place.analyzer.terms(text);
        (!tokens.is_empty()).then(|| self.compiler.words(place, text, slop))
    }

    fn quoted(&mut self) -> Result<String> {
        self.at += 1;
        let mut phrase = String::new();
        loop {
            let Some(character) = self.peek() else {
                return Err(self.error("a quotation mark is not closed"));
            };
            self.at += character.len_utf8();
            match character {
                '"' => return Ok(phrase),
                '\\' => {
                    let escaped = self.peek().ok_or_else(|| self.error("nothing follows a backslash"))?;
                    self.at += escaped.len_utf8();
                    phrase.push(escaped);
                }
                other => phrase.push(other),
            }
        }
    }

    fn word(&mut self) -> Result<Word> {
        let mut word = Word::default();
        while let Some(character) = self.peek() {
            match character {
                '\\' => {
                    self.at += 1;
                    let escaped = self.peek().ok_or_else(|| self.error("nothing follows a backslash"))?;
                    self.at += escaped.len_utf8();
                    word.text.push(escaped);
                    word.was_escaped = true;
                }
                ':' | '"' | '(' | ')' | '[' | ']' | '{' | '}' | '^' | '~' => break,
                _ if character.is_whitespace() => break,
                _ => {
                    word.has_wildcards |= matches!(character, '*' | '?');
                    self.at += character.len_utf8();
                    word.text.push(character);
                }
            }
        }
        // A star that was escaped is a character, which patterns cannot say: it is looked for as text.
        word.has_wildcards &= !word.was_escaped;
        Ok(word)
    }

    fn number(&mut self) -> Option<f64> {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(rest.len());
        let number = rest[..end].parse().ok()?;
        self.at += end;
        Some(number)
    }

    fn range(&mut self, place: &Arc<Place>) -> Result<Boxed> {
        let low_included = self.eat("[") || !self.eat("{");
        let low = self.range_end()?;
        self.space();
        if !self.eat_word("TO") {
            return Err(self.error("'TO' is expected"));
        }
        let high = self.range_end()?;
        self.space();
        let high_included = match self.peek() {
            Some(']') => true,
            Some('}') => false,
            _ => return Err(self.error("a range is not closed")),
        };
        self.at += 1;
        let end = |text: String, included| {
            (text != "*").then(|| (place.term(&place.fold(&text, self.exact)), included))
        };
        let from = end(low, low_included).unwrap_or_else(|| (place.prefix.clone().into_bytes(), true));
        let to = end(high, high_included)
            .or_else(|| crate::segment::after_prefix(place.prefix.as_bytes()).map(|after| (after, false)));
        let place = Arc::clone(place);
        Ok(self.compiler.set(move |segment, _| segment.term_range(&place, &from, to.as_ref())))
    }

    fn range_end(&mut self) -> Result<String> {
        self.space();
        let text = if self.peek() == Some('"') { self.quoted()? } else { self.range_word() };
        if text.is_empty() {
            return Err(self.error("an end of a range is expected"));
        }
        Ok(text)
    }

    /// An end may hold colons, as times do.
    fn range_word(&mut self) -> String {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|character: char| character.is_whitespace() || matches!(character, ']' | '}'))
            .unwrap_or(rest.len());
        self.at += end;
        rest[..end].replace('\\', "")
    }
}
