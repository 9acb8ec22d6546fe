//! From text to terms, as Lucene's analyzers do it.
//!
//! A field's [`Analyzer`] is used when entries are written (through [`FieldTokenizer`], tantivy's face of it) and when
//! queries, highlighting and more-like-this read text.

mod characters;
mod custom;
mod porter;
mod standard;

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

pub(crate) use characters::{is_letter, is_space, lower, lower_into};

use crate::error::{Error, Result};
use crate::options::{CustomTokenizer, FieldOptions, Indexing, Schema};
use custom::{Custom, Passing};
use standard::{Kind, Scanner};

/// A text that begins so is one term, without this mark: nulls, numbers and dates in fields that are analyzed.
pub(crate) const RAW_MARK: char = '\u{1}';

/// Longer terms are left out: Lucene indexes none of more UTF-16 units.
const TERM_UNITS_MAX: usize = 16_383;

/// Longer words are left out by the standard grammar and cut by the others.
const WORD_UNITS_MAX: usize = 255;

/// Lucene's English stop words, sorted.
const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
    "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to",
    "was", "will", "with",
];

/// Lengths of the pieces of `NGramAnalyzer`, in characters.
const GRAMS: std::ops::RangeInclusive<usize> = 2..=6;

/// How a field's text becomes terms.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Analyzer {
    /// The whole text.
    Keyword,
    /// The whole text, lower-cased.
    LowerCaseKeyword,
    /// What stands between spaces.
    Whitespace,
    /// What stands between spaces, lower-cased.
    LowerCaseWhitespace,
    /// Runs of letters, lower-cased.
    Simple,
    /// Runs of letters, lower-cased, without stop words.
    Stop,
    /// Words, numbers, host names, addresses: lower-cased, without stop words.
    Standard,
    /// The same, but that possessives lose their ending after stop words are removed.
    RavenStandard,
    /// All pieces of the words of `Standard`.
    NGram,
    /// What a user put together. Its fields are words, even where there is one a text: what it does may change.
    Custom(Custom),
}

impl Analyzer {
    /// The analyzer of a field.
    pub(crate) fn of(field: &str, options: &FieldOptions, schema: &Schema) -> Result<Analyzer> {
        let by_default = match options.indexing {
            Indexing::Default | Indexing::No => Analyzer::LowerCaseKeyword,
            Indexing::Exact => Analyzer::Keyword,
            Indexing::Search => Analyzer::RavenStandard,
        };
        match (&options.analyzer, options.indexing) {
            (Some(name), Indexing::Exact | Indexing::No) => {
                Analyzer::named(field, name, schema).map(|_| by_default)
            }
            (Some(name), _) => Analyzer::named(field, name, schema),
            (None, _) => Ok(by_default),
        }
    }

    /// The analyzer that a definition names: its short name, its full name, or one with its assembly; or a custom one, in any case.
    pub(crate) fn named(field: &str, name: &str, schema: &Schema) -> Result<Analyzer> {
        let full = name.split(',').next().unwrap_or(name).trim();
        let short = [
            "Lucene.Net.Analysis.Standard.",
            "Lucene.Net.Analysis.",
            "Raven.Server.Documents.Indexes.Persistence.Lucene.Analyzers.",
        ]
        .iter()
        .find_map(|prefix| full.strip_prefix(prefix))
        .unwrap_or(full);
        Ok(match short {
            "KeywordAnalyzer" => Analyzer::Keyword,
            "LowerCaseKeywordAnalyzer" => Analyzer::LowerCaseKeyword,
            "WhitespaceAnalyzer" => Analyzer::Whitespace,
            "LowerCaseWhitespaceAnalyzer" => Analyzer::LowerCaseWhitespace,
            "SimpleAnalyzer" => Analyzer::Simple,
            "StopAnalyzer" => Analyzer::Stop,
            "StandardAnalyzer" => Analyzer::Standard,
            "RavenStandardAnalyzer" => Analyzer::RavenStandard,
            "NGramAnalyzer" => Analyzer::NGram,
            _ if schema.custom_analyzers.contains_key(&name.to_lowercase()) => {
                Analyzer::Custom(Custom::new(&schema.custom_analyzers[&name.to_lowercase()]))
            }
            _ => return Err(Error::UnknownAnalyzer { field: field.to_owned(), name: name.to_owned() }),
        })
    }

    /// Whether the whole text is one term.
    pub(crate) fn is_keyword(&self) -> bool {
        matches!(self, Analyzer::Keyword | Analyzer::LowerCaseKeyword)
    }

    /// Whether terms are lower-cased, so that patterns are too.
    pub(crate) fn lowers(&self) -> bool {
        match self {
            Analyzer::Keyword | Analyzer::Whitespace => false,
            Analyzer::Custom(custom) => custom.lowers(),
            _ => true,
        }
    }

