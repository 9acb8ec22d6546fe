//! Words of the index that are like a misspelt one.

use std::collections::HashMap;

use crate::compile::edits;
use crate::error::Result;
use crate::request::{StringDistance, Suggest, SuggestSort};
use crate::searcher::Searcher;
use crate::segment::prefixed;

/// From this likeness on, a common beginning makes words more alike.
const WINKLER_FROM: f32 = 0.7;

impl Searcher {
    /// Terms of a field that are like a word, the likest first.
    pub fn suggest(&self, request: &Suggest) -> Result<Vec<String>> {
        let place = self.snapshot.layout.place(&request.field);
        let word = place.fold(&request.term, false);
        let characters: Vec<char> = word.chars().collect();
        let mut found: HashMap<String, (f32, u64)> = HashMap::new();
        let mut row = Vec::new();
        for segment in self.snapshot.segments.iter() {
            let inverted = segment.reader.inverted_index(place.terms)?;
            let mut stream =
                prefixed(inverted.terms(), &place.prefix).map_err(tantivy::TantivyError::from)?;
            while stream.advance() {
                let frequency = u64::from(stream.value().doc_freq);
                let Ok(term) = std::str::from_utf8(&stream.key()[place.prefix.len()..]) else { continue };
                if term == word || term == crate::encode::NULL || term == crate::encode::EMPTY {
                    continue;
                }
                if let Some((_, known)) = found.get_mut(term) {
                    *known += frequency;
                    continue;
                }
                let letters: Vec<char> = term.chars().collect();
                if !share_a_piece(&characters, &letters) {
                    continue;
                }
                let likeness = match request.distance {
                    StringDistance::Levenshtein => levenshtein(&characters, term, request.accuracy, &mut row),
                    StringDistance::JaroWinkler => jaro_winkler(&characters, &letters),
                    StringDistance::NGram => pairs(&characters, &letters),
                };
                if likeness > 0.0 && likeness >= request.accuracy {
                    found.insert(term.to_owned(), (likeness, frequency));
                }
            }
        }
        let mut words: Vec<(String, (f32, u64))> = found.into_iter().collect();
        words.sort_by(|(left, (likeness, frequency)), (right, (other_likeness, other_frequency))| {
            let by_likeness = other_likeness.total_cmp(likeness);
            let by_frequency = other_frequency.cmp(frequency);
            match request.sort {
                SuggestSort::None => by_likeness.then(by_frequency),
                SuggestSort::Popularity => by_frequency.then(by_likeness),
            }
            .then_with(|| left.cmp(right))
        });
        Ok(words.into_iter().take(request.count).map(|(word, _)| word).collect())
    }
}

/// Whether a word can be meant by another at all, as in Lucene's spell checker: both have a piece of the same length in common, and
/// short words are told by shorter pieces than long ones.
fn share_a_piece(word: &[char], term: &[char]) -> bool {
    const TERM_MIN: usize = 3;
    let sizes = |length: usize| match length {
        6.. => 3..=4,
        5 => 2..=3,
        _ => 1..=2,
    };
    let of_term = sizes(term.len());
    let mut common = sizes(word.len()).filter(|size| of_term.contains(size));
    term.len() >= TERM_MIN
        && common.any(|size| word.windows(size).any(|piece| term.windows(size).any(|other| other == piece)))
}

/// One less the edits over the length of the longer.
fn levenshtein(word: &[char], term: &str, accuracy: f32, row: &mut Vec<usize>) -> f32 {
    let longer = word.len().max(term.chars().count());
    if longer == 0 {
        return 1.0;
    }
    let allowed = ((1.0 - accuracy.clamp(0.0, 1.0)) * longer as f32).ceil() as usize;
    if word.len().abs_diff(term.chars().count()) > allowed {
        return 0.0;
    }
    let edits = edits(word, term, allowed, row);
    if edits > allowed { 0.0 } else { 1.0 - edits as f32 / longer as f32 }
}

