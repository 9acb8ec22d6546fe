//! Words, phrases and patterns.

use std::sync::Arc;

use tantivy::query::{BooleanQuery, EmptyQuery, Occur, PhraseQuery};
use tantivy::{Term, tokenizer::Token};

use super::{Boxed, Compiler};
use crate::analysis::Analyzer;
use crate::error::{Error, Result};
use crate::layout::Place;
use crate::query::Operator;

/// The memory that a compiled regular expression may take, in bytes: what is larger is refused.
const REGEX_SIZE_MAX: usize = 1 << 20;

impl Compiler<'_> {
    /// The words of a text, next to each other or within so many moves; one word is a term.
    pub(super) fn words(&self, place: &Arc<Place>, text: &str, slop: u32) -> Boxed {
        self.phrase(place, &place.analyzer.terms(text), slop)
    }

    fn phrase(&self, place: &Place, tokens: &[Token], slop: u32) -> Boxed {
        match tokens {
            [] => Box::new(EmptyQuery),
            [token] => self.exact_term(place, &token.text),
            [first, ..] => {
                let terms: Vec<(usize, Term)> = tokens
                    .iter()
                    .map(|token| {
                        let text = format!("{}{}", place.prefix, token.text);
                        (token.position - first.position, Term::from_field_text(place.terms, &text))
                    })
                    .collect();
                // Pieces of words stand one after the other in an order of their own: all of them must be there.
                if place.analyzer == Analyzer::NGram {
                    let each = tokens.iter().map(|token| (Occur::Must, self.exact_term(place, &token.text)));
                    return Box::new(BooleanQuery::new(each.collect()));
                }
                self.with_boosts(place, Box::new(PhraseQuery::new_with_offset_and_slop(terms, slop)))
            }
        }
    }

    /// `search()`.
    pub(super) fn search(&self, place: &Arc<Place>, text: &str, operator: Operator) -> Boxed {
        let occur = match operator {
            Operator::Or => Occur::Should,
            Operator::And => Occur::Must,
        };
        let mut clauses: Vec<(Occur, Boxed)> = Vec::new();
        for piece in pieces(text) {
            let (word, is_phrase) = match piece {
                Piece::Phrase(text) => (text, true),
                Piece::Word(text) => (text, false),
            };
            if !is_phrase && word.chars().all(|character| character == '*') {
                clauses.push((occur, self.exists(place)));
                continue;
            }
            // Stars count at the ends only.
            if !is_phrase && (word.starts_with('*') || word.ends_with('*')) {
                clauses.push((occur, self.folded_wildcard(place, place.analyzer.fold(word))));
                continue;
            }
            let mut tokens = place.analyzer.terms(word);
            // Words one behind the other are asked for, whatever was left out between them.
            for (position, token) in tokens.iter_mut().enumerate() {
                token.position = position;
            }
            match tokens.as_slice() {
                // A stop word is found nowhere, so that nothing is found with all words.
                [] if operator == Operator::And => return Box::new(EmptyQuery),
                [] => {}
                [token] => clauses.push((occur, self.exact_term(place, &token.text))),
                _ => clauses.push((occur, self.phrase(place, &tokens, 0))),
            }
        }
        match clauses.len() {
            0 => Box::new(EmptyQuery),
            1 => clauses.remove(0).1,
            _ => Box::new(BooleanQuery::new(clauses)),
        }
    }

    pub(super) fn prefix(&self, place: &Arc<Place>, text: &str, exact: bool) -> Boxed {
        let prefix = place.term(&place.fold(text, exact));
        let after = crate::segment::after_prefix(&prefix).map(|after| (after, false));
        let from = (prefix, true);
        let place = Arc::clone(place);
        self.set(move |segment, _| segment.term_range(&place, &from, after.as_ref()))
    }

    pub(super) fn suffix(&self, place: &Arc<Place>, text: &str, exact: bool) -> Boxed {
        let suffix = place.fold(text, exact);
        let place = Arc::clone(place);
        self.set(move |segment, _| segment.matching(&place, "", |term| term.ends_with(&suffix)))
    }

    pub(super) fn wildcard(&self, place: &Arc<Place>, pattern: &str, exact: bool) -> Boxed {
        self.folded_wildcard(place, place.fold(pattern, exact))
    }

    fn folded_wildcard(&self, place: &Arc<Place>, pattern: String) -> Boxed {
        let prefix: String =
            pattern.chars().take_while(|character| !matches!(character, '*' | '?')).collect();
        let place = Arc::clone(place);
        self.set(move |segment, _| segment.matching(&place, &prefix, |term| wildcard_matches(&pattern, term)))
    }

    pub(super) fn regex(&self, place: &Arc<Place>, pattern: &str) -> Result<Boxed> {
        let regex = regex::RegexBuilder::new(pattern)
            .case_insensitive(true)
            .size_limit(REGEX_SIZE_MAX)
            .dfa_size_limit(REGEX_SIZE_MAX)
            .build()
            .map_err(|error| Error::InvalidQuery(format!("the regular expression '{pattern}': {error}")))?;
        let place = Arc::clone(place);
        Ok(self.set(move |segment, _| segment.matching(&place, "", |term| regex.is_match(term))))
    }

    /// Terms that are so like a text. As Lucene counts it, the likeness is one less the edits over the length of the shorter.
    pub(super) fn fuzzy(&self, place: &Arc<Place>, text: &str, similarity: f32) -> Boxed {
        let text: Vec<char> = place.fold(text, false).chars().collect();
        let place = Arc::clone(place);
        let similarity = if similarity.is_finite() { similarity.clamp(0.0, 1.0) } else { 0.5 };
        self.set(move |segment, _| {
            let mut row = Vec::new();
            segment.matching(&place, "", |term| is_like(&text, term, similarity, &mut row))
        })
    }
}