    /// The terms of a text. Those of keywords are at most one, and none for a text that is too long.
    pub(crate) fn terms(&self, text: &str) -> Vec<Token> {
        let mut words = Words::new(self.clone(), text);
        let mut terms = Vec::new();
        while words.advance() {
            terms.push(words.token.clone());
        }
        terms
    }

    /// A word with a star as this analyzer would write it.
    pub(crate) fn fold(&self, text: &str) -> String {
        // What a custom analyzer makes of a word it makes of the part that is given, too.
        if let Analyzer::Custom(_) = self {
            let inner = text.trim_matches('*');
            if let [term] = self.terms(inner).as_slice() {
                let before = text.len() - text.trim_start_matches('*').len();
                let after = &text[before + inner.len()..];
                return format!("{}{}{after}", &text[..before], term.text);
            }
        }
        if self.lowers() { lower(text) } else { text.to_owned() }
    }
}

/// Whether Lucene leaves out the term for its length.
pub(crate) fn is_too_long(term: &str) -> bool {
    // A UTF-16 unit takes at most three bytes, and a byte is at most one unit.
    term.len() > TERM_UNITS_MAX
        && (term.len() > 3 * TERM_UNITS_MAX || term.encode_utf16().count() > TERM_UNITS_MAX)
}

/// The terms of a text, one after the other.
pub(crate) struct Words<'a> {
    analyzer: Analyzer,
    text: &'a str,
    scanner: Scanner<'a>,
    at: usize,
    token: Token,
    /// The word that is being cut into pieces, and the next piece's length and beginning in characters.
    word: String,
    gram: Option<(usize, usize)>,
    word_position: usize,
    /// Of a custom analyzer.
    passing: Passing,
}