/// Common characters that are not far apart, and a common beginning.
fn jaro_winkler(left: &[char], right: &[char]) -> f32 {
    let (shorter, longer) = if left.len() < right.len() { (left, right) } else { (right, left) };
    let reach = (longer.len() / 2).saturating_sub(1);
    let mut taken = vec![false; longer.len()];
    let mut matched_shorter = Vec::new();
    for (at, character) in shorter.iter().enumerate() {
        let from = at.saturating_sub(reach);
        let to = (at + reach + 1).min(longer.len());
        if let Some(place) = (from..to).find(|&place| !taken[place] && longer[place] == *character) {
            taken[place] = true;
            matched_shorter.push(*character);
        }
    }
    let matches = matched_shorter.len() as f32;
    if matches == 0.0 {
        return 0.0;
    }
    let matched_longer =
        longer.iter().zip(&taken).filter(|(_, taken)| **taken).map(|(character, _)| *character);
    let moved =
        matched_shorter.iter().zip(matched_longer).filter(|(left, right)| **left != *right).count() / 2;
    let jaro =
        (matches / left.len() as f32 + matches / right.len() as f32 + (matches - moved as f32) / matches)
            / 3.0;
    if jaro < WINKLER_FROM {
        return jaro;
    }
    let common = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    jaro + (1.0 / longer.len() as f32).min(0.1) * common as f32 * (1.0 - jaro)
}

/// Common pairs of neighbours, where a pair that is half the same counts half (Kondrak's distance of n-grams).
fn pairs(left: &[char], right: &[char]) -> f32 {
    const N: usize = 2;
    let (rows, columns) = (left.len(), right.len());
    if rows == 0 || columns == 0 {
        return if rows == columns { 1.0 } else { 0.0 };
    }
    if rows < N || columns < N {
        let same = left.iter().zip(right).filter(|(left, right)| left == right).count();
        return same as f32 / rows.max(columns) as f32;
    }
    // Before the first character stands one that is in no word.
    let mut padded = vec!['\0'; N - 1];
    padded.extend_from_slice(left);
    let mut before: Vec<f32> = (0..=rows).map(|row| row as f32).collect();
    let mut current = vec![0.0; rows + 1];
    for column in 1..=columns {
        let pair: Vec<char> =
            (0..N).map(|offset| (column + offset).checked_sub(N).map_or('\0', |at| right[at])).collect();
        current[0] = column as f32;
        for row in 1..=rows {
            let mut cost = 0;
            let mut counted = N;
            for offset in 0..N {
                if padded[row - 1 + offset] != pair[offset] {
                    cost += 1;
                } else if padded[row - 1 + offset] == '\0' {
                    counted -= 1;
                }
            }
            let cost = cost as f32 / counted as f32;
            current[row] = (current[row - 1] + 1.0).min(before[row] + 1.0).min(before[row - 1] + cost);
        }
        std::mem::swap(&mut before, &mut current);
    }
    1.0 - before[rows] / rows.max(columns) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn likeness(measure: fn(&[char], &[char]) -> f32, left: &str, right: &str) -> f32 {
        let characters = |text: &str| text.chars().collect::<Vec<char>>();
        (measure(&characters(left), &characters(right)) * 1000.0).round() / 1000.0
    }

    #[test]
    fn words_of_common_pieces_are_meant() {
        let share = |word: &str, term: &str| {
            let letters = |text: &str| text.chars().collect::<Vec<char>>();
            share_a_piece(&letters(word), &letters(term))
        };
        assert!(share("nals", "nail") && share("langage", "language") && share("nals", "nails"));
        assert!(!share("nals", "pearls") && !share("langage", "number") && !share("ab", "ab"));
    }

    #[test]
    fn measures_are_those_of_the_literature() {
        assert_eq!(likeness(jaro_winkler, "martha", "marhta"), 0.961);
        assert_eq!(likeness(jaro_winkler, "dwayne", "duane"), 0.84);
        assert_eq!(likeness(jaro_winkler, "frank", "frank"), 1.0);
        assert_eq!(likeness(jaro_winkler, "abc", "xyz"), 0.0);
        assert_eq!(likeness(pairs, "university", "univearsitty"), 0.792);
        assert_eq!(likeness(pairs, "same", "same"), 1.0);
        assert_eq!(likeness(pairs, "", "x"), 0.0);
    }
}