/// Whether the edits between two texts are few enough.
pub(crate) fn is_like(text: &[char], term: &str, similarity: f32, row: &mut Vec<usize>) -> bool {
    let length = term.chars().count();
    let shorter = length.min(text.len());
    if shorter == 0 {
        return text.len() == length;
    }
    let allowed = ((1.0 - similarity) * shorter as f32).ceil() as usize;
    if length.abs_diff(text.len()) > allowed {
        return false;
    }
    let edits = edits(text, term, allowed, row);
    edits == 0 || 1.0 - edits as f32 / shorter as f32 > similarity
}

/// The number of edits between two texts; more than `allowed` when there are more.
pub(crate) fn edits(text: &[char], term: &str, allowed: usize, row: &mut Vec<usize>) -> usize {
    row.clear();
    row.extend(0..=text.len());
    for (at, character) in term.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        let mut least = row[0];
        for (column, &other) in text.iter().enumerate() {
            let substituted = diagonal + usize::from(other != character);
            diagonal = row[column + 1];
            row[column + 1] = substituted.min(row[column] + 1).min(diagonal + 1);
            least = least.min(row[column + 1]);
        }
        if least > allowed {
            return allowed + 1;
        }
    }
    row[text.len()]
}

/// A part of the text of `search()`.
pub(crate) enum Piece<'a> {
    Word(&'a str),
    Phrase(&'a str),
}

/// The words and quoted phrases of a text.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return pieces;
        }
        if let Some(quoted) = rest.strip_prefix('"')
            && let Some(end) = quoted.find('"')
        {
            pieces.push(Piece::Phrase(&quoted[..end]));
            rest = &quoted[end + 1..];
            continue;
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        pieces.push(Piece::Word(&rest[..end]));
        rest = &rest[end..];
    }
}

/// Whether a text matches a pattern in which `*` is any text and `?` any character.
pub(crate) fn wildcard_matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut from) = (0, 0);
    // Where to go on when what follows the last star does not match: never further back than that star.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at + 1, from));
                at += 1;
            }
            Some('?') => {
                at += 1;
                from += 1;
            }
            Some(&character) if character == text[from] => {
                at += 1;
                from += 1;
            }
            _ => match &mut star {
                Some((after, tried)) => {
                    *tried += 1;
                    at = *after;
                    from = *tried;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&character| character == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards() {
        for (pattern, text, expected) in [
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("*b*", "abc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("é*", "éa", true),
        ] {
            assert_eq!(wildcard_matches(pattern, text), expected, "{pattern} {text}");
        }
        // Takes the square of the length at most, not a power of the stars.
        assert!(!wildcard_matches(&"a*".repeat(40), &format!("{}b", "c".repeat(2000))));
    }

    #[test]
    fn edits_are_counted() {
        for (left, right, expected) in
            [("", "", 0), ("abc", "abc", 0), ("abc", "abd", 1), ("abc", "", 3), ("kitten", "sitting", 3)]
        {
            let left: Vec<char> = left.chars().collect();
            assert_eq!(edits(&left, right, 9, &mut Vec::new()), expected);
        }
    }
}