impl<'a> Words<'a> {
    pub(crate) fn new(analyzer: Analyzer, text: &'a str) -> Words<'a> {
        let token = Token { position: usize::MAX, ..Token::default() };
        let length_max = match &analyzer {
            Analyzer::Custom(custom) => match custom.tokenizer() {
                CustomTokenizer::Standard(units) => units as usize,
                _ => WORD_UNITS_MAX,
            },
            _ => WORD_UNITS_MAX,
        };
        Words {
            analyzer,
            text,
            scanner: Scanner::new(text, length_max),
            at: 0,
            token,
            word: String::new(),
            gram: None,
            word_position: usize::MAX,
            passing: Passing::default(),
        }
    }

    fn whole(&mut self) -> bool {
        if self.at != 0 || self.token.position != usize::MAX {
            return false;
        }
        self.token.position = 0;
        self.token.offset_from = 0;
        self.token.offset_to = self.text.len();
        self.token.text.clear();
        if let Some(raw) = self.text.strip_prefix(RAW_MARK) {
            self.token.text.push_str(raw);
        } else if self.analyzer == Analyzer::LowerCaseKeyword {
            lower_into(self.text, &mut self.token.text);
        } else {
            self.token.text.push_str(self.text);
        }
        !is_too_long(&self.token.text)
    }

    /// Runs of characters of one sort, cut after 255 of them.
    fn run(&mut self, belongs: fn(char) -> bool) -> bool {
        let Some(skipped) = self.text[self.at..].find(belongs) else {
            self.at = self.text.len();
            return false;
        };
        let from = self.at + skipped;
        let mut to = from;
        let mut units = 0;
        for character in self.text[from..].chars() {
            if !belongs(character) || units + character.len_utf16() > WORD_UNITS_MAX {
                break;
            }
            units += character.len_utf16();
            to += character.len_utf8();
        }
        self.at = to;
        self.token.position = self.token.position.wrapping_add(1);
        self.put(from, to);
        true
    }

    fn put(&mut self, from: usize, to: usize) {
        self.token.offset_from = from;
        self.token.offset_to = to;
        self.token.text.clear();
        if self.analyzer.lowers() && !matches!(self.analyzer, Analyzer::Custom(_)) {
            lower_into(&self.text[from..to], &mut self.token.text);
        } else {
            self.token.text.push_str(&self.text[from..to]);
        }
    }

    /// The next token of a custom analyzer.
    fn custom(&mut self, custom: &Custom) -> bool {
        loop {
            let before = self.token.position;
            let kind = match custom.tokenizer() {
                CustomTokenizer::Standard(_) => match self.scanner.next() {
                    Some((kind, from, to)) => {
                        self.put(from, to);
                        kind
                    }
                    None => return false,
                },
                CustomTokenizer::RavenStandard if self.standard(true) => Kind::Other,
                CustomTokenizer::Whitespace if self.run(|character| !is_space(character)) => Kind::Other,
                CustomTokenizer::Letter if self.run(is_letter) => Kind::Other,
                CustomTokenizer::Keyword if self.at == 0 => {
                    // One token, even of a text of nothing.
                    self.at = usize::MAX;
                    self.put(0, self.text.len());
                    Kind::Other
                }
                _ => return false,
            };
            self.token.position = before;
            if let Some(step) = custom.pass(kind, &mut self.token.text, &mut self.passing) {
                self.token.position = before.wrapping_add(step);
                if !is_too_long(&self.token.text) {
                    return true;
                }
            }
        }
    }

    /// The next word of the standard grammar.
    fn standard(&mut self, is_ravens: bool) -> bool {
        // RavenDB's own analyzer looks at the word before its ending is cut, and does not cut the word after one that it
        // leaves out.
        let mut after_stop = false;
        while let Some((kind, from, to)) = self.scanner.next() {
            self.token.position = self.token.position.wrapping_add(1);
            self.put(from, to);
            if is_ravens && matches!(self.analyzer, Analyzer::Custom(_)) {
                self.token.text = lower(&self.token.text);
            }
            if is_ravens && is_stop_word(&self.token.text) {
                // Nor does it leave a gap.
                self.token.position = self.token.position.wrapping_sub(1);
                after_stop = true;
                continue;
            }
            if !(is_ravens && after_stop) {
                match kind {
                    Kind::Apostrophe if self.token.text.ends_with("'s") => {
                        self.token.text.truncate(self.token.text.len() - 2);
                    }
                    Kind::Acronym => self.token.text.retain(|character| character != '.'),
                    _ => {}
                }
            }
            if !is_ravens && is_stop_word(&self.token.text) {
                continue;
            }
            return true;
        }
        false
    }

    /// The next piece of a word: all of two characters, then of three, and so on.
    fn piece(&mut self) -> bool {
        loop {
            let (length, begin) = match self.gram {
                Some(next) => next,
                None => {
                    if !self.standard(false) {
                        return false;
                    }
                    self.word.clone_from(&self.token.text);
                    (*GRAMS.start(), 0)
                }
            };
            let count = self.word.chars().count();
            if length > *GRAMS.end() || length > count {
                self.gram = None;
                continue;
            }
            if begin + length > count {
                self.gram = Some((length + 1, 0));
                continue;
            }
            self.gram = Some((length, begin + 1));
            self.token.text.clear();
            self.token.text.extend(self.word.chars().skip(begin).take(length));
            self.word_position = self.word_position.wrapping_add(1);
            self.token.position = self.word_position;
            return true;
        }
    }
}

fn is_stop_word(word: &str) -> bool {
    word.len() <= 5 && STOP_WORDS.binary_search(&word).is_ok()
}

impl TokenStream for Words<'_> {
    fn advance(&mut self) -> bool {
        if self.text.starts_with(RAW_MARK) || self.analyzer.is_keyword() {
            return self.whole();
        }
        match &self.analyzer {
            Analyzer::Custom(custom) => {
                let custom = custom.clone();
                self.custom(&custom)
            }
            Analyzer::Whitespace | Analyzer::LowerCaseWhitespace => {
                self.run(|character| !is_space(character))
            }
            Analyzer::Simple => self.run(is_letter),
            Analyzer::Stop => {
                while self.run(is_letter) {
                    if !is_stop_word(&self.token.text) {
                        return true;
                    }
                }
                false
            }
            Analyzer::NGram => self.piece(),
            analyzer => {
                let is_ravens = *analyzer == Analyzer::RavenStandard;
                self.standard(is_ravens)
            }
        }
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

/// An analyzer as tantivy calls it. It keeps the buffer of its words, since a text may be a single one.
#[derive(Clone)]
pub(crate) struct FieldTokenizer {
    analyzer: Analyzer,
    buffer: String,
}

impl FieldTokenizer {
    pub(crate) fn new(analyzer: Analyzer) -> FieldTokenizer {
        FieldTokenizer { analyzer, buffer: String::new() }
    }
}

impl Tokenizer for FieldTokenizer {
    type TokenStream<'a> = FieldWords<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> FieldWords<'a> {
        let mut words = Words::new(self.analyzer.clone(), text);
        words.token.text = std::mem::take(&mut self.buffer);
        FieldWords { buffer: &mut self.buffer, words }
    }
}

/// The terms of a text, in a tokenizer's buffer.
pub(crate) struct FieldWords<'a> {
    buffer: &'a mut String,
    words: Words<'a>,
}

impl Drop for FieldWords<'_> {
    fn drop(&mut self) {
        *self.buffer = std::mem::take(&mut self.words.token.text);
    }
}

impl TokenStream for FieldWords<'_> {
    fn advance(&mut self) -> bool {
        self.words.advance()
    }

    fn token(&self) -> &Token {
        &self.words.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.words.token
    }
}

#[cfg(test)]
mod tests;
