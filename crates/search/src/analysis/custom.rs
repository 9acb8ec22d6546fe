//! Analyzers that users put together from a tokenizer and filters of Lucene's: what each filter does to a token.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::characters::{lower, lower_into};
use super::porter;
use super::standard::Kind;
use crate::options::{CustomAnalyzer, CustomFilter, CustomTokenizer};

/// A custom analyzer, ready to run. Clones are the same.
#[derive(Clone)]
pub(crate) struct Custom(Arc<Ready>);

struct Ready {
    analyzer: CustomAnalyzer,
    /// The words of each filter that has any, as they are compared.
    stop_words: Vec<HashSet<String>>,
}

impl Custom {
    pub(crate) fn new(analyzer: &CustomAnalyzer) -> Custom {
        let stop_words = analyzer.filters.iter().map(|filter| match filter {
            CustomFilter::Stop { words, ignores_case: true, .. } => {
                words.iter().map(|word| lower(word)).collect()
            }
            CustomFilter::Stop { words, .. } => words.iter().cloned().collect(),
            _ => HashSet::new(),
        });
        Custom(Arc::new(Ready { stop_words: stop_words.collect(), analyzer: analyzer.clone() }))
    }

    pub(super) fn tokenizer(&self) -> CustomTokenizer {
        self.0.analyzer.tokenizer
    }

    /// Whether terms are lower-cased.
    pub(super) fn lowers(&self) -> bool {
        self.tokenizer() == CustomTokenizer::RavenStandard
            || self.0.analyzer.filters.contains(&CustomFilter::LowerCase)
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Custom) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.analyzer == other.0.analyzer
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.analyzer.fmt(f)
    }
}

/// What is remembered from one token of a text to the next.
#[derive(Default)]
pub(super) struct Passing {
    /// Gaps that each filter is to leave before the next token that it lets through.
    gaps: Vec<usize>,
    scratch: String,
}

impl Custom {
    /// Passes a token through all filters. How far it is from the token before, in positions; `None` when a filter holds it back.
    pub(super) fn pass(&self, kind: Kind, text: &mut String, passing: &mut Passing) -> Option<usize> {
        let mut step = 1;
        passing.gaps.resize(self.0.analyzer.filters.len(), 0);
        for (number, filter) in self.0.analyzer.filters.iter().enumerate() {
            match filter {
                CustomFilter::Standard => standard(kind, text),
                CustomFilter::LowerCase => {
                    passing.scratch.clear();
                    lower_into(text, &mut passing.scratch);
                    std::mem::swap(text, &mut passing.scratch);
                }
                CustomFilter::Stop { ignores_case, leaves_gaps, .. } => {
                    let words = &self.0.stop_words[number];
                    let is_stopped = if *ignores_case {
                        words.contains(&lower(text))
                    } else {
                        words.contains(text.as_str())
                    };
                    let gap = &mut passing.gaps[number];
                    if is_stopped {
                        *gap += if *leaves_gaps { step } else { 0 };
                        return None;
                    }
                    step += std::mem::take(gap);
                }
                CustomFilter::AsciiFolding => fold(text, ascii_folding(), &mut passing.scratch),
                CustomFilter::Latin1Accent => fold(text, latin1_accents(), &mut passing.scratch),
                CustomFilter::Length { min, max } => {
                    let units = if text.is_ascii() { text.len() } else { text.encode_utf16().count() };
                    if units < *min as usize || units > *max as usize {
                        return None;
                    }
                }
                CustomFilter::PorterStem => porter::stem(text),
            }
        }
        Some(step)
    }
}

fn standard(kind: Kind, text: &mut String) {
    match kind {
        Kind::Apostrophe if text.ends_with("'s") || text.ends_with("'S") => text.truncate(text.len() - 2),
        Kind::Acronym => text.retain(|character| character != '.'),
        _ => {}
    }
}

/// What characters become, sorted by them.
type Folding = Vec<(char, &'static str)>;

fn ascii_folding() -> &'static Folding {
    static FOLDING: OnceLock<Folding> = OnceLock::new();
    FOLDING.get_or_init(|| folding(include_str!("ascii_folding.txt")))
}

fn latin1_accents() -> &'static Folding {
    static FOLDING: OnceLock<Folding> = OnceLock::new();
    FOLDING.get_or_init(|| folding(include_str!("latin1_accents.txt")))
}

/// Lines of what characters become, a space, and the characters.
fn folding(lines: &'static str) -> Folding {
    let pairs = lines.lines().filter_map(|line| line.split_once(' '));
    let mut folding: Folding = pairs.flat_map(|(to, all)| all.chars().map(move |from| (from, to))).collect();
    folding.sort_unstable();
    folding
}

fn fold(text: &mut String, folding: &Folding, scratch: &mut String) {
    if text.is_ascii() {
        return;
    }
    scratch.clear();
    for character in text.chars() {
        let found = if character.is_ascii() {
            Err(0)
        } else {
            folding.binary_search_by_key(&character, |(from, _)| *from)
        };
        match found {
            Ok(at) => scratch.push_str(folding[at].1),
            Err(_) => scratch.push(character),
        }
    }
    std::mem::swap(text, scratch);
}
